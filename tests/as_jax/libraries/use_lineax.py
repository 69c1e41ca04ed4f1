"""Lineax: solves by LU, QR, Cholesky, conjugate gradients, and their derivatives."""

import jax
import jax.numpy as jnp
import lineax as lx

a = jax.random.normal(jax.random.key(0), (4, 4))
spd = a @ a.T + 4 * jnp.eye(4)
b = jnp.arange(4.0)
tagged = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
print(lx.linear_solve(tagged, b, lx.CG(1e-5, 1e-5)).value)
print(
    lx.linear_solve(
        lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3)), b
    ).value
)
print(lx.linear_solve(lx.MatrixLinearOperator(spd), b, lx.LU()).value)
print(lx.linear_solve(lx.MatrixLinearOperator(a[:, :2]), b, lx.QR()).value)
print(lx.linear_solve(tagged, b, lx.Cholesky()).value)
print(jax.grad(lambda b: lx.linear_solve(tagged, b).value.sum())(b))
