"""Numbers between `loc` and `loc + scale`, all alike.

In JAX: `jax.scipy.stats.uniform`.
"""

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import promote_args_inexact, promote_args_real
from minijax.typing import ArrayLike


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at `x`."""
    x, loc, scale = promote_args_real("uniform.logpdf", x, loc, scale)
    outside = (x < loc) | (x > loc + scale)
    return jnp.where(outside, -np.inf, -lax.log(scale))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`."""
    return lax.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of at most `x`."""
    x, loc, scale = promote_args_real("uniform.cdf", x, loc, scale)
    upper = jnp.where(x > loc + scale, 1, 0).astype(jnp.result_type(x))
    inside = (x >= loc) & (x <= loc + scale)
    return jnp.where(inside, (x - loc) / scale, upper)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    q, loc, scale = promote_args_inexact("uniform.ppf", q, loc, scale)
    inside = (q >= 0) & (q <= 1)
    return jnp.where(inside, q * scale + loc, np.nan)
