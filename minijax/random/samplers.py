"""Random bits, and the distributions that everything else is made of.

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
from minijax.numpy.promotion import check_arraylike
from minijax.numpy.shapes.creation import laid_out
from minijax.primitives.random.random_bits import UINT_DTYPES
from minijax.primitives.random.random_bits import random_bits as _random_bits
from minijax.random import arguments, frames, keys
from minijax.support import element_types
from minijax.typing import ArrayLike, DTypeLike


def _unsigned_dtype(name: str, dtype: DTypeLike | None) -> np.dtype:
    if dtype is None:
        dtype = element_types.default_uint_dtype()
    else:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype)
    if not dtypes.issubdtype(dtype, np.unsignedinteger):
        raise ValueError(
            f"dtype argument to `{name}` must be an unsigned int dtype, got {dtype}"
        )
    return dtype


@frames.sampler(_unsigned_dtype, compiled=False)
def bits(key, shape, dtype) -> Array:
    """Draws unsigned integers, every bit 0 or 1 with equal probability.

    Args:
        key: one key.
        shape: of the result.
        dtype: an unsigned integer dtype; the default one is `uint32` (`uint64` when
            64-bit types are enabled).
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not an unsigned integer dtype.
    """
    return _random_bits(key, bit_width=dtype.itemsize * 8, shape=shape)


def uniform(
    key: ArrayLike,
    shape: arguments.Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws floats uniformly from [`minval`, `maxval`).

    The random bits become the mantissa of a float in [1, 2), from which 1 is taken off:
    all results are multiples of one step (2**-23 for float32).

    Args:
        key: one key.
        shape: of the result.
        dtype: a float dtype; the default float.
        minval: the lower end, of a shape that broadcasts to `shape`.
        maxval: the upper end, likewise.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    key, _ = keys.check_key("uniform", key)
    dtype = arguments.float_dtype("uniform", dtype)
    shape = arguments.canonical_shape(shape)
    return laid_out(_uniform, out_sharding, key, minval, maxval, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _uniform(
    key, minval, maxval, shape: arguments.StaticShape, dtype: np.dtype
) -> Array:
    minval = lax.convert_element_type(minval, dtype)
    maxval = lax.convert_element_type(maxval, dtype)
    minval = lax.broadcast_to_rank(minval, len(shape))
    maxval = lax.broadcast_to_rank(maxval, len(shape))
    info = dtypes.finfo(dtype)
    # Eight bits are enough for the mantissas of bfloat16 and the float8 types.
    drawn_width = 8 if info.nmant < 8 else info.bits
    drawn = _random_bits(key, bit_width=drawn_width, shape=shape)
    unsigned = UINT_DTYPES[info.bits]
    if drawn_width != info.bits:
        drawn = lax.convert_element_type(drawn, unsigned)
    mantissa = lax.shift_right_logical(
        drawn, np.array(drawn_width - info.nmant, unsigned)
    )
    one = np.array(1.0, dtype)
    from_one_to_two = lax.bitwise_or(mantissa, one.view(unsigned))
    floats = lax.bitcast_convert_type(from_one_to_two, dtype) - one
    scaled = lax.reshape(floats * (maxval - minval) + minval, shape)
    # Rounding may take the product below the lower end.
    return lax.max(minval, scaled)


def randint(
    key: ArrayLike,
    shape: arguments.Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws integers uniformly from [`minval`, `maxval`).

    Where `maxval` is not larger than `minval`, the result is `minval`. The numbers are
    the remainder of twice as many random bits, so that small values are not noticeably
    more likely than large ones.

    Args:
        key: one key.
        shape: of the result.
        minval: the lower end (included), of a shape that broadcasts to `shape`.
        maxval: the upper end (not included), likewise.
        dtype: an integer dtype; the default integer.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        TypeError: `dtype` is not an integer dtype.
        ValueError: the ends do not broadcast to `shape`.
    """
    key, _ = keys.check_key("randint", key)
    dtype = arguments.sampler_dtype(int, dtype)
    shape = arguments.canonical_shape(shape)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    info = dtypes.iinfo(dtype)
    sampled = dtype
    if info.bits < 32:
        # Upper ends such as 256 for uint8 do not fit the narrow type.
        sampled = np.dtype("int32")
        low, high = int(info.min), int(info.max)
        minval = jnp.asarray(minval).astype("int32").clip(low, high)
        maxval = jnp.asarray(maxval).astype("int32").clip(low, high + 1)
    drawn = laid_out(_randint, out_sharding, key, minval, maxval, shape, sampled)
    return drawn.astype(dtype)


def _clip_to(values: Array, dtype: np.dtype) -> Array:
    """Converts integers to `dtype`, large ones to its ends, not wrapped."""
    wanted = dtypes.iinfo(dtype)
    given = dtypes.iinfo(values.dtype)
    low = arguments.scalar_like(values, max(wanted.min, given.min))
    high = arguments.scalar_like(values, min(wanted.max, given.max))
    return jnp.clip(values, low, high).astype(dtype)


