"""The glyph of an array: its sides to a logarithmic scale, its leading axes as depth.

One function draws it for everything: the player, the static frame and the SVG file get
the same list of simple SVG parts. Colours stand in them as names ("value",
"value-wash", "line"), which the player turns into variables of the page's theme and the
file into hex numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from minijax_widgets.style import CODE, DARK, LIGHT, PALETTE, TEXT

Shape = Sequence[Any]  # of whole numbers, or names of unknown sizes
Cuts = Mapping[int, tuple[str, int]]  # axis: (mesh axis, pieces)

LONGEST = 72.0
SLIVER = 3.0
BAR = 9.0
DOT = 5.0
CARDS = 4
CARD_STEP = 4.5
SIZE_TEXT = 11.0
# What is not there yet, or no longer: that of the player.
FAINT = 0.4
# No text stands smaller than this.
LEAST_TEXT = 11.0
# Beyond, cut lines would cover the array.
MOST_CUTS = 15
UNKNOWN_SIDE = 34.0
# What the texts of an SVG file take over from its outermost element.
INHERITED = f'font-family="{CODE}"'


@dataclass(frozen=True)
class Drawn:
    """A simple part of a picture: the name of an SVG element, what it has, its text."""

    tag: str
    has: dict[str, Any]
    text: str = ""

    def faint(self) -> Drawn:
        """Returns it as it looks while it is not there: its text can be read."""
        ink = {"fill": "constant"} if self.text else {"opacity": FAINT}
        return Drawn(self.tag, self.has | ink, self.text)

    def to_json(self) -> list[Any]:
        """Returns `[tag, attributes, text]`, without an empty text."""
        has = {name: rounded(value) for name, value in self.has.items()}
        return [self.tag, has, self.text] if self.text else [self.tag, has]

    def svg(self, dark: bool = False) -> str:
        """Returns the element with the colours of a theme."""
        parts = []
        for name, value in self.has.items():
            if name in ("fill", "stroke"):
                value = colour(value, dark)
            elif name == "font-family":
                if value == "code":
                    continue  # as for the whole picture, see INHERITED
                value = TEXT
            elif name.startswith("data-"):
                continue  # read by the live page only
            elif name in ("x", "y", "cx", "cy") and not value:
                continue  # where SVG begins by itself
            parts.append(f'{name}="{escape(str(rounded(value)))}"')
        open_tag = f"<{self.tag} {' '.join(parts)}"
        if not self.text:
            return f"{open_tag}/>"
        if self.text != " ".join(self.text.split()):
            open_tag += ' xml:space="preserve"'
        return f"{open_tag}>{escape(self.text)}</{self.tag}>"


def told_only(**page: Any) -> dict[str, Any]:
    """Returns what says something: without None, False, and what is empty."""
    return {
        name: said
        for name, said in page.items()
        if said or (said == 0 and said is not False)
    }


def as_inline(
    x: float, y: float, w: float, h: float, drawn: Sequence[Drawn]
) -> dict[str, Any]:
    """Returns a small drawing within a line of text, as the player takes it."""
    sides = {"x": x, "y": y, "w": w, "h": h}
    page = {name: rounded(value) for name, value in sides.items()}
    return page | {"d": [part.to_json() for part in drawn]}


def rounded(value: Any) -> Any:
    """Returns a number with at most one decimal, and none that is zero."""
    if not isinstance(value, float):
        return value
    short = round(value, 1)
    return int(short) if short.is_integer() else short


def colour(name: str, dark: bool = False) -> str:
    """Returns the hex colour of "value", "value-wash", "line", ...; "none" as it is."""
    role, _, wash = name.partition("-")
    if role in PALETTE:
        return PALETTE[role][2 * dark + bool(wash)]
    return (DARK if dark else LIGHT).get(name, name)


def rect(
    x: float,
    y: float,
    w: float,
    h: float,
    fill: str,
    stroke: str = "none",
    thick: float = 1.2,
    dash: str = "",
    round_by: float = 2.5,
) -> Drawn:
    """Returns a rectangle."""
    has: dict[str, Any] = {"x": x, "y": y, "width": w, "height": h}
    has |= {"rx": min(round_by, w / 2, h / 2), "fill": fill}
    return Drawn("rect", has | stroked(stroke, thick, dash))


def path(
    d: str, stroke: str = "none", thick: float = 1.4, fill: str = "none", dash: str = ""
) -> Drawn:
    """Returns a path."""
    return Drawn("path", {"d": d, "fill": fill} | stroked(stroke, thick, dash))


def stroked(stroke: str, thick: float, dash: str) -> dict[str, Any]:
    """Returns the attributes of an outline."""
    if stroke == "none":
        return {}
    has: dict[str, Any] = {"stroke": stroke, "stroke-width": thick}
    return has | ({"stroke-dasharray": dash} if dash else {})


def right_end(part: Drawn) -> float:
    """Returns how far to the right a part is drawn, with its outline."""
    has = part.has
    if part.tag == "text":
        mono = has["font-family"] == "code"
        weight = has.get("font-weight", 400)
        wide = text_width(part.text, has["font-size"], mono, weight)
        return (
            has["x"]
            + wide
            * {"start": 1, "middle": 0.5, "end": 0}[has.get("text-anchor", "start")]
        )
    half = has.get("stroke-width", 0) / 2
    if part.tag == "rect":
        return has["x"] + has["width"] + half
    if part.tag == "circle":
        return has["cx"] + has["r"] + half
    return max(float(x) for x in re.findall(r"(-?[\d.]+) -?[\d.]+", has["d"])) + half


def words(
    x: float,
    y: float,
    text: str,
    fill: str = "text",
    size: float = 13.0,
    anchor: str = "start",
    weight: int = 400,
    mono: bool = False,
    ground: str = "",
) -> Drawn:
    """Returns a line of text; digits all have one width. With a `ground` a margin of
    that colour keeps it apart from lines behind it."""
    has: dict[str, Any] = {"x": x, "y": y, "fill": fill, "font-size": size}
    has["font-family"] = "code" if mono else "text"
    if anchor != "start":
        has["text-anchor"] = anchor
    if weight != 400:
        has["font-weight"] = weight
    if ground:
        has |= {"stroke": ground, "stroke-width": 4, "paint-order": "stroke"}
    return Drawn("text", has, text)


def text_width(
    text: str, size: float = 13.0, mono: bool = False, weight: int = 400
) -> float:
    """Returns about how wide a line of text is, in pixels; rather too wide.

    Bold letters of code are as wide as others, those of prose are wider.
    """
    return len(text) * size * (0.61 if mono else 0.65 if weight >= 600 else 0.56)


def numeral(d: float) -> str:
    """Returns a number for the text of a path."""
    return str(rounded(float(d)))


def line(points: Sequence[tuple[float, float]]) -> str:
    """Returns the text of a path through points."""
    return "M" + "L".join(f"{numeral(x)} {numeral(y)}" for x, y in points)


def stripes(x: float, y: float, w: float, h: float, gap: float = 5.0) -> str:
    """Returns the text of a path: 45-degree lines that end at a rectangle's sides."""
    parts = []
    reach = gap
    while reach < w + h:
        start = (x + min(reach, w), y + max(0.0, reach - w))
        end = (x + max(0.0, reach - h), y + min(reach, h))
        parts.append(line([start, end]))
        reach += gap
    return "".join(parts)


