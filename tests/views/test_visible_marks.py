"""What a step lights is seen: at first paint and after each step, in three widths."""

import functools
import itertools
from xml.etree.ElementTree import fromstring

import pytest

import gallery as states

# Of each view the marks and formulas that the step lights and that their pane cuts off:
# at first paint, and at the ends and some steps between, forwards and then backwards.
CUT = r"""() => [...document.querySelectorAll(".mj-live")].map(root => {
  const slider = root.querySelector("input[type=range]");
  const told = root.querySelector(".mj-head").textContent;
  const seen = {told, marks: 0, cut: []};
  const count = (when) => {
    for (const pane of root.querySelectorAll(".mj-scene-pane")) {
      const edge = pane.getBoundingClientRect();
      if (!edge.width) continue;
      const right = edge.left + pane.clientWidth;
      const bottom = edge.top + pane.clientHeight;
      const canvas = pane.querySelector("canvas");
      if (canvas) {
        // A timeline: it is as wide as its pane, and what the step lights is named.
        const box = canvas.getBoundingClientRect();
        seen.marks += pane.querySelectorAll("li button").length;
        if (box.right > right + 1) seen.cut.push([when, "canvas", box.right - right]);
        for (const named of pane.querySelectorAll("li")) {
          const over = named.scrollWidth - named.clientWidth;
          if (over > 1) seen.cut.push([when, named.textContent, over]);
        }
        continue;
      }
      const drawn = pane.querySelector("svg.mj-scene:not([hidden])");
      for (const mark of drawn.querySelectorAll("g.mj-on:not(.mj-later)")) {
        const {a, d, e, f} = mark.getScreenCTM();
        const over = [];
        for (const part of mark.children) {
          const box = part.getBBox();
          if (!box.width && !box.height) continue;
          // Firefox counts strokes into boxes and Chromium does not: both are told.
          const style = getComputedStyle(part);
          const is = !/none|rgba\(0, 0, 0, 0\)/.test(style.stroke);
          const half = is ? parseFloat(style.strokeWidth) / 2 : 0;
          const [x, y] = [a * (box.x - half) + e, d * (box.y - half) + f];
          over.push(edge.left - x, x + a * (box.width + 2 * half) - right,
                    edge.top - y, y + d * (box.height + 2 * half) - bottom);
        }
        if (!over.length) continue;
        seen.marks++;
        const most = Math.max(...over);
        if (most > 0.5) seen.cut.push([when, most.toFixed(1), mark.ariaLabel]);
      }
      const zoom = drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width;
      for (const text of drawn.querySelectorAll("text")) {
        const size = zoom * parseFloat(getComputedStyle(text).fontSize);
        if (size < 10.9) seen.cut.push([when, "letters", size]);
      }
    }
  };
  const formulas = (when) => {
    for (const row of root.querySelectorAll("table.mj-plain tr.mj-on")) {
      const pane = row.closest(".mj-pane");
      if (!pane.clientWidth) continue;
      const right = pane.getBoundingClientRect().left + pane.clientWidth;
      const first = row.cells[0];
      const text = document.createRange();
      text.selectNodeContents(first);
      const over = Math.max(text.getBoundingClientRect().right - right,
                            first.scrollWidth - first.clientWidth);
      if (over > 1) seen.cut.push([when, first.textContent, over]);
    }
  };
  count("first");
  formulas("first");
  const last = slider ? Number(slider.max) : 0;
  const some = last < 9 ? [...Array(last + 1).keys()]
    : [0, 1, 0.3 * last, 0.5 * last, 0.8 * last, last].map(Math.round);
  for (const step of slider ? [...some, ...some.reverse()] : []) {
    slider.value = step;
    slider.dispatchEvent(new Event("input"));
    count(step);
    formulas(step);
  }
  return seen;
})"""


# The gallery in parts: each case opens a quarter of its states.
PARTS = 4


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """The file and the number of views of one part of the gallery."""

    @functools.cache
    def of_part(part):
        names = [*states.STATES][part::PARTS]
        path = tmp_path_factory.mktemp("gallery") / f"{part}.html"
        path.write_text(states.page(names), encoding="utf-8")
        return path, len(names)

    return of_part


