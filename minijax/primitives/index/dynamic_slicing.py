"""Blocks of an array whose place is computed: dynamic_slice, dynamic_update_slice.

`dynamic_slice` takes the start as operands, so it can change from run to run, while the
size stays fixed; `dynamic_update_slice` writes a block where `dynamic_slice` would read
it, and each is the transpose of the other. A block that would reach beyond the array is
moved inwards, never cut: that is what XLA defines.

Under `vmap` each example may start elsewhere. Then a dynamic slice is a gather, and a
dynamic update a scatter.

In JAX: `lax/slicing.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules, shaping
from minijax.core.language import (
    ShapedArray,
    canonicalize_dim,
    canonicalize_shape,
    get_aval,
    numpy_scalar,
    physical_aval,
)
from minijax.core.rules import Shape
from minijax.primitives.index import gathering, index_vectors, scattering
from minijax.primitives.index.indexers import ds
from minijax.primitives.refs.mutable_arrays import RefAccumulator
from minijax.primitives.shape import broadcasting, joining, slicing
from minijax.primitives.shape.squeezing import expand_dims, squeeze
from minijax.values.symbolic_sizes import is_symbolic

# ----------------------------------------------------------------------------------
# Starts that are computed
# ----------------------------------------------------------------------------------


def _check_starts(name: str, starts: Sequence[ShapedArray]) -> None:
    first = starts[0].dtype if starts else None
    for start in starts:
        if start.dtype != first or not dtypes.issubdtype(start.dtype, np.integer):
            names = ", ".join(start.dtype.name for start in starts)
            raise TypeError(
                f"index arguments to {name} must be integers of the same type, got: "
                f"{names}"
            )


def _check_scalar_starts(name: str, starts: Sequence[ShapedArray]) -> None:
    if any(start.ndim for start in starts):
        shapes = ", ".join(str(start.shape) for start in starts)
        raise TypeError(
            f"start_indices arguments to {name} must be scalars, got shapes {shapes}."
        )


def _clamped(starts: Any, shape: Any, sizes: Any) -> tuple:
    """The block that is read, moved inwards if it reaches beyond the array."""
    blocks = []
    for start, size, count in zip(starts, shape, sizes):
        first = min(max(int(start), 0), size - count)
        blocks.append(builtins.slice(first, first + count))
    return tuple(blocks)


def normalized_starts(
    operand: Any, starts: Any, allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """One scalar for each axis, negative ones counted from the end where allowed.

    What is known now is computed now. A start that is computed costs three equations:
    a comparison, an addition and a `select_n`.

    In JAX: `lax/slicing.py`, `_dynamic_slice_indices`.
    """
    shape = get_aval(operand).shape
    if len(starts) != len(shape):
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {shape})"
        )
    if not isinstance(starts, (tuple, list)):
        if get_aval(starts).ndim != 1:
            raise ValueError(
                f"Slice indices must be a 1D sequence, got {get_aval(starts).shape}"
            )
        starts = list(starts)
    if isinstance(allow_negative, bool):
        allow_negative = [allow_negative] * len(starts)
    return [
        _normalized(start, size, allowed)
        for start, size, allowed in zip(starts, shape, allow_negative)
    ]


def _normalized(start: Any, size: Any, allow_negative: bool) -> Any:
    dtype = dtypes.dtype(start)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return start
    if isinstance(start, (int, np.integer)) and not is_symbolic(size):
        if start < 0 and not allow_negative:
            raise ValueError(
                f"Index {start} is out of bounds for dimension {size} if "
                "allow_negative_indices=False"
            )
        known = start + size if start < 0 else start
        return numpy_scalar(np.asarray(known).astype(dtype), dtype)
    if not allow_negative:
        return start
    if is_symbolic(size):
        count = shaping.convert_element_type(size.__jax_array__(), dtype)
    else:
        count = numpy_scalar(np.asarray(size).astype(dtype), dtype)
    if isinstance(start, np.ndarray):
        negative: Any = start < 0
    else:
        negative = elementwise.lt(start, rules.scalar_like(get_aval(start), 0))
    strong = shaping.convert_element_type_to(start, dtype, weak_type=False)
    from_end = elementwise.add(strong, count)
    return elementwise.select(negative, from_end, start)


# ----------------------------------------------------------------------------------
# dynamic_slice
# ----------------------------------------------------------------------------------


def _dynamic_slice_shape(x: ShapedArray, *starts: ShapedArray, slice_sizes) -> Shape:
    if len(slice_sizes) != x.ndim or len(starts) != x.ndim:
        raise TypeError(
            "dynamic_slice takes one start and one slice size for each axis, got "
            f"{len(starts)} starts and slice_sizes {slice_sizes} for operand shape "
            f"{x.shape}."
        )
    if any(count > size for count, size in zip(slice_sizes, x.shape)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got "
            f"slice_sizes {slice_sizes} for operand shape {x.shape}."
        )
    if any(count < 0 for count in slice_sizes):
        raise TypeError(
            "slice slice_sizes must be greater than or equal to zero, got slice_sizes "
            f"of {slice_sizes}."
        )
    _check_scalar_starts("dynamic_slice", starts)
    return tuple(slice_sizes)


def _dynamic_slice_dtype(x: ShapedArray, *starts: ShapedArray, slice_sizes) -> Any:
    _check_starts("dynamic_slice", starts)
    return x.dtype


dynamic_slice_p = slicing.dynamic_slice_p
dynamic_slice_p.meaning = lambda x, *starts, slice_sizes: x[
    _clamped(starts, x.shape, slice_sizes)
]
dynamic_slice_p.type_rule = rules.standard_type_rule(
    "dynamic_slice",
    _dynamic_slice_shape,
    _dynamic_slice_dtype,
    weak_type_rule=lambda x, *starts, slice_sizes: x.weak_type,
)


@dynamic_slice_p.def_jvp_rule
def _dynamic_slice_jvp(primals, tangents, *, slice_sizes) -> Any:
    _, *starts = primals
    tangent = dynamic_slice_p.bind(tangents[0], *starts, slice_sizes=slice_sizes)
    return dynamic_slice_p.bind(*primals, slice_sizes=slice_sizes), tangent


@dynamic_slice_p.def_transpose
def _dynamic_slice_transpose(ct, x, *starts, slice_sizes) -> list:
    """Write the cotangent into zeros, where its entries were read."""
    if isinstance(x, rules.NullAccumulator):
        return [None] * (1 + len(starts))
    if isinstance(x, RefAccumulator):
        x.accum_at(tuple(map(ds, starts, slice_sizes)), ct)
        return [None] * (1 + len(starts))
    zeros = broadcasting.full(x.shape, 0, x.dtype)
    return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]


@dynamic_slice_p.def_batch
def _dynamic_slice_batch(axis_data, args, dims, *, slice_sizes) -> Any:
    (x, *starts), (dim, *start_dims) = args, dims
    axes = tuple(range(len(starts)))
    indices, indices_dim = _stacked_starts(axis_data, starts, start_dims)
    params = {**_CLIPPED, "slice_sizes": slice_sizes, "fill_value": None}
    params["dimension_numbers"] = index_vectors.GatherDimensionNumbers(axes, (), axes)
    operands, dims = [x, indices], [dim, indices_dim]
    return gathering.gather_p.batch(axis_data, operands, dims, **params)  # type: ignore


# Slices of a batch are gathered and scattered with these.
_CLIPPED = {
    "unique_indices": True,
    "indices_are_sorted": True,
    "mode": index_vectors.GatherScatterMode.CLIP,
}


def _stacked_starts(axis_data: Any, starts: Any, dims: Any) -> tuple[Any, int | None]:
    """The starts of all axes as one vector for each example: (vectors, their axis)."""
    if not starts:
        return np.zeros((0,), np.int32), None
    if all(dim is None for dim in dims):
        vector = [broadcasting.broadcast(start, (1,)) for start in starts]
        return joining.concatenate(vector, 0), None
    columns = [
        shaping.broadcast_in_dim(
            start, (axis_data.size, 1), () if dim is None else (0,)
        )
        for start, dim in zip(starts, dims)
    ]
    return joining.concatenate(columns, 1), 0


def _physical_starts(ctx: Any, aval: ShapedArray, first: int, starts: Any) -> list[Any]:
    """The starts, and zeros for the axes that hold the bits of a typed key."""
    missing = physical_aval(aval).ndim - aval.ndim
    if not missing:
        return list(starts)
    dtype = ctx.avals_in[first].dtype if starts else np.dtype(np.int32)
    return [*starts, *[ctx.constant(np.zeros((), dtype))] * missing]


@dynamic_slice_p.def_lowering
def _dynamic_slice_lowering(ctx, x, *starts, slice_sizes) -> Any:
    aval = ctx.avals_in[0]
    if physical_aval(aval).ndim == 0:
        return x
    trailing = physical_aval(aval).shape[aval.ndim :]
    return hlo.stablehlo.dynamic_slice(
        x,
        _physical_starts(ctx, aval, 1, starts),
        hlo.int_array([*slice_sizes, *trailing]),
    )


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """A block of fixed size that starts where `start_indices` say.

    Args:
      operand: an array.
      start_indices: one integer scalar for each axis, or a vector of them. If the block
        would reach beyond the array, the start is moved, so that the block fits.
      slice_sizes: the shape of the block, known while tracing.
      allow_negative_indices: whether negative starts count from the end; one flag, or
        one for each axis. Without it, the program is shorter.

    Raises:
      ValueError: when there is not one start for each axis.
      TypeError: when the sizes do not fit, or starts are no integers of one dtype.
    """
    starts = normalized_starts(operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(
        operand, *starts, slice_sizes=canonicalize_shape(slice_sizes)
    )


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_slice` along one axis, whole along the others."""
    sizes = [*get_aval(operand).shape]
    starts, allowed = _along(axis, sizes, start_index, allow_negative_indices)
    sizes[int(axis)] = canonicalize_dim(slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allowed)


