"""dot_general: printed programs, dtypes, precision and errors, against jax."""

import jax
import ml_dtypes
import numpy as np
import pytest

from tests.oracle.oracle import assert_same
from tests.primitives.forms import assert_same_texts

minijax = pytest.importorskip("minijax")

MATMUL = (((1,), (0,)), ((), ()))
# contraction of two axes in a different order, batch axes in the middle
MIXED = (((1, 3), (3, 0)), ((2,), (1,)))


def numbers(*shape, dtype=np.float32):
    values = np.random.RandomState(len(shape)).randint(-4, 5, shape)
    return values.astype(dtype)


def product(dimension_numbers, **options):
    def build(library):
        return lambda x, y: library.lax.dot_general(x, y, dimension_numbers, **options)

    return build


@pytest.mark.parametrize("in_axes", [None, (0, None), (None, 1), (1, 0)])
def test_texts_of_a_matrix_product(in_axes):
    x, y = numbers(2, 3), numbers(3, 2)
    assert_same_texts(minijax, jax, product(MATMUL), x, y, in_axes=in_axes)


@pytest.mark.parametrize("in_axes", [None, (0, None), (None, 2), (4, 1)])
def test_texts_of_mixed_axes(in_axes):
    x, y = numbers(2, 3, 4, 5), numbers(5, 4, 2, 3)
    assert_same_texts(minijax, jax, product(MIXED), x, y, in_axes=in_axes)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "highest"},
        {"precision": ("high", "default")},
        {"precision": "F32_F32_F32"},
    ],
    ids=str,
)
def test_texts_of_precisions(options):
    x = numbers(2, 3)
    assert_same_texts(minijax, jax, product(MATMUL, **options), x, x.T)


def test_texts_of_a_preferred_element_type():
    x = numbers(2, 3, dtype=ml_dtypes.bfloat16)
    build = product(MATMUL, preferred_element_type=np.float32)
    assert_same_texts(minijax, jax, build, x, x.T)


def test_texts_of_the_functions_around_it():
    x = numbers(2, 3)
    assert_same_texts(minijax, jax, lambda library: library.lax.dot, x, x.T)
    stack = numbers(4, 2, 2)
    assert_same_texts(
        minijax, jax, lambda library: library.lax.batch_matmul, stack, stack
    )


def test_default_matmul_precision_is_in_the_program():
    x = numbers(2, 2)

    def build(library):
        def function(x, y):
            with library.default_matmul_precision("highest"):
                return library.lax.dot(x, y)

        return function

    assert_same_texts(minijax, jax, build, x, x)


PAIRS = [
    ("float32", "float32"),
    ("float16", "float32"),
    ("bfloat16", "float16"),
    ("bfloat16", "bfloat16"),
    ("int32", "int32"),
    ("int8", "int32"),
    ("uint8", "int8"),
    ("int32", "float32"),
    ("float32", "complex64"),
    ("bool", "bool"),
    ("bool", "int32"),
]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_values_and_dtypes(pair):
    def dtype(name):
        return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)

    x, y = numbers(2, 3, dtype=dtype(pair[0])), numbers(3, 2, dtype=dtype(pair[1]))
    assert_same(
        lambda library, x, y: library.lax.dot_general(x, y, MATMUL), minijax, jax, x, y
    )


@pytest.mark.parametrize("preferred", ["float32", "int32", "int8", "uint32"])
@pytest.mark.parametrize("given", ["float32", "int16"])
def test_preferred_element_type(given, preferred):
    def program(library, x):
        return library.lax.dot(x, x, preferred_element_type=np.dtype(preferred))

    assert_same(program, minijax, jax, numbers(2, 2, dtype=given))


@pytest.mark.parametrize(
    "precision",
    ["BF16_BF16_F32", "F32_F32_F32", "BF16_BF16_F32_X3", "F16_F16_F16", "DEFAULT"],
)
def test_algorithms(precision):
    def program(library, x):
        return library.lax.dot(x, x, precision=precision)

    assert_same(program, minijax, jax, numbers(2, 2))


def test_an_algorithm_that_the_cpu_lacks():
    def program(library, x):
        algorithm = library.lax.DotAlgorithm(np.float32, np.float32, np.float32)
        return library.lax.dot(x, x, precision=algorithm)

    assert_same(program, minijax, jax, numbers(2, 2))


BAD = {
    "sizes differ": ((2, 3), (2, 3), MATMUL),
    "axis out of range": ((2, 3), (3, 2), (((2,), (0,)), ((), ()))),
    "negative axis": ((2, 3), (3, 2), (((-1,), (0,)), ((), ()))),
    "repeated contraction": ((2, 2), (2, 2), (((0, 0), (0, 1)), ((), ()))),
    "repeated batch": ((2, 2), (2, 2), (((), ()), ((0, 0), (0, 1)))),
    "batch is contracted": ((2, 2), (2, 2), (((0,), (0,)), ((0,), (0,)))),
    "batch counts differ": ((2, 2), (2, 2), (((), ()), ((0,), ()))),
    "batch sizes differ": ((2, 2), (3, 2), (((1,), (1,)), ((0,), (0,)))),
    "one pair": ((2, 3), (3, 2), ((1,), (0,))),
    "no pair": ((2, 3), (3, 2), 1),
    "fractions": ((2, 3), (3, 2), (((1.5,), (0,)), ((), ()))),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    left, right, dims = BAD[name]

    def program(library):
        x, y = np.ones(left, np.float32), np.ones(right, np.float32)
        return library.lax.dot_general(x, y, dims)

    assert_same(program, minijax, jax)
    named = r"dot_general( requires|: dimension_numbers must be)"
    with pytest.raises((TypeError, ValueError), match=named):
        program(minijax)


def test_errors_of_the_functions_around_it():
    x, y = numbers(2, 3), numbers(2, 2, 3)
    for program in (
        lambda library: library.lax.dot(x, x),
        lambda library: library.lax.dot(x, y),
        lambda library: library.lax.dot(x, x.T, precision="best"),
        lambda library: library.lax.dot(x, x.T, precision=(1, 2)),
        lambda library: library.lax.batch_matmul(x, y),
        lambda library: library.lax.batch_matmul(x[0], x[0]),
        lambda library: library.lax.dot(
            x.astype(np.int32), x.T.astype(np.uint32), preferred_element_type=np.int8
        ),
    ):
        assert_same(program, minijax, jax)


def test_dot_general_without_axes_is_dot():
    def program(library, x, y):
        return library.lax.dot_general(x, y, None)

    assert_same(program, minijax, jax, numbers(2, 3), numbers(3, 4))


def test_precisions_by_name():
    for value in ("highest", "bfloat16", "tensorfloat32", None):
        ours, theirs = minijax.lax.Precision(value), jax.lax.Precision(value)
        assert repr(ours) == repr(theirs)
    names = [preset.name for preset in jax.lax.DotAlgorithmPreset]
    assert [preset.name for preset in minijax.lax.DotAlgorithmPreset] == names
