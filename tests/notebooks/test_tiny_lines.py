"""Whose `tiny` it is: the lines that learners write, and the digits that need them."""

import importlib
import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from minijax_lab import tiny_pieces
from minijax_lab.piece_source import Written
from tests.notebooks.pieces_of_15 import changed

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
# The two libraries of chapter 15 stand apart: they are over minijax.
LIBRARIES = ("modules", "optimizers")


def lines_of(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


@cache
def lines(name: str) -> int:
    """How many lines a piece has, as the course wrote it."""
    return lines_of(str(tiny_pieces.course_source(name)))


def of_tiny(name: str) -> bool:
    return name.partition(".")[0] not in LIBRARIES


def test_six_hundred_lines_are_the_learners():
    """And the page for teachers says how many."""
    pieces = [name for name in tiny_pieces.PIECES if of_tiny(name)]
    files = [f for f in (NOTEBOOKS / "tiny").glob("[a-z]*.py") if of_tiny(f.stem)]
    mine, all_lines = (
        sum(map(lines, pieces)),
        sum(lines_of(file.read_text(encoding="utf-8")) for file in files),
    )
    assert mine >= 600
    for name in LIBRARIES:  # chapter 15: "about 100 lines each"
        text = (NOTEBOOKS / "tiny" / f"{name}.py").read_text(encoding="utf-8")
        assert 75 < len(text.splitlines()) < 125, name
    told = " ".join((ROOT / "book/teaching.md").read_text().split())
    (found,) = re.findall(
        r"write ([\d,]+) of the ([\d,]+) lines of it themselves, in (\d+) pieces", told
    )
    numbers = [int(number.replace(",", "")) for number in found]
    assert numbers == [mine, all_lines, len(pieces)]


def sections() -> list[tuple[str, list[str], str]]:
    """Of each chapter's parts the name, the pieces in it, and the text."""
    found = []
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        name, names, text = path.name, [], ""
        for cell in json.loads(path.read_text())["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code":
                names += re.findall(r'@piece\("(.*?)"\)', source)
                continue
            *before, after = re.split(r"^(?=## )", source, flags=re.MULTILINE)
            text += "".join(before)
            if after.startswith("## "):
                found.append((name, names, text))
                name, names, text = f"{path.name}, {after.splitlines()[0]}", [], ""
            text += after
        found.append((name, names, text))
    return [part for part in found if part[1]]


PARTS = sections()


def test_every_piece_has_its_cell():
    written = [name for _, names, _ in PARTS for name in names]
    assert sorted(written) == sorted(tiny_pieces.PIECES)


@pytest.mark.parametrize("part, names, text", PARTS, ids=[part[0] for part in PARTS])
def test_a_sitting_is_short_and_as_long_as_it_says(part, names, text):
    """At most 65 lines; "about 12 lines" is right up to a quarter, or to four each."""
    count = sum(map(lines, names))
    assert count <= 65
    words = {"one": 1, "two": 2}
    said = re.findall(r"\(\d+ minutes,\s(?:about\s)?(\w+) lines?\)", text)
    told = sum(words.get(number) or int(number) for number in said)
    assert not said or abs(told - count) <= max(4 * len(names), count / 4)


@cache
def training() -> str:
    """The cells of chapter 11 in which the digits are trained, without the call."""
    (path,) = NOTEBOOKS.glob("11_*.ipynb")
    cells = json.loads(path.read_text())["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    (data,) = (s for s in sources if "def loss_of_one(params, image, hot)" in s)
    (loop,) = (s for s in sources if "def train(steps)" in s)
    return f"{data}\n\n\n{loop.partition('curve, accuracy =')[0]}"


def trained(written: Written, steps: int = 20) -> tuple[float, float]:
    """The last loss, and the share of right digits, with this piece in `tiny`."""
    names: dict = {"__name__": "notebook"}
    with tiny_pieces.trial(written):
        exec("import numpy as np\nfrom tiny.trace import trace\n" + training(), names)
        curve, accuracy = names["train"](steps)
    return curve[-1], float(accuracy)


def course(name: str) -> Written:
    return Written(name, str(tiny_pieces.course_source(name)))


def test_the_digits_train_in_few_lines():
    pytest.importorskip("sklearn")
    loop = training()[training().index("def train(steps)") :]
    assert lines_of(loop) <= 15
    loss, accuracy = trained(course("tangents.rules_of_school"))
    assert loss < 0.7 and accuracy > 0.85


WRONG = {
    "the second cotangent of a product": (
        "transposes.rules_of_entries",
        (", lambda c, x, y: x * c)", ")"),
    ),
    "the second factor of a product of matrices": (
        "tangents.rules_of_school",
        ('lambda t, z, x, y, **params: bind("dot_general", x, t, **params)', "None"),
    ),
    "the slope of exp": (
        "tangents.rules_of_school",
        ('"exp", lambda t, y, x: t * y', '"exp", lambda t, y, x: t'),
    ),
    "a use that is forgotten": (
        "transposes.backward",
        ('c if known is None else bind("add_any", known, c)', "c"),
    ),
}


FIRST, *OTHERS = WRONG
CASES = [FIRST, *(pytest.param(what, marks=pytest.mark.slow) for what in OTHERS)]


@pytest.mark.parametrize("what", CASES)
def test_one_wrong_rule_ruins_the_curve(what):
    pytest.importorskip("sklearn")
    name, change = WRONG[what]
    wrong = Written(name, changed(name, change))
    assert tiny_pieces.judge(wrong) is not None
    loss, accuracy = trained(wrong)
    assert not (loss < 0.8 and accuracy > 0.8), (loss, accuracy)


def test_the_digits_need_each_of_the_pieces_that_are_named():
    """Whose functions ran: each is called while the program is traced or run."""
    ran = set()
    with tiny_pieces.trial(course("tangents.rules_of_school")):
        where = {}
        for name in tiny_pieces.PIECES_OF_TRAINING:
            module, _, path = name.partition(".")
            found = importlib.import_module(f"tiny.{module}")
            where[getattr(found, path).__code__] = name
        names: dict = {"__name__": "notebook"}

        def note(frame, event, _):
            if event == "call" and frame.f_code in where:
                ran.add(where[frame.f_code])

        sys.setprofile(note)
        try:
            importlib.import_module("tiny.tangents").rules_of_school()
            importlib.import_module("tiny.transposes").rules_of_entries()
            start = "import numpy as np\nfrom tiny.trace import trace\n"
            exec(start + training(), names)
            names["train"](1)
        finally:
            sys.setprofile(None)
    assert ran == set(tiny_pieces.PIECES_OF_TRAINING)
