"""Special functions under SciPy's names: values, derivatives and jaxprs of jax."""

import jax
import numpy as np
import pytest

import minijax
from tests.golden.normalise import normalise, plain_numpy_scalars

INSIDE = np.array([0.1, 0.5, 0.9], np.float32)

NAMES = "erf erfc erfinv expit logit gammaln".split()


def text(jaxpr):
    with plain_numpy_scalars():
        return normalise(str(jaxpr))


def assert_same_program(name, *args):
    def programs(library):
        function = getattr(library.scipy.special, name)
        return function, library.grad(lambda *xs: function(*xs).sum())

    for ours, theirs in zip(programs(minijax), programs(jax), strict=True):
        left, right = ours(*args), theirs(*args)
        assert left.dtype == right.dtype
        np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=1e-5)
        expected = text(jax.make_jaxpr(theirs)(*args))
        assert text(minijax.make_jaxpr(ours)(*args)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_of_one_argument(name):
    assert_same_program(name, INSIDE)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_of_two_arguments(name):
    assert_same_program(name, INSIDE, INSIDE + 1)
    function = getattr(minijax.scipy.special, name)
    assert float(function(0.0, -1.0)) == 0.0
    assert np.isnan(function(0.0, np.nan))


def test_digamma():
    ours = minijax.scipy.special.digamma(INSIDE)
    theirs = jax.scipy.special.digamma(INSIDE)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)


def test_integers_become_floats():
    assert minijax.scipy.special.erf(1).dtype == np.float32
