"""Derivatives, with JAX's registration tables. In JAX: `jax.interpreters.ad`."""

from minijax.core.autodiff import *  # noqa: F403
from minijax.interpreters.derivative_tables import *  # noqa: F403
