"""A picture: marks placed once, each with a key and the steps in which it is there.

A view places glyphs, boxes, arrows, bands, areas and texts in pixels. The player draws
them with the theme's colours, lights them by key and moves what moves; the static frame
and the SVG file are the same picture at one step. Stepping changes states, never
positions, but for what `moves` and `turns` say.
"""

from __future__ import annotations

import base64
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypedDict, Unpack

from minijax_lab.explain.small_values import Values
from minijax_widgets.cells import with_values
from minijax_widgets.glyph import (
    INHERITED,
    LEAST_TEXT,
    Cuts,
    Drawn,
    Glyph,
    Shape,
    colour,
    glyph,
    glyph_size,
    glyph_text,
    line,
    numeral,
    path,
    rect,
    right_end,
    rounded,
    text_width,
    told_only,
    words,
)
from minijax_widgets.style import PALETTE

__all__ = [
    "Placed",
    "Scene",
    "byte_scale",
    "bytes_side",
    "fitting",
    "glyph_size",
    "glyph_text",
    "text_width",
]

MOST_MARKS = 2000
LEAST_BOX = 4.0
HALO = 3.0
Point = tuple[float, float]


class Times(TypedDict, total=False):
    """What every mark may have besides its own arguments.

    The mark is there from the step `at` to the step `until`, else it is faint.
    A click goes to the step `go`, or shows the layout `opens` of the pane. `tell` is
    a sentence for the detail line, `label` one for screen readers, "" if the label of
    another mark describes this one; `says` is a sentence for both. `moves` are
    (step, x, y): from that step on the mark stands at (x, y).
    """

    at: int
    until: int | None
    go: int | None
    opens: int | None
    tell: str
    label: str
    says: str
    moves: Sequence[tuple[int, float, float]]


@dataclass(frozen=True)
class Placed:
    """Where a mark stands, with all that belongs to it; `cx`, `cy` are the middle of
    its body: of a glyph's card, without the sizes."""

    x: float
    y: float
    w: float
    h: float
    cx: float
    cy: float

    @property
    def left(self) -> Point:
        """Where an arrow from the left ends."""
        return self.x - 4, self.cy

    @property
    def right(self) -> Point:
        """Where an arrow to the right begins."""
        return self.x + self.w + 4, self.cy

    @property
    def top(self) -> Point:
        """Where an arrow from above ends."""
        return self.cx, self.y - 4

    @property
    def bottom(self) -> Point:
        """Where an arrow downwards begins."""
        return self.cx, self.y + self.h + 4


@dataclass
class Mark:
    """A mark: parts drawn around (x, y), and when it looks how."""

    x: float
    y: float
    drawn: list[Drawn]
    keys: list[str]
    label: str
    halo: Drawn | None = None
    at: int = 0
    until: int | None = None
    go: int | None = None
    opens: int | None = None
    tell: str = ""
    moves: list[tuple[int, float, float]] = field(default_factory=list)
    turns: list[tuple[int, list[Drawn]]] = field(default_factory=list)

    def there(self, step: int) -> bool:
        """Returns whether the mark is there in a step."""
        return self.at <= step and (self.until is None or step <= self.until)

    def place(self, step: int) -> Point:
        """Returns where the mark stands in a step."""
        x, y = self.x, self.y
        for start, to_x, to_y in self.moves:
            if start <= step:
                x, y = to_x, to_y
        return x, y

    def parts(self, step: int) -> list[Drawn]:
        """Returns what is drawn in a step."""
        drawn = self.drawn
        for start, turned in self.turns:
            if start <= step:
                drawn = turned
        return drawn


def key_list(key: str | Iterable[str]) -> list[str]:
    """Returns the keys of a mark: none for an empty text."""
    return ([key] if key else []) if isinstance(key, str) else list(key)


