"""debug.print, debug.callback and debug.log under every transformation."""

import logging

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compile.tokens import runtime_tokens
from tests.programs.sides import LIBRARIES, same_error, same_text

X = np.array([0.5, -1.0, 2.0], np.float32)
BATCH = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """What a failed program leaves is not met by the next test."""
    yield
    runtime_tokens.clear()
    jax._src.dispatch.runtime_tokens.clear()


def printed(lib, capsys, fun, *args):
    """The lines that a call prints."""
    capsys.readouterr()
    lib.block_until_ready(fun(*args))
    lib.effects_barrier()
    return capsys.readouterr().out.splitlines()


def prints_twice(lib, ordered=True):
    def f(x):
        lib.debug.print("first {} {y:.2f}", x, y=x[0], ordered=ordered)
        y = lib.numpy.sin(x)
        lib.debug.print("second {y}", y=y, ordered=ordered)
        return y.sum()

    return f


TRANSFORMED = {
    "eager": lambda lib: prints_twice(lib),
    "jit": lambda lib: lib.jit(prints_twice(lib)),
    "jvp": lambda lib: lambda x: lib.jvp(prints_twice(lib), (x,), (x,)),
    "grad": lambda lib: lib.grad(prints_twice(lib)),
    "jit of grad": lambda lib: lib.jit(lib.grad(prints_twice(lib))),
    "grad of jit": lambda lib: lib.grad(lib.jit(prints_twice(lib))),
    "vjp": lambda lib: lambda x: lib.vjp(prints_twice(lib), x)[1](1.0),
    "linearize": lambda lib: lambda x: lib.linearize(prints_twice(lib), x)[1](x),
    "hessian": lambda lib: lib.hessian(prints_twice(lib)),
    "checkpoint": lambda lib: lib.grad(lib.checkpoint(prints_twice(lib))),
    "saved": lambda lib: lib.grad(
        lib.checkpoint(
            prints_twice(lib), policy=lib.checkpoint_policies.everything_saveable
        )
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_prints_what_jax_prints(name, capsys):
    ours, theirs = (
        printed(lib, capsys, TRANSFORMED[name](lib), X) for lib in LIBRARIES
    )
    assert ours == theirs
    assert len(ours) >= 2


@pytest.mark.parametrize("name", TRANSFORMED)
def test_text(name):
    same_text(TRANSFORMED[name], X)


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.vmap(prints_twice(lib)),
        lambda lib: lib.jit(lib.vmap(prints_twice(lib))),
        lambda lib: lib.vmap(lib.jit(prints_twice(lib))),
        lambda lib: lib.vmap(lib.grad(prints_twice(lib))),
    ],
)
def test_vmap_prints_each_example(make, capsys):
    ours, theirs = (printed(lib, capsys, make(lib), BATCH) for lib in LIBRARIES)
    assert ours == theirs
    assert len(ours) == 4
    same_text(make, BATCH)


def test_vmap_with_what_is_not_mapped(capsys):
    def make(lib):
        def f(x, y):
            lib.debug.print("{} {}", x, y)
            lib.debug.print("only {}", y)
            lib.debug.print("nothing")

        return lib.vmap(f, in_axes=(1, None))

    ours, theirs = (printed(lib, capsys, make(lib), BATCH, 7.0) for lib in LIBRARIES)
    assert ours == theirs
    same_text(make, BATCH, 7.0)


FORMATS = {
    "scalar": lambda lib: ("{:.3f} {:>8} {!r}", 1.23456, np.float32(2.0), 3),
    "array": lambda lib: ("{}", lib.numpy.arange(3)),
    "matrix": lambda lib: ("{x}", dict(x=lib.numpy.ones((2, 3)))),
    "tree": lambda lib: ("{}", {"a": [lib.numpy.arange(2), 1], "b": None}),
    "static": lambda lib: ("{} {} {}", "word", None, 2),
    "item": lambda lib: ("{0[a]} {1[0]}", {"a": lib.numpy.float32(2.0)}, [1.5]),
    "attribute": lambda lib: ("{0.shape} {0.dtype}", lib.numpy.ones((2, 1))),
    "braces": lambda lib: ("{{}} {}", 1),
    "text only": lambda lib: ("nothing to fill",),
    "empty": lambda lib: ("",),
    "large": lambda lib: ("{}", lib.numpy.arange(2000.0)),
    "key": lambda lib: ("{}", lib.random.key(3)),
    "complex": lambda lib: ("{:.1f}", lib.numpy.complex64(1 + 2j)),
    "bool": lambda lib: ("{}", lib.numpy.array([True, False])),
    "bfloat16": lambda lib: ("{}", lib.numpy.ones(2, "bfloat16")),
    "bad format": lambda lib: ("{:.2f}", lib.numpy.arange(3.0)),
}


