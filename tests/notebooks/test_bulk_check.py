"""`minijax course check`: folders of learners' notebooks, good and bad ones."""

import csv
import importlib.util
import json
from pathlib import Path

import pytest

from minijax_lab import bulk_check, command, grading, one_notebook

pytestmark = pytest.mark.long

START = "from minijax_lab import check\nimport minijax.numpy as jnp"
RIGHT_TYPES = 'check("01.1", ["float16", "float32", "float16", "float32", "int8", %s])'


def write(path: Path, *cells: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = [{"cell_type": "code", "source": [cell], "outputs": []} for cell in cells]
    made.append({"cell_type": "markdown", "source": 'check("05.1", 1)'})
    path.write_text(json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5}))


def run(capsys, *words: str) -> str:
    assert command.main(["course", "check", *words]) == 0
    return capsys.readouterr().out


def states(path: Path) -> dict[tuple[str, str], str]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["learner"], row["exercise"]): row["state"] for row in rows}


@pytest.fixture(autouse=True)
def needs_ipython():
    pytest.importorskip("IPython")


def test_a_folder_of_learners(tmp_path, capsys):
    write(
        tmp_path / "all" / "anna" / "first.ipynb",
        START,
        'check("00.1", ...)',
        'check("00.1", 2)',
        'check("00.2", ...)',
    )
    write(
        tmp_path / "all" / "anna" / "01_arrays.ipynb",
        START,
        RIGHT_TYPES % "'int8'",
        "1 / 0",
        'check("01.4", len, lambda i: jnp.zeros(3))',
    )
    write(tmp_path / "all" / "=berta.ipynb", START, RIGHT_TYPES % "'int32'")
    write(tmp_path / "all" / ".ipynb_checkpoints" / "old.ipynb", START)
    said = run(
        capsys,
        str(tmp_path / "all"),
        f"--csv={tmp_path / 'found.csv'}",
        f"--json={tmp_path / 'found.json'}",
        "--jobs=2",
        "--summary",
    )
    assert "old.ipynb" not in said
    shares = said.partition("by the share of learners who solved them:\n")[2]
    solved = [line.split(maxsplit=2) for line in shares.splitlines()]
    assert ["01.1", "50%", "1 of 2 (1 failed)"] in solved
    assert solved.index(
        ["01.4", "0%", "0 of 2 (1 failed, 1 not tried)"]
    ) < solved.index(["00.1", "100%", "1 of 1"])
    found = states(tmp_path / "found.csv")
    assert found["anna", "00.1"] == "passed"
    assert found["anna", "00.2"] == found["anna", "00.3"] == "not tried"
    assert found["anna", "01.1"] == found["anna", "01.4"] == "failed"
    assert found["'=berta", "01.1"] == "passed"
    assert found["'=berta", "01.2"] == "not tried"
    assert not any(exercise.startswith("05") for _, exercise in found)
    rows = [line.split() for line in said.splitlines()]
    assert ["learner", "00.1", "00.2", "00.3", "00.4"] in rows
    assert ["=berta", "passed", *["not", "tried"] * 6] in rows
    assert "  anna 01.1: sum(i) is not int8." in said
    assert "01_arrays.ipynb, cell 3: ZeroDivisionError: division by zero" in said
    content = json.loads((tmp_path / "found.json").read_text())
    assert content["version"] == bulk_check.VERSION
    by_name = {Path(n["notebook"]).name: n for n in content["notebooks"]}
    assert by_name["01_arrays.ipynb"]["exercises"]["01.1"] == {
        "state": "failed",
        "reason": "sum(i) is not int8.",
    }


@pytest.mark.turns(3)
def test_bad_notebooks_do_not_stop_the_run(tmp_path, capsys):
    folder = tmp_path / "bad"
    solved = 'check("00.1", 2)'
    write(folder / "endless.ipynb", START, solved, "while True: pass", solved)
    write(folder / "quits.ipynb", START, solved, "import os; os._exit(3)")
    large = "import numpy; numpy.ones(10**9)"
    write(folder / "large.ipynb", START, large, "import sys; sys.exit()", solved)
    (folder / "text.ipynb").write_text("{")
    (folder / "list.ipynb").write_text('["cells"]')
    (folder / "bytes.ipynb").write_bytes(b"\xff\xfe\x00")
    write(folder / "last.ipynb", START, solved)
    limits = ["--cell-seconds=6", "--jobs=2"]
    said = run(capsys, str(folder), *limits, f"--csv={tmp_path / 'found.csv'}")
    found = states(tmp_path / "found.csv")
    for learner in ("endless", "quits", "large", "last"):
        assert found[learner, "00.1"] == "passed", learner
    assert found["endless", "00.2"] == "not tried"
    assert "endless.ipynb, cell 3: TookTooLong: the cell ran for more than 6" in said
    assert "Its process ended with status 3. Cell 3 of 3 was running." in said
    assert "large.ipynb, cell 2: MemoryError" in said
    assert said.count("of 0 passed, 0.0 s. It is not a notebook") == 3


