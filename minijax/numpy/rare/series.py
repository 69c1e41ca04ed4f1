"""Interpolation, convolution, polynomials, covariance: functions of sampled data.

In JAX: `numpy/lax_numpy.py` and `numpy/polynomial.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments, promotion
from minijax.numpy.arraylike import check_arraylike, ensure_arraylike
from minijax.numpy.math import clipping, elementary_functions, ufuncs
from minijax.numpy.products import contractions
from minijax.numpy.reduce import moments, reductions
from minijax.numpy.shapes import creation, diagonals, joining, sorting
from minijax.numpy.shapes.broadcasting import _where as where
from minijax.numpy.shapes.shaping import atleast_2d, flip, reshape, squeeze, transpose

# --------------------------------------------------------------------------
# Interpolation and polynomials


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """The piecewise linear function through the points (`xp`, `fp`), at `x`.

    `xp` must be increasing. Outside, the result is `left` and `right`: numbers, the
    values at the ends (None), or "extrapolate". With `period`, `xp` is sorted and
    continued. Raises ValueError for points that are not two vectors of one length and
    for complex `x`.
    """
    static = [
        name
        for name, value in (("left", left), ("right", right), ("period", period))
        if value is None or (isinstance(value, str) and name != "period")
    ]
    return jit(_interp, static_argnames=static)(x, xp, fp, left, right, period)


def _extrapolates(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if value != "extrapolate":
        raise ValueError(
            f"the only valid string value of `{name}` is 'extrapolate', but got: "
            f"{value!r}"
        )
    return True


def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Array:
    x, xp, fp = ensure_arraylike("interp", x, xp, fp)
    if xp.shape != fp.shape or xp.ndim != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp = promotion.promote_dtypes_inexact(x, xp)
    (fp,) = promotion.promote_dtypes_inexact(fp)
    extrapolate_left = _extrapolates("left", left)
    extrapolate_right = _extrapolates("right", right)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        if np.ndim(period) != 0:
            raise ValueError(f"period must be a scalar; got {period}")
        period = ufuncs.abs(period)
        x = x % period
        xp = xp % period
        xp, fp = lax.sort_key_val(xp, fp)
        xp = joining.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = joining.concatenate([fp[-1:], fp, fp[:1]])
    i = clipping.clip(sorting.searchsorted(xp, x, side="right"), 1, len(xp) - 1)
    df = fp[i] - fp[i - 1]
    dx = xp[i] - xp[i - 1]
    delta = x - xp[i - 1]
    # Where two points coincide, the division is by one and its result not used.
    epsilon = np.spacing(np.finfo(xp.dtype).eps)
    coincide = lax.abs(dx) <= epsilon
    start = fp[i - 1]
    result = where(coincide, start, fp[i - 1] + delta / where(coincide, 1, dx) * df)
    if not extrapolate_left:
        outside = fp[0] if left is None else left
        if period is None:
            result = where(x < xp[0], outside, result)
    if not extrapolate_right:
        outside = fp[-1] if right is None else right
        if period is None:
            result = where(x > xp[-1], outside, result)
    return result


@jit(static_argnames=["unroll"])
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """The polynomial with coefficients `p`, highest power first, at `x`.

    Horner's rule, in a loop unrolled `unroll` times. Further axes of `p` broadcast
    against `x`.
    """
    p, x = ensure_arraylike("polyval", p, x)
    p, x = promotion.promote_dtypes(p, x)
    shape = lax.broadcast_shapes(p.shape[1:], x.shape)
    start = lax.full_like(x, 0, shape=shape, dtype=x.dtype)
    total, _ = lax.scan(lambda y, c: (y * x + c, None), start, p, unroll=unroll)
    return total


# --------------------------------------------------------------------------
# Convolution


@jit(static_argnames=("mode", "precision", "preferred_element_type"))
def convolve(
    a: Any,
    v: Any,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The convolution of two vectors: every overlap, "same" length, or "valid" ones.

    Raises ValueError for inputs that are empty or not one-dimensional.
    """
    return _conv(a, v, mode, "convolve", precision, preferred_element_type)


