"""Arrays as sets: membership, unions, intersections and differences.

How many elements a result has is its shape: under `jit` it must be given as `size`.
In JAX: `numpy/setops.py`.
"""

from __future__ import annotations

from typing import Any

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.arguments import concrete_or_error, index_dtype, static_index
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.rare.distinct import _unique, unique
from minijax.numpy.reduce import counting, reductions
from minijax.numpy.shapes import creation, sorting
from minijax.numpy.shapes.broadcasting import _where as where
from minijax.numpy.shapes.joining import concatenate
from minijax.numpy.shapes.shaping import ravel, reshape
from minijax.support import element_types

# --------------------------------------------------------------------------
# Membership


@jit(static_argnames=("assume_unique", "invert", "method"))
def _in1d(
    ar1: Any, ar2: Any, invert: bool, method: str = "auto", assume_unique: bool = False
) -> Array:
    ar1, ar2 = ensure_arraylike("in1d", ar1, ar2)
    ar1, ar2 = promote_dtypes(ar1, ar2)
    ar1, ar2 = ravel(ar1), ravel(ar2)
    if ar1.size == 0 or ar2.size == 0:
        return creation.full(ar1.shape, invert, dtype=bool)
    if method in ("auto", "compare_all"):
        left, right = ar1[:, None], ar2[None, :]
        if invert:
            return reductions.all(left != right, -1)
        return reductions.any(left == right, -1)
    if method == "binary_search":
        ar2 = lax.sort(ar2)
        nearest = ar2[sorting.searchsorted(ar2, ar1)]
        return ar1 != nearest if invert else ar1 == nearest
    if method == "sort":
        return _in1d_by_sorting(ar1, ar2, invert, assume_unique)
    raise ValueError(
        f"{method=} is not implemented; options are 'compare_all', 'binary_search', "
        "'sort', and 'auto'"
    )


def _in1d_by_sorting(
    ar1: Array, ar2: Array, invert: bool, assume_unique: bool
) -> Array:
    """Sort both together: what is in both has an equal neighbour."""
    inverse: Any = slice(None)
    if not assume_unique:
        fill = reductions.max(ar2)
        ar1, inverse = unique(ar1, return_inverse=True, size=len(ar1), fill_value=fill)
    together = concatenate([ar1, ar2])
    places = creation.arange(ar1.size + ar2.size)
    together, places = lax.sort_key_val(together, places)
    result = creation.full(ar1.shape, invert, dtype=bool)
    places = places[:-1]
    later, earlier = together[1:], together[:-1]
    found = later != earlier if invert else later == earlier
    return result.at[places].set(found, mode="drop")[inverse]


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Which elements occur in `test_elements` (with `invert`, which do not).

    `method` is "compare_all" (the default), "binary_search" or "sort". Raises
    ValueError for another.
    """
    element, test_elements = ensure_arraylike("isin", element, test_elements)
    result = _in1d(element, test_elements, invert, method, assume_unique)
    return reshape(result, element.shape)


# --------------------------------------------------------------------------
# Two sets


def union1d(
    ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """The distinct elements of both arrays, sorted; see `unique` for `size`."""
    ar1, ar2 = ensure_arraylike("union1d", ar1, ar2)
    context = "The error arose in union1d()"
    if size is None:
        ar1 = concrete_or_error(None, ar1, context)
        ar2 = concrete_or_error(None, ar2, context)
    else:
        size = static_index(size, context)
    together = concatenate((ar1, ar2), axis=None)
    return unique(together, size=size, fill_value=fill_value)


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The distinct elements of `ar1` that do not occur in `ar2`, sorted.

    Under `jit`, give `size`; what is missing is `fill_value`, zero by default.
    """
    first, second = ensure_arraylike("setdiff1d", ar1, ar2)
    first, second = ravel(first), ravel(second)
    context = "The error arose in setdiff1d()"
    if size is None:
        concrete_or_error(None, ar1, context)
    else:
        size = static_index(size, context)
    fill = 0 if fill_value is None else fill_value
    fill = creation.full_like(first, fill_value=fill, shape=())
    if first.size == 0:
        return creation.full_like(first, fill, shape=size or 0)
    if not assume_unique:
        first = unique(first, size=size and first.size)
    mask = _in1d(first, second, invert=True, assume_unique=assume_unique)
    if size is None:
        return first[mask]
    if not assume_unique:
        # `unique` has filled up with copies of the first element.
        distinct = first.size + 1 - reductions.sum(first == first[0])
        mask = where(creation.arange(first.size) < distinct, mask, False)
    found = creation.arange(size) < reductions.sum(mask)
    return where(found, first[counting.nonzero(mask, size=size)], fill)


def _chosen(
    values: Array, mask: Array, size: int, fill_value: Any
) -> tuple[Array, Array, Array]:
    """Where `mask` holds: `size` values, their places, and the true number of them."""
    count = reductions.sum(mask)
    if values.size:
        places = counting.nonzero(mask, size=size, fill_value=values.size)[0]
        result = values.at[places].get(mode="fill", fill_value=0)
    else:
        places = creation.arange(0)
        result = creation.zeros(size, values.dtype)
    return _pad_to_true_count(result, count, fill_value), places, count


def _pad_to_true_count(values: Array, count: Array, fill_value: Any) -> Array:
    """`values` with the entries from `count` on replaced, by default by the least."""
    valid = creation.arange(len(values)) < count
    if fill_value is not None:
        return where(valid, values, fill_value)
    values = where(valid, values, reductions.max(values))
    return where(valid, values, reductions.min(values))


