"""Derivatives as users ask for them: jacobians of trees, complex functions, float0,
and modes over modes; values, dtypes and weak types as JAX's."""

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same

minijax = pytest.importorskip("minijax")


def params(jnp):
    return {"w": jnp.arange(6.0).reshape(2, 3) / 5, "b": (jnp.ones(3), 2.0)}


def model(jnp):
    def apply(p, x):
        hidden = jnp.tanh(x @ p["w"] + p["b"][0])
        return {"y": hidden * p["b"][1], "z": p["b"][1] ** 2}

    return apply


TREES = {
    "jacfwd": lambda jax, f, *args: jax.jacfwd(f)(*args),
    "jacrev": lambda jax, f, *args: jax.jacrev(f)(*args),
    "jacrev in both": lambda jax, f, *args: jax.jacrev(f, argnums=(0, 1))(*args),
    "hessian": lambda jax, f, *args: jax.hessian(f)(*args),
    "hessian in both": lambda jax, f, *args: jax.hessian(f, (0, 1))(*args),
    "reverse over forward": lambda jax, f, *args: jax.jacrev(jax.jacfwd(f))(*args),
    "compiled": lambda jax, f, *args: jax.jit(jax.hessian(f))(*args),
}


@pytest.mark.parametrize("name", TREES)
def test_jacobians_of_trees(name):
    def program(jax):
        arguments = params(jax.numpy), jax.numpy.ones(2)
        return TREES[name](jax, model(jax.numpy), *arguments)

    assert_same(program, minijax, jax)


def with_aux(jnp):
    return lambda x: (jnp.sum(x**3), {"input": x})


SPECIAL = {
    "jacfwd with aux": lambda jax, jnp: jax.jacfwd(with_aux(jnp), has_aux=True)(
        jnp.arange(3.0)
    ),
    "jacrev with aux": lambda jax, jnp: jax.jacrev(with_aux(jnp), has_aux=True)(
        jnp.arange(3.0)
    ),
    "hessian with aux": lambda jax, jnp: jax.hessian(with_aux(jnp), has_aux=True)(
        jnp.arange(3.0)
    ),
    "jacfwd of integers": lambda jax, jnp: jax.jacfwd(jnp.sin)(jnp.arange(3)),
    "jacrev of integers": lambda jax, jnp: jax.jacrev(jnp.sin)(jnp.arange(3)),
    "jacrev of integers allowed": lambda jax, jnp: jax.jacrev(jnp.sin, allow_int=True)(
        jnp.arange(3)
    ),
    "jacfwd of complex": lambda jax, jnp: jax.jacfwd(jnp.sin)(jnp.ones(2) * 1j),
    "jacrev of complex": lambda jax, jnp: jax.jacrev(jnp.sin)(jnp.ones(2) * 1j),
    "jacfwd holomorphic": lambda jax, jnp: jax.jacfwd(jnp.sin, holomorphic=True)(
        jnp.ones(2) * (1 + 1j)
    ),
    "jacrev holomorphic": lambda jax, jnp: jax.jacrev(jnp.sin, holomorphic=True)(
        jnp.ones(2) * (1 + 1j)
    ),
    "hessian holomorphic": lambda jax, jnp: jax.hessian(
        lambda x: jnp.sum(jnp.exp(x) ** 2), holomorphic=True
    )(jnp.ones(2) * (1 + 1j)),
    "holomorphic of real": lambda jax, jnp: jax.grad(jnp.sin, holomorphic=True)(1.0),
    "holomorphic to real": lambda jax, jnp: jax.grad(jnp.real, holomorphic=True)(1j),
    "complex result": lambda jax, jnp: jax.grad(lambda x: x * 1j)(1.0),
    "vector result": lambda jax, jnp: jax.grad(jnp.sin)(jnp.ones(3)),
    "integer result": lambda jax, jnp: jax.grad(lambda x: 3)(1.0),
    "no result": lambda jax, jnp: jax.grad(lambda x: None)(1.0),
    "pullback": lambda jax, jnp: jax.vjp(lambda z: jnp.sin(z) * jnp.conj(z), 1 + 2j)[1](
        jnp.complex64(2 - 1j)
    ),
    "pushforward": lambda jax, jnp: jax.jvp(
        lambda z: jnp.exp(z) / z, (1 + 2j,), (0.5 - 1j,)
    ),
    "pushforward of real": lambda jax, jnp: jax.jvp(jnp.exp, (1 + 2j,), (0.5,)),
    "matrices": lambda jax, jnp: jax.grad(
        lambda a: jnp.real(jnp.trace(a @ a.conj().T @ a))
    )(jnp.arange(4.0).reshape(2, 2) + 1j),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name):
    assert_same(lambda jax: SPECIAL[name](jax, jax.numpy), minijax, jax)


