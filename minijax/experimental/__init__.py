"""What JAX keeps under `jax.experimental`; each module is imported by its name."""
