"""Reading and writing along an axis by arrays of indices: `take`, `put` and their kin.

In JAX: `numpy/index/indexing.py`.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, index_dtype, index_of
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.index import indexing, indicators
from minijax.numpy.math import clipping, ufuncs
from minijax.numpy.products import einstein
from minijax.numpy.promotion import constant_like
from minijax.numpy.reduce import counting, reducing
from minijax.numpy.shapes import broadcasting, diagonals, joining
from minijax.numpy.shapes.shaping import along_axis, ravel, reshape


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The slices of `a` at `indices` along `axis`, or elements of the flattened `a`.

    The axis is replaced by the axes of `indices`. Out of bounds, `mode` "fill" (the
    default) gives `fill_value`, or NaN (for integers the lowest value); "clip" stays at
    the ends, "wrap" counts on from zero. Negative indices count from the end, except
    with "clip". Raises IndexError for an empty axis.
    """
    axis = None if axis is None else index_of(axis, "axis")
    options = {"unique_indices": unique_indices, "fill_value": fill_value}
    options["indices_are_sorted"] = indices_are_sorted
    return _take(a, indices, axis, out, mode, **options)


_promises = ("unique_indices", "indices_are_sorted", "fill_value")


@jit(static_argnames=("axis", "mode", *_promises))
def _take(
    a: Any, indices: Any, axis: int | None, out: None, mode: str | None, **options: Any
) -> Array:
    reducing.refuse_out("take", out)
    a, indices = ensure_arraylike("take", a, indices)
    a, axis = along_axis(a, axis)
    if mode is None or mode == "fill":
        gather_mode = lax.GatherScatterMode.FILL_OR_DROP
        indices = broadcasting._where(indices < 0, indices + a.shape[axis], indices)
    elif mode == "raise":
        raise NotImplementedError("take has no mode='raise': use 'fill' or 'clip'.")
    elif mode == "wrap":
        gather_mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
        indices = ufuncs.mod(indices, constant_like(indices, a.shape[axis]))
    elif mode == "clip":
        gather_mode = lax.GatherScatterMode.CLIP
    else:
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    shape = a.shape
    if shape[axis] == 0:
        if indices.size != 0:
            raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
        return a
    if indices.size == 0:
        result_shape = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
        return lax.full_like(a, 0, shape=result_shape)
    rank = indices.ndim
    after = range(axis + rank, a.ndim + rank - 1)
    dimension_numbers = lax.GatherDimensionNumbers(
        offset_dims=(*range(axis), *after),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    options["mode"] = gather_mode
    return lax.gather(a, indices[..., None], dimension_numbers, sizes, **options)


@jit(static_argnames=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Along `axis` of each vector of `arr`, the elements at the same vector's indices.

    `indices` has the rank of `arr`, and its other axes are broadcast against those of
    `arr`: what `argsort` and `argmax(keepdims=True)` return fits. Modes are those of
    `x.at[...].get`, and "one_hot", which multiplies instead of gathering.

    Raises TypeError for indices that are no integers, ValueError when ranks differ.
    """
    a, indices = ensure_arraylike("take_along_axis", arr, indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(
            f"take_along_axis indices must be of integer type, got {indices.dtype}"
        )
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(
                "take_along_axis indices must be 1D if axis=None, got shape "
                f"{indices.shape}"
            )
        a = ravel(a)
        axis = 0
    if a.ndim != indices.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{indices.ndim} vs. {a.ndim}"
        )
    axis = canonicalize_axis(axis, a.ndim)
    size = a.shape[axis]
    outer_shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    result_shape = lax.broadcast_shapes(indices.shape, outer_shape)
    if size == 0:
        return lax.full(result_shape, 0, a.dtype)
    if wrap_negative_indices is None:
        wrap_negative_indices = mode != "promise_in_bounds"
    if wrap_negative_indices:
        indices = lax.convert_element_type(indices, index_dtype(size))
        is_negative = indices < 0
        from_end = lax.add(indices, constant_like(indices, size))
        indices = lax.select(is_negative, from_end, indices)
    if mode == "one_hot":
        return _take_by_one_hot(a, indices, axis)
    return _take_by_gather(
        a, indices, axis, outer_shape, result_shape, mode, fill_value
    )


def _take_by_one_hot(a: Array, indices: Array, axis: int) -> Array:
    """Selection as a product with a matrix of zeros and ones."""
    hot = indicators.one_hot(indices, a.shape[axis], dtype=np.bool_)
    if a.ndim == 1:
        return einstein.einsum("...b,b->...", hot, a, preferred_element_type=a.dtype)
    if axis > len(string.ascii_letters) - 2:
        raise ValueError(
            "One Hot indexing is only supported for up to 50 leading dimensions."
        )
    batch = string.ascii_letters[:axis]
    return einstein.einsum(
        f"{batch}y...z,{batch}z...->{batch}y...",
        hot,
        a,
        precision=lax.Precision.HIGHEST,
        preferred_element_type=a.dtype,
    )


def _take_by_gather(
    a: Array,
    indices: Array,
    axis: int,
    outer_shape: tuple[int, ...],
    result_shape: tuple[int, ...],
    mode: Any,
    fill_value: Any,
) -> Array:
    """One gather: axes of both are batch axes; where indices have one, a slice."""
    rank = a.ndim
    offset = [i for i in range(rank) if i != axis and indices.shape[i] == 1]
    index_axes = [i for i in range(rank) if i not in offset]
    squeezed = [i for i in index_axes if i != axis and outer_shape[i] == 1]
    kept = [i for i in range(rank) if i not in squeezed]
    batch = [i for i in kept if i != axis and i not in offset]
    index_shape = (*(int(result_shape[i]) for i in index_axes), 1)
    gather_indices = lax.reshape(indices, index_shape)
    axis_map = (kept.index(axis),)
    dimension_numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(offset),
        collapsed_slice_dims=axis_map,
        start_index_map=axis_map,
        operand_batching_dims=tuple(map(kept.index, batch)),
        start_indices_batching_dims=tuple(map(index_axes.index, batch)),
    )
    return lax.gather(
        lax.squeeze(a, squeezed),
        gather_indices,
        dimension_numbers,
        tuple(outer_shape[i] if i in offset else min(outer_shape[i], 1) for i in kept),
        mode="fill" if mode is None else mode,
        fill_value=fill_value,
    )


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are "
            "immutable. Pass inplace=False to instead return an updated array."
        )


@jit(static_argnames=("axis", "inplace", "mode"))
def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy of `arr` with `values` at the places that `take_along_axis` would read.

    Pass `inplace=False`. Raises ValueError otherwise, since arrays are immutable.
    """
    _refuse_inplace("put_along_axis", inplace)
    arr, indices, values = ensure_arraylike("put_along_axis", arr, indices, values)
    shape = arr.shape
    if axis is None:
        arr = ravel(arr)
    if arr.ndim != indices.ndim:
        raise ValueError(
            "put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
            f"arr.ndim={arr.ndim} and indices.ndim={indices.ndim}."
        )
    try:
        values = broadcasting.broadcast_to(values, indices.shape)
    except ValueError:
        raise ValueError(
            "put_along_axis argument 'values' must be broadcastable to 'indices'. Got "
            f"values.shape={values.shape} and indices.shape={indices.shape}."
        ) from None
    grid = list(diagonals.indices(arr.shape, sparse=True))
    grid[0 if axis is None else canonicalize_axis(axis, arr.ndim)] = indices
    result = indexing.scatter_update(arr, tuple(grid), values, lax.scatter, mode=mode)
    return reshape(result, shape) if axis is None else result


def put(
    a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """A copy of `a` with `v` (repeated if short) at the flat indices `ind`.

    Out of bounds, indices are dropped, unless `mode` is "clip" or "wrap". Pass
    `inplace=False`; raises ValueError otherwise.
    """
    _refuse_inplace("put", inplace)
    array, places, _ = ensure_arraylike("put", a, ind, v)
    places = ravel(places)
    values = ravel(v)
    if not array.size or not places.size or not values.size:
        return array
    values = joining.tile_to_size(values, len(places))
    scatter_mode = "promise_in_bounds"
    if mode is None:
        scatter_mode = "drop"
    elif mode == "clip":
        places = clipping.clip(places, 0, array.size - 1)
    elif mode == "wrap":
        places = places % array.size
    elif mode == "raise":
        raise NotImplementedError("put has no mode='raise': use 'clip' or 'wrap'.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    index = counting.unravel_index(places, array.shape)
    return indexing.scatter_update(array, index, values, lax.scatter, mode=scatter_mode)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """A copy of `arr` with `vals` (repeated if short) where `mask` holds, in order.

    Pass `inplace=False`; raises ValueError otherwise, and when the sizes differ.
    """
    array, mask, values = ensure_arraylike("place", arr, mask, vals)
    values = ravel(values)
    _refuse_inplace("place", inplace)
    if array.size != mask.size:
        raise ValueError("place: arr and mask must be the same size")
    if not values.size:
        raise ValueError("Cannot place values from an empty array")
    if not array.size:
        return array
    places = counting.nonzero(ravel(mask), size=mask.size, fill_value=mask.size)[0]
    values = joining.tile_to_size(values, len(places))
    flat = indexing.scatter_update(
        ravel(array), places, values, lax.scatter, mode="drop"
    )
    return reshape(flat, array.shape)
