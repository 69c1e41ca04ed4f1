"""`see.source`: the code behind a name, as it stands in the installed minijax.

The text twin gives the place only, so that a chapter which shows the core's source need
not change with every line of it; the code itself is in the HTML.
"""

from __future__ import annotations

import ast
from typing import Any

from minijax_lab.explain.references import Reference
from minijax_lab.explain.source import SourceRecording, record_source
from minijax_widgets.code import code_panes
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.view import View, shows

BARE = (
    "There are no statements: give a function, class or module that has some, or a "
    "primitive, such as lax.sin_p."
)


def source(target: Any) -> SourceView:
    """Shows the source of a class, function, module or primitive.

    Of a primitive the view shows its block: the statements that set its rules. In code
    of minijax, names of its functions, classes and primitives are underlined: clicking
    one says what it is, where, and what JAX calls it; its own source opens beside the
    code. Raises TypeError for a value that was not written in Python, such as an array.
    """
    return SourceView(record_source(target))


@shows("source")
class SourceView(View):
    """Source text with its line numbers, and the names in it that lead further."""

    recording: SourceRecording

    def text(self, full: bool = False) -> str:
        """Returns the place; with `full=True` also the code, and where names lead."""
        record = self.recording
        if not full:
            return record.headline
        names = [
            f"{name.name}: {place(name)}, see.source({name.shown})"
            for name in record.names
        ]
        return "\n".join([record.headline, *record.sources[0].lines, *names])

    def frame(self) -> Frame:
        """Returns the picture: the lines, where they stand, and what they name."""
        record = self.recording
        source = record.sources[0]
        count = len(source.lines)
        detail = f"{record.path}, line {source.first_line}, {count} lines"
        if record.counterpart:
            detail += f"  |  in JAX: {record.counterpart}"
        if bare("\n".join(source.lines)):
            detail += f"\n{BARE}"
        panes = code_panes(record.sources[:1]).panes
        self.link(panes[0])
        steps = [FrameStep(source.name, detail)]
        if record.names:
            rows: list[Row] = []
            for number, name in enumerate(record.names):
                rows += self.rows_of(number, name)
                steps.append(FrameStep(name.name, told(name), [f"n{number}"]))
            title = "names that lead further"
            panes.append(Pane(title, rows, kind="listing", below=True))
        return self.picture(panes, steps)

    def link(self, pane: Pane) -> None:
        """Cuts the lines of code where a name stands that leads further."""
        source = self.recording.sources[0]
        found: dict[int, list[tuple[int, int, int]]] = {}
        for number, name in enumerate(self.recording.names):
            for span in name.spans:
                row = span.line - source.first_line
                found.setdefault(row, []).append((span.column, span.end_column, number))
        for position, places in found.items():
            text = source.lines[position]
            pieces: list[Piece] = []
            done = 0
            for start, end, number in sorted(places):
                pieces.append(Piece(text[done:start]))
                pieces.append(Piece(text[start:end], "jump", f"n{number}"))
                done = end
            pieces.append(Piece(text[done:]))
            pane.rows[position].cells[1] = [piece for piece in pieces if piece.text]

    def rows_of(self, number: int, name: Reference) -> list[Row]:
        """Returns a name's row and, folded below it, its own source."""
        where = Piece(f"  {place(name)}", "constant")
        head = [Piece(name.name, "jump", f"n{number}"), where]
        rows = [Row([head, name.says], keys=[f"n{number}"], go=number + 1, folded=True)]
        if name.source is not None:
            own = self.recording.sources[name.source]
            for offset, line in enumerate(own.lines):
                place_of_line = Piece(f"{own.first_line + offset:>4}  ", "constant")
                rows.append(Row([[place_of_line, Piece(line)]], depth=1))
        return rows


def bare(code: str) -> bool:
    """Whether code is one definition without a statement but a docstring or `pass`."""
    try:
        parsed = ast.parse(code).body
    except SyntaxError:  # a lambda within a longer expression
        return False
    if len(parsed) != 1 or not isinstance(parsed[0], ast.ClassDef | ast.FunctionDef):
        return False
    return all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in parsed[0].body
    )


def place(name: Reference) -> str:
    """Returns what a name is and where that stands, as `class, rules.py:61`."""
    path = name.path.removeprefix("minijax/")
    return f"{name.kind}, {path}:{name.line}"


def told(name: Reference) -> str:
    """Returns a sentence about a name, and how to see its source."""
    parts = [f"{name.name}: {place(name)}"]
    if name.says:
        parts.append(name.says)
    if name.counterpart:
        parts.append(f"in JAX: {name.counterpart}")
    return "  |  ".join(parts) + f"\nsee.source({name.shown})"
