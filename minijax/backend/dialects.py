"""The MLIR dialects that kernels are written in, as jaxlib's modules.

    dialect("arith").addf(x, y)

In JAX: `jaxlib.mlir.dialects`, `jaxlib.mosaic`, `jaxlib.triton`.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from minijax.core.runtime import uninterrupted

_ELSEWHERE = {"tpu": "jaxlib.mosaic.python.tpu", "tt": "jaxlib.triton.dialect"}


@functools.cache
@uninterrupted
def dialect(name: str) -> Any:
    """The module of a dialect: "tpu" is Mosaic's, "tt" Triton's, others are MLIR's."""
    return importlib.import_module(_ELSEWHERE.get(name, f"jaxlib.mlir.dialects.{name}"))


def message_of(error: Exception) -> str:
    """MLIR's message of an error, without the Python frames before it."""
    return str(error).rsplit("): ", 1)[-1].strip()
