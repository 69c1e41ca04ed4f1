"""Minimisation by the method of Broyden, Fletcher, Goldfarb and Shanno (BFGS).

J. Nocedal, S. Wright, Numerical optimization (2006), algorithms 6.1, 3.5 and 3.6.

In JAX: `scipy/optimize/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.api import value_and_grad
from minijax.core.array import Array
from minijax.core.dtypes import finfo
from minijax.core.signatures import check_functions
from minijax.numpy.arguments import check_rank
from minijax.numpy.arraylike import ensure_arraylike
from minijax.primitives.linear.matmul_precision import Precision

_SUFFICIENT, _CURVATURE = 1e-4, 0.9  # Wolfe's conditions
_ZOOMS = 30


class OptimizeResults(NamedTuple):
    """What `minimize` found: `x`, whether with `success`, and how.

    `status` is 0 for success, 1 when the steps ran out, 3 and 5 when no length of a
    step was found. `fun`, `jac` and `hess_inv` are the value, the gradient and the
    inverse of the Hessian at `x`; `nfev`, `njev`, `nit` count calls and steps.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


def _dot(x: Any, y: Any) -> Any:
    return jnp.dot(x, y, precision=Precision.HIGHEST)


def _chosen(conditions: list, new: Any, old: Any) -> Any:
    """Of several tuples the one whose condition holds, else `old`."""
    for condition, values in zip(conditions, new, strict=True):
        old = tuple(
            jnp.where(condition, x, y).astype(jnp.result_type(y))
            for x, y in zip(values, old, strict=True)
        )
    return old


def _trial(j: Any, low: Any, high: Any, recent: Any) -> Any:
    """A length between two: where a cubic, else a parabola has its minimum, or half."""
    (a, fa, da), (b, fb, _), (c, fc) = low[:3], high[:3], recent
    width = b - a
    x, y = b - a, c - a
    rows = jnp.array([[y**2, -(x**2)], [-(y**3), x**3]])
    sides = jnp.array([fb - fa - da * x, fc - fa - da * y])
    p, q = _dot(rows, sides) / ((x * y) ** 2 * (x - y))
    cubic = a + (-q + jnp.sqrt(q * q - 3.0 * p * da)) / (3.0 * p)
    square = a - da / (2.0 * (fb - fa - da * width) / width**2)
    least, most = jnp.minimum(a, b), jnp.maximum(a, b)

    def inside(t: Any, part: float) -> Any:
        return (t > least + part * width) & (t < most - part * width)

    by_square = jnp.where(inside(square, 0.1), square, (a + b) / 2.0)
    return jnp.where((j > 0) & inside(cubic, 0.2), cubic, by_square)


