"""Incomplete gamma and beta functions: series and continued fractions, as loops.

P(a, x), the regularized lower incomplete gamma function, is summed as a series
where x <= 1 or x <= a (Abramowitz and Stegun 6.5.29); elsewhere Q = 1 - P is a
continued fraction (6.5.31), evaluated forwards by the recurrence of its convergents as
in Cephes (`igam.c`). Both loops carry the derivative in `a` beside the value. I_x(a,
b), the regularized incomplete beta function, is the continued fraction 26.5.8,
evaluated by Lentz's method, with the symmetry I_x(a, b) = 1 - I_{1-x}(b, a).

An element stops where its own sum has converged: a fraction that is carried on beyond
that gains rounding errors in each step, and a loop runs as long as its slowest element.

In JAX: `lax/special.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo
from minijax.core.arithmetic import add, div, exp, log, mul, neg, sub
from minijax.core.language import ShapedArray, get_aval
from minijax.core.rules import constant_like as _scalar
from minijax.core.rules import floats, nary
from minijax.primitives.elementwise import comparing, rounding, special
from minijax.primitives.elementwise.elementary import log1p
from minijax.primitives.reduce import reductions
from minijax.primitives.shape.broadcasting import full_like

_MAX_STEPS = 2000


def _loop(
    ctx: Any, condition: Callable, step: Callable, initial: list[Any], avals: list[Any]
) -> list[Any]:
    """A StableHLO while loop over values of the given types.

    `condition(*values)` gives a boolean scalar, `step(*values)` the next values; both
    are functions of lax operations.
    """
    types = [hlo.tensor_type(aval.shape, aval.dtype) for aval in avals]
    loop = hlo.stablehlo.WhileOp(types, initial)
    inner = ctx.replace(avals_in=avals)
    for number, function in enumerate((condition, step)):
        write = functools.partial(inner.lower_fun, function)
        hlo_parts.write_region(loop, types, write, number)
    return list(loop.results)


def _wide(dtype: Any) -> Any:
    """The dtype to compute in: half precision is not enough for sums of many terms."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def _composed(
    prepare: Callable, unfinished: Callable, step: Callable, finish: Callable
):
    """A lowering: `finish(*operands, *loop over step from prepare(*operands))`.

    `unfinished(*values)` says which elements go on; the others keep their values. The
    operands are repeated to one shape and widened first.
    """

    def continues(count: Any, *values: Any) -> Any:
        return comparing.bitwise_and(
            elementwise.lt(count, np.int32(_MAX_STEPS)), _any_left(unfinished(*values))
        )

    def advance(count: Any, *values: Any) -> list[Any]:
        left = unfinished(*values)
        stepped = zip(step(*values), values, strict=True)
        kept = [elementwise.select(left, new, old) for new, old in stepped]
        return [add(count, np.int32(1)), *kept]

    def lower(ctx, *operands) -> Any:
        (out,) = ctx.avals_out
        dtype = _wide(out.dtype)
        aval = ShapedArray(out.shape, dtype)
        wide = [
            hlo.stablehlo.convert(hlo.tensor_type(out.shape, dtype), value)
            for value in ctx.broadcast(operands)
        ]
        inner = ctx.replace(avals_in=[aval] * len(wide), avals_out=[aval])
        initial = inner.lower_fun(lambda *a: [np.int32(0), *prepare(*a)], *wide)
        count = ShapedArray((), np.dtype(np.int32))
        rest = len(initial) - 1
        avals = [count, *[aval] * rest]
        final = _loop(inner, continues, advance, initial, avals)
        both = inner.replace(avals_in=[aval] * (len(wide) + rest))
        (result,) = both.lower_fun(finish, *wide, *final[1:])
        return hlo.stablehlo.convert(hlo.tensor_type(out.shape, out.dtype), result)

    return lower


def _any_left(unfinished: Any) -> Any:
    axes = tuple(range(get_aval(unfinished).ndim))
    return reductions.reduce_or(unfinished, axes)


def _epsilon(x: Any) -> Any:
    return _scalar(x, float(dtypes.finfo(get_aval(x).dtype).eps))


# ----------------------------------------------------------------------------------
# Incomplete gamma: series and fraction run side by side in one loop
# ----------------------------------------------------------------------------------


def _uses_fraction(a: Any, x: Any) -> Any:
    return comparing.bitwise_and(elementwise.ge(x, _scalar(x, 1)), elementwise.ge(x, a))


