"""`minijax.replace` and `check.interpreter`: a learner's trace in the engine."""

import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, jvp, make_jaxpr, vmap
from minijax.core.autodiff import JVPTrace, LinearizeTrace
from minijax.core.batching import BatchTrace
from minijax.core.language import (
    Jaxpr,
    JaxprEqn,
    Literal,
    Trace,
    Var,
    get_aval,
    type_of_application,
)
from minijax.core.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer
from minijax.core.source_info import current
from minijax.core.state import state
from minijax_lab import check

X = np.ones(3, np.float32)


def watched(base):
    """A subclass of one of minijax's traces that notes what goes through it."""

    class Watched(base):
        seen = []

        def process_primitive(self, primitive, args, params):
            Watched.seen.append(primitive.name)
            return super().process_primitive(primitive, args, params)

    return Watched


def loss(x):
    return jnp.sum(jnp.sin(x) * x)


@pytest.mark.parametrize(
    "base, run",
    [
        (BatchTrace, lambda: vmap(lambda x: jnp.sin(x))(X)),
        (JVPTrace, lambda: jvp(loss, (X,), (X,))),
        (LinearizeTrace, lambda: grad(loss)(X)),
        (DynamicJaxprTrace, lambda: jit(lambda x: jnp.sin(x))(X)),
        (LinearizeTrace, lambda: grad(jit(loss))(X)),
    ],
)
def test_it_runs_on_the_class(base, run):
    before = minijax.tree.leaves(run())
    made = watched(base)
    with minijax.replace(**{base.__name__: made}):
        inside = minijax.tree.leaves(run())
        assert "sin" in made.seen
    made.seen.clear()
    run()
    assert made.seen == []
    for a, b in zip(before, inside):
        np.testing.assert_array_equal(a, b)


def test_caches_are_not_mixed_up():
    class Doubling(DynamicJaxprTrace):
        def process_primitive(self, primitive, args, params):
            if primitive.name == "sin":
                return super().process_primitive(minijax.lax.cos_p, args, params)
            return super().process_primitive(primitive, args, params)

    f = jit(lambda x: jnp.sin(x))
    assert float(f(0.0)) == 0.0
    with minijax.replace(DynamicJaxprTrace=Doubling):
        assert float(f(0.0)) == 1.0
    assert float(f(0.0)) == 0.0


def test_nothing_is_left_replaced():
    made = watched(BatchTrace)
    with pytest.raises(ZeroDivisionError):
        with minijax.replace(BatchTrace=made):
            assert state.replaced == (("BatchTrace", made),)
            raise ZeroDivisionError
    assert state.replaced == ()
    with minijax.replace(BatchTrace=made):
        with minijax.replace(JVPTrace=watched(JVPTrace), BatchTrace=BatchTrace):
            assert len(state.replaced) == 2
        assert state.replaced == (("BatchTrace", made),)


def test_other_threads_go_on():
    made = watched(BatchTrace)
    seen = []
    with minijax.replace(BatchTrace=made):
        thread = threading.Thread(target=lambda: seen.append(state.replaced))
        thread.start()
        thread.join()
    assert seen == [()]


@pytest.mark.parametrize(
    "classes, message",
    [
        ({"Batch": BatchTrace}, "the name of the class of minijax"),
        ({"BatchTrace": 3}, "takes a class, and got int"),
        ({"BatchTrace": int}, "it has no method to_pair, tracer, process_primitive"),
        ({"DynamicJaxprTrace": BatchTrace}, "no method new_arg, to_atom, finish"),
        ({}, "replace takes classes by name"),
    ],
)
def test_what_cannot_take_the_place(classes, message):
    with pytest.raises(TypeError, match=message):
        minijax.replace(**classes)


