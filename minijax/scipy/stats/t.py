"""Student's distribution of `df` degrees of freedom.

In JAX: `jax.scipy.stats.t`.
"""

import numpy as np

from minijax import lax
from minijax.core.array import Array
from minijax.numpy.promotion import promote_args_inexact
from minijax.typing import ArrayLike


def logpdf(
    x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """The logarithm of the density at `x`."""
    x, df, loc, scale = promote_args_inexact("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    norm = lax.lgamma(df / 2) + lax.log(scale * scale * np.pi * df) / 2
    norm = norm - lax.lgamma(df / 2 + 0.5)
    return -(norm + (df / 2 + 0.5) * lax.log1p(z * z / df))


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at `x`."""
    return lax.exp(logpdf(x, df, loc, scale))
