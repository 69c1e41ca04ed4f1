"""Distributions of counts: Poisson, binomial, multinomial.

Each is drawn in two ways, of which a parameter takes the one that is quick for it: few
events are counted one by one, many are drawn from a continuous bell that is then
rejected into shape.

In JAX: `random/core.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.promotion import (
    check_arraylike,
    promote_args_inexact,
    promote_dtypes_inexact,
)
from minijax.primitives.random.random_bits import threefry_prng_impl
from minijax.random.arguments import (
    Shape,
    StaticShape,
    broadcast_shape,
    optional_shape,
    sampler_dtype,
    scalar_like,
)
from minijax.random.frames import sampler
from minijax.random.keys import check_key, split, split_typed
from minijax.random.samplers import uniform
from minijax.typing import ArrayLike, DTypeLike


def _is_nan(x: Array) -> Array:
    return lax.ne(x, x)


def _until_accepted(
    propose: Callable[[Array], tuple[Array, Array, Array]],
    start: Array,
    accepted: Array,
    key: Array,
    max_iters: Any,
) -> Array:
    """Propose again and again, until a proposal was accepted for every element.

    `propose` gives the next key, proposals, and which of them are accepted. An element
    takes each proposal that is accepted for it, so the last one stays.
    """

    def body(carry: Any) -> Any:
        i, chosen, accepted, key = carry
        key, proposed, accept = propose(key)
        chosen = lax.select(accept, proposed, chosen)
        accepted |= accept
        return i + 1, chosen, accepted, key

    def unfinished(carry: Any) -> Any:
        return (~carry[2]).any() & (carry[0] < max_iters)

    return lax.while_loop(unfinished, body, (0, start, accepted, key))[1]


# ----------------------------------------------------------------------------------
# Poisson
# ----------------------------------------------------------------------------------


@sampler(
    lambda name, dtype: sampler_dtype(int, dtype),
    shape_of=optional_shape,
    check_casts=False,
    compiled=False,
)
def poisson(key, lam, shape, dtype) -> Array:
    """Draws counts from the Poisson distribution.

    Args:
        key: one key of threefry.
        lam: the mean, at least 0.
        shape: of the result; by default that of `lam`.
        dtype: an integer dtype; the default integer.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        NotImplementedError: the key is not threefry's.
    """
    key_type: Any = key.dtype
    if key_type.impl is not threefry_prng_impl:
        raise NotImplementedError(
            f"`poisson` is only implemented for the threefry2x32 RNG, not "
            f"{key_type.impl}. Make it with impl='threefry2x32'."
        )
    shape = np.shape(lam) if shape is None else shape
    lam = lax.convert_element_type(jnp.broadcast_to(lam, shape), np.float32)
    return _poisson(key, lam, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _poisson(key: Array, lam: Array, shape: StaticShape, dtype: np.dtype) -> Array:
    few = _is_nan(lam) | (lam < 10)
    lam_few = lax.select(few, lam, lax.full_like(lam, 0.0))
    lam_many = lax.select(few, lax.full_like(lam, 1e5), lam)
    # Never reached: a bound for the compiler.
    max_iters = dtype.type(dtypes.iinfo(dtype).max)
    result = lax.select(
        few,
        _poisson_knuth(key, lam_few, shape, dtype, max_iters),
        _poisson_rejection(key, lam_many, shape, dtype, max_iters),
    )
    return lax.select(lam == 0, jnp.zeros_like(result), result)


@partial(jit, static_argnums=(2, 3, 4))
def _poisson_knuth(key, lam, shape: StaticShape, dtype, max_iters):
    """Knuth: count uniform numbers until their product is below e^-lam."""

    def body(carry: Any) -> Any:
        i, k, key, log_product = carry
        key, subkey = split_typed(key)
        k = lax.select(log_product > -lam, k + 1, k)
        u = uniform(subkey, shape, np.float32)
        return i + 1, k, key, log_product + jnp.log(u)

    def unfinished(carry: Any) -> Any:
        return (carry[3] > -lam).any() & (carry[0] < max_iters)

    start = lax.full_like(lam, 0, dtype, shape)
    log_start = lax.full_like(lam, 0, np.float32, shape)
    k = lax.while_loop(unfinished, body, (0, start, key, log_start))[1]
    return (k - 1).astype(dtype)


@partial(jit, static_argnums=(2, 3, 4))
def _poisson_rejection(key, lam, shape: StaticShape, dtype, max_iters):
    """Hörmann, "The transformed rejection method for generating Poisson random
    variables" (1993), algorithm PTRS, with its constants."""
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(key: Array) -> tuple[Array, Array, Array]:
        key, key_u, key_v = split_typed(key, 3)
        u = uniform(key_u, shape, lam.dtype) - 0.5
        v = uniform(key_v, shape, lam.dtype)
        u_shifted = 0.5 - abs(u)
        k = lax.floor((2 * a / u_shifted + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        quick = (u_shifted >= 0.07) & (v <= v_r)
        reject = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        exact = s <= t
        return key, k, quick | (~reject & exact)

    start = lax.full_like(lam, -1, lam.dtype, shape)
    accepted = lax.full_like(lam, False, np.dtype("bool"), shape)
    return _until_accepted(propose, start, accepted, key, max_iters).astype(dtype)


# ----------------------------------------------------------------------------------
# Binomial
# ----------------------------------------------------------------------------------


@sampler(
    shape_of=optional_shape, check_casts=False, compiled=False, takes_sharding=False
)
def binomial(key, n, p, shape, dtype) -> Array:
    """Draws how many of `n` trials succeed.

    Args:
        key: one key.
        n: the number of trials.
        p: the probability of success of each.
        shape: of the result; by default what `n` and `p` broadcast to.
        dtype: a float dtype; the default float.

    Returns:
        whole numbers as floats; NaN for an impossible `n` or `p`.

    Raises:
        ValueError: `dtype` is not a float dtype, or the shapes do not fit.
        TypeError: `n` or `p` is not an array.
    """
    check_arraylike("binomial", n, p)
    return _binomial(key, n, p, shape, dtype)


@partial(jit, static_argnums=(3, 4), inline=True)
def _binomial(
    key: Array, count: Array, prob: Array, shape: StaticShape | None, dtype: np.dtype
) -> Array:
    shape = broadcast_shape("binomial", shape, count, prob)
    (prob,) = promote_dtypes_inexact(prob)
    count = lax.convert_element_type(count, prob.dtype)
    count = jnp.broadcast_to(count, shape)
    prob = jnp.broadcast_to(prob, shape)
    # Count the rarer outcome.
    below_half = prob < 0.5
    q = lax.select(below_half, prob, 1.0 - prob)
    bad_count = _is_nan(count) | (count < 0.0)
    endless = jnp.isinf(count)
    q_is_nan = _is_nan(q)
    q_negative = q < 0.0
    q = lax.select(q_is_nan | q_negative, lax.full_like(q, 0.01), q)
    few = bad_count | (count * q <= 10.0)
    count = jnp.floor(count)
    count_few = lax.select(few, count, lax.full_like(count, 0.0))
    count_many = lax.select(few, lax.full_like(count, 1e4), count)
    q_many = lax.select(few, lax.full_like(q, 0.5), q)
    max_iters = dtype.type(dtypes.finfo(dtype).max)
    samples = lax.select(
        few,
        _binomial_inversion(key, count_few, q, shape, dtype, max_iters),
        _btrs(key, count_many, q_many, shape, dtype, max_iters),
    )
    invalid = q_negative | q_is_nan | bad_count
    samples = lax.select(invalid, jnp.full_like(samples, np.nan, dtype), samples)
    samples = lax.select(
        endless & (~invalid), jnp.full_like(samples, np.inf, dtype), samples
    )
    return lax.select(
        below_half | bad_count | q_is_nan | endless,
        samples,
        count.astype(dtype) - samples,
    )


@partial(jit, static_argnums=(3, 4, 5), inline=True)
def _binomial_inversion(key, count, prob, shape: StaticShape, dtype, max_iters):
    """Count how many waiting times, which are geometric, fit into `count` trials."""
    log_failure = jnp.log1p(-prob)

    def body(carry: Any) -> Any:
        i, number, total, key = carry
        subkey, key = split(key)
        number = lax.select(total <= count, number + 1, number)
        u = uniform(subkey, shape, prob.dtype)
        waiting = jnp.ceil(jnp.log(u) / log_failure)
        total = total + waiting
        return i + 1, number, total, key

    def unfinished(carry: Any) -> Any:
        return (carry[2] <= count).any() & (carry[0] < max_iters)

    number = lax.full_like(prob, 0, prob.dtype, shape)
    total = lax.full_like(prob, 0, prob.dtype, shape)
    k = lax.while_loop(unfinished, body, (0, number, total, key))[1]
    return (k - 1).astype(dtype)


@partial(jit, static_argnums=(3, 4, 5), inline=True)
def _btrs(key, count, prob, shape: StaticShape, dtype, max_iters):
    """Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS,
    with its constants."""
    stddev = jnp.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c = count * prob + 0.5
    v_r = 0.92 - 4.2 / b
    odds = prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * stddev
    m = jnp.floor((count + 1) * prob)

    def propose(key: Array) -> tuple[Array, Array, Array]:
        key, key_u, key_v = split(key, 3)
        u = uniform(key_u, shape, prob.dtype)
        v = uniform(key_v, shape, prob.dtype)
        u = u - 0.5
        u_shifted = 0.5 - jnp.abs(u)
        quick = (u_shifted >= 0.07) & (v <= v_r)
        k = jnp.floor((2 * a / u_shifted + b) * u + c)
        reject = (k < 0) | (k > count)
        v = jnp.log(v * alpha / (a / (u_shifted * u_shifted) + b))
        bound = (
            (m + 0.5) * jnp.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * jnp.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * jnp.log(odds * (count - k + 1) / (k + 1))
            + _stirling_approx_tail(m)
            + _stirling_approx_tail(count - m)
            - _stirling_approx_tail(k)
            - _stirling_approx_tail(count - k)
        )
        exact = v <= bound
        return key, k, quick | (~reject & exact)

    start = lax.full_like(prob, -1, prob.dtype, shape)
    accepted = jnp.full(shape, False, bool)
    return _until_accepted(propose, start, accepted, key, max_iters).astype(dtype)


# log k! minus Stirling's formula for it, at k = 0, ..., 9.
_STIRLING_TAILS = [
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983),
    *(0.02079067210376509, 0.0166446911898211, 0.0138761288230707),
    *(0.0118967099458917, 0.0104112652619720, 0.00925546218271273),
    0.00833056343336287,
]


def _stirling_approx_tail(k: Array) -> Array:
    """What Stirling's formula leaves out of log k!; by its series above the table."""
    table = jnp.array(_STIRLING_TAILS, dtype=k.dtype)
    in_table = k <= 9
    k = lax.clamp(scalar_like(k, 0.0), k, scalar_like(k, 9.0))
    square = (k + 1) * (k + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
    k = jnp.floor(k)
    return lax.select(in_table, table[jnp.asarray(k, dtype="int32")], series)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Draws how often each of k outcomes occurs in `n` trials, by successive binomials.

    Args:
        key: one key.
        n: the number of trials, shape (...).
        p: the probabilities of the outcomes, shape (..., k).
        shape: of the result; by default that of `p`.
        dtype: of the result; by default a float dtype.
        unroll: of the scan over the outcomes.

    Raises:
        TypeError: `n` or `p` is not an array.
    """
    key, _ = check_key("multinomial", key)
    n, p = promote_args_inexact("multinomial", n, p)
    whole = jnp.shape(p) if shape is None else tuple(shape)
    n = jnp.broadcast_to(n, whole[:-1])
    p = jnp.broadcast_to(p, whole)

    def one_outcome(remainder: Array, ratio_and_key: Any) -> Any:
        ratio, key = ratio_and_key
        count = binomial(key, remainder, ratio.clip(0, 1), dtype=remainder.dtype)
        return remainder - count, count

    p = jnp.moveaxis(p, -1, 0)
    remaining = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(remaining == 0, 1, remaining)
    keys = split(key, ratios.shape[0])
    _, counts = lax.scan(one_outcome, n, (ratios, keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)
