"""Distributions made of gamma draws: gamma, beta, Dirichlet, chi-square, t, F, balls.

In JAX: `random/core.py`.
"""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.reduce.softmax_family import softmax
from minijax.random import arguments, combined, distributions, gamma_sampling, samplers
from minijax.random.frames import sampler
from minijax.random.keys import split, split_typed
from minijax.values.concrete import concrete_or_error


@sampler(shape_of=arguments.optional_shape, check_casts=False, compiled=False)
def gamma(key, a, shape, dtype) -> Array:
    """Draws from the gamma distribution, of density proportional to x^(a-1) e^-x.

    Differentiable in `a`.

    Args:
        key: one key.
        a: positive.
        shape: of the result; by default that of `a`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    return _gamma(key, a, shape=shape, dtype=dtype)


@sampler(shape_of=arguments.optional_shape, check_casts=False, compiled=False)
def loggamma(key, a, shape, dtype) -> Array:
    """The logarithm of what `gamma` draws with the same key; exact also for small `a`.

    Args:
        key: one key.
        a: positive.
        shape: of the result; by default that of `a`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    return _gamma(key, a, shape=shape, dtype=dtype, log_space=True)


@partial(jit, static_argnames=("shape", "dtype", "log_space"))
def _gamma(key: Array, a, shape: Any, dtype: np.dtype, log_space=False) -> Array:
    shape = arguments.broadcast_shape("gamma", shape, a)
    a = lax.convert_element_type(a, dtype)
    if np.shape(a) != shape:
        a = jnp.broadcast_to(a, shape)
    return gamma_sampling.random_gamma_p.bind(key, a, log_space=log_space)


@sampler()
def beta(key, a, b, shape, dtype) -> Array:
    """Draws from the beta distribution, of density proportional to x^(a-1) (1-x)^(b-1).

    Args:
        key: one key.
        a, b: positive.
        shape: of the result; by default what `a` and `b` broadcast to.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    a = lax.convert_element_type(a, dtype)
    b = lax.convert_element_type(b, dtype)
    key_a, key_b = split_typed(key)
    a = jnp.broadcast_to(a, shape)
    b = jnp.broadcast_to(b, shape)
    log_a = loggamma(key_a, a, shape, dtype)
    log_b = loggamma(key_b, b, shape, dtype)
    largest = lax.max(log_a, log_b)
    part_a = jnp.exp(log_a - largest)
    part_b = jnp.exp(log_b - largest)
    return part_a / (part_a + part_b)


@sampler(shape_of=arguments.optional_shape, check_casts=False)
def dirichlet(key, alpha, shape, dtype) -> Array:
    """Draws probabilities from the Dirichlet distribution.

    Args:
        key: one key.
        alpha: positive, shape (..., n).
        shape: of the result without its last axis of size n; by default that of
            `alpha`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Returns:
        shape (*shape, n), which sums to 1 along the last axis.

    Raises:
        ValueError: `dtype` is not a float dtype, `alpha` is a number, or the shapes do
            not fit.
    """
    if not np.ndim(alpha) >= 1:
        raise ValueError(
            f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {np.ndim(alpha)}"
        )
    if shape is None:
        shape = np.shape(alpha)[:-1]
    else:
        arguments.check_shape("dirichlet", shape, np.shape(alpha)[:-1])
    alpha = lax.convert_element_type(alpha, dtype)
    return softmax(loggamma(key, alpha, shape + np.shape(alpha)[-1:], dtype), -1)


@sampler()
def t(key, df, shape, dtype) -> Array:
    """Draws from Student's t distribution.

    Args:
        key: one key.
        df: degrees of freedom, positive.
        shape: of the result; by default that of `df`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    df = lax.convert_element_type(df, dtype)
    key_normal, key_gamma = split_typed(key)
    numerator = samplers.normal(key_normal, shape, dtype)
    half = lax.div(df, arguments.scalar_like(numerator, 2))
    drawn = gamma(key_gamma, half, shape, dtype)
    return numerator * jnp.sqrt(half / drawn)


@sampler()
def chisquare(key, df, shape, dtype) -> Array:
    """Draws from the chi-square distribution.

    Args:
        key: one key.
        df: degrees of freedom, positive.
        shape: of the result; by default that of `df`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    df = lax.convert_element_type(df, dtype)
    two = arguments.scalar_like(df, 2)
    half = lax.div(df, two)
    return lax.mul(jnp.exp(loggamma(key, a=half, shape=shape, dtype=dtype)), two)


@sampler()
def f(key, dfnum, dfden, shape, dtype) -> Array:
    """Draws from the F distribution, the quotient of two chi-squares by their degrees.

    Args:
        key: one key.
        dfnum, dfden: degrees of freedom of numerator and denominator, positive.
        shape: of the result; by default what the two broadcast to.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    dfden = lax.convert_element_type(dfden, dtype)
    dfnum = lax.convert_element_type(dfnum, dtype)
    key_den, key_num = split_typed(key)
    num = chisquare(key_num, dfnum, shape, dtype)
    den = chisquare(key_den, dfden, shape, dtype)
    num = lax.div(num, dfnum)
    den = lax.div(den, dfden)
    return lax.div(num, den)


@sampler(arguments.any_dtype, shape_of=arguments.shape_as_given, check_casts=False)
def generalized_normal(key, p, shape, dtype) -> Array:
    """Draws from the density proportional to exp(-|x|^p); p = 2 is nearly normal.

    Args:
        key: one key.
        p: the exponent, positive.
        shape: of the result.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.
    """
    keys = split(key)
    size = gamma(keys[0], 1 / p, shape, dtype)
    sign = combined.rademacher(keys[1], shape, dtype)
    return sign * size ** (1 / p)


@sampler(
    arguments.any_dtype,
    shape_of=arguments.shape_as_given,
    check_casts=False,
    compiled=False,
)
def ball(key, d, p=2, shape=(), dtype=None) -> Array:
    """Draws points of the ball of radius 1 in d dimensions, in the p-norm.

    Barthe, Guédon, Mendelson and Naor, 2005: generalized normals, divided by their norm
    with an exponential number put into it.

    Args:
        key: one key.
        d: the number of dimensions.
        p: of the norm, at least 1.
        shape: of the result without its last axis of size d.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.
    """
    d = concrete_or_error(index, d, "The error occurred in minijax.random.ball()")
    return _ball(key, p, d, shape, dtype)


@partial(jit, static_argnums=(2, 3, 4))
def _ball(
    key: Array, p: float, d: int, shape: arguments.StaticShape, dtype: np.dtype
) -> Array:
    key_normal, key_exponential = split(key)
    drawn = generalized_normal(key_normal, p, (*shape, d), dtype)
    extra = distributions.exponential(key_exponential, shape, dtype)
    norm = ((jnp.abs(drawn) ** p).sum(-1) + extra) ** (1 / p)
    return drawn / norm[..., None]
