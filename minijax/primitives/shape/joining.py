"""Joining and splitting arrays: concatenate and split, stack and unstack.

In each pair one is the transpose of the other.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import hlo, rules
from minijax.core.array import Array
from minijax.core.language import ShapedArray, canonicalize_dim, get_aval, physical_aval
from minijax.core.rules import Shape, Zero, def_linear, instantiate, not_mapped
from minijax.primitives import families
from minijax.primitives.shape.casting import asarray
from minijax.primitives.shape.squeezing import canonicalize_axis, index_of

# XLA's CPU compiler is slow with very many operands: they are joined in a tree.
_MOST_OPERANDS = 16

# ----------------------------------------------------------------------------------
# concatenate
# ----------------------------------------------------------------------------------


def _shapes_text(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(str(aval.shape) for aval in avals)


def _concatenate_shape(*avals: ShapedArray, dimension: int) -> Shape:
    if not avals:
        raise TypeError("concatenate expects at least one operand, got 0.")
    first = avals[0].shape
    if any(aval.ndim != len(first) for aval in avals):
        raise TypeError(
            "Cannot concatenate arrays with different numbers of dimensions: got "
            f"{_shapes_text(avals)}."
        )
    if not 0 <= dimension < len(first):
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes "
            f"{_shapes_text(avals)}."
        )
    before, behind = first[:dimension], first[dimension + 1 :]
    for aval in avals:
        if (aval.shape[:dimension], aval.shape[dimension + 1 :]) != (before, behind):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other "
                "than the one being concatenated: concatenating along dimension "
                f"{dimension} for shapes {_shapes_text(avals)}."
            )
    return (*before, sum(aval.shape[dimension] for aval in avals), *behind)


def _same_dtype(name: str, *avals: ShapedArray, **_: int) -> Any:
    rules.check_same_dtypes(name, avals)
    return avals[0].dtype


concatenate_p = rules.standard_primitive(
    "concatenate",
    _concatenate_shape,
    functools.partial(_same_dtype, "concatenate"),
    meaning=lambda *arrays, dimension: np.concatenate(arrays, dimension),
)


def _concatenate_transpose(ct, *operands, dimension: int) -> list:
    sizes = tuple(_aval_of(operand).shape[dimension] for operand in operands)
    parts = split(ct, sizes, axis=dimension)
    return [part if rules.is_linear(x) else None for part, x in zip(parts, operands)]


def _aval_of(operand: Any) -> Any:
    return operand.aval if rules.is_linear(operand) else get_aval(operand)


def_linear(concatenate_p, _concatenate_transpose)


@concatenate_p.def_batch
def _concatenate_batch(axis_data, args, dims, *, dimension: int) -> Any:
    return concatenate(families.all_at_front(axis_data, args, dims), dimension + 1), 0


@concatenate_p.def_lowering
def _concatenate_lowering(ctx, *operands, dimension: int) -> Any:
    attribute = hlo_parts.int_attribute(dimension)
    parts = list(operands)
    while len(parts) > 1:
        parts = [
            hlo.stablehlo.concatenate(parts[i : i + _MOST_OPERANDS], attribute)
            for i in range(0, len(parts), _MOST_OPERANDS)
        ]
    return parts[0]


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays joined end to end along an existing axis.

    Args:
      operands: arrays of one dtype, equal in shape but along `dimension`.
      dimension: the axis, counted from the front.

    Raises:
      ValueError: without arrays.
      TypeError: when shapes or dtypes do not fit.
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=index_of(dimension, "dimension"))


# ----------------------------------------------------------------------------------
# split
# ----------------------------------------------------------------------------------


def _split_type(x: ShapedArray, *, sizes, axis: int) -> list[ShapedArray]:
    if any(size < 0 for size in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {[*sizes]}")
    if x.shape[axis] != sum(sizes):
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the "
            f"operand shape {list(x.shape)}"
        )
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    return [x.update(shape=(*before, size, *behind), sharding=None) for size in sizes]


split_p = families.several_results(
    "split",
    _split_type,
    lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
)


def _split_transpose(cts, x, *, sizes, axis: int) -> list:
    if all(type(ct) is Zero for ct in cts):
        return [None]
    return [concatenate([instantiate(ct) for ct in cts], dimension=axis)]


def_linear(split_p, _split_transpose)


@split_p.def_batch
def _split_batch(axis_data, args, dims, *, sizes, axis: int) -> Any:
    (x,), (dim,) = args, dims
    return split(x, sizes, axis + (axis >= dim)), [dim] * len(sizes)


def _slice(ctx: Any, x: Any, axis: int, start: int, stop: int) -> Any:
    """The entries from `start` to before `stop` along one axis, as StableHLO."""
    physical = physical_aval(ctx.avals_in[0])
    starts, stops = [0] * physical.ndim, list(physical.shape)
    starts[axis], stops[axis] = start, stop
    steps = hlo.int_array([1] * physical.ndim)
    return hlo.stablehlo.slice(x, hlo.int_array(starts), hlo.int_array(stops), steps)


@split_p.def_lowering
def _split_lowering(ctx, x, *, sizes, axis: int) -> list:
    parts, start = [], 0
    for size in sizes:
        parts.append(_slice(ctx, x, axis, start, start + size))
        start += size
    return parts


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """`operand` cut along an axis into pieces of given sizes.

    Raises:
      ValueError: when the sizes are negative or do not add up to the axis's size, or
        there is no such axis.
    """
    operand = asarray(operand)
    return split_p.bind(
        operand,
        sizes=tuple(map(canonicalize_dim, sizes)),
        axis=canonicalize_axis(axis, get_aval(operand).ndim),
    )


# ----------------------------------------------------------------------------------
# stack
# ----------------------------------------------------------------------------------


def _stack_shape(*avals: ShapedArray, axis: int) -> Shape:
    first = avals[0].shape
    if any(aval.ndim != len(first) for aval in avals):
        raise ValueError(
            "Cannot stack arrays with different numbers of dimensions: got "
            f"{_shapes_text(avals)}."
        )
    if any(aval.shape != first for aval in avals):
        raise ValueError(
            f"All input arrays must have the same shape. Got {_shapes_text(avals)}."
        )
    return (*first[:axis], len(avals), *first[axis:])


stack_p = rules.standard_primitive(
    "stack",
    _stack_shape,
    functools.partial(_same_dtype, "stack"),
    meaning=lambda *arrays, axis: np.stack(arrays, axis),
)


def _stack_transpose(ct, *operands, axis: int) -> list:
    parts = unstack_p.bind(ct, axis=axis)
    return [part if rules.is_linear(x) else None for part, x in zip(parts, operands)]


def_linear(stack_p, _stack_transpose)


@stack_p.def_batch
def _stack_batch(axis_data, args, dims, *, axis: int) -> Any:
    dim = dims[0]
    if dim is not not_mapped and all(d == dim for d in dims):
        if axis <= dim:
            return stack_p.bind(*args, axis=axis), dim + 1
        return stack_p.bind(*args, axis=axis + 1), dim
    return stack_p.bind(*families.all_at_front(axis_data, args, dims), axis=axis + 1), 0


@stack_p.def_lowering
def _stack_lowering(ctx, *operands, axis: int) -> Any:
    aval = ctx.avals_in[0]
    shape = (*aval.shape[:axis], 1, *aval.shape[axis:])
    dims = [d for d in range(len(shape)) if d != axis]
    expanded = [ctx.broadcast_in_dim(x, aval, shape, dims) for x in operands]
    return _concatenate_lowering(ctx, *expanded, dimension=axis)


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape and dtype, side by side along a new axis.

    Raises:
      ValueError: without arrays, when shapes differ, or when there is no such axis.
      TypeError: when dtypes differ.
    """
    arrays = [asarray(operand) for operand in operands]
    if not arrays:
        raise ValueError("stack expects at least one operand, got 0.")
    axis = canonicalize_axis(axis, get_aval(arrays[0]).ndim + 1)
    return stack_p.bind(*arrays, axis=axis)


