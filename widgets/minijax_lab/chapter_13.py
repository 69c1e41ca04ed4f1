"""Questions and exercises of chapter 13, "XLA: passes and fusion"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.support import event_watching
from minijax_lab.answers import difference, list_complaint
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "13.r1": Prediction(
        10,
        "Tracing runs the Python loop: 5 turns, 2 equations each.",
        "the loop in chapter 02",
        because={2: "The loop is Python's, so each turn writes its own equations."},
    ),
    "13.r2": Prediction(
        "running",
        "Tracing and compiling know shapes and dtypes only.",
        "the keys of the cache in chapter 03",
        because={
            "tracing": "A tracer has a type and no value.",
            "compiling": "One compiled program serves all values of a type.",
        },
    ),
    "13.r3": Prediction(
        1,
        "The scan is one loop of the program; its body is there once.",
        "the puzzle of chapter 10",
        because={100: "That is how often it runs."},
    ),
    "13.p1": Prediction(
        10,
        "20 arrays become 2: one is read, one is written.",
        because={
            20: "The one loop still reads x once and writes the result once.",
            5: "Each of the ten operations reads one array and writes one.",
        },
    ),
    "13.p2": Prediction(
        2,
        "Each of the two kernels computes the sine for itself.",
        because={
            1: "So it is in your jaxpr. XLA found it cheaper to compute it again.",
        },
    ),
    "13.p3": Prediction(
        24,
        "Two arrays of 4 MiB less are written, and two less are read.",
        because={
            32: "They are not only written but read, too.",
            8: "The two reductions still read an array each.",
        },
        unit="MiB",
    ),
    "13.p4": Prediction(
        "no",
        "A sine is many operations: it waits for arithmetic, not for bytes.",
        because={"yes": "That holds where memory is what one waits for."},
    ),
}

COUNTS = [1, 2, 1, 3]
MEBI = 2**20


def grade_counts(answers: Any) -> str | None:
    """Into how many kernels `tiny` puts each of four functions."""
    return list_complaint(answers, COUNTS)


def bytes_moved(function: Callable[..., Any], *args: Any) -> int:
    """What the compiled program reads and writes, in bytes."""
    from minijax_lab.explain.compiled import record_compiled

    return record_compiled(function, args, {}, "cpu").program.bytes


def some_rows(shift: float = 0.0) -> np.ndarray:
    """1024 rows of 1024 numbers, in no order."""
    generator = np.random.default_rng(13)
    return (generator.normal(size=(1024, 1024)) + shift).astype(np.float32)


def over_budget(function: Callable[..., Any], budget: float, *args: Any) -> str | None:
    """A complaint if the compiled program moves more MiB than allowed."""
    moved = bytes_moved(function, *args) / MEBI
    if moved > budget:
        return f"It moves {moved:.1f} MiB; {budget:.1f} are allowed."
    return None


def grade_by_largest(by_largest: Callable[..., Any]) -> str | None:
    """Each row by its largest entry, without sorting it."""
    x = some_rows()
    right = x / x.max(axis=-1, keepdims=True)
    told = difference(by_largest(x), right)
    if told:
        return f"The values are others: each row by its largest entry. {told}"
    return over_budget(by_largest, 12.5, x)


def grade_layer_norm(layer_norm: Callable[..., Any]) -> str | None:
    """Layer norm in fewer bytes."""
    x = some_rows(1.5) * np.linspace(0.5, 2.0, 1024, dtype=np.float32)[:, None]
    apart = np.linspace(-1000, 1000, 1024, dtype=np.float32)[:, None]
    cases = (
        ("", x, 1e-3),
        (" for rows of small variance", np.float32(2e-3) * x, 1e-3),
        (" for rows around 1,000", x + np.float32(1000), 5e-3),
        (" for rows that lie around different numbers", x + apart, 5e-3),
    )
    for where, moved, much in cases:
        wide = moved.astype(np.float64)
        mean = wide.mean(-1, keepdims=True)
        right = (wide - mean) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
        told = difference(np.asarray(layer_norm(moved)), right, atol=much)
        if told:
            formula = "(x - mean) / sqrt(variance + 1e-5)"
            return f"The values are others than {formula}{where}. {told}"
    return over_budget(layer_norm, 17.0, x)


def grade_prepare(prepare: Callable[..., Any]) -> str | None:
    """Images turned upside down, scaled, and rounded to 16 bits, in one pass."""
    generator = np.random.default_rng(14)
    images = generator.integers(0, 256, size=(32, 64, 64, 3)).astype(np.uint8)
    found = prepare(images)
    if str(getattr(found, "dtype", "")) != "bfloat16":
        return f"The result has dtype {getattr(found, 'dtype', None)}, not bfloat16."
    right = images[:, ::-1].astype(np.float32) / 127.5 - 1.0
    told = difference(np.asarray(found.astype(jnp.float32)), right, atol=1e-2)
    if told:
        return f"The values are others: turned upside down, then x / 127.5 - 1. {told}"
    budget = 1.1 * (images.nbytes + 2 * images.size) / MEBI
    complaint = over_budget(prepare, budget, images)
    if complaint:
        return complaint
    runs = programs_run(prepare, images)
    if runs != 1:
        return f"A call runs {runs} compiled programs; one `jit` around all makes one."
    return None


def programs_run(function: Callable[..., Any], *args: Any) -> int:
    """How many compiled programs a second call starts."""
    function(*args)
    started: list[str] = []

    def note(name: str, data: Any) -> None:
        if name == "execute":
            started.append(name)

    with event_watching.subscribe(note):
        function(*args)
    return len(started)


EXERCISES = {
    "13.1": Exercise(grade_counts),
    "13.2": Exercise(grade_by_largest),
    "13.3": Exercise(grade_layer_norm),
    "13.4": Exercise(grade_prepare),
}
