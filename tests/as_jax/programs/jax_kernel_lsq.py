"""After JAX's `kernel_lsq.py`: kernel least squares by gradients in function space."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, vmap


def gram(kernel, xs):
    """The kernel of each pair."""
    return vmap(lambda x: vmap(lambda y: kernel(x, y))(xs))(xs)


def minimize(f, x, num_steps=10000, step_size=1e-6, mass=0.9):
    """Gradient descent with momentum; the whole of it is one loop."""
    slope = jit(grad(f))

    def step(_, state):
        x, velocity = state
        velocity = mass * velocity - (1.0 - mass) * slope(x)
        return x + step_size * velocity, velocity

    return jax.lax.fori_loop(0, num_steps, step, (x, jnp.zeros_like(x)))[0]


def train(kernel, xs, ys, regularization=0.01):
    """The solution of `min_f |f(xs) - ys|**2 + r |f|**2` in the kernel's space."""
    gram_ = jit(partial(gram, kernel))
    K = gram_(xs)

    def objective(v):
        risk = 0.5 * jnp.sum((jnp.dot(K, v) - ys) ** 2)
        return risk + regularization * 0.5 * jnp.dot(v, jnp.dot(K, v))

    v = minimize(objective, jnp.zeros(len(xs)), 3000, 1e-3)

    def predict(x):
        return jnp.dot(vmap(lambda y: kernel(x, y))(xs), v)

    return jit(vmap(predict))


def linear_kernel(x, y):
    return jnp.dot(x, y)


def rbf_kernel(x, y, width=1.5):
    return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * width**2))


draw = np.random.RandomState(0)
xs = jnp.asarray(draw.randn(60, 4), jnp.float32)
weights = jnp.asarray(draw.randn(4), jnp.float32)
ys = xs @ weights
bent = jnp.sin(ys)

predict = train(linear_kernel, xs, ys)
print(f"linear: mean square error {jnp.mean((predict(xs) - ys) ** 2):.5f}")
predict = train(rbf_kernel, xs, bent)
print(f"curved: mean square error {jnp.mean((predict(xs) - bent) ** 2):.5f}")
new = jnp.asarray(draw.randn(20, 4), jnp.float32)
print(f"at other points {jnp.mean((predict(new) - jnp.sin(new @ weights)) ** 2):.4f}")
slopes = vmap(grad(lambda x: predict(x[None])[0]))(new)
print(f"mean size of the slope {jnp.linalg.norm(slopes, axis=1).mean():.4f}")
