"""Changing an array's shape without touching its numbers: axes and their order.

None of these computes anything; XLA turns most of them into a change of layout or
into nothing at all. In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.core.language import Tracer
from minijax.numpy import arraylike
from minijax.numpy.arguments import (
    canonicalize_axis,
    check_rank,
    concrete_or_error,
    index_tuple,
    shape_tuple,
    static_index,
)
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.math import ufuncs
from minijax.numpy.shapes import broadcasting, creation
from minijax.primitives.shape.slicing import checked_axis
from minijax.values.symbolic_sizes import inconclusive, is_symbolic, scope_of


def along_axis(array: Array, axis: int | None) -> tuple[Array, int]:
    """The array and the axis, counted from the front; without one, both of the
    flattened array."""
    if axis is None:
        return ravel(array), 0
    return array, canonicalize_axis(axis, array.ndim)


# --------------------------------------------------------------------------
# Another shape for the same elements


def _completed_shape(old: tuple[int, ...], size: int, wanted: Any) -> tuple[int, ...]:
    """The new shape with its -1 filled in; raises TypeError when sizes disagree."""
    new = shape_tuple(wanted)
    unknown = [axis for axis, length in enumerate(new) if length == -1]
    if len(unknown) > 1:
        raise TypeError(
            f"can only specify one unknown axis size with a `-1` value, got {wanted}"
        )
    if not unknown:
        if math.prod(new) != size or any(length < 0 for length in new):
            raise TypeError(
                f"cannot reshape array of shape {old} (size {size}) into shape "
                f"{wanted} (size {math.prod(new)})"
            )
        return new
    axis = unknown[0]
    known = math.prod(new[:axis] + new[axis + 1 :])
    if is_symbolic(known) or known != 0 and is_symbolic(size % known):
        # With names in it, a product divides another one or it is not known.
        if size % known != 0:
            raise inconclusive(
                f"Cannot divide evenly the sizes of shapes {old} and {wanted}",
                scope_of(size, known),
            )
    if known == 0 or size % known != 0:
        raise TypeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {wanted} "
            f"because the product of specified axis sizes ({known}) does not evenly "
            f"divide {size}"
        )
    return (*new[:axis], size // known, *new[axis + 1 :])


def reshape(
    a: Any,
    shape: int | Sequence[int],
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding=None,
) -> Array:
    """The elements of `a` in another shape; a length of -1 follows from the others.

    `order="C"` reads and writes the last axis fastest, `order="F"` the first. `copy`
    has no effect: arrays are immutable. Raises TypeError when the sizes disagree.
    """
    del copy
    array = arraylike.ensure_arraylike("reshape", a)
    new_shape = _completed_shape(array.shape, array.size, shape)
    if order == "C":
        return lax.reshape(array, new_shape, None, out_sharding=out_sharding)
    if order == "F":
        axes = range(array.ndim)[::-1]
        turned = lax.reshape(array, new_shape[::-1], axes, out_sharding=out_sharding)
        return lax.transpose(turned, range(len(new_shape))[::-1])
    if order == "A":
        raise NotImplementedError("reshape has no order='A': use 'C' or 'F'.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


@inline_jit(static_argnames=("order", "out_sharding"))
def ravel(a: Any, order: str = "C", *, out_sharding=None) -> Array:
    """The elements of `a` along one axis, in the order that `reshape` explains."""
    array = arraylike.ensure_arraylike("ravel", a)
    if order == "K":
        raise NotImplementedError(
            "Ravel not implemented for order='K': the layout in memory is XLA's. "
            "Use 'C' or 'F'."
        )
    return reshape(array, (array.size,), order, out_sharding=out_sharding)


@jit(static_argnames=("new_shape",))
def resize(a: Any, new_shape: int | Sequence[int]) -> Array:
    """`a` in a shape of any size: repeated as often as needed, then cut.

    Raises ValueError for a negative length.
    """
    arraylike.check_arraylike("resize", a)
    new_shape = index_tuple(new_shape)
    if any(length < 0 for length in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat = ravel(a)
    size = math.prod(new_shape)
    if flat.size == 0 or size == 0:
        return creation.zeros_like(flat, shape=new_shape)
    repeats = -(-size // flat.size)
    return reshape(lax.tile(flat, (repeats,))[:size], new_shape)


@inline_jit(static_argnames=("axis",))
def _squeeze(a: Array, axis: tuple[int, ...] | None) -> Array:
    if axis is None:
        axis = tuple(i for i, length in enumerate(a.shape) if length == 1)
    return lax.squeeze(a, axis)


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Array:
    """`a` without the axes of size one, or without those named.

    Raises ValueError when a named axis has another size.
    """
    array = arraylike.ensure_arraylike("squeeze", a)
    return _squeeze(array, None if axis is None else index_tuple(axis))


def expand_dims(a: Any, axis: int | Sequence[int]) -> Array:
    """`a` with new axes of size one, at these positions of the result."""
    array = arraylike.ensure_arraylike("expand_dims", a)
    return lax.expand_dims(array, index_tuple(axis))


@jit
def atleast_1d(*arys: Any) -> Array | list[Array]:
    """Arrays with a new axis where they had none; several come back as a list."""
    arraylike.check_arraylike("atleast_1d", *arys)
    results = [creation.array(a, copy=False, ndmin=1) for a in arys]
    return results[0] if len(arys) == 1 else results


@jit
def atleast_2d(*arys: Any) -> Array | list[Array]:
    """Arrays with new leading axes, so that they have two or more."""
    arraylike.check_arraylike("atleast_2d", *arys)
    results = [creation.array(a, copy=False, ndmin=2) for a in arys]
    return results[0] if len(arys) == 1 else results


# Where atleast_3d puts new axes: a vector becomes the middle axis, a matrix the first
# two, as in NumPy.
_NEW_AXES_FOR_3D = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}


@jit
def atleast_3d(*arys: Any) -> Array | list[Array]:
    """Arrays with new axes around their own, so that they have three or more."""
    arraylike.check_arraylike("atleast_3d", *arys)
    if len(arys) != 1:
        return [atleast_3d(a) for a in arys]
    array = arraylike.as_array(arys[0])
    if array.ndim < 3:
        array = lax.expand_dims(array, dimensions=_NEW_AXES_FOR_3D[array.ndim])
    return array


# --------------------------------------------------------------------------
# Another order of axes


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """`a` with its axes reversed, or in the order given.

    Axis `i` of the result is axis `axes[i]` of `a`. Raises ValueError for an axis out
    of bounds and TypeError when `axes` is not a permutation.
    """
    array = arraylike.ensure_arraylike("transpose", a)
    if axes is None:
        return lax.transpose(array, range(array.ndim)[::-1])
    return lax.transpose(array, [canonicalize_axis(axis, array.ndim) for axis in axes])


def permute_dims(a: Any, /, axes: tuple[int, ...]) -> Array:
    """`transpose` under the name of the array API standard; `axes` must be given."""
    return lax.transpose(arraylike.ensure_arraylike("permute_dims", a), axes)


def matrix_transpose(x: Any, /) -> Array:
    """`x` with its last two axes exchanged; raises ValueError if it has fewer."""
    x = arraylike.ensure_arraylike("matrix_transpose", x)
    rank = x.ndim
    if rank < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={rank}"
        )
    return lax.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


@inline_jit(static_argnames=("axis1", "axis2"))
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged; raises IndexError for an axis out of bounds."""
    array = arraylike.ensure_arraylike("swapaxes", a)
    order = list(range(array.ndim))
    one, two = (checked_axis(a, array.shape) for a in (axis1, axis2))
    order[one], order[two] = order[two], order[one]
    return lax.transpose(array, order)


