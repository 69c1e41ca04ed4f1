"""The numbers of equations in the names of operations (`levels.py` says what for)."""

from __future__ import annotations

import re

# Without "@", at which XLA cuts a name off.
MARK = "equation."
MARKED = re.compile(r"\bequation\.(\d+)/")


def equations_in(name: str) -> list[int]:
    """The numbers of the equations that a name was marked with, the innermost last."""
    return [int(number) for number in MARKED.findall(name)]


def equation_in(name: str) -> int | None:
    """The number of the innermost equation that a name was marked with."""
    found = equations_in(name)
    return found[-1] if found else None


def unmarked(name: str) -> str:
    """A name as it is without the marks."""
    return MARKED.sub("", name)
