"""A timeline of tens of thousands of bars, which the player draws on a canvas.

Each bar is something that is there from one point of a program to another. The player
zooms and pans, lights the bars of a step and names those near it
(`widgets/src/timeline/`); a static frame has the same bars, as fine as pixels are.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax_widgets.glyph import Drawn, line, path, rect, text_width, words
from minijax_widgets.scene import Drawings, Scene

# The size of a static picture and of a row, in pixels.
WIDTH, HEIGHT, ROW = 920, 300, 18.0
# The height of the legend under the bars.
BELOW = 24
# The opacity of bars thinner than a pixel, by the least part of it that they fill.
INKS = ((0.75, 1.0), (0.1, 0.4), (0.0, 0.1))


class Bar(NamedTuple):
    """Something that exists from `start` to `end`, drawn in the row `top`, `high` rows
    high; a click goes to the step `go`, and `said` is its name."""

    start: float
    end: float
    top: float
    high: float
    role: str
    go: int
    said: str


@dataclass(frozen=True)
class Told:
    """The end of a bar's sentence: the words `between` its two numbers, what to add to
    the points (`shift`), the `unit` behind each, and the name of whole `points`."""

    between: tuple[str, str]
    shift: int = 0
    unit: str = ""
    points: str = ""


class BarScene(Scene):
    """A picture of bars alone. `at` has the point of each step, in the bars' unit; a
    bar is lit while it is there, or, without `at`, at its own step. `legend` says what
    each role is, `sight` which part of the whole is in sight at first."""

    def __init__(
        self,
        bars: Sequence[Bar],
        told: Told,
        at: Sequence[float] | None,
        label: str,
        legend: dict[str, str],
        sight: float | None = None,
    ) -> None:
        self.rows = max(bar.top + bar.high for bar in bars)
        self.tall = min(HEIGHT, ROW * self.rows)
        super().__init__(WIDTH, self.tall + BELOW, label)
        self.bars, self.told, self.at = bars, told, at
        self.end = max(bar.end for bar in bars)
        drawn = {bar.role for bar in bars}
        self.legend = [one for one in legend.items() if one[0] in drawn]
        self.sight = sight and sight * self.end

    def to_json(self, drawings: Drawings | None = None) -> dict[str, Any]:
        """Returns the scene as the player takes it: a list for each column."""
        roles = list(dict.fromkeys(bar.role for bar in self.bars))
        said = {
            text: n for n, text in enumerate(dict.fromkeys(b.said for b in self.bars))
        }
        role_of = {role: number for number, role in enumerate(roles)}
        columns = zip(
            *(
                (
                    bar.start,
                    round(bar.end - bar.start, 9),
                    bar.top,
                    bar.high,
                    role_of[bar.role],
                    bar.go,
                    said[bar.said],
                )
                for bar in self.bars
            ),
            strict=True,
        )
        bars = {
            "columns": list(columns),
            "roles": roles,
            "said": list(said),
            "told": [
                *self.told.between,
                self.told.shift,
                self.told.unit,
                self.told.points,
            ],
            "at": self.at,
            "end": self.end,
            "rows": self.rows,
            "legend": self.legend,
            "sight": self.sight,
        }
        return super().to_json(drawings) | {"bars": bars}

    def parts(self, step: int, on: Sequence[str] = (), dark: bool = False) -> str:
        """Returns the picture at a step: where a pixel's row has bars of a role, faint
        where they fill little of it, and the step as a line."""
        tall = max(1.0, min(ROW, HEIGHT / self.rows))
        covered: dict[tuple[str, float, int], list[tuple[int, int]]] = {}
        filled: dict[tuple[str, int, int], float] = {}
        for bar in self.bars:
            long = (bar.end - bar.start) / self.end * WIDTH
            start = int(bar.start / self.end * WIDTH)
            row = int(bar.top / self.rows * self.tall / tall)
            if long < 1:
                pixel = (bar.role, row, start)
                filled[pixel] = filled.get(pixel, 0.0) + long
                continue
            end = max(start + 1, int(bar.end / self.end * WIDTH))
            covered.setdefault((bar.role, 1.0, row), []).append((start, end))
        for (role, row, start), part in filled.items():
            ink = next(ink for least, ink in INKS if part >= least)
            covered.setdefault((role, ink, row), []).append((start, start + 1))
        ways: dict[tuple[str, float], list[str]] = {}
        for (role, ink, row), runs in covered.items():
            y = (row + 0.5) * tall
            for start, end in joined(runs):
                ways.setdefault((role, ink), []).append(line([(start, y), (end, y)]))
        made = []
        for (role, ink), ends in ways.items():
            made.append(path("".join(ends), role, max(1.0, tall - 1)))
            if ink < 1:
                made[-1].has["stroke-opacity"] = str(ink)
        x = self.x_of_step(step) / self.end * WIDTH
        made.append(path(line([(x, 0), (x, self.tall)]), "text", 1.2))
        return "".join(part.svg(dark) for part in [*made, *self.below()])

    def below(self) -> list[Drawn]:
        """Returns the legend under the bars, and from where to where they go."""
        made = []
        x, y = 0.0, self.tall + 6
        for role, meaning in self.legend:
            made += [rect(x, y, 12, 12, role), words(x + 17, y + 11, meaning, size=12)]
            x += 33 + text_width(meaning, 12)
        told = self.told
        first, last = told.shift, self.end + told.shift - 1
        said = f"{told.points}{first:,} to {last:,}"
        if told.unit:
            said = f"0{told.unit} to {self.end:,.4g}{told.unit}"
            if self.end >= 1000:
                said = f"0{told.unit} to {self.end:,.0f}{told.unit}"
        made.append(words(WIDTH, y + 11, said, size=12, anchor="end"))
        return made

    def x_of_step(self, step: int) -> float:
        """Returns the point at which a step is."""
        if self.at is not None:
            return self.at[step]
        return next((bar.start for bar in self.bars if bar.go == step), 0.0)


def joined(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns runs of pixels as few that do not touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def by_size(bars: Sequence[Bar], sizes: Sequence[int]) -> list[Bar]:
    """Returns bars in rows: one of a row ends before the next begins, they are equally
    large, and larger ones stand above."""
    order = sorted(range(len(bars)), key=lambda n: (bars[n].start, -sizes[n]))
    spans = [(bars[n].start, bars[n].end, sizes[n]) for n in order]
    rows = lanes(spans)
    size = {row: sizes[n] for row, n in zip(rows, order, strict=True)}
    above = sorted(size, key=lambda row: (-size[row], row))
    place = {row: number for number, row in enumerate(above)}
    return [
        bars[n]._replace(top=place[row]) for row, n in zip(rows, order, strict=True)
    ]


def lanes(spans: Sequence[tuple[float, float, int]]) -> list[int]:
    """Returns the lane of each (start, end, kind), in the order of the starts: the
    first one of its kind that is free then, or a new one."""
    free: dict[int, list[int]] = {}
    busy: list[tuple[float, int, int]] = []
    found = []
    count = 0
    for start, end, kind in spans:
        while busy and busy[0][0] <= start:
            _, lane, of_kind = heapq.heappop(busy)
            heapq.heappush(free[of_kind], lane)
        waiting = free.setdefault(kind, [])
        if waiting:
            lane = heapq.heappop(waiting)
        else:
            lane, count = count, count + 1
        heapq.heappush(busy, (end, lane, kind))
        found.append(lane)
    return found
