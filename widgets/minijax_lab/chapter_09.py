"""Questions and exercises of chapter 09, "Composing"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax_lab.answers import difference, list_complaint
from minijax_lab.evidence import count, largest
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "09.r1": Prediction(
        5,
        "One pass for each entry of the argument: a column each.",
        '"One direction at a time" in chapter 06',
        because={1000: "That is what reverse mode takes: a pass for each result."},
    ),
    "09.r2": Prediction(
        1,
        "One pass backward reaches all weights.",
        '"A linear program" in chapter 07',
        because={1000: "That is forward mode: a pass for each weight."},
    ),
    "09.r3": Prediction(
        (4, 8),
        "With None the argument is shared: every example sees all of it.",
        '"in_axes and out_axes" in chapter 08',
        because={(8,): "That would be a row of `w`, for `in_axes=(0, 0)`."},
    ),
    "09.p1": Prediction(
        16,
        "A gradient for each example, beside one gradient of their sum.",
        because={
            1: "That would be so if the order did not matter. Compare the shapes.",
            128: "That is how many numbers `of_each` returns; `of_total` returns 8.",
        },
    ),
    "09.p2": Prediction(
        1000,
        "A gradient and its change are both as large as the argument.",
        because={
            1_000_000: "That is the Hessian, and nothing in the program builds it.",
            999: "The differences have 999 entries, and the gradient one more.",
        },
    ),
    "09.p3": Prediction(
        4,
        "The outer `grad` goes forward and back through both loops of the inner one.",
        because={
            2: "That is what forward mode around it gives: no loop is added.",
            3: "Both loops of the inner `grad` have to be gone back through.",
        },
    ),
}

# The columns of 200 entries; the rows of 100; 3 columns of one and 3 rows of the other.
VECTORS = [200, 100, 6]


def grade_vectors(answers: Any) -> str | None:
    """How many vectors three orders of a Jacobian send through a function."""
    return list_complaint(answers, VECTORS)


def grade_orbit(orbit: Callable[..., Any]) -> str | None:
    """The solution of Kepler's equation, differentiated twice, and what is kept."""
    from minijax_lab.explain.residuals import residuals

    times = np.array([0.3, 1.0, 2.5], np.float32)
    places = times.astype(np.float64)
    for _ in range(30):
        slope = 1.0 - 0.5 * np.cos(places)
        places = places - (places - 0.5 * np.sin(places) - times) / slope
    slope = 1.0 - 0.5 * np.cos(places)
    first, second = 1.0 / slope, -0.5 * np.sin(places) / slope**3
    function: Callable[..., Any] = orbit
    for told, right in (
        ("values", places),
        ("first derivatives", first),
        ("second derivatives", second),
    ):
        single = float(function(times[1]))
        if not np.allclose(single, right[1], rtol=1e-4, atol=1e-4):
            expected = f"expected {right[1]:.4f}, got {single:.4f}"
            return f"The {told} are wrong: at 1.0 {expected}."
        many = np.asarray(minijax.vmap(function)(times))
        if not np.allclose(many, right, rtol=1e-4, atol=1e-4):
            said = difference(many, right, 1e-4, 1e-4)
            return f"Under vmap the {told} are wrong. {said}"
        function = minijax.grad(function)
    kept = residuals(orbit, times[1]).bytes
    if kept > 16:
        return f"Its gradient keeps {kept} bytes."
    plain = count(minijax.make_jaxpr(orbit)(times[1]))
    back = count(minijax.make_jaxpr(minijax.grad(orbit))(times[1]))
    if back > plain + 25:
        return (
            f"orbit has {plain} equations and its gradient {back}: the steps are "
            "differentiated. The derivative needs the solution only."
        )
    return None


def bend(x: Any) -> Any:
    """A function whose Hessian is not constant, and not diagonal."""
    return jnp.sum((x[1:] - x[:-1]) ** 4) + jnp.sum(x * x)


def bend_hessian(x: np.ndarray) -> np.ndarray:
    """The Hessian of `bend`, written out."""
    found = 2.0 * np.eye(len(x))
    for i, gap in enumerate(np.diff(x)):
        found[i : i + 2, i : i + 2] += 12.0 * gap**2 * np.array([[1, -1], [-1, 1]])
    return found


