"""Reading a block of an array whose place is known while tracing: slice.

The transpose of reading a block is padding; under `vmap` the block is whole along the
new axis. For places that are computed see `dynamic_slicing.py`.

In JAX: `lax/slicing.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from minijax.core import hlo, language, rules
from minijax.core.rules import NullAccumulator, Shape, scalar_like
from minijax.core.state import state
from minijax.primitives.refs.mutable_arrays import RefAccumulator
from minijax.primitives.shape import padding
from minijax.primitives.shape.squeezing import index_of, squeeze

# ----------------------------------------------------------------------------------
# slice
# ----------------------------------------------------------------------------------


def _whole(name: str, bounds: Sequence[Any]) -> tuple[int, ...]:
    """Bounds as Python ints; TypeError for what is none, tracers among them."""
    try:
        return tuple(map(language.canonicalize_dim, bounds))
    except TypeError:
        raise TypeError(
            f"slice {name} must be whole numbers known while tracing, got "
            f"{bounds}. Use `lax.dynamic_slice` for a start that is computed."
        ) from None


def _slice_shape(
    x: language.ShapedArray, *, start_indices, limit_indices, strides
) -> Shape:
    starts, limits = start_indices, limit_indices
    if x.ndim != len(starts):
        raise TypeError(
            "slice start_indices must have length equal to the number of dimensions of "
            f"the operand, got indices {starts} for operand shape {x.shape}."
        )
    if len(starts) != len(limits):
        raise TypeError(
            "slice limit_indices must have the same length as start_indices, got "
            f"start_indices {starts} and limit_indices {limits}."
        )
    if any(limit > size for limit, size in zip(limits, x.shape)):
        raise TypeError(
            "slice limit_indices must be less than or equal to operand shape, got "
            f"limit_indices {limits} for operand shape {x.shape}."
        )
    if any(start < 0 for start in starts):
        raise TypeError(
            "slice start_indices must be greater than or equal to zero, got "
            f"start_indices of {starts}. Add the size of the axis, or use "
            "`lax.slice_in_dim`, which counts negative indices from the end."
        )
    if any(limit < start for start, limit in zip(starts, limits)):
        raise TypeError(
            "slice limit_indices must be greater than or equal to start_indices, got "
            f"start_indices {starts} and limit_indices {limits}."
        )
    spans = tuple(limit - start for start, limit in zip(starts, limits))
    if strides is None:
        return spans
    if len(strides) != x.ndim:
        raise TypeError(
            "slice strides must have length equal to the number of dimensions of the "
            f"operand, got strides {strides} for operand shape {x.shape}."
        )
    if any(stride <= 0 for stride in strides):
        raise TypeError(
            f"slice strides must be positive, got {strides}. Use `lax.rev` to reverse."
        )
    return tuple(-(-span // stride) for span, stride in zip(spans, strides))


def _slice_meaning(x, start_indices, limit_indices, strides) -> Any:
    steps = strides or (1,) * x.ndim
    return x[tuple(map(builtins.slice, start_indices, limit_indices, steps))]


slice_p = padding.slice_p
slice_p.meaning = _slice_meaning
slice_p.type_rule = rules.standard_type_rule(
    "slice", _slice_shape, lambda x, **_: x.dtype
)

# Its block is in `dynamic_slicing.py`.
dynamic_slice_p = language.register(language.Primitive("dynamic_slice"))


def _slice_transpose(ct, x, *, start_indices, limit_indices, strides) -> list:
    """Put the entries back where they came from, with zeros around and between them."""
    if isinstance(x, NullAccumulator):
        return [None]
    steps = strides or (1,) * x.ndim
    if isinstance(x, RefAccumulator):
        x.accum_at(tuple(map(builtins.slice, start_indices, limit_indices, steps)), ct)
        return [None]
    counts = language.get_aval(ct).shape
    if all(step == 1 for step in steps):
        ends = limit_indices
    else:
        ends = [
            start + (1 + (count - 1) * step if count else 0)
            for start, count, step in zip(start_indices, counts, steps)
        ]
    config = [
        (start, size - end, step - 1)
        for start, size, end, step in zip(start_indices, x.shape, ends, steps)
    ]
    return [
        padding.pad(ct, scalar_like(language.get_aval(ct).strip_weak_type(), 0), config)
    ]


rules.def_linear(slice_p, _slice_transpose)


@slice_p.def_batch
def _slice_batch(axis_data, args, dims, **params) -> Any:
    (x,), (dim,) = args, dims
    starts, limits = [*params["start_indices"]], [*params["limit_indices"]]
    strides = params["strides"]
    starts.insert(dim, 0)
    limits.insert(dim, axis_data.size)
    if strides is not None:
        strides = [*strides]
        strides.insert(dim, 1)
    return slice(x, starts, limits, strides), dim


@slice_p.def_lowering
def _slice_lowering(ctx, x, *, start_indices, limit_indices, strides) -> Any:
    (aval,) = ctx.avals_in
    trailing = language.physical_aval(aval).shape[
        aval.ndim :
    ]  # the bits of a typed key
    zeros, ones = [0] * len(trailing), [1] * len(trailing)
    return hlo.stablehlo.slice(
        x,
        hlo.int_array([*start_indices, *zeros]),
        hlo.int_array([*limit_indices, *trailing]),
        hlo.int_array([*(strides or [1] * aval.ndim), *ones]),
    )


@slice_p.def_impl
def _slice_now(x, start_indices, limit_indices, strides) -> Any:
    """Run as a dynamic slice, whose program serves for all starts of one size."""
    params = {
        "start_indices": start_indices,
        "limit_indices": limit_indices,
        "strides": strides,
    }
    aval, _ = language.type_of_application(slice_p, (language.get_aval(x),), params)
    # The checker of keys records which of them are taken.
    if strides is not None or state.debug_key_reuse:
        return language.run_eagerly.run(slice_p, (x,), params)
    sizes = {"slice_sizes": aval.shape}
    return language.run_eagerly.run(dynamic_slice_p, (x, *start_indices), sizes)


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """The block from `start_indices` up to, not including, `limit_indices`.

    Args:
      operand: an array.
      start_indices: for each axis, the first entry; not negative.
      limit_indices: for each axis, where to stop; at most its size.
      strides: for each axis, the step from entry to entry; by default 1.

    Raises:
      TypeError: when the bounds do not fit the operand.
    """
    return slice_p.bind(
        operand,
        start_indices=_whole("start_indices", start_indices),
        limit_indices=_whole("limit_indices", limit_indices),
        strides=None if strides is None else _whole("strides", strides),
    )


def checked_axis(axis: Any, shape: Sequence[int]) -> int:
    """`axis` as an int; IndexError for one that an array of this shape lacks."""
    axis = index_of(axis, "an axis")
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"axis {axis} is out of bounds for shape {tuple(shape)}.")
    return axis


def checked_size(axis: Any, shape: Sequence[int]) -> int:
    """The size along `axis`; errors as of `checked_axis`."""
    return shape[checked_axis(axis, shape)]


def slice_in_dim(
    operand: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Any:
    """`slice` along one axis; negative indices count from its end.

    `None` for a bound means the axis' own.
    """
    shape = language.get_aval(operand).shape
    axis = checked_axis(axis, shape)
    size = shape[axis]
    start = 0 if start_index is None else language.canonicalize_dim(start_index)
    limit = size if limit_index is None else language.canonicalize_dim(limit_index)
    starts, limits, strides = [0] * len(shape), [*shape], [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = language.canonicalize_dim(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The entries at one index of an axis, which has size 1 then, or is left out.

    Raises:
      IndexError: when there is no such index.
    """
    index, shape = language.canonicalize_dim(index), language.get_aval(operand).shape
    axis = checked_axis(axis, shape)
    size = shape[axis]
    wrapped = index + size if index < 0 else index
    if not 0 <= wrapped < size:
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with size {size}"
        )
    result = slice_in_dim(operand, wrapped, wrapped + 1, 1, axis)
    return result if keepdims else squeeze(result, (axis,))
