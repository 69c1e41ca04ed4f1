"""Elementwise primitives: arithmetic, comparison, exponentials, trigonometry, bits.

Each block is a primitive with all its rules: what it means (in NumPy), which dtypes it
accepts, how it becomes StableHLO, its derivative and its transpose. Batching and types
come from the family (`rules.unary`, `rules.nary`). Below the blocks of a group stand the
functions of `lax` that bind them.

The sources of the formulas are the usual tables of derivatives; a comment says so where
one is not obvious.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from minijax import dtypes, rules
from minijax.backend import hlo
from minijax.core import ShapedArray, get_aval
from minijax.primitives import reductions, select, shaping
from minijax.rules import (
    Zero,
    anything,
    bool_or_int,
    complexes,
    def_bilinear,
    def_jvp_with_output,
    def_linear,
    def_zero_jvp,
    floats,
    ints,
    is_linear,
    nary,
    numbers,
    ordered,
    scalar_like,
    signed_ints,
    unary,
)


def _scalar(like: Any, value: Any) -> Any:
    """`value` as a scalar of the dtype (and weak type) of an operand."""
    return scalar_like(get_aval(like), value)


def unbroadcast(aval: ShapedArray, ct: Any) -> Any:
    """The cotangent of an operand that was repeated: summed over where it was.

    Elementwise primitives repeat scalars and dimensions of size 1, and the transpose of
    repeating is adding.
    """
    shape = get_aval(ct).shape
    if aval.shape == shape:
        return ct
    if not aval.shape:
        return reductions.reduce_sum(ct, tuple(range(len(shape))))
    repeated = tuple(
        axis for axis, (a, b) in enumerate(zip(shape, aval.shape)) if a != b
    )
    return shaping.reshape(reductions.reduce_sum(ct, repeated), aval.shape)


def broadcast_like(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` repeated as elementwise primitives do by themselves."""
    x_shape = get_aval(x).shape
    if x_shape == shape:
        return x
    if not x_shape:
        return shaping.broadcast_in_dim(x, shape, ())
    kept = [axis for axis, (a, b) in enumerate(zip(x_shape, shape)) if a == b]
    squeezed = shaping.reshape(x, tuple(x_shape[axis] for axis in kept))
    return shaping.broadcast_in_dim(squeezed, shape, tuple(kept))


def _without_none(name: str) -> Any:
    """Print a parameter only when it is set."""

    def pretty(params: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in params.items() if k != name or v is not None}

    return pretty


def _accurate_lowering(operation: str) -> Any:
    """Lowering of functions with an `accuracy` parameter (None: the default)."""

    def lower(ctx: Any, x: Any, *, accuracy: Any) -> Any:
        if accuracy is None:
            return ctx.operation(operation)(x)
        mode = accuracy if isinstance(accuracy, str) else accuracy.name
        attribute = hlo.ir.Attribute.parse(
            f"#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<{mode}>>"
        )
        return ctx.operation(operation)(x, result_accuracy=attribute)

    return lower


# ----------------------------------------------------------------------------------
# Sums and products
# ----------------------------------------------------------------------------------

add_p = nary("add", [numbers, numbers], np.add, "add")


@add_p.def_jvp_rule
def _add_jvp(primals: Any, tangents: Any) -> Any:  # d(x + y) = dx + dy
    out = add(*primals)
    x_dot, y_dot = tangents
    if type(x_dot) is Zero or type(y_dot) is Zero:
        given = y_dot if type(x_dot) is Zero else x_dot
        return out, broadcast_like(given, get_aval(out).shape)
    return out, add(x_dot, y_dot)


@add_p.def_transpose
def _add_transpose(ct: Any, x: Any, y: Any) -> list:
    return [unbroadcast(arg.aval, ct) if is_linear(arg) else None for arg in (x, y)]


# The sum of cotangents that meet in one variable. It is `add`, but for that its
# arguments always have one shape and that it is printed under its own name.
add_any_p = rules.add_any_p
add_any_p.meaning = np.add
add_any_p.type_rule = rules.standard_type_rule(
    "add_any", lambda x, y: x.shape, lambda x, y: x.dtype
)
add_any_p.batch = rules.broadcasting_batch(add_any_p)
add_any_p.def_lowering(rules.nary_lowering("add"))
def_linear(add_any_p, lambda ct, x, y: [ct, ct])

sub_p = nary("sub", [numbers, numbers], np.subtract, "subtract")