COMPLEX = {
    "real": lambda jnp, x: jnp.real(x),
    "imag": lambda jnp, x: jnp.imag(x),
    "abs": lambda jnp, x: jnp.abs(x),
    "angle": lambda jnp, x: jnp.angle(x),
    "real of cube": lambda jnp, x: jnp.real(x**3),
    "real of power": lambda jnp, x: jnp.real(x**2.5),
    "real of complex power": lambda jnp, x: jnp.real(x ** (1 + 2j)),
    "square modulus": lambda jnp, x: jnp.real(jnp.conj(x) * x),
    "times imag": lambda jnp, x: jnp.real(x * x.imag),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_real_functions_of_complex_numbers(name):
    def program(jax):
        def function(x):
            return COMPLEX[name](jax.numpy, x)

        strong = jax.numpy.complex64(1 + 2j)
        return jax.grad(function)(1 + 2j), jax.grad(function)(strong)

    assert_same(program, minijax, jax)


HOLOMORPHIC = """sin cos tan sinh cosh tanh exp log sqrt arcsin arccos arctan arcsinh
    arccosh arctanh log1p expm1 square reciprocal""".split()


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic(name):
    def program(jax):
        function = getattr(jax.numpy, name)
        first = jax.grad(function, holomorphic=True)
        return first(0.3 + 0.4j), jax.grad(first, holomorphic=True)(0.3 + 0.4j)

    assert_same(program, minijax, jax)


POWERS = [1.5, np.float32(1.5), 1.5 + 1j, np.complex64(1.5 + 1j), 3, np.float16(1.5)]


@pytest.mark.parametrize("exponent", POWERS, ids=repr)
@pytest.mark.parametrize("base", POWERS, ids=repr)
def test_weak_types_of_powers(base, exponent):
    def program(jax):
        return (
            jax.jvp(lambda x: x**exponent, (base,), (base,)),
            jax.jvp(lambda y: base**y, (exponent,), (exponent,)),
        )

    assert_same(program, minijax, jax)


FLOAT0 = {
    "grad": lambda jax, jnp: jax.grad(lambda n, x: x * n * 1.0, allow_int=True)(3, 2.0),
    "compiled": lambda jax, jnp: jax.jit(
        jax.grad(lambda n, x: x * n * 1.0, allow_int=True)
    )(3, 2.0),
    "mapped": lambda jax, jnp: jax.vmap(
        jax.grad(lambda n, x: x * n * 1.0, allow_int=True)
    )(jnp.arange(3), jnp.ones(3)),
    "mapped and compiled": lambda jax, jnp: jax.jit(
        jax.vmap(jax.grad(lambda n, x: x * n * 1.0, allow_int=True))
    )(jnp.arange(3), jnp.ones(3)),
    "boolean": lambda jax, jnp: jax.grad(
        lambda x: jnp.where(x, 1.0, 2.0), allow_int=True
    )(True),
    "jvp": lambda jax, jnp: jax.jvp(
        lambda x, n: (x * n, n + 1), (2.0, 3), (1.0, np.zeros((), jax.float0))
    )[1][1],
    "vjp": lambda jax, jnp: jax.vjp(lambda x, n: x * n, jnp.ones(2), jnp.arange(2))[1](
        jnp.ones(2)
    )[1],
    "linearize": lambda jax, jnp: jax.linearize(lambda x, n: (x * n, n), 2.0, 3)[1](
        1.0, np.zeros((), jax.float0)
    )[1],
}


@pytest.mark.parametrize("name", FLOAT0)
def test_float0(name):
    ours = FLOAT0[name](minijax, minijax.numpy)
    theirs = FLOAT0[name](jax, jax.numpy)
    assert ours.dtype == theirs.dtype == minijax.float0
    assert ours.shape == theirs.shape
    assert np.asarray(ours).dtype == minijax.float0


BAD_FLOAT0 = {
    "integer tangent": lambda jax: jax.jvp(lambda x, n: x * n, (2.0, 3), (1.0, 1)),
    "floating tangent": lambda jax: jax.jvp(lambda x, n: x * n, (2.0, 3), (1.0, 1.0)),
    "integer cotangent": lambda jax: jax.vjp(
        lambda x: (x * 2.0, jax.numpy.int32(x)), 2.0
    )[1]((1.0, 1)),
    "integer gradient": lambda jax: jax.grad(lambda x: x * 2.0)(3),
}


@pytest.mark.parametrize("name", BAD_FLOAT0)
def test_integers_have_no_tangents(name):
    assert_same(BAD_FLOAT0[name], minijax, jax)


FUNCTIONS = {
    "product": lambda jax, jnp: lambda x: jnp.sin(x) * x**3,
    "quotient": lambda jax, jnp: lambda x: jnp.exp(jnp.tanh(x)) / x,
    "nested jit": lambda jax, jnp: lambda x: jnp.log(x) * jax.jit(jnp.cos)(x),
    "matrix": lambda jax, jnp: (
        lambda x: jnp.sum(
            jnp.array([[1.0, 2.0], [3.0, 4.0]]) @ (x * jnp.arange(1.0, 3.0)) ** 3
        )
    ),
    "softmax": lambda jax, jnp: lambda x: jax.nn.softmax(x * jnp.arange(3.0))[1],
    "gelu": lambda jax, jnp: jax.nn.gelu,
    "where": lambda jax, jnp: lambda x: jnp.where(x > 0, x**4, 0.0),
    "checkpoint": lambda jax, jnp: jax.checkpoint(lambda x: jnp.sin(x) ** 2 * x),
    "fori_loop": lambda jax, jnp: (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * x, x)
    ),
    "scan": lambda jax, jnp: (
        lambda x: jax.lax.scan(
            lambda c, k: (c * jnp.cos(k * x), c), x, jnp.arange(1.0, 4.0)
        )[0]
    ),
    "cond": lambda jax, jnp: lambda x: jax.lax.cond(x > 0, jnp.sin, jnp.cos, x * x),
}


