"""Several processes that compute together. In JAX: `jax.distributed`."""

from minijax.processes.connecting import initialize as initialize
from minijax.processes.connecting import is_initialized as is_initialized
from minijax.processes.connecting import shutdown as shutdown
