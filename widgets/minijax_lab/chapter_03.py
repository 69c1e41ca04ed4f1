"""Questions and exercises of chapter 03, "jit and its cache"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.core.signatures import fun_name
from minijax.support import event_watching
from minijax_lab.evidence import count
from minijax_lab.grading import Exercise, Prediction, same

PREDICTIONS = {
    "03.r1": Prediction(
        "its shape",
        "A tracer has a type and no value.",
        "the view of `puzzle` in chapter 02",
        because={
            "its numbers": "That would be an array; it stands in for any of them.",
        },
    ),
    "03.r2": Prediction(
        3,
        "The loop runs while tracing, three times.",
        "the view of `puzzle` in chapter 02",
        because={
            1: "That would be a loop in the program; Python's loop runs, and is gone.",
            0: "The loop is gone, and what it did to the tracer is written down.",
        },
    ),
    "03.r3": Prediction(
        "bfloat16",
        "A Python number takes the width it meets.",
        '"Which dtype comes out" in chapter 01',
        because={
            "float32": "That is what np.float32(2.0) would give; 2.0 is weak.",
            "float64": "That takes 2.0 for a 64-bit number, as NumPy does.",
        },
    ),
    "03.p1": Prediction(
        "[0. 2. 4.]",
        "2.0 stands in the kept program as a literal; nobody reads factor again.",
        because={"[0. 3. 6.]": "That would need Python to run again, and it does not."},
    ),
    "03.p2": Prediction(
        4,
        "The first call, another shape, a weak integer and a weak float are new; other "
        "numbers of the same type are not.",
        because={
            1: "That would be once for each function; it is once for each key.",
            2: "That counts shapes only; dtype and weak type are in the key, too.",
            3: "2 and 2.0 are a weak integer and a weak float: two keys.",
            5: "The second call has the same types; its numbers do not count.",
        },
    ),
}

EXERCISE_1 = ["miss", "hit", "hit", "miss", "miss", "miss", "hit", "miss"]


def grade_hits(answers: Any) -> str | None:
    """Hit or miss for the eight calls of exercise 1."""
    if not isinstance(answers, (list, tuple)):
        return "Give a list of eight words, such as ['miss', 'hit', ...]."
    if len(answers) != len(EXERCISE_1):
        return f"There are {len(EXERCISE_1)} calls, and you gave {len(answers)}."
    for number, (said, right) in enumerate(zip(answers, EXERCISE_1), start=1):
        if not same(said, right):
            return f"Call {number} is not a {said}."
    return None


@contextmanager
def misses(event: str = "jit.miss") -> Iterator[list[Any]]:
    """Collects the functions of all calls that found no program in their cache.

    With the event "jit.hit" those of all calls that found one.
    """
    found: list[Any] = []

    def listen(name: str, data: dict[str, Any]) -> None:
        if name == event:
            found.append(data["function"])

    with event_watching.subscribe(listen):
        yield found


def slow_training(w: np.ndarray, steps: int) -> np.ndarray:
    """What the exercise's loop computes, with the derivative worked out."""
    for i in range(steps):
        w = w - 0.1 / (1 + i) * 2 * (w - 1.0)
    return w


def grade_training(train: Callable[..., Any]) -> str | None:
    """The same result as the slow loop, and one miss in five steps."""
    start = np.zeros(3, np.float32)
    expected = slow_training(start, 5)
    w = jnp.asarray(start)
    result = np.asarray(train(w + 0.0, 5))
    if result.shape != expected.shape or not np.allclose(result, expected, atol=1e-5):
        return f"After five steps w should be {expected} and is {result}."
    with misses() as found:
        train(w + 0.0, 8)
    if len(found) > 1:
        return (
            f"Eight more steps missed the cache {len(found)} times. A function that "
            "is made in the loop, or a number that Python knows, makes a new program."
        )
    try:
        program = make_jaxpr(lambda w: train(w, 2))(w)
    except Exception:  # it looks at its numbers on the way
        return None
    if not count(program, "jit", "while", "scan"):
        return "Nothing in it is jitted: one trace is asked for, and not none."
    return None


def grade_pure(normalize: Callable[..., Any], update: Callable[..., Any]) -> str | None:
    """Both are jitted, right, and follow a changing mean with one program each."""
    for name, function in (("normalize", normalize), ("update", update)):
        if not hasattr(function, "lower"):
            return f"{name} is not jitted; hand in jit({name})."
    x = np.array([1.0, 3.0], np.float32)
    mean: Any = np.float32(0.0)
    expected = 0.0
    for round_number in range(3):
        found = np.asarray(normalize(x, mean))
        if not np.allclose(found, x - expected, atol=1e-6):
            return (
                f"In round {round_number + 1} normalize gives {found} and should give "
                f"{x - expected}. Does the mean come in as its argument?"
            )
        mean = update(mean, x)
        expected += 0.1 * (2.0 - expected)
        if np.shape(mean) != () or not np.allclose(mean, expected, atol=1e-6):
            return f"update should give a mean of {expected:.3f} and gives {mean}."
    return None


