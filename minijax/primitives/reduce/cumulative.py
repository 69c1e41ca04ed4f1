"""Cumulative reductions: at each position, the reduction of all entries up to it.

XLA gets them as a reduction over windows that grow to the whole axis, which it knows to
compute in log2(n) steps. Derivatives go through `associative_scan`.

In JAX: `lax/control_flow/loops.py`, `_cumulative_reduction_primitive`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import autodiff, dtypes, rules, sums
from minijax.core.language import Primitive, ShapedArray, get_aval, primitive_named
from minijax.core.rules import Shape, scalar_like, standard_primitive
from minijax.core.state import state
from minijax.primitives.elementwise import (
    complex_numbers,
    elementary,
    extrema,
    rounding,
)
from minijax.primitives.reduce import prefix_scans, reductions, windows
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.squeezing import flag_of, index_of

# ----------------------------------------------------------------------------------
# The family
# ----------------------------------------------------------------------------------


def _cumulative_shape(x: ShapedArray, *, axis: int, reverse: bool) -> Shape:
    if axis < 0:
        raise ValueError(
            "XLA operations do not allow negative axes: count the axis from the front, "
            f"got {axis}."
        )
    if axis >= x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
    return x.shape


def _in_numpy(accumulate: Callable) -> Callable:
    def meaning(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        if reverse:
            return np.flip(accumulate(np.flip(x, axis), axis=axis), axis)
        return accumulate(x, axis=axis)

    return meaning


def _lowering(combine: Callable, neutral: Callable) -> Callable:
    """A window of the size of the axis, so padded that it ends (or begins) here."""

    def lower(ctx, x, *, axis: int, reverse: bool) -> Any:
        (aval,) = ctx.avals_in
        size = aval.shape[axis]
        if size == 0:
            return x
        window = [1] * aval.ndim
        window[axis] = size
        padding = [(0, 0)] * aval.ndim
        padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
        names = ("window_strides", "base_dilation", "window_dilation")
        params: dict[str, Any] = dict.fromkeys(names, [1] * aval.ndim)
        params |= {"window_dimensions": window, "padding": padding}
        start = ctx.constant(neutral(aval.dtype))

        def body(*entries: Any) -> list[Any]:
            return [combine(ctx, aval.dtype, *entries)]

        return windows.lower_windows(ctx, [x], [start], body, params)[0]

    return lower


def _operation(name: str) -> Callable:
    """The body of a reduction that is one operation of StableHLO."""
    return lambda ctx, dtype, x, y: extrema.combine_values(name, dtype, x, y)


def _cumulative(
    name: str, combine: Callable, neutral: Callable, accumulate: Callable
) -> Primitive:
    def dtype_rule(x: ShapedArray, **_) -> Any:
        rules.check_accepted(name, "", {np.number}, x.dtype)
        return x.dtype

    primitive = standard_primitive(
        name, _cumulative_shape, dtype_rule, meaning=_in_numpy(accumulate)
    )
    primitive.def_lowering(_lowering(combine, neutral))

    @primitive.def_batch
    def batch(axis_data, args, dims, *, axis: int, reverse: bool) -> Any:
        (x,), (dim,) = args, dims
        return primitive.bind(x, axis=axis + (axis >= dim), reverse=reverse), dim

    return primitive


def _def_jvp_by_scan(primitive: Primitive, combine: Callable) -> None:
    """The derivative of the same scan, written as a tree of `combine`."""

    def jvp(primals, tangents, *, axis: int, reverse: bool) -> Any:
        def scan(x: Any) -> list[Any]:
            return [prefix_scans.associative_scan(combine, x, reverse, axis)]

        (out,), (out_tangent,) = autodiff.jvp(scan, primals, tangents)
        return out, out_tangent

    primitive.jvp = jvp
    primitive.without("transpose", "its jvp is written with operations on two entries")


# ----------------------------------------------------------------------------------
# The primitives
# ----------------------------------------------------------------------------------

cumsum_p = _cumulative(
    "cumsum",
    _operation("add"),
    sums.zero,
    lambda x, axis: np.cumsum(x, axis=axis, dtype=x.dtype),
)
rules.def_linear(
    cumsum_p, lambda ct, x, axis, reverse: [cumsum(ct, axis=axis, reverse=not reverse)]
)

cumprod_p = _cumulative(
    "cumprod",
    _operation("multiply"),
    reductions.one,
    lambda x, axis: np.cumprod(x, axis=axis, dtype=x.dtype),
)
_def_jvp_by_scan(cumprod_p, elementwise.mul)

cummax_p = _cumulative(
    "cummax", _operation("maximum"), reductions.lowest, np.maximum.accumulate
)
_def_jvp_by_scan(cummax_p, extrema.max)

cummin_p = _cumulative(
    "cummin", _operation("minimum"), reductions.highest, np.minimum.accumulate
)
_def_jvp_by_scan(cummin_p, extrema.min)

# ----------------------------------------------------------------------------------
# Sums of exponentials, in the logarithm
# ----------------------------------------------------------------------------------


def _logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y), with the larger one taken out so that nothing overflows."""
    larger = extrema.max(x, y)
    aval = get_aval(larger)
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        twice = elementwise.mul(larger, scalar_like(aval, 2))
        difference = elementwise.sub(elementwise.add(x, y), twice)
        out = elementwise.add(larger, elementary.log1p(elementwise.exp(difference)))
        angle = _principal_angle(complex_numbers.imag(out))
        return complex_numbers.complex(complex_numbers.real(out), angle)
    difference = elementwise.sub(x, y)
    # NaNs, and two infinities of the same sign, whose difference is NaN.
    undefined = elementwise.ne(difference, difference)
    total = elementwise.add(x, y)
    distance = elementwise.neg(rounding.abs(difference))
    out = elementwise.add(larger, elementary.log1p(elementwise.exp(distance)))
    return elementwise.select(undefined, total, out)


