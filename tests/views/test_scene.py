"""The glyph of an array and the pane of pictures: in Python, and in a real browser."""

import base64
import re
from pathlib import Path
from types import SimpleNamespace
from xml.dom import minidom

import numpy as np
import pytest

import minijax.numpy as jnp
import minijax_widgets as see
from minijax_widgets.frame import Frame, FrameStep, Pane, Row, shape_of_type
from minijax_widgets.glyph import glyph, glyph_size, glyph_text, side
from minijax_widgets.scene import Scene, byte_scale, bytes_side
from minijax_widgets.style import PALETTE
from minijax_widgets.view import View

AXE = Path(__file__).resolve().parents[2] / "widgets/node_modules/axe-core/axe.min.js"


def rects(picture):
    return [part for part in picture.drawn if part.tag == "rect"]


def texts(picture):
    return {part.text: part.has for part in picture.drawn if part.tag == "text"}


@pytest.mark.parametrize(
    ("size", "long"), [(1, 3), (2, 16), (16, 34), (1024, 70), (2**30, 72)]
)
def test_a_side_is_the_logarithm_of_its_size(size, long):
    assert side(size) == long


def test_ranks():
    (dot,) = glyph(()).drawn
    assert dot.tag == "circle"
    bar = glyph((8,))
    assert (bar.card, len(rects(bar))) == ((28, 9), 1)
    assert glyph((4, 16)).card == (34, 22)
    assert len(rects(glyph((3, 4, 16)))) == 3
    pile = glyph((2, 500, 4, 16))
    assert len(rects(pile)) == 4
    assert set(texts(pile)) == {"16", "4", "2", "×", "500"}
    assert glyph((1, 7)).card == (side(7), 3)


def test_a_batch_axis_is_drawn_in_its_ink_with_two_lines():
    for batch, size in [((0,), "5"), ((1,), "6"), ((2,), "7"), ((-1,), "7")]:
        made = glyph((5, 6, 7), batch=batch)
        lines = [p for p in made.drawn if p.tag == "path"]
        assert [line.has["stroke"] for line in lines] == ["batch", "batch"]
        inked = [t for t, has in texts(made).items() if has["fill"] == "batch"]
        assert inked == [size]
    assert not [p for p in glyph((5, 6)).drawn if p.tag == "path"]


def test_roles_differ_without_colour():
    assert rects(glyph((4, 4), role="constant"))[0].has["stroke-dasharray"]
    count = {role: len(glyph((4, 4), role=role).drawn) for role in PALETTE}
    assert count["residual"] == count["cotangent"] == count["value"] + 1
    # An array without entries is hatched.
    assert len(glyph((0, 4)).drawn) == count["value"] + 1


def test_everything_is_within_the_bounds():
    made = glyph((12, 2, 1, 1048576), batch=(0, 3), name="a_long_name", role="residual")
    assert (
        made.w
        == glyph_size(
            (12, 2, 1, 1048576), batch=(0, 3), name="a_long_name", role="residual"
        )[0]
    )
    for part in rects(made):
        assert made.left <= part.has["x"]
        assert part.has["x"] + part.has["width"] <= made.right
        assert made.top <= part.has["y"]
        assert part.has["y"] + part.has["height"] <= made.bottom


def test_twins():
    assert glyph_text((8, 16, 64), (1,)) == "[8,{16},64]"
    assert glyph_text((8, 16), cuts={1: ("x", 4)}) == "[8,16/x]"
    assert glyph_text((), (0,)) == "[]"


def test_bytes_are_areas():
    scale = byte_scale(4096, side=64)
    assert bytes_side(4096, scale) == 64
    assert bytes_side(1024, scale) == 32
    picture = Scene(100, 100)
    picture.box(0, 0, bytes_side(4, scale), 2, role="residual", text="4 B")
    (mark,) = picture.marks
    assert [part.tag for part in mark.drawn] == ["circle", "text"]


