"""Keys against jax: how they are made, split, printed, indexed, batched and refused."""

import copy
import pickle

import jax
import numpy as np
import pytest

import minijax

from .comparison import assert_same_bits, exception_class, jaxpr_text

IMPLS = ["threefry2x32", "rbg", "unsafe_rbg"]


def same(program):
    """Runs `program(library)` in both and compares all bits."""
    ours, theirs = program(minijax), program(jax)
    if not isinstance(ours, (tuple, list)):
        ours, theirs = [ours], [theirs]
    for left, right in zip(ours, theirs, strict=True):
        assert_same_bits(left, right)


@pytest.mark.parametrize(
    "seed",
    [0, 1, -1, 2**31, 2**32 + 5, 2**40, True, np.uint8(3), np.int64(-5), np.int8(-5)],
)
def test_seeds(seed):
    same(lambda jax: jax.random.key(seed))
    same(lambda jax: jax.random.PRNGKey(seed))


@pytest.mark.parametrize("impl", IMPLS)
def test_generators(impl):
    def program(jax):
        key = jax.random.key(5, impl=impl)
        return [
            key,
            jax.random.split(key),
            jax.random.split(key, (2, 3)),
            jax.random.fold_in(key, 7),
            jax.random.bits(key, (3,)),
            jax.random.bits(key, (3, 2), "uint8"),
            jax.random.bits(key, (3,), "uint16"),
            jax.random.normal(key, (2, 3)),
            jax.random.PRNGKey(5, impl=impl),
            jax.random.key_data(jax.random.key(5, dtype=jax.random.key_dtype(impl))),
        ]

    same(program)


@pytest.mark.parametrize("impl", IMPLS)
def test_under_vmap(impl):
    def program(jax):
        keys = jax.random.split(jax.random.key(5, impl=impl), 4)
        numbers = np.arange(4, dtype=np.uint32)
        return [
            jax.vmap(lambda k: jax.random.split(k, 3))(keys),
            jax.vmap(jax.random.fold_in)(keys, numbers),
            jax.vmap(jax.random.fold_in, (None, 0))(keys[0], numbers),
            jax.vmap(jax.random.fold_in, (0, None))(keys, 3),
            jax.vmap(lambda k: jax.random.bits(k, (2,)))(keys),
            jax.vmap(jax.vmap(lambda k: jax.random.bits(k, (2,))))(keys.reshape(2, 2)),
            jax.vmap(lambda s: jax.random.key(s, impl=impl))(np.arange(3)),
            jax.vmap(jax.random.key_data)(keys),
        ]

    same(program)


def test_raw_keys():
    def program(jax):
        key = jax.random.PRNGKey(5)
        one, two = jax.random.split(key)
        return [
            key,
            one,
            two,
            jax.random.fold_in(key, 3),
            jax.random.normal(np.asarray(key), (2,)),
            jax.random.key_data(key),
            jax.random.wrap_key_data(key),
            jax.random.wrap_key_data(np.arange(8, dtype=np.uint32).reshape(4, 2)),
            jax.vmap(lambda k: jax.random.normal(k, (2,)))(jax.random.split(key, 3)),
        ]

    same(program)


def test_arrays_of_keys_go_through_numpy_functions():
    def program(jax):
        jnp = jax.numpy
        keys = jax.random.split(jax.random.key(0), 6)
        grid = keys.reshape(2, 3)
        return [
            keys[2],
            keys[-1],
            keys[1:5:2],
            keys[np.array([3, 0])],
            grid[1],
            grid[:, 1],
            grid.T,
            grid.ravel(),
            jnp.concatenate([keys, keys[:2]]),
            jnp.stack([keys[0], keys[1]]),
            jnp.where(np.arange(6) > 2, keys, keys[0]),
            jnp.broadcast_to(keys[0], (2, 2)),
            jnp.squeeze(grid[:1]),
            jnp.expand_dims(keys, 1),
        ]

    same(program)


def test_clone():
    same(lambda jax: jax.random.clone(jax.random.key(3)))
    same(lambda jax: jax.vmap(jax.random.clone)(jax.random.split(jax.random.key(3))))


def test_offset_of_all_seeds():
    def program(jax):
        jax.config.update("jax_random_seed_offset", 7)
        try:
            return [jax.random.key(3), jax.random.PRNGKey(3)]
        finally:
            jax.config.update("jax_random_seed_offset", 0)

    same(program)


