"""Grades the course's predictions and exercises; says what is missing, never raises.

An exercise is a `Grader`: a function that looks at what the learner made and returns
one sentence on what is wrong, or None. The second failure of an exercise adds its first
hint, the third its last one, the piece of source to read; `hint("03.2")` gives one
after the other. Chapters' graders stand in `chapter_NN.py`; the hints stand beside the
solutions (`widgets/minijax_lab/solutions.py` finds them).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sysconfig
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minijax
from minijax_lab import solutions
from minijax_lab.answers import first_lines, same

SECONDS = 10
# What waits, for a busy machine or for something else, has so many times as long.
PATIENCE = 3
# The name under which programs are compiled that the course generates.
GENERATED = "<generated>"
# Where files are that no learner wrote.
OTHERS = tuple(
    str(folder) + os.sep
    for folder in (
        solutions.PACKAGE,
        Path(minijax.__file__).parent,
        sysconfig.get_path("purelib"),
        sysconfig.get_path("stdlib"),
    )
)


@dataclass(frozen=True)
class Prediction:
    """A question with one right answer. `why` is told once it has been answered.

    `shown` is the place in an earlier chapter that shows it; without one the answer
    comes a few cells below the question. `because` says of a wrong answer that many
    give what it takes for granted, and why that is not so. `unit` is that of a number
    of bytes, into which an answer with another unit is converted.
    """

    answer: Any
    why: str
    shown: str = ""
    because: Mapping[Any, str] = field(default_factory=dict)
    unit: str = ""


@dataclass(frozen=True)
class Exercise:
    """How an exercise is graded: a sentence on what is wrong, or None."""

    grade: Callable[..., str | None]


@dataclass(frozen=True)
class Outcome:
    """What one call of `check` found: "passed", "failed" or "not tried"."""

    name: str
    state: str
    reason: str = ""


class TookTooLong(Exception):
    """Raised inside an exercise that ran longer than `SECONDS`."""


failures: Counter[str] = Counter()
hints_given: Counter[str] = Counter()
# What `check` found so far in this process.
outcomes: list[Outcome] = []
# What was handed in for each exercise that is solved.
solved: dict[str, tuple[Any, ...]] = {}
# `minijax course check` takes here what a notebook hands in, with the exercise's name,
# and judges it itself; what a notebook says of its own answers does not count.
hand_in: Callable[[str, tuple[Any, ...]], None] | None = None


def chapter(name: str) -> Any:
    """Returns the module with the graders of the chapter that `name` begins with."""
    number = str(name).partition(".")[0]
    try:
        return importlib.import_module(f"minijax_lab.chapter_{number}")
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
    elif same(answer, question.answer, question.unit):
        print(f"{name}: yes. {question.why}")
    else:
        shown = question.shown
        where = f"Look at {shown}." if shown else "Run on and see why."
        for wrong, sentence in question.because.items():
            if same(answer, wrong, question.unit):
                where = f"{sentence} {where}"
                break
        print(f"{name}: you said {answer!r}; it is not that. {where}")


def check(name: str, *made: Any) -> None:
    """Grades what the learner made for the exercise `name`, and prints the outcome.

    `check("tiny")` scores the learner's own `tiny` against JAX instead, and
    `check("tiny", "06")` the programs of one chapter.

    Exceptions of the learner's code are reported, not raised, so that a notebook with
    unsolved exercises runs from top to bottom.
    """
    if name == "tiny":
        from minijax_lab.tiny_score import score

        score(*made)
        return
    module = chapter(name)
    exercise = None if module is None else module.EXERCISES.get(name)
    if exercise is None:
        print(f"{name}: there is no such exercise.")
        return
    if hand_in is not None:
        hand_in(name, made)
        return
    solved.pop(name, None)
    if not made or any(thing is ... for thing in made):
        outcomes.append(Outcome(name, "not tried"))
        print(f"{name}: not solved yet. Put your solution in place of ...")
        return
    complaint = run(exercise.grade, made)
    if complaint is None:
        outcomes.append(Outcome(name, "passed"))
        failures.pop(name, None)
        solved[name] = made
        print(f"{name}: solved.")
        return
    outcomes.append(Outcome(name, "failed", complaint))
    failures[name] += 1
    print(f"{name}: not yet. {complaint}")
    hints = solutions.hints(name)
    if failures[name] == 1 and hints:
        print(f'  hint("{name}") helps a little at a time.')
    if failures[name] >= 2 and hints:
        print(f"  hint: {hints[0]}")
        hints_given[name] = max(hints_given[name], 1)
    if failures[name] >= 3 and len(hints) > 1:
        print(f"  read: {hints[-1]}")


def hint(name: str) -> None:
    """Prints the next hint for the exercise `name`; the last says what to read.

    An exercise that was not tried yet has no hints: the first idea should be your own.
    """
    found = solutions.hints(name)
    if not found:
        print(f"{name}: there is no such exercise.")
        return
    if not was_tried(name):
        print(f"{name}: try it once{by_check(name)}; hints come after that.")
        return
    hints_given[name] += 1
    number = hints_given[name]
    if number > len(found):
        print(f'{name}: that was the last hint; solution("{name}") shows one way.')
        return
    kind = "read" if number == len(found) else "hint"
    print(f"{name}, {kind} {number} of {len(found)}: {found[number - 1]}")


def solution(name: str) -> None:
    """Prints one way to solve the exercise `name`, once it was tried.

    For a piece of `tiny`, as in "trace.bind", it is the course's own.
    """
    from minijax_lab.tiny_pieces import course_source

    text = course_source(name) or solutions.solution_text(name)
    if text is None:
        print(f"{name}: there is no such exercise.")
    elif not was_tried(name):
        print(f"{name}: try it once{by_check(name)}; then this shows one way.")
    else:
        print(text)


def yours(name: str) -> Any:
    """What the learner handed in for the exercise `name`, once it is solved.

    Until then it is the course's own, so that the cells below can go on; it says which.
    Raises ValueError if there is no such exercise.
    """
    text = solutions.solution_text(name)
    if text is None:
        raise ValueError(f"yours takes the name of an exercise, and got {name!r}")
    if name in solved:
        print(f"{name}: yours runs below.")
        return solved[name][0]
    print(f"{name}: not solved yet, so the course's own stands in.")
    given: list[Any] = []
    exec(text, {"check": lambda _, *made: given.extend(made), "__name__": name})
    return given[0]


def by_check(name: str) -> str:
    """How an exercise is handed in; a piece is, when its cell runs."""
    return f', with check("{name}", ...)' if name[:1].isdigit() else ""


def was_tried(name: str) -> bool:
    """Whether the learner handed in something for the exercise `name`."""
    return any(o.name == name and o.state != "not tried" for o in outcomes)


def run(grade: Callable[..., str | None], made: tuple[Any, ...]) -> str | None:
    """Returns the complaint of `grade`; an exception of it is one, too."""
    try:
        with time_limit(SECONDS):
            complaint = grade(*made)
            return complaint and first_lines(complaint)
    except TookTooLong:
        return f"It ran for more than {SECONDS} seconds."
    except (Exception, SystemExit) as error:
        trace = error.__traceback__
        if isinstance(error, TypeError) and trace and trace.tb_next is None:
            first_line = str(error).strip().partition("\n")[0]
            return f"check got {len(made)} things to look at: {first_line}"
        return raised(error)


def raised(error: BaseException, what: str = "It") -> str:
    """Says what was raised, and on which line of the learner's, which is shown."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own(frame.filename)]
    where = shown = ""
    if own:
        file = Path(own[-1].filename)
        where = f" in {file.name}" if file.is_file() else ""
        where += f" at line {own[-1].lineno} of {own[-1].name}"
        shown = f"\n  {own[-1].line}" if own[-1].line else ""
    else:
        shown = "\n  No line of yours was running then: see what yours returns."
    return told(error, what, where) + shown


