"""broadcast_in_dim, reshape, transpose, squeeze, rev, tile and what fills arrays."""

import jax
import numpy as np
import pytest

import minijax
from minijax.core import shaping
from minijax.primitives.shape import broadcasting
from tests.oracle.oracle import assert_same
from tests.primitives.checks import (
    assert_batches_as_a_loop,
    assert_means_what_xla_does,
    assert_prints_the_same,
    assert_same_derivatives,
    assert_same_error,
    assert_same_values,
    call,
    numbers,
)

X = numbers(2, 3)
UNITS = numbers(2, 1, 3, 1)

CALLS = [
    call("broadcast", lambda lax: lambda x: lax.broadcast(x, (2, 1)), X),
    call(
        "broadcast_in_dim",
        lambda lax: lambda x: lax.broadcast_in_dim(x, (2, 4, 3), (0, 2)),
        X,
    ),
    call(
        "broadcast_in_dim stretching",
        lambda lax: lambda x: lax.broadcast_in_dim(x, (4, 2, 3, 2), (1, 0, 2, 3)),
        numbers(2, 1, 3, 1),
    ),
    call(
        "broadcast_in_dim of a scalar",
        lambda lax: lambda x: lax.broadcast_in_dim(x, (2, 3), ()),
        numbers(1)[0],
    ),
    call("broadcast_to_rank", lambda lax: lambda x: lax.broadcast_to_rank(x, 4), X),
    call("broadcast_like", lambda lax: lax.broadcast_like, X[:1], X),
    call("expand_dims", lambda lax: lambda x: lax.expand_dims(x, (0, -1)), X),
    call("reshape", lambda lax: lambda x: lax.reshape(x, (3, 2)), X),
    call("reshape a scalar", lambda lax: lambda x: lax.reshape(x, (1, 1)), X[0, 0]),
    call(
        "reshape permuted",
        lambda lax: lambda x: lax.reshape(x, (6,), (1, 0)),
        X,
    ),
    call("collapse", lambda lax: lambda x: lax.collapse(x, 1, 3), numbers(2, 3, 2)),
    call(
        "transpose",
        lambda lax: lambda x: lax.transpose(x, (1, 2, 0)),
        numbers(2, 3, 4),
    ),
    call("squeeze", lambda lax: lambda x: lax.squeeze(x, (3, 1)), UNITS),
    call("squeeze one", lambda lax: lambda x: lax.squeeze(x, (-3,)), UNITS),
    call("rev", lambda lax: lambda x: lax.rev(x, (1,)), X),
    call("rev both", lambda lax: lambda x: lax.rev(x, (1, 0)), X),
    call("tile", lambda lax: lambda x: lax.tile(x, (2, 3)), X),
    call("full_like", lambda lax: lambda x: lax.full_like(x, 2) * x, X),
    call(
        "iota",
        lambda lax: lambda x: x * lax.broadcasted_iota(np.float32, (2, 3), 1),
        X,
    ),
    call("no-ops", lambda lax: lambda x: no_operations(lax, x), X),
]


def no_operations(lax, x):
    """Calls that write nothing."""
    x = lax.reshape(lax.transpose(x, (0, 1)), (2, 3), (0, 1))
    x = lax.broadcast_in_dim(lax.broadcast(x, ()), (2, 3), (0, 1))
    return lax.full_like(lax.squeeze(lax.expand_dims(x, ()), ()), 1), x


IDS = [entry.name for entry in CALLS]
each_call = pytest.mark.parametrize("entry", CALLS, ids=IDS)


@each_call
def test_meaning(entry):
    assert_means_what_xla_does(entry)


@each_call
def test_values_and_text(entry):
    assert_same_values(entry)
    assert_prints_the_same(entry.function, entry.args)


@each_call
def test_derivatives(entry):
    assert_same_derivatives(entry)


@each_call
def test_batching(entry):
    assert_batches_as_a_loop(entry)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64"])
