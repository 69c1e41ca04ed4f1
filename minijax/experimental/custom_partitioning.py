"""A user's rule for how a function is cut over devices.

In JAX: `jax.experimental.custom_partitioning`.
"""

from minijax.programs.sharding.own_partitions import (
    custom_partitioning as custom_partitioning,
)
