"""The puzzles about kernels: solutions score, wrong answers are told why."""

import importlib.util
from pathlib import Path

import pytest

from minijax_lab import grading, kernel_puzzles, puzzle

ROOT = Path(__file__).resolve().parents[2]
PUZZLES = kernel_puzzles.PUZZLES


def answers():
    path = ROOT / "notebooks" / "solutions" / "kernel_puzzles.py"
    spec = importlib.util.spec_from_file_location("solutions_of_puzzles", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOLVED = answers()


@pytest.fixture(autouse=True)
def fresh():
    kernel_puzzles.failures.clear()
    yield
    kernel_puzzles.failures.clear()


def test_there_are_seven_in_each_of_two_chapters():
    for chapter in ("18.", "19."):
        assert sum(name.startswith(chapter) for name in PUZZLES) == 7
    assert set(PUZZLES) == set(SOLVED.SOLUTIONS) == set(kernel_puzzles.HINTS)
    assert all(len(hints) == 3 for hints in kernel_puzzles.HINTS.values())


@pytest.mark.parametrize("name", PUZZLES)
def test_a_solution_reaches_the_best_score(name, capsys):
    puzzle(name, *SOLVED.SOLUTIONS[name]())
    said = capsys.readouterr().out
    fetched, written = PUZZLES[name].best
    best = f"the least that is known is {fetched:,} B and {written:,} B."
    assert said.startswith(f"{name}: solved. ") and said.endswith(best + "\n")
    if name not in ("19.matmul", "19.attention"):
        assert f"{fetched:,} B fetched and {written:,} B written; " in said
    assert grading.outcomes[-1].state == "passed"


@pytest.mark.parametrize("name", PUZZLES)
def test_a_wrong_answer_is_told_why(name, capsys):
    for wrong, complaint in zip(
        SOLVED.WRONG[name], SOLVED.COMPLAINTS[name], strict=True
    ):
        puzzle(name, *wrong())
        said = capsys.readouterr().out
        assert f"{name}: not yet. " in said and complaint in said


def test_hints_come_one_by_one(capsys):
    for number in range(4):
        puzzle("18.map", lambda x: x)
        said = capsys.readouterr().out
        assert kernel_puzzles.HINTS["18.map"][min(number, 2)] in said
        assert ("solutions/kernel_puzzles.py" in said) == (number == 3)


def test_what_is_no_puzzle_and_what_raises(capsys):
    puzzle("18.nothing", len)
    assert "no such puzzle" in capsys.readouterr().out
    puzzle("18.map")
    assert "not solved yet" in capsys.readouterr().out

    def broken(x):
        raise RuntimeError("not today")

    puzzle("18.map", broken)
    assert "RuntimeError" in capsys.readouterr().out
