"""ragged_dot: programs, values, derivatives and batches, against jax and loops."""

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same, value_difference
from tests.primitives.forms import assert_same_texts

minijax = pytest.importorskip("minijax")

SIZES = np.array([2, 0, 3], np.int32)
LHS = np.random.RandomState(0).randn(6, 2).astype(np.float32)
RHS = np.random.RandomState(1).randn(3, 2, 4).astype(np.float32)


def numbers(library, contract, batch, ragged, group):
    return library.lax.RaggedDotDimensionNumbers((contract, batch), ragged, group)


# name: (shapes, sizes, the dimension numbers)
MODES = {
    "kept": ((6, 2), (3, 2, 4), SIZES, (([1], [1]), ([], []), [0], [0])),
    "kept, batched": (
        (2, 6, 2),
        (2, 3, 2, 4),
        np.array([[1, 2, 3], [4, 0, 1]], np.int32),
        (([2], [2]), ([0], [0]), [1], [1]),
    ),
    "kept, an axis outside": (
        (2, 6, 5),
        (5, 3, 4),
        SIZES,
        (([2], [0]), ([], []), [1], [1]),
    ),
    "contracted": ((2, 6), (6, 4), SIZES, (([1], [0]), ([], []), [1], [])),
    "contracted, batched": (
        (6, 3, 2),
        (3, 6, 4),
        SIZES,
        (([0], [1]), ([1], [0]), [0], []),
    ),
    "batch": ((6, 2, 3), (6, 3, 4), SIZES, (([2], [1]), ([0], [0]), [0], [])),
}


def build(name):
    *_, dims = MODES[name]

    def for_library(library):
        def function(x, y, sizes):
            return library.lax.ragged_dot_general(x, y, sizes, numbers(library, *dims))

        return function

    return for_library


def operands(name):
    left, right, sizes, _ = MODES[name]
    random = np.random.RandomState(3)
    return random.randn(*left), random.randn(*right), sizes


@pytest.mark.parametrize("name", MODES)
def test_values(name):
    x, y, sizes = operands(name)
    args = (x.astype(np.float32), y.astype(np.float32), sizes)
    assert_same(lambda library, *args: build(name)(library)(*args), minijax, jax, *args)
    assert_same_texts(minijax, jax, build(name), *args, differentiate=False)


@pytest.mark.parametrize("dtypes", [(np.float32, np.float32), (np.int8, np.float32)])
def test_tpus_get_an_instruction_of_their_own(dtypes):
    from minijax.core import lowering

    x, y = LHS.astype(dtypes[0]), RHS.astype(dtypes[1])
    jaxpr = minijax.make_jaxpr(minijax.lax.ragged_dot)(x, y, SIZES)
    ours = lowering.lower_to_module(jaxpr, "ragged_dot", "tpu").text()
    traced = jax.jit(jax.lax.ragged_dot).trace(x, y, SIZES)
    theirs = traced.lower(lowering_platforms=("tpu",)).as_text()

    def operations(text):
        lines = [line.strip() for line in text.splitlines()]
        return [line.split(" : ")[0] for line in lines if line.startswith("%")]

    assert operations(ours) == operations(theirs)
    assert any("ragged_dot" in line for line in operations(ours))


@pytest.mark.parametrize("name", MODES)
def test_the_meaning_in_numpy(name):
    args = operands(name)
    primitive = minijax.core.language.primitive_named("ragged_dot_general")
    with minijax.enable_x64(True):
        jaxpr = minijax.make_jaxpr(build(name)(minijax))(*args)
        (eqn,) = jaxpr.eqns
        out = build(name)(minijax)(*args)
    meant = primitive.meaning(*args, **eqn.params)
    assert value_difference(np.asarray(out), meant) is None


def loss(library):
    def function(x, y):
        return library.lax.ragged_dot(x, y, SIZES)

    return function


def test_derivatives():
    assert_same_texts(minijax, jax, loss, LHS, RHS)

    def program(library, x, y):
        return library.vjp(loss(library), x, y)[1](np.ones((6, 4), np.float32))

    assert_same(program, minijax, jax, LHS, RHS)