def grade_curvature(curvature: Callable[..., Any]) -> str | None:
    """Some rounds of multiplying with the Hessian, without the Hessian."""
    generator = np.random.default_rng(0)
    scales = generator.uniform(0.5, 3.0, 12).astype(np.float32)
    x = generator.normal(size=12).astype(np.float32)
    start = generator.normal(size=12).astype(np.float32)
    cases: list[tuple[str, Callable[..., Any], np.ndarray]] = [
        ("sum(scales * x * x)", lambda x: jnp.sum(scales * x * x), np.diag(2 * scales)),
        ("a chain of springs", bend, bend_hessian(x.astype(np.float64))),
    ]
    for told, function, matrix in cases:
        for steps in (1, 6):
            v = start.astype(np.float64)
            for _ in range(steps):
                v = matrix @ v
                v /= np.linalg.norm(v)
            right = v @ matrix @ v
            found = np.asarray(curvature(function, x, start, steps))
            if found.shape != ():
                return f"It returns an array of shape {found.shape}, not a number."
            if not np.allclose(found, right, rtol=1e-3):
                return (
                    f"For {told} and steps={steps}: expected {right:.4f}, "
                    f"got {float(found):.4f}."
                )
    closed = make_jaxpr(lambda x, v: curvature(bend, x, v, 3))(x, start)
    most = largest(closed)
    if most > len(x):
        return f"For {len(x)} entries its program has an array of {most}."
    return None


def grade_clipped(clipped: Callable[..., Any]) -> str | None:
    """The mean of gradients, each of them at most so long."""
    runs = []

    def loss(w: Any, x: Any, y: Any) -> Any:
        runs.append(1)
        return (x @ w["slope"] + w["shift"] - y) ** 2

    generator = np.random.default_rng(1)
    w = {
        "slope": generator.normal(size=3).astype(np.float32),
        "shift": np.float32(0.25),
    }
    xs = generator.normal(size=(20, 3)).astype(np.float32)
    ys = generator.normal(size=20).astype(np.float32)
    for most in (1.0, 100.0):
        slope, shift = clipped_by_hand(w, xs, ys, most)
        runs.clear()
        found = clipped(loss, {k: jnp.asarray(v) for k, v in w.items()}, xs, ys, most)
        if not isinstance(found, dict) or set(found) != set(w):
            return "The result is not a dict like w."
        if np.shape(found["slope"]) != (3,) or np.shape(found["shift"]) != ():
            return f"The slope's gradient has shape {np.shape(found['slope'])}."
        same = np.allclose(found["slope"], slope, rtol=1e-3, atol=1e-4)
        if not same or not np.allclose(found["shift"], shift, rtol=1e-3, atol=1e-4):
            said = difference(found["slope"], slope, 1e-3, 1e-4)
            said = said or difference(found["shift"], shift, 1e-3, 1e-4)
            return f"With most={most} the numbers are wrong. {said}"
        if len(runs) > 3:
            return f"For {len(xs)} examples Python ran loss {len(runs)} times."
    # An example that is met exactly has a gradient of zero.
    flat = {"slope": jnp.zeros(3), "shift": jnp.float32(0.0)}
    found = clipped(loss, flat, xs, np.zeros(20, np.float32), 1.0)
    if not np.all(np.asarray(found["slope"]) == 0.0):
        return f"Where all gradients are zero, the slope's is {found['slope']}."
    return None


def clipped_by_hand(
    w: dict[str, Any], xs: np.ndarray, ys: np.ndarray, most: float
) -> tuple[np.ndarray, np.floating]:
    """The same for the loss of the check, with derivatives written out."""
    error = 2.0 * (xs @ w["slope"] + w["shift"] - ys)
    each = error[:, None] * np.concatenate([xs, np.ones((len(xs), 1))], axis=1)
    length = np.linalg.norm(each, axis=1, keepdims=True)
    mean = (each * np.minimum(1.0, most / length)).mean(axis=0)
    return mean[:3], mean[3]


EXERCISES = {
    "09.1": Exercise(grade_vectors),
    "09.2": Exercise(grade_orbit),
    "09.3": Exercise(grade_curvature),
    "09.4": Exercise(grade_clipped),
}
