"""`lax.composite`: what it prints, lowers to and refuses; JAX is the oracle."""

import functools
import re

import jax
import numpy as np
import pytest

import minijax

X = np.arange(3, dtype=np.float32)
LIBRARIES = (jax, minijax)


def softmax_of(lib):
    @functools.partial(lib.lax.composite, name="my.softmax", version=3)
    def softmax(x, /, *, axis, note=None):
        return lib.nn.softmax(x, axis)

    return softmax


def pair_of(lib, **attributes):
    def pair(x, y, **_):
        return {"product": x["u"] * y, "next": y + 1}

    named = lib.lax.composite(pair, name="my.pair")
    return lambda x: named({"u": x}, 3.0, **attributes)


PROGRAMS = {
    "softmax": lambda lib: lambda x: softmax_of(lib)(x, axis=-1) * 2,
    "twice": lambda lib: lambda x: softmax_of(lib)(softmax_of(lib)(x, axis=-1), axis=0),
    "trees": pair_of,
    "a constant": lambda lib: lib.lax.composite(lambda x: x * lib.numpy.ones(3), "a.b"),
    "an unused result": lambda lib: (
        lambda x: lib.lax.composite(lambda x: (x, x * 2), "a.b")(x)[1]
    ),
    "in a loop": lambda lib: (
        lambda x: lib.lax.scan(
            lambda c, _: (softmax_of(lib)(c, axis=-1), None), x, None, 3
        )[0]
    ),
    "beside a gradient": lambda lib: (
        lambda x: lib.grad(lambda y: (y * softmax_of(lib)(X, axis=-1)).sum())(x)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_and_computes_as_jax(name):
    theirs, ours = (PROGRAMS[name](lib) for lib in LIBRARIES)
    assert str(minijax.make_jaxpr(ours)(X)) == str(jax.make_jaxpr(theirs)(X))
    for expected, eager, compiled in zip(
        *map(jax.tree.leaves, (theirs(X), ours(X), minijax.jit(ours)(X))), strict=True
    ):
        assert eager.dtype == compiled.dtype == expected.dtype
        np.testing.assert_allclose(eager, expected, rtol=1e-6)
        np.testing.assert_allclose(compiled, expected, rtol=1e-6)


ATTRIBUTES = {
    "an integer": 3,
    "a float": 1.5,
    "a bool": True,
    "a text": "hi",
    "bytes": b"hi",
    "None": None,
    "a NumPy scalar": np.float32(3),
    "a small integer": np.int8(3),
    "a vector": np.arange(3),
    "a matrix": np.ones((2, 2), np.float32),
    "a tuple": (1, 2),
    "a list": [1, 2.0],
    "arrays in a tuple": (np.ones(2),),
    "a dict": {"a": 1, "b": [2.0]},
    "a dtype": np.dtype(np.float32),
}


def operations(lib, function, x):
    """The lines of the lowered program that are composites."""
    text = lib.jit(function).lower(x).as_text()
    return re.findall(r"stablehlo\.composite.*", text), text.count("func.func")


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_lowered_and_printed_as_jax_does(name):
    ours, theirs = (pair_of(lib, a=ATTRIBUTES[name]) for lib in (minijax, jax))
    found = operations(minijax, ours, X)
    assert found == operations(jax, theirs, X)
    assert len(found[0]) == 1
    assert str(minijax.make_jaxpr(ours)(X)) == str(jax.make_jaxpr(theirs)(X))


def test_module_keeps_name_version_and_decomposition():
    twice = [PROGRAMS["twice"](lib) for lib in (minijax, jax)]
    ours = operations(minijax, twice[0], X)
    assert ours == operations(jax, twice[1], X)
    assert len(ours[0]) == 2
    assert "version = 3 : i32" in ours[0][0]
    assert "decomposition = @my.softmax_0" in ours[0][1]


def test_exported_program_keeps_it():
    exported = minijax.export.export(minijax.jit(PROGRAMS["softmax"](minijax)))(X)
    assert '"my.softmax"' in exported.mlir_module()
    back = minijax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(back.call(X), 2 * jax.nn.softmax(X), rtol=1e-6)


def named(lib, name="a.b", fun=lambda x: 2 * x):
    return lib.lax.composite(fun, name)


def printing(lib):
    def prints(x):
        lib.debug.print("{}", x, ordered=True)
        return x

    return lib.jit(named(lib, fun=prints))(X)


# What is done, and what the message must say.
REFUSED = {
    "jvp": (lambda lib: lib.jvp(named(lib), (X,), (X,)), "custom_jvp"),
    "grad": (lambda lib: lib.grad(lambda x: named(lib)(x).sum())(X), "custom_jvp"),
    "transpose": (lambda lib: lib.linear_transpose(named(lib), X)(X), "custom_vjp"),
    "vmap": (lambda lib: lib.vmap(named(lib))(X), "composite"),
    "a traced attribute": (
        lambda lib: lib.jit(lambda y: pair_of(lib, a=y)(X))(X),
        "attribute",
    ),
    "a traced constant": (
        lambda lib: lib.jit(lambda y: named(lib, fun=lambda x: x * y)(X))(X),
        "constant",
    ),
    "no namespace": (lambda lib: lib.jit(named(lib, "plain"))(X), "namespaced op name"),
    "a bad name": (lambda lib: lib.jit(named(lib, "a.b c"))(X), "namespaced op name"),
    "no array": (lambda lib: named(lib, fun=lambda x: "text")(X), "str"),
    "an unknown attribute": (
        lambda lib: lib.jit(pair_of(lib, a=1j))(X),
        "(?i)attribute",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_jax_refuses(name):
    act, words = REFUSED[name]
    with pytest.raises(Exception) as theirs:
        act(jax)
    with pytest.raises(Exception) as ours:
        act(minijax)
    assert type(ours.value).__name__ == type(theirs.value).__name__
    assert re.search(words, str(ours.value))


def test_ordered_effects_are_refused_with_a_sentence():
    """JAX lets a KeyError out."""
    with pytest.raises(KeyError):
        printing(jax)
    with pytest.raises(ValueError, match="ordered side effects"):
        printing(minijax)


def test_a_name_without_namespace_computes_eagerly():
    for lib in LIBRARIES:
        np.testing.assert_array_equal(named(lib, "plain")(X), 2 * X)
    assert named(minijax, fun=softmax_of).__name__ == "softmax_of"