def told(error: BaseException, what: str, where: str) -> str:
    """Says in one line what was raised, and where."""
    first_line = str(error).strip().partition("\n")[0]
    ending = f": {first_line}" if first_line else "."
    return f"{what} raised {type(error).__name__}{where}{ending}"


def is_own(filename: str) -> bool:
    """Whether a line of this file may be the learner's, and not one that it calls.

    The course's graders, `tiny`, minijax, Python, what is installed and programs that
    the course generates are not.
    """
    if Path(filename).parent.name == "tiny" or filename == GENERATED:
        return False
    return not any(filename.startswith(folder) for folder in OTHERS)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises `TookTooLong` in the block after `seconds`, where signals allow it.

    On a busy machine the seconds are those of this process's processors, and a block
    that waits for something else has `PATIENCE` times as long. Limits may be nested: an
    outer one goes on counting inside of an inner one.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    start = time.monotonic()
    computed = time.process_time()

    def stop(number: int, frame: Any) -> None:
        rest = seconds - (time.process_time() - computed)
        if rest <= 0 or time.monotonic() - start >= PATIENCE * seconds:
            raise TookTooLong
        signal.setitimer(signal.ITIMER_REAL, max(0.01, rest))

    before = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            # At once, if the outer limit passed meanwhile; zero would switch it off.
            rest = max(0.001, left - (time.monotonic() - start))
            signal.setitimer(signal.ITIMER_REAL, rest)
