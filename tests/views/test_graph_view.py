"""The graph of a jaxpr: boxes that open, inputs and outputs by name, and DOT."""

import re
import time
from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_widgets import graph_layout
from minijax_widgets.glyph import LEAST_TEXT
from minijax_widgets.graph_boxes import repeats
from minijax_widgets.graph_layout import lay_out
from minijax_widgets.graph_sketch import Sketch
from minijax_widgets.graph_view import DOWN, NARROW, WIDE, edges_of
from subjects import LSTM, lstm

X = np.ones(8, np.float32)


def softmax(x):
    largest = jnp.max(x)
    e = jnp.exp(x - largest)
    return e / jnp.sum(e)


def long(x):
    for _ in range(2000):
        x = jnp.sin(x)
    return x


def network(x):
    for _ in range(12):
        x = jnp.tanh(x @ x + 1.0) * 2.0
    return x


def loop(x):
    def more(carry):
        return carry[0] < 3

    def body(carry):
        return carry[0] + 1, minijax.lax.fori_loop(0, 3, twice, carry[1])

    return minijax.nn.relu(minijax.lax.while_loop(more, body, (0, x))[1]) + x


def twice(number, x):
    return jnp.sin(x) * 2.0


def texts(scene):
    return [p.text for mark in scene.marks for p in mark.drawn if p.tag == "text"]


def keys(scene):
    return {key for mark in scene.marks for key in mark.keys}


def test_dot_and_twin():
    view = see.jaxpr(softmax, X).graph()
    assert "e0 -> e1" in view.dot() and 'label="d = exp"' in view.dot()
    assert "  d = exp -> f = div  d" in view.text()


def graphs():
    rng = np.random.default_rng(0)
    for count in (1, 2, 30):
        sizes = rng.integers(20, 90, (count, 2))
        lines = [
            f"n{i} [width={w / 72} height={h / 72}];" for i, (w, h) in enumerate(sizes)
        ]
        edges = [(int(a), b) for b in range(1, count) for a in {*rng.integers(0, b, 2)}]
        lines += [f"n{a} -> n{b} [id={i}];" for i, (a, b) in enumerate(edges)]
        shown = 'node [shape=box fixedsize=true label=""];'
        yield sizes, edges, "\n".join(["digraph {", shown, *lines, "}"])


def test_boxes_stand_apart_and_lines_lead_from_one_to_another():
    for sizes, edges, text in graphs():
        (laid,) = lay_out([(text, False)])
        places = [np.array(laid.nodes[f"n{i}"]) for i in range(len(sizes))]
        for number, one in enumerate(places):
            assert (one - sizes[number] / 2 >= -1).all()
            assert (one + sizes[number] / 2 <= (laid.w + 1, laid.h + 1)).all()
            for other, size in zip(places[:number], sizes, strict=False):
                apart = abs(one - other) - (sizes[number] + size) / 2
                assert max(apart) >= -1
        along = 0 if laid.across else 1
        for number, (a, b) in enumerate(edges):
            points = laid.lines[str(number)]
            assert len(points) % 3 == 2  # curves, then the tip
            assert places[a][along] < places[b][along]
            for point, node in ((points[0], a), (points[-1], b)):
                away = abs(np.array(point) - places[node]) - sizes[node] / 2
                assert max(away) < 2


def test_a_graph_that_takes_long_is_given_up():
    many = "; ".join(f"a{i} -> a{i * j % 997}" for i in range(997) for j in range(9))
    start = time.process_time()
    assert lay_out([(f"digraph {{ {many} }}", False)]) == []
    assert time.process_time() - start < 1


def test_without_the_engine_the_table_serves(monkeypatch, tmp_path):
    view = see.jaxpr(softmax, X).graph()
    monkeypatch.setattr(graph_layout, "ENGINE", tmp_path / "none.py")
    frame = view.frame()
    table = frame.panes[-1]
    assert "pip install pygraphviz" in table.title
    assert ["d = exp", "d", "f = div"] in [row.cells for row in table.rows]
    assert frame.panes[0].title == "jaxpr"
    with pytest.raises(TypeError, match="has no SVG"):
        view.to_svg()