@jit(static_argnames=("mode", "precision", "preferred_element_type"))
def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The correlation of two vectors: at each shift, their inner product.

    Raises ValueError for inputs that are empty or not one-dimensional.
    """
    return _conv(a, v, mode, "correlate", precision, preferred_element_type)


@jit(static_argnames=["mode", "op", "precision", "preferred_element_type"])
def _conv(
    x: Any, y: Any, mode: str, op: str, precision: Any, preferred_element_type: Any
) -> Array:
    x, y = ensure_arraylike(op, x, y)
    arguments.check_rank(op, 1, 1, a=x, v=y)
    if preferred_element_type is None:
        x, y = promotion.promote_dtypes_inexact(x, y)
    else:
        x, y = promotion.promote_dtypes(x, y)
    if len(x) == 0 or len(y) == 0:
        raise ValueError(
            f"{op}: inputs cannot be empty, got shapes {x.shape} and {y.shape}."
        )
    # XLA correlates: the shorter vector is the kernel, reversed to convolve.
    order = slice(None)
    if op == "correlate":
        y = elementary_functions.conj(y)
        if len(x) < len(y):
            x, y = y, x
            order = slice(None, None, -1)
    else:
        if len(x) < len(y):
            x, y = y, x
        y = flip(y)
    length = y.shape[0]
    if mode == "valid":
        padding = [(0, 0)]
    elif mode == "same":
        padding = [(length // 2, length - length // 2 - 1)]
    elif mode == "full":
        padding = [(length - 1, length - 1)]
    else:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    types = {"precision": precision, "preferred_element_type": preferred_element_type}
    image, kernel = x[None, None, :], y[None, None, :]
    result = lax.conv_general_dilated(image, kernel, (1,), padding, **types)
    return result[0, 0, order]


# --------------------------------------------------------------------------
# Covariance


def _check_inexact(name: str, dtype: Any) -> None:
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(
            f"{name}: dtype must be a subclass of float or complex; got {dtype=}"
        )


def _sample_weights(name: str, weights: Any, samples: int) -> Array:
    weights = ensure_arraylike("cov", weights)
    if weights.shape != (samples,):
        raise RuntimeError(
            f"cov: {name} must have shape ({samples},), a weight for each sample, got "
            f"shape {weights.shape}."
        )
    return weights


@jit(static_argnames=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Array:
    """The covariance matrix of variables, the rows of `m` (and `y`), over samples.

    Without `rowvar` the columns are the variables. The sum is divided by the number of
    samples less `ddof`, which is 1 unless `bias`. `fweights` count samples several
    times, `aweights` weigh them. Raises ValueError for more than two axes, RuntimeError
    for weights that do not fit, TypeError for `fweights` that are no integers.
    """
    if y is not None:
        m, y = promotion.promote_args_inexact("cov", m, y)
        if y.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
    else:
        (m,) = promotion.promote_args_inexact("cov", m)
    m = ensure_arraylike("cov", m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    _check_inexact("cov", dtype)
    X = atleast_2d(m)
    if not rowvar and m.ndim != 1:
        X = transpose(X)
    if X.shape[0] == 0:
        return reshape(creation.array([]), (0, 0))
    if y is not None:
        Y = atleast_2d(y)
        if not rowvar and Y.shape[0] != 1:
            Y = transpose(Y)
        X = joining.concatenate((X, Y), axis=0)
    variables, samples = X.shape
    if samples == 0:
        shape = () if variables == 1 else (variables, variables)
        return creation.full(shape, np.nan, dtype=X.dtype)
    if ddof is None:
        ddof = 1 if bias == 0 else 0
    weights = None
    if fweights is not None:
        fweights = _sample_weights("fweights", fweights, samples)
        if not dtypes.issubdtype(fweights.dtype, np.integer):
            raise TypeError("fweights must be integer.")
        weights = abs(fweights)
    if aweights is not None:
        aweights = abs(_sample_weights("aweights", aweights, samples))
        weights = aweights if weights is None else weights * aweights
    if dtype is not None:
        X = lax.convert_element_type(X, dtype)
        if weights is not None:
            weights = lax.convert_element_type(weights, dtype)
    mean, total = moments.average(X, axis=1, weights=weights, returned=True)
    total = total[0]
    if weights is None:
        divisor = samples - ddof
    elif ddof == 0:
        divisor = total
    elif aweights is None:
        divisor = total - ddof
    else:
        divisor = total - ddof * reductions.sum(weights * aweights) / total
    X = X - mean[:, None]
    weighted = X if weights is None else X * lax.broadcast_to_rank(weights, X.ndim)
    products = contractions.dot(X, elementary_functions.conj(transpose(weighted)))
    return squeeze(ufuncs.true_divide(products, divisor))


@jit(static_argnames=("rowvar", "dtype"))
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Array:
    """The matrix of correlation coefficients: `cov`, divided by standard deviations."""
    check_arraylike("corrcoef", x)
    _check_inexact("corrcoef", dtype)
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return ufuncs.divide(c, c)
    variances = elementary_functions.real(diagonals.diag(c))
    stddev = lax.convert_element_type(elementary_functions.sqrt(variances), c.dtype)
    c = c / stddev[:, None] / stddev[None, :]
    # Rounding may have pushed a coefficient just outside of [-1, 1].
    real = clipping.clip(elementary_functions.real(c), -1, 1)
    if not dtypes.issubdtype(c.dtype, np.complexfloating):
        return real
    return lax.complex(real, clipping.clip(elementary_functions.imag(c), -1, 1))
