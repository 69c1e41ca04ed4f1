"""Lowering, with JAX's registration tables. In JAX: `jax.interpreters.mlir`."""

from minijax.compile.mlir import *  # noqa: F403
from minijax.interpreters.lowering_tables import *  # noqa: F403
