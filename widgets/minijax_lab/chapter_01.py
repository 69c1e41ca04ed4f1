"""Questions and exercises of chapter 01, "Arrays"."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import make_jaxpr
from minijax.core.language import jaxprs_in_params
from minijax_lab.answers import same, text_of
from minijax_lab.evidence import live
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "01.q1": Prediction(
        "raises",
        "An Array never changes; x.at[0].set(1.0) makes a new one.",
        because={
            "changes x": "That is NumPy; who holds x here may rely on what is in it.",
            "makes a new array": "That is what x.at[0].set(1.0) does; an assignment in "
            "Python has no result that could be the new array.",
        },
    ),
    "01.q2": Prediction(
        "the last entry",
        "A compiled program cannot raise at one entry, so the index is clamped.",
        because={
            "an error": "That would need a device that can raise at one entry among "
            "thousands.",
            "nan": "That is what x.at[10].get(mode='fill') gives, on demand.",
        },
    ),
    "01.q3": Prediction(
        "bfloat16",
        "A Python number is weak: it takes the width of what it meets.",
        because={
            "float32": "That is what np.float32(1.0) would give; 1.0 has no dtype.",
            "float64": "That takes 1.0 for a 64-bit number, as NumPy does; you wrote "
            "only 1.0.",
        },
    ),
    "01.q4": Prediction(
        "not yet",
        "The work has been queued; who asks for a number waits.",
        because={"yes": "Python goes past the line as soon as the work is queued."},
    ),
    "01.p1": Prediction(
        "at least ten times",
        "The call only queues the product; block_until_ready waits for it.",
        because={"about the same": "That would be a call that waits for its result."},
    ),
}

EXERCISE_1 = ["float16", "float32", "float16", "float32", "int8", "int32"]
EXPRESSIONS = ["h * 2", "i * 2.5", "i + h", "h + float32", "i + True", "sum(i)"]


def grade_dtypes(names: Any) -> str | None:
    """The six result dtypes of exercise 1, as strings or as dtypes."""
    if not isinstance(names, (list, tuple)):
        return "Give a list of six dtypes, such as ['int8', 'float32', ...]."
    if len(names) != len(EXERCISE_1):
        return f"There are {len(EXERCISE_1)} expressions, and you gave {len(names)}."
    for expression, name, right in zip(EXPRESSIONS, names, EXERCISE_1):
        if not same(name, right):
            return f"{expression} is not {text_of(name)}."
    return None


class Delayed:
    """A result that is ready only some time after the call that queued it.

    `waited` says how long after the call's `start` someone had waited for it.
    """

    def __init__(self, seconds: float, start: float) -> None:
        self.ready = time.perf_counter() + seconds
        self.start, self.waited = start, 0.0

    def block_until_ready(self) -> Delayed:
        """Waits, as an Array's method does."""
        time.sleep(max(0.0, self.ready - time.perf_counter()))
        self.waited = time.perf_counter() - self.start
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Reading the numbers waits, too."""
        self.block_until_ready()
        return np.zeros(1, dtype or np.float32)

    def __float__(self) -> float:
        return float(self.__array__()[0])

    def item(self) -> float:
        """The number, once it is there."""
        return float(self)

    def tolist(self) -> list[float]:
        """The numbers as a list, once they are there."""
        return [float(self)]


def grade_stopwatch(stopwatch: Callable[..., Any]) -> str | None:
    """It waits for the result, and leaves out the first, slow call."""
    calls: list[Delayed] = []

    def slow_first_time(x: Any) -> Delayed:
        begun = time.perf_counter()
        # The first call is "compiled" for as long as three ordinary ones.
        if not calls:
            time.sleep(0.6)
        calls.append(Delayed(0.2, begun))
        return calls[-1]

    start = time.perf_counter()
    seconds = stopwatch(slow_first_time, 1.0)
    whole = time.perf_counter() - start
    if not isinstance(seconds, float):
        return f"It returns {type(seconds).__name__}; return the seconds, a float."
    if seconds < 0.15:
        return (
            f"The work takes 0.2 s after the call, and you say {seconds:.2f} s: the "
            "clock stopped before the result was ready."
        )
    if seconds > whole:
        return (
            f"You say {seconds:.2f} s, and all of it took {whole:.2f} s: return the "
            "seconds of one call."
        )
    # Some of the later calls is at least as slow as what was measured.
    if seconds > max((call.waited for call in calls[1:]), default=0.0) + 0.15:
        return f"You say {seconds:.2f} s, with the first call's compiling in it."
    return None


def grade_running_mean(running_mean: Callable[..., Any]) -> str | None:
    """Right, and as many equations for 1,000 entries as for 10."""
    for length in (1, 5):
        x = np.arange(1.0, length + 1, dtype=np.float32) ** 2
        expected = np.cumsum(x) / np.arange(1, length + 1)
        found = np.asarray(running_mean(x))
        if found.shape != expected.shape or not np.allclose(found, expected):
            return f"running_mean({x}) is {found} and should be {expected}."
    short, long = (
        len(make_jaxpr(lambda x: running_mean(x))(np.ones(n, np.float32)).eqns)
        for n in (10, 1000)
    )
    if short != long:
        return (
            f"For 10 entries it leaves {short} equations and for 1,000 it leaves "
            f"{long}: a Python loop was written out."
        )
    return None


def grade_translation(numpy_one: Callable, my_one: Callable) -> str | None:
    """Both functions agree, and the second one can be traced and uses a scatter."""
    index = np.array([3, 1, 3, 0])
    expected = np.asarray(numpy_one(index.copy()))
    if not expected.shape:
        return "The NumPy function must return an array."
    found = np.asarray(my_one(index))
    if found.shape != expected.shape or not np.allclose(found, expected):
        return f"For {index} NumPy gives {expected} and yours {found}."
    program = live(make_jaxpr(my_one)(index))
    if not any(name.startswith("scatter") for name in primitives_of(program)):
        return "No `.at[...]` leaves a scatter in its jaxpr. Write into an array."
    return None


def grade_figure(cells: Any) -> str | None:
    """At most five cells of the Game of Life, and 100 alive after 100 turns."""
    found = np.asarray(list(cells))
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        return "Give a list of pairs (row, column), such as [(30, 31), (31, 32)]."
    if len(found) > 5:
        return f"These are {len(found)} cells; at most five are allowed."
    outside = [
        tuple(map(int, cell)) for cell in found if min(cell) < 0 or max(cell) > 63
    ]
    if outside:
        return f"{outside[0]} is not on the board: rows and columns go from 0 to 63."
    board = np.zeros((64, 64), int)
    board[tuple(found.T)] = 1
    near = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    for turn in range(1, 101):
        neighbours = sum(np.roll(board, moved, (0, 1)) for moved in near)
        board = np.where((neighbours == 3) | ((neighbours == 2) & (board == 1)), 1, 0)
        if not board.any():
            return f"After {turn} of 100 turns no cell is alive."
    if board.sum() < 100:
        return f"After 100 turns {board.sum()} cells are alive, and not 100 or more."
    return None


def primitives_of(jaxpr: Any) -> list[str]:
    """The names of all primitives of a jaxpr, with those of inner programs."""
    names: list[str] = []
    for eqn in jaxpr.eqns:
        names.append(eqn.primitive.name)
        for inner in jaxprs_in_params(eqn.params):
            names.extend(primitives_of(inner))
    return names


EXERCISES = {
    "01.1": Exercise(grade_dtypes),
    "01.2": Exercise(grade_stopwatch),
    "01.3": Exercise(grade_running_mean),
    "01.4": Exercise(grade_translation),
    "01.5": Exercise(grade_figure),
}