def _principal_angle(angle: Any) -> Any:
    """An angle, in radians, brought into [-pi, pi)."""
    aval = get_aval(angle)
    half, whole = scalar_like(aval, np.pi), scalar_like(aval, 2 * np.pi)
    rest = rounding.rem(elementwise.add(angle, half), whole)
    negative = elementwise.lt(rest, scalar_like(aval, 0))
    rest = elementwise.select(negative, elementwise.add(rest, whole), rest)
    return elementwise.sub(rest, half)


def _logaddexp_jvp(x, y, x_dot, y_dot) -> list[Any]:
    """Weights e^(x - out) and e^(y - out), which cannot overflow."""
    out = _differentiable_logaddexp(x, y)
    parts = [
        elementwise.mul(t, elementwise.exp(elementwise.sub(_finite(z), _finite(out))))
        for z, t in ((x, x_dot), (y, y_dot))
    ]
    return [out, elementwise.add(*parts)]


def _finite(x: Any) -> Any:
    """0 in place of +inf, so that inf - inf does not become NaN."""
    is_complex = dtypes.issubdtype(get_aval(x).dtype, np.complexfloating)
    part = complex_numbers.real(x) if is_complex else x
    infinite = elementwise.eq(part, scalar_like(get_aval(part), np.inf))
    return elementwise.select(infinite, broadcasting.full_like(x, 0), x)


def _differentiable_logaddexp(x: Any, y: Any) -> Any:
    """`_logaddexp`, whose derivative is `_logaddexp_jvp`: a custom_jvp by hand.

    The primitive of such calls stands on a higher floor and is found by its name.
    """

    def logaddexp(x: Any, y: Any) -> list[Any]:
        return [_logaddexp(x, y)]

    call = primitive_named("custom_jvp_call")
    arguments = (call, logaddexp, _logaddexp_jvp, (x, y))
    (out,) = state.trace.process_custom_jvp_call(*arguments, symbolic_zeros=False)
    return out


cumlogsumexp_p = _cumulative(
    "cumlogsumexp",
    lambda ctx, dtype, x, y: ctx.replace(
        avals_in=[ShapedArray((), dtype)] * 2
    ).lower_fun(_logaddexp, x, y)[0],
    reductions.lowest,
    np.logaddexp.accumulate,
)
_def_jvp_by_scan(cumlogsumexp_p, _differentiable_logaddexp)

# ----------------------------------------------------------------------------------
# Functions
# ----------------------------------------------------------------------------------


def _along(axis: int, reverse: bool) -> dict[str, Any]:
    return {"axis": index_of(axis, "axis"), "reverse": flag_of(reverse, "reverse")}


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Sums of all entries up to each position along `axis`; with `reverse`, from it on.

    Raises:
      ValueError: when the axis is negative or does not exist.
      TypeError: when the entries are no numbers.
    """
    return cumsum_p.bind(operand, **_along(axis, reverse))


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Products of all entries up to each position along `axis`; errors as `cumsum`."""
    return cumprod_p.bind(operand, **_along(axis, reverse))


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The largest entry up to each position along `axis`; errors as `cumsum`."""
    return cummax_p.bind(operand, **_along(axis, reverse))


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The smallest entry up to each position along `axis`; errors as `cumsum`."""
    return cummin_p.bind(operand, **_along(axis, reverse))


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """log of the sum of e^x up to each position along `axis`; errors as `cumsum`."""
    return cumlogsumexp_p.bind(operand, **_along(axis, reverse))
