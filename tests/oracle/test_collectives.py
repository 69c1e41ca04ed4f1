"""Collectives over a named axis of `vmap`: JAX's values, alone and transformed."""

import jax
import numpy as np
import pytest

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