ones = partial(np.ones, dtype=np.float32)


def test_everything_is_drawn_by_name():
    scene = see.jaxpr(softmax, X).graph().scenes()[0]
    assert keys(scene) >= {f"e{number}" for number in range(5)}
    # The names of the source: an argument, what is assigned; the operation in the box.
    assert {"x", "largest", "e", "returns", "exp", "reduce_max"} <= set(texts(scene))
    assert "d = exp" in {mark.label for mark in scene.marks}
    arrows = [mark for mark in scene.marks if mark.tell == "e:f32[8]"]
    assert len(arrows) == 2 and {"e2", "e3"} == set(arrows[0].keys)
    sizes = [
        part.has["font-size"]
        for mark in scene.marks
        for part in mark.drawn
        if part.tag == "text"
    ]
    assert min(sizes) >= LEAST_TEXT


def test_an_lstm_is_seen_whole():
    """Weights by their paths, lines as boxes, h and c going round, and on one page."""
    scene = see.jaxpr(lstm, *LSTM).graph().scenes()[0]
    told = {mark.label for mark in scene.marks}
    assert {"h goes round", "c goes round"} <= told
    found = texts(scene)
    assert {"w['x']", "w['h']", "w['b']", "xs", "xs[t]", "gates", "i, f, g, o"} <= set(
        found
    )
    assert {"loss", "returns loss"} <= set(found)
    assert found.count("h") == 3 and found.count("c") == 3  # in, made, out
    assert any("scan, 24 turns" in text for text in found)
    boxes = [mark.label for mark in scene.marks if mark.label.endswith(", open")]
    assert sum(label.startswith("line ") for label in boxes) == 5
    assert scene.width < 1144 and scene.height < 640
    # Titles stand in several lines, and are whole.
    assert not [text for text in found if "..." in text]
    whole = "".join(found).replace(" ", "")
    assert "c=lax.logistic(f)*c+lax.logistic(i)*jnp.tanh(g)" in whole
    assert 'gates=x@w["x"]+h@w["h"]+w["b"]' in whole


def test_arrows_of_a_small_graph_have_a_shaft():
    scene = see.jaxpr(jnp.sin, X).graph().scenes()[0]
    drawn = [mark for mark in scene.marks if "flows" in mark.label]
    ends = [re.findall(r"[\d.]+", mark.drawn[0].has["d"]) for mark in drawn]
    shafts = [float(numbers[-2]) - float(numbers[0]) for numbers in ends]
    assert len(shafts) == 2 and min(shafts) > 8, shafts


def flows(view, opened):
    """What the sketch says flows: (from, to) of equations, through what it adds."""
    sketch = Sketch(view.boxes, opened)
    onward = {}
    for start, end in [
        *sketch.edges,
        *((a, b) for box in loops(sketch.whole) for a, b, _ in box),
    ]:
        onward.setdefault(start, []).append(end)
    found = set()
    for start in onward:
        left = list(onward[start]) if start[0] == "e" else []
        while left:
            end = left.pop()
            if end[0] == "e":
                found.add((int(start[1:]), int(end[1:])))
            else:
                left += [one for one in onward.get(end, []) if one not in left]
    return found


def loops(box):
    inner = [one for one in box.inside if not isinstance(one, str)]
    return [box.loops, *(one for more in inner for one in loops(more))]


def test_what_flows_through_programs_is_what_ran():
    """From equation to equation, over the border of a loop and into its next turn."""
    view = see.jaxpr(lstm, *LSTM).graph()
    record = view.recording
    every = {name for name in view.boxes.within if name[0] in "ug"}
    drawn = flows(view, every)
    (scan,) = (e for e in record.equations if e.primitive == "scan")
    inner, outer = record.programs[1], record.programs[0]
    ends = [record.variables[v].definition for v in inner.outputs]
    for a, b, _ in edges_of(record):
        if scan not in (a, b):
            assert (a.id, b.id) in drawn
    square = next(e for e in record.equations if e.primitive == "integer_pow")
    assert (ends[2], square.id) in drawn and outer.equations[0] == scan.id
    for place, variable in enumerate(inner.inputs[3:5]):
        for reader in record.variables[variable].uses:
            assert (ends[place], reader) in drawn


