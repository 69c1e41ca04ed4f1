"""Pieces of `tiny` that learners write: judged, saved and used, or not."""

import linecache
import shutil
from pathlib import Path

import pytest

from minijax_lab import check, grading, piece, solution, tiny_pieces, tiny_score
from minijax_lab.piece_source import Written

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def own_tiny(tmp_path, monkeypatch):
    """A learner's copy of the folder, imported in place of the course's."""
    shutil.copytree(NOTEBOOKS / "tiny", tmp_path / "tiny")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(grading, "outcomes", [])
    with tiny_score.read_anew():
        yield tmp_path / "tiny"


@pytest.fixture
def cell(own_tiny, capsys):
    """Runs a text as a cell of a notebook; returns what it printed."""
    names: dict = {"__name__": "notebook", "piece": piece}

    def run(text: str) -> str:
        file = f"<cell {len(linecache.cache)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), names)
        return capsys.readouterr().out

    run.names = names
    return run


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


def test_the_score_says_who_wrote_what(own_tiny, cell, capsys):
    check("tiny", "09")
    said = capsys.readouterr().out
    count = len(tiny_pieces.PIECES)
    assert f"tiny: 0 of {count} pieces are yours (the course's: nesting.hvp" in said
    cell(HVP.format("return jvp(grad(function), (x,), (v,))[1]"))
    check("tiny", "09")
    check("tiny")
    said = capsys.readouterr().out
    both = "(yours: nesting.hvp; the course's: nesting.jacrev, nesting.implicit)."
    assert f"tiny: 1 of {count} pieces are yours {both}" in said
    assert f"tiny: 1 of {count} pieces are yours (yours: nesting.hvp)." in said


def test_a_wrong_piece_is_named_and_not_saved(own_tiny, capsys):
    before = (own_tiny / "nesting.py").read_text()

    @piece("nesting.hvp")
    def hvp(function, x, v):
        return grad(function)(x)  # noqa: F821

    said = capsys.readouterr().out
    assert "not yet, so the course's own stands in. It gets 6 of 7 programs" in said
    assert "First to fail: hvp (At index " in said
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
    assert "First to fail: trees (call 2: expected a miss, got a hit)." in said
    notebook_only = 3

    @piece("trace.bind")
    def bind(primitive, *operands, **params):
        return notebook_only

    assert "NameError: name 'notebook_only'" in capsys.readouterr().out


HVP = """
@piece("nesting.hvp")
def hvp(function, x, v):
    {}
"""


def test_what_a_piece_needs_is_saved_with_it(own_tiny, cell):
    """Of its own cell and of those above; each thing once, and the latest of it."""
    cell("import functools as tools\nfrom operator import itemgetter\nSECOND = 1")
    cell("def second(pair):\n    return itemgetter(SECOND)(pair)")
    above = "NOUGHT = 1 - 1\nSTART = NOUGHT * 1.0\n\n\ndef shifted(f, x, v):\n"
    above += "    # A line through x.\n    return lambda t: f(x + t * v)\n"
    whole = "tools.partial(jvp, shifted(grad(function), x, v))((START,), (1.0,))"
    said = cell(above + HVP.format(f"return second({whole})"))
    assert "yours now. Saved in tiny/nesting.py." in said
    text = (own_tiny / "nesting.py").read_text()
    assert text.index("NOUGHT =") < text.index("START =") < text.index("# A line thr")
    for line in ("import functools as tools", "SECOND = 1", "def second(pair):"):
        assert text.count(line) == 1
    with tiny_score.read_anew():
        assert tiny_score.score_chapter("09").failed == []
    # Another answer, which needs less.
    assert "yours now" in cell(HVP.format("return jvp(grad(function), (x,), (v,))[1]"))
    text = (own_tiny / "nesting.py").read_text()
    assert "second" not in text and text.count("# yours: nesting.hvp") == 1


def test_a_helper_that_another_piece_shares_stays(own_tiny, cell):
    """`implicit` uses what `hvp` brought along, and hvp is written anew without it."""
    above = "TWO = 2\n\n\ndef turned(x):\n    return -x * TWO / 2\n"
    hvp = "return jvp(grad(function), (x,), (v,))[1]"
    assert "yours now" in cell(above + HVP.format(hvp.replace("(v,)", "(-turned(v),)")))
    text = str(tiny_pieces.course_source("nesting.implicit"))
    text = text.replace("-(change / slope)", "turned(change / slope)")
    assert "yours now" in cell(f'{above}@piece("nesting.implicit")\n{text}\n')
    assert "yours now" in cell(HVP.format(hvp))
    text = (own_tiny / "nesting.py").read_text()
    assert text.count("def turned") == 1 and text.index("TWO") < text.index("turned")
    with tiny_score.read_anew():
        assert tiny_score.score_chapter("09").failed == []


