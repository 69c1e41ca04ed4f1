"""The picture of `see.vmap`: one example at the left, the batch at the right.

Each line has the equation and its arrays; the batch axis is green in all of them, so
that the eye follows it down. What a batching rule inserted stands in a green band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from minijax_lab.explain.batch_facts import BatchRecording, Grid, Value
from minijax_widgets.glyph import Glyph, glyph, text_width
from minijax_widgets.scene import Scene
from minijax_widgets.view import short_names
from minijax_widgets.vmap_lines import Line

LABEL = 20
LINE = 16  # of code that does not fit in one
MOST_LINES = 3
MOST_LETTERS = 18  # of an argument's name over the picture
ARROW = 30
GAP = 14
LEAST_SCALE = 0.45
CELL = 14
MOST_EXAMPLES = 16
MOST_BRANCHES = 8
INDENT = 14


@dataclass(frozen=True)
class Layout:
    """Where the columns stand, in pixels; a narrow page has one column."""

    width: float
    one: float
    one_width: float
    many: float
    many_width: float
    why: float
    scale: float

    @property
    def wide(self) -> bool:
        """Whether the columns stand side by side."""
        return self.width > 600


WIDE = Layout(964, 14, 280, 306, 322, 640, 0.85)
MIDDLE = Layout(690, 14, 200, 220, 240, 468, 0.65)
NARROW = Layout(288, 8, 272, 8, 272, 8, 0.55)


@dataclass
class Arrays:
    """Operands, an arrow and results, fitted into a width."""

    before: list[Glyph]
    after: list[Glyph]
    values_before: list[Value]
    values_after: list[Value]
    left_out: int
    scale: float

    @property
    def height(self) -> float:
        """How high the highest is."""
        return max((g.h for g in [*self.before, *self.after]), default=0.0)

    @property
    def width(self) -> float:
        """How wide all of them are together."""
        return width_of(self.before, self.after, self.left_out)


def width_of(before: Sequence[Glyph], after: Sequence[Glyph], left_out: int) -> float:
    """The width of operands, arrow and results."""
    wide = sum(g.w + GAP for g in [*before, *after])
    arrow = ARROW + GAP if before and after else 0
    return wide + arrow + (34 if left_out else 0)


def marks(value: Value) -> list[int]:
    """The batch axes of a value: that of this vmap first."""
    own = [] if value.batch is None else [value.batch]
    return [*own, *value.inner]


def drawn(value: Value, scale: float) -> Glyph:
    """The glyph of a value."""
    role = "constant" if value.kind in ("literal", "constant") else "value"
    return glyph(value.shape, batch=marks(value), role=role, scale=scale)


def fitted(
    before: Sequence[Value], after: Sequence[Value], width: float, scale: float
) -> Arrays:
    """Glyphs as large as fit into a width; the last operands are left out first."""
    operands = [value for value in before if value.kind != "literal"] or list(before)
    operands, results = list(operands), list(after)
    left_out = 0
    while True:
        size = scale
        while size >= LEAST_SCALE:
            made = [drawn(value, size) for value in operands]
            told = [drawn(value, size) for value in results]
            if width_of(made, told, left_out) <= width or size < LEAST_SCALE + 0.01:
                break
            size = max(LEAST_SCALE, size - 0.1)
        if width_of(made, told, left_out) <= width or len(operands) + len(results) < 3:
            return Arrays(made, told, operands, results, left_out, size)
        # What is the same for all tells less.
        longer = operands if len(operands) >= len(results) else results
        shared = [v for v in longer if v.batch is None and not v.inner]
        longer.remove(shared[-1] if shared and longer is operands else longer[-1])
        left_out += 1


class Picture:
    """Draws the lines of a recording into a scene."""

    def __init__(
        self, record: BatchRecording, lines: Sequence[Line], layout: Layout
    ) -> None:
        self.record = record
        self.lines = lines
        self.layout = layout
        self.scene = Scene(layout.width, 10, "the batch axis as a picture")
        y = self.head()
        program = ("", 0)
        for number, line in enumerate(lines):
            if line.program and (line.program, line.depth) != program:
                y = self.caption(line, y)
            program = (line.program, line.depth)
            y = self.line(number, line, y)
        end = (
            f"vmap is not a loop: {record.size:,} examples go through every equation "
            "together"
        )
        y = self.paragraph(layout.one, y + 14, end, layout.width - 24, "constant")
        self.scene.height = y + 4

    # ---- parts -----------------------------------------------------------------------

    def head(self) -> float:
        """Places the columns' titles and the arguments; returns where they end."""
        record, layout, scene = self.record, self.layout, self.scene
        together = f"{record.size:,} examples together"
        if layout.wide:
            scene.text(layout.one, 16, "one example", role="constant", weight=600)
            scene.text(layout.many, 16, together, role="batch", weight=600)
            scene.text(
                layout.why, 16, "why the axis is there", role="constant", weight=600
            )
        else:
            scene.text(layout.one, 16, f"one example, then {together}", role="batch")
        y = 26.0
        shared = sum(value.batch is None for value in record.batched_inputs)
        given = len(record.batched_inputs)
        why = "what comes in: all of it has the axis"
        if shared == given:
            why = "what comes in: none of it has the axis"
        elif shared:
            have = "has" if given - shared == 1 else "have"
            rest = "the other is" if shared == 1 else "the others are"
            why = f"what comes in: {given - shared} of {given} {have} the axis, {rest} "
            why += "the same for all"
        if not given:
            return y
        # In short, and of many arguments the first ones.
        short = short_names([value.name for value in record.inputs], MOST_LETTERS)
        names, many = list(short.values()), len(short)
        room = 2 * int(layout.one_width / text_width("m", 12, True)) - 8
        while len(", ".join(names)) > room and len(names) > 1:
            names.pop()
        if len(names) < many:
            names.append(f"+{many - len(names)}")
        told = ", ".join(names)
        return self.sides(
            y, told, record.inputs, [], told, record.batched_inputs, [], why, 0, False
        )

    def caption(self, line: Line, y: float) -> float:
        """Places the name of a program inside of a row: "each turn"."""
        x = self.layout.one + INDENT * (line.depth - 1)
        self.scene.note(x, y + 16, f"{line.program}:", weight=600)
        return y + 20

    def line(self, number: int, line: Line, y: float) -> float:
        """Places a line; returns where it ends."""
        if line.kind == "fold":
            return self.fold(number, line, y)
        layout, row, eqn = self.layout, line.row, line.eqn
        assert row is not None
        start = len(self.scene.marks)
        if line.kind == "work":
            one = (row.text, row.operands, row.results)
            many = (
                ("", [], []) if eqn is None else (eqn.text, eqn.operands, eqn.results)
            )
        else:
            assert eqn is not None
            one = ("no equation: this one is new", [], [])
            many = (f"{eqn.text}", eqn.operands, eqn.results)
        inserted = line.kind == "inserted"
        top = y
        y = self.sides(
            y, *one, *many, line.why, line.depth, inserted, number if line.moves else -1
        )
        if row.grid and line.kind == "work":
            y = self.grid(row.grid, y)
        # The ground of the line, behind all of it: what lights and what is clicked.
        marks = self.scene.marks[start:]
        del self.scene.marks[start:]
        self.scene.band(
            top,
            y - top - 4,
            x=4,
            w=layout.width - 8,
            key=self.keys(number, line),
            role="batch" if inserted else "base",
            go=number,
            tell=line.why,
            label=f"{many[0] or one[0]}: {line.why}",
        )
        self.scene.marks += marks
        return y

    def keys(self, number: int, line: Line) -> list[str]:
        """The keys of a line: its own, and those of the table's rows."""
        own = [f"l{number}"]
        if len(line.equations) <= 40:
            own += [f"e{eqn}" for eqn in line.equations]
        return own

    def fold(self, number: int, line: Line, y: float) -> float:
        """Places a line that stands for many."""
        layout = self.layout
        x = layout.one + INDENT * line.depth
        wide = layout.many + layout.many_width - x if layout.wide else layout.one_width
        letters = int(wide / text_width("m", 12.5)) - 2
        text = wrap(line.text, max(letters, 20))
        height = 18 * len(text) + 10
        self.scene.box(
            x,
            y + 4,
            wide,
            height,
            key=self.keys(number, line),
            role="batch" if line.moves else "",
            go=number,
            says=f"{line.text}; {line.why}",
        )
        for index, part in enumerate(text):
            self.scene.text(x + 10, y + 22 + 18 * index, part, size=12.5)
        if layout.wide:
            room = layout.width - layout.why - 6
            end = self.paragraph(layout.why, y + 10, line.why, room)
            return max(y + height + 12, end + 4)
        return self.paragraph(x, y + height + 6, line.why, wide) + 6

    def grid(self, grid: Grid, y: float) -> float:
        """Places examples by branches: all are computed, one of each is kept."""
        layout, scene = self.layout, self.scene
        x = layout.many
        shown = min(grid.examples, MOST_EXAMPLES)
        branches = grid.branches[:MOST_BRANCHES]
        label = max(text_width(name, 12) for name in branches) + 8
        for place, name in enumerate(branches):
            top = y + place * (CELL + 4)
            scene.note(x, top + 11, name)
            for example in range(shown):
                kept = grid.chosen is not None and grid.chosen[example] == place
                role = "batch" if kept else ("value" if grid.chosen is None else "")
                scene.box(
                    x + label + example * (CELL + 3),
                    top,
                    CELL,
                    CELL,
                    role=role,
                    text="",
                    label=self.cell_label(grid, example, name, kept),
                )
            if grid.examples > shown:
                scene.text(x + label + shown * (CELL + 3) + 4, top + 11, "...")
        y += len(branches) * (CELL + 4) + 4
        count = grid.examples * len(grid.branches)
        said = (
            f"{grid.examples:,} examples x {len(grid.branches)} branches: {count:,} "
            f"results are computed, {grid.examples:,} are kept"
        )
        if grid.chosen is None:
            said += " (values=True shows which)"
        else:
            said += " (green)"
        return self.paragraph(x, y, said, layout.many_width, "constant") + 4

    def cell_label(self, grid: Grid, example: int, name: str, kept: bool) -> str:
        """What a screen reader says of a cell."""
        state = "computed"
        if grid.chosen is not None:
            state = "kept" if kept else "computed and discarded"
        return f"example {example}, {name}: {state}"

    def sides(
        self,
        y: float,
        one_text: str,
        one_before: Sequence[Value],
        one_after: Sequence[Value],
        many_text: str,
        many_before: Sequence[Value],
        many_after: Sequence[Value],
        why: str,
        depth: int,
        inserted: bool,
        turning: int = -1,
    ) -> float:
        """Places both sides of a line and the reason; returns where they end.

        In the step `turning` the batched operand slides to the result and turns.
        """
        layout, scene = self.layout, self.scene
        indent = INDENT * min(depth, 4)
        x = layout.one + indent
        room = layout.one_width - indent
        ink = "batch" if inserted else ""
        y += 4
        if inserted:
            if layout.wide:
                scene.text(x, y + 14, one_text, role="batch", size=12.5)
            left_end = y + LABEL
        else:
            left_end = self.code(x, y, one_text, room)
            left = fitted(one_before, one_after, room, layout.scale)
            if left.before or left.after:
                left_end = self.arrays(left, x, left_end, -1)
        many_x, many_room = layout.many, layout.many_width
        many_y = y
        if not layout.wide:
            many_x, many_room = x, room
            many_y = y if inserted else left_end
        right_end = many_y + LABEL
        if many_text:
            weight = 600 if inserted else 400
            right_end = self.code(
                many_x, many_y, many_text, many_room, role=ink, weight=weight
            )
            right = fitted(many_before, many_after, many_room, layout.scale)
            right_end = self.arrays(right, many_x, right_end, turning)
        elif not layout.wide:
            right_end = many_y
        if layout.wide:
            reason_end = self.paragraph(
                layout.why, y, why, layout.width - layout.why - 6, ink
            )
            return max(left_end, right_end, reason_end) + 6
        return self.paragraph(x, right_end, why, room, ink) + 8

    def code(self, x: float, y: float, text: str, room: float, **options: Any) -> float:
        """Places code in lines that fit; returns where the last one ends."""
        letters = int(room / text_width("m", 12, True))
        lines = wrap(
            text, letters, subsequent_indent="  ", max_lines=MOST_LINES,
            placeholder=" ...", break_on_hyphens=False,
        )  # fmt: skip
        for number, said in enumerate(lines):
            at = y + 14 + LINE * number
            self.scene.text(x, at, said, size=12, mono=True, **options)
        return y + LABEL + LINE * max(0, len(lines) - 1)

    def arrays(self, arrays: Arrays, x: float, y: float, turning: int) -> float:
        """Places operands, an arrow and results; returns where they end."""
        scene = self.scene
        high = max((-g.top for g in [*arrays.before, *arrays.after]), default=0.0)
        deep = max((g.bottom for g in [*arrays.before, *arrays.after]), default=0.0)
        middle = y + high + 2
        places: list[tuple[float, Value]] = []
        for value, made in zip(arrays.values_before, arrays.before):
            places.append((x - made.left, value))
            self.place(value, x - made.left, middle, arrays.scale)
            x += made.w + GAP
        if arrays.left_out:
            scene.note(x, middle + 4, f"+{arrays.left_out}")
            x += 34
        if arrays.before and arrays.after:
            scene.arrow((x, middle), (x + ARROW, middle))
            x += ARROW + GAP
        for value, made in zip(arrays.values_after, arrays.after):
            self.place(value, x - made.left, middle, arrays.scale)
            if turning >= 0:
                batched = [p for p in places if p[1].batch is not None]
                if batched and value.batch is not None:
                    self.traveller(
                        batched[0],
                        (x - made.left, value),
                        middle,
                        arrays.scale,
                        turning,
                    )
            x += made.w + GAP
        return middle + deep + 4

    def place(self, value: Value, x: float, y: float, scale: float) -> None:
        """Places the glyph of a value, the middle of its card at (x, y)."""
        role = "constant" if value.kind in ("literal", "constant") else "value"
        self.scene.glyph(
            value.shape,
            x,
            y,
            role=role,
            batch=marks(value),
            scale=scale,
            centered=True,
            label=f"{value.name} {value.type}",
        )

    def traveller(
        self,
        start: tuple[float, Value],
        end: tuple[float, Value],
        y: float,
        scale: float,
        step: int,
    ) -> None:
        """Places the array that slides in one step from an operand to the result."""
        (x, before), (to_x, after) = start, end
        self.scene.glyph(
            before.shape,
            x,
            y,
            batch=marks(before),
            scale=scale,
            centered=True,
            turns=[
                (step, marks(after), after.shape),
                (step + 1, marks(before), before.shape),
            ],
            moves=[(step, to_x, y), (step + 1, x, y)],
            label="the batch axis moves",
        )

    def paragraph(
        self, x: float, y: float, text: str, width: float, role: str = ""
    ) -> float:
        """Places a text in lines of a width; returns where it ends."""
        letters = max(20, int(width / text_width("m", 12.5)))
        for part in wrap(text, letters):
            self.scene.text(x, y + 14, part, size=12.5, role=role)
            y += 17
        return y + 3
