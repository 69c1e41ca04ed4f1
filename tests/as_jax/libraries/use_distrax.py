"""Distrax: densities and samples, transformed and mixed, and their derivatives."""

import distrax
import jax
import jax.numpy as jnp

normal = distrax.Normal(jnp.zeros(2), jnp.ones(2))
print(normal.log_prob(jnp.ones(2)), normal.sample(seed=jax.random.key(0)))

key = jax.random.key(1)
x = jnp.array([0.3, -0.4])
diagonal = distrax.MultivariateNormalDiag(x, jnp.array([0.5, 2.0]))
print(diagonal.log_prob(x + 1), diagonal.entropy(), diagonal.sample(seed=key))
categorical = distrax.Categorical(logits=jnp.array([0.1, 1.0, -0.5]))
print(categorical.sample(seed=key, sample_shape=(5,)), categorical.entropy())
print(diagonal.kl_divergence(distrax.MultivariateNormalDiag(jnp.zeros(2))))

squashed = distrax.Transformed(distrax.Normal(x, 1.0), distrax.Tanh())
y, density = squashed.sample_and_log_prob(seed=key)
print(y, density, squashed.log_prob(jnp.tanh(x)))


@jax.jit
@jax.grad
def slope(mean):
    parts = distrax.Normal(jnp.stack([mean, -mean]), jnp.ones((2, 2)))
    weights = distrax.Categorical(probs=jnp.full((2, 2), 0.5))
    return distrax.MixtureSameFamily(weights, parts).log_prob(x).sum()


print(slope(x))
