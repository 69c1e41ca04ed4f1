"""Functions whose batching rule the user gives. In JAX: `jax.custom_batching`."""

from minijax.programs.custom.custom_vmap_rule import custom_vmap as custom_vmap
from minijax.programs.custom.custom_vmap_rule import sequential_vmap as sequential_vmap
