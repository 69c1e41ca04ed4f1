"""Sums of exponentials, in the logarithm: `logsumexp`, `logaddexp`, `logaddexp2`.

In JAX: `lax/other.py`, `logaddexp`, and `numpy/reduce/reductions.py`, `_logsumexp`.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy.math.ufuncs import binary_ufunc
from minijax.numpy.promotion import (
    constant_like,
    ensure_arraylike,
    is_complex,
    promote_args_inexact,
)
from minijax.numpy.reduce.reducing import reduced_axes
from minijax.numpy.reduce.reductions import max, sum
from minijax.numpy.shapes.broadcasting import _where
from minijax.typing import ArrayLike


def _real(x: Any) -> Any:
    return lax.real(x) if is_complex(x) else x


def _named(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function the name under which jax prints it in `custom_jvp_call`."""

    def rename(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        return function

    return rename


def _add_in_logarithm(
    x1: Any, x2: Any, from_rest: Callable[[Any], Array], half_turn: float
) -> Array:
    """max + from_rest(-|x1 - x2|), where `from_rest` is log(1 + base^rest)."""
    x1, x2 = ensure_arraylike("logaddexp", x1, x2)
    larger = lax.max(x1, x2)
    if is_complex(x1):
        # x1 + x2 - 2 max is the smaller minus the larger.
        rest = lax.sub(lax.add(x1, x2), lax.mul(larger, constant_like(larger, 2)))
        total = lax.add(larger, from_rest(rest))
        return lax.complex(lax.real(total), _wrap_between(lax.imag(total), half_turn))
    if not dtypes.issubdtype(x1.dtype, np.floating):
        raise ValueError(
            "logaddexp requires floating-point or complex inputs; got "
            f"{x1.dtype}. Convert them with astype(float)."
        )
    difference = lax.sub(x1, x2)
    # inf - inf is NaN: there the sum itself is the answer (inf, -inf or NaN).
    undefined = lax.ne(difference, difference)
    plain = lax.add(x1, x2)
    return lax.select(
        undefined, plain, lax.add(larger, from_rest(lax.neg(lax.abs(difference))))
    )


def _wrap_between(x: Array, half_turn: float) -> Array:
    # The imaginary part of a logarithm is an angle in [-half_turn, half_turn).
    half = constant_like(x, half_turn)
    full = constant_like(x, 2 * half_turn)
    zero = constant_like(x, 0)
    rest = lax.rem(lax.add(x, half), full)
    rest = lax.select(lax.lt(rest, zero), lax.add(rest, full), rest)
    return lax.sub(rest, half)


def _custom_rule(
    name: str,
    power: Callable[[Any], Array],
    from_rest: Callable[[Any], Array],
    half_turn: float,
) -> Callable[[Any, Any], Array]:
    """The sum in the logarithm with a derivative of its own.

    Calls on arguments of one type share one program of the custom rule's function.
    """

    @custom_jvp
    @_named(name)
    def rule(x1: Any, x2: Any) -> Array:
        return _add_in_logarithm(x1, x2, from_rest, half_turn)

    @rule.defjvp
    @_named(f"_{name}_jvp")
    def rule_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
        return _weighted_jvp(rule, power, primals, tangents)

    @functools.partial(jit, inline=True)
    @_named(name)
    def shared(x1: Any, x2: Any) -> Array:
        return rule(x1, x2)

    return shared


def _log2_of_rest(rest: Any) -> Array:
    return lax.mul(constant_like(rest, 1 / np.log(2)), lax.log1p(lax.exp2(rest)))


_logaddexp = _custom_rule(
    "logaddexp", lax.exp, lambda rest: lax.log1p(lax.exp(rest)), half_turn=np.pi
)
_logaddexp2 = _custom_rule(
    "logaddexp2", lax.exp2, _log2_of_rest, half_turn=np.pi / np.log(2)
)


def _weighted_jvp(
    function: Callable[..., Array], base: Callable[[Any], Array], primals, tangents
) -> tuple[Array, Array]:
    # Each tangent is weighted with its argument's share of the sum, base(x - result).
    # Infinities are replaced by zeros there, so that inf - inf does not make NaN.
    result = function(*primals)

    def weighted(x: Any, t: Any) -> Array:
        share = base(lax.sub(_replace_inf(x), _replace_inf(result)))
        return lax.mul(t, share)

    (x1, x2), (t1, t2) = primals, tangents
    return result, lax.add(weighted(x1, t1), weighted(x2, t2))


def _replace_inf(x: Array) -> Array:
    re = _real(x)
    infinite = lax.eq(re, constant_like(re, np.inf))
    return lax.select(infinite, lax.full_like(x, 0), x)


def logsumexp(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """`log(sum(b * exp(a)))` along `axis`, without overflow.

    The largest element is taken out of the sum first, and put back after the logarithm;
    it is held constant for differentiation, since it cancels.

    Args:
        a: numbers of any shape; integers become floats.
        axis: one axis or several; None for all.
        b: weights that broadcast against `a`; where one is 0, `a` does not matter.
        keepdims: keep the reduced axes, with size 1.
        return_sign: return the logarithm of the sum's modulus and the sum's sign,
            instead of NaN where the sum is negative.
        where: a mask that broadcasts against `a`: the sum is over what it keeps.

    Returns:
        An array, or with `return_sign` a pair of arrays.

    Raises:
        ValueError: an axis is out of range, or given twice.
    """
    if where is not None:
        a = _where(where, a, 0)
    if b is None:
        [a] = promote_args_inexact("logsumexp", a)
    else:
        a, b = promote_args_inexact("logsumexp", a, b)
        a = _where(b != 0, a, -np.inf)
    axes, names = reduced_axes(a.ndim, axis)
    along: Any = (*axes, *names)
    peak = max(_real(a), axis=along, keepdims=keepdims, where=where, initial=-np.inf)
    # A peak of plus or minus infinity would make inf - inf below.
    peak = lax.stop_gradient(
        lax.select(lax.is_finite(peak), peak, lax.full_like(peak, 0))
    )
    peak_over_a = peak if keepdims else lax.expand_dims(peak, axes)
    terms = lax.exp(lax.sub(a, peak_over_a.astype(a.dtype)))
    if b is not None:
        terms = lax.mul(terms, b)
    total = sum(terms, axis=along, keepdims=keepdims, where=where)
    sign = lax.sign(total)
    of_complex = is_complex(a)
    if return_sign or not of_complex:
        total = lax.abs(total)
    out = lax.add(lax.log(total), peak.astype(total.dtype))
    if return_sign:
        return out, sign
    if b is not None and not of_complex:
        out = _where(sign < 0, constant_like(out, np.nan), out)
    return out


def _logsumexp(
    a, axis=None, dtype=None, keepdims: bool = False, initial=None, where=None
) -> Array:
    """What `logaddexp.reduce` computes."""
    del dtype  # the result always has the inexact dtype of `a`
    result = logsumexp(a, axis, keepdims=keepdims, where=where)
    return result if initial is None else logaddexp(initial, result)


def _logsumexp2(a: Any, initial: Any = None, **keywords: Any) -> Array:
    log_of_two = float(np.log(2))
    if initial is not None:
        initial = initial * log_of_two
    return _logsumexp(a * log_of_two, initial=initial, **keywords) / log_of_two


@binary_ufunc(-np.inf, reduce=_logsumexp)
def logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(e^x1 + e^x2) without overflow."""
    return _logaddexp(*promote_args_inexact("logaddexp", x1, x2))


@binary_ufunc(-np.inf, reduce=_logsumexp2)
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """log2(2^x1 + 2^x2) without overflow."""
    return _logaddexp2(*promote_args_inexact("logaddexp2", x1, x2))
