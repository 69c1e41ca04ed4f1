"""Questions and exercises of chapter 00, "Start here"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import grad, make_jaxpr, vmap
from minijax_lab.answers import difference, same
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "00.p1": Prediction(
        1,
        "Python runs `double` once, to write it down; the compiled program, which "
        "runs all three times, has no print in it.",
        because={
            3: "That is Python running each call; it runs the first one only, to write "
            "the function down.",
            0: "Compiled code has no print, but Python runs the function once before, "
            "to write the program.",
            2: "That would be a program that has to be written twice; the three "
            "numbers have one type.",
        },
    ),
}


def grade_prints(times: Any) -> str | None:
    """How often does a print run in calls with shapes (3,), (3,), (4,)?"""
    if same(times, 2):
        return None
    if same(times, 3):
        return "It is not 3: a shape that it has seen needs no new program."
    return f"It is not {times!r}: a shape that is new needs a program of its own."


def grade_activation(scores: Callable[..., Any], name: Any) -> str | None:
    """`tanh` is replaced by `maximum(0, x)`, and the new primitive is named."""
    weights = np.linspace(-1, 1, 64 * 4, dtype=np.float32).reshape(64, 4)
    params = [
        {"w": weights, "b": np.zeros(4, np.float32)},
        {"w": weights[:4, :3], "b": np.ones(3, np.float32)},
    ]
    # Half of what comes into the hidden layer is negative.
    image = np.sin(np.arange(64, dtype=np.float32))
    found = [eqn.primitive.name for eqn in make_jaxpr(scores)(params, image).eqns]
    if "tanh" in found:
        return "tanh still stands in the jaxpr."
    hidden = np.maximum(0, image @ params[0]["w"] + params[0]["b"])
    right = hidden @ params[1]["w"] + params[1]["b"]
    told = difference(scores(params, image), right, 1e-3, 1e-3)
    if told:
        return f"In the hidden layer it computes other than maximum(0, x). {told}"
    if not same(name, "max"):
        return f"The new equation is not called {name!r}; its jaxpr has {found}."
    return None


def grade_accuracy(scores: Callable[..., Any], train: Callable[..., Any]) -> str | None:
    """96.5% of the training images are right, each by a network that never saw it.

    The held-out images take no part: who tries until they come out right uses them.
    Each call has other names for the digits, so only what `train` is given can help.
    """
    from minijax_lab import digits

    data = digits.load()
    images, labels = data.train_images, data.train_labels
    right = 0
    generator = np.random.default_rng(0)
    for quarter in np.array_split(np.arange(len(labels)), 4):
        seen = np.ones(len(labels), bool)
        seen[quarter] = False
        named = generator.permutation(10).astype(labels.dtype)[labels]
        params = train(images[seen], named[seen])
        found = np.asarray(vmap(scores, in_axes=(None, 0))(params, images[quarter]))
        if found.shape != (len(quarter), 10):
            return (
                "scores(params, image) must return 10 scores for one image; with vmap "
                f"over {len(quarter)} images it gave {found.shape}."
            )
        right += int(np.sum(found.argmax(axis=1) == named[quarter]))
    share = right / len(labels)
    if share < 0.5:
        return (
            f"{right} of {len(labels):,} images that were new to it are right. Does "
            "train learn from the labels that it is given? Each call has others."
        )
    if share < 0.965:
        return (
            f"{right} of {len(labels):,} images that were new to it are right, "
            f"{share:.1%}; 96.5% are asked for."
        )
    return None


def grade_own_gradient(function: Callable[..., Any], x: Any) -> str | None:
    """`grad` of a function of the learner's own agrees with a finite difference."""
    equations = len(make_jaxpr(function)(float(x)).eqns)
    if equations < 3:
        return f"Equations in its jaxpr: {equations}; take a function with at least 3."
    exact = float(grad(function)(float(x)))
    step = 1e-2 * max(1.0, abs(float(x)))
    above, below = function(float(x) + step), function(float(x) - step)
    measured = (float(above) - float(below)) / (2 * step)
    if not np.isfinite(exact):
        return f"Its derivative at {x} is {exact}; choose another point."
    if abs(exact - measured) > 0.02 * max(1.0, abs(exact)):
        return f"grad says {exact:.4f}, the difference quotient {measured:.4f}."
    return None


EXERCISES = {
    "00.1": Exercise(grade_prints),
    "00.2": Exercise(grade_activation),
    "00.3": Exercise(grade_accuracy),
    "00.4": Exercise(grade_own_gradient),
}
