"""Quantiles, percentiles and medians, by sorting along an axis.

In JAX: `numpy/reduce/reductions.py`, `_quantile`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments, promotion
from minijax.numpy.reduce.reduction_options import (
    OF_MEDIAN,
    OF_QUANTILE,
    Options,
    compiled,
)
from minijax.numpy.reduce.reductions import any, sum
from minijax.numpy.shapes.broadcasting import _where
from minijax.numpy.shapes.creation import laid_out
from minijax.support import element_types
from minijax.typing import ArrayLike

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@compiled(OF_QUANTILE, "a q")
def quantile(a: ArrayLike, q: ArrayLike, options: Options) -> Array:
    """The value below which a share `q` (from 0 to 1) of the elements lies.

    `q` is a scalar or one-dimensional; then its axis comes first in the result.
    `method` says what to do between two elements: "linear", "lower", "higher",
    "midpoint", "nearest" or "inverted_cdf" (the only one that takes `weights`). NaN
    anywhere gives NaN. ValueError for complex numbers and unknown methods.
    """
    return _quantile("quantile", a, q, options, skip_nan=False)


@compiled(OF_QUANTILE, "a q")
def nanquantile(a: ArrayLike, q: ArrayLike, options: Options) -> Array:
    """`quantile` of the elements that are not NaN."""
    return _quantile("nanquantile", a, q, options, skip_nan=True)


@compiled(OF_QUANTILE + " out_sharding", "a q")
def percentile(a: ArrayLike, q: ArrayLike, options: Options) -> Array:
    """`quantile` with `q` from 0 to 100."""
    a, q = promotion.ensure_arraylike("percentile", a, q)
    (q,) = promotion.promote_dtypes_inexact(q)
    of_parts = functools.partial(quantile, **options.only(OF_QUANTILE))
    return laid_out(of_parts, options.out_sharding, a, q / 100)


@compiled(OF_QUANTILE, "a q")
def nanpercentile(a: ArrayLike, q: ArrayLike, options: Options) -> Array:
    """`nanquantile` with `q` from 0 to 100."""
    a, q = promotion.ensure_arraylike("nanpercentile", a, q)
    (q,) = promotion.promote_dtypes_inexact(q)
    return nanquantile(a, q / 100, **options.only(OF_QUANTILE))


@compiled(OF_MEDIAN)
def median(a: ArrayLike, options: Options) -> Array:
    """The middle element, or the mean of the two in the middle."""
    a = promotion.ensure_arraylike("median", a)
    return quantile(a, 0.5, method="midpoint", **options.only(OF_MEDIAN))


@compiled(OF_MEDIAN)
def nanmedian(a: ArrayLike, options: Options) -> Array:
    """The median of the elements that are not NaN."""
    a = promotion.ensure_arraylike("nanmedian", a)
    return nanquantile(a, 0.5, method="midpoint", **options.only(OF_MEDIAN))


# --------------------------------------------------------------------------
# Sort, find the two neighbours of the wanted position, blend them


def _quantile(
    name: str, a: ArrayLike, q: ArrayLike, options: Options, skip_nan: bool
) -> Array:
    a, q = promotion.ensure_arraylike(name, a, q)
    axis, method = options.axis, options.method
    if options.overwrite_input or options.out is not None:
        raise ValueError(
            f"jax.numpy.{name} does not support overwrite_input=True or out != None: "
            "arrays are immutable."
        )
    if method not in _METHODS:
        raise ValueError(
            f"method can only be {', '.join(map(repr, _METHODS))}; got {method!r}"
        )
    a, weights = _numbers_and_weights(name, a, options.weights, axis, method)
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError(
            "quantile does not support complex input, as the operation is poorly "
            "defined: complex numbers have no order."
        )
    if q.ndim > 1:
        raise ValueError(f"q must have rank <= 1, got shape {q.shape}")
    kept_shape = _shape_with_ones(a, axis) if options.keepdims else None
    a, axis = _one_axis(a, axis)
    if method == "inverted_cdf":
        result = _inverted_cdf(a, q, axis, weights, skip_nan)
    elif skip_nan:
        result = _blend(method, q, *_neighbours_without_nan(a, q, axis))
    else:
        result = _blend(method, q, *_neighbours(a, q, axis))
    if kept_shape is not None:
        result = lax.reshape(result, (*q.shape, *kept_shape))
    return lax.convert_element_type(result, a.dtype)


def _numbers_and_weights(
    name: str, a: Array, weights: Any, axis: Any, method: str
) -> tuple[Array, Array | None]:
    if weights is None:
        (a,) = promotion.promote_dtypes_inexact(a)
        return a, None
    weights = promotion.ensure_arraylike(name, weights)
    if dtypes.issubdtype(weights.dtype, np.complexfloating):
        raise ValueError("Weights cannot be complex types.")
    if method != "inverted_cdf":
        raise NotImplementedError(
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports "
            "weights."
        )
    a, weights = promotion.promote_dtypes_inexact(a, weights)
    if weights.shape == a.shape:
        return a, _one_axis(weights, axis)[0]
    if axis is None:
        raise ValueError("Weights shape must match 'a' shape when axis is None.")
    axes = arguments.canonicalize_axes(axis, a.ndim)
    wanted = tuple(a.shape[each] for each in axes)
    if weights.shape != wanted:
        raise ValueError(
            f"Weights shape {weights.shape} must match reduction axes {wanted}"
        )
    weights = lax.broadcast_in_dim(weights, a.shape, axes)
    return a, _one_axis(weights, axis)[0]


def _shape_with_ones(a: Array, axis: Any) -> tuple[int, ...]:
    axes = arguments.canonicalize_axes(axis, a.ndim)
    return tuple(1 if i in axes else size for i, size in enumerate(a.shape))


def _one_axis(a: Array, axis: Any) -> tuple[Array, int]:
    """The array with all reduced axes merged into one, and that axis."""
    if axis is None:
        return lax.reshape(a, (a.size,)), 0
    if not isinstance(axis, tuple):
        return a, arguments.canonicalize_axis(axis, a.ndim)
    axes = arguments.canonicalize_axes(axis, a.ndim)
    kept = [i for i in range(a.ndim) if i not in axes]
    shape = tuple(a.shape[i] for i in kept)
    merged = math.prod(a.shape[i] for i in axes)
    return lax.reshape(a, (*shape, merged), (*kept, *sorted(axes))), len(kept)


def _bracket(
    q: Array, count: Array, clamp: Callable[[Array, Array, Array], Array]
) -> tuple[Array, Array, Array, Array]:
    """The indices below and above the share `q` of `count` elements; their weights."""
    one = promotion.constant_like(q, 1)
    zero = promotion.constant_like(q, 0)
    position = lax.mul(q, lax.sub(count, one))
    low = lax.floor(position)
    high = lax.ceil(position)
    high_weight = lax.sub(position, low)
    low_weight = lax.sub(one, high_weight)
    low = clamp(zero, low, lax.sub(count, one))
    high = clamp(zero, high, lax.sub(count, one))
    index_dtype = element_types.default_int_dtype()
    low = lax.convert_element_type(low, index_dtype)
    high = lax.convert_element_type(high, index_dtype)
    return low, high, low_weight, high_weight


def _neighbours(a: Array, q: Array, axis: int) -> tuple[Array, ...]:
    """The sorted elements below and above the wanted positions, and their weights."""
    a = _where(any(lax.ne(a, a), axis=axis, keepdims=True), np.nan, a)
    a = lax.sort(a, dimension=axis)
    size = promotion.constant_like(q, a.shape[axis])
    low, high, low_weight, high_weight = _bracket(q, size, lax.clamp)
    slice_sizes = [*a.shape[:axis], 1, *a.shape[axis + 1 :]]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(q.ndim, a.ndim + q.ndim - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )

    def element(index: Array) -> Array:
        index = lax.expand_dims(index, (index.ndim,))
        return lax.gather(
            a, index, dimension_numbers=numbers, slice_sizes=tuple(slice_sizes)
        )

    low_value = element(low)
    high_value = element(high)
    if q.ndim == 1:
        low_weight = lax.broadcast_in_dim(low_weight, low_value.shape, (0,))
        high_weight = lax.broadcast_in_dim(high_weight, high_value.shape, (0,))
    return low_value, high_value, low_weight, high_weight


def _neighbours_without_nan(a: Array, q: Array, axis: int) -> tuple[Array, ...]:
    """`_neighbours`, where each line of `a` has its own count of numbers."""
    a = _where(lax.ne(a, a), np.nan, a)  # all of one sign, so that they sort to the end
    a = lax.sort(a, dimension=axis)
    counts = sum(lax.bitwise_not(lax.ne(a, a)), axis=axis, dtype=q.dtype)
    kept_shape = counts.shape
    rank = len(kept_shape)
    new_axes = tuple(range(q.ndim, rank + q.ndim))
    counts = lax.expand_dims(counts, tuple(range(q.ndim)))
    low, high, low_weight, high_weight = _bracket(
        lax.expand_dims(q, new_axes),
        counts,
        lambda lowest, x, highest: lax.max(lowest, lax.min(x, highest)),
    )
    out_shape = (*q.shape, *kept_shape)
    index = [
        lax.broadcasted_iota(low.dtype, out_shape, i + q.ndim) for i in range(rank)
    ]

    def element(place: Array) -> Array:
        return a[tuple([*index[:axis], place, *index[axis:]])]

    return element(low), element(high), low_weight, high_weight


def _blend(method: str, q: Array, low, high, low_weight, high_weight) -> Array:
    if method == "lower":
        return low
    if method == "higher":
        return high
    if method == "nearest":
        half = promotion.constant_like(high_weight, 0.5)
        return lax.select(lax.le(high_weight, half), low, high)
    if method == "midpoint":
        return lax.mul(lax.add(low, high), promotion.constant_like(low, 0.5))
    low = lax.convert_element_type(low, q.dtype)
    high = lax.convert_element_type(high, q.dtype)
    return lax.add(lax.mul(low, low_weight), lax.mul(high, high_weight))


def _inverted_cdf(
    a: Array, q: Array, axis: int, weights: Array | None, skip_nan: bool
) -> Array:
    """The first element at which the summed weights reach the share `q` of all."""
    weights = lax.full_like(a, 1.0) if weights is None else weights
    if a.ndim:
        a, weights = lax.sort_key_val(a, weights, dimension=axis)
    zeros = lax.full_like(weights, 0)
    is_nan = lax.ne(a, a)
    bad_weights = lax.bitwise_or(lax.lt(weights, zeros), lax.ne(weights, weights))
    weights = lax.select(lax.bitwise_or(bad_weights, is_nan), zeros, weights)
    running = lax.cumsum(weights, axis)
    total = lax.index_in_dim(running, -1, axis=axis, keepdims=True)
    # The axis of q comes first in everything that follows.
    front = tuple(range(q.ndim))
    share = lax.reshape(q, (*q.shape, *(1,) * a.ndim))
    target = lax.mul(share, lax.expand_dims(total, front))
    before = lax.lt(lax.expand_dims(running, front), target)
    index_dtype = element_types.default_int_dtype()
    place = axis + q.ndim
    index = sum(before, axis=place, dtype=index_dtype, keepdims=True)
    counted = lax.bitwise_not(is_nan) if skip_nan else lax.full_like(is_nan, True)
    count = sum(counted, axis=axis, dtype=index_dtype, keepdims=True)
    last = lax.sub(count, promotion.constant_like(count, 1))
    last = lax.expand_dims(last, front)
    index = lax.max(promotion.constant_like(index, 0), lax.min(index, last))
    # Select by comparing with the position: `index` has size one along the axis.
    positions = lax.broadcasted_iota(index_dtype, a.shape, axis)
    positions = lax.expand_dims(positions, front)
    chosen = lax.eq(positions, index)
    result = sum(lax.expand_dims(a, front), axis=place, where=chosen)
    undefined = any(bad_weights, axis=axis)
    if skip_nan:
        empty = lax.eq(count, promotion.constant_like(count, 0))
        undefined = lax.bitwise_or(undefined, lax.squeeze(empty, (axis,)))
    else:
        undefined = lax.bitwise_or(undefined, any(is_nan, axis=axis))
    undefined = lax.expand_dims(undefined, front)
    return _where(undefined, promotion.constant_like(result, np.nan), result)