def print_all(lib, args):
    fmt, *rest = args
    if len(rest) == 1 and isinstance(rest[0], dict) and "{x}" in fmt:
        return lib.debug.print(fmt, **rest[0])
    return lib.debug.print(fmt, *rest)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, jitted, capsys):
    if name == "bad format":
        kinds = []
        for lib in LIBRARIES:
            with pytest.raises(Exception) as info:
                show = lambda: print_all(lib, FORMATS[name](lib))
                (lib.jit(show) if jitted else show)()
                lib.effects_barrier()
            kinds.append(info.type.__name__)
        assert kinds[0] == kinds[1]
        return
    outputs = []
    for lib in LIBRARIES:
        args = FORMATS[name](lib)
        show = lambda lib=lib, args=args: print_all(lib, args)
        outputs.append(printed(lib, capsys, lib.jit(show) if jitted else show))
    assert outputs[0] == outputs[1]


def test_print_options_are_those_of_the_moment(capsys):
    outputs = []
    for lib in LIBRARIES:
        with np.printoptions(precision=2):
            f = lib.jit(lambda x: lib.debug.print("{}", x))
            f.lower(X)
            traced = f.trace(X).lower().compile()
        outputs.append(printed(lib, capsys, traced, X / 3.0))
    assert outputs[0] == outputs[1]
    assert "0.17" in outputs[0][0]


def test_two_call_form(capsys):
    def make(lib):
        return lambda x: lib.debug.print(ordered=True)("{ordered} {x}", ordered=1, x=x)

    ours, theirs = (printed(lib, capsys, make(lib), 2.0) for lib in LIBRARIES)
    assert ours == theirs == ["1 2.0"]
    same_text(make, 2.0)


def test_log(caplog):
    with caplog.at_level(logging.INFO):
        minijax.jit(lambda x: minijax.debug.log("x is {}", x))(2)
        minijax.effects_barrier()
    (record,) = caplog.records
    assert record.getMessage() == "x is 2"
    assert record.pathname == __file__


def test_without_format_check(capsys):
    show = lambda lib: lambda x: lib.debug.print("x:", x, skip_format_check=True)
    ours, theirs = (printed(lib, capsys, show(lib), X) for lib in LIBRARIES)
    assert ours == theirs == ["x: [ 0.5 -1.   2. ]"]


# ----------------------------------------------------------------------------------
# debug.callback
# ----------------------------------------------------------------------------------


def test_arguments_of_a_callback():
    def make(lib, jitted):
        seen = []

        def look(*args, **kwargs):
            for arg in (*args, *kwargs.values()):
                is_array = isinstance(arg, lib.Array)
                weak = is_array and arg.aval.weak_type
                seen.append((is_array, str(arg), str(getattr(arg, "dtype", "")), weak))

        def f(x):
            lib.debug.callback(look, 1, 2.0, "a", None, x, np.ones(2), k=(3, x))

        (lib.jit(f) if jitted else f)(lib.numpy.asarray(X))
        lib.effects_barrier()
        return seen

    for jitted in (False, True):
        assert make(minijax, jitted) == make(jax, jitted)


def test_ordered_callbacks_and_prints_share_an_order(capsys):
    def make(lib):
        def f(x):
            for i in range(3):
                lib.debug.print("print {}", x + i, ordered=True)
                lib.debug.callback(lambda v: print(f"call {v}"), x - i, ordered=True)
            return x

        return lib.jit(f)

    ours, theirs = (printed(lib, capsys, make(lib), 1) for lib in LIBRARIES)
    assert ours == theirs
    same_text(make, 1)


def test_callback_is_no_dead_code():
    seen = []

    @minijax.jit
    def f(x):
        minijax.debug.callback(lambda v: seen.append(float(v)), x * 2.0)
        return 0.0

    f(1.0)
    f(2.0)
    minijax.effects_barrier()
    assert seen == [2.0, 4.0]


def test_refs_are_printed_by_their_contents(capsys):
    def make(lib):
        def f(x):
            ref = lib.new_ref(x)
            ref[0] = 7.0
            lib.debug.print("{}", ref, ordered=True)
            ref[1] = 8.0
            lib.debug.print("{}", ref, ordered=True)
            return ref[...]

        return lib.jit(f)

    ours, theirs = (printed(lib, capsys, make(lib), X) for lib in LIBRARIES)
    assert ours == theirs == ["[ 7. -1.  2.]", "[7. 8. 2.]"]