def test_programs_are_boxes_of_their_own_that_open_and_close():
    view = see.jaxpr(loop, X).graph()
    whole, *layouts = view.scenes()
    # Condition and body stand apart, each with what it takes.
    assert {"cond_jaxpr", "body_jaxpr"} <= set(texts(whole))
    record = view.recording
    sine = next(e for e in record.equations if e.primitive == "sin")
    assert f"e{sine.id}" in keys(whole)
    closing = next(m for m in whole.marks if m.label.endswith(": while, open"))
    closed = layouts[closing.opens - 1]
    assert f"e{sine.id}" not in keys(closed)
    again = next(m for m in closed.marks if "= while" in m.label)
    assert again.opens == 0 and again.keys[0] == closing.keys[0]


def test_a_python_loop_is_its_first_turn_and_its_repeats():
    view = see.jaxpr(network, np.ones((4, 4), np.float32)).graph()
    equations = len(view.recording.equations)
    (more,) = (group for group in view.boxes.groups if group.repeats)
    assert more.title == "the same 11 times more"
    assert [part.title for part in more.parts][::10] == [
        "turn 2 of 12",
        "turn 12 of 12",
    ]
    assert more.count == equations * 11 // 12
    scene, *layouts = view.scenes()
    (box,) = (mark for mark in scene.marks if mark.label == "the same 11 times more")
    opened = layouts[box.opens - 1]
    assert sum(mark.label.startswith("turn ") for mark in opened.marks) == 11
    (box,) = (m for m in opened.marks if m.label == "the same 11 times more, open")
    assert box.opens == 0


def test_repeats():
    def found(text):
        return list(repeats([ord(letter) for letter in text]))

    assert found("") == found("abcdefgh") == []
    assert found("x" + "abcd" * 5 + "y") == [(1, 4, 5)]
    assert found("ab" * 3) == []  # too little is saved
    assert found("aab" * 8 + "cd" * 9) == [(0, 3, 8), (24, 2, 9)]


@pytest.mark.turns(3)
def test_a_gradient_of_many_layers_stays_small():
    def net(params, x):
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return jnp.sum(x)

    layers = [(ones((4, 4)), ones(4)) for _ in range(60)]
    view = see.jaxpr(minijax.grad(net), layers, ones((2, 4))).graph()
    scene = view.scenes()[0]
    assert len(scene.marks) < 200 and scene.width < 2500
    assert "59 inputs" in texts(scene)
    assert any("outputs" in text for text in texts(scene))
    assert "the same 59 times more" in {mark.label for mark in scene.marks}


@pytest.mark.turns(3)
def test_a_long_program_stays_small():
    view = see.jaxpr(long, X).graph()
    scenes = view.scenes()
    assert all(len(one.marks) < 400 for one in scenes)
    assert {"e0", "closed g0"} <= keys(scenes[0])
    around = see.jaxpr(long, X).graph(around=100)
    assert "e100" in keys(around.scenes()[0])


def test_a_step_in_a_closed_box_lights_the_box():
    view = see.jaxpr(long, X).graph()
    frame = view.frame()
    shown = keys(frame.panes[0].scene)
    assert all(shown.intersection(step.on) for step in frame.steps)


def test_svg():
    svg = see.jaxpr(softmax, X).graph().to_svg()
    assert svg.startswith("<svg") and "largest" in svg
    with pytest.raises(TypeError, match="has no SVG"):
        see.tree(X).to_svg()
    assert "<svg" in see.jaxpr(lambda x: x, X).graph().to_svg()


def test_the_picture(show):
    page = show(see.jaxpr(softmax, X).graph())
    lit = page.locator("svg.mj-scene g.mj-on[role=button]")
    assert lit.get_attribute("aria-label") == "d = exp"
    page.click("button[aria-label='one step on']")
    assert lit.get_attribute("aria-label") == "e = reduce_sum"
    assert page.inner_text("mark") == "jnp.sum(e)"
    page.locator("svg.mj-scene g[aria-label='f = div']").click()
    assert page.inner_text(".mj-where") == "step 5 of 5: div"


