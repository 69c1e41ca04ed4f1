"""The gallery: every view in every state, on one page, in themes and widths."""

import importlib.util
from pathlib import Path

import pytest

WIDGETS = Path(__file__).resolve().parents[2] / "widgets"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    specification = importlib.util.spec_from_file_location(
        "gallery", WIDGETS / "gallery.py"
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    path.write_text(module.page(), encoding="utf-8")
    return path, len(module.views())


@pytest.mark.parametrize("width", [400, 800, 1300])
@pytest.mark.parametrize("dark", [False, True])
def test_every_view_in_every_state(browser, gallery, width, dark):
    path, count = gallery
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function(
        "n => document.querySelectorAll('.mj-live').length == n", arg=count
    )
    assert errors == [] and page.locator("img").count() == 0
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    # Something is drawn, and every step of every view can be shown.
    for root in page.locator(".mj-live").all():
        assert root.bounding_box()["height"] > 60
        last = root.locator("button[aria-label='last step']")
        if last.count() and last.is_enabled():
            last.click()
        first = root.locator("button[aria-label='first step']")
        if first.count() and first.is_enabled():
            first.click()
    assert errors == []
    page.close()