def test_a_saved_piece_runs_in_the_modules_that_are_loaded(own_tiny, cell):
    """Nothing is imported a second time: tracers of one `tiny` know each other."""
    import tiny.operations
    import tiny.trace

    bind = tiny.trace.bind
    text = str(tiny_pieces.course_source("trace.bind"))
    above = "CALLS = []\n\n\n" + text.replace("def bind", "def mine")
    above += '\n\n\n@piece("trace.bind")\n'
    above += "def bind(primitive, *operands, **params):\n    CALLS.append(primitive)\n"
    cell.names.update(OPEN=tiny.trace.OPEN, Tracer=tiny.trace.Tracer)
    said = cell(above + "    return mine(primitive, *operands, **params)\n")
    assert "yours now" in said
    import tiny.trace as again

    assert again.bind is bind and tiny.operations.bind is bind
    tiny.operations.sin(0.0)
    assert again.CALLS == ["sin"]


@pytest.mark.parametrize(
    "above, body, complaint",
    [
        (
            "def squared(x):\n    return x\n",
            "return squared(x)",
            "It gets 6 of 7 programs of chapter 09 right.",
        ),
        (
            "def root(x):\n    return x\n",
            "return root(x)",
            "tiny/nesting.py has a `root` of its own, and your cell has another",
        ),
        ("", "return table[x]", "`table` is made in another cell, and tiny/nesting.py"),
        (
            "import functools\n@functools.cache",
            "return x",
            'A decorator of your own would not be saved: leave @piece("nesting.hvp")',
        ),
    ],
)
def test_what_cannot_be_saved_is_said(own_tiny, cell, above, body, complaint):
    before = (own_tiny / "nesting.py").read_text()
    cell("table = {}")
    said = cell(above + HVP.format(body))
    assert complaint in said and "the course's own stands in" in said
    assert (own_tiny / "nesting.py").read_text() == before


def test_a_piece_that_raises_names_the_line_of_its_cell(own_tiny, cell):
    """Of the function or of a helper above it, in a program or in a check."""
    above = "def second(pair):\n    return pair[1]\n\n"
    said = cell(above + HVP.format("z = 1\n\n    return second(z)"))
    assert (
        "First to fail: hvp (TypeError: 'int' object is not subscriptable). It" in said
    )
    assert "It was raised at line 2 of second.\n  return pair[1]\n" in said
    said = cell(HVP.format("z = 1\n\n    return z[1]"))
    assert "It was raised at line 6 of hvp.\n  return z[1]\n" in said
    said = cell("def third(row):\n    return row[2]")
    said = cell(HVP.format("return third([1])"))
    assert "It was raised at line 2 of third.\n  return row[2]\n" in said
    said = cell(HVP.format("exit(3)"))
    assert "not yet" in said and "SystemExit at line 4 of hvp: 3\n  exit(3)" in said
    map_tree = """
@piece("tree.map_tree")
def map_tree(function, first, *others):
    if isinstance(first, dict):
        return {k: map_tree(function, v, *others) for k, v in first.items()}
    return function(first, *others)
"""
    said = cell(map_tree)
    assert (
        "It raised " in said and "of map_tree: " in said and "\n  return func" in said
    )


@pytest.mark.parametrize(
    "line, said",
    [
        ("x = nothing", "raised NameError at line 2 of tiny/at.py: name 'nothing'"),
        ("x = (", "raised SyntaxError: '(' was never closed (at.py, line 2)"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named(own_tiny, capsys, line, said):
    """One that the learner has changed by hand."""
    file = own_tiny / "at.py"
    file.write_text(f"\n{line}\n" + file.read_text())
    check("tiny", "01")
    assert f"tiny: importing it {said}" in capsys.readouterr().out


def test_the_course_itself_is_never_written(capsys):
    @piece("nesting.hvp")
    def hvp(function, x, v):
        return jvp(grad(function), (x,), (v,))[1]  # noqa: F821

    assert "not saved: this is the course's own folder" in capsys.readouterr().out


@pytest.mark.parametrize("name", tiny_pieces.PIECES)
def test_each_piece_is_there_and_passes_as_the_course_wrote_it(name):
    assert (
        tiny_pieces.judge(Written(name, str(tiny_pieces.course_source(name)))) is None
    )


def test_an_unknown_piece_is_refused():
    with pytest.raises(ValueError, match="no piece 'trace.bond' to write; there are"):
        piece("trace.bond")(lambda: None)


def test_what_one_piece_writes_in_other_words_is_not_held_against_the_next(
    own_tiny, cell, capsys
):
    """A row of TANGENTS with the factors turned round: right, and not JAX's text."""
    import tiny.tangents

    name = "tangents.rules_of_school"
    text = str(tiny_pieces.course_source(name))
    other = text.replace(
        "t * y, lambda t, z, x, y: x * t", "y * t, lambda *o: o[2] * o[0]"
    )
    assert other != text
    cell.names.update(vars(tiny.tangents))
    assert "yours now" in cell(f'@piece("{name}")\n{other}\n')
    check("tiny", "06")
    said = capsys.readouterr().out
    assert "tiny: 10 of 10 programs give JAX's numbers" in said
    assert "failed:" not in said and "right, in other words than JAX's: " in said
    jvp = str(tiny_pieces.course_source("tangents.jvp"))
    assert "yours now" in cell(f'@piece("tangents.jvp")\n{jvp}\n')
    # The table of the module that is loaded was filled anew.
    dual = tiny.tangents.Dual(2.0, 1.0)
    found = tiny.tangents.TANGENTS["mul"](dual, tiny.tangents.Dual(3.0))
    assert found.tangent == 3.0
