"""Matrices made of few numbers: Toeplitz's, Hilbert's, Pascal's and others'."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.core.dtypes import default_float_dtype
from minijax.numpy.arguments import index_of
from minijax.numpy.arraylike import check_arraylike
from minijax.numpy.promotion import promote_args_inexact, promote_dtypes
from minijax.scipy.linalg.solving import check_choice
from minijax.scipy.special import comb
from minijax.support.element_types import (
    check_and_canonicalize_user_dtype,
    default_complex_dtype,
)


def _vectors(name: str, *args: Any) -> list[Any]:
    check_arraylike(name, *args)
    return [jnp.atleast_1d(jnp.asarray(arg)) for arg in args]


@jit
def block_diag(*arrs: Any) -> Array:
    """Matrices along the diagonal of a larger one, with zeros elsewhere.

    Vectors and numbers count as one row. ValueError for more than two axes.
    """
    blocks = promote_dtypes(*(arrs or (jnp.zeros((1, 0)),)))
    for place, block in enumerate(blocks):
        if np.ndim(block) > 2:
            raise ValueError(
                "block_diag takes arrays of at most two dimensions, got shape "
                f"{np.shape(block)} at argument {place}."
            )
    blocks = [jnp.atleast_2d(block) for block in blocks]
    columns = sum(block.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        after = columns - before - block.shape[1]
        rows.append(jnp.pad(block, ((0, 0), (before, after))))
        before += block.shape[1]
    return jnp.concatenate(rows, axis=0)


def _runs(name: str, c: Any, r: Any, flipped: bool) -> Array:
    """Row i is the run of len(r) elements of c, then r[1:], that begins at place i."""
    batch = jnp.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    m, n = c.shape[-1], r.shape[-1]
    if 0 in (m, n):
        return jnp.empty((*batch, m, n), dtype=jnp.promote_types(c.dtype, r.dtype))
    c = jnp.broadcast_to(c, (*batch, m))
    r = jnp.broadcast_to(r, (*batch, n))
    line = jnp.concatenate((c[..., ::-1] if flipped else c, r[..., 1:]), axis=-1)
    start = np.arange(m)[::-1] if flipped else np.arange(m)
    return line[..., start[:, None] + np.arange(n)]


def toeplitz(c: Any, r: Any = None) -> Array:
    """[..., m, n] with equal numbers along each diagonal.

    Args:
      c: [..., m], the first column.
      r: [..., n], the first row, whose first element is not read; None for conj(c).
    """
    c, r = _vectors("toeplitz", c, jnp.conj(jnp.asarray(c)) if r is None else r)
    return _runs("toeplitz", c, r, flipped=True)


def hankel(c: Any, r: Any = None) -> Array:
    """[..., m, n] with equal numbers along each anti-diagonal.

    Args:
      c: [..., m], the first column.
      r: [..., n], the last row, whose first element is not read; None for zeros.

    Raises:
      ValueError: an argument is a number.
    """
    check_arraylike("hankel", c, *([] if r is None else [r]))
    c = jnp.asarray(c)
    r = jnp.zeros_like(c) if r is None else jnp.asarray(r)
    if 0 in (c.ndim, r.ndim):
        raise ValueError("hankel: c and r must have at least one dimension.")
    return _runs("hankel", c, r, flipped=False)


def circulant(c: Any) -> Array:
    """[..., n, n] whose columns are `c` [..., n], moved down by one more each time."""
    (c,) = _vectors("circulant", c)
    places = np.arange(c.shape[-1])
    return c[..., (places[:, None] - places) % max(len(places), 1)]


def leslie(f: Any, s: Any) -> Array:
    """[..., n, n] with `f` [..., n] as first row, `s` [..., n - 1] under the diagonal.

    ValueError for other lengths, and n < 2.
    """
    f, s = _vectors("leslie", f, s)
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise ValueError(
            "leslie: f must have at least two elements and s one less, got shapes "
            f"{f.shape} and {s.shape}."
        )
    f, s = promote_dtypes(f, s)
    return _with_first_row(f, s)


def _with_first_row(row: Any, below: Any) -> Array:
    """A matrix of one row, and under its diagonal the numbers `below`."""
    batch = jnp.broadcast_shapes(row.shape[:-1], below.shape[:-1])
    n = row.shape[-1]
    eye = jnp.eye(n - 1, n, dtype=row.dtype)
    rest = jnp.broadcast_to(below[..., :, None] * eye, (*batch, n - 1, n))
    first = jnp.broadcast_to(row[..., None, :], (*batch, 1, n))
    return jnp.concatenate([first, rest], axis=-2)


def companion(a: Any) -> Array:
    """[..., n - 1, n - 1] whose eigenvalues are the roots of the polynomial `a`.

    ValueError for fewer than two coefficients [..., n].
    """
    (a,) = promote_args_inexact("companion", a)
    a = jnp.atleast_1d(a)
    if a.shape[-1] < 2:
        raise ValueError(f"companion takes two coefficients or more, got {a.shape}.")
    row = -a[..., 1:] / a[..., :1]
    return _with_first_row(row, jnp.ones(row.shape[-1] - 1, row.dtype))


def fiedler(a: Any) -> Array:
    """[..., n, n] of the distances between the elements of `a` [..., n]."""
    (a,) = _vectors("fiedler", a)
    return jnp.abs(a[..., None] - a[..., None, :])


def fiedler_companion(a: Any) -> Array:
    """A matrix with `companion(a)`'s eigenvalues and five diagonals.

    ValueError if there is no coefficient.
    """
    (a,) = promote_args_inexact("fiedler_companion", a)
    a = jnp.atleast_1d(a)
    n = a.shape[-1] - 1
    if n < 0:
        raise ValueError(f"fiedler_companion takes coefficients, got shape {a.shape}.")
    a = a / a[..., :1]
    out = jnp.zeros((*a.shape[:-1], n, n), a.dtype)
    if n == 0:
        return out
    out = out.at[..., 0, 0].set(-a[..., 1])
    if n > 1:
        out = out.at[..., 1, 0].set(1)
    # Even rows have coefficients on both sides of the diagonal, and a one two to the
    # right; odd rows a one two to the left.
    rows = np.arange(0, n, 2)
    right, left = rows[rows + 1 < n], rows[1:]
    out = out.at[..., right, right + 1].set(-a[..., right + 2])
    out = out.at[..., left, left - 1].set(-a[..., left + 1])
    above, odd = rows[rows + 2 < n], np.arange(3, n, 2)
    out = out.at[..., above, above + 2].set(1)
    return out.at[..., odd, odd - 2].set(1)


@jit(static_argnames=("n", "mode"))
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """The matrix M with `M @ v == jnp.convolve(a, v, mode)` for `v` of length n.

    Raises:
      ValueError: `n` is not positive, `a` is empty or a number, or an unknown `mode`.
    """
    n = index_of(n, "n of convolution_matrix")
    check_arraylike("convolution_matrix", a)
    a = jnp.asarray(a)
    if n <= 0 or a.ndim == 0 or a.shape[-1] < 1:
        raise ValueError(
            "convolution_matrix takes vectors of at least one element and a positive "
            f"n, got shape {a.shape} and n={n}."
        )
    trims = {"full": 0, "valid": 2 * min(n, a.shape[-1]) - 2}
    trims["same"] = trims["valid"] // 2
    if mode not in trims:
        raise ValueError(
            f"convolution_matrix: mode is 'full', 'valid' or 'same', got {mode!r}."
        )
    before = trims[mode] // 2
    rows = a.shape[-1] + n - 1
    widths = [(0, 0)] * (a.ndim - 1) + [(0, n - 1)]
    column, row = jnp.pad(a, widths), jnp.pad(jnp.flip(a, axis=-1), widths)
    return toeplitz(
        column[..., before : rows - trims[mode] + before],
        row[..., rows - n - before : rows - before],
    )


@jit(static_argnames=("n",))
def hilbert(n: int) -> Array:
    """[n, n] of `1 / (i + j + 1)`."""
    places = lax.broadcasted_iota(float, (n, 1), 0)
    return 1 / (places + places.T + 1)


@jit(static_argnames=("n",))
def invhilbert(n: int) -> Array:
    """The inverse of `hilbert(n)`, by binomial coefficients."""
    places = jnp.arange(n, dtype=default_float_dtype())
    i, j = places[:, None], places[None, :]
    s = i + j
    outer = comb(n + i, n - j - 1) * comb(n + j, n - i - 1)
    return (-1.0) ** s * (s + 1.0) * outer * comb(s, i) ** 2


def _pascal(name: str, n: int, kind: str | None, lower: Any, product: Any) -> Array:
    kind = "symmetric" if kind is None else kind
    check_choice(f"{name}: kind", kind, "symmetric", "lower", "upper")
    if kind == "symmetric":
        return product(lower)
    return lower if kind == "lower" else lower.T


def _binomials(n: int, dtype: Any) -> tuple[Any, Any]:
    """Places i - j, and how many ways there are to choose j of i things."""
    places = jnp.arange(n, dtype=dtype)
    i, j = places[:, None], places[None, :]
    logarithm = lax.lgamma(i + 1.0) - lax.lgamma(i - j + 1.0) - lax.lgamma(j + 1.0)
    return i - j, lax.exp(logarithm)


@jit(static_argnames=("n", "kind"))
def pascal(n: int, kind: str | None = None) -> Array:
    """[n, n] of binomial coefficients: "lower", "upper", or "symmetric" (None)."""
    lower = _binomials(n, np.float32)[1]
    return _pascal("pascal", n, kind, lower, lambda x: jnp.dot(x, x.T))


@jit(static_argnames=("n", "kind"))
def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`."""
    distance, binomials = _binomials(n, default_float_dtype())
    lower = (-1.0) ** distance * binomials
    return _pascal("invpascal", n, kind, lower, lambda x: jnp.dot(x.T, x))