@pytest.mark.turns(3)
def test_a_notebook_that_resists_is_ended(tmp_path, capsys):
    stubborn = "import time\nwhile True:\n  try: time.sleep(1)\n  except Exception: 0"
    write(tmp_path / "stubborn.ipynb", START, stubborn, 'check("00.2", 1)')
    said = run(capsys, str(tmp_path), "--seconds=12", "--cell-seconds=1")
    assert "It was ended after 12 seconds." in said
    assert ["stubborn", *["not", "run"] * 4] in [x.split() for x in said.splitlines()]


def test_a_learners_own_tiny_comes_first(tmp_path, capsys):
    (tmp_path / "my" / "tiny").mkdir(parents=True)
    (tmp_path / "my" / "tiny" / "__init__.py").write_text("mine = 2")
    own = 'import tiny; check("00.1", tiny.mine)'
    write(tmp_path / "my" / "00_start_here.ipynb", START, own)
    write(
        tmp_path / "other" / "some.ipynb",
        START,
        "import tiny.trace, warnings",
        'check("02.3", lambda x: tiny.trace.bind("max", x, 0.0), tiny.trace.trace)',
    )
    reports = bulk_check.check_folder(tmp_path, bulk_check.Limits(), progress=str)
    assert [report.learner for report in reports] == ["my", "other"]
    assert reports[0].exercises["00.1"].state == "passed"
    # Chapter 02's `tiny` has no maximum: traced with it, the answer is a KeyError.
    assert "KeyError" in reports[1].exercises["02.3"].reason
    (alone,) = bulk_check.check_folder(
        tmp_path / "my", bulk_check.Limits(), progress=str
    )
    assert alone.learner == "my"


FORGERIES = {
    "appends": "grading.outcomes.append(grading.Outcome('00.1', 'passed'))",
    "odd": "grading.hand_in([], 1); grading.hand_in('00.1', 2)\n"
    "grading.outcomes.append(grading.Outcome('00.1', 'excellent'))",
    "writes": "import os, json\nfor n in range(3, 30):\n"
    "  for start in ('', '0' * 32 + ' '):\n"
    "    line = {'exercise': '00.1', 'state': 'passed', 'reason': '\\xff'}\n"
    "    try: os.write(n, (start + json.dumps(line) + '\\n').encode())\n"
    "    except OSError: pass",
    "grader": "from minijax_lab import chapter_00\n"
    "chapter_00.EXERCISES['00.1'] = grading.Exercise(lambda given: None)\n"
    "grading.chapter('00').grade_prints = lambda given: None\ncheck('00.1', 3)",
    "code": "from minijax_lab import chapter_00\n"
    "chapter_00.grade_prints.__code__ = (lambda times: None).__code__\n"
    "check('00.1', 3)",
    "check": "grading.check = lambda *a: print('00.1: solved.')\n"
    "grading.run = lambda grade, made: None\ngrading.check('00.1', 2)",
    "ends": "import os\ncheck('00.1', 3); os.kill(os.getppid(), 9)",
}


@pytest.mark.turns(3)
def test_an_outcome_cannot_be_forged(tmp_path, capsys):
    """Neither by what a notebook tells, nor by what it changes in the graders."""
    for learner, cell in FORGERIES.items():
        write(
            tmp_path / learner / "00_start_here.ipynb",
            f"{START}\nfrom minijax_lab import grading",
            cell,
        )
    honest = "import numpy as np\nallclose = np.allclose\n"
    honest += "np.allclose = lambda *a, **k: True\ncheck('06.2', len)\n"
    write(tmp_path / "numpy" / "some.ipynb", START, honest, "check('00.1', 2)")
    said = run(capsys, str(tmp_path), f"--csv={tmp_path / 'found.csv'}", "--jobs=2")
    found = states(tmp_path / "found.csv")
    for learner in ("appends", "odd", "writes", "check"):
        assert found[learner, "00.1"] == "not tried", learner
    assert found["ends", "00.1"] in ("failed", "not run")
    for learner in ("grader", "code"):
        assert found[learner, "00.1"] == "failed", learner
    assert "NameError" not in said and "ImportError" not in said
    replaced = "00.1: The notebook has put something else in place of minijax_lab."
    assert said.count(replaced) == 2
    assert found["numpy", "06.2"] == "failed"
    assert "numpy 06.2: The notebook has put something else in place of numpy." in said


