"""Drawing from given values: shuffling, choosing, drawing by weight or by logits.

In JAX: `random/core.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis
from minijax.numpy.promotion import check_arraylike, promote_args_inexact
from minijax.numpy.shapes.creation import laid_out
from minijax.primitives.random.random_bits import random_bits
from minijax.random.arguments import Shape, StaticShape, canonical_shape, check_shape
from minijax.random.distributions import gumbel
from minijax.random.keys import check_key, split_typed
from minijax.random.samplers import randint, uniform
from minijax.typing import ArrayLike
from minijax.values.concrete import concrete_or_error

UINT32_MAX = 2**32 - 1


def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Array:
    """Returns `x` in random order along `axis`.

    Args:
        key: one key.
        x: an array, or an integer that stands for `arange(x)`.
        axis: the axis to shuffle.
        independent: shuffle every vector along `axis` in its own order, instead of
            moving the slices as a whole.
        out_sharding: how the result is to be laid out over devices.

    Raises:
        TypeError: `x` is a number but no integer.
        ValueError: `axis` is out of range.
    """
    key, _ = check_key("permutation", key)
    check_arraylike("permutation", x)
    axis = canonicalize_axis(axis, np.ndim(x) or 1)
    if np.ndim(x):
        return laid_out(_permutation, out_sharding, key, x, axis, independent)
    if not np.issubdtype(dtypes.dtype(x), np.integer):
        raise TypeError("x must be an integer or at least 1-dimensional")
    size = concrete_or_error(int, x, "argument x of random.permutation()")
    return laid_out(_shuffle, out_sharding, key, jnp.arange(size), axis)


def _permutation(key: Array, x: ArrayLike, axis: int, independent: bool) -> Array:
    if independent or np.ndim(x) == 1:
        return _shuffle(key, x, axis)
    order = _shuffle(key, jnp.arange(x.shape[axis]), 0)
    return jnp.take(x, order, axis, unique_indices=True)


@partial(jit, static_argnums=(2,))
def _shuffle(key: Array, x: Array, axis: int) -> Array:
    # Sorting by random numbers shuffles, but equal random numbers keep their order. So
    # it is done again until the chance that some pair was tied every time is small:
    # with n elements and k rounds, about n**2 / 2**(32 k), here below 1/n.
    rounds = int(np.ceil(3 * np.log(max(1, x.size)) / np.log(UINT32_MAX)))
    for _ in range(rounds):
        key, subkey = split_typed(key)
        order = random_bits(subkey, bit_width=32, shape=x.shape)
        _, x = lax.sort_key_val(order, x, axis)
    return x


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Draws elements of `a`, or slices of it along `axis`.

    Args:
        key: one key.
        a: an array, or an integer that stands for `arange(a)`.
        shape: how many, as a shape.
        replace: an element may be drawn again.
        p: the probability of each element; all equal when not given.
        axis: the axis of `a` to draw along.
        mode: as in `gumbel`, which draws by `p` without replacement.

    Returns:
        An array of `a.shape` with `axis` replaced by `shape`.

    Raises:
        TypeError: `shape` is not a sequence.
        ValueError: `a` is empty or too small, or `p` has another size than `axis`.
    """
    key, _ = check_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(
            f"shape argument of random.choice must be a sequence, got {shape}"
        )
    check_arraylike("choice", a)
    population = jnp.asarray(a)
    scalar = population.ndim == 0
    if scalar:
        count = concrete_or_error(int, a, "argument a of random.choice()")
    else:
        axis = canonicalize_axis(axis, population.ndim)
        count = population.shape[axis]
    draws = math.prod(shape)
    if draws == 0:
        return jnp.zeros(shape, dtype=population.dtype)
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > count:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size "
            f"{count}) when 'replace=False'"
        )
    if p is None and not replace:
        shuffled = permutation(key, count if scalar else population, axis)
        drawn = shuffled[(slice(None),) * axis + (slice(draws),)]
    else:
        if p is None:
            indices = randint(key, shape, 0, count)
        else:
            weights = _checked_weights(p, count)
            if replace:
                indices = _draw_by_weight(key, weights, shape)
            else:
                # The largest of log p + Gumbel noise is a draw by p; the largest k are
                # k draws without replacement.
                noise = gumbel(key, (count,), dtype=weights.dtype, mode=mode)
                indices = lax.top_k(noise + jnp.log(weights), k=draws)[1].astype(int)
        drawn = indices if scalar else jnp.take(population, indices, axis)
    if scalar:
        return drawn.reshape(shape)
    before, after = population.shape[:axis], population.shape[axis + 1 :]
    return drawn.reshape(before + tuple(shape) + after)


