"""Questions and exercises of chapter 18, "Kernels"."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
from minijax_lab.answers import first_wrong
from minijax_lab.evidence import not_in_the_kernel, wrong_for
from minijax_lab.grading import Exercise, Prediction
from minijax_lab.kernel_puzzles import numbers

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
    "The first row of program (1, 2)",
    "Its first column",
    "The number of programs",
    "The number of blocks that the second spec visits",
)


def grade_places(answers: Any) -> str | None:
    """Which blocks an index map names."""
    return first_wrong(answers, PLACES, WHAT, "{name} is not {answer}.")


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
        (x,) = numbers([shape], 0)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                np.asarray(row_sums(x, watched))
        except IndexError as error:
            return f"The interpreter says: {str(error).splitlines()[0]}"
        if "uninitialized" in said.getvalue():
            return "A program reads the output before any program wrote there."
        wrong = wrong_for(f"x of shape {x.shape}", row_sums(x), x.sum(1))
        if wrong:
            return wrong
    return all_in_the_kernel(row_sums, x)


def grade_pool(pool: Callable[..., Any]) -> str | None:
    """Squares of 2 x 2, each number fetched once, in blocks of at most 2 KiB."""
    for shape in ((16, 32), (48, 16)):
        (x,) = numbers([shape], 0)
        right = x.reshape(shape[0] // 2, 2, shape[1] // 2, 2).max((1, 3))
        wrong = wrong_for(f"x of shape {x.shape}", pool(x), right)
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
    (big,) = numbers([(64, 64)], 0)
    record = recorded_of(pool, big)
    block = max(o.itemsize * math.prod(o.block) for o in record.of_role("input"))
    if block > 2048:
        return f"A program holds {block:,} B of x."
    return None


def grade_layer_norm(layer_norm: Callable[..., Any]) -> str | None:
    """A layer norm of rows that blocks of 8 need not divide; fit for a GPU."""
    for rows in (32, 20, 3):
        x = numbers([(rows, 128)], rows)[0] + 1
        right = x - x.mean(1, keepdims=True)
        right /= np.sqrt(x.var(1, keepdims=True) + 1e-5)
        wrong = wrong_for(f"x of shape {x.shape}", layer_norm(x), right)
        if wrong:
            return wrong
    (x,) = numbers([(32, 128)], 0)
    record = recorded_of(layer_norm, x)
    if record is None:
        return "There is no pallas_call in it."
    if record.fetched > x.nbytes:
        return f"{record.fetched:,} B are fetched, and x has {x.nbytes:,} B."
    rows = max(
        o.block[0] for o in (*record.of_role("input"), *record.of_role("output"))
    )
    if rows > 8:
        return f"A program holds {rows} rows; blocks of 8 are asked for."
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
