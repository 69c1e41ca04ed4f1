"""Signs in lines of text, drawn: a font may lack a tick or draw it in its own way.

A `Piece` with the role "sign tick" is drawn as the part of that name, one with the role
"sign grid arrow grid" as three parts side by side. Its text is what the text twin
writes in its place.
"""

from __future__ import annotations

import base64
from typing import Any

from minijax_widgets.glyph import Drawn, as_inline, numeral, path

HEIGHT = 12.0
GAP = 3.0
# Each part is as wide as its number says. Its lines and its areas are paths that begin
# at its left side, in the middle of the line.
PARTS: dict[str, tuple[float, str, str]] = {
    "grid": (10, "m0-5h10v10h-10zm5 0v10m-5-5h10", ""),
    "arrow": (9, "m0 0h8m-3-3l3 3l-3 3", ""),
    "wide": (10, "", "m0-2h10v4h-10z"),
    "tall": (4, "", "m0-5h4v10h-4z"),
    "one": (4, "", "m0-2h4v4h-4z"),
    "open": (3, "m3-5h-3v10h3", ""),
    "close": (3, "m0-5h3v10h-3", ""),
    "times": (5, "m0-2.5l5 5m0-5l-5 5", ""),
    "die": (
        10,
        "m0-5h10v10h-10z",
        "m2-3h2v2h-2zm4 0h2v2h-2zm0 4h2v2h-2zm-4 0h2v2h-2zm2-2h2v2h-2z",
    ),
    "program": (10, "m0-5h10v10h-10z", "m3-2h4v4h-4z"),
    "exchange": (9, "m0-2h9l-3-3m3 7h-9l3 3", ""),
    "turn": (10, "m9 0a4 4 0 1 1-1.2-2.8m.4-2.7v2.9h-2.9", ""),
    "later": (9, "m0 0h2m1.5 0h2m1.5 0h1m-3-3l3 3l-3 3", ""),
    "shut": (8, "", "m1-4l6 4l-6 4z"),
    "opened": (8, "", "m0-3h8l-4 6z"),
    "tick": (10, "m1 .5l3 3.5l5-8", ""),
    "ring": (10, "m1 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", ""),
    "cross": (10, "m1-4l8 8m0-8l-8 8", ""),
}
INKS = {"cross": "miss", "tick": "text", "ring": "text"}


def sign(names: str) -> tuple[float, list[Drawn]]:
    """Returns how wide a sign is, and its drawing around a line through its middle.

    Raises KeyError for a name that is not in `PARTS`.
    """
    lines = areas = ""
    x = 0.0
    for name in names.split():
        wide, outline, filled = PARTS[name]
        start = f"M{numeral(x)} 0"
        lines += f"{start}{outline}" if outline else ""
        areas += f"{start}{filled}" if filled else ""
        x += wide + GAP
    ink = INKS.get(names, "constant")
    drawn = [path(lines, ink, 1.6 if names in INKS else 1.2)] if lines else []
    if areas:
        drawn.append(path(areas, fill=ink))
    return x - GAP, drawn


def inline(names: str) -> dict[str, Any]:
    """Returns a sign as the player takes a glyph in a line of text."""
    wide, drawn = sign(names)
    return as_inline(0, -HEIGHT / 2, wide, HEIGHT, drawn)


def image(names: str, text: str) -> str:
    """Returns a sign as an HTML image, which needs no trust; `text` is read out."""
    wide, drawn = sign(names)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{numeral(wide)}" '
        f'height="{numeral(HEIGHT)}" viewBox="0 {numeral(-HEIGHT / 2)} {numeral(wide)} '
        f'{numeral(HEIGHT)}">{"".join(part.svg() for part in drawn)}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{text.strip()}" '
        f'style="display:inline;vertical-align:middle">'
    )
