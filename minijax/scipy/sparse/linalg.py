"""Linear equations solved by products with their matrix alone.

The unknown may be a tree of arrays: the methods work on one vector of all its
elements. Derivatives do not pass through the steps; they solve one more equation, by
`lax.custom_linear_solve`.

In JAX: `scipy/sparse/linalg.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.core.dtypes import finfo
from minijax.core.trees import tree_leaves, tree_structure
from minijax.flatten_util import ravel_pytree
from minijax.numpy.boundaries import introduce
from minijax.support.tree_util import tree_map

_Operator = Callable[[Any], Any]
_dot = functools.partial(jnp.dot, precision="highest")
_vdot = functools.partial(jnp.vdot, precision="highest")


def _operator(name: str, a: Any, restore: Callable[[Array], Any]) -> _Operator:
    """The product with `a`, a matrix or a function of trees, on vectors."""
    if a is None and name != "A":
        return lambda x: x
    if callable(a):
        return lambda x: ravel_pytree(a(restore(x)))[0]
    if not hasattr(a, "shape"):
        raise TypeError(f"{name} is a matrix or a function, got {a!r}.")
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(
            f"{name} is a square matrix, or a function, not of shape {a.shape}."
        )
    return functools.partial(_dot, a)


def _square(x: Any) -> Any:
    return _vdot(x, x).real


def _solve(method: Callable, symmetric: bool, A: Any, b: Any, x0: Any, how: dict):
    """`method(product, preconditioner, b, start)` between trees and vectors."""
    b = tree_map(jnp.asarray, b)
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else tree_map(jnp.asarray, x0)
    trees = [tree_structure(x0), tree_structure(b)]
    shapes = [[x.shape for x in tree_leaves(tree)] for tree in (x0, b)]
    if trees[0] != trees[1] or shapes[0] != shapes[1]:
        raise ValueError(
            "x0 and b must have matching trees and shapes: "
            f"{trees[0]} of {shapes[0]} vs {trees[1]} of {shapes[1]}"
        )
    vector, restore = ravel_pytree(b)
    how["maxiter"] = 10 * vector.size if how["maxiter"] is None else how["maxiter"]
    for name in how.keys() - {"M"}:
        if not isinstance(how[name], (int, float)) and getattr(how[name], "ndim", True):
            raise TypeError(f"{name} must be a number, got {how[name]!r}.")
    given = _operator("A", A, restore)
    how["M"] = _operator("M", how["M"], restore)
    how["x"] = ravel_pytree(x0)[0].astype(vector.dtype)
    solve = functools.partial(method, **how)
    symmetric = symmetric and not jnp.iscomplexobj(vector)
    return restore(lax.custom_linear_solve(given, vector, solve, solve, symmetric))


def _solver(symmetric: bool) -> Callable[[Callable], Callable]:
    """Makes a function of trees of a method on vectors, for which matrices."""

    def decorate(method: Callable) -> Callable:
        def solver(
            A: Any,
            b: Any,
            x0: Any = None,
            *,
            tol: float = 1e-5,
            atol: float = 0.0,
            maxiter: int | None = None,
            M: Any = None,
        ) -> tuple[Any, None]:
            how = {"tol": tol, "atol": atol, "maxiter": maxiter, "M": M}
            return _solve(method, symmetric, A, b, x0, how), None

        return introduce(solver, method)

    return decorate


@_solver(symmetric=True)
def cg(
    A: _Operator, b: Any, x: Any, M: _Operator, tol: Any, atol: Any, maxiter: Any
) -> Any:
    """`A x = b` by conjugate gradients, for Hermitian positive definite `A`.

    Args:
      A: a matrix, or the linear function of trees like `b`.
      b: the right-hand side, a tree of arrays.
      x0: where to start; zeros by default.
      tol, atol: it ends when `|b - A x| <= max(tol * |b|, atol)`,
      maxiter: or after so many steps, ten for each unknown by default.
      M: a preconditioner, near to the inverse of `A`; a matrix or a function.

    Returns:
      The solution, and None.

    Raises:
      TypeError, ValueError: A, M or x0 do not fit `b`.
    """
    enough = jnp.maximum(tol**2 * _square(b), atol**2)

    def step(state: tuple) -> tuple:
        x, r, gamma, p, k = state
        product = A(p)
        alpha = gamma / _vdot(p, product).real
        r = r - alpha * product
        z = M(r)
        new = _vdot(r, z).real
        return x + alpha * p, r, new, z + new / gamma * p, k + 1

    r = b - A(x)
    z = M(r)

    def going(state: tuple) -> Any:
        return (_square(state[1]) > enough) & (state[4] < maxiter)

    return lax.while_loop(going, step, (x, r, _vdot(r, z).real, z, 0))[0]


@_solver(symmetric=False)
def bicgstab(
    A: _Operator, b: Any, x: Any, M: _Operator, tol: Any, atol: Any, maxiter: Any
) -> Any:
    """`A x = b` by stabilised biconjugate gradients (van der Vorst, 1992).

    `A` is any matrix; arguments, results and errors are those of `cg`.
    """
    enough = jnp.maximum(tol**2 * _square(b), atol**2)
    first = b - A(x)

    def step(state: tuple) -> tuple:
        x, r, alpha, omega, rho, p, q, k = state
        new = _vdot(first, r)
        p = r + new / rho * alpha / omega * (p - omega * q)
        ahead = M(p)
        q = A(ahead)
        alpha = new / _vdot(first, q)
        s = r - alpha * q
        aside = M(s)
        t = A(aside)
        omega = _vdot(t, s) / _vdot(t, t)
        done = _square(s) < enough
        x = x + alpha * ahead
        x, r = jnp.where(done, x, x + omega * aside), jnp.where(done, s, s - omega * t)
        broken = (omega == 0) | (alpha == 0) | (new == 0)
        return x, r, alpha, omega, new, p, q, jnp.where(broken, -1, k + 1)

    def going(state: tuple) -> Any:
        return (_square(state[1]) > enough) & (state[7] < maxiter) & (state[7] >= 0)

    one = jnp.ones((), b.dtype)
    return lax.while_loop(going, step, (x, first, one, one, one, first, first, 0))[0]


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """`A x = b` by generalised minimal residuals (Saad and Schultz, 1986).

    Arguments and errors are those of `cg`, for any `A`, and:

    Args:
      restart: how many vectors span the space in which a solution is looked for
        before the next one is begun from it.
      maxiter: how often it is begun.
      solve_method: "batched" or "incremental": both solve the small equation once
        all vectors are there, so that the second gives no earlier end here.

    Returns:
      The solution, and 0; -1 if it has NaNs.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"{solve_method=} is neither 'batched' nor 'incremental'.")
    how = {"tol": tol, "atol": atol, "maxiter": maxiter, "M": M, "restart": restart}
    x = _solve(_minimal_residuals, False, A, b, x0, how)
    return x, jnp.where(jnp.isnan(_square(ravel_pytree(x)[0])), -1, 0)


