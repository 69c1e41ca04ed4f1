"""Pieces of `tiny` that learners write: judged, saved and used, or not."""

import shutil
import sys
from pathlib import Path

import pytest

from minijax_lab import check, grading, piece, solution, tiny_pieces, tiny_score

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def own_tiny(tmp_path, monkeypatch):
    """A learner's copy of the folder, imported in place of the course's."""
    shutil.copytree(NOTEBOOKS / "tiny", tmp_path / "tiny")
    loaded = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "tiny"}
    tiny_score.forget()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(grading, "outcomes", [])
    yield tmp_path / "tiny"
    tiny_score.forget()
    sys.modules.update(loaded)


def test_an_empty_piece_lets_the_course_stand_in(own_tiny, capsys):
    @piece("nesting.hvp")
    def hvp(function, x, v):
        """Nothing yet."""
        ...

    assert "not written yet, so the course's own" in capsys.readouterr().out
    assert hvp.__code__.co_filename == "<the course's nesting.hvp>"
    solution("nesting.hvp")
    assert "try it once" in capsys.readouterr().out


def test_a_right_piece_is_saved_and_scored(own_tiny, capsys):
    @piece("nesting.hvp")
    def hvp(function, x, v):
        """The learner's: through a function of one number."""
        slope = jvp(lambda t: grad(function)(x + t * v), (0.0,), (1.0,))  # noqa: F821
        return slope[1]

    assert "yours now. Saved in tiny/nesting.py." in capsys.readouterr().out
    text = (own_tiny / "nesting.py").read_text()
    assert "through a function of one number" in text and "@piece" not in text
    check("tiny", "09")
    assert "7 of 7" in capsys.readouterr().out


def test_a_wrong_piece_is_named_and_not_saved(own_tiny, capsys):
    before = (own_tiny / "nesting.py").read_text()

    @piece("nesting.hvp")
    def hvp(function, x, v):
        return grad(function)(x)  # noqa: F821

    said = capsys.readouterr().out
    assert "not yet, so the course's own stands in. It gets 6 of 7 programs" in said
    assert "First to fail: hvp (other numbers)." in said
    assert (own_tiny / "nesting.py").read_text() == before
    solution("nesting.hvp")
    assert "def hvp(function, x, v):" in capsys.readouterr().out


def test_a_method_and_a_name_of_the_notebook(own_tiny, capsys):
    class Jitted:
        @piece("cache.Jitted.key")
        def key(self, args):
            """Forgets the trees."""
            return tuple(seen_of(leaf) for leaf in flatten(args)[0])  # noqa: F821

    said = capsys.readouterr().out
    assert "First to fail: trees (hits: [False, True, True, True])." in said
    notebook_only = 3

    @piece("trace.bind")
    def bind(primitive, *operands, **params):
        return notebook_only

    assert "NameError: name 'notebook_only'" in capsys.readouterr().out


def test_the_course_itself_is_never_written(capsys):
    @piece("nesting.hvp")
    def hvp(function, x, v):
        return jvp(grad(function), (x,), (v,))[1]  # noqa: F821

    assert "not saved: this is the course's own folder" in capsys.readouterr().out


@pytest.mark.parametrize("name", tiny_pieces.PIECES)
def test_each_piece_is_there_and_passes_as_the_course_wrote_it(name):
    assert tiny_pieces.judge(name, str(tiny_pieces.course_source(name))) is None


def test_an_unknown_piece_is_refused():
    with pytest.raises(ValueError, match="no piece 'trace.bond' to write; there are"):
        piece("trace.bond")(lambda: None)
