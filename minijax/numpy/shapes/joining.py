"""Putting arrays together and taking them apart.

In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.core.language import canonicalize_dim
from minijax.numpy import arguments, arraylike, promotion
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.reduce.reducing import refuse_out
from minijax.numpy.shapes import creation, shaping
from minijax.primitives.shape.slicing import checked_size
from minijax.transforms.vectorization import vmap

# --------------------------------------------------------------------------
# Together


def concatenate(
    arrays: Any | Sequence[Any], axis: int | None = 0, dtype: Any = None
) -> Array:
    """Arrays one after the other along an existing axis; flattened if `axis` is None.

    All other lengths must agree. The dtype is the promoted one, or `dtype`. Raises
    ValueError for no arrays and for scalars, TypeError for shapes that do not fit.
    """
    if shaping.is_single_array(arrays):
        return _concatenate_array(arrays, axis, dtype=dtype)
    arrays = arraylike.ensure_arraylike_tuple("concatenate", arrays)
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return concatenate([shaping.ravel(a) for a in arrays], axis=0, dtype=dtype)
    if arrays[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = arguments.canonicalize_axis(axis, arrays[0].ndim)
    return lax.concatenate(_of_one_dtype(arrays, dtype), axis)


def _of_one_dtype(arrays: Sequence[Array], dtype: Any) -> Sequence[Array]:
    if dtype is None:
        return promotion.promote_dtypes(*arrays)
    return [creation.asarray(a, dtype=dtype) for a in arrays]


def _concatenate_array(array: Any, axis: int | None, dtype: Any = None) -> Array:
    """The slices of one array along its axis 0, joined by a reshape."""
    array = creation.asarray(array, dtype=dtype)
    if array.ndim == 0 or array.shape[0] == 0:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return lax.reshape(array, (array.size,))
    if array.ndim == 1:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = arguments.canonicalize_axis(axis, array.ndim - 1)
    lengths = array.shape
    joined = lengths[0] * lengths[axis + 1]
    shape = (*lengths[1 : axis + 1], joined, *lengths[axis + 2 :])
    order = [*range(1, axis + 1), 0, *range(axis + 1, array.ndim)]
    return lax.reshape(array, shape, order)


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Array:
    """`concatenate` under the name of the array API standard."""
    arraylike.check_arraylike("concat", *arrays)
    return concatenate(arrays, axis=axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Arrays of one shape along a new axis, at position `axis` of the result.

    The dtype is the promoted one, or `dtype`. Raises ValueError for no arrays or for
    shapes that differ.
    """
    if not len(arrays):
        raise ValueError("Need at least one array to stack.")
    refuse_out("stack", out)
    if shaping.is_single_array(arrays):
        axis = arguments.canonicalize_axis(axis, arrays.ndim)
        return concatenate(
            shaping.expand_dims(arrays, axis + 1), axis=axis, dtype=dtype
        )
    arrays = arraylike.ensure_arraylike_tuple("stack", arrays)
    return lax.stack(_of_one_dtype(arrays, dtype), axis=axis)


