"""The graph of a jaxpr: boxes that open, inputs and outputs by name, and DOT."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_widgets.glyph import LEAST_TEXT
from minijax_widgets.graph_layout import Item, lay_out

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


def overlapping(a, b):
    return abs(a.x - b.x) < (a.w + b.w) / 2 and a.y < b.y + b.h and b.y < a.y + a.h


def test_dot_and_twin():
    view = see.jaxpr(softmax, X).graph()
    assert "e0 -> e1" in view.dot() and 'label="d = exp"' in view.dot()
    assert "  d = exp -> f = div  d" in view.text()


def test_rows_stand_below_what_they_need_and_boxes_apart():
    rng = np.random.default_rng(0)
    for count in (1, 2, 30):
        sizes = rng.integers(20, 90, (count, 2))
        items = [Item(float(w), float(h)) for w, h in sizes]
        edges = [(int(a), b) for b in range(1, count) for a in {*rng.integers(0, b, 2)}]
        laid = lay_out(items, edges)
        for a, b in edges:
            assert items[a].y + items[a].h < items[b].y
        for number, one in enumerate(items):
            assert one.x - one.w / 2 >= -1e-6 and one.x + one.w / 2 <= laid.width
            assert not any(overlapping(one, other) for other in items[:number])
        for points, (a, b) in zip(laid.lines, edges, strict=True):
            assert points[0] == (items[a].x, items[a].y + items[a].h)
            assert points[-1] == (items[b].x, items[b].y)


def test_a_chain_stands_straight():
    # A step of the chain and its own input, twelve times: no drift to the side.
    items = [Item(80, 30)]
    edges = []
    for _ in range(12):
        items += [Item(20, 20, late=True), Item(100, 30)]
        number = len(items) - 1
        edges += [(number - 1, number), (max(0, number - 2), number)]
    lay_out(items, edges)
    chain = [item.x for item in items if not item.late]
    assert max(chain) - min(chain) < 15


def test_everything_is_drawn_by_name():
    scene, layouts = see.jaxpr(softmax, X).graph().scenes()
    assert layouts == [scene]
    assert keys(scene) >= {f"e{number}" for number in range(5)}
    assert {"a", "returns f", "d = exp"} <= set(texts(scene))
    arrows = [mark for mark in scene.marks if mark.tell == "d:f32[8]"]
    assert len(arrows) == 2 and {"e2", "e3"} == set(arrows[0].keys)
    sizes = [
        part.has["font-size"]
        for mark in scene.marks
        for part in mark.drawn
        if part.tag == "text"
    ]
    assert min(sizes) >= LEAST_TEXT


def test_programs_are_boxes_of_their_own_that_open_and_close():
    view = see.jaxpr(loop, X).graph()
    assert view.small
    whole, layouts = view.scenes()
    # Condition and body stand apart, each with its inputs and what it returns.
    assert {"cond_jaxpr", "body_jaxpr"} <= set(texts(whole))
    record = view.recording
    sine = next(e for e in record.equations if e.primitive == "sin")
    assert f"e{sine.id}" in keys(whole)
    closing = next(m for m in whole.marks if m.label.endswith("= while, open"))
    closed = layouts[closing.opens]
    assert f"e{sine.id}" not in keys(closed)
    again = next(m for m in closed.marks if "= while" in m.label)
    assert layouts[again.opens] is whole
    assert again.keys[0] == closing.keys[0]


def test_a_python_loop_is_grouped_by_its_turns():
    view = see.jaxpr(network, np.ones((4, 4), np.float32)).graph()
    equations = len(view.recording.equations)
    assert [len(list(group.equations())) for group in view.groups] == (
        [equations // 12] * 12
    )
    scene, layouts = view.scenes()
    assert len(layouts) == 13
    # The box of the telling equation is open at first, and closes.
    (box,) = [mark for mark in scene.marks if mark.label.endswith(", open")]
    assert layouts[box.opens] is layouts[0]
    assert not [mark for mark in layouts[0].marks if mark.label.endswith(", open")]


def test_a_long_program_stays_small():
    view = see.jaxpr(long, X).graph()
    scene, layouts = view.scenes()
    assert all(len(one.marks) < 400 for one in layouts)
    assert "e1999" in keys(scene)
    around = see.jaxpr(long, X).graph(around=100)
    assert "e100" in keys(around.scenes()[0])


def test_a_step_in_a_closed_box_lights_the_box():
    view = see.jaxpr(long, X).graph()
    frame = view.frame()
    shown = keys(frame.panes[0].scene)
    assert all(shown.intersection(step.on) for step in frame.steps)


def test_svg():
    svg = see.jaxpr(softmax, X).graph().to_svg()
    assert svg.startswith("<svg") and "d = exp" in svg
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
    box = page.locator(f"{shown} g[aria-label$='= while, open']")
    box.focus()
    page.keyboard.press("Enter")
    assert sine.count() == 0
    # The focus stays on the box, whose own click opens it again.
    page.keyboard.press("Enter")
    assert sine.count() == 1
