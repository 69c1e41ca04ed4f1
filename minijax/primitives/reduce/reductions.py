"""Reductions: one value for each line of entries along some axes.

Each reduces with an operation whose neutral element it starts from, so an empty line
gives that element. `argmax` and `argmin` reduce pairs of a value and its index.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.language import rules
from minijax.language.core import Primitive, ShapedArray, get_aval
from minijax.language.rules import (
    Zero,
    reduction_batch,
    scalar_like,
    standard_primitive,
)
from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.primitives.elementwise import comparing, select
from minijax.primitives.functions_in_rules import forward_mode
from minijax.primitives.shape import broadcasting, casting, shaping
from minijax.support import dtypes

# ----------------------------------------------------------------------------------
# Neutral elements
# ----------------------------------------------------------------------------------


def lowest(dtype: Any) -> np.ndarray:
    """The value that no value of a dtype lies below: where a maximum starts."""
    return _extreme(dtype, "min", -np.inf)


def highest(dtype: Any) -> np.ndarray:
    """The value that no value of a dtype lies above: where a minimum starts."""
    return _extreme(dtype, "max", np.inf)


def _extreme(dtype: Any, which: str, infinity: float) -> np.ndarray:
    if dtypes.issubdtype(dtype, np.inexact):
        if not dtypes.supports_inf(dtype):
            return np.array(getattr(dtypes.finfo(dtype), which), dtype)
        return np.array(infinity, dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return np.array(getattr(dtypes.iinfo(dtype), which), dtype)
    return np.array(which == "max", bool)


def zero(dtype: Any) -> np.ndarray:
    """Where sums, `or` and `xor` start."""
    return np.zeros((), dtype)


def one(dtype: Any) -> np.ndarray:
    """Where products start."""
    return np.ones((), dtype)


def all_bits(dtype: Any) -> np.ndarray:
    """Where `and` starts: every bit set."""
    return np.array(-1).astype(dtype)


# ----------------------------------------------------------------------------------
# The family
# ----------------------------------------------------------------------------------


def _reduced_shape(x: ShapedArray, *, axes: Any, **_: Any) -> tuple[int, ...]:
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= axis < x.ndim for axis in axes):
        raise ValueError(
            f"reduction axes {axes} contains out-of-bounds indices for "
            f"{x.str_short(True)}."
        )
    return tuple(size for axis, size in enumerate(x.shape) if axis not in axes)


def _lowering(combine: str, neutral: Callable) -> Callable:
    """A StableHLO reduction whose body is one operation on scalars."""

    def lower(ctx: Any, x: Any, *, axes: Any, **_: Any) -> Any:
        dtype = ctx.avals_out[0].dtype
        reduce = hlo.stablehlo.ReduceOp(
            [ctx.result_type()],
            [x],
            [ctx.constant(neutral(dtype))],
            hlo.int_array(axes),
        )
        scalar = hlo.tensor_type((), dtype)
        body = reduce.regions[0].blocks.append(scalar, scalar)
        with hlo.ir.InsertionPoint(body):
            hlo.stablehlo.return_([combine_values(combine, dtype, *body.arguments)])
        return reduce.result

    return lower


def combine_values(operation: str, dtype: Any, x: Any, y: Any) -> Any:
    """One operation of StableHLO; extrema of complex numbers go by real, then imag."""
    stablehlo = hlo.stablehlo
    if operation not in ("maximum", "minimum") or not dtypes.issubdtype(
        dtype, np.complexfloating
    ):
        return getattr(stablehlo, operation)(x, y)
    part = np.empty(0, dtype).real.dtype
    direction = "GT" if operation == "maximum" else "LT"
    real_x, real_y = stablehlo.real(x), stablehlo.real(y)
    imag_x, imag_y = stablehlo.imag(x), stablehlo.imag(y)
    first = stablehlo.select(
        casting.compare(real_x, real_y, "EQ", part),
        casting.compare(imag_x, imag_y, direction, part),
        casting.compare(real_x, real_y, direction, part),
    )
    return stablehlo.select(first, x, y)


def _reduction(
    name: str,
    combine: str,
    neutral: Callable,
    meaning: Callable,
    accepted: set = rules.anything,
    keeps_weak_type: bool = True,
) -> Primitive:
    """A reduction of one operand over `axes`.

    In JAX: `lax/lax.py`, `_unary_reduce_lower` and the `standard_primitive`s beside it.
    """

    def dtype_rule(x: ShapedArray, **_: Any) -> Any:
        if accepted is not rules.anything:
            rules.check_accepted(name, "", accepted, x.dtype)
        return x.dtype

    primitive = standard_primitive(
        name,
        _reduced_shape,
        dtype_rule,
        weak_type_rule=None if keeps_weak_type else lambda *avals, **_: False,
        meaning=meaning,
    )
    primitive.batch = reduction_batch(primitive)
    primitive.def_lowering(_lowering(combine, neutral))
    return primitive


def _in_numpy(combine: Any, neutral: Callable) -> Callable:
    def meaning(x: np.ndarray, *, axes: Any, **_: Any) -> np.ndarray:
        out = combine.reduce(x, axis=axes, initial=neutral(x.dtype)[()])
        return np.asarray(out, x.dtype)

    return meaning


# ----------------------------------------------------------------------------------
# Sums
# ----------------------------------------------------------------------------------

_numbers = {np.number}

reduce_sum_p = _reduction(
    "reduce_sum",
    "add",
    zero,
    lambda x, axes, out_sharding: np.sum(x, axis=axes, dtype=x.dtype),
    _numbers,
)


def _reduce_sum_transpose(ct: Any, x: Any, *, axes: Any, out_sharding: Any) -> list:
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    return [broadcasting.broadcast_in_dim(ct, x.shape, kept)]


rules.def_linear(reduce_sum_p, _reduce_sum_transpose)


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The sum of the entries along `axes`, in the operand's dtype.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are no numbers.
    """
    return reduce_sum_p.bind(operand, axes=tuple(axes), out_sharding=out_sharding)


