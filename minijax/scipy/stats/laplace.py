"""Laplace's distribution around `loc`.

In JAX: `jax.scipy.stats.laplace`.
"""

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import promote_args_real
from minijax.typing import ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`."""
    x, loc, scale = promote_args_real("laplace.logpdf", x, loc, scale)
    return -(lax.abs(x - loc) / scale + lax.log(2 * scale))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most `x`."""
    x, loc, scale = promote_args_real("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    return jnp.where(z <= 0, 0.5 * lax.exp(z), 1 - 0.5 * lax.exp(-z))