def _gamma_start(a: Any, x: Any) -> list[Any]:
    """What the series and the fraction carry along."""
    one, zero = full_like(x, 1), full_like(x, 0)
    use = _uses_fraction(a, x)
    # Where a loop's formula is not used, it runs on numbers with which it ends at once.
    a_series = elementwise.select(use, one, a)
    x_series = elementwise.select(use, zero, x)
    a_fraction = elementwise.select(use, a, one)
    x_fraction = elementwise.select(use, x, full_like(x, 2))
    y = sub(one, a_fraction)
    z = add(add(x_fraction, y), one)
    p1 = add(x_fraction, one)
    q1 = mul(z, x_fraction)
    # d/da of q1 = z x is -x; of the first convergent p1 / q1 it is p1 x / q1^2.
    answer = div(p1, q1)
    slope = div(mul(answer, x_fraction), q1)
    series = [a_series, x_series, a_series, one, one, zero, zero]
    fraction = [y, z, zero, one, x_fraction, p1, q1, answer]
    derivatives = [zero, zero, zero, neg(x_fraction), slope, one]
    return [*series, *fraction, *derivatives, one]


def _value_left(*values: Any) -> Any:
    """Where the sum or the fraction still changes."""
    term, total, error = values[3], values[4], values[20]
    small = _epsilon(term)
    return comparing.bitwise_or(
        elementwise.gt(term, mul(small, total)), elementwise.gt(error, small)
    )


def _slope_left(*values: Any) -> Any:
    """Where the derivative of the sum or of the fraction still changes."""
    dterm, dtotal, change = values[5], values[6], values[21]
    small = _epsilon(dterm)
    bound = mul(small, add(rounding.abs(dtotal), small))
    return comparing.bitwise_or(
        elementwise.gt(rounding.abs(dterm), bound), elementwise.gt(change, small)
    )


def _gamma_step(*values: Any) -> list[Any]:
    a, x, r, term, total, dterm, dtotal = values[:7]
    y, z, c, p2, q2, p1, q1, answer = values[7:15]
    dp2, dq2, dp1, dq1, slope = values[15:20]
    one = _scalar(x, 1)
    # c_n = c_{n-1} x / (a + n)
    r = add(r, one)
    ratio = div(x, r)
    dterm = sub(mul(dterm, ratio), div(mul(term, ratio), r))
    term = mul(term, ratio)
    total, dtotal = add(total, term), add(dtotal, dterm)
    # p_k = z p_{k-1} - y c p_{k-2}, and the same for q; dz/da = dy/da = -1
    c, y, z = add(c, one), add(y, one), add(z, _scalar(x, 2))
    yc = mul(y, c)
    p = sub(mul(p1, z), mul(p2, yc))
    q = sub(mul(q1, z), mul(q2, yc))
    dp = add(sub(sub(mul(dp1, z), p1), mul(dp2, yc)), mul(p2, c))
    dq = add(sub(sub(mul(dq1, z), q1), mul(dq2, yc)), mul(q2, c))
    defined = elementwise.ne(q, _scalar(x, 0))
    safe = elementwise.select(defined, q, full_like(q, 1))
    new = elementwise.select(defined, div(p, safe), answer)
    new_slope = elementwise.select(defined, div(sub(dp, mul(new, dq)), safe), slope)
    error = rounding.abs(div(sub(new, answer), new))
    error = elementwise.select(defined, error, full_like(error, 1))
    change = rounding.abs(sub(new_slope, slope))
    change = elementwise.select(defined, change, full_like(change, 1))
    # Convergents grow; only their ratio counts.
    scale = elementwise.select(
        elementwise.gt(rounding.abs(p), div(one, _epsilon(x))),
        full_like(x, float(dtypes.finfo(get_aval(x).dtype).eps)),
        full_like(x, 1),
    )
    p1, q1, p, q = (mul(value, scale) for value in (p1, q1, p, q))
    dp1, dq1, dp, dq = (mul(value, scale) for value in (dp1, dq1, dp, dq))
    return [
        a, x, r, term, total, dterm, dtotal,
        y, z, c, p1, q1, p, q, new, dp1, dq1, dp, dq, new_slope, error, change,
    ]  # fmt: skip


def _gamma_parts(a: Any, x: Any, *values: Any) -> tuple[Any, Any, Any, Any, Any]:
    """(log of the common factor, sum, its slope, fraction, its slope)."""
    factor = sub(sub(mul(a, log(x)), x), special.lgamma(a))
    return factor, values[4], values[6], values[14], values[19]


def _choose(a: Any, x: Any, fraction: Any, series: Any) -> Any:
    return elementwise.select(_uses_fraction(a, x), fraction, series)


