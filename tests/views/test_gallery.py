"""The gallery: every view in every state, on one page, in themes and widths."""

import re

import numpy as np
import pytest

import gallery as states
import minijax_widgets as see
from minijax_widgets import legend as legends
from tests.conftest import in_turn

pytestmark = pytest.mark.long

X = np.ones(3, np.float32)

# Every step is too many of a huge program: the ends and the middle of each view.
STEPS = """() => [...document.querySelectorAll(".mj-live")].map(root => {
  const slider = root.querySelector("input[type=range]");
  const seen = [];
  for (const part of slider ? [1, 0, 0.5] : []) {
    slider.value = Math.round(part * Number(slider.max));
    slider.dispatchEvent(new Event("input"));
    seen.push(root.querySelector(".mj-where").textContent);
  }
  return {seen, height: root.getBoundingClientRect().height,
          count: slider ? Number(slider.max) + 1 : 1};
})"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    path.write_text(states.page(), encoding="utf-8")
    return path, len(states.STATES) + len(states.AS_WIDGETS)


# A narrow and a wide page, a theme each, in `make test`; the others in `make test-all`.
@pytest.mark.parametrize(
    "width, dark",
    [
        (400, False),
        (800, True),
        pytest.param(1300, False, marks=pytest.mark.repeats),
        pytest.param(400, True, marks=pytest.mark.repeats),
        pytest.param(800, False, marks=pytest.mark.repeats),
        pytest.param(1300, True, marks=pytest.mark.repeats),
    ],
)
def test_every_view_in_every_state(browser, gallery, width, dark):
    path, count = gallery
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri(), timeout=120_000)
    page.wait_for_function(
        "n => document.querySelectorAll('.mj-live').length == n",
        arg=count,
        timeout=120_000,
    )
    assert errors == [] and page.locator("img").count() == 0
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    for view in page.evaluate(STEPS):
        assert view["height"] > 60
        places = [text.split(":")[0] for text in view["seen"]]
        total = view["count"]
        if total > 1:
            middle = f"step {total // 2 + 1} of {total}"
            ends = [f"step {total} of {total}", f"step 1 of {total}"]
            assert places == [*ends, middle]
    assert errors == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.close()


def test_no_pane_scrolls_sideways_at_any_width(browser, gallery, sideways):
    """The breaks between layouts leave no width where a table does not fit."""
    path, count = gallery
    page = browser.new_page(viewport={"width": 1300, "height": 900}, offline=True)
    page.goto(path.as_uri(), timeout=120_000)
    page.wait_for_function(
        "n => document.querySelectorAll('.mj-live').length == n",
        arg=count,
        timeout=120_000,
    )
    found = {}
    for width in in_turn([str(width) for width in range(340, 1300, 12)], 12):
        page.set_viewport_size({"width": int(width), "height": 900})
        page.wait_for_timeout(500)
        found |= {width: wide} if (wide := sideways(page)) else {}
    page.close()
    assert found == {}


# In each view with rows to go through, down and up again; which did not move.
ROWS = """() => [...document.querySelectorAll(".mj-live")].flatMap((root, at) => {
  const press = (key) =>
    root.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const selected = () => root.querySelector(".mj-sel")?.dataset.row;
  const panes = [...root.querySelectorAll(".mj-pane")];
  const counts = panes.map((one) => one.querySelectorAll("tr[data-row]").length);
  if (Math.max(...counts) < 1) return [];
  const seen = [];
  for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"]) {
    press(key);
    seen.push(selected());
  }
  return [{at, counts, seen, head: root.querySelector(".mj-head")?.textContent}];
})"""


@pytest.fixture(scope="module")
def one_of_each(tmp_path_factory):
    """A page with the first state of each view."""
    path = tmp_path_factory.mktemp("few") / "gallery.html"
    firsts = {re.split(r"\W", name)[0]: name for name in reversed(states.STATES)}
    path.write_text(states.page(list(firsts.values())), encoding="utf-8")
    return path


def test_up_and_down_select_rows_in_every_view(browser, one_of_each):
    page = browser.new_page(viewport={"width": 1200, "height": 900}, offline=True)
    page.goto(one_of_each.as_uri(), timeout=120_000)
    page.wait_for_selector(".mj-live")
    page.wait_for_function("() => document.querySelectorAll('.mj-live').length > 15")
    found = page.evaluate(ROWS)
    page.close()
    still = [one["head"] for one in found if set(one["seen"]) == {None}]
    assert len(found) > 10 and still == []


def test_tables_of_narrow_pages_have_the_width_of_the_page(browser, tmp_path):
    path = tmp_path / "grad.html"
    long = ("a_very_long_parameter_name", "another_very_long_parameter_name")
    view = see.grad(lambda p: (p[long[0]] * p[long[1]]).sum(), dict.fromkeys(long, X))
    path.write_text(view.to_html(), encoding="utf-8")
    page = browser.new_page(viewport={"width": 480, "height": 900}, offline=True)
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-grid")
    found = page.evaluate(
        """() => [...document.querySelectorAll(".mj-pane:has(.mj-grid)")]
          .map(pane => [pane.scrollWidth, pane.clientWidth])"""
    )
    page.close()
    assert found and all(wide <= room for wide, room in found), found


# Of each view the kinds of marks that its scenes, or its listings, have in some of its
# steps, and those that its legend explains: by the colours of what is really drawn.
KINDS = """(at) => {
  const root = document.querySelectorAll(".mj-live")[at];
  const roles = ["value", "constant", "residual", "cotangent", "batch", "mesh", "meshy",
    "meshz", "miss"];
  const role = (text) => text.replace(/^var\\(--mj-(\\w+?)(-wash)?\\)$/, "$1");
  const drawn = new Set();
  const slider = root.querySelector("input[type=range]");
  const last = slider ? Number(slider.max) : 0;
  for (let n = 0; n <= Math.min(last, 24); n++) {
    if (slider) {
      slider.value = Math.round((n * last) / Math.min(last, 24));
      slider.dispatchEvent(new Event("input"));
    }
    for (const part of root.querySelectorAll(".mj-scene .mj-mark > *")) {
      if (part.tagName === "text" || part.classList.contains("mj-halo")) continue;
      const cell = part.hasAttribute("stroke-opacity") ? " cell" : "";
      for (const one of [role(part.style.fill), role(part.style.stroke)]) {
        if (roles.includes(one)) drawn.add(one + cell);
      }
    }
  }
  const scenes = root.querySelectorAll(".mj-scene").length;
  if (!scenes) for (const one of roles) {
    const row = {residual: "kept", cotangent: "backward"}[one];
    const letters = `.mj-listing td:first-child span.mj-n.mj-${one}`;
    if (root.querySelector(letters) || root.querySelector(`tr.mj-${row}`)) {
      drawn.add(one);
    }
  }
  const told = [...root.querySelectorAll(".mj-meaning")].map((one) => [
    one.dataset.kind, one.textContent.trim()]);
  return [[...drawn].sort(), told, scenes];
}"""


def kinds_of_marks(browser, path, count):
    """For each view the kinds that are drawn at some width, and its legend."""
    page = browser.new_page(viewport={"width": 1300, "height": 900}, offline=True)
    page.goto(path.as_uri(), timeout=120_000)
    live = "n => document.querySelectorAll('.mj-live').length == n"
    page.wait_for_function(live, arg=count, timeout=120_000)
    found = []
    for width in (1300, 800, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        found.append([page.evaluate(KINDS, at) for at in range(count)])
    page.close()
    return [
        ({kind for drawn, _, _ in views for kind in drawn}, dict(views[0][1]))
        for views in zip(*found)
    ]


def test_legends_have_all_marks_and_no_others(browser, tmp_path):
    names = in_turn([name for name in states.STATES if "huge" not in name], 5)
    path = tmp_path / "gallery.html"
    path.write_text(states.page(names), encoding="utf-8")
    found = zip(names, kinds_of_marks(browser, path, len(names)))
    for name, (drawn, told) in found:
        assert drawn <= set(told), (name, drawn, told)
        # Which numbers there are depends on the step, and on how many find room.
        others = {kind for kind in told if not kind.endswith(" cell")}
        assert others <= drawn, (name, drawn, told)
        assert len(set(told.values())) == len(told), name


def test_an_entry_that_is_missing_is_noticed(browser, tmp_path, monkeypatch):
    without = {k: v for k, v in legends.OF_SCENES.items() if k != "value"}
    monkeypatch.setattr(legends, "OF_SCENES", without)
    monkeypatch.setitem(legends.OF_KINDS, "vmap", {"batch": "the batch axis"})
    path = tmp_path / "one.html"
    path.write_text(states.page(["vmap, one step"]), encoding="utf-8")
    ((drawn, told),) = kinds_of_marks(browser, path, 1)
    assert drawn - set(told) == {"value"}


# In each view: which keys its help lists that do nothing, and which do something that
# it does not list. A key does something if the page, what is scrolled or the focus is
# then another, in one of some situations that other keys bring about.
KEYS = """(chosen) => [...document.querySelectorAll(".mj-live")].flatMap((root, at) => {
  if (!chosen.includes(String(at))) return [];
  const named = {Left: "ArrowLeft", Right: "ArrowRight", Up: "ArrowUp",
    Down: "ArrowDown", Space: " ", Esc: "Escape"};
  const press = (key) => {
    if (key.focus) {
      key.focus({preventScroll: true});
      return;
    }
    if (key.length > 5 && key.startsWith("find ")) {
      const box = root.querySelector("input[type=search]");
      box.value = key.slice(5);
      box.dispatchEvent(new Event("input"));
      return;
    }
    root.dispatchEvent(new KeyboardEvent("keydown",
      {key: named[key] ?? key, bubbles: true, cancelable: true}));
  };
  const seen = () => JSON.stringify([root.outerHTML,
    [...root.querySelectorAll(".mj-pane")].map(
      (one) => [one.scrollLeft, one.scrollTop]),
    [...root.querySelectorAll("*"), root].indexOf(document.activeElement)]);
  const down = (count) => ["Home", ...Array(count).fill("Down")];
  const first = [[], ["Home"], ["End"], ["find e"], ["End", "find a"], ["+"]];
  for (let count = 1; count < 12; count++) first.push(down(count));
  first.push(["find e", "Up"], ["find d", "Down"]);
  let most = 0; // found by one search: another is gone to only if there are two
  for (const text of "aefi23x") {
    press(`find ${text}`);
    const found = root.querySelector(".mj-where").textContent;
    most = Math.max(most, Number(found.match(/ of (\\d+)$/)?.[1] ?? 0));
    first.push([`find ${text}`]);
  }
  for (const pane of root.querySelectorAll(".mj-pane")) {
    if (!pane.querySelector("tr")) continue;
    first.push([pane], [pane, "Down"], [pane, "Up", "Up"]);
  }
  const does = (key, situations) => situations.some((before) => {
    root.focus({preventScroll: true});
    before.forEach(press);
    const was = seen();
    press(key);
    const is = seen();
    // As it was: no play that runs, no text in the place of the picture.
    if (is !== was && [" ", "t", "?", "y", "e"].includes(named[key] ?? key)) press(key);
    return is !== was;
  });
  const head = root.querySelector(".mj-head").textContent;
  const listed = [...root.querySelectorAll(".mj-help kbd")].map(
    (one) => one.textContent);
  const all = "Left Right Home End Space Up Down Enter [ ] / n N f t y o e + - 0 g q 7";
  const wrong = [];
  for (const key of listed) {
    if (key === "z" || (most < 2 && key.toLowerCase() === "n")) continue;
    if (!does(key, first)) wrong.push([head, key, "does nothing"]);
  }
  for (const key of all.split(" ")) {
    if (!listed.includes(key) && does(key, first)) {
      wrong.push([head, key, "is not listed"]);
    }
  }
  return wrong;
})"""


def test_help_lists_exactly_the_keys_that_do_something(browser, one_of_each):
    page = browser.new_page(viewport={"width": 1200, "height": 900}, offline=True)
    page.goto(one_of_each.as_uri(), timeout=120_000)
    page.wait_for_function("() => document.querySelectorAll('.mj-live').length > 15")
    page.wait_for_timeout(1000)
    places = [str(at) for at in range(page.locator(".mj-live").count())]
    assert page.evaluate(KEYS, in_turn(places, 5)) == []
    page.focus(".mj-live:has(.mj-scene)")
    page.keyboard.press("z")
    page.wait_for_function("() => !!document.fullscreenElement")
    page.close()


@pytest.mark.parametrize(
    "name",
    ["jaxpr", "trace", "memory", "stages", "tree", "vmap", "source", "grad", "passes",
     "fusion", "cache", "placement"],
)  # fmt: skip
def test_an_empty_view_says_what_to_give_it(name):
    frame = states.STATES[f"{name}, empty"]().frame()
    asks = "call the function" if name == "cache" else "give a "
    assert asks in frame.steps[frame.telling].detail
    other = {"source": "source, small", "placement": "placement, program"}
    usual = states.STATES[other.get(name, name)]().frame()
    assert all(asks not in step.detail for step in usual.steps)
