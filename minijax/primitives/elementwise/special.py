"""Special functions: the error function and its relatives, gamma, zeta, Bessel.

In JAX: `lax/special.py`. The derivatives are in Abramowitz and Stegun, Handbook of
Mathematical Functions: 7.1.19 (erf), 6.3 and 6.4 (digamma, polygamma), 9.6 (Bessel).
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, shaping
from minijax.core.arithmetic import add, div, exp, mul, neg, sqrt, square, sub
from minijax.core.language import get_aval
from minijax.core.rules import constant_like as _scalar
from minijax.core.rules import def_jvp_with_output, floats, nary, unary
from minijax.primitives.elementwise import rounding
from minijax.primitives.elementwise.elementary import reciprocal
from minijax.primitives.shape import broadcasting


def _by_entry(function: Any) -> Any:
    """A NumPy meaning from a function of Python floats."""

    def meaning(x) -> Any:
        return np.vectorize(function, otypes=[float])(x.astype(float)).astype(x.dtype)

    return meaning


def scipy_function(name: str) -> Any:
    """A function of scipy.special, loaded when it is asked for."""
    return getattr(importlib.import_module("scipy.special"), name)


def scipy_meaning(name: str) -> Any:
    """The NumPy meaning of a function that SciPy has."""

    def meaning(*args) -> Any:
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


def _erf_inv_meaning(x) -> Any:
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
    *(-4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16),
    *(1.715391285555133e-15, -1.1685332877993451e-14, 7.676185498604936e-14),
    *(-4.856446783111929e-13, 2.95505266312964e-12, -1.726826291441556e-11),
    *(9.675809035373237e-11, -5.189795601635263e-10, 2.6598237246823866e-09),
    *(-1.300025009986248e-08, 6.046995022541919e-08, -2.670793853940612e-07),
    *(1.1173875391201037e-06, -4.4167383584587505e-06, 1.6448448070728896e-05),
    *(-5.754195010082104e-05, 0.00018850288509584165, -0.0005763755745385824),
    *(0.0016394756169413357, -0.004324309995050576, 0.010546460394594998),
    *(-0.02373741480589947, 0.04930528423967071, -0.09490109704804764),
    *(0.17162090152220877, -0.3046826723431984, 0.6767952744094761),
)
_I0E_LARGE = (
    *(-7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17),
    *(3.461222867697461e-17, -2.8276239805165836e-16, -3.425485619677219e-16),
    *(1.7725601330565263e-15, 3.8116806693526224e-15, -9.554846698828307e-15),
    *(-4.150569347287222e-14, 1.54008621752141e-14, 3.8527783827421426e-13),
    *(7.180124451383666e-13, -1.7941785315068062e-12, -1.3215811840447713e-11),
    *(-3.1499165279632416e-11, 1.1889147107846439e-11, 4.94060238822497e-10),
    *(3.3962320257083865e-09, 2.266668990498178e-08, 2.0489185894690638e-07),
    *(2.8913705208347567e-06, 6.889758346916825e-05, 0.0033691164782556943),
    0.8044904110141088,
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


def _bessel_i1e_jvp(t, y, x) -> Any:
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
