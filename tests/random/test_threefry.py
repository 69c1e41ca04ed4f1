"""The cipher: its meaning in NumPy against XLA, against jax, and known answers."""

import jax
import numpy as np
import pytest

import minijax
from minijax.primitives.random.threefry import iota_2x32_shape_p, threefry2x32_p


def known_answer(key, block):
    operands = [np.uint32(word) for word in (*key, *block)]
    return [int(word) for word in threefry2x32_p.meaning(*operands)]


def test_known_answers():
    # From the Random123 library's file of known answers, threefry2x32 with 20 rounds.
    assert known_answer((0, 0), (0, 0)) == [0x6B200159, 0x99BA4EFE]
    ones = 0xFFFFFFFF
    assert known_answer((ones, ones), (ones, ones)) == [0x1CB996FC, 0xBB002BE7]
    key, block = (0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)
    assert known_answer(key, block) == [0xC4923A9C, 0x483DF7A0]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (0,)])
def test_meaning_and_xla(shape):
    random = np.random.RandomState(0)
    words = [
        random.randint(0, 2**32, shape, dtype=np.uint64).astype(np.uint32)
        for _ in range(4)
    ]
    expected = threefry2x32_p.meaning(*words)
    for word, found in zip(expected, threefry2x32_p.bind(*words), strict=True):
        np.testing.assert_array_equal(np.asarray(found), word)


def test_scalars_and_batches():
    x = np.arange(4, dtype=np.uint32)
    one = np.uint32(1)
    alone = threefry2x32_p.bind(one, one, x, x + one)
    batched = minijax.vmap(
        lambda a, b: threefry2x32_p.bind(one, one, a, b), in_axes=(0, 0)
    )(x, x + one)
    expected = threefry2x32_p.meaning(one, one, x, x + one)
    for left, right, word in zip(alone, batched, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(left), word)
        np.testing.assert_array_equal(np.asarray(right), word)


def test_only_uint32():
    with pytest.raises(TypeError, match="uint32"):
        threefry2x32_p.bind(*[np.zeros(2, np.int32)] * 4)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0, 2)])
def test_positions(shape):
    high, low = iota_2x32_shape_p.bind(shape=shape)
    np.testing.assert_array_equal(np.asarray(low).ravel(), np.arange(low.size))
    assert not np.asarray(high).any()
    expected = iota_2x32_shape_p.meaning(shape=shape)
    np.testing.assert_array_equal(np.asarray(low), expected[1])


def test_one_function_of_the_module_for_one_shape():
    def two_draws(key):
        one, two = minijax.random.split(key)
        return minijax.random.bits(one, (5,)) ^ minijax.random.bits(two, (5,))

    text = minijax.jit(two_draws).lower(minijax.random.key(0)).as_text()
    # One for the keys, one for the bits that are drawn twice.
    assert text.count("func.func private @threefry2x32") == 2
    assert text.count("call @threefry2x32") == 3


def test_printed():
    def program(library, primitive):
        x = np.arange(4, dtype=np.uint32)
        one = np.uint32(1)
        return str(
            library.make_jaxpr(lambda a, b: primitive.bind(one, one, a, b))(x, x)
        )

    from jax._src.random.threefry2x32 import threefry2x32_p as jax_threefry_p

    assert program(minijax, threefry2x32_p) == program(jax, jax_threefry_p)


def test_rng_bit_generator():
    def program(library):
        key = np.arange(4, dtype=np.uint32)
        algorithm = library.lax.RandomAlgorithm.RNG_PHILOX
        return [
            *library.lax.rng_bit_generator(key, (3,)),
            *library.lax.rng_bit_generator(key, (3, 2), np.uint8),
            *library.lax.rng_bit_generator(key, (2,), algorithm=algorithm),
        ]

    for ours, theirs in zip(program(minijax), program(jax), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    with pytest.raises(TypeError, match="float32"):
        minijax.lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (3,), np.float32)


def test_rng_bit_generator_under_vmap():
    def program(library):
        keys = np.arange(8, dtype=np.uint32).reshape(2, 4)
        return library.vmap(lambda k: library.lax.rng_bit_generator(k, (3,)))(keys)

    for ours, theirs in zip(program(minijax), program(jax), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_rng_uniform():
    # Its numbers come from hidden state: only their range can be held.
    low, high = np.float32(2.0), np.float32(3.0)
    drawn = np.asarray(minijax.lax.rng_uniform(low, high, (50,)))
    assert drawn.shape == (50,)
    assert drawn.dtype == np.float32
    assert drawn.min() >= 2.0
    assert drawn.max() < 3.0
    with pytest.raises(ValueError, match="scalars"):
        minijax.lax.rng_uniform(np.zeros(2, np.float32), high, (3,))
    with pytest.raises(ValueError, match="identical dtypes"):
        minijax.lax.rng_uniform(np.int32(0), high, (3,))
