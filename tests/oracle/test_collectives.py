"""Collectives over a named axis of `vmap`: JAX's values, alone and transformed."""

import jax
import numpy as np
import pytest

from tests.golden.normalise import plain_numpy_scalars
from tests.oracle.oracle import assert_same

minijax = pytest.importorskip("minijax")

SQUARE = np.arange(9, dtype=np.float32).reshape(3, 3) / 8 - 0.4
CUBE = np.arange(18, dtype=np.float32).reshape(3, 3, 2) / 8
RING = [(0, 1), (1, 2), (2, 0)]

COLLECTIVES = {
    "psum": lambda lax, x: lax.psum(x, "i"),
    "psum of a tree": lambda lax, x: lax.psum({"a": x, "b": (x * 2,)}, "i"),
    "psum of a constant": lambda lax, x: lax.psum(2, "i") * x,
    "pmean": lambda lax, x: lax.pmean(x, "i"),
    "pmax": lambda lax, x: lax.pmax(x, "i"),
    "pmin": lambda lax, x: lax.pmin(x, "i"),
    "all_gather": lambda lax, x: lax.all_gather(x, "i"),
    "all_gather axis 1": lambda lax, x: lax.all_gather(x, "i", axis=1),
    "all_gather tiled": lambda lax, x: lax.all_gather(x, "i", tiled=True),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", RING),
    "all_to_all": lambda lax, x: lax.all_to_all(x, "i", 0, 0),
    "psum_scatter": lambda lax, x: lax.psum_scatter(x, "i"),
    "axis_index": lambda lax, x: x * lax.axis_index("i"),
    "axis_size": lambda lax, x: x * lax.axis_size("i"),
}
# What JAX itself does not differentiate.
NOT_DIFFERENTIABLE = {"pmax", "pmin"}


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("how", ["eager", "jit", "inner jit", "last axis"])
def test_values(name, how):
    def program(jax):
        def function(x):
            return COLLECTIVES[name](jax.lax, x)

        if how == "inner jit":
            function = jax.jit(function)
        in_axes = -1 if how == "last axis" else 0
        mapped = jax.vmap(function, in_axes=in_axes, axis_name="i")
        return (jax.jit(mapped) if how == "jit" else mapped)(jax.numpy.asarray(SQUARE))

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("name", sorted(set(COLLECTIVES) - NOT_DIFFERENTIABLE))
def test_gradients(name):
    def program(jax):
        def loss(x):
            out = jax.vmap(
                lambda row: COLLECTIVES[name](jax.lax, jax.numpy.sin(row)),
                axis_name="i",
            )(x)
            return sum((leaf**2).sum() for leaf in jax.tree_util.tree_leaves(out))

        return jax.grad(loss)(jax.numpy.asarray(SQUARE)), jax.jit(
            jax.value_and_grad(loss)
        )(jax.numpy.asarray(SQUARE))

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("axes", ["i", "j", ("i", "j")], ids=str)
@pytest.mark.parametrize("name", ["psum", "pmean", "pmax"])
def test_nested_axes(name, axes):
    def program(jax):
        def function(x):
            return x - getattr(jax.lax, name)(x, axes)

        inner = jax.vmap(function, axis_name="j")
        return jax.vmap(inner, axis_name="i")(jax.numpy.asarray(CUBE))

    assert_same(program, minijax, jax)


def test_batch_normalisation():
    def program(jax):
        def normalise(x):
            mean = jax.lax.pmean(x, "batch")
            variance = jax.lax.pmean((x - mean) ** 2, "batch")
            return (x - mean) / jax.numpy.sqrt(variance + 1e-5)

        return jax.vmap(normalise, axis_name="batch")(jax.numpy.asarray(SQUARE))

    assert_same(program, minijax, jax)


def test_unmapped_result():
    def program(jax):
        total = jax.vmap(lambda x: jax.lax.psum(x, "i"), axis_name="i", out_axes=None)
        return total(jax.numpy.asarray(SQUARE))

    assert_same(program, minijax, jax)


PRINTED = {
    "pmean of integers": lambda lax, x: lax.pmean(x.astype("int32"), "i"),
    "psum of booleans": lambda lax, x: lax.psum(x > 0, "i"),
    "psum_scatter tiled": lambda lax, x: lax.psum_scatter(x, "i", tiled=True),
    "all_to_all to the front": lambda lax, x: lax.all_to_all(x[None], "i", 1, 0),
    "all_to_all tiled": lambda lax, x: lax.all_to_all(x, "i", 0, 0, tiled=True),
    "several": lambda lax, x: x * lax.psum(x**2, "i") / (1 + lax.pmean(x, "i") ** 2),
}


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_programs(name):
    def program(jax):
        def function(x):
            return PRINTED[name](jax.lax, x)

        mapped = jax.vmap(function, axis_name="i")
        return mapped(jax.numpy.asarray(SQUARE)), str(jax.make_jaxpr(mapped)(SQUARE))

    with plain_numpy_scalars():
        ours, theirs = program(minijax), program(jax)
    np.testing.assert_allclose(ours[0], theirs[0], 1e-6)
    assert ours[0].dtype == theirs[0].dtype
    assert ours[1] == theirs[1]