def _checked_weights(p: ArrayLike, count: int) -> Array:
    [weights] = promote_args_inexact("choice", p)
    if weights.shape != (count,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. p has "
            f"shape {weights.shape} and a.shape[axis] is {count}."
        )
    return weights


def _draw_by_weight(key: Array, weights: Array, shape: Shape) -> Array:
    cumulative = jnp.cumsum(weights)
    # 1 - u is in (0, 1], so that an element of weight 0 at the front is never drawn.
    r = cumulative[-1] * (1 - uniform(key, shape, dtype=cumulative.dtype))
    return jnp.searchsorted(cumulative, r, method="sort").astype(int)


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws indices along `axis`, with probabilities `softmax(logits)`.

    The index of the largest of logits plus Gumbel noise is such a draw ("The Concrete
    Distribution", Maddison et al., 2017), so no probability is ever computed.

    Args:
        key: one key.
        logits: unnormalised log probabilities.
        axis: the axis of `logits` along which to draw.
        shape: of the result; it ends in the shape of `logits` without `axis`, which is
            also the default.
        replace: draw every index afresh; otherwise, draws in the leading axes of
            `shape` differ from each other.
        mode: the precision of the noise, as in `gumbel`.
        out_sharding: how the result is to be laid out over devices.

    Returns:
        Integers of shape `shape`.

    Raises:
        ValueError: `shape` does not fit, or more draws without replacement than there
            are indices.
    """
    key, _ = check_key("categorical", key)
    check_arraylike("categorical", logits)
    logits = jnp.asarray(logits)
    batch_shape = tuple(np.delete(logits.shape, axis))
    shape = batch_shape if shape is None else canonical_shape(shape)
    check_shape("categorical", shape, batch_shape)
    lead = shape[: len(shape) - len(batch_shape)]
    draw = _categorical_without_replacement
    if replace:
        draw = _categorical_with_replacement
    return laid_out(draw, out_sharding, key, logits, lead, shape, axis, mode)


def _categorical_with_replacement(
    key: Array, logits: Array, lead: StaticShape, shape: StaticShape, axis, mode
) -> Array:
    # Counted from the end, since the draws' axes come in front.
    if axis >= 0:
        axis -= logits.ndim
    noise_shape = list(shape[len(lead) :])
    noise_shape.insert(axis % logits.ndim, logits.shape[axis])
    noise = gumbel(key, (*lead, *noise_shape), logits.dtype, mode=mode)
    noisy = noise + lax.expand_dims(logits, tuple(range(len(lead))))
    return jnp.argmax(noisy, axis=axis)


def _categorical_without_replacement(
    key: Array, logits: Array, lead: StaticShape, shape: StaticShape, axis, mode
) -> Array:
    noisy = logits + gumbel(key, logits.shape, logits.dtype, mode=mode)
    count = math.prod(lead)
    if count > noisy.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of "
            f"categories ({noisy.shape[axis]})."
        )
    _, indices = lax.top_k(jnp.moveaxis(noisy, axis, -1), count)
    last = indices.ndim - 1
    return lax.reshape(indices, shape, (last, *range(last)))
