"""`lax.composite`: what it prints, lowers to and refuses; JAX is the oracle."""

import functools
import re

import jax
import ml_dtypes
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
def test_prints_as_jax(name):
    theirs, ours = (PROGRAMS[name](lib) for lib in LIBRARIES)
    assert str(minijax.make_jaxpr(ours)(X)) == str(jax.make_jaxpr(theirs)(X))


@pytest.mark.parametrize("name", PROGRAMS)
def test_computes_as_jax(name):
    theirs, ours = (PROGRAMS[name](lib) for lib in LIBRARIES)
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
def test_attributes_are_lowered_as_jax_does(name):
    ours, theirs = (pair_of(lib, a=ATTRIBUTES[name]) for lib in (minijax, jax))
    found = operations(minijax, ours, X)
    assert found == operations(jax, theirs, X)
    assert len(found[0]) == 1


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_printed_as_jax_does(name):
    ours, theirs = (pair_of(lib, a=ATTRIBUTES[name]) for lib in (minijax, jax))
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


# ---- scaled_dot ----------------------------------------------------------------------

F8, SCALES, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.bfloat16
# Shapes of lhs, rhs and their scales (None: not given), and the keywords.
SCALED = {
    "a matrix": ((4, 8), (8, 6), (4, 2), (2, 6), {}),
    "in float32": (
        *((4, 8), (8, 6), (4, 2), (2, 6)),
        {"preferred_element_type": np.float32},
    ),
    "a batch": ((2, 4, 8), (2, 8, 6), (2, 4, 4), (2, 2, 6), {}),
    "one scale": ((4, 8), (8, 6), None, (2, 6), {}),
    "rows with rows": (
        *((4, 8), (6, 8), (4, 2), (6, 4)),
        {"dimension_numbers": (((1,), (1,)), ((), ()))},
    ),
    "two contracted": (
        *((4, 8, 6), (8, 6, 2), (4, 2, 3), (2, 3, 2)),
        {"dimension_numbers": (((1, 2), (0, 1)), ((), ()))},
    ),
}
WRONG_SCALES = {
    "no divisor": ((4, 8), (8, 6), (4, 3), (2, 6), {}),
    "one for each entry": ((4, 8), (8, 6), (4, 8), (2, 6), {}),
    "another rank": ((4, 8), (8, 6), (4,), (2, 6), {}),
    "fewer rows": ((4, 8), (8, 6), (1, 2), (2, 6), {}),
    "vectors": ((8,), (8,), None, None, {}),
    "other sizes": ((4, 8), (7, 6), None, None, {}),
}


def scaled(lib, case, dtype=F8):
    """The product as a function of its operands, and the operands."""
    *shapes, keywords = case
    numbers = np.random.default_rng(0)
    kinds = [dtype, dtype, SCALES, SCALES]
    names = ["lhs", "rhs", "lhs_scale", "rhs_scale"]
    given = {
        name: (2.0 ** numbers.integers(-2, 3, size=shape)).astype(kind)
        for name, shape, kind in zip(names, shapes, kinds)
        if shape is not None
    }

    def product(*values):
        named = dict(zip(given, values))
        both = named.pop("lhs"), named.pop("rhs")
        return lib.lax.scaled_dot(*both, **named, **keywords)

    return product, [lib.numpy.asarray(value) for value in given.values()]


@pytest.mark.parametrize("dtype", [F8, BF16])
@pytest.mark.parametrize("name", SCALED)
def test_scaled_products_as_jax(name, dtype):
    (theirs, given), (ours, args) = (
        scaled(lib, SCALED[name], dtype) for lib in LIBRARIES
    )
    assert str(minijax.make_jaxpr(ours)(*args)) == str(jax.make_jaxpr(theirs)(*given))
    expected = theirs(*given)
    found = [ours(*args), minijax.jit(ours)(*args)]
    batch = [minijax.numpy.stack([x, x], 1) for x in args]
    axes = ([1] * len(args), [1] + [None] * (len(args) - 1))
    found += [*minijax.vmap(ours, axes[0])(*batch)]
    found += [*minijax.vmap(ours, axes[1])(batch[0], *args[1:])]
    for result in found:
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


def test_a_scaled_product_is_a_composite():
    product, args = scaled(minijax, SCALED["a batch"])
    text = minijax.jit(product).lower(*args).as_text()
    assert 'stablehlo.composite "xla.scaled_dot"' in text


@pytest.mark.parametrize("name", WRONG_SCALES)
def test_scaled_products_refuse_as_jax(name):
    (theirs, given), (ours, args) = (
        scaled(lib, WRONG_SCALES[name]) for lib in LIBRARIES
    )
    with pytest.raises(TypeError):
        theirs(*given)
    with pytest.raises(TypeError, match=r"scaled_dot|dot_general") as error:
        ours(*args)
    lhs, rhs, scales, _, _ = WRONG_SCALES[name]
    blamed = {"vectors": ["lhs is", "[8]"], "other sizes": [str(lhs), str(rhs)]}
    scaled_by = str(scales).strip("(),").replace(" ", "")
    for part in blamed.get(
        name, [f"lhs_scale is float8_e8m0fnu[{scaled_by}], for lhs"]
    ):
        assert part in str(error.value)


def test_wrong_scales_are_named_with_shape_and_dtype():
    ours, args = scaled(minijax, WRONG_SCALES["no divisor"])
    with pytest.raises(TypeError, match=r"lhs_scale is float8_e8m0fnu\[4,3\], for"):
        ours(*args)
    ours, args = scaled(minijax, WRONG_SCALES["vectors"])
    with pytest.raises(TypeError, match=r"lhs is float8_e4m3fn\[8\]: pass"):
        ours(*args)
    x = np.ones((4, 64), np.float32)
    with pytest.raises(TypeError, match="scaled_dot requires rhs dimension numbers"):
        minijax.lax.scaled_dot(x, x, dimension_numbers=(((1,), (5,)), ((), ())))


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        *[
            (numbers, "dimension_numbers must be")
            for numbers in (
                ((1,), (0,)),
                (((1,), (0,)),),
                ((1, 0), ((), ())),
                (((1,), (0,), ()), ((), ())),
                3,
            )
        ],
        ("foo", "preferred_element_type: data type 'foo'"),
        (object, "preferred_element_type: "),
    ],
)
def test_a_wrong_argument_of_a_scaled_product_is_named(wrong, argument):
    name = argument.split()[0].rstrip(":")
    classes = []
    for lib in LIBRARIES:
        x, y = lib.numpy.ones((4, 64)), lib.numpy.ones((64, 4))
        with pytest.raises((TypeError, ValueError)) as error:
            lib.lax.scaled_dot(x, y, **{name: wrong})
        classes.append(error.type)
        if lib is minijax:
            assert str(error.value).startswith(f"scaled_dot: {argument}")
    assert classes[0] is classes[1]


def test_a_scaled_product_has_no_derivative():
    product, (x, *rest) = scaled(minijax, SCALED["a matrix"], BF16)
    with pytest.raises(NotImplementedError, match="scaled_dot"):
        minijax.jvp(lambda x: product(x, *rest), (x,), (x,))
