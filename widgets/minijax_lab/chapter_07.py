"""Questions and exercises of chapter 07, "Reverse mode"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax_lab.answers import difference, first_wrong
from minijax_lab.chapter_06 import wrong_jacobian
from minijax_lab.evidence import calls_of, count, equations, largest
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "07.r1": Prediction(
        7,
        "Two for the value, five for its change.",
        "the second view of chapter 06",
        because={2: "Those are the two of f; their changes are missing."},
    ),
    "07.r2": Prediction(
        1000,
        "One direction for each weight.",
        '"One direction at a time" in chapter 06',
        because={1: "One pass gives the change along one direction, for all together."},
    ),
    "07.r3": Prediction(
        "its rounds",
        "Python runs the loop while tracing.",
        "the view of `puzzle` in chapter 02",
        because={"a loop": "That is what `scan` writes, in chapter 10."},
    ),
    "07.p1": Prediction(
        1,
        "It is computed on the way there, and kept for the way back.",
        because={
            2: "That is a way back that runs forward again; the value was kept.",
            0: "The derivative of the product in its second factor is the sine itself.",
            3: "It does not run once for each entry: an equation is for the array.",
        },
    ),
    "07.p2": Prediction(
        1000,
        "One number came out, so one cotangent goes back: no array of all pairs.",
        because={
            1_000_000: "That is forward mode: a direction for each entry.",
            3000: "Three arrays are kept, and each has 1000 numbers.",
            1: "That is the result; the cotangent of x is as large as x.",
        },
    ),
}

KEPT = [0, 1, 1, 3]


def grade_kept(answers: Any) -> str | None:
    """How many arrays the way back of four functions needs."""
    return first_wrong(answers, KEPT, "abcd", "{name} does not need {answer}.")


STEPS = {
    "used once": ([("y", "x", 2.0), ("out", "y", 3.0)], 6.0),
    "used twice": ([("y", "x", 2.0), ("out", "y", 3.0), ("out", "x", 5.0)], 11.0),
    "of which a part is never used": (
        [("y", "x", 2.0), ("z", "x", 7.0), ("out", "y", 3.0)],
        6.0,
    ),
    "used by two that meet again": (
        [("y", "x", 2.0), ("z", "y", 4.0), ("z", "x", 1.0), ("out", "z", -1.0)],
        -9.0,
    ),
    "of which the result takes nothing": ([("y", "x", 2.0)], 0.0),
}


class Factor(float):
    """A slope that notes when it is multiplied with."""

    noted: list[float] = []

    def __mul__(self, other: Any) -> Any:
        Factor.noted.append(float(self))
        return float(self) * other

    __rmul__ = __mul__


def grade_back(back: Callable[..., Any]) -> str | None:
    """Slopes of chains in which values are used once, twice and never."""
    for how, (steps, right) in STEPS.items():
        try:
            found = back(list(steps))
        except KeyError as error:
            return f"A value {how}: there is no cotangent of {error} in {steps}."
        if found != right:
            return f"A value {how}: {steps} gives {found}, and should give {right}."
    Factor.noted.clear()
    chain = [
        ("y", "x", Factor(2.0)),
        ("z", "y", Factor(3.0)),
        ("out", "z", Factor(5.0)),
    ]
    back(chain)
    if Factor.noted[:1] == [2.0]:
        return (
            "The step nearest to x was taken first: that is forward mode. Begin with "
            "the result, and go from the last step to the first."
        )
    return None


def grade_safe_roots(safe_roots: Callable[..., Any]) -> str | None:
    """Roots of what is positive, and a gradient without NaN on the way."""
    from minijax_lab.explain.backward import record_grad

    x = np.array([4.0, 0.0, -1.0, 0.25], np.float32)
    value = np.asarray(safe_roots(x))
    if value.shape != () or not np.allclose(value, 2.5):
        return f"safe_roots({x}) should be 2.5 and is {value}."
    closed = minijax.make_jaxpr(minijax.grad(safe_roots))(x)
    made = {eqn.primitive.name for eqn in equations(closed)}
    made |= {eqn.params.get("name") for eqn in equations(closed)}
    for forbidden in ("is_finite", "ne", "isnan", "nan_to_num"):
        if forbidden in made:
            return f"Its gradient has {forbidden}: cure it before the root."
    found = np.asarray(minijax.grad(safe_roots)(x))
    right = np.array([0.25, 0.0, 0.0, 1.0])
    if not np.allclose(found, right):
        return f"The gradient should be {right} and is {found}."
    # Without -1, whose root is NaN on the way forward, if it is taken and thrown away.
    for bad in record_grad(safe_roots, x[[0, 1, 3]], values=True).first:
        if bad.what == "NaN":
            return f"A NaN arises, and is repaired afterwards: {bad.text}."
    return None


def grade_rows(rows: Callable[..., Any]) -> str | None:
    """A Jacobian by one vmap of a vjp."""
    x = np.array([0.5, -1.0, 2.0], np.float32)
    if (wrong := wrong_jacobian(rows, x)) is not None:
        return wrong
    if any("jacrev" in waiting for waiting in calls_of(rows, x, of=jnp.sin)):
        return "`jacrev` runs f in it: write what jacrev does, with vjp and vmap."
    sizes = [
        count(make_jaxpr(lambda x: rows(lambda x: m @ jnp.sin(x), x))(x))  # noqa: B023
        for m in (np.ones((2, 3), np.float32), np.ones((5, 3), np.float32))
    ]
    if sizes[0] != sizes[1]:
        return (
            f"It has {sizes[0]} equations for 2 results and {sizes[1]} for 5: a loop "
            "over the rows was written out. Use vmap."
        )
    ran: list[int] = []

    def energy(x: Any) -> Any:
        ran.append(1)
        return jnp.sum(jnp.sin(x) * x)[None]

    closed = make_jaxpr(lambda x: rows(energy, x))(np.ones(1000, np.float32))
    # Once to see the shape of the result is allowed.
    if len(ran) > 2:
        return f"f ran {len(ran)} times; one vjp is enough for all rows."
    most = largest(closed)
    if most > 1000:
        return f"For one result of 1000 entries an array has {most:,} numbers."
    return None


def grade_by_hand(scaled: Any, total: Any, product: Any) -> str | None:
    """What x gets on the way back of 3 x, sum(x) and W @ x, for x of four entries."""
    generator = np.random.default_rng(7)
    W = generator.integers(-3, 4, size=(3, 4)).astype(np.float32)
    cases: list[tuple[str, Callable[..., Any], np.ndarray]] = [
        ("a", scaled, 3.0 * np.eye(4, dtype=np.float32)),
        ("b", total, np.ones((1, 4), np.float32)),
        ("c", lambda c: product(W, c), W),
    ]
    for name, back, matrix in cases:
        for _ in range(2):
            c = generator.integers(1, 9, size=len(matrix)).astype(np.float32)
            told = difference(back(c[0] if name == "b" else c), c @ matrix)
            if told:
                return f"{name}, for c = {c.tolist()}: {told}"
    return None


EXERCISES = {
    "07.1": Exercise(grade_kept),
    "07.2": Exercise(grade_back),
    "07.3": Exercise(grade_safe_roots),
    "07.4": Exercise(grade_rows),
    "07.5": Exercise(grade_by_hand),
}
