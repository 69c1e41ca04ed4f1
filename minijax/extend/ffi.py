"""Calling native functions, under its earlier name. In JAX: `jax.extend.ffi`."""

from minijax.ffi import *  # noqa: F403
