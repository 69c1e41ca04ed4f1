"""Questions and exercises of chapter 10, "Control flow"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr
from minijax.core.language import Jaxpr, jaxprs_in_params
from minijax_lab.answers import listed, same
from minijax_lab.evidence import live
from minijax_lab.grading import Exercise, Prediction, TookTooLong

PREDICTIONS = {
    "10.r1": Prediction(
        "TracerBoolConversionError",
        "A tracer has no value for Python to look at.",
        "the exception of `relu` in chapter 02",
        because={
            "TypeError": "That is the large family it belongs to; it has a name of its "
            "own, which says what was asked for.",
            "ConcretizationTypeError": "That is for a number that is asked for; a "
            "truth value has an exception of its own.",
            "ValueError": "That is NumPy's, for an array with several entries.",
        },
    ),
    "10.r2": Prediction(
        2,
        "n = 2 and n = 3 get a program each; the third call hits.",
        '"Static arguments" in chapter 03',
        because={
            3: "That is a trace for each call; the third call has the n of the first.",
            1: "That holds for an argument that is traced; a static one is in the key.",
        },
    ),
    "10.r3": Prediction(
        3,
        "0.0, 1.0 and 2.0; None is a tree without leaves.",
        "the puzzle of chapter 04",
        because={
            4: "That counts None, which is a container without leaves.",
            2: "That counts the entries of the outer tuple; what lies in them counts.",
        },
    ),
    "10.p1": Prediction(
        3,
        "Each example wants its own branch, so both branches run on all of them, and a "
        "selection follows.",
        because={
            2: "That is `cond` alone; one batched equation cannot go two ways at once.",
            1: "That would be one branch for the batch; each example has its own.",
            0: "Both branches are needed, so both run.",
        },
    ),
    "10.p2": Prediction(
        1,
        "Python writes the step down once; the compiled loop runs it 100 times.",
        because={
            100: "That is how often the equations run; Python is gone by then.",
            101: "The equations run 100 times, but Python is gone by then.",
            0: "Python runs the step once, on tracers, to write the program.",
        },
    ),
    "10.p3": Prediction(
        6,
        "The loop goes on until the slowest is done: 64 is halved six times.",
        because={
            9: "That adds up all three; they go round together.",
            3: "That is the example in the middle; the loop waits for the slowest.",
            18: "That counts bodies; in one round all three examples go together.",
        },
    ),
}


def all_equations(jaxpr: Jaxpr) -> list[Any]:
    """Returns the equations of a program and of all programs inside of it."""
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn)
        for inner in jaxprs_in_params(eqn.params):
            found += all_equations(inner)
    return found


def loops_of(function: Callable[..., Any], *args: Any) -> tuple[Counter[str], Any]:
    """Returns how often each primitive stands in a function's jaxpr, and its scans.

    Equations whose results are not read are left out.
    """
    equations = all_equations(live(make_jaxpr(lambda *args: function(*args))(*args)))
    names = Counter(eqn.primitive.name for eqn in equations)
    return names, [eqn for eqn in equations if eqn.primitive.name == "scan"]


def with_for(x: Any) -> Any:
    """The `for` of exercise 1."""
    for _ in range(100):
        x = x - 0.1 * (x * x - 2.0)
    return x


def with_scan(x: Any) -> Any:
    """The `scan` of exercise 1."""

    def step(x: Any, _: None) -> tuple[Any, None]:
        return x - 0.1 * (x * x - 2.0), None

    return lax.scan(step, x, None, length=100)[0]


def grade_equations(answers: Any) -> str | None:
    """Four counts for the loop of exercise 1, compared with what tracing records."""
    asked = (
        "equations of with_for",
        "equations of with_scan, the step's left out",
        "equations of with_scan, with those of the step",
        "equations that 1000 rounds instead of 100 would add to with_scan",
    )
    given = listed(answers)
    if given is None or len(given) != len(asked):
        return "Give a list of four numbers, in the order of the questions."
    scanned = make_jaxpr(with_scan)(1.0).jaxpr
    right = (
        len(make_jaxpr(with_for)(1.0).eqns),
        len(scanned.eqns),
        len(all_equations(scanned)),
        0,
    )
    for number, (said, true) in enumerate(zip(given, right)):
        if not same(said, true):
            return f"Question {number + 1}, {asked[number]}: it is not {said}."
    return None


def grade_carries(
    total: Callable[..., Any],
    fibonacci: Callable[..., Any],
    orbit: Callable[..., Any],
) -> str | None:
    """Right values, and one scan each, whose program does not grow with the rounds."""
    for n in (4, 40):
        xs = np.linspace(1, 9, n, dtype=np.float32)
        xs.flags.writeable = False
        numbers, rule = [0, 1], [np.float32(0.3)]
        for _ in range(n):
            numbers.append(numbers[-1] + numbers[-2])
            rule.append(np.float32(2.5) * rule[-1] * (1 - rule[-1]))
        cases: tuple[tuple[str, Callable[..., Any], tuple, Any], ...] = (
            ("total", total, (xs,), np.sum(np.sqrt(xs))),
            # The 48th no longer fits into 32 bits.
            ("fibonacci", lambda n=n: fibonacci(n), (), np.array(numbers[:n])),
            (
                "orbit",
                lambda x, n=n: orbit(x, n),
                (np.float32(0.3),),
                np.array(rule[:n]),
            ),
        )
        for name, function, args, expected in cases:
            found = np.asarray(function(*args))
            if found.shape != expected.shape:
                return (
                    f"With {n} rounds {name} has shape {found.shape} and should have "
                    f"{expected.shape}."
                )
            if not np.allclose(found, expected, rtol=1e-3):
                return (
                    f"{name} gives {found.ravel()[:4]}... and should give "
                    f"{expected.ravel()[:4]}..."
                )
            names, scans = loops_of(function, *args)
            if len(scans) != 1:
                return (
                    f"The jaxpr of {name} has {len(scans)} scans for {n} rounds and "
                    f"{names.total()} equations; one scan should be there."
                )
    return None


def finished(x: float) -> int:
    """How many rounds the loop of exercise 3 takes from `x`, by Python."""
    rounds = 0
    while x > 1.0:
        x = (x - 0.9) ** 0.5
        rounds += 1
    return rounds


def slow_roots(x: float) -> float:
    """What the loop of exercise 3 gives, by Python."""
    while x > 1.0:
        x = (x - 0.9) ** 0.5
    return x


def grade_bounded(bounded_while: Callable[..., Any]) -> str | None:
    """Stops where `while_loop` does, has a slope, and is one scan."""
    traced: list[int] = []

    def roots(x: Any, steps: int = 30) -> Any:
        def body(pair: tuple[Any, Any]) -> tuple[Any, Any]:
            traced.append(1)
            value, rounds = pair
            return jnp.sqrt(value - 0.9), rounds + 1

        start = (x, jnp.zeros((), np.int32))
        return bounded_while(lambda pair: pair[0] > 1.0, body, start, steps)

    # With three steps first: a loop of Python's would be tried for very long.
    names, scans = loops_of(lambda x: roots(x, 3), np.float32(5.0))
    if not scans and not names["while"]:
        return (
            f"For 3 steps its jaxpr has {names.total()} equations and no scan; Python "
            f"ran the body {len(traced)} times. One scan should be there."
        )
    traced.clear()
    names, scans = loops_of(lambda x: roots(x), np.float32(5.0))
    if len(traced) > 5:
        return f"Python ran the body {len(traced)} times while tracing; use scan."
    for start in (0.5, 5.0, 300.0):
        value, rounds = roots(np.float32(start))
        if int(rounds) != finished(start):
            return (
                f"From {start} it counts {rounds} rounds; while_loop stops after "
                f"{finished(start)}."
            )
        if not np.isclose(float(value), slow_roots(start), rtol=1e-3):
            return f"From {start} it gives {value}, not {slow_roots(start):.4f}."
    if int(roots(np.float32(300.0), 2)[1]) != 2:
        return "It should end after `steps` rounds, whatever the condition says."
    try:
        slope = float(grad(lambda x: roots(x)[0])(np.float32(5.0)))
    except TookTooLong:
        raise
    except Exception as error:
        said = str(error).partition(":")[0]
        return f"grad of it raised {type(error).__name__}: {said}."
    expected = (slow_roots(5.001) - slow_roots(4.999)) / 0.002
    if not np.isclose(slope, expected, rtol=1e-2):
        return (
            f"The slope at 5 is {slope:.4f} and should be {expected:.4f}. Does the "
            "body run on a value for which it was not meant?"
        )
    if names["while"] or [eqn.params["length"] for eqn in scans] != [30]:
        return f"Its jaxpr has {dict(names)}; one scan of 30 rounds should do."
    return None


def grade_training(train: Callable[..., Any]) -> str | None:
    """The weights and losses of the slow loop, from one scan and one traced loss."""
    xs = np.linspace(-1, 1, 60, dtype=np.float32).reshape(20, 3)
    ys = xs @ np.array([1.0, -2.0, 0.5], np.float32)
    traced: list[int] = []

    def loss(w: Any, x: Any, y: Any) -> Any:
        traced.append(1)
        return (w @ x - y) ** 2

    w, expected = np.zeros(3, np.float32), []
    for x, y in zip(xs, ys):
        error = w @ x - y
        expected.append(error**2)
        w = w - 0.1 * 2.0 * error * x
    found, losses = train(loss, np.zeros(3, np.float32), xs, ys)
    calls = len(traced)
    if np.shape(losses) != (20,):
        return f"For 20 rows the losses have shape {np.shape(losses)}, not (20,)."
    if np.shape(found) != (3,) or not np.allclose(found, w, atol=1e-4):
        return f"After 20 rows w should be {w} and is {found}."
    if not np.allclose(losses, expected, atol=1e-4):
        return (
            f"The losses begin with {np.asarray(losses)[:2]} and should begin with "
            f"{np.array(expected[:2])}, each with the weights before its step."
        )
    if calls > 4:
        return f"Python ran the loss {calls} times for 20 rows; scan needs it once."
    _, scans = loops_of(lambda *args: train(loss, *args), w, xs, ys)
    if [eqn.params["length"] for eqn in scans] != [20]:
        return f"Its jaxpr has {len(scans)} scans; one of 20 rounds should be there."
    jit(lambda *args: train(loss, *args))(w, xs, ys)
    return None


EXERCISES = {
    "10.1": Exercise(grade_equations),
    "10.2": Exercise(grade_carries),
    "10.3": Exercise(grade_bounded),
    "10.4": Exercise(grade_training),
}
