"""Entries repeated, taken out and put in: `repeat`, `delete`, `insert`.

In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments, arraylike
from minijax.numpy.index import indexing, taking
from minijax.numpy.math import clipping
from minijax.numpy.reduce import counting, reductions, running
from minijax.numpy.shapes import broadcasting, creation, joining, shaping, sorting


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element along `axis` as often as `repeats` says, one after the other.

    The length of the result must be known while tracing: pass `total_repeat_length`
    when `repeats` is traced; the result is then cut, or filled with its last element.
    Raises ConcretizationTypeError without it.
    """
    if out_sharding is not None:
        options = {"axis": axis, "total_repeat_length": total_repeat_length}
        repeats = getattr(repeats, "_value", repeats)  # plain, for `laid_out`
        repeated = functools.partial(repeat, repeats=repeats, **options)
        return creation.laid_out(repeated, out_sharding, a)
    if isinstance(repeats, (int, np.integer)):
        arraylike.check_arraylike("repeat", a)
    else:
        arraylike.check_arraylike("repeat", a, repeats)
    array = arraylike.as_array(a)
    if axis is None:
        array = shaping.ravel(array)
        axis = 0
    axis = arguments.static_index(axis, "'axis' argument of jnp.repeat()")
    cut = getattr(getattr(array, "aval", None), "cut", None)
    if cut is not None and cut.spec.axes(axis % array.ndim):
        raise ValueError(
            f"repeat: a mesh cuts axis {axis} of {array.aval.str_short()}, and the cut "
            "of the longer axis would be ambiguous. Reshard the array first."
        )
    if total_repeat_length is None:
        repeats = arguments.concrete_or_error(
            None,
            repeats,
            "When jit-compiling jnp.repeat, the total number of repeats must be "
            "static. To fix this, either specify a static value for `repeats`, or "
            "pass a static value to `total_repeat_length`.",
        )
        if np.ndim(repeats) == 0 and array.ndim != 0:
            return _repeat_equally(array, arguments.index_of(repeats, "repeats"), axis)
        repeats = np.ravel(repeats)
        if array.ndim != 0:
            repeats = np.broadcast_to(repeats, [array.shape[axis]])
        total_repeat_length = int(np.sum(repeats))
    else:
        repeats = shaping.ravel(repeats)
        if array.ndim != 0:
            repeats = broadcasting.broadcast_to(repeats, [array.shape[axis]])
    if array.ndim == 0:
        if np.shape(repeats) == (1,):
            return creation.full([total_repeat_length], array)
        raise ValueError(
            "`repeat` with a scalar parameter `a` is only implemented for scalar "
            "values of the parameter `repeats`."
        )
    if total_repeat_length == 0:
        shape = list(array.shape)
        shape[axis] = 0
        return shaping.reshape(creation.array([], dtype=array.dtype), shape)
    if array.shape[axis] == 0:
        return array
    # Mark in the result where each element's copies begin, and count the marks.
    starts = shaping.roll(repeats, shift=1).at[0].set(0)
    starts = running.cumsum(starts)
    marks = creation.zeros([total_repeat_length], dtype="int32").at[starts].add(1)
    return taking.take(array, running.cumsum(marks) - 1, axis=axis)


def _repeat_equally(array: Array, count: int, axis: int) -> Array:
    """Every element `count` times: a broadcast along a new axis, folded in."""
    shape = list(array.shape)
    axis = arguments.canonicalize_axis(axis, array.ndim)
    widened = [*shape[: axis + 1], count, *shape[axis + 1 :]]
    kept = [i for i in range(len(widened)) if i != axis + 1]
    result = lax.broadcast_in_dim(array, widened, kept)
    shape[axis] *= count
    return shaping.reshape(result, shape)


