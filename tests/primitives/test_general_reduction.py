"""`lax.reduce` with any computation: programs, derivatives, batches, errors."""

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same
from tests.primitives.forms import assert_same_texts

minijax = pytest.importorskip("minijax")

X = np.array([[3, 1, 2], [0, 5, -4]], np.float32)
Y = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
ZERO, ONE = np.float32(0), np.float32(1)


def sum_and_product(left, right):
    return left[0] + right[0], left[1] * right[1]


def two(library, axes=(0,)):
    return lambda x, y: library.lax.reduce((x, y), (ZERO, ONE), sum_and_product, axes)


def largest_and_its_place(library):
    def combine(left, right):
        first = library.lax.gt(left[0], right[0])
        return [library.lax.select(first, a, b) for a, b in zip(left, right)]

    def function(x):
        places = library.lax.broadcasted_iota(np.int32, X.shape, 1)
        start = [np.float32(-np.inf), np.int32(0)]
        return library.lax.reduce([x, places], start, combine, (1,))

    return function


@pytest.mark.parametrize("in_axes", [None, (0, 0), (1, None), (None, 2)])
def test_texts(in_axes):
    assert_same_texts(minijax, jax, two, X, Y, in_axes=in_axes)


def test_texts_of_a_selection():
    assert_same_texts(minijax, jax, largest_and_its_place, X, differentiate=False)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (1, 0), ()], ids=str)
def test_values(axes):
    assert_same(lambda library, x, y: two(library, axes)(x, y), minijax, jax, X, Y)


def test_values_of_a_selection():
    assert_same(lambda library, x: largest_and_its_place(library)(x), minijax, jax, X)


def test_derivatives_and_batches():
    def program(library, x, y):
        function = two(library, (1,))
        tangents = library.jvp(function, (x, y), (y, x))
        gradients = library.vjp(function, x, y)[1]((x[:, 0], y[:, 1]))
        stacked = library.vmap(two(library, (0,)), (1, 0))(x.T, y)
        return tangents, gradients, stacked

    assert_same(program, minijax, jax, X, Y)


def test_derivatives_of_a_selection():
    out, tangent = minijax.jvp(lambda x: largest_and_its_place(minijax)(x)[0], [X], [Y])
    assert np.asarray(out).tolist() == [3, 5]
    assert np.asarray(tangent).tolist() == [1, 5]


def test_one_initial_value_for_each_example():
    starts = np.array([10, 20], np.float32)
    function = minijax.vmap(
        lambda x, start: minijax.lax.reduce(x, start, lambda a, b: a + b, (0,))
    )
    np.testing.assert_allclose(np.asarray(function(X, starts)), [16, 21])


KNOWN = [
    ("add", 0),
    ("mul", 1),
    ("max", -128),
    ("min", 127),
    ("bitwise_or", 0),
    ("bitwise_and", -1),
    ("bitwise_xor", 0),
    ("add", 1),
    ("max", 0),
]


@pytest.mark.parametrize("name, start", KNOWN, ids=str)
def test_known_reductions_go_by_their_name(name, start):
    def build(library):
        operation = getattr(library.lax, name)
        return lambda x: library.lax.reduce(x, np.int8(start), operation, (0,))

    x = X.astype(np.int8)
    assert_same_texts(minijax, jax, build, x, differentiate=False)
    assert_same(lambda library, x: build(library)(x), minijax, jax, x)


def test_weak_types():
    for start in (0.0, ZERO):
        assert_same(
            lambda library, start=start: [
                library.lax.reduce(2.0, start, library.lax.add, ()),
                library.lax.reduce(2.0, start, lambda a, b: a + b, ()),
            ],
            minijax,
            jax,
        )


ERRORS = {
    "trees differ": lambda lax: lax.reduce((X, X), ZERO, lax.add, (0,)),
    "vector start": lambda lax: lax.reduce(X, X[0], lax.add, (0,)),
    "dtypes differ": lambda lax: lax.reduce(X, 1, lambda a, b: a * b, (0,)),
    "two results": lambda lax: lax.reduce(X, ONE, lambda a, b: (a, b), (0,)),
    "another dtype": lambda lax: lax.reduce(X, ONE, lambda a, b: 3, (0,)),
    "axis out of range": lambda lax: lax.reduce(X, ONE, lambda a, b: a * b, (2,)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    def program(library):
        return ERRORS[name](library.lax)

    assert_same(program, minijax, jax)
    with pytest.raises((TypeError, ValueError, IndexError)):
        program(minijax)


def test_a_tangent_of_the_initial_value():
    def program(library):
        def function(start):
            return library.lax.reduce(X[0], start, lambda a, b: a * b, (0,))

        return library.grad(function)(ONE)

    assert_same(program, minijax, jax)


class Doubling:
    """A computation to which no weak reference can be made."""

    __slots__ = ()

    def __call__(self, left, right):
        return left + right * 2


def test_a_computation_with_slots():
    expected = jax.lax.reduce_window(Y, ZERO, Doubling(), (1, 2), (1, 1), "VALID")
    window = (ZERO, Doubling(), (1, 2), (1, 1), "VALID")
    compiled = minijax.jit(lambda x: minijax.lax.reduce_window(x, *window))
    for found in (minijax.lax.reduce_window(Y, *window), compiled(Y)):
        np.testing.assert_array_equal(found, expected)
    # JAX raises TypeError for these.
    found = minijax.lax.reduce(Y, ZERO, Doubling(), (1,))
    np.testing.assert_array_equal(found, Y.sum(1) * 2)
