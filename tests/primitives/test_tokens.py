"""Tokens: they order effects in compiled programs and carry nothing."""

import pytest

minijax = pytest.importorskip("minijax")


def program(x):
    first = minijax.lax.create_token(x)
    second = minijax.lax.create_token(x)
    minijax.lax.after_all(first, second)
    return x + 1


def test_tokens_print_as_jax():
    jax = pytest.importorskip("jax")

    def theirs(x):
        first = jax.lax.create_token(x)
        second = jax.lax.create_token(x)
        jax.lax.after_all(first, second)
        return x + 1

    assert str(minijax.make_jaxpr(program)(1.0)) == str(jax.make_jaxpr(theirs)(1.0))


def test_tokens_compile():
    assert minijax.jit(program)(1.0) == 2.0
