"""`custom_partitioning` against jax: values, shardings, collectives, bad rules."""

import numpy as np
import pytest

import minijax
from minijax.experimental.custom_partitioning import custom_partitioning
from tests.sharding import own_partitions


@pytest.mark.parametrize("name", own_partitions.CASES)
def test_as_in_jax(results, name):
    """The same results, cut alike, by the same collectives; or the same error."""
    ours, theirs = results[name]["minijax"], results[name]["jax"]
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), f"no error; jax: {theirs['message']}"
        kind = theirs["error"][0].replace("XlaRuntimeError", "JaxRuntimeError")
        assert kind in ours["error"], ours["trace"]
        return
    assert not isinstance(ours, dict), ours["trace"]
    for one, other in zip(ours, theirs, strict=True):
        values = one.get("values", 0), other.get("values", 0)
        np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-6)
        for key in ("text", "dtype", "sharding", "committed"):
            assert one.get(key) == other.get(key)


def test_a_static_argument_counted_from_the_end():
    """JAX takes it for an array, and fails."""
    scaled = custom_partitioning(lambda x, k: x * k, static_argnums=(-1,))
    scaled.def_partition(lambda *_: None, sharding_rule="i -> i")
    assert minijax.jit(lambda x: scaled(x, 2))(np.ones(3)).tolist() == [2, 2, 2]


def test_without_a_rule():
    function = custom_partitioning(minijax.numpy.sin)
    with pytest.raises(AttributeError, match="custom_partitioning of sin: call its"):
        function(1.0)


def test_the_rule_is_printed_in_the_jaxpr():
    function = custom_partitioning(lambda x: x)
    rule = {"need_replication_factors": ("i",)}
    function.def_partition(lambda *_: None, sharding_rule="i j -> i j", **rule)
    text = str(minijax.make_jaxpr(function)(np.ones((2, 2))))
    told = "ShardingRule('i j -> i j', need_replication_factors=('i',))"
    assert f"sharding_rule={told}" in text
