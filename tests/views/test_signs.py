"""Signs are drawn: no view types what a font may lack."""

import re
from pathlib import Path

import numpy as np
import pytest

import minijax_widgets as see
from minijax import jit
from minijax_widgets import signs

SOURCES = Path(see.__file__).parent
PLAYER = SOURCES.parent / "src" / "player"
# The times sign is a letter of every font; the other stands for letters not shown.
TYPED = {"\u00d7", "\ufffd"}


def typed(text):
    """The letters beyond ASCII of a source, those that are spelled included."""
    spelled = {chr(int(code, 16)) for code in re.findall(r"\\u([0-9a-f]{4})", text)}
    return {letter for letter in {*text, *spelled} if letter > "~"}


def test_no_sign_is_typed():
    files = [*SOURCES.glob("*.py"), *PLAYER.glob("*.ts")]
    found = {path.name: typed(path.read_text(encoding="utf-8")) for path in files}
    assert len(files) > 40 and found["glyph.py"] == {"\u00d7"}
    assert {name: more for name, has in found.items() if (more := has - TYPED)} == {}
    assert typed(r"'\u25cb' ✓") == {"\u25cb", "✓"}


@pytest.mark.parametrize("name", signs.PARTS)
def test_each_part(name):
    wide, drawn = signs.sign(name)
    assert wide == pytest.approx(signs.PARTS[name][0]) and drawn
    assert all(
        part.tag == "path" and part.has["d"].startswith("M0 0") for part in drawn
    )
    twice, _ = signs.sign(f"{name} {name}")
    assert twice == pytest.approx(2 * wide + signs.GAP)


def calls():
    f = jit(lambda x: x + 1)
    with see.cache(f) as view:
        for size in (3, 3, 4):
            f(np.ones(size, np.float32))
    return view


@pytest.mark.parametrize(
    "view, count",
    [(calls, 3), (lambda: see.card("sin"), 4)],
    ids=["cache", "card"],
)
def test_the_static_frame_and_the_player_draw_them(show, view, count):
    frame = view().frame()
    assert frame.static_html().count('<img src="data:image/svg+xml') >= count
    page = show(view())
    drawn = page.locator("td svg.mj-glyph")
    assert drawn.count() == count
    box = drawn.first.bounding_box()
    assert box["width"] > 5 and box["height"] > signs.HEIGHT - 1
    shown = {line.replace("\u2026", "") for line in page.inner_text(".mj-live").split()}
    assert all(letter <= "~" for word in shown for letter in word)