@sub_p.def_jvp_rule
def _sub_jvp(primals: Any, tangents: Any) -> Any:  # d(x - y) = dx - dy
    out = sub(*primals)
    x_dot, y_dot = tangents
    shape = get_aval(out).shape
    if type(y_dot) is Zero:
        return out, broadcast_like(x_dot, shape)
    if type(x_dot) is Zero:
        return out, broadcast_like(neg(y_dot), shape)
    return out, sub(x_dot, y_dot)


@sub_p.def_transpose
def _sub_transpose(ct: Any, x: Any, y: Any) -> list:
    return [
        unbroadcast(x.aval, ct) if is_linear(x) else None,
        unbroadcast(y.aval, neg(ct)) if is_linear(y) else None,
    ]


def _mul_meaning(x: Any, y: Any, out_dtype: Any = None) -> Any:
    return np.multiply(x, y)


def _mul_lowering(ctx: Any, x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    x, y = ctx.broadcast((x, y))
    if out_dtype is not None:
        x = hlo.stablehlo.convert(ctx.result_type(), x)
        y = hlo.stablehlo.convert(ctx.result_type(), y)
    return hlo.stablehlo.multiply(x, y)


mul_p = nary("mul", [numbers, numbers], _mul_meaning, _mul_lowering)
mul_p.type_rule = rules.standard_type_rule(
    "mul",
    lambda x, y, out_dtype=None: rules.broadcast_shapes_of_operands(
        "mul", [x.shape, y.shape]
    ),
    lambda x, y, out_dtype=None: _mul_dtype(x, y, out_dtype),
)
mul_p.pretty = _without_none("out_dtype")
def_bilinear(  # d(x y) = dx y + x dy
    mul_p,
    lambda ct, x, y, out_dtype=None: unbroadcast(
        x.aval, mul(ct, y, out_dtype=out_dtype and x.aval.dtype)
    ),
    lambda ct, x, y, out_dtype=None: unbroadcast(
        y.aval, mul(x, ct, out_dtype=out_dtype and y.aval.dtype)
    ),
)


def _mul_dtype(x: ShapedArray, y: ShapedArray, out_dtype: Any) -> Any:
    for position, aval in enumerate((x, y)):
        rules.check_accepted("mul", f" at position {position}", numbers, aval.dtype)
    rules.check_same_dtypes("mul", (x, y))
    return x.dtype if out_dtype is None else np.dtype(out_dtype)


div_p = nary(
    "div",
    [numbers, numbers],
    lambda x, y: x // y if np.issubdtype(x.dtype, np.integer) else x / y,
    "divide",
)
div_p.def_jvp(  # d(x / y) = dx / y - dy x / y^2
    lambda t, x, y: div(t, y),
    lambda t, x, y: mul(mul(neg(t), x), integer_pow(y, -2)),
)


@div_p.def_transpose
def _div_transpose(ct: Any, x: Any, y: Any) -> list:
    if is_linear(y):
        raise ValueError("div is not linear in its divisor and cannot be transposed")
    return [unbroadcast(x.aval, div(ct, y)), None]


neg_p = unary("neg", numbers, np.negative, "negate")
def_linear(neg_p, lambda ct, x: [neg(ct)])

rem_p = nary("rem", [ints | floats, ints | floats], np.fmod, "remainder")
rem_p.def_jvp(  # x rem y = x - y trunc(x / y)
    lambda t, x, y: broadcast_like(
        t,
        rules.broadcast_shapes_of_operands("rem", [get_aval(x).shape, get_aval(y).shape]),
    ),
    lambda t, x, y: mul(neg(t), mul(sign(div(x, y)), floor(abs(div(x, y))))),
)
rem_p.without("transpose", "its jvp multiplies: the tangent itself is only broadcast")


def _balanced_equal(x: Any, out: Any, y: Any) -> Any:
    """1 where `x` alone is the extremum, 1/2 where both operands are, else 0."""
    alone = select.select(
        eq(x, out), shaping.full_like(out, 1), shaping.full_like(out, 0)
    )
    share = select.select(
        eq(y, out), shaping.full_like(out, 2), shaping.full_like(out, 1)
    )
    return div(alone, share)


def _extremum_lowering(operation: str) -> Any:
    """XLA orders complex numbers in no way; here they go by real part, then imag."""

    def lower(ctx: Any, x: Any, y: Any) -> Any:
        x, y = ctx.broadcast((x, y))
        return reductions.combine_values(operation, ctx.avals_out[0].dtype, x, y)

    return lower


max_p = nary(
    "max", [anything, anything], np.maximum, _extremum_lowering("maximum")
)
def_jvp_with_output(
    max_p,
    lambda t, out, x, y: mul(t, _balanced_equal(x, out, y)),
    lambda t, out, x, y: mul(t, _balanced_equal(y, out, x)),
)

min_p = nary(
    "min", [anything, anything], np.minimum, _extremum_lowering("minimum")
)
def_jvp_with_output(
    min_p,
    lambda t, out, x, y: mul(t, _balanced_equal(x, out, y)),
    lambda t, out, x, y: mul(t, _balanced_equal(y, out, x)),
)


def add(x: Any, y: Any) -> Any:
    """Elementwise sum x + y; operands of one dtype, sizes of 1 and scalars repeated."""
    return add_p.bind(x, y)


def sub(x: Any, y: Any) -> Any:
    """Elementwise difference x - y."""
    return sub_p.bind(x, y)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """Elementwise product x y, computed in `out_dtype` if given."""
    return mul_p.bind(x, y, out_dtype=out_dtype)


def div(x: Any, y: Any) -> Any:
    """Elementwise quotient x / y; of integers, rounded towards zero."""
    return div_p.bind(x, y)


def rem(x: Any, y: Any) -> Any:
    """Elementwise remainder of x / y, with the sign of x."""
    return rem_p.bind(x, y)


def neg(x: Any) -> Any:
    """Elementwise negation -x."""
    return neg_p.bind(x)


def max(x: Any, y: Any) -> Any:
    """Elementwise maximum; NaN if either operand is. Complex numbers by real part."""
    return max_p.bind(x, y)


def min(x: Any, y: Any) -> Any:
    """Elementwise minimum; NaN if either operand is."""
    return min_p.bind(x, y)


# ----------------------------------------------------------------------------------
# Sign, size and rounding
# ----------------------------------------------------------------------------------


def _sign_lowering(ctx: Any, x: Any) -> Any:
    (aval,) = ctx.avals_in
    if dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        zero, one = ctx.full_like(0, aval), ctx.full_like(1, aval)
        return hlo.stablehlo.select(_compare(x, zero, "EQ", "UNSIGNED"), zero, one)
    return hlo.stablehlo.sign(x)


sign_p = unary("sign", numbers, np.sign, _sign_lowering)
def_zero_jvp(sign_p)

abs_p = unary(
    "abs",
    signed_ints | floats | complexes,
    np.abs,
    "abs",
    result_dtype=lambda dtype: _real_dtype(dtype),
)


def _abs_jvp(t: Any, out: Any, x: Any) -> Any:
    if not _is_complex(x):
        return select.select(ge(x, _scalar(x, 0)), t, neg(t))
    # d|z| = Re(conj(z) dz) / |z|
    size = select.select(
        eq(out, _scalar(out, 0)), shaping.full_like(out, 1), out
    )
    size = shaping.convert_element_type(size, get_aval(x).dtype)
    return real(mul(t, div(conj(x), size)))


def_jvp_with_output(abs_p, _abs_jvp)

floor_p = unary("floor", floats, np.floor, "floor")
def_zero_jvp(floor_p)

ceil_p = unary("ceil", floats, np.ceil, "ceil")
def_zero_jvp(ceil_p)


class RoundingMethod(enum.IntEnum):
    """Where `round` sends numbers half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round_meaning(x: Any, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.round(x)
    return np.sign(x) * np.floor(np.abs(x) + np.asarray(0.5, x.dtype))


def _round_lowering(ctx: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return hlo.stablehlo.round_nearest_even(x)
    return hlo.stablehlo.round_nearest_afz(x)


round_p = unary("round", floats, _round_meaning, _round_lowering)
def_zero_jvp(round_p)

is_finite_p = unary(
    "is_finite", floats, np.isfinite, "is_finite", lambda dtype: np.dtype(bool)
)
def_zero_jvp(is_finite_p)

nextafter_p = nary("nextafter", [floats, floats], np.nextafter, "chlo.next_after")
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


# ----------------------------------------------------------------------------------
# Powers, exponentials, logarithms
# ----------------------------------------------------------------------------------

_pretty_accuracy = _without_none("accuracy")


def _accurate(name: str, accepted: set, meaning: Any, lower: str | Any) -> Any:
    """A unary primitive with an `accuracy` parameter."""
    primitive = unary(
        name,
        accepted,
        lambda x, accuracy=None: meaning(x),
        lower if callable(lower) else _accurate_lowering(lower),
    )
    primitive.pretty = _pretty_accuracy
    return primitive


inexact = floats | complexes

exp_p = _accurate("exp", inexact, np.exp, "exponential")
def_jvp_with_output(exp_p, lambda t, out, x, **_: mul(t, out))


def _exp2_lowering(ctx: Any, x: Any, *, accuracy: Any) -> Any:
    (aval,) = ctx.avals_in
    scaled = hlo.stablehlo.multiply(ctx.full_like(np.log(2), aval), x)
    return _accurate_lowering("exponential")(ctx, scaled, accuracy=accuracy)


exp2_p = _accurate("exp2", inexact, np.exp2, _exp2_lowering)
def_jvp_with_output(
    exp2_p, lambda t, out, x, **_: mul(log(_scalar(x, 2)), mul(t, out))
)

log_p = _accurate("log", inexact, np.log, "log")
log_p.def_jvp(lambda t, x, **_: div(t, x))

expm1_p = _accurate("expm1", inexact, np.expm1, "exponential_minus_one")
def_jvp_with_output(
    expm1_p, lambda t, out, x, **_: mul(t, add(out, _scalar(out, 1)))
)

log1p_p = _accurate("log1p", inexact, np.log1p, "log_plus_one")
log1p_p.def_jvp(lambda t, x, **_: div(t, add(x, _scalar(x, 1))))

logistic_p = _accurate(
    "logistic",
    inexact,
    lambda x: 1 / (1 + np.exp(-x)),
    lambda ctx, x, accuracy: ctx.lower_fun(_logistic, x),
)
def_jvp_with_output(
    logistic_p, lambda t, out, x, **_: mul(t, mul(out, sub(_scalar(out, 1), out)))
)


def _logistic(x: Any) -> Any:
    one = _scalar(x, 1)
    return div(one, add(one, exp(neg(x))))


sqrt_p = _accurate("sqrt", inexact, np.sqrt, "sqrt")
def_jvp_with_output(sqrt_p, lambda t, out, x, **_: mul(t, div(_scalar(x, 0.5), out)))

rsqrt_p = _accurate("rsqrt", inexact, lambda x: 1 / np.sqrt(x), "rsqrt")
def_jvp_with_output(
    rsqrt_p, lambda t, out, x, **_: mul(t, mul(_scalar(x, -0.5), div(out, x)))
)

cbrt_p = _accurate("cbrt", floats, np.cbrt, "cbrt")
def_jvp_with_output(
    cbrt_p, lambda t, out, x, **_: mul(t, mul(_scalar(x, 1 / 3), integer_pow(out, -2)))
)

square_p = unary(
    "square", numbers, np.square, lambda ctx, x: hlo.stablehlo.multiply(x, x)
)
def_jvp_with_output(square_p, lambda t, out, x: mul(t, mul(_scalar(x, 2), x)))


def _pow_dtype(x: ShapedArray, y: ShapedArray) -> Any:
    fractional = dtypes.issubdtype(x.dtype, np.inexact)
    if x.dtype == y.dtype and fractional:
        return x.dtype
    if fractional and dtypes.issubdtype(y.dtype, np.integer):
        return x.dtype
    raise TypeError(
        "the first argument to pow must have an inexact dtype (float or complex), and "
        "the second an inexact or integer dtype; two inexact dtypes must match. Got "
        f"{x.dtype} and {y.dtype}."
    )


def _pow_lowering(ctx: Any, x: Any, y: Any) -> Any:
    x_aval, y_aval = ctx.avals_in
    if y_aval.dtype != x_aval.dtype:
        y = hlo.stablehlo.convert(hlo.tensor_type(y_aval.shape, x_aval.dtype), y)
    return hlo.stablehlo.power(*ctx.broadcast((x, y)))


pow_p = nary(
    "pow",
    [inexact, inexact | ints],
    lambda x, y: np.power(x, y.astype(x.dtype)),
    _pow_lowering,
    result_dtype=_pow_dtype,
    same_dtypes=False,
)


def _pow_jvp_base(t: Any, out: Any, x: Any, y: Any) -> Any:  # y x^(y-1)
    if not dtypes.issubdtype(get_aval(y).dtype, np.integer):
        return mul(t, mul(y, pow(x, sub(y, shaping.full_like(y, 1)))))
    dtype = get_aval(x).dtype
    x = broadcast_like(x, get_aval(out).shape)
    y = broadcast_like(shaping.convert_element_type(y, dtype), get_aval(out).shape)
    zero = eq(y, _scalar(y, 0))
    none = shaping.full_like(y, 0)
    slope = mul(_replace_zero(y), pow(x, sub(y, shaping.full_like(y, 1))))
    return mul(t, select.select(zero, none, slope))


def _pow_jvp_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:  # x^y log x
    slope = mul(t, mul(log(_replace_zero(x)), out))
    return shaping.convert_element_type(slope, get_aval(y).dtype)


def_jvp_with_output(pow_p, _pow_jvp_base, _pow_jvp_exponent)


def _replace_zero(x: Any) -> Any:
    """`x` with 1 in place of 0, where a factor of 0 makes the value irrelevant."""
    return select.select(eq(x, _scalar(x, 0)), shaping.full_like(x, 1), x)



integer_pow_p = unary(
    "integer_pow",
    numbers,
    lambda x, y: np.power(x, y) if y >= 0 else 1 / np.power(x, -y),
    lambda ctx, x, y: _integer_pow_lowering(ctx, x, y),
)


def _integer_pow_lowering(ctx: Any, x: Any, y: int) -> Any:
    """Repeated squaring, written out: y has few bits."""
    (aval,) = ctx.avals_in
    remaining = y if y >= 0 else -y
    result = None
    while remaining:
        if remaining & 1:
            result = x if result is None else hlo.stablehlo.multiply(result, x)
        remaining >>= 1
        if remaining:
            x = hlo.stablehlo.multiply(x, x)
    one = ctx.full_like(1, aval)
    if result is None:
        return one
    return hlo.stablehlo.divide(one, result) if y < 0 else result


def _integer_pow_jvp(t: Any, x: Any, *, y: int) -> Any:  # y x^(y-1)
    if y == 0:
        return shaping.full_like(t, 0)
    if y == 1:
        return t
    power = x if y == 2 else integer_pow(x, y - 1)
    return mul(t, mul(_scalar(x, y), power))


integer_pow_p.def_jvp(_integer_pow_jvp)


def exp(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise exponential e^x."""
    return exp_p.bind(x, accuracy=accuracy)


def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise 2^x."""
    return exp2_p.bind(x, accuracy=accuracy)


def log(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise natural logarithm."""
    return log_p.bind(x, accuracy=accuracy)


def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise e^x - 1, exact to rounding near 0."""
    return expm1_p.bind(x, accuracy=accuracy)


def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise log(1 + x), exact to rounding near 0."""
    return log1p_p.bind(x, accuracy=accuracy)


def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise sigmoid 1 / (1 + e^-x)."""
    return logistic_p.bind(x, accuracy=accuracy)


def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise square root."""
    return sqrt_p.bind(x, accuracy=accuracy)


def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise 1 / sqrt(x)."""
    return rsqrt_p.bind(x, accuracy=accuracy)


def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise cube root; negative for negative x."""
    return cbrt_p.bind(x, accuracy=accuracy)


def square(x: Any) -> Any:
    """Elementwise square x^2."""
    return square_p.bind(x)


def reciprocal(x: Any) -> Any:
    """Elementwise 1 / x."""
    return integer_pow(x, -1)


def pow(x: Any, y: Any) -> Any:
    """Elementwise x^y for inexact x; y inexact of the same dtype, or integer."""
    return pow_p.bind(x, y)


def integer_pow(x: Any, y: int) -> Any:
    """Elementwise x^y for a Python int y, by repeated squaring.

    Raises TypeError for integer x and negative y.
    """
    if y < 0 and dtypes.issubdtype(get_aval(x).dtype, np.integer):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({x}, {y})"
        )
    return integer_pow_p.bind(x, y=y)


