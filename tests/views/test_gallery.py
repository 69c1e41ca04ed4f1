"""The gallery: every view in every state, on one page, in themes and widths."""

import re

import numpy as np
import pytest

import gallery as states
import minijax_widgets as see

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
