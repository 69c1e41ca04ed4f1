"""`see.passes`: each of XLA's passes as a difference, and its picture."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_widgets.scene import text_width
from tests.views.test_compiled_recording import H100

LINE = "-- differs between machines --"
X = minijax.ShapeDtypeStruct((64, 64), np.float32)


def layer(w, x):
    y = jnp.tanh(x @ w)
    same = jnp.tanh(x @ w)  # computed twice: common subexpressions
    return y * 1.0 + same - y.mean(-1, keepdims=True)


@pytest.fixture(scope="module")
def of_layer():
    return see.passes(layer, X, X)


def texts(scene):
    return [p.text for mark in scene.marks for p in mark.drawn if p.tag == "text"]


def test_the_twin(of_layer) -> None:
    above, _, below = of_layer.text(full=True).partition(LINE)
    assert above == "passes of layer\n"
    rows = [row for row in below.strip().split("\n")[1:] if row[2] != " "]
    assert len(rows) == len(of_layer.recording.passes)
    for row, each in zip(rows, of_layer.recording.passes):
        counts = re.search(r"\+(\d+) ~(\d+) -(\d+)\s+(\d+)", row).groups()
        assert [int(count) for count in counts] == [
            len(each.added),
            len(each.altered),
            len(each.removed),
            each.instructions,
        ]


def test_the_picture(of_layer) -> None:
    frame = of_layer.frame()
    passes = of_layer.recording.passes
    shown = texts(frame.panes[0].scene)
    assert {"new", "changed", "gone", "cse", "fusion"} <= set(shown)
    assert [step.label for step in frame.steps] == [each.name for each in passes]
    for number, step in enumerate(frame.steps):
        rows = [row for row in frame.panes[1].rows if f"p{number}" in row.keys]
        assert rows and rows[0].look == "group"
        looks = [row.look for row in rows]
        found = of_layer.recording.differences(number)
        pairs = [d for d in found if d.before != d.after]
        assert looks.count("add") == sum(bool(d.after) for d in pairs)
        assert looks.count("del") == sum(bool(d.before) for d in pairs)
        assert passes[number].name in step.detail
    assert frame.panes[0].narrow.width == 288


def test_nothing_to_do() -> None:
    assert see.passes(lambda x: x, np.ones(3, np.float32)).to_html()


@pytest.mark.parametrize("target", [H100])
def test_decisions_of_the_gpu(target) -> None:
    def normed(w, x):
        y = jnp.tanh(x @ w)
        return (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1)

    view = see.fusion(normed, X, X, target=target, why=True)
    assert view.decisions.steps
    fused = [step for step in view.decisions.steps if step.kind == "fusion"]
    below = view.text(full=True).partition(LINE)[2]
    assert below.count("  fused ") == len(fused)
    assert view.frame().panes[-1].title.startswith("XLA's decisions")
    assert len(view.frame().panes[-1].rows) == len(view.decisions.steps)


def test_decisions_are_those_of_a_gpu() -> None:
    with pytest.raises(ValueError, match="Write target='h100'"):
        see.fusion(layer, X, X, why=True)


def test_the_legend_has_what_is_drawn() -> None:
    """Nothing is gone where nothing is computed; words stand equally far apart."""
    copied = see.passes(lambda x: x, X)
    (each,) = copied.recording.passes
    assert each.added and each.altered and not each.removed
    for scene in (copied.frame().panes[0].scene, copied.frame().panes[0].narrow):
        assert not {"new", "changed"} - set(texts(scene)) and "gone" not in texts(scene)
    scene = see.passes(layer, X, X).frame().panes[0].scene
    named = [m for m in scene.marks if texts_of(m) & {"new", "changed", "gone"}]
    ends = [m.x + text_width(m.drawn[0].text, 12) for m in named]
    gaps = [to.x - end for end, to in zip(ends, named[1:], strict=False)]
    assert len(named) == 3 and max(gaps) - min(gaps) < 1


def texts_of(mark):
    return {part.text for part in mark.drawn if part.tag == "text"}