@pytest.mark.parametrize("width", [1200, 800, 480])
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_is_lit_is_cut(browser, gallery, sideways, part, width):
    path, count = gallery(part)
    page = browser.new_page(
        viewport={"width": width, "height": 900}, reduced_motion="reduce", offline=True
    )
    page.goto(path.as_uri(), timeout=120_000)
    page.wait_for_function(
        "n => document.querySelectorAll('.mj-live').length == n",
        arg=count,
        timeout=120_000,
    )
    views = page.evaluate(CUT)
    if width == 480:
        # Nothing is wider than its pane on the narrowest page, where no map is shown.
        page.set_viewport_size({"width": 330, "height": 900})
        page.wait_for_timeout(500)
        wide = sideways(page)
        assert [one for one in wide if one[0] != "kernel, out of bounds"] == []
    page.close()
    assert len(views) == count and sum(view["marks"] for view in views) > 100
    assert {view["told"]: view["cut"][:3] for view in views if view["cut"]} == {}


def test_a_step_scrolls_with_motion(show):
    """The picture moves to what is lit; with reduced motion it is there at once."""
    view = states.STATES["fusion, huge"]()
    for reduced in (False, True):
        page = show(view, reduced=reduced)
        tops = page.evaluate(
            """async () => {
              const pane = document.querySelector(".mj-scene-pane");
              const slider = document.querySelector("input[type=range]");
              const tops = [pane.scrollTop];
              slider.value = 0;
              slider.dispatchEvent(new Event("input"));
              for (let i = 0; i < 90; i++) {
                tops.push(pane.scrollTop);
                await new Promise(requestAnimationFrame);
              }
              return tops;
            }"""
        )
        moving = len({round(top) for top in tops[1:]})
        assert tops[-1] != tops[0]
        assert moving == 1 if reduced else moving > 3


# The width of the picture that is shown, and the lit rows that their pane hides.
AFTER_TURNING = """() => {
  const drawn = document.querySelector("svg.mj-scene:not([hidden])");
  const hidden = [...document.querySelectorAll("tr.mj-on")].filter(row => {
    const [box, edge] = [row, row.closest(".mj-pane")].map(
      made => made.getBoundingClientRect());
    return box.top < edge.top - 1 || box.bottom > edge.bottom + 1;
  });
  return [drawn.getAttribute("width"), hidden.length];
}"""


def test_what_is_lit_is_seen_after_the_page_was_narrow(show):
    page = show(states.STATES["collectives"](), width=1000)
    width, hidden = page.evaluate(AFTER_TURNING)
    assert hidden == 0
    for now, comparison in ((200, "!="), (1000, "==")):
        page.set_viewport_size({"width": now, "height": 700})
        page.wait_for_function(
            f"before => ({AFTER_TURNING})()[0] {comparison} before", arg=width
        )
        assert page.evaluate(AFTER_TURNING)[1] == 0


MAP = """() => {
  const pane = document.querySelector(".mj-scene-pane");
  const map = pane.querySelector("div.mj-map svg").getBoundingClientRect();
  const part = pane.querySelector("div.mj-map svg > rect").getBoundingClientRect();
  return {
    map: [map.x, map.y, map.width, map.height],
    part: (part.top + part.bottom) / 2 - map.top,
    shown: (pane.scrollTop + pane.clientHeight / 2) / pane.scrollHeight * map.height,
  };
}"""


def test_a_large_picture_has_a_map(show):
    """It shows the part that is seen, follows it, and a click on it goes there."""
    page = show(states.STATES["fusion, huge"](), reduced=True)
    for step in ("End", "Home"):
        page.locator(".mj-live").focus()
        page.keyboard.press(step)
        page.wait_for_timeout(100)
        seen = page.evaluate(MAP)
        assert abs(seen["part"] - seen["shown"]) < 3
    x, y, width, height = seen["map"]
    page.mouse.click(x + width / 2, y + 0.7 * height)
    page.wait_for_timeout(100)
    seen = page.evaluate(MAP)
    assert (
        abs(seen["part"] - 0.7 * height) < 3 and abs(seen["shown"] - seen["part"]) < 3
    )


def texts_of(name):
    """The texts of a picture, with their marks and where their lines stand."""
    for mark in states.STATES[name]().frame().panes[0].scene.marks:
        for part in mark.drawn:
            if part.tag == "text":
                yield part, mark, mark.y + part.has["y"]


