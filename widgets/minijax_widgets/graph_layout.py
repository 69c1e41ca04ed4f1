"""Where the boxes of a graph stand: in rows, each below all that it needs.

The rows come from the longest path; within a row the order follows the neighbours, and
the places are those nearest to the neighbours that do not overlap. Lines that pass a
row have a place in it too, so that they do not run through boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

GAP = 22.0  # between boxes of a row
LINE = 10.0  # the width kept free for a line that passes
BETWEEN = 38.0  # between rows
SWEEPS = 4
# How strongly a box, an input, a passing line keeps its place.
BOX, INPUT, PASSING = 12.0, 0.05, 3.0


@dataclass
class Item:
    """A box to be placed. `late` items, inputs, stand right above their first use."""

    w: float
    h: float
    late: bool = False
    x: float = 0.0  # the middle
    y: float = 0.0  # the top
    row: int = 0
    weight: float = BOX
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


@dataclass
class Laid:
    """Items in their places, lines as points between a bottom and a top."""

    items: list[Item]
    lines: list[list[tuple[float, float]]]
    width: float
    height: float


def lay_out(items: list[Item], edges: Sequence[tuple[int, int]]) -> Laid:
    """Places items; each edge leads from an earlier item of the list to a later one,
    but for edges from late items, which may lead anywhere."""
    count = len(items)
    order = [i for i in range(count) if items[i].late]
    order += [i for i in range(count) if not items[i].late]
    ins: list[list[int]] = [[] for _ in items]
    outs: list[list[int]] = [[] for _ in items]
    for a, b in edges:
        ins[b].append(a)
        outs[a].append(b)
    for i in order:
        items[i].row = max((items[a].row + 1 for a in ins[i]), default=0)
        items[i].weight = INPUT if items[i].late else BOX
    for i in range(count):
        if items[i].late and outs[i]:
            items[i].row = min(items[b].row for b in outs[i]) - 1
    # Lines over several rows get a small item in each row that they pass.
    everything = list(items)
    paths = []
    for a, b in edges:
        path = [a]
        for passed in range(items[a].row + 1, items[b].row):
            everything.append(Item(LINE, 0.0, row=passed, weight=PASSING))
            path.append(len(everything) - 1)
        path.append(b)
        for one, next_one in zip(path, path[1:], strict=False):
            everything[one].below.append(next_one)
            everything[next_one].above.append(one)
        paths.append(path)
    rows: list[list[int]] = [[] for _ in range(1 + max(i.row for i in everything))]
    for number, item in enumerate(everything):
        rows[item.row].append(number)
    for row in rows:
        # Inputs stand at the right of what they are used beside.
        row.sort(key=lambda number: (everything[number].late, number))
        place(everything, row, [0.0] * len(row))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            arrange(everything, row, down)
    left = min(item.x - item.w / 2 for item in everything)
    y = 0.0
    for row in rows:
        tall = max((everything[number].h for number in row), default=0.0)
        for number in row:
            item = everything[number]
            item.x -= left
            # Inputs stand at the foot of their row, near their use.
            item.y = y + (tall - item.h) * (1.0 if item.late else 0.5)
            if item.weight == PASSING:
                item.y, item.h = y, tall
        y += tall + BETWEEN
    lines = []
    for path in paths:
        first, *middle, last = (everything[number] for number in path)
        points = [(first.x, first.y + first.h)]
        for item in middle:
            points += [(item.x, item.y), (item.x, item.y + item.h)]
        lines.append([*points, (last.x, last.y)])
    width = max(item.x + item.w / 2 for item in everything)
    return Laid(items, lines, width, y - BETWEEN)


def arrange(everything: list[Item], row: list[int], down: bool) -> None:
    """Orders and places a row by its neighbours: above on the way down, else below."""
    wanted = {}
    for number in row:
        item = everything[number]
        near = item.above if down and not item.late else item.below
        # An input does not pull what uses it aside.
        leading = [n for n in near if not everything[n].late] or near
        places = sorted(everything[n].x for n in leading)
        wanted[number] = item.x
        if places:
            half = len(places) // 2
            wanted[number] = (places[half] + places[~half]) / 2
        if item.late and places:
            beside = min(130.0, max(everything[n].w for n in near))
            wanted[number] += (beside + item.w) / 2 + GAP
    row.sort(key=lambda number: wanted[number])
    place(everything, row, [wanted[number] for number in row])


def place(everything: list[Item], row: list[int], wanted: list[float]) -> None:
    """Gives a row's items the places nearest to the wanted ones, without overlap.

    Least squares with weights: blocks of items that touch stand at the weighted mean of
    what they want, and blocks that would overlap become one.
    """
    offsets = [0.0]
    for a, b in zip(row, row[1:], strict=False):
        one, other = everything[a], everything[b]
        offsets.append(offsets[-1] + (one.w + other.w) / 2 + GAP)
    blocks: list[tuple[float, float, int]] = []  # (mean, weight, items)
    for index, number in enumerate(row):
        weight = everything[number].weight
        block = (wanted[index] - offsets[index], weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, heavy, many = blocks.pop()
            both = heavy + block[1]
            middle = (mean * heavy + block[0] * block[1]) / both
            block = (middle, both, many + block[2])
        blocks.append(block)
    index = 0
    for mean, _, many in blocks:
        for _ in range(many):
            everything[row[index]].x = mean + offsets[index]
            index += 1