def test_an_unknown_argument_of_a_mark_is_refused():
    with pytest.raises(TypeError, match="no argument 'wen'"):
        Scene(10, 10).text(0, 0, "a", wen=3)


class Picture(View):
    """Two glyphs, of which the second turns and moves, above rows with their keys."""

    def __init__(self):
        super().__init__(SimpleNamespace(headline="<b>a & b</b>"))

    def text(self, full=False):
        return self.recording.headline

    def scene(self, width):
        scene = Scene(width, 260, "two arrays")
        scene.band(4, 90, key="e0", go=0, text="first")
        one = scene.glyph((4, 8), 60, 50, key="e0", centered=True, tell="one tells")
        scene.arrow(one.right, (160, 50), key="e1", at=1, text="<i>")
        scene.glyph(
            (4, 16),
            200,
            50,
            batch=(1,),
            key="e1",
            name="two",
            at=1,
            go=1,
            centered=True,
            turns=[(2, (0,), (16, 4))],
            moves=[(2, 200, 150)],
        )
        scene.box(20, 180, 60, 40, key="e2", role="residual", text="h", until=1)
        scene.area([(120, 200), (160, 180), (200, 190)], base=210, key="e2")
        scene.text(20, 250, "<script>alert(1)</script>", key="e2")
        return scene

    def frame(self):
        pane = Pane(
            "picture", [], kind="scene", scene=self.scene(600), narrow=self.scene(300)
        )
        rows = [Row([f"row {i}"], keys=[f"e{i}"], go=i) for i in range(3)]
        steps = [FrameStep(f"s{i}", f"step {i} says", [f"e{i}"]) for i in range(3)]
        return Frame(
            "test",
            "f(x)",
            self.recording.headline,
            [pane, Pane("rows", rows, below=True)],
            steps,
            1,
            self.text(),
        )


@pytest.mark.parametrize("dark", [False, True])
def test_the_file_is_one_svg(dark):
    svg = Picture().to_svg(dark=dark)
    page = minidom.parseString(svg)
    assert page.documentElement.tagName == "svg"
    assert "<script>" not in svg and "<b>" not in svg
    assert PALETTE["value"][2 * dark] in svg
    # Names of colours do not get out, nor variables.
    inks = re.findall(r'(?:fill|stroke)="([^"]+)"', svg)
    assert all(ink == "none" or ink.startswith("#") for ink in inks)


def test_the_static_frame_is_an_image():
    html = Picture().static_html()
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert "<svg" not in html and "<b>" not in html
    svg = base64.b64decode(data).decode()
    minidom.parseString(svg)
    # The telling step: what it lights has an outline, nothing there is faint.
    assert svg.count('stroke="#246CCC" stroke-width="2"') == 1
    assert 'opacity="0.4"' not in svg
    first = Picture().frame().panes[0].scene.svg(0)
    arrow, array = 2, 3  # their parts: a line with its head, a card with doubled sides
    assert first.count('opacity="0.4"') == arrow + array
    last = Picture().frame().panes[0].scene.svg(2)
    assert last.count('opacity="0.4"') == 2  # a box and its lid
    assert "translate(200 150)" in last and "translate(200 50)" in first


def mark(page, key):
    """The marks of a key that are on the page, the narrow or the wide ones."""
    number = {"e0": 1, "e1": 3, "e2": 4}[key]
    return page.locator(f"svg.mj-scene:not([hidden]) g[data-mark='{number}']")


def classes(locator):
    return set(locator.get_attribute("class").split())


def test_a_step_lights_and_dims(show):
    page = show(Picture(), reduced=True)
    assert "mj-on" in classes(mark(page, "e1"))
    assert not {"mj-on", "mj-later"} & classes(mark(page, "e0"))
    page.focus(".minijax-view")
    page.keyboard.press("Home")
    assert "mj-on" in classes(mark(page, "e0"))
    assert "mj-later" in classes(mark(page, "e1"))
    page.keyboard.press("End")
    assert {"mj-on", "mj-later"} <= classes(mark(page, "e2"))
    # The second glyph moved and turned: its card is high now, and its sizes changed.
    box = mark(page, "e1").locator("rect:not(.mj-halo)").first
    assert box.get_attribute("height") == "34"
    assert mark(page, "e1").evaluate("e => e.style.transform") == (
        "translate(200px, 150px)"
    )