def nested(jax, modes, function):
    """`frf`: forward over reverse over forward."""
    for mode in reversed(modes):
        if mode == "r":
            function = jax.grad(function)
        else:
            function = pushed(jax, function)
    return function


def pushed(jax, function):
    return lambda x: jax.jvp(function, (x,), (1.0,))[1]


@pytest.mark.parametrize("modes", ["frf", "rfr", "frfr", "rfrf", "rrr", "ffff"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_modes_over_modes(name, modes):
    def program(jax):
        function = nested(jax, modes, FUNCTIONS[name](jax, jax.numpy))
        return jax.jit(function)(0.7)

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("name", ["product", "nested jit"])
@pytest.mark.parametrize("modes", ["frfr", "rrrr"])
def test_modes_over_modes_elsewhere(name, modes):
    def program(jax):
        function = nested(jax, modes, FUNCTIONS[name](jax, jax.numpy))
        return function(0.7), jax.vmap(function)(jax.numpy.array([0.3, 0.7]))

    assert_same(program, minijax, jax)


@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
@pytest.mark.parametrize("library", [jax, minijax])
def test_reduce_axes_are_refused(library, name):
    with pytest.raises(NotImplementedError, match="reduce_axes"):
        getattr(library, name)(library.numpy.sin, reduce_axes=("i",))
