"""A user's rule for how a function is cut over devices.

In JAX: `jax.experimental.custom_partitioning`.
"""

from minijax.programs.sharding.own_partitions import (
    custom_partitioning,
    custom_partitioning_p,
)

__all__ = ["custom_partitioning", "custom_partitioning_p"]
