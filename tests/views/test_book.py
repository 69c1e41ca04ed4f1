"""The book: built whole, opened from a folder without a network, its views stepped."""

import functools
import importlib.util
import json
import os
import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

import minijax_widgets as see
from minijax.core.language import all_primitives
from minijax_lab.explain.recording import Recording
from tests.conftest import PART, in_turn

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
# Building it takes a minute of computing, which on a busy machine is several. So
# `make test` builds a twelfth of the cards and of the pages of machines, each commit
# others; `make test-all` all.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]
# Its chapters, cards and views have tests of their own, at every commit.
of_the_book = pytest.mark.turns(3)
LEADS_ON = re.compile(r'class="right-next"|\bNext: (?:<[^>]*>)?<a [^>]*href=')
NAMED = {"sin", "dot_general", "tanh", "threefry2x32"}  # tests below name these
PAGES = ["index", "cheat_sheet", "primitives", "cards/sin", *CHAPTERS[2:3]]


def script(name):
    """A module of book/, which is no package."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, ROOT / "book" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def card(name, make=see.card):
    """A card, made once: its checks compile a dozen programs."""
    return make(name)


@pytest.fixture(scope="module")
def cards(request):
    """The cards of the book: in `make test` those that are tested one by one."""
    if PART not in os.environ:
        return set(all_primitives)
    tested = test_every_primitive_has_a_card_and_its_checks_hold
    items = request.session.items
    chosen = [x for x in items if getattr(x, "function", None) is tested]
    return NAMED | {item.callspec.params["name"] for item in chosen}


@pytest.fixture(scope="module")
def functions():
    """The functions that have a page for each machine: in `make test` one at least."""
    names = [*script("three_machines").FUNCTIONS]
    return in_turn(names, 12) or names[:1]


@pytest.fixture(scope="module")
def book(tmp_path_factory, cards, functions):
    """The folder of the built book. Building takes about a minute."""
    for needed in ("jupyter_book", "sphinx_exercise"):
        pytest.importorskip(needed, reason=f"{needed} is not here: minijax[book]")
    folder = tmp_path_factory.mktemp("book")
    pages = script("make_pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(see, "card", card)
        pages.write(folder / "pages", cards=cards, functions={*functions})
    pages.build(folder / "pages", folder)
    return folder / "_build" / "html"


@pytest.fixture
def opened(browser, book):
    """`opened("cards/sin", dark=True)`: a page, with all that it asked for."""
    contexts = []

    def opened(name, width=1200, dark=False):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints = []

        def only_files(route):
            if route.request.url.startswith(("file:", "data:", "blob:")):
                route.continue_()
            else:
                page.complaints.append(route.request.url)
                route.abort()

        page.route("**/*", only_files)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("requestfailed", lambda asked: page.complaints.append(asked.url))
        folder = "notebooks/" if name in CHAPTERS else ""
        page.goto((book / f"{folder}{name}.html").as_uri())
        views = page.locator(".minijax-view").count()
        page.wait_for_function(
            f"document.querySelectorAll('.mj-live').length == {views}"
        )
        page.views = views
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            page.evaluate("document.fonts.ready.then(() => true)")
            assert page.complaints == []
        context.close()


@pytest.mark.parametrize("name", sorted(all_primitives))
def test_every_primitive_has_a_card_and_its_checks_hold(name):
    record = card(name).recording
    assert record.name == name and len(record.rules) == 5
    failed = [check for check in record.checks if check.result == "fails"]
    assert failed == []
    assert Recording.from_dict(record.to_dict()) == record


def html_pages(book):
    return {path: path.read_text("utf-8") for path in book.glob("**/*.html")}


@of_the_book
def test_no_page_names_the_network(book):
    found = []
    for path, text in html_pages(book).items():
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text)
        found += [
            (path.name, tag) for tag in tags if re.search(r"[\"'](?:https?:)?//", tag)
        ]
        assert "unpkg" not in text and "cdn." not in text, path
    for path in book.glob("**/*.css"):
        text = path.read_text("utf-8")
        found += re.findall(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^\"')]*", text)
    assert found == []


@of_the_book
def test_every_link_leads_somewhere(book, cards):
    wrong = []
    for path, text in html_pages(book).items():
        for link in set(re.findall(r'<a\b[^>]*\bhref="([^"#]+)[^"]*"', text)):
            if link.startswith(("http:", "https:")):
                wrong.append((path.name, link))
                continue
            target = (path.parent / unquote(unescape(link))).resolve()
            waits = target.parent.name == "cards" and target.stem in all_primitives
            if not (target.exists() or (waits and target.stem not in cards)):
                wrong.append((path.name, link))
    assert wrong == []


@of_the_book
def test_every_page_leads_on(book, functions):
    """To the next page: of the book, of a primitive's family, or of the machines."""
    ends = {"contributing.html", "search.html", "genindex.html"}
    pages = {
        str(path.relative_to(book)): text for path, text in html_pages(book).items()
    }
    leading = [name for name, text in pages.items() if LEADS_ON.search(text)]
    templates = {name for name in pages if name.startswith("_static")}
    assert set(pages) - set(leading) - templates == ends & set(pages)
    machines = [name for name in leading if name.startswith("machines/")]
    assert len(machines) == 3 * len(functions)


