"""`check("tiny")`: the learner's own JAX, scored.

Each program is traced by the learner's `tiny` and by minijax, whose numbers and printed
programs are held to JAX's by its tests. Two things are counted: the programs whose
numbers agree, and those that wrote the same equations.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
from minijax_lab.grading import TookTooLong, time_limit

SECONDS = 20
X = np.array([0.5, 1.5, 2.0], np.float32)

# Text, and the function; the operators are all that `tiny` and minijax share.
PROGRAMS: list[tuple[str, Callable[[Any], Any]]] = [
    ("x + x", lambda x: x + x),
    ("x * 2.0", lambda x: x * 2.0),
    ("x / 4.0", lambda x: x / 4.0),
    ("1.0 / x", lambda x: 1.0 / x),
    ("x * x + x", lambda x: x * x + x),
    ("(x + 1.0) * (x + 2.0)", lambda x: (x + 1.0) * (x + 2.0)),
    ("x * x * x", lambda x: x * x * x),
    ("x / (x + 1.0)", lambda x: x / (x + 1.0)),
    ("2.0 * x", lambda x: 2.0 * x),
    ("1.0 + x", lambda x: 1.0 + x),
    ("x - 1.0", lambda x: x - 1.0),
    ("1.0 - x", lambda x: 1.0 - x),
    ("-x", lambda x: -x),
    ("x ** 2", lambda x: x**2),
]


# When the learner's file was last changed, as of the last score.
seen: dict[str, int] = {}


def as_saved() -> Any:
    """Returns the module `tiny.trace`, read again if its file was changed."""
    tiny = importlib.import_module("tiny.trace")
    changed = os.stat(str(tiny.__file__)).st_mtime_ns
    if seen.setdefault(str(tiny.__file__), changed) != changed:
        seen[str(tiny.__file__)] = changed
        importlib.reload(tiny)
    return tiny


def score() -> None:
    """Prints how many programs the `tiny` on Python's path gets right."""
    try:
        tiny = as_saved()
    except ImportError:
        print("tiny: there is no tiny/trace.py beside this notebook.")
        return
    except Exception as error:
        print(f"tiny: tiny/trace.py raised {type(error).__name__}: {error}")
        return
    values = equations = 0
    missing: list[str] = []
    try:
        with time_limit(SECONDS):
            for text, function in PROGRAMS:
                right, same = compared(tiny, function)
                values += right
                equations += same
                if not right:
                    missing.append(text)
    except TookTooLong:
        print(f"tiny: stopped after {SECONDS} seconds.")
        return
    count = len(PROGRAMS)
    print(
        f"tiny: {values} of {count} programs give JAX's numbers, "
        f"{equations} of {count} write JAX's equations."
    )
    if missing:
        print(f"  next: {missing[0]}")


def compared(tiny: Any, function: Callable[[Any], Any]) -> tuple[bool, bool]:
    """Whether a program's numbers agree, and whether its equations are the same."""
    closed = minijax.make_jaxpr(function)(X)
    try:
        program = tiny.trace(function, X)
        right = bool(np.allclose(program(X), function(X)))
    except TookTooLong:
        raise
    except Exception:
        return False, False
    names = [str(primitive) for _, primitive, _ in program.equations]
    return right, right and names == [eqn.primitive.name for eqn in closed.eqns]
