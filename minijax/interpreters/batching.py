"""Batching, with JAX's registration tables. In JAX: `jax.interpreters.batching`."""

from minijax.core.batching import *  # noqa: F403
from minijax.interpreters.batch_tables import *  # noqa: F403
