"""Conversions of a tracer: Python scalars, copies.

A tracer that knows its value, such as one of `jvp` outside of `jit`, gives it; another
raises an error that says what to write instead. These are methods of `Tracer`, whose
class is in `core/language.py`, with `bool`, `int` and `float`.

In JAX: `core.py`, `Tracer`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes, errors
from minijax.core.events import enter
from minijax.core.language import Tracer
from minijax.support import special_errors

# What `Tracer` has besides, by name. `assembly.py` gives it to the class.
TRACER_METHODS: dict[str, Any] = {}


def on_tracer(method: Callable) -> Callable:
    """Enter a method of `Tracer`, under its name."""
    enter(TRACER_METHODS, method.__name__, method)
    return method


def _refusing(name: str, is_method: bool) -> Any:
    """Attributes of arrays on devices, which a tracer does not have: errors."""

    def refuse(self: Tracer, *args: Any) -> Any:
        called = f"`{name}()`" if is_method else f"`{name}`"
        raise errors.ConcretizationTypeError(
            self,
            f"{called} asks where the values of an array are, and a traced value has "
            "none yet. Ask outside of the traced function.",
        )

    refuse.__name__ = name
    return refuse if is_method else property(refuse)


for _name in (
    "addressable_shards", "committed", "global_shards", "is_fully_addressable",
    "is_fully_replicated",
):  # fmt: skip
    enter(TRACER_METHODS, _name, _refusing(_name, is_method=False))
for _name in (
    "addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes",
    "unsafe_buffer_pointer",
):  # fmt: skip
    enter(TRACER_METHODS, _name, _refusing(_name, is_method=True))


@on_tracer
def __complex__(self: Tracer) -> complex:
    no = self.has_tangent
    return complex(self._concrete_scalar("complex", "astype(complex)", no))


@on_tracer
def __index__(self: Tracer) -> int:
    if self.aval.shape or not dtypes.issubdtype(self.aval.dtype, np.integer):
        raise TypeError("Only integer scalar arrays can be converted to a scalar index")
    return operator.index(self._concrete(special_errors.TracerIntegerConversionError))


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


def _sharding(self: Tracer) -> Any:
    raise AttributeError(
        f"A {self._error_repr()} has no attribute 'sharding': devices hold values, and "
        "a tracer has none. `minijax.typeof(x).sharding` is that of its type."
    )


enter(TRACER_METHODS, "sharding", property(_sharding))