def _along(axis: Any, shape: Sequence[int], start: Any, negative: bool) -> tuple:
    """(a start along one axis, 0 along the others; where it may be negative).

    All starts have one dtype.
    """
    axis = slicing.checked_axis(axis, shape)
    starts = [numpy_scalar(0, dtypes.dtype(start))] * len(shape)
    allowed = [False] * len(shape)
    starts[axis], allowed[axis] = start, negative
    return starts, allowed


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """The entries of `operand` at one computed index of an axis.

    Args:
      operand: an array.
      index: an integer scalar; out of bounds, the nearest index counts.
      axis: the axis.
      keepdims: whether the axis stays, with size 1.
      allow_negative_indices: whether negative indices count from the end.
    """
    result = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return result if keepdims else squeeze(result, (axis,))


# ----------------------------------------------------------------------------------
# dynamic_update_slice
# ----------------------------------------------------------------------------------


def _update_shape(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Shape:
    if x.ndim != update.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got "
            f"update shape {update.shape} for operand shape {x.shape}."
        )
    if x.ndim != len(starts):
        raise TypeError(
            "dynamic_update_slice start_indices must have length equal to the rank of "
            f"operand, got {len(starts)} indices for operand shape {x.shape}."
        )
    if any(count > size for count, size in zip(update.shape, x.shape)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, got "
            f"update shape {update.shape} for operand shape {x.shape}."
        )
    _check_scalar_starts("dynamic_update_slice", starts)
    return x.shape


