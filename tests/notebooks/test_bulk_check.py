"""`minijax course check`: folders of learners' notebooks, good and bad ones."""

import csv
import json
from pathlib import Path

import pytest

from minijax_lab import bulk_check, command, grading, one_notebook

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
    )
    assert "old.ipynb" not in said
    found = states(tmp_path / "found.csv")
    assert found["anna", "00.1"] == "passed"
    assert found["anna", "00.2"] == found["anna", "00.3"] == "not tried"
    assert found["anna", "01.1"] == found["anna", "01.4"] == "failed"
    assert found["'=berta", "01.1"] == "passed"
    assert found["'=berta", "01.2"] == "not tried"
    assert not any(exercise.startswith("05") for _, exercise in found)
    rows = [line.split() for line in said.splitlines()]
    assert ["learner", "00.1", "00.2", "00.3", "00.4"] in rows
    assert ["=berta", "passed", *["not", "tried"] * 3] in rows
    assert "  anna 01.1: sum(i) is not int8." in said
    assert "01_arrays.ipynb, cell 3: ZeroDivisionError: division by zero" in said
    content = json.loads((tmp_path / "found.json").read_text())
    assert content["version"] == bulk_check.VERSION
    by_name = {Path(n["notebook"]).name: n for n in content["notebooks"]}
    assert by_name["01_arrays.ipynb"]["exercises"]["01.1"] == {
        "state": "failed",
        "reason": "sum(i) is not int8.",
    }


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
    assert said.count("of 0 passed, 0.0 s. It is no notebook") == 3


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