class Drawings:
    """Drawings as the player takes them, which layouts of a picture share: those that
    are the same stand there once."""

    def __init__(self) -> None:
        self.draws: list[list[Any]] = []
        self._written: dict[str, int] = {}
        self._known: dict[tuple, int] = {}
        # By identity: marks share drawings. They are kept, so that no other one has it.
        self._lists: dict[int, tuple[int, list[Drawn]]] = {}

    def number(self, drawn: list[Drawn]) -> int:
        """Returns the number of a drawing that marks may share."""
        found = self._lists.get(id(drawn))
        if found is None:
            found = self._lists[id(drawn)] = self.number_of(drawn), drawn
        return found[0]

    def number_of(self, drawn: list[Drawn]) -> int:
        """Returns the number of a drawing."""
        raw = tuple([(part.tag, part.text, *part.has.items()) for part in drawn])
        number = self._known.get(raw)
        if number is None:  # what differs before it is rounded may be the same
            page = [part.to_json() for part in drawn]
            number = self._written.setdefault(repr(page), len(self._written))
            self._known[raw] = number
            if number == len(self.draws):
                self.draws.append(page)
        return number


class Scene:
    """A picture `width` x `height` pixels large at zoom 1, onto which a view places
    marks. What is placed later covers what was placed before."""

    def __init__(self, width: float, height: float, label: str = "") -> None:
        self.width = width
        self.height = height
        self.label = label
        self.marks: list[Mark] = []

    def glyph(
        self,
        shape: Shape,
        x: float,
        y: float,
        *,
        key: str | Iterable[str] = "",
        role: str = "value",
        name: str = "",
        batch: Sequence[int] = (),
        cuts: Cuts | None = None,
        lid: bool | None = None,
        notch: bool | None = None,
        scale: float = 1.0,
        sizes: bool = True,
        centered: bool = False,
        turns: Sequence[
            tuple[int, Sequence[int]] | tuple[int, Sequence[int], Shape]
        ] = (),
        holds: tuple[str, Values] = ("", []),
        **times: Unpack[Times],
    ) -> Placed:
        """Places the glyph of an array, with its top left corner at (x, y), or with the
        middle of its card there if `centered`.

        `turns` are (step, batch) or (step, batch, shape): from that step on the batch
        axes stand there, in an array of that shape. What `moves` say are places of the
        same point as `x` and `y`. `holds` are a name and values, drawn as cells. The
        other arguments are those of `glyph.glyph`.
        """

        def made(axes: Sequence[int], sides: Shape) -> Glyph:
            return glyph(
                sides,
                role=role,
                batch=axes,
                cuts=cuts,
                lid=lid,
                notch=notch,
                name=name,
                scale=scale,
                sizes=sizes,
            )

        first = made(batch, shape)
        dx, dy = (0.0, 0.0) if centered else (-first.left, -first.top)
        turned = [(turn[0], made(turn[1], (*turn, shape)[2])) for turn in turns]
        halo_of = [first, *(picture for _, picture in turned)]
        left = min(picture.left for picture in halo_of)
        top = min(picture.top for picture in halo_of)
        right = max(picture.right for picture in halo_of)
        bottom = max(picture.bottom for picture in halo_of)
        said = f"{name} {glyph_text(shape, batch, cuts)}".strip()
        if role != "value":
            said += f", {role}"
        times["moves"] = [
            (n, to_x + dx, to_y + dy) for n, to_x, to_y in times.get("moves", ())
        ]
        self._add(
            x + dx,
            y + dy,
            with_values(first, *holds),
            key,
            said,
            halo(left, top, right - left, bottom - top),
            times,
            [(step, picture.drawn) for step, picture in turned],
        )
        cx, cy = x + dx, y + dy
        return Placed(cx + first.left, cy + first.top, first.w, first.h, cx, cy)

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        *,
        key: str | Iterable[str] = "",
        role: str = "",
        text: str = "",
        detail: str = "",
        lid: bool | None = None,
        dash: bool = False,
        filled: bool = True,
        mono: bool = False,
        snug: bool = False,
        ground: str = "",
        **times: Unpack[Times],
    ) -> Placed:
        """Places a box; its text stands in it, or to its right where it has no room, on
        a `ground` where lines pass.

        `role` is a role of the palette, "kernel", or "" for a plain box. A role
        "residual" has a lid, "constant" is dashed. Below 4 pixels the box is a dot.
        What lights up around it is no larger than itself if `snug`, for boxes that
        touch. Returns where it stands with the text beside it.
        """
        ink, wash, thick = role, f"{role}-wash", 1.2
        if role == "kernel":
            ink, wash, thick = "text", "panel", 2.0
        elif not role:
            ink, wash = "line", "panel"
        if not filled:
            wash = "base"
        lid = role == "residual" if lid is None else lid
        dashes = "3 2.5" if dash or role == "constant" else ""
        drawn: list[Drawn] = []
        if min(w, h) < LEAST_BOX:
            dot = {"cx": w / 2, "cy": h / 2, "r": 2.0, "fill": ink}
            drawn.append(Drawn("circle", dot))
        else:
            drawn.append(rect(0, 0, w, h, wash, ink, thick, dashes, 3))
            if lid:
                drawn.append(path(line([(-4, 0), (w + 4, 0)]), ink, 3.0))
        dyes = ink if role in PALETTE else "text"
        bold = 700 if text and detail else 400
        named = text_width(text, 12, mono, bold) * 1.05
        widest = max(named, text_width(detail, LEAST_TEXT))
        lines = [part for part in (text, detail) if part]
        left, right = (-4.0, w + 4.0) if lid else (0.0, float(w))
        if lines and widest + 6 <= w and 15 * len(lines) + 4 <= h:
            drop = h / 2 + 4 - 7.5 * (len(lines) - 1)
            for index, part in enumerate(lines):
                size = 12 if part is text else LEAST_TEXT
                drawn.append(
                    words(
                        w / 2, drop + 15 * index, part, dyes, size, "middle",
                        bold if part is text else 400, mono and part is text,
                    )
                )  # fmt: skip
        elif lines:
            said = "  ".join(lines)
            drawn.append(
                words(right + 4, h / 2 + 4, said, dyes, 12, mono=mono, ground=ground)
            )
            right += 4 + text_width(said, 12, mono)
        self._add(
            x,
            y,
            drawn,
            key,
            " ".join([*lines, *([role] if role else [])]),
            halo(HALO, HALO, w - 2 * HALO, h - 2 * HALO)
            if snug
            else halo(left, -2 if lid else 0, right - left, h + (2 if lid else 0)),
            times,
        )
        return Placed(x + left, y, right - left, h, x + w / 2, y + h / 2)

    def dot(
        self,
        x: float,
        y: float,
        radius: float,
        *,
        key: str | Iterable[str] = "",
        role: str = "value",
        filled: bool = True,
        **times: Unpack[Times],
    ) -> Placed:
        """Places a circle around (x, y): full of its role's ink, or open."""
        circle: dict[str, Any] = {"cx": 0.0, "cy": 0.0, "r": rounded(radius)}
        circle |= {"fill": role if filled else "base", "stroke-width": 1.8}
        circle["stroke"] = "base" if filled else role
        side = 2 * radius
        self._add(
            x,
            y,
            [Drawn("circle", circle)],
            key,
            "dot",
            halo(-radius, -radius, side, side),
            times,
        )
        return Placed(x - radius, y - radius, side, side, x, y)

    def drawn(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        parts: list[Drawn],
        *,
        key: str | Iterable[str] = "",
        turns: Sequence[tuple[int, list[Drawn]]] = (),
        **times: Unpack[Times],
    ) -> Placed:
        """Places what a view drew itself, `w` x `h` pixels large from its (0, 0) on.

        `turns` are (step, parts): from that step on it is drawn so.
        """
        self._add(x, y, parts, key, "", halo(0, 0, w, h), times, turns)
        return Placed(x, y, w, h, x + w / 2, y + h / 2)

    def arrow(
        self,
        start: Point,
        end: Point,
        *,
        key: str | Iterable[str] = "",
        role: str = "",
        text: str = "",
        thick: float = 1.4,
        via: Sequence[Point] = (),
        curve: str = "",
        head: bool = True,
        dash: bool = False,
        ground: str = "",
        **times: Unpack[Times],
    ) -> None:
        """Places an arrow, with its text above the middle, on a `ground` where lines
        pass.

        `via` are corners on its way; `curve` is "h" or "v" for an arrow that leaves and
        arrives across or down, "bezier" where `via` are the points of Bezier curves;
        without a `head` it is a line.
        """
        ink = role or "line"
        points = [start, *via, end]
        before = points[-2]
        middle = points[len(points) // 2 - 1], points[len(points) // 2]
        bends = [bend_between(a, b, curve) for a, b in itertools.pairwise(points)]
        if curve in ("h", "v"):
            before = bends[-1][1]
        length = math.dist(before, end) or 1.0
        dx, dy = (end[0] - before[0]) / length, (end[1] - before[1]) / length
        tip = min(length, 5 + 2 * thick)
        # The line ends inside of its head, so that a thick one does not cover the tip.
        last = (end[0] - dx * tip / 2, end[1] - dy * tip / 2) if head else end
        ends = [*points[1:-1], last]
        d = line([start, *ends])
        if curve == "bezier":
            d = line([start]) + "C" + line(ends)[1:].replace("L", " ")
        elif curve:
            d = line([start]) + "".join(
                "C" + line([*bend, to])[1:].replace("L", " ")
                for bend, to in zip(bends, ends, strict=True)
            )
        drawn = [path(d, ink, thick, dash="4 3" if dash else "")]
        if head:
            wide = tip * 0.45
            back = (end[0] - dx * tip, end[1] - dy * tip)
            corners = [
                end,
                (back[0] - dy * wide, back[1] + dx * wide),
                (back[0] + dy * wide, back[1] - dx * wide),
            ]
            drawn.append(path(line(corners) + "Z", fill=ink))
        if text:
            (x, y), (to_x, to_y) = middle
            steep = abs(to_y - y) > abs(to_x - x)
            at = ((x + to_x) / 2 + (6 if steep else 0), (y + to_y) / 2)
            dyes = ink if role in PALETTE else "constant"
            drawn.append(
                words(
                    at[0], at[1] + (4 if steep else -6), text, dyes, LEAST_TEXT,
                    "start" if steep else "middle", ground=ground,
                )
            )  # fmt: skip
        self._add(0, 0, drawn, key, text or "arrow", path(d, "halo", thick + 8), times)

    def band(
        self,
        y: float,
        h: float,
        *,
        key: str | Iterable[str] = "",
        text: str = "",
        role: str = "",
        x: float = 2.0,
        w: float | None = None,
        **times: Unpack[Times],
    ) -> Placed:
        """Places a band across the picture, or `w` wide from `x` on, behind what is
        placed after it; its text stands at its top left."""
        wide = self.width - x - 2 if w is None else w
        wash = f"{role}-wash" if role in PALETTE else role or "panel"
        drawn = [rect(0, 0, wide, h, wash, round_by=6)]
        if text:
            ink = role if role in PALETTE else "constant"
            drawn.append(words(10, 17, text, ink, 12, weight=600))
        self._add(x, y, drawn, key, text, halo(2, 2, wide - 4, h - 4), times)
        return Placed(x, y, wide, h, x + wide / 2, y + h / 2)

    def area(
        self,
        points: Sequence[Point],
        *,
        key: str | Iterable[str] = "",
        role: str = "value",
        base: float | None = None,
        dash: bool = False,
        **times: Unpack[Times],
    ) -> None:
        """Places a stepped curve: each point's height holds until the next point's x.

        It is filled down to the height `base`, or not filled without one.
        """
        corners = [points[0]]
        for (_, y), (to_x, to_y) in zip(points, points[1:], strict=False):
            corners += [(to_x, y), (to_x, to_y)]
        d = line(corners)
        drawn = []
        if base is not None:
            closed = line([*corners, (corners[-1][0], base), (corners[0][0], base)])
            drawn.append(path(closed + "Z", fill=f"{role}-wash"))
        drawn.append(path(d, role, 1.8, dash="5 3" if dash else ""))
        self._add(0, 0, drawn, key, "curve", path(d, "halo", 8), times)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        key: str | Iterable[str] = "",
        role: str = "",
        size: float = 13.0,
        anchor: str = "start",
        weight: int = 400,
        mono: bool = False,
        ground: str = "",
        **times: Unpack[Times],
    ) -> Placed:
        """Places a line of text whose base line begins at (x, y); with the `anchor`
        "middle" or "end" its middle or its end stands there. No text is smaller than
        11 pixels. A `ground` is the colour behind it, where lines pass."""
        size = max(size, LEAST_TEXT)
        ink = role or "text"
        wide = text_width(text, size, mono, weight)
        left = {"start": 0.0, "middle": -wide / 2, "end": -wide}[anchor]
        self._add(
            x,
            y,
            [words(0, 0, text, ink, size, anchor, weight, mono, ground)],
            key,
            text,
            halo(left, -size, wide, size * 1.3),
            times,
        )
        return Placed(x + left, y - size, wide, size * 1.3, x + left + wide / 2, y - 4)

    def named(
        self, x: float, y: float, w: float, h: float, name: str, **options: Any
    ) -> Placed:
        """Places a box with a name in code letters, cut to the room that there is.

        Options are those of `box`.
        """
        text = fitting(name, w - 12)
        return self.box(x, y, w, h, text=text, mono=True, **options)

    def note(self, x: float, y: float, text: str, **options: Any) -> Placed:
        """Places a small grey remark; options are those of `text`."""
        given: dict[str, Any] = {"role": "constant", "size": 12, **options}
        return self.text(x, y, text, **given)

    def extent(
        self, x: float, y: float, w: float, h: float, key: str | Iterable[str]
    ) -> None:
        """Says what has to be seen whole when a key lights up; nothing is drawn."""
        clear = [rect(0, 0, w, h, "none")]
        self._add(x, y, clear, key, "", clear[0], {"label": ""})
        self.marks[-1].halo = None

    def _add(
        self,
        x: float,
        y: float,
        drawn: list[Drawn],
        key: str | Iterable[str],
        said: str,
        around: Drawn,
        times: Times,
        turns: Iterable[tuple[int, list[Drawn]]] = (),
    ) -> None:
        unknown = set(times) - set(Times.__annotations__)
        if unknown:
            raise TypeError(
                f"a mark has no argument {min(unknown)!r}; besides its own it takes "
                f"{', '.join(sorted(Times.__annotations__))}."
            )
        keys = key_list(key)
        tell = times.get("says", times.get("tell", ""))
        mark = Mark(
            x,
            y,
            drawn,
            keys,
            times.get("says", times.get("label", said)),
            # What can neither be lit nor pointed at needs none.
            around if keys or tell or "go" in times or "opens" in times else None,
            times.get("at", 0),
            times.get("until"),
            times.get("go"),
            times.get("opens"),
            tell,
            sorted(times.get("moves", ())),
            sorted(turns, key=lambda turn: turn[0]),
        )
        self.marks.append(mark)

    def end_at(self, height: float, room: float = 8) -> None:
        """Sets the height; the width is `room` more than the rightmost mark needs."""
        self.height = height
        ends = {
            number: max(map(right_end, drawn), default=-math.inf)
            for number, drawn in self.drawings().items()
        }

        def reach(mark: Mark) -> float:
            x = max([x for _, x, _ in mark.moves], default=mark.x)
            turned = [ends[id(drawn)] for _, drawn in mark.turns]
            return max(x, mark.x) + max([ends[id(mark.drawn)], *turned])

        self.width = room + max(map(reach, self.marks))

    def drawings(self) -> dict[int, list[Drawn]]:
        """Returns all drawings by identity: marks share them."""
        every = {id(mark.drawn): mark.drawn for mark in self.marks}
        return every | {id(d): d for mark in self.marks for _, d in mark.turns}

    def to_json(self, drawings: Drawings | None = None) -> dict[str, Any]:
        """Returns the scene as the player takes it; its marks name `drawings`, which
        stand in the scene itself if none are given."""
        of = (own := Drawings() if drawings is None else drawings).number
        # Marks stand in rows, so many places are equal.
        short = functools.cache(lambda place: rounded(float(place)))
        # Halos by identity: marks share them.
        halos: dict[int, int] = {}
        marks = []
        for mark in self.marks:
            around = mark.halo and halos.get(id(mark.halo))
            if mark.halo and around is None:
                around = halos[id(mark.halo)] = own.number_of([mark.halo])
            place = {"x": short(mark.x), "y": short(mark.y)}
            page = (
                place
                | {"d": of(mark.drawn)}
                | told_only(
                    h=around,
                    k=mark.keys,
                    l=mark.label,
                    at=mark.at or None,
                    u=mark.until,
                    go=mark.go,
                    o=mark.opens,
                    t=mark.tell,
                    m=[[n, short(x), short(y)] for n, x, y in mark.moves],
                    v=[[step, of(drawn)] for step, drawn in mark.turns],
                )
            )
            marks.append(page)
        page = {
            "w": rounded(float(self.width)),
            "h": rounded(float(self.height)),
            "label": self.label,
            "marks": marks,
        }
        if letters := self.least_letters():
            page["f"] = rounded(letters)
        return page | ({"draws": own.draws} if drawings is None else {})

    def least_letters(self) -> float | None:
        """Returns the size of its smallest letters, None without any."""
        parts = itertools.chain.from_iterable(self.drawings().values())
        sizes = (part.has["font-size"] for part in parts if part.tag == "text")
        return min(sizes, default=None)

    def parts(self, step: int, on: Sequence[str] = (), dark: bool = False) -> str:
        """Returns the picture at a step, as the inside of an SVG: what `on` lights is
        outlined, what is not there is faint."""
        lit = set(on)
        made = []
        for mark in self.marks:
            x, y = mark.place(step)
            inside = mark.parts(step)
            if mark.halo and lit.intersection(mark.keys):
                inside = [lit_halo(mark.halo), *inside]
            if not mark.there(step):
                inside = [part.faint() for part in inside]
            made.append(placed_svg([part.svg(dark) for part in inside], x, y))
        return "".join(made)

    def svg(
        self,
        step: int = 0,
        on: Sequence[str] = (),
        dark: bool = False,
        title: str = "",
    ) -> str:
        """Returns the picture at a step as a whole SVG file."""
        return svg_file(
            self.width, self.height, self.parts(step, on, dark), title, dark
        )

    def image(self, step: int = 0, on: Sequence[str] = (), title: str = "") -> str:
        """Returns the picture at a step as an HTML image, which needs no trust."""
        data = base64.b64encode(self.svg(step, on).encode()).decode()
        return (
            # A frame that a script hides needs no image.
            f'<img src="data:image/svg+xml;base64,{data}" loading="lazy" '
            f'alt="{escape(title or self.label)}" width="{self.width:.0f}" '
            'style="max-width:100%;height:auto;display:block">'
        )