# --------------------------------------------------------------------------
# In between


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """`arr` without the entries at `obj` (an integer, a slice, indices or a mask).

    Without an axis, `arr` is flattened. The number of entries to go must be known while
    tracing: index arrays must be concrete, or be declared unique. Raises IndexError for
    indices out of bounds and ConcretizationTypeError for traced ones.
    """
    array = arraylike.ensure_arraylike("delete", arr)
    array, axis = shaping.along_axis(array, axis)
    size = array.shape[axis]
    before = (slice(None),) * axis
    try:
        position = arguments.canonicalize_axis(operator.index(obj), size)
    except TypeError:
        pass
    else:
        head = array[(*before, slice(0, position))]
        tail = array[(*before, slice(position + 1, None))]
        return joining.concatenate([head, tail], axis=axis)
    if isinstance(obj, slice):
        obj = creation.arange(size)[obj]
        assume_unique_indices = True
    arraylike.check_arraylike("delete", array, obj)
    obj = arraylike.unwrap_jax_array(obj)
    is_integer = dtypes.issubdtype(dtypes.dtype(obj), np.integer)
    if is_integer and assume_unique_indices:
        kept = _kept_indices(shaping.ravel(creation.asarray(obj)), size)
        return array[(*before, kept)]
    indices = arguments.concrete_or_error(
        np.asarray, obj, "'obj' array argument of jnp.delete()"
    )
    if dtypes.issubdtype(indices.dtype, np.integer):
        mask = np.ones(size, dtype=bool)
        mask[indices] = False
    elif indices.dtype == bool:
        if indices.shape != (size,):
            raise ValueError(
                "np.delete(arr, obj): for boolean indices, obj must be one-dimensional "
                "with length matching specified axis."
            )
        mask = ~indices
    else:
        raise ValueError(
            f"np.delete(arr, obj): got obj.dtype={indices.dtype}; must be integer or "
            "bool."
        )
    return array[(*before, mask)]


def _kept_indices(deleted: Array, size: int) -> Array:
    """The indices that remain once `deleted` (unique, maybe traced) are gone."""
    deleted = broadcasting._where(deleted < 0, deleted + size, deleted)
    deleted = sorting.sort(clipping.clip(deleted, 0, size))
    # Entry i of the sorted list has i deleted ones before it.
    deleted = deleted - creation.arange(len(deleted), dtype=deleted.dtype)
    kept = creation.arange(size - deleted.size, dtype=deleted.dtype)
    passed = kept[None, :] >= deleted[:, None]
    return kept + reductions.sum(passed, 0, dtype=kept.dtype)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """`arr` with `values` put in before the positions `obj` of the given axis.

    Without an axis, `arr` is flattened. The dtype is that of `arr`. Raises ValueError
    for positions that are neither integers nor a slice.
    """
    position = 0 if isinstance(obj, slice) else obj
    array, _, inserted = arraylike.ensure_arraylike("insert", arr, position, values)
    axis = arguments.concrete_or_error(None, axis, "axis argument of jnp.insert()")
    array, axis = shaping.along_axis(array, axis)
    size = array.shape[axis]
    if isinstance(obj, slice):
        indices = creation.arange(*obj.indices(size))
    else:
        indices = creation.asarray(obj)
    if indices.ndim > 1:
        raise ValueError(
            "jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; "
            f"got {obj}"
        )
    if not dtypes.issubdtype(indices.dtype, np.integer):
        if indices.size != 0 or shaping.is_single_array(obj):
            raise ValueError(
                f"jnp.insert(): index array must be integer typed; got {obj}"
            )
        indices = creation.zeros(0, int)
    inserted = creation.array(inserted, ndmin=array.ndim, dtype=array.dtype, copy=False)
    if indices.size == 1:
        if indices.ndim == 0:
            inserted = shaping.moveaxis(inserted, 0, axis)
        indices = creation.full(inserted.shape[axis], shaping.ravel(indices)[0])
    count = broadcasting.broadcast_shapes(indices.shape, (inserted.shape[axis],))[0]
    shape = list(array.shape)
    shape[axis] += count
    result = creation.zeros_like(array, shape=tuple(shape))
    indices = broadcasting._where(indices < 0, indices + size, indices)
    indices = clipping.clip(indices, 0, size)
    order = sorting.argsort(indices)
    steps = creation.arange(count, dtype=indices.dtype)
    new_places = indices.at[order].add(steps)
    is_old = creation.ones(size + count, dtype=bool).at[new_places].set(False)
    old_places = counting.nonzero(is_old, size=size)[0]
    before = (slice(None),) * axis
    set_at = lax.scatter
    result = indexing.scatter_update(result, (*before, new_places), inserted, set_at)
    return indexing.scatter_update(result, (*before, old_places), array, set_at)
