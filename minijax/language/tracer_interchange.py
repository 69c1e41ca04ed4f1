"""What a tracer becomes elsewhere: Python scalars, copies.

A tracer that knows its value, such as one of `jvp` outside of `jit`, gives it; another
raises an error that says what to write instead. These are methods of `Tracer`, whose
class is in `language/core.py`, with `bool`, `int` and `float`.

In JAX: `core.py`, `Tracer`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.language.core import Tracer
from minijax.support import dtypes, errors


def on_tracer(method: Callable) -> Callable:
    """Put a method on `Tracer`, under its name."""
    setattr(Tracer, method.__name__, method)
    return method


@on_tracer
def __complex__(self: Tracer) -> complex:
    return complex(self._concrete_scalar("complex", "astype(complex)"))


@on_tracer
def __index__(self: Tracer) -> int:
    if self.aval.shape or not dtypes.issubdtype(self.aval.dtype, np.integer):
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index."
        )
    return operator.index(self._concrete(errors.TracerIntegerConversionError))


@on_tracer
def tolist(self: Tracer) -> Any:
    return self._concrete_scalar("tolist", "").tolist()


@on_tracer
def item(self: Tracer, *args: int) -> Any:
    return self._concrete_scalar("item", "").item(*args)


@on_tracer
def __copy__(self: Tracer) -> Tracer:
    return self


@on_tracer
def __deepcopy__(self: Tracer, memo: dict) -> Tracer:
    return self


@on_tracer
def __reduce__(self: Tracer) -> Any:
    raise errors.ConcretizationTypeError(self, "A traced value cannot be pickled.")