@pytest.mark.parametrize("name", MODES)
def test_derivatives_of_every_mode(name):
    """A bilinear function: each vjp is the transpose of the other's product."""
    x, y, sizes = operands(name)
    random = np.random.RandomState(4)
    with minijax.enable_x64(True):
        function = build(name)(minijax)
        out, pull = minijax.vjp(lambda x, y: function(x, y, sizes), x, y)
        ct, dx, dy = (random.randn(*a.shape) for a in (out, x, y))
        x_bar, y_bar = pull(ct)
        by_x = np.sum(np.asarray(function(dx, y, sizes)) * ct)
        by_y = np.sum(np.asarray(function(x, dy, sizes)) * ct)
        assert x_bar.shape == x.shape
        assert y_bar.shape == y.shape
    np.testing.assert_allclose(np.sum(np.asarray(x_bar) * dx), by_x, rtol=1e-9)
    np.testing.assert_allclose(np.sum(np.asarray(y_bar) * dy), by_y, rtol=1e-9)


def test_rows_after_the_last_group_are_zero():
    out = np.asarray(minijax.lax.ragged_dot(LHS, RHS, SIZES))
    np.testing.assert_allclose(out[:2], LHS[:2] @ RHS[0], rtol=1e-5)
    np.testing.assert_allclose(out[2:5], LHS[2:5] @ RHS[2], rtol=1e-5)
    assert not out[5:].any()


@pytest.mark.parametrize("in_axes", [(0, 0, 0), (1, None, None), (None, 2, 1)], ids=str)
@pytest.mark.parametrize("name", ["kept", "contracted", "kept, an axis outside"])
def test_batches_against_a_loop(name, in_axes):
    examples = []
    for seed in range(2):
        x, y, sizes = (a if a.dtype == np.int32 else a + seed for a in operands(name))
        examples.append((x, y, np.roll(sizes, seed)))
    chosen = [
        [examples[0 if axis is None else k][i] for i, axis in enumerate(in_axes)]
        for k in range(2)
    ]
    stacked = [
        examples[0][i] if axis is None else np.stack([e[i] for e in examples], axis)
        for i, axis in enumerate(in_axes)
    ]
    with minijax.enable_x64(True):
        function = build(name)(minijax)
        mapped = minijax.vmap(function, in_axes)(*stacked)
        loop = np.stack([np.asarray(function(*example)) for example in chosen])
    assert value_difference(np.asarray(mapped), loop) is None


def test_text_of_a_batch():
    assert_same_texts(
        minijax,
        jax,
        lambda library: library.lax.ragged_dot,
        LHS,
        RHS,
        SIZES,
        in_axes=(0, 0, 0),
    )


BAD = {
    "ragged axis out of range": (LHS, RHS, SIZES, (([1], [1]), ([], []), [2], [0])),
    "two ragged axes": (LHS, RHS, SIZES, (([1], [1]), ([], []), [0, 1], [0])),
    "no group axis": (LHS, RHS, SIZES, (([1], [1]), ([], []), [0], [])),
    "a group axis too many": (LHS, RHS, SIZES, (([1], [1]), ([], []), [1], [0])),
    "the group axis is contracted": (LHS, RHS, SIZES, (([1], [1]), ([], []), [0], [1])),
    "another number of groups": (LHS, RHS, SIZES[:2], (([1], [1]), ([], []), [0], [0])),
    "scalar sizes": (LHS, RHS, SIZES[0], (([1], [1]), ([], []), [0], [0])),
    "float sizes": (LHS, RHS, SIZES / 1.0, (([1], [1]), ([], []), [0], [0])),
    "sizes of a wrong shape": (
        LHS,
        RHS,
        np.ones((2, 3), np.int32),
        (([1], [1]), ([], []), [0], [0]),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    *args, dims = BAD[name]

    def program(library):
        return library.lax.ragged_dot_general(*args, numbers(library, *dims))

    assert_same(program, minijax, jax)
    with pytest.raises(TypeError):
        program(minijax)


def test_a_group_offset_is_refused():
    def program(library):
        offset = np.zeros((1,), np.int32)
        return library.lax.ragged_dot(LHS, RHS, SIZES, group_offset=offset)

    with pytest.raises(NotImplementedError, match="Slice group_sizes"):
        program(minijax)