# ----------------------------------------------------------------------------------
# Trigonometric and hyperbolic functions
# ----------------------------------------------------------------------------------

sin_p = _accurate("sin", inexact, np.sin, "sine")
sin_p.def_jvp(lambda t, x, accuracy: mul(t, cos(x, accuracy=accuracy)))

cos_p = _accurate("cos", inexact, np.cos, "cosine")
cos_p.def_jvp(lambda t, x, accuracy: neg(mul(t, sin(x, accuracy=accuracy))))

tan_p = _accurate("tan", inexact, np.tan, "tan")
def_jvp_with_output(
    tan_p, lambda t, out, x, **_: mul(t, add(_scalar(x, 1), square(out)))
)

tanh_p = _accurate("tanh", inexact, np.tanh, "tanh")
def_jvp_with_output(  # 1 - tanh^2 = (1 + tanh)(1 - tanh)
    tanh_p,
    lambda t, out, x, **_: mul(add(t, mul(t, out)), sub(_scalar(x, 1), out)),
)

asin_p = unary("asin", inexact, np.arcsin, "chlo.asin")
asin_p.def_jvp(lambda t, x: mul(t, rsqrt(sub(_scalar(x, 1), square(x)))))

acos_p = unary("acos", inexact, np.arccos, "chlo.acos")
acos_p.def_jvp(lambda t, x: mul(t, neg(rsqrt(sub(_scalar(x, 1), square(x))))))