@inline_jit(static_argnames="axis")
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along `axis`, as a tuple: the inverse of `stack`."""
    return lax.unstack(arraylike.ensure_arraylike("unstack", x), axis=axis)


def _each(name: str, widen: Callable[..., Any], tup: Any) -> Any:
    """`widen` of each array, or of each slice of one array along its axis 0."""
    if shaping.is_single_array(tup):
        return vmap(widen)(tup)
    arraylike.check_arraylike(name, *tup)
    return [widen(a) for a in tup]


def vstack(tup: Any | Sequence[Any], dtype: Any = None) -> Array:
    """Arrays on top of each other: along axis 0, vectors as rows."""
    return concatenate(_each("vstack", shaping.atleast_2d, tup), axis=0, dtype=dtype)


def hstack(tup: Any | Sequence[Any], dtype: Any = None) -> Array:
    """Arrays side by side: along axis 1, vectors along their only axis."""
    arrays = _each("hstack", shaping.atleast_1d, tup)
    rank = arrays.ndim - 1 if shaping.is_single_array(arrays) else arrays[0].ndim
    return concatenate(arrays, axis=0 if rank == 1 else 1, dtype=dtype)


def dstack(tup: Any | Sequence[Any], dtype: Any = None) -> Array:
    """Arrays behind each other: along axis 2, after `atleast_3d`."""
    if shaping.is_single_array(tup):
        arrays = vmap(shaping.atleast_3d)(tup)
    else:
        arrays = [
            shaping.atleast_3d(a)
            for a in arraylike.ensure_arraylike_tuple("dstack", tup)
        ]
    return concatenate(arrays, axis=2, dtype=dtype)


def column_stack(tup: Any) -> Array:
    """Vectors as the columns of a matrix; matrices side by side."""
    if shaping.is_single_array(tup):
        as_column = vmap(lambda x: shaping.transpose(shaping.atleast_2d(x)))
        arrays = as_column(tup) if tup.ndim < 3 else tup
    else:
        arrays = [
            shaping.transpose(shaping.atleast_2d(a)) if a.ndim < 2 else a
            for a in arraylike.ensure_arraylike_tuple("column_stack", tup)
        ]
    return concatenate(arrays, axis=1)


@jit
def block(arrays: Any | list[Any]) -> Array:
    """Joins nested lists of blocks into one array.

    The innermost lists are joined along the last axis, those around them along the one
    before, and so on. Raises ValueError for tuples, empty lists and lists of different
    depths.
    """
    result, _ = _block(arrays)
    return result


def _block(blocks: Any) -> tuple[Array, int]:
    """(the joined blocks, the depth of their nesting)."""
    if isinstance(blocks, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {blocks}")
    if not isinstance(blocks, list):
        return creation.asarray(blocks), 1
    if not blocks:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    arrays, depths = zip(*map(_block, blocks), strict=True)
    depth = depths[0]
    if any(other != depth for other in depths):
        raise ValueError("Mismatched list depths in jax.numpy.block")
    rank = max(depth, *(a.ndim for a in arrays))
    arrays = tuple(_with_rank(a, rank) for a in arrays)
    return concatenate(arrays, axis=-depth), depth + 1


def _with_rank(array: Array, rank: int) -> Array:
    missing = rank - array.ndim
    return lax.broadcast(array, (1,) * missing) if missing > 0 else array


@jit(static_argnames=("axis",))
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """`values` after `arr`, along `axis` or, without one, both flattened."""
    if axis is None:
        return concatenate([shaping.ravel(arr), shaping.ravel(values)], 0)
    return concatenate([arr, values], axis=axis)


# --------------------------------------------------------------------------
# Apart


def _split(name: str, ary: Any, sections: Any, axis: int = 0) -> list[Array]:
    array = arraylike.ensure_arraylike(name, ary)
    axis = arguments.static_index(axis, f"in jax.numpy.{name} argument `axis`")
    size = checked_size(axis, array.shape)
    context = f"in jax.numpy.{name} argument 1"
    is_list = isinstance(sections, (tuple, list))
    if is_list or (shaping.is_single_array(sections) and sections.ndim > 0):
        cuts = [arguments.static_index(cut, context) for cut in sections]
        sizes = list(np.diff([0, *cuts, size]))
    else:
        count = arguments.concrete_or_error(int, sections, context)
        if count < 1:
            kind = ValueError if count else ZeroDivisionError  # as in JAX
            raise kind(f"{name}: the number of parts must be positive, got {count}.")
        length, rest = divmod(size, count)
        if rest and name != "array_split":
            raise ValueError(
                "array split does not result in an equal division: rest is "
                f"{rest}. Use jnp.array_split for parts of nearly equal length."
            )
        sizes = [length + 1] * rest + [length] * (count - rest)
    return list(
        lax.split(array, [canonicalize_dim(length) for length in sizes], axis=axis)
    )


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """`ary` in so many equal parts, or cut at these positions of `axis`.

    Raises ValueError when the parts are not equal.
    """
    return _split("split", ary, indices_or_sections, axis=axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """`split` in parts of nearly equal length, the longer ones first."""
    return _split("array_split", ary, indices_or_sections, axis=axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 0."""
    return _split("vsplit", ary, indices_or_sections, axis=0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 1, for a vector along its only axis."""
    array = arraylike.ensure_arraylike("hsplit", ary)
    axis = 0 if array.ndim == 1 else 1
    return _split("hsplit", array, indices_or_sections, axis=axis)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 2."""
    return _split("dsplit", ary, indices_or_sections, axis=2)


# --------------------------------------------------------------------------
# Over and over


def tile(A: Any, reps: int | Sequence[int]) -> Array:
    """Copies of `A` next to each other, `reps[i]` of them along axis `i`.

    Missing entries of `reps` stand for one, missing axes of `A` are put in front.
    """
    array = arraylike.ensure_arraylike("tile", A)
    counts = arguments.shape_tuple(reps)
    counts = (1,) * (array.ndim - len(counts)) + counts
    if len(counts) > array.ndim:
        new_axes = tuple(range(len(counts) - array.ndim))
        array = lax.expand_dims(array, dimensions=new_axes)
    return lax.tile(array, counts)


def tile_to_size(array: Array, size: int) -> Array:
    """A vector repeated and cut to the given length."""
    if array.size < size:
        array = tile(array, -(-size // array.size))
    return array[:size] if array.size > size else array
