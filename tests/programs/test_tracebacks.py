"""Traceback filtering: which frames a user sees in each mode, as in JAX."""

import os
import traceback

import jax
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core import errors
from minijax.support.config import traceback_filtering as mode
from tests.programs.sides import LIBRARIES

PACKAGE = os.path.dirname(minijax.__file__) + os.sep


def bad(library):
    def inner(x):
        raise ValueError("from the user")

    return inner


def wrong_shapes(library):
    def inner(x):
        return x + library.numpy.dot(library.numpy.ones(5), library.numpy.ones(7))

    return inner


WRAPPERS = {
    "jit": lambda library, f: library.jit(f),
    "jit jit": lambda library, f: library.jit(library.jit(f)),
    "grad": lambda library, f: library.grad(f),
    "value_and_grad": lambda library, f: library.value_and_grad(f),
    "vmap": lambda library, f: library.vmap(f),
    "jvp": lambda library, f: lambda x: library.jvp(f, (x,), (x,)),
    "vjp": lambda library, f: lambda x: library.vjp(f, x),
    "linearize": lambda library, f: lambda x: library.linearize(f, x),
    "jacfwd": lambda library, f: library.jacfwd(f),
    "jacrev": lambda library, f: library.jacrev(f),
    "hessian": lambda library, f: library.hessian(f),
    "make_jaxpr": lambda library, f: library.make_jaxpr(f),
    "eval_shape": lambda library, f: lambda x: library.eval_shape(f, x),
    "checkpoint": lambda library, f: library.checkpoint(f),
    "custom_jvp": lambda library, f: with_jvp(library.custom_jvp(f)),
    "custom_vjp": lambda library, f: with_vjp(library.custom_vjp(f)),
    "cond": lambda library, f: lambda x: library.lax.cond(True, f, f, x),
    "switch": lambda library, f: lambda x: library.lax.switch(0, [f, f], x),
    "scan": lambda library, f: lambda x: library.lax.scan(lambda c, y: (f(c), y), x, x),
    "map": lambda library, f: lambda x: library.lax.map(f, x),
    "while_loop": lambda library, f: (
        lambda x: library.lax.while_loop(lambda x: True, f, x)
    ),
    "fori_loop": lambda library, f: (
        lambda x: library.lax.fori_loop(0, 3, lambda i, x: f(x), x)
    ),
    "all": lambda library, f: library.jit(library.vmap(library.grad(library.jit(f)))),
}


def with_jvp(f):
    f.defjvp(lambda p, t: (f(*p), t[0]))
    return f


def with_vjp(f):
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct,))
    return f


def raised(library, name, make):
    wrapped = WRAPPERS[name](library, make(library))
    try:
        wrapped(library.numpy.ones(3))
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def frames_of(error):
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def names_of_own(error):
    return [
        frame.f_code.co_name
        for frame in frames_of(error)
        if frame.f_code.co_filename == __file__
    ]


@pytest.mark.parametrize("make", [bad, wrong_shapes])
@pytest.mark.parametrize("name", WRAPPERS)
def test_only_the_users_frames_are_left(name, make):
    with mode("quiet_remove_frames"):
        error = raised(minijax, name, make)
    files = {frame.f_code.co_filename for frame in frames_of(error)}
    assert not any(file.startswith(PACKAGE) for file in files)
    theirs = raised(jax, name, make)
    assert names_of_own(error) == names_of_own(theirs)
    (note,) = [n for n in error.__notes__ if "internal frames" in n]
    assert "JAX_TRACEBACK_FILTERING=off" in note
    assert sum("internal frames" in n for n in theirs.__notes__) == 1


def test_off_leaves_everything():
    with mode("off"):
        error = raised(minijax, "grad", bad)
    assert any(f.f_code.co_filename.startswith(PACKAGE) for f in frames_of(error))
    assert not getattr(error, "__notes__", [])


def test_remove_frames_keeps_the_whole_traceback_as_the_cause():
    for library in LIBRARIES:
        setting = mode if library is minijax else jax._src.config.traceback_filtering
        with setting("remove_frames"):
            error = raised(library, "vmap", bad)
        cause = error.__cause__
        assert type(cause).__name__ == "UnfilteredStackTrace"
        assert "ValueError: from the user" in str(cause)
        assert "The stack trace below excludes" in str(cause)
        frames = [frame.f_code for frame, _ in traceback.walk_tb(cause.__traceback__)]
        assert any(os.sep + library.__name__ + os.sep in c.co_filename for c in frames)
        assert [c.co_name for c in frames].count("inner") == 1


def test_remove_frames_keeps_the_cause_that_was_there():
    def f(x):
        raise ValueError("second") from KeyError("first")

    with mode("remove_frames"), pytest.raises(ValueError) as info:
        minijax.jit(f)(1.0)
    assert isinstance(info.value.__cause__.__cause__, KeyError)


def test_tracebackhide_marks_the_frames():
    with mode("tracebackhide"):
        error = raised(minijax, "vmap", bad)
    hidden = {
        frame.f_code.co_filename.startswith(PACKAGE): frame.f_locals.get(
            "__tracebackhide__", False
        )
        for frame in frames_of(error)
    }
    assert hidden == {True: True, False: False}


def test_in_ipython_frames_are_hidden(monkeypatch):
    import builtins

    monkeypatch.setattr(builtins, "get_ipython", lambda: None, raising=False)
    with mode("auto"):
        error = raised(minijax, "vmap", bad)
    frames = [f for f in frames_of(error) if f.f_code.co_filename.startswith(PACKAGE)]
    assert frames and all("__tracebackhide__" in f.f_locals for f in frames)


OPERATIONS = [lambda x: x + jnp.ones(2), lambda x: jnp.dot(x, x[1:])]


@pytest.mark.parametrize("run", OPERATIONS)
def test_operations_outside_of_transformations(run):
    with mode("quiet_remove_frames"), pytest.raises(TypeError) as info:
        run(jnp.ones(3))
    frames = frames_of(info.value)
    assert not any(f.f_code.co_filename.startswith(PACKAGE) for f in frames)
    assert frames[-1].f_code is run.__code__


def test_exceptions_that_are_caught_inside_are_not_touched():
    def f(x):
        try:
            return x + jnp.ones(7)
        except TypeError as error:
            assert not any("internal" in n for n in getattr(error, "__notes__", []))
            return x

    with mode("quiet_remove_frames"):
        minijax.jit(f)(jnp.ones(3))


def test_errors_of_the_environment(monkeypatch):
    with pytest.raises(ValueError, match="must be one of"):
        minijax.config.update("jax_traceback_filtering", "nothing")


def test_boundaries_keep_name_and_signature():
    import inspect

    assert errors.api_boundary(bad).__name__ == "bad"
    assert list(inspect.signature(minijax.lax.cond).parameters)[:2] == [
        "pred",
        "true_fun",
    ]