# ----------------------------------------------------------------------------------
# Products
# ----------------------------------------------------------------------------------

reduce_prod_p = _reduction(
    "reduce_prod",
    "multiply",
    one,
    lambda x, axes: np.prod(x, axis=axes, dtype=x.dtype),
    _numbers,
)


def jvp_as_tree(
    combine: Callable,
    units: Sequence[Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    axes: tuple[int, ...],
) -> tuple[list[Any], list[Any]]:
    """The derivative of a reduction, which is written as a tree of `combine`.

    The reduced axes are made one, its halves combined, and so on until one entry is
    left. `combine(*lefts, *rights)` gives a list, like the operands; `units` are their
    neutral elements, scalars. Returns (reduced operands, their tangents).

    In JAX: `lax/lax.py`, `_reduce_jvp`.
    """
    from minijax.primitives.shape import slicing

    shape = get_aval(primals[0]).shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    kept_shape = tuple(shape[axis] for axis in kept)
    length = int(np.prod([shape[axis] for axis in axes], dtype=int))
    flat_shape = (length, *kept_shape)

    def flatten(value: Any) -> Any:
        if type(value) is Zero:
            return Zero(value.aval.update(shape=flat_shape))
        return shaping.reshape(value, flat_shape, (*axes, *kept))

    def tree(*values: Any) -> list[Any]:
        while (count := get_aval(values[0]).shape[0]) > 1:
            half = (count + 1) // 2
            left = [slicing.slice_in_dim(value, 0, half) for value in values]
            right = [slicing.slice_in_dim(value, half, None) for value in values]
            if count != 2 * half:
                edges = [(0, 1, 0)] + [(0, 0, 0)] * len(kept)
                right = [shaping.pad(x, unit, edges) for x, unit in zip(right, units)]
            values = combine(*left, *right)
        if length == 0:
            return [broadcasting.full(kept_shape, unit) for unit in units]
        return [shaping.squeeze(value, (0,)) for value in values]

    flat = [flatten(x) for x in primals]
    return forward_mode.run(tree, flat, [flatten(t) for t in tangents])


@reduce_prod_p.def_jvp_rule
def _reduce_prod_jvp(primals: Any, tangents: Any, *, axes: Any) -> Any:
    """As a tree, so that no zero among the factors spoils it.

    Dividing the product by each factor would be shorter, and NaN where one is zero.
    """
    unit = scalar_like(get_aval(primals[0]), 1)
    (out,), (out_tangent,) = jvp_as_tree(
        lambda x, y: [elementwise.mul(x, y)], [unit], primals, tangents, axes
    )
    return out, out_tangent


reduce_prod_p.without("transpose", "its jvp is written with products of two")


def reduce_prod(operand: Any, axes: Sequence[int]) -> Any:
    """The product of the entries along `axes`, in the operand's dtype.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are no numbers.
    """
    return reduce_prod_p.bind(operand, axes=tuple(axes))


# ----------------------------------------------------------------------------------
# Extrema
# ----------------------------------------------------------------------------------

reduce_max_p = _reduction(
    "reduce_max", "maximum", lowest, _in_numpy(np.maximum, lowest)
)
reduce_min_p = _reduction(
    "reduce_min", "minimum", highest, _in_numpy(np.minimum, highest)
)


def _chosen_tangent(t: Any, out: Any, x: Any, *, axes: Any) -> Any:
    """The mean of the tangents of all entries that are the extremum."""
    kept = [1 if axis in axes else d for axis, d in enumerate(get_aval(x).shape)]
    chosen = casting.convert_element_type(
        comparing.eq(x, shaping.reshape(out, kept)), get_aval(t).dtype
    )
    count = reduce_sum(chosen, axes)
    return elementwise.div(reduce_sum(elementwise.mul(t, chosen), axes), count)


for _primitive in (reduce_max_p, reduce_min_p):
    rules.def_jvp_with_output(_primitive, _chosen_tangent)
    _primitive.without("transpose", "its jvp is written with sums and products")


def reduce_max(operand: Any, axes: Sequence[int]) -> Any:
    """The largest entry along `axes`; NaN if there is one; complex by real, then imag.

    Raises:
      ValueError: when an axis is named twice or does not exist.
    """
    return reduce_max_p.bind(operand, axes=tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int]) -> Any:
    """The smallest entry along `axes`; NaN if there is one; complex by real, then imag.

    Raises:
      ValueError: when an axis is named twice or does not exist.
    """
    return reduce_min_p.bind(operand, axes=tuple(axes))


