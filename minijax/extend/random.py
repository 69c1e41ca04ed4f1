"""Making a generator of random numbers, and the generators that are there.

In JAX: `jax.extend.random`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from minijax import numpy as jnp
from minijax.core.language import get_aval
from minijax.lax import expand_dims, reshape
from minijax.primitives.random.random_bits import PRNGImpl
from minijax.primitives.random.random_bits import random_seed as random_seed
from minijax.primitives.random.random_bits import rbg_prng_impl as rbg_prng_impl
from minijax.primitives.random.random_bits import (
    threefry_prng_impl as threefry_prng_impl,
)
from minijax.primitives.random.random_bits import (
    unsafe_rbg_prng_impl as unsafe_rbg_prng_impl,
)
from minijax.primitives.random.threefry import threefry2x32_p as threefry2x32_p
from minijax.random.keys import PRNGSpec
from minijax.transforms.vectorization import vmap

Shape = tuple[int, ...]


def define_prng_impl(
    *,
    key_shape: Shape,
    seed: Callable[[Any], Any],
    split: Callable[[Any, Shape], Any],
    random_bits: Callable[[Any, int, Shape], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGSpec:
    """A generator for `random.key(seed, impl=...)`.

    Args:
      key_shape: the shape of one key, an array of uint32.
      seed: an integer scalar to a key.
      split: a key and a shape to keys, shape (*shape, *key_shape).
      random_bits: a key, a width of 8, 16, 32 or 64 and a shape to unsigned integers.
      fold_in: a key and an integer scalar to a key.
      name: its long name.
      tag: its short one, `key<tag>` in printed types.
    """
    dims = len(key_shape)
    impl = PRNGImpl(
        key_shape,
        _over_batch(seed, (0,)),
        lambda keys, shape: _over_batch(lambda k: split(k, shape), (dims,))(keys),
        lambda keys, width, shape: _over_batch(
            lambda k: random_bits(k, width, shape), (dims,)
        )(keys),
        _over_batch(fold_in, (dims, 0)),
        name,
        tag,
    )
    return PRNGSpec(impl)


def _over_batch(one: Callable, ranks: Shape) -> Callable:
    """`one`, which takes arguments of these ranks, for arrays of such arguments."""

    @functools.wraps(one)
    def many(*args: Any) -> Any:
        shapes = [get_aval(arg).shape for arg in args]
        batches = [shape[: len(shape) - rank] for shape, rank in zip(shapes, ranks)]
        batch = max(batches, key=len)
        if not batch:
            return one(*args)
        count = math.prod(batch)
        flat = []
        for arg, own in zip(args, batches):
            missing = len(batch) - len(own)
            arg = expand_dims(arg, tuple(range(missing)))
            wide = get_aval(arg).shape
            arg = jnp.broadcast_to(arg, (*batch, *wide[len(batch) :]))
            flat.append(reshape(arg, (count, *wide[len(batch) :])))
        out = vmap(one)(*flat)
        return reshape(out, (*batch, *get_aval(out).shape[1:]))

    return many


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """A key of a generator from a seed."""
    return random_seed(seed, impl=impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The hash that threefry is made of: random bits of the positions in `count`.

    Args:
      keypair: two uint32 scalars.
      count: an array of uint32.

    Returns:
      uint32 of the shape of `count`.

    Raises:
      TypeError: unless all are uint32.
    """
    key1, key2 = keypair
    dtypes = {str(get_aval(x).dtype) for x in (key1, key2, count)}
    if dtypes != {"uint32"}:
        raise TypeError(
            f"threefry_2x32 requires uint32 arguments, got {sorted(dtypes)}."
        )
    flat = jnp.ravel(count)
    size = flat.shape[0]
    if size % 2:
        flat = jnp.concatenate([flat, jnp.zeros(1, "uint32")])
    first, second = jnp.split(flat, 2)
    hashed = threefry2x32_p.bind(key1, key2, first, second)
    return jnp.reshape(jnp.concatenate(hashed)[:size], count.shape)
