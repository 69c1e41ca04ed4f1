"""What `see.trace` claims, and each claim held against jax's own jaxpr."""

import functools
import itertools
import re

import jax
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.recording import span_text
from tests.views.claims.forty import CASES, Case, title
from tests.views.claims.jax_programs import (
    closed_jaxpr,
    every_equation,
    lines_of,
    own_program,
)

CLAIMS = [
    "The headline says how many equations the program has, and with inner programs.",
    "The text of the program is the printer's, word for word.",
    "Each equation was written by the line that JAX names.",
    "No equation comes from a line that ran in Python only.",
    "Each argument has its name and type.",
    "A traced value leaks if, and only if, JAX's own check finds a leak.",
    "It leaks by the line that stores it, into what holds it.",
]
RECORDED: dict[str, see.TraceView] = {}


def recorded(case: Case):
    if case.name not in RECORDED:
        RECORDED[case.name] = see.trace(case.make(minijax), *case.args)
    return RECORDED[case.name].recording


def in_the_file(record, span) -> bool:
    return span is not None and record.sources[span.source].file == "forty.py"


@pytest.mark.parametrize("case", CASES, ids=title)
def test_count_and_text(case):
    record, closed = recorded(case), own_program(case)
    outer, every = len(closed.eqns), len(every_equation(closed.jaxpr))
    counts = re.search(r": (\d+) equations?(?:, (\d+) with those)?", record.headline)
    assert int(counts[1]) == outer
    assert int(counts[2] or outer) == every
    text = re.sub(r"np\.\w+\((\d+)\)", r"\1", str(closed))  # a number's repr in jax
    assert "".join(record.jaxpr.text.split()) == "".join(text.split())


@pytest.mark.parametrize("case", CASES, ids=title)
def test_lines(case):
    record = recorded(case)
    theirs = every_equation(own_program(case).jaxpr)
    places = {(e.primitive.name, line) for e in theirs for line in lines_of(e)[:1]}
    known = {name for name, _ in places}  # JAX names no line of some inner programs
    lines = {line for eqn in theirs for line in lines_of(eqn)}
    for step in record.steps:
        if not in_the_file(record, step.span):
            continue
        if step.kind == "equation" and step.equation is not None:
            assert step.label not in known or (step.label, step.span.line) in places
        if step.kind == "py":
            assert step.span.line not in lines


@pytest.mark.parametrize("case", CASES, ids=title)
def test_every_line_that_jax_names_is_named(case):
    """An equation of the outermost program is a step, at the line that JAX names."""
    record = recorded(case)
    shown = {
        (step.label, step.span.line)
        for step in record.steps
        if step.kind == "equation" and in_the_file(record, step.span)
    }
    for eqn in own_program(case).eqns:
        if lines_of(eqn):
            assert (eqn.primitive.name, lines_of(eqn)[0]) in shown


@pytest.mark.parametrize("case", CASES, ids=title)
def test_arguments(case):
    record, closed = recorded(case), closed_jaxpr(case)
    types = [aval.str_short(short_dtypes=True) for aval in closed.in_avals]
    assert record.jaxpr.inputs == types
    plain = [a for a in record.arguments if a.traced]
    names = closed.jaxpr.debug_info.arg_names
    for argument in plain:
        assert any(name.startswith(argument.name) for name in names)


class Model:
    last = None


KEPT: list = []
BY_NAME: dict = {}


def into_a_list(value):
    KEPT.append(value)


def into_a_dict(value):
    BY_NAME["last"] = value


def into_an_attribute(value):
    Model.last = value


def into_a_name(value):
    global LAST
    LAST = value


def nowhere(value):
    mine = {}
    mine["last"] = value
    KEPT.append(value.shape)


def forgotten(value):
    KEPT.append(value)
    KEPT.pop()


KEEPING = {
    into_a_list: ("KEPT.append(value)", "KEPT"),
    into_a_dict: ('BY_NAME["last"] = value', "BY_NAME['last']"),
    into_an_attribute: ("Model.last = value", "Model.last"),
    into_a_name: ("LAST = value", "LAST"),
    nowhere: None,
    forgotten: None,
}


def clear():
    KEPT.clear()
    BY_NAME.clear()
    Model.last = None
    into_a_name(None)


@functools.cache
def leaks_in_jax(keep):
    """Whether JAX's own check finds that a traced value is kept."""

    def kept(x):
        y = jax.numpy.sin(x)
        keep(y)
        return y

    with jax.checking_leaks():
        try:
            jax.make_jaxpr(kept)(1.0)
        except Exception as error:
            # JAX looks for the names of what holds it, and not in every dict.
            assert "Leaked" in str(error) or isinstance(error, IndexError)
            return True
        finally:
            clear()
    return False


@pytest.mark.parametrize(
    "case, keep", [*zip(CASES, itertools.cycle(KEEPING))], ids=lambda v: title(v)
)
def test_leaks(case, keep):
    function = case.make(minijax)

    def kept(*args):
        results = function(*args)
        keep(minijax.tree_util.tree_leaves(results)[0])
        return results

    leaks = leaks_in_jax(keep)
    record = see.trace(kept, *case.args).recording
    clear()
    steps = [step for step in record.steps if step.kind == "leak"]
    assert bool(steps) == leaks == ("leaks into" in record.headline)
    if leaks:
        line, holder = KEEPING[keep]
        assert span_text(record.sources, steps[0].span) == line
        assert steps[0].label == f"leaks into {holder}"
        assert record.steps[record.telling] is steps[0]