class OwnTrace(Trace):
    """From nothing: what chapter 02 writes."""

    def __init__(self, debug_info, dead_code=False):
        self.debug_info, self.alive = debug_info, True
        self.invars, self.eqns, self.constants = [], [], {}

    def new_arg(self, aval):
        self.invars.append(Var(aval))
        return DynamicJaxprTracer(self, aval, self.invars[-1])

    def to_atom(self, value):
        if isinstance(value, DynamicJaxprTracer) and value._trace is self:
            return value.atom
        if isinstance(value, (int, float, np.generic)):
            return Literal(value, get_aval(value))
        entry = (Var(get_aval(value)), value)
        return self.constants.setdefault(id(value), entry)[0]

    def process_primitive(self, primitive, args, params):
        atoms = [self.to_atom(arg) for arg in args]
        types = tuple(atom.aval for atom in atoms)
        out, effects = type_of_application(primitive, types, params)
        results = [Var(aval) for aval in (out if primitive.multiple_results else [out])]
        eqn = JaxprEqn(atoms, results, primitive, params, effects, current())
        self.eqns.append(eqn)
        tracers = [DynamicJaxprTracer(self, var.aval, var) for var in results]
        return tracers if primitive.multiple_results else tracers[0]

    def finish(self, outputs):
        outvars = [self.to_atom(output) for output in outputs]
        constvars = [var for var, _ in self.constants.values()]
        values = [value for _, value in self.constants.values()]
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns)
        return jaxpr, values


def test_a_class_from_nothing_traces():
    with minijax.replace(DynamicJaxprTrace=OwnTrace):
        text = str(make_jaxpr(loss)(X))
        value = jit(loss)(X)
    assert text == str(make_jaxpr(loss)(X))
    np.testing.assert_allclose(value, loss(X), rtol=1e-6)


@pytest.mark.parametrize(
    "made", [OwnTrace, BatchTrace, JVPTrace, LinearizeTrace, DynamicJaxprTrace]
)
def test_check_interpreter_agrees(made, capsys):
    check.interpreter(made, programs=40)
    assert "40 of 40 programs agree" in capsys.readouterr().out


def test_check_interpreter_finds_the_smallest_failure(capsys):
    class MyBatchTrace(BatchTrace):
        def process_primitive(self, primitive, args, params):
            if primitive.name == "reduce_sum":
                params = {**params, "axes": ()}
            return super().process_primitive(primitive, args, params)

    check.interpreter(MyBatchTrace)
    said = capsys.readouterr().out
    assert "not yet." in said and "jnp.sum" in said or "sum(axis" in said
    assert said.count("v0 = ") == 1 and "v1" not in said


def test_check_interpreter_never_raises(capsys):
    class BrokenBatchTrace(BatchTrace):
        def process_primitive(self, primitive, args, params):
            raise RuntimeError("my own\nmistake")

    check.interpreter(BrokenBatchTrace)
    line = BrokenBatchTrace.process_primitive.__code__.co_firstlineno + 1
    said = capsys.readouterr().out
    where = f"in test_replacement.py at line {line} of process_primitive: my own\n"
    assert f"It raised RuntimeError {where}  raise RuntimeError(" in said
    check.interpreter(int)
    check.interpreter(3)
    assert capsys.readouterr().out.count("not yet.") == 2


def test_check_interpreter_names_the_learners_line_and_not_minijaxs(capsys):
    """Of the lines on the stack the last one that is the learner's is shown."""

    class Adds(BatchTrace):
        def process_primitive(self, primitive, args, params):
            return self.answer(args)

        def answer(self, args):
            return args[0] @ "text"  # raises deep in minijax

    check.interpreter(Adds)
    said = capsys.readouterr().out
    line = Adds.answer.__code__.co_firstlineno + 1
    assert f"TypeError in test_replacement.py at line {line} of answer: " in said
    assert 'return args[0] @ "text"' in said and said.count(".py") == 1

    class Leaks(BatchTrace):
        def process_primitive(self, primitive, args, params):
            return object()

    check.interpreter(Leaks)
    said = capsys.readouterr().out
    assert "not yet. After 0 programs" in said and "It raised" in said
    assert ".py" not in said and "at line" not in said
    assert "No line of yours was running then" in said
