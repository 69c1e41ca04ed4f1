"""The shape of an array: broadcast, reshape, transpose, and filling new arrays.

None of these primitives computes; XLA mostly makes them part of what reads the result.
All are linear, and their transposes are each other: repeating and adding up, reshaping
and reshaping back, permuting and permuting back.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, rules
from minijax.array import Array
from minijax.backend import hlo
from minijax.core import (
    ShapedArray,
    canonicalize_shape,
    get_aval,
    physical_aval,
)
from minijax.primitives import reductions
from minijax.primitives.casting import (
    asarray,
    convert_element_type,  # noqa: F401  (blocks of other files call it shaping's)
    convert_element_type_to,
)
from minijax.rules import def_linear, is_linear, moveaxis


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an operand."""
    return get_aval(x).shape


def canonicalize_axis(axis: Any, rank: int) -> int:
    """An axis counted from the front; ValueError if there is no such axis."""
    axis = operator.index(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis + rank if axis < 0 else axis


# ----------------------------------------------------------------------------------
# broadcast_in_dim
# ----------------------------------------------------------------------------------


def _broadcast_shape(
    x: ShapedArray, *, shape: Any, broadcast_dimensions: Any, sharding: Any
) -> tuple[int, ...]:
    dims = broadcast_dimensions
    if x.ndim != len(dims):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand "
            f"ndim; got broadcast_dimensions {dims} for operand ndim {x.ndim}."
        )
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to "
            f"the operand shape; got operand ndim {x.ndim} and target broadcast ndim "
            f"{len(shape)}."
        )
    if not all(0 <= dim < len(shape) for dim in dims):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output "
            f"dimensions, got {dims} for operand ndim {x.ndim} and shape {shape}."
        )
    if any(size not in (1, shape[dim]) for size, dim in zip(x.shape, dims)):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to "
            "their corresponding dimensions in the target broadcast shape; got operand "
            f"of shape {x.shape}, target broadcast shape {shape}, "
            f"broadcast_dimensions {dims}."
        )
    if len(set(dims)) != len(dims):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must not contain duplicates, got "
            f"broadcast_dimensions {dims}."
        )
    return shape


def _broadcast_meaning(
    x: Any, shape: Any, broadcast_dimensions: Any, sharding: Any
) -> Any:
    order = np.argsort(broadcast_dimensions)
    spread = [1] * len(shape)
    for axis, dim in enumerate(broadcast_dimensions):
        spread[dim] = x.shape[axis]
    return np.broadcast_to(np.transpose(x, order).reshape(spread), shape)


broadcast_in_dim_p = rules.broadcast_in_dim_p
broadcast_in_dim_p.meaning = _broadcast_meaning
broadcast_in_dim_p.type_rule = rules.standard_type_rule(
    "broadcast_in_dim", _broadcast_shape, lambda x, **_: x.dtype
)


def _broadcast_pretty(params: dict[str, Any]) -> dict[str, Any]:
    """The result's type says the shape; of the rest only what is not trivial."""
    dims = params["broadcast_dimensions"]
    return {"broadcast_dimensions": dims} if dims else {}


broadcast_in_dim_p.pretty = _broadcast_pretty


def _broadcast_transpose(
    ct: Any, x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any
) -> list:
    """Add up what was repeated."""
    if not is_linear(x):
        return [None]
    units = [axis for axis, size in enumerate(x.shape) if size == 1]
    kept = [d for axis, d in enumerate(broadcast_dimensions) if axis not in units]
    repeated = tuple(axis for axis in range(len(shape)) if axis not in kept)
    return [expand_dims(reductions.reduce_sum(ct, repeated), units)]


def_linear(broadcast_in_dim_p, _broadcast_transpose)


@broadcast_in_dim_p.def_batch
def _broadcast_batch(
    axis_data: Any,
    args: Any,
    dims: Any,
    *,
    shape: Any,
    broadcast_dimensions: Any,
    sharding: Any,
) -> Any:
    (x,), (dim,) = args, dims
    x = moveaxis(x, dim, 0)
    new_dims = (0, *(1 + d for d in broadcast_dimensions))
    return broadcast_in_dim(x, (axis_data.size, *shape), new_dims), 0


@broadcast_in_dim_p.def_lowering
def _broadcast_lowering(
    ctx: Any, x: Any, *, shape: Any, broadcast_dimensions: Any, sharding: Any
) -> Any:
    return ctx.broadcast_in_dim(x, ctx.avals_in[0], shape, broadcast_dimensions)


