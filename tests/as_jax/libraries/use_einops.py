"""einops: rearrange, reduce, repeat and einsum of arrays and tracers."""

import einops
import jax
import jax.numpy as jnp

x = jnp.arange(24.0).reshape(2, 3, 4)
print(einops.rearrange(x, "a b c -> c (a b)"))
print(jax.grad(lambda x: einops.reduce(x**2, "a b c -> b", "mean").sum())(x))
print(jax.jit(lambda x: einops.repeat(x, "a b c -> a (b 2) c").sum(0))(x))
print(einops.einsum(x, x, "a b c, d b c -> a d"))
