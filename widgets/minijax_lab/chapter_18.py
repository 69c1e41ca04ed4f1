"""Questions and exercises of chapter 18, "Kernels"."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax_lab.answers import difference
from minijax_lab.evidence import not_in_the_kernel
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "18.r1": Prediction(
        2,
        "1 MiB in and 1 MiB out; what is in between stays in registers.",
        "the fusions of chapter 13",
        because={
            4: "Without fusion the product would be written, and read again.",
            6: "That is a kernel for each of three operations.",
        },
        unit="MiB",
    ),
    "18.r2": Prediction(
        1,
        "The loop is one equation, which carries its body once.",
        "the loops of chapter 10",
        because={10: "Python's `for` is unrolled; `fori_loop` is not."},
    ),
    "18.r3": Prediction(
        "nothing",
        "Arrays do not change: a new one comes back.",
        "`at` in chapter 01",
        because={"writes": "That is what a ref does, and an array does not."},
    ),
    "18.p1": Prediction(
        8,
        "Program 1 reads elements 4 to 7 and writes block 0.",
        because={
            0: "The output's index map is 1 - i: block 0 is written by program 1.",
            2: "Index maps count blocks, not elements.",
        },
    ),
    "18.p2": Prediction(
        4,
        "A program sees one block.",
        because={8: "That is the whole array; the block shape is (4,)."},
    ),
}

PLACES = [8, 8, 6, 2]
WHAT = (
    "the first row of program (1, 2)",
    "its first column",
    "the number of programs",
    "the number of blocks that the second spec visits",
)


def grade_places(answers: Any) -> str | None:
    """Which blocks an index map names."""
    try:
        given = [int(answer) for answer in answers]
    except (TypeError, ValueError):
        given = []
    if len(given) != len(PLACES):
        return "Give a list of four numbers."
    for answer, right, what in zip(given, PLACES, WHAT, strict=True):
        if answer != right:
            return f"{what[0].upper()}{what[1:]} is not {answer}."
    return None


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _differs(found: Any, right: np.ndarray, x: np.ndarray) -> str | None:
    """A sentence if a result has another shape or other numbers."""
    found = np.asarray(found)
    if found.shape != right.shape:
        return f"For x of shape {x.shape} the result has shape {found.shape}."
    told = difference(found, right, 1e-4, 1e-4)
    if told:
        return f"For x of shape {x.shape} the numbers are others. {told}"
    return None


def recorded_of(function: Callable[..., Any], *args: np.ndarray) -> Any:
    """What the kernel of a function fetches and writes; None if it has no kernel."""
    from minijax_lab.explain.pallas_kernels import record_kernel

    try:
        return record_kernel(function, args, {})
    except ValueError:
        return None


def all_in_the_kernel(function: Callable[..., Any], *args: np.ndarray) -> str | None:
    """A sentence if there is no kernel, or if something is computed beside it."""
    if recorded_of(function, *args) is None:
        return "There is no pallas_call in it."
    return not_in_the_kernel(function, *args)


def grade_row_sums(row_sums: Callable[..., Any]) -> str | None:
    """Sums of rows, with a start and an index map that counts blocks."""
    from minijax.experimental.pallas import tpu as pltpu

    watched = pltpu.InterpretParams(uninitialized_memory="nan")
    for shape in ((8, 16), (12, 24)):
        x = _random(*shape)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                np.asarray(row_sums(x, watched))
        except IndexError as error:
            return f"The interpreter says: {str(error).splitlines()[0]}"
        if "uninitialized" in said.getvalue():
            return "A program reads the output before any program wrote there."
        wrong = _differs(row_sums(x), x.sum(1), x)
        if wrong:
            return wrong
    return all_in_the_kernel(row_sums, x)


def grade_pool(pool: Callable[..., Any]) -> str | None:
    """Squares of 2 x 2, each number fetched once, in blocks of at most 2 KiB."""
    for shape in ((16, 32), (48, 16)):
        x = _random(*shape)
        right = x.reshape(shape[0] // 2, 2, shape[1] // 2, 2).max((1, 3))
        wrong = _differs(pool(x), right, x)
        if wrong:
            return wrong
        record = recorded_of(pool, x)
        if record is None:
            return "There is no pallas_call in it."
        if record.fetched > x.nbytes:
            return f"{record.fetched:,} B are fetched, and x has {x.nbytes:,} B."
    beside = not_in_the_kernel(pool, x)
    if beside:
        return beside
    big = _random(64, 64)
    record = recorded_of(pool, big)
    block = max(o.itemsize * math.prod(o.block) for o in record.of_role("input"))
    if block > 2048:
        return f"A program holds {block:,} B of x."
    return None


def grade_layer_norm(layer_norm: Callable[..., Any]) -> str | None:
    """A layer norm of rows that blocks of 8 need not divide; fit for a GPU."""
    import minijax

    for rows in (32, 20, 3):
        x = _random(rows, 128, seed=rows) + 1
        right = x - x.mean(1, keepdims=True)
        right /= np.sqrt(x.var(1, keepdims=True) + 1e-5)
        wrong = _differs(layer_norm(x), right, x)
        if wrong:
            return wrong
    x = _random(32, 128)
    record = recorded_of(layer_norm, x)
    if record is None:
        return "There is no pallas_call in it."
    if record.fetched > x.nbytes:
        return f"{record.fetched:,} B are fetched, and x has {x.nbytes:,} B."
    beside = not_in_the_kernel(layer_norm, x)
    if beside:
        return beside
    try:
        traced = minijax.jit(layer_norm).trace(x)
        traced.lower(lowering_platforms=("cuda",))
    except NotImplementedError as error:
        return f"For a GPU: {error}"
    return None


EXERCISES = {
    "18.1": Exercise(grade_places),
    "18.2": Exercise(grade_row_sums),
    "18.3": Exercise(grade_pool),
    "18.4": Exercise(grade_layer_norm),
}
