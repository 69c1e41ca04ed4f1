"""What all views share: one object that is HTML in a notebook and text elsewhere."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from typing import Any

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 16px; background: #FFFFFF; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14171C; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


class View(ABC):
    """A recording, and how it looks. Subclasses give `text` and `to_html`."""

    def __init__(self, recording: Any) -> None:
        self.recording = recording

    @abstractmethod
    def text(self, full: bool = False) -> str:
        """Returns the text twin; `full=True` prints every row of a long one."""

    @abstractmethod
    def to_html(self) -> str:
        """Returns the view as one self-contained piece of HTML."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the view to one HTML file, which opens without a network."""
        title = escape(self.recording.headline)
        page = PAGE.format(title=title, body=self.to_html())
        Path(path).write_text(page, encoding="utf-8")

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        return {"text/plain": self.text(), "text/html": self.to_html()}
