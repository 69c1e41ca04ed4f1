"""`see.grad`: the forward pass down, what it keeps in the middle, the way back up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax_lab.explain.backward import (
    GradProgram,
    GradRecording,
    GradRow,
    GradSum,
    bytes_in_words,
    record_grad,
    sum_in_words,
    where_in_words,
)
from minijax_lab.explain.residuals import Residual
from minijax_widgets.grad_bands import Band, bands_of
from minijax_widgets.view import View, cut, shortened, views

WIDTH = 100


class GradView(View):
    """The U of the backward pass."""

    recording: GradRecording

    @functools.cached_property
    def bands(self) -> list[Band]:
        """The parts of the picture."""
        return bands_of(self.recording.program, self.recording.sources)

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each equation: down, kept, up."""
        record = self.recording
        rows = [self.columns("  down", "kept", "up")]
        listed = self.program_rows(record.program, 0)
        end = self.columns("", "", "ct = 1.0: the way back begins here, and goes up")
        parts = [record.headline, *rows, *shortened(listed, full), end]
        return "\n".join([*parts, *self.last_rows()])

    def columns(self, down: str, kept: str, up: str) -> str:
        """Returns one row of the twin, at most 100 columns."""
        return cut(f"{cut(down, 38):38} {cut(kept, 24):24} {up}".rstrip(), WIDTH)

    def program_rows(self, program: GradProgram, depth: int) -> list[str]:
        """Returns the rows of a program and of those inside of it."""
        found = []
        for row in program.rows:
            found.append(self.row(program, row, depth))
            if row.rule:
                found.append(cut(f"  {'  ' * depth}  {row.rule}", WIDTH))
            for inner in row.programs:
                title = f"  {'  ' * depth}  {inner.title}"
                found.append(cut(title, WIDTH))
                found += self.program_rows(inner, depth + 2)
        return found

    def row(self, program: GradProgram, row: GradRow, depth: int) -> str:
        """Returns one equation's row of the twin."""
        bad = next((b for b in self.recording.first if b.row == row.id), None)
        mark = "!" if bad and depth == 0 else " "
        residuals = [program.residuals[number] for number in row.opened]
        kept = "; ".join(map(self.residual_text, residuals))
        up = " ; ".join(back.text for back in row.backward)
        star = f"* {kept}" if kept else ""
        return self.columns(f"{mark} {'  ' * depth}{row.text}", star, up)

    def residual_text(self, residual: Residual) -> str:
        """Returns a residual in the twin: how it is made, or where it comes from."""
        if residual.origin == "argument":
            return f"{residual.name} (argument)"
        if residual.origin == "constant":
            return f"{residual.name} (constant)"
        return residual.name

    def last_rows(self) -> list[str]:
        """Returns the twin's rows about sums, arguments, and what is not finite."""
        record = self.recording
        rows = []
        for number, found in enumerate(record.program.sums[:6]):
            mark = ">" if number == self.first_sum() else " "
            rows.append(cut(f"{mark} sum: {self.sum_text(found)}", WIDTH))
        more = len(record.program.sums) - 6
        if more > 0:
            rows.append(f"  ... {more:,} more sums")
        rows += [
            f"  {a.name} is not used: its gradient is zero"
            for a in record.program.arguments
            if a.zero
        ]
        for bad in record.first:
            told = f"! first {bad.what}: {where_in_words(bad)}"
            rows.append(cut(f"{told}, {bad.count:,} of {bad.size:,} entries", WIDTH))
        return rows

    def first_sum(self) -> int | None:
        """Returns the place of the sum that the picture shows first."""
        sums = self.recording.program.sums
        own = [place for place, found in enumerate(sums) if not found.within]
        return own[0] if own else (0 if sums else None)

    def sum_text(self, found: GradSum) -> str:
        """Returns a sum in words."""
        rows = self.recording.program.rows
        parts = [rows[number].text for number in dict.fromkeys(found.rows)]
        return (
            f"{found.cotangent} = add_any of {len(found.rows)}, from "
            f"{' and '.join(parts)}"
        )
