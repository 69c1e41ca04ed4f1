"""Each exercise: its solution passes; its stub and two wrong answers do not."""

import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax_lab import answers as answers_
from minijax_lab import (
    check,
    grading,
    hint,
    predict,
    solution,
    solutions,
    tiny_pieces,
    tiny_score,
)

# Chapters with exercises on eight devices: in a process of their own, which
# test_exercises_on_eight_devices.py starts.
ON_EIGHT = ("16", "17")
EIGHT = "MINIJAX_TEST_ON_EIGHT_DEVICES" in os.environ
if EIGHT:
    minijax.config.update("jax_num_cpu_devices", 8)

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS = (
    "00",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "07",
    "08",
    "09",
    "10",
    "11",
    "12",
    "13",
    "14",
    "15",
    "16",
    "17",
    "18",
    "19",
    "20",
    "21",
)


def answers(chapter: str):
    path = NOTEBOOKS / "solutions" / f"chapter_{chapter}.py"
    specification = importlib.util.spec_from_file_location(f"solve_{chapter}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def exercises() -> list[str]:
    names = []
    for chapter in CHAPTERS:
        if (chapter in ON_EIGHT) == EIGHT:
            names += sorted(grading.chapter(chapter).EXERCISES)
    return names


@pytest.mark.parametrize("name", exercises())
def test_exercise(name, capsys):
    pytest.importorskip("sklearn")
    module = answers(name[:2])
    check(name, ...)
    assert "not solved yet" in capsys.readouterr().out
    for wrong, complaint in zip(
        module.WRONG[name], module.COMPLAINTS[name], strict=True
    ):
        check(name, *wrong())
        said = capsys.readouterr().out
        assert f"{name}: not yet. " in said and complaint in said
    assert len(module.WRONG[name]) >= 2
    check(name, *module.SOLUTIONS[name]())
    assert capsys.readouterr().out == f"{name}: solved.\n"


def test_help_grows_with_failures(capsys):
    grading.failures.clear()
    said = []
    for _ in range(3):
        check("00.1", 3)
        said.append(capsys.readouterr().out)
    assert 'hint("00.1") helps' in said[0] and "hint:" not in said[0]
    assert "hint:" in said[1] and "read:" not in said[1]
    assert "hint:" in said[2] and "read:" in said[2]


def test_an_exception_of_the_learner_is_reported(capsys):
    def fails(x, n):
        raise ValueError("my own\nmistake")

    check("02.2", fails)
    said = capsys.readouterr().out
    assert "ValueError" in said and "of fails: my own" in said


def test_an_endless_answer_is_stopped(capsys, monkeypatch):
    monkeypatch.setattr(grading, "SECONDS", 0.2)

    def endless(x, n):
        while True:
            pass

    check("02.2", endless)
    assert "more than 0.2 seconds" in capsys.readouterr().out


FILE = r"((?:minijax|tiny)/[\w/]+\.py)"
IN_A_FILE = re.compile(rf"`([\w.]+)` (?:in|of) {FILE}|{FILE}, [^`]*`([\w.]+)`")


def test_what_hints_tell_to_read_is_there():
    names = [*exercises(), *tiny_pieces.PIECES]
    told = [text for name in names for text in solutions.hints(name)]
    found = [match.groups() for text in told for match in IN_A_FILE.finditer(text)]
    assert len(found) > (5 if EIGHT else 15)
    for before, behind, ahead, after in found:
        file = behind or ahead
        folder = NOTEBOOKS.parent if file.startswith("minijax") else NOTEBOOKS
        name = (before or after).rpartition(".")[2]
        made = rf"(?m)(?:def|class) {name}\b|^ *{name}\b.* = "
        assert re.search(made, (folder / file).read_text()), (name, file)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_predictions(chapter, capsys):
    questions = grading.chapter(chapter).PREDICTIONS
    for name, question in questions.items():
        predict(name, ...)
        assert "put your answer" in capsys.readouterr().out
        predict(name, question.answer)
        assert ": yes. " in capsys.readouterr().out
        predict(name, "something else")
        said = capsys.readouterr().out
        assert "it is not that" in said
        # A question on an earlier chapter says where to look.
        earlier = re.search(r"chapter (\d\d)", said) if ".r" in name else None
        assert ("Run on" in said) == (".r" not in name)
        assert ".r" not in name or (earlier is not None and earlier[1] < chapter)


# Chapters in which a wrong answer that many give is told what it takes for granted.
ANSWERED = ("00", "01", "02", "03", "04", "05", "10", "14", "15", "20", "21")


@pytest.mark.parametrize("chapter", ANSWERED)
def test_wrong_predictions_are_answered(chapter, capsys):
    for name, question in grading.chapter(chapter).PREDICTIONS.items():
        assert question.because, name
        for wrong, sentence in question.because.items():
            predict(name, wrong)
            said = capsys.readouterr().out
            assert f"it is not that. {sentence}" in said and sentence.endswith(".")


def test_a_stopwatch_may_wait_in_either_way(capsys):
    import time

    def stopwatch(f, x):
        minijax.block_until_ready(f(x))
        start = time.perf_counter()
        minijax.block_until_ready(f(x))
        return time.perf_counter() - start

    check("01.2", stopwatch)
    assert capsys.readouterr().out == "01.2: solved.\n"


def test_a_python_loop_is_told_from_a_scan(capsys):
    """At once, and not after ten seconds of tracing it."""
    from minijax import lax

    def by_python(cond_fun, body_fun, init, steps):
        value = init
        for _ in range(steps):
            value = lax.cond(cond_fun(value), body_fun, lambda v: v, value)
        return value

    check("10.3", by_python)
    said = capsys.readouterr().out
    assert "For 3 steps its jaxpr has" in said and "and no scan" in said


def test_the_calls_of_14_1_do_what_its_answer_says():
    """The nine calls stand in the chapter's text; here they are made."""
    notebook = json.loads((NOTEBOOKS / "14_ahead_of_time.ipynb").read_text())
    texts = ["".join(cell["source"]) for cell in notebook["cells"]]
    (text,) = [text for text in texts if "**14.1 Predict**" in text]
    names = {}
    exec("import minijax.numpy as jnp", names)
    exec("from minijax import ShapeDtypeStruct, export, grad, jit, vmap", names)
    exec(re.search("```python\n(.*?)```", text, re.DOTALL)[1], names)
    found = []
    for name in "abcdefghi":
        try:
            names[name]()
            found.append("runs")
        except (TypeError, ValueError):
            found.append("refused")
    assert found == answers("14").CALLS


def test_the_functions_of_20_1_print_what_its_answer_says(capsys):
    """The six functions stand in the chapter's text; here they are called."""
    notebook = json.loads((NOTEBOOKS / "20_calling_out.ipynb").read_text())
    texts = ["".join(cell["source"]) for cell in notebook["cells"]]
    (text,) = [text for text in texts if "**20.1 Predict**" in text]
    names = {}
    exec("import minijax.numpy as jnp", names)
    exec("from minijax import debug, grad, jit, lax, vmap", names)
    exec(re.search("```python\n(.*?)```", text, re.DOTALL)[1], names)
    found = []
    for name in "abcdef":
        names[name]()
        minijax.effects_barrier()
        found.append(len(capsys.readouterr().out.splitlines()))
    assert found == answers("20").COUNTS


def test_unknown_names(capsys):
    predict("99.p1", 1)
    check("99.1", 1)
    check("00.99", 1)
    said = capsys.readouterr().out
    assert said.count("there is no such") == 3


@pytest.fixture
def own_tiny(tmp_path, monkeypatch):
    """A learner's copy of the folder, in place of the course's."""
    shutil.copytree(NOTEBOOKS / "tiny", tmp_path / "tiny")
    monkeypatch.syspath_prepend(tmp_path)
    with tiny_score.read_anew():
        yield tmp_path / "tiny"


def test_tiny_is_scored(own_tiny, capsys):
    check("tiny", "02")
    said = capsys.readouterr().out
    assert "tiny: 17 of 17 programs give JAX's numbers, 16 of 16 are written" in said
    source = (own_tiny / "trace.py").read_text()
    wrong = source.replace("__radd__", "forgotten").replace("np.negative", "np.abs")
    (own_tiny / "trace.py").write_text(wrong)
    check("tiny", "02")
    said = capsys.readouterr().out
    assert "02 tracing       15 of 17, 14 of 16" in said
    assert "failed: 1.0 + x (TypeError: " in said and "-x (At index" in said
    check("tiny", "77")
    assert "there is no chapter '77'" in capsys.readouterr().out


@pytest.fixture
def untried(monkeypatch):
    """A learner who has handed in nothing yet."""
    monkeypatch.setattr(grading, "outcomes", [])
    grading.failures.clear()
    grading.hints_given.clear()


def test_hints_come_one_by_one_after_a_try(untried, capsys):
    hint("03.2")
    check("03.2", ...)
    hint("03.2")
    said = capsys.readouterr().out
    assert said.count("try it once") == 2 and "hint 1" not in said
    check("03.2", lambda w, steps: w)
    assert 'hint("03.2") helps' in capsys.readouterr().out
    for kind in ("hint 1 of 3: ", "hint 2 of 3: ", "read 3 of 3: "):
        hint("03.2")
        assert f"03.2, {kind}" in capsys.readouterr().out
    hint("03.2")
    assert "that was the last hint" in capsys.readouterr().out


def test_a_hint_told_by_check_is_not_told_again(untried, capsys):
    check("00.1", 3)
    check("00.1", 4)
    assert "hint: the printed x" in capsys.readouterr().out
    hint("00.1")
    assert "hint 2 of 3" in capsys.readouterr().out


@pytest.mark.parametrize("name", exercises())
def test_every_exercise_has_hints_and_a_solution_that_runs(name, untried, capsys):
    assert len(solutions.hints(name)) == 3
    solution(name)
    assert "try it once" in capsys.readouterr().out
    grading.outcomes.append(grading.Outcome(name, "failed", "for the test"))
    solution(name)
    shown = capsys.readouterr().out
    assert "Wrong:" not in shown
    if name == "00.3":
        pytest.skip("its solution trains for a while; test_exercise runs it")
    exec(shown, {"check": check, "__name__": "learner"})
    assert f"{name}: solved." in capsys.readouterr().out


def test_yours_is_the_course_s_until_the_exercise_is_solved(capsys):
    mine = answers("06").MyJVPTrace
    for handed, words in ((..., "own stands in"), (mine, "yours"), (int, "own stands")):
        check("06.5", handed)
        found = grading.yours("06.5")
        assert words in capsys.readouterr().out.splitlines()[-1]
        assert (found is mine) == (handed is mine)
        assert found.__name__ == "MyJVPTrace"
    with pytest.raises(ValueError, match="takes the name of an exercise"):
        grading.yours("99.1")


def test_solutions_of_unknown_exercises(capsys):
    for name in ("99.1", "00.99", "tiny", "no"):
        hint(name)
        solution(name)
    assert capsys.readouterr().out.count("there is no such exercise") == 8


def test_a_wrong_number_of_things(capsys):
    check("04.4", lambda params: params)
    assert "check got 1 things to look at" in capsys.readouterr().out


SAME = [
    ("zero", 0),
    (jnp.bfloat16, "bfloat16"),
    (np.dtype("float32"), "float32"),
    ("0", 0),
    (" 7 ", 7),
    ("(4,)", (4,)),
    ([4], (4,)),
    ("(2, 2)", (2, 2)),
    ("2, 2", (2, 2)),
    ("2 x 2", (2, 2)),
    ("1,000,000", 1_000_000),
    ("1e6", 1_000_000),
    ("5 equations", 5),
    (np.int64(3), 3),
    ("the residuals", "residuals"),
    ("'Residuals'.", "residuals"),
    ("type", "its type"),
    ("A C B D B D", "ACBDBD"),
    ("the shape of `params`", "the shape of params"),
    (TypeError, "TypeError"),
    (True, "yes"),
    (float("nan"), "nan"),
    ("[0.,2.,4.]", "[0. 2. 4.]"),
    (np.array([0, 2, 4]), "[0. 2. 4.]"),
    ([0, 2, 4], "[0. 2. 4.]"),
]
OTHER = [
    ("zero", 1),
    ("1", 0),
    ("(4)", (4,)),
    ("2 x 3", (2, 2)),
    ("1,0", 10),
    (True, 1),
    ("values", "residuals"),
    ("", "residuals"),
    ("[0. 2.]", "[0. 2. 4.]"),
    ("__import__('os').getcwd()", 1),
    (np.array([1, 1]), 1),
]


@pytest.mark.parametrize("answer, right", SAME)
def test_answers_that_are_the_same(answer, right):
    assert answers_.same(answer, right)


@pytest.mark.parametrize("answer, right", OTHER)
def test_answers_that_are_others(answer, right):
    assert not answers_.same(answer, right)


def test_units_of_bytes_are_converted():
    assert answers_.same("12 KiB", 12, "KiB") and answers_.same("12,288 B", 12, "KiB")
    assert answers_.same(12, 12, "KiB") and not answers_.same("12 MiB", 12, "KiB")


def test_a_difference_says_where_and_how_much():
    right = np.zeros((2, 3))
    found = right + [0, 1e-9, 0]
    assert answers_.difference(found, right) is None
    found[1, 2], found[0, 1] = np.nan, 5.0
    said = answers_.difference(found, right)
    assert said == "At index (1, 2): expected 0, got nan."
    assert answers_.difference(1.0, 2.0) == "Expected 2, got 1."
    assert answers_.difference([1.0], 1.0) == "Its shape is (1,), not ()."
    assert answers_.difference([np.inf, 1.0], [np.inf, 1.0]) is None


def test_a_message_names_the_learners_line_and_not_that_of_minijax(capsys):
    def fails(x, n):
        return jnp.sin(x) @ "text"

    check("02.2", fails)
    assert "line 2 of fails" in capsys.readouterr().out.replace(
        str(fails.__code__.co_firstlineno + 1), "2"
    )


def test_time_limits_nest():
    with pytest.raises(grading.TookTooLong):
        with grading.time_limit(0.3):
            with grading.time_limit(10):
                pass
            while True:
                pass


def test_a_score_reads_the_files_and_leaves_what_is_imported(own_tiny, capsys):
    """A notebook goes on with the modules that it has, and never has two of one."""
    import tiny.trace as before
    from tiny.operations import sin

    text = (own_tiny / "trace.py").read_text().replace("__radd__", "forgotten")
    (own_tiny / "trace.py").write_text(text)
    check("tiny", "02")
    assert "tiny: 16 of 17" in capsys.readouterr().out
    import tiny.trace as after

    assert after is before
    program = after.trace(lambda x: 1.0 + sin(x), after.Type((), "f32"))
    assert [e.primitive for e in program.equations] == ["sin", "add"]