def test_boxes_open_and_close_on_the_page(show):
    page = show(see.jaxpr(loop, X).graph())
    shown = "svg.mj-scene:not([hidden])"
    sine = page.locator(f"{shown} g[role=button][aria-label$='= sin']")
    assert sine.count() == 1
    box = page.locator(f"{shown} g[aria-label$=': while, open']")
    box.focus()
    page.keyboard.press("Enter")
    assert sine.count() == 0
    # The focus stays on the box, whose own click opens it again.
    page.keyboard.press("Enter")
    assert sine.count() == 1


def cell_loop(w, xs):
    def cell(h, x):
        gate = jnp.tanh(x @ w + h)
        return gate * h, gate

    return minijax.lax.scan(cell, jnp.ones(8), xs)[0].sum()


def test_a_narrow_page_has_the_graph_from_top_to_bottom(show):
    view = see.jaxpr(cell_loop, ones((4, 8)), ones((5, 4))).graph()
    sketches, _, laid = view.laid
    assert laid[0].across and not laid[1].across and not laid[NARROW].across
    assert [form for _, form in sketches[:3]] == [WIDE, DOWN, NARROW]
    page = show(view, width=480)
    picture = page.locator("svg.mj-scene:not([hidden])").first
    assert float(picture.get_attribute("width")) <= 440
    closed = page.locator('[aria-label^="scan"], [aria-label*="scan"]').first
    before = page.locator("svg.mj-scene:not([hidden]) g.mj-mark").count()
    closed.click()
    shown = page.locator("svg.mj-scene:not([hidden]) g.mj-mark")
    assert shown.count() > before
    assert float(picture.get_attribute("width")) <= 700
    assert page.errors == []


@pytest.mark.parametrize("layers", [12, 60])
def test_a_page_that_is_not_wide_has_the_same_boxes_from_top_to_bottom(show, layers):
    """As the pane of JupyterLab: what is folded lies as the pane does, and its boxes
    close and open there, also where not every state has a layout."""

    def tower(ws, x):
        for w in ws:
            x = x + jnp.sin(x @ w)
        return (x * x).sum()

    ws = [np.ones((4, 4), np.float32)] * layers
    view = see.jaxpr(tower, ws, ones((2, 4))).graph()
    (pane,) = [pane for pane in view.frame().panes if pane.kind == "scene"]
    assert view.laid[2][0].across and pane.middle.width < pane.scene.width
    page = show(view, width=800)
    picture = page.locator("svg.mj-scene:not([hidden])").first
    sides = [float(side) for side in picture.get_attribute("viewBox").split()[2:]]
    assert sides == pytest.approx([pane.middle.width, pane.middle.height], abs=0.1)
    box = picture.bounding_box()
    assert box["width"] < box["height"]
    counts = [picture.locator("g.mj-mark").count()]
    for label in ("x = x + jnp.sin(x @ w), open", "x = x + jnp.sin(x @ w)"):
        page.locator(".mj-live").focus()
        found = picture.locator(f'[aria-label$="{label}"][role="button"]').first
        found.press("Enter")
        counts.append(picture.locator("g.mj-mark").count())
    assert counts[1] < counts[0] and counts[2] > counts[1]


@pytest.mark.parametrize("name", ["while", "scan", "cond"])
def test_a_loop_written_on_one_line_is_open_at_first(name):
    """Its box shows what it does, though all of it stands on the line that calls it."""
    function = {
        "while": lambda x: minijax.lax.while_loop(
            lambda y: y < 3.0, lambda y: y * 2, x
        ),
        "scan": lambda x: minijax.lax.scan(lambda c, y: (c * y, c + y), x, X),
        "cond": lambda x: minijax.lax.cond(x > 0, lambda y: y * 2, lambda y: y - 1, x),
    }[name]
    view = see.jaxpr(function, 1.0).graph()
    closed = [e for e in view.recording.equations if e.primitive == name]
    assert [f"u{e.id}" in view.first for e in closed] == [True]