@pytest.mark.parametrize("name", ["all_gather", "psum_scatter", "ppermute", "psum"])
def test_unmapped_operands(name):
    def program(jax):
        def function(i, x):
            return COLLECTIVES[name](jax.lax, x) + i

        mapped = jax.vmap(function, in_axes=(0, None), axis_name="i")
        return mapped(jax.numpy.arange(3.0), jax.numpy.asarray(SQUARE[0]))

    assert_same(program, minijax, jax)


def test_gradient_inside_of_the_map():
    def program(jax):
        def loss(row):
            return (jax.lax.all_gather(jax.numpy.sin(row), "i") ** 2).sum()

        inner = jax.vmap(jax.grad(loss), axis_name="i")
        return inner(jax.numpy.asarray(SQUARE)), jax.make_jaxpr(inner)(SQUARE).eqns

    ours, theirs = program(minijax), program(jax)
    np.testing.assert_allclose(ours[0], theirs[0], 1e-5)
    assert [str(e.primitive) for e in ours[1]] == [str(e.primitive) for e in theirs[1]]


GROUPS = [[0, 1], [2, 3]]
GROUPED = {
    "psum": lambda lax, x: lax.psum(x, "i", axis_index_groups=GROUPS),
    "pmean": lambda lax, x: lax.pmean(x, "i", axis_index_groups=GROUPS),
    "pmax": lambda lax, x: lax.pmax(x, "i", axis_index_groups=GROUPS),
    "all_gather": lambda lax, x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
    "psum_scatter": lambda lax, x: lax.psum_scatter(
        x, "i", axis_index_groups=GROUPS, tiled=True
    ),
    "all_to_all": lambda lax, x: lax.all_to_all(
        x, "i", 0, 0, axis_index_groups=GROUPS, tiled=True
    ),
}


@pytest.mark.parametrize("name", sorted(GROUPED))
def test_groups(name):
    """Groups are written down; over a batch axis there are none, in JAX as here."""

    def function(lax):
        return lambda x: GROUPED[name](lax, x)

    def text(jax):
        return str(jax.make_jaxpr(function(jax.lax), axis_env=[("i", 4)])(np.ones(4)))

    assert text(minijax) == text(jax)
    assert_same(
        lambda jax: jax.vmap(function(jax.lax), axis_name="i")(np.ones((4, 4))),
        minijax,
        jax,
    )
    with pytest.raises(ValueError, match="cover all indices"):
        minijax.make_jaxpr(
            lambda x: minijax.lax.psum(x, "i", axis_index_groups=[[0, 0]]),
            axis_env=[("i", 2)],
        )(1.0)


def test_pbroadcast():
    x = minijax.numpy.asarray(SQUARE)

    def broadcast(row):
        return minijax.lax.pbroadcast(row, "i", 2)

    out = minijax.vmap(broadcast, axis_name="i")(x)
    np.testing.assert_array_equal(out, np.broadcast_to(SQUARE[2], (3, 3)))

    def loss(x):
        return (minijax.vmap(broadcast, axis_name="i")(x) * SQUARE).sum()

    expected = np.zeros((3, 3), np.float32)
    expected[2] = SQUARE.sum(0)
    np.testing.assert_allclose(minijax.grad(loss)(x), expected, 1e-6)
    inner = minijax.vmap(
        minijax.grad(lambda row: (broadcast(row) * row).sum()), axis_name="i"
    )
    assert inner(x).shape == (3, 3)
    with pytest.raises(ValueError, match="source 3"):
        minijax.vmap(lambda r: minijax.lax.pbroadcast(r, "i", 3), axis_name="i")(x)


def test_sum_match():
    def program(jax):
        mapped = jax.vmap(
            lambda x: (x, x * 2.0, 3.0), out_axes=(0, None, None), sum_match=True
        )
        return mapped(jax.numpy.asarray(SQUARE))

    assert_same(program, minijax, jax)


# Split axis, axis of joining, tiled, and the names in the order of the exchange.
OVER_SEVERAL = [
    (0, 0, True, ("i", "j")),
    (1, 0, True, ("j", "i")),
    (0, 1, False, ("i", "j")),
    (1, 0, False, ("j", "i")),
    (0, 1, True, ("k", "i", "j")),
    (1, 0, False, ("j", "k", "i")),
    (1, 1, True, ("i", "k")),
]


@pytest.mark.parametrize(("split", "join", "tiled", "names"), OVER_SEVERAL)
def test_all_to_all_over_several_axes(split, join, tiled, names):
    sizes = {"i": 2, "j": 3, "k": 1}
    pieces = int(np.prod([sizes[name] for name in names]))
    side = 6 if tiled else pieces
    x = np.arange(6 * side * side, dtype=np.float32).reshape(2, 3, 1, side, side)

    def program(jax):
        def function(y):
            return jax.lax.all_to_all(y, names, split, join, tiled=tiled)

        for name in ("k", "j", "i"):
            function = jax.vmap(function, axis_name=name)
        return function

    with plain_numpy_scalars():
        theirs = str(jax.make_jaxpr(program(jax))(x))
        assert str(minijax.make_jaxpr(program(minijax))(x)) == theirs
    np.testing.assert_array_equal(program(minijax)(x), program(jax)(x))
