"""Each exercise: its solution passes; its stub and two wrong answers do not."""

import importlib.util
from pathlib import Path

import pytest

from minijax.lab import check, grading, predict

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS = ("00", "01", "02", "03", "04", "05")


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
        names += sorted(grading.chapter(chapter).EXERCISES)
    return names


@pytest.mark.parametrize("name", exercises())
def test_exercise(name, capsys):
    pytest.importorskip("sklearn")
    module = answers(name[:2])
    check(name, ...)
    assert "not solved yet" in capsys.readouterr().out
    for wrong in module.WRONG[name]:
        check(name, *wrong())
        assert "not yet." in capsys.readouterr().out
    assert len(module.WRONG[name]) == 2
    check(name, *module.SOLUTIONS[name]())
    assert capsys.readouterr().out == f"{name}: solved.\n"


def test_help_grows_with_failures(capsys):
    grading.failures.clear()
    said = []
    for _ in range(3):
        check("00.1", 3)
        said.append(capsys.readouterr().out)
    assert "hint:" not in said[0]
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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_predictions(chapter, capsys):
    questions = grading.chapter(chapter).PREDICTIONS
    for name, question in questions.items():
        predict(name, ...)
        assert "put your answer" in capsys.readouterr().out
        predict(name, question.answer)
        assert ": yes. " in capsys.readouterr().out
        predict(name, "something else")
        assert "it is not that" in capsys.readouterr().out


def test_unknown_names(capsys):
    predict("99.p1", 1)
    check("99.1", 1)
    check("00.99", 1)
    said = capsys.readouterr().out
    assert said.count("there is no such") == 3


def test_tiny_is_scored(capsys, monkeypatch):
    check("tiny")
    said = capsys.readouterr().out
    assert "tiny: 8 of 14 programs give JAX's numbers" in said and "next: " in said
    import tiny.trace

    monkeypatch.setattr(tiny.trace.Tracer, "__radd__", tiny.trace.Tracer.__add__, False)
    check("tiny")
    assert "tiny: 9 of 14" in capsys.readouterr().out
