"""Rules at points that random numbers do not meet: ties, zero, and tiny arguments."""

import jax
import numpy as np
import pytest

import minijax

TIES = np.asarray([-1.0, 0.0, 0.0, 2.0], np.float32)
OTHER = np.asarray([-1.0, 0.0, 1.0, 2.0], np.float32)
TINY = np.asarray([1e-10, -1e-10, 1e-30, 0.0, -0.0, 1e-7], np.float32)

AT_TIES = {
    "max": lambda j: lambda x: j.lax.max(x, OTHER),
    "max of the same": lambda j: lambda x: j.lax.max(x, x),
    "min": lambda j: lambda x: j.lax.min(x, OTHER),
    "clamp": lambda j: lambda x: j.lax.clamp(np.float32(0), x, np.float32(2)),
    "abs": lambda j: lambda x: j.lax.abs(x),
    "sign": lambda j: lambda x: j.lax.sign(x),
    "relu": lambda j: lambda x: j.nn.relu(x),
    "reduce_max": lambda j: lambda x: j.numpy.max(x[1:3]),
    "reduce_min": lambda j: lambda x: j.numpy.min(x[:3]),
    "sort": lambda j: lambda x: j.numpy.sort(x) * OTHER,
}


def gradient(library, function):
    total = lambda x: library.numpy.sum(function(library)(x))  # noqa: E731
    return np.asarray(library.grad(total)(TIES))


@pytest.mark.parametrize("name", AT_TIES)
def test_derivatives_at_ties(name):
    function = AT_TIES[name]
    assert np.array_equal(gradient(minijax, function), gradient(jax, function))


@pytest.mark.parametrize("name", "log1p expm1 sin tan asinh atanh erf cbrt".split())
def test_tiny_arguments(name):
    mine = np.asarray(getattr(minijax.lax, name)(TINY))
    theirs = np.asarray(getattr(jax.lax, name)(TINY))
    assert np.array_equal(mine, theirs)
    assert np.array_equal(np.signbit(mine), np.signbit(theirs))