@contextmanager
def results_of(jitted: Any) -> Iterator[list[Any]]:
    """Collects the results of the programs that calls of a jitted function launch.

    A call that finds its program launches it next. While a new one is made, other
    programs may run, for constants: they have other names.
    """
    found: list[Any] = []
    called = False

    def listen(name: str, data: dict[str, Any]) -> None:
        nonlocal called
        if name in ("jit.hit", "jit.miss"):
            called = called or is_program_of(data["function"], jitted)
        elif name == "execute" and called:
            if data["program"].name == fun_name(jitted.__wrapped__):
                found.extend(data["results"])
                called = False

    with event_watching.subscribe(listen):
        yield found


def grade_padding(padded: Callable[..., Any], jitted: Any) -> str | None:
    """Right for every length, with one program in the jitted function."""
    if not hasattr(jitted, "lower"):
        return "The second function is not jitted."
    inner = jitted
    inner.clear_cache()  # an attempt before this one may have left programs in it
    own = 0
    for length in (1, 5, 17, 64):
        x = np.arange(length, dtype=np.float32)
        with misses() as found, misses("jit.hit") as hits, results_of(inner) as made:
            result = padded(x)
        if np.shape(result) != () or result is None:
            told = "None" if result is None else f"the shape {np.shape(result)}"
            return f"For {x} it gives {told}, not one number."
        if not np.isclose(float(result), float(np.sum(x**2))):
            return f"For {x} it gives {float(result):g}, not {np.sum(x**2):g}."
        new = sum(1 for function in found if is_program_of(function, inner))
        calls = new + sum(1 for function in hits if is_program_of(function, inner))
        if calls > 1:
            return (
                f"For {length} entries it calls the jitted function {calls} times: "
                "pad them to one vector of 64, and call it once."
            )
        own += new
        numbers = [array for array in made if np.shape(array) == ()]
        if calls and not any(np.isclose(one, np.sum(x**2)) for one in numbers):
            return (
                f"For {x} the jitted function itself does not give {np.sum(x**2):g}: "
                "pass it the padded vector, and let it square and add."
            )
    if own > 1:
        return f"Four lengths made {own} programs of the jitted function; pad first."
    if own == 0 and inner._cache_size() == 0:
        return (
            "The jitted function was never called with numbers: let `padded` pad, and "
            "then call it, outside of any other `jit`."
        )
    if inner._cache_size() > 1:
        return f"The jitted function keeps {inner._cache_size()} programs; one will do."
    return None


# What the ten calls of exercise 5 return; the eighth and the tenth raise at first.
PUZZLES = (12.0, 30.0, 24.0, 32.0, 36.0, 60.0, 18.0, 36.0, 42.0, 36.0)


def grade_puzzles(f: Any, calls: Any) -> str | None:
    """Ten calls that all run the program of `f(jnp.ones(3), 2.0)`."""
    if not hasattr(f, "lower"):
        return "The first thing to hand in is the jitted f itself."
    if len(calls) != len(PUZZLES):
        return f"There are {len(PUZZLES)} calls, and you gave {len(calls)}."
    f.clear_cache()
    if float(f(jnp.ones(3), 2.0)) != 12.0:
        return "f(jnp.ones(3), 2.0) is 12: change what is passed, and not f."
    for number, (call, right) in enumerate(zip(calls, PUZZLES), start=1):
        with misses() as found, misses("jit.hit") as hits:
            try:
                result = float(call())
            except Exception as error:
                first_line = str(error).strip().partition("\n")[0]
                return f"Puzzle {number} raises {type(error).__name__}: {first_line}"
        if any(is_program_of(function, f) for function in found):
            return f"Puzzle {number} is a miss."
        if not any(is_program_of(function, f) for function in hits):
            return f"Puzzle {number} does not call f."
        if not np.isclose(result, right):
            return f"Puzzle {number} is a hit, and gives {result}, not {right}."
    return None


def is_program_of(function: Any, jitted: Any) -> bool:
    """Whether an event's function is the one that `jitted` wraps."""
    return function is jitted or function is getattr(jitted, "__wrapped__", None)


EXERCISES = {
    "03.1": Exercise(grade_hits),
    "03.2": Exercise(grade_training),
    "03.3": Exercise(grade_pure),
    "03.4": Exercise(grade_padding),
    "03.5": Exercise(grade_puzzles),
}
