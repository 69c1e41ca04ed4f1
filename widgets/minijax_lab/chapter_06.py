"""Questions and exercises of chapter 06, "Forward mode"."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import jvp, lax, make_jaxpr
from minijax_lab.answers import difference, first_wrong, same
from minijax_lab.evidence import calls_of, count, largest
from minijax_lab.grading import Exercise, Prediction
from minijax_lab.tiny_programs import tiny

PREDICTIONS = {
    "06.r1": Prediction(
        3,
        "The loop runs three times while tracing, and leaves a sine each time.",
        "the view of `puzzle` in chapter 02",
        because={1: "That is a `scan`; a loop of Python's is written out."},
    ),
    "06.r2": Prediction(
        "its type",
        "An argument is a tracer: shape, dtype and weak type are in the key.",
        "exercise 03.2 of chapter 03",
        because={"its value": "That is so for static arguments only."},
    ),
    "06.r3": Prediction(
        2,
        "Two numbers; None is a tree without leaves.",
        "the puzzle of chapter 04",
        because={3: "None has no leaf."},
    ),
    "06.p1": Prediction(
        1,
        "Value and change are computed side by side, equation by equation.",
        because={
            2: "That is a finite difference: at x, and a step further.",
            0: "That is a formula of the source, which `grad` does not read.",
            3: "Nothing is tried; each equation has a rule.",
        },
    ),
    "06.p2": Prediction(
        7,
        "cos and mul for the sine; two mul and a sum for the product; and the two "
        "of f.",
        because={
            4: "One more for each is too few: both factors of a product change.",
            3: "The sine's slope needs a cosine, and the product needs two parts.",
            6: "The two parts of the product's change are added, by an equation, too.",
            5: "Those are the new ones; the two of f are there as well.",
        },
    ),
    "06.p3": Prediction(
        0.5,
        "At a tie both are the larger one, and each gets half.",
        because={
            1: "That is so just right of the tie, where x alone is the larger.",
            0: "That is so just left of the tie, where the constant is the larger.",
        },
    ),
}

CORNERS = [0.5, 0.0, 1.0, 1.0]


def grade_corners(answers: Any) -> str | None:
    """The tangents of exercise 1, at four corners."""
    sentence = "The tangent of {name} is not {answer}."
    return first_wrong(answers, CORNERS, "abcd", sentence)


def grade_cube(cube: Callable[..., Any]) -> str | None:
    """x ** 3 with a rule of its own, linear in the tangent."""
    if not isinstance(cube, minijax.custom_jvp):
        return "cube has no rule of its own: keep custom_jvp, and repair the rule."
    for x, t in ((2.0, 1.0), (2.0, -3.0), (-0.5, 0.0)):
        value, change = minijax.jvp(cube, (x,), (t,))
        if not np.allclose(value, x**3, atol=1e-5):
            return f"cube({x}) should be {x**3} and is {value}."
        right = 3 * x * x * t
        if not np.allclose(change, right, atol=1e-5):
            return f"At x = {x} with t = {t} the tangent is {change}, not {right}."
    found = minijax.jvp(lambda x: cube(jnp.sin(x)), (1.0,), (1.0,))[1]
    right = 3 * np.sin(1.0) ** 2 * np.cos(1.0)
    if not np.allclose(found, right, atol=1e-5):
        return f"After a sine, at 1, the tangent is {found}, not {right:.4f}."
    return None


def row_of(function: Any, name: str) -> Any:
    """The row for a primitive in the learner's own table, where they have one.

    It is that of the notebook in which the function was written, or which hands it in.
    """
    function = getattr(function, "func", function)  # a functools.partial
    for names in (getattr(function, "__globals__", {}), vars(sys.modules["__main__"])):
        table = names.get("TANGENTS")
        if isinstance(table, dict) and name in table:
            return table[name]
    return None


def grade_atan(atan: Callable[..., Any]) -> str | None:
    """One equation, a tangent of few, and the numbers."""
    before = dict(tiny.tangents.TANGENTS)
    try:
        return complaint_of_atan(atan)
    finally:  # a row that is wrong is not remembered
        tiny.tangents.TANGENTS.clear()
        tiny.tangents.TANGENTS.update(before)


def complaint_of_atan(atan: Callable[..., Any]) -> str | None:
    """What is wrong with it, while the learner's row stands in tiny's table."""
    x = np.array([-2.0, 0.0, 0.5, 3.0])
    program = tiny.trace.trace(atan, x)
    if len(program.equations) != 1:
        return f"Its program has {len(program.equations)} equations, not 1:\n{program}"
    told = difference(program(x), np.arctan(x))
    if told:
        return f"For {x} the program gives {program(x)}. {told}"
    name = program.equations[0].primitive
    row = row_of(atan, name)
    if row is not None:
        tiny.tangents.TANGENTS[name] = row
    if name not in tiny.tangents.TANGENTS:
        return f"There is no row for {name} in TANGENTS."
    t = np.ones_like(x)
    both = tiny.trace.trace(lambda x, t: tiny.tangents.jvp(atan, (x,), (t,)), x, t)
    if len(both.equations) > 5:
        return f"With its tangent it has {len(both.equations)} equations:\n{both}"
    for scale in (1.0, -2.0):
        found = tiny.tangents.jvp(atan, (x,), (scale * t,))[1]
        told = difference(found, scale / (1 + x * x))
        if told:
            return f"At {x}, moved by {scale}, the tangent is {found}. {told}"
    found = tiny.tangents.jvp(lambda x: atan(tiny.operations.sin(x)), (x,), (t,))[1]
    told = difference(found, np.cos(x) / (1 + np.sin(x) ** 2))
    if told:
        return f"After a sine, at {x}, the tangent is {found}. {told}"
    return None


def wrong_jacobian(made: Callable[..., Any], x: np.ndarray) -> str | None:
    """What is wrong with `made(f, x)`, the Jacobians of three functions."""
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    both = matrix.T @ (np.cos(matrix @ x)[:, None] * matrix)
    cases: list[tuple[str, Callable[..., Any], np.ndarray]] = [
        ("jnp.sin", jnp.sin, np.diag(np.cos(x))),
        ("W @ x", lambda x: matrix @ x, matrix),
        ("W.T @ jnp.sin(W @ x)", lambda x: matrix.T @ jnp.sin(matrix @ x), both),
    ]
    for text, function, right in cases:
        found = np.asarray(made(function, x))
        told = difference(found, right, atol=1e-4)
        if told:
            return f"The Jacobian of {text} should be\n{right}\nand is\n{found}\n{told}"
    return None


def grade_columns(columns: Callable[..., Any], size: Any) -> str | None:
    """A Jacobian by one vmap of jvp, and the size of its largest array."""
    x = np.array([0.5, -1.0, 2.0], np.float32)
    if (wrong := wrong_jacobian(columns, x)) is not None:
        return wrong

    def energy(x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * x)

    def program(length: int) -> Any:
        return make_jaxpr(lambda x: columns(energy, x))(np.ones(length, np.float32))

    waiting = set().union(*calls_of(columns, x, of=jnp.sin))
    for name in ("jacfwd", "jacrev"):
        if name in waiting:
            return f"`{name}` runs f in it: write what jacfwd does, with jvp and vmap."
    if "jvp" not in waiting:
        return "No `jvp` runs f in it: one of them gives one column."
    few, more = (count(program(size)) for size in (3, 6))
    if more != few:
        return f"It has {few} equations for 3 entries and {more} for 6: use vmap."
    most = largest(program(1000))
    if not same(size, most):
        return f"The largest array has {most:,} numbers, not {size}."
    return None


# What a JVPTrace runs, from the smallest; `x` has three numbers.
PROGRAMS = (
    "jnp.sin(x)",
    "x * 3.0",
    "3.0 - x",
    "x * x",
    "x * jnp.arange(3.0)",
    "x * lax.nextafter(one, 2 * one)",
    "lax.stop_gradient(x) * x",
    "jnp.stack(jnp.split(x, 3))",
    "lax.sort((x, x * x))[1]",
    "minijax.jit(lambda y: y * x)(3.0)",
    "lax.scan(lambda c, y: (c * y, c + y), 1.0, x)[1]",
    "jvp(jnp.sin, (x,), (x,))[1]",
    "jvp(lambda y: y * y * x, (x,), (one,))[1]",
    "x * jvp(lambda y: x + y, (x,), (one,))[1]",
    "minijax.vmap(lambda y: y * jnp.sum(x))(x)",
)


def grade_trace(made: type, *, programs: Sequence[str] = PROGRAMS) -> str | None:
    """A JVPTrace of the learner's in the engine: numbers, and no needless equation."""
    from minijax_lab.interpreter_check import Run, trace_complaint

    x = np.array([0.5, -1.0, 2.0], np.float32)
    t = np.array([1.0, -2.0, 0.5], np.float32)
    names = {"jnp": jnp, "jvp": jvp, "lax": lax, "minijax": minijax}
    names["one"] = np.ones(3, np.float32)

    def run(text: str) -> Run:
        function = eval(f"lambda x: {text}", names)
        where = [f" at x = {x}, moved by {t}, the {k}" for k in ("value", "tangent")]
        return Run(text, lambda x, t: jvp(function, (x,), (t,)), (x, t), where)

    needless = "nothing is computed for a tangent that is Zero."
    return trace_complaint("JVPTrace", made, map(run, programs), needless)


EXERCISES = {
    "06.1": Exercise(grade_corners),
    "06.2": Exercise(grade_cube),
    "06.3": Exercise(grade_atan),
    "06.4": Exercise(grade_columns),
    "06.5": Exercise(grade_trace),
}
