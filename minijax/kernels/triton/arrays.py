"""Operations of a kernel on a GPU that arrange, reduce and multiply arrays.

A scalar and a tensor of one element are different things there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import arithmetic as elementwise
from minijax.core import hlo
from minijax.core.language import ShapedArray
from minijax.kernels.kernel_rules import RuleContext, kind_of
from minijax.kernels.triton.kernel_context import (
    arange,
    element_of,
    expanded,
    filled,
    gpu,
    placed_at,
    rule,
    shape_of,
    splat,
    tensor_type,
)
from minijax.primitives.elementwise import comparing, extrema

# ----------------------------------------------------------------------------------
# Shapes
# ----------------------------------------------------------------------------------


def reshaped(value: Any, shape: Sequence[int]) -> Any:
    """A value with the same elements, in their order, in another shape."""
    own = shape_of(value)
    if own == tuple(shape):
        return value
    if not own:
        return splat(value, shape)
    tt = dialect("tt")
    if shape:
        return tt.reshape(tensor_type(shape, element_of(value)), value)
    flat = tt.reshape(tensor_type((1,), element_of(value)), value)
    return _reduced([flat], 0, lambda a, b: [a[0]])[0]


@rule("reshape")
def _reshape(ctx: RuleContext, x: Any, *, dimensions: Any, **_: Any) -> Any:
    if dimensions is not None:
        raise NotImplementedError("reshape with `dimensions`; transpose first.")
    return reshaped(x, ctx.avals_out[0].shape)


@rule("squeeze")
def _squeeze(ctx: RuleContext, x: Any, **_: Any) -> Any:
    return reshaped(x, ctx.avals_out[0].shape)


@rule("broadcast_in_dim")
def _broadcast_in_dim(
    ctx: RuleContext, x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any
) -> Any:
    """First the axes that are new as axes of 1, then all repeated."""
    if not shape_of(x):
        return splat(x, shape)
    for axis in range(len(shape)):
        if axis not in broadcast_dimensions:
            x = dialect("tt").expand_dims(x, axis)
    return expanded(x, shape)


@rule("transpose")
def _transpose(ctx: RuleContext, x: Any, *, permutation: Sequence[int]) -> Any:
    return dialect("tt").trans(x, list(permutation))


@rule("iota")
def _iota(ctx: RuleContext, *, shape: Any, dimension: int, **_: Any) -> Any:
    (aval,) = ctx.avals_out
    steps = placed_at(arange(shape[dimension]), dimension, len(shape))
    steps = expanded(steps, shape)
    return _converted(steps, ShapedArray(tuple(shape), np.dtype(np.int32)), aval, ctx)


def _converted(value: Any, before: Any, after: Any, ctx: RuleContext) -> Any:
    """A value of one type as one of another dtype."""
    if before.dtype == after.dtype:
        return value
    convert = gpu.rule_of("convert_element_type")
    assert convert is not None
    inner = RuleContext(ctx.kernel, ctx.eqn, [before], [after])
    return convert(inner, value, new_dtype=after.dtype)


@rule("concatenate")
def _concatenate(ctx: RuleContext, *values: Any, dimension: int) -> Any:
    """Two tensors of one shape along a new last axis, which then is moved."""
    if len(values) != 2 or shape_of(values[0]) != shape_of(values[1]):
        raise NotImplementedError("Triton joins two arrays of one shape: broadcast.")
    tt, shape = dialect("tt"), shape_of(values[0])
    joined = tt.join(tensor_type((*shape, 2), element_of(values[0])), *values)
    order = [*range(dimension), len(shape), *range(dimension, len(shape))]
    return reshaped(tt.trans(joined, order), ctx.avals_out[0].shape)


# ----------------------------------------------------------------------------------
# Reductions
# ----------------------------------------------------------------------------------

Combine = Callable[[list[Any], list[Any]], list[Any]]


def _reduced(values: Sequence[Any], axis: int, combine: Combine) -> list[Any]:
    """Tensors reduced together along an axis; `combine` gets two of their elements."""
    tt = dialect("tt")
    operation = tt.ReduceOp(list(values), axis)
    with _body(operation, values) as (one, other):
        tt.reduce_return(combine(one, other))
    return list(operation.results)


@contextlib.contextmanager
def _body(operation: Any, values: Sequence[Any]) -> Iterator[tuple[list, list]]:
    """Context: the block of an operation that combines elements, two of each tensor."""
    kinds = [element_of(value) for value in values]
    block = operation.regions[0].blocks.append(*kinds, *kinds)
    given = list(block.arguments)
    with hlo.ir.InsertionPoint(block):
        yield given[: len(kinds)], given[len(kinds) :]


_COMBINED: dict[str, Callable[..., Any]] = {
    "reduce_sum": elementwise.add,
    "reduce_prod": elementwise.mul,
    "reduce_max": extrema.max,
    "reduce_min": extrema.min,
    "reduce_and": comparing.bitwise_and,
    "reduce_or": comparing.bitwise_or,
    "reduce_xor": comparing.bitwise_xor,
    "cumsum": elementwise.add,
    "cumprod": elementwise.mul,
    "cummax": extrema.max,
    "cummin": extrema.min,
}


def _combine(ctx: RuleContext) -> Combine:
    """How two elements of the equation's operand become one."""
    (aval,) = ctx.avals_in
    scalar = ShapedArray((), aval.dtype)
    inner = RuleContext(ctx.kernel, ctx.eqn, [scalar, scalar], [scalar])
    function = _COMBINED[ctx.eqn.primitive.name]
    return lambda one, other: [inner.lower_fun(function, *one, *other)]