def test_a_turn_takes_its_time_and_ends(show):
    page = show(Picture())
    page.focus(".minijax-view")
    page.keyboard.press("End")
    page.wait_for_function(
        "document.querySelector('g[data-mark=\"3\"] rect:not(.mj-halo)')"
        ".getAttribute('height') == '34'"
    )
    page.keyboard.press("Home")
    page.wait_for_function(
        "document.querySelector('g[data-mark=\"3\"] rect:not(.mj-halo)')"
        ".getAttribute('height') == '22'"
    )


def test_pointer_and_keyboard(show):
    page = show(Picture(), reduced=True)
    row = page.locator("tr.mj-r")
    mark(page, "e0").hover()
    assert page.inner_text(".mj-detail") == "one tells"
    assert "mj-near" in classes(row.nth(0))
    page.hover(".mj-head")
    assert page.inner_text(".mj-detail") == "step 1 says"
    row.nth(2).hover()
    assert "mj-near" in classes(mark(page, "e2"))
    page.keyboard.press("End")
    mark(page, "e1").click()
    assert page.inner_text(".mj-where").startswith("step 2 of 3")
    # The band, the first glyph and the second can have the focus.
    page.locator("g[tabindex='0']").focus()
    page.keyboard.press("Enter")
    assert page.inner_text(".mj-where").startswith("step 1 of 3")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".mj-detail") == "one tells"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.inner_text(".mj-where").startswith("step 2 of 3")


def test_zoom(show):
    page = show(Picture())
    width = "document.querySelector('svg.mj-scene').getBoundingClientRect().width"
    page.focus(".minijax-view")
    # As wide as its pane.
    fits = page.locator(".mj-scene-pane").first.evaluate("made => made.clientWidth")
    assert fits - 1 <= page.evaluate(width) <= fits and fits > 600
    page.keyboard.press("+")
    assert abs(page.evaluate(width) - 1.25 * fits) < 3
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert abs(page.evaluate(width) - 0.8 * fits) < 3
    page.keyboard.press("0")
    assert fits - 1 <= page.evaluate(width) <= fits
    mark(page, "e0").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(f"{width} > {fits} + 100")


@pytest.mark.parametrize("width", [400, 1100])
def test_a_narrow_page_has_the_narrow_layout(show, width):
    page = show(Picture(), width=width)
    shown = page.locator("svg.mj-scene:not([hidden])")
    assert shown.count() == 1
    assert shown.get_attribute("viewBox") == f"0 0 {300 if width == 400 else 600} 260"
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    # The other layout comes when the page is turned, at the same step.
    page.set_viewport_size({"width": 1500 - width, "height": 700})
    page.wait_for_function(
        "document.querySelector('svg.mj-scene:not([hidden])')"
        f".getAttribute('viewBox') == '0 0 {600 if width == 400 else 300} 260'"
    )
    assert "mj-on" in classes(mark(page, "e1"))


class ThreeLayouts(Picture):
    """A picture of 1040 pixels, with a layout of 690 for narrower pages."""

    def frame(self):
        frame = super().frame()
        frame.panes[0].scene = self.scene(1040)
        frame.panes[0].middle = self.scene(690)
        return frame


@pytest.mark.parametrize("width, chosen", [(1300, 1040), (1000, 690), (800, 690)])
def test_the_widest_layout_that_fits_is_chosen(show, width, chosen):
    """A window of 1200 pixels leaves a view of JupyterLab 1000 at most."""
    page = show(ThreeLayouts(), width=width)
    shown = page.locator("svg.mj-scene:not([hidden])")
    assert shown.get_attribute("viewBox") == f"0 0 {chosen} 260"


