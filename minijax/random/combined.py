"""Distributions that combine normals, signs and uniform numbers.

In JAX: `random/core.py`.
"""

from __future__ import annotations

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.random.arguments import inexact_dtype, sampler_dtype, shape_as_given
from minijax.random.frames import sampler
from minijax.random.keys import split_typed
from minijax.random.samplers import bernoulli, normal, uniform


@sampler(lambda name, dtype: sampler_dtype(int, dtype))
def rademacher(key, shape, dtype) -> Array:
    """Draws -1 or 1, each with probability 1/2.

    Args:
        key: one key.
        shape: of the result.
        dtype: of the result; the default integer.
        out_sharding: how the result is to be laid out over devices.
    """
    heads = bernoulli(key, 0.5, shape).astype(dtype)
    return (2 * heads - 1).astype(dtype)


@sampler()
def maxwell(key, shape, dtype) -> Array:
    """Draws the length of a vector of three standard normals (Maxwell-Boltzmann).

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    return jnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


@sampler(shape_of=shape_as_given, check_casts=False, takes_sharding=False)
def double_sided_maxwell(key, loc, scale, shape, dtype) -> Array:
    """Draws `loc` plus or minus `scale` times a Maxwell number, either sign alike.

    Args:
        key: one key.
        loc: the centre.
        scale: the width; broadcasts against `loc`.
        shape: in front of the shape of the parameters.
        dtype: a float dtype; the default float.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    parameters = lax.broadcast_shapes(np.shape(loc), np.shape(scale))
    # Without a shape the parameters' own is taken twice, as in JAX.
    shape = (shape or parameters) + parameters
    key_size, key_sign = split_typed(key)
    size = maxwell(key_size, shape, dtype)
    sign = rademacher(key_sign, shape, dtype)
    return sign * size * scale + loc


@sampler()
def wald(key, mean, shape, dtype) -> Array:
    """Draws from the Wald (inverse Gaussian) distribution of scale 1.

    The two roots of a quadratic in a squared normal, chosen between by a uniform number
    (Michael, Schucany and Haas, 1976).

    Args:
        key: one key.
        mean: positive.
        shape: of the result; by default that of `mean`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    key_normal, key_uniform = split_typed(key, 2)
    mean = jnp.broadcast_to(mean.astype(dtype), shape)
    v = normal(key_normal, shape, dtype)
    z = uniform(key_uniform, shape, dtype)
    y = lax.integer_pow(v, 2)
    y_squared = lax.integer_pow(y, 2)
    mean_squared = lax.integer_pow(mean, 2)
    root = lax.sqrt(4 * mean * y + mean_squared * y_squared)
    x = mean + mean_squared * y / 2 - mean / 2 * root
    return lax.select(lax.le(z, mean / (mean + x)), x, mean_squared / x)


@sampler(inexact_dtype, inline=True)
def lognormal(key, sigma=np.float32(1), shape=(), dtype=None) -> Array:
    """Draws `exp(sigma * n)` for standard normal `n`.

    Args:
        key: one key.
        sigma: the deviation of the logarithm.
        shape: of the result; by default that of `sigma`.
        dtype: a float or complex dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is neither float nor complex, or the shapes do not fit.
    """
    sigma = lax.convert_element_type(sigma, dtype)
    return lax.exp(normal(key, shape, dtype) * sigma)
