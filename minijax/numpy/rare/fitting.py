"""Roots of polynomials, and polynomials through points, by linear algebra.

In JAX: `numpy/polynomial.py`.
"""

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.arguments import check_rank, concrete_or_error
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.primitives.reduce.sorting import sort_key_val
from minijax.programs.linear_algebra.matrices import complex_dtype


@jit
def _roots_no_zeros(p: Any) -> Any:
    """The eigenvalues of the companion matrix."""
    if p.size < 2:
        return jnp.array([], dtype=complex_dtype(p.dtype))
    matrix = jnp.diag(jnp.ones((p.size - 2,), p.dtype), -1)
    return jnp.linalg.eigvals(matrix.at[0, :].set(-p[1:] / p[0]))


@jit
def _roots_with_zeros(p: Any, leading: Any) -> Any:
    p = jnp.where(len(p) == leading, 1.0, p)
    found = _roots_no_zeros(jnp.roll(p, -leading))
    _, found = sort_key_val(found == 0, found)
    counts = jnp.arange(found.size) < found.size - leading
    return jnp.where(counts, found, complex(np.nan, np.nan))


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The complex roots of a polynomial with coefficients from the highest power down.

    Zeros in front are left out; under `jit`, where they cannot be seen, give
    strip_zeros=False, and NaN stands for the roots that they cost. Raises ValueError
    unless `p` is a vector.
    """
    (p,) = promote_dtypes_inexact(ensure_arraylike("roots", p))
    p = jnp.atleast_1d(p)
    check_rank("roots", 1, 1, p=p)
    if p.size < 2:
        return jnp.array([], dtype=complex_dtype(p.dtype))
    leading = jnp.where(jnp.all(p == 0), len(p), jnp.argmin(p == 0))
    if not strip_zeros:
        return _roots_with_zeros(p, leading)
    leading = concrete_or_error(
        int,
        leading,
        "jnp.roots() looks for zeros in front: under jit give strip_zeros=False.",
    )
    return _roots_no_zeros(p[leading:])


@jit(static_argnames=("deg", "rcond", "full", "cov"))
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """The coefficients of a polynomial of degree `deg` of least squares.

    Args:
      x: [m].
      y: [m] or [m, k].
      deg: the degree.
      rcond: singular values below this part of the largest count as zero.
      full: return also residuals, rank, singular values and rcond.
      w: weights [m] of the residuals, before they are squared.
      cov: return also the covariance of the coefficients; "unscaled": without the
        variance of the residuals.

    Raises TypeError for shapes that do not fit, ValueError for a negative degree.
    """
    x, y = ensure_arraylike("polyfit", x, y)
    deg = concrete_or_error(int, deg, "deg must be int")
    order = deg + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1 or x.size == 0:
        raise TypeError("expected non-empty 1D vector for x")
    if y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise TypeError("expected 1D or 2D array for y, of the same length as x")
    rcond = len(x) * float(jnp.finfo(x.dtype).eps) if rcond is None else rcond
    rcond = concrete_or_error(float, rcond, "rcond must be float")
    left, right = jnp.vander(x, order), y
    if w is not None:
        (w,) = promote_dtypes_inexact(ensure_arraylike("polyfit", w))
        if w.ndim != 1 or w.shape[0] != y.shape[0]:
            raise TypeError("expected a 1-d array for weights, of the same length as y")
        left *= w[:, None]
        right *= w[:, None] if right.ndim == 2 else w
    scale = jnp.sqrt((left * left).sum(axis=0))
    left /= scale[None, :]
    c, residuals, rank, s = jnp.linalg.lstsq(left, right, rcond)
    c = (c.T / scale[None, :]).T if c.ndim > 1 else c / scale
    if full:
        return c, residuals, rank, s, jnp.asarray(rcond)
    if not cov:
        return c
    base = jnp.linalg.inv(jnp.dot(left.T, left))
    base /= jnp.outer(scale, scale)
    if cov == "unscaled":
        factor = jnp.array(1.0)
    else:
        if len(x) <= order:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance "
                "matrix"
            )
        factor = residuals / (len(x) - order)
    factor = jnp.atleast_1d(factor)
    if y.ndim == 1:
        return c, base * factor[None]
    return c, base[:, :, None] * factor[None, None, :]
