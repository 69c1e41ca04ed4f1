"""Rounding, comparison up to rounding, and the bits of floating-point numbers.

In JAX: `numpy/math/ufuncs.py` and parts of `numpy/lax_numpy.py`.
"""

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy import arguments, promotion
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.math import ufuncs
from minijax.numpy.reduce.reducing import refuse_out
from minijax.numpy.shapes.broadcasting import _broadcast_arrays, _where
from minijax.support import element_types

_INTEGER_OF_BITS = {16: np.int16, 32: np.int32, 64: np.int64}


def _is_whole(x: Any) -> bool:
    return element_types.isdtype(promotion.dtype_of(x), ("integral", "bool"))


# --------------------------------------------------------------------------
# Rounding


@inline_jit
def floor(x: Any, /) -> Array:
    """Rounded down. Integers and bools come back as they are."""
    x = promotion.ensure_arraylike("floor", x)
    return x if _is_whole(x) else lax.floor(*promotion.promote_args_inexact("floor", x))


@inline_jit
def ceil(x: Any, /) -> Array:
    """Rounded up. Integers and bools come back as they are."""
    x = promotion.ensure_arraylike("ceil", x)
    return x if _is_whole(x) else lax.ceil(*promotion.promote_args_inexact("ceil", x))


@jit
def trunc(x: Any) -> Array:
    """Rounded towards zero. Integers and bools come back as they are."""
    x = promotion.ensure_arraylike("trunc", x)
    if _is_whole(x):
        return x
    return _where(lax.lt(x, promotion.constant_like(x, 0)), ceil(x), floor(x))


@jit
def rint(x: Any, /) -> Array:
    """The nearest whole number, halves to the even one, in floating point."""
    x = promotion.ensure_arraylike("rint", x)
    if _is_whole(x):
        return lax.convert_element_type(x, dtypes.default_float_dtype())
    if promotion.is_complex(x):
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


@jit(static_argnames=("decimals",))
def round(a: Any, decimals: int = 0, out: None = None) -> Array:
    """Rounded to `decimals` places, halves to the even neighbour.

    Integers come back as they are; for them negative `decimals` are not supported.
    """
    a = promotion.ensure_arraylike("round", a)
    decimals = arguments.static_index(decimals, "'decimals' argument of jnp.round")
    refuse_out("round", out)
    dtype = a.dtype
    if dtypes.issubdtype(dtype, np.integer):
        if decimals < 0:
            raise NotImplementedError(
                "integer np.round not implemented for decimals < 0: convert to a float."
            )
        return a
    if decimals > np.log10(float(dtypes.finfo(dtype).max)):
        return a
    if promotion.is_complex(a):
        return lax.complex(
            _round_float(lax.real(a), decimals), _round_float(lax.imag(a), decimals)
        )
    return _round_float(a, decimals)


def _round_float(x: Array, decimals: int) -> Array:
    if decimals == 0:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    dtype = x.dtype
    if dtype == np.float16:
        x = lax.convert_element_type(x, np.float32)  # 10^decimals would overflow
    factor = promotion.constant_like(x, 10**decimals)
    whole = lax.round(lax.mul(x, factor), lax.RoundingMethod.TO_NEAREST_EVEN)
    result = lax.div(whole, factor)
    return lax.convert_element_type(result, dtype) if dtype == np.float16 else result


@jit(static_argnames=("decimals",))
def around(a: Any, decimals: int = 0, out: None = None) -> Array:
    """The same as `round`."""
    return round(a, decimals, out)


