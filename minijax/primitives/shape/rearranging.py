"""Merging axes, reversing and repeating entries: collapse, rev, tile.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import hlo, rules, sums
from minijax.core.avals import canonicalize_dim
from minijax.core.language import ShapedArray
from minijax.core.rules import Shape, def_linear
from minijax.core.shaping import reshape, shape_of
from minijax.primitives.shape.squeezing import indices_of


def collapse(
    operand: Any, start_dimension: int, stop_dimension: int | None = None
) -> Any:
    """`operand` with the axes from `start_dimension` to before `stop_dimension` as one.

    Raises:
      ValueError: when the stop lies before the start.
    """
    shape = shape_of(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}"
            f"[{start_dimension}:{stop_dimension}]"
        )
    merged = math.prod(shape[start:stop])
    return reshape(operand, (*shape[:start], merged, *shape[stop:]))


def split_axis(x: Any, axis: int, size: int) -> Any:
    """One axis as two, the first of them of a given size."""
    shape = shape_of(x)
    parts = (size, shape[axis] // size)
    return reshape(x, (*shape[:axis], *parts, *shape[axis + 1 :]))


def merged_axes(x: Any, axis: int) -> Any:
    """An axis and the next one as one."""
    return collapse(x, axis, axis + 2)


# ----------------------------------------------------------------------------------
# rev
# ----------------------------------------------------------------------------------


def _rev_shape(x: ShapedArray, *, dimensions) -> Shape:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if not all(0 <= axis < x.ndim for axis in dimensions):
        raise TypeError(
            "rev dimensions must all be nonnegative and less than operand ndim, got "
            f"dimensions {dimensions} for operand ndim {x.ndim}."
        )
    return x.shape


rev_p = rules.standard_primitive(
    "rev",
    _rev_shape,
    lambda x, **_: x.dtype,
    meaning=lambda x, dimensions: np.flip(x, dimensions),
)
def_linear(rev_p, lambda ct, x, *, dimensions: [rev(ct, dimensions)])


@rev_p.def_batch
def _rev_batch(axis_data, args, dims, *, dimensions) -> Any:
    (x,), (dim,) = args, dims
    return rev(x, tuple(axis + (axis >= dim) for axis in dimensions)), dim


@rev_p.def_lowering
def _rev_lowering(ctx, x, *, dimensions) -> Any:
    return hlo.stablehlo.reverse(x, hlo.int_array(dimensions))


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """`operand` with the entries along each of `dimensions` in reverse order.

    Raises:
      TypeError: when an axis does not exist or is named twice.
    """
    return rev_p.bind(operand, dimensions=indices_of(dimensions, "dimensions"))


# ----------------------------------------------------------------------------------
# tile
# ----------------------------------------------------------------------------------


def _tile_shape(x: ShapedArray, *, reps) -> Shape:
    if x.ndim != len(reps):
        raise TypeError(
            "reps length must be equal to the ndim of x, got "
            f"len(reps)={len(reps)} and x.ndim={x.ndim}."
        )
    return tuple(count * size for count, size in zip(reps, x.shape))


def _interleaved(reps: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """The shape in which each axis stands behind an axis of its copies."""
    return tuple(size for pair in zip(reps, shape) for size in pair)


tile_p = rules.standard_primitive(
    "tile",
    _tile_shape,
    lambda x, **_: x.dtype,
    meaning=lambda x, reps: np.tile(x, reps),
)


def _tile_transpose(ct, x, *, reps) -> list:
    copies = reshape(ct, _interleaved(reps, x.shape))
    return [sums.reduce_sum(copies, tuple(range(0, 2 * x.ndim, 2)))]


def_linear(tile_p, _tile_transpose)


@tile_p.def_batch
def _tile_batch(axis_data, args, dims, *, reps) -> Any:
    (x,), (dim,) = args, dims
    return tile(x, (*reps[:dim], 1, *reps[dim:])), dim


@tile_p.def_lowering
def _tile_lowering(ctx, x, *, reps) -> Any:
    (aval,) = ctx.avals_in
    spread = _interleaved(reps, aval.shape)
    behind = range(1, 2 * aval.ndim, 2)
    copies = ctx.broadcast_in_dim(x, aval, spread, behind)
    return hlo.stablehlo.reshape(ctx.result_type(), copies)


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """`operand` laid side by side, `reps[i]` times along axis `i`.

    Raises:
      TypeError: when `reps` has not one number for each axis.
    """
    return tile_p.bind(operand, reps=tuple(map(canonicalize_dim, reps)))
