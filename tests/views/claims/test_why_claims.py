"""What `see.why` claims, held against what JAX's own objects and errors say.

Of equations: over the gradients of all functions, by JAX's source lines and name
stacks. Of exceptions: over values that leak and values that are asked for, by the lines
that JAX's messages name.
"""

import ast
import functools
import re
from pathlib import Path

import jax
import pytest

import minijax
import minijax_widgets as see
from minijax_lab.explain.recording import span_text
from tests.views.claims.forty import CASES, DIFFERENTIABLE, title
from tests.views.claims.jax_programs import every_equation, lines_of

CLAIMS = [
    "Each equation that a view traced has a cause; inner programs that somebody traced "
    "before have none.",
    "Its line is the user's line that JAX names for the same equation.",
    "A rule of transposing wrote it if JAX's name stack says transpose, and only then.",
    "A rule of vmap wrote it only if JAX's name stack says vmap.",
    "A function begins at the file and line where a rule is said to stand.",
    "A leaked value was born at the line that JAX's message names.",
    "It was kept by the line that stores it, and that line is in the advice.",
    "It was used at the line that raised.",
    "A value asked for is one of the traced function that JAX's message names.",
]
KEPT: list = []
ROOT = Path(minijax.__file__).parents[1]


@functools.cache
def beginnings(path):
    """The lines at which functions of a file begin, by Python's own parser."""
    own = path == "forty.py"  # the user's file, by its name
    tree = ast.parse(
        (Path(__file__).parent if own else ROOT).joinpath(path).read_text()
    )
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            found.add(node.lineno)
            found |= {one.lineno for one in getattr(node, "decorator_list", ())}
    return found


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=title)
def test_equations(case):
    mine = see.jaxpr(minijax.grad(case.loss(minijax)), *case.args).recording
    theirs = jax.make_jaxpr(jax.grad(case.loss(jax)))(*case.args)
    eqns = every_equation(theirs.jaxpr)
    assert [e.primitive for e in mine.equations] == [e.primitive.name for e in eqns]
    for one, two in zip(mine.equations, eqns):
        assert one.story or one.parent is not None
        file = mine.sources[one.span.source].file if one.span else ""
        lines = lines_of(two)
        if lines and file == "forty.py":
            assert one.span.line == lines[0]
        for rule in one.rules:
            path, _, line = rule.rpartition(", ")[2].rpartition(":")
            assert int(line) in beginnings(path)
        stack = str(two.source_info.name_stack)
        if "jvp" not in stack:  # inside a called program, where it begins anew
            continue
        backward = any(r.startswith(("transpose", "sum of")) for r in one.rules)
        assert "transpose" in stack or not backward
        assert "vmap" in stack or not any(r.startswith("batch") for r in one.rules)
        if "transpose" in stack:
            # The first cotangent and zeros are of no rule.
            assert backward or one.primitive in (
                "broadcast_in_dim",
                "convert_element_type",
            )


@pytest.mark.parametrize("case", CASES, ids=title)
def test_leaks(case):
    def leaky_of(m):
        function = case.make(m)

        def leaky(*args):
            results = function(*args)
            KEPT.append(m.tree_util.tree_leaves(results)[0])
            return results

        return leaky

    errors = []
    for m in (jax, minijax):
        m.make_jaxpr(leaky_of(m))(*case.args)
        with pytest.raises(Exception, match="tracer|leak|trac") as raised:
            KEPT[0] + KEPT[0]
        errors.append(raised.value)
        if m is jax:
            KEPT.clear()
            del raised
    view = see.why(errors[1])
    record = view.recording
    KEPT.clear()
    told = {moment.label: moment for moment in record.moments}
    named = re.search(r"created on line \S*?(\w+\.py):(\d+)", str(errors[0]))
    born = told["born"].span
    if named:
        place = (record.sources[born.source].file, str(born.line))
        assert place == named.groups()
    stored = "m.tree_util.tree_leaves(results)[0]"
    line = f"KEPT.append({stored})"
    assert span_text(record.sources, told["kept"].span) == line
    assert record.instead == f"Write `return ..., {stored}` instead of `{line}`."
    assert span_text(record.sources, told["used"].span) == "KEPT[0] + KEPT[0]"


@pytest.mark.parametrize("case", CASES, ids=title)
def test_values_that_are_asked_for(case):
    errors = []
    for m in (jax, minijax):
        function = case.make(m)

        def asks(*args):
            first = m.tree_util.tree_leaves(function(*args))[0]
            return 1 if first else 2

        with pytest.raises(Exception) as raised:
            m.jit(asks)(*case.args)
        errors.append(raised.value)
    assert type(errors[0]).__name__ == type(errors[1]).__name__
    record = see.why(errors[1]).recording
    told = {moment.label: moment for moment in record.moments}
    used = told["used"].span
    assert span_text(record.sources, used) in ("first", "1 if first else 2")
    traced = re.search(r"tracing the function (\w+)", str(errors[0]))
    if traced and "born" in told:
        assert f"in {traced[1]}" in told["born"].text or "of asks" in told["born"].text
        lines = {
            line
            for eqn in every_equation(jax.make_jaxpr(case.make(jax))(*case.args).jaxpr)
            for line in lines_of(eqn)
        }
        born = told["born"].span
        if born and record.sources[born.source].file == "forty.py":
            assert born.line in lines
