"""Elementary functions beside those of `arithmetic.py`.

Powers of two, exponentials and logarithms near 0 and 1, inverse roots, the tangent.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import hlo
from minijax.core.arithmetic import (
    accurate,
    accurate_lowering,
    add,
    div,
    exp,
    inexact,
    integer_pow,
    log,
    mul,
    neg,
    one_like,
    square,
    sub,
)
from minijax.core.rules import constant_like as _scalar
from minijax.core.rules import def_jvp_with_output, floats


def _exp2_lowering(ctx, x, *, accuracy) -> Any:
    (aval,) = ctx.avals_in
    scaled = hlo.stablehlo.multiply(ctx.full_like(np.log(2), aval), x)
    return accurate_lowering("exponential")(ctx, scaled, accuracy=accuracy)


exp2_p = accurate("exp2", inexact, np.exp2, _exp2_lowering)
def_jvp_with_output(exp2_p, lambda t, out, x, **_: mul(log(_scalar(x, 2)), mul(t, out)))

expm1_p = accurate("expm1", inexact, np.expm1, "exponential_minus_one")
def_jvp_with_output(expm1_p, lambda t, out, x, **_: mul(t, add(out, one_like(out))))

log1p_p = accurate("log1p", inexact, np.log1p, "log_plus_one")
log1p_p.def_jvp(lambda t, x, **_: div(t, add(x, one_like(x))))

rsqrt_p = accurate("rsqrt", inexact, lambda x: 1 / np.sqrt(x), "rsqrt")
def_jvp_with_output(
    rsqrt_p, lambda t, out, x, **_: mul(t, mul(_scalar(x, -0.5), div(out, x)))
)

cbrt_p = accurate("cbrt", floats, np.cbrt, "cbrt")
def_jvp_with_output(
    cbrt_p, lambda t, out, x, **_: mul(t, mul(_scalar(x, 1 / 3), integer_pow(out, -2)))
)

tan_p = accurate("tan", inexact, np.tan, "tan")
def_jvp_with_output(
    tan_p, lambda t, out, x, **_: mul(t, add(_scalar(x, 1), square(out)))
)


def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise 2^x."""
    return exp2_p.bind(x, accuracy=accuracy)


def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise e^x - 1, exact to rounding near 0."""
    return expm1_p.bind(x, accuracy=accuracy)


def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise log(1 + x), exact to rounding near 0."""
    return log1p_p.bind(x, accuracy=accuracy)


def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise 1 / sqrt(x)."""
    return rsqrt_p.bind(x, accuracy=accuracy)


def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise cube root; negative for negative x."""
    return cbrt_p.bind(x, accuracy=accuracy)


def reciprocal(x: Any) -> Any:
    """Elementwise 1 / x."""
    return integer_pow(x, -1)


def tan(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise tangent; x in radians."""
    return tan_p.bind(x, accuracy=accuracy)


logistic_p = accurate(
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


def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """Elementwise sigmoid 1 / (1 + e^-x)."""
    return logistic_p.bind(x, accuracy=accuracy)
