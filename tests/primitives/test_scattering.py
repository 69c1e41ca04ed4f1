"""The scatters in all their modes, and the NumPy updates that rest on them."""

import re

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax.core import lowering
from tests.backend.reference import reference_eval
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
ONCE = np.array([[2], [0]], np.int32)
TWICE = np.array([[2], [2]], np.int32)
OUTSIDE = np.array([[5], [1]], np.int32)
ROWS = numbers(2, 3) + 0.125
ALL = [
    "scatter",
    "scatter_add",
    "scatter_sub",
    "scatter_mul",
    "scatter_min",
    "scatter_max",
]
unique = {"unique_indices": True}


def rows(name, **options):
    """Rows of a matrix, as `x.at[index]` writes them."""

    def build(lax):
        dims = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return lambda x, i, y: getattr(lax, name)(x, i, y, dims, **options)

    return build


def blocks(name, **options):
    """Blocks of shape (2, 1), whose last axis the updates do not have."""

    def build(lax):
        dims = lax.ScatterDimensionNumbers((0,), (1,), (0, 1))
        return lambda x, i, y: getattr(lax, name)(x, i, y, dims, **options)

    return build


def along(name):
    """One entry of each row: the rows go along with the indices."""

    def build(lax):
        dims = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
        return lambda x, i, y: getattr(lax, name)(x, i, y, dims)

    return build


