"""The committed chapters are whole: run, clean, and in step with `tiny`."""

import ast
import json
import re
from pathlib import Path

import pytest

from minijax_lab import tiny_pieces

pytestmark = pytest.mark.whole

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))


def cells(path: Path, kind: str = "code") -> list[dict]:
    notebook = json.loads(path.read_text())
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def source(cell: dict) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_is_committed_as_run(path):
    """Every cell was run, in order, without an exception and without warnings."""
    found = cells(path)
    counts = [cell["execution_count"] for cell in found]
    assert counts == list(range(1, len(found) + 1))
    for cell in found:
        ignored = "nbval-ignore-output" in cell["metadata"].get("tags", [])
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr" or ignored, source(cell)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_predictions_are_not_given_away(path):
    for cell in cells(path):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                of_tiny = ast.unparse(node).startswith("check('tiny'")
                if node.func.id in ("predict", "check") and not of_tiny:
                    assert len(node.args) < 2 or ast.unparse(node.args[1]) == "..."


@pytest.mark.parametrize("path, after", zip(CHAPTERS, CHAPTERS[1:]))
def test_leads_to_the_next(path, after):
    texts = [source(cell) for cell in cells(path, "markdown")]
    assert re.search(rf"\nNext: .*\]\({after.name}\)", texts[-1]), texts[-1][-200:]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_follows_the_template(path):
    text = "\n".join(source(cell) for cell in cells(path, "markdown"))
    for part in ("puzzle", "## Break it", "## minijax's own", "## Exercises"):
        assert part in text
    for part in ("## In JAX", "## For the cheat sheet", "## Three sentences"):
        assert part in text
    for kind in ("Predict", "Repair", "Build", "Transfer"):
        assert re.search(rf"\*\*{path.name[:2]}\.\d {kind}\*\* \(\d+ minutes\)", text)
    assert "**Not so:**" in text and "**An open question.**" in text


def test_no_paragraph_stands_twice():
    for path in CHAPTERS:
        texts = [source(cell) for cell in cells(path, "markdown")]
        found = [part for text in texts for part in text.split("\n\n")]
        long = [part.strip() for part in found if len(part) > 50]
        assert len(long) == len(set(long)), path.name


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_has_a_picture_that_moves_and_is_there_without_a_kernel(path):
    lively = [cell for cell in cells(path) if "see.live(" in source(cell)]
    assert lively
    for cell in lively:
        (output,) = cell["outputs"]
        assert set(output["data"]) == {"text/plain", "text/html"}
        assert "".join(output["data"]["text/plain"]).startswith("live: ")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_is_small_and_its_links_lead_somewhere(path):
    assert path.stat().st_size < 400_000
    for cell in cells(path, "markdown"):
        for target in re.findall(r"\]\(([^)#]+)\)", source(cell)):
            assert "://" in target or (NOTEBOOKS / target).is_file(), target


def pieces_of_tiny() -> list[tuple[str, Path]]:
    """Returns each module of `tiny` that a chapter builds, with the chapter."""
    found = []
    for path in CHAPTERS:
        tags = {tag for c in cells(path) for tag in c["metadata"].get("tags", [])}
        found += [(tag, path) for tag in sorted(tags) if tag.startswith("tiny/")]
    return found


def fill_in_pieces(module):
    """Puts the course's own where a chapter leaves a function to the learner."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            (decorator,) = node.decorator_list
            if ast.unparse(decorator).startswith("piece("):
                name = ast.literal_eval(decorator.args[0])
                (own,) = ast.parse(str(tiny_pieces.course_source(name))).body
                assert ast.dump(own.args) == ast.dump(node.args)
                assert ast.get_docstring(own) == ast.get_docstring(node)
                node.decorator_list, node.body = [], own.body


@pytest.mark.parametrize("piece, path", pieces_of_tiny(), ids=lambda x: str(x)[-16:])
def test_the_notebook_builds_the_tiny_that_ships(piece, path):
    shown = [
        source(cell)
        for cell in cells(path)
        if piece in cell["metadata"].get("tags", [])
    ]
    shipped = ast.parse((NOTEBOOKS / piece).read_text())
    body = shipped.body[1:]  # without the file's docstring
    imports = (ast.Import, ast.ImportFrom)
    rest = [node for node in body if not isinstance(node, imports)]
    cells_text = ast.parse("\n\n".join(shown))
    fill_in_pieces(cells_text)
    built = [node for node in cells_text.body if not isinstance(node, imports)]
    assert built
    assert [ast.dump(node) for node in built] == [ast.dump(node) for node in rest]


def test_every_module_of_tiny_is_built_by_its_chapter():
    """A module may ship before its chapter; a chapter that is there builds its own."""
    shipped = {path.stem for path in (NOTEBOOKS / "tiny").glob("[a-z]*.py")}
    text = ast.get_docstring(ast.parse((NOTEBOOKS / "tiny/__init__.py").read_text()))
    rows = re.findall(r"^\| (\d\d) \| ([a-z_, ]+) \|", str(text), re.MULTILINE)
    chapter_of = {name: row[0] for row in rows for name in row[1].split(", ")}
    assert shipped <= set(chapter_of)
    there = {path.name[:2] for path in CHAPTERS}
    due = {name for name, chapter in chapter_of.items() if chapter in there}
    assert due == {piece[5:-3] for piece, _ in pieces_of_tiny()}
