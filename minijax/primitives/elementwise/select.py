"""Choosing between values, entry by entry: select_n and clamp.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.language import rules
from minijax.language.core import ShapedArray, get_aval, physical_aval
from minijax.language.rules import (
    Zero,
    batch_at_front,
    is_linear,
    moveaxis,
    scalar_like,
)
from minijax.primitives.elementwise import comparing
from minijax.primitives.shape import casting, shaping
from minijax.support import dtypes

# ----------------------------------------------------------------------------------
# select_n
# ----------------------------------------------------------------------------------


def _select_shape(which: ShapedArray, *cases: ShapedArray) -> tuple[int, ...]:
    if not cases:
        raise TypeError("select must have at least one case")
    first = cases[0].shape
    if any(case.shape != first for case in cases):
        shapes = ", ".join(str(case.shape) for case in cases)
        raise TypeError(
            f"select cases must have the same shapes, got [{shapes}]. Repeat the "
            "smaller ones with `lax.broadcast_in_dim`, or use `minijax.numpy.where`."
        )
    if which.shape and which.shape != first:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got "
            f"`which` shape {which.shape} but case shape {first}."
        )
    return first


def _select_dtype(which: ShapedArray, *cases: ShapedArray) -> Any:
    rules.check_same_dtypes("select", cases)
    if not rules.accepts(rules.bool_or_int, which.dtype):
        raise TypeError(
            "select `which` must be boolean or integer type, got "
            f"{dtypes.dtype_name(which.dtype)}. Write a comparison, such as `x > 0`."
        )
    if which.dtype == np.bool_ and len(cases) > 2:
        raise TypeError("select with boolean `which` cannot have > 2 cases.")
    return cases[0].dtype


def _select_meaning(which: Any, *cases: Any) -> Any:
    index = np.clip(np.asarray(which).astype(int), 0, len(cases) - 1)
    index = np.broadcast_to(index, cases[0].shape)
    return np.choose(index, cases).astype(cases[0].dtype)


select_n_p = rules.standard_primitive(
    "select_n",
    _select_shape,
    _select_dtype,
    weak_type_rule=lambda which, *cases: all(case.weak_type for case in cases),
    sharding_rule=lambda which, *cases: cases[0].sharding,
    meaning=_select_meaning,
)


@select_n_p.def_jvp_rule
def _select_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    case_tangents = tangents[1:]
    out = select_n(which, *cases)
    given = [t for t in case_tangents if type(t) is not Zero]
    if not given:
        return out, rules.zero_tangent_of(out)
    zeros = shaping.full_like(given[0], 0)
    dense = [zeros if type(t) is Zero else t for t in case_tangents]
    return out, select_n(which, *dense)


@select_n_p.def_transpose
def _select_transpose(ct: Any, which: Any, *cases: Any) -> list:
    if type(ct) is Zero:
        return [None] * (1 + len(cases))
    zeros = shaping.full_like(ct, 0)
    linear = [is_linear(case) for case in cases]
    aval = get_aval(which)
    if aval.dtype == np.bool_:
        no = select(which, zeros, ct) if linear[0] else None
        yes = select(which, ct, zeros) if linear[1:] == [True] else None
        return [None, no, yes][: 1 + len(cases)]
    chosen = [
        select(comparing.eq(which, scalar_like(aval, i)), ct, zeros) if flag else None
        for i, flag in enumerate(linear)
    ]
    return [None, *chosen]


@select_n_p.def_batch
def _select_batch(axis_data: Any, args: Any, dims: Any) -> Any:
    (which, *cases), (which_dim, *case_dims) = args, dims
    which_aval, *case_avals = (get_aval(arg) for arg in args)
    first = case_avals[0].shape
    same_case_shapes = all(aval.shape == first for aval in case_avals)
    if all(dim == which_dim for dim in case_dims):
        if which_aval.shape != first:  # one choice for each example
            which = shaping.broadcast_in_dim(which, first, (which_dim,))
        return select_n(which, *cases), which_dim
    if not which_aval.shape and all(dim is not None for dim in case_dims):
        if len(set(case_dims)) == 1:
            return select_n(which, *cases), case_dims[0]
        if same_case_shapes:
            wanted = case_dims[0]
            moved = [moveaxis(c, dim, wanted) for c, dim in zip(cases, case_dims)]
            return select_n(which, *moved), wanted
    if which_aval.shape:
        which = batch_at_front(which, which_dim, axis_data.size)
    if any(aval.shape for aval in case_avals):
        cases = [batch_at_front(c, d, axis_data.size) for c, d in zip(cases, case_dims)]
    which_shape, case_shape = get_aval(which).shape, get_aval(cases[0]).shape
    if 0 < len(which_shape) < len(case_shape):
        which = shaping.broadcast_in_dim(which, case_shape, (0,))
    if len(which_shape) > len(case_shape):
        cases = [shaping.broadcast_to(case, which_shape) for case in cases]
    return select_n(which, *cases), 0


@select_n_p.def_lowering
def _select_lowering(ctx: Any, which: Any, *cases: Any) -> Any:
    which_aval = ctx.avals_in[0]
    physical = physical_aval(ctx.avals_out[0])
    if len(cases) == 1:
        return cases[0]
    if physical.ndim != ctx.avals_out[0].ndim:  # typed keys: bits behind each entry
        shape = physical.shape
        dims = range(which_aval.ndim)
        which = ctx.broadcast_in_dim(which, which_aval, shape, dims)
        which_aval = which_aval.update(shape=shape)
    if which_aval.dtype == np.bool_:
        return hlo.stablehlo.select(which, cases[1], cases[0])

    def choose(offset: int, some: Any) -> Any:
        """Halve the cases: a tree of comparisons."""
        if len(some) == 1:
            return some[0]
        middle = len(some) // 2
        bound = ctx.full_like(offset + middle, which_aval)
        below = casting.compare(which, bound, "LT", which_aval.dtype)
        lower = choose(offset, some[:middle])
        upper = choose(offset + middle, some[middle:])
        return hlo.stablehlo.select(below, lower, upper)

    return choose(0, cases)


def select_n(which: Any, *cases: Any) -> Any:
    """For each entry, the value of the case whose number is in `which`.

    Args:
      which: booleans (two cases: the first where false) or integers from 0 up to the
        number of cases; a scalar or of the shape of the cases.
      *cases: arrays of one shape and dtype.

    Raises:
      ValueError: without cases.
      TypeError: when shapes or dtypes do not fit.
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred` is true, `on_false` elsewhere; both are computed.

    Args:
      pred: booleans, a scalar or of the shape of the others.
      on_true, on_false: arrays of one shape and dtype.

    Raises:
      TypeError: when shapes or dtypes do not fit.
    """
    return select_n_p.bind(pred, on_false, on_true)


# ----------------------------------------------------------------------------------
# clamp
# ----------------------------------------------------------------------------------


def _clamp_shape(
    min: ShapedArray, operand: ShapedArray, max: ShapedArray
) -> tuple[int, ...]:
    for name, bound in (("min", min), ("max", max)):
        if bound.shape and bound.shape != operand.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), "
                f"got {name}.shape={bound.shape}, operand.shape={operand.shape}."
            )
    return operand.shape


def _clamp_dtype(*avals: ShapedArray) -> Any:
    for position, aval in enumerate(avals):
        where = f" at position {position}"
        rules.check_accepted("clamp", where, rules.anything, aval.dtype)
    rules.check_same_dtypes("clamp", avals)
    return avals[1].dtype


clamp_p = rules.standard_primitive(
    "clamp",
    _clamp_shape,
    _clamp_dtype,
    sharding_rule=lambda min, operand, max: operand.sharding,
    meaning=lambda min, operand, max: np.minimum(np.maximum(operand, min), max),
)


def _where(pred: Any, t: Any, operand: Any) -> Any:
    """The tangent of a bound or of the operand where it is what comes out."""
    zeros = shaping.full_like(operand, 0)
    return select(pred, shaping.broadcast_to(t, get_aval(operand).shape), zeros)


def _inside(lower: Any, operand: Any, upper: Any) -> Any:
    above = comparing.gt(operand, lower)
    return comparing.bitwise_and(above, comparing.lt(operand, upper))


def _below(lower: Any, operand: Any, upper: Any) -> Any:
    under = comparing.gt(lower, operand)
    return comparing.bitwise_and(under, comparing.lt(lower, upper))


clamp_p.def_jvp(
    lambda t, min, operand, max: _where(_below(min, operand, max), t, operand),
    lambda t, min, operand, max: _where(_inside(min, operand, max), t, operand),
    lambda t, min, operand, max: _where(comparing.lt(max, operand), t, operand),
)
clamp_p.without("transpose", "its jvp selects: no argument is linear")


@clamp_p.def_batch
def _clamp_batch(axis_data: Any, args: Any, dims: Any) -> Any:
    (low, x, high), (low_dim, x_dim, high_dim) = args, dims
    low_shape, x_shape, high_shape = (get_aval(arg).shape for arg in args)
    if low_dim == x_dim == high_dim:
        if low_shape == x_shape == high_shape:
            return clamp_p.bind(low, x, high), x_dim
        if len(low_shape) == len(high_shape) == 1:  # bounds for each example
            low = shaping.broadcast_in_dim(low, x_shape, (low_dim,))
            high = shaping.broadcast_in_dim(high, x_shape, (high_dim,))
            return clamp_p.bind(low, x, high), x_dim
    elif not low_shape and not high_shape and x_dim is not None:
        return clamp_p.bind(low, x, high), x_dim
    size = axis_data.size
    low = batch_at_front(low, low_dim, size) if low_shape else low
    high = batch_at_front(high, high_dim, size) if high_shape else high
    x = batch_at_front(x, x_dim, size) if x_shape else x
    shape = get_aval(x).shape
    if not shape:  # one scalar between the bounds of each example
        shape = get_aval(low).shape or get_aval(high).shape
        x = shaping.broadcast(x, shape)
    bounds = [low, high]
    for k, bound in enumerate(bounds):
        if not get_aval(bound).shape:  # one bound for all
            bounds[k] = shaping.broadcast(bound, shape)
    for k, bound in enumerate(bounds):
        if get_aval(bound).ndim < len(shape):  # a bound for each example
            bounds[k] = shaping.broadcast_in_dim(bound, shape, (0,))
    return clamp_p.bind(bounds[0], x, bounds[1]), 0


@clamp_p.def_lowering
def _clamp_lowering(ctx: Any, low: Any, x: Any, high: Any) -> Any:
    return hlo.stablehlo.clamp(*ctx.broadcast((low, x, high)))


def clamp(min: Any, x: Any, max: Any) -> Any:
    """`x`, but `min` where it is below and `max` where it is above.

    Args:
      min, max: scalars, or arrays of the shape of `x`.
      x: an array, of their dtype.

    Raises:
      TypeError: when shapes or dtypes do not fit.
    """
    return clamp_p.bind(min, x, max)
