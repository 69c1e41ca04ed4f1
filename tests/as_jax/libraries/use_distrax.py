"""Distrax: densities and samples."""

import distrax
import jax
import jax.numpy as jnp

normal = distrax.Normal(jnp.zeros(2), jnp.ones(2))
print(normal.log_prob(jnp.ones(2)), normal.sample(seed=jax.random.key(0)))