def _broadcast_staging(trace: Any, args: Any, params: dict[str, Any]) -> Any:
    """Write nothing where nothing is repeated or moved."""
    aval = get_aval(args[0])
    in_order = params["broadcast_dimensions"] == tuple(range(len(params["shape"])))
    if in_order and aval.shape == params["shape"] and params["sharding"] is None:
        return trace.lift(args[0])
    return NotImplemented


broadcast_in_dim_p.staging = _broadcast_staging


def broadcast_in_dim(
    operand: Any,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Any:
    """`operand` repeated to `shape`, its axis `i` becoming `broadcast_dimensions[i]`.

    Args:
      operand: an array; each axis has size 1 or that of its place in `shape`.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the operand, its place in the result.

    Raises:
      TypeError: when the sizes or dimensions do not fit.
    """
    rank = get_aval(operand).ndim
    if rank == len(shape) and not len(broadcast_dimensions) and out_sharding is None:
        if isinstance(operand, Array):
            return operand
    return broadcast_in_dim_p.bind(
        operand,
        shape=canonicalize_shape(shape),
        broadcast_dimensions=tuple(operator.index(d) for d in broadcast_dimensions),
        sharding=out_sharding,
    )


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """`operand` repeated along new leading axes: shape `(*sizes, *operand.shape)`."""
    if len(sizes) == 0 and out_sharding is None:
        return asarray(operand)
    shape = shape_of(operand)
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(
        operand, (*sizes, *shape), dims, out_sharding=out_sharding
    )


def broadcast_to(operand: Any, shape: Sequence[int], sharding: Any = None) -> Any:
    """`operand` repeated to `shape` by NumPy's rules: axes are matched from the back.

    Raises:
      ValueError: when the shapes do not fit.
    """
    old, shape = shape_of(operand), canonicalize_shape(shape)
    if old == shape and sharding is None:
        return asarray(operand)
    if len(shape) < len(old):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={old} "
            f"shape={shape}. Use `reshape` or a reduction to remove dimensions."
        )
    lead = len(shape) - len(old)
    if any(a not in (1, b) for a, b in zip(old, shape[lead:])):
        raise ValueError(
            "Incompatible types for broadcasting: input type="
            f"{get_aval(operand).str_short(True)} and requested shape {shape}. Sizes, "
            "matched from the back, must be equal or 1."
        )
    dims = tuple(range(lead, len(shape)))
    return broadcast_in_dim(operand, shape, dims, out_sharding=sharding)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """`array` with axes of size 1 at the places `dimensions` of the result.

    Raises:
      ValueError: when a place is named twice or lies outside of the result.
    """
    old = shape_of(array)
    rank = len(old) + len(dimensions)
    places = [canonicalize_axis(axis, rank) for axis in dimensions]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    shape = list(old)
    for place in sorted(places):
        shape.insert(place, 1)
    kept = [axis for axis in range(rank) if axis not in places]
    return broadcast_in_dim(array, shape, kept)


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
        raise TypeError(
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
    axis_data: Any,
    args: Any,
    dims: Any,
    *,
    new_sizes: Any,
    dimensions: Any,
    sharding: Any,
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
      TypeError: when the sizes do not fit.
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
# Filling arrays
# ----------------------------------------------------------------------------------


def full(
    shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None
) -> Any:
    """An array with every entry `fill_value`.

    Args:
      shape: its shape.
      fill_value: a scalar.
      dtype: its dtype; by default that of the value, weakly typed if the value is.

    Raises:
      TypeError: when `fill_value` is no scalar.
    """
    shape = canonicalize_shape(shape)
    if shape_of(fill_value):
        raise TypeError(
            "full must be called with scalar fill_value, got fill_value.shape "
            f"{shape_of(fill_value)}. Use `lax.broadcast` to repeat an array."
        )
    if dtype is None:
        weak, dtype = dtypes.is_weakly_typed(fill_value), dtypes.dtype(fill_value)
    else:
        weak = False
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "full")
    return broadcast(convert_element_type_to(fill_value, dtype, weak), shape)


def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    sharding: Any = None,
) -> Any:
    """An array like `x` (in shape, dtype and weak type) with every entry `fill_value`.

    `x` is anything with a shape and a dtype; `dtype` and `shape` override its own.
    """
    new_shape = _shape_like(x) if shape is None else canonicalize_shape(shape)
    weak = dtype is None and dtypes.is_weakly_typed(x)
    dtype = dtypes.dtype(x if dtype is None else dtype)
    value = convert_element_type_to(fill_value, dtype, weak)
    return full(new_shape, value, sharding=sharding)


def _shape_like(x: Any) -> tuple[int, ...]:
    shape = getattr(x, "shape", None)
    return shape_of(x) if shape is None else tuple(shape)
