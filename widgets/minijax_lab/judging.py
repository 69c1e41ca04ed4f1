"""Judges what a notebook hands in, apart from what the notebook says about it.

`minijax course check` makes a `Judge` before the first cell runs. It keeps the graders,
and what they stand on: a cell that replaces one of these functions is found out.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from minijax_lab import grading, kernel_puzzles, solutions, tiny_pieces
from minijax_lab.grading import Outcome, TookTooLong
from minijax_lab.piece_source import Written

# Whose functions must be the same when an answer is judged: the graders' own, and what
# they call. What is loaded later, or added, is not looked at.
TRUSTED = ("minijax_lab", "numpy", "builtins", "json", "math", "minijax")
PUBLIC = ("minijax", "minijax.numpy", "minijax.lax")
# The tables of a chapter's questions and graders.
TABLES = ("EXERCISES", "PREDICTIONS", "PUZZLES", "PIECES", "OWN_CHECKS", "PROGRAMS")


def load_all() -> None:
    """Imports every chapter's graders, so that no cell can come before them."""
    for path in sorted(Path(solutions.PACKAGE).glob("chapter_*.py")):
        importlib.import_module(f"minijax_lab.{path.stem}")
    for name in ("minijax", "minijax.numpy", "minijax.lax", "numpy.testing"):
        importlib.import_module(name)
    for name in (
        "tiny_score",
        "tiny_programs",
        "tiny_kernels",
        "explain.pallas_kernels",
    ):
        importlib.import_module(f"minijax_lab.{name}")


def trusted_modules() -> Iterator[tuple[str, ModuleType]]:
    """Yields the modules that are loaded and that graders stand on, by name."""
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if package in TRUSTED and (package != "minijax" or name in PUBLIC):
            if isinstance(module, ModuleType):
                yield name, module


def code_of(value: Any) -> Any:
    """Returns what a function runs, or None for what is not written in Python."""
    if not isinstance(value, FunctionType):
        return None
    return value.__code__, value.__defaults__, value.__closure__


def functions_of(name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yields a module's functions, classes and modules, methods and tables' entries."""
    for attribute, value in list(vars(module).items()):
        if callable(value) or isinstance(value, ModuleType):
            yield f"{name}.{attribute}", value
        own = name.startswith("minijax_lab")
        if own and attribute in TABLES and isinstance(value, dict):
            for key, entry in list(value.items()):
                yield f"{name}.{attribute}[{key!r}]", entry
        if own and isinstance(value, type) and value.__module__ == name:
            for method, function in list(vars(value).items()):
                yield f"{name}.{attribute}.{method}", function


class Judge:
    """Grades answers by what was loaded when it was made.

    Called with an exercise's name and what was handed in, it returns the outcome, and
    None for a name that no exercise has.
    """

    def __init__(self) -> None:
        load_all()
        self.before = {
            name: (value, code_of(value))
            for module_name, module in trusted_modules()
            for name, value in functions_of(module_name, module)
        }
        self.graders: dict[str, Callable[..., str | None]] = {}
        for module_name, module in trusted_modules():
            if module_name.startswith("minijax_lab.chapter_"):
                for name, exercise in module.EXERCISES.items():
                    self.graders[name] = exercise.grade
        self.puzzles = dict.fromkeys(kernel_puzzles.PUZZLES, kernel_puzzles.graded)
        self.pieces = dict.fromkeys(tiny_pieces.PIECES, tiny_pieces.judge)

    def changed(self) -> str:
        """Returns the name of a function that is another one now, or ""."""
        now = {
            name: value
            for module_name, module in trusted_modules()
            for name, value in functions_of(module_name, module)
        }
        for name, (value, code) in self.before.items():
            found = now.get(name)
            if found is not value or code_of(found) != code:
                if name != "minijax_lab.grading.hand_in":
                    return name
        return ""

    def complaint(self, name: str, made: tuple[Any, ...]) -> str | None:
        """Returns what is wrong with an answer, or None."""
        if name in self.pieces:
            return self.pieces[name](made[0])
        if name in self.puzzles:
            grade = self.puzzles[name]
            told: list[str] = []
            return grading.run(lambda given: grade(name, given, told), made)
        return grading.run(self.graders[name], made)

    def __call__(self, name: str, made: tuple[Any, ...]) -> Outcome | None:
        known = {*self.graders, *self.puzzles, *self.pieces}
        if not isinstance(name, str) or name not in known or type(made) is not tuple:
            return None
        if name in self.pieces:
            if not made or type(made[0]) is not Written:
                return None
            if made[0].is_empty():
                return Outcome(name, "not tried")
        elif not made or any(thing is ... for thing in made):
            return Outcome(name, "not tried")
        try:
            reason = self.changed() or None
            if reason is None:
                complaint = self.complaint(name, made)
                reason = self.changed() or None
                if reason is None:
                    state = "passed" if complaint is None else "failed"
                    return Outcome(name, state, complaint or "")
        except (Exception, SystemExit, TookTooLong) as error:
            return Outcome(name, "failed", f"It raised {type(error).__name__}.")
        changed = f"The notebook has put something else in place of {reason}."
        return Outcome(name, "failed", changed)
