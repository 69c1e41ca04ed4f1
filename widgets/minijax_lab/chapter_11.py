"""Questions and exercises of chapter 11, "Custom derivatives and checkpointing"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import checkpoint, checkpoint_policies, grad, jvp, make_jaxpr, vmap
from minijax_lab.answers import difference, list_complaint
from minijax_lab.evidence import own_rules
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "11.r1": Prediction(
        (4, 8),
        "A gradient has the shape of what it is the gradient of.",
        "the first gradient in chapter 07",
        because={(): "That is the shape of the value, not of the gradient."},
    ),
    "11.r2": Prediction(
        "add",
        "Both uses change the result, so both changes count.",
        '"Break it" in chapter 07',
        because={"keep": "Then one of the two uses of x would not count."},
    ),
    "11.r3": Prediction(
        1,
        "The scan is one equation, with the body inside.",
        "the puzzle of chapter 10",
        because={
            300: "That is what a Python loop would write.",
            3: "Those are inside of the scan's one equation.",
        },
    ),
    "11.p1": Prediction(
        "same",
        "The backward pass computes all layers before it uses one, so all are alive.",
        because={
            "checkpoint": "Less is kept, but all that is computed again is alive at "
            "once in the backward pass.",
            "network": "The second run holds as much as the first one, not less.",
        },
    ),
    "11.p2": Prediction(
        2,
        "Five inputs of groups are kept, and the values of two layers: little of both.",
        because={
            1: "Then the inputs of all nine are kept.",
            9: "Then nothing is kept, and all layers are alive in the one group.",
            3: "Close: that is the square root of 9, but a layer needs two values.",
        },
    ),
    "11.p3": Prediction(
        10.0,
        "Autodiff takes your rule as it is.",
        because={
            6.0: "That is the derivative of x * x, which nobody asked for.",
            30.0: "The rule does not use x.",
        },
    ),
}

COUNTS = [1, 0, 2, 0, 1]


def grade_counts(answers: Any) -> str | None:
    """How many arrays autodiff keeps for each of five functions."""
    return list_complaint(answers, COUNTS)


def grade_softplus(softplus: Callable[..., Any]) -> str | None:
    """Values and two derivatives, for small and for large numbers."""
    points = [-1000.0, -100.0, -2.0, -0.5, 0.0, 0.5, 2.0, 100.0, 1000.0]
    for x in points:
        found, right = float(softplus(np.float32(x))), float(np.logaddexp(0.0, x))
        if not np.isclose(found, right, rtol=1e-5, atol=1e-6):
            return f"softplus({x}) is {found}, not {right:.6g}."
    slopes = [1.0 / (1.0 + np.exp(-x)) if x > -700 else 0.0 for x in points]
    for x, slope in zip(points, slopes, strict=True):
        found = float(grad(softplus)(np.float32(x)))
        if not np.isclose(found, slope, rtol=1e-5, atol=1e-6):
            return f"Its gradient at {x} is {found}, not {slope:.6g}."
    for x, slope in zip(points, slopes, strict=True):
        found = float(grad(grad(softplus))(np.float32(x)))
        bend = slope * (1.0 - slope)
        if not np.isclose(found, bend, rtol=1e-4, atol=1e-6):
            return f"Its second derivative at {x} is {found}, not {bend:.6g}."
    many = np.asarray(vmap(grad(softplus))(np.asarray(points, np.float32)))
    if not np.allclose(many, slopes, rtol=1e-5, atol=1e-6):
        return f"Under vmap its gradients are others. {difference(many, slopes)}"
    weighted = float(grad(lambda x: 3.0 * softplus(x))(np.float32(0.5)))
    if not np.isclose(weighted, 3.0 * slopes[5], rtol=1e-5):
        return (
            f"The gradient of 3 * softplus at 0.5 is {weighted:.6g}, not three times."
        )
    if not own_rules(make_jaxpr(lambda x: softplus(x))(np.float32(1.0))):
        return "Its jaxpr shows no derivative of your own."
    return None


def product_block(w1: Any, w2: Any, x: Any) -> Any:
    """Two products, with a cheap function after each."""
    return jnp.sum(jnp.sin(jnp.tanh(x @ w1) @ w2))


def cheap_chain(w1: Any, w2: Any, x: Any) -> Any:
    """One product, and much that is cheap after it."""
    return jnp.sum(jnp.tanh(jnp.sin(x @ w1 @ w2))) + jnp.sum(w1) * jnp.sum(w2)


def program_of(function: Callable[..., Any], args: tuple) -> str:
    """The text of the gradient's program."""
    return str(make_jaxpr(lambda *args: grad(function, (0, 1))(*args))(*args))