# ----------------------------------------------------------------------------------
# Bits
# ----------------------------------------------------------------------------------


def _bit_reduction(name: str, combine: str, neutral: Callable, ufunc: Any) -> Primitive:
    primitive = _reduction(
        name,
        combine,
        neutral,
        _in_numpy(ufunc, neutral),
        rules.bool_or_int,
        keeps_weak_type=False,
    )
    rules.def_zero_jvp(primitive)
    return primitive


reduce_and_p = _bit_reduction("reduce_and", "and_", all_bits, np.bitwise_and)
reduce_or_p = _bit_reduction("reduce_or", "or_", zero, np.bitwise_or)
reduce_xor_p = _bit_reduction("reduce_xor", "xor", zero, np.bitwise_xor)


def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    """The `and` of booleans, or of the bits of integers, along `axes`.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are neither booleans nor integers.
    """
    return reduce_and_p.bind(operand, axes=tuple(axes))


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """The `or` of booleans, or of the bits of integers, along `axes`.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are neither booleans nor integers.
    """
    return reduce_or_p.bind(operand, axes=tuple(axes))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """The exclusive `or` of booleans, or of the bits of integers, along `axes`.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are neither booleans nor integers.
    """
    return reduce_xor_p.bind(operand, axes=tuple(axes))


# ----------------------------------------------------------------------------------
# Where the extremum is
# ----------------------------------------------------------------------------------


