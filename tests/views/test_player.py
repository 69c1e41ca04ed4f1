"""The player in a real browser: stepping, linking, folding, searching, themes."""

import hashlib
import itertools
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax import jit
from minijax_widgets.style import DARK, LIGHT, PALETTE

WIDGETS = Path(__file__).resolve().parents[2] / "widgets"
X = np.ones(1024, np.float32)


def softmax(x):
    largest = jnp.max(x)
    e = jnp.exp(x - largest)
    return e / jnp.sum(e)


def nested(x):
    inner = jit(lambda y: jnp.sin(y) * 2.0)
    return inner(x) + inner(x)


def step_of(page):
    return page.inner_text(".mj-where")


def focus(page):
    page.click(".mj-head")
    page.focus(".minijax-view")


def test_the_first_frame_is_the_telling_step(show):
    page = show(see.jaxpr(softmax, X))
    assert step_of(page) == "step 3 of 5: exp"
    assert page.inner_text("tr.mj-on td:first-child").strip() == "d:f32[1024] = exp c"
    assert page.inner_text("mark") == "jnp.exp(x - largest)"
    assert page.inner_text(".mj-n.mj-def") == "d"
    assert page.locator(".mj-n.mj-use").all_inner_texts() == ["d", "d"]


def test_keys_step(show):
    page = show(see.jaxpr(softmax, X))
    focus(page)
    for key, label in [
        ("ArrowRight", "reduce_sum"),
        ("End", "div"),
        ("ArrowRight", "div"),
        ("Home", "reduce_max"),
        ("ArrowLeft", "reduce_max"),
        ("ArrowDown", "sub"),
        ("ArrowUp", "reduce_max"),
    ]:
        page.keyboard.press(key)
        assert step_of(page).endswith(": " + label), key
    assert page.get_attribute("input[type=range]", "aria-valuetext").startswith(
        "step 1"
    )


def test_buttons_and_slider_and_play(show):
    page = show(see.jaxpr(softmax, X))
    page.click("button[aria-label='last step']")
    assert step_of(page) == "step 5 of 5: div"
    assert page.is_disabled("button[aria-label='one step on']")
    page.fill("input[type=range]", "1")
    assert step_of(page) == "step 2 of 5: sub"
    page.select_option("select", "4")
    page.click("button[aria-label='play']")
    page.wait_for_function(
        "document.querySelector('.mj-where').textContent.includes('5 of 5')"
    )
    assert page.is_visible("button[aria-label='play'] svg")


def test_hover_links_panes(show):
    page = show(see.jaxpr(softmax, X))
    page.hover("tr.mj-r:has-text('return e / jnp.sum(e)')")
    near = page.locator("tr.mj-near td:first-child").all_inner_texts()
    assert [text.strip()[:2] for text in near[:2]] == ["e:", "f:"]
    page.hover(".mj-n >> text=c >> nth=0")
    assert page.locator(".mj-n.mj-def").all_inner_texts().count("c") == 1


def test_folding(show):
    page = show(see.jaxpr(lambda x: long(x), X))
    rows = page.locator("tr.mj-r:not(.mj-group)").count()
    assert rows < 250 and page.locator("tr.mj-group").count() == 2
    focus(page)
    page.keyboard.press("f")
    assert page.locator("tr.mj-r").count() < 10
    page.keyboard.press("Home")
    assert page.locator("tr.mj-on").count() == 1


def long(x):
    for _ in range(350):
        x = jnp.sin(x)
    return jnp.cos(x)


def test_long_parameters_stand_behind_dots(show):
    page = show(see.jaxpr(lambda x: x @ x, np.ones((4, 4), np.float32)))
    row = page.locator("tr.mj-on td:first-child")
    assert row.inner_text().strip() == "b:f32[4,4] = dot_general[] a a"
    page.click(".mj-params")
    assert "dimension_numbers=(([1], [0]), ([], []))" in row.inner_text()
    page.click(".mj-params")
    focus(page)
    page.keyboard.press("e")
    assert "preferred_element_type=float32] a a" in row.inner_text()


def test_source_is_coloured_and_linked_by_line(show):
    page = show(see.jaxpr(softmax, X))
    words = page.locator(".mj-t-word").all_inner_texts()
    assert words == ["def", "return"]
    grounds = page.evaluate(
        "[...document.querySelectorAll('.mj-line')].map(row => "
        "[row.style.getPropertyValue('--mj-hue'), row.textContent.includes('exp')])"
    )
    hues = {hue for hue, exp in grounds if exp}
    assert len(hues) == 1 and len({hue for hue, _ in grounds}) == 3


