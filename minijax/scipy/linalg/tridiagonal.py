"""Eigenvalues of tridiagonal matrices by bisection, and their vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax, random
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.core.dtypes import finfo
from minijax.numpy.arguments import check_rank

_STEPS_FOR_VECTORS = 5


def _count_below(x: Any, alpha: Any, squares: Any, least: Any, nudge: Any) -> Any:
    """How many eigenvalues are below each x: the negative pivots of T - x."""
    q = alpha[0] - x
    count = jnp.where(q < 0, 1, 0).astype(np.int32)
    q = jnp.where(alpha[0] == x, nudge, q)

    def step(i: Any, state: Any) -> Any:
        q, count = state
        q = alpha[i] - squares[i - 1] / q - x
        small = q <= least
        q = jnp.where(small, jnp.minimum(q, -least), q)
        return q, jnp.where(small, count + 1, count)

    return lax.fori_loop(1, alpha.shape[0], step, (q, count))[1]


def _orthogonal_in_clusters(v: Any, values: Any) -> Any:
    """The vectors [k, n], those of close eigenvalues made orthonormal."""
    k, n = v.shape
    largest = jnp.maximum(jnp.abs(values[0]), jnp.abs(values[-1]))
    bound = jnp.sqrt(finfo(values.dtype).eps) * largest
    close = values[1:] - values[:-1] < bound
    after, before = jnp.pad(close, (1, 0)), jnp.pad(close, (0, 1))
    size = k // 2 + 1
    starts = jnp.nonzero(~after & before, size=size)[0]
    ends = jnp.nonzero(after & ~before, size=size)[0] + 1
    places = jnp.arange(k)

    def cluster(i: Any, v: Any) -> Any:
        count = (ends[i] - starts[i])[None]
        block = lax.dynamic_slice(jnp.pad(v, ((0, k), (0, 0))), (starts[i], 0), (k, n))
        q, _ = jnp.linalg.qr(jnp.where(places < count, block.T, 0))
        moved = jnp.roll(q.T, starts[i], axis=0)
        inside = (places >= starts[i]) & (places < ends[i])
        return jnp.where(inside[:, None], moved, v)

    return lax.fori_loop(0, jnp.sum(~after & before), cluster, v)


def _vectors(alpha: Any, beta: Any, values: Any, key: Any) -> Any:
    """Eigenvectors [n, k] by inverse iteration from random vectors."""
    n, k = alpha.shape[0], values.shape[0]
    v = random.normal(key, (k, n), dtype=alpha.dtype).astype(beta.dtype)
    v = v / jnp.linalg.norm(v, axis=-1, keepdims=True).astype(v.dtype)
    below, above = jnp.pad(jnp.conj(beta), (1, 0)), jnp.pad(beta, (0, 1))
    diagonals = [
        jnp.broadcast_to(x, (k, n)).astype(beta.dtype)
        for x in (below, alpha[None, :] - values[:, None], above)
    ]

    def step(state: Any) -> Any:
        i, v, size, _ = state
        v = lax.linalg.tridiagonal_solve(
            *diagonals, v[..., None], perturb_singular=True
        )
        v = v[..., 0]
        new = jnp.linalg.norm(v, axis=-1)
        v = _orthogonal_in_clusters(v / new[:, None].astype(v.dtype), values)
        return i + 1, v, new, size

    def go_on(state: Any) -> Any:
        i, _, size, before = state
        return (i < _STEPS_FOR_VECTORS) & jnp.any(size >= 1.1 * before)

    start = (0, v, jnp.ones_like(values), jnp.zeros_like(values))
    return lax.while_loop(go_on, step, start)[1].T


def _targets(select: str, select_range: Any, n: int) -> Any:
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal: select='v': use 'a' or 'i'.")
    if select not in ("a", "i"):
        raise ValueError(f"eigh_tridiagonal: select is 'a' or 'i', got {select!r}.")
    if select == "a":
        return jnp.arange(n, dtype=np.int32)
    if select_range is None or select_range[0] > select_range[1]:
        raise ValueError(
            "eigh_tridiagonal: with select='i', select_range is the first and the last "
            f"place, got {select_range}."
        )
    return jnp.arange(select_range[0], select_range[1] + 1, dtype=np.int32)


@jit(static_argnames=("eigvals_only", "select", "select_range"))
def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """(eigenvalues that rise [k], eigenvectors in columns [n, k]) of one matrix.

    Args:
      d: [n], the diagonal.
      e: [n - 1], of d's dtype, what is above it; below it stands the conjugate.
      eigvals_only: return the eigenvalues alone.
      select: "a" for all, "i" for those from place `select_range[0]` to `[1]`.
      select_range: two places, counted from the smallest eigenvalue.
      tol: how exact eigenvalues must be, absolutely.
      key: of the random vectors from which eigenvectors are found.

    Raises:
      TypeError: two dtypes, or others than float32, float64 and complex.
      ValueError: another `select`, or no range for it.
      NotImplementedError: `select` is "v".
    """
    alpha, beta = jnp.asarray(d), jnp.asarray(e)
    if alpha.dtype != beta.dtype or alpha.dtype.char not in "fdFD":
        raise TypeError(
            "eigh_tridiagonal: d and e must have one dtype, of 32 bits and more, got "
            f"{alpha.dtype} and {beta.dtype}."
        )
    check_rank("eigh_tridiagonal", 1, 1, d=alpha, e=beta)
    n = alpha.shape[0]
    if n <= 1:
        values = jnp.real(alpha)
        return values if eigvals_only else (values, jnp.eye(n, dtype=alpha.dtype))
    alpha, sizes = jnp.real(alpha), jnp.abs(beta)
    squares = jnp.real(beta * jnp.conj(beta))
    # Gershgorin's circles hold all eigenvalues.
    radius = jnp.pad(sizes, (1, 0)) + jnp.pad(sizes, (0, 1))
    low, high = jnp.amin(alpha - radius), jnp.amax(alpha + radius)
    norm = jnp.maximum(jnp.abs(low), jnp.abs(high))
    limits = finfo(alpha.dtype)
    tiny = np.maximum(1 / limits.max, (1 + limits.eps) * limits.tiny)
    least = (tiny * jnp.maximum(1, jnp.amax(squares))).astype(alpha.dtype)
    nudge = jnp.square(limits.eps * sizes[0])
    enough = limits.eps * norm if tol is None else jnp.maximum(tol, limits.eps * norm)
    targets = _targets(select, select_range, n)
    slack = 2.1 * n * limits.eps * norm
    low = jnp.broadcast_to(low - slack - 4.2 * least, targets.shape)
    high = jnp.broadcast_to(high + slack + 2.1 * least, targets.shape)

    def halve(state: Any) -> Any:
        i, low, middle, high = state
        count = _count_below(middle, alpha, squares, least, nudge)
        low = jnp.where(count <= targets, middle, low)
        high = jnp.where(count > targets, middle, high)
        return i + 1, low, 0.5 * (low + high), high

    def go_on(state: Any) -> Any:
        i, low, _, high = state
        return (i <= limits.nmant) & (enough < jnp.amax(high - low))

    start = (0, low, 0.5 * (low + high), high)
    values = lax.while_loop(go_on, halve, start)[2]
    if eigvals_only:
        return values
    return values, _vectors(alpha, beta, values, random.key(42) if key is None else key)
