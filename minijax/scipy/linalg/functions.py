"""Functions of matrices: exponential, square root, any other; polar; Sylvester."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.core.dtypes import finfo
from minijax.core.signatures import check_callable
from minijax.numpy.arguments import check_rank, index_of
from minijax.programs.linear_algebra.matrices import (
    adjoint,
    complex_dtype,
    is_complex,
    matmul,
)
from minijax.scipy.linalg.solving import check_choice, inexact, schur, solve_triangular
from minijax.support.config import default_matmul_precision
from minijax.transforms.differentiation import jvp

# N. Higham, The scaling and squaring method for the matrix exponential revisited
# (2005): degrees of Padé's approximation, norms up to which all but the last are
# exact, and the norm to which a matrix is scaled.
_DOUBLE = (
    (3, 5, 7, 9, 13),
    (
        1.495585217958292e-2,
        2.53939833006323e-1,
        9.504178996162932e-1,
        2.097847961257068,
    ),
    5.371920351148152,
)
_SINGLE = ((3, 5, 7), (4.258730016922831e-1, 1.880152677804762), 3.92572478313866)


def _pade(degree: int, a: Any) -> tuple[Any, Any]:
    """The odd and the even part of the numerator of Padé's approximation of exp(a)."""
    weights = [
        float(
            math.factorial(2 * degree - k)
            // (math.factorial(degree - k) * math.factorial(k))
        )
        for k in range(degree + 1)
    ]
    powers = [jnp.eye(a.shape[0], dtype=a.dtype), matmul(a, a)]
    while len(powers) <= min(degree // 2, 4 if degree < 13 else 3):
        powers.append(matmul(powers[-1], powers[1]))

    def series(first: int) -> Any:
        chosen = weights[first::2]
        total = sum(w * p for w, p in zip(chosen, powers, strict=False))
        if degree < 13:
            return total
        high = sum(w * p for w, p in zip(chosen[4:], powers[1:], strict=True))
        return matmul(powers[3], high) + total

    return matmul(a, series(1)), series(0)


@jit(static_argnames=("upper_triangular", "max_squarings"))
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices [..., n, n], by scaling and squaring.

    Args:
      A: the matrices.
      upper_triangular: they are, which saves a decomposition.
      max_squarings: NaN for a matrix that would need more.

    Raises:
      ValueError: the matrices are not square.
      TypeError: half precision.
    """
    (A,) = inexact(A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"expm takes square matrices [..., n, n], got {A.shape}.")
    if A.ndim > 2:
        options = {"upper_triangular": upper_triangular, "max_squarings": max_squarings}
        one = functools.partial(expm, **options)
        return jnp.vectorize(one, signature="(n,n)->(n,n)")(A)
    if A.dtype.char not in "fdFD":
        raise TypeError(f"expm takes numbers of 32 bits and more, got {A.dtype}.")
    degrees, norms, largest = _DOUBLE if A.dtype.char in "dD" else _SINGLE
    norm = jnp.linalg.norm(A, 1)
    squarings = jnp.maximum(0, jnp.floor(jnp.log2(norm / largest)))
    scaled = A / 2 ** squarings.astype(A.dtype)
    which = jnp.digitize(norm, jnp.array(norms, dtype=norm.dtype))
    kinds = [functools.partial(_pade, degree) for degree in degrees]
    odd, even = lax.switch(which, kinds, scaled)

    def square(out: Any, i: Any) -> tuple[Any, None]:
        return lax.cond(i < squarings, lambda x: matmul(x, x), lambda x: x, out), None

    def compute(above: Any, below: Any) -> Any:
        solve = solve_triangular if upper_triangular else jnp.linalg.solve
        steps = jnp.arange(max_squarings, dtype=squarings.dtype)
        return lax.scan(square, solve(below, above), steps)[0]

    def refuse(above: Any, below: Any) -> Any:
        return jnp.full_like(above, np.nan)

    return lax.cond(squarings > max_squarings, refuse, compute, odd + even, even - odd)


@jit(static_argnames=("method", "compute_expm"))
def expm_frechet(
    A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True
) -> Any:
    """(expm(A), its derivative in the direction E), or the derivative alone.

    By forward-mode differentiation whatever `method` says, as in JAX. ValueError for
    matrices that are not square, or of two shapes.
    """
    A, E = jnp.asarray(A), jnp.asarray(E)
    if A.ndim < 2 or A.shape[-2] != A.shape[-1] or A.shape != E.shape:
        raise ValueError(
            "expm_frechet takes square matrices of one shape [..., n, n], got "
            f"{A.shape} and {E.shape}."
        )
    out, derivative = jvp(expm, (A,), (E,))
    return (out, derivative) if compute_expm else derivative


# ----------------------------------------------------------------------------------
# By Schur's form
# ----------------------------------------------------------------------------------


def _fill_triangle(start: Any, entry: Callable[..., Any]) -> Any:
    """An upper triangle: the diagonal matrix `start`, filled diagonal by diagonal.

    `entry(i, j, between, filled)` is the entry (i, j), from those filled before it;
    `between` is a mask of the places between i and j.
    """
    n = start.shape[0]
    places = jnp.arange(n)

    def fill(i: Any, state: Any) -> Any:
        p, filled = state
        j = i + p
        between = (places > i) & (places < j)
        return p, filled.at[i, j].set(entry(i, j, between, filled))

    def diagonal(p: Any, filled: Any) -> Any:
        return lax.fori_loop(0, n - p, fill, (p, filled))[1]

    return lax.fori_loop(1, n, diagonal, start)


def _root_of_triangle(t: Any) -> Any:
    """The upper triangular square root."""
    roots = jnp.sqrt(jnp.diag(t))

    def entry(i: Any, j: Any, between: Any, u: Any) -> Any:
        rest = t[i, j] - jnp.sum(jnp.where(between, u[i] * u[:, j], 0))
        return jnp.where(rest == 0, 0, rest / (roots[i] + roots[j]))

    return _fill_triangle(jnp.diag(roots), entry)


@jit
def _sqrtm(A: Any) -> Array:
    t, z = schur(A, output="complex")
    return matmul(matmul(z, _root_of_triangle(t)), adjoint(z))


def sqrtm(A: Any, blocksize: int = 1) -> Array:
    """The principal square root of one matrix [n, n], complex.

    NotImplementedError for a `blocksize` above 1.
    """
    if index_of(blocksize, "blocksize of sqrtm") > 1:
        raise NotImplementedError("sqrtm: blocksize must be 1; leave it out.")
    return _sqrtm(jnp.asarray(A))


@jit
def _rsf2csf(t: Any, z: Any) -> tuple[Any, Any]:
    dtype = complex_dtype(jnp.result_type(t, z))
    t, z = t.astype(dtype), z.astype(dtype)
    n, eps = t.shape[0], finfo(dtype).eps
    places = jnp.arange(n)

    def turn(m: Any, t: Any, z: Any) -> tuple[Any, Any]:
        """Rotate rows and columns m - 1 and m, so that t[m, m - 1] becomes zero."""
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        shifted = jnp.linalg.eigvals(block)[0] - t[m, m]
        size = jnp.linalg.norm(jnp.stack([shifted, t[m, m - 1]])).astype(dtype)
        c, s = shifted / size, t[m, m - 1] / size
        rotation = jnp.array([[c.conj(), s], [-s, c]])
        rows = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=0)
        rows = jnp.where(places >= m - 1, rotation @ rows, rows)
        t = lax.dynamic_update_slice_in_dim(t, rows, m - 1, axis=0)
        columns = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=1)
        turned = columns @ adjoint(rotation)
        columns = jnp.where(places[:, None] <= m, turned, columns)
        t = lax.dynamic_update_slice_in_dim(t, columns, m - 1, axis=1)
        vectors = lax.dynamic_slice_in_dim(z, m - 1, 2, axis=1) @ adjoint(rotation)
        return t, lax.dynamic_update_slice_in_dim(z, vectors, m - 1, axis=1)

    def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        t, z = state
        m = n - i
        neighbours = jnp.abs(t[m - 1, m - 1]) + jnp.abs(t[m, m])
        coupled = jnp.abs(t[m, m - 1]) > eps * neighbours
        t, z = lax.cond(coupled, turn, lambda m, t, z: (t, z), m, t, z)
        return t.at[m, m - 1].set(0), z

    return lax.fori_loop(1, n, step, (t, z)) if n > 1 else (t, z)


@jit(static_argnames=("check_finite",))
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form (upper triangular) from the real one of `schur`.

    ValueError for matrices that are not square, or of two sizes.
    """
    T, Z = jnp.asarray(T), jnp.asarray(Z)
    for name, x in (("T", T), ("Z", Z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"rsf2csf: {name} must be square, got shape {x.shape}.")
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"rsf2csf: sizes differ, of {T.shape} and {Z.shape}.")
    return jnp.vectorize(_rsf2csf, signature="(n,n),(n,n)->(n,n),(n,n)")(T, Z)


@jit
def _fill_function(f: Any, t: Any) -> tuple[Any, Any]:
    """f(t) of a triangle from its diagonal, and the least distance of eigenvalues.

    Parlett's recurrence: algorithm 9.1.1 of G. Golub, C. Van Loan, Matrix computations.
    """
    distances = jnp.diag(t) - jnp.diag(t)[:, None]

    def entry(i: Any, j: Any, between: Any, f: Any) -> Any:
        inner = jnp.sum(jnp.where(between, t[i] * f[:, j] - f[i] * t[:, j], 0))
        value = t[i, j] * (f[j, j] - f[i, i]) + inner
        return jnp.where(distances[i, j] != 0, value / distances[i, j], value)

    above = jnp.triu(jnp.ones(t.shape, bool), 1)
    least = jnp.min(jnp.abs(distances), initial=jnp.abs(t[0, 0]), where=above)
    return _fill_triangle(f, entry), least


def funm(A: Any, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of one square matrix, through its Schur form.

    Args:
      A: [n, n].
      func: the function of numbers, applied to the vector of eigenvalues.
      disp: False to return also an estimate of the error in the 1-norm.

    Raises:
      ValueError: the matrix is not square.
    """
    check_callable(func, "funm")
    A = jnp.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"funm takes one square matrix, got shape {A.shape}.")
    t, z = rsf2csf(*schur(A))
    values = jnp.diag(func(jnp.diag(t))).astype(t.dtype)
    values, least = _fill_function(values, t)
    out = z @ values @ adjoint(z)
    if disp:
        return out
    tol = finfo(out.dtype).eps
    spread = (
        tol / jnp.where(least == 0, tol, least) * jnp.linalg.norm(jnp.triu(t, 1), 1)
    )
    bounded = jnp.minimum(1, jnp.maximum(tol, spread))
    return out, jnp.where(jnp.any(jnp.isinf(out)), np.inf, bounded)


def _sylvester_of_triangles(r: Any, s: Any, f: Any) -> Any:
    """Y with `r Y + Y s = f`, r upper and s lower triangular: from the last entry."""
    m, n = f.shape

    def entry(y: Any, place: Any) -> tuple[Any, None]:
        i, j = place // n, place % n
        above = jnp.sum(jnp.where(jnp.arange(m) > i, r[i] * y[:, j], 0))
        behind = jnp.sum(jnp.where(jnp.arange(n) > j, y[i] * s[:, j], 0))
        value = (f[i, j] - above - behind) / (r[i, i] + s[j, j])
        return y.at[i, j].set(value), None

    return lax.scan(entry, jnp.zeros_like(f), jnp.arange(m * n - 1, -1, -1))[0]


@jit(static_argnames=("method",))
def solve_sylvester(
    A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """The solution X of `A X + X B = C`.

    Args:
      A: [..., m, m].
      B: [..., n, n].
      C: [..., m, n].
      method: "schur", or "eigen" (by eigenvectors: on every platform).
      tol: NaN where an eigenvalue of A and one of B sum to less.

    Raises:
      ValueError: sizes that do not fit, or another method.
    """
    A, B, C = inexact(A, B, C)
    check_rank("solve_sylvester", 2, np.inf, A=A, B=B, C=C)
    m, n = C.shape[-2:]
    if A.shape[-2:] != (m, m) or B.shape[-2:] != (n, n):
        raise ValueError(
            "solve_sylvester takes A [m, m], B [n, n] and C [m, n], got "
            f"{A.shape}, {B.shape} and {C.shape}."
        )
    check_choice("solve_sylvester: method", method, "schur", "eigen")

    def solve_one(a: Any, b: Any, c: Any) -> Any:
        if method == "schur":
            r, u = schur(a, output="complex")
            s, v = schur(adjoint(b), output="complex")
            f = adjoint(u) @ c.astype(r.dtype) @ v
            x = u @ _sylvester_of_triangles(r, adjoint(s), f) @ adjoint(v)
        else:
            (p, u), (q, v) = jnp.linalg.eig(a), jnp.linalg.eig(b)
            f = jnp.linalg.solve(u, c.astype(p.dtype) @ v)
            x = u @ (f / (p[:, None] + q[None, :])) @ jnp.linalg.inv(v)
        x = x if is_complex(c) else x.real
        sums = jnp.linalg.eigvals(a)[:, None] + jnp.linalg.eigvals(b)[None, :]
        return jnp.where(jnp.any(jnp.abs(sums) < tol), np.nan, x)

    return jnp.vectorize(solve_one, signature="(m,m),(n,n),(m,n)->(m,n)")(A, B, C)


# ----------------------------------------------------------------------------------
# Polar
# ----------------------------------------------------------------------------------


def _polar(a: Any, side: str, method: str, eps: Any) -> tuple[Any, Any]:
    rows, columns = a.shape
    if method != "svd" and (rows >= columns) != (side == "right"):
        raise NotImplementedError(
            "polar: method='qdwh' takes as many rows as columns or more for "
            f"side='right', and fewer for 'left', got shape {a.shape} and {side=}. "
            "method='svd' takes all."
        )
    if method == "svd" or a.size == 0:
        u, s, vh = jnp.linalg.svd(a, full_matrices=False)
        s = s.astype(u.dtype)
        root = adjoint(vh) * s @ vh if side == "right" else u * s @ adjoint(u)
        return u @ vh, root
    if side == "right":
        return lax.linalg.qdwh(a, eps=eps)[:2]
    unitary, root, _, _ = lax.linalg.qdwh(adjoint(a), eps=eps)
    return adjoint(unitary), adjoint(root)


@jit(static_argnames=("side", "method", "eps", "max_iterations"))
def polar(
    a: Any,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """(U, P) with `a = U P`, or `a = P U` for side "left"; P is positive semidefinite.

    Args:
      a: [..., m, n].
      side: where P stands.
      method: "qdwh", an iteration (for m >= n and "right", or m < n and "left"), or
        "svd".
      eps: at what precision the iteration ends.
      max_iterations: not read, as in JAX, whose iteration ends after ten steps.

    Raises:
      ValueError: fewer than two axes, or another side or method.
      NotImplementedError: a shape and side that "qdwh" does not take.
    """
    a = jnp.asarray(a)
    if a.ndim < 2:
        raise ValueError(f"polar takes matrices [..., m, n], got shape {a.shape}.")
    check_choice("polar: side", side, "right", "left")
    check_choice("polar: method", method, "qdwh", "svd")
    out = "(m,n)->(m,n),(n,n)" if side == "right" else "(m,n)->(m,n),(m,m)"
    with default_matmul_precision("float32"):
        one = functools.partial(_polar, side=side, method=method, eps=eps)
        return jnp.vectorize(one, signature=out)(a)