def placed_svg(inside: Sequence[str], x: float, y: float) -> str:
    """Returns the parts of a mark at their place: a lone rectangle without a group."""
    if not inside:
        return ""
    across, down = numeral(x), numeral(y)
    [first, *others] = inside
    own = (" x=", " y=", " transform=")
    if first.startswith("<rect ") and not others and not any(map(first.count, own)):
        return f'<rect x="{across}" y="{down}"{first.removeprefix("<rect")}'
    place = f' transform="translate({across} {down})"' if x or y else ""
    return f"<g{place}>{''.join(inside)}</g>"


def bend_between(start: Point, end: Point, curve: str) -> tuple[Point, Point]:
    """Returns the two points towards which a curve leaves and from which it arrives."""
    (x, y), (to_x, to_y) = start, end
    if curve == "h":
        return ((x + to_x) / 2, y), ((x + to_x) / 2, to_y)
    return (x, (y + to_y) / 2), (to_x, (y + to_y) / 2)


@functools.lru_cache(4096)
def halo(x: float, y: float, w: float, h: float) -> Drawn:
    """Returns what lights up around a mark; it is also where a pointer finds it."""
    return rect(x - HALO, y - HALO, w + 2 * HALO, h + 2 * HALO, "halo", round_by=4)


def lit_halo(around: Drawn) -> Drawn:
    """Returns a halo as it looks when its mark is the step."""
    if around.tag == "path":
        return Drawn("path", around.has | {"stroke": "value-wash"})
    return Drawn(
        "rect",
        around.has | {"fill": "base", "stroke": "value", "stroke-width": 2},
    )


def svg_file(
    width: float, height: float, inside: str, title: str = "", dark: bool = False
) -> str:
    """Returns an SVG file with a ground and a title."""
    named = f"<title>{escape(title)}</title>" if title else ""
    ground = f'<rect width="100%" height="100%" fill="{colour("base", dark)}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {numeral(width)} {numeral(height)}" '
        f'{INHERITED} style="font-variant-numeric:tabular-nums">'
        f"{named}{ground}{inside}</svg>"
    )


def fitting(text: str, room: float) -> str:
    """Returns the text, cut with dots where it is wider than the room."""
    # A box wants a twentieth more room than its text takes.
    while text_width(text, 12, True) * 1.05 > room and len(text) > 4:
        text = text.removesuffix("...")[:-1] + "..."
    return text


def byte_scale(most: float, side: float = 56.0) -> float:
    """Returns bytes per square pixel, so that a box of `most` bytes is `side` wide."""
    return max(most, 1) / side**2


def bytes_side(n: float, scale: float) -> float:
    """Returns the side of a box whose area is `n` bytes, at `scale` bytes per square
    pixel. A side below 4 is drawn as a dot by `Scene.box`."""
    return math.sqrt(max(n, 0) / scale)
