"""Compiled programs as bytes. In JAX: `jax.experimental.serialize_executable`."""

from minijax.programs.serializing import deserialize_and_load, serialize

__all__ = ["deserialize_and_load", "serialize"]