def _limits(a: Any, x: Any, out: Any, at_zero: float, at_infinity: float) -> Any:
    """The value where the formulas do not hold: x = 0, x = inf, and outside."""
    zero = _scalar(x, 0)
    out = elementwise.select(elementwise.eq(x, zero), full_like(out, at_zero), out)
    infinite = elementwise.eq(x, _scalar(x, np.inf))
    out = elementwise.select(infinite, full_like(out, at_infinity), out)
    wrong = comparing.bitwise_or(elementwise.lt(x, zero), elementwise.le(a, zero))
    nan = comparing.bitwise_or(elementwise.ne(x, x), elementwise.ne(a, a))
    return elementwise.select(
        comparing.bitwise_or(wrong, nan), full_like(out, np.nan), out
    )


def _igamma_finish(a: Any, x: Any, *values: Any) -> Any:
    factor, total, _, fraction, _ = _gamma_parts(a, x, *values)
    scale = exp(factor)
    upper = sub(_scalar(x, 1), mul(scale, fraction))
    out = _choose(a, x, upper, div(mul(scale, total), a))
    return _limits(a, x, out, 0.0, 1.0)


def _igammac_finish(a: Any, x: Any, *values: Any) -> Any:
    factor, total, _, fraction, _ = _gamma_parts(a, x, *values)
    scale = exp(factor)
    lower = sub(_scalar(x, 1), div(mul(scale, total), a))
    out = _choose(a, x, mul(scale, fraction), lower)
    return _limits(a, x, out, 1.0, 0.0)


def _slopes(a: Any, x: Any, *values: Any) -> tuple[Any, Any]:
    """d/da of P, over the common factor, by the fraction and by the series."""
    _, total, dtotal, fraction, dfraction = _gamma_parts(a, x, *values)
    log_x = log(x)
    by_fraction = neg(add(mul(fraction, sub(log_x, special.digamma(a))), dfraction))
    above = special.digamma(add(a, _scalar(a, 1)))
    by_series = div(add(mul(total, sub(log_x, above)), dtotal), a)
    return by_fraction, by_series


def _igamma_grad_finish(a: Any, x: Any, *values: Any) -> Any:
    factor = _gamma_parts(a, x, *values)[0]
    out = mul(exp(factor), _choose(a, x, *_slopes(a, x, *values)))
    return _limits(a, x, out, 0.0, 0.0)


def _sample_finish(a: Any, x: Any, *values: Any) -> Any:
    # dx/da at fixed P is -(dP/da) / (dP/dx), and x dP/dx is the common factor.
    out = neg(mul(x, _choose(a, x, *_slopes(a, x, *values))))
    return _limits(a, x, out, 0.0, np.nan)


def _gamma_like(name: str, meaning: Any, left: Callable, finish: Callable) -> Any:
    lower = _composed(_gamma_start, left, _gamma_step, finish)
    return nary(name, [floats, floats], meaning, lower)


def _slope_of_p(a: Any, x: Any) -> Any:
    """d/da of P(a, x) by a central difference of fourth order, in float64."""
    p = special.scipy_function("gammainc")
    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    h = 1e-3 * a
    near, far = p(a + h, x) - p(a - h, x), p(a + 2 * h, x) - p(a - 2 * h, x)
    return (8 * near - far) / (12 * h)


igamma_p = _gamma_like(
    "igamma", special.scipy_meaning("gammainc"), _value_left, _igamma_finish
)
igammac_p = _gamma_like(
    "igammac", special.scipy_meaning("gammaincc"), _value_left, _igammac_finish
)
igamma_grad_a_p = _gamma_like(
    "igamma_grad_a",
    lambda a, x: _slope_of_p(a, x).astype(a.dtype),
    _slope_left,
    _igamma_grad_finish,
)
igamma_grad_a_p.without("jvp", "JAX has no second derivative in a either")


random_gamma_grad_p = _gamma_like(
    "random_gamma_grad", None, _slope_left, _sample_finish
)
random_gamma_grad_p.without("jvp", "JAX has no second derivative of samples either")


def _density(t: Any, a: Any, x: Any) -> Any:
    """t x^(a-1) e^-x / Gamma(a)."""
    minus = neg(x)
    power = mul(sub(a, full_like(a, 1)), log(x))
    return mul(t, exp(sub(add(minus, power), special.lgamma(a))))


igamma_p.def_jvp(lambda t, a, x: mul(t, igamma_grad_a(a, x)), _density)
igammac_p.def_jvp(
    lambda t, a, x: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, a, x: neg(_density(t, a, x)),
)


def igamma(a: Any, x: Any) -> Any:
    """Elementwise regularized lower incomplete gamma function P(a, x)."""
    return igamma_p.bind(a, x)


def igammac(a: Any, x: Any) -> Any:
    """Elementwise regularized upper incomplete gamma function Q = 1 - P."""
    return igammac_p.bind(a, x)