atan_p = unary("atan", inexact, np.arctan, "chlo.atan")
atan_p.def_jvp(lambda t, x: div(t, add(_scalar(x, 1), square(x))))

atan2_p = nary("atan2", [inexact, inexact], np.arctan2, "atan2")
atan2_p.def_jvp(  # of the angle of the point (y, x)
    lambda t, x, y: mul(t, div(y, add(square(x), square(y)))),
    lambda t, x, y: mul(t, div(neg(x), add(square(x), square(y)))),
)

sinh_p = unary("sinh", inexact, np.sinh, "chlo.sinh")
sinh_p.def_jvp(lambda t, x: mul(t, cosh(x)))

cosh_p = unary("cosh", inexact, np.cosh, "chlo.cosh")
cosh_p.def_jvp(lambda t, x: mul(t, sinh(x)))

asinh_p = unary("asinh", inexact, np.arcsinh, "chlo.asinh")
asinh_p.def_jvp(lambda t, x: mul(t, rsqrt(add(square(x), _scalar(x, 1)))))

acosh_p = unary("acosh", inexact, np.arccosh, "chlo.acosh")
acosh_p.def_jvp(lambda t, x: mul(t, rsqrt(sub(square(x), _scalar(x, 1)))))

atanh_p = unary("atanh", inexact, np.arctanh, "chlo.atanh")
atanh_p.def_jvp(  # 1 / (1 - x^2), in two factors
    lambda t, x: mul(
        reciprocal(add(_scalar(x, 1), x)), div(t, sub(_scalar(x, 1), x))
    )
)


