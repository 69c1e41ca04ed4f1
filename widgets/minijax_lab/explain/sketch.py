"""A sketch: a curve, boxes or cells that say one thing, as marks in pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain.recording import Recording


@dataclass(kw_only=True)
class Sketch(Recording):
    """A drawing and its text twin.

    Each mark is a list: ["line", role, points], ["dot", role, x, y],
    ["box", role, x, y, w, h, text], or ["text", role, x, y, text].
    """

    kind = "sketch"

    twin: str
    width: float
    height: float
    marks: list[list[Any]] = field(default_factory=list)
    # What the colours mean in this sketch, by their roles.
    meanings: dict[str, str] = field(default_factory=dict)
