"""checking_leaks: which programs leak, as in JAX, and what the message says."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from tests.programs.sides import LIBRARIES

NAMES = ("into_list", "into_class", "into_global", "into_exception", "into_closure")
# Leaks are looked for among the objects that are made from here on.
pytestmark = pytest.mark.usefixtures("small_heap")
VECTOR = np.arange(3, dtype=np.float32)


@pytest.fixture
def leaking():
    """The module of functions that leak, new for each test."""
    path = Path(__file__).with_name("leaking.py")
    spec = importlib.util.spec_from_file_location("leaking", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["leaking"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["leaking"]
    module.KEPT.clear()
    vars(module).pop("KEPT_GLOBAL", None)
    if hasattr(module.Holder, "value"):
        del module.Holder.value


TRANSFORMATIONS = {
    # A function that was traced before is not traced again.
    "jit": lambda library, f: library.jit(lambda x: f(x)),
    "vmap": lambda library, f: library.vmap(f),
    "grad": lambda library, f: library.grad(lambda x: library.numpy.sum(f(x))),
    "jit of vmap": lambda library, f: library.jit(library.vmap(f)),
    "make_jaxpr": lambda library, f: library.make_jaxpr(f),
    "checkpoint": lambda library, f: library.checkpoint(f),
}


def leak(library, transformation, f):
    """The message that JAX or minijax gives, or None."""
    with library.checking_leaks():
        try:
            TRANSFORMATIONS[transformation](library, f)(library.numpy.asarray(VECTOR))
        except Exception as error:
            assert type(error) is Exception
            return str(error)
    return None


def check_both(transformation, f):
    for library in LIBRARIES:
        message = leak(library, transformation, f)
        if library is not minijax and transformation == "grad":
            continue  # JAX 0.10.2 misses it
        assert message is not None and message.startswith("Leaked trace ")
        assert "Leaked tracer(s):" in message


@pytest.mark.parametrize("name", NAMES)
def test_every_way_to_leak(leaking, name):
    check_both("jit", getattr(leaking, name))


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_every_transformation(leaking, transformation):
    check_both(transformation, leaking.into_list)


def test_without_the_flag_nothing_is_raised(leaking):
    minijax.jit(leaking.into_list)(VECTOR)
    minijax.config.update("jax_check_tracer_leaks", True)
    try:
        with pytest.raises(Exception, match="Leaked trace"):
            minijax.jit(leaking.into_list)(VECTOR * 2 + 1j)
    finally:
        minijax.config.update("jax_check_tracer_leaks", False)


def clean_jit_in_jit(library):
    jit = library.jit
    return jit(lambda x: jit(lambda y: x + y)(2.0))


def clean_custom_rules(library):
    nn = library.nn
    return library.jit(library.grad(lambda x: nn.relu(x).sum() + nn.silu(x).sum()))


def clean_custom_vjp(library):
    f = library.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct + x,))
    return library.jit(library.vmap(library.grad(lambda x: f(x) + f(2.0 * x))))


def clean_checkpoint(library):
    numpy = library.numpy
    return library.jit(
        lambda x: library.checkpoint(lambda y: numpy.sin(x) + numpy.sin(y))(x)
    )


def clean_jacobian(library):
    return library.jacfwd(library.jacrev(library.jit(lambda x: x**3)))


def clean_aux(library):
    def f(x):
        return library.numpy.sum(x), {"aux": x * 2}

    return library.jit(library.value_and_grad(f, has_aux=True))


def clean_closure(library):
    def f(x):
        def inner(y):
            return x * y

        return library.vmap(inner)(x)

    return library.jit(f)


def clean_loops(library):
    lax = library.lax

    def f(x):
        total, _ = lax.scan(lambda c, y: (c + y * x[0], y), x[1], x)
        power = lax.fori_loop(0, 3, lambda i, c: c * x[0] + total, x[1])
        limit = lax.while_loop(lambda c: c < x[2], lambda c: c + x[1], x[0])
        return lax.cond(x[0] > 0, lambda y: y * x[1], lambda y: y, power) + limit

    return library.jit(library.vmap(f, in_axes=None, axis_size=2))


def clean_gradient_of_a_loop(library):
    def f(x):
        step = library.checkpoint(lambda c, y: (c * y + x[0], y))
        return library.lax.scan(step, x[1], x)[0]

    return library.jit(library.grad(f))


CLEAN = [
    clean_loops,
    clean_gradient_of_a_loop,
    clean_jit_in_jit,
    clean_custom_rules,
    clean_custom_vjp,
    clean_checkpoint,
    clean_jacobian,
    clean_aux,
    clean_closure,
]


@pytest.mark.parametrize("make", CLEAN)
def test_no_false_alarm(make):
    with minijax.checking_leaks():
        make(minijax)(jnp.asarray(VECTOR))


def lines_of(f, transformation="jit"):
    with minijax.checking_leaks(), pytest.raises(Exception, match="Leaked") as info:
        TRANSFORMATIONS[transformation](minijax, f)(jnp.asarray(VECTOR))
    return info.value.facts["chains"][0], str(info.value)


def test_chain_through_closure_list_and_dict(leaking):
    chain, message = lines_of(leaking.into_closure)
    patterns = [
        r"<DynamicJaxprTracer \d+> is referred to by <function \d+> \(inner\) "
        r"closed-over variable x",
        r"<function \d+> is referred to by <list \d+>\[0\]",
        r"<list \d+> is referred to by <dict \d+>\['inner'\]",
        r"<dict \d+> is referred to by <list \d+>\[0\]",
        r"<list \d+> is referred to by module .*leaking\.KEPT",
    ]
    assert len(chain) == len(patterns)
    for line, pattern in zip(chain, patterns):
        assert re.fullmatch(pattern, line)
        assert line in message


def test_where_it_was_born(leaking):
    _, message = lines_of(lambda x: leaking.into_list(x))
    assert "made by the operation mul in the line" in message
    assert "y = x * 2" in message
    _, message = lines_of(leaking.into_list, "grad")
    assert "y = x * 2" in message
    _, message = lines_of(lambda x: leaking.into_class(x))
    assert "depends on the argument x" in message


def test_names_of_classes_globals_and_frames(leaking):
    assert lines_of(leaking.into_class)[0][-1].endswith("by class Holder.value")
    assert lines_of(leaking.into_global)[0][-1].endswith("leaking.KEPT_GLOBAL")
    _, message = lines_of(leaking.into_exception)
    assert "the variable x of the function into_exception" in message


def test_attributes_of_objects(leaking):
    holder = leaking.Holder()
    leaking.KEPT.append(holder)

    def f(x):
        holder.value = x
        return x

    chain, _ = lines_of(f)
    assert re.search(r"by <Holder \d+>\.value$", chain[0])


def test_many_leaks_are_counted(leaking):
    def f(x):
        for _ in range(8):
            x = x * 2
            leaking.KEPT.append(x)
        return x

    _, message = lines_of(f)
    assert "... and 3 more." in message
