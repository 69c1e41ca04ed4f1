"""Initializers against jax: dtypes, values, jaxprs, errors."""

import jax
import numpy as np
import pytest

import minijax
from tests.golden.normalise import normalise, plain_numpy_scalars

NAMED = """glorot_normal glorot_uniform xavier_normal xavier_uniform he_normal
he_uniform kaiming_normal kaiming_uniform lecun_normal lecun_uniform""".split()


def assert_same(program):
    def run(library):
        initializers = library.nn.initializers
        key = library.random.key(1)
        jaxpr = library.make_jaxpr(lambda k: program(initializers, k))(key)
        with plain_numpy_scalars():
            return program(initializers, key), normalise(str(jaxpr))

    (ours, text), (theirs, expected_text) = run(minijax), run(jax)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)
    assert text == expected_text


@pytest.mark.parametrize("name", NAMED)
def test_named(name):
    assert_same(lambda init, k: getattr(init, name)()(k, (4, 6)))
    assert_same(lambda init, k: getattr(init, name)(0, 1)(k, (4, 6, 2)))


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
@pytest.mark.parametrize("distribution", ["truncated_normal", "normal", "uniform"])
def test_variance_scaling(mode, distribution):
    def program(dtype):
        return lambda init, k: init.variance_scaling(
            2.0, mode, distribution, in_axis=(0, 1), out_axis=2, batch_axis=3
        )(k, (2, 3, 4, 5), dtype)

    assert_same(program("float32"))
    if mode == "fan_in":
        assert_same(program("complex64"))


def test_simple_ones():
    assert_same(lambda init, k: init.normal()(k, (3,)))
    assert_same(lambda init, k: init.uniform(0.5)(k, (3,)))
    assert_same(lambda init, k: init.truncated_normal(lower=-1.0)(k, (3,)))
    assert_same(lambda init, k: init.constant(7.0)(k, (3,)))
    assert_same(lambda init, k: init.constant(7, "int32")(k, (3,)))
    assert_same(lambda init, k: init.zeros(k, (2,)))
    assert_same(lambda init, k: init.ones(k, (2,), "int32"))


def test_variance():
    # A check that does not lean on jax.
    key = minijax.random.key(0)
    weights = np.asarray(minijax.nn.initializers.he_normal()(key, (500, 400)))
    assert abs(weights.var() - 2 / 500) < 1e-4


def test_is_an_initializer():
    initializers = minijax.nn.initializers
    assert isinstance(initializers.he_normal(), initializers.Initializer)


ERRORS = {
    "one-axis": lambda init, k: init.he_normal()(k, (3,)),
    "mode": lambda init, k: init.variance_scaling(1.0, "x", "normal")(k, (2, 2)),
    "law": lambda init, k: init.variance_scaling(1.0, "fan_in", "x")(k, (2, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_same_exception(name):
    for library in (minijax, jax):
        with pytest.raises(ValueError):
            ERRORS[name](library.nn.initializers, library.random.key(0))
