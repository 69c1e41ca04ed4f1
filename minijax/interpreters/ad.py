"""Derivatives, with JAX's registration tables. In JAX: `jax.interpreters.ad`."""

from minijax.interpreters.derivative_tables import *  # noqa: F403
from minijax.transforms.ad import *  # noqa: F403
