"""Columns of panes have a handle between them: for the pointer, for keys, and kept."""

import pytest

import gallery as states

WIDTHS = """() => [...document.querySelectorAll(".mj-column:not(.mj-wide)")]
  .map(made => Math.round(made.getBoundingClientRect().width))"""


@pytest.fixture
def page(browser, tmp_path):
    path = tmp_path / "kernel.html"
    states.STATES["kernel"]().save(path)
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live")
    yield page
    page.close()


def test_the_pointer_drags_and_the_page_remembers(page):
    left, right = page.evaluate(WIDTHS)
    box = page.locator(".mj-handle").bounding_box()
    page.mouse.move(box["x"] + 6, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] - 94, box["y"] + 20)
    page.mouse.up()
    narrower, wider = page.evaluate(WIDTHS)
    assert abs(left - narrower - 100) < 16 and narrower + wider == left + right
    page.reload()
    page.wait_for_selector(".mj-live")
    # What the page keeps is read a tenth of a second after the first picture.
    page.wait_for_function(
        f"kept => String(({WIDTHS})()) == kept", arg=f"{narrower},{wider}"
    )


def test_arrow_keys_move_the_handle_and_not_the_step(page):
    left, _ = page.evaluate(WIDTHS)
    step = page.locator(".mj-where").inner_text()
    page.locator(".mj-handle").press("ArrowLeft")
    assert page.evaluate(WIDTHS)[0] < left - 30
    assert page.locator(".mj-where").inner_text() == step
    now = page.locator(".mj-handle").get_attribute("aria-valuenow")
    page.locator(".mj-handle").press("ArrowRight")
    assert int(now) < int(page.locator(".mj-handle").get_attribute("aria-valuenow"))


@pytest.mark.parametrize("width", [880, 1200, 1440])
def test_code_stands_beside_the_picture_of_a_kernel(page, width):
    """880 pixels are what a cell has in a Lab of 1,200."""
    page.set_viewport_size({"width": width + 56, "height": 900})
    picture, code = (
        page.locator(f".mj-{kind}-pane").first.bounding_box()
        for kind in ("scene", "code")
    )
    assert abs(picture["y"] - code["y"]) < 2 and code["x"] > picture["x"] + 400
    drawn = page.locator("svg.mj-scene:not([hidden])").bounding_box()
    assert drawn["width"] <= picture["width"] + 1


def test_the_bar_has_one_line(browser, tmp_path):
    """Of a page of 800 pixels, with all that a bar can have."""
    path = tmp_path / "jaxpr.html"
    states.STATES["jaxpr, huge"]().save(path)
    page = browser.new_page(viewport={"width": 800, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector(".mj-live .mj-bar")
    tops = page.evaluate("""() => [...document.querySelectorAll(".mj-bar > button")]
      .filter(one => one.offsetWidth).map(one => one.offsetTop)""")
    page.close()
    assert len(tops) > 8 and len(set(tops)) == 1, tops


def test_a_view_that_is_moved_keeps_its_style(page):
    """Into a shadow root, and into another document: each has its own style sheets."""
    padding = """async root => {
        await new Promise(done => setTimeout(done, 200));
        return root.ownerDocument.defaultView.getComputedStyle(root).paddingLeft }"""
    view = page.locator(".mj-live").element_handle()
    before = view.evaluate(padding)
    view.evaluate("""root => {
        const host = document.body.appendChild(document.createElement("div"));
        host.attachShadow({mode: "open"}).append(root) }""")
    assert view.evaluate(padding) == before == "12px"
    view.evaluate("""root => {
        const made = document.body.appendChild(document.createElement("iframe"));
        made.width = 900;
        made.contentDocument.body.append(root) }""")
    assert view.evaluate(padding) == before
