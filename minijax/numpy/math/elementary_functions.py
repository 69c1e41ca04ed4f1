"""Exponentials, logarithms, trigonometry and complex numbers.

The functions that are one primitive in floating point stand in a table; the others
follow with their own lines.

In JAX: `numpy/math/ufuncs.py` and parts of `numpy/lax_numpy.py`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes, operators
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy import promotion
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.math.float_functions import isposinf
from minijax.numpy.math.ufuncs import maximum, minimum
from minijax.numpy.shapes.broadcasting import _where

# --------------------------------------------------------------------------
# One primitive in floating point


def _inexact_function(
    name: str, primitive: Callable[[Any], Array], meaning: str
) -> Callable[[Any], Array]:
    def function(x: Any, /) -> Array:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype in operators.INEXACT_TYPES:
            return primitive(x)
        return primitive(*promotion.promote_args_inexact(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{meaning}, elementwise. Integers and bools become floating point first."
    )
    return inline_jit(function)


exp = _inexact_function("exp", lax.exp, "e to the power x")
exp2 = _inexact_function("exp2", lax.exp2, "2 to the power x")
expm1 = _inexact_function("expm1", lax.expm1, "e^x - 1, accurate near zero")
log = _inexact_function("log", lax.log, "The natural logarithm")
log1p = _inexact_function("log1p", lax.log1p, "log(1 + x), accurate near zero")
sqrt = _inexact_function("sqrt", lax.sqrt, "The square root; NaN below zero")
cbrt = _inexact_function("cbrt", lax.cbrt, "The real cube root")
sin = _inexact_function("sin", lax.sin, "The sine of x in radians")
cos = _inexact_function("cos", lax.cos, "The cosine of x in radians")
tan = _inexact_function("tan", lax.tan, "The tangent of x in radians")
arcsin = _inexact_function("arcsin", lax.asin, "The inverse sine, in radians")
arccos = _inexact_function("arccos", lax.acos, "The inverse cosine, in radians")
arctan = _inexact_function("arctan", lax.atan, "The inverse tangent, in radians")
sinh = _inexact_function("sinh", lax.sinh, "The hyperbolic sine")
cosh = _inexact_function("cosh", lax.cosh, "The hyperbolic cosine")
tanh = _inexact_function("tanh", lax.tanh, "The hyperbolic tangent")
arcsinh = _inexact_function("arcsinh", lax.asinh, "The inverse hyperbolic sine")
arctanh = _inexact_function("arctanh", lax.atanh, "The inverse hyperbolic tangent")
asin = _inexact_function("asin", lax.asin, "The inverse sine, in radians")
acos = _inexact_function("acos", lax.acos, "The inverse cosine, in radians")
atan = _inexact_function("atan", lax.atan, "The inverse tangent, in radians")
asinh = _inexact_function("asinh", lax.asinh, "The inverse hyperbolic sine")
atanh = _inexact_function("atanh", lax.atanh, "The inverse hyperbolic tangent")


@jit
def arccosh(x: Any, /) -> Array:
    """The inverse hyperbolic cosine, elementwise; NaN below one.

    For complex numbers, the branch with a nonnegative real part, as in NumPy.
    """
    result = lax.acosh(*promotion.promote_args_inexact("arccosh", x))
    if promotion.is_complex(result):
        result = _where(real(result) < 0, lax.neg(result), result)
    return result


@inline_jit
def acosh(x: Any, /) -> Array:
    """The same as `arccosh`."""
    return arccosh(*promotion.promote_args("acosh", x))


@inline_jit
def arctan2(x1: Any, x2: Any, /) -> Array:
    """The angle of the point (x2, x1), in radians from -pi to pi."""
    return lax.atan2(*promotion.promote_args_inexact("arctan2", x1, x2))


@inline_jit
def atan2(x1: Any, x2: Any, /) -> Array:
    """The same as `arctan2`."""
    return arctan2(*promotion.promote_args("atan2", x1, x2))


# --------------------------------------------------------------------------
# Logarithms and exponentials of more than one primitive


@inline_jit
def log2(x: Any, /) -> Array:
    """The logarithm to base 2: log(x) / log(2)."""
    (x,) = promotion.promote_args_inexact("log2", x)
    if promotion.is_complex(x):
        result = lax.log(x)
        re, im = lax.real(result), lax.imag(result)
        log_of_two = lax.log(promotion.strong_constant_like(re, 2))
        return lax.complex(lax.div(re, log_of_two), lax.div(im, log_of_two))
    return lax.div(lax.log(x), lax.log(promotion.strong_constant_like(x, 2)))


@inline_jit
def log10(x: Any, /) -> Array:
    """The logarithm to base 10: log(x) times 1 / log(10)."""
    (x,) = promotion.promote_args_inexact("log10", x)
    factor = np.array(1 / np.log(10), dtypes.finfo(promotion.dtype_of(x)).dtype)
    if promotion.is_complex(x):
        result = lax.log(x)
        re, im = lax.real(result), lax.imag(result)
        return lax.complex(lax.mul(re, factor), lax.mul(im, factor))
    return lax.mul(lax.log(x), factor)


@inline_jit
def square(x: Any, /) -> Array:
    """x * x; bools become integers."""
    (x,) = promotion.promote_dtypes_numeric(promotion.ensure_arraylike("square", x))
    return lax.square(x)


@inline_jit
def reciprocal(x: Any, /) -> Array:
    """1 / x in floating point."""
    (x,) = promotion.promote_dtypes_inexact(promotion.ensure_arraylike("reciprocal", x))
    return lax.integer_pow(x, -1)


@jit
def hypot(x1: Any, x2: Any, /) -> Array:
    """sqrt(x1^2 + x2^2) without overflow. ValueError for complex numbers."""
    x1, x2 = promotion.promote_args_inexact("hypot", x1, x2)
    if promotion.is_complex(x1):
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs. "
            "Please convert to real values first, such as by using abs(x)"
        )
    x1, x2 = lax.abs(x1), lax.abs(x2)
    infinite = lax.bitwise_or(isposinf(x1), isposinf(x2))
    x1, x2 = maximum(x1, x2), minimum(x1, x2)
    is_zero = x1 == 0
    divisor = _where(x1 == 0, lax.full_like(x1, 1), x1)
    ratio = lax.square(lax.div(x2, divisor))
    result = _where(is_zero, x1, x1 * lax.sqrt(1 + ratio))
    return _where(infinite, promotion.constant_like(result, np.inf), result)


@inline_jit
def deg2rad(x: Any, /) -> Array:
    """Degrees to radians."""
    (x,) = promotion.promote_args_inexact("deg2rad", x)
    return lax.mul(x, promotion.constant_like(x, np.pi / 180))


@inline_jit
def rad2deg(x: Any, /) -> Array:
    """Radians to degrees."""
    (x,) = promotion.promote_args_inexact("rad2deg", x)
    return lax.mul(x, promotion.constant_like(x, 180 / np.pi))


def degrees(x: Any, /) -> Array:
    """The same as `rad2deg`."""
    return rad2deg(x)


def radians(x: Any, /) -> Array:
    """The same as `deg2rad`."""
    return deg2rad(x)


@jit
def sinc(x: Any, /) -> Array:
    """sin(pi x) / (pi x), and 1 at zero, with all derivatives there."""
    (x,) = promotion.promote_dtypes_inexact(promotion.ensure_arraylike("sinc", x))
    at_zero = lax.eq(x, promotion.constant_like(x, 0))
    pi_x = lax.mul(promotion.constant_like(x, np.pi), x)
    safe = _where(at_zero, promotion.constant_like(x, 1), pi_x)
    return _where(at_zero, _sinc_maclaurin(0, pi_x), lax.div(lax.sin(safe), safe))


@partial(custom_jvp, nondiff_argnums=(0,))
def _sinc_maclaurin(k: int, x: Array) -> Array:
    # The k-th derivative of sin(x)/x at zero: 0 for odd k, else (-1)^(k/2) / (k + 1).
    if k % 2:
        return x * 0
    return x * 0 + promotion.constant_like(x, (-1) ** (k // 2) / (k + 1))


@_sinc_maclaurin.defjvp
def _sinc_maclaurin_jvp(k: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,) = primals
    (t,) = tangents
    return _sinc_maclaurin(k, x), _sinc_maclaurin(k + 1, x) * t


@jit
def i0(x: Any) -> Array:
    """The modified Bessel function of the first kind of order zero."""
    (x,) = promotion.promote_args_inexact("i0", x)
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {x.dtype}")
    return _i0(x)


@custom_jvp
def _i0(x: Array) -> Array:
    magnitude = lax.abs(x)
    return lax.mul(lax.exp(magnitude), lax.bessel_i0e(magnitude))


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    # |x| has no derivative at zero; I0 has one, and it is zero. I0' = I1.
    (x,), (t,) = primals, tangents
    magnitude = lax.abs(x)
    slope = lax.mul(lax.exp(magnitude), lax.bessel_i1e(x))
    return _i0(x), lax.mul(t, slope)


# --------------------------------------------------------------------------
# Complex numbers


@inline_jit
def conjugate(x: Any, /) -> Array:
    """The complex conjugate; real arrays come back as they are."""
    x = promotion.ensure_arraylike("conjugate", x)
    return lax.conj(x) if promotion.is_complex(x) else x


def conj(x: Any, /) -> Array:
    """The same as `conjugate`."""
    return conjugate(x)


@inline_jit
def real(val: Any, /) -> Array:
    """The real part; real arrays come back as they are."""
    val = promotion.ensure_arraylike("real", val)
    return lax.real(val) if promotion.is_complex(val) else val


@inline_jit
def imag(val: Any, /) -> Array:
    """The imaginary part: zeros for real arrays."""
    val = promotion.ensure_arraylike("imag", val)
    return lax.imag(val) if promotion.is_complex(val) else lax.full_like(val, 0)


@jit(static_argnames=("deg",))
def angle(z: Any, deg: bool = False) -> Array:
    """The angle of complex numbers in radians, or degrees if `deg`."""
    z = promotion.ensure_arraylike("angle", z)
    re, im = real(z), imag(z)
    dtype = re.dtype
    is_real_scalar = dtypes.issubdtype(z.dtype, np.floating) and z.ndim == 0
    if is_real_scalar or not dtypes.issubdtype(dtype, np.inexact):
        dtype = dtypes.default_float_dtype()
        re = lax.convert_element_type(re, dtype)
        im = lax.convert_element_type(im, dtype)
    result = lax.atan2(im, re)
    return degrees(result) if deg else result


@jit
def iscomplex(x: Any) -> Array:
    """Whether the imaginary part is not zero, elementwise."""
    im = imag(x)
    return lax.ne(im, promotion.constant_like(im, 0))


@jit
def isreal(x: Any) -> Array:
    """Whether the imaginary part is zero, elementwise."""
    im = imag(x)
    return lax.eq(im, promotion.constant_like(im, 0))