def test_the_legend_says_what_colours_mean(show):
    page = show(see.jaxpr(softmax, X))
    focus(page)
    page.keyboard.press("?")
    assert "made by an equation" in page.inner_text(".mj-legend")
    assert "cotangent" not in page.inner_text(".mj-legend")


def test_search(show):
    page = show(see.jaxpr(nested, X))
    focus(page)
    page.keyboard.press("/")
    page.keyboard.type("SIN")
    assert step_of(page).startswith("found 1 of ")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert step_of(page).startswith("found 2 of ")
    page.keyboard.press("/")
    page.keyboard.type("no such thing")
    assert step_of(page) == "not found"


def test_text_and_help(show):
    view = see.jaxpr(softmax, X)
    page = show(view)
    focus(page)
    page.keyboard.press("t")
    assert page.inner_text(".mj-text") == view.recording.text
    page.keyboard.press("t")
    page.keyboard.press("?")
    assert "back to the notebook" in page.inner_text(".mj-help")


@pytest.mark.parametrize("width", [400, 700, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_no_sideways_scroll(show, width, dark):
    page = show(see.jaxpr(nested, X), width=width, dark=dark)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    ground = page.evaluate(
        "getComputedStyle(document.querySelector('.mj-live')).backgroundColor"
    )
    base = (DARK if dark else LIGHT)["base"]
    red, green, blue = (int(base[i : i + 2], 16) for i in (1, 3, 5))
    assert ground == f"rgb({red}, {green}, {blue})"


# What is in the bar, in lines, from left to right: its sides, and its text or title.
BAR = """() => {
  const lines = new Map();
  for (const one of document.querySelector(".mj-bar").children) {
    const {left, right, top, bottom, width} = one.getBoundingClientRect();
    if (!width || one.matches(".mj-gap")) continue;
    const line = Math.round(top + bottom);
    lines.set(line, [...(lines.get(line) ?? []),
      [left, right, one.textContent || one.title]]);
  }
  return [...lines].sort((a, b) => a[0] - b[0]).map(
    line => line[1].sort((a, b) => a[0] - b[0]));
}"""


@pytest.mark.parametrize("width", range(300, 520, 20))
def test_no_button_stands_alone_in_the_last_line(show, width):
    """And none lies over another, however the bar's lines break."""
    for view in (see.jaxpr(softmax, X), see.jaxpr(softmax, X).graph()):
        lines = show(view, width=width).evaluate(BAR)
        assert [said for _, _, said in lines[-1]][-2:] == ["text", "?"]
        for line in lines:
            for (_, right, _), (left, _, said) in itertools.pairwise(line):
                assert right <= left, said


def test_reduced_motion(show):
    page = show(see.jaxpr(softmax, X), reduced=True)
    assert (
        page.evaluate(
            "getComputedStyle(document.querySelector('mark')).transitionDuration"
        )
        == "0s"
    )


def test_hostile_names(show):
    def evil(x):
        return jnp.sin(x)  # </script><script>alert(1)</script> \u202e

    evil.__name__ = "</script><img src=x onerror=alert(1)>\u202eabc"
    page = show(see.jaxpr(evil, X))
    assert page.locator("img").count() == 0
    assert "</script><img src=x" in page.inner_text(".mj-head")


def test_empty_and_one_step(show):
    page = show(see.jaxpr(lambda x: x, X))
    assert page.locator("input[type=range]").count() == 0
    page = show(see.jaxpr(lambda x: jnp.sin(x), X))
    assert step_of(page) == "" and "sine of each" in page.inner_text(".mj-detail")


# The style sheets and the weight of each headline: on the page, in a part of it with
# styles of its own, and of a view that is drawn before it stands in such a part.
STYLED = """async frame => {
  const player = await Object.values(minijaxPlayers)[0];
  const model = {get: n => ({frame, step: -1})[n], on() {}};
  const made = () => document.createElement("div");
  const apart = () => document.body.appendChild(made()).attachShadow({mode: "open"});
  const there = apart(), later = apart();
  for (const el of [made(), made()]) {
    there.append(el);
    player.render({model, el});
  }
  const el = made();
  player.render({model, el});
  later.append(el);
  return [document, there, later].map(part => [
    part.querySelectorAll("style").length,
    ...[...part.querySelectorAll(".mj-head")].map(h => getComputedStyle(h).fontWeight),
  ]);
}"""


def test_two_views_on_a_page(browser, tmp_path):
    """They share one style sheet, wherever they stand."""
    one, two = see.jaxpr(softmax, X), see.jaxpr(nested, X)
    path = tmp_path / "two.html"
    path.write_text(f"<body>{one.to_html()}{two.to_html()}{one.to_html()}</body>")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('.mj-live').length == 3")
    on_page, apart, later = page.evaluate(STYLED, one.frame().to_json())
    assert on_page == [1, *["600"] * 3]
    assert apart == [1, "600", "600"] and later == [1, "600"]
    page.close()


def test_a_widget_marks_what_its_next_picture_changed(browser, tmp_path):
    views = [see.jaxpr(lambda n=n: jnp.sum(jnp.sin(jnp.zeros(n)))) for n in (3, 5)]
    first, second = (
        json.dumps(view.frame().to_json()).replace("<", "\\u003c") for view in views
    )
    path = tmp_path / "live.html"
    path.write_text(
        f"""<body>{views[0].to_html()}<div id=here></div><script>
        var values = {{frame: {first}, step: -1, selection: ""}}, called = {{}};
        var model = {{get: n => values[n], set: (n, x) => {{values[n] = x}},
          save_changes() {{}}, on: (n, f) => {{called[n] = f}}, off() {{}}}};
        Object.values(globalThis.minijaxPlayers)[0].then(player => {{
          player.render({{model, el: document.getElementById("here")}});
          values.frame = {second};
          called["change:frame"]()}})</script>"""
    )
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#here .mj-moved")
    marked = page.locator("#here .mj-moved").all_inner_texts()
    assert marked == [":f32[5]", "repeated to (5,)", ":f32[5]"]
    page.close()


def test_widget_has_the_same_picture():
    pytest.importorskip("anywidget")
    view = see.jaxpr(softmax, X)
    assert json.loads(view.widget.frame)["headline"] == view.recording.headline
    assert view.widget.step == 2 and view.widget is view.widget


def test_live_records_again():
    ipywidgets = pytest.importorskip("ipywidgets")
    pytest.importorskip("anywidget")
    slider = ipywidgets.IntSlider(3, 1, 8)
    box = see.live(see.jaxpr, lambda n: jnp.sum(jnp.zeros(n)), n=slider)
    player, complaint = box.children[-1], box.children[-2]
    assert "f32[3]" in player.frame
    slider.value = 5
    assert "f32[5]" in player.frame and slider.description == "n"
    bundle = box._repr_mimebundle_()
    assert bundle["text/plain"].startswith("live: n = 5\njaxpr of")
    assert "In a notebook that runs, controls stand here" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    slider.value = 3
    box = see.live(see.jaxpr, lambda n: jnp.zeros(3) + jnp.zeros(n), n=slider)
    player, complaint = box.children[-1], box.children[-2]
    slider.value = 4
    assert "incompatible shapes" in complaint.value and "f32[3]" in player.frame
    assert "The picture shows the last good values." in complaint.value
    slider.value = 3
    assert complaint.value == ""
    with pytest.raises(TypeError, match="got no control"):
        see.live(see.jaxpr, jnp.sin, 1.0)


# ---- the committed bundle -----------------------------------------------------------


def test_the_bundle_is_fresh():
    """Built from the sources as they are: `npm run build` in widgets/ makes it."""
    manifest = json.loads(
        (WIDGETS / "minijax_widgets/static/manifest.json").read_text()
    )
    paths = [
        p for p in sorted((WIDGETS / "src").glob("**/*.ts")) if ".test." not in p.name
    ]
    names = sorted(path.relative_to(WIDGETS).as_posix() for path in paths)
    text = "".join(f"{name}\n{(WIDGETS / name).read_text('utf-8')}" for name in names)
    assert hashlib.sha256(text.encode()).hexdigest() == manifest["sources"]
    for name, digest in manifest["bundles"].items():
        data = (WIDGETS / "minijax_widgets/static" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        assert len(data) <= 50_000


def test_one_palette():
    """The player's colours are those of the static frames."""
    style = (WIDGETS / "src/player/style.ts").read_text()
    for role, colours in PALETTE.items():
        found = re.search(rf"{role}: \[(.*?)\]", style)
        assert found and tuple(re.findall(r"#\w{6}", found.group(1))) == colours
    for base in (LIGHT, DARK):
        for name, colour in base.items():
            assert f'{name}: "{colour}"' in style


@pytest.mark.node
def test_the_players_own_tests():
    """vitest and the type checker, where `npm install` was run in widgets/."""
    if not (WIDGETS / "node_modules/.bin/vitest").exists():
        pytest.skip("widgets/node_modules is not here: run `npm install` in widgets/")
    for command in (["tsc", "--noEmit"], ["vitest", "run"]):
        program = WIDGETS / "node_modules/.bin" / command[0]
        answer = subprocess.run(
            [str(program), *command[1:]], cwd=WIDGETS, capture_output=True, text=True
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr


AXE = WIDGETS / "node_modules/axe-core/axe.min.js"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
def test_axe_finds_nothing(show, dark, width):
    """No violation of the rules of accessibility that axe-core knows."""
    if not AXE.exists():
        pytest.skip("widgets/node_modules is not here: run `npm install` in widgets/")
    for view in (
        see.jaxpr(nested, X),
        see.trace(softmax, X),
        see.tree({"w": X, "name": "tanh"}),
        see.card("sin"),
        see.primitives(),
    ):
        page = show(view, width=width, dark=dark)
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run().then(r => r.violations.map(v => v.id))")
        assert found == []


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_still_to_come_can_be_read(show, dark):
    """Text of later steps keeps a contrast of 4.5 : 1 in both themes."""
    if not AXE.exists():
        pytest.skip("widgets/node_modules is not here: run `npm install` in widgets/")
    for view in (see.trace(nested, X), see.trace(softmax, X)):
        page = show(view.at(1), width=1280, dark=dark)
        assert page.locator("tr.mj-later").count() > 2
        page.evaluate(AXE.read_text())
        found = page.evaluate(
            "axe.run({runOnly: 'color-contrast'}).then(r => r.violations.flatMap("
            "v => v.nodes.map(n => n.any[0].message)))"
        )
        assert found == []


def test_live_keeps_arrays_as_arguments():
    """Views of transformations find the arrays that a function is given, by name."""
    from ipywidgets import IntSlider

    def loss(weights, x, rounds):
        for _ in range(rounds):
            x = jnp.tanh(x @ weights["w"])
        return jnp.sum(x)

    slider = IntSlider(1, 1, 6)
    w = {"w": np.ones((3, 3), np.float32)}
    box = see.live(see.grad, loss, w, np.ones((2, 3), np.float32), slider)
    assert slider.description == "rounds"
    assert "weights['w']" in box.view.text() and "used twice" not in box.view.text()
    slider.value = 2
    assert "weights['w'] is used twice" in box.view.text()
    box = see.live(see.vmap, lambda x, n: x * n, np.ones((2, 3), np.float32), slider)
    assert box.view.frame().call == "vmap(lambda)"


def test_nothing_is_cut_on_paper(show):
    """A page that was laid out for 1200 pixels is printed on A4: pictures become as
    narrow as the paper, tables break their lines, and what one clicks is gone."""
    w, x = np.ones((4, 5), np.float32), np.ones((6, 5), np.float32)
    view = see.vmap(lambda w, a: jnp.tanh(w @ a), w, x, in_axes=(None, 0))
    for each in (view, see.fusion(softmax, X)):
        page = show(each, width=1200)
        page.wait_for_selector("svg.mj-scene")
        page.emulate_media(media="print")
        # Read at once, before the player hears of the new width: as in printing.
        cut = page.evaluate(
            """() => {
            document.body.style.width = "680px";
            const edge = document.body.getBoundingClientRect().right;
            const all = "svg.mj-scene:not([hidden]), .mj-pane, .mj-pane td";
            return [...document.querySelectorAll(all)].filter(one =>
                one.getBoundingClientRect().right > edge)
            .map(one => one.outerHTML.slice(0, 150))}"""
        )
        assert cut == []
        assert page.locator("button:visible, input:visible").count() == 0


# What is drawn for paper: the smallest letters in pixels, the texts that a cut between
# two parts of a picture goes through, and how many parts there are.
ON_PAPER = """() => addEventListener("beforeprint", () => {
  const seen = window.paper = {least: 99, cut: [], parts: 0};
  for (const svg of document.querySelectorAll("svg.mj-scene:not([hidden])")) {
    const {top, bottom, width} = svg.getBoundingClientRect();
    const grown = width / svg.viewBox.baseVal.width;
    seen.parts++;
    for (const text of svg.querySelectorAll("text")) {
      const at = text.getBoundingClientRect();
      if (at.bottom < top + 1 || at.top > bottom - 1) continue;
      const size = parseFloat(getComputedStyle(text).fontSize);
      seen.least = Math.min(seen.least, grown * size);
      if (at.top < top - 1 || at.bottom > bottom + 1) seen.cut.push(text.textContent);
    }
  }
})"""
WIDTHS = """() => [...document.querySelectorAll("svg.mj-scene:not([hidden])")]
  .map(svg => svg.getAttribute("width"))"""


def test_letters_are_large_enough_on_paper(show):
    """At least 7 points; a high picture is cut into parts, no text of it; on the screen
    it is as it was."""
    view = see.vmap(lambda x: softmax(softmax(x)), X.reshape(4, 256))
    page = show(view, width=1200)
    before = page.evaluate(WIDTHS)
    page.evaluate(ON_PAPER)
    page.pdf(format="A4")
    paper = page.evaluate("window.paper")
    assert paper["least"] >= 7 * 96 / 72 and paper["cut"] == [] and paper["parts"] > 1
    assert page.evaluate(WIDTHS) == before
