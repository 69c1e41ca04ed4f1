"""The values of a kernel's blocks, as cells that change from program to program.

Positive values are in one ink and negative ones in another, the deeper the larger;
small blocks have their numbers written. What has no value is hatched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minijax_lab.explain.kernel_facts import Operand
from minijax_widgets.glyph import (
    LEAST_TEXT,
    Drawn,
    numeral,
    path,
    rect,
    stripes,
    text_width,
    words,
)
from minijax_widgets.scene import Scene

LEVELS = 12
# Cells of one operand in all of its steps: a page has to carry them.
MOST_CELLS = 16384
WRITTEN_COLUMNS = 4
WRITTEN = (36.0, 17.0)
LONGEST = 150.0

Values = list[list[float]]


def steps_with_values(operand: Operand, programs: Sequence[int]) -> dict[int, Values]:
    """Returns the values of each step that has some to be drawn."""
    found: dict[int, Values] = {}
    cells = 0
    for step, program in enumerate(programs):
        if program >= len(operand.values) or not operand.values[program]:
            continue
        values = operand.values[program]
        cells += len(values) * len(values[0])
        if cells > MOST_CELLS:
            break
        found[step] = values
    return found


def largest_of(tables: Sequence[Values]) -> float:
    """Returns the largest finite magnitude."""
    finite = [
        abs(x) for table in tables for row in table for x in row if math.isfinite(x)
    ]
    return max(finite, default=0.0)


def cell_size(values: Values) -> tuple[float, float]:
    """Returns how large a cell is drawn."""
    rows, columns = len(values), max(1, len(values[0]))
    if columns <= WRITTEN_COLUMNS and rows <= 16:
        return WRITTEN
    return min(16.0, LONGEST / columns), min(16.0, LONGEST / rows)


def values_parts(values: Values, largest: float) -> list[Drawn]:
    """Returns a block of values as cells: of one depth together, to be short."""
    w, h = cell_size(values)
    together: dict[tuple[str, int], list[str]] = {}
    holes: list[tuple[float, float]] = []
    texts: list[Drawn] = []
    for row, line in enumerate(values):
        for column, x in enumerate(line):
            left, top = column * w, row * h
            if not math.isfinite(x):
                holes.append((left, top))
                continue
            level = math.ceil(LEVELS * abs(x) / largest) if largest else 0
            square = f"M{numeral(left)} {numeral(top)}h{numeral(w)}v{numeral(h)}"
            square += f"h{numeral(-w)}z"
            if level:
                ink = "value" if x > 0 else "miss"
                together.setdefault((ink, level), []).append(square)
            if (w, h) == WRITTEN:
                said = number_text(x)
                texts.append(
                    words(left + w / 2, top + 13, said, "text", LEAST_TEXT, "middle")
                )
    wide, tall = w * len(values[0]), h * len(values)
    made = [rect(0, 0, wide, tall, "base", round_by=0)]
    # Under numbers the ink is lighter, so that they can be read.
    most = 0.45 if (w, h) == WRITTEN else 0.95
    for (ink, level), squares in sorted(together.items()):
        drawn = path("".join(squares), fill=ink)
        depth = f"{most * level / LEVELS:.2f}"
        made.append(Drawn("path", drawn.has | {"fill-opacity": depth}))
    if len(holes) == len(values) * len(values[0]):
        made.append(path(stripes(0, 0, wide, tall, 8.0), "miss", 0.8))
    elif holes:
        hatched = "".join(stripes(left, top, w, h) for left, top in holes)
        made.append(path(hatched, "miss", 0.8))
    made.append(rect(0, 0, wide, tall, "none", "line", 1.0, round_by=0))
    return made + texts


def number_text(x: float) -> str:
    """Returns a number in a few letters."""
    if x == int(x) and abs(x) < 10000:
        return str(int(x))
    said = f"{x:.2f}"
    if text_width(said, LEAST_TEXT) <= WRITTEN[0] and said.strip("-0.") != "":
        return said
    return f"{x:.0e}"


def draw_values(
    scene: Scene, operand: Operand, x: float, y: float, programs: Sequence[int]
) -> tuple[float, float]:
    """Draws the values of an operand's blocks; returns the right and the lower end.

    The last step with values keeps them: what follows says that it has none.
    """
    found = steps_with_values(operand, programs)
    if not found:
        return x, y
    largest = largest_of(list(found.values()))
    first = next(iter(found.values()))
    w, h = cell_size(first)
    wide, tall = w * len(first[0]), h * len(first)
    turns = [(step, values_parts(values, largest)) for step, values in found.items()]
    last = max(found) + 1
    if last < len(programs):
        none = [words(0, 13, "values not kept", "constant", LEAST_TEXT)]
        turns.append((last, none))
    scene.drawn(
        x, y, wide, tall, turns[0][1], turns=turns, label=f"values of {operand.name}",
        tell=f"values of {operand.name}: positive ones in blue, negative ones in red, "
        "the deeper the larger; hatched: no value",
    )  # fmt: skip
    what = "values read" if operand.role in ("input", "scalars") else "values after"
    said = f"{what}, up to {largest:.3g}"
    scene.text(x, y + tall + 14, said, role="constant", size=LEAST_TEXT)
    return max(x + wide, x + text_width(said, LEAST_TEXT)), y + tall + 16


def values_text(values: Values) -> str:
    """Returns values as text: all of a few, else the first ones and the extent."""
    flat = [x for row in values for x in row]
    if not flat:
        return "none"
    shown = " ".join(number_text(x) if math.isfinite(x) else "nan" for x in flat[:6])
    if len(flat) <= 6:
        return shown
    finite = [x for x in flat if math.isfinite(x)]
    if not finite:
        return f"{shown} ..."
    return f"{shown} ... from {min(finite):.3g} to {max(finite):.3g}"
