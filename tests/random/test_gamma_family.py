"""Gamma draws and what is made of them, and counts: all bits of jax's; derivatives."""

import jax
import numpy as np
import pytest

import minijax

from .comparison import assert_same_bits, exception_class, jaxpr_text

A = np.array([0.05, 0.5, 1.0, 3.0, 20.0], np.float32)
LAM = np.array([0.0, 0.5, 3.0, 9.0, 11.0, 50.0, 2000.0], np.float32)
N = np.array([0, 5, 30, 100, 1000, 7, -1, np.inf, np.nan, 4], np.float32)
P = np.array([0.3, 0.5, 0.2, 0.9, 0.4, 1.0, 0.5, 0.5, 0.5, np.nan], np.float32)

CASES = {
    "gamma": lambda r, k: r.gamma(k, A),
    "gamma from raw bits": lambda r, k: r.gamma(r.key_data(k), A, (2, 5)),
    "gamma in float16": lambda r, k: r.gamma(k, A, dtype="float16"),
    "gamma of another generator": lambda r, k: r.gamma(r.key(1, impl="rbg"), A),
    "loggamma": lambda r, k: r.loggamma(k, A),
    "beta": lambda r, k: r.beta(k, A, 2.0),
    "dirichlet": lambda r, k: r.dirichlet(k, A),
    "t": lambda r, k: r.t(k, A),
    "chisquare": lambda r, k: r.chisquare(k, A),
    "f": lambda r, k: r.f(k, A, 3.0),
    "generalized_normal": lambda r, k: r.generalized_normal(k, 1.5, (5,)),
    "ball": lambda r, k: r.ball(k, 3, shape=(4,)),
    "poisson": lambda r, k: r.poisson(k, LAM),
    "poisson of a shape": lambda r, k: r.poisson(k, 4.0, (20,), dtype="int16"),
    "binomial": lambda r, k: r.binomial(k, N, P),
    "binomial of a shape": lambda r, k: r.binomial(k, 10, 0.3, (6,)),
    "multinomial": lambda r, k: r.multinomial(k, 20.0, np.float32([0.2, 0.3, 0.5])),
}


@pytest.mark.parametrize("name", CASES)
def test_bits(name):
    draw = CASES[name]
    ours = draw(minijax.random, minijax.random.key(3))
    assert_same_bits(ours, draw(jax.random, jax.random.key(3)))


def test_bits_in_64_bit_mode():
    def draw(library):
        r, k = library.random, library.random.key(3)
        with library.enable_x64(True):
            return r.gamma(k, np.float64(A)), r.poisson(k, 3.0, (4,))

    for ours, theirs in zip(draw(minijax), draw(jax)):
        assert_same_bits(ours, theirs)


PRINTED = "gamma,beta,dirichlet,t,chisquare,poisson of a shape,binomial of a shape"


@pytest.mark.parametrize("name", PRINTED.split(","))
def test_jaxprs(name):
    def program(library):
        return library.make_jaxpr(lambda k: CASES[name](library.random, k))(
            library.random.key(0)
        )

    assert jaxpr_text(program(minijax)) == jaxpr_text(program(jax))


BATCHES = {
    "keys": lambda jax, r, k: jax.vmap(lambda k: r.gamma(k, A))(r.split(k, 3)),
    "parameters": lambda jax, r, k: jax.vmap(lambda a: r.gamma(k, a, (2,)))(A),
    "both": lambda jax, r, k: jax.vmap(lambda k, a: r.loggamma(k, a, (2,)))(
        r.split(k, 5), A
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name):
    ours = BATCHES[name](minijax, minijax.random, minijax.random.key(3))
    assert_same_bits(ours, BATCHES[name](jax, jax.random, jax.random.key(3)))


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_derivatives(name):
    def slopes(library):
        key = library.random.key(3)
        draw = getattr(library.random, name)
        return library.grad(lambda a: draw(key, a).sum())(A)

    np.testing.assert_allclose(slopes(minijax), slopes(jax), 1e-5)


def test_derivative_of_beta():
    def slopes(library):
        key = library.random.key(3)
        return library.grad(lambda a: library.random.beta(key, a, 2.0).sum())(A)

    np.testing.assert_allclose(slopes(minijax), slopes(jax), 1e-5)


ERRORS = {
    "integer dtype": lambda r: r.gamma(r.key(0), A, dtype=int),
    "shape": lambda r: r.gamma(r.key(0), A, (3,)),
    "number to dirichlet": lambda r: r.dirichlet(r.key(0), 1.0),
    "generator of poisson": lambda r: r.poisson(r.key(0, impl="rbg"), 4.0),
    "wide parameter": lambda r: r.beta(r.key(0), A, 2.0, dtype="float16"),
    "list to binomial": lambda r: r.binomial(r.key(0), [1.0], 0.5),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    expected = exception_class(lambda: ERRORS[name](jax.random))
    assert expected is not None
    assert exception_class(lambda: ERRORS[name](minijax.random)) == expected
