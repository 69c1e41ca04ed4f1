"""What well-known libraries do with transformations, beside passing arrays."""

import jax
import numpy as np
import pytest

from tests.oracle.oracle import assert_same

minijax = pytest.importorskip("minijax")
X = np.arange(3, dtype=np.float32)


class Thing:
    """An object that is no array and no tree."""

    def __call__(self, x):
        return x * 2


def computing(jax, f):
    def inside(*args):
        with jax.ensure_compile_time_eval():
            return f(*args)

    return inside


TRACERS_INSIDE = {
    "jit": lambda jax, f: jax.jit(f)(X),
    "vmap": lambda jax, f: jax.vmap(f)(X),
    "grad": lambda jax, f: jax.vmap(jax.grad(f))(X),
    "jit of grad": lambda jax, f: jax.jit(jax.grad(f))(X[0]),
    "jvp": lambda jax, f: jax.jvp(f, (X,), (X,)),
    "linearize": lambda jax, f: jax.linearize(f, X)[1](X),
    "checkpoint": lambda jax, f: jax.grad(jax.checkpoint(f))(X[1]),
    "cond": lambda jax, f: jax.lax.cond(True, f, lambda x: x, X),
    "scan": lambda jax, f: jax.lax.scan(lambda c, x: (f(c), x), X, X),
    "named axis": lambda jax, f: jax.vmap(
        lambda x: jax.lax.psum(f(x), "i"), axis_name="i"
    )(X),
}
INSIDE = {
    "sin": lambda jax, x: jax.numpy.sin(x),
    "known values": lambda jax, x: x * float(jax.numpy.sum(jax.numpy.ones(3))),
    "a branch on a known value": lambda jax, x: (
        x if jax.numpy.ones(()) > 0 else jax.numpy.zeros(())
    ),
    "relu": lambda jax, x: jax.nn.relu(x),
    "jit": lambda jax, x: jax.jit(jax.numpy.sin)(x),
    "jvp": lambda jax, x: jax.jvp(jax.numpy.sin, (x,), (x,))[1],
    "custom_vjp": lambda jax, x: jax.nn.gelu(jax.numpy.ones(())) * x,
}


@pytest.mark.parametrize("around", TRACERS_INSIDE)
@pytest.mark.parametrize("inside", INSIDE)
def test_tracers_inside_of_ensure_compile_time_eval(around, inside):
    def program(jax):
        f = computing(jax, lambda x: INSIDE[inside](jax, x))
        return TRACERS_INSIDE[around](jax, f)

    assert_same(program, minijax, jax)


def test_a_tracer_has_no_value_inside_of_ensure_compile_time_eval():
    def program(jax):
        return jax.jit(computing(jax, lambda x: x if x[0] > 0 else -x))(X)

    assert_same(program, minijax, jax)


def test_known_values_are_computed_inside_of_ensure_compile_time_eval():
    """They are constants of the program, not equations."""

    def f(x):
        with minijax.ensure_compile_time_eval():
            table = minijax.numpy.cumsum(minijax.numpy.arange(3.0))
        return x + table

    closed = minijax.make_jaxpr(f)(X)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["add"]


OBJECTS = {
    "shared": lambda jax, o: jax.vmap(lambda o, x: x * 2, in_axes=(None, 0))(o, X),
    "called": lambda jax, o: jax.vmap(lambda o, x: o(x), in_axes=(None, 0))(o, X),
    "text": lambda jax, o: jax.vmap(lambda o, x: x, in_axes=(None, 0))("text", X),
    "in a tree": lambda jax, o: jax.vmap(lambda d, x: d["o"](x), in_axes=(None, 0))(
        {"o": o}, X
    ),
    "twice": lambda jax, o: jax.vmap(
        jax.vmap(lambda o, x: o(x), in_axes=(None, 0)), in_axes=(None, 0)
    )(o, X[None]),
    "of grad": lambda jax, o: jax.vmap(jax.grad(lambda x, o: o(x)), in_axes=(0, None))(
        X, o
    ),
    "mapped": lambda jax, o: jax.vmap(lambda o, x: x)(o, X),
    "returned": lambda jax, o: jax.vmap(
        lambda o, x: o, in_axes=(None, 0), out_axes=None
    )(o, X),
    "alone": lambda jax, o: jax.vmap(lambda o: X, in_axes=None)(o),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_vmap_passes_on_what_it_does_not_map(case):
    assert_same(lambda jax: OBJECTS[case](jax, Thing()), minijax, jax)


def struct(jax, **options):
    return jax.ShapeDtypeStruct((3,), "float32", **options)


DESCRIPTIONS = {
    "alone": lambda jax: jax.eval_shape(lambda: struct(jax)),
    "weak": lambda jax: jax.eval_shape(lambda: struct(jax, weak_type=True)),
    "in a tree": lambda jax: jax.eval_shape(lambda x: {"a": struct(jax), "b": x}, X),
    "of jit": lambda jax: jax.eval_shape(jax.jit(lambda: struct(jax))),
    "jit.eval_shape": lambda jax: jax.jit(lambda: struct(jax)).eval_shape(),
    "computed": lambda jax: jax.jit(lambda: struct(jax))(),
    "eager": lambda jax: jax.lax.sin(struct(jax)),
    "a type": lambda jax: jax.eval_shape(lambda: jax.typeof(X)),
    "text": lambda jax: jax.eval_shape(lambda: "text"),
}


@pytest.mark.parametrize("case", DESCRIPTIONS)
def test_descriptions_of_arrays_as_results(case):
    def program(jax):
        found = DESCRIPTIONS[case](jax)
        return repr(jax.tree.map(repr, found))

    texts = []
    for library in (minijax, jax):
        try:
            texts.append(program(library))
        except Exception as error:
            texts.append(type(error).__name__)
    assert texts[0] == texts[1]


def first(*args):
    return args[0]


def first_of_any(*args):
    """Another function: jax's cache would take a call of `first` for one of it."""
    return args[0]


def add(x, y=2):
    return x + y


STATIC = [
    (add, (2,), (1, 2)),
    (add, (5,), (1, 2)),
    (add, (-5,), (1, 2)),
    (add, (-1,), (1, 2)),
    (add, (1,), (1,)),
    (first, (2,), (1, 2)),
    (first, (2,), (1, 2, "static")),
    (first, (-1,), (1, "static")),
    (first_of_any, (-3,), (1, 2)),
]


@pytest.mark.parametrize(("function", "numbers", "args"), STATIC)
def test_static_argnums_beyond_the_arguments(function, numbers, args):
    def program(jax):
        return jax.jit(function, static_argnums=numbers)(*args)

    assert_same(program, minijax, jax)
