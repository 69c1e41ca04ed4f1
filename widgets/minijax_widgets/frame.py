"""What a view hands the player: panes of rows, and steps that light parts of them.

A view turns its recording into a `Frame`. From a frame come the player's JSON, which
`widgets/src/player/frame.ts` describes with the same names, and the static frame: the
finished picture as plain tables for a notebook that is not trusted, in which style
sheets, variables and inline SVG are lost.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Any

from minijax_lab.explain.small_values import Values
from minijax_widgets import signs
from minijax_widgets.cells import with_values
from minijax_widgets.glyph import (
    as_inline,
    glyph,
    numeral,
    text_width,
    told_only,
    words,
)
from minijax_widgets.legend import legend, scenes_of
from minijax_widgets.scene import Drawings, Scene, svg_file
from minijax_widgets.style import CODE, LIGHT, PALETTE, TEXT

# Around the picture in an SVG file.
MARGIN = 16
# Glyphs in the strip of live names, and those that show what an array holds.
LIVE_SCALE = 0.45
LARGER_SCALE = 0.9
# A browser shows this many rows of a static frame without delay.
STATIC_ROWS = 48
# The marks of a picture with more than these are JSON of their own, which the player
# reads when it draws the picture: a page draws only one of a pane's layouts.
MANY_MARKS = 100
# With what the role of a sign begins.
SIGN = "sign "
# Letters that turn the text after them around, or hide it, are shown as a sign: one for
# one, so that columns stay.
UNSEEN = [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)]
UNSEEN.append(0xFEFF)


@dataclass
class Piece:
    """A part of a cell's text. What shares `key` is lit together.

    `role` is a role of the palette ("value", "constant", ...), or "chip" and "dash",
    "jump" for a name whose click goes to its step, "type" for what types on demand are,
    "changed" for what a comparison found different, "params" for what stands behind
    `...` until it is asked for, "bytes" for a bar of as many pixels as the text says,
    "sign tick" for a drawn sign (`signs.py`).
    `link` is a page beside the one that shows the view, as "cards/sin.html".
    """

    text: str
    role: str = ""
    key: str = ""
    defines: bool = False
    link: str = ""

    def to_json(self) -> list[Any]:
        """Returns `[text, role, key, flags, link]` without what the end lacks."""
        parts = [self.text, self.role, self.key, int(self.defines), self.link]
        while not parts[-1]:
            parts.pop()
            if len(parts) == 1:
                break
        return parts


@dataclass
class Row:
    """A row of a pane: cells of pieces, and how the player treats it.

    `at` is the step from which on the row is there, `go` the step that a click goes to,
    `depth` makes it belong to the last shallower row, which folds it. `look` is "head",
    "py", "error", "group", "miss", "add" or "del"; "kept" and "backward" say which part
    of a derivative an equation is. `tell` is a sentence about the row.
    """

    cells: list[list[Piece] | str]
    keys: list[str] = field(default_factory=list)
    at: int | None = None
    go: int | None = None
    depth: int = 0
    folded: bool = False
    tell: str = ""
    look: str = ""

    def pieces(self) -> list[list[Piece]]:
        """Returns the cells, texts as single pieces."""
        return [[Piece(c)] if isinstance(c, str) else c for c in self.cells]

    def to_json(self) -> dict[str, Any]:
        """Returns the row with one-letter names, without what has its usual value."""
        cells = [[piece.to_json() for piece in cell] for cell in self.pieces()]
        return {"c": cells} | told_only(
            k=self.keys,
            at=self.at,
            go=self.go,
            d=self.depth or None,
            f=self.folded,
            t=self.tell,
            s=self.look,
        )


# More rows than this, in a pane or below one of its rows, open in parts, so that a page
# never draws them all.
MANY = 300
PART = 100


def in_parts(rows: list[Row]) -> list[Row]:
    """Returns rows with a folded heading over each part of those that are too many."""
    if len(rows) <= MANY:
        return rows
    depth = rows[0].depth
    starts = [at for at, row in enumerate(rows) if row.depth == depth]
    count = len(starts)
    found: list[Row] = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(rows)])):
        if count > MANY and number % PART == 0:
            last = min(number + PART, count)
            text = f"{number + 1:,} to {last:,} of {count:,}"
            found.append(Row([text], depth=depth, folded=True, look="group"))
        inside = [rows[start], *in_parts(rows[start + 1 : end])]
        for row in inside if count > MANY else []:
            row.depth += 1
        found += inside
    return found


@dataclass
class Pane:
    """A part of the picture.

    Its `kind` is "scene", a table, code, prose that wraps, a listing or tiles.
    `scene` is a picture of marks; `middle`, `less` and `narrow` are this picture for
    narrower pages, and `layouts` are those with other boxes open (a mark's `opens`).
    A "strip" is a scene for which other panes leave room. A listing is a text with a
    rail of remarks, which narrow pages leave out; "sides" are a sign and two programs.
    Cells of tiles wrap, and each tile is a step, the one that lights its key. A pane is
    as wide as its contents; `below` puts it under the pane before it, `wide` under all.
    `key` is a key of the keyboard that hides the pane and shows it again.
    """

    title: str
    rows: list[Row]
    kind: str = "table"
    columns: list[str] | None = None
    below: bool = False
    wide: bool = False
    scene: Scene | None = None
    middle: Scene | None = None
    less: Scene | None = None
    narrow: Scene | None = None
    layouts: list[Scene] = field(default_factory=list)
    key: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the pane as the player takes it."""
        rows = [row.to_json() for row in self.rows]
        drawings = Drawings()

        def drawn(scene: Scene | None) -> dict[str, Any] | None:
            return None if scene is None else scene.to_json(drawings)

        return {"title": self.title, "kind": self.kind, "rows": rows} | told_only(
            below=self.below,
            wide=self.wide,
            key=self.key,
            columns=self.columns,
            scene=drawn(self.scene),
            middle=drawn(self.middle),
            less=drawn(self.less),
            narrow=drawn(self.narrow),
            layouts=[drawn(scene) for scene in self.layouts],
            # Behind the scenes, which fill it.
            draws=drawings.draws,
        )


def scene_pane(
    draw: Callable[[Any], Scene],
    wide: Any,
    narrow: Any,
    middle: Any = None,
    title: str = "",
) -> Pane:
    """Returns a pane under all others, with a picture drawn for each width of page."""
    return Pane(
        title,
        [],
        kind="scene",
        wide=True,
        scene=draw(wide),
        middle=None if middle is None else draw(middle),
        narrow=draw(narrow),
    )


@dataclass
class FrameStep:
    """One step: what it is called, what it says, what it lights.

    `marks` are parts of code rows: (pane, row, first column, end column). `live` are
    names with what they hold, and whether that is traced. `look` is "error" where
    something went wrong.
    """

    label: str
    detail: str
    on: list[str] = field(default_factory=list)
    marks: list[tuple[int, int, int, int]] = field(default_factory=list)
    live: list[tuple[str, str, bool]] = field(default_factory=list)
    look: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the step as the player takes it."""
        return {"label": self.label, "detail": self.detail} | told_only(
            on=self.on, marks=self.marks, live=self.live, s=self.look
        )


@dataclass
class Jump:
    """A key of one view: it goes to the next of some steps, in the order given."""

    key: str
    what: str
    steps: list[int]


@dataclass
class Axes:
    """The grid in which the steps stand: `places` has an entry for each step."""

    names: list[str]
    sizes: list[int]
    places: list[list[int]]


@dataclass
class Frame:
    """A whole picture. `telling` is the step to show first.

    `only` says that the steps are equations: some of them may be shown alone, and types
    hidden. `jumps` are keys that only this view has. Steps in a grid have `axes`: a
    slider for each, besides that of the steps. `holds` are names and values of what
    stands in `live`, by its text. `glyphs` are drawings that stand for pieces, by role.
    """

    kind: str
    call: str
    headline: str
    panes: list[Pane]
    steps: list[FrameStep] = field(default_factory=list)
    telling: int = 0
    text: str = ""
    live: str | None = None
    holds: dict[str, tuple[str, Values]] = field(default_factory=dict)
    only: bool = False
    jumps: list[Jump] = field(default_factory=list)
    axes: Axes | None = None
    glyphs: dict[str, Any] = field(default_factory=dict)
    # What colours mean in this picture, where its kind does not say it.
    meanings: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns the frame as the player's JSON."""
        page: dict[str, Any] = {
            "kind": self.kind,
            "call": self.call,
            "headline": self.headline,
            "telling": self.telling,
            "steps": [step.to_json() for step in self.steps],
            "panes": [pane.to_json() for pane in self.panes],
            "text": self.text,
        } | told_only(
            live=self.live,
            glyphs=self.live_glyphs() | self.signs() | self.glyphs,
            only=self.only,
            axes=self.axes and dataclasses.asdict(self.axes),
            jumps=[
                [jump.key, jump.what, jump.steps] for jump in self.jumps if jump.steps
            ],
        )
        page |= told_only(legend=legend(page, self.meanings))
        for pane in page["panes"]:
            for scene in scenes_of(pane):
                if len(scene["marks"]) > MANY_MARKS:
                    scene["packed"] = as_json(scene.pop("marks"))
        return all_seen(as_json(page))

    def live_glyphs(self) -> dict[str, Any]:
        """Returns a small glyph for each array that a name holds in some step."""
        found: dict[str, Any] = {}
        for _, value, traced in (name for step in self.steps for name in step.live):
            shape = shape_of_type(value)
            if shape is None or value in found:
                continue
            role = "value" if traced else "constant"
            holds = self.holds.get(value, ("", []))
            scale = LARGER_SCALE if holds[1] else LIVE_SCALE
            made = glyph(shape, role=role, scale=scale, sizes=False)
            drawn = with_values(made, *holds)
            found[value] = as_inline(made.left, made.top, made.w, made.h, drawn)
        return found

    def signs(self) -> dict[str, Any]:
        """Returns the drawn signs that pieces ask for, by their role."""
        pieces = (
            piece
            for pane in self.panes
            for row in pane.rows
            for cell in row.pieces()
            for piece in cell
        )
        roles = {p.role: None for p in pieces if p.role.startswith(SIGN)}
        return {role: signs.inline(role.removeprefix(SIGN)) for role in roles}

    def static_html(self) -> str:
        """Returns the telling step as tables with inline colours, in the light theme.

        An untrusted notebook keeps nothing else; everywhere else the player replaces
        it. All text is escaped.
        """
        step = self.steps[self.telling] if self.steps else None
        on = set(step.on) if step else set()
        marks = {(p, r): (a, b) for p, r, a, b in (step.marks if step else [])}
        parts = [
            f'<div style="font:600 15px/22px {TEXT};margin-bottom:8px">'
            f"{escape(self.headline)}</div>"
        ]
        for number, pane in enumerate(self.panes):
            if pane.scene is not None:
                parts.append(_static_scene(pane, self.telling, step))
            else:
                parts.append(_static_pane(pane, number, on, marks))
        if step and step.detail:
            parts.append(
                f'<div style="margin-top:8px;padding:4px 8px;border-left:3px solid '
                f'{LIGHT["line"]};background:{LIGHT["panel"]};color:{LIGHT["text"]}">'
                f"{escape(step.detail)}</div>"
            )
        return all_seen("".join(parts))

    def svg(self, dark: bool = False) -> str:
        """Returns the scenes at the telling step as one SVG file, one under another,
        with the headline above. Raises ValueError for a frame without any."""
        step = self.steps[self.telling] if self.steps else None
        panes = [(pane, pane.scene) for pane in self.panes if pane.scene is not None]
        if not panes:
            raise ValueError("this picture is made of text: no pane holds a scene.")
        width = max(scene.width for _, scene in panes) + 2 * MARGIN
        made = []
        y = float(MARGIN)
        letters = max(20, int((width - 2 * MARGIN) / text_width("m", 15, weight=600)))
        for part in wrap(self.headline, letters):
            y += 16
            made.append(words(MARGIN, y, part, size=15, weight=600).svg(dark))
            y += 6
        for pane, scene in panes:
            if pane.title:
                y += 20
                title = words(MARGIN, y, pane.title, "constant", weight=600)
                made.append(title.svg(dark))
            y += 8
            inside = scene.parts(self.telling, step.on if step else (), dark)
            made.append(f'<g transform="translate({MARGIN} {numeral(y)})">{inside}</g>')
            y += scene.height
        height = y + MARGIN
        page = svg_file(width, height, "".join(made), self.headline, dark)
        return all_seen(page)


def all_seen(text: str) -> str:
    """Returns the text with a sign for each letter that cannot be seen."""
    for letter in UNSEEN:  # faster than `translate`: mostly there is none
        text = text.replace(chr(letter), "\ufffd")
    return text


def as_json(page: Any) -> str:
    """Returns JSON without spaces."""
    return json.dumps(page, ensure_ascii=False, separators=(",", ":"))


def shape_of_type(text: str) -> tuple[int, ...] | None:
    """Returns the shape in `a:f32[2,3]` or `f32[2,3]`; None for any other text."""
    found = re.fullmatch(r"(?:\w+:)?[a-z]+\d*\[((?:\d+(?:,\d+)*)?)\]", text)
    if found is None:
        return None
    return tuple(int(size) for size in found[1].split(",") if size)


# Inline: an untrusted notebook keeps nothing else, and has a colour of its own.
CELL = (
    "border:0;text-align:left;vertical-align:top;white-space:pre;line-height:20px;"
    "padding:0 16px 0 8px"
)

# Looks of rows that stand on a role's wash.
LOOKS = {"add": "batch", "del": "miss"}

# Equations that the backward pass reads or consists of have an edge.
EDGES = {
    "kept": f";border-left:5px double {PALETTE['residual'][0]}",
    "backward": f";border-left:5px solid {PALETTE['cotangent'][0]}",
}


def _static_title(title: str) -> str:
    if not title:
        return ""
    return (
        f'<div style="color:{PALETTE["constant"][0]};font:600 13px/20px {TEXT};'
        f'padding:0 8px">{escape(title)}</div>'
    )


def _static_scene(pane: Pane, telling: int, step: FrameStep | None) -> str:
    assert pane.scene is not None
    image = pane.scene.image(telling, step.on if step else (), pane.title)
    return f'{_static_title(pane.title)}<div style="margin:0 0 8px">{image}</div>'


def _static_pane(
    pane: Pane, number: int, on: set[str], marks: dict[tuple[int, int], tuple[int, int]]
) -> str:
    rows: list[str] = []
    around = _rows_around(pane, on)
    for index, row in enumerate(pane.rows):
        if not around[0] <= index < around[1]:
            continue
        edge = EDGES.get(row.look, "")
        ground = LIGHT["panel"] if on.intersection(row.keys) else LIGHT["base"]
        if row.look in LOOKS:
            ground = PALETTE[LOOKS[row.look]][1]
        cells = []
        shown = list(row.pieces())
        while len(shown) > 1 and not any(piece.text for piece in shown[-1]):
            shown.pop()
        for column, pieces in enumerate(shown):
            gap = " " if pane.kind == "tiles" else ""
            text = gap.join(_static_piece(piece, on) for piece in pieces)
            if column == (1 if pane.kind == "code" else 0) and (number, index) in marks:
                start, end = marks[number, index]
                whole = "".join(piece.text for piece in pieces)
                wash = PALETTE["value"][1]
                text = (
                    f'{escape(whole[:start])}<span style="background:{wash}">'
                    f"{escape(whole[start:end])}</span>{escape(whole[end:])}"
                )
            deeper = row.depth and not column
            indent = f";padding-left:{8 + 16 * row.depth}px" if deeper else ""
            look = "" if column else edge
            if gap or (pane.kind == "prose" and column):
                look += ";white-space:normal"
            elif pane.kind == "sides" and column:
                look = ";white-space:pre-wrap;width:50%"
            elif pane.kind == "code" and not column:
                look = f";text-align:right;color:{PALETTE['constant'][0]}"
            # The number of an empty line of code stays in its column.
            last = column + 1 == len(shown) and pane.kind != "code"
            more = len(row.pieces()) - column if last else 1
            span = f' colspan="{more}"' if more > 1 else ""
            cells.append(f'<td{span} style="{CELL}{indent}{look}">{text}</td>')
        row_style = f"border:0;background:{ground}"
        rows.append(f'<tr style="{row_style}">{"".join(cells)}</tr>')
    hidden = len(pane.rows) - (around[1] - around[0])
    title = pane.title + (f" ({hidden:,} more rows)" if hidden else "")
    return (
        f'{_static_title(title)}<div style="overflow-x:auto">'
        f'<table style="border-collapse:collapse;border:0;margin:0 0 8px;'
        f'font:13px/20px {CODE};color:{LIGHT["text"]}"><tbody>{"".join(rows)}'
        "</tbody></table></div>"
    )


def _rows_around(pane: Pane, on: set[str]) -> tuple[int, int]:
    """Returns which rows a static frame shows of a long pane: those at what is lit."""
    count = len(pane.rows)
    if count <= STATIC_ROWS:
        return 0, count
    lit = next((i for i, row in enumerate(pane.rows) if on.intersection(row.keys)), 0)
    start = max(0, min(lit - STATIC_ROWS // 2, count - STATIC_ROWS))
    return start, start + STATIC_ROWS


def _static_piece(piece: Piece, on: set[str]) -> str:
    if piece.role == "bytes":
        ink, wash = PALETTE["residual"][:2]
        return (
            f'<span style="display:inline-block;height:10px;width:{int(piece.text)}px;'
            f'background:{wash};border:1px solid {ink}"></span>'
        )
    if piece.role.startswith(SIGN):
        return signs.image(piece.role.removeprefix(SIGN), escape(piece.text))
    text = escape(piece.text)
    role = piece.role.partition(" ")[0]
    style = ""
    if role in PALETTE:
        style += f"color:{PALETTE[role][0]}"
    if role == "changed":
        style += f"background:{PALETTE['residual'][1]}"
    if piece.key or role == "strong":
        style += ";font-weight:600"
    if piece.key:
        if piece.key in on:
            style += f";background:{PALETTE['value'][1]}"
    if piece.link:
        return f'<a href="{escape(piece.link)}" style="{style.lstrip(";")}">{text}</a>'
    return f'<span style="{style.lstrip(";")}">{text}</span>' if style else text
