"""`unique`: the distinct elements of an array.

How many there are is the shape of the result: under `jit` it must be given as `size`.
In JAX: `numpy/setops.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, concrete_or_error, static_index
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.math import differences, float_functions
from minijax.numpy.promotion import constant_like
from minijax.numpy.reduce import counting, reductions, running
from minijax.numpy.shapes import creation, joining, sorting
from minijax.numpy.shapes.broadcasting import _where as where
from minijax.numpy.shapes.shaping import moveaxis, ravel, reshape, transpose

_SIZE_HINT = (
    "To make jnp.unique() compatible with JIT and other transforms, you can specify a "
    "concrete value for the size argument, which will determine the output size."
)


@jit(static_argnames=["axis", "equal_nan"])
def _unique_sorted_mask(
    ar: Array, axis: int, equal_nan: bool
) -> tuple[Array, Array, Array]:
    """The slices along `axis` in order, which of them are new, and the order."""
    slices = moveaxis(ar, axis, 0)
    if dtypes.issubdtype(slices.dtype, np.complexfloating):
        nan = constant_like(slices, np.nan)
        slices = where(float_functions.isnan(slices), nan, slices)
    size, *inner = slices.shape
    if math.prod(inner) == 0:
        size = 1
        order = creation.zeros(1, dtype=int)
    else:
        columns = transpose(reshape(slices, (size, math.prod(inner))))
        order = sorting.lexsort(columns[::-1])
    slices = slices[order]
    if not slices.size:
        return slices, creation.zeros(size, dtype=bool), order
    mask = creation.ones(size, dtype=bool)
    later, earlier = slices[1:], slices[:-1]
    differs = lax.ne(later, earlier)
    if equal_nan and dtypes.issubdtype(slices.dtype, np.inexact):
        both = float_functions.isnan(later) & float_functions.isnan(earlier)
        differs = differs & ~both
    is_new = reductions.any(differs, tuple(range(1, slices.ndim)))
    return slices, mask.at[1:].set(is_new), order


def _unique(
    ar: Array,
    axis: int,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    return_true_size: bool = False,
) -> Any:
    axis = canonicalize_axis(axis, ar.ndim)
    length = ar.shape[axis]
    if length == 0 and size and fill_value is None:
        raise ValueError(
            "jnp.unique: for zero-sized input with nonzero size argument, fill_value "
            "must be specified"
        )
    slices, mask, order = _unique_sorted_mask(ar, axis, equal_nan)
    if size is None:
        message = "The error arose in jnp.unique(). " + _SIZE_HINT
        chosen = concrete_or_error(None, mask, message)
    else:
        chosen = counting.nonzero(mask, size=size)[0]
    values = slices[chosen] if slices.size else slices
    if size is not None and fill_value is not None:
        values = _fill(values, mask, size, fill_value)
    results = [moveaxis(values, 0, axis)]
    if return_index:
        results.append(order[chosen] if slices.size else order)
    if return_inverse:
        results.append(_inverse(slices, mask, order, length))
    if return_counts:
        results.append(_counts(slices, mask, size, length))
    if return_true_size:
        results.append(reductions.sum(mask))
    return results[0] if len(results) == 1 else tuple(results)


def _fill(values: Array, mask: Array, size: int, fill_value: Any) -> Array:
    """`values` with the entries beyond the true number replaced."""
    fill = creation.asarray(fill_value, dtype=values.dtype)
    if not values.shape[0]:
        return creation.full_like(values, fill, shape=(size, *values.shape[1:]))
    found = creation.arange(size) < reductions.sum(mask)
    found = lax.expand_dims(found, tuple(range(1, values.ndim)))
    return where(found, values, fill)


def _inverse(slices: Array, mask: Array, order: Array, length: int) -> Array:
    """For each original element, which distinct one it is."""
    if not slices.size:
        return creation.zeros(length, dtype=int)
    rank = running.cumsum(mask) - 1
    return creation.zeros(mask.shape, dtype=int).at[order].set(rank)


def _counts(slices: Array, mask: Array, size: int | None, length: int) -> Array:
    """How often each distinct element occurs: the distance to the next one."""
    if not slices.size:
        count = 1 if length else 0
        return creation.full((count,), length, dtype=int)
    if size is None:
        places = joining.append(counting.nonzero(mask)[0], mask.size)
    else:
        places = counting.nonzero(mask, size=size + 1)[0]
        later = where(places[1:], places[1:], mask.size)
        places = places.at[1:].set(later)
    return differences.diff(places)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements of `ar`, sorted, or its distinct slices along `axis`.

    On request followed by where each stands first, by which of them each element is
    (in the shape of `ar`), and by how often it occurs. Under `jit`, give `size`: what
    is surplus is dropped, what is missing is `fill_value` (by default the least of
    them).
    Raises ConcretizationTypeError for a traced array without `size`.
    """
    del sorted
    array = ensure_arraylike("unique", ar)
    if size is None:
        message = "The error arose for the first argument of jnp.unique(). "
        array = concrete_or_error(None, array, message + _SIZE_HINT)
    else:
        message = "The error arose for the size argument of jnp.unique(). "
        size = static_index(size, message + _SIZE_HINT)
    shape = array.shape
    along = 0 if axis is None else canonicalize_axis(axis, array.ndim)
    if axis is None:
        array = ravel(array)
    wanted = (return_index, return_inverse, return_counts)
    result = _unique(array, along, *wanted, equal_nan, size, fill_value)
    if return_inverse and axis is None:
        place = 2 if return_index else 1
        inverse = reshape(result[place], shape)
        result = (*result[:place], inverse, *result[place + 1 :])
    return result


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _distinct(name: str, x: Any, size: int | None, fill_value: Any, **wanted: bool):
    """`unique` of the array API: what is `wanted`, and each NaN is distinct."""
    array = ensure_arraylike(name, x)
    options: dict[str, Any] = {"size": size, "fill_value": fill_value}
    return unique(array, equal_nan=False, **options, **wanted)


def unique_all(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueAllResult:
    """Distinct values, first indices, inverse and counts; each NaN is distinct."""
    wanted = {"return_index": True, "return_inverse": True, "return_counts": True}
    return UniqueAllResult(*_distinct("unique_all", x, size, fill_value, **wanted))


def unique_counts(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueCountsResult:
    """Distinct values and how often each occurs; each NaN is distinct."""
    parts = _distinct("unique_counts", x, size, fill_value, return_counts=True)
    return UniqueCountsResult(*parts)


def unique_inverse(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverseResult:
    """Distinct values and which of them each element is; each NaN is distinct."""
    parts = _distinct("unique_inverse", x, size, fill_value, return_inverse=True)
    return UniqueInverseResult(*parts)


def unique_values(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Distinct values; each NaN is distinct."""
    return _distinct("unique_values", x, size, fill_value)
