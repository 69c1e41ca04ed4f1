"""Distributions that are a formula of one uniform number: the inverse of their
distribution function at that number.

Those that need rejection (gamma and its family, poisson, binomial) need loops, and
those over matrices need linear algebra; they are not here.

In JAX: `random/core.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.core.state import state
from minijax.numpy.promotion import check_arraylike, promote_dtypes_inexact
from minijax.numpy.shapes.creation import laid_out
from minijax.primitives.random.random_bits import random_bits
from minijax.random import arguments, keys
from minijax.random.frames import sampler
from minijax.random.samplers import _uniform, uniform
from minijax.typing import ArrayLike, DTypeLike


@sampler()
def exponential(key, shape, dtype) -> Array:
    """Draws from the exponential distribution of rate 1: `-log(1 - u)`.

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    u = uniform(key, shape, dtype)
    # u may be 0 but never 1.
    return lax.neg(lax.log1p(lax.neg(u)))


def gumbel(
    key: ArrayLike,
    shape: arguments.Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws from the standard Gumbel distribution: `-log(-log(u))`.

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        mode: `"low"` (the default) spends one uniform number, whose step bounds how
            large the result can be (about 16 for float32); `"high"` spends two, and
            `"highest"`, for float32, 64 bits: rarer values can come out.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or `mode` none of the three.
    """
    key, _ = keys.check_key("gumbel", key)
    dtype = arguments.float_dtype("gumbel", dtype)
    shape = arguments.canonical_shape(shape)
    if mode is None:
        mode = "high" if state.high_dynamic_range_gumbel else "low"
    if mode not in ("highest", "high", "low"):
        raise ValueError(
            f"Must provide valid mode for gumbel got: {mode}; write 'low', 'high' or "
            "'highest'."
        )
    return laid_out(_gumbel, out_sharding, key, shape, dtype, mode)


@partial(jit, static_argnums=(1, 2, 3))
def _gumbel(
    key: Array, shape: arguments.StaticShape, dtype: np.dtype, mode: str
) -> Array:
    if mode == "highest" and dtype == np.float32:
        return _gumbel_of_64_bits(key, shape)
    info = dtypes.finfo(dtype)
    if mode == "low":
        u = _uniform(key, minval=info.tiny, maxval=1.0, shape=shape, dtype=dtype)
        return -jnp.log(-jnp.log(u))
    high, low = _uniform(key, minval=0.0, maxval=1.0, shape=(2, *shape), dtype=dtype)
    # Below a half there is room for more digits, which the logarithm needs.
    x = jnp.where(high >= 0.5, high, high + 2 ** (-info.nmant) * low + info.tiny)
    return -jnp.log(-jnp.log1p(-x))


def _gumbel_of_64_bits(key: Array, shape: arguments.StaticShape) -> Array:
    """Draws Gumbel noise from a 64-bit fraction x, or from 1 - x if that is less."""
    dtype = np.dtype(np.float32)
    bits = random_bits(key, bit_width=32, shape=(2, *shape))
    # Two's complement of the 64-bit number: 1 - x in fixed point.
    negated = lax.bitwise_not(bits)
    low = negated[1]
    negated = negated + jnp.array(
        [low == np.array(2**32 - 1, np.uint32), jnp.ones_like(low)], dtype=np.uint32
    )
    is_small = bits[0] < np.array(2**31, np.uint32)
    x = _fraction_of_bits(jnp.where(is_small, bits, negated), dtype)
    return jnp.where(is_small, -jnp.log(-jnp.log1p(-x)), -jnp.log(-jnp.log(x)))


def _fraction_of_bits(bits: Array, dtype: np.dtype) -> Array:
    """Turns 64-bit fixed-point fractions (two uint32 words, high first) into float32.

    The float is assembled from its fields, with all digits that it can hold: converting
    an integer and scaling would round small ones away.
    """
    info = dtypes.finfo(dtype)
    zeros_high, zeros_low = lax.clz(bits)
    high, low = bits
    from_high = lax.shift_left(high, zeros_high)
    from_low = jnp.where(
        zeros_high == 32,
        lax.shift_left(low, zeros_low),
        lax.shift_right_logical(low, info.bits - zeros_high),
    )
    mantissa = lax.bitwise_or(from_high, from_low)
    mantissa = lax.shift_right_logical(
        mantissa, np.array(info.bits - info.nmant - 1, np.uint32)
    )
    mantissa = lax.bitwise_and(mantissa, np.array((1 << info.nmant) - 1, np.uint32))
    zeros = jnp.where(zeros_high == 32, 32 + zeros_low, zeros_high)
    exponent = lax.shift_left(-info.minexp - zeros, np.array(info.nmant, np.uint32))
    field = (1 << (info.bits - 2)) - (1 << (info.nmant - 1))
    exponent = lax.bitwise_and(exponent, np.array(field, np.uint32))
    return lax.bitwise_or(exponent, mantissa).view(dtype)


@sampler()
def laplace(key, shape, dtype) -> Array:
    """Draws from the Laplace distribution of scale 1: `sign(u) * log(1 - |u|)`.

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    low = -1.0 + dtypes.finfo(dtype).epsneg
    u = uniform(key, shape, dtype, minval=low, maxval=1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@sampler()
def logistic(key, shape, dtype) -> Array:
    """Draws from the logistic distribution of scale 1: `log(u) - log(1 - u)`.

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    tiny = dtypes.finfo(dtype).tiny
    u = uniform(key, shape, dtype, minval=tiny, maxval=1.0)
    return lax.sub(lax.log(u), lax.log1p(lax.neg(u)))


@sampler()
def cauchy(key, shape, dtype) -> Array:
    """Draws from the Cauchy distribution: `tan(pi * (u - 1/2))`.

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    smallest = dtypes.finfo(dtype).eps
    u = uniform(key, shape, dtype, minval=smallest, maxval=1.0)
    centred = lax.sub(u, arguments.scalar_like(u, 0.5))
    return lax.tan(lax.mul(arguments.scalar_like(u, np.pi), centred))


@sampler(shape_of=arguments.shape_as_given, check_casts=False, takes_sharding=False)
def weibull_min(key, scale, concentration, shape, dtype) -> Array:
    """Draws from the Weibull distribution: `scale * (-log(1 - u))**(1/concentration)`.

    Args:
        key: one key.
        scale: positive.
        concentration: positive; 1 gives the exponential, 2 the Rayleigh distribution.
        shape: of the uniform numbers, against which the parameters broadcast.
        dtype: a float dtype; the default float.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    u = uniform(key, shape, dtype, minval=0, maxval=1)
    return jnp.power(-jnp.log1p(-u), 1.0 / concentration) * scale


@sampler()
def pareto(key, b, shape, dtype) -> Array:
    """Draws from the Pareto distribution on [1, inf) with exponent `b`.

    Args:
        key: one key.
        b: positive; density `b / x**(b + 1)`.
        shape: of the result; by default that of `b`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    b = lax.convert_element_type(b, dtype)
    return lax.exp(exponential(key, shape, dtype) / b)


@sampler()
def rayleigh(key, scale, shape, dtype) -> Array:
    """Draws the length of a vector of two normals: `scale * sqrt(-2 log(u))`.

    Args:
        key: one key.
        scale: the deviation of each normal, an array.
        shape: of the result; by default that of `scale`.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    u = uniform(key, shape, dtype)
    scale = jnp.broadcast_to(scale.astype(dtype), shape)
    logarithm = lax.log(u)
    return lax.mul(
        scale, lax.sqrt(lax.mul(logarithm, arguments.scalar_like(scale, -2)))
    )


def _integer_dtype(name: str, dtype: DTypeLike | None) -> np.dtype:
    checked = arguments.sampler_dtype(int, dtype)
    if not dtypes.issubdtype(checked, np.integer):
        raise ValueError(
            f"dtype argument to `{name}` must be an int dtype, got {checked}"
        )
    return checked


@sampler(_integer_dtype, check_casts=False)
def geometric(key, p, shape, dtype) -> Array:
    """Draws how many trials of success probability `p` it takes to succeed once.

    Args:
        key: one key.
        p: probabilities in (0, 1).
        shape: of the result; by default that of `p`.
        dtype: an integer dtype; the default integer.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not an integer dtype, or the shapes do not fit.
    """
    check_arraylike("geometric", p)
    [p] = promote_dtypes_inexact(p)
    u = uniform(key, shape, p.dtype)
    # The distribution is that of (0, 1]; 0 has no logarithm.
    u = jnp.where(u == 0, 1, u)
    log_u = lax.log(u)
    log_failure = jnp.broadcast_to(lax.log1p(-p), shape)
    trials = lax.floor(lax.div(log_u, log_failure)) + 1
    return trials.astype(dtype)


@sampler(inline=True)
def triangular(key, left, mode, right, shape, dtype) -> Array:
    """Draws from the distribution whose density is a triangle with its top at `mode`.

    Args:
        key: one key.
        left: the lower end.
        mode: the most likely value, between the ends.
        right: the upper end.
        shape: of the result; by default what the parameters broadcast to.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    left = jnp.broadcast_to(lax.convert_element_type(left, dtype), shape)
    right = jnp.broadcast_to(lax.convert_element_type(right, dtype), shape)
    mode = jnp.broadcast_to(lax.convert_element_type(mode, dtype), shape)
    share = (mode - left) / (right - left)
    u = uniform(key, shape, dtype)
    rising = left + lax.sqrt(u * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - u) * (right - left) * (right - mode))
    return lax.select(u < share, rising, falling)
