"""Sign, absolute value, rounding, remainder; finiteness, and the next float.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules, shaping
from minijax.core.language import get_aval
from minijax.core.rules import constant_like as _scalar
from minijax.primitives.elementwise import complex_numbers, powers


def _sign_lowering(ctx, x) -> Any:
    (aval,) = ctx.avals_in
    if dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        zero, one = ctx.full_like(0, aval), ctx.full_like(1, aval)
        return hlo.stablehlo.select(
            shaping.compare(x, zero, "EQ", aval.dtype), zero, one
        )
    return hlo.stablehlo.sign(x)


sign_p = rules.unary("sign", rules.numbers, np.sign, _sign_lowering)
rules.def_zero_jvp(sign_p)

abs_p = rules.unary(
    "abs",
    {np.signedinteger} | rules.floats | rules.complexes,
    np.abs,
    "abs",
    result_dtype=lambda dtype: np.empty(0, dtype).real.dtype,
)


def _abs_jvp(t, out, x) -> Any:
    if not complex_numbers.is_complex(x):
        return elementwise.select(
            elementwise.ge(x, _scalar(x, 0)), t, elementwise.neg(t)
        )
    # d|z| = Re(conj(z) dz) / |z|
    turned = complex_numbers.conj(x)
    size = powers.replace_zero(shaping.convert_element_type(out, get_aval(x).dtype))
    return complex_numbers.real(elementwise.mul(t, elementwise.div(turned, size)))


rules.def_jvp_with_output(abs_p, _abs_jvp)

floor_p = rules.unary("floor", rules.floats, np.floor, "floor")
rules.def_zero_jvp(floor_p)

ceil_p = rules.unary("ceil", rules.floats, np.ceil, "ceil")
rules.def_zero_jvp(ceil_p)


class RoundingMethod(enum.IntEnum):
    """Where `round` sends numbers half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round_meaning(x, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.round(x)
    return np.sign(x) * np.floor(np.abs(x) + np.asarray(0.5, x.dtype))


def _round_lowering(ctx, x, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return hlo.stablehlo.round_nearest_even(x)
    return hlo.stablehlo.round_nearest_afz(x)


round_p = rules.unary("round", rules.floats, _round_meaning, _round_lowering)
rules.def_zero_jvp(round_p)

is_finite_p = rules.unary(
    "is_finite", rules.floats, np.isfinite, "is_finite", lambda dtype: np.dtype(bool)
)
rules.def_zero_jvp(is_finite_p)

nextafter_p = rules.nary(
    "nextafter", [rules.floats, rules.floats], np.nextafter, "chlo.next_after"
)
nextafter_p.without("jvp", "neighbours of floats have no useful derivative")


def sign(x: Any) -> Any:
    """Elementwise sign: -1, 0 or 1; x / |x| for complex numbers; NaN stays NaN."""
    return sign_p.bind(x)


def abs(x: Any) -> Any:
    """Elementwise absolute value, real for complex numbers."""
    return abs_p.bind(x)


def floor(x: Any) -> Any:
    """The largest integer not above x, as a float."""
    return floor_p.bind(x)


def ceil(x: Any) -> Any:
    """The smallest integer not below x, as a float."""
    return ceil_p.bind(x)


def round(
    x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO
) -> Any:
    """The nearest integer, as a float; `rounding_method` decides for halves."""
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def is_finite(x: Any) -> Any:
    """Whether each entry is neither infinite nor NaN."""
    return is_finite_p.bind(x)


def nextafter(x1: Any, x2: Any) -> Any:
    """The next float after x1 in the direction of x2."""
    return nextafter_p.bind(x1, x2)


rem_p = rules.nary(
    "rem", [rules.ints | rules.floats, rules.ints | rules.floats], np.fmod, "remainder"
)
rem_p.def_jvp(  # x rem y = x - y trunc(x / y)
    lambda t, x, y: elementwise.broadcast_like(
        t,
        rules.broadcast_shapes_of_operands(
            "rem", [get_aval(x).shape, get_aval(y).shape]
        ),
    ),
    lambda t, x, y: elementwise.mul(
        elementwise.neg(t),
        elementwise.mul(sign(elementwise.div(x, y)), floor(abs(elementwise.div(x, y)))),
    ),
)
rem_p.without("transpose", "its jvp multiplies: the tangent itself is only broadcast")


def rem(x: Any, y: Any) -> Any:
    """Elementwise remainder of x / y, with the sign of x."""
    return rem_p.bind(x, y)
