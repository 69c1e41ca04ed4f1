"""The gallery: every view in every state, on one page, in themes and widths."""

import pytest

import gallery as states

pytestmark = pytest.mark.long

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
