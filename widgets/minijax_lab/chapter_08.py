"""Questions and exercises of chapter 08, "vmap"."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax_lab.answers import difference, list_complaint, listed
from minijax_lab.evidence import count, mapped
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "08.r1": Prediction(
        (4,),
        "The axis of 8 is summed over, that of 4 is kept.",
        "the shapes in chapter 01",
    ),
    "08.r2": Prediction(
        1, "Tracing runs it once, on tracers.", "the puzzle of chapter 02"
    ),
    "08.r3": Prediction(
        1,
        "The key is shared, so the number is.",
        '"Loops, and many examples" in chapter 05',
        because={3: "That needs a key for each example."},
    ),
    "08.p1": Prediction(
        1,
        "The function runs once, on a tracer that stands for one example.",
        because={
            16: "That is what a loop over the examples would print.",
            17: "That is a loop and one trace more.",
            0: "Tracing is a run of your Python.",
        },
    ),
    "08.p2": Prediction(
        0,
        "Now the examples are in the first operand, whose axes come first.",
        because={1: "That was `W @ x`, with the examples in the second operand."},
    ),
}

AXES = [1, 0, 0, 0, 1]


def grade_axes(answers: Any) -> str | None:
    """Where the batch axis is after each of five operations."""
    return list_complaint(answers, AXES)


def grade_similarities(similarities: Callable[..., Any]) -> str | None:
    """Every row with every row, in at most eight equations."""
    generator = np.random.default_rng(0)
    a = generator.normal(size=(5, 3)).astype(np.float32)
    b = generator.normal(size=(7, 3)).astype(np.float32)
    right = np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))
    found = np.asarray(similarities(a, b))
    if found.shape != right.shape:
        return f"For 5 and 7 rows its shape is {found.shape}, not (5, 7)."
    told = difference(found, right)
    if told:
        return f"The values differ from those of slow_similarities. {told}"
    closed = make_jaxpr(lambda a, b: similarities(a, b))(a, b)
    many = count(closed) - count(closed, "jit")
    if many > 8:
        return f"Its jaxpr has {many} equations; expected at most 8."
    return None


def grade_matmul_rule(matmul_rule: Callable[..., Any]) -> str | None:
    """The batching rule of a product of matrices, for all places of the axes."""
    generator = np.random.default_rng(1)
    size, x_shape, y_shape = 6, (2, 3), (3, 4)
    for x_axis in (None, 0, 1, 2):
        for y_axis in (None, 0, 1, 2):
            if x_axis is None and y_axis is None:
                continue
            xs = generator.normal(size=(size, *x_shape)).astype(np.float32)
            ys = generator.normal(size=(size, *y_shape)).astype(np.float32)
            if x_axis is None:
                xs = np.broadcast_to(xs[0], xs.shape)
            if y_axis is None:
                ys = np.broadcast_to(ys[0], ys.shape)
            x = xs[0] if x_axis is None else np.moveaxis(xs, 0, x_axis)
            y = ys[0] if y_axis is None else np.moveaxis(ys, 0, y_axis)
            told = f"x_axis={x_axis}, y_axis={y_axis}"
            (result, axis), maps = mapped(matmul_rule, x, x_axis, y, y_axis)
            if maps:
                return f"With {told} a vmap runs in it: write what its rule does."
            result = np.asarray(result)
            if axis not in (0, 1, 2) or result.ndim != 3:
                return f"With {told} it gives shape {result.shape} and axis {axis}."
            front = np.moveaxis(result, axis, 0)
            if front.shape != (size, 2, 4):
                return (
                    f"With {told} the result has shape {result.shape} and the axis "
                    f"should not be {axis}."
                )
            wrong = difference(front, xs @ ys, rtol=1e-4)
            if wrong:
                return f"With {told} the values are wrong. {wrong}"
            made = functools.partial(product_of, matmul_rule, x_axis, y_axis)
            text = str(make_jaxpr(made)(x, y))
            if text.count("dot_general") != 1:
                return f"With {told} its jaxpr has not exactly one dot_general."
    return None


def product_of(
    matmul_rule: Callable[..., Any], x_axis: Any, y_axis: Any, x: Any, y: Any
) -> Any:
    """The product that a learner's rule makes, without its axis."""
    return matmul_rule(x, x_axis, y, y_axis)[0]