@partial(jit, static_argnums=(3, 4))
def _randint(
    key, minval, maxval, shape: arguments.StaticShape, dtype: np.dtype
) -> Array:
    arguments.check_shape("randint", shape, np.shape(minval), np.shape(maxval))
    check_arraylike("randint", minval, maxval)
    minval = jnp.asarray(minval)
    maxval = jnp.asarray(maxval)
    if not dtypes.issubdtype(minval.dtype, np.integer):
        minval = minval.astype(int)
    if not dtypes.issubdtype(maxval.dtype, np.integer):
        maxval = maxval.astype(int)
    # An upper end beyond the dtype means: the largest value is included.
    largest = _clip_to(jnp.array(dtypes.iinfo(dtype).max, dtype), maxval.dtype)
    beyond = lax.gt(maxval, largest)
    minval = _clip_to(minval, dtype)
    maxval = _clip_to(maxval, dtype)
    minval = lax.broadcast_to_rank(minval, len(shape))
    maxval = lax.broadcast_to_rank(maxval, len(shape))
    width = dtypes.iinfo(dtype).bits
    key_high, key_low = keys.split_typed(key)
    high = _random_bits(key_high, bit_width=width, shape=shape)
    low = _random_bits(key_low, bit_width=width, shape=shape)
    span = lax.convert_element_type(maxval - minval, UINT_DTYPES[width])
    span = lax.select(maxval <= minval, lax.full_like(span, 1), span)
    span = lax.select(
        beyond & (maxval > minval), lax.add(span, arguments.scalar_like(span, 1)), span
    )
    # The two draws are the digits of one number in base 2**width; the base is built
    # modulo the span from its square root, which fits.
    base = lax.rem(arguments.scalar_like(span, 2 ** (width // 2)), span)
    base = lax.rem(lax.mul(base, base), span)
    offset = lax.add(lax.mul(lax.rem(high, span), base), lax.rem(low, span))
    offset = lax.rem(offset, span)
    return lax.add(minval, lax.convert_element_type(offset, dtype))


@frames.sampler(arguments.inexact_dtype)
def normal(key, shape, dtype) -> Array:
    """Draws from the normal distribution of mean 0 and variance 1.

    A uniform number u in (-1, 1) becomes `sqrt(2) * erf_inv(u)`. Complex numbers have
    real and imaginary parts of variance 1/2.

    Args:
        key: one key.
        shape: of the result.
        dtype: a float or complex dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is neither float nor complex.
    """
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return _normal_real(key, shape, dtype)
    key_real, key_imag = keys.split_typed(key)
    half = np.array(0, dtype).real.dtype
    real = _normal_real(key_real, shape, half).astype(dtype)
    imag = _normal_real(key_imag, shape, half).astype(dtype)
    return (real + 1j * imag) / np.array(np.sqrt(2), dtype)


@partial(jit, static_argnums=(1, 2))
def _normal_real(key: Array, shape: arguments.StaticShape, dtype: np.dtype) -> Array:
    # The open interval: erf_inv is infinite at both ends.
    low = np.nextafter(np.array(-1.0, dtype), np.array(0.0, dtype), dtype=dtype)
    high = np.array(1.0, dtype)
    u = uniform(key, shape, dtype, low, high)
    return lax.mul(np.array(np.sqrt(2), dtype), lax.erf_inv(u))


@frames.sampler(check_casts=False)
def truncated_normal(key, lower, upper, shape, dtype) -> Array:
    """Draws from the normal distribution, given that the result is in (lower, upper).

    Args:
        key: one key.
        lower: the lower end, of a shape that broadcasts to `shape`.
        upper: the upper end, likewise.
        shape: of the result; by default what the ends broadcast to.
        dtype: a float dtype; the default float.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
    """
    sqrt2 = np.array(np.sqrt(2), dtype)
    lower = lax.convert_element_type(lower, dtype)
    upper = lax.convert_element_type(upper, dtype)
    low = lax.erf(lower / sqrt2)
    high = lax.erf(upper / sqrt2)
    u = uniform(key, shape, dtype, minval=low, maxval=high)
    drawn = sqrt2 * lax.erf_inv(u)
    # erf and its inverse round; the ends themselves must not come out.
    inside_low = lax.nextafter(lax.stop_gradient(lower), np.array(np.inf, dtype))
    inside_high = lax.nextafter(lax.stop_gradient(upper), np.array(-np.inf, dtype))
    return jnp.clip(drawn, inside_low, inside_high)


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: arguments.Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws booleans that are True with probability `p`.

    Args:
        key: one key.
        p: probabilities, of a float dtype and a shape that broadcasts to `shape`.
        shape: of the result; by default that of `p`.
        mode: `"low"` compares one uniform number with `p`, and is off by up to its step
            (2**-23 for float32); `"high"` adds the bits of a second one.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        ValueError: `mode` is neither of the two, or the shapes do not fit.
        TypeError: `p` is not of a float dtype.
    """
    shape = arguments.optional_shape("bernoulli", shape)
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    key, _ = keys.check_key("bernoulli", key)
    dtype = dtypes.dtype(p)
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {dtype}."
        )
    p = lax.convert_element_type(p, dtype)
    return laid_out(_bernoulli, out_sharding, key, p, shape, mode)


@partial(jit, static_argnames=("shape", "mode"))
def _bernoulli(
    key: Array, p: Array, shape: arguments.StaticShape | None, mode: str
) -> Array:
    shape = arguments.broadcast_shape("bernoulli", shape, p)
    dtype = dtypes.dtype(p)
    if mode == "low":
        return uniform(key, shape, dtype) < p
    coarse, fine = uniform(key, (2, *shape), dtype)
    fine *= 2 ** -dtypes.finfo(dtype).nmant
    return fine < p - coarse
