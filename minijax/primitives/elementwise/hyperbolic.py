"""Inverse trigonometric functions, hyperbolic functions and their inverses.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.arithmetic import add, div, inexact, mul, neg, one_like, square, sub
from minijax.core.rules import constant_like as _scalar
from minijax.core.rules import nary, unary
from minijax.primitives.elementwise.elementary import reciprocal, rsqrt

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
asinh_p.def_jvp(lambda t, x: mul(t, rsqrt(add(square(x), one_like(x)))))

acosh_p = unary("acosh", inexact, np.arccosh, "chlo.acosh")
acosh_p.def_jvp(lambda t, x: mul(t, rsqrt(sub(square(x), one_like(x)))))

atanh_p = unary("atanh", inexact, np.arctanh, "chlo.atanh")
atanh_p.def_jvp(  # 1 / (1 - x^2), in two factors
    lambda t, x: mul(reciprocal(add(one_like(x), x)), div(t, sub(one_like(x), x)))
)


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
