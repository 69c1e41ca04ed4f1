"""The graph of a jaxpr: DOT, coordinates from Graphviz, and a life without it."""

import importlib.util

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax_widgets import graph_view

X = np.ones(8, np.float32)


def softmax(x):
    largest = jnp.max(x)
    e = jnp.exp(x - largest)
    return e / jnp.sum(e)


def long(x):
    for _ in range(200):
        x = jnp.sin(x)
    return x


needs_engine = pytest.mark.skipif(
    importlib.util.find_spec("pygraphviz") is None,
    reason="pygraphviz is not on this machine: graphs are not laid out",
)


def test_dot_and_twin():
    view = see.jaxpr(softmax, X).graph()
    assert "e0 -> e1" in view.dot() and 'label="d = exp"' in view.dot()
    assert "  d = exp -> f = div  d" in view.text()


@needs_engine
def test_coordinates():
    graph = see.jaxpr(softmax, X).graph().graph()
    assert {node["key"] for node in graph["nodes"]} == {f"e{i}" for i in range(5)}
    heights = {node["key"]: node["y"] for node in graph["nodes"]}
    assert heights["e0"] < heights["e1"] < heights["e2"] < heights["e4"]
    for node in graph["nodes"]:
        assert 0 <= node["x"] - node["w"] / 2 and node["x"] <= graph["width"]
    assert len(graph["edges"]) == 5


@needs_engine
def test_svg():
    svg = see.jaxpr(softmax, X).graph().to_svg()
    assert svg.startswith("<svg") and svg.count("<rect") == 6 and "d = exp" in svg
    with pytest.raises(TypeError, match="has no SVG"):
        see.tree(X).to_svg()


def test_a_long_program_shows_the_neighbourhood():
    view = see.jaxpr(long, X).graph(around=100)
    assert [equation.id for equation in view.shown] == [98, 99, 100, 101, 102]


def test_the_program_of_a_lone_call_is_drawn():
    def loop(x):
        return minijax.lax.fori_loop(0, 3, lambda i, h: jnp.sin(h) * 2.0, x)

    graph = see.jaxpr(minijax.jit(loop), jnp.ones(2)).graph()
    assert graph.inside is not None and graph.inside.primitive == "scan"
    assert {"sin", "mul"} <= {equation.primitive for equation in graph.shown}


def test_a_step_inside_of_a_call_lights_its_box():
    graph = see.jaxpr(lambda x: minijax.nn.relu(x) + 1.0, jnp.ones(2)).graph()
    if graph.graph() is None:
        pytest.skip("no Graphviz engine")
    frame = graph.frame()
    inner = [e for e in graph.recording.equations if e.parent is not None]
    boxes = {f"around e{equation.id}" for equation in graph.shown}
    assert inner and all(boxes & set(frame.steps[e.id].on) for e in inner)


def test_without_the_engine(monkeypatch):
    monkeypatch.setattr(graph_view, "CHILD", "raise ImportError")
    view = see.jaxpr(softmax, X).graph()
    assert view.graph() is None and len(view.frame().panes) == 2
    with pytest.raises(ImportError, match="minijax\\[graph\\]"):
        view.to_svg()
    monkeypatch.setattr(graph_view, "CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(graph_view, "DEADLINE", 0.2)
    assert see.jaxpr(softmax, X).graph().graph() is None


@needs_engine
def test_the_picture(show):
    page = show(see.jaxpr(softmax, X).graph())
    assert page.locator("svg .mj-node").count() == 5
    assert page.locator("svg .mj-node.mj-on").text_content() == "d = exp"
    page.click("button[aria-label='one step on']")
    assert page.locator("svg .mj-node.mj-on").text_content() == "e = reduce_sum"
    assert page.inner_text("mark") == "jnp.sum(e)"
