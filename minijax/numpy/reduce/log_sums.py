"""Sums of exponentials, computed in the logarithm: `logaddexp` and `logaddexp2`.

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
    promote_dtypes_inexact,
)
from minijax.numpy.reduce.reducing import reduced_axes
from minijax.numpy.reduce.reductions import max, sum


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


def _logsumexp(
    a, axis=None, dtype=None, keepdims: bool = False, initial=None, where=None
) -> Array:
    """What `logaddexp.reduce` computes; the largest element is taken out first."""
    del dtype  # the result always has the inexact dtype of `a`
    (a,) = promote_dtypes_inexact(ensure_arraylike("logaddexp.reduce", a))
    axes, _ = reduced_axes(a.ndim, axis)
    largest = max(_real(a), axis=axes, keepdims=True, where=where, initial=-np.inf)
    # Where everything is -inf (or something is inf), shift by nothing.
    shift = lax.select(lax.is_finite(largest), largest, lax.full_like(largest, 0))
    shift = lax.stop_gradient(shift)
    terms = lax.exp(lax.sub(a, lax.convert_element_type(shift, a.dtype)))
    total = sum(terms, axis=axes, keepdims=True, where=where)
    result = lax.add(lax.log(total), lax.convert_element_type(shift, total.dtype))
    if not keepdims:
        result = lax.squeeze(result, axes)
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