class Tall(Picture):
    """A picture of which a window shows the first part: boxes stand at its right."""

    def __init__(self, low):
        super().__init__()
        self.low = low

    def scene(self, width):
        scene = Scene(width, 2400, "boxes")
        for place in (0, 1, 2):
            scene.box(20, 60 * place + 20, 40, 40, key=f"e{place}")
        for place in range(40 if self.low else 8):
            y = 60 * place + (260 if self.low else 10)
            scene.box(width - 160, y, 140, 40, key="boxes", tell="a box")
        # Nothing but a line in the third, yet it fills the picture.
        if self.low is None:
            for x in range(20, width, 30):
                scene.arrow((x, 0), (x, 2400))
        return scene

    def frame(self):
        frame = super().frame()
        frame.panes[0].scene = self.scene(1040)
        return frame


@pytest.mark.parametrize("low", [False, True])
def test_the_map_stands_in_a_corner_where_nothing_is_drawn(show, low):
    page = show(Tall(low))
    pane = page.locator(".mj-scene-pane").bounding_box()
    at = page.locator("div.mj-map svg").bounding_box()
    middle = at["y"] + at["height"] / 2 - pane["y"]
    assert (middle < pane["height"] / 2) == low
    assert pane["y"] <= at["y"]
    assert at["y"] + at["height"] <= pane["y"] + pane["height"]
    assert not page.locator("button.mj-map").is_visible()


def test_a_map_without_a_free_corner_is_seen_on_demand(show):
    page = show(Tall(None))
    page.locator("button.mj-map").wait_for(state="visible")
    small = page.locator("div.mj-map > svg")
    assert not small.is_visible()
    page.locator("button.mj-map").click()
    assert small.is_visible()
    page.locator("button.mj-map").click()
    assert not small.is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_theme(show, dark):
    page = show(Picture(), dark=dark)
    ink = mark(page, "e0").locator("rect:not(.mj-halo)")
    expected = PALETTE["value"][2 * dark]
    channels = ", ".join(str(int(expected[i : i + 2], 16)) for i in (1, 3, 5))
    assert ink.evaluate("e => getComputedStyle(e).stroke") == f"rgb({channels})"


def two(x):
    n = x.shape[0]
    h = jnp.sin(x)
    return h * n


def test_the_strip_of_names_draws_arrays(show):
    view = see.trace(two, np.ones((2, 8), np.float32))
    page = show(view)
    page.focus(".minijax-view")
    page.keyboard.press("End")
    # Two arrays have a glyph; the number has none.
    assert page.inner_text(".mj-strip").count("=") == 3
    assert page.locator(".mj-strip svg.mj-glyph").count() == 2
    assert shape_of_type("a:f32[2,8]") == (2, 8) and shape_of_type("i32[]") == ()
    assert shape_of_type("'x'") is None and shape_of_type("{'a': f32[2]}") is None


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is installed by npm")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(show, dark):
    page = show(Picture(), dark=dark)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then(r => r.violations.map(v => v.id))")
    assert found == []


def test_the_keys_of_size_are_the_pictures_where_values_stand_above_it(show):
    def loss(w, x):
        scores = x @ w
        return (jnp.tanh(scores) ** 2).sum()

    page = show(
        see.grad(loss, np.ones((4, 3), "f"), np.ones((5, 4), "f")), reduced=True
    )
    width = """name => document.querySelector(name + " svg.mj-scene:not([hidden])")
        .getBoundingClientRect().width"""
    names = ".mj-strip-pane", ".mj-scene-pane:not(.mj-strip-pane)"
    strip, before = (page.evaluate(width, name) for name in names)
    page.locator(".mj-live").focus()
    page.keyboard.press("+")
    after = [page.evaluate(width, name) for name in names]
    assert after[0] == strip and after[1] > 1.2 * before
    page.keyboard.press("0")
    assert abs(page.evaluate(width, names[1]) - before) < 2