def dots(x: float, y: float, w: float, h: float, gap: float = 5.0) -> str:
    """Returns the text of a path: dots in rows, drawn with round ends of lines."""
    parts = []
    for row in range(1, max(2, int(h / gap))):
        for column in range(1, max(2, int(w / gap))):
            parts.append(f"M{numeral(x + gap * column)} {numeral(y + gap * row)}h0")
    return "".join(parts)


def side(size: Any) -> float:
    """Returns how long the side of an axis is drawn, in pixels."""
    if not isinstance(size, int):
        return UNKNOWN_SIDE
    if size == 1:
        return SLIVER
    return min(LONGEST, 10 + 6 * math.log2(size)) if size else 10.0


def glyph_text(
    shape: Shape, batch: Sequence[int] = (), cuts: Cuts | None = None
) -> str:
    """Returns a shape as text twins write it: `[8,{16},64]`, `[8/x,16]`."""
    parts = []
    for axis, size in enumerate(shape):
        part = str(size)
        if cuts and axis in cuts:
            part += f"/{cuts[axis][0]}"
        parts.append("{" + part + "}" if axis in places(batch, len(shape)) else part)
    return f"[{','.join(parts)}]"


def places(axes: Sequence[int], rank: int) -> set[int]:
    """Returns axes counted from the front."""
    return {axis % rank for axis in axes if rank}


