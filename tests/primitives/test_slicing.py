"""slice, dynamic_slice, dynamic_update_slice, and the functions along one axis."""

import jax
import ml_dtypes
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

X = numbers(3, 4)
ONE, LAST = np.int32(1), np.int32(-2)

CALLS = [
    call("slice", lambda lax: lambda x: lax.slice(x, (1, 0), (3, 2)), X),
    call("strided", lambda lax: lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), X),
    call("long stride", lambda lax: lambda x: lax.slice(x, (0, 0), (1, 4), (1, 9)), X),
    call("empty", lambda lax: lambda x: lax.slice(x, (1, 2), (3, 2), (1, 2)), X),
    call("in_dim", lambda lax: lambda x: lax.slice_in_dim(x, -3, -1, 1, 1), X),
    call("index", lambda lax: lambda x: lax.index_in_dim(x, -1, 1, False), X),
    call(
        "dynamic",
        lambda lax: lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)),
        X,
        ONE,
        LAST,
    ),
    call(
        "dynamic start 0",
        lambda lax: lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 2)),
        X,
        ONE,
    ),
    call(
        "dynamic start out of bounds",
        lambda lax: lambda x, i: lax.dynamic_slice(x, (i, i), (2, 4)),
        X,
        np.int32(9),
    ),
    call(
        "dynamic in_dim",
        lambda lax: lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1),
        X,
        ONE,
    ),
    call(
        "dynamic without negative starts",
        lambda lax: (
            lambda x, i: lax.dynamic_slice(
                x, (i, 1), (1, 2), allow_negative_indices=False
            )
        ),
        X,
        ONE,
    ),
    call(
        "update",
        lambda lax: lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 1)),
        X,
        X[:2, :2] + 1,
        ONE,
    ),
    call(
        "update in_dim",
        lambda lax: lambda x, y, i: lax.dynamic_update_slice_in_dim(x, y, i, 1),
        X,
        X[:, :1] + 1,
        LAST,
    ),
]
each_call = pytest.mark.parametrize("entry", CALLS, ids=[c.name for c in CALLS])


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


DTYPES = ["bool", "int8", "uint16", "float16", ml_dtypes.bfloat16, "complex64"]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_dtypes(dtype):
    x = X.astype(dtype)
    for entry in (
        call("slice", lambda lax: lambda x: lax.slice(x, (1, 0), (3, 3), (1, 2)), x),
        call(
            "read",
            lambda lax: lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)),
            x,
            ONE,
        ),
        call(
            "write",
            lambda lax: lambda x, i: lax.dynamic_update_slice(x, x[:1], (i, 0)),
            x,
            ONE,
        ),
    ):
        assert_means_what_xla_does(entry)


INDICES = {
    "negative int": lambda i: (-1, -2),
    "numpy scalars": lambda i: (np.int32(1), np.int32(-1)),
    "numpy array of no axes": lambda i: (np.array(1, np.int32), 0),
    "unsigned": lambda i: (i.astype("uint8"), np.uint8(1)),
    "int8": lambda i: (i.astype("int8"), np.int8(1)),
    "vector": lambda i: np.array([1, -1], np.int32),
    "mixed": lambda i: (i, -1),
}


@pytest.mark.parametrize("name", INDICES)
def test_kinds_of_starts(name):
    def read(library):
        return lambda x, i: library.lax.dynamic_slice(x, INDICES[name](i), (1, 2))

    def write(library):
        return lambda x, i: library.lax.dynamic_update_slice(
            x, x[:1, :2], INDICES[name](i)
        )

    for make in (read, write):
        assert_prints_the_same(make, (X, ONE))
        assert_same(lambda library, x, i: make(library)(x, i), minijax, jax, X, ONE)


def test_a_traced_vector_of_starts():
    def make(library):
        return lambda x, i: library.lax.dynamic_slice(x, i, (1, 2))

    assert_prints_the_same(make, (X, np.array([1, -1], np.int32)))


def test_a_start_that_is_a_python_int_argument_becomes_strong():
    def make(library):
        return lambda x, i: library.lax.dynamic_slice_in_dim(x, i, 1)

    assert_prints_the_same(make, (X, -1))


@pytest.mark.parametrize("keepdims", [True, False])
def test_dynamic_index_in_dim_is_a_program_of_its_own(keepdims):
    def read(library):
        return lambda x, i: library.lax.dynamic_index_in_dim(x, i, 1, keepdims)

    assert_prints_the_same(read, (X, ONE))
    assert_same(lambda library: read(library)(X, -1), minijax, jax)