# ----------------------------------------------------------------------------------
# unstack
# ----------------------------------------------------------------------------------


def _unstack_type(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    if x.ndim == 0:
        raise ValueError(
            "unstack requires arrays with rank > 0, however a scalar was passed."
        )
    part = x.update(shape=x.shape[:axis] + x.shape[axis + 1 :], sharding=None)
    return [part] * x.shape[axis]


unstack_p = families.several_results(
    "unstack",
    _unstack_type,
    lambda x, axis: [np.take(x, i, axis) for i in range(x.shape[axis])],
)


def _unstack_transpose(cts, x, *, axis: int) -> list:
    if all(type(ct) is Zero for ct in cts):
        return [None]
    return [stack_p.bind(*(instantiate(ct) for ct in cts), axis=axis)]


def_linear(unstack_p, _unstack_transpose)


@unstack_p.def_batch
def _unstack_batch(axis_data, args, dims, *, axis: int) -> Any:
    (x,), (dim,) = args, dims
    if axis < dim:
        out, out_dim = unstack_p.bind(x, axis=axis), dim - 1
    else:
        out, out_dim = unstack_p.bind(x, axis=axis + 1), dim
    return out, [out_dim] * len(out)


@unstack_p.def_lowering
def _unstack_lowering(ctx, x, *, axis: int) -> list:
    return [
        hlo.stablehlo.reshape(ctx.result_type(i), _slice(ctx, x, axis, i, i + 1))
        for i in range(len(ctx.avals_out))
    ]


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of `x` along an axis, without that axis.

    Raises:
      ValueError: when there is no such axis.
    """
    array = asarray(x)
    axis = canonicalize_axis(axis, get_aval(array).ndim)
    return tuple(unstack_p.bind(array, axis=axis))
