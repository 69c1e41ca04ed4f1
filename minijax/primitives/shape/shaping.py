"""The shape of an array: reshape, transpose, squeeze, rev, tile.

None of these primitives computes; XLA mostly makes them part of what reads the result.
All are linear, and their transposes are of the same kind: reshaping back, permuting
back, adding up the copies.

Blocks of other files find here what they need about shapes: the names of
`broadcasting`, `joining`, `padding` and `casting` stand in this module too.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.language import rules
from minijax.language.array import Array
from minijax.language.core import (
    ShapedArray,
    canonicalize_shape,
    get_aval,
    physical_aval,
)
from minijax.language.rules import def_linear, moveaxis
from minijax.primitives.reduce import reductions
from minijax.primitives.shape.broadcasting import asarray as asarray
from minijax.primitives.shape.broadcasting import broadcast as broadcast
from minijax.primitives.shape.broadcasting import broadcast_in_dim as broadcast_in_dim
from minijax.primitives.shape.broadcasting import (
    broadcast_in_dim_p as broadcast_in_dim_p,
)
from minijax.primitives.shape.broadcasting import broadcast_like as broadcast_like
from minijax.primitives.shape.broadcasting import broadcast_shapes as broadcast_shapes
from minijax.primitives.shape.broadcasting import broadcast_to as broadcast_to
from minijax.primitives.shape.broadcasting import broadcast_to_rank as broadcast_to_rank
from minijax.primitives.shape.broadcasting import broadcasted_iota as broadcasted_iota
from minijax.primitives.shape.broadcasting import canonicalize_axis as canonicalize_axis
from minijax.primitives.shape.broadcasting import empty as empty
from minijax.primitives.shape.broadcasting import expand_dims as expand_dims
from minijax.primitives.shape.broadcasting import full as full
from minijax.primitives.shape.broadcasting import full_like as full_like
from minijax.primitives.shape.broadcasting import identity_matrix as identity_matrix
from minijax.primitives.shape.broadcasting import iota as iota
from minijax.primitives.shape.broadcasting import iota_p as iota_p
from minijax.primitives.shape.broadcasting import shape_of as shape_of
from minijax.primitives.shape.casting import (
    convert_element_type as convert_element_type,
)
from minijax.primitives.shape.casting import (
    convert_element_type_to as convert_element_type_to,
)
from minijax.primitives.shape.joining import concatenate as concatenate
from minijax.primitives.shape.joining import split as split
from minijax.primitives.shape.joining import stack as stack
from minijax.primitives.shape.joining import unstack as unstack
from minijax.primitives.shape.padding import pad as pad

# ----------------------------------------------------------------------------------
# reshape
# ----------------------------------------------------------------------------------


def _reshape_shape(
    x: ShapedArray, *, new_sizes: Any, dimensions: Any, sharding: Any
) -> tuple[int, ...]:
    if any(size < 0 for size in new_sizes):
        raise TypeError(
            f"reshape new_sizes must all be positive, got {new_sizes}. Use "
            "`minijax.numpy.reshape` to have a size of -1 computed."
        )
    if math.prod(new_sizes) != x.size:
        raise ValueError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (total "
            f"size {math.prod(new_sizes)}) for shape {x.shape} (total size {x.size})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            "reshape dimensions must be a permutation of operand dimensions, got "
            f"dimensions {dimensions} for shape {x.shape}."
        )
    return new_sizes


reshape_p = rules.standard_primitive(
    "reshape",
    _reshape_shape,
    lambda x, **_: x.dtype,
    meaning=lambda x, new_sizes, dimensions, sharding: np.reshape(
        x if dimensions is None else np.transpose(x, dimensions), new_sizes
    ),
)


def _reshape_transpose(
    ct: Any, x: Any, *, new_sizes: Any, dimensions: Any, sharding: Any
) -> list:
    if dimensions is None:
        return [reshape(ct, x.shape)]
    permuted = reshape(ct, tuple(x.shape[d] for d in dimensions))
    return [transpose(permuted, np.argsort(dimensions))]


def_linear(reshape_p, _reshape_transpose)


@reshape_p.def_batch
def _reshape_batch(
    axis_data: Any, args: Any, dims: Any, *, new_sizes: Any, dimensions: Any, **_: Any
) -> Any:
    x = moveaxis(args[0], dims[0], 0)
    if dimensions is not None:
        dimensions = (0, *(1 + d for d in dimensions))
    return reshape(x, (axis_data.size, *new_sizes), dimensions), 0


@reshape_p.def_lowering
def _reshape_lowering(
    ctx: Any, x: Any, *, new_sizes: Any, dimensions: Any, sharding: Any
) -> Any:
    if dimensions is not None:
        x = hlo.stablehlo.transpose(x, _with_trailing(ctx.avals_in[0], dimensions))
    return hlo.stablehlo.reshape(ctx.result_type(), x)


def _with_trailing(aval: ShapedArray, permutation: Sequence[int]) -> Any:
    """A permutation as an attribute; the bits of an extended dtype stay behind."""
    trailing = range(aval.ndim, physical_aval(aval).ndim)
    return hlo.int_array([*permutation, *trailing])


def reshape(
    operand: Any,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """The same entries, in row-major order, in an array of another shape.

    Args:
      operand: an array.
      new_sizes: the new shape, of the same total size.
      dimensions: the order in which to read the operand's axes, if not their own.

    Raises:
      TypeError: when a size is negative or `dimensions` is no permutation.
      ValueError: when the total size is another.
    """
    new_sizes = canonicalize_shape(new_sizes)
    shape = shape_of(operand)
    if dimensions is not None:
        dimensions = tuple(operator.index(d) for d in dimensions)
        if dimensions == tuple(range(len(shape))):
            dimensions = None
    unchanged = shape == new_sizes and dimensions is None and out_sharding is None
    if shape and unchanged and isinstance(operand, Array):
        return operand
    return reshape_p.bind(
        operand, new_sizes=new_sizes, dimensions=dimensions, sharding=out_sharding
    )


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


# ----------------------------------------------------------------------------------
# transpose
# ----------------------------------------------------------------------------------


def _transpose_shape(x: ShapedArray, *, permutation: Any) -> tuple[int, ...]:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got "
            f"permutation {permutation} for operand shape {x.shape}."
        )
    return tuple(x.shape[axis] for axis in permutation)


transpose_p = rules.transpose_p
transpose_p.meaning = lambda x, permutation: np.transpose(x, permutation)
transpose_p.type_rule = rules.standard_type_rule(
    "transpose", _transpose_shape, lambda x, **_: x.dtype
)
def_linear(
    transpose_p, lambda ct, x, *, permutation: [transpose(ct, np.argsort(permutation))]
)


@transpose_p.def_batch
def _transpose_batch(axis_data: Any, args: Any, dims: Any, *, permutation: Any) -> Any:
    (x,), (dim,) = args, dims
    return transpose(x, (dim, *(axis + (axis >= dim) for axis in permutation))), 0


@transpose_p.def_lowering
def _transpose_lowering(ctx: Any, x: Any, *, permutation: Any) -> Any:
    return hlo.stablehlo.transpose(x, _with_trailing(ctx.avals_in[0], permutation))


def transpose(operand: Any, permutation: Sequence[int] | np.ndarray) -> Any:
    """`operand` with its axes in another order: axis `permutation[i]` comes at `i`.

    Raises:
      TypeError: when `permutation` does not name each axis once.
    """
    permutation = tuple(operator.index(axis) for axis in permutation)
    in_order = permutation == tuple(range(get_aval(operand).ndim))
    if in_order and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


# ----------------------------------------------------------------------------------
# squeeze
# ----------------------------------------------------------------------------------


def _squeeze_shape(x: ShapedArray, *, dimensions: Any) -> tuple[int, ...]:
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions are not unique: {dimensions}")
    if not all(0 <= axis < x.ndim for axis in dimensions):
        raise ValueError(f"dimensions outside range [0, ndim): {dimensions}")
    if any(x.shape[axis] != 1 for axis in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}"
        )
    return tuple(size for axis, size in enumerate(x.shape) if axis not in dimensions)


# A reshape that says which axes go: of shape (1, 1), it is clear which one stays.
squeeze_p = rules.standard_primitive(
    "squeeze",
    _squeeze_shape,
    lambda x, **_: x.dtype,
    meaning=lambda x, dimensions: np.squeeze(x, dimensions),
)
def_linear(squeeze_p, lambda ct, x, *, dimensions: [expand_dims(ct, dimensions)])


@squeeze_p.def_batch
def _squeeze_batch(axis_data: Any, args: Any, dims: Any, *, dimensions: Any) -> Any:
    x = moveaxis(args[0], dims[0], 0)
    return squeeze(x, tuple(1 + axis for axis in dimensions)), 0


@squeeze_p.def_lowering
def _squeeze_lowering(ctx: Any, x: Any, *, dimensions: Any) -> Any:
    return hlo.stablehlo.reshape(ctx.result_type(), x)


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """`array` without some of its axes of size 1.

    Raises:
      ValueError: when an axis does not exist, is named twice, or is longer than 1.
    """
    rank = get_aval(array).ndim
    dimensions = tuple(sorted(canonicalize_axis(axis, rank) for axis in dimensions))
    if not dimensions and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=dimensions)


# ----------------------------------------------------------------------------------
# rev
# ----------------------------------------------------------------------------------


def _rev_shape(x: ShapedArray, *, dimensions: Any) -> tuple[int, ...]:
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
    sharding_rule=lambda x, **_: x.sharding,
    meaning=lambda x, dimensions: np.flip(x, dimensions),
)
def_linear(rev_p, lambda ct, x, *, dimensions: [rev(ct, dimensions)])


@rev_p.def_batch
def _rev_batch(axis_data: Any, args: Any, dims: Any, *, dimensions: Any) -> Any:
    (x,), (dim,) = args, dims
    return rev(x, tuple(axis + (axis >= dim) for axis in dimensions)), dim


@rev_p.def_lowering
def _rev_lowering(ctx: Any, x: Any, *, dimensions: Any) -> Any:
    return hlo.stablehlo.reverse(x, hlo.int_array(dimensions))


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """`operand` with the entries along each of `dimensions` in reverse order.

    Raises:
      TypeError: when an axis does not exist or is named twice.
    """
    return rev_p.bind(operand, dimensions=tuple(operator.index(d) for d in dimensions))


# ----------------------------------------------------------------------------------
# tile
# ----------------------------------------------------------------------------------


def _tile_shape(x: ShapedArray, *, reps: Any) -> tuple[int, ...]:
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
    sharding_rule=lambda x, **_: x.sharding,
    meaning=lambda x, reps: np.tile(x, reps),
)


def _tile_transpose(ct: Any, x: Any, *, reps: Any) -> list:
    copies = reshape(ct, _interleaved(reps, x.shape))
    return [reductions.reduce_sum(copies, tuple(range(0, 2 * x.ndim, 2)))]


def_linear(tile_p, _tile_transpose)


@tile_p.def_batch
def _tile_batch(axis_data: Any, args: Any, dims: Any, *, reps: Any) -> Any:
    (x,), (dim,) = args, dims
    return tile(x, (*reps[:dim], 1, *reps[dim:])), dim


@tile_p.def_lowering
def _tile_lowering(ctx: Any, x: Any, *, reps: Any) -> Any:
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
    return tile_p.bind(operand, reps=tuple(operator.index(count) for count in reps))
