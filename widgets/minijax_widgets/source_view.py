"""`see.source`: the code behind a name, as it stands in the installed minijax.

The text twin gives the place only, so that a chapter which shows the core's source need
not change with every line of it; the code itself is in the HTML.
"""

from __future__ import annotations

from typing import Any

from minijax.explain.source import SourceRecording, record_source
from minijax_widgets.code import code_panes
from minijax_widgets.frame import Frame, FrameStep
from minijax_widgets.view import View, views


def source(target: Any) -> SourceView:
    """Shows the source of a class, function, module or primitive.

    Of a primitive the view shows its block: the statements that set its rules. Raises
    TypeError for a value that was not written in Python, such as an array.
    """
    return SourceView(record_source(target))


class SourceView(View):
    """Source text with its line numbers."""

    recording: SourceRecording

    def text(self, full: bool = False) -> str:
        """Returns the place; with `full=True` also the code."""
        record = self.recording
        if full:
            return "\n".join([record.headline, *record.sources[0].lines])
        return record.headline

    def frame(self) -> Frame:
        """Returns the picture: the lines, and where they stand."""
        record = self.recording
        source = record.sources[0]
        count = len(source.lines)
        detail = f"{record.path}, line {source.first_line}, {count} lines"
        if record.counterpart:
            detail += f"  |  in JAX: {record.counterpart}"
        return Frame(
            kind="source",
            call=record.call,
            headline=record.headline,
            panes=code_panes(record.sources).panes,
            steps=[FrameStep("", detail)],
            text=self.text(full=True),
        )


views["source"] = SourceView