@of_the_book
def test_the_whole_is_small(book):
    sizes = {path: path.stat().st_size for path in book.glob("**/*") if path.is_file()}
    largest = max((size for path, size in sizes.items() if path.suffix == ".html"))
    assert largest < 500_000 and sum(sizes.values()) < 40_000_000


@of_the_book
def test_every_primitive_has_a_page(book, cards):
    table = (book / "primitives.html").read_text("utf-8")
    for name in all_primitives:
        assert f'href="cards/{name}.html"' in table
    for name in cards:
        text = (book / "cards" / f"{name}.html").read_text("utf-8")
        assert f"<title>{name} &#8212; minijax</title>" in text


# In `make test` every page in the light theme and one in the dark.
@of_the_book
@pytest.mark.parametrize(
    "name, dark",
    [
        pytest.param(
            name,
            dark,
            marks=[pytest.mark.repeats] if dark and name != "cards/sin" else [],
            id=f"{name}-{'dark' if dark else 'light'}",
        )
        for name in PAGES
        for dark in (False, True)
    ],
)
def test_pages_are_live_without_a_network(opened, name, dark):
    page = opened(name, dark=dark)
    assert page.views == (0 if name == "cheat_sheet" else max(1, page.views))
    grounds = page.evaluate(
        "[...document.querySelectorAll('.mj-live')]"
        ".map(v => getComputedStyle(v).backgroundColor)"
    )
    assert set(grounds) <= {"rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)"}


@of_the_book
def test_views_of_a_chapter_step(opened):
    page = opened("02_tracing_and_jaxprs")
    view = page.locator(".mj-live:has(input[type=range])").first
    first = view.locator(".mj-where").inner_text()
    assert first.startswith("step 1 of ")
    view.locator(".mj-head").click()
    view.focus()
    page.keyboard.press("ArrowRight")
    after = view.locator(".mj-where").inner_text()
    assert first != after and re.match(r"step 2 of \d+", after)
    page.keyboard.press("ArrowLeft")
    assert view.locator(".mj-where").inner_text() == first


@of_the_book
@pytest.mark.parametrize("name", CHAPTERS)
def test_outputs_are_the_live_ones(opened, name):
    """Each view of the notebook is there as a player, and not as its text."""
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    shown = [
        output["data"]
        for cell in cells
        for output in cell.get("outputs", ())
        if "minijax-view" in "".join(output.get("data", {}).get("text/html", ""))
    ]
    page = opened(name)
    assert page.views == len(shown) >= 2
    text = page.inner_text("article")
    for data in shown:
        twin = "".join(data["text/plain"]).strip().splitlines()
        # The picture of a jaxpr shows the jaxpr's own text, letter for letter.
        if len(twin) > 3 and not twin[0].startswith("{ lambda"):
            assert "\n".join(twin) not in text
    exercises = page.locator("div.exercise").count()
    assert exercises >= 4


@of_the_book
def test_a_tile_opens_its_card(opened):
    page = opened("primitives")
    page.click("a.mj-tile >> text=/^tanh$/")
    page.wait_for_selector(".mj-live .mj-title")
    assert page.inner_text("h1").startswith("tanh")
    page.click(".mj-live >> text=text")
    assert "tanh_p" in page.inner_text(".mj-text")
    page.click("article a >> text=/^Primitives$/")
    page.wait_for_selector("a.mj-tile")


@of_the_book
def test_the_search_works_in_a_folder(opened):
    page = opened("index")
    page.keyboard.press("Control+k")
    page.keyboard.type("threefry")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    page.wait_for_function(
        "document.querySelector('.search-summary').textContent.includes('finished')"
    )
    found = page.locator("#search-results li a").all_inner_texts()
    assert "05 Random numbers" in found and "threefry2x32" in found


@of_the_book
def test_mathematics_is_drawn(opened):
    page = opened("cheat_sheet")
    page.wait_for_selector("mjx-container svg")
    assert "You may think" in page.inner_text("article")