@rule(*(name for name in _COMBINED if name.startswith("reduce")))
def _reduce(ctx: RuleContext, x: Any, *, axes: Sequence[int], **_: Any) -> Any:
    for axis in sorted(axes, reverse=True):
        (x,) = _reduced([x], axis, _combine(ctx))
    return x


@rule(*(name for name in _COMBINED if name.startswith("cum")))
def _cumulative(ctx: RuleContext, x: Any, *, axis: int, reverse: bool) -> Any:
    tt = dialect("tt")
    operation = tt.ScanOp([x], axis, reverse)
    with _body(operation, [x]) as (one, other):
        tt.scan_return(_combine(ctx)(one, other))
    return operation.results[0]


@rule("argmax", "argmin")
def _arg(ctx: RuleContext, x: Any, *, axes: Sequence[int], index_dtype: Any) -> Any:
    """Value and index are reduced together; of equal values the first one is kept."""
    (axis,) = axes
    (aval,), (result,) = ctx.avals_in, ctx.avals_out
    shape = aval.shape
    places = expanded(placed_at(arange(shape[axis]), axis, len(shape)), shape)
    scalar, index = ShapedArray((), aval.dtype), ShapedArray((), np.dtype(np.int32))
    inner = RuleContext(
        ctx.kernel, ctx.eqn, [scalar, index, scalar, index], [scalar, index]
    )
    better = elementwise.gt if ctx.eqn.primitive.name == "argmax" else elementwise.lt
    is_float = kind_of(aval.dtype) == "float"

    def takes_first(x: Any, i: Any, y: Any, j: Any) -> Any:
        first = comparing.bitwise_and(elementwise.eq(x, y), elementwise.lt(i, j))
        first = comparing.bitwise_or(first, better(x, y))
        if not is_float:
            return first
        # A NaN is the largest and the smallest.
        nan, other = elementwise.ne(x, x), elementwise.ne(y, y)
        early = comparing.bitwise_and(nan, elementwise.lt(i, j))
        alone = comparing.bitwise_and(nan, comparing.bitwise_not(other))
        return comparing.bitwise_or(first, comparing.bitwise_or(early, alone))

    def combine(one: list[Any], other: list[Any]) -> list[Any]:
        chosen = inner.lower_fun(takes_first, *one, *other)
        select = dialect("arith").select
        return [select(chosen, a, b) for a, b in zip(one, other)]

    _, found = _reduced([x, places], axis, combine)
    return _converted(found, result.update(dtype=np.dtype(np.int32)), result, ctx)


# ----------------------------------------------------------------------------------
# Products
# ----------------------------------------------------------------------------------

# The tensor cores multiply blocks; the smallest have so many rows and columns.
_SMALLEST = 16


@rule("dot_general")
def _dot_general(
    ctx: RuleContext,
    x: Any,
    y: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    **_: Any,
) -> Any:
    """A product on the tensor cores, added to zeros of the type that they add in."""
    (x_contracting, y_contracting), (x_batch, y_batch) = dimension_numbers
    x_aval, y_aval = ctx.avals_in
    batch = len(x_batch)
    if (
        (x_aval.ndim, y_aval.ndim) != (batch + 2, batch + 2)
        or batch > 1
        or [*x_batch, *y_batch] != [*range(batch)] * 2
        or len(x_contracting) != 1
    ):
        raise NotImplementedError(
            f"a product of {x_aval} and {y_aval}: Triton multiplies matrices, with at "
            "most one batch axis, which comes first. Write other sums as "
            "`(a * b).sum(axis)`."
        )
    if x_contracting[0] == batch:
        x = dialect("tt").trans(x, [*range(batch), batch + 1, batch])
    if y_contracting[0] == batch + 1:
        y = dialect("tt").trans(y, [*range(batch), batch + 1, batch])
    for size in (*shape_of(x)[batch:], *shape_of(y)[batch:]):
        if size < _SMALLEST:
            raise NotImplementedError(
                f"a product of {shape_of(x)} and {shape_of(y)}: rows, columns and what "
                f"is summed over have at least {_SMALLEST} elements in Triton."
            )
    (result,) = ctx.avals_out
    sums = ShapedArray(result.shape, _sum_dtype(x_aval.dtype, y_aval.dtype))
    product = dialect("tt").dot(
        x, y, filled(0, sums), input_precision=_precision(precision)
    )
    return _converted(product, sums, result, ctx)


def _sum_dtype(x: Any, y: Any) -> Any:
    """What products of these dtypes are added in."""
    if x != y:
        raise NotImplementedError(
            f"a product of {x} and {y}; convert one of them with `.astype`."
        )
    if kind_of(x) == "float":
        return np.dtype(np.float64 if x.itemsize == 8 else np.float32)
    if np.dtype(x) != np.dtype(np.int8):
        raise NotImplementedError(f"a product of {x}; of integers it is int8.")
    return np.dtype(np.int32)


def _precision(precision: Any) -> Any:
    """float32 is rounded to tf32 before the product, unless HIGHEST is asked for."""
    tt = dialect("tt")
    given = precision if isinstance(precision, (tuple, list)) else [precision]
    names = {str(p).rsplit(".", 1)[-1].upper() for p in given}
    if names <= {"NONE", "DEFAULT", "TF32_TF32_F32"}:
        return tt.InputPrecision.TF32
    if names <= {"HIGHEST", "F32_F32_F32", "HIGH"}:
        return tt.InputPrecision.IEEE
    raise NotImplementedError(f"precision={precision}; give DEFAULT or HIGHEST.")
