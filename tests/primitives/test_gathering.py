"""gather in all its modes, and the NumPy indexing that rests on it."""

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

X = numbers(4, 3)
ROWS = np.array([[2], [0], [2]], np.int32)
OUTSIDE = np.array([[5], [1], [-7]], np.int32)
PAIRS = np.array([[1, 0], [3, 2]], np.int32)


def rows(**options):
    """Rows of a matrix, as `x[index]` reads them."""

    def build(lax):
        dims = lax.GatherDimensionNumbers((1,), (0,), (0,))
        return lambda x, i: lax.gather(x, i, dims, (1, 3), **options)

    return build


def blocks(**options):
    """Blocks of shape (2, 1), their last axis left out, first in the result."""

    def build(lax):
        dims = lax.GatherDimensionNumbers((0,), (1,), (0, 1))
        return lambda x, i: lax.gather(x, i, dims, (2, 1), **options)

    return build


def along(lax):
    """One entry of each row: the rows go along with the indices."""
    dims = lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    return lambda x, i: lax.gather(x, i, dims, (1, 1))


CALLS = [
    call("rows", rows(), X, ROWS),
    call("rows in order", rows(indices_are_sorted=True), X, ROWS[1:]),
    call("rows once", rows(unique_indices=True), X, ROWS[:2]),
    call("clipped rows", rows(mode="clip"), X, OUTSIDE),
    call("filled rows", rows(mode="fill"), X, OUTSIDE),
    call("rows filled with 7", rows(mode="fill", fill_value=7.0), X, OUTSIDE),
    call("blocks", blocks(mode="clip"), X, PAIRS),
    call("filled blocks", blocks(mode="fill"), X, PAIRS),
    call("along", along, X, np.array([[2], [0], [1], [1]], np.int32)),
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


DTYPES = ["bool", "int8", "uint16", "int32", ml_dtypes.bfloat16, "complex64"]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_fill_values_of_dtypes(dtype):
    entry = call("fill", rows(mode="fill"), X.astype(dtype), OUTSIDE)
    assert_means_what_xla_does(entry)
    assert_same_values(entry)
    assert_prints_the_same(entry.function, entry.args)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32"])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_dtypes_of_indices(dtype, mode):
    entry = call("rows", rows(mode=mode), X, np.array([[3], [0], [4]], dtype))
    assert_means_what_xla_does(entry)
    assert_same_values(entry)


def test_nothing_to_gather():
    for indices in (ROWS[:0], ROWS):
        entry = call("rows", rows(mode="fill"), X[:, :3], indices)
        assert_same_values(entry)
    dims = lambda lax: lax.GatherDimensionNumbers((1,), (), (0,))  # noqa: E731
    entry = call(
        "of no width",
        lambda lax: lambda x, i: lax.gather(x, i, dims(lax), (0,)),
        X[:, 0],
        ROWS,
    )
    assert_means_what_xla_does(entry)


INDEXING = {
    "integer": lambda x, i: x[i[0]],
    "negative integer": lambda x, i: x[-1],
    "slice": lambda x, i: x[1:3],
    "reversed": lambda x, i: x[::-1, 1],
    "array": lambda x, i: x[i],
    "column": lambda x, i: x[:, i],
    "two arrays": lambda x, i: x[i, i],
    "mixed": lambda x, i: x[1:, i, None],
    "filled": lambda x, i: x.at[i].get(mode="fill", fill_value=-1),
    "clipped": lambda x, i: x.at[i].get(mode="clip"),
}


@pytest.mark.parametrize("name", INDEXING)
def test_indexing(name):
    index = np.array([2, -1], np.int32)

    def function(library):
        return INDEXING[name]

    def gradient(library):
        return library.grad(lambda x, i: (INDEXING[name](x, i) ** 2).sum())

    def batch(library):
        return library.vmap(INDEXING[name], in_axes=(None, 0))

    assert_prints_the_same(function, (X, index))
    assert_prints_the_same(gradient, (X, index))
    if name not in ("negative integer", "slice", "reversed"):
        assert_prints_the_same(batch, (X, np.stack([index, index])))
    assert_same(
        lambda library, x: INDEXING[name](x, index), minijax, jax, minijax_array(X)
    )


def minijax_array(x):
    return minijax.numpy.asarray(x)


def test_second_derivatives_go_through_gather_and_scatter():
    def hessian(library):
        return library.hessian(lambda x: (x[np.array([0, 2, 0])] ** 3).sum())

    assert_same(lambda library: hessian(library)(X[:, 0]), minijax, jax)


def test_index_take():
    def program(library):
        rows = library.numpy.array([1, -1])
        columns = library.numpy.array([2, 5])
        return (
            library.lax.index_take(X, (rows,), (0,)),
            library.lax.index_take(X, (rows, columns), (0, 1)),
        )

    assert_same(program, minijax, jax)


def test_keys_are_gathered_with_their_bits():
    def program(library):
        keys = library.random.split(library.random.key(0), 4)
        dims = library.lax.GatherDimensionNumbers((), (0,), (0,))
        return [
            library.random.key_data(
                library.lax.gather(keys, indices, dims, (1,), mode=mode)
            )
            for mode, indices in (("clip", OUTSIDE), (None, ROWS))
        ]

    assert_same(program, minijax, jax)


def test_modes_from_names():
    ours, theirs = minijax.lax.GatherScatterMode, jax.lax.GatherScatterMode
    for name in (None, "clip", "fill", "drop", "promise_in_bounds", "one_hot"):
        assert str(ours.from_any(name)) == str(theirs.from_any(name))
    assert ours.from_any(ours.CLIP) is ours.CLIP
    with pytest.raises(ValueError, match='Unknown gather mode "wrap"'):
        ours.from_any("wrap")


def wrong(offset, collapsed, index_map, batching=(), along=(), sizes=(1, 3), i=ROWS):
    def program(library):
        lax = library.lax
        dims = lax.GatherDimensionNumbers(offset, collapsed, index_map, batching, along)
        return library.make_jaxpr(lambda x: lax.gather(x, i, dims, sizes))(X)

    return program


ERRORS = {
    "scalar indices": wrong((0,), (0,), (0,), i=np.int32(1)),
    "float indices": wrong((1,), (0,), (0,), i=ROWS.astype(float)),
    "offset out of range": wrong((2,), (0,), (0,)),
    "offsets not sorted": wrong((1, 0), (), (0,)),
    "offsets repeat": wrong((1, 1), (), (0,)),
    "index map too long": wrong((1,), (0,), (0, 1)),
    "index map out of range": wrong((1,), (0,), (2,)),
    "index map repeats": wrong((1,), (0,), (0, 0), i=PAIRS),
    "collapsed out of range": wrong((1,), (2,), (0,)),
    "collapsed not sorted": wrong((), (1, 0), (0,)),
    "collapsed and batching": wrong((1,), (0,), (1,), (0,), (0,)),
    "index map and batching": wrong((1,), (), (0,), (0,), (0,)),
    "batching of index vectors": wrong((), (1,), (1,), (0,), (1,)),
    "batching counts": wrong((), (1,), (1,), (0,), ()),
    "batching sizes": wrong((), (1,), (1,), (0,), (0,), sizes=(1, 1)),
    "slice size count": wrong((1,), (0,), (0,), sizes=(1,)),
    "slice too large": wrong((1,), (0,), (0,), sizes=(1, 4)),
    "negative slice": wrong((1,), (0,), (0,), sizes=(1, -1)),
    "collapsed not 1": wrong((1,), (0,), (0,), sizes=(2, 3)),
    "axes left over": wrong((1,), (), (0,), sizes=(1, 3)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    assert_same_error(ERRORS[name])