def _minimal_residuals(
    A: _Operator, b: Any, x: Any, M: _Operator, tol: Any, atol: Any, maxiter: Any,
    restart: int,
) -> Any:  # fmt: skip
    enough = jnp.maximum(tol * jnp.sqrt(_square(b)), atol)
    restart = min(restart, b.size)
    epsilon = finfo(b.dtype).eps

    def residual(x: Any) -> tuple[Any, Any]:
        r = M(b - A(x))
        size = jnp.sqrt(_square(r))
        return r / jnp.where(size > epsilon, size, 1), size

    def add_vector(k: Any, state: tuple) -> tuple:
        """Arnoldi: the next product, made orthogonal to the vectors so far, twice."""
        vectors, overlaps = state
        v = M(A(vectors[k]))
        least = epsilon * jnp.sqrt(_square(v))
        row = jnp.zeros(restart + 1, b.dtype)
        for _ in range(2):
            h = _dot(vectors.conj(), v)
            v, row = v - _dot(h, vectors), row + h
        rest = jnp.sqrt(_square(v))
        row = row.at[k + 1].set(jnp.where(rest > least, rest, 0).astype(b.dtype))
        v = jnp.where(rest > least, v / rest, 0)
        return vectors.at[k + 1].set(v), overlaps.at[k].set(row)

    def begin(state: tuple) -> tuple:
        x, unit, size, k = state
        vectors = jnp.zeros((restart + 1, b.size), b.dtype).at[0].set(unit)
        overlaps = jnp.zeros((restart, restart + 1), b.dtype)
        vectors, overlaps = lax.fori_loop(0, restart, add_vector, (vectors, overlaps))
        right = jnp.zeros(restart + 1, b.dtype).at[0].set(size.astype(b.dtype))
        x = x + _dot(jnp.linalg.lstsq(overlaps.T, right)[0], vectors[:-1])
        return x, *residual(x), k + 1

    def going(state: tuple) -> Any:
        return (state[3] < maxiter) & (state[2] > enough)

    return lax.while_loop(going, begin, (x, *residual(x), 0))[0]
