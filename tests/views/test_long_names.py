"""A long or hostile name never makes a pane scroll sideways: it is folded or wraps."""

import pytest

import gallery as states
import minijax
import minijax_widgets as see
import subjects as of
from minijax import jit, make_jaxpr
from minijax import numpy as jnp

TREE = {of.EVIL: of.X, of.HEBREW: of.X, "k" * 99: of.X}
BATCH = {name: jnp.ones((3, 4)) for name in TREE}
# The steps show rows and marks that the first picture may not have yet.
TO_STEP = """part => document.querySelectorAll(".mj-live input[type=range]").forEach(
  slider => {
    slider.value = Math.round(part * Number(slider.max));
    slider.dispatchEvent(new Event("input"));
  })"""


def body(tree):
    """Each argument's name stands in equations, in what they say, and in results."""
    return sum(jnp.sin(x).sum() * x for x in tree.values())


def loss(tree):
    return body(tree).sum()


body.__name__ = body.__qualname__ = "q" * 99
loss.__name__ = loss.__qualname__ = "f" * 99
backward = minijax.grad(loss)
# What the gallery has no hostile state for, and names in more places.
MORE = {
    "jaxpr, of a tree": lambda: see.jaxpr(body, TREE),
    "graph, of a tree": lambda: see.jaxpr(jit(body), TREE).graph(),
    "difference": lambda: see.jaxpr(make_jaxpr(loss)(TREE), make_jaxpr(backward)(TREE)),
    "trace, of a tree": lambda: see.trace(body, TREE),
    "memory": lambda: see.memory(backward, TREE),
    "memory, compiled": lambda: see.memory(backward, TREE, compiled=True),
    "stages": lambda: see.stages(loss, TREE, code=True, passes=True),
    "passes": lambda: see.passes(loss, TREE),
    "fusion": lambda: see.fusion(backward, TREE),
    "vmap, of a tree": lambda: see.vmap(body, BATCH),
    "grad, of a tree": lambda: see.grad(loss, TREE),
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """All of them on one page, and how many they are."""
    made = {n: make for n, make in states.STATES.items() if n.endswith("names")} | MORE
    shown = "".join(
        f'<section data-state="{name}">{make().to_html()}</section>'
        for name, make in made.items()
    )
    path = tmp_path_factory.mktemp("names") / "names.html"
    head = '<!doctype html><meta charset="utf-8"><style>body{margin:16px}</style>'
    path.write_text(head + shown, encoding="utf-8")
    return path, len(made)


@pytest.mark.parametrize("widths", [[1200], [800], [480], [1280, 816]])
def test_no_pane_scrolls_sideways(browser, hostile, sideways, widths):
    path, count = hostile
    page = browser.new_page(viewport={"width": widths[0], "height": 900}, offline=True)
    page.goto(path.as_uri())
    page.wait_for_function(
        "n => document.querySelectorAll('.mj-live').length == n", arg=count
    )
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(500)
        assert sideways(page) == []
        for part in (1, 0.5, 0):
            page.evaluate(TO_STEP, part)
            page.wait_for_timeout(200)
            assert sideways(page) == []
    page.close()


def test_a_folded_name_is_told_whole(browser, tmp_path):
    """The pointer on a folded name of the graph brings the whole name."""
    path = tmp_path / "graph.html"
    MORE["graph, of a tree"]().save(path)
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live svg.mj-scene")
    page.locator("g.mj-mark text", has_text="..k").first.hover(force=True)
    told = page.locator(".mj-detail").inner_text()
    page.close()
    assert f"tree['{'k' * 99}']" in told


SIZES = """() => [...document.querySelectorAll(".mj-row .mj-size")]
  .map(size => [size.textContent, size.getClientRects().length])"""


@pytest.mark.parametrize("state", ["memory, roofline", "grad, network"])
def test_sizes_have_one_line_on_a_phone(browser, sideways, tmp_path, state):
    path = tmp_path / "phone.html"
    states.STATES[state]().save(path)
    page = browser.new_page(viewport={"width": 330, "height": 800})
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live")
    sizes = page.evaluate(SIZES)
    assert sideways(page) == []
    page.close()
    assert sizes and all(lines == 1 for _, lines in sizes), sizes


def test_labels_of_a_narrow_backward_pass_are_whole():
    panes = states.STATES["grad, network"]().frame().panes
    narrow = next(pane.narrow for pane in panes if pane.scene).svg(0)
    assert "1/12" in narrow and ">jnp.tanh(x @ w)<" in narrow