def test_a_copy_is_graded(tmp_path, capsys):
    """What was handed in stays, also a piece that a notebook would save."""
    folder = tmp_path / "all"
    tiny = folder / "anna" / "tiny"
    tiny.mkdir(parents=True)
    for path in (command.course_folder() / "tiny").glob("*.py"):
        (tiny / path.name).write_text(path.read_text() + "# newer\n")
    cells = (
        "open('09_composing.ipynb', 'w').close(); open('new', 'w').close()",
        "from tiny.tangents import jvp\nfrom tiny.transposes import grad",
        "@piece('nesting.hvp')\ndef hvp(function, x, v):\n"
        "    return jvp(grad(function), (x,), (v,))[1]",
        "@piece('nesting.implicit')\ndef implicit(a, start, program):\n    return 7.0",
    )
    notebook = folder / "anna" / "09_composing.ipynb"
    write(notebook, START + "\nfrom minijax_lab import piece", *cells)
    # Those who share a folder do not see each other's work.
    alone = "import os; assert os.listdir() == ['berta.ipynb'], os.listdir()"
    write(folder / "berta.ipynb", START, alone)
    (folder / "carla.ipynb").symlink_to(notebook)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    said = run(capsys, str(folder), f"--csv={tmp_path / 'found.csv'}")
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    found = states(tmp_path / "found.csv")
    assert found["anna", "nesting.hvp"] == "passed"
    assert found["anna", "nesting.implicit"] == "failed"
    assert found["anna", "09.1"] == "not tried"
    header = ["learner", "09.1", "09.2", "09.3", "09.4"]
    rows = [line.split() for line in said.splitlines()]
    pieces = ["nesting.hvp", "nesting.jacrev", "nesting.implicit"]
    assert [*header, *pieces] in rows
    assert "AssertionError" not in said
    assert "carla.ipynb: It is a link to another file" in said


def test_a_hostile_text_reaches_neither_terminal_nor_spreadsheet(tmp_path, capsys):
    folder = tmp_path / "all"
    given = r"""check("01.1", ["\x1b[31m\r\u202e=HYPERLINK('a')"] * 6)"""
    raises = 'class Odd(Exception): pass\nraise Odd("\\x1b]0;title\\x07")'
    write(folder / "\x1b[2J.ipynb", START, given, raises)
    write(folder / "\udcff.ipynb", START, 'check("00.1", 2)')
    write(folder / " \t@sum(1)" / "a.ipynb", START, 'check("00.1", 2)')
    report = tmp_path / "found.csv"
    said = run(capsys, str(folder), f"--csv={report}", f"--json={tmp_path / 'j'}")
    for text in (said, report.read_text(encoding="utf-8")):
        assert not set(text) & set("\x1b\x07\r\u202e\udcff") - {"\r"}
        assert "\\x1b[2J" in text and "\\udcff" in text
    assert "\r" not in said and "Odd: \\x1b]0;title\\x07" in said
    with report.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert "'@sum(1)" in {row[0] for row in rows}
    firsts = {cell.strip()[:1] for row in rows for cell in row}
    assert not firsts & set("=+-@")
    assert bulk_check.plain("\uff1d1+1").startswith("'")
    assert bulk_check.plain("\t=1").startswith("'")


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["no/such/folder"], "does not exist; name the folder"),
        ([__file__], "is a file; name the folder"),
        (["EMPTY"], "there is no notebook"),
        (["EMPTY", "--seconds=0"], "--seconds must be more than 0"),
        (["EMPTY", "--memory=-1"], "--memory must be more than 0, and it is -1"),
    ],
)
def test_bad_input_is_a_sentence(words, sentence, tmp_path, capsys):
    words = [str(tmp_path) if word == "EMPTY" else word for word in words]
    assert command.main(["course", "check", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_results_have_a_place(tmp_path, capsys):
    write(tmp_path / "anna.ipynb", START)
    words = ["course", "check", str(tmp_path), "--csv", str(tmp_path / "no" / "x.csv")]
    assert command.main(words) == 2
    assert "make it first" in capsys.readouterr().err


def test_help_says_what_is_run(capsys):
    with pytest.raises(SystemExit):
        command.main(["course", "check", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for part in ("not tried", "--csv", "--json", "no network", "they can read and"):
        assert part in said


def test_a_better_result_replaces_a_worse_one():
    report = bulk_check.Report("anna", "a.ipynb")
    bulk_check.add(report, "00.1", bulk_check.Result("not run"))
    for state, expected in (
        ("failed", "failed"),
        ("not tried", "failed"),
        ("passed", "passed"),
        ("failed", "passed"),
    ):
        bulk_check.add(report, "00.1", bulk_check.Result(state))
        assert report.exercises["00.1"].state == expected


def test_sources_of_a_notebook(tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "1\n2"}, 3]}))
    assert one_notebook.code_cells(path) == ["1\n2"]
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": 5}]}))
    with pytest.raises(ValueError, match="source is not text"):
        one_notebook.code_cells(path)
    assert grading.chapter("no") is None


@pytest.mark.turns(3)
def test_the_copies_of_the_teachers_page_are_graded_as_it_says(tmp_path):
    """Two of the thirty: one of them declares an exercise solved."""
    path = Path(__file__).resolve().parents[2] / "book" / "thirty_copies.py"
    spec = importlib.util.spec_from_file_location("thirty_copies", path)
    copies = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copies)
    copies.write_copies(tmp_path, ["ada", "yusuf"])
    said = copies.checked(tmp_path, "--jobs=2").splitlines()
    shown = (path.with_suffix(".txt")).read_text().splitlines()
    for learner in ("ada ", "yusuf "):
        (row,) = [line.split() for line in said if line.startswith(learner)]
        assert row in [line.split() for line in shown]
        reasons = [line for line in said if line.startswith(f"  {learner}")]
        assert all(line in shown for line in reasons)
