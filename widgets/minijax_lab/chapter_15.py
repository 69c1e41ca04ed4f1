"""Questions and exercises of chapter 15, "A network from end to end"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.core.language import Tracer
from minijax_lab.answers import difference, list_complaint
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "15.r1": Prediction(
        "TypeError",
        "A class that is not registered is a leaf, and no array.",
        "the unregistered class of chapter 04",
        because={
            "nothing": "`jit` has to know which arrays are in an argument.",
            "ValueError": "It is about the kind of an argument, not about its value.",
        },
    ),
    "15.r2": Prediction(
        2,
        "A key gives the same numbers each time: two weights need two keys.",
        "the key that is used twice, in chapter 05",
        because={1: "Then both weights would be equal."},
    ),
    "15.r3": Prediction(
        1,
        "The shapes stay, so the program of the first step serves all of them.",
        "the keys of `jit` in chapter 03",
        because={100: "Only new shapes, dtypes, trees or static values are traced."},
    ),
    "15.p1": Prediction(
        0,
        "The module says how to compute; the weights are in the dict `params`.",
        because={
            2: "A kernel and a bias: those are in `params`, not in the module.",
            1: "Its only field is the number of results, which is no array.",
        },
    ),
    "15.p2": Prediction(
        9,
        "Four weights with two running means each, and one count.",
        because={
            4: "Adam keeps two means for each weight, and the count of steps.",
            8: "One more: the count of steps.",
            12: "The weights themselves are not in the state.",
        },
    ),
    "15.p3": Prediction(
        0,
        "The same equations in the same order: a program is all there is to compare.",
        because={1: "Not one. The printed programs are equal, line by line."},
    ),
}

PLACES = "weights state neither state neither weights neither state".split()


def grade_places(answers: Any) -> str | None:
    """Where each of eight things is kept."""
    what = "words, one for each thing"
    return list_complaint(answers, PLACES, what, ("weights", "state", "neither"))


PATHS = {
    "Dense_0/kernel": True,
    "Block_1/Attention_0/Dense_2/kernel": True,
    "kernel": True,
    "Dense_0/bias": False,
    "Block_0/Norm_1/scale": False,
    "Embed_0/embedding": False,
    "kernels_0/bias": False,
    "Mix_0/kernel_scale": False,
    "kernel/scale": False,
}


def grade_chosen(chosen: Callable[[str], Any]) -> str | None:
    """Which weights decay, by their path."""
    for path, right in PATHS.items():
        if bool(chosen(path)) is not right:
            verb = "decays" if right else "does not decay"
            return f"{path} {verb}, and chosen({path!r}) is {chosen(path)!r}."
    return None


def lion_by_hand(weights: np.ndarray, grads: list[np.ndarray], rate: float) -> Any:
    """Lion's updates for one weight, with its usual 0.9 and 0.99."""
    mean, found = np.zeros_like(weights, dtype=float), []
    for grad in grads:
        found.append(-rate * np.sign(0.9 * mean + 0.1 * grad))
        mean = 0.99 * mean + 0.01 * grad
    return found