PAIRS = np.array([[1, 0], [3, 2]], np.int32)
COLUMNS = np.array([[2], [0], [1], [1]], np.int32)
CALLS = [
    *(call(name, rows(name, **unique), X, ONCE, ROWS) for name in ALL),
    call("twice", rows("scatter"), X, TWICE, ROWS[:1].repeat(2, 0)),
    call("add twice", rows("scatter_add"), X, TWICE, ROWS),
    call("sub twice", rows("scatter_sub"), X, TWICE, ROWS),
    call("max twice", rows("scatter_max"), X, TWICE, ROWS),
    call("min of equal ones", rows("scatter_min"), X, TWICE, X[2:3].repeat(2, 0)),
    call("set and drop", rows("scatter", **unique), X, OUTSIDE, ROWS),
    call("set and clip", rows("scatter", mode="clip", **unique), X, OUTSIDE, ROWS),
    call("add and drop", rows("scatter_add", mode="drop"), X, OUTSIDE, ROWS),
    call("add and clip", rows("scatter_add", mode="clip"), X, OUTSIDE, ROWS),
    call("blocks", blocks("scatter_add"), X, PAIRS, numbers(2, 2)),
    call("clipped blocks", blocks("scatter_add", mode="clip"), X, PAIRS, numbers(2, 2)),
    call("along", along("scatter_add"), X, COLUMNS, numbers(4)),
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


BATCHED = ["scatter", "scatter_mul", "add and clip", "clipped blocks", "along"]


@pytest.mark.parametrize("name", BATCHED)
def test_batching(name):
    assert_batches_as_a_loop(CALLS[IDS.index(name)])


@pytest.mark.parametrize("name", ["scatter_sub", "scatter_min", "scatter_max"])
def test_batching_of_all_three(name):
    index = np.array([[1]], np.int32)
    entry = call(name, rows(name), X[:2], index, ROWS[:1], fixed=(0, 2))
    assert_batches_as_a_loop(entry)


def test_the_derivative_follows_the_update_that_stayed():
    # Which one stays is undefined; the derivative must know.
    x, indices = X[:, 0], np.array([[1], [1], [1]], np.int32)
    updates = np.array([5.0, 6.0, 7.0], np.float32)
    dims = minijax.lax.ScatterDimensionNumbers((), (0,), (0,))

    def write(x, updates):
        return minijax.lax.scatter(x, indices, updates, dims)

    out, pull_back = minijax.vjp(write, x, updates)
    x_ct, updates_ct = pull_back(minijax.numpy.arange(1.0, 5.0))
    np.testing.assert_array_equal(x_ct, [1, 0, 3, 4])
    np.testing.assert_array_equal(updates_ct, np.where(updates == out[1], 2, 0))


DTYPES = ["bool", "int8", "uint16", "int32", ml_dtypes.bfloat16, "complex64"]
NUMBERS = DTYPES[1:]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_dtypes(dtype):
    names = ALL if dtype in NUMBERS else ["scatter", "scatter_min", "scatter_max"]
    if dtype == "complex64":
        names = ALL[:4]
    for name in names:
        entry = call(name, rows(name), X.astype(dtype), ONCE, ROWS.astype(dtype))
        assert_means_what_xla_does(entry)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32"])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_dtypes_of_indices(dtype, mode):
    indices = np.array([[3], [4]], dtype)
    entry = call("rows", rows("scatter_add", mode=mode), X, indices, ROWS)
    assert_means_what_xla_does(entry)
    assert_same_values(entry)


UPDATES = {
    "set": lambda x, i, y: x.at[i].set(y),
    "set scalar": lambda x, i, y: x.at[i[0]].set(2.0),
    "set slice": lambda x, i, y: x.at[1:3].set(y),
    "add": lambda x, i, y: x.at[i].add(y),
    "subtract": lambda x, i, y: x.at[i].subtract(y),
    "multiply": lambda x, i, y: x.at[i].multiply(y, unique_indices=True),
    "divide": lambda x, i, y: x.at[i].divide(y, unique_indices=True),
    "power": lambda x, i, y: x.at[i].power(2.0, unique_indices=True),
    "min": lambda x, i, y: x.at[i].min(y),
    "max": lambda x, i, y: x.at[i].max(y),
    "clip": lambda x, i, y: x.at[i].add(y, mode="clip"),
    "column": lambda x, i, y: x.at[:, 1].add(1.0),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name):
    index = np.array([2, -1], np.int32)
    x = minijax.numpy.asarray(X)

    def function(library):
        return UPDATES[name]

    def gradients(library):
        return library.grad(
            lambda x, i, y: (UPDATES[name](x, i, y) ** 2).sum(), argnums=(0, 2)
        )

    def batch(library):
        return library.vmap(UPDATES[name], in_axes=(None, 0, None))

    assert_prints_the_same(function, (x, index, ROWS))
    assert_prints_the_same(gradients, (X, index, ROWS))
    if name not in ("set slice", "column"):
        assert_prints_the_same(batch, (X, np.stack([index, index]), ROWS))
    assert_same(lambda library, x: UPDATES[name](x, index, ROWS), minijax, jax, x)


def test_apply():
    index = np.array([2, 2], np.int32)
    x = minijax.numpy.asarray(X)

    def function(library):
        return lambda x, i: x.at[i].apply(library.numpy.sin)

    assert_prints_the_same(function, (x, index))
    assert_same(lambda library, x: function(library)(x, index), minijax, jax, x)
    assert_same_error(
        lambda library: library.grad(lambda x: function(library)(x, index).sum())(X)
    )
    entry = call(
        "apply",
        lambda lax: (
            lambda x, i: lax.scatter_apply(
                x,
                i,
                lambda entry: lax.mul(entry, entry),
                lax.ScatterDimensionNumbers((1,), (0,), (0,)),
                update_shape=(2, 3),
            )
        ),
        X,
        TWICE,
    )
    assert_means_what_xla_does(entry)
    assert_same_values(entry)


def test_apply_must_not_close_over_tracers():
    def program(library):
        lax = library.lax
        dims = lax.ScatterDimensionNumbers((), (0,), (0,))

        def function(x, scale):
            return lax.scatter_apply(x, ONCE[0], lambda v: v * scale, dims)

        return library.make_jaxpr(function)(X[:, 0], 2.0)

    assert_same_error(program)


def test_apply_of_one_function_is_traced_once():
    traces = []
    dims = minijax.lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def double(entry):
        traces.append(entry)
        return entry + entry

    for _ in range(3):
        minijax.lax.scatter_apply(X, ONCE, double, dims, update_shape=(2, 3))
    assert len(traces) == 1


def test_repeated_products_have_no_derivative_by_the_updates():
    assert_same_error(
        lambda library: library.grad(
            lambda y: rows("scatter_mul")(library.lax)(X, ONCE, y).sum()
        )(ROWS)
    )


def test_keys_are_scattered_with_their_bits():
    def program(library):
        keys = library.random.split(library.random.key(0), 4)
        dims = library.lax.ScatterDimensionNumbers((), (0,), (0,))
        return [
            library.random.key_data(
                library.lax.scatter(keys, indices, keys[:2], dims, mode=mode)
            )
            for mode, indices in (("clip", OUTSIDE), ("drop", OUTSIDE), (None, ONCE))
        ]

    assert_same(program, minijax, jax)


def test_weak_types():
    def program(library):
        weak = library.numpy.asarray(2.0)
        dims = library.lax.ScatterDimensionNumbers((), (), ())
        empty = np.zeros((0,), np.int32)
        one = np.float32(1)
        return [
            getattr(library.lax, name)(first, empty, second, dims)
            for name in ("scatter", "scatter_add")
            for first, second in ((weak, one), (one, weak))
        ]

    assert_same(program, minijax, jax)


def wrong(window, inserted, index_map, batching=(), along=(), x=X, i=ONCE, y=ROWS):
    def program(library):
        lax = library.lax
        dims = lax.ScatterDimensionNumbers(window, inserted, index_map, batching, along)
        return library.make_jaxpr(lambda x: lax.scatter_add(x, i, y, dims))(x)

    return program


ERRORS = {
    "scalar indices": wrong((0,), (0,), (0,), i=np.int32(1), y=ROWS[0]),
    "float indices": wrong((1,), (0,), (0,), i=ONCE.astype(float)),
    "dtypes differ": wrong((1,), (0,), (0,), y=ROWS.astype(np.float16)),
    "rank of updates": wrong((1,), (0,), (0,), y=ROWS[0]),
    "window out of range": wrong((2,), (0,), (0,)),
    "window not sorted": wrong((1, 0), (), (0,), y=ROWS[None]),
    "window repeats": wrong((1, 1), (), (0,), y=ROWS[None]),
    "inserted out of range": wrong((1,), (2,), (0,)),
    "inserted and batching": wrong((1,), (0,), (1,), (0,), (0,)),
    "index map too long": wrong((1,), (0,), (0, 1)),
    "index map out of range": wrong((1,), (0,), (2,)),
    "index map repeats": wrong((1,), (0,), (0, 0), i=PAIRS),
    "index map and batching": wrong((1,), (), (0,), (0,), (0,)),
    "batching of index vectors": wrong((), (1,), (1,), (0,), (1,), y=ROWS[:, 0]),
    "batching counts": wrong((), (1,), (1,), (0,), (), y=ROWS[:, 0]),
    "batching sizes": wrong((), (1,), (1,), (0,), (0,), y=ROWS[:, 0]),
    "axes left over": wrong((1,), (), (0,)),
    "updates too wide": wrong((1,), (0,), (0,), y=numbers(2, 4)),
    "too few updates": wrong((1,), (0,), (0,), y=ROWS[:1]),
    "unknown mode": lambda library: rows("scatter", mode="wrap")(library.lax)(
        X, ONCE, ROWS
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    assert_same_error(ERRORS[name])


@pytest.mark.parametrize("name", ["scatter_add", "scatter_sub"])
def test_complex128_is_summed_by_parts_on_cuda(name):
    """XLA for CUDA compiles no sum of 128 bits; here its program is interpreted."""
    with minijax.enable_x64(True):
        x = numbers(4, 3, dtype=np.complex128)
        y = 1j * numbers(2, 3, dtype=np.complex128)
        function = rows(name)(minijax.lax)
        closed = minijax.make_jaxpr(function)(x, TWICE, y)
        lowered = lowering.lower_to_module(closed, name, "cuda")
        expected = np.asarray(function(x, TWICE, y))
        with lowered.context:
            (out,) = reference_eval(lowered.module, [x, TWICE, y])
    np.testing.assert_array_equal(out, expected)
    scatters = lowered.text().split('"stablehlo.scatter"')[1:]
    assert len(scatters) == 2
    assert all("-> tensor<4x3xf64>" in text for text in scatters)


def test_a_shared_combination_has_the_line_of_each_scatter() -> None:
    """`mul` of two scalars is traced once; its line is that of the scatter."""

    def first(x):
        return x.at[1].multiply(3.0)

    def second(x):
        return x.at[1].multiply(2.0)

    x = np.ones((3, 4), np.float32)
    lines = set()
    for function in (first, second):
        text = minijax.jit(function).lower(x).as_text(debug_info=True)
        lines.add(frozenset(re.findall(r'test_scattering.py":(\d+)', text)))
        assert "scatter-mul/mul" in text
    at = [function.__code__.co_firstlineno + 1 for function in (first, second)]
    one, other = (next(each for each in lines if str(line) in each) for line in at)
    assert str(at[1]) not in one and str(at[0]) not in other
