"""Gaussian process regression: hyperparameters by their marginal likelihood."""

import jax
import jax.numpy as jnp
from jax import random
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular

jax.config.update("jax_enable_x64", True)


def kernel(params, x, y):
    scaled = (x[:, None] - y[None, :]) / jnp.exp(params["length"])
    return jnp.exp(2 * params["height"] - 0.5 * scaled**2)


def factor(params, x):
    noise = jnp.exp(2 * params["noise"]) + 1e-8
    return jnp.linalg.cholesky(kernel(params, x, x) + noise * jnp.eye(len(x)))


def negative_likelihood(params, x, y):
    L = factor(params, x)
    white = solve_triangular(L, y, lower=True)
    determinant = jnp.sum(jnp.log(jnp.diag(L)))
    return 0.5 * white @ white + determinant + 0.5 * len(x) * jnp.log(2 * jnp.pi)


def predict(params, x, y, new):
    noise = jnp.exp(2 * params["noise"])
    factors = cho_factor(kernel(params, x, x) + noise * jnp.eye(len(x)))
    across = kernel(params, new, x)
    mean = across @ cho_solve(factors, y)
    cov = kernel(params, new, new) - across @ cho_solve(factors, across.T)
    return mean, jnp.sqrt(jnp.diag(cov))


k1, k2 = random.split(random.key(0))
x = jnp.sort(random.uniform(k1, (40,), minval=-3, maxval=3))
y = jnp.sin(2 * x) + 0.2 * random.normal(k2, x.shape)
params = {"length": 0.5, "height": 0.0, "noise": -0.5}
params = jax.tree.map(jnp.asarray, params)


@jax.jit
def step(params):
    value, grads = jax.value_and_grad(negative_likelihood)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value


for i in range(81):
    params, value = step(params)
    if i % 20 == 0:
        print(f"step {i} negative log likelihood {value:.5f}")
for name, value in params.items():
    print(f"{name} {jnp.exp(value):.5f}")
new = jnp.linspace(-3, 3, 7)
mean, spread = predict(params, x, y, new)
for point, m, s in zip(new, mean, spread):
    print(
        f"at {point:.1f} mean {m:.5f} deviation {s:.5f} truth {jnp.sin(2 * point):.3f}"
    )
curve = jax.hessian(lambda n: negative_likelihood({**params, "noise": n}, x, y))
print(f"curvature in the noise {curve(params['noise']):.4f}")