def grade_lion(lion: Callable[..., Any]) -> str | None:
    """A transformation with one running mean, whose updates are signs."""
    rows = np.array([[1.0, -2.0, 0.3], [-9.5, 1.0, 0.2], [-0.2, 30.0, -0.9]])
    rows = np.concatenate([rows, -rows[::-1], rows]).astype(np.float32)
    weights: Any = {"a": np.ones(3, np.float32), "b": {"c": np.zeros(3, np.float32)}}
    grads = [{"a": row, "b": {"c": -row[::-1]}} for row in rows]
    for rate in (0.5, 0.01):
        made = lion(rate)
        begin = made.init(weights)
        before = [np.array(leaf) for leaf in minijax.tree.leaves(begin)]
        traces: list[int] = []

        def update(
            grad: Any, state: Any, made: Any = made, traces: Any = traces
        ) -> Any:
            traces.append(1)
            return made.update(grad, state, weights)

        jitted, state = minijax.jit(update), begin
        right = lion_by_hand(weights["a"], list(rows), rate)
        other = lion_by_hand(weights["a"], [-row[::-1] for row in rows], rate)
        for step, grad in enumerate(grads):
            updates, state = jitted(grad, state)
            for name, found, expected in (
                ("a", updates["a"], right[step]),
                ("b/c", updates["b"]["c"], other[step]),
            ):
                told = difference(found, expected)
                if told:
                    return f"lion({rate}), update {step + 1} of {name}. {told}"
        if len(traces) != 1:
            return f"Under jit it is traced {len(traces)} times in {len(rows)} steps."
        size = sum(np.size(leaf) for leaf in minijax.tree.leaves(state))
        if size > 7:
            return (
                f"Two weights of 3 numbers need 6 numbers in the state, and perhaps a "
                f"count; there are {size}."
            )
        after = [np.array(leaf) for leaf in minijax.tree.leaves(begin)]
        if any(not np.array_equal(x, y) for x, y in zip(before, after)):
            return "The first state is another one now: return a new one."
    return None


def programs() -> list[tuple[str, Callable[..., Any], Callable[..., Any], bool]]:
    """Pairs of functions of a dict, and whether they have the same program."""

    def longhand(given: Any) -> Any:
        product = given["x"] * given["w"]
        return jnp.tanh(product) + 1.0

    def inner(scale: float) -> Callable[..., Any]:
        def of(x: Any) -> Any:
            return x * scale

        return minijax.jit(of)

    two, three = inner(2.0), inner(3.0)
    return [
        (
            "one function, written in two ways",
            longhand,
            lambda d: jnp.tanh(d["x"] * d["w"]) + 1.0,
            True,
        ),
        (
            "x * w and w * x",
            lambda d: d["x"] * d["w"],
            lambda d: d["w"] * d["x"],
            False,
        ),
        ("x + x and 2 * x", lambda d: d["x"] + d["x"], lambda d: 2 * d["x"], False),
        (
            "x * 2 and x * 3",
            lambda d: d["x"] * 2.0,
            lambda d: d["x"] * 3.0,
            False,
        ),
        (
            "x * 2 and x * 3, jitted inside",
            lambda d: two(d["x"]),
            lambda d: three(d["x"]),
            False,
        ),
        (
            "the sum over axis 0, and over axis 1, of a square",
            lambda d: jnp.sum(d["m"], 0),
            lambda d: jnp.sum(d["m"], 1),
            False,
        ),
        (
            "sin(x), and sin(x) with one more equation",
            lambda d: jnp.sin(d["x"]),
            lambda d: (jnp.sin(d["x"]), d["w"] + 1.0)[0],
            False,
        ),
        (
            "sin and cos of x",
            lambda d: jnp.sin(d["x"]),
            lambda d: jnp.cos(d["x"]),
            False,
        ),
        (
            "its gradient, and its gradient",
            minijax.grad(lambda d: longhand(d).sum()),
            minijax.grad(lambda given: longhand(given).sum()),
            True,
        ),
    ]


def grade_same(same_program: Callable[..., Any]) -> str | None:
    """Whether two functions have the same program, without running them."""
    row = np.array([1.0, 2.0], np.float32)
    given = {"x": row, "w": row, "m": np.eye(2, dtype=np.float32)}
    for what, first, second, right in programs():
        calls: list[bool] = []

        def watched(function: Callable[..., Any], calls: Any = calls) -> Any:
            def noted(leaves: Any) -> Any:
                calls.append(all(isinstance(x, Tracer) for x in leaves.values()))
                return function(leaves)

            return noted

        found = same_program(watched(first), watched(second), given)
        if not isinstance(found, (bool, np.bool_)) or bool(found) is not right:
            return f"Of {what}: expected {right}, got {found!r}."
        if not all(calls):
            return f"Of {what}: a function ran on numbers; tracing is enough."
    return None


EXERCISES = {
    "15.1": Exercise(grade_places),
    "15.2": Exercise(grade_chosen),
    "15.3": Exercise(grade_lion),
    "15.4": Exercise(grade_same),
}