@inline_jit(static_argnames=("source", "destination"))
def _moveaxis(a: Array, source: tuple[int, ...], destination: tuple[int, ...]) -> Array:
    source = tuple(canonicalize_axis(axis, a.ndim) for axis in source)
    destination = tuple(canonicalize_axis(axis, a.ndim) for axis in destination)
    if len(source) != len(destination):
        raise ValueError(
            "moveaxis: source and destination must name as many axes: "
            f"{len(source)} vs {len(destination)}"
        )
    order = [axis for axis in range(a.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return lax.transpose(a, order)


def moveaxis(
    a: Any, source: int | Sequence[int], destination: int | Sequence[int]
) -> Array:
    """`a` with some axes moved to new positions; the others keep their order.

    Raises ValueError when an axis is out of bounds or the counts differ.
    """
    array = arraylike.ensure_arraylike("moveaxis", a)
    return _moveaxis(array, index_tuple(source), index_tuple(destination))


@jit(static_argnames=("axis", "start"))
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """`a` with `axis` moved back until it stands before `start`; prefer `moveaxis`."""
    array = arraylike.ensure_arraylike("rollaxis", a)
    start = static_index(start, "'start' argument of jnp.rollaxis()")
    rank = array.ndim
    axis = canonicalize_axis(axis, rank)
    if not -rank <= start <= rank:
        raise ValueError(f"start={start} must satisfy {-rank}<=start<={rank}")
    if start < 0:
        start += rank
    return moveaxis(array, axis, start - 1 if start > axis else start)


# --------------------------------------------------------------------------
# The other way round, and round the corner


@jit(static_argnames=("axis",))
def _flip(m: Array, axis: int | tuple[int, ...] | None = None) -> Array:
    if axis is None:
        return lax.rev(m, list(range(m.ndim)))
    return lax.rev(m, [canonicalize_axis(a, m.ndim) for a in index_tuple(axis)])


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Array:
    """`m` with the order of its elements reversed along the given axes, or all."""
    array = arraylike.ensure_arraylike("flip", m)
    if axis is not None:
        axis = concrete_or_error(None, axis, "axis argument of jnp.flip()")
        axis = axis if isinstance(axis, int) else index_tuple(axis)
    return _flip(array, axis)


def fliplr(m: Any) -> Array:
    """`m` with its columns (axis 1) in reverse order."""
    return _flip(arraylike.ensure_arraylike("fliplr", m), 1)


def flipud(m: Any) -> Array:
    """`m` with its rows (axis 0) in reverse order."""
    return _flip(arraylike.ensure_arraylike("flipud", m), 0)


@jit(static_argnames=("k", "axes"))
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` turned `k` times by 90 degrees, from the first of `axes` to the second.

    Raises ValueError for fewer than two dimensions and for two equal axes.
    """
    array = arraylike.ensure_arraylike("rot90", m)
    check_rank("rot90", 2, np.inf, m=array)
    first, second = (canonicalize_axis(axis, array.ndim) for axis in axes)
    if first == second:
        raise ValueError(f"Axes must be different, got {axes}")
    k = k % 4
    if k == 0:
        return array
    if k == 2:
        return flip(flip(array, first), second)
    order = list(range(array.ndim))
    order[first], order[second] = order[second], order[first]
    if k == 1:
        return transpose(flip(array, second), order)
    return flip(transpose(array, order), second)


def roll(
    a: Any, shift: Any | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """`a` with its elements shifted by `shift`; those shifted out return at the start.

    Without an axis, `a` is rolled as if it were flat. `shift` may be traced.
    """
    array = arraylike.ensure_arraylike("roll", a)
    if axis is None:
        return reshape(roll(ravel(array), shift, 0), array.shape)
    axis = tuple(canonicalize_axis(i, array.ndim) for i in index_tuple(axis))
    try:
        static_shift = index_tuple(shift)
    except TypeError:
        return _roll_dynamic(array, creation.asarray(shift), axis)
    return _roll_static(array, static_shift, axis)


@jit(static_argnums=(2,))
def _roll_dynamic(a: Array, shift: Array, axis: tuple[int, ...]) -> Array:
    shape = lax.broadcast_shapes(shift.shape, np.shape(axis))
    if len(shape) != 1:
        raise ValueError("'shift' and 'axis' arguments to roll must be scalars or 1D")
    shifts = broadcasting.broadcast_to(shift, shape)
    for amount, i in zip(shifts, np.broadcast_to(axis, shape), strict=True):
        size = a.shape[i]
        length = creation.array(size, dtype=np.int32)
        amount = lax.convert_element_type(amount, np.int32)
        amount = ufuncs.remainder(amount, lax.max(length, np.int32(1)))
        # In two copies side by side, every roll is one slice.
        doubled = lax.concatenate((a, a), int(i))
        a = lax.dynamic_slice_in_dim(doubled, length - amount, size, axis=int(i))
    return a


@jit(static_argnums=(1, 2))
def _roll_static(a: Array, shift: tuple[int, ...], axis: tuple[int, ...]) -> Array:
    for i, amount in zip(*np.broadcast_arrays(axis, shift), strict=True):
        size = a.shape[i]
        if size == 0:
            continue
        split = int(-amount % size)
        tail = lax.slice_in_dim(a, split, size, axis=int(i))
        head = lax.slice_in_dim(a, 0, split, axis=int(i))
        a = lax.concatenate([tail, head], dimension=int(i))
    return a


# --------------------------------------------------------------------------
# Grids of indices


def ix_(*args: Any) -> tuple[Array, ...]:
    """An open grid: argument `i` along axis `i`, for indexing rows against columns.

    Raises ValueError for arguments that are not one-dimensional.
    """
    arrays = arraylike.ensure_arraylike_tuple("ix_", args)
    grid = []
    for axis, array in enumerate(arrays):
        check_rank("ix_", 1, 1, **{f"args[{axis}]": array})
        if array.dtype == np.bool_:
            raise NotImplementedError(
                "Boolean arguments to jax.numpy.ix_ are not implemented; pass "
                "jnp.nonzero(mask)[0]."
            )
        shape = [1] * len(arrays)
        shape[axis] = array.shape[0]
        if array.size == 0:
            grid.append(lax.full(shape, np.zeros((), np.intp)))
        else:
            grid.append(lax.broadcast_in_dim(array, shape, (axis,)))
    return tuple(grid)


def is_single_array(value: Any) -> bool:
    """Whether a "sequence of arrays" is one array, to be taken apart along axis 0."""
    return isinstance(value, (Tracer, Array, np.ndarray))
