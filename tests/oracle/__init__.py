"""minijax and JAX run side by side on the same programs."""
