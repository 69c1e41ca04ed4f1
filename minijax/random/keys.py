"""Keys: making them, splitting them, looking inside.

A random function here has no hidden state: it is told which numbers to draw by a key,
and the same key gives the same numbers. A key is used once; before that it is split
into new keys, or has data folded in, for all the numbers that are to be independent.

Keys are arrays with the dtype `key<fry>` ("fry" is threefry, the generator). Older code
passes their bits, `uint32` arrays with a last axis of 2; every function takes both, and
gives back the kind that it was given.

In JAX: `random/core.py`.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.core.state import state
from minijax.primitives.random import random_bits as generators
from minijax.primitives.random.random_bits import PRNGImpl
from minijax.support import element_types
from minijax.typing import ArrayLike

LEGACY_KEY_MESSAGE = (
    "A uint32 array was passed as the key of a random function. Make keys with "
    "random.key(seed); if the raw bits are wanted, set the flag "
    'jax_legacy_prng_key to "allow".'
)


@dataclasses.dataclass(frozen=True, repr=False)
class PRNGSpec:
    """Names a generator that is not registered; what `key_impl` returns for its keys.

    In JAX: `random/core.py`, `PRNGSpec`.
    """

    _impl: PRNGImpl

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"


def default_prng_impl() -> PRNGImpl:
    """Returns the generator that the flag `jax_default_prng_impl` names."""
    return generators.prngs[state.default_prng_impl]


def resolve_prng_impl(impl: Any) -> PRNGImpl:
    """Returns the generator for a name, a key dtype, a `PRNGSpec`, or None (default).

    Raises:
        ValueError: no generator has this name.
        TypeError: `impl` is none of the kinds above.
    """
    if impl is None:
        return default_prng_impl()
    if isinstance(impl, PRNGImpl):
        return impl
    if isinstance(impl, PRNGSpec):
        return impl._impl
    if isinstance(impl, element_types.PRNGKeyDType):
        return impl.impl
    if isinstance(impl, str):
        if impl in generators.prngs:
            return generators.prngs[impl]
        names = ", ".join(f'"{name}"' for name in generators.prngs)
        raise ValueError(
            f'unrecognized PRNG implementation "{impl}". Did you mean one of: {names}?'
        )
    raise TypeError(
        f"unrecognized type {type(impl)} for specifying PRNG implementation: give a "
        "name, a key dtype or a PRNGSpec."
    )


def is_typed_key(value: Any) -> bool:
    """Says whether `value` is an array, or a tracer, of keys."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtypes.issubdtype(dtype, element_types.prng_key)


def check_key(name: str, key: Any, *, batched: bool = False) -> tuple[Array, bool]:
    """Returns `key` as a typed key, and whether it came as raw bits.

    Args:
        name: the function that was called, for the error messages.
        key: a typed key, or a uint32 array.
        batched: allow an array of keys.

    Raises:
        TypeError: `key` is not an array, or not of a shape and dtype that can be a key.
        ValueError: `key` holds several keys, or is raw while the flag
            `jax_legacy_prng_key` forbids it.
    """
    if is_typed_key(key):
        typed, raw = key, False
    elif hasattr(key, "dtype") or np.isscalar(key):
        typed, raw = generators.random_wrap(key, impl=default_prng_impl()), True
        _check_legacy()
    else:
        raise TypeError(
            f"unexpected PRNG key type {type(key)}: {name} needs a key from "
            "random.key(seed)."
        )
    if typed.ndim and not batched:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape "
            f"{np.shape(key)} != (). Use vmap for batching."
        )
    return typed, raw


def _check_legacy() -> None:
    if state.legacy_prng_key == "error":
        raise ValueError(LEGACY_KEY_MESSAGE)
    if state.legacy_prng_key == "warn":
        warnings.warn(LEGACY_KEY_MESSAGE, stacklevel=4)
    elif state.enable_custom_prng:
        warnings.warn(LEGACY_KEY_MESSAGE, category=FutureWarning, stacklevel=4)


def as_given(raw: bool, keys: Array) -> Array:
    """Returns typed `keys` as raw bits if the caller gave raw bits."""
    if raw and not state.enable_custom_prng:
        return generators.random_unwrap(keys)
    return keys


