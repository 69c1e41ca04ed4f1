"""Special functions: the error function and its relatives, gamma, zeta, Bessel.

In JAX: `lax/special.py`. The derivatives are in Abramowitz and Stegun, Handbook of
Mathematical Functions: 7.1.19 (erf), 6.3 and 6.4 (digamma, polygamma), 9.6 (Bessel).
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from minijax.language.core import get_aval
from minijax.language.rules import constant_like as _scalar
from minijax.language.rules import def_jvp_with_output, floats, nary, unary
from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.primitives.elementwise import rounding
from minijax.primitives.elementwise.arithmetic import (
    add,
    div,
    exp,
    mul,
    neg,
    sqrt,
    square,
    sub,
)
from minijax.primitives.elementwise.elementary import reciprocal
from minijax.primitives.shape import broadcasting, shaping
from minijax.support import dtypes


def _by_entry(function: Any) -> Any:
    """A NumPy meaning from a function of Python floats."""

    def meaning(x: Any) -> Any:
        return np.vectorize(function, otypes=[float])(x.astype(float)).astype(x.dtype)

    return meaning


def scipy_function(name: str) -> Any:
    """A function of scipy.special, loaded when it is asked for."""
    return getattr(importlib.import_module("scipy.special"), name)


def scipy_meaning(name: str) -> Any:
    """The NumPy meaning of a function that SciPy has."""

    def meaning(*args: Any) -> Any:
        function = scipy_function(name)
        wide = [np.asarray(arg, np.float64) for arg in args]
        return np.asarray(function(*wide)).astype(args[0].dtype)

    return meaning


# erf x = 2 / sqrt(pi) int_0^x exp(-t^2) dt
erf_p = unary("erf", floats, _by_entry(math.erf), "chlo.erf")
erf_p.def_jvp(
    lambda t, x: mul(_scalar(x, 2.0 / np.sqrt(np.pi)), mul(t, exp(neg(square(x)))))
)

erfc_p = unary("erfc", floats, _by_entry(math.erfc), "chlo.erfc")
erfc_p.def_jvp(
    lambda t, x: mul(_scalar(x, -2.0 / np.sqrt(np.pi)), mul(t, exp(neg(square(x)))))
)


def _erf_inv_meaning(x: Any) -> Any:
    from statistics import NormalDist

    def inverse(y: float) -> float:
        if abs(y) >= 1:
            return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
        return NormalDist().inv_cdf((y + 1) / 2) / math.sqrt(2)

    return _by_entry(inverse)(x)


erf_inv_p = unary("erf_inv", floats, _erf_inv_meaning, "chlo.erf_inv")
def_jvp_with_output(
    erf_inv_p,
    lambda t, out, x: mul(_scalar(x, np.sqrt(np.pi) / 2.0), mul(t, exp(square(out)))),
)

lgamma_p = unary("lgamma", floats, _by_entry(math.lgamma), "chlo.lgamma")
lgamma_p.def_jvp(lambda t, x: mul(t, digamma(x)))


def erf(x: Any) -> Any:
    """Elementwise error function."""
    return erf_p.bind(x)


def erfc(x: Any) -> Any:
    """Elementwise complementary error function 1 - erf(x), exact for large x."""
    return erfc_p.bind(x)


def erf_inv(x: Any) -> Any:
    """Elementwise inverse of the error function; infinite at -1 and 1."""
    return erf_inv_p.bind(x)


def lgamma(x: Any) -> Any:
    """Elementwise logarithm of the absolute value of the gamma function."""
    return lgamma_p.bind(x)


digamma_p = unary("digamma", floats, scipy_meaning("digamma"), "chlo.digamma")


digamma_p.def_jvp(lambda t, x: mul(t, polygamma(_scalar(x, 1), x)))


def digamma(x: Any) -> Any:
    """Elementwise logarithmic derivative of the gamma function."""
    return digamma_p.bind(x)


def no_gradient(what: str) -> Any:
    def term(t: Any, *primals: Any) -> Any:
        raise ValueError(f"{what} not supported: no closed form of it is known.")

    return term


# The m-th derivative of digamma; m need not be written as an integer.
polygamma_p = nary(
    "polygamma", [floats, floats], scipy_meaning("polygamma"), "chlo.polygamma"
)
polygamma_p.def_jvp(
    no_gradient("polygamma gradient with respect to m is"),
    lambda t, m, x: mul(t, polygamma(add(m, _scalar(m, 1)), x)),
)

zeta_p = nary("zeta", [floats, floats], scipy_meaning("zeta"), "chlo.zeta")
zeta_p.without("jvp", "JAX has no derivative of zeta either")


def polygamma(m: Any, x: Any) -> Any:
    """Elementwise m-th derivative of digamma at x."""
    return polygamma_p.bind(m, x)


def zeta(x: Any, q: Any) -> Any:
    """Elementwise Hurwitz zeta function, the sum of (q + k)^-x over k >= 0."""
    return zeta_p.bind(x, q)


# ----------------------------------------------------------------------------------
# Bessel functions of imaginary argument, scaled: exp(-|x|) I_0(x), exp(-|x|) I_1(x)
# ----------------------------------------------------------------------------------

# Chebyshev coefficients of exp(-x) I_0(x) on [0, 8], and of exp(-x) sqrt(x) I_0(x) for
# larger x in 1/x: Cephes (S. L. Moshier), i0.c, after Clenshaw 1962.
_I0E_SMALL = (
    -4.41534164647933937950e-18,
    3.33079451882223809783e-17,
    -2.43127984654795469359e-16,
    1.71539128555513303061e-15,
    -1.16853328779934516808e-14,
    7.67618549860493561688e-14,
    -4.85644678311192946090e-13,
    2.95505266312963983461e-12,
    -1.72682629144155570723e-11,
    9.67580903537323691224e-11,
    -5.18979560163526290666e-10,
    2.65982372468238665035e-9,
    -1.30002500998624804212e-8,
    6.04699502254191894932e-8,
    -2.67079385394061173391e-7,
    1.11738753912010371815e-6,
    -4.41673835845875056359e-6,
    1.64484480707288970893e-5,
    -5.75419501008210370398e-5,
    1.88502885095841655729e-4,
    -5.76375574538582365885e-4,
    1.63947561694133579842e-3,
    -4.32430999505057594430e-3,
    1.05464603945949983183e-2,
    -2.37374148058994688156e-2,
    4.93052842396707084878e-2,
    -9.49010970480476444210e-2,
    1.71620901522208775349e-1,
    -3.04682672343198398683e-1,
    6.76795274409476084995e-1,
)
_I0E_LARGE = (
    -7.23318048787475395456e-18,
    -4.83050448594418207126e-18,
    4.46562142029675999901e-17,
    3.46122286769746109310e-17,
    -2.82762398051658348494e-16,
    -3.42548561967721913462e-16,
    1.77256013305652638360e-15,
    3.81168066935262242075e-15,
    -9.55484669882830764870e-15,
    -4.15056934728722208663e-14,
    1.54008621752140982691e-14,
    3.85277838274214270114e-13,
    7.18012445138366623367e-13,
    -1.79417853150680611778e-12,
    -1.32158118404477131188e-11,
    -3.14991652796324136454e-11,
    1.18891471078464383424e-11,
    4.94060238822496958910e-10,
    3.39623202570838634515e-9,
    2.26666899049817806459e-8,
    2.04891858946906374183e-7,
    2.89137052083475648297e-6,
    6.88975834691682398426e-5,
    3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)


def _chebyshev(x: Any, coefficients: Any) -> Any:
    """Clenshaw's sum of a Chebyshev series whose highest coefficient comes first."""
    before = last = current = broadcasting.full_like(x, 0)
    for coefficient in coefficients:
        before, last = last, current
        current = add(sub(mul(x, last), before), _scalar(x, coefficient))
    return mul(_scalar(x, 0.5), sub(current, before))