@of_the_book
@pytest.mark.parametrize("name", ["index", "cards/dot_general", "primitives"])
def test_narrow_pages_do_not_scroll_sideways(opened, name):
    page = opened(name, width=400)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


@of_the_book
def test_answers_are_folded_until_they_are_clicked(book):
    """A reader of the book cannot run a cell: the answer stands behind a click."""
    text = (book / "notebooks" / "02_tracing_and_jaxprs.html").read_text("utf-8")
    assert "put your answer in place" not in text
    folded = re.findall(
        r"<details[^>]*sd-dropdown.*?>(02\.\w\d): answer first.*?"
        r'<p class="sd-card-text">(.*?)</p>',
        text,
        re.DOTALL,
    )
    assert {name for name, _ in folded} >= {"02.r1", "02.p1"}
    assert '<details open="' not in text and all(len(why) > 20 for _, why in folded)


@of_the_book
@pytest.mark.parametrize("name", [CHAPTERS[at] for at in (7, 13, 16, 21)])
def test_nothing_is_cut_on_paper(opened, name):
    """Pictures, tables and code end where an A4 page does; what one clicks is gone.

    794 pixels are the width of A4, where two panes still stand side by side.
    """
    page = opened(name, width=794)
    page.emulate_media(media="print")
    cut = page.evaluate(
        """() => [...document.querySelectorAll(
            "svg.mj-scene:not([hidden]), pre, .mj-pane, .mj-pane td")]
        .filter((one) => one.getBoundingClientRect().width && (
            one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right
            > one.closest(".bd-article-container").getBoundingClientRect().right + 1))
        .map((one) => one.outerHTML.slice(0, 200))"""
    )
    assert cut == [] and page.locator(".mj-bar:visible").count() == 0


def pages_in_turn(book):
    """All pages; in `make test` one in 120 of them, each commit others."""
    pages = {
        path.relative_to(book).as_posix(): path
        for path in html_pages(book)
        if "_static" not in path.parts
    }
    return [pages[name] for name in in_turn(sorted(pages), 120)]


@of_the_book
@pytest.mark.timeout(2 * 3600)  # all pages take an hour, in `make test-all`
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_nothing(browser, book, width):
    """axe-core's rules of WCAG 2.1, A and AA, on pages; nothing in the console; and no
    page is wider than the screen."""
    found = pytest.importorskip("axe_playwright_python")
    (script,) = Path(found.__file__).parent.glob("axe.min.js")
    axe, wrong, said = script.read_text(encoding="utf-8"), {}, []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, offline=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.on("console", lambda one: one.type == "error" and said.append(one.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for path in pages_in_turn(book):
        page.goto(path.as_uri())
        page.wait_for_function(
            "document.querySelectorAll('.mj-live').length =="
            "document.querySelectorAll('.minijax-view').length"
        )
        page.evaluate(axe)
        told = page.evaluate(
            "axe.run(document, {preload: false, runOnly:"
            "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
        )
        complaints = [
            (v["id"], v["nodes"][0]["html"][:200]) for v in told["violations"]
        ]
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        complaints += [("wider than the screen", wide)] * (wide > 0) + said
        if complaints:
            wrong[str(path.relative_to(book))] = complaints
        said.clear()
    context.close()
    assert wrong == {}


# ---- the cheat sheet ----------------------------------------------------------------


def test_the_cheat_sheet_is_checked():
    sheet = script("cheat_sheet")
    for mistake in sheet.MISTAKES:
        assert sheet.show(mistake, {})
    claim = sheet.Mistake("sin(0) is one", "", "jnp.sin(0.0)", "1.0", "x", "02")
    with pytest.raises(AssertionError, match="it gives 0.0"):
        sheet.show(claim, {})
    claim = sheet.Mistake("so", "", "jnp.sin(0.0)", "0.0", "jnp.sin([0.0])", "02")
    with pytest.raises(AssertionError, match="raises TypeError"):
        sheet.show(claim, {})


def test_the_cheat_sheet_is_made_of_what_is_there():
    sheet = script("cheat_sheet")
    notebooks = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    for path in notebooks:
        title, told = sheet.sentences(path)
        assert title.startswith(path.name[:2]) and len(told) == 3
        assert 4 <= len(sheet.lines_to_write(path)) <= 8
    page = sheet.page(notebooks)
    for name in sheet.view_names():
        assert f"`see.{name}`" in page and hasattr(see, name)
    assert ("Left Right", "step") in sheet.keys() and "`Left Right`" in page
