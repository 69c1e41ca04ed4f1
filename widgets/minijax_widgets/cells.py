"""Arrays as cells, which a picture shows in place of their outline.

Positive values are in one ink and negative ones in another, the deeper the larger;
where there is room their numbers are written. What has no value is hatched. The player
says the number under the pointer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minijax_lab.explain.small_values import Values
from minijax_widgets.glyph import (
    LEAST_TEXT,
    Drawn,
    Glyph,
    numeral,
    path,
    rect,
    stripes,
    text_width,
    words,
)

LEVELS = 12


def largest_of(tables: Sequence[Values]) -> float:
    """Returns the largest finite magnitude."""
    finite = [
        abs(x) for table in tables for row in table for x in row if math.isfinite(x)
    ]
    return max(finite, default=0.0)


def widest(values: Values) -> float:
    """Returns the room that the longest number needs."""
    finite = [x for row in values for x in row if math.isfinite(x)]
    return max((text_width(number_text(x), LEAST_TEXT) for x in finite), default=0.0)


def are_written(values: Values, size: tuple[float, float]) -> bool:
    """Whether the cells have room for their numbers."""
    return size[1] >= LEAST_TEXT + 2 and widest(values) <= size[0] - 2


def values_parts(
    values: Values,
    largest: float,
    size: tuple[float, float],
    framed: bool = True,
    *,
    name: str = "",
    at: tuple[float, float] = (0.0, 0.0),
    product: str = "",
    lighter: bool = False,
    spelled: bool = False,
) -> list[Drawn]:
    """Returns a block of values as cells: of one depth together, to be short.

    Numbers are written where all of them have room. `name` is what the array is called
    where the pointer asks; of a product, `product` names what was there before and the
    two factors. `lighter` is for cells beside others that have numbers. `spelled`
    writes NaN and infinities in large cells, where NaN is no missing value.
    """
    w, h = size
    x0, y0 = at
    room = widest(values)
    written = are_written(values, size)
    letters = LEAST_TEXT
    if written and room:  # larger in large cells
        letters = max(LEAST_TEXT, min(0.45 * h, LEAST_TEXT * (w - 8) / room))
    together: dict[tuple[str, int], list[str]] = {}
    holes: list[tuple[float, float]] = []
    texts: list[Drawn] = []
    for row, line in enumerate(values):
        before: tuple[str, int] | None = None
        for column, x in enumerate(line):
            left, top = x0 + column * w, y0 + row * h
            if not math.isfinite(x):
                holes.append((left, top))
                before = None
                if spelled and min(w / 26, h / 16) > 1:
                    base = top + h / 2 + 5
                    at_hole = words(
                        left + w / 2,
                        base,
                        f"{x}",
                        "text",
                        12,
                        "middle",
                        700,
                        ground="base",
                    )
                    texts.append(at_hole)
                continue
            level = math.ceil(LEVELS * (abs(x) / largest)) if largest else 0
            look = ("value" if x > 0 else "miss", level)
            if level and look == before:
                together[look].append("h1")
            elif level:
                start = f"M{column} {row + 0.5}h1"
                together.setdefault(look, []).append(start)
            before = look
            if written:
                middle, base = left + w / 2, top + h / 2 + 0.41 * letters
                said = number_text(x)
                texts.append(words(middle, base, said, "text", letters, "middle"))
    wide, tall = w * len(values[0]), h * len(values)
    made = [rect(x0, y0, wide, tall, "base", round_by=0)] if framed else []
    # Under numbers the ink is lighter, so that they can be read.
    most = 0.45 if written or lighter or not (framed or name) else 0.95
    # A unit a cell, stretched to the cells' size: a short text of any array.
    place = f"translate({numeral(x0)} {numeral(y0)})scale({w:.4g} {h:.4g})"
    for (ink, level), squares in sorted(together.items()):
        drawn = path("".join(squares), ink, 1.0)
        depth = f"{most * level / LEVELS:.2f}"
        has = {"stroke-opacity": depth, "transform": place}
        made.append(Drawn("path", drawn.has | has))
    if len(holes) == len(values) * len(values[0]):
        made.append(path(stripes(x0, y0, wide, tall, 8.0), "miss", 0.8))
    elif holes:
        hatched = "".join(stripes(left, top, w, h) for left, top in holes)
        made.append(path(hatched, "miss", 0.8))
    if framed:
        made.append(rect(x0, y0, wide, tall, "none", "line", 1.0, round_by=0))
    if name:
        rows = (" ".join(f"{x:.4g}" for x in row) for row in values)
        asked = {"pointer-events": "all", "data-n": name, "data-v": ";".join(rows)}
        asked |= {"data-s": product} if product else {}
        over = rect(x0, y0, wide, tall, "none", round_by=0)
        texts.append(Drawn("rect", over.has | asked))
    return made + texts


def with_values(made: Glyph, name: str, values: Values) -> list[Drawn]:
    """Returns a glyph whose card shows what the array holds; a number is only said."""
    if not values:
        return made.drawn
    w, h = made.card
    size = w / len(values[0]), h / len(values)
    cells = values_parts(
        values, largest_of([values]), size, False, name=name, at=(-w / 2, -h / 2)
    )
    if made.drawn[0].tag == "circle":
        return [*made.drawn, cells[-1]]
    ground = rect(-w / 2, -h / 2, w, h, "base", round_by=0)
    return [made.drawn[0], ground, *cells, *made.drawn[1:]]


def number_text(x: float) -> str:
    """Returns a number in a few letters; one that rounding moved by less than a
    millionth of itself from an integer is that integer."""
    if abs(x - round(x)) <= 1e-6 * abs(x) and abs(x) < 10000:
        return str(round(x))
    said = f"{x:.2f}"
    if abs(x) < 1000 and said.strip("-0.") != "":
        return said
    return f"{x:.0e}".replace("e-0", "e-").replace("e+0", "e")