def _bessel_i0e(x: Any) -> Any:
    dtype = get_aval(x).dtype
    if dtype.itemsize < 4:
        x = shaping.convert_element_type(x, np.float32)
    size = rounding.abs(x)
    small = _chebyshev(sub(mul(_scalar(x, 0.5), size), _scalar(x, 2)), _I0E_SMALL)
    inverse = sub(div(broadcasting.full_like(x, 32), size), _scalar(x, 2))
    large = div(_chebyshev(inverse, _I0E_LARGE), sqrt(size))
    chosen = elementwise.select(elementwise.le(size, _scalar(x, 8)), small, large)
    return shaping.convert_element_type(chosen, dtype)


bessel_i0e_p = unary(
    "bessel_i0e",
    floats,
    scipy_meaning("i0e"),
    lambda ctx, x: ctx.lower_fun(_bessel_i0e, x),
)
def_jvp_with_output(  # I_0' = I_1, and d exp(-|x|) = -sign(x) exp(-|x|) dx
    bessel_i0e_p, lambda t, y, x: mul(t, sub(bessel_i1e(x), mul(rounding.sign(x), y)))
)

bessel_i1e_p = unary("bessel_i1e", floats, scipy_meaning("i1e"), "chlo.bessel_i1e")


def _bessel_i1e_jvp(t: Any, y: Any, x: Any) -> Any:
    """I_1' = I_0 - I_1 / x, whose limit at 0 is 1/2 (A&S 9.6.26)."""
    tiny = float(dtypes.finfo(get_aval(x).dtype).eps)
    usual = elementwise.gt(rounding.abs(x), _scalar(x, tiny))
    safe = elementwise.select(usual, x, broadcasting.full_like(x, tiny))
    slope = sub(bessel_i0e(safe), mul(y, add(rounding.sign(safe), reciprocal(safe))))
    return mul(t, elementwise.select(usual, slope, broadcasting.full_like(x, 0.5)))


def_jvp_with_output(bessel_i1e_p, _bessel_i1e_jvp)


def bessel_i0e(x: Any) -> Any:
    """Elementwise exp(-|x|) I_0(x), the scaled modified Bessel function of order 0."""
    return bessel_i0e_p.bind(x)


def bessel_i1e(x: Any) -> Any:
    """Elementwise exp(-|x|) I_1(x), the scaled modified Bessel function of order 1."""
    return bessel_i1e_p.bind(x)
