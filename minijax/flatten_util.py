"""Trees of arrays as one vector. In JAX: `jax.flatten_util`."""

from minijax.numpy.shapes.raveling import ravel_pytree as ravel_pytree