@dataclass(frozen=True)
class Glyph:
    """A drawn array. `drawn` stands around (0, 0), the middle of the front card.

    `left`, `top`, `right`, `bottom` bound everything, the sizes too; `card` is the
    width and the height of the front card.
    """

    drawn: list[Drawn]
    left: float
    top: float
    right: float
    bottom: float
    card: tuple[float, float]

    @property
    def w(self) -> float:
        """The whole width."""
        return self.right - self.left

    @property
    def h(self) -> float:
        """The whole height."""
        return self.bottom - self.top


def glyph(
    shape: Shape,
    *,
    role: str = "value",
    batch: Sequence[int] = (),
    cuts: Cuts | None = None,
    lid: bool | None = None,
    notch: bool | None = None,
    name: str = "",
    scale: float = 1.0,
    sizes: bool = True,
) -> Glyph:
    """Draws an array of a shape.

    Args:
        shape: its sizes.
        role: "value", "constant" (dashed), "residual" (with a lid), "cotangent" (with a
            notch), or another role of the palette.
        batch: the places of batch axes, drawn in batch ink with a doubled line; after
            the first, those of a `vmap` inside of the `vmap`, with a dashed one.
        cuts: axis: (mesh axis, number of pieces).
        lid: whether a lid is drawn; None: as the role says.
        notch: whether a notch is drawn; None: as the role says.
        name: what stands above it.
        scale: how much smaller than usual the sides are; texts keep their size.
        sizes: whether the sizes are written.
    """
    batched = places(batch, len(shape))
    outer = places(batch[:1], len(shape))
    rank = len(shape)
    ink, wash = role, f"{role}-wash"
    dash = "3 2.5" if role == "constant" else ""
    lid = role == "residual" if lid is None else lid
    notch = role == "cotangent" if notch is None else notch
    w = side(shape[-1]) * scale if rank else 2 * DOT
    h = 2 * DOT if not rank else max(5.0, BAR * scale)
    if rank > 1:
        h = side(shape[-2]) * scale
    x, y = -w / 2, -h / 2
    deep = shape[:-2]
    count = math.prod(n if isinstance(n, int) else CARDS for n in deep)
    cards = max(1, min(CARDS, count))
    step = CARD_STEP * (cards - 1)
    drawn: list[Drawn] = []
    bounds = [x - 1, y - step - 1, x + w + step + 1, y + h + 1]
    empty = 0 in tuple(shape)

    def reach(left: float, top: float, right: float, bottom: float) -> None:
        bounds[:2] = min(bounds[0], left), min(bounds[1], top)
        bounds[2:] = max(bounds[2], right), max(bounds[3], bottom)

    if not rank:
        circle = {"cx": 0.0, "cy": 0.0, "r": DOT, "fill": wash}
        drawn.append(Drawn("circle", circle | stroked(ink, 1.4, dash)))
    else:
        deep_batch = any(axis in batched for axis in range(len(deep)))
        for card in reversed(range(cards)):
            fill, edge = (wash, ink)
            if deep_batch and card:
                fill, edge = "batch-wash", "batch"
            shift = CARD_STEP * card
            ground = "base" if empty else fill
            drawn.append(rect(x + shift, y - shift, w, h, ground, edge, dash=dash))
        if empty:
            drawn.append(path(stripes(x, y, w, h), ink, 1.0))
        if deep_batch:
            first = any(axis in outer for axis in range(len(deep)))
            end = (x + max(step, 4.0), y - max(step, 4.0))
            drawn += doubled((x, y), end, (-1, -1), first)
            reach(x - 5, y - step - 5, 0, 0)
    if cuts:
        drawn += cut_lines(x, y, w, h, rank, cuts)
    if lid:
        drawn.append(path(line([(x - 3, y - 0.5), (x + w + 3, y - 0.5)]), ink, 2.6))
        reach(x - 3, y - 2, x + w + 3, 0)
    if notch:
        d = line([(x - 0.6, -4.5), (x + 4.9, 0), (x - 0.6, 4.5)])
        drawn.append(path(d, ink, 1.2, "base"))
    last, rows = rank - 1, rank - 2
    if last in batched:
        drawn += doubled((x, y + h), (x + w, y + h), (0, 1), last in outer)
        reach(x, 0, 0, y + h + 6)
    if rank > 1 and rows in batched:
        drawn += doubled((x, y), (x, y + h), (-1, 0), rows in outer)
        reach(x - 6, 0, 0, 0)
    if sizes and rank:
        under = y + h + (17 if last in batched else 13)
        drawn.append(size_text(0, under, shape[-1], last in batched, "middle"))
        wide = text_width(str(shape[-1]), SIZE_TEXT) / 2
        reach(-wide, 0, wide, under + 3)
        if rank > 1:
            beside = x - (9 if rows in batched or notch else 5)
            drawn.append(size_text(beside, 4, shape[-2], rows in batched, "end"))
            wide = text_width(str(shape[-2]), SIZE_TEXT) + 2
            reach(beside - wide, -8, 0, 8)
        at = x + w + step + 4
        for axis, size in enumerate(deep):
            text = str(size)
            drawn.append(size_text(at, y - step + 8, text, axis in batched, "start"))
            at += text_width(text, SIZE_TEXT) + 2
            if axis + 1 < len(deep):
                drawn.append(size_text(at, y - step + 8, "\u00d7", False, "start"))
                at += 8
        if deep:
            reach(0, y - step - 2, at, y - step + 11)
    if name:
        over = bounds[1] - 5
        drawn.append(words(0, over, name, size=12, anchor="middle", mono=True))
        wide = text_width(name, 12, mono=True) / 2
        reach(-wide, over - 11, wide, 0)
    return Glyph(drawn, bounds[0], bounds[1], bounds[2], bounds[3], (w, h))


