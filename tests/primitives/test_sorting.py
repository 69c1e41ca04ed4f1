"""Sorting: printed programs, order of special values, several keys, errors."""

import jax
import ml_dtypes
import numpy as np
import pytest

from tests.oracle.oracle import assert_same
from tests.primitives.forms import assert_same_texts

minijax = pytest.importorskip("minijax")

X = np.array([[3, 1, 2], [0, 5, -4]], np.float32)
Y = np.array([[1, 1, 0], [2, 2, 2]], np.float32)

CALLS = {
    "sort": lambda lax: lambda x, y: lax.sort(x),
    "sort unstable": lambda lax: lambda x, y: lax.sort(x, 0, is_stable=False),
    "sort by one key": lambda lax: lambda x, y: lax.sort((y, x)),
    "sort by two keys": lambda lax: lambda x, y: lax.sort([y, x], 1, num_keys=2),
    "sort_key_val": lambda lax: lambda x, y: lax.sort_key_val(x, y, 0),
    "top_k": lambda lax: lambda x, y: lax.top_k(x, 2)[0],
    "top_k along axis 0": lambda lax: lambda x, y: lax.top_k(x, 1, axis=0)[0],
}
# Their derivatives gather with `take_along_axis` in jax, which is printed otherwise.
APPROXIMATE = {
    "approx_max_k": lambda lax: lambda x, y: lax.approx_max_k(x, 2),
    "approx_min_k": lambda lax: lambda x, y: lax.approx_min_k(x, 1, 0, 0.8),
}


@pytest.mark.parametrize("name", CALLS)
def test_texts(name):
    def build(library):
        return CALLS[name](library.lax)

    assert_same_texts(minijax, jax, build, X, Y)
    for in_axes in ((0, 1), (2, None), (None, 1)):
        assert_same_texts(minijax, jax, build, X, Y, in_axes=in_axes)


@pytest.mark.parametrize("name", APPROXIMATE)
def test_texts_of_approximations(name):
    ours, theirs = (
        str(library.make_jaxpr(APPROXIMATE[name](library.lax))(X, Y))
        for library in (minijax, jax)
    )
    assert ours == theirs


@pytest.mark.parametrize("name", [*CALLS, *APPROXIMATE])
def test_values(name):
    call = {**CALLS, **APPROXIMATE}[name]
    assert_same(lambda library, x, y: call(library.lax)(x, y), minijax, jax, X, Y)


SPECIAL = {
    "float32": np.array([np.nan, -0.0, 0.0, np.inf, -np.nan, -np.inf, 1], np.float32),
    "bfloat16": np.array([2, -1, 0.5], ml_dtypes.bfloat16),
    "complex": np.array([1 + 2j, 1 - 2j, 0, np.nan, 1j], np.complex64),
    "int8": np.array([3, -128, 127, 0], np.int8),
    "uint8": np.array([3, 200, 127, 0], np.uint8),
    "bool": np.array([True, False, True]),
    "empty": np.zeros((0,), np.float32),
}


@pytest.mark.parametrize("case", SPECIAL)
def test_the_order_of_special_values(case):
    x = SPECIAL[case]
    places = np.arange(x.size, dtype=np.int32)

    def program(library, x):
        return library.lax.sort((x, places)), library.lax.sort(x)

    assert_same(program, minijax, jax, x)


@pytest.mark.parametrize("case", SPECIAL)
def test_top_k_of_special_values(case):
    x = SPECIAL[case]
    k = min(3, x.size)
    assert_same(lambda library, x: library.lax.top_k(x, k), minijax, jax, x)


def test_a_stable_sort_keeps_the_order_of_equal_keys():
    keys = np.array([0.0, 1, -0.0, 1, 0.0], np.float32)
    places = np.arange(5, dtype=np.int32)
    _, order = minijax.lax.sort_key_val(keys, places)
    assert np.asarray(order).tolist() == [0, 2, 4, 1, 3]


ERRORS = {
    "no operands": lambda lax: lax.sort([]),
    "shapes differ": lambda lax: lax.sort((X, X[0])),
    "too many keys": lambda lax: lax.sort((X, Y), num_keys=3),
    "no keys": lambda lax: lax.sort((X, Y), num_keys=0),
    "two keys of one operand": lambda lax: lax.sort(minijax_array(lax, X), num_keys=2),
    "axis out of range": lambda lax: lax.sort((X, Y), dimension=2),
    "k is negative": lambda lax: lax.top_k(X, -1),
    "k is too large": lambda lax: lax.top_k(X, 4),
    "complex top_k": lambda lax: lax.top_k(X + 1j, 1),
    "scalar top_k": lambda lax: lax.top_k(1.0, 0),
    "approximate k of 0": lambda lax: lax.approx_max_k(X, 0),
    "approximate k is too large": lambda lax: lax.approx_min_k(X, 4),
    "scalar approx_max_k": lambda lax: lax.approx_max_k(1.0, 1),
    "integers of approx_max_k": lambda lax: lax.approx_max_k(X.astype(int), 1),
}


def minijax_array(lax, x):
    return lax.convert_element_type(x, np.float32)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    def program(library):
        return ERRORS[name](library.lax)

    assert_same(program, minijax, jax)
    with pytest.raises((TypeError, ValueError)):
        program(minijax)


@pytest.mark.parametrize("recall", [0.5, 0.95, 1.0])
def test_approximations_that_are_not_cut_to_k(recall):
    # Also of parts: an axis of 4000 in all changes how many a TPU would look through.
    x = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    for options in ({}, {"reduction_input_size_override": 4000}):
        options = {"recall_target": recall, "aggregate_to_topk": False, **options}
        assert_same(
            lambda library, x: library.lax.approx_max_k(x, 5, **options),
            minijax,
            jax,
            x,
        )
