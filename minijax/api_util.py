"""Flattening of calls, for writers of transformations. In JAX: `jax.api_util`."""

from minijax.language.core import shaped_abstractify as shaped_abstractify

__all__ = [
    "shaped_abstractify",
]
