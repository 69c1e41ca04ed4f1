"""Elementwise primitives: arithmetic, comparison, exponentials, trigonometry, bits.

Each block is a primitive with all its rules: what it means (in NumPy), which dtypes it
accepts, how it becomes StableHLO, its derivative and its transpose. Batching and types
come from the family (`rules.unary`, `rules.nary`). Below the blocks of a group stand
the functions of `lax` that bind them.

The sources of the formulas are the usual tables of derivatives; a comment says so where
one is not obvious.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.language import rules
from minijax.language.core import ShapedArray, get_aval
from minijax.language.rules import (
    Zero,
    anything,
    complexes,
    def_bilinear,
    def_jvp_with_output,
    def_linear,
    floats,
    ints,
    is_linear,
    nary,
    numbers,
    scalar_like,
    unary,
)
from minijax.language.rules import constant_like as _scalar
from minijax.primitives.elementwise import comparing, rounding, select
from minijax.primitives.elementwise.accuracy import accurate_lowering
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import shaping
from minijax.support import dtypes


def one_like(like: Any) -> Any:
    """The number one as a scalar of the dtype and weak type of an operand."""
    return scalar_like(get_aval(like), 1)


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
# arguments always have one shape, that its type is that of the first one, and that it
# is printed under its own name.
add_any_p = rules.add_any_p
add_any_p.meaning = np.add
add_any_p.def_abstract_eval(lambda x, y: x)
add_any_p.def_impl(lambda x, y: add_p.bind(x, y))


def _add_any_batch(axis_data: Any, args: Any, dims: Any) -> Any:
    # Unlike `add`, it repeats nothing: both operands get the whole axis, in one place.
    dim = dims[0] if dims[1] is rules.not_mapped else dims[1]
    x, y = (rules.match_axis(axis_data.size, arg, d, dim) for arg, d in zip(args, dims))
    return add_any_p.bind(x, y), dim


add_any_p.batch = _add_any_batch
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
    lambda t, x, y: div(t, y), lambda t, x, y: mul(mul(neg(t), x), integer_pow(y, -2))
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
        rules.broadcast_shapes_of_operands(
            "rem", [get_aval(x).shape, get_aval(y).shape]
        ),
    ),
    lambda t, x, y: mul(
        neg(t), mul(rounding.sign(div(x, y)), rounding.floor(rounding.abs(div(x, y))))
    ),
)
rem_p.without("transpose", "its jvp multiplies: the tangent itself is only broadcast")


def _balanced_equal(x: Any, out: Any, y: Any) -> Any:
    """1 where `x` alone is the extremum, 1/2 where both operands are, else 0."""
    alone = select.select(
        comparing.eq(x, out), shaping.full_like(out, 1), shaping.full_like(out, 0)
    )
    share = select.select(
        comparing.eq(y, out), shaping.full_like(out, 2), shaping.full_like(out, 1)
    )
    return div(alone, share)


def _extremum_lowering(operation: str) -> Any:
    """XLA orders complex numbers in no way; here they go by real part, then imag."""

    def lower(ctx: Any, x: Any, y: Any) -> Any:
        x, y = ctx.broadcast((x, y))
        return reductions.combine_values(operation, ctx.avals_out[0].dtype, x, y)

    return lower


max_p = nary("max", [anything, anything], np.maximum, _extremum_lowering("maximum"))
def_jvp_with_output(
    max_p,
    lambda t, out, x, y: mul(t, _balanced_equal(x, out, y)),
    lambda t, out, x, y: mul(t, _balanced_equal(y, out, x)),
)

min_p = nary("min", [anything, anything], np.minimum, _extremum_lowering("minimum"))
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
# Powers, exponentials, logarithms
# ----------------------------------------------------------------------------------

_pretty_accuracy = _without_none("accuracy")


def _accurate(name: str, accepted: set, meaning: Any, lower: str | Any) -> Any:
    """A unary primitive with an `accuracy` parameter."""
    primitive = unary(
        name,
        accepted,
        lambda x, accuracy=None: meaning(x),
        lower if callable(lower) else accurate_lowering(lower),
    )
    primitive.pretty = _pretty_accuracy
    return primitive


inexact = floats | complexes

exp_p = _accurate("exp", inexact, np.exp, "exponential")
def_jvp_with_output(exp_p, lambda t, out, x, **_: mul(t, out))


def _exp2_lowering(ctx: Any, x: Any, *, accuracy: Any) -> Any:
    (aval,) = ctx.avals_in
    scaled = hlo.stablehlo.multiply(ctx.full_like(np.log(2), aval), x)
    return accurate_lowering("exponential")(ctx, scaled, accuracy=accuracy)


exp2_p = _accurate("exp2", inexact, np.exp2, _exp2_lowering)
def_jvp_with_output(exp2_p, lambda t, out, x, **_: mul(log(_scalar(x, 2)), mul(t, out)))

log_p = _accurate("log", inexact, np.log, "log")
log_p.def_jvp(lambda t, x, **_: div(t, x))

expm1_p = _accurate("expm1", inexact, np.expm1, "exponential_minus_one")
def_jvp_with_output(expm1_p, lambda t, out, x, **_: mul(t, add(out, one_like(out))))

log1p_p = _accurate("log1p", inexact, np.log1p, "log_plus_one")
log1p_p.def_jvp(lambda t, x, **_: div(t, add(x, one_like(x))))

logistic_p = _accurate(
    "logistic",
    inexact,
    lambda x: 1 / (1 + np.exp(-x)),
    lambda ctx, x, accuracy: ctx.lower_fun(_logistic, x),
)
def_jvp_with_output(
    logistic_p, lambda t, out, x, **_: mul(t, mul(out, sub(one_like(out), out)))
)


def _logistic(x: Any) -> Any:
    one = one_like(x)
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
    x, y = ctx.broadcast((x, y))
    if y_aval.dtype != x_aval.dtype:
        y = hlo.stablehlo.convert(ctx.result_type(), y)
    return hlo.stablehlo.power(x, y)


pow_p = nary(
    "pow",
    [inexact, inexact | ints],
    lambda x, y: np.power(x, y.astype(x.dtype)),
    _pow_lowering,
    result_dtype=_pow_dtype,
    same_dtypes=False,
)


def _pow_jvp_base(t: Any, out: Any, x: Any, y: Any) -> Any:  # y x^(y-1)
    whole = dtypes.issubdtype(get_aval(y).dtype, np.integer)
    shape, dtype = get_aval(out).shape, get_aval(out).dtype
    x, y = (shaping.convert_element_type(z, dtype) for z in (x, y))
    if not whole:
        return mul(t, mul(y, pow(x, sub(y, shaping.full_like(y, 1)))))
    x, y = broadcast_like(x, shape), broadcast_like(y, shape)
    zero = comparing.eq(y, _scalar(y, 0))
    none = shaping.full_like(y, 0)
    slope = mul(replace_zero(y), pow(x, sub(y, shaping.full_like(y, 1))))
    return mul(t, select.select(zero, none, slope))


def _pow_jvp_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:  # x^y log x
    slope = mul(t, mul(log(replace_zero(x)), out))
    return shaping.convert_element_type(slope, get_aval(y).dtype)


def_jvp_with_output(pow_p, _pow_jvp_base, _pow_jvp_exponent)


def replace_zero(x: Any) -> Any:
    """`x` with 1 in place of 0, where a factor of 0 makes the value irrelevant."""
    return select.select(comparing.eq(x, _scalar(x, 0)), shaping.full_like(x, 1), x)


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
# Sine, cosine, tangent, and their hyperbolic cousin
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
    lambda t, out, x, **_: mul(add(t, mul(t, out)), sub(one_like(x), out)),
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
