"""Questions and exercises of chapter 20, "Calling out"."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, make_jaxpr, pure_callback, vmap
from minijax_lab.answers import difference, list_complaint
from minijax_lab.evidence import equations, is_ordered
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "20.r1": Prediction(
        2,
        "float32[3] and int32[3] are two programs, and each was traced once.",
        "the keys in chapter 03",
        because={
            3: "The second call finds the program of the first.",
            1: "The dtype is part of the key.",
        },
    ),
    "20.r2": Prediction(
        "residuals",
        "They are what the backward function needs of the forward one.",
        "custom_vjp in chapter 11",
        because={
            "gradient": "There is no gradient yet: the backward function makes it."
        },
    ),
    "20.r3": Prediction(
        1,
        "All examples go through one loop together; its arrays have one more axis.",
        "the rules of loops in chapter 10",
        because={
            5: "vmap does not copy the program for each example.",
            7: "That is how often the body runs.",
        },
    ),
    "20.p1": Prediction(
        "ACBDBD",
        "Tracing runs Python's prints, once; each run prints B and D.",
        because={
            "ABCDABCD": "That is the function without `jit`.",
            "ABCDBD": "Tracing comes to its end before anything runs.",
            "ACBD": "Both calls run the program.",
        },
    ),
    "20.p2": Prediction(
        1,
        "Python gets all examples at once, as one array.",
        because={5: "That is `sequential`."},
    ),
    "20.p3": Prediction(
        "ValueError",
        "A native function is opaque: no rule says what its derivative is.",
        because={
            "zeros": "A wrong gradient without a word would be worse than an error."
        },
    ),
}

COUNTS = [1, 3, 4, 1, 5, 1]


def grade_counts(answers: Any) -> str | None:
    """How many lines six programs print."""
    return list_complaint(answers, COUNTS)


def grade_ranks(ranks: Callable[..., Any]) -> str | None:
    """A callback with the right type, which takes all examples at once."""
    calls = []

    def host(x: Any) -> Any:
        calls.append(np.shape(x))
        return np.argsort(np.argsort(np.asarray(x), axis=-1), axis=-1)

    rows = np.random.default_rng(20).normal(size=(4, 6)).astype(np.float32)
    right = np.argsort(np.argsort(rows, axis=-1), axis=-1)
    found = np.asarray(jit(lambda x: ranks(host, x))(rows[0]))
    if found.shape != (6,) or found.dtype != np.int32:
        return f"The result is {found.dtype}{list(found.shape)}, not int32[6]."
    if not np.array_equal(found, right[0]):
        told = difference(found, right[0])
        return f"The values are others than the ranks that Python returned. {told}"
    calls.clear()
    together = np.asarray(vmap(lambda x: ranks(host, x))(rows))
    if not np.array_equal(together, right):
        return f"Under vmap the values are others. {difference(together, right)}"
    if len(calls) != 1:
        return f"Under vmap Python was called {len(calls)} times; once is enough."
    return None


def grade_halving(halving: Callable[..., Any]) -> str | None:
    """A loop that reports each step, in order, as a part of the program."""
    saved, callers = [], []

    def save(step: Any, x: Any) -> None:
        saved.append((int(step), float(x)))
        callers.append(sys._getframe(1))

    compiled = jit(lambda x: halving(save, x))
    for start in (8.0, 80.0):
        saved.clear()
        callers.clear()
        found = float(compiled(start))
        minijax.effects_barrier()
        if found != start / 16:
            least = start / 16
            return f"Four halvings of {start} should give {least}, and give {found}."
        right = [(step, start / 2 ** (step + 1)) for step in range(4)]
        if saved != right:
            return f"save got {saved}, not {right}."
        if len({id(frame) for frame in callers}) < 4:
            return "One callback calls save several times; call it after each halving."
    jaxpr = make_jaxpr(lambda x: halving(save, x))(8.0)
    callbacks = [e for e in equations(jaxpr) if "callback" in e.primitive.name]
    if not any(map(is_ordered, callbacks)):
        return "The order is luck: nothing in the jaxpr is ordered."
    loose = [e.primitive.name for e in callbacks if not is_ordered(e)]
    if loose:
        return (
            f"The order is luck: an equation {loose[0]} is there that is not ordered."
        )
    return None


def grade_differentiable(differentiable: Callable[..., Any]) -> str | None:
    """An opaque pair of functions, joined into one that has a gradient."""
    calls = {"forward": 0, "backward": 0}

    def opaque(name: str, compute: Callable[..., np.ndarray]) -> Callable[..., Any]:
        def host(*arrays: Any, eps: float) -> np.ndarray:
            calls[name] += 1
            return compute(*map(np.asarray, arrays), eps).astype(np.float32)

        def call(*arrays: Any, eps: float) -> Any:
            kind = minijax.ShapeDtypeStruct(arrays[0].shape, jnp.float32)
            return pure_callback(
                lambda *given: host(*given, eps=eps),
                kind,
                *arrays,
                vmap_method="broadcast_all",
            )

        return call

    def norm(x: Any, eps: float) -> Any:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)

    def back(x: Any, dy: Any, eps: float) -> Any:
        scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return scale * (dy - x * scale**2 * (x * dy).mean(-1, keepdims=True))

    function = differentiable(opaque("forward", norm), opaque("backward", back))
    generator = np.random.default_rng(21)
    x, weight = generator.normal(size=(2, 3, 8)).astype(np.float32)
    if not np.allclose(function(x, 0.5), norm(x, 0.5), atol=1e-4):
        return "The values are others than those of the forward function."
    if not calls["forward"]:
        return "The forward function was not called."

    def loss(x: Any, weight: Any) -> Any:
        return jnp.sum(function(x, 0.5) * weight)

    calls.update(forward=0, backward=0)
    slope = jit(grad(loss))(x, weight)
    if not np.allclose(slope, back(x, weight, 0.5), atol=1e-4):
        told = difference(slope, back(x, weight, 0.5), atol=1e-4)
        return f"The gradient is another than that of the backward function. {told}"
    minijax.block_until_ready(slope)
    if calls["backward"] != 1:
        return f"The backward function was called {calls['backward']} times, not once."
    if not np.allclose(vmap(grad(loss))(x, weight), back(x, weight, 0.5), atol=1e-4):
        return "Under vmap the gradient is another."
    return None


def grade_guess(guess: Callable[..., Any]) -> str | None:
    """A compiled program that asks for a number; one of the answers may be a lie."""
    game = {"secret": 0, "lie": -1, "asked": 0}

    def ask(number: Any) -> np.bool_:
        answer = game["secret"] > int(number)
        if game["asked"] == game["lie"]:
            answer = not answer
        game["asked"] += 1
        return np.bool_(answer)

    asks = [e.primitive.name for e in equations(make_jaxpr(lambda: guess(ask))())]
    if "pure_callback" in asks:
        return (
            "It asks by pure_callback, which promises the same answer to the same "
            "question; this one may lie."
        )
    compiled = jit(lambda: guess(ask))
    for secret, lie in ((729, -1), (1, 0), (1000, 1), (500, 6), (2, 12), (999, 18)):
        game.update(secret=secret, lie=lie, asked=0)
        found = int(compiled())
        minijax.effects_barrier()
        told = f"The number was {secret}, "
        told += f"answer {lie + 1} was a lie" if lie >= 0 else "no answer was a lie"
        if found != secret:
            return f"{told}, and it says {found}."
        if not 10 <= game["asked"] <= 25:
            return f"{told}: it asked {game['asked']} times; 10 to 25 are expected."
    return None


EXERCISES = {
    "20.1": Exercise(grade_counts),
    "20.2": Exercise(grade_ranks),
    "20.3": Exercise(grade_halving),
    "20.4": Exercise(grade_differentiable),
    "20.5": Exercise(grade_guess),
}
