"""The oracle itself sees the differences it is there to see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.oracle.oracle import bfloat16, difference, leaf_difference, run


def outcome(function):
    return run(function, jax)


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (lambda jax: jnp.ones(3), lambda jax: jnp.ones(2), "shape"),
        (lambda jax: jnp.ones(3), lambda jax: jnp.ones(3, int), "dtype"),
        (lambda jax: jnp.asarray(1.0), lambda jax: jnp.float32(1), "weak_type"),
        (lambda jax: jnp.ones(3), lambda jax: jnp.ones(3) * 1.001, "values differ"),
        (lambda jax: jnp.ones(3), lambda jax: np.ones(3, "f"), "type"),
        (lambda jax: [1, 2], lambda jax: [1], "trees differ"),
        (lambda jax: jnp.ones(3) + jnp.ones(2), lambda jax: 1, "raised"),
        (lambda jax: {}["a"], lambda jax: [][0], "KeyError"),
    ],
)
def test_difference_is_seen(first, second, word):
    message = difference(outcome(first), outcome(second))
    assert message is not None and word in message


@pytest.mark.parametrize(
    "function",
    [
        lambda jax: jnp.array([1.0, jnp.nan, jnp.inf]),
        lambda jax: jax.random.key(3),
        lambda jax: {"a": (jnp.arange(3), None), "b": 2.5},
        lambda jax: jnp.ones(2, jnp.bfloat16),
        lambda jax: {}["a"],
    ],
)
def test_same_is_the_same(function):
    assert difference(outcome(function), outcome(function)) is None


def test_keys_are_compared_by_their_bits():
    assert leaf_difference(jax.random.key(0), jax.random.key(1)) is not None


def test_bfloat16_is_compared_loosely():
    ours = bfloat16([1.0, 100.0])
    assert leaf_difference(ours, bfloat16([1.004, 100.5])) is None
    assert leaf_difference(ours, bfloat16([1.0, 106.0])) is not None