def _make_key(name: str, seed: int | ArrayLike, impl: Any) -> Array:
    generator = resolve_prng_impl(impl)
    if is_typed_key(seed):
        raise TypeError(
            f"{name} accepts a scalar seed, but was given a PRNG key. To get new keys "
            "from a key, use split or fold_in."
        )
    if np.ndim(seed):
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape "
            f"{np.shape(seed)} != (). Use vmap for batching."
        )
    # A Python int goes through int64, so that an overflow is noticed there and only
    # there: with 32-bit integers the low half is kept, as in JAX.
    if isinstance(seed, int):
        seed = np.int64(seed)
    seed = jnp.asarray(seed)
    if state.random_seed_offset:
        seed += state.random_seed_offset
    return generators.random_seed(seed, impl=generator)


def _one_of(name: str, impl: Any, dtype: Any) -> Any:
    if impl is not None and dtype is not None:
        raise ValueError(
            f"{name} was given both `impl` and `dtype`; give one of the two."
        )
    return impl if dtype is None else dtype


def key(seed: int | ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """Makes a key from a number.

    Args:
        seed: an integer; equal seeds make equal keys.
        impl: the generator: `"threefry2x32"` (the default), `"rbg"`, `"unsafe_rbg"`.
        dtype: the same as a key dtype; give one of the two at most.

    Returns:
        A scalar of dtype `key<fry>`.

    Raises:
        TypeError: `seed` is not an integer, has axes, or is a key already.
        ValueError: both `impl` and `dtype` are given, or there is no such generator.
    """
    return _make_key("key", seed, _one_of("key", impl, dtype))


def PRNGKey(seed: int | ArrayLike, *, impl: Any = None) -> Array:
    """Makes a raw key, a uint32 array, from a number; new code uses `key`.

    Args:
        seed: an integer.
        impl: the generator, as for `key`.

    Returns:
        An array of shape (2,) for threefry, and (4,) for the rbg generators.

    Raises:
        TypeError: `seed` is not an integer, has axes, or is a key already.
    """
    return as_given(True, _make_key("PRNGKey", seed, impl))


def key_dtype(impl_spec: Any = None) -> element_types.PRNGKeyDType:
    """Returns the dtype of the keys of a generator, the default one for None."""
    return element_types.PRNGKeyDType(resolve_prng_impl(impl_spec))


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Array:
    """Makes a new key from a key and an integer, such as a step or a layer's number.

    Args:
        key: one key.
        data: an integer, of which 32 bits are used.

    Raises:
        TypeError: `data` has axes.
        ValueError: `key` holds several keys.
    """
    typed, raw = check_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            "fold_in accepts a scalar, but was given an array of shape "
            f"{np.shape(data)} != (). Use vmap for batching."
        )
    message = jnp.asarray(data, dtype="uint32")
    return as_given(raw, generators.random_fold_in(typed, message))


def split_typed(key: Array, num: int | Sequence[int] = 2) -> Array:
    """Splits one typed key, without the checks that `split` has already made."""
    shape = tuple(num) if isinstance(num, Sequence) else (num,)
    return generators.random_split(key, shape=shape)


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """Makes `num` new keys from one, which must not be used again.

    Args:
        key: one key.
        num: how many, or the shape of the array of keys.

    Returns:
        An array of keys of shape `(num,)`, or of shape `num` if that is a tuple.

    Raises:
        ValueError: `key` holds several keys.
    """
    typed, raw = check_key("split", key)
    return as_given(raw, split_typed(typed, num))


def key_impl(keys: ArrayLike) -> str | PRNGSpec:
    """Returns the generator of `keys`, in a form that `key(seed, impl=...)` takes."""
    typed, _ = check_key("key_impl", keys, batched=True)
    impl = typed.dtype.impl
    return impl.name if impl.name in generators.prngs else PRNGSpec(impl)


def key_data(keys: ArrayLike) -> Array:
    """Returns the bits of `keys`: uint32, with one more axis of 2 for threefry."""
    typed, _ = check_key("key_data", keys, batched=True)
    return generators.random_unwrap(typed)


def wrap_key_data(
    key_bits_array: Array, *, impl: Any = None, dtype: Any = None
) -> Array:
    """Makes keys of bits, the inverse of `key_data`.

    Args:
        key_bits_array: uint32, its last axis as long as the generator's key.
        impl: the generator, as for `key`.
        dtype: the same as a key dtype.

    Raises:
        TypeError: the bits have another shape or dtype.
        ValueError: both `impl` and `dtype` are given.
    """
    impl = resolve_prng_impl(_one_of("wrap_key_data", impl, dtype))
    return generators.random_wrap(key_bits_array, impl=impl)


def clone(key: Array) -> Array:
    """Returns a copy of `key`, which the check for reused keys takes as a new key."""
    return generators.random_clone(key)