@pytest.mark.parametrize("row", [X[0], X[:1]], ids=["without axis", "with axis"])
def test_dynamic_update_index_in_dim_is_a_program_of_its_own(row):
    def write(library):
        return lambda x, y, i: library.lax.dynamic_update_index_in_dim(x, y + 1, i, 0)

    assert_prints_the_same(write, (X, row, ONE))
    assert_same(lambda library: write(library)(X, row, -1), minijax, jax)


def test_eager_starts_of_one_size_share_a_program():
    x = minijax.numpy.asarray(X)
    minijax.lax.slice(x, (0, 0), (1, 2))
    before = len(minijax.lax.dynamic_slice_p.executables)
    for start in range(3):
        out = minijax.lax.slice(x, (start, 1), (start + 1, 3))
        np.testing.assert_array_equal(out, X[start : start + 1, 1:3])
    assert len(minijax.lax.dynamic_slice_p.executables) == before


def test_weak_types():
    def programs(library):
        weak = library.numpy.asarray(2.0)
        return [
            library.lax.dynamic_slice(weak, (), ()),
            library.lax.dynamic_update_slice(weak, weak, ()),
            library.lax.slice(weak, (), ()),
        ]

    assert_same(programs, minijax, jax)


ERRORS = {
    "start count": lambda lax: lax.slice(X, (0,), (1, 1)),
    "limit count": lambda lax: lax.slice(X, (0, 0), (1,)),
    "limit too large": lambda lax: lax.slice(X, (0, 0), (4, 1)),
    "negative start": lambda lax: lax.slice(X, (-1, 0), (2, 1)),
    "limit below start": lambda lax: lax.slice(X, (2, 0), (1, 1)),
    "stride count": lambda lax: lax.slice(X, (0, 0), (1, 1), (1,)),
    "negative stride": lambda lax: lax.slice(X, (0, 0), (1, 1), (1, -1)),
    "float start": lambda lax: lax.slice(X, (0.5, 0), (1, 1), (1, 1)),
    "traced start": lambda lax: lax.slice(X, (lax.add(1, 1), 0), (3, 1)),
    "no such index": lambda lax: lax.index_in_dim(X, 3),
    "dynamic start count": lambda lax: lax.dynamic_slice(X, (0,), (1, 1)),
    "dynamic matrix": lambda lax: lax.dynamic_slice(X, np.zeros((2, 1), int), (1, 1)),
    "dynamic size": lambda lax: lax.dynamic_slice(X, (0, 0), (4, 1)),
    "dynamic negative size": lambda lax: lax.dynamic_slice(X, (0, 0), (-1, 1)),
    "dynamic float start": lambda lax: lax.dynamic_slice(X, (0.0, 0.0), (1, 1)),
    "dynamic mixed dtypes": lambda lax: lax.dynamic_slice(
        X, (np.int32(0), np.int8(0)), (1, 1)
    ),
    "negative not allowed": lambda lax: lax.dynamic_slice(
        X, (-1, 0), (1, 1), allow_negative_indices=False
    ),
    "update rank": lambda lax: lax.dynamic_update_slice(X, X[0], (0, 0)),
    "update size": lambda lax: lax.dynamic_update_slice(X[:2], X, (0, 0)),
    "update dtype": lambda lax: lax.dynamic_update_slice(X, X.astype(int), (0, 0)),
    "update start count": lambda lax: lax.dynamic_update_slice(X, X, (0,)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    assert_same_error(
        lambda library: library.make_jaxpr(lambda: ERRORS[name](library.lax))()
    )


def test_eager_slices_are_checked_too():
    # JAX runs them as dynamic slices, which move a block that sticks out.
    with pytest.raises(TypeError, match="limit_indices must be less than or equal"):
        minijax.lax.slice(X, (2, 0), (4, 2))


def test_messages_say_what_to_write():
    with pytest.raises(TypeError, match=r"slice_in_dim"):
        minijax.lax.slice(X, (-1, 0), (2, 1))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0"):
        minijax.lax.index_in_dim(X, 3)
    with pytest.raises(TypeError, match="lax.dynamic_slice"):
        minijax.jit(lambda x, i: minijax.lax.slice(x, (i, 0), (1, 1)))(X, 1)


def test_keys_are_sliced_with_their_bits():
    def programs(library):
        keys = library.random.split(library.random.key(0), 4)
        zero = library.numpy.int32(0)
        return [
            library.random.key_data(out)
            for out in (
                library.lax.slice(keys, (1,), (3,)),
                library.lax.slice(keys, (0,), (4,), (2,)),
                library.lax.dynamic_slice(keys, (2 + zero,), (2,)),
                library.lax.dynamic_update_slice(keys, keys[:2], (1 + zero,)),
            )
        ]

    assert_same(programs, minijax, jax)