def _concat_unique(arr1: Array, arr2: Array) -> tuple[Array, Array]:
    """Distinct elements of one array, then of the other, and how many in all."""
    arr1, count1 = _unique(arr1, axis=0, size=arr1.size, return_true_size=True)
    arr2, count2 = _unique(arr2, axis=0, size=arr2.size, return_true_size=True)
    return _end_to_end(arr1, arr2, count1), count1 + count2


def _end_to_end(arr1: Array, arr2: Array, count1: Array) -> Array:
    """The first `count1` elements of one array, then the other, then the rest."""
    both = creation.zeros(arr1.size + arr2.size, element_types.result_type(arr1, arr2))
    both = lax.dynamic_update_slice(both, arr1, (0,))
    return lax.dynamic_update_slice(both, arr2, (count1,))


@jit(static_argnames=["assume_unique", "size"])
def _setxor1d_size(
    arr1: Array, arr2: Array, fill_value: Any, *, assume_unique: bool, size: int
) -> Array:
    if assume_unique:
        values = sorting.sort(concatenate([arr1, arr2]))
        edges = (bool(values.size), values[1:] != values[:-1], True)
        is_edge = concatenate(edges, axis=None)
    else:
        both, count = _concat_unique(arr1, arr2)
        valid = creation.arange(both.size + 1) < count + 1
        _, values = lax.sort([~valid[1:], both], is_stable=True, num_keys=2)
        edges = (bool(values.size), values[1:] != values[:-1], False)
        is_edge = valid & concatenate(edges, axis=None).at[count].set(True)
    # Alone is what differs from both neighbours.
    alone = is_edge[1:] & is_edge[:-1]
    return _chosen(values, alone, size, fill_value)[0]


def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The elements that occur in exactly one of both arrays, sorted.

    Under `jit`, give `size`; what is missing is `fill_value`, or the least of them.
    """
    arr1, arr2 = ensure_arraylike("setxor1d", ar1, ar2)
    arr1, arr2 = promote_dtypes(ravel(arr1), ravel(arr2))
    if size is not None:
        return _setxor1d_size(
            arr1, arr2, fill_value=fill_value, assume_unique=assume_unique, size=size
        )
    if not assume_unique:
        arr1 = unique(arr1)
        arr2 = unique(arr2)
    values = concatenate((arr1, arr2))
    if values.size == 0:
        return values
    values = sorting.sort(values)
    is_edge = concatenate((True, values[1:] != values[:-1], True), axis=None)
    return values[is_edge[1:] & is_edge[:-1]]


@jit
def _intersect1d_sorted_mask(arr1: Array, arr2: Array) -> tuple[Array, Array, Array]:
    """Both arrays sorted together, which elements equal the next, and the order."""
    both = concatenate((arr1, arr2))
    places = lax.broadcasted_iota(index_dtype(both.shape[0]), both.shape, dimension=0)
    values, order = lax.sort_key_val(both, places)
    return values, values[1:] == values[:-1], order


@jit(static_argnames=["fill_value", "assume_unique", "size", "return_indices"])
def _intersect1d_size(
    arr1: Array,
    arr2: Array,
    fill_value: Any,
    assume_unique: bool,
    size: int,
    return_indices: bool,
) -> Any:
    if assume_unique:
        first1 = first2 = None
        count1 = creation.full((), arr1.size)
        both = concatenate([arr1, arr2])
        operands = [both, creation.arange(both.size)]
        values, order = lax.sort(operands, is_stable=True, num_keys=1)
        valid = creation.ones(both.size, dtype=bool)
    else:
        options: dict[str, Any] = {"return_index": True, "return_true_size": True}
        options["fill_value"] = 0
        arr1, first1, count1 = _unique(arr1, 0, size=arr1.size, **options)
        arr2, first2, count2 = _unique(arr2, 0, size=arr2.size, **options)
        both = _end_to_end(arr1, arr2, count1)
        valid = creation.arange(both.size) < count1 + count2
        operands = [~valid, both, creation.arange(both.size)]
        _, values, order = lax.sort(operands, is_stable=True, num_keys=2)
    is_shared = (values[1:] == values[:-1]) & valid[1:]
    result, places, count = _chosen(values, is_shared, size, fill_value)
    if not return_indices:
        return result

    def origin(where_in_both: Array, length: int, first: Array | None) -> Array:
        found = creation.arange(len(where_in_both)) < count
        indices = where(found, where_in_both, length)
        if first is None:
            return indices
        return first.at[indices].get(mode="fill", fill_value=first.size)

    in_first = order.at[places].get(mode="fill", fill_value=arr1.size)
    in_second = order.at[places + 1].get(mode="fill", fill_value=arr2.size) - count1
    return (
        result,
        origin(in_first, arr1.size, first1),
        origin(in_second, arr2.size, first2),
    )


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements that occur in both arrays, sorted; on request where they do.

    Under `jit`, give `size`; what is missing is `fill_value`, or the least of them.
    """
    arr1, arr2 = ensure_arraylike("intersect1d", ar1, ar2)
    arr1, arr2 = promote_dtypes(arr1, arr2)
    arr1, arr2 = ravel(arr1), ravel(arr2)
    if size is not None:
        settings = (fill_value, assume_unique, size, return_indices)
        return _intersect1d_size(arr1, arr2, *settings)
    if not assume_unique:
        arr1, first1 = unique(arr1, return_index=True)
        arr2, first2 = unique(arr2, return_index=True)
    values, mask, order = _intersect1d_sorted_mask(arr1, arr2)
    shared = values[:-1][mask]
    if not return_indices:
        return shared
    in_first = order[:-1][mask]
    in_second = order[1:][mask] - arr1.size
    if not assume_unique:
        in_first = first1[in_first]
        in_second = first2[in_second]
    return shared, in_first, in_second