def sin(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise sine; x in radians."""
    return sin_p.bind(x, accuracy=accuracy)


def cos(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise cosine; x in radians."""
    return cos_p.bind(x, accuracy=accuracy)


def tan(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise tangent; x in radians."""
    return tan_p.bind(x, accuracy=accuracy)


def tanh(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise hyperbolic tangent."""
    return tanh_p.bind(x, accuracy=accuracy)


def asin(x: Any) -> Any:
    """Elementwise arc sine, in radians."""
    return asin_p.bind(x)


def acos(x: Any) -> Any:
    """Elementwise arc cosine, in radians."""
    return acos_p.bind(x)


def atan(x: Any) -> Any:
    """Elementwise arc tangent, in radians."""
    return atan_p.bind(x)


def atan2(x: Any, y: Any) -> Any:
    """Elementwise angle of the point with ordinate x and abscissa y, in radians."""
    return atan2_p.bind(x, y)


def sinh(x: Any) -> Any:
    """Elementwise hyperbolic sine."""
    return sinh_p.bind(x)


def cosh(x: Any) -> Any:
    """Elementwise hyperbolic cosine."""
    return cosh_p.bind(x)


def asinh(x: Any) -> Any:
    """Elementwise inverse hyperbolic sine."""
    return asinh_p.bind(x)


def acosh(x: Any) -> Any:
    """Elementwise inverse hyperbolic cosine."""
    return acosh_p.bind(x)


def atanh(x: Any) -> Any:
    """Elementwise inverse hyperbolic tangent."""
    return atanh_p.bind(x)


# ----------------------------------------------------------------------------------
# Complex numbers
# ----------------------------------------------------------------------------------


def _is_complex(x: Any) -> bool:
    return dtypes.issubdtype(get_aval(x).dtype, np.complexfloating)


def _real_dtype(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


def _complex_dtype(dtype: Any) -> Any:
    return np.result_type(dtype, np.complex64)


real_p = unary("real", complexes, np.real, "real", _real_dtype)
def_linear(real_p, lambda ct, x: [complex(ct, _scalar(ct, 0))])

imag_p = unary("imag", complexes, np.imag, "imag", _real_dtype)
def_linear(imag_p, lambda ct, x: [complex(_scalar(ct, 0), neg(ct))])

complex_p = nary(
    "complex",
    [{np.float32, np.float64}] * 2,
    lambda x, y: x + 1j * y,
    "complex",
    result_dtype=lambda x, y: _complex_dtype(x.dtype),
)
# Cotangents pair with tangents without conjugation, hence the sign (as in JAX).
def_linear(
    complex_p,
    lambda ct, x, y: [
        unbroadcast(x.aval, real(ct)) if is_linear(x) else None,
        unbroadcast(y.aval, imag(neg(ct))) if is_linear(y) else None,
    ],
)


def _conj(x: Any) -> Any:
    if _is_complex(x):
        return complex(real(x), neg(imag(x)))
    return complex(x, shaping.full_like(x, 0))


conj_p = unary(
    "conj",
    complexes | {np.float32, np.float64},
    lambda x, input_dtype: np.conj(x).astype(_complex_dtype(x.dtype)),
    lambda ctx, x, input_dtype: ctx.lower_fun(_conj, x),
    _complex_dtype,
)
def_linear(
    conj_p,
    lambda ct, x, input_dtype: [
        conj(ct) if dtypes.issubdtype(input_dtype, np.complexfloating) else real(ct)
    ],
)


def real(x: Any) -> Any:
    """The real part of complex numbers."""
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """The imaginary part of complex numbers."""
    return imag_p.bind(x)


def complex(x: Any, y: Any) -> Any:
    """The complex numbers x + iy; x and y float32 or float64."""
    return complex_p.bind(x, y)


def conj(x: Any) -> Any:
    """The complex conjugate; real x become complex."""
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


# ----------------------------------------------------------------------------------
# Comparison
# ----------------------------------------------------------------------------------


def _compare(x: Any, y: Any, direction: str, kind: str) -> Any:
    comparisons = hlo.stablehlo
    return comparisons.compare(
        x,
        y,
        comparisons.ComparisonDirectionAttr.get(direction),
        compare_type=comparisons.ComparisonTypeAttr.get(kind),
    )


def _comparison_lowering(direction: str, total_order: bool) -> Any:
    def lower(ctx: Any, x: Any, y: Any) -> Any:
        dtype = ctx.avals_in[0].dtype
        x, y = ctx.broadcast((x, y))
        if isinstance(dtype, dtypes.ExtendedDType):
            return _compare_keys(ctx, x, y, direction, dtype)
        if dtypes.issubdtype(dtype, np.inexact):
            kind = "TOTALORDER" if total_order else "FLOAT"
        elif dtypes.issubdtype(dtype, np.signedinteger):
            kind = "SIGNED"
        else:
            kind = "UNSIGNED"
        return _compare(x, y, direction, kind)

    return lower


def _compare_keys(ctx: Any, x: Any, y: Any, direction: str, dtype: Any) -> Any:
    """Keys are equal if all their words are."""
    (out,) = ctx.avals_out
    words = _compare(x, y, direction, "UNSIGNED")
    axes = tuple(range(out.ndim, out.ndim + len(dtype.physical_shape)))
    physical = ShapedArray((*out.shape, *dtype.physical_shape), np.dtype(bool))
    combine = reductions.reduce_and if direction == "EQ" else reductions.reduce_or
    inner = ctx.replace(avals_in=[physical])
    return inner.lower_fun(lambda flags: combine(flags, axes), words)


def _comparison(
    name: str, accepted: set, meaning: Any, direction: str, total_order: bool = False
) -> Any:
    primitive = nary(
        name,
        [accepted, accepted],
        meaning,
        _comparison_lowering(direction, total_order),
        result_dtype=lambda x, y: np.dtype(bool),
    )
    def_zero_jvp(primitive)
    return primitive


eq_p = _comparison("eq", anything, np.equal, "EQ")
ne_p = _comparison("ne", anything, np.not_equal, "NE")
ge_p = _comparison("ge", ordered, np.greater_equal, "GE")
gt_p = _comparison("gt", ordered, np.greater, "GT")
le_p = _comparison("le", ordered, np.less_equal, "LE")
lt_p = _comparison("lt", ordered, np.less, "LT")


def _total_order_key(x: Any) -> Any:
    """Integers ordered like floats are: -NaN < -inf < -0 < 0 < inf < NaN."""
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).max ^ bits, bits)


def _in_total_order(compare: Any) -> Any:
    def meaning(x: Any, y: Any) -> Any:
        if x.dtype.kind == "f":
            x, y = _total_order_key(x), _total_order_key(y)
        return compare(x, y)

    return meaning


eq_to_p = _comparison("eq_to", anything, _in_total_order(np.equal), "EQ", True)
le_to_p = _comparison("le_to", ordered, _in_total_order(np.less_equal), "LE", True)
lt_to_p = _comparison("lt_to", ordered, _in_total_order(np.less), "LT", True)


def eq(x: Any, y: Any) -> Any:
    """Elementwise x == y, as booleans; NaN equals nothing."""
    return eq_p.bind(x, y)


def ne(x: Any, y: Any) -> Any:
    """Elementwise x != y, as booleans."""
    return ne_p.bind(x, y)


def ge(x: Any, y: Any) -> Any:
    """Elementwise x >= y, as booleans."""
    return ge_p.bind(x, y)


def gt(x: Any, y: Any) -> Any:
    """Elementwise x > y, as booleans."""
    return gt_p.bind(x, y)


def le(x: Any, y: Any) -> Any:
    """Elementwise x <= y, as booleans."""
    return le_p.bind(x, y)


def lt(x: Any, y: Any) -> Any:
    """Elementwise x < y, as booleans."""
    return lt_p.bind(x, y)


# ----------------------------------------------------------------------------------
# Bits
# ----------------------------------------------------------------------------------

not_p = unary("not", bool_or_int, np.invert, "not_")
and_p = nary("and", [bool_or_int] * 2, np.bitwise_and, "and_")
or_p = nary("or", [bool_or_int] * 2, np.bitwise_or, "or_")
xor_p = nary("xor", [bool_or_int] * 2, np.bitwise_xor, "xor")


def _shift_meaning(shift: Any, unsigned: bool, overflow: Any) -> Any:
    """Shifts by the width or more are defined in XLA; NumPy leaves them undefined."""

    def meaning(x: Any, y: Any) -> Any:
        bits = 8 * x.dtype.itemsize
        words = x.view(f"u{x.dtype.itemsize}") if unsigned else x
        amounts = y.astype(f"u{y.dtype.itemsize}")
        small = np.where(amounts < bits, amounts, 0).astype(words.dtype)
        out = np.where(amounts < bits, shift(words, small), overflow(words))
        return out.astype(words.dtype).view(x.dtype)

    return meaning


shift_left_p = nary(
    "shift_left",
    [ints, ints],
    _shift_meaning(np.left_shift, True, np.zeros_like),
    "shift_left",
)
shift_right_arithmetic_p = nary(
    "shift_right_arithmetic",
    [ints, ints],
    _shift_meaning(np.right_shift, False, lambda x: np.where(x < 0, -1, 0)),
    "shift_right_arithmetic",
)
shift_right_logical_p = nary(
    "shift_right_logical",
    [ints, ints],
    _shift_meaning(np.right_shift, True, np.zeros_like),
    "shift_right_logical",
)
population_count_p = unary(
    "population_count", ints, lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")), "popcnt"
)
clz_p = unary("clz", ints, lambda x: _leading_zeros(x), "count_leading_zeros")


def _leading_zeros(x: Any) -> Any:
    bits = 8 * x.dtype.itemsize
    words = x.view(f"u{x.dtype.itemsize}")
    lengths = np.array([int(word).bit_length() for word in words.ravel()], int)
    return (bits - lengths).reshape(x.shape).astype(x.dtype)


mulhi_p = nary(
    "mulhi",
    [ints, ints],
    lambda x, y: _high_words(x, y),
    "chlo.mulhi",
)


def _high_words(x: Any, y: Any) -> Any:
    product = x.astype(object) * y.astype(object)
    return np.array(product >> (8 * x.dtype.itemsize)).astype(x.dtype)


for _primitive in (
    not_p,
    and_p,
    or_p,
    xor_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    population_count_p,
    clz_p,
    mulhi_p,
):
    def_zero_jvp(_primitive)


def bitwise_not(x: Any) -> Any:
    """Elementwise complement of the bits; logical `not` for booleans."""
    return not_p.bind(x)


def bitwise_and(x: Any, y: Any) -> Any:
    """Elementwise `and` of the bits, or of booleans."""
    return and_p.bind(x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """Elementwise `or` of the bits, or of booleans."""
    return or_p.bind(x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """Elementwise exclusive `or` of the bits, or of booleans."""
    return xor_p.bind(x, y)


def shift_left(x: Any, y: Any) -> Any:
    """The bits of x moved y places up; 0 once y reaches the width."""
    return shift_left_p.bind(x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """The bits of x moved y places down, copies of the sign bit coming in."""
    return shift_right_arithmetic_p.bind(x, y)


def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of x moved y places down, zeros coming in."""
    return shift_right_logical_p.bind(x, y)


def population_count(x: Any) -> Any:
    """How many bits of each integer are 1."""
    return population_count_p.bind(x)


def clz(x: Any) -> Any:
    """How many leading bits of each integer are 0."""
    return clz_p.bind(x)


def mulhi(x: Any, y: Any) -> Any:
    """The upper half of the double-width product of integers."""
    return mulhi_p.bind(x, y)


