"""`see.stages(f, *args, beside=g)`: what an edit changes at every level."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections import Counter

import jax
import numpy as np
import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import lax
from minijax_lab.explain.recording import Recording
from tests.views.compiled_programs import PROGRAMS, X, softmax
from tests.views.test_compiled_recording import H100

LINE = "-- differs between machines --"


def before(x):
    mean = x.mean()
    y = x - mean
    scale = jnp.sqrt((y * y).mean() + 1e-5)
    return y / scale


def after(x):
    mean = x.mean()
    y = x - mean
    scale = lax.rsqrt((y * y).mean() + 1e-5)
    z = jnp.tanh(y)
    return z * scale


@pytest.fixture(scope="module")
def view():
    return see.stages(before, X, beside=after)


def levels(view):
    return dict(
        zip(("source", "jaxpr", "stablehlo", "hlo"), view.recording.levels, strict=True)
    )


def test_primitives_and_operations_are_those_that_were_edited(view) -> None:
    """What came and went at a level, counted from the two programs alone."""
    found = levels(view)

    def counts(lines, sign):
        names = (
            re.search(r" = (\w+)", line.text) for line in lines if line.sign == sign
        )
        return Counter(name[1] for name in names if name)

    one, two = (
        Counter(equation.primitive for equation in record.compiled.jaxpr.equations)
        for record in (view.recording.before, view.recording.after)
    )
    gone, new = counts(found["jaxpr"], "-"), counts(found["jaxpr"], "+")
    # What went and what came differ as the two programs do.
    assert gone - new == one - two and new - gone == two - one
    texts = [line.text for line in found["source"]]
    assert len(texts) == len(inspect.getsource(before).splitlines()) + sum(
        line.sign == "+" for line in found["source"]
    )
    old, new_ = (inspect.getsource(f).splitlines() for f in (before, after))
    told = [x for x in difflib.ndiff(old, new_) if x[0] in "+-"]
    signs = Counter(line.sign for line in found["source"] if line.sign != " ")
    assert signs == Counter(x[0] for x in told)
    operations = [x.text for x in found["stablehlo"] if x.sign == "+"]
    assert any("stablehlo.rsqrt" in text for text in operations)
    assert any("stablehlo.tanh" in text for text in operations)


def test_an_edited_line_leads_to_what_it_changed(view) -> None:
    record = view.recording
    frame = view.frame()
    first = after.__code__.co_firstlineno
    lines = {n: group for group in record.steps for n in record.groups[group].after}
    for number, name in ((first + 3, "rsqrt"), (first + 4, "tanh")):
        group = lines[number]
        own = [x for x in levels(view)["jaxpr"] if x.group == group and x.sign == "+"]
        assert any(f" = {name} " in line.text for line in own)
    for number, group in enumerate(record.steps):
        assert frame.steps[number].on == [f"h{group}"]
        for pane in frame.panes[1:]:
            for row in pane.rows:
                if f"h{group}" in row.keys:
                    assert row.go == number and row.look in ("add", "del")
    scene = frame.panes[0].scene
    marks = [mark for mark in scene.marks if mark.tell.startswith("only ")]
    changed = sum(
        line.sign != " " and line.text.strip() not in ("{", "}", "}, {")
        for lines in record.levels
        for line in lines
    )
    assert len(marks) == changed


def test_the_twin_and_the_rest(view) -> None:
    above, _, below = view.text().partition(LINE)
    assert above.startswith("difference of before and after: ")
    assert "  + scale = lax.rsqrt((y * y).mean() + 1e-5)" in above
    assert "cpu: " in below and "compiled: " in below
    assert view.to_svg() and "<img" in view.static_html() and view.to_html()
    record = view.recording
    again = Recording.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again == record
    assert view.frame().panes[0].narrow.width == 288


@pytest.mark.parametrize("name", ["loss", "scan", "cond", "grad of loss"])
def test_a_program_beside_itself(name) -> None:
    function, args = PROGRAMS[name]
    view = see.stages(function, *args, beside=function)
    assert "none at any level" in view.text()
    assert not view.recording.steps and view.to_html()


def test_two_views() -> None:
    one, two = see.stages(softmax, X), see.stages(before, X)
    assert "difference of softmax and before" in one.difference(two).text()


@pytest.mark.parametrize("target", [H100])
def test_two_machines(target) -> None:
    one, two = see.stages(softmax, X), see.stages(softmax, X, target=target)
    view = one.difference(two)
    assert f"cpu and {target}: " in view.text() and view.to_html()


def test_functions_of_jax() -> None:
    x = np.ones(8, np.float32)
    one = jax.jit(lambda x: jax.numpy.sin(x) + 1.0)
    two = jax.jit(lambda x: jax.numpy.cos(x) + 1.0)
    assert "cos" in see.stages(one, x, beside=two).text()


def test_what_does_not_go_together() -> None:
    with pytest.raises(ValueError, match="code=True shows one program"):
        see.stages(softmax, X, beside=before, code=True)
