"""concatenate, split, stack, unstack and pad."""

import jax
import numpy as np
import pytest

import minijax
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

X, Y = numbers(2, 3), numbers(2, 3) + 1
CONFIG = ((1, 2, 0), (0, 1, 1))
CUT = ((-1, 2, 1), (1, -2, 0))


def concatenate(dimension):
    return lambda lax: lambda *arrays: lax.concatenate(arrays, dimension)


CALLS = [
    call("concatenate", concatenate(0), X, Y),
    call("concatenate columns", concatenate(1), X, Y[:, :1]),
    call("split", lambda lax: lambda x: lax.split(x, (1, 2), 1), X),
    call("split to nothing", lambda lax: lambda x: lax.split(x, (0, 2)), X),
    call("one part of a split", lambda lax: lambda x: lax.split(x, (1, 2), 1)[1], X),
    call("stack", lambda lax: lambda x, y: lax.stack([x, y]), X, Y),
    call("stack inside", lambda lax: lambda x, y: lax.stack([x, y], -1), X, Y),
    call("unstack", lambda lax: lambda x: lax.unstack(x), X),
    call("unstack columns", lambda lax: lambda x: lax.unstack(x, 1), X),
    call("one part of an unstack", lambda lax: lambda x: lax.unstack(x, 1)[2], X),
    call("pad", lambda lax: lambda x: lax.pad(x, np.float32(0), CONFIG), X),
    call("pad and cut", lambda lax: lambda x: lax.pad(x, np.float32(0), CUT), X),
    call(
        "pad with a value", lambda lax: lambda x, v: lax.pad(x, v, CONFIG), X, X[0, 0]
    ),
    call("concatenate one", concatenate(0), X),
]
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


def test_three_operands_in_different_places():
    """Stacks and concatenations of mapped and unmapped operands, axes apart."""
    args = (numbers(3, 2), numbers(2, 3), numbers(3))

    def program(library):
        lax = library.lax
        in_axes = (1, 0, None)
        joined = library.vmap(lambda *xs: lax.concatenate(xs, 0), in_axes)(*args)
        stacked = library.vmap(lambda *xs: lax.stack(xs, 1), in_axes)(*args)
        return joined, stacked

    assert_same(program, minijax, jax)


def test_many_operands():
    parts = [numbers(1) + k for k in range(70)]
    joined = minijax.lax.concatenate(parts, 0)
    assert np.array_equal(joined, np.concatenate(parts))


def test_gradient_of_the_padding_value_alone():
    def f(value):
        return minijax.lax.pad(X, value, CONFIG).sum()

    padded = (X.shape[0] + 3) * (2 * X.shape[1] - 1 + 1)
    assert minijax.grad(f)(2.0) == padded - X.size


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64"])
def test_dtypes(dtype):
    x = np.array([[0, 1, 2], [3, 4, 5]]).astype(minijax.numpy.dtype(dtype))

    def program(library):
        lax = library.lax
        here = library.numpy.asarray(x)
        zero = lax.full((), 0, dtype)
        return [
            lax.concatenate([here, here], 1),
            lax.split(here, (2, 1), 1),
            lax.stack([here, here], 2),
            lax.unstack(here, 1),
            lax.pad(here, zero, CONFIG),
        ]

    assert_same(program, minijax, jax)


PROGRAMS = [
    lambda j: j.lax.concatenate([np.ones(2)], 0),
    lambda j: j.lax.concatenate([X, X], np.int64(1)),
    lambda j: j.lax.stack([1.0, 2.0]),
    lambda j: j.lax.stack([1, j.numpy.int32(2)]),
    lambda j: j.lax.unstack(j.numpy.ones((0, 2))),
    lambda j: j.lax.split(np.ones(2), np.array([1, 1])),
    lambda j: j.lax.pad(j.numpy.ones((0,)), 1.0, ((2, 1, 3),)),
    lambda j: j.lax.pad(1.0, 2.0, ()),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_weak_types_and_edges(program):
    assert_same(program, minijax, jax)


ERRORS = [
    lambda j: j.lax.concatenate([], 0),
    lambda j: j.lax.concatenate([X, X[0]], 0),
    lambda j: j.lax.concatenate([X, X], 2),
    lambda j: j.lax.concatenate([X, X[:, :2]], 0),
    lambda j: j.lax.concatenate([X, X.astype(np.int32)], 0),
    lambda j: j.lax.stack([X, X[0]]),
    lambda j: j.lax.stack([X, X[:1]]),
    lambda j: j.lax.stack([X, X.astype(np.int32)]),
    lambda j: j.lax.stack([X, X], 3),
    lambda j: j.lax.split(X, (1, 2)),
    lambda j: j.lax.split(X, (-1, 3)),
    lambda j: j.lax.split(X, (2,), 2),
    lambda j: j.lax.unstack(1.0),
    lambda j: j.lax.unstack(X, 2),
    lambda j: j.lax.pad(X, X, CONFIG),
    lambda j: j.lax.pad(X, 1, CONFIG),
    lambda j: j.lax.pad(X, np.float32(1), CONFIG[:1]),
    lambda j: j.lax.pad(X, np.float32(1), ((0, 0, -1), (0, 0, 0))),
    lambda j: j.lax.pad(X, np.float32(1), ((-3, 0, 0), (0, 0, 0))),
]


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program):
    assert_same_error(program)