def grade_within(within: Callable[..., Any]) -> str | None:
    """For each budget: the bytes, the numbers, and as little as can be run again."""
    from minijax_lab.explain.residuals import residuals

    generator = np.random.default_rng(0)
    shapes = [(8, 32), (32, 8), (4, 8)]
    args = tuple(generator.normal(size=s).astype(np.float32) for s in shapes)
    policies = (
        checkpoint_policies.everything_saveable,
        checkpoint_policies.dots_saveable,
        checkpoint_policies.nothing_saveable,
    )
    for function in (product_block, cheap_chain):
        choices = [checkpoint(function, policy=policy) for policy in policies]
        sizes = [residuals(choice, *args).bytes for choice in choices]
        for budget in (sizes[0], sizes[0] - 1, sizes[1], sizes[1] - 1):
            best = next(
                c for c, size in zip(choices, sizes, strict=True) if size <= budget
            )
            made = within(function, budget, *args)
            if not callable(made):
                return f"It returned {type(made).__name__}, not a function."
            told = f"With a budget of {budget} bytes for {function.__name__}"
            kept = residuals(made, *args).bytes
            if kept > budget:
                return f"{told} it keeps {kept}."
            said = difference(made(*args), function(*args))
            if said:
                return f"{told} the value is another one. {said}"
            for found, right in zip(
                grad(made, (0, 1))(*args), grad(function, (0, 1))(*args), strict=True
            ):
                said = difference(found, right, rtol=1e-4)
                if said:
                    return f"{told} the gradient is another one. {said}"
            mine, least = program_of(made, args), program_of(best, args)
            for part in ("dot_general[", "= tanh", "= sin"):
                if mine.count(part) > least.count(part):
                    name = part.strip("[= ")
                    return (
                        f"{told} its gradient has {mine.count(part)} {name}; "
                        f"{least.count(part)} would do."
                    )
    return None


def grade_round_through(round_through: Callable[..., Any]) -> str | None:
    """Rounds forward; the derivative is that of its argument, in both modes."""
    x = np.asarray([-1.7, -0.2, 0.4, 0.6, 2.3], np.float32)
    found = np.asarray(round_through(x))
    told = difference(found, np.round(x))
    if told:
        return f"round_through({x}) is {found}. {told}"
    slope = np.asarray(grad(lambda x: jnp.sum(round_through(x)))(x))
    if not np.array_equal(slope, np.ones(5)):
        return f"The gradient of its sum is {slope}, not ones."
    chain = np.asarray(grad(lambda x: jnp.sum(round_through(x * 3.0) ** 2))(x))
    right = 6.0 * np.round(x * 3.0)
    if not np.allclose(chain, right):
        return f"The gradient of sum(round_through(3 x)**2) is {chain}, not {right}."
    many = np.asarray(vmap(grad(round_through))(x))
    if not np.array_equal(many, np.ones(5)):
        return f"Under vmap its gradients are {many}, not ones."
    tangent = np.asarray(jvp(round_through, (x,), (2.0 * x,))[1])
    if not np.allclose(tangent, 2.0 * x):
        return f"Its tangent is {tangent}, not the one that went in."
    return None


EXERCISES = {
    "11.1": Exercise(grade_counts),
    "11.2": Exercise(grade_softplus),
    "11.3": Exercise(grade_within),
    "11.4": Exercise(grade_round_through),
}
