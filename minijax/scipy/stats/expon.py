"""The exponential distribution from `loc` on, of mean `scale` above it.

In JAX: `jax.scipy.stats.expon`.
"""

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import promote_args_inexact, promote_args_real
from minijax.typing import ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`."""
    x, loc, scale = promote_args_real("expon.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(x < loc, -np.inf, -(lax.log(scale) + z))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most `x`."""
    x, loc, scale = promote_args_real("expon.cdf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z < 0, 0, -lax.expm1(-z))


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """`log(cdf(x))`."""
    x, loc, scale = promote_args_real("expon.logcdf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z < 0, -np.inf, lax.log1p(-lax.exp(-z)))


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of more than `x`."""
    return lax.exp(logsf(x, loc, scale))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """`log(sf(x))`."""
    x, loc, scale = promote_args_real("expon.logsf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z < 0, 0, -z)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, loc, scale = promote_args_inexact("expon.ppf", q, loc, scale)
    inside = (q >= 0) & (q <= 1)
    return jnp.where(inside, loc - scale * lax.log1p(-q), np.nan)