def _arg_shape(x: ShapedArray, *, axes: Any, index_dtype: Any) -> tuple[int, ...]:
    (axis,) = axes
    if not 0 <= axis < x.ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
    if x.shape[axis] < 1:
        raise ValueError(
            "argmin and argmax require non-empty reduced dimension. "
            f"operand.shape={x.shape} axis={axis}"
        )
    return x.shape[:axis] + x.shape[axis + 1 :]


def _arg_dtype(x: ShapedArray, *, axes: Any, index_dtype: Any) -> Any:
    if not dtypes.issubdtype(index_dtype, np.integer):
        raise TypeError(
            "index_dtype must be an integer type, but got "
            f"{dtypes.dtype_name(index_dtype)}"
        )
    return index_dtype


def _arg_lowering(better: Callable, neutral: Callable) -> Callable:
    """A reduction of pairs: the better value wins, NaN before all, then the index."""

    def winner(x: Any, x_index: Any, y: Any, y_index: Any) -> list[Any]:
        wins = comparing.bitwise_or(better(x, y), comparing.ne(x, x))
        tied = comparing.bitwise_and(comparing.eq(x, y), comparing.lt(x_index, y_index))
        first = comparing.bitwise_or(wins, tied)
        return [select.select(wins, x, y), select.select(first, x_index, y_index)]

    def lower(ctx: Any, x: Any, *, axes: Any, index_dtype: Any) -> Any:
        (aval,), (out_aval,) = ctx.avals_in, ctx.avals_out
        (axis,) = axes
        indices = hlo.stablehlo.iota(
            hlo.tensor_type(aval.shape, index_dtype), hlo.int_attribute(axis)
        )
        starts = [ctx.constant(neutral(aval.dtype)), ctx.constant(zero(index_dtype))]
        reduce = hlo.stablehlo.ReduceOp(
            [hlo.tensor_type(out_aval.shape, aval.dtype), ctx.result_type()],
            [x, indices],
            starts,
            hlo.int_array(axes),
        )
        scalars = [ShapedArray((), aval.dtype), ShapedArray((), index_dtype)] * 2
        types = [hlo.tensor_type((), scalar.dtype) for scalar in scalars]
        body = reduce.regions[0].blocks.append(*types)
        with hlo.ir.InsertionPoint(body):
            inner = ctx.replace(avals_in=scalars)
            hlo.stablehlo.return_(inner.lower_fun(winner, *body.arguments))
        return reduce.results[1]

    return lower


def _arg_reduction(
    name: str, better: Callable, neutral: Callable, meaning: Callable
) -> Primitive:
    primitive = standard_primitive(
        name,
        _arg_shape,
        _arg_dtype,
        weak_type_rule=lambda *avals, **_: False,
        meaning=lambda x, axes, index_dtype: np.asarray(
            meaning(x, axis=axes[0]), index_dtype
        ),
    )
    primitive.batch = reduction_batch(primitive)
    primitive.def_lowering(_arg_lowering(better, neutral))
    rules.def_zero_jvp(primitive)
    return primitive


argmin_p = _arg_reduction("argmin", lambda x, y: comparing.lt(x, y), highest, np.argmin)
argmax_p = _arg_reduction("argmax", lambda x, y: comparing.gt(x, y), lowest, np.argmax)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The first index of the smallest entry along `axis`; of NaN, if there is one.

    Raises:
      ValueError: when the axis does not exist or has no entries.
      TypeError: when `index_dtype` is no integer dtype.
    """
    index_dtype = dtypes.check_and_canonicalize_user_dtype(index_dtype, "argmin")
    return argmin_p.bind(operand, axes=(axis,), index_dtype=index_dtype)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The first index of the largest entry along `axis`; of NaN, if there is one.

    Raises:
      ValueError: when the axis does not exist or has no entries.
      TypeError: when `index_dtype` is no integer dtype.
    """
    index_dtype = dtypes.check_and_canonicalize_user_dtype(index_dtype, "argmax")
    return argmax_p.bind(operand, axes=(axis,), index_dtype=index_dtype)
