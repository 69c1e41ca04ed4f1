"""`jit` by its older name. In JAX: `jax.experimental.pjit`."""

from minijax.compile.jit_api import jit as pjit

__all__ = ["pjit"]
