"""Lowering, with JAX's registration tables. In JAX: `jax.interpreters.mlir`."""

from minijax.core.lowering import *  # noqa: F403
from minijax.interpreters.lowering_tables import *  # noqa: F403