def grade_columns(columns: Callable[..., Any]) -> str | None:
    """The layer on columns, without a transpose."""
    generator = np.random.default_rng(2)
    w = generator.normal(size=(4, 8)).astype(np.float32)
    b = generator.normal(size=4).astype(np.float32)
    x = generator.normal(size=(8, 16)).astype(np.float32)
    found, maps = mapped(columns, w, b, x)
    found = np.asarray(found)
    right = np.tanh(w @ x + b[:, None])
    if found.shape != right.shape:
        return f"Its shape is {found.shape}, not {right.shape}."
    told = difference(found, right, rtol=1e-4)
    if told:
        return f"The values differ from those of with_transposes. {told}"
    text = str(make_jaxpr(lambda w, b, x: columns(w, b, x))(w, b, x))
    if "transpose[" in text:
        return "Its jaxpr shows a transpose."
    if not maps:
        return "No vmap runs in it: the layer is to be mapped, over which axis?"
    return None


def axis_puzzles() -> list[tuple[Callable[..., Any], tuple[Any, ...], Any]]:
    """Ten functions of one example, what they are called with, and what shall come."""

    def numbers(*shape: int) -> np.ndarray:
        return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)

    A, B, C, T = numbers(3, 4), numbers(4, 5), numbers(4, 3), numbers(3, 2, 4)
    u, v = numbers(3), numbers(4)
    tree = {"w": u, "b": np.float32(1.0)}
    return [
        (jnp.dot, (A, v), A @ v),
        (jnp.sum, (A,), A.sum(0)),
        (jnp.multiply, (u, v), np.outer(u, v)),
        (jnp.multiply, (u, v), np.outer(v, u)),
        (jnp.dot, (A, C), np.einsum("ij,ji->i", A, C)),
        (jnp.dot, (A, B), A @ B),
        (jnp.dot, (A, B), (A @ B).T),
        (jnp.dot, (T, B), np.einsum("inj,jk->ikn", T, B)),
        (lambda p, x: p["w"] * x + p["b"], (tree, v), np.outer(u, v) + 1.0),
        (lambda x: (jnp.sum(x), x), (A,), (A.sum(1), A.T)),
    ]


def grade_pairs(answers: Any) -> str | None:
    """Ten pairs (in_axes, out_axes) under which vmap gives what shall come."""
    puzzles = axis_puzzles()
    given = listed(answers)
    if given is None or len(given) != len(puzzles):
        return f"Give a list of {len(puzzles)} pairs (in_axes, out_axes)."
    for number, (pair, (function, args, right)) in enumerate(zip(given, puzzles), 1):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return f"Puzzle {number}: give a pair (in_axes, out_axes), not {pair!r}."
        in_axes, out_axes = pair
        axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        try:
            found = minijax.vmap(function, axes, out_axes)(*args)
        except Exception as error:
            said = str(error).partition("\nIt happened")[0]
            return f"Puzzle {number}: {' '.join(said.split())}"
        pairs = zip(found, right) if isinstance(right, tuple) else [(found, right)]
        for got, expected in pairs:
            told = difference(got, expected)
            if told:
                return f"Puzzle {number}: {told}"
    return None


# What a BatchTrace runs, from the smallest: the examples are in axis 1 of x, in axis 0
# of y, and z is shared.
MAPPED = (
    "jnp.sin(x)",
    "x * z",
    "x + y",
    "jnp.cos(z) * y",
    "jnp.dot(x, z)",
    "jnp.stack(jnp.split(x, 3))",
    "lax.sort((y, x))[1]",
    "minijax.jit(lambda z: z + x)(z)",
    "lax.scan(lambda c, a: (c * a, c + a), 1.0, y)[1]",
    "minijax.vmap(lambda a: a * x - z)(z)",
    "minijax.grad(lambda a: jnp.sum(jnp.sin(a * y)))(x)",
)


def grade_trace(made: type) -> str | None:
    """A BatchTrace of the learner's in the engine: numbers, no needless equation."""
    from minijax_lab.interpreter_check import Run, trace_complaint

    numbers = np.random.default_rng(8).normal(size=(3, 3, 4)).astype(np.float32)
    x, y, z = numbers[0], numbers[1].T, numbers[2, :, 0]
    names = {"jnp": jnp, "lax": lax, "minijax": minijax}

    def run(text: str) -> Run:
        function = eval(f"lambda x, y, z: {text}", names)
        mapped = minijax.vmap(function, (1, 0, None))
        return Run(text, mapped, (x, y, z), [", with the examples in front"])

    needless = "what no operand has examples of is computed once."
    return trace_complaint("BatchTrace", made, map(run, MAPPED), needless)


EXERCISES = {
    "08.1": Exercise(grade_axes),
    "08.2": Exercise(grade_similarities),
    "08.3": Exercise(grade_matmul_rule),
    "08.4": Exercise(grade_columns),
    "08.5": Exercise(grade_pairs),
    "08.6": Exercise(grade_trace),
}
