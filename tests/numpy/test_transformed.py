"""Derivatives and batches of `jax.numpy` functions: the printed programs of jax.

What a learner sees under `make_jaxpr(grad(f))` depends on every rule on the way and on
each jit boundary, so whole programs are compared, and the values of the last kind.
"""

import re

import jax
import jax.numpy
import numpy as np
import pytest

import minijax
import minijax.numpy
from tests.golden.normalise import normalise
from tests.numpy.programs import PRINTED_BY

F = np.array([[0.5, 0.2, 0.9], [0.3, 0.25, 0.75]], np.float32)
G = np.array([[0.7, 0.1, 0.4], [0.6, 0.35, 0.15]], np.float32)

UNARY = """
    exp expm1 log log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh
    arcsinh arctanh log2 log10 square reciprocal deg2rad sinc real angle floor round
    modf nan_to_num negative absolute sign sum prod max min mean var std ptp average
    median nansum nanmean nanmax nanvar nanstd cumsum sort tril triu diag isnan argmax
""".split()
BINARY = """
    add subtract multiply true_divide remainder fmod power float_power minimum maximum
    fmin fmax arctan2 logaddexp logaddexp2 hypot copysign heaviside where dot isclose
""".split()


def scalar(function):
    """The sum of a function's first result, as float32: something to differentiate."""

    def summed(*args):
        result = function(*args)
        result = result[0] if isinstance(result, (tuple, list)) else result
        return result.astype("float32").sum()

    return summed


TRANSFORMATIONS = {
    "grad": lambda library, f: library.grad(scalar(f)),
    "vmap": lambda library, f: library.vmap(f),
    "jvp": lambda library, f: lambda *args: library.jvp(f, args, args),
    "grad of jit": lambda library, f: library.grad(library.jit(scalar(f))),
    "vmap of grad": lambda library, f: library.vmap(library.grad(scalar(f))),
}
# jax keeps constants among the residuals of these, or residuals that are constant.
DIFFERENT = {("prod", "grad of jit"), ("diag", "vmap of grad")}

# Programs in which jax prints np.int64(1) for 1 break their lines elsewhere.
ACCIDENT = re.compile(r"np\.int64\((-?\d+)\)|\s+")


def function(np, name):
    if name == "where":
        return lambda x, y: np.where(x > 0.3, x, y)
    if name == "dot":
        return lambda x, y: np.dot(x, y.T)
    return getattr(np, name)


def program(library, name, kind):
    """The program as text, or the class of what jax raises."""
    transformed = TRANSFORMATIONS[kind](library, function(library.numpy, name))
    args = (F, G) if name in BINARY else (F,)
    try:
        return str(library.make_jaxpr(transformed)(*args))
    except Exception as error:
        return type(error).__name__


PRINTED = [
    (name, kind)
    for name in UNARY + BINARY
    for kind in TRANSFORMATIONS
    if (name, kind) not in DIFFERENT
]


@pytest.mark.skipif(jax.__version__ != PRINTED_BY, reason="prints otherwise")
@pytest.mark.parametrize("name, kind", PRINTED)
def test_prints_as_jax(name, kind):
    ours, theirs = (
        ACCIDENT.sub(r"\1", normalise(program(library, name, kind)))
        for library in (minijax, jax)
    )
    assert ours == theirs


NOT_DIFFERENTIATED = {"isnan", "argmax", "isclose", "modf", "dot"}
SMOOTH = [name for name in UNARY + BINARY if name not in NOT_DIFFERENTIATED]


@pytest.mark.parametrize("name", [*SMOOTH, "cumprod"])
def test_batched_gradients_have_the_values_of_jax(name):
    def values(library):
        f = function(library.numpy, name)
        f = library.jit(TRANSFORMATIONS["vmap of grad"](library, f))
        args = (F, G) if name in BINARY else (F,)
        return np.asarray(f(*args))

    if name in ("tril", "triu"):  # they need matrices
        for library in (minijax, jax):
            with pytest.raises(ValueError):
                values(library)
        return
    np.testing.assert_allclose(values(minijax), values(jax), rtol=2e-5, atol=1e-6)
