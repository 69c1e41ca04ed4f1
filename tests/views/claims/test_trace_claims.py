"""What `see.trace` claims, and each claim held against jax's own jaxpr.

It claims:
1. how many equations the program has, and how many with those of inner programs;
2. the text of the program, word for word;
3. which line of the user's wrote each equation;
4. of a line that "ran in Python only", that no equation comes from it;
5. the name and type of each argument.
"""

import re

import pytest

import minijax
import minijax_widgets as see
from tests.views.claims.forty import CASES, Case, title
from tests.views.claims.jax_programs import (
    closed_jaxpr,
    every_equation,
    lines_of,
    own_program,
)

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
