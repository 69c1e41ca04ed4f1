"""Diffrax: an ordinary differential equation, its derivative, an implicit solver."""

import diffrax
import jax
import jax.numpy as jnp

term = diffrax.ODETerm(lambda t, y, a: -a * y + jnp.sin(t))


def end(a, solver=diffrax.Tsit5()):
    control = diffrax.PIDController(rtol=1e-4, atol=1e-4)
    return diffrax.diffeqsolve(
        term,
        solver,
        0.0,
        2.0,
        0.1,
        jnp.array([1.0, 2.0]),
        a,
        stepsize_controller=control,
    ).ys


print(end(0.5), jax.grad(lambda a: end(a).sum())(0.5))
print(jax.vmap(end)(jnp.array([0.1, 0.5])))
print(end(0.5, diffrax.Kvaerno3()))
