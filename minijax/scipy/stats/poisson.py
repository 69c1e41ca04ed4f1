"""The Poisson distribution of mean `mu`, moved by `loc`.

In JAX: `jax.scipy.stats.poisson`.
"""

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.promotion import promote_args_inexact
from minijax.scipy import special
from minijax.typing import ArrayLike


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k`."""
    k, mu, loc = promote_args_inexact("poisson.logpmf", k, mu, loc)
    x = k - loc
    out = special.xlogy(x, mu) - lax.lgamma(x + 1) - mu
    return jnp.where((x < 0) | (jnp.round(k) != k), -np.inf, out)


def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k`."""
    return lax.exp(logpmf(k, mu, loc))


def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of at most `k`."""
    k, mu, loc = promote_args_inexact("poisson.cdf", k, mu, loc)
    x = k - loc
    return jnp.where(x < 0, 0, special.gammaincc(jnp.floor(1 + x), mu))


@jit
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy in nats; below a mean of 100 summed, above it by its expansion."""
    mu, loc = promote_args_inexact("poisson.entropy", mu, loc)
    k = jnp.arange(250, dtype=mu.dtype).reshape(-1, *[1] * mu.ndim)
    terms = special.entr(pmf(k, mu))
    few = jnp.sum(jnp.where(k < jnp.ceil(mu + 20), terms, 0)[:35], axis=0)
    more = jnp.sum(jnp.where(k < jnp.ceil(mu + 10 * mu**0.5 + 20), terms, 0), axis=0)
    many = 0.5 * lax.log(2 * np.pi * np.e * mu) - 1 / (12 * mu)
    out = jnp.where(mu < 10, few, jnp.where(mu < 100, more, many))
    return jnp.where(mu == 0, 0, out)
