"""Special functions: the error function and its relatives, gamma, zeta, Bessel.

In JAX: `lax/special.py`. The derivatives are in Abramowitz and Stegun, Handbook of
Mathematical Functions: 7.1.19 (erf), 6.3 and 6.4 (digamma, polygamma), 9.6 (Bessel).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import get_aval
from minijax.primitives.elementwise import exp, mul, neg, square
from minijax.rules import def_jvp_with_output, floats, scalar_like, unary


def _scalar(like: Any, value: Any) -> Any:
    return scalar_like(get_aval(like), value)


def _by_entry(function: Any) -> Any:
    """A NumPy meaning from a function of Python floats."""

    def meaning(x: Any) -> Any:
        return np.vectorize(function, otypes=[float])(x.astype(float)).astype(x.dtype)

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


digamma_p = unary("digamma", floats, lambda x: _digamma_meaning(x), "chlo.digamma")


def _digamma_meaning(x: Any) -> Any:
    import scipy.special

    return scipy.special.digamma(x)


def digamma(x: Any) -> Any:
    """Elementwise logarithmic derivative of the gamma function."""
    return digamma_p.bind(x)
