"""What is compiled, how often, and by what: the one `Compilation` of the library."""

import ast

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core import dispatch, hlo
from minijax.core import jit as pjit
from minijax.programs.compiling import LibraryCompilation
from minijax.support.event_watching import subscribe
from tests.backend.processes import run

X = np.arange(8, dtype=np.float32)


def names_of_events(run, *wanted):
    """The names of the events of one kind or another, while `run()` runs."""
    seen = []
    with subscribe(lambda name, data: seen.append(name)):
        run()
    return [name for name in seen if name in wanted]


def plainly():
    return minijax.jit(lambda x: jnp.sin(x) * 2), jnp.asarray(X)


def donating():
    f = minijax.jit(lambda x: x + 1, donate_argnums=0)
    return f, jnp.asarray(X)


def with_a_ref():
    ref = minijax.new_ref(jnp.asarray(X))

    def f(x):
        ref[...] = x
        return x * 2

    return minijax.jit(f), jnp.asarray(X)


def of_a_number():
    return minijax.jit(lambda x: x * 2), 2.0


@pytest.mark.parametrize(
    "make",
    [plainly, donating, with_a_ref, of_a_number],
)
def test_a_program_compiled_ahead_is_found_by_the_next_call(make):
    f, x = make()
    found = []

    def ahead_and_call():
        found.append(f.lower(x).compile())
        found.append(f(x))

    assert names_of_events(ahead_and_call, "lower", "compile") == ["lower", "compile"]


def test_a_program_that_was_called_is_not_compiled_again_ahead():
    f, x = plainly()
    f(x)
    assert names_of_events(lambda: f.lower(x).compile(), "compile") == []


def test_options_make_another_program():
    f, x = plainly()
    options = {"xla_cpu_enable_fast_math": True}
    f.lower(x).compile(options)
    assert names_of_events(lambda: f(x), "compile") == ["compile"]


CUT = """
import minijax
import numpy as np
from minijax.lax import with_sharding_constraint
from minijax.sharding import AxisType, NamedSharding, PartitionSpec as P
from minijax.support.event_watching import subscribe
from tests.backend.processes import run

minijax.config.update("jax_num_cpu_devices", 4)
mesh = minijax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
place = NamedSharding(mesh, P("x"))
X = np.arange(8, dtype=np.float32)
far = minijax.devices()[3]
double = lambda x: x * 2
for f, x in (
    (minijax.jit(double), minijax.device_put(X, place)),
    (minijax.jit(double, out_shardings=place), minijax.numpy.asarray(X)),
    (minijax.jit(double, in_shardings=place), minijax.numpy.asarray(X)),
    (minijax.jit(lambda x: with_sharding_constraint(x * 2, place)), X),
    (minijax.jit(double), minijax.device_put(X, far)),
):
    seen = []
    with subscribe(lambda name, data: seen.append(name)):
        if x is not X:
            compiled = f.lower(x).compile()
        answer = f(x)
        assert answer.sharding == (compiled(x) if x is not X else answer).sharding
        np.testing.assert_array_equal(answer, 2 * X)
    print([name for name in seen if name in ("lower", "compile")])
print(answer.devices() == {far})
inner = minijax.jit(double, out_shardings=place, inline=True)
print("sharding_constraint" in str(minijax.make_jaxpr(lambda x: inner(x) + 1)(X)))
"""


def test_on_several_devices():
    """The program is found; an inlined function keeps its shardings."""
    lines = run(CUT).strip().splitlines()
    assert lines == ["['lower', 'compile']"] * 5 + ["True", "True"]


def test_hooks_and_the_compilation_are_attached_once():
    with pytest.raises(RuntimeError, match="already"):
        hlo.builders.attach(lambda *_: None)
    with pytest.raises(RuntimeError, match="already"):
        dispatch.compile_by(LibraryCompilation())


def test_the_rules_of_jit_stand_in_one_file():
    rules = ("type_rule", "impl", "jvp", "linearize", "transpose", "batch")
    rules += ("partial_eval", "dce", "staging", "pretty")
    found = {name: getattr(pjit.jit_p, name) for name in rules}
    found["lowering"] = pjit.jit_p.lowerings[None]
    elsewhere = {
        name: rule.__module__
        for name, rule in found.items()
        if rule.__module__ not in (pjit.__name__, "minijax.core.language")
    }
    assert elsewhere == {}


# A repeated call with arrays alone goes a short way, without trees.


FEW = """
import gc, sys
import minijax, minijax.numpy as jnp

def python_calls(function):
    names = []
    def note(frame, event, _):
        if event == "call":
            names.append(frame.f_code.co_name)
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names[1:]

gc.disable()
f = minijax.jit(lambda x, y: x + y)
x = jnp.ones(3)
f(x, x), jnp.sin(x)
print(python_calls(lambda: f(x, x)))
print(python_calls(lambda: jnp.sin(x)))
"""


def test_a_repeated_call_runs_few_functions():
    """In a process of its own: nobody watches, and nothing is collected meanwhile."""
    call, sine = map(ast.literal_eval, run(FEW).strip().splitlines())
    assert call[0] == "__call__" and len(call) <= 4
    assert len(sine) <= 5


def test_the_short_way_finds_only_what_belongs_to_the_call():
    f = minijax.jit(lambda x, n=2: x * n, static_argnums=1)
    x = jnp.arange(3)
    for _ in range(2):
        assert f(x).tolist() == [0, 2, 4]
        assert f(x, 3).tolist() == [0, 3, 6]
        assert f(x, n=4).tolist() == [0, 4, 8]
    g = minijax.jit(lambda *xs, **named: (len(xs), len(named), sum(xs) + 1))
    for _ in range(2):
        assert g(x, x)[:2] == (2, 0)
        assert g(x)[:2] == (1, 0)
        assert g(x, a=x)[:2] == (1, 1)
        assert g(x.astype(float))[2].dtype == jnp.float32
        assert g(x)[2].dtype == jnp.int32
        assert g(jnp.ones((1, 3), int))[2].shape == (1, 3)
        with minijax.disable_jit():
            assert g(x, x)[2].tolist() == [1, 3, 5]


def test_a_cleared_function_is_compiled_again():
    traces = []
    f = minijax.jit(lambda x: traces.append(x) or x + 1)
    x = jnp.ones(3)
    f(x), f(x)
    assert len(traces) == 1
    f.clear_cache()
    f(x), f(x)
    assert len(traces) == 2
    with minijax.enable_x64(True):
        f(x)
    assert len(traces) == 3
    f(x)
    assert len(traces) == 3


def test_a_watcher_sees_each_repeated_call():
    f = minijax.jit(lambda x: x + 1)
    x = jnp.ones(3)
    f(x), f(x)
    assert names_of_events(lambda: f(x), "jit.hit", "jit.miss") == ["jit.hit"]
