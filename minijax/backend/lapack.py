"""LAPACK on the CPU: the functions that jaxlib brings along, made ready on first use.

They are SciPy's BLAS and LAPACK, behind XLA's foreign function interface. Loading them
imports `scipy.linalg` (a quarter of a second), so it waits for the first program that
calls one. A function that is called before that kills the process.

In JAX: `jaxlib/lapack.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from minijax.backend import foreign_targets

_PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@functools.cache
def load() -> None:
    """Register LAPACK's functions with XLA, and find them in SciPy."""
    from jaxlib import lapack

    for name, function, version in lapack.registrations()["cpu"]:
        foreign_targets.register_ffi_target(name, function, "cpu", version)
    for name in lapack.batch_partitionable_targets():
        foreign_targets.register_ffi_target_as_batch_partitionable(name)
    lapack._lapack.initialize()


def load_for(targets: Iterable[str]) -> None:
    """`load()`, if a program that was lowered elsewhere calls one of the functions."""
    if any(name.startswith(("lapack_", "tridiagonal_solve_")) for name in targets):
        load()


def target(stem: str, dtype: Any) -> str:
    """The name of a function for a dtype: "potrf" of float32 is "lapack_spotrf_ffi".

    Raises NotImplementedError for a dtype that LAPACK does not know, such as bfloat16.
    """
    name = np.dtype(dtype).name
    if name not in _PREFIXES:
        raise NotImplementedError(
            f"Unsupported dtype {dtype.name}: LAPACK has float32, float64, "
            "complex64 and complex128. Convert the array, `x.astype('float32')`."
        )
    load()
    return f"lapack_{_PREFIXES[name]}{stem}_ffi"