def _zoom(along: Any, too_high: Any, flat: Any, low: Any, high: Any, run: Any) -> Any:
    """A point that meets Wolfe's conditions, between two, and how many calls it took.

    Points are (length, value, slope, gradient). Returns (failed, calls, point).
    """
    recent = ((low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0)
    narrow = 1e-5 if finfo(low[1].dtype).bits < 64 else 1e-10

    def step(state: Any) -> Any:
        _, failed, j, low, high, recent, found = state
        failed = failed | (high[0] - low[0] <= narrow)
        at = _trial(j, low, high, recent)
        point = (at, *along(at))
        above = too_high(at, point[1]) | (point[1] >= low[1])
        done = flat(point[2]) & ~above
        below = ~above & ~done
        turned = below & (point[2] * (high[0] - low[0]) >= 0)
        after = _chosen([done], [point], found)
        recent = _chosen([above | turned, below & ~turned], [high[:2], low[:2]], recent)
        high = _chosen([above, turned], [point, low], high)
        low = _chosen([below], [point], low)
        return done, failed | (j + 1 >= _ZOOMS), j + 1, low, high, recent, after

    def go_on(state: Any) -> Any:
        return run & ~state[0] & ~state[1]

    start = (False, False, 0, low, high, recent, (jnp.ones_like(low[0]), *low[1:]))
    _, failed, calls, *_, found = lax.while_loop(go_on, step, start)
    return failed, calls, found


def _line_search(along: Any, first: Any, before: Any, maxiter: int) -> Any:
    """A length that meets Wolfe's conditions: (failed, status, calls, point)."""
    _, value, slope, gradient = first
    guess = 1.01 * 2 * (value - before) / slope
    guess = jnp.where(guess > 1, 1.0, guess).astype(value.dtype)

    def too_high(at: Any, reached: Any) -> Any:
        return reached > value + _SUFFICIENT * at * slope

    def flat(reached: Any) -> Any:
        return jnp.abs(reached) <= -_CURVATURE * slope

    def step(state: Any) -> Any:
        done, failed, i, calls, last, found = state
        at = jnp.where(i == 1, guess, last[0] * 2.0)
        point = (at, *along(at))
        above = too_high(at, point[1]) | ((point[1] >= last[1]) & (i > 1))
        good = flat(point[2]) & ~above
        rising = (point[2] >= 0) & ~above & ~good
        # From the zooms' start on, the gradient is that of the first point.
        low, high = (*last[:3], gradient), (*point[:3], gradient)
        failed_1, calls_1, found_1 = _zoom(along, too_high, flat, low, high, above)
        failed_2, calls_2, found_2 = _zoom(along, too_high, flat, high, low, rising)
        found = _chosen([above, good, rising], [found_1, point, found_2], found)
        failed = failed | (above & failed_1) | (rising & failed_2)
        calls = calls + 1 + calls_1 + calls_2
        return done | above | good | rising, failed, i + 1, calls, point, found

    def go_on(state: Any) -> Any:
        return ~state[0] & ~state[1] & (state[2] <= maxiter)

    start = (jnp.array(False), jnp.array(False), 1, 0, first, first)
    done, failed, i, calls, _, found = lax.while_loop(go_on, step, start)
    status = jnp.where(failed, 1, jnp.where(i > maxiter, 3, 0))
    length = found[0]
    if finfo(length.dtype).bits != 64:
        tiny = jnp.sign(length) * 1e-8
        length = jnp.where(jnp.abs(length) < 1e-8, tiny, length)
    return failed | ~done, status, calls, (length, *found[1:])


def _minimize_bfgs(
    fun: Callable[..., Any],
    x0: Any,
    maxiter: int | None = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:
    maxiter = np.size(x0) * 200 if maxiter is None else maxiter
    with_gradient = value_and_grad(fun)
    eye = jnp.eye(x0.shape[0], dtype=x0.dtype)
    value, gradient = with_gradient(x0)

    def small(gradient: Any) -> Any:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

    def step(state: Any) -> Any:
        _, _, k, calls, x, value, gradient, inverse, before, _ = state
        direction = -_dot(inverse, gradient)

        def along(at: Any) -> tuple:
            reached, slopes = with_gradient(x + at * direction)
            return reached, jnp.real(_dot(slopes, direction)), slopes

        slope = jnp.real(_dot(gradient, direction))
        first = (jnp.zeros((), direction.dtype), value, slope, gradient)
        failed, status, more, (length, reached, _, slopes) = _line_search(
            along, first, before, line_search_maxiter
        )
        s, y = length * direction, slopes - gradient
        rho = jnp.reciprocal(_dot(y, s))
        w = eye - rho * s[:, None] * y[None, :]
        updated = jnp.einsum("ij,jk,lk", w, inverse, w, precision=Precision.HIGHEST)
        updated = updated + rho * s[:, None] * s[None, :]
        inverse = jnp.where(jnp.isfinite(rho), updated, inverse)
        counts = (k + 1, calls + more)
        point = (x + s, reached, slopes, inverse, value)
        return small(slopes), failed, *counts, *point, status

    def go_on(state: Any) -> Any:
        return ~state[0] & ~state[1] & (state[2] < maxiter)

    before = value + jnp.linalg.norm(gradient) / 2
    start = (small(gradient), jnp.array(False), 0, 1, x0, value, gradient, eye)
    state = lax.while_loop(go_on, step, (*start, before, 0))
    converged, failed, k, calls, x, value, gradient, inverse, _, status = state
    ended = jnp.where(k == maxiter, 1, jnp.where(failed, 2 + status, -1))
    return OptimizeResults(
        x=x,
        success=converged & ~failed,
        status=jnp.where(converged, 0, ended),
        fun=value,
        jac=gradient,
        hess_inv=inverse,
        nfev=calls,
        njev=calls,
        nit=k,
    )


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """The minimum of a function of one vector, by BFGS with exact gradients.

    Args:
      fun: `fun(x, *args)`, a number.
      x0: [n], where to begin.
      args: further arguments of `fun`, in a tuple.
      method: "BFGS".
      tol: not read, as in JAX; `options["gtol"]` says how small the gradient must be.
      options: `maxiter` (200 n), `norm` (inf) and `gtol` (1e-5) of the gradient, and
        `line_search_maxiter` (10).

    Raises:
      TypeError: `args` is not a tuple, or `x0` not an array.
      ValueError: another method, or `x0` is not a vector.
      NotImplementedError: JAX's experimental L-BFGS.
    """
    check_functions("minimize", fun=fun)
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {type(args).__name__}.")
    if str(method).lower() == "l-bfgs-experimental-do-not-rely-on-this":
        raise NotImplementedError("minimize has no L-BFGS: use method='BFGS'.")
    if str(method).lower() != "bfgs":
        raise ValueError(f"minimize: the method is 'BFGS', got {method!r}.")
    x0 = ensure_arraylike("minimize", x0)
    check_rank("minimize", 1, 1, x0=x0)
    return _minimize_bfgs(lambda x: fun(x, *args), x0, **(options or {}))
