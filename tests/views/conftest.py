"""A browser for the tests of views: Debian's chromium through playwright."""

import shutil

import pytest


def chromium() -> str | None:
    """The path of a chromium or chrome on this machine."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path is not None:
            return path
    return None


@pytest.fixture(scope="module")
def chromium_path():
    """A browser's path; tests that need one are skipped by name where there is none."""
    pytest.importorskip("playwright.sync_api")
    path = chromium()
    if path is None:
        pytest.skip("no chromium or google-chrome on this machine")
    return path


@pytest.fixture(scope="module")
def browser(chromium_path):
    """A browser for tests that need one."""
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        shown = playwright.chromium.launch(
            executable_path=chromium_path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield shown
        shown.close()


# Panes wider than their room: the state that they are of, their classes, both widths.
SIDEWAYS = """kinds => [...document.querySelectorAll(kinds)]
  .filter(pane => pane.scrollWidth > pane.clientWidth + 1)
  .map(pane => [pane.closest("[data-state]")?.dataset.state, pane.className,
                pane.scrollWidth, pane.clientWidth])"""


@pytest.fixture(scope="session")
def sideways():
    """`sideways(page)` returns which panes of a page scroll sideways, and how far."""
    return lambda page, kinds=".mj-pane, .mj-text": page.evaluate(SIDEWAYS, kinds)


@pytest.fixture
def show(browser, tmp_path):
    """`show(view, width=..., dark=...)` opens a saved view and returns its page."""
    opened = []

    def show(view, width=1100, dark=False, reduced=False):
        path = tmp_path / f"view{len(opened)}.html"
        view.save(path)
        page = browser.new_page(
            viewport={"width": width, "height": 700},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if reduced else "no-preference",
            offline=True,
        )
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector(".mj-live")
        opened.append(page)
        return page

    yield show
    for page in opened:
        assert page.errors == []
        page.close()
