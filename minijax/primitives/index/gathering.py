"""Reading many blocks at once: gather.

`indices` is an array of index vectors, along its last axis; the other axes are *batch
axes* of the result. For each vector, the block of shape `slice_sizes` that starts there
is read. `GatherDimensionNumbers` says which axes of the operand the vector's entries
index (`start_index_map`), which axes of the block (of size 1) are left out of the
result (`collapsed_slice_dims`), and where in the result the others stand
(`offset_dims`). Batch axes that operand and indices have in common, as under `vmap`,
are `operand_batching_dims` and `start_indices_batching_dims`.

`x[[2, 0]]` of a matrix is: indices `[[2], [0]]`, blocks of shape `(1, columns)`,
`start_index_map=(0,)`, `collapsed_slice_dims=(0,)`, `offset_dims=(1,)`.

In JAX: `lax/slicing.py`; the operation is XLA's Gather.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, language, rules, shaping
from minijax.core.rules import Shape, Zero, instantiate, is_linear, moveaxis, not_mapped
from minijax.primitives.elementwise import comparing
from minijax.primitives.index.index_vectors import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    blocks,
    check_numbers,
    shifted,
)
from minijax.primitives.index.scatter_family import scatter_add
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import broadcasting, joining
from minijax.primitives.shape.slicing import checked_size
from minijax.primitives.shape.squeezing import expand_dims, flag_of
from minijax.values.symbolic_sizes import is_symbolic, size_or_array

# ----------------------------------------------------------------------------------
# Type and meaning
# ----------------------------------------------------------------------------------


def _gather_shape(operand, indices, *, dimension_numbers, slice_sizes, **_) -> Shape:
    numbers = dimension_numbers
    check_numbers("gather", operand, indices, numbers, GatherDimensionNumbers)
    collapsed = numbers.collapsed_slice_dims
    batching = numbers.operand_batching_dims
    if operand.ndim != len(slice_sizes):
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={operand.ndim}"
        )
    if operand.ndim != len(numbers.offset_dims) + len(collapsed) + len(batching):
        raise TypeError(
            "Every axis of a gather's blocks is either an offset dimension or "
            f"collapsed or batching; got len(slice_sizes)={len(slice_sizes)}, "
            f"offset_dims={numbers.offset_dims}, collapsed_slice_dims={collapsed}, "
            f"operand_batching_dims={batching}."
        )
    for axis, (count, size) in enumerate(zip(slice_sizes, operand.shape)):
        if indices.size and not 0 <= count <= size:
            raise TypeError(
                f"Slice size at index {axis} in gather op is out of range, must be "
                f"within [0, {size} + 1), got {count}."
            )
    if any(slice_sizes[axis] != 1 for axis in collapsed):
        raise TypeError(
            "Gather op can only collapse slice dims with bound 1, got slice_sizes "
            f"{slice_sizes} and collapsed_slice_dims {collapsed}."
        )
    if any(slice_sizes[axis] > 1 for axis in batching):
        raise TypeError(
            "Gather op can only have operand batching dims with bound 0/1, got "
            f"slice_sizes {slice_sizes} and operand_batching_dims {batching}."
        )
    return _result_shape(indices.shape, numbers, slice_sizes)


def _result_shape(
    indices_shape: Sequence[int], numbers: GatherDimensionNumbers, slice_sizes
) -> Shape:
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    shape = list(indices_shape[:-1])
    kept = [size for axis, size in enumerate(slice_sizes) if axis not in left_out]
    for place, size in zip(numbers.offset_dims, kept):
        shape.insert(place, size)
    return tuple(shape)


def _gather_dtype(
    operand: language.ShapedArray, indices: language.ShapedArray, **_
) -> Any:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices must have an integer type, got {indices.dtype.name}")
    return operand.dtype


def _gather_meaning(
    operand, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_
) -> Any:
    numbers = dimension_numbers
    out = np.zeros(_result_shape(indices.shape, numbers, slice_sizes), operand.dtype)
    # Batch axes first, so that each index vector has its own block of the result.
    batch_first = np.moveaxis(
        out, numbers.offset_dims, range(out.ndim - len(numbers.offset_dims), out.ndim)
    )
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    for place, start in blocks(
        indices,
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
        [size - count for size, count in zip(operand.shape, slice_sizes)],
        clip=mode is not GatherScatterMode.FILL_OR_DROP,
    ):
        if start is None:
            batch_first[place] = fill_value
            continue
        ends = [first + count for first, count in zip(start, slice_sizes)]
        block = operand[tuple(map(builtins.slice, start, ends))]
        batch_first[place] = np.squeeze(block, left_out)
    return out


gather_p = rules.standard_primitive(
    "gather",
    _gather_shape,
    _gather_dtype,
    weak_type_rule=lambda operand, indices, **_: operand.weak_type,
    meaning=_gather_meaning,
)

# ----------------------------------------------------------------------------------
# Derivative and transpose
# ----------------------------------------------------------------------------------


def _gather_jvp(t, operand, indices, **params) -> Any:
    # What is read out of bounds is a constant, so its tangent is 0.
    return gather(t, indices, **{**params, "fill_value": 0})


gather_p.def_jvp(_gather_jvp, None)


@gather_p.def_transpose
def _gather_transpose(ct, operand, indices, *, dimension_numbers, **params) -> list:
    """Add each cotangent up where its entry was read."""
    if not is_linear(operand):
        return [None, None]
    del params["slice_sizes"], params["fill_value"]
    dtype = dtypes.canonicalize_dtype(language.get_aval(ct).dtype)
    zeros = instantiate(Zero(operand.aval.update(dtype=dtype)))
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    return [scatter_add(zeros, indices, ct, numbers, **params), None]


# ----------------------------------------------------------------------------------
# Batch
# ----------------------------------------------------------------------------------


@gather_p.def_batch
def _gather_batch(axis_data, args, dims, *, dimension_numbers, slice_sizes, **params):
    """The new axis is one more of every block, of the indices, or of both together."""
    (operand, indices), (operand_dim, indices_dim) = args, dims
    numbers = dimension_numbers
    if operand_dim is not not_mapped:
        operand = moveaxis(operand, operand_dim, 0)
        numbers = numbers._replace(
            collapsed_slice_dims=shifted(numbers.collapsed_slice_dims),
            start_index_map=shifted(numbers.start_index_map),
            operand_batching_dims=shifted(numbers.operand_batching_dims),
        )
    if indices_dim is not not_mapped:
        indices = moveaxis(indices, indices_dim, 0)
        numbers = numbers._replace(
            start_indices_batching_dims=shifted(numbers.start_indices_batching_dims)
        )
    offset_dims = shifted(numbers.offset_dims)
    if indices_dim is not_mapped:
        offset_dims = (0, *offset_dims)
        slice_sizes = (axis_data.size, *slice_sizes)
    elif operand_dim is not_mapped:
        # Two examples may read the same entry, and in any order.
        params |= {"unique_indices": False, "indices_are_sorted": False}
    else:
        slice_sizes = (min(1, axis_data.size), *slice_sizes)
        numbers = numbers._replace(
            operand_batching_dims=(0, *numbers.operand_batching_dims),
            start_indices_batching_dims=(0, *numbers.start_indices_batching_dims),
        )
    numbers = numbers._replace(offset_dims=offset_dims)
    return gather(operand, indices, numbers, slice_sizes, **params), 0


# ----------------------------------------------------------------------------------
# Lowering
# ----------------------------------------------------------------------------------


@gather_p.def_lowering
def _gather_lowering(
    ctx,
    operand,
    indices,
    *,
    dimension_numbers,
    slice_sizes,
    mode,
    fill_value,
    **promises,
) -> Any:
    operand_aval, indices_aval = ctx.avals_in
    (out_aval,) = ctx.avals_out
    numbers = dimension_numbers
    physical = language.physical_aval(operand_aval)
    if physical is not operand_aval:
        # The bits of a typed key are more axes of every block.
        slice_sizes = (*slice_sizes, *physical.shape[operand_aval.ndim :])
        out_physical = language.physical_aval(out_aval)
        trailing = range(out_aval.ndim, out_physical.ndim)
        numbers = numbers._replace(offset_dims=(*numbers.offset_dims, *trailing))
        ctx = ctx.replace(avals_in=[physical, indices_aval], avals_out=[out_physical])
        out_aval = out_physical
    if mode is GatherScatterMode.FILL_OR_DROP:
        params = {"numbers": numbers, "slice_sizes": slice_sizes, **promises}
        params["fill_value"] = fill_value
        return ctx.lower_fun(_gather_or_fill, operand, indices, **params)
    if mode is GatherScatterMode.ONE_HOT:
        raise ValueError(
            'gather has no mode "one_hot": use `x.at[i].get(mode="one_hot")`, which '
            "multiplies by a one-hot matrix instead."
        )
    if not out_aval.size:
        return ctx.full_like(0, out_aval)
    attribute = hlo.stablehlo.GatherDimensionNumbers.get(
        index_vector_dim=indices_aval.ndim - 1,
        **{name: list(axes) for name, axes in numbers._asdict().items()},
    )
    is_sorted = hlo.ir.BoolAttr.get(promises["indices_are_sorted"])
    sizes = hlo.int_array(slice_sizes)
    return hlo.stablehlo.gather(
        operand, indices, attribute, sizes, indices_are_sorted=is_sorted
    )


def _vector(sizes: Sequence[Any], dtype: np.dtype) -> Any:
    """Sizes, some of which may be symbolic, as a vector."""
    if not any(map(is_symbolic, sizes)):
        return np.array(sizes, dtype)
    scalars = [
        shaping.convert_element_type(size_or_array(size), dtype) for size in sizes
    ]
    return joining.concatenate([expand_dims(x, (0,)) for x in scalars], 0)


def _gather_or_fill(
    operand: Any,
    indices: Any,
    *,
    numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    fill_value: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    """Read without checks, then put the fill value where a block did not fit."""
    shape = shaping.shape_of(operand)
    large = any(
        not is_symbolic(size) and size > np.iinfo(np.int32).max for size in shape
    )
    dtype = np.dtype(np.int64 if large else np.int32)
    bounds = [shape[axis] - slice_sizes[axis] for axis in numbers.start_index_map]
    indices = shaping.convert_element_type(indices, dtype)
    batch_rank = language.get_aval(indices).ndim - 1
    limit = expand_dims(_vector(bounds, dtype), tuple(range(batch_rank)))
    fits = comparing.bitwise_and(
        elementwise.ge(indices, dtype.type(0)), elementwise.le(indices, limit)
    )
    fits = reductions.reduce_and(fits, [batch_rank])
    out = gather(
        operand, indices, numbers, slice_sizes, indices_are_sorted=indices_are_sorted
    )
    out_shape = shaping.shape_of(out)
    batch_axes = [a for a in range(len(out_shape)) if a not in numbers.offset_dims]
    return elementwise.select(
        shaping.broadcast_in_dim(fits, out_shape, batch_axes),
        out,
        broadcasting.full_like(out, fill_value),
    )


# ----------------------------------------------------------------------------------
# gather
# ----------------------------------------------------------------------------------


def _default_fill_value(dtype: Any) -> Any:
    """NaN, the lowest signed or highest unsigned number, True: easily noticed."""
    if dtypes.is_extended(dtype):
        return np.iinfo(np.uint32).max
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtypes.issubdtype(dtype, np.signedinteger):
        return dtypes.iinfo(dtype).min
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return dtypes.iinfo(dtype).max
    if dtype == np.bool_:
        return True
    raise ValueError(f"Unsupported dtype for gather fill_value {dtype}")


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Any:
    """Read a block of `operand` at each index vector. Mostly `x[index]` is simpler.

    Args:
      operand: the array to read from.
      start_indices: integers; the vectors along the last axis say where blocks start.
      dimension_numbers: how the axes belong together, see `GatherDimensionNumbers`.
      slice_sizes: the shape of a block, one size for each axis of the operand.
      unique_indices: a promise that no entry is read twice.
      indices_are_sorted: a promise that the index vectors ascend.
      mode: "clip", "fill" or "promise_in_bounds" (the default), or a
        `GatherScatterMode`: what happens with blocks that are partly out of bounds.
      fill_value: what such blocks hold with "fill"; by default NaN, the lowest signed
        integer, the highest unsigned one, or True.

    Returns:
      An array of the operand's dtype: batch axes of the indices, with the axes of a
      block at `offset_dims`.

    Raises:
      TypeError: when shapes and dimension numbers do not fit.
      ValueError: when the indices are no integers, or for an unknown mode.
    """
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else mode
    mode = GatherScatterMode.from_any(mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = _default_fill_value(dtypes.dtype(operand))
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=language.canonicalize_shape(slice_sizes),
        unique_indices=flag_of(unique_indices, "unique_indices"),
        indices_are_sorted=flag_of(indices_are_sorted, "indices_are_sorted"),
        mode=mode,
        fill_value=fill_value,
    )


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """The blocks of `src` at vectors of indices, one vector for each of `axes`.

    Negative indices count from the end, and all are taken modulo the axis' size.
    The result has the entries of the vectors first, then the remaining axes.
    """
    shape = shaping.shape_of(src)
    columns = [expand_dims(index, (1,)) for index in idxs]
    indices = joining.concatenate(columns, 1)
    # `%` as arrays have it: with the sign of the divisor.
    sizes = expand_dims(np.array([checked_size(axis, shape) for axis in axes]), (0,))
    return gather(
        src,
        indices % sizes,
        GatherDimensionNumbers(
            offset_dims=tuple(range(1, len(shape) - len(axes) + 1)),
            collapsed_slice_dims=tuple(axes),
            start_index_map=tuple(axes),
        ),
        tuple(1 if axis in axes else size for axis, size in enumerate(shape)),
    )
