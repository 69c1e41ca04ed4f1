"""Exercises that are answered by a list: written otherwise it passes, wrong it fails.

Each list is handed in as a tuple, as texts and as NumPy's numbers, and with each of its
entries wrong in turn, too short, too long, and as something that is no list. A refusal
is a sentence, and never an exception.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from minijax_lab import check

EIGHT = "MINIJAX_TEST_ON_EIGHT_DEVICES" in os.environ
SOLUTIONS = Path(__file__).resolve().parents[2] / "notebooks" / "solutions"
LISTS = (
    *("01.1", "02.1", "03.1", "04.1", "06.1", "07.1", "08.1", "09.1", "10.1", "11.1"),
    *("12.1", "13.1", "14.1", "15.1", "18.1", "19.1", "20.1", "21.1"),
)


def right(name: str) -> list:
    path = SOLUTIONS / f"chapter_{name[:2]}.py"
    spec = importlib.util.spec_from_file_location(f"lists_{name[:2]}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (answer,) = module.SOLUTIONS[name]()
    return list(answer)


def otherwise(answer: list) -> dict[str, object]:
    """The same answer, written in other ways."""
    ways = {"a tuple": tuple(answer)}
    if all(isinstance(one, str) for one in answer):
        ways["with spaces"] = [f" {one} " for one in answer]
        ways["in capitals"] = [one.upper() for one in answer]
    elif all(isinstance(one, (int, float)) for one in answer):
        ways["NumPy's numbers"] = [*map(np.float64, answer)]
        ways["texts"] = [f" {one}" for one in answer]
        ways["an array"] = np.array(answer)
    return ways


def mistakes(answer: list) -> dict[str, object]:
    """Answers that are wrong."""
    found: dict[str, object] = {"nothing": [], "too short": answer[:-1]}
    found |= {"too long": [*answer, answer[0]], "a number": 3, "None": None}
    found["a word"] = "miss"
    kinds = [*dict.fromkeys(answer)]
    for place, one in enumerate(answer):
        if isinstance(one, str):
            other = next(kind for kind in [*kinds, "sin"] if kind != one)
        else:
            other = 77 if one is None else one + 1
        found[f"entry {place}"] = [*answer[:place], other, *answer[place + 1 :]]
    return found


@pytest.mark.skipif(EIGHT, reason="for one device")
@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_taken_however_it_is_written(name, capsys):
    for how, answer in otherwise(right(name)).items():
        check(name, answer)
        assert capsys.readouterr().out == f"{name}: solved.\n", how


@pytest.mark.skipif(EIGHT, reason="for one device")
@pytest.mark.parametrize("name", LISTS)
def test_a_wrong_list_is_refused_in_a_sentence(name, capsys):
    for how, answer in mistakes(right(name)).items():
        check(name, answer)
        said = capsys.readouterr().out
        assert f"{name}: not yet. " in said, how
        assert "It raised" not in said and "check got" not in said, (how, said)
