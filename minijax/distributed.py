"""Several processes that compute together. In JAX: `jax.distributed`."""

from minijax.programs.processes.connecting import initialize as initialize
from minijax.programs.processes.connecting import is_initialized as is_initialized
from minijax.programs.processes.connecting import shutdown as shutdown
