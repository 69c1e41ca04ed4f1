"""Cumulative reductions and associative scans against jax."""

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same
from tests.primitives.forms import assert_same_texts

minijax = pytest.importorskip("minijax")

NAMES = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]
X = np.array([[3, 1, 2], [0.5, 0, -4]], np.float32)


def cumulative(name, axis=0, reverse=False):
    return lambda library: lambda x: getattr(library.lax, name)(x, axis, reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_texts(name, reverse):
    x = np.arange(5, dtype=np.float32)
    assert_same_texts(minijax, jax, cumulative(name, 0, reverse), x)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_texts_of_batches(name, axis):
    build = cumulative(name)
    assert_same_texts(minijax, jax, build, X, in_axes=(axis,))


SPECIAL = {
    "nan": np.array([1, np.nan, 3], np.float32),
    "infinities": np.array([-np.inf, -np.inf, 1, np.inf, np.inf], np.float32),
    "empty": np.zeros((0,), np.float32),
    "integers": np.array([3, -100, 120], np.int8),
    "complex": np.array([1 + 2j, 1 + 3j, -4j], np.complex64),
}


@pytest.mark.parametrize("case", SPECIAL)
@pytest.mark.parametrize("name", NAMES)
def test_special_values(name, case):
    x = SPECIAL[case]
    if name == "cumlogsumexp" and x.dtype.kind == "i":
        pytest.skip("the logarithm of sums of exponentials is one of inexact numbers")
    for build in (cumulative(name), cumulative(name, reverse=True)):
        assert_same(lambda library, x, f=build: f(library)(x), minijax, jax, x)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_at_ties_and_zeros(name):
    for x in (np.array([2, 0, 2, 0], np.float32), np.array([np.inf, 1, 0], np.float32)):
        assert_same(
            lambda library, x: library.jacfwd(cumulative(name)(library))(x),
            minijax,
            jax,
            x,
        )


@pytest.mark.parametrize("size", [1, 2, 7])
def test_associative_scan(size):
    rotations = np.random.RandomState(0).randn(size, 2, 2).astype(np.float32)
    shifts = np.arange(size, dtype=np.float32)

    def build(library):
        def combine(left, right):
            product = library.lax.batch_matmul(left["a"], right["a"])
            return {"a": product, "b": library.lax.add(left["b"], right["b"])}

        def scan(a, b):
            tree = {"a": a, "b": b}
            return library.lax.associative_scan(combine, tree, reverse=size == 2)

        return scan

    assert_same_texts(minijax, jax, build, rotations, shifts)
    arrays = minijax.numpy.asarray(rotations), minijax.numpy.asarray(shifts)
    assert_same(lambda library, a, b: build(library)(a, b), minijax, jax, *arrays)


ERRORS = {
    "negative axis": lambda lax: lax.cumsum(X, -1),
    "axis out of range": lambda lax: lax.cumprod(X, 2),
    "booleans": lambda lax: lax.cummax(X > 0),
    "no function": lambda lax: lax.associative_scan(1, X),
    "sizes differ": lambda lax: lax.associative_scan(
        lambda x, y: x, [X, np.ones((3,), np.float32)]
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    def program(library):
        return ERRORS[name](library.lax)

    assert_same(program, minijax, jax)
    with pytest.raises((TypeError, ValueError)):
        program(minijax)
