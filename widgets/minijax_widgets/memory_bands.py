"""Memory of a long program: for each of the user's lines, the bytes of all its arrays.

Bars of thousands of arrays would be drawn in part only. A band has every array of its
line: as high as their bytes together, at each equation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from minijax_lab.explain.memory import Value
from minijax_lab.explain.recording import Span, count_in_words
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.scene import Scene

# Columns of a band; each stands for the most of some equations in a row.
MOST_COLUMNS = 400


@dataclass
class Band:
    """The arrays of one line.

    Attributes:
      key: the key of its mark.
      span: the line; None for arrays of no line, or of all lines that are left.
      role: how it is drawn.
      values: its arrays.
      live: their bytes together while each equation runs.
      rest: whether it stands for the lines that have no band of their own.
    """

    key: str
    span: Span | None
    role: str
    values: list[Value]
    live: list[int]
    rest: bool = False

    def told(self, name: str) -> str:
        """Returns a sentence about the band."""
        most = max(self.live)
        return (
            f"{name}: {count_in_words(len(self.values), 'array')}, at most "
            f"{size_in_words(most)} alive at once, at equation {self.live.index(most)}"
        )


def live_bytes(values: Sequence[Value], points: int) -> list[int]:
    """Returns the bytes of the arrays that are alive while each equation runs."""
    changes = [0] * (points + 1)
    for value in values:
        changes[max(value.born, 0)] += value.bytes
        changes[min(value.dies, points - 1) + 1] -= value.bytes
    return list(accumulate(changes))[:points]


# What arrays are to the backward pass, by how they are drawn.
MEANINGS = {
    "value": "an array",
    "residual": "kept for the backward pass",
    "cotangent": "made in the backward pass",
}


def role_of(value: Value) -> str:
    """Returns how an array is drawn: by what it is to the backward pass."""
    if value.kept:
        return "residual"
    return "cotangent" if value.backward else "value"


def bands(values: Sequence[Value], points: int, most: int) -> list[Band]:
    """Returns at most `most` bands, in the order of the program; the last one has the
    arrays of all lines that are left."""
    groups: dict[object, list[Value]] = defaultdict(list)
    for value in values:
        line = value.span and (value.span.source, value.span.line)
        groups[line, role_of(value)].append(value)
    largest = sorted(groups.values(), key=lambda own: -max(live_bytes(own, points)))
    rest = [value for own in largest[most - 1 :] for value in own]
    kept = largest if len(largest) <= most else largest[: most - 1]
    kept.sort(key=lambda own: own[0].born)
    found = [(own[0].span, role_of(own[0]), own, False) for own in kept]
    if len(largest) > most:
        found.append((None, "constant", rest, True))
    return [
        Band(f"l{number}", span, role, own, live_bytes(own, points), is_rest)
        for number, (span, role, own, is_rest) in enumerate(found)
    ]


def draw_band(
    scene: Scene,
    band: Band,
    name: str,
    bottom: float,
    scale: float,
    least: float,
    x_of: Callable[[float], float],
) -> None:
    """Draws the bytes of a band as an area that stands on `bottom`."""
    each = -(-len(band.live) // MOST_COLUMNS)
    corners = []
    for start in range(0, len(band.live), each):
        high = max(band.live[start : start + each])
        corners.append((x_of(start), bottom - max(high * scale, least if high else 0)))
    corners.append((x_of(len(band.live)), corners[-1][1]))
    told = band.told(name)
    scene.area(
        corners,
        key=band.key,
        role=band.role,
        base=bottom,
        go=band.live.index(max(band.live)),
        tell=told,
        label=told,
    )
