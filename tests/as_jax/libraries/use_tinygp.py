"""tinygp: the likelihood of a Gaussian process, its derivative, a prediction."""

import jax
import jax.numpy as jnp
import tinygp

x = jnp.linspace(0, 3, 12)
y = jnp.sin(x)


def process(scale):
    return tinygp.GaussianProcess(tinygp.kernels.Matern32(scale), x, diag=0.01)


print(jax.value_and_grad(lambda s: process(s).log_probability(y))(1.0))
print(process(1.0).condition(y, x[:3] + 0.1).gp.loc)
