"""1 with probability `p`, else 0, moved by `loc`.

In JAX: `jax.scipy.stats.bernoulli`.
"""

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.promotion import constant_like, promote_args_real
from minijax.scipy import special
from minijax.typing import ArrayLike


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`."""
    k, p, loc = promote_args_real("bernoulli.logpmf", k, p, loc)
    x = k - loc
    out = special.xlogy(x, p) + special.xlog1py(1 - x, -p)
    return jnp.where((x < 0) | (x > 1), -np.inf, out)


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`."""
    return lax.exp(logpmf(k, p, loc))


def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of at most `k`."""
    k, p = promote_args_real("bernoulli.cdf", k, p)
    out = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    wrong = jnp.isnan(k) | jnp.isnan(p) | (p < 0) | (p > 1)
    return jnp.where(wrong, np.nan, out)


def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The inverse of `cdf`."""
    q, p = promote_args_real("bernoulli.ppf", q, p)
    zero, one = constant_like(q, 0), constant_like(q, 1)
    wrong = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
    return jnp.where(wrong, np.nan, jnp.where(q <= 1 - p, zero, one))
