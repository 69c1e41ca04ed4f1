"""Questions and exercises of chapter 12, "When it goes wrong"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import grad, lax, make_jaxpr
from minijax_lab.answers import list_complaint
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "12.r1": Prediction(
        2,
        "1.0 and 2.0 are weak float32 and share a program; np.float32 is not.",
        "the cell with `np.float32` in chapter 03",
    ),
    "12.r2": Prediction(
        2,
        "Both run for all examples, and a selection follows.",
        "the puzzle of chapter 10",
        because={1: "That is a `cond` of one example; vmap has many at once."},
    ),
    "12.r3": Prediction(
        "TypeError",
        "The carry goes in as int32 and comes out as float32.",
        '"The carry" in chapter 10',
    ),
    "12.p1": Prediction(
        "UnexpectedTracerError",
        "The list kept a tracer, and the program that it belonged to is finished.",
        because={
            7.0: "That would be 6.0 + 1.0, but the list holds a tracer and no number.",
            "TracerBoolConversionError": "Nothing asks for a truth value here.",
        },
    ),
    "12.p2": Prediction(
        "nan",
        "where computes both cases; zero times the derivative's NaN is NaN.",
        because={0.0: "That holds if `where` ran only the case that it chooses."},
    ),
}

KINDS = "bool none integer type array type concrete mask none type".split()
FAULTS = {2: "sub", 6: "max", 7: "broadcast_in_dim", 9: "select_n", 20: "reduce_max"}


def grade_kinds(answers: Any) -> str | None:
    """Which exception each of ten functions raises under jit."""
    what = "words, one for each function"
    return list_complaint(answers, KINDS, what, KINDS)


def grade_normalize(normalize: Callable[..., Any]) -> str | None:
    """Finite gradients at zero, right values and gradients elsewhere."""
    zero = np.zeros(3, np.float32)
    x = np.asarray([3.0, 0.0, 4.0], np.float32)
    if not np.array_equal(np.asarray(normalize(zero)), zero):
        return f"normalize(0) is {np.asarray(normalize(zero))}, not zeros."
    found = np.asarray(normalize(x))
    if not np.allclose(found, x / 5.0, rtol=1e-4):
        return f"normalize([3, 0, 4]) is {found}, not [0.6, 0, 0.8]."
    tiny = np.asarray([3e-4, 0.0, 4e-4], np.float32)
    if not np.allclose(np.asarray(normalize(tiny)), [0.6, 0, 0.8], rtol=1e-5):
        return "Near zero it is no longer of length 1: was something added to the norm?"
    total = grad(lambda x: normalize(x).sum())
    at_zero = np.asarray(total(zero))
    if not np.isfinite(at_zero).all():
        return f"Its gradient at zero is {at_zero}."
    if at_zero.any():
        return f"Its gradient at zero should be 0 and is {at_zero}."
    slope = np.asarray(total(x))
    right = (np.ones(3) - x * x.sum() / 25) / 5
    if not np.allclose(slope, right, rtol=1e-5, atol=1e-6):
        return f"The gradient at [3, 0, 4] is {slope}, not {right}."
    text = str(make_jaxpr(lambda x: normalize(x))(x))
    if "nan_to_num" in text or "is_finite" in text:
        return "Its jaxpr shows nan_to_num: by then the information is lost."
    return None


def grade_first_nan(first_nan: Callable[..., Any]) -> str | None:
    """The primitive of the first equation that makes a NaN."""

    def late(x: Any) -> Any:
        return lax.mul(lax.exp(x), lax.log(lax.neg(x)))

    bottom = np.array([1, 0, 0], np.float32)  # a constant of the last case's program

    def opposite(x: Any) -> Any:
        # [4, inf, -inf]: their sum is a NaN, and none of them is one.
        quotient = lax.div(x, bottom)
        return lax.sub(quotient, quotient)

    cases: list[tuple[Any, tuple, Any]] = [
        (late, (np.float32(2.0),), "log"),
        (lambda x, y: lax.add(lax.div(x, y), x), (np.float32(0), np.float32(0)), "div"),
        (lambda x: lax.sqrt(lax.sub(x, np.float32(9))), (np.float32(4),), "sqrt"),
        (lambda x: lax.sin(x), (np.float32(1),), None),
        (lambda x: lax.mul(x, lax.log(x)), (np.float32(0),), "mul"),
        (opposite, (np.array([4, 1, -1], np.float32),), "sub"),
    ]
    for function, args, right in cases:
        try:
            found = first_nan(function, *args)
        except KeyError:
            if function is not opposite:
                raise
            program = make_jaxpr(function)(*args)
            return (
                f"Your walk has no value for the constant a of\n{program}\n"
                "Its variable is in `.jaxpr.constvars`, its value in `.consts`."
            )
        found = getattr(found, "name", found)
        if found != right:
            return (
                f"It says {found!r}, not {right!r}, of\n{make_jaxpr(function)(*args)}"
            )
    return None


def grade_faults(found: Any) -> str | None:
    """Which primitive's rule each of five faults breaks."""
    if not isinstance(found, dict):
        return "Give a dict from the fault's number to the primitive's name."
    missing = sorted(set(FAULTS) - set(found))
    if missing:
        return f"Fault {missing[0]} is not in your dict."
    wrong = [n for n in FAULTS if str(found[n]).strip() != FAULTS[n]]
    if wrong:
        right = len(FAULTS) - len(wrong)
        return f"{right} of {len(FAULTS)} are found; look again at fault {wrong[0]}."
    return None


EXERCISES = {
    "12.1": Exercise(grade_kinds),
    "12.2": Exercise(grade_normalize),
    "12.3": Exercise(grade_first_nan),
    "12.4": Exercise(grade_faults),
}
