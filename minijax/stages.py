"""A jitted function step by step: traced, lowered, compiled. In JAX: `jax.stages`."""

# isort: skip_file
# ruff: noqa: F401
# fmt: off
from minijax.compile.stages import (
    ArgInfo, Compiled, CompilerOptions, Lowered, Traced, Wrapped,
)