def size_text(x: float, y: float, size: Any, batched: bool, anchor: str) -> Drawn:
    """Returns the size of an axis as it is written beside the axis."""
    fill, weight = ("batch", 700) if batched else ("constant", 400)
    return words(x, y, str(size), fill, SIZE_TEXT, anchor, weight)


def doubled(
    start: tuple[float, float],
    end: tuple[float, float],
    away: tuple[float, float],
    outer: bool = True,
) -> list[Drawn]:
    """Returns two lines beside a side, which say that it is a batch axis.

    Those of a batch axis inside of another are dashed.
    """
    lines = []
    for far in (2.8, 5.4):
        points = [(x + far * away[0], y + far * away[1]) for x, y in (start, end)]
        lines.append(path(line(points), "batch", 1.5, dash="" if outer else "2.5 1.8"))
    return lines


def cut_lines(
    x: float, y: float, w: float, h: float, rank: int, cuts: Cuts
) -> list[Drawn]:
    """Returns where mesh axes cut the front card: lines, each second piece patterned.

    The mesh's first axis is plain, "y" has stripes and "z" dots. An axis in the depth
    is cut between cards, where no line can stand; its piece count is in the text.
    """
    drawn = []
    for axis, (name, pieces) in sorted(cuts.items()):
        across = axis % rank == rank - 1
        if axis % rank < rank - 2 or pieces < 2:
            continue
        shown = min(pieces, MOST_CUTS + 1)
        length = (w if across else h) / shown
        for piece in range(shown):
            left, top = (x + piece * length, y) if across else (x, y + piece * length)
            size = (length, h) if across else (w, length)
            if piece % 2 and name == "y":
                drawn.append(path(stripes(left, top, *size), "mesh", 1.0))
            elif piece % 2 and name == "z":
                dotted = path(dots(left, top, *size), "mesh", 2.0)
                drawn.append(Drawn("path", dotted.has | {"stroke-linecap": "round"}))
            if piece:
                end = (left, top + h) if across else (left + w, top)
                drawn.append(path(line([(left, top), end]), "mesh", 1.6))
    return drawn


def glyph_size(
    shape: Shape,
    *,
    batch: Sequence[int] = (),
    name: str = "",
    scale: float = 1.0,
    role: str = "value",
    sizes: bool = True,
) -> tuple[float, float]:
    """Returns the width and the height of a glyph with its sizes and its name."""
    made = glyph(shape, batch=batch, name=name, scale=scale, role=role, sizes=sizes)
    return made.w, made.h
