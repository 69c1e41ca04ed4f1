"""Questions and exercises of chapter 19, "Kernels that matter"."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import make_jaxpr
from minijax_lab.answers import first_wrong
from minijax_lab.chapter_18 import recorded_of
from minijax_lab.evidence import count, not_in_the_kernel, wrong_for
from minijax_lab.grading import Exercise, Prediction
from minijax_lab.kernel_puzzles import numbers

PREDICTIONS = {
    "19.r1": Prediction(
        1,
        "A block that is there already is not fetched again.",
        "the sums of columns in chapter 18",
        because={2: "Only if another block came between."},
    ),
    "19.r2": Prediction(
        8,
        "4 bytes are read, and 4 written.",
        "the roofline of chapter 13",
        because={4: "The result has to be written, too."},
        unit="B",
    ),
    "19.r3": Prediction(
        "result",
        "The derivative of exp is exp: its result is all that is needed.",
        "the residuals of chapter 07",
        because={"argument": "Then exp would be computed once more."},
    ),
    "19.p1": Prediction(
        1024,
        "Three arrays come in and one goes out, 256 KiB each.",
        because={768: "The output has to be written, too."},
        unit="KiB",
    ),
    "19.p2": Prediction(
        16384,
        "Two arrays of 4,096 KiB, each written once and read once.",
        because={
            8192: "Each of the two is written and read.",
            4096: "That is the size of one of the two arrays.",
        },
        unit="KiB",
    ),
    "19.p3": Prediction(
        8,
        "2 of x, since a row of x stays; and all 3 of y for each of 2 rows.",
        because={
            5: "That would be each block once; y's come again with the second row.",
            12: "A block of x stays while j runs.",
        },
    ),
    "19.p4": Prediction(
        7,
        "The second row begins with the block of y that the first one ended with.",
        because={8: "At the turn one block stays."},
    ),
}

FETCHED = [3, 12, 12, 4, 10]
WHAT = (
    "x in the grid (3, 4)",
    "y in the grid (3, 4)",
    "x in the grid (4, 3)",
    "y in the grid (4, 3)",
    "y, there and back",
)


def grade_fetches(answers: Any) -> str | None:
    """How many blocks two orders of a grid fetch."""
    sentence = "It is not {answer} blocks of {name}."
    return first_wrong(answers, FETCHED, WHAT, sentence)


def grade_online(online: Callable[..., Any]) -> str | None:
    """A softmax's largest number and sum, from parts."""
    rng = np.random.default_rng(0)
    cases = {
        "random numbers": [rng.normal(size=5) for _ in range(4)],
        "numbers that grow": [np.arange(3.0) + 3 * n for n in range(4)],
        "numbers below zero": [-5 - np.arange(3.0), np.array([-4.0])],
        "large numbers": [np.array([1000.0, 1001.0]), np.array([1002.0])],
        "a part of -inf": [np.array([-np.inf, 0.0]), np.array([-np.inf, 1.0])],
        "a row that begins with a part of -inf alone": [
            np.array([-np.inf, -np.inf]),
            np.array([1.0, 2.0]),
        ],
    }
    for what, parts in cases.items():
        row = np.concatenate(parts)
        with np.errstate(all="ignore"):
            top, weight = online(parts)
        if not np.isclose(top, row.max()):
            return f"For {what} the largest should be {row.max():g}, and is {top:g}."
        right = np.exp(row - row.max()).sum()
        if not np.isclose(weight, right):
            return f"For {what} the sum should be {right:.4f}, and is {weight:.4f}."
    parts = cases["numbers that grow"]
    with np.errstate(all="ignore"):
        lent = online(OneAtATime(parts))
    if not np.allclose(lent, online(parts)):
        return (
            "For parts of which each is gone when the next one comes, the result is "
            "another: keep of a part no more than two numbers."
        )
    return None


class OneAtATime(Sequence):
    """Parts of which each is NaN as soon as the next one is asked for, for good."""

    def __init__(self, parts: list[np.ndarray]) -> None:
        self.parts = parts
        self.numbers = range(len(parts))
        self.asked = [0]  # of all slices together, as is the part that is lent
        self.lent: list[np.ndarray] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            some = copy.copy(self)
            some.numbers = self.numbers[which]
            return some
        while self.lent:
            self.lent.pop()[:] = np.nan
        number = self.numbers[which]
        part = self.parts[number].copy()
        if number < self.asked[0]:
            part[:] = np.nan
        self.asked[0] = max(number, self.asked[0])
        self.lent.append(part)
        return part


def grade_layer(layer: Callable[..., Any]) -> str | None:
    """A product with bias and relu in one kernel."""
    for n, d, m in ((16, 32, 16), (32, 48, 64)):
        args = x, w, b = numbers([(n, d), (d, m), (m,)], n)
        complaint = wrong_for(f"{n} rows", layer(*args), np.maximum(x @ w + b, 0))
        if complaint:
            return complaint
    record = recorded_of(layer, *args)
    if record is None:
        return "There is no pallas_call in it."
    beside = not_in_the_kernel(layer, *args)
    if beside:
        return beside
    kernels = count(make_jaxpr(layer)(*args), "pallas_call")
    if kernels > 1:
        return f"There are {kernels} kernels; one of them is asked for."
    for operand in (*record.of_role("input"), *record.of_role("output")):
        held = operand.itemsize * math.prod(operand.block)
        if held > 1024:
            return f"A program holds {held:,} B of {operand.name}; 1,024 are allowed."
    if record.written > 4 * n * m:
        return (
            f"{record.written:,} B are written, and the result has {4 * n * m:,} B: "
            "the last axis of the grid should be that of the sum."
        )
    return None


def grade_causal(causal: Callable[..., Any]) -> str | None:
    """Attention to what came before, without fetching what comes after."""
    for n, width in ((32, 8), (64, 16)):
        q, k, v = numbers([(n, width)] * 3, n)
        scores = q @ k.T / math.sqrt(width)
        scores[np.triu_indices(n, 1)] = -np.inf
        e = np.exp(scores - scores.max(1, keepdims=True))
        right = e / e.sum(1, keepdims=True) @ v
        complaint = wrong_for(f"{n} rows", causal(q, k, v), right)
        if complaint:
            return complaint
    record = recorded_of(causal, q, k, v)
    if record is None:
        return "There is no pallas_call in it."
    if record.fetched > 24_000:
        return f"{record.fetched:,} B are fetched, and 24,000 B are enough."
    for operand in (*record.of_role("input"), *record.of_role("output")):
        held = math.prod(operand.block)
        if held > 16 * width:
            return (
                f"A program holds {held // width} rows of {operand.name}; blocks of 16 "
                "queries and of 16 keys are asked for."
            )
    # Queries may be scaled before; that is little beside the products.
    return not_in_the_kernel(causal, q, k, v, allowed=frozenset({"mul", "div"}))


EXERCISES = {
    "19.1": Exercise(grade_fetches),
    "19.2": Exercise(grade_online),
    "19.3": Exercise(grade_layer),
    "19.4": Exercise(grade_causal),
}
