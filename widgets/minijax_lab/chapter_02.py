"""Questions and exercises of chapter 02, "Tracing and jaxprs"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import make_jaxpr
from minijax_lab.answers import difference, same
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "02.r1": Prediction(
        "once",
        "The same shapes and types come back, so the program that was written down "
        "the first time serves again.",
        "the function `double` of chapter 00",
        because={
            "a thousand times": "That is Python running each call; the program "
            "that was written down runs instead.",
        },
    ),
    "02.r2": Prediction(
        "the shape of params",
        "grad returns one number for each number in its first argument.",
        "what `value_and_grad` is told to return in chapter 00",
        because={
            "the shape of images": "That would be the slopes for the images; grad "
            "takes those for the first argument.",
        },
    ),
    "02.r3": Prediction(
        0,
        "Axis 0 of the images; scores is written for one image.",
        "the loss of chapter 00, where in_axes is explained",
        because={
            1: "in_axes has an entry for each argument, and the images' entry is 0; 1 "
            "is their place among the arguments.",
        },
    ),
    "02.p1": Prediction(
        7,
        "The loop ran three times while tracing, so mul and add stand there three "
        "times each; the `if` was decided by a shape and left its one div.",
        because={
            3: "That is the loop's body once; Python's loop is not kept, it runs.",
            6: "That is the loop alone; the `if` asked for a shape and was answered.",
            8: "That counts the print, which ran while tracing and left nothing.",
            9: "That counts float(i) or the loop itself; only what touches x is kept.",
        },
    ),
}

EXERCISE_1 = ["mul", "mul", "sub", "reduce_sum"]


def grade_predicted_equations(names: Any) -> str | None:
    """The primitives of exercise 1's function, in order."""
    if not isinstance(names, (list, tuple)):
        return "Give a list of names, such as ['sin', 'mul']."
    if same(list(names), EXERCISE_1):
        return None
    if len(names) != len(EXERCISE_1):
        return f"It has {len(EXERCISE_1)} equations, not {len(names)}."
    wrong = [i for i, (a, b) in enumerate(zip(names, EXERCISE_1)) if not same(a, b)]
    return f"Equation {wrong[0] + 1} is not {names[wrong[0]]}."


def grade_purity(scaled: Callable[..., Any]) -> str | None:
    """`scaled(x, n)` is x * n, and two traces of it are the same text."""
    x = np.arange(3, dtype=np.float32)
    # A function that was traced is remembered, so each trace gets one of its own.
    first = str(make_jaxpr(lambda x, n: scaled(x, n))(x, 2.0))
    second = str(make_jaxpr(lambda x, n: scaled(x, n))(x, 2.0))
    if first != second:
        return (
            "Two traces with the same arguments differ, so something outside of the "
            f"function still counts:\n{first}\n{second}"
        )
    for n in (1.0, 4.0):
        told = difference(scaled(x, n), x * n)
        if told:
            return f"scaled({x}, {n}) is not x * n. {told}"
    return None


def grade_relu_in_tiny(relu: Callable[..., Any], trace: Callable[..., Any]) -> Any:
    """`relu` is traceable in `tiny`, as one equation, and right at run time."""
    x = np.array([-2.0, -0.5, 0.0, 0.25, 3.0])
    program = trace(relu, x)
    count = len(program.equations)
    if count != 1:
        return f"The traced program has {count} equations; one is enough:\n{program}"
    kind = str(getattr(program.outputs[0], "type", "no variable"))
    if kind != "f32[5]":
        return f"For x of type f32[5] the result is {kind}: see your entry of SHAPES."
    told = difference(program(x), np.maximum(x, 0))
    if told:
        return f"For {x} the program gives {program(x)}. {told}"
    return None


def grade_own_loop(function: Callable[..., Any], predicted: Any) -> str | None:
    """The learner's own function with a loop has as many equations as predicted."""
    closed = make_jaxpr(function)(np.ones(3, np.float32))
    count = len(closed.eqns)
    if count < 10:
        return f"Equations in it: {count}. Take a function with at least 10."
    if not same(predicted, count):
        return f"It has {count} equations, not {predicted}:\n{closed}"
    return None


EXERCISES = {
    "02.1": Exercise(grade_predicted_equations),
    "02.2": Exercise(grade_purity),
    "02.3": Exercise(grade_relu_in_tiny),
    "02.4": Exercise(grade_own_loop),
}