def test_dtypes(dtype):
    x = np.array([[0, 1, 2], [3, 4, 5]]).astype(minijax.numpy.dtype(dtype))

    def program(library):
        lax = library.lax
        x_here = library.numpy.asarray(x)
        return [
            lax.broadcast_in_dim(x_here, (2, 2, 3), (0, 2)),
            lax.reshape(x_here, (6,), (1, 0)),
            lax.rev(lax.transpose(x_here, (1, 0)), (0,)),
            lax.tile(lax.squeeze(x_here[:1], (0,)), (2,)),
            lax.full_like(x_here, 1),
        ]

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "complex64"])
def test_iota_dtypes(dtype):
    assert_same(lambda j: j.lax.broadcasted_iota(dtype, (2, 3), 0), minijax, jax)
    with minijax.enable_x64(True):
        assert minijax.lax.iota("float64", 3).dtype == np.float64
    assert minijax.lax.iota("int64", 3).dtype == np.int32
    meaning = broadcasting.iota_p.meaning
    assert meaning(np.int8, (2, 3), 0, None).tolist() == [[0, 0, 0], [1, 1, 1]]


PROGRAMS = [
    lambda j: j.lax.full((2,), 3),
    lambda j: j.lax.full((2,), 3.0),
    lambda j: j.lax.full((), True),
    lambda j: j.lax.full((2,), 3, "float16"),
    lambda j: j.lax.full((2,), np.float32(2)),
    lambda j: j.lax.full((0, 2), 1 + 2j),
    lambda j: j.lax.full_like(3, 2),
    lambda j: j.lax.full_like(np.ones((2, 2), np.int8), 2),
    lambda j: j.lax.full_like(j.numpy.ones(3), 2, shape=(2,), dtype="int32"),
    lambda j: j.lax.full_like(j.ShapeDtypeStruct((2,), "float32"), 1),
    lambda j: j.lax.broadcast_shapes((2, 1), (3,), ()),
    lambda j: j.lax.broadcast_shapes((1,), (0,)),
    lambda j: j.lax.broadcast(1.0, ()),
    lambda j: j.lax.broadcast_in_dim(np.arange(3), (3,), (0,)),
    lambda j: j.lax.reshape(np.arange(3), (3,)),
    lambda j: j.lax.tile(2.0, ()),
    lambda j: j.lax.empty((2,), "float32").shape,
    lambda j: j.lax.iota("int32", 0),
    lambda j: j.lax.rev(j.numpy.ones((0, 2)), (1,)),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_weak_types_and_edges(program):
    assert_same(program, minijax, jax)


ERRORS = [
    lambda j: j.lax.broadcast_in_dim(X, (2, 3), (0,)),
    lambda j: j.lax.broadcast_in_dim(X, (3,), (0, 1)),
    lambda j: j.lax.broadcast_in_dim(X, (2, 3), (0, 2)),
    lambda j: j.lax.broadcast_in_dim(X, (2, 4), (0, 1)),
    lambda j: j.lax.broadcast_in_dim(np.ones((1, 1)), (2, 4), (0, 0)),
    lambda j: j.lax.broadcast(1.0, (-1,)),
    lambda j: j.lax.broadcast_like(X, np.ones((2, 2))),
    lambda j: j.lax.broadcast_like(X, np.ones(3)),
    lambda j: j.lax.broadcast_shapes((2,), (3,)),
    lambda j: j.lax.broadcast_shapes((-1,)),
    lambda j: j.lax.expand_dims(X, (0, 0)),
    lambda j: j.lax.expand_dims(X, (0, -4)),
    lambda j: j.lax.expand_dims(X, (5,)),
    lambda j: j.lax.reshape(X, (2, 2)),
    lambda j: j.lax.reshape(X, (-1,)),
    lambda j: j.lax.reshape(X, (1.5, 2)),
    lambda j: j.lax.reshape(X, (6,), (0, 0)),
    lambda j: j.lax.reshape("a", (1,)),
    lambda j: j.lax.transpose(X, (0, 0)),
    lambda j: j.lax.transpose(X, (0,)),
    lambda j: j.lax.squeeze(X, (0,)),
    lambda j: j.lax.squeeze(X, (2,)),
    lambda j: j.lax.squeeze(UNITS, (1, 1)),
    lambda j: j.lax.rev(X, (0, 0)),
    lambda j: j.lax.rev(X, (2,)),
    lambda j: j.lax.rev(X, (-1,)),
    lambda j: j.lax.tile(X, (2,)),
    lambda j: j.lax.collapse(X, 1, 0),
    lambda j: j.lax.full((2,), np.ones(2)),
    lambda j: j.lax.full((2,), "a"),
    lambda j: j.lax.full((2,), 1, "no dtype"),
    lambda j: j.lax.iota("int32", -1),
    lambda j: j.lax.iota("int32", 1.5),
    lambda j: j.lax.iota("bool", 2),
    lambda j: j.lax.broadcasted_iota("int32", (2,), 1),
    lambda j: j.jit(lambda n: j.lax.reshape(X, (n,)))(6),
    lambda j: j.jit(lambda n: j.lax.broadcasted_iota("int32", (2, 2), n))(1),
]


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program):
    assert_same_error(program)


