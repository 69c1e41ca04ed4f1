"""Typed keys: the generators, and the primitives that make keys and draw bits.

A typed key (`key<fry>[]`) is stored as the uint32 words of its generator. The
primitives here say what happens (`random_split`, `random_bits`). The generator's own
operations are written only when a program is lowered. So a jaxpr shows `random_bits`,
and not the two hundred operations of a cipher.

In JAX: `random/prng.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, rules
from minijax.core.array import Array, put, wrap_as
from minijax.core.language import (
    Primitive,
    ShapedArray,
    get_aval,
    register,
    type_of_application,
)
from minijax.core.shaping import compare
from minijax.core.state import state
from minijax.primitives.random import threefry
from minijax.primitives.random.threefry import UINT32, UINT_DTYPES, Shape
from minijax.primitives.rare import rbg
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import broadcasting
from minijax.support import element_types


class PRNGImpl(NamedTuple):
    """A generator: how its keys are made and what is done with them.

    Every function works on the words of a whole array of keys, shape (*batch,
    *key_shape): `seed(seeds)`, `split(keys, shape)`, `fold_in(keys, messages)` give
    words of keys, and `random_bits(keys, bit_width, shape)` unsigned integers of shape
    (*batch, *shape).

    In JAX: `random/prng.py`, `PRNGImpl`, whose functions take one key each.
    """

    key_shape: Shape
    seed: Callable[[Any], Any]
    split: Callable[[Any, Shape], Any]
    random_bits: Callable[[Any, int, Shape], Any]
    fold_in: Callable[[Any, Any], Any]
    name: str = "<unnamed>"
    tag: str = "?"

    def __hash__(self) -> int:
        return hash(self.tag)

    def __str__(self) -> str:
        return self.tag


# The generators by name, as `random.key(0, impl=name)` and the flag
# `jax_default_prng_impl` know them.
prngs: dict[str, PRNGImpl] = {}


def register_prng(impl: PRNGImpl) -> None:
    """Makes a generator known by its name.

    Raises:
        ValueError: the name is taken.
    """
    if impl.name in prngs:
        raise ValueError(f"PRNG with name {impl.name} already registered: {impl}")
    prngs[impl.name] = impl


threefry_prng_impl = PRNGImpl(
    key_shape=(2,),
    seed=threefry.threefry_seed,
    split=threefry.threefry_split,
    random_bits=threefry.threefry_random_bits,
    fold_in=threefry.threefry_fold_in,
    name="threefry2x32",
    tag="fry",
)
rbg_prng_impl = PRNGImpl(
    key_shape=(4,),
    seed=rbg.rbg_seed,
    split=rbg.rbg_split,
    random_bits=rbg.rbg_random_bits,
    fold_in=rbg.rbg_fold_in,
    name="rbg",
    tag="rbg",
)
unsafe_rbg_prng_impl = rbg_prng_impl._replace(
    split=rbg.unsafe_rbg_split,
    fold_in=rbg.unsafe_rbg_fold_in,
    name="unsafe_rbg",
    tag="urbg",
)
for _impl in (threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl):
    register_prng(_impl)


# -- types --------------------------------------------------------------------------


def keys_aval(shape: Shape, impl: PRNGImpl) -> ShapedArray:
    """The type of an array of keys of a generator."""
    return ShapedArray(shape, element_types.PRNGKeyDType(impl))


def check_keys(name: str, keys: ShapedArray) -> None:
    """Checks that an operand has a key dtype.

    Raises:
        TypeError: it has another.
    """
    if not dtypes.issubdtype(keys.dtype, element_types.prng_key):
        raise TypeError(
            f"{name} takes an array of keys, got dtype {keys.dtype}. Raw bits become "
            "keys with random.wrap_key_data(bits)."
        )


def _key_primitive(
    name: str,
    type_rule: Callable[..., ShapedArray],
    words: Callable | None = None,
    batch: Callable[[Primitive], Callable] | None = None,
) -> Primitive:
    """A primitive on keys: no derivative, and no counterpart in NumPy.

    `words` computes the result from the keys' words when the program is lowered;
    `batch` makes the batch rule, where that is not elementwise.
    """
    primitive = register(Primitive(name))
    primitive.def_abstract_eval(type_rule)
    primitive.without("meaning", "NumPy has no keys; tests compare the bits with JAX's")
    rules.def_zero_jvp(primitive)
    if words is not None:
        primitive.def_lowering(
            lambda ctx, *args, **params: ctx.lower_fun(words, *args, **params)
        )
    primitive.def_batch((batch or rules.elementwise_batch)(primitive))
    return primitive


# -- keys and their words -----------------------------------------------------------


def check_key_words(impl: PRNGImpl, words: Any) -> None:
    """Checks that `words` can be the words of keys of `impl`.

    Raises:
        TypeError: no array, or another shape or dtype.
    """
    prefix = "invalid PRNG key data: expected key_data"
    if not all(hasattr(words, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(
            f"{prefix} to have ndim, shape, and dtype attributes. Got {words}"
        )
    if words.ndim < 1:
        raise TypeError(f"{prefix}.ndim >= 1; got ndim={words.ndim}")
    if tuple(words.shape[-len(impl.key_shape) :]) != impl.key_shape:
        raise TypeError(
            f"{prefix}.shape to end with {impl.key_shape}; got shape={words.shape} "
            f"for the generator {impl.name}"
        )
    if words.dtype != UINT32 and words.dtype != dtypes.float0:
        raise TypeError(f"{prefix}.dtype = uint32; got dtype={words.dtype}")


def random_wrap(words: Any, *, impl: PRNGImpl) -> Any:
    """Gives uint32 words the type of keys.

    Args:
        words: shape (*batch, *impl.key_shape).
        impl: the generator.

    Returns:
        Keys of shape `batch`.

    Raises:
        TypeError: the words are not of that shape, or not uint32.
    """
    if not hasattr(words, "aval"):
        # For Array and tracers the type rule checks.
        check_key_words(impl, words)
    return random_wrap_p.bind(words, impl=impl)


def _wrap_type(words: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    check_key_words(impl, words)
    return keys_aval(words.shape[: -len(impl.key_shape)], impl)


def _wrap_batch(axis_data, args, dims, *, impl: PRNGImpl) -> tuple[Any, int]:
    # The words of one key stay together, at the end.
    words = rules.batch_at_front(args[0], dims[0], axis_data)
    return random_wrap_p.bind(words, impl=impl), 0


def _wrap_now(words, *, impl: PRNGImpl) -> Array:
    aval = type_of_application(random_wrap_p, (get_aval(words),), {"impl": impl})[0]
    # The checker of keys tells keys apart by their buffers: there it must be a new one.
    if type(words) is Array and not state.debug_key_reuse:
        return wrap_as(words._buffer, aval, words._placed)
    return put(np.asarray(words), aval)


random_wrap_p = _key_primitive("random_wrap", _wrap_type, batch=lambda _: _wrap_batch)
# Eagerly these two only change what a buffer is called; nothing is compiled or copied.
random_wrap_p.def_impl(_wrap_now)
random_wrap_p.def_lowering(lambda ctx, words, *, impl: words)


def random_unwrap(keys: Any) -> Any:
    """The uint32 words of keys.

    Raises:
        TypeError: `keys` have no key dtype.
    """
    return random_unwrap_p.bind(keys)


def _unwrap_type(keys: ShapedArray) -> ShapedArray:
    check_keys("random_unwrap", keys)
    key_dtype = keys.dtype
    shape = (*keys.shape, *key_dtype.physical_shape)
    return ShapedArray(shape, key_dtype.physical_dtype)


def _unwrap_now(keys: Array) -> Array:
    aval = type_of_application(random_unwrap_p, (get_aval(keys),), {})[0]
    return wrap_as(keys._buffer, aval, keys._placed)


random_unwrap_p = _key_primitive("random_unwrap", _unwrap_type)
random_unwrap_p.def_impl(_unwrap_now)
random_unwrap_p.def_lowering(lambda ctx, keys: keys)


def random_clone(keys: Any) -> Any:
    """The same keys again, marked as meant to be used again."""
    return random_clone_p.bind(keys)


random_clone_p = _key_primitive("random_clone", lambda keys: keys)
random_clone_p.def_lowering(lambda ctx, keys: keys)


# -- making keys --------------------------------------------------------------------


def random_seed(seeds: Any, *, impl: PRNGImpl) -> Any:
    """Keys of `impl` from an array of integers, one from each.

    Raises:
        TypeError: the seeds are no integers.
    """
    return random_seed_p.bind(seeds, impl=impl)


def _seed_type(seeds: ShapedArray, *, impl: PRNGImpl) -> ShapedArray:
    if not dtypes.issubdtype(seeds.dtype, np.integer):
        raise TypeError(
            f"PRNG key seed must be an integer; got a seed of dtype {seeds.dtype}. "
            "Write a whole number, such as random.key(0)."
        )
    return keys_aval(seeds.shape, impl)


def _seed_words(seeds: Any, *, impl: PRNGImpl) -> Any:
    return random_wrap_p.bind(impl.seed(seeds), impl=impl)


random_seed_p = _key_primitive("random_seed", _seed_type, _seed_words)


def random_split(keys: Any, shape: Shape) -> Any:
    """New keys of shape (*keys.shape, *shape) from each of `keys`.

    Raises:
        TypeError: `keys` have no key dtype.
    """
    return random_split_p.bind(keys, shape=shape)


def _split_type(keys: ShapedArray, *, shape: Shape) -> ShapedArray:
    check_keys("random_split", keys)
    return keys.update(shape=(*keys.shape, *shape), sharding=None)


def _split_words(keys: Any, *, shape: Shape) -> Any:
    impl = keys.dtype.impl
    words = impl.split(random_unwrap_p.bind(keys), shape)
    return random_wrap_p.bind(words, impl=impl)


random_split_p = _key_primitive("random_split", _split_type, _split_words)


def random_fold_in(keys: Any, messages: Any) -> Any:
    """New keys that depend on `keys` and on uint32 `messages`, elementwise.

    Raises:
        TypeError: `keys` have no key dtype, or the shapes do not broadcast.
    """
    return random_fold_in_p.bind(keys, messages)


def _fold_in_type(keys: ShapedArray, messages: ShapedArray) -> ShapedArray:
    check_keys("random_fold_in", keys)
    shape = rules.broadcast_shapes_of_operands(
        "random_fold_in", [keys.shape, messages.shape]
    )
    return ShapedArray(shape, keys.dtype)


def _fold_in_words(keys: Any, messages: Any) -> Any:
    impl = keys.dtype.impl
    words = impl.fold_in(random_unwrap_p.bind(keys), messages)
    return random_wrap_p.bind(words, impl=impl)


random_fold_in_p = _key_primitive(
    "random_fold_in", _fold_in_type, _fold_in_words, rules.broadcasting_batch
)


# -- filling and comparing arrays of keys ---------------------------------------------


def _full_of_keys(key_dtype: Any, shape: Shape, fill_value: Any) -> Any:
    """Keys that all equal one key, or have one number as all of their words."""
    if dtypes.is_extended(get_aval(fill_value).dtype):
        words = broadcasting.broadcast(random_unwrap(fill_value), shape)
    else:
        whole = (*shape, *key_dtype.physical_shape)
        words = broadcasting.full(whole, fill_value, key_dtype.physical_dtype)
    return random_wrap(words, impl=key_dtype.impl)


def _compare_keys(key_dtype: Any, ctx: Any, x: Any, y: Any, direction: str) -> Any:
    """Keys are equal if all their words are, and differ if any word does."""
    (out,) = ctx.avals_out
    combine = reductions.reduce_and if direction == "EQ" else reductions.reduce_or
    words = compare(x, y, direction, key_dtype.physical_dtype)
    axes = tuple(range(out.ndim, out.ndim + len(key_dtype.physical_shape)))
    shape = (*out.shape, *key_dtype.physical_shape)
    inner = ctx.replace(avals_in=[ShapedArray(shape, np.dtype(bool))])
    return inner.lower_fun(lambda flags: combine(flags, axes), words)


# What dtypes of keys know of the operations above; `assembly.py` attaches it.
DTYPE_METHODS = {"full": _full_of_keys, "compare": _compare_keys}


# -- drawing ------------------------------------------------------------------------


def random_bits(keys: Any, bit_width: int, shape: Shape) -> Any:
    """Random unsigned integers of shape (*keys.shape, *shape).

    Args:
        keys: an array of keys; each draws an array of `shape`.
        bit_width: 8, 16, 32 or 64.
        shape: of what each key draws.

    Raises:
        TypeError: `keys` have no key dtype.
    """
    return random_bits_p.bind(keys, bit_width=bit_width, shape=shape)


def _bits_type(keys: ShapedArray, *, bit_width: int, shape: Shape) -> ShapedArray:
    check_keys("random_bits", keys)
    return ShapedArray((*keys.shape, *shape), UINT_DTYPES[bit_width])


def _drawn_bits(keys: Any, *, bit_width: int, shape: Shape) -> Any:
    words = random_unwrap_p.bind(keys)
    return keys.dtype.impl.random_bits(words, bit_width, shape)


random_bits_p = _key_primitive("random_bits", _bits_type, _drawn_bits)
