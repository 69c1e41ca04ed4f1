"""`see.source`: the code behind a name, as it stands in the installed minijax.

The text twin gives the place only, so that a chapter which shows the core's source need
not change with every line of it; the code itself is in the HTML.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from minijax_widgets.style import CODE, LIGHT, TEXT, style_sheet
from minijax_widgets.view import View


@dataclass
class SourceRecording:
    """An object's source text and where it stands."""

    name: str
    path: str
    first_line: int
    code: str
    headline: str
    schema: int = 1
    kind: str = "source"

    def to_dict(self) -> dict[str, Any]:
        """Returns the recording as strings and numbers."""
        return asdict(self)


def source(target: Any) -> SourceView:
    """Shows the source of a class, function or module.

    Raises TypeError for a value that was not written in Python, such as an array.
    """
    target = inspect.unwrap(target) if callable(target) else target
    try:
        lines, first = inspect.getsourcelines(target)
        path = Path(inspect.getsourcefile(target) or "")
    except (OSError, TypeError) as error:
        raise TypeError(
            f"see.source shows classes, functions and modules written in Python; it "
            f"found no source for {type(target).__name__} {target!r}."
        ) from error
    name = getattr(target, "__qualname__", getattr(target, "__name__", "?"))
    shown = short_path(path)
    headline = f"source of {name}, {shown}"
    code = textwrap.dedent("".join(lines))
    return SourceView(SourceRecording(name, shown, max(first, 1), code, headline))


def short_path(path: Path) -> str:
    """Returns a path from its package's name on, without the machine's folders."""
    parts = path.parts
    for package in ("minijax_widgets", "minijax", "tiny"):
        if package in parts[:-1]:
            last = len(parts) - 1 - parts[::-1].index(package)
            return "/".join(parts[last:])
    return "cell" if "ipykernel" in str(path) else path.name


class SourceView(View):
    """Source text with its line numbers."""

    recording: SourceRecording

    def text(self, full: bool = False) -> str:
        """Returns the place; with `full=True` also the code."""
        if full:
            return f"{self.recording.headline}\n{self.recording.code}"
        return self.recording.headline

    def to_html(self) -> str:
        """Returns the code in a box that folds."""
        record = self.recording
        lines = record.code.rstrip("\n").split("\n")
        width = len(str(record.first_line + len(lines)))
        numbered = "\n".join(
            f"{record.first_line + i:>{width}}  {line}" for i, line in enumerate(lines)
        )
        box = (
            f"background:{LIGHT['base']};color:{LIGHT['text']};padding:8px 12px;"
            f"border-radius:4px;font:13px/20px {TEXT}"
        )
        return (
            f'<div class="minijax-view">{style_sheet()}'
            f'<div class="mj-box" style="{box}"><details open>'
            f'<summary style="font-weight:600">{escape(record.headline)}, line '
            f"{record.first_line}, {len(lines)} lines</summary>"
            f'<pre style="font:13px/20px {CODE};background:transparent;'
            f"color:inherit;"
            f'margin:8px 0 0;overflow-x:auto">{escape(numbered)}</pre>'
            "</details></div></div>"
        )
