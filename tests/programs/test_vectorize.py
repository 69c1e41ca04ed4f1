"""numpy.vectorize: signatures, excluded arguments, broadcasting, errors; named_call."""

import functools

import numpy as np
import pytest

import minijax
from tests.programs.sides import same_error, same_text, same_values

A = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
B = np.arange(3, dtype=np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8

CASES = {
    "no signature": (lambda lib: lambda x, y: x * y, {}, (A, B)),
    "scalars": (lambda lib: lambda x: lib.lax.sin(x), {}, (np.float32(0.5),)),
    "inner product": (
        lambda lib: lambda x, y: lib.numpy.dot(x, y),
        {"signature": "(n),(n)->()"},
        (A, B),
    ),
    "matrix vector": (
        lambda lib: lambda m, v: m @ v,
        {"signature": "(m,n),(n)->(m)"},
        (C, C[:, 0]),
    ),
    "two results": (
        lambda lib: lambda x: (x.sum(), x - x.mean()),
        {"signature": "(n)->(),(n)"},
        (C,),
    ),
    "no result axes given": (
        lambda lib: lambda x, y: lib.numpy.outer(x, y),
        {"signature": "(m),(n)->(m,n)"},
        (B, A),
    ),
    "excluded by position": (
        lambda lib: lambda x, y: x + y.sum(),
        {"excluded": {1}},
        (A, B),
    ),
    "excluded with a signature": (
        lambda lib: lambda x, n: x[::n],
        {"excluded": {1}, "signature": "(k)->(j)"},
        (A, 2),
    ),
    "broadcasts dimensions of one": (
        lambda lib: lambda x, y: x + y,
        {"signature": "(n),(n)->(n)"},
        (A[:, None], A[None]),
    ),
}


def vectorized(lib, name):
    make, options, _ = CASES[name]
    return lib.numpy.vectorize(make(lib), **options)


@pytest.mark.parametrize("name", CASES)
def test_values_and_text(name):
    args = CASES[name][2]
    arrays = [arg for arg in args if isinstance(arg, np.ndarray | np.generic)]
    rest = args[len(arrays) :]

    def make(lib):
        return lambda *x: vectorized(lib, name)(*x, *rest)

    same_values(make, *arrays)
    same_values(lambda lib: lib.jit(make(lib)), *arrays)
    same_text(make, *arrays)


@pytest.mark.parametrize("name", ["inner product", "matrix vector", "no signature"])
def test_gradients(name):
    def make(lib):
        return lib.grad(lambda *x: vectorized(lib, name)(*x).sum(), argnums=(0, 1))

    same_values(make, *CASES[name][2])


def test_as_a_decorator_with_keywords():
    def make(lib):
        @functools.partial(lib.numpy.vectorize, excluded={"scale"})
        def f(x, *, scale):
            return x * scale

        return lambda x: f(x, scale=3.0)

    same_values(make, A)


ERRORS = {
    "bad signature": ({"signature": "(n->()"}, (A,)),
    "wrong number of arguments": ({"signature": "(n),(n)->()"}, (A,)),
    "sizes differ": ({"signature": "(n),(n)->()"}, (A, A[:, :2])),
    "too few axes": ({"signature": "(m,n)->()"}, (B,)),
    "result of another shape": ({"signature": "(n)->(n,n)"}, (A,)),
    "do not broadcast": ({}, (A, A[:, :2])),
    "excluded is no set of numbers": ({"excluded": {1.5}}, (A,)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    options, args = ERRORS[name]

    def make(lib):
        return lambda *x: lib.numpy.vectorize(
            lambda *x: functools.reduce(lib.numpy.add, x), **options
        )(*x)

    same_error(make, *args)


def test_named_call():
    def make(lib):
        return lib.named_call(lambda x: lib.lax.sin(x) * 2.0, name="my_name")

    same_values(make, A)
    same_text(make, A)
    lowered = minijax.jit(make(minijax)).lower(A)
    assert "my_name/sin" in lowered.as_text(debug_info=True)


def test_named_scope():
    def make(lib):
        def f(x):
            with lib.named_scope("outer"):
                return lib.lax.sin(x)

        return f

    same_text(make, A)
    assert "outer/sin" in minijax.jit(make(minijax)).lower(A).as_text(debug_info=True)
    same_error(lambda lib: lambda x: lib.named_scope(3), A)