def _update_dtype(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Any:
    rules.check_same_dtypes("dynamic_update_slice", (x, update))
    _check_starts("dynamic_update_slice", starts)
    return x.dtype


def _update_meaning(x, update, *starts) -> Any:
    out = x.copy()
    out[_clamped(starts, x.shape, update.shape)] = update
    return out


dynamic_update_slice_p = rules.standard_primitive(
    "dynamic_update_slice", _update_shape, _update_dtype, meaning=_update_meaning
)


@dynamic_update_slice_p.def_jvp_rule
def _update_jvp(primals, tangents) -> Any:
    out = dynamic_update_slice_p.bind(*primals)
    dots = [rules.instantiate(t) for t in tangents[:2]]
    return out, dynamic_update_slice_p.bind(*dots, *primals[2:])


@dynamic_update_slice_p.def_transpose
def _update_transpose(ct, x, update, *starts) -> list:
    """The block goes to the update; what is around it, to the operand."""
    shape = update.shape if rules.is_linear(update) else get_aval(update).shape
    zeros = broadcasting.full_like(ct, 0, shape=shape)
    x_ct = update_ct = None
    if rules.is_linear(x):
        x_ct = dynamic_update_slice_p.bind(ct, zeros, *starts)
    if rules.is_linear(update):
        update_ct = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape)
    return [x_ct, update_ct, *[None] * len(starts)]


@dynamic_update_slice_p.def_batch
def _update_batch(axis_data, args, dims) -> Any:
    (x, update, *starts), (dim, update_dim, *start_dims) = args, dims
    axes = tuple(range(len(starts)))
    indices, indices_dim = _stacked_starts(axis_data, starts, start_dims)
    params = {**_CLIPPED, "update_jaxpr": None, "update_consts": ()}
    params["dimension_numbers"] = index_vectors.ScatterDimensionNumbers(axes, (), axes)
    operands, dims = [x, indices, update], [dim, indices_dim, update_dim]
    return scattering.scatter_p.batch(axis_data, operands, dims, **params)  # type: ignore


@dynamic_update_slice_p.def_lowering
def _update_lowering(ctx, x, update, *starts) -> Any:
    aval = ctx.avals_in[0]
    if physical_aval(aval).ndim == 0:
        return update
    return hlo.stablehlo.dynamic_update_slice(
        x, update, _physical_starts(ctx, aval, 2, starts)
    )


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """`operand` with the block that starts at `start_indices` replaced by `update`.

    Args:
      operand: an array.
      update: the new block, of the operand's rank and dtype and no larger than it.
      start_indices: one integer scalar for each axis, or a vector of them. If the block
        would reach beyond the array, the start is moved, so that the block fits.
      allow_negative_indices: whether negative starts count from the end; one flag, or
        one for each axis.

    Raises:
      ValueError: when there is not one start for each axis.
      TypeError: when shapes or dtypes do not fit.
    """
    starts = normalized_starts(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_update_slice` that starts at 0 along all axes but one."""
    shape = get_aval(operand).shape
    starts, allowed = _along(axis, shape, start_index, allow_negative_indices)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allowed)


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`operand` with the entries at one computed index of an axis replaced.

    Args:
      operand: an array.
      update: an array of the operand's dtype and shape, with size 1 at `axis` or
        without that axis.
      index: an integer scalar; out of bounds, the nearest index counts.
      axis: the axis.
      allow_negative_indices: whether negative indices count from the end.
    """
    axis = int(axis)
    if get_aval(update).ndim != get_aval(operand).ndim:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
