"""After JAX's `gaussian_process_regression.py`: parameters under a softplus."""

import jax
import jax.numpy as jnp
import jax.scipy as scipy
from jax import grad, jit, random, vmap


def cov_map(cov_func, xs, xs2=None):
    """The covariance of each pair of points."""
    if xs2 is None:
        return vmap(lambda x: vmap(lambda y: cov_func(x, y))(xs))(xs)
    return vmap(lambda x: vmap(lambda y: cov_func(x, y))(xs))(xs2).T


def softplus(x):
    return jnp.logaddexp(x, 0.0)


def exp_quadratic(x1, x2):
    return jnp.exp(-jnp.sum((x1 - x2) ** 2))


def gp(params, x, y, xtest=None, compute_marginal_likelihood=False):
    noise = softplus(params["noise"])
    amp = softplus(params["amplitude"])
    ls = softplus(params["lengthscale"])
    ymean = jnp.mean(y)
    y, x = y - ymean, x / ls
    train_cov = amp * cov_map(exp_quadratic, x) + jnp.eye(len(x)) * (noise + 1e-6)
    chol = scipy.linalg.cholesky(train_cov, lower=True)
    kinvy = scipy.linalg.solve_triangular(
        chol.T, scipy.linalg.solve_triangular(chol, y, lower=True)
    )
    if compute_marginal_likelihood:
        log2pi = jnp.log(2.0 * jnp.pi)
        ml = jnp.sum(
            -0.5 * jnp.dot(y.T, kinvy)
            - jnp.sum(jnp.log(jnp.diag(chol)))
            - (len(x) / 2.0) * log2pi
        )
        ml -= jnp.sum(-0.5 * jnp.log(2 * jnp.pi) - jnp.log(amp) - jnp.log(amp) ** 2)
        return -ml
    xtest = xtest / ls
    cross_cov = amp * cov_map(exp_quadratic, x, xtest)
    mu = jnp.dot(cross_cov.T, kinvy) + ymean
    v = scipy.linalg.solve_triangular(chol, cross_cov, lower=True)
    return mu, amp * cov_map(exp_quadratic, xtest) - jnp.dot(v.T, v)


def marginal_likelihood(params, x, y):
    return gp(params, x, y, compute_marginal_likelihood=True)


grad_fun = jit(grad(marginal_likelihood))
y_fun = lambda x: jnp.sin(x) + 0.01 * random.normal(random.key(10), x.shape)
x = random.uniform(random.key(0), (15, 1), minval=0.0, maxval=6.0)
y = y_fun(x)[:, 0]
xtest = jnp.linspace(0, 6.0, 25)[:, None]

params = {"amplitude": jnp.zeros(()), "noise": jnp.zeros(()) - 5.0}
params["lengthscale"] = jnp.zeros(())
momentums = jax.tree.map(jnp.zeros_like, params)
scales = jax.tree.map(jnp.ones_like, params)
for i in range(60):
    grads = grad_fun(params, x, y)
    for k in params:
        momentums[k] = 0.9 * momentums[k] + 0.1 * grads[k]
        scales[k] = 0.9 * scales[k] + 0.1 * grads[k] ** 2
        params[k] -= 0.01 * momentums[k] / jnp.sqrt(scales[k] + 1e-5)
    if i % 20 == 0:
        print(f"step {i} objective {marginal_likelihood(params, x, y):.3f}")
for name, value in params.items():
    print(f"{name} {softplus(value):.3f}")
mu, cov = gp(params, x, y, xtest)
print(f"error {jnp.abs(mu - jnp.sin(xtest[:, 0])).mean():.3f}", end=" ")
print(f"mean variance {jnp.diag(cov).mean():.3f}")
