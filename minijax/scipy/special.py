"""Special functions, under SciPy's names.

In JAX: `scipy/special.py` and `ops/special.py`.
"""

# isort: skip_file
from __future__ import annotations

from typing import Any


from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy.promotion import constant_like, promote_args_inexact
from minijax.numpy.reduce.log_sums import logsumexp as logsumexp
from minijax.scipy.gamma_family import (  # noqa: F401
    bernoulli, bessel_jn, beta, betainc, betaln, comb, factorial, gamma, gammainc,
    gammaincc, gammasgn, i0, i0e, i1, i1e, loggamma, multigammaln, poch, polygamma,
    zeta,
)  # fmt: skip
from minijax.scipy.integral_family import (  # noqa: F401
    dawsn, erfcx, exp1, expi, expn, sici, spence, wofz,
)  # fmt: skip
from minijax.scipy.normal_family import (  # noqa: F401
    boxcox, boxcox1p, entr, kl_div, log_ndtr, ndtr, ndtri, rel_entr,
)  # fmt: skip
from minijax.typing import ArrayLike


# -- error function and logistic ----------------------------------------------------


def erf(x: ArrayLike) -> Array:
    """Error function, `2/sqrt(pi)` times the integral of exp(-t**2) from 0 to `x`."""
    [x] = promote_args_inexact("erf", x)
    return lax.erf(x)


def erfc(x: ArrayLike) -> Array:
    """`1 - erf(x)`, accurate where `erf` is close to 1."""
    [x] = promote_args_inexact("erfc", x)
    return lax.erfc(x)


def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf`, for `x` in (-1, 1); infinite at the ends, NaN outside."""
    [x] = promote_args_inexact("erfinv", x)
    return lax.erf_inv(x)


def expit(x: ArrayLike) -> Array:
    """Logistic function, `1 / (1 + exp(-x))`."""
    [x] = promote_args_inexact("expit", x)
    return lax.logistic(x)


@custom_jvp
def logit(x: ArrayLike) -> Array:
    """`log(x / (1 - x))`, the inverse of `expit`."""
    [x] = promote_args_inexact("logit", x)
    return lax.log(lax.div(x, lax.sub(constant_like(x, 1), x)))


logit.defjvps(lambda t, y, x: lax.div(t, lax.mul(x, lax.sub(constant_like(x, 1), x))))


# -- products with a logarithm ------------------------------------------------------


@custom_jvp
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(y)`, and 0 where `x` is 0, unless `y` is NaN."""
    x, y = promote_args_inexact("xlogy", x, y)
    counts = (x != 0.0) | jnp.isnan(y)
    return jnp.where(counts, lax.mul(x, lax.log(y)), jnp.zeros_like(x))


@xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x, y), (x_dot, y_dot) = primals, tangents
    result = xlogy(x, y)
    return result, (x_dot * lax.log(y) + y_dot * x / y).astype(result.dtype)


@custom_jvp
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(1 + y)`, and 0 where `x` is 0, unless `y` is NaN."""
    x, y = promote_args_inexact("xlog1py", x, y)
    counts = (x != 0.0) | jnp.isnan(y)
    return jnp.where(counts, lax.mul(x, lax.log1p(y)), jnp.zeros_like(x))


@xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x, y), (x_dot, y_dot) = primals, tangents
    result = xlog1py(x, y)
    tangent = x_dot * lax.log1p(y) + y_dot * x / (1 + y)
    return result, tangent.astype(result.dtype)


# -- gamma --------------------------------------------------------------------------


def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the modulus of the gamma function."""
    [x] = promote_args_inexact("gammaln", x)
    return lax.lgamma(x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of `gammaln`."""
    [x] = promote_args_inexact("digamma", x)
    return lax.digamma(x)


# -- softmax ------------------------------------------------------------------------


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """`exp(x) / sum(exp(x))` along `axis`, None for all axes."""
    return lax.exp(log_softmax(x, axis=axis))


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """`x - logsumexp(x)` along `axis`, None for all axes."""
    [x] = promote_args_inexact("log_softmax", x)
    return x - logsumexp(x, axis=axis, keepdims=True)
