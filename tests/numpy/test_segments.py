"""Reductions over segments: JAX's values, dtypes, programs and errors."""

import jax
import jax.ops
import numpy as np
import pytest

from tests.golden.normalise import plain_numpy_scalars
from tests.oracle.oracle import assert_same

minijax = pytest.importorskip("minijax")

NAMES = ("segment_sum", "segment_prod", "segment_max", "segment_min")
DATA = np.arange(1, 11, dtype=np.float32).reshape(5, 2) / 4
IDS = np.array([3, 0, -1, 3, 7], np.int32)
OPTIONS = {
    "plain": {},
    "sorted, unique": {"indices_are_sorted": True, "unique_indices": True},
    "clip": {"mode": "clip"},
    "buckets": {"bucket_size": 2},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_programs(name, options):
    def function(jax):
        keywords = OPTIONS[options]
        return lambda data, ids: getattr(jax.ops, name)(data, ids, 5, **keywords)

    with plain_numpy_scalars():
        theirs = str(jax.make_jaxpr(function(jax))(DATA, IDS))
        assert str(minijax.make_jaxpr(function(minijax))(DATA, IDS)) == theirs
    if options != "sorted, unique":  # promises that these numbers do not keep
        assert_same(lambda jax: function(jax)(DATA, IDS), minijax, jax)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_dtypes_and_empty_segments(name, dtype):
    def program(jax):
        data = jax.numpy.array([1, 0, 1, 1], dtype)
        return getattr(jax.ops, name)(data, jax.numpy.array([4, 0, 2, 2]))

    assert_same(program, minijax, jax)


def test_gradient():
    def program(jax):
        def loss(data):
            return (jax.ops.segment_sum(jax.numpy.sin(data), IDS, 5) ** 2).sum()

        return jax.grad(loss)(jax.numpy.asarray(DATA))

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_segments_must_be_known(name):
    for module in (jax, minijax):
        function = getattr(module.ops, name)
        with pytest.raises(module.errors.ConcretizationTypeError, match="num_segments"):
            module.jit(function)(DATA, IDS)
        with pytest.raises(ValueError, match="must be non-negative"):
            function(DATA, IDS, -1)