@jit
def modf(x: Any, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the whole part, both with the sign of `x`."""
    (x,) = promotion.promote_dtypes_inexact(promotion.ensure_arraylike("modf", x))
    refuse_out("modf", out)
    whole = _where(lax.ge(x, promotion.constant_like(x, 0)), floor(x), ceil(x))
    return x - whole, whole


# --------------------------------------------------------------------------
# NaN and infinity


@inline_jit
def isnan(x: Any, /) -> Array:
    """Whether x is NaN: the only numbers that are not equal to themselves."""
    x = promotion.ensure_arraylike("isnan", x)
    return lax.ne(x, x)


@inline_jit
def isfinite(x: Any, /) -> Array:
    """Whether x is neither infinite nor NaN; True for integers."""
    x = promotion.ensure_arraylike("isfinite", x)
    if dtypes.issubdtype(x.dtype, np.floating):
        return lax.is_finite(x)
    if promotion.is_complex(x):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.full_like(x, True, dtype=np.bool_)


@jit
def isinf(x: Any, /) -> Array:
    """Whether x is infinite, of either sign."""
    x = promotion.ensure_arraylike("isinf", x)
    if dtypes.issubdtype(x.dtype, np.floating):
        return lax.eq(lax.abs(x), promotion.strong_constant_like(x, np.inf))
    if promotion.is_complex(x):
        re, im = lax.real(x), lax.imag(x)
        return lax.bitwise_or(
            lax.eq(lax.abs(re), promotion.strong_constant_like(re, np.inf)),
            lax.eq(lax.abs(im), promotion.strong_constant_like(im, np.inf)),
        )
    return lax.full_like(x, False, dtype=np.bool_)


def isposinf(x: Any, /, out: None = None) -> Array:
    """Whether x is plus infinity. ValueError for complex numbers."""
    return _is_equal_to_infinity("isposinf", x, np.inf, out)


def isneginf(x: Any, /, out: None = None) -> Array:
    """Whether x is minus infinity. ValueError for complex numbers."""
    return _is_equal_to_infinity("isneginf", x, -np.inf, out)


def _is_equal_to_infinity(name: str, x: Any, infinity: float, out: None) -> Array:
    x = promotion.ensure_arraylike(name, x)
    refuse_out(name, out)
    if dtypes.issubdtype(x.dtype, np.floating):
        return lax.eq(x, promotion.strong_constant_like(x, infinity))
    if promotion.is_complex(x):
        raise ValueError(f"{name} is not well defined for complex types")
    return lax.full_like(x, False, dtype=np.bool_)


@jit
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """NaN replaced by `nan`, infinities by `posinf` and `neginf`.

    Without these, infinities become the largest and smallest finite number. `copy`
    is there for NumPy's sake only. Integers come back as they are.
    """
    del copy
    x = promotion.ensure_arraylike("nan_to_num", x)
    dtype = x.dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        return x
    if promotion.is_complex(x):
        return lax.complex(
            nan_to_num(lax.real(x), nan=nan, posinf=posinf, neginf=neginf),
            nan_to_num(lax.imag(x), nan=nan, posinf=posinf, neginf=neginf),
        )
    info = dtypes.finfo(dtype)
    posinf = np.array(info.max, dtype) if posinf is None else posinf
    neginf = np.array(info.min, dtype) if neginf is None else neginf
    result = _where(isnan(x), lax.convert_element_type(nan, dtype), x)
    result = _where(isposinf(result), lax.convert_element_type(posinf, dtype), result)
    return _where(isneginf(result), lax.convert_element_type(neginf, dtype), result)


@jit(static_argnames=("equal_nan",))
def isclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether |a - b| <= atol + rtol |b|, elementwise. Infinities equal themselves,
    and NaN equals NaN if `equal_nan`."""
    a, b = promotion.promote_args("isclose", a, b)
    if dtypes.issubdtype(a.dtype, dtypes.extended):
        return lax.eq(a, b)
    a, b = promotion.promote_args_inexact("isclose", a, b)
    dtype = dtypes.finfo(a.dtype).dtype
    rtol = lax.convert_element_type(rtol, dtype)
    atol = lax.convert_element_type(atol, dtype)
    both_nan = ufuncs.logical_and(isnan(a), isnan(b))
    b_is_finite = isfinite(b)
    in_range = lax.le(lax.abs(lax.sub(a, b)), lax.add(atol, lax.mul(rtol, lax.abs(b))))
    result = ufuncs.logical_or(lax.eq(a, b), ufuncs.logical_and(b_is_finite, in_range))
    return ufuncs.logical_or(result, both_nan) if equal_nan else result


# --------------------------------------------------------------------------
# Signs, neighbours, exponents


@jit
def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set: True for -0.0 too. ValueError for complex."""
    (x,) = promotion.promote_args("signbit", x)
    dtype = x.dtype
    if dtypes.issubdtype(dtype, np.integer):
        return lax.lt(x, promotion.strong_constant_like(x, 0))
    if dtypes.issubdtype(dtype, np.bool_):
        return lax.full_like(x, False, dtype=np.bool_)
    if not dtypes.issubdtype(dtype, np.floating):
        raise ValueError(f"jax.numpy.signbit is not well defined for {dtype}")
    info = dtypes.finfo(dtype)
    if info.bits not in _INTEGER_OF_BITS:
        raise NotImplementedError(
            "jax.numpy.signbit only supports 16, 32, and 64-bit types: convert first."
        )
    bits = lax.bitcast_convert_type(x, _INTEGER_OF_BITS[info.bits])
    return lax.convert_element_type(bits >> (info.nexp + info.nmant), np.bool_)


@jit
def copysign(x1: Any, x2: Any, /) -> Array:
    """|x1| with the sign of x2. TypeError for complex numbers."""
    x1, x2 = promotion.promote_args_inexact("copysign", x1, x2)
    if promotion.is_complex(x1):
        raise TypeError("copysign does not support complex-valued inputs")
    return _where(signbit(x2).astype(bool), -lax.abs(x1), lax.abs(x1))


@jit
def heaviside(x1: Any, x2: Any, /) -> Array:
    """0 for negative x1, 1 for positive, x2 at zero."""
    x1, x2 = promotion.promote_dtypes_inexact(
        *promotion.ensure_arraylike("heaviside", x1, x2)
    )
    zero = promotion.constant_like(x1, 0)
    negative = lax.lt(x1, zero)
    positive = lax.gt(x1, zero)
    at_zero = _where(lax.ne(x1, x1), x1, x2)
    return _where(
        negative, zero, _where(positive, promotion.constant_like(x1, 1), at_zero)
    )


@inline_jit
def nextafter(x: Any, y: Any, /) -> Array:
    """The next floating-point number after x in the direction of y."""
    return lax.nextafter(*promotion.promote_args_inexact("nextafter", x, y))


@inline_jit
def spacing(x: Any, /) -> Array:
    """The distance from x to the next number away from zero, with the sign of x."""
    (x,) = promotion.promote_args_inexact("spacing", x)
    x = promotion.ensure_arraylike("spacing", x)
    if promotion.is_complex(x):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    infinity = promotion.constant_like(x, np.inf)
    if x.dtype == np.float16:
        return lax.nextafter(x, infinity) - x
    smallest = promotion.strong_constant_like(
        x, dtypes.finfo(x.dtype).smallest_subnormal
    )
    result = lax.nextafter(x, copysign(infinity, x)) - x
    return _where(result == 0, copysign(smallest, x), result)


@jit
def ldexp(x1: Any, x2: Any, /) -> Array:
    """x1 times 2 to the integer power x2."""
    x1, x2 = promotion.ensure_arraylike("ldexp", x1, x2)
    if promotion.is_complex(x1) or dtypes.issubdtype(x2.dtype, np.inexact):
        raise ValueError(
            f"ldexp not supported for input types {(x1.dtype, x2.dtype)}: the first "
            "must be real, the second an integer."
        )
    (x1,) = promotion.promote_args_inexact("ldexp", x1)
    x2 = lax.convert_element_type(x2, x1.dtype)
    mantissa, exponent = frexp(x1)
    exponent = (exponent.astype(x2.dtype) + x2).astype(x1.dtype)
    # Two steps, so that 2^exponent does not overflow before the product would.
    mantissa = _where(exponent > 0, mantissa * 2, mantissa)
    exponent = _where(exponent > 0, exponent - 1, exponent)
    result = mantissa * (2 ** exponent.astype(mantissa.dtype))
    return _where(isinf(x1) | (x1 == 0), x1, result)


@jit
def frexp(x: Any, /) -> tuple[Array, Array]:
    """Mantissa in [0.5, 1) and int32 exponent, with x = mantissa * 2^exponent."""
    (x,) = promotion.promote_dtypes_inexact(promotion.ensure_arraylike("frexp", x))
    if promotion.is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs")
    return _frexp(x)


@custom_jvp
def _frexp(x: Array) -> tuple[Array, Array]:
    info = dtypes.finfo(x.dtype)
    integer = _INTEGER_OF_BITS[info.bits]
    mask = (1 << info.nexp) - 1
    bias = 1 - info.minexp
    # Subnormal numbers are scaled up first, and that is subtracted from the exponent.
    tiny = lax.abs(x) < promotion.strong_constant_like(x, info.tiny)
    scaled = _where(tiny, x * promotion.constant_like(x, 1 << info.nmant), x)
    exponent = _where(tiny, integer(-info.nmant), integer(0))
    bits = lax.bitcast_convert_type(scaled, integer)
    exponent = exponent + (((bits >> info.nmant) & mask) - bias + 1)
    bits = bits & ~(mask << info.nmant)
    bits = bits | ((bias - 1) << info.nmant)
    mantissa = lax.bitcast_convert_type(bits, x.dtype)
    special = isinf(x) | isnan(x) | (x == 0)
    exponent = _where(special, lax.full_like(exponent, 0), exponent)
    mantissa = _where(special, x, mantissa)
    return mantissa, lax.convert_element_type(exponent, np.int32)


@_frexp.defjvp
def _frexp_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    mantissa, exponent = frexp(x)
    mantissa_dot = t * lax.exp2(-exponent.astype(t.dtype))
    exponent_dot = np.zeros(exponent.shape, dtypes.float0)
    return (mantissa, exponent), (mantissa_dot, exponent_dot)


# --------------------------------------------------------------------------
# Common divisors


@jit
def gcd(x1: Any, x2: Any) -> Array:
    """The greatest common divisor, by Euclid's algorithm. ValueError for floats."""
    x1, x2 = promotion.promote_dtypes(*promotion.ensure_arraylike("gcd", x1, x2))
    if not dtypes.issubdtype(x1.dtype, np.integer):
        raise ValueError("Arguments to jax.numpy.gcd must be integers.")
    larger, smaller = _broadcast_arrays(x1, x2)
    larger, smaller = ufuncs.absolute(larger), ufuncs.absolute(smaller)
    # The worst case are neighbours in Fibonacci's sequence, which grows by the golden
    # ratio: that many steps are enough for every pair of numbers of this width.
    bits = dtypes.iinfo(x1.dtype).bits
    zero = promotion.constant_like(smaller, 0)
    for _ in range(math.ceil(bits / math.log2((1 + math.sqrt(5)) / 2)) + 1):
        unfinished = lax.ne(smaller, zero)
        divisor = lax.select(unfinished, smaller, larger)
        rest = lax.rem(larger, divisor)
        larger = divisor
        smaller = lax.select(unfinished, rest, lax.full_like(rest, 0))
    return larger


@jit
def lcm(x1: Any, x2: Any) -> Array:
    """The least common multiple. ValueError for floats."""
    x1, x2 = promotion.promote_dtypes(*promotion.ensure_arraylike("lcm", x1, x2))
    x1, x2 = ufuncs.absolute(x1), ufuncs.absolute(x2)
    if not dtypes.issubdtype(x1.dtype, np.integer):
        raise ValueError("Arguments to jax.numpy.lcm must be integers.")
    divisor = gcd(x1, x2)
    return _where(
        divisor == 0,
        promotion.constant_like(divisor, 0),
        ufuncs.multiply(x1, ufuncs.floor_divide(x2, divisor)),
    )
