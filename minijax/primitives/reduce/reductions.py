"""Reductions: one value in place of all entries along some axes.

`sums.py` has the family and sums; here are products, extrema, bits, and `argmax` and
`argmin`, which reduce pairs of a value and its index.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import autodiff, dtypes, hlo, rules, shaping
from minijax.core.arithmetic import div, eq, mul
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.shaping import convert_element_type, reshape
from minijax.core.sums import reduce_sum, reduction, zero
from minijax.primitives.elementwise import comparing, extrema
from minijax.primitives.shape import broadcasting, padding, slicing
from minijax.primitives.shape.squeezing import index_of, indices_of, squeeze
from minijax.support import element_types

# ----------------------------------------------------------------------------------
# Neutral elements
# ----------------------------------------------------------------------------------


def lowest(dtype: Any) -> np.ndarray:
    """The lowest value of a dtype: where a maximum starts."""
    return extreme(dtype, "min", -np.inf)


def extreme(dtype: Any, which: str, infinity: float) -> np.ndarray:
    """The least ("min") or greatest ("max") value of a dtype, infinite if it can be."""
    if dtypes.issubdtype(dtype, np.inexact):
        if not element_types.supports_inf(dtype):
            return np.array(getattr(dtypes.finfo(dtype), which), dtype)
        return np.array(infinity, dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return np.array(getattr(dtypes.iinfo(dtype), which), dtype)
    return np.array(which == "max", bool)


def highest(dtype: Any) -> np.ndarray:
    """The largest value of a dtype: where a minimum starts."""
    return extreme(dtype, "max", np.inf)


def one(dtype: Any) -> np.ndarray:
    """Where products start."""
    return np.ones((), dtype)


def all_bits(dtype: Any) -> np.ndarray:
    """Where `and` starts: every bit set."""
    return np.array(-1).astype(dtype)


def in_numpy(ufunc: Any, neutral: Callable) -> Callable:
    """The meaning of a reduction that a ufunc of NumPy computes."""

    def meaning(x: Any, *, axes: rules.Shape) -> Any:
        out = ufunc.reduce(x, axis=axes, initial=neutral(x.dtype)[()])
        return np.asarray(out, x.dtype)

    return meaning


# ----------------------------------------------------------------------------------
# Products
# ----------------------------------------------------------------------------------

reduce_prod_p = reduction(
    register(Primitive("reduce_prod")),
    "multiply",
    one,
    lambda x, axes: np.prod(x, axis=axes, dtype=x.dtype),
    {np.number},
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
    shape = get_aval(primals[0]).shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    kept_shape = tuple(shape[axis] for axis in kept)
    length = int(np.prod([shape[axis] for axis in axes], dtype=int))
    flat_shape = (length, *kept_shape)

    def flatten(value: Any) -> Any:
        if type(value) is rules.Zero:
            return rules.Zero(value.aval.update(shape=flat_shape))
        return shaping.reshape(value, flat_shape, (*axes, *kept))

    def tree(*values: Any) -> list[Any]:
        while (count := get_aval(values[0]).shape[0]) > 1:
            half = (count + 1) // 2
            left = [slicing.slice_in_dim(value, 0, half) for value in values]
            right = [slicing.slice_in_dim(value, half, None) for value in values]
            if count != 2 * half:
                edges = [(0, 1, 0)] + [(0, 0, 0)] * len(kept)
                right = [padding.pad(x, unit, edges) for x, unit in zip(right, units)]
            values = combine(*left, *right)
        if length == 0:
            return [broadcasting.full(kept_shape, unit) for unit in units]
        return [squeeze(value, (0,)) for value in values]

    flat = [flatten(x) for x in primals]
    return autodiff.jvp(tree, flat, [flatten(t) for t in tangents])


@reduce_prod_p.def_jvp_rule
def _reduce_prod_jvp(primals, tangents, *, axes) -> Any:
    """As a tree, so that a zero among the factors gives no NaN.

    Dividing the product by each factor would be shorter, and NaN where one is zero.
    """
    unit = rules.scalar_like(get_aval(primals[0]), 1)
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
    return reduce_prod_p.bind(operand, axes=indices_of(axes, "axes"))


# ----------------------------------------------------------------------------------
# Extrema
# ----------------------------------------------------------------------------------


def _chosen_tangent(t: Any, out: Any, x: Any, *, axes: rules.Shape) -> Any:
    """The mean of the tangents of all entries that are the extremum."""
    kept = [1 if axis in axes else d for axis, d in enumerate(get_aval(x).shape)]
    chosen = convert_element_type(eq(x, reshape(out, kept)), get_aval(t).dtype)
    count = reduce_sum(chosen, axes)
    return div(reduce_sum(mul(t, chosen), axes), count)


def extremum_reduction(
    name: str, combine: str, neutral: Callable, ufunc: np.ufunc
) -> Primitive:
    """A reduction to the largest or smallest entry."""
    primitive = register(Primitive(name))
    extreme_of = functools.partial(extrema.combine_values, combine)
    reduction(primitive, extreme_of, neutral, in_numpy(ufunc, neutral))
    rules.def_jvp_with_output(primitive, _chosen_tangent)
    primitive.without("transpose", "its jvp is written with sums and products")
    return primitive


reduce_max_p = extremum_reduction("reduce_max", "maximum", lowest, np.maximum)


def reduce_max(operand: Any, axes: Sequence[int]) -> Any:
    """The largest entry along `axes`; NaN if there is one; complex by real, then imag.

    Raises:
      ValueError: when an axis is named twice or does not exist.
    """
    return reduce_max_p.bind(operand, axes=indices_of(axes, "axes"))


reduce_min_p = extremum_reduction("reduce_min", "minimum", highest, np.minimum)


def reduce_min(operand: Any, axes: Sequence[int]) -> Any:
    """The smallest entry along `axes`; NaN if there is one; complex by real, then imag.

    Raises:
      ValueError: when an axis is named twice or does not exist.
    """
    return reduce_min_p.bind(operand, axes=indices_of(axes, "axes"))


# ----------------------------------------------------------------------------------
# Bits
# ----------------------------------------------------------------------------------


def _bit_reduction(name: str, combine: str, neutral: Callable, ufunc: Any) -> Primitive:
    primitive = reduction(
        register(Primitive(name)),
        combine,
        neutral,
        in_numpy(ufunc, neutral),
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
    return reduce_and_p.bind(operand, axes=indices_of(axes, "axes"))


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """The `or` of booleans, or of the bits of integers, along `axes`.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are neither booleans nor integers.
    """
    return reduce_or_p.bind(operand, axes=indices_of(axes, "axes"))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """The exclusive `or` of booleans, or of the bits of integers, along `axes`.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are neither booleans nor integers.
    """
    return reduce_xor_p.bind(operand, axes=indices_of(axes, "axes"))


# ----------------------------------------------------------------------------------
# Where the extremum is
# ----------------------------------------------------------------------------------


def _arg_shape(x: ShapedArray, *, axes, index_dtype) -> rules.Shape:
    (axis,) = axes
    if not 0 <= axis < x.ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
    if x.shape[axis] < 1:
        raise ValueError(
            "argmin and argmax require non-empty reduced dimension. "
            f"operand.shape={x.shape} axis={axis}"
        )
    return x.shape[:axis] + x.shape[axis + 1 :]


def _arg_dtype(x: ShapedArray, *, axes, index_dtype) -> Any:
    if not dtypes.issubdtype(index_dtype, np.integer):
        raise TypeError(f"index_dtype must be an integer type, got {index_dtype.name}")
    return index_dtype


def _arg_lowering(better: Callable, neutral: Callable) -> Callable:
    """A reduction of pairs: the better value wins, NaN before all, then the index."""

    def winner(x: Any, x_index: Any, y: Any, y_index: Any) -> list[Any]:
        wins = comparing.bitwise_or(better(x, y), elementwise.ne(x, x))
        tied = comparing.bitwise_and(
            elementwise.eq(x, y), elementwise.lt(x_index, y_index)
        )
        first = comparing.bitwise_or(wins, tied)
        return [
            elementwise.select(wins, x, y),
            elementwise.select(first, x_index, y_index),
        ]

    def lower(ctx, x, *, axes, index_dtype) -> Any:
        (aval,), (out_aval,) = ctx.avals_in, ctx.avals_out
        (axis,) = axes
        indices = hlo.stablehlo.iota(
            hlo.tensor_type(aval.shape, index_dtype), hlo_parts.int_attribute(axis)
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
        inner = ctx.replace(avals_in=scalars)
        write = functools.partial(inner.lower_fun, winner)
        hlo_parts.write_region(reduce, types, write)
        return reduce.results[1]

    return lower


def _arg_reduction(
    name: str, better: Callable, neutral: Callable, meaning: Callable
) -> Primitive:
    primitive = rules.standard_primitive(
        name,
        _arg_shape,
        _arg_dtype,
        weak_type_rule=lambda *avals, **_: False,
        meaning=lambda x, axes, index_dtype: np.asarray(
            meaning(x, axis=axes[0]), index_dtype
        ),
    )
    primitive.batch = rules.reduction_batch(primitive)
    primitive.def_lowering(_arg_lowering(better, neutral))
    rules.def_zero_jvp(primitive)
    return primitive


argmin_p = _arg_reduction(
    "argmin", lambda x, y: elementwise.lt(x, y), highest, np.argmin
)
argmax_p = _arg_reduction(
    "argmax", lambda x, y: elementwise.gt(x, y), lowest, np.argmax
)


def _place_of(primitive: Any, operand: Any, axis: int, index_dtype: Any) -> Any:
    name, axes = primitive.name, (index_of(axis, "axis"),)
    dtype = element_types.check_and_canonicalize_user_dtype(index_dtype, name)
    return primitive.bind(operand, axes=axes, index_dtype=dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The first index of the smallest entry along `axis`; of NaN, if there is one.

    Raises:
      ValueError: when the axis does not exist or has no entries.
      TypeError: when `index_dtype` is not an integer dtype.
    """
    return _place_of(argmin_p, operand, axis, index_dtype)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The first index of the largest entry along `axis`; of NaN, if there is one.

    Raises:
      ValueError: when the axis does not exist or has no entries.
      TypeError: when `index_dtype` is not an integer dtype.
    """
    return _place_of(argmax_p, operand, axis, index_dtype)
