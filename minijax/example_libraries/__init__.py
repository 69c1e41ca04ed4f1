"""Small libraries that JAX ships as examples: optimizers, and networks as pairs."""