def test_square_broadcast_moves_axes():
    """Equal shapes do not make a transposing broadcast a no-op."""
    x = numbers(2, 2)
    swap = minijax.jit(lambda x: shaping.broadcast_in_dim(x, (2, 2), (1, 0)))
    assert np.array_equal(swap(x), x.T)


def test_full_on_a_device():
    device = minijax.devices()[-1]
    sharding = minijax.sharding.SingleDeviceSharding(device)
    filled = minijax.lax.full((2,), 1.5, sharding=sharding)
    assert filled.devices() == {device}
    assert filled.committed
    assert np.array_equal(filled, [1.5, 1.5])


def test_full_like_stays_on_its_device():
    device = minijax.devices()[-1]
    x = minijax.device_put(np.ones(2, np.float32), device)
    assert minijax.lax.full_like(x, 2).committed


def test_identity_matrix():
    assert np.array_equal(broadcasting.identity_matrix(3, np.float32), np.eye(3))


KEY_PROGRAMS = [
    lambda j, k: j.lax.reshape(k, (3, 2)),
    lambda j, k: j.lax.transpose(k, (1, 0)),
    lambda j, k: j.lax.broadcast_in_dim(k, (2, 4, 3), (0, 2)),
    lambda j, k: j.lax.tile(j.lax.rev(k, (0,)), (2, 2)),
    lambda j, k: j.lax.squeeze(k[:1], (0,)),
    lambda j, k: j.lax.expand_dims(k, (1,)),
    lambda j, k: j.lax.concatenate([k, k], 1),
    lambda j, k: j.lax.split(k, (1, 2), 1),
    lambda j, k: j.lax.stack([k, k], 2),
    lambda j, k: j.lax.unstack(k, 1),
    lambda j, k: j.lax.full((2,), k[0, 0]),
    lambda j, k: j.lax.full((2,), 3, k.dtype),
    lambda j, k: j.lax.full_like(k, 0),
    lambda j, k: j.lax.full_like(k, k[0, 0]),
    lambda j, k: j.lax.convert_element_type(k, k.dtype),
    lambda j, k: j.lax.optimization_barrier(j.lax.stop_gradient(k)),
    lambda j, k: j.vmap(lambda a, b: j.lax.select(True, a, b), (0, None))(k, k[0]),
]


@pytest.mark.parametrize("program", KEY_PROGRAMS)
def test_random_keys(program):
    """Typed keys carry their words along, as axes behind those that are shaped."""

    def of_keys(library):
        keys = library.random.split(library.random.key(0), (2, 3))
        return library.jit(lambda keys: program(library, keys))(keys)

    assert_same(of_keys, minijax, jax)
