"""`see.vmap`: the batch axis as a picture, equation by equation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax_lab.explain.batch_facts import BatchedEquation, BatchRecording, Row
from minijax_lab.explain.batching import record_vmap
from minijax_widgets import frame as picture
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.foreign_pane import lost_panes, lost_rows
from minijax_widgets.view import (
    NOTHING,
    WIDTH,
    View,
    cut,
    shortened,
    shows,
    with_options,
)
from minijax_widgets.vmap_lines import Line, lines_of
from minijax_widgets.vmap_scene import MIDDLE, NARROW, WIDE, Picture

# Columns of the text twin: one example, batched.
LEFT, RIGHT = 33, 39
# Above this many rows, those of one source line fold into a group.
MANY = 300
# Rows that one step lights; of a longer fold it lights the heading alone.
MOST_LIT = 60


@with_options
def vmap(
    function: Callable[..., Any],
    *args: Any,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: Any = None,
    values: bool = False,
    **kwargs: Any,
) -> VmapView:
    """Shows what `vmap(function, in_axes, out_axes, ...)` makes of each equation.

    Arguments are those of the batched function, keyword arguments are batched over
    their first axis, as `vmap` does it; `ShapeDtypeStruct`s serve as well as arrays.
    With `values` the program runs, so that the picture of a `cond` says which branch
    each example keeps. A jaxpr that JAX traced for one example serves as a function,
    `see.vmap(jax.make_jaxpr(f)(x), xs)`: minijax batches it, `in_axes` counts its
    arrays, and the view says what such a jaxpr does not carry. Raises what `vmap`
    raises.
    """
    return VmapView(
        record_vmap(
            function,
            *args,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_size=axis_size,
            axis_name=axis_name,
            values=values,
            **kwargs,
        )
    )


@shows("vmap")
class VmapView(View):
    """One example at the left, the batch at the right, the batch axis in green."""

    recording: BatchRecording

    @functools.cached_property
    def lines(self) -> list[Line]:
        """The lines of the picture."""
        return lines_of(self.recording)

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each batched equation."""
        record = self.recording
        rows: list[str] = []
        for row in record.rows:
            rows += self.twin(row)
        return "\n".join(
            [record.headline, *shortened(rows, full), *lost_rows(record.lost)]
        )

    def twin(self, row: Row) -> list[str]:
        """Returns a row of the recording as rows of the text twin."""
        mark = ">" if row.id == self.recording.telling else " "
        left = f"{mark} {'  ' * row.depth}{row.text}"
        if row.program and row.program != self.program_before(row):
            left = f"{mark} {'  ' * row.depth}{row.program}: {row.text}"
        found = []
        for eqn in row.batched:
            found.append(
                f"{cut(left, LEFT):{LEFT}} {cut(eqn.text, RIGHT):{RIGHT}} "
                f"{self.brief(row, eqn)}"
            )
            left = ""
        if not row.batched:
            found.append(f"{cut(left, LEFT):{LEFT}} {'':{RIGHT}} no equation")
        if row.grid:
            count = len(row.grid.branches)
            found.append(
                f"{'':{LEFT}} {row.grid.examples:,} examples x {count} branches: all "
                "are computed"
            )
            for number, name in enumerate(row.grid.branches):
                cells = self.cells(row, number)
                found.append(f"{'':{LEFT}} {name:10} {cells}")
        return [cut(line.rstrip(), WIDTH) for line in found]

    def brief(self, row: Row, eqn: BatchedEquation) -> str:
        """Returns where a result has the axis, and who put it there, in few words."""
        after = [value.batch for value in eqn.results] or [None]
        where = ", ".join(dict.fromkeys(map(place_in_words, after)))
        if any(not value.followed for value in eqn.results):
            where = "merged with an axis"
        if eqn.inserted:
            who = row.primitive.partition("[")[0] or "out_axes"
            return f"{where}: inserted by {who}"
        before = {value.batch for value in eqn.operands} - {None}
        if before and not {*after} - {None} <= before:
            return f"{where}: put there"
        return where

    def cells(self, row: Row, branch: int) -> str:
        """Returns a branch's row of the grid: `#` kept, `.` discarded, `o` computed."""
        grid = row.grid
        assert grid is not None
        shown = min(grid.examples, 32)
        rest = " ..." if grid.examples > shown else ""
        if grid.chosen is None:
            return "o" * shown + rest
        return "".join("#" if c == branch else "." for c in grid.chosen[:shown]) + rest

    def program_before(self, row: Row) -> str:
        """Returns the program that the row before belongs to."""
        if not row.id:
            return ""
        before = self.recording.rows[row.id - 1]
        return before.program if before.depth == row.depth else ""

    def detail(self, row: Row, eqn: BatchedEquation | None) -> str:
        """Returns all that is known of a batched equation, as a few sentences."""
        parts = [row.text]
        if eqn is not None:
            parts.append(f"batched: {eqn.text}")
            parts.append(eqn.why if eqn.inserted else row.why)
        else:
            parts.append(row.why)
        if row.rule:
            parts.append(f"rule: {row.rule} ({row.file}:{row.line})")
        if row.span is not None:
            source = self.recording.sources[row.span.source]
            said = self.recording.source_text(row)
            parts.append(f"{source.file}, line {row.span.line}: {said}")
        if row.note:
            parts.append(row.note)
        return "  |  ".join(parts)

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> picture.Frame:
        """Returns the picture: the arrays, then the equations, then the source."""
        record = self.recording
        spans = [row.span for row in record.rows if row.span is not None]
        sources = code_panes(record.sources, spans)
        steps = []
        for number, line in enumerate(self.lines):
            on = [f"l{number}"]
            if len(line.equations) <= MOST_LIT:
                on += [f"e{eqn}" for eqn in line.equations]
            first = record.rows[line.rows[0]]
            if line.kind == "fold":
                label, detail = "folded", f"{line.text}  |  {line.why}"
            else:
                eqn = line.eqn
                label = eqn.primitive if eqn is not None else first.primitive
                detail = self.detail(first, eqn)
            marks = mark_of(sources, first.span, first_pane=2)
            steps.append(picture.FrameStep(label, detail, on, marks))
        layouts = (WIDE, MIDDLE, NARROW)
        drawn = [Picture(record, self.lines, layout).scene for layout in layouts]
        arrays = picture.Pane(
            record.transformation,
            [],
            kind="scene",
            scene=drawn[0],
            middle=drawn[1],
            narrow=drawn[2],
            wide=True,
        )
        table = picture.Pane(
            "equations",
            self.rows(),
            columns=["one example", "batched", "why"],
            wide=True,
        )
        return self.picture(
            [arrays, table, *sources.panes, *lost_panes(record.lost)],
            steps or [picture.FrameStep("", NOTHING)],
            self.telling(),
            jumps=[picture.Jump("b", "next inserted equation", self.inserting())],
            text=self.text(full=len(record.rows) <= MANY),
        )

    def inserting(self) -> list[int]:
        """Returns the lines of equations that a rule inserted, or folds that have any.

        A line may also stand for what is moved inside of it.
        """
        ids = {
            eqn.id for row in self.recording.rows for eqn in row.batched if eqn.inserted
        }
        return [
            number
            for number, line in enumerate(self.lines)
            if (line.eqn is not None and line.eqn.inserted)
            or (line.kind == "fold" and not ids.isdisjoint(line.equations))
        ]

    def telling(self) -> int:
        """Returns the first line that moves or inserts something, else the first."""
        for number, line in enumerate(self.lines):
            if self.recording.telling in line.rows:
                return number
        return 0

    def rows(self) -> list[picture.Row]:
        """Returns a row of the table for each batched equation."""
        record = self.recording
        step_of = {
            row: number
            for number, line in reversed(list(enumerate(self.lines)))
            for row in line.rows
        }
        step_of_eqn = {
            eqn: number
            for number, line in reversed(list(enumerate(self.lines)))
            for eqn in line.equations
        }
        rows: list[picture.Row] = []
        grouped = len(record.rows) > MANY
        line_before: int | None = -1
        for row in record.rows:
            deeper = 0
            if grouped and row.parent is None:
                here = row.span.line if row.span is not None else None
                if here != line_before:
                    line_before = here
                    rows.append(self.group(row, step_of.get(row.id)))
            deeper = int(grouped) + row.depth
            left = row.text
            if row.program:
                left = f"{row.program}: {left}"
            for eqn in row.batched:
                cells: list[Any] = [left, self.equation(eqn), eqn.why]
                rows.append(
                    picture.Row(
                        cells,
                        keys=[f"e{eqn.id}"],
                        go=step_of_eqn.get(eqn.id, step_of.get(row.id)),
                        depth=deeper,
                        look="add" if eqn.inserted else "",
                        tell=self.detail(row, eqn),
                    )
                )
                left = ""
            if not row.batched:
                rows.append(
                    picture.Row(
                        [left, "", row.why], go=step_of.get(row.id), depth=deeper
                    )
                )
            if row.note:
                rows.append(picture.Row(["", row.note, ""], depth=deeper + 1))
        quiet_groups(rows)
        return rows

    def group(self, first: Row, go: int | None) -> picture.Row:
        """Returns the row over the equations that one source line made in a row."""
        where = "no line of yours"
        told = ""
        if first.span is not None:
            where = f"line {first.span.line}"
            told = self.recording.source_text(first)
        return picture.Row([where, told, ""], look="group", go=go, folded=True)

    def equation(self, eqn: BatchedEquation) -> list[picture.Piece]:
        """Returns a batched equation, results with a batch axis in batch ink."""
        pieces = []
        for value in eqn.results[:3]:
            role = "batch" if value.batch is not None else ""
            pieces.append(picture.Piece(f"{value.name}:{value.type} ", role))
        if len(eqn.results) > 3:
            pieces.append(picture.Piece("... "))
        names = [value.name for value in eqn.operands]
        names = names if len(names) <= 5 else [*names[:4], "..."]
        right = f"= {eqn.primitive} {' '.join(names)}".rstrip()
        return [*pieces, picture.Piece(right)]


def place_in_words(axis: int | None) -> str:
    """Returns where the batch axis of a value is, in two words at most."""
    return "unbatched" if axis is None else f"axis {axis}"


def quiet_groups(rows: list[picture.Row]) -> None:
    """Lets the heading of a long group be lit in place of its rows.

    A row that is lit is shown, and so would be all the others of its group.
    """
    starts = [number for number, row in enumerate(rows) if row.look == "group"]
    for start, end in zip(starts, [*starts[1:], len(rows)]):
        inside = rows[start + 1 : end]
        if len(inside) <= MOST_LIT:
            continue
        steps = dict.fromkeys(row.go for row in inside if row.go is not None)
        rows[start].keys = [f"l{step}" for step in steps]
        for row in inside:
            row.keys = []
