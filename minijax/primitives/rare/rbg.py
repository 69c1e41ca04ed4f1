"""XLA's own generators of random bits, and the keys that stand on them.

`rng_bit_generator` is faster than threefry on some hardware, and gives other numbers on
each kind of it. The generator `rbg` draws bits with it and makes keys with threefry;
`unsafe_rbg` uses it for both.

Under `vmap` over keys, all bits come from the first key of the batch, as in JAX: the
operation has no batched form.

In JAX: `random/rbg.py`, and `rng_bit_generator_p`, `rng_uniform_p` in `lax/lax.py`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import hlo
from minijax.core.language import (
    Primitive,
    ShapedArray,
    canonicalize_shape,
    get_aval,
    register,
)
from minijax.core.rules import def_zero_jvp, final_sharding, moveaxis
from minijax.core.shaping import reshape
from minijax.primitives.elementwise.comparing import bitwise_xor
from minijax.primitives.families import several_results
from minijax.primitives.index.dynamic_slicing import dynamic_update_index_in_dim
from minijax.primitives.random.threefry import (
    UINT32,
    UINT_DTYPES,
    Shape,
    threefry_fold_in,
    threefry_seed,
    threefry_split,
)
from minijax.primitives.shape.joining import concatenate
from minijax.primitives.shape.slicing import index_in_dim, slice_in_dim
from minijax.support import element_types


class RandomAlgorithm(enum.IntEnum):
    """Which algorithm `rng_bit_generator` runs."""

    RNG_DEFAULT = 0  # the platform's own choice
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """Random bits by XLA's generator, and the key for the next call.

    Args:
        key: uint32 of shape (4,), or uint64 of shape (2,).
        shape: of the bits.
        dtype: of the bits: uint8, uint16, uint32 or uint64.
        algorithm: which one; by default the platform decides.
        out_sharding: how the bits are to be laid out over devices.

    Returns:
        A pair: a key like `key`, and the bits.

    Raises:
        TypeError: another dtype.
        ValueError: no such algorithm.
    """
    shape = canonicalize_shape(shape)
    dtype = element_types.check_and_canonicalize_user_dtype(dtype, "rng_bit_generator")
    if dtype not in UINT_DTYPES.values():
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    params = {"shape": shape, "dtype": dtype, "algorithm": RandomAlgorithm(algorithm)}
    cut = final_sharding(out_sharding, "rng_bit_generator")
    return tuple(rng_bit_generator_p.bind(key, **params, out_sharding=cut))


def _generator_type(key: ShapedArray, *, shape, dtype, out_sharding, **_) -> list:
    if (key.shape, key.dtype) not in (((4,), UINT32), ((2,), UINT_DTYPES[64])):
        raise TypeError(
            "rng_bit_generator needs a key of type u32[4] or u64[2], got "
            f"{key.str_short(short_dtypes=True)}"
        )
    return [key, ShapedArray(shape, dtype, sharding=out_sharding)]


def _generator_batch(axis_data, args, dims, **params) -> tuple[list, list]:
    keys = moveaxis(args[0], dims[0], 0)
    params["shape"] = (axis_data.size, *params["shape"])
    first = index_in_dim(keys, 0, 0, keepdims=False)
    new_key, bits = rng_bit_generator_p.bind(first, **params)
    new_keys = dynamic_update_index_in_dim(keys, new_key, 0, axis=0)
    return [new_keys, bits], [0, 0]


def _generator_lowering(
    ctx, key, *, shape: Shape, dtype, algorithm, out_sharding
) -> list[Any]:
    # The operation takes two 64-bit words, and programs without 64-bit types have four
    # of 32 bits.
    narrow = ctx.avals_in[0].dtype == UINT32
    pairs = hlo.tensor_type((2, 2), UINT32)
    if narrow:
        halves = hlo.stablehlo.reshape(pairs, key)
        key = hlo.stablehlo.bitcast_convert(
            hlo.tensor_type((2,), UINT_DTYPES[64]), halves
        )
    name = algorithm.name.removeprefix("RNG_")
    results = hlo.stablehlo.RngBitGeneratorOp(
        key.type, ctx.result_type(1), hlo.stablehlo.RngAlgorithmAttr.get(name), key
    ).results
    new_key, bits = results
    if narrow:
        halves = hlo.stablehlo.bitcast_convert(pairs, new_key)
        new_key = hlo.stablehlo.reshape(ctx.result_type(0), halves)
    return [new_key, bits]


rng_bit_generator_p = several_results("rng_bit_generator", _generator_type)
rng_bit_generator_p.def_batch(_generator_batch)
rng_bit_generator_p.def_lowering(_generator_lowering)
rng_bit_generator_p.without("meaning", "the bits depend on the platform")
def_zero_jvp(rng_bit_generator_p)


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Any:
    """Draws numbers in [a, b) from XLA's stateful generator; not reproducible.

    Args:
        a: the lower end, a scalar.
        b: the upper end, a scalar of the same dtype.
        shape: of the result.

    Raises:
        ValueError: the ends differ in dtype, or have axes.
    """
    return rng_uniform_p.bind(a, b, shape=tuple(shape))


def _rng_uniform_type(a: ShapedArray, b: ShapedArray, *, shape: Shape) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError(
            "Arguments to rng_uniform must have identical dtypes, got "
            f"{a.dtype} and {b.dtype}."
        )
    if a.shape or b.shape:
        raise ValueError(
            "Arguments to rng_uniform must be scalars; got shapes "
            f"{a.shape} and {b.shape}."
        )
    return ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)


def _rng_uniform_lowering(ctx, a, b, *, shape: Shape) -> Any:
    size = hlo.constant(np.array(shape, np.int64))
    kind = hlo.stablehlo.RngDistributionAttr.get("UNIFORM")
    return hlo.stablehlo.rng(a, b, size, kind)


rng_uniform_p = register(Primitive("rng_uniform"))
rng_uniform_p.def_abstract_eval(_rng_uniform_type)
rng_uniform_p.def_lowering(_rng_uniform_lowering)
rng_uniform_p.without(
    "meaning jvp transpose batch", "its numbers are not a function of its operands"
)


# -- what the two generators do -----------------------------------------------------


def _halves(keys: Any) -> tuple[Any, Any]:
    axis = get_aval(keys).ndim - 1
    first = slice_in_dim(keys, 0, 2, axis=axis)
    return first, slice_in_dim(keys, 2, 4, axis=axis)


def _joined(first: Any, second: Any) -> Any:
    return concatenate([first, second], get_aval(first).ndim - 1)


def _draw(keys: Any, shape: Shape, dtype: Any) -> Any:
    """Bits of shape (*batch, *shape), all from the first of `keys` (*batch, 4)."""
    batch = get_aval(keys).shape[:-1]
    if 0 in batch:
        # There is no first key, and nothing to draw.
        keys = np.zeros((1, 4), UINT32)
    flat = reshape(keys, (get_aval(keys).size // 4, 4))
    first = index_in_dim(flat, 0, 0, keepdims=False)
    return rng_bit_generator(first, (*batch, *shape), dtype)[1]


def rbg_seed(seeds: Any) -> Any:
    """Key words of integer seeds: those of threefry, twice."""
    half = threefry_seed(seeds)
    return _joined(half, half)


def rbg_split(keys: Any, shape: Shape) -> Any:
    """New key words: both halves split by threefry."""
    return _joined(*(threefry_split(half, shape) for half in _halves(keys)))


def rbg_fold_in(keys: Any, messages: Any) -> Any:
    """New key words: the message folded by threefry into both halves."""
    return _joined(*(threefry_fold_in(half, messages) for half in _halves(keys)))


def rbg_random_bits(keys: Any, bit_width: int, shape: Shape) -> Any:
    """Random bits by XLA's generator."""
    if bit_width not in UINT_DTYPES:
        raise TypeError(f"random bits come in widths of 8, 16, 32, 64; got {bit_width}")
    return _draw(keys, shape, UINT_DTYPES[bit_width])


def unsafe_rbg_split(keys: Any, shape: Shape) -> Any:
    """New key words: every tenth of the vectors of four words that XLA draws."""
    batch = get_aval(keys).shape[:-1]
    drawn = _draw(keys, (10 * math.prod(shape), 4), UINT32)
    kept = slice_in_dim(drawn, None, None, stride=10, axis=len(batch))
    return reshape(kept, (*batch, *shape, 4))


def unsafe_rbg_fold_in(keys: Any, messages: Any) -> Any:
    """New key words: the key, with the tenth vector drawn by the message mixed in."""
    drawn = _draw(rbg_seed(messages), (10, 4), UINT32)
    axis = get_aval(drawn).ndim - 2
    word = index_in_dim(drawn, 9, axis, keepdims=False)
    missing = get_aval(keys).ndim - get_aval(word).ndim
    if missing > 0:
        word = reshape(word, (1,) * missing + get_aval(word).shape)
    elif missing < 0:
        keys = reshape(keys, (1,) * -missing + get_aval(keys).shape)
    return bitwise_xor(keys, word)
