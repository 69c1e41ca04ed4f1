"""Tables of answers that a judge of the course has to take, or to refuse, and why."""

from collections.abc import Callable
from typing import Any

import pytest

from minijax_lab import check, grading


class Answers:
    """Right and wrong answers, by the name of an exercise."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.refused: list[Any] = []

    def right(self, name: str, *made: Any) -> None:
        """Adds a right answer: what is handed in to `check`."""
        self.taken.append(pytest.param(name, made, id=f"{name}-{len(self.taken)}"))

    def wrong(self, name: str, complaint: str, *made: Any) -> None:
        """Adds a wrong answer, and words of the refusal."""
        number = len(self.refused)
        self.refused.append(pytest.param(name, made, complaint, id=f"{name}-{number}"))


def checked(name: str, made: tuple) -> None:
    """Hands in an answer, with time enough for a machine with much else to do."""
    before, grading.SECONDS = grading.SECONDS, 60
    try:
        check(name, *made)
    finally:
        grading.SECONDS = before


def assert_taken(name: str, made: tuple, said: Callable[[], str]) -> None:
    """`check` calls it solved, and says no more."""
    checked(name, made)
    told = said()
    assert told == f"{name}: solved.\n", told


def assert_refused(name: str, made: tuple, complaint: str, said: Callable) -> None:
    """`check` refuses it with these words, and not by an exception of its own."""
    checked(name, made)
    told = said()
    assert f"{name}: not yet. " in told and complaint in told, told