@jit(static_argnames=("n", "full"))
def helmert(n: int, full: bool = False) -> Array:
    """[n - 1, n] orthonormal rows that sum to zero; with `full` a constant row first.

    ValueError if `n` is not positive.
    """
    if n < 1:
        raise ValueError(f"helmert: n must be positive, got {n}.")
    i, j = np.arange(n - 1)[:, None], np.arange(n)
    k = jnp.asarray(i + 1, default_float_dtype())
    size = jnp.sqrt(k * (k + 1))
    out = jnp.where(j <= i, 1.0 / size, jnp.where(j == i + 1, -k / size, 0 * size))
    if not full:
        return out
    first = jnp.full((1, n), 1.0 / jnp.sqrt(n), dtype=out.dtype)
    return jnp.concatenate([first, out], axis=0)


@jit(static_argnames=("n", "dtype"))
def hadamard(n: int, dtype: Any = int) -> Array:
    """[n, n] of 1 and -1 with orthogonal rows, for a power of two; else ValueError."""
    if index_of(n, "n of hadamard") < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a positive power of 2, got {n}.")
    out = jnp.ones((1, 1), dtype=dtype)
    while out.shape[0] < n:
        out = jnp.block([[out, out], [out, -out]])
    return out


@jit(static_argnames=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """[n, n], whose product with a vector is its discrete Fourier transform.

    `scale` "sqrtn" or "n" divides by it. ValueError for another, and for a `dtype`
    that is not complex.
    """
    check_choice("dft: scale", scale, None, "sqrtn", "n")
    if dtype is None:
        dtype = default_complex_dtype()
    else:
        dtype = check_and_canonicalize_user_dtype(dtype, "dft")
    if not jnp.issubdtype(dtype, np.complexfloating):
        raise ValueError(f"dft: dtype must be complex, got {dtype}.")
    places = jnp.arange(n, dtype=dtype)
    out = jnp.exp(-2j * np.pi * places[:, None] * places[None, :] / n)
    if scale is None:
        return out
    return out / (jnp.sqrt(n) if scale == "sqrtn" else n)
