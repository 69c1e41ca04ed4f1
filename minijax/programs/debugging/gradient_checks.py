"""Derivatives compared with difference quotients. In JAX: `jax.test_util`.

    check_grads(f, (x,), order=2)

In one random direction v the forward derivative must equal
(f(x + eps v) - f(x - eps v)) / (2 eps), and the backward one must satisfy
<v, Jᵀ w> = <J v, w> with the same quotient for J v. Derivatives of derivatives are
checked in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.trees import tree_flatten
from minijax.support.tree_util import tree_map
from minijax.transforms import differentiation

_EPSILON = 1e-4

# Absolute and relative tolerance by dtype, as JAX's.
_TOLERANCE = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-5}
_TOLERANCE |= {"complex64": 1e-3, "complex128": 1e-5}


def _tolerance(dtype: Any, given: Any) -> float:
    """The tolerance for a dtype: given as a number, by dtype, or the default."""
    name = dtypes.canonicalize_dtype(dtype).name
    if given is None:
        return _TOLERANCE.get(name, 0.0)
    if isinstance(given, dict):
        by_name = {np.dtype(key).name: value for key, value in given.items()}
        return by_name.get(name, _TOLERANCE.get(name, 0.0))
    return given


def _check_close(xs: Any, ys: Any, atol: Any, rtol: Any, message: str) -> None:
    """AssertionError unless two trees of arrays are close."""

    def check(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            raise AssertionError(f"{message}: shapes {x.shape} and {y.shape} differ")
        if dtypes.is_float0(x.dtype) or dtypes.is_float0(y.dtype):
            return
        absolute = max(_tolerance(x.dtype, atol), _tolerance(y.dtype, atol)) * x.size
        relative = max(_tolerance(x.dtype, rtol), _tolerance(y.dtype, rtol)) * y.size
        wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        np.testing.assert_allclose(
            x.astype(wide), y.astype(wide), relative, absolute, err_msg=message
        )

    tree_map(check, xs, ys)


def _check_dtypes(xs: Any, ys: Any, message: str) -> None:
    def check(x: Any, y: Any) -> None:
        kinds = [dtypes.canonicalize_dtype(np.asarray(z).dtype) for z in (x, y)]
        if kinds[0] != kinds[1]:
            raise AssertionError(f"{message}: dtypes {kinds[0]} and {kinds[1]} differ")

    tree_map(check, xs, ys)


def _random_like(random: np.random.RandomState, x: Any) -> Any:
    """Normal numbers of the shape and dtype of `x`; a number for a number."""
    array = np.asarray(x)
    values = np.asarray(random.randn(*array.shape), array.dtype)
    if array.dtype.kind == "c":
        values = values + array.dtype.type(1j) * random.randn(*array.shape)
    values = np.asarray(values, array.dtype)
    return values.item() if isinstance(x, (bool, int, float, complex)) else values


def _shifted(args: Any, tangents: Any, step: float) -> Any:
    def shift(x: Any, t: Any) -> Any:
        array = np.asarray(x)
        moved = np.asarray(array + np.asarray(t * step, array.dtype), array.dtype)
        return moved.item() if isinstance(x, (bool, int, float, complex)) else moved

    return tree_map(shift, args, tangents)


def _numerical_jvp(f: Callable, args, tangents, eps: float) -> Any:
    """The symmetric difference quotient of `f` along the tangents."""
    ahead, behind = (f(*_shifted(args, tangents, step)) for step in (eps, -eps))

    def quotient(x: Any, y: Any) -> np.ndarray:
        x, y = np.asarray(x), np.asarray(y)
        with np.errstate(invalid="ignore"):
            difference = np.where(x == y, np.zeros((), x.dtype), x - y)
        return np.asarray(difference * (0.5 / eps), x.dtype)

    return tree_map(quotient, ahead, behind)


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = _EPSILON,
    err_msg: str = "",
) -> None:
    """Compare a forward derivative with the difference quotient in one direction.

    Args:
      f: the function, checked at `f(*args)`.
      f_jvp: `(primals, tangents) -> (value, tangent)`, such as `partial(jvp, f)`.
      args: the point.
      atol, rtol: tolerances: a number, or numbers by dtype; they grow with the size.
      eps: the step of the quotient.
      err_msg: put before the message.

    Raises:
      AssertionError: the two differ.
    """
    tangents = tree_map(
        functools.partial(_random_like, np.random.RandomState(0)), tuple(args)
    )
    value, tangent = f_jvp(tuple(args), tangents)
    _check_dtypes(value, tangent, f"{err_msg} tangent".strip())
    expected = f(*args)
    _check_dtypes(value, expected, f"{err_msg} primal".strip())
    quotient = _numerical_jvp(f, tuple(args), tangents, eps)
    _check_close(value, expected, atol, rtol, f"{err_msg} primal".strip())
    _check_close(tangent, quotient, atol, rtol, f"{err_msg} tangent".strip())


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = _EPSILON,
    err_msg: str = "",
) -> None:
    """Compare a backward derivative with the difference quotient in one direction.

    `f_vjp(*args)` gives the value and the function of cotangents, such as
    `partial(vjp, f)`. The other arguments and the error are those of `check_jvp`.
    """
    random_like = functools.partial(_random_like, np.random.RandomState(0))
    value, pullback = f_vjp(*args)
    expected = f(*args)
    _check_close(value, expected, atol, rtol, f"{err_msg} primal".strip())
    tangents = tree_map(random_like, tuple(args))
    quotient = _numerical_jvp(f, tuple(args), tangents, eps)
    cotangents = tree_map(random_like, value)
    conjugated = tree_map(lambda ct: np.conj(np.asarray(ct)), cotangents)
    answers = pullback(conjugated)
    backward = _inner(tangents, tree_map(lambda ct: np.conj(np.asarray(ct)), answers))
    forward = _inner(quotient, cotangents)
    message = f"{err_msg} cotangent projection".strip()
    _check_close(backward, forward, atol, rtol, message)


def _inner(xs: Any, ys: Any) -> Any:
    """The real inner product of two trees; without inexact leaves, zero."""
    pairs = zip(tree_flatten(xs)[0], tree_flatten(ys)[0], strict=True)
    arrays = [(np.asarray(x), np.asarray(y)) for x, y in pairs]
    products = [
        np.real(np.vdot(x, y)) for x, y in arrays if not dtypes.is_float0(y.dtype)
    ]
    return functools.reduce(np.add, products, np.float32(0))


def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Compare all derivatives up to an order with difference quotients.

    Args:
      f: the function, checked at `f(*args)`.
      args: the point; trees of floats.
      order: derivatives of up to this order are checked, in all mixtures of modes.
      modes: any of "fwd" (`jvp`), "rev" (`vjp`) and "lin" (`linearize`).
      atol, rtol, eps: see `check_jvp`.

    Raises:
      AssertionError: a derivative differs; the message names its modes.
    """
    step = _EPSILON if eps is None else eps

    def check(f: Callable, args: tuple, order: int, message: str = "") -> None:
        of = f" of {message}" if message else ""
        settings = (args, atol, rtol, step)
        if "fwd" in modes:
            forward = functools.partial(differentiation.jvp, f)
            check_jvp(f, forward, *settings, f"JVP{of}")
            if order > 1:
                check(_linear_jvp(f), (args, args), order - 1, f"JVP{of}")
        if "rev" in modes:
            check_vjp(
                f, functools.partial(differentiation.vjp, f), *settings, f"VJP{of}"
            )
            if order > 1:
                check(_pulled_back(f, args), args, order - 1, f"VJP{of}")
        if "lin" in modes:
            linear = functools.partial(_jvp_by_linearize, f)
            check_jvp(f, linear, *settings, f"LIN{of}")
            if order > 1:
                check(linear, (args, args), order - 1, f"LIN{of}")

    check(f, tuple(args), order)


def _jvp_by_linearize(f: Callable, args, tangents) -> tuple[Any, Any]:
    value, linear = differentiation.linearize(f, *args)
    return value, linear(*tangents)


def _linear_jvp(f: Callable) -> Callable:
    """The derivative as a function of point and direction."""

    def derivative(args: Any, tangents: Any) -> Any:
        return differentiation.jvp(f, tuple(args), tuple(tangents))

    return derivative


def _pulled_back(f: Callable, args: tuple) -> Callable:
    """Value and cotangents for one random cotangent, as a function of the point."""
    value, _ = differentiation.vjp(f, *args)
    random_like = functools.partial(_random_like, np.random.RandomState(0))
    cotangents = tree_map(random_like, value)

    def derivative(*args: Any) -> Any:
        out, pullback = differentiation.vjp(f, *args)
        return out, pullback(cotangents)

    return derivative
