"""Sorting and searching in what is sorted.

NaN sorts last, as in NumPy. In JAX: `numpy/shapes/sorting.py` and `numpy/hijax.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments, promotion
from minijax.numpy.arraylike import ensure_arraylike, ensure_arraylike_tuple
from minijax.numpy.index import indexing
from minijax.numpy.reduce import reductions
from minijax.numpy.shapes import broadcasting, creation
from minijax.numpy.shapes.shaping import along_axis, ravel, swapaxes
from minijax.support import element_types
from minijax.transforms.vectorization import vmap

# --------------------------------------------------------------------------
# Sorting


def _check_sort_arguments(name: str, kind: None, order: None) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or "
            "stable=False to specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


@jit(static_argnames=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """`a` with its elements in order along `axis`; flattened if that is None.

    Complex numbers are ordered by their real part, then by the imaginary one. Raises
    TypeError for NumPy's `kind` and `order`.
    """
    array = ensure_arraylike("sort", a)
    _check_sort_arguments("sort", kind, order)
    array, axis = along_axis(array, axis)
    result = lax.sort(array, dimension=axis, is_stable=stable)
    return lax.rev(result, dimensions=[axis]) if descending else result


@jit(static_argnames=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Array:
    """The indices that sort `a` along `axis`; of the flattened array if that is None.

    The dtype is the default integer, or `dtype`. Raises TypeError for NumPy's `kind`
    and `order`.
    """
    array = ensure_arraylike("argsort", a)
    _check_sort_arguments("argsort", kind, order)
    array, axis = along_axis(array, axis)
    dtype = promotion.user_dtype(
        dtype, arguments.default_index_dtype(array.shape[axis]), "argsort"
    )
    indices = lax.broadcasted_iota(dtype, array.shape, axis)
    if descending and stable:
        # Reversed before and after, equal elements keep their order.
        array = lax.rev(array, dimensions=[axis])
        indices = lax.rev(indices, dimensions=[axis])
    _, indices = lax.sort_key_val(array, indices, dimension=axis, is_stable=stable)
    return lax.rev(indices, dimensions=[axis]) if descending else indices


@jit(static_argnames=("axis",))
def lexsort(keys: Any | Sequence[Any], axis: int = -1) -> Array:
    """The indices that sort by the last key, ties by the one before it, and so on.

    Raises TypeError for no keys and ValueError for keys of different shapes.
    """
    arrays = ensure_arraylike_tuple("lexsort", tuple(keys))
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shape = arrays[0].shape
    if any(array.shape != shape for array in arrays):
        raise ValueError("all keys need to be the same shape")
    if not shape:
        return lax.full((), 0, element_types.default_int_dtype())
    axis = arguments.canonicalize_axis(axis, len(shape))
    indices = lax.broadcasted_iota(
        arguments.default_index_dtype(shape[axis]), shape, axis
    )
    return lax.sort((*arrays[::-1], indices), dimension=axis, num_keys=len(arrays))[-1]


@jit
def sort_complex(a: Any) -> Array:
    """`a` sorted along its last axis, as complex numbers."""
    result = lax.sort(ensure_arraylike("sort_complex", a))
    return lax.convert_element_type(
        result, element_types.to_complex_dtype(result.dtype)
    )


def _prepare_partition(name: str, a, kth: int, axis: int) -> tuple[Array, int, int]:
    array = ensure_arraylike(name, a)
    if dtypes.issubdtype(array.dtype, np.complexfloating):
        raise NotImplementedError(f"jnp.{name} takes no complex numbers: use jnp.sort.")
    axis = arguments.canonicalize_axis(axis, array.ndim)
    kth = arguments.canonicalize_axis(kth, array.shape[axis])
    return swapaxes(array, axis, -1), kth, axis


def _least(array: Array, count: int) -> Sequence[Array]:
    """The least elements along the last axis, negated, and where they stand."""
    # Zero has no negative among unsigned numbers: there x stands as -(x + 1).
    is_unsigned = dtypes.issubdtype(array.dtype, np.unsignedinteger)
    return lax.top_k(-(array + 1) if is_unsigned else -array, count)


@jit(static_argnames=["kth", "axis"])
def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """`a` with its `kth` element where sorting would put it, the smaller ones before.

    Raises NotImplementedError for complex numbers.
    """
    array, kth, axis = _prepare_partition("partition", a, kth, axis)
    bottom = -_least(array, kth + 1)[0]
    if dtypes.issubdtype(array.dtype, np.unsignedinteger):
        bottom = bottom - 1
    top = lax.top_k(array, array.shape[-1] - kth - 1)[0]
    result = lax.concatenate([bottom, top], dimension=array.ndim - 1)
    return swapaxes(result, -1, axis)


@jit(static_argnames=["kth", "axis"])
def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """The indices of what `partition` returns.

    Raises NotImplementedError for complex numbers.
    """
    array, kth, axis = _prepare_partition("argpartition", a, kth, axis)
    bottom = _least(array, kth + 1)[1]

    def without(places: Array, taken: Array) -> Array:
        return indexing.scatter_update(places, taken, 0, lax.scatter)

    for _ in range(array.ndim - 1):
        without = vmap(without)
    remaining = without(lax.full(array.shape, 1.0), bottom)
    top = lax.top_k(remaining, array.shape[-1] - kth - 1)[1]
    result = lax.concatenate([bottom, top], dimension=array.ndim - 1)
    return swapaxes(result, -1, axis)


# --------------------------------------------------------------------------
# Searching


@jit(static_argnames=("side", "method"))
def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Array:
    """Where each element of `v` has to be put into the sorted `a` to keep it sorted.

    `side` says on which side of equal elements. `method` is "scan" (a binary search, in
    a loop), "scan_unrolled", "sort" (fast for many `v` on accelerators) or
    "compare_all". The result is int32, in the shape of `v`. Raises ValueError when `a`
    is not one-dimensional, and for another `side` or `method`.
    """
    if sorter is None:
        a, v = ensure_arraylike("searchsorted", a, v)
    else:
        a, v, sorter = ensure_arraylike("searchsorted", a, v, sorter)
    arguments.check_rank("searchsorted", 1, 1, a=a)
    a, v = promotion.promote_dtypes(a, v)
    if sorter is not None:
        arguments.check_rank("searchsorted", 1, 1, sorter=sorter)
        a = a[sorter]
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in _SEARCHES:
        raise ValueError(
            f"invalid argument method={method!r}, expected one of {list(_SEARCHES)}"
        )
    return _SEARCHES[method](a, v, side=side, dtype=arguments.index_dtype(a.shape[0]))


def _total_order(primitive: Any, x: Any, y: Any) -> Array:
    """`x <= y` or `x < y` in the order by which arrays are sorted, NaN last."""
    if not dtypes.issubdtype(x.dtype, np.complexfloating):
        return primitive.bind(_sort_key(x), _sort_key(y))
    real = [_sort_key(lax.real(part)) for part in (x, y)]
    imaginary = [_sort_key(lax.imag(part)) for part in (x, y)]
    tie = primitive.bind(*imaginary)
    before = lax.lt_to_p.bind(*real)
    equal = lax.eq_to_p.bind(*real)
    return lax.bitwise_or(before, lax.bitwise_and(equal, tie))


def _sort_key(x: Any) -> Any:
    """Floats with one zero and one NaN, so that a bitwise total order suits them."""
    if not dtypes.issubdtype(x.dtype, np.floating):
        return x
    is_zero = lax.eq(x, promotion.constant_like(x, 0))
    result = lax.select(is_zero, lax.full_like(x, 0), x)
    return lax.select(lax.ne(x, x), lax.full_like(result, np.nan), result)


@jit(static_argnames=["side", "dtype", "unrolled"])
def _searchsorted_scan_impl(
    sorted_arr: Array, query: Array, side: str, dtype: np.dtype, unrolled: bool
) -> Array:
    """Binary search: halve the interval [low, high] that holds the answer."""
    if sorted_arr.size == 0:
        return lax.full(query.shape, fill_value=0, dtype=dtype)
    if query.ndim > 0:
        search_one = functools.partial(
            _searchsorted_scan_impl, side=side, dtype=dtype, unrolled=unrolled
        )
        return vmap(search_one, in_axes=(None, 0))(sorted_arr, query)
    size = sorted_arr.shape[0]
    primitive = lax.le_to_p if side == "left" else lax.lt_to_p
    unsigned = np.uint64 if dtype == np.int64 else np.uint32

    def halve(interval: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], tuple]:
        low, high = interval
        middle = low + (high - low) // 2
        go_left = _total_order(primitive, query, sorted_arr[middle])
        low_next = lax.select(go_left, low, middle)
        return (low_next, lax.select(go_left, middle, high)), ()

    steps = int(np.ceil(np.log2(size + 1)))
    start = (unsigned(0), unsigned(size))
    unroll = steps if unrolled else 1
    (_, high), _ = lax.scan(halve, start, (), length=steps, unroll=unroll)
    return lax.convert_element_type(high, dtype)


@jit(static_argnames=["side", "dtype"])
def _searchsorted_sort_impl(
    sorted_arr: Array, query: Array, side: str, dtype: np.dtype
) -> Array:
    """Sort both together: the rank among all, less the rank among the queries."""
    total = sorted_arr.size + query.size
    working_dtype = arguments.index_dtype(total)
    flat_query = ravel(query)

    def rank(x: Array) -> Array:
        places = lax.iota(working_dtype, x.shape[0])
        order = lax.sort_key_val(x, places)[1]
        zeros = lax.full_like(places, 0)
        return indexing.scatter_update(zeros, order, places, lax.scatter)

    # The sort is stable: of equal elements, those that stand first come first.
    if side == "left":
        ranks = rank(lax.concatenate([flat_query, sorted_arr], 0))[: query.size]
    else:
        ranks = rank(lax.concatenate([sorted_arr, flat_query], 0))[sorted_arr.size :]
    result = lax.reshape(lax.sub(ranks, rank(flat_query)), query.shape)
    return lax.convert_element_type(result, dtype)


@jit(static_argnames=["side", "dtype"])
def _searchsorted_compare_all_impl(
    sorted_arr: Array, query: Array, side: str, dtype: np.dtype
) -> Array:
    """Count the elements of the sorted array that come before each query."""
    primitive = lax.lt_to_p if side == "left" else lax.le_to_p
    comes_before = functools.partial(_total_order, primitive)
    comparisons = vmap(comes_before, in_axes=(0, None))(sorted_arr, query)
    return reductions.sum(comparisons, axis=0, dtype=dtype)


_SEARCHES: dict[str, Callable[..., Array]] = {
    "compare_all": _searchsorted_compare_all_impl,
    "scan": functools.partial(_searchsorted_scan_impl, unrolled=False),
    "scan_unrolled": functools.partial(_searchsorted_scan_impl, unrolled=True),
    "sort": _searchsorted_sort_impl,
}


@jit(static_argnames=("right", "method"))
def digitize(
    x: Any, bins: Any, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the bin that each element of `x` falls into.

    `bins` are edges in ascending or descending order; a bin contains its lower edge, or
    with `right` its upper one. Raises ValueError when `bins` is not one-dimensional.
    """
    x, bins = ensure_arraylike("digitize", x, bins)
    right = arguments.concrete_or_error(bool, right, "right argument of jnp.digitize()")
    arguments.check_rank("digitize", 1, 1, bins=bins)
    if bins.shape[0] == 0:
        return creation.zeros_like(x, dtype=np.int32)
    side = "left" if right else "right"
    options = {} if method is None else {"method": method}
    return broadcasting._where(
        bins[-1] >= bins[0],
        searchsorted(bins, x, side=side, **options),
        bins.shape[0] - searchsorted(bins[::-1], x, side=side, **options),
    )
