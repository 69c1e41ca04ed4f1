"""jaxopt: gradient descent, L-BFGS, projected and proximal gradient, bisection."""

import jax
import jax.numpy as jnp
import jaxopt

x = jax.random.normal(jax.random.key(0), (20, 3))
y = x @ jnp.array([1.0, -2.0, 0.5])
loss = lambda w: jnp.mean((x @ w - y) ** 2)
print(jaxopt.GradientDescent(loss, maxiter=20).run(jnp.zeros(3)).params)
print(jaxopt.LBFGS(loss, maxiter=10).run(jnp.zeros(3)).params)
pg = jaxopt.ProjectedGradient(
    loss, jaxopt.projection.projection_non_negative, maxiter=20
)
print(pg.run(jnp.zeros(3)).params)
prox = jaxopt.ProximalGradient(lambda w: loss(w), jaxopt.prox.prox_lasso, maxiter=20)
print(prox.run(jnp.zeros(3), hyperparams_prox=0.1).params)
print(jaxopt.Bisection(lambda z: z**3 - 2, 0.0, 2.0).run().params)
print(jaxopt.projection.projection_simplex(jnp.array([0.3, 2.0, -1.0])))