def test_a_name_does_not_touch_the_formula_above_it():
    lines = [y for part, _, y in texts_of("grad, loop") if part.text.startswith("ct_u")]
    assert len(lines) == 3
    assert min(b - a for a, b in itertools.pairwise(sorted(lines))) >= 16


def test_the_frame_of_a_heading_does_not_touch_the_line_below():
    gaps = []
    texts = list(texts_of("placement, program"))
    for (_, mark, _), (below, _, y) in itertools.pairwise(texts):
        if below.text.startswith("P("):
            frame = mark.y + mark.halo.has["y"] + mark.halo.has["height"] + 1
            gaps.append(y - 0.75 * below.has["font-size"] - frame)
    assert len(gaps) == 5 and min(gaps) >= 2


# Texts of marks that are not there yet, how opaque they are, their ink and ground.
FAINT_TEXTS = """() => [...document.querySelectorAll("svg.mj-scene .mj-later text")]
  .map(text => {
    let opaque = 1;
    for (let part = text; part; part = part.parentElement)
      opaque *= getComputedStyle(part).opacity;
    const ground = getComputedStyle(text.closest(".mj-pane")).backgroundColor;
    return [text.textContent, opaque, ...[getComputedStyle(text).fill, ground].map(
      colour => colour.match(/[0-9.]+/g).map(Number))];
  })"""


def luminance(colour):
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (part / 255 for part in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def from_hex(colour):
    return [*bytes.fromhex(colour.removeprefix("#"))]


def contrast(opaque, ink, ground):
    seen = [opaque * i + (1 - opaque) * g for i, g in zip(ink, ground, strict=True)]
    low, high = sorted(luminance(colour) + 0.05 for colour in (seen, ground))
    return high / low


@pytest.mark.parametrize("dark", [False, True])
def test_text_that_is_not_there_yet_can_be_read(show, dark):
    view = states.STATES["memory, compiled"]()
    page = show(view.at(1), width=1200, dark=dark, reduced=True)
    found = page.evaluate(FAINT_TEXTS)
    assert len(found) > 3
    for text, opaque, ink, ground in found:
        assert contrast(opaque, ink, ground) >= 4.5, (text, opaque, ink)


def texts_of_file(element, opaque=1.0):
    """The texts of an SVG file, how opaque they are, and their inks."""
    opaque *= float(element.get("opacity", 1))
    if element.text:
        yield element.text, opaque, element.get("fill")
    for part in element:
        yield from texts_of_file(part, opaque)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["memory, compiled", "grad", "placement, program"])
def test_all_text_of_a_file_can_be_read(name, dark):
    file = fromstring(states.STATES[name]().at(1).to_svg(dark=dark))
    _, ground, *drawn = file  # a title, then the ground
    ground = from_hex(ground.get("fill"))
    found = [told for part in drawn for told in texts_of_file(part)]
    assert len(found) > 20
    for text, opaque, ink in found:
        assert contrast(opaque, from_hex(ink), ground) >= 4.5, (text, opaque, ink)


def test_a_picture_that_fits_has_no_map(show):
    page = show(states.STATES["graph"](), reduced=True)
    maps = page.locator("div.mj-map")
    assert all(not maps.nth(i).is_visible() for i in range(maps.count()))


def test_the_whole_screen(show):
    """`z` fills the screen: there the wheel alone makes the picture larger."""
    page = show(states.STATES["fusion, huge"](), reduced=True)
    page.locator(".mj-live").focus()
    drawn = "document.querySelector('svg.mj-scene:not([hidden])')"
    width = f"{drawn}.getBoundingClientRect().width"
    wheel = f"""{drawn}.dispatchEvent(
        new WheelEvent('wheel', {{deltaY: -200, bubbles: true, cancelable: true}}))"""
    before = page.evaluate(width)
    page.evaluate(wheel)
    assert page.evaluate(width) == before
    page.keyboard.press("z")
    page.wait_for_function("document.fullscreenElement?.matches('.mj-live')")
    before = page.evaluate(width)
    page.evaluate(wheel)
    assert page.evaluate(width) > 1.2 * before
    page.keyboard.press("0")  # as drawn
    page.keyboard.press("0")  # all of it
    assert page.evaluate(
        "(pane => pane.scrollHeight <= pane.clientHeight + 30)"
        "(document.querySelector('.mj-scene-pane'))"
    )
    page.keyboard.press("z")
    page.wait_for_function("!document.fullscreenElement")
