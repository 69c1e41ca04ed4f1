"""Optimistix: root finding, least squares, minimisation."""

import jax.numpy as jnp
import optimistix as optx

print(
    optx.root_find(
        lambda y, a: y**2 - a, optx.Newton(1e-5, 1e-5), jnp.array(1.0), 2.0
    ).value
)
print(
    optx.fixed_point(
        lambda y, a: jnp.cos(y), optx.FixedPointIteration(1e-5, 1e-5), jnp.array(1.0)
    ).value
)
x = jnp.arange(5.0)
fit = lambda p, a: p[0] * x + p[1] - (2 * x + 1)
print(optx.least_squares(fit, optx.LevenbergMarquardt(1e-5, 1e-5), jnp.zeros(2)).value)
print(
    optx.minimise(
        lambda p, a: ((p - 3) ** 2).sum(), optx.BFGS(1e-5, 1e-5), jnp.zeros(2)
    ).value
)
