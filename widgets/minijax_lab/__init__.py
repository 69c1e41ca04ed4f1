"""What the course's notebooks call: predictions, checks, hints, refreshing."""

import os
from typing import Any

from minijax.support import traceback_filtering, user_source
from minijax_lab.grading import check, hint, predict, solution, yours
from minijax_lab.kernel_puzzles import puzzle
from minijax_lab.sabotage import sabotage
from minijax_lab.tiny_pieces import piece

__all__ = [
    "check",
    "hint",
    "piece",
    "predict",
    "puzzle",
    "sabotage",
    "solution",
    "yours",
]


def _interpreter(made: type, **options: Any) -> None:
    from minijax_lab.interpreter_check import interpreter

    interpreter(made, **options)


def _primitive(function: Any, plain: Any) -> None:
    from minijax_lab.primitive_check import primitive

    primitive(function, plain)


# `check.interpreter(MyBatchTrace)` stands beside `check("02.1", ...)`.
check.interpreter = _interpreter  # type: ignore[attr-defined]
check.primitive = _primitive  # type: ignore[attr-defined]

# Frames of the course are not the user's code.
user_source.register_exclusion(os.path.dirname(__file__) + os.sep)
traceback_filtering.register_exclusion(os.path.dirname(__file__) + os.sep)
