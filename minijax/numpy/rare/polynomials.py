"""Arithmetic of polynomials, given by their coefficients from the highest power down.

In JAX: `numpy/polynomial.py`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments
from minijax.numpy.math.ufuncs import maximum, true_divide
from minijax.numpy.products.factoring import eigvals
from minijax.numpy.promotion import (
    ensure_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
)
from minijax.numpy.rare.series import convolve
from minijax.numpy.shapes.creation import arange, array, full, ones, zeros
from minijax.numpy.shapes.joining import concatenate
from minijax.numpy.shapes.shaping import atleast_1d


@jit
def poly(seq_of_zeros: Any) -> Array:
    """The coefficients of the polynomial with these roots, the leading one 1.

    Of a square matrix: its characteristic polynomial, complex. ValueError for other
    shapes.
    """
    (roots,) = promote_dtypes_inexact(ensure_arraylike("poly", seq_of_zeros))
    roots = atleast_1d(roots)
    if roots.ndim == 2 and 0 < roots.shape[0] == roots.shape[1]:
        roots = eigvals(roots)
    if roots.ndim != 1:
        raise ValueError(
            f"poly takes roots [n] or a square matrix [n, n], got shape {roots.shape}."
        )
    if roots.size == 0:
        return ones((), dtype=roots.dtype)
    result = ones((1,), dtype=roots.dtype)
    for k in range(roots.size):
        factor = array([1, -roots[k]], dtype=roots.dtype)
        result = convolve(result, factor, mode="full")
    return result


def _coefficients(name: str, a1: Any, a2: Any) -> tuple[Array, Array]:
    """Arrays of one dtype. ValueError for a number in place of an array."""
    a1, a2 = promote_dtypes(*ensure_arraylike(name, a1, a2))
    arguments.check_rank(name, 1, np.inf, a1=a1, a2=a2)
    return a1, a2


@jit
def polyadd(a1: Any, a2: Any) -> Array:
    """The coefficients of the sum."""
    a1, a2 = _coefficients("polyadd", a1, a2)
    if a2.shape[0] <= a1.shape[0]:
        return a1.at[-a2.shape[0] :].add(a2)
    return a2.at[-a1.shape[0] :].add(a1)


@jit
def polysub(a1: Any, a2: Any) -> Array:
    """The coefficients of the difference."""
    a1, a2 = _coefficients("polysub", a1, a2)
    return polyadd(a1, -a2)


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The coefficients of the product.

    `trim_leading_zeros` drops zeros in front first, which cannot be done under jit.
    """
    a1, a2 = promote_dtypes_inexact(*ensure_arraylike("polymul", a1, a2))
    if trim_leading_zeros and (len(a1) > 1 or len(a2) > 1):
        a1, a2 = trim_zeros(a1, trim="f"), trim_zeros(a2, trim="f")
    if len(a1) == 0:
        a1 = zeros(1, dtype=a2.dtype)
    if len(a2) == 0:
        a2 = zeros(1, dtype=a1.dtype)
    return convolve(a1, a2, mode="full")


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The coefficients of quotient and remainder, by long division."""
    u, v = promote_dtypes_inexact(*ensure_arraylike("polydiv", u, v))
    m, n = len(u) - 1, len(v) - 1
    scale = 1.0 / v[0]
    quotient = zeros(max(m - n + 1, 1), dtype=u.dtype)
    for k in range(m - n + 1):
        digit = scale * u[k]
        quotient = quotient.at[k].set(digit)
        u = u.at[k : k + n + 1].add(-digit * v)
    if trim_leading_zeros:
        tolerance = np.sqrt(dtypes.finfo(u.dtype).eps)
        significant = abs(np.asarray(u)) >= tolerance
        u = u[int(significant.argmax()) :] if significant.any() else u[:0]
    return quotient, u


@jit(static_argnames=("m",))
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The coefficients of the m-th antiderivative, with integration constants `k`."""
    m = arguments.static_index(m, "'m' argument of jnp.polyint")
    constants = 0 if k is None else k
    p, constants = promote_dtypes_inexact(*ensure_arraylike("polyint", p, constants))
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = atleast_1d(constants)
    if len(constants) == 1:
        constants = full((m,), constants[0])
    if constants.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if m == 0:
        return p
    powers = arange(len(p) + m, dtype=p.dtype)[np.newaxis]
    grid = powers - arange(m, dtype=p.dtype)[:, np.newaxis]
    divisors = maximum(1, grid).prod(0)[::-1]
    return true_divide(concatenate((p, constants)), divisors)


@jit(static_argnames=("m",))
def polyder(p: Any, m: int = 1) -> Array:
    """The coefficients of the m-th derivative."""
    m = arguments.static_index(m, "'m' argument of jnp.polyder")
    (p,) = promote_dtypes_inexact(ensure_arraylike("polyder", p))
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return p
    powers = arange(m, len(p), dtype=p.dtype)[np.newaxis]
    factors = (powers - arange(m, dtype=p.dtype)[:, np.newaxis]).prod(0)
    return p[:-m] * factors[::-1]


def trim_zeros(
    filt: Any, trim: str = "fb", axis: int | Sequence[int] | None = None
) -> Array:
    """`filt` without the zeros at its front ("f") and back ("b").

    The result's shape depends on the values: ConcretizationTypeError under jit.
    """
    filt = ensure_arraylike("trim_zeros", filt)
    values = arguments.concrete_or_error(
        np.asarray, filt, "Error arose in the `filt` argument of trim_zeros()"
    )
    axes = arguments.canonicalize_axes(axis, filt.ndim)
    if not isinstance(trim, str):
        raise TypeError(f'trim_zeros: trim must be "f", "b" or "fb", got {trim!r}.')
    trim = trim.lower()
    if not axes or not ("f" in trim or "b" in trim):
        return filt
    index = [slice(None)] * filt.ndim
    for each in axes:
        others = tuple(i for i in range(filt.ndim) if i != each)
        places = np.flatnonzero((values != 0).any(axis=others))
        if len(places) == 0:
            index[each] = slice(0, 0)
            continue
        start = int(places[0]) if "f" in trim else None
        stop = int(places[-1]) + 1 if "b" in trim else None
        index[each] = slice(start, stop)
    return filt[tuple(index)]
