"""What JAX keeps under `jax.experimental`; each module is imported by its name."""

from minijax.programs.callbacks.callback import io_callback as io_callback