def test_iteration_and_length():
    keys = minijax.random.split(minijax.random.key(0), 3)
    theirs = jax.random.split(jax.random.key(0), 3)
    assert len(keys) == 3
    for ours, other in zip(keys, theirs, strict=True):
        assert_same_bits(ours, other)
    with pytest.raises(TypeError):
        len(keys[0])
    with pytest.raises(TypeError):
        iter(keys[0])


def test_attributes_and_repr():
    for impl in IMPLS:
        ours = minijax.random.split(minijax.random.key(7, impl=impl), 2)
        theirs = jax.random.split(jax.random.key(7, impl=impl), 2)
        assert repr(ours) == repr(theirs)
        assert repr(ours[0]) == repr(theirs[0])
        for name in ("shape", "ndim", "size", "nbytes", "itemsize"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert str(ours.dtype) == str(theirs.dtype)
        assert ours.dtype == minijax.random.key_dtype(impl)
        assert ours.dtype != minijax.random.key_dtype(IMPLS[IMPLS.index(impl) - 1])
        assert str(minijax.typeof(ours)) == str(jax.typeof(theirs))
        assert minijax.random.key_impl(ours) == impl
    assert isinstance(ours, minijax.Array)
    dtypes = minijax.dtypes
    assert minijax.numpy.issubdtype(ours.dtype, dtypes.prng_key)
    assert not minijax.numpy.issubdtype(np.uint32, dtypes.prng_key)


def test_what_keys_refuse():
    programs = [
        lambda jax, key: np.asarray(key),
        lambda jax, key: bool(key),
        lambda jax, key: key + 1,
        lambda jax, key: key + key,
        lambda jax, key: jax.numpy.sin(key),
        lambda jax, key: jax.numpy.sum(jax.random.split(key)),
        lambda jax, key: hash(key),
        lambda jax, key: jax.grad(lambda k: 1.0)(key),
        lambda jax, key: jax.random.key(key),
        lambda jax, key: jax.random.key(1.5),
        lambda jax, key: jax.random.key(np.arange(2)),
        lambda jax, key: jax.random.key(2**70),
        lambda jax, key: jax.random.key(0, impl="foo"),
        lambda jax, key: jax.random.key(0, impl=3.0),
        lambda jax, key: jax.random.key(0, impl="rbg", dtype=key.dtype),
        lambda jax, key: jax.random.split(jax.random.split(key)),
        lambda jax, key: jax.random.fold_in(key, np.arange(2)),
        lambda jax, key: jax.random.fold_in(key, -1),
        lambda jax, key: jax.random.wrap_key_data(np.zeros(3, np.uint32)),
        lambda jax, key: jax.random.wrap_key_data(np.zeros(2, np.int32)),
        lambda jax, key: jax.random.wrap_key_data(np.uint32(3)),
        lambda jax, key: jax.random.wrap_key_data(np.zeros((2, 4), np.uint32)),
        lambda jax, key: jax.random.key_impl([1, 2]),
    ]
    for index, program in enumerate(programs):
        expected = exception_class(lambda: program(jax, jax.random.key(0)))
        assert expected is not None, index
        found = exception_class(lambda: program(minijax, minijax.random.key(0)))
        assert found == expected, index


def test_equality_of_keys():
    def program(jax):
        keys = jax.random.split(jax.random.key(0), 3)
        return [keys == keys[1], keys != keys[1]]

    same(program)


def test_pickle():
    # jax cannot do this; the bits must come back.
    keys = minijax.random.split(minijax.random.key(3), 2)
    back = pickle.loads(pickle.dumps(keys))
    assert back.dtype == keys.dtype
    assert_same_bits(minijax.random.key_data(back), minijax.random.key_data(keys))


def test_copies_and_trips_to_the_host():
    keys = minijax.random.split(minijax.random.key(3), 2)
    for back in (
        copy.copy(keys),
        copy.deepcopy(keys),
        minijax.device_get(keys),
        minijax.device_put(keys),
        minijax.jit(lambda k: k)(keys),
    ):
        assert back.dtype == keys.dtype
        assert_same_bits(minijax.random.key_data(back), minijax.random.key_data(keys))


def test_indexing_and_updates_under_jit():
    def program(jax):
        keys = jax.random.split(jax.random.key(0), 4)
        return [
            jax.jit(lambda k, i: k[i])(keys, 2),
            keys.at[1].set(keys[0]),
            jax.numpy.roll(keys, 1),
            jax.lax.dynamic_slice(keys, (1,), (2,)),
            jax.lax.dynamic_update_slice(keys, keys[:1], (2,)),
            jax.jit(lambda: jax.random.normal(keys[0], (2,)))(),
            jax.vmap(lambda k: jax.random.split(k[0]), 1)(keys.reshape(2, 2)),
        ]

    same(program)


def test_gradients_pass_keys_by():
    def program(jax):
        def loss(x, key):
            return (x * jax.random.normal(key, (3,))).sum()

        key = jax.random.key(7)
        float0 = np.zeros((), jax.dtypes.float0)
        return [
            jax.grad(loss)(2.0, key),
            *jax.jvp(lambda k: jax.random.normal(k), (key,), (float0,)),
            jax.linearize(lambda x: loss(x, key), 2.0)[0],
        ]

    same(program)


def test_printed():
    def programs(jax):
        key, raw = jax.random.key(0), jax.random.PRNGKey(0)
        keys = jax.random.split(key, 3)
        numbers = np.arange(3, dtype=np.uint32)
        r = jax.random
        return [
            jax.make_jaxpr(lambda: r.key(0))(),
            jax.make_jaxpr(lambda: r.PRNGKey(0))(),
            jax.make_jaxpr(r.key)(3),
            jax.make_jaxpr(lambda s: r.key(s, impl="rbg"))(3),
            jax.make_jaxpr(r.split)(key),
            jax.make_jaxpr(r.split)(raw),
            jax.make_jaxpr(lambda k: r.split(k, (2, 3)))(key),
            jax.make_jaxpr(r.fold_in)(key, 3),
            jax.make_jaxpr(r.fold_in)(raw, 3),
            jax.make_jaxpr(r.key_data)(key),
            jax.make_jaxpr(r.key_data)(raw),
            jax.make_jaxpr(r.wrap_key_data)(raw),
            jax.make_jaxpr(r.clone)(key),
            jax.make_jaxpr(lambda k: [a for a in r.split(k)])(key),
            jax.make_jaxpr(jax.vmap(r.split))(keys),
            jax.make_jaxpr(jax.vmap(r.fold_in))(keys, numbers),
            jax.make_jaxpr(jax.vmap(r.fold_in, (None, 0)))(key, numbers),
            jax.make_jaxpr(jax.vmap(lambda k: r.normal(k, (2,))))(keys),
            jax.make_jaxpr(jax.vmap(r.wrap_key_data))(r.split(raw, 3)),
            jax.make_jaxpr(jax.jit(lambda k: r.uniform(r.split(k)[0])))(key),
        ]

    for ours, theirs in zip(programs(minijax), programs(jax), strict=True):
        assert jaxpr_text(ours) == jaxpr_text(theirs)


def test_legacy_keys_can_be_forbidden():
    raw = minijax.random.PRNGKey(0)
    before = minijax.config.jax_legacy_prng_key
    try:
        minijax.config.update("jax_legacy_prng_key", "error")
        with pytest.raises(ValueError, match="random.key"):
            minijax.random.normal(raw)
        minijax.config.update("jax_legacy_prng_key", "warn")
        with pytest.warns(UserWarning, match="random.key"):
            minijax.random.normal(raw)
    finally:
        minijax.config.update("jax_legacy_prng_key", before)


def test_with_64_bits():
    def program(jax):
        with jax.enable_x64(True):
            key = jax.random.key(2**40 + 3)
            return [
                key,
                jax.random.bits(key, (3,)),
                jax.random.bits(key, (3,), "uint64"),
                jax.random.normal(key, (3,)),
                jax.random.uniform(key, (3,), minval=-2.0, maxval=5.0),
                jax.random.randint(key, (3,), 0, 10**15),
                jax.random.fold_in(key, 5),
            ]

    same(program)


def test_the_older_way_of_counting():
    def program(jax):
        jax.config.update("jax_threefry_partitionable", False)
        try:
            key = jax.random.key(5)
            keys = jax.random.split(key, 3)
            return [
                keys,
                jax.random.split(key, (2, 2)),
                jax.random.bits(key, (5,)),
                jax.random.bits(key, (2, 3), "uint8"),
                jax.random.bits(key, (5,), "uint16"),
                jax.random.normal(key, (3,)),
                jax.vmap(lambda k: jax.random.bits(k, (3,), "uint8"))(keys),
                jax.vmap(jax.random.split)(keys),
            ]
        finally:
            jax.config.update("jax_threefry_partitionable", True)

    same(program)
