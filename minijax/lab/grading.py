"""Grades the course's predictions and exercises; says what is missing, never raises.

An exercise is a `Grader`: a function that looks at what the learner made and returns
one sentence on what is wrong, or None. The second failure of an exercise adds its hint,
the third the piece of source to read. Chapters' graders stand in `chapter_NN.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SECONDS = 10


@dataclass(frozen=True)
class Prediction:
    """A question with one right answer. `why` is told once it has been answered."""

    answer: Any
    why: str


@dataclass(frozen=True)
class Exercise:
    """How an exercise is graded, and what helps after a second and third failure."""

    grade: Callable[..., str | None]
    hint: str
    read: str


class TookTooLong(Exception):
    """Raised inside an exercise that ran longer than `SECONDS`."""


failures: Counter[str] = Counter()


def chapter(name: str) -> Any:
    """Returns the module with the graders of the chapter that `name` begins with."""
    number = name.partition(".")[0]
    try:
        return importlib.import_module(f"minijax.lab.chapter_{number}")
    except ModuleNotFoundError:
        return None


def predict(name: str, answer: Any = ...) -> None:
    """Compares a prediction with what happens, and prints the outcome.

    `name` is the question's, as in "02.p1"; an `answer` of `...` is not yet one.
    """
    module = chapter(name)
    question = None if module is None else module.PREDICTIONS.get(name)
    if question is None:
        print(f"{name}: there is no such question.")
    elif answer is ...:
        print(f"{name}: put your answer in place of ... and run this cell again.")
    elif same(answer, question.answer):
        print(f"{name}: yes. {question.why}")
    else:
        print(f"{name}: you said {answer!r}; it is not that. Run on and see why.")


def same(answer: Any, right: Any) -> bool:
    """Compares answers; in texts, case and spacing do not count."""
    if isinstance(answer, str) and isinstance(right, str):
        return answer.lower().split() == right.lower().split()
    if isinstance(answer, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(answer) == len(right) and all(map(same, answer, right))
    try:
        return bool(answer == right)
    except Exception:
        return False


def check(name: str, *made: Any) -> None:
    """Grades what the learner made for the exercise `name`, and prints the outcome.

    `check("tiny")` scores the learner's own `tiny` against JAX instead.

    Exceptions of the learner's code are reported, not raised, so that a notebook with
    unsolved exercises runs from top to bottom.
    """
    if name == "tiny":
        from minijax.lab.tiny_score import score

        score()
        return
    module = chapter(name)
    exercise = None if module is None else module.EXERCISES.get(name)
    if exercise is None:
        print(f"{name}: there is no such exercise.")
        return
    if not made or any(thing is ... for thing in made):
        print(f"{name}: not solved yet. Put your solution in place of ...")
        return
    complaint = run(exercise.grade, made)
    if complaint is None:
        failures.pop(name, None)
        print(f"{name}: solved.")
        return
    failures[name] += 1
    print(f"{name}: not yet. {complaint}")
    if failures[name] >= 2:
        print(f"  hint: {exercise.hint}")
    if failures[name] >= 3:
        print(f"  read: {exercise.read}")


def run(grade: Callable[..., str | None], made: tuple[Any, ...]) -> str | None:
    """Returns the complaint of `grade`; an exception of it is one, too."""
    try:
        with time_limit(SECONDS):
            return grade(*made)
    except TookTooLong:
        return f"It ran for more than {SECONDS} seconds."
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        first_line = str(error).strip().partition("\n")[0]
        return (
            f"It raised {type(error).__name__} at line {last.lineno} of {last.name}: "
            f"{first_line}"
        )


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raises `TookTooLong` in the block after `seconds`, where signals allow it."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
