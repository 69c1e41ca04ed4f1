"""Reading static arguments: axes, sizes, dtypes of indices.

Every function of `jax.numpy` with an `axis`, a `size` or a `shape` starts by turning
what the user wrote into plain integers, and says in one sentence when that cannot be
done. These few functions are that first step, shared by the files of this room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import language
from minijax.primitives.shape.squeezing import canonicalize_axis as canonicalize_axis
from minijax.primitives.shape.squeezing import index_of as index_of
from minijax.support import element_types
from minijax.values import concrete
from minijax.values.concrete import is_concrete as is_concrete
from minijax.values.symbolic_sizes import is_symbolic

INT32_MAX = np.iinfo(np.int32).max


def concrete_or_error(force: Callable | None, value: Any, context: str = "") -> Any:
    """`force(value)`, where `value` must not be traced.

    Raises ConcretizationTypeError with `context` for a tracer whose value is unknown.
    """
    known = concrete.concrete_or_error(None, value, context)
    return known if force is None else force(known)


def check_rank(name: str, least: int, most: float, **arrays: Any) -> None:
    """ValueError that names the argument with too few or too many dimensions."""
    for argument, array in arrays.items():
        if not least <= array.ndim <= most:
            words = least if least == most else f"at least {least}"
            raise ValueError(
                f"{name}: {argument} must have {words} dimension{'s'[: least - 1]}, "
                f"got shape {array.shape}."
            )


def static_index(value: Any, context: str = "") -> int:
    """`value` as a Python integer known while tracing, or a symbolic size."""
    known, place = concrete_or_error(None, value, context), context.rstrip(".")
    return known if is_symbolic(known) else index_of(known, f"{place}: the value")


def index_tuple(value: Any) -> tuple[int, ...]:
    """An integer or a sequence of integers as a tuple of Python integers.

    Raises ConcretizationTypeError for a tracer and TypeError for a non-integer.
    """
    value = concrete_or_error(None, value, "Axes, shapes and shifts must be static.")
    entries = value if np.iterable(value) else (value,)
    return tuple(index_of(entry) for entry in entries)


def shape_tuple(shape: Any) -> tuple[int, ...]:
    """A size or a sequence of sizes as a tuple; TypeError for a tracer among them."""
    try:
        sizes = tuple(shape)
    except TypeError:
        sizes = (shape,)
    return tuple(language.canonicalize_dim(size) for size in sizes)


def canonicalize_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; None stands for all of them.

    Raises ValueError when one is out of bounds or named twice.
    """
    if axes is None:
        return tuple(range(rank))
    result = tuple(canonicalize_axis(axis, rank) for axis in index_tuple(axes))
    if len(set(result)) != len(result):
        raise ValueError(f"repeated axis: {axes}")
    return result


def index_dtype(sizes: int | Sequence[int]) -> np.dtype:
    """int32, or int64 where a dimension is too long to be counted in int32."""
    if isinstance(sizes, (int, np.integer)):
        sizes = (sizes,)
    longest = max((size for size in sizes if not is_symbolic(size)), default=0)
    return np.dtype(np.int64 if longest > INT32_MAX else np.int32)


def default_index_dtype(size: int) -> np.dtype:
    """The dtype of positions that a user sees: the default int if int32 suffices."""
    dtype = index_dtype(size)
    return np.dtype(element_types.default_int_dtype()) if dtype == np.int32 else dtype
