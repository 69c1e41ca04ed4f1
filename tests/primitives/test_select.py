"""select_n and clamp."""

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

X, Y, Z = numbers(2, 3), numbers(2, 3) + 1, numbers(2, 3) * 2
MASK = X > 0
WHICH = np.array([[0, 1, 2], [2, 1, 0]], np.int32)

CALLS = [
    call("select", lambda lax: lax.select, MASK, X, Y),
    call("select by a scalar", lambda lax: lax.select, np.bool_(True), X, Y),
    call("select of scalars", lambda lax: lax.select, MASK[0, 0], X[0, 0], Y[0, 0]),
    call("select_n of three", lambda lax: lax.select_n, WHICH, X, Y, Z),
    call(
        "select_n unsigned", lambda lax: lax.select_n, WHICH.astype(np.uint8), X, Y, Z
    ),
    call("select_n by a number", lambda lax: lax.select_n, np.int32(1), X, Y),
    call("select a constant", lambda lax: lambda x: lax.select(MASK, x, Y), X),
    call(
        "clamp", lambda lax: lambda x: lax.clamp(np.float32(-0.6), x, np.float32(1)), X
    ),
    call("clamp between arrays", lambda lax: lax.clamp, X - 0.5, Y - 0.5, Z.clip(1)),
]
SCALAR_BOUNDS = call(
    "clamp between scalars", lambda lax: lax.clamp, np.float32(-0.6), X, np.float32(1)
)
ONE_CASE = call("select_n of one", lambda lax: lax.select_n, MASK, X)
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


def test_select_of_one_case():
    """JAX cannot transpose it."""
    assert_means_what_xla_does(ONE_CASE)
    assert_same_values(ONE_CASE)
    assert_batches_as_a_loop(ONE_CASE)
    total = minijax.grad(lambda x: minijax.lax.select_n(MASK, x).sum())
    assert np.array_equal(total(X), np.where(MASK, 0, 1))


def test_clamp_between_scalars():
    """JAX has no derivative with respect to the bounds here, and batches them alike."""
    assert_means_what_xla_does(SCALAR_BOUNDS)
    assert_same_values(SCALAR_BOUNDS)
    assert_batches_as_a_loop(SCALAR_BOUNDS)

    def total(low, high):
        return minijax.lax.clamp(low, X, high).sum()

    low, high = np.float32(-0.6), np.float32(1)
    slopes = minijax.grad(total, (0, 1))(low, high)
    assert [float(slope) for slope in slopes] == [(X < low).sum(), (X > high).sum()]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64"])
def test_dtypes(dtype, monkeypatch):
    # XLA's CPU compiler has clamp of bool and complex only in its fusion emitters.
    monkeypatch.setenv("MINIJAX_TEST_FAST_COMPILE", "0")
    x = np.array([[0, 1, 2], [3, 4, 5]]).astype(minijax.numpy.dtype(dtype))

    def program(library):
        here = library.numpy.asarray(x)
        other = library.lax.rev(here, (1,))
        return [
            library.lax.select(MASK, here, other),
            library.lax.select_n(WHICH, here, other, here),
            library.lax.clamp(here, other, here),
        ]

    assert_same(program, minijax, jax)


def test_out_of_range_takes_the_last():
    which = np.array([-3, 7], np.int32)
    picked = minijax.lax.select_n(which, np.zeros(2), np.ones(2), np.full(2, 2.0))
    assert picked.tolist() == [0.0, 2.0]


def test_select_of_keys():
    def program(library):
        keys = library.random.split(library.random.key(0), 3)
        other = library.random.split(library.random.key(1), 3)
        mask = np.array([True, False, True])
        by_mask = library.lax.select(mask, keys, other)
        by_scalar = library.lax.select(np.bool_(False), keys, other)
        return library.random.key_data(by_mask), library.random.key_data(by_scalar)

    assert_same(program, minijax, jax)


PROGRAMS = [
    lambda j: j.lax.select(True, 1.0, 2.0),
    lambda j: j.lax.select(True, 1.0, j.numpy.float32(2)),
    lambda j: j.lax.select_n(2, 1, 2, 3),
    lambda j: j.lax.clamp(0.0, 3.5, 1.0),
    lambda j: j.lax.clamp(0, j.numpy.arange(4), 2),
    lambda j: j.lax.clamp(0.0, np.float32([np.nan, 2]), 1.0),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_weak_types_and_edges(program):
    assert_same(program, minijax, jax)


ERRORS = [
    lambda j: j.lax.select(X, X, Y),
    lambda j: j.lax.select(MASK, X, Y[0]),
    lambda j: j.lax.select(MASK[0], X, Y),
    lambda j: j.lax.select(MASK, X, Y.astype(np.int32)),
    lambda j: j.lax.select_n(MASK, X, Y, Z),
    lambda j: j.lax.select_n(MASK),
    lambda j: j.lax.clamp(0.0, X, 1),
    lambda j: j.lax.clamp(X[0], X, Y),
    lambda j: j.lax.clamp(X, X, Y[0]),
    lambda j: j.lax.clamp("a", X, Y),
]


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program):
    assert_same_error(program)