def test_in_custom_rules(capsys):
    def make(lib):
        @lib.custom_vjp
        def f(x):
            lib.debug.print("primal {}", x, ordered=True)
            return lib.numpy.sin(x)

        def forward(x):
            lib.debug.print("forward {}", x, ordered=True)
            return f(x), x

        def backward(x, ct):
            lib.debug.print("backward {} {}", x, ct, ordered=True)
            return (ct * lib.numpy.cos(x),)

        f.defvjp(forward, backward)
        return lib.jit(lib.value_and_grad(f))

    ours, theirs = (printed(lib, capsys, make(lib), 0.5) for lib in LIBRARIES)
    assert ours == theirs
    assert len(ours) >= 2
    same_text(make, 0.5)


def test_in_custom_jvp(capsys):
    def make(lib):
        @lib.custom_jvp
        def f(x):
            lib.debug.print("primal {}", x)
            return lib.numpy.sin(x)

        @f.defjvp
        def rule(primals, tangents):
            lib.debug.print("rule {} {}", *primals, *tangents)
            return f(*primals), tangents[0] * lib.numpy.cos(primals[0])

        return lib.jit(lambda x: lib.jvp(f, (x,), (2.0,)))

    ours, theirs = (printed(lib, capsys, make(lib), 0.5) for lib in LIBRARIES)
    assert sorted(ours) == sorted(theirs)
    same_text(make, 0.5)


# ----------------------------------------------------------------------------------
# Errors
# ----------------------------------------------------------------------------------

BAD_CALLS = {
    "unused": lambda lib: lib.debug.print("hello", 1),
    "unused name": lambda lib: lib.debug.print("hello", x=1),
    "missing name": lambda lib: lib.debug.print("{x}"),
    "missing": lambda lib: lib.debug.print("{} {}", 1),
    "no string": lambda lib: lib.debug.print(x=1),
    "no function": lambda lib: lib.debug.callback(3, 4),
    "no function, arguments": lambda lib: lib.debug.callback(x=4),
    "raises": lambda lib: lib.debug.callback(lambda x: 1 / 0, 1.0),
    "raises in jit": lambda lib: lib.jit(
        lambda x: lib.debug.callback(lambda x: 1 / 0, x)
    )(1.0),
    "raises, ordered": lambda lib: lib.jit(
        lambda x: lib.debug.callback(lambda x: 1 / 0, x, ordered=True)
    )(1.0),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_error_classes(name):
    def program(lib):
        def run():
            BAD_CALLS[name](lib)
            lib.effects_barrier()

        return run

    same_error(program)


def test_an_exception_outside_of_programs_is_the_users_own():
    with pytest.raises(ZeroDivisionError):
        minijax.debug.callback(lambda: 1 / 0)


def test_an_error_does_not_stop_later_programs(capsys):
    failing = minijax.jit(
        lambda x: minijax.debug.callback(lambda v: 1 / 0, x, ordered=True)
    )
    for _ in range(3):
        with pytest.raises(minijax.errors.JaxRuntimeError) as info:
            failing(1.0)
            minijax.effects_barrier()
        assert type(info.value.__cause__) is ZeroDivisionError
        show = lambda: minijax.debug.print("still here", ordered=True)
        assert printed(minijax, capsys, minijax.jit(show)) == ["still here"]


def test_effects_of_programs():
    closed = minijax.make_jaxpr(minijax.jit(prints_twice(minijax)))(X)
    assert sorted(map(str, closed.effects)) == ["OrderedDebug"]
    closed = minijax.make_jaxpr(prints_twice(minijax, ordered=False))(X)
    assert sorted(map(str, closed.effects)) == ["Debug"]


def test_lowered_for_a_gpu():
    f = minijax.jit(prints_twice(minijax))
    text = f.trace(jnp.asarray(X)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("@xla_ffi_python_gpu_callback") == 2


def test_the_token_of_the_last_print_leaves_a_function():
    """So that what comes after an inner program, or after a launch, comes later."""

    @minijax.jit
    def inner(x):
        minijax.debug.print("inner {}", x, ordered=True)
        return x

    def outer(x):
        y = inner(x)
        minijax.debug.print("outer {}", x, ordered=True)
        return y

    text = minijax.jit(outer).lower(X).as_text()
    for function in text.split("func.func")[1:]:
        made = [line for line in function.split("\n") if " = " in line]
        name = made[-1].split("=")[0].strip().partition(":")[0]
        (last,) = [line for line in function.split("\n") if "return" in line]
        assert f"return {name}," in last.replace("#0", "")
