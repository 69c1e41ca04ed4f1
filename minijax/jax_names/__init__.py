"""minijax under the name of jax, for programs that say `import jax`."""
