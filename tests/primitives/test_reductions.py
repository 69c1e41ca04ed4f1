"""Reductions: printed programs, special values, dtypes and errors, against jax."""

import jax
import ml_dtypes
import numpy as np
import pytest

from tests.oracle.oracle import assert_same
from tests.primitives.forms import assert_same_texts

minijax = pytest.importorskip("minijax")

FLOATS = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"]
BITS = ["reduce_and", "reduce_or", "reduce_xor"]
X = np.array([[3, 1, 2], [0, 5, -4]], np.float32)


def reduction(name, axes):
    return lambda library: lambda x: getattr(library.lax, name)(x, axes)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()], ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_texts(name, axes):
    assert_same_texts(minijax, jax, reduction(name, axes), X)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", [*FLOATS, "argmax"])
def test_texts_of_batches(name, axis):
    def build(library):
        if name == "argmax":
            return lambda x: library.lax.argmax(x, 1, np.int32)
        return reduction(name, (1,))(library)

    assert_same_texts(minijax, jax, build, X, in_axes=(axis,))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
@pytest.mark.parametrize("name", BITS)
def test_bits(name, dtype):
    x = np.array([[1, 3, 7], [1, 0, 5]]).astype(dtype)
    assert_same_texts(minijax, jax, reduction(name, (1,)), x, differentiate=False)
    for axes in ((0,), (0, 1), ()):
        assert_same(
            lambda library, x, axes=axes: reduction(name, axes)(library)(x),
            minijax,
            jax,
            x,
        )


SPECIAL = {
    "nan": np.array([1, np.nan, 3], np.float32),
    "infinities": np.array([-np.inf, -np.inf], np.float32),
    "signed zeros": np.array([0.0, -0.0], np.float32),
    "empty": np.zeros((0,), np.float32),
    "empty int8": np.zeros((0,), np.int8),
    "empty uint16": np.zeros((0,), np.uint16),
    "bfloat16": np.array([1, 2, 3], ml_dtypes.bfloat16),
    "float8": np.array([1, 2, 3], ml_dtypes.float8_e4m3fn),
    "complex": np.array([1 + 2j, 1 + 3j, -4j], np.complex64),
    "int8 overflow": np.array([100, 100, 100], np.int8),
    "bool": np.array([True, False]),
}


@pytest.mark.parametrize("case", SPECIAL)
@pytest.mark.parametrize("name", FLOATS)
def test_special_values(name, case):
    def program(library):
        return reduction(name, (0,))(library)(SPECIAL[case])

    if (name, case) == ("reduce_prod", "float8"):
        pytest.skip("XLA on CPUs does not multiply 8-bit floats")
    assert_same(program, minijax, jax)


@pytest.mark.parametrize("case", SPECIAL)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name, case):
    def program(library):
        return getattr(library.lax, name)(SPECIAL[case], 0, np.int32)

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equal_entries(name):
    x = np.array([[2, 2, 1, 1], [np.nan, 3, np.nan, 0]], np.float32)
    for index_dtype in (np.int32, np.uint8):
        assert_same(
            lambda library, x, dtype=index_dtype: getattr(library.lax, name)(
                x, 1, dtype
            ),
            minijax,
            jax,
            x,
        )


def test_weak_types():
    for name in FLOATS:
        assert_same(
            lambda library, name=name: reduction(name, ())(library)(2.0), minijax, jax
        )


def test_the_product_with_zeros_among_the_factors():
    def program(library, x):
        return library.jacrev(reduction("reduce_prod", (0,))(library))(x)

    x = np.array([2, 0, 3, 0, 1], np.float32)
    for factors in (x, x[:3], x[:1], x[:0]):
        assert_same(program, minijax, jax, factors)


def test_equal_extrema_share_the_cotangent():
    x = np.array([1, 7, 7, 7], np.float32)
    gradient = minijax.grad(lambda x: minijax.lax.reduce_max(x, (0,)))(x)
    np.testing.assert_allclose(np.asarray(gradient), [0, 1 / 3, 1 / 3, 1 / 3])


ERRORS = {
    "repeated axis": lambda lax: lax.reduce_sum(X, (0, 0)),
    "axis out of range": lambda lax: lax.reduce_max(X, (2,)),
    "negative axis": lambda lax: lax.reduce_min(X, (-1,)),
    "sum of booleans": lambda lax: lax.reduce_sum(X > 0, (0,)),
    "product of booleans": lambda lax: lax.reduce_prod(X > 0, (0,)),
    "bits of floats": lambda lax: lax.reduce_and(X, (0,)),
    "argmax of nothing": lambda lax: lax.argmax(X[:0], 0, np.int32),
    "argmax along no axis": lambda lax: lax.argmax(X, 2, np.int32),
    "float indices": lambda lax: lax.argmin(X, 0, np.float32),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    def program(library):
        return ERRORS[name](library.lax)

    assert_same(program, minijax, jax)
    with pytest.raises((TypeError, ValueError)):
        program(minijax)
