"""Arithmetic, comparison, logic and bits: the functions behind the operators.

Each function promotes its arguments (`promotion.py`) and applies one primitive. The
jit boundaries are JAX's, and so are the equations of the few functions that need
more than one primitive (`floor_divide`, `remainder`, `power` of integers).

In JAX: `numpy/math/ufuncs.py`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments, promotion
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.math.ufunc_api import ufunc
from minijax.numpy.reduce import reductions, running
from minijax.numpy.shapes.broadcasting import _where
from minijax.support import element_types

_bool = np.dtype(bool)


def binary_ufunc(
    identity: Any,
    *,
    reduce: Callable[..., Array] | None = None,
    accumulate: Callable[..., Array] | None = None,
    at: Callable[..., Array] | None = None,
    associative: bool = True,
) -> Callable[[Callable[[Any, Any], Array]], ufunc]:
    """Make a `ufunc` of a function of two arrays, inlined where it is traced."""

    def decorate(function: Callable[[Any, Any], Array]) -> ufunc:
        call = inline_jit(function)
        own: dict[str, Any] = {"reduce": reduce, "accumulate": accumulate, "at": at}
        kind: dict[str, Any] = {"identity": identity, "associative": associative}
        return ufunc(call, nin=2, nout=1, call=call, **kind, **own)

    return decorate


# --------------------------------------------------------------------------
# Arithmetic


def _at_as_integers(method: str) -> Callable[..., Array]:
    """`add.at` and `multiply.at`; bools are counted in int32, since a scatter of
    bools would have to be another primitive."""

    def at(a: Array, indices: Any, b: Any) -> Array:
        if a.dtype != _bool:
            return getattr(a.at[indices], method)(b)
        b = lax.convert_element_type(b, _bool).astype(np.int32)
        return getattr(a.astype(np.int32).at[indices], method)(b).astype(_bool)

    return at


def _subtract_at(a: Array, indices: Any, b: Any) -> Array:
    return a.at[indices].subtract(b)


@binary_ufunc(
    0, reduce=reductions.sum, accumulate=running.cumsum, at=_at_as_integers("add")
)
def add(x: Any, y: Any, /) -> Array:
    """`x + y` elementwise; `or` for bools."""
    x, y = promotion.promote_args("add", x, y)
    return lax.bitwise_or(x, y) if promotion.dtype_of(x) == _bool else lax.add(x, y)


@binary_ufunc(None, at=_subtract_at, associative=False)
def subtract(x: Any, y: Any, /) -> Array:
    """`x - y` elementwise. Bools cannot be subtracted: TypeError."""
    return lax.sub(*promotion.promote_args("subtract", x, y))


@binary_ufunc(
    1, reduce=reductions.prod, accumulate=running.cumprod, at=_at_as_integers("mul")
)
def multiply(x: Any, y: Any, /) -> Array:
    """`x * y` elementwise; `and` for bools."""
    x, y = promotion.promote_args("multiply", x, y)
    return lax.bitwise_and(x, y) if promotion.dtype_of(x) == _bool else lax.mul(x, y)


@inline_jit
def true_divide(x1: Any, x2: Any, /) -> Array:
    """`x1 / x2` elementwise; integers and bools become floating point first."""
    return lax.div(*promotion.promote_args_inexact("true_divide", x1, x2))


def divide(x1: Any, x2: Any, /) -> Array:
    """The same as `true_divide`."""
    return true_divide(x1, x2)


@jit
def floor_divide(x1: Any, x2: Any, /) -> Array:
    """`x1 / x2` rounded down, in the common dtype. TypeError for complex numbers."""
    x1, x2 = promotion.promote_args_numeric("floor_divide", x1, x2)
    dtype = x1.dtype
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return lax.div(x1, x2)
    if dtypes.issubdtype(dtype, np.integer):
        # XLA rounds towards zero: one less where the signs differ and a rest is left.
        quotient = lax.div(x1, x2)
        round_down = logical_and(lax.sign(x1) != lax.sign(x2), lax.rem(x1, x2) != 0)
        return _where(round_down, quotient - 1, quotient)
    if dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _float_divmod(x1, x2)[0]


@jit
def remainder(x1: Any, x2: Any, /) -> Array:
    """The remainder of `floor_divide`; it has the sign of `x2`.

    An integer modulo zero is zero; a float modulo zero is NaN.
    """
    x1, x2 = promotion.promote_args_numeric("remainder", x1, x2)
    zero = promotion.constant_like(x1, 0)
    if dtypes.issubdtype(x2.dtype, np.integer):
        x2 = _where(x2 == 0, lax.full_like(x2, 1), x2)
    rest = lax.rem(x1, x2)
    rest_not_zero = lax.ne(rest, zero)
    signs_differ = lax.ne(lax.lt(rest, zero), lax.lt(x2, zero))
    move_up = lax.bitwise_and(signs_differ, rest_not_zero)
    return lax.select(move_up, lax.add(rest, x2), rest)


def mod(x1: Any, x2: Any, /) -> Array:
    """The same as `remainder`."""
    return remainder(x1, x2)


@jit
def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """The pair `(x1 // x2, x1 % x2)`."""
    x1, x2 = promotion.promote_args_numeric("divmod", x1, x2)
    if dtypes.issubdtype(x1.dtype, np.integer):
        return floor_divide(x1, x2), remainder(x1, x2)
    return _float_divmod(x1, x2)


def _float_divmod(x1: Array, x2: Array) -> tuple[Array, Array]:
    # As NumPy: subtract the rest first, so that the quotient is a whole number up to
    # rounding, then move both by one step where the rest has the wrong sign.
    rest = lax.rem(x1, x2)
    dividend = _where(x2 == 0, x1, lax.sub(x1, rest))
    quotient = lax.div(dividend, x2)
    wrong_sign = lax.bitwise_and(rest != 0, lax.sign(x2) != lax.sign(rest))
    rest = lax.select(wrong_sign, rest + x2, rest)
    quotient = lax.select(wrong_sign, quotient - 1.0, quotient)
    return lax.round(quotient), rest


@jit
def fmod(x1: Any, x2: Any, /) -> Array:
    """The remainder of division rounded towards zero; it has the sign of `x1`."""
    x1, x2 = promotion.ensure_arraylike("fmod", x1, x2)
    if dtypes.issubdtype(element_types.result_type(x1, x2), np.integer):
        x2 = _where(x2 == 0, lax.full_like(x2, 1), x2)
    return lax.rem(*promotion.promote_args_numeric("fmod", x1, x2))


def power(x1: Any, x2: Any, /) -> Array:
    """`x1 ** x2` elementwise.

    An exponent that is one known integer becomes repeated multiplication
    (`integer_pow`), so it is differentiable everywhere; negative ones too. Arrays of
    integers to arrays of integers stay integers, and negative exponents then give
    whatever the bits give. Floats to integer arrays keep the exponent's dtype.
    """
    promotion.check_arraylike("power", x1, x2)
    x1 = promotion.unwrap_jax_array(x1)
    x2 = promotion.unwrap_jax_array(x2)
    promotion.check_no_float0s("power", x1, x2)
    if arguments.is_concrete(x2):
        try:
            exponent = operator.index(x2)
        except TypeError:
            return _power(x1, x2)
        (x1,) = promotion.promote_dtypes_numeric(x1)
        return lax.integer_pow(x1, exponent)
    return _power(x1, x2)


def pow(x1: Any, x2: Any, /) -> Array:
    """The same as `power`."""
    return power(x1, x2)


@inline_jit
def _power(x1: Any, x2: Any) -> Array:
    x1, x2 = promotion.promote_shapes("power", x1, x2)
    base, exponent = promotion.promote_args_numeric("power", x1, x2)
    if not dtypes.issubdtype(promotion.dtype_of(base), np.inexact):
        return _integer_power(base, exponent)
    if dtypes.issubdtype(promotion.dtype_of(x1), np.inexact) and dtypes.issubdtype(
        promotion.dtype_of(x2), np.integer
    ):
        return lax.pow(x1, x2)
    return lax.pow(base, exponent)


def _integer_power(x1: Any, x2: Any) -> Array:
    # Square and multiply. Six bits of the exponent are enough: with seven, every base
    # above one has overflowed.
    zero = promotion.strong_constant_like(x2, 0)
    one = promotion.strong_constant_like(x2, 1)
    base_is_zero = lax.bitwise_and(lax.eq(x1, zero), lax.ne(x2, zero))
    result = _where(base_is_zero, zero, one)
    for _ in range(6):
        result = _where(lax.bitwise_and(x2, one), lax.mul(result, x1), result)
        x1 = lax.mul(x1, x1)
        x2 = lax.shift_right_logical(x2, one)
    return result


@inline_jit
def float_power(x: Any, y: Any, /) -> Array:
    """`x ** y` in floating point, whatever the arguments are."""
    return lax.pow(*promotion.promote_args_inexact("float_power", x, y))


def _unary_ufunc(function: Callable[[Any], Array]) -> ufunc:
    call = inline_jit(function)
    return ufunc(call, nin=1, nout=1, call=call)


@_unary_ufunc
def negative(x: Any, /) -> Array:
    """`-x` elementwise."""
    return lax.neg(*promotion.promote_args("negative", x))


@inline_jit
def positive(x: Any, /) -> Array:
    """`+x`: the array itself."""
    (x,) = promotion.promote_args("positive", x)
    return x


@inline_jit
def absolute(x: Any, /) -> Array:
    """The absolute value; for complex numbers the (real) modulus."""
    x = promotion.ensure_arraylike("absolute", x)
    dtype = x.dtype
    if dtype == _bool or dtypes.issubdtype(dtype, np.unsignedinteger):
        return x
    return lax.abs(x)


@inline_jit
def abs(x: Any, /) -> Array:
    """The same as `absolute`."""
    return absolute(x)


@inline_jit
def fabs(x: Any, /) -> Array:
    """The absolute value in floating point. TypeError for complex numbers."""
    x = promotion.ensure_arraylike("fabs", x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(*promotion.promote_args_inexact("fabs", x))


@inline_jit
def sign(x: Any, /) -> Array:
    """-1, 0 or 1 in the dtype of `x`; for complex numbers x / |x|."""
    return lax.sign(*promotion.promote_args("sign", x))


# --------------------------------------------------------------------------
# Comparison


@binary_ufunc(None, reduce=reductions._reduce_min)
def minimum(x: Any, y: Any, /) -> Array:
    """The smaller of both, elementwise; NaN where either is NaN."""
    return lax.min(*promotion.promote_args("minimum", x, y))


@binary_ufunc(None, reduce=reductions._reduce_max)
def maximum(x: Any, y: Any, /) -> Array:
    """The larger of both, elementwise; NaN where either is NaN."""
    return lax.max(*promotion.promote_args("maximum", x, y))


@jit
def fmin(x1: Any, x2: Any) -> Array:
    """The smaller of both, elementwise; NaN only where both are NaN."""
    take_first = less(x1, x2) | lax.ne(x2, x2)
    return _where(take_first, x1, x2)


@jit
def fmax(x1: Any, x2: Any) -> Array:
    """The larger of both, elementwise; NaN only where both are NaN."""
    take_first = greater(x1, x2) | lax.ne(x2, x2)
    return _where(take_first, x1, x2)


@inline_jit
def equal(x: Any, y: Any, /) -> Array:
    """`x == y` elementwise, as bools."""
    return lax.eq(*promotion.promote_args("equal", x, y))


@inline_jit
def not_equal(x: Any, y: Any, /) -> Array:
    """`x != y` elementwise, as bools."""
    return lax.ne(*promotion.promote_args("not_equal", x, y))


def _ordered(name: str, compare: Callable[..., Array], x: Any, y: Any) -> Array:
    x, y = promotion.promote_args(name, x, y)
    if dtypes.issubdtype(promotion.dtype_of(x), np.complexfloating):
        # As NumPy: by the real part, and by the imaginary part where that is equal.
        x, y = promotion.ensure_arraylike(name, x, y)
        return lax.select(
            lax.eq(lax.real(x), lax.real(y)),
            compare(lax.imag(x), lax.imag(y)),
            compare(lax.real(x), lax.real(y)),
        )
    return compare(x, y)


@inline_jit
def less(x: Any, y: Any, /) -> Array:
    """`x < y` elementwise, as bools; complex numbers in lexical order."""
    return _ordered("less", lax.lt, x, y)


@inline_jit
def less_equal(x: Any, y: Any, /) -> Array:
    """`x <= y` elementwise, as bools; complex numbers in lexical order."""
    return _ordered("less_equal", lax.le, x, y)


@inline_jit
def greater(x: Any, y: Any, /) -> Array:
    """`x > y` elementwise, as bools; complex numbers in lexical order."""
    return _ordered("greater", lax.gt, x, y)


@inline_jit
def greater_equal(x: Any, y: Any, /) -> Array:
    """`x >= y` elementwise, as bools; complex numbers in lexical order."""
    return _ordered("greater_equal", lax.ge, x, y)


# --------------------------------------------------------------------------
# Logic and bits


def _to_bool(x: Any) -> Any:
    is_bool = promotion.dtype_of(x) == _bool
    return x if is_bool else lax.ne(x, promotion.constant_like(x, 0))


@binary_ufunc(True, reduce=reductions._reduce_logical_and)
def logical_and(x: Any, y: Any, /) -> Array:
    """Whether both are nonzero, elementwise."""
    return lax.bitwise_and(*map(_to_bool, promotion.promote_args("logical_and", x, y)))


@binary_ufunc(False, reduce=reductions._reduce_logical_or)
def logical_or(x: Any, y: Any, /) -> Array:
    """Whether at least one is nonzero, elementwise."""
    return lax.bitwise_or(*map(_to_bool, promotion.promote_args("logical_or", x, y)))


@binary_ufunc(False, reduce=reductions._reduce_logical_xor)
def logical_xor(x: Any, y: Any, /) -> Array:
    """Whether exactly one is nonzero, elementwise."""
    return lax.bitwise_xor(*map(_to_bool, promotion.promote_args("logical_xor", x, y)))


@inline_jit
def logical_not(x: Any, /) -> Array:
    """Whether `x` is zero, elementwise."""
    return lax.bitwise_not(*map(_to_bool, promotion.promote_args("logical_not", x)))


@binary_ufunc(-1, reduce=reductions._reduce_bitwise_and)
def bitwise_and(x: Any, y: Any, /) -> Array:
    """`x & y` elementwise, for integers and bools."""
    return lax.bitwise_and(*promotion.promote_args("bitwise_and", x, y))


@binary_ufunc(0, reduce=reductions._reduce_bitwise_or)
def bitwise_or(x: Any, y: Any, /) -> Array:
    """`x | y` elementwise, for integers and bools."""
    return lax.bitwise_or(*promotion.promote_args("bitwise_or", x, y))


@binary_ufunc(0, reduce=reductions._reduce_bitwise_xor)
def bitwise_xor(x: Any, y: Any, /) -> Array:
    """`x ^ y` elementwise, for integers and bools."""
    return lax.bitwise_xor(*promotion.promote_args("bitwise_xor", x, y))


@inline_jit
def bitwise_not(x: Any, /) -> Array:
    """`~x` elementwise, for integers and bools."""
    return lax.bitwise_not(*promotion.promote_args("bitwise_not", x))


@inline_jit
def bitwise_invert(x: Any, /) -> Array:
    """The same as `bitwise_not`."""
    return lax.bitwise_not(*promotion.promote_args("bitwise_invert", x))


@inline_jit
def invert(x: Any, /) -> Array:
    """The same as `bitwise_not`."""
    return lax.bitwise_not(*promotion.promote_args("invert", x))


@inline_jit
def left_shift(x: Any, y: Any, /) -> Array:
    """`x << y` elementwise, for integers."""
    return lax.shift_left(*promotion.promote_args_numeric("left_shift", x, y))


@inline_jit
def bitwise_left_shift(x: Any, y: Any, /) -> Array:
    """The same as `left_shift`."""
    return lax.shift_left(*promotion.promote_args_numeric("bitwise_left_shift", x, y))


@inline_jit
def right_shift(x1: Any, x2: Any, /) -> Array:
    """`x1 >> x2` elementwise; the sign bit is repeated for signed integers."""
    x1, x2 = promotion.promote_args_numeric("right_shift", x1, x2)
    if dtypes.issubdtype(promotion.dtype_of(x1), np.unsignedinteger):
        return lax.shift_right_logical(x1, x2)
    return lax.shift_right_arithmetic(x1, x2)


@inline_jit
def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """The same as `right_shift`."""
    return right_shift(x1, x2)


@jit
def bitwise_count(x: Any, /) -> Array:
    """The number of set bits of |x|, as uint8."""
    (x,) = promotion.promote_args_numeric("bitwise_count", x)
    return lax.population_count(absolute(x)).astype(np.uint8)
