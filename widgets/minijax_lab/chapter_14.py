"""Questions and exercises of chapter 14, "Ahead of time"."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax_lab.answers import list_complaint, same, text_of
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "14.r1": Prediction(
        1,
        "print runs while the function is traced; the second call finds a program.",
        "the puzzle of chapter 02",
        because={
            2: "That is a function without `jit`; a program that is kept has no print.",
            0: "Tracing runs the Python function once, with everything that is in it.",
        },
    ),
    "14.r2": Prediction(
        3,
        "float32[3], float32[4] and int32[3] are three keys.",
        "the keys in chapter 03",
        because={
            2: "The dtype is part of the key, as well as the shape.",
            4: "The last call has the type of the first one, whatever its numbers are.",
        },
    ),
    "14.r3": Prediction(
        2,
        "None is a part of the structure and no leaf.",
        "the registry in chapter 04",
        because={3: "None holds no number: it belongs to the structure."},
    ),
    "14.p1": Prediction(
        1.5,
        "The program has the number that `rate` had while the function was traced.",
        because={
            300.0: "That needs the Python function, which looks `rate` up.",
            "NameError": "That needs the name `scaled`; the bytes hold no Python.",
        },
    ),
    "14.p2": Prediction(
        "TypeError",
        "A compiled program is machine code for one signature; only jit compiles anew.",
        because={
            "compiles": "That is what `jit` does, before it looks into its cache."
        },
    ),
    "14.p3": Prediction(
        1,
        "It was traced once, when it was exported, with a name in place of a size.",
        because={
            4: "The three calls run a program; there is no Python left to trace.",
            3: "That is `jit`, which traces anew for each shape.",
            0: "Exporting traces the function, as every transformation does.",
        },
    ),
}

CALLS = "runs refused refused refused runs runs refused runs refused".split()
MACHINES = {"kernels": [4, 1, 4], "one pass": "h100", "copies": "tpu"}

# What another process does with the file: it has no function, and no notebook.
RUNNER = """
import json
import sys

import minijax.numpy as jnp
import numpy as np
from minijax import export, grad

try:
    with open(sys.argv[1], "rb") as file:
        kept = export.deserialize(bytearray(file.read()))
    x = np.asarray(json.loads(sys.argv[2]), np.float32)
    value = kept.call(x)
    slope = grad(lambda x: jnp.sum(kept.call(x)))(x)
    print(json.dumps([np.asarray(value).tolist(), np.asarray(slope).tolist()]))
except Exception as error:
    print(json.dumps(f"{type(error).__name__}: {error}".splitlines()[0]))
"""


def grade_calls(answers: Any) -> str | None:
    """Which of nine calls run and which are refused."""
    what = "words, one for each call"
    return list_complaint(answers, CALLS, what, CALLS)


def grade_spread(kept: Any) -> str | None:
    """One program for every number of rows from 2 on; 1 row is refused."""
    from minijax.export import Exported

    if not isinstance(kept, Exported):
        return f"Give what export(...)(...) returns, not a {type(kept).__name__}."
    for rows in (2, 3, 50):
        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        try:
            found = np.asarray(kept.call(x))
        except Exception as error:
            return f"With {rows} rows: {str(error).splitlines()[0]}"
        if not np.allclose(found, x.std(0, ddof=1), rtol=1e-4, atol=1e-6):
            right = x.std(0, ddof=1)
            return f"Of {rows} rows it gives {found}, not {right}."
    try:
        found = np.asarray(kept.call(np.ones((1, 4), np.float32)))
    except ValueError:
        return None
    return f"It takes 1 row, and gives {found}; say that b is at least 2."


def grade_pack(pack: Callable[..., Any]) -> str | None:
    """Bytes that another process calls and differentiates, without the source."""
    secret = np.float32(np.random.default_rng(14).uniform(1.0, 2.0))

    def function(x: Any) -> Any:
        return jnp.sin(secret * x) * x

    x = np.asarray([0.5, -1.0, 2.0], np.float32)
    packed = pack(function, minijax.ShapeDtypeStruct(x.shape, x.dtype))
    if not isinstance(packed, (bytes, bytearray)):
        return f"Give bytes, not an object of class {type(packed).__name__}."
    said = in_another_process(bytes(packed), x)
    if isinstance(said, str):
        return f"In a process of its own: {said}"
    value, slope = (np.asarray(part, np.float32) for part in said)
    if not np.allclose(value, np.sin(secret * x) * x, rtol=1e-5):
        return f"There it gives {value}, not {function(x)}."
    right = np.sin(secret * x) + secret * x * np.cos(secret * x)
    if not np.allclose(slope, right, rtol=1e-4):
        return f"There its derivative is {slope}, not {right}."
    return None


def in_another_process(packed: bytes, x: np.ndarray) -> Any:
    """Returns what `RUNNER` prints of the bytes: two lists, or a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        path.write_bytes(packed)
        command = [sys.executable, "-c", RUNNER, str(path), json.dumps(x.tolist())]
        paths = os.pathsep.join(path for path in sys.path if path)
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
    if done.returncode or not done.stdout:
        return (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    return json.loads(done.stdout.splitlines()[-1])


def grade_machines(found: Any) -> str | None:
    """Three differences between softmax on a CPU, an H100 and a TPU."""
    if not isinstance(found, dict) or set(found) != set(MACHINES):
        return 'Give a dict with the keys "kernels", "one pass" and "copies".'
    kernels = found["kernels"]
    if not isinstance(kernels, (list, tuple)) or [*kernels] != MACHINES["kernels"]:
        return f"The kernels are not {kernels}: count them in the three views."
    for question in ("one pass", "copies"):
        said = set(re.split(r"\W+", str(found[question]).lower()))
        if said & {"cpu", "h100", "tpu"} != {MACHINES[question]}:
            return f'"{question}" is not {found[question]!r}.'
    return None


def grade_message(function: Callable[..., Any]) -> str | None:
    """The program of the file at the chapter's beginning, as a function of Python."""
    for number in (1, 2, 3, 6, 7, 27, 97, 871, 3711, 77_031, 837_799):
        rest, steps = number, 0
        while rest > 1:
            rest = rest // 2 if rest % 2 == 0 else 3 * rest + 1
            steps += 1
        found = function(number)
        if not same(found, steps):
            told = f"For {number:,} it is {steps}, and yours gives {text_of(found)}."
            if number > 100_000:
                told += " On the way there are numbers that 32 bits cannot hold."
            return told
    return None


EXERCISES = {
    "14.1": Exercise(grade_calls),
    "14.2": Exercise(grade_spread),
    "14.3": Exercise(grade_pack),
    "14.4": Exercise(grade_machines),
    "14.5": Exercise(grade_message),
}
