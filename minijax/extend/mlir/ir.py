"""MLIR's types, attributes and operations; loaded when the first is used.

In JAX: `jax.extend.mlir.ir`.
"""

from typing import Any

from minijax.core import hlo


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(hlo.ir, name)