def igamma_grad_a(a: Any, x: Any) -> Any:
    """Elementwise derivative of P(a, x) in a."""
    return igamma_grad_a_p.bind(a, x)


def random_gamma_grad(a: Any, x: Any) -> Any:
    """Elementwise derivative in a of samples x of the gamma distribution."""
    return random_gamma_grad_p.bind(a, x)


# ----------------------------------------------------------------------------------
# Incomplete beta
# ----------------------------------------------------------------------------------


def _swaps(a: Any, b: Any, x: Any) -> Any:
    """Where the fraction of I_{1-x}(b, a) converges faster."""
    border = div(add(a, _scalar(a, 1)), add(add(a, b), _scalar(a, 2)))
    return elementwise.gt(x, border)


def _beta_arguments(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    swap = _swaps(a, b, x)
    return (
        elementwise.select(swap, b, a),
        elementwise.select(swap, a, b),
        elementwise.select(swap, sub(_scalar(x, 1), x), x),
    )


def _away_from_zero(value: Any) -> Any:
    tiny = float(dtypes.finfo(get_aval(value).dtype).tiny) * 1e4
    near = elementwise.lt(rounding.abs(value), _scalar(value, tiny))
    return elementwise.select(near, full_like(value, tiny), value)


def _beta_start(a: Any, b: Any, x: Any) -> list[Any]:
    a, b, x = _beta_arguments(a, b, x)
    one = full_like(x, 1)
    first = div(mul(add(a, b), x), add(a, one))
    d = div(one, _away_from_zero(sub(one, first)))
    return [a, b, x, one, one, d, d, one]


def _beta_left(*values: Any) -> Any:
    return elementwise.gt(values[7], _epsilon(values[7]))


def _beta_step(*values: Any) -> list[Any]:
    """Two terms of the fraction: d_{2m} and d_{2m+1} of A&S 26.5.8."""
    a, b, x, m, c, d, h, _ = values
    one = _scalar(x, 1)
    twice = mul(_scalar(x, 2), m)
    upper = add(a, twice)
    even = div(mul(mul(m, sub(b, m)), x), mul(sub(upper, one), upper))
    odd = neg(
        div(mul(mul(add(a, m), add(add(a, b), m)), x), mul(upper, add(upper, one)))
    )
    change = None
    for term in (even, odd):
        d = div(full_like(x, 1), _away_from_zero(add(one, mul(term, d))))
        c = _away_from_zero(add(one, div(term, c)))
        change = mul(c, d)
        h = mul(h, change)
    error = rounding.abs(sub(change, one))
    return [a, b, x, add(m, one), c, d, h, error]


def _beta_finish(a: Any, b: Any, x: Any, *values: Any) -> Any:
    zero, one = _scalar(x, 0), _scalar(x, 1)
    first, second, y, fraction = values[0], values[1], values[2], values[6]
    log_beta = sub(add(special.lgamma(a), special.lgamma(b)), special.lgamma(add(a, b)))
    powers = add(mul(first, log(y)), mul(second, log1p(neg(y))))
    value = div(mul(exp(sub(powers, log_beta)), fraction), first)
    out = elementwise.select(_swaps(a, b, x), sub(one, value), value)
    out = elementwise.select(elementwise.le(x, zero), full_like(out, 0), out)
    out = elementwise.select(elementwise.ge(x, one), full_like(out, 1), out)
    outside = comparing.bitwise_or(elementwise.lt(x, zero), elementwise.gt(x, one))
    no_shape = comparing.bitwise_or(elementwise.le(a, zero), elementwise.le(b, zero))
    wrong = comparing.bitwise_or(outside, no_shape)
    wrong = comparing.bitwise_or(wrong, elementwise.ne(x, x))
    return elementwise.select(wrong, full_like(out, np.nan), out)


regularized_incomplete_beta_p = nary(
    "regularized_incomplete_beta",
    [floats, floats, floats],
    special.scipy_meaning("betainc"),
    _composed(_beta_start, _beta_left, _beta_step, _beta_finish),
)


def _beta_jvp(t, a, b, x) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b)."""
    log_beta = sub(add(special.lgamma(a), special.lgamma(b)), special.lgamma(add(a, b)))
    one = _scalar(x, 1)
    powers = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return mul(exp(sub(powers, log_beta)), t)


_no_gradient = special.no_gradient("Betainc gradient with respect to a and b")
regularized_incomplete_beta_p.def_jvp(_no_gradient, _no_gradient, _beta_jvp)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Elementwise regularized incomplete beta function I_x(a, b)."""
    return regularized_incomplete_beta_p.bind(a, b, x)
