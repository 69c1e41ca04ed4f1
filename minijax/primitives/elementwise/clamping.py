"""Values kept between bounds, entry by entry: clamp.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import hlo, rules, shaping
from minijax.core.language import ShapedArray, get_aval
from minijax.core.rules import Shape, batch_at_front
from minijax.primitives.elementwise import comparing
from minijax.primitives.shape import broadcasting


def _clamp_shape(min: ShapedArray, operand: ShapedArray, max: ShapedArray) -> Shape:
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
    meaning=lambda min, operand, max: np.minimum(np.maximum(operand, min), max),
)


def _where(pred: Any, t: Any, operand: Any) -> Any:
    """The tangent of a bound or of the operand where the result equals it."""
    zeros = broadcasting.full_like(operand, 0)
    return elementwise.select(
        pred, broadcasting.broadcast_to(t, get_aval(operand).shape), zeros
    )


def _inside(lower: Any, operand: Any, upper: Any) -> Any:
    above = elementwise.gt(operand, lower)
    return comparing.bitwise_and(above, elementwise.lt(operand, upper))


def _below(lower: Any, operand: Any, upper: Any) -> Any:
    under = elementwise.gt(lower, operand)
    return comparing.bitwise_and(under, elementwise.lt(lower, upper))


clamp_p.def_jvp(
    lambda t, min, operand, max: _where(_below(min, operand, max), t, operand),
    lambda t, min, operand, max: _where(_inside(min, operand, max), t, operand),
    lambda t, min, operand, max: _where(elementwise.lt(max, operand), t, operand),
)
clamp_p.without("transpose", "its jvp selects: no argument is linear")


@clamp_p.def_batch
def _clamp_batch(axis_data, args, dims) -> Any:
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
    low = batch_at_front(low, low_dim, axis_data) if low_shape else low
    high = batch_at_front(high, high_dim, axis_data) if high_shape else high
    x = batch_at_front(x, x_dim, axis_data) if x_shape else x
    shape = get_aval(x).shape
    if not shape:  # one scalar between the bounds of each example
        shape = get_aval(low).shape or get_aval(high).shape
        x = broadcasting.broadcast(x, shape)
    bounds = [low, high]
    for k, bound in enumerate(bounds):
        if not get_aval(bound).shape:  # one bound for all
            bounds[k] = broadcasting.broadcast(bound, shape)
    for k, bound in enumerate(bounds):
        if get_aval(bound).ndim < len(shape):  # a bound for each example
            bounds[k] = shaping.broadcast_in_dim(bound, shape, (0,))
    return clamp_p.bind(bounds[0], x, bounds[1]), 0


@clamp_p.def_lowering
def _clamp_lowering(ctx, low, x, high) -> Any:
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
