"""Writes the book's generated pages: the table of primitives, and a card for each.

    python book/make_pages.py build/book

The pages and the table of contents with them are made at each build, from running the
primitives, and are not committed. `make book` calls this.
"""

from __future__ import annotations

import sys
from pathlib import Path

import minijax_widgets as see
from minijax.explain.words import PHRASES

HERE = Path(__file__).parent


def page(title: str, view: see.View) -> str:
    """A page of the book that shows one view, live and offline."""
    return f"# {title}\n\n```{{raw}} html\n{view.to_html()}\n```\n"


def write(folder: Path) -> None:
    """Writes all pages to `folder`, and the table of contents beside them."""
    cards = folder / "cards"
    cards.mkdir(parents=True, exist_ok=True)
    table = see.primitives()
    lines = ["# Primitives", "", table.recording.headline + ".", ""]
    entries = []
    for family, names in table.recording.groups.items():
        lines += [f"## {family}", ""]
        for name in names:
            text = page(name, see.card(name))
            (cards / f"{name}.md").write_text(text, encoding="utf-8")
            meaning = PHRASES.get(name, "")
            lines.append(f"- [{name}](cards/{name}.md) {meaning}".rstrip())
            entries.append(name)
        lines.append("")
    (folder / "primitives.md").write_text("\n".join(lines), encoding="utf-8")
    contents = (HERE / "_toc.yml").read_text(encoding="utf-8").rstrip("\n")
    relative = folder.as_posix()
    contents += (
        "\n  - caption: Look up\n    chapters:\n"
        f"      - file: {relative}/primitives\n        sections:\n"
    )
    for name in entries:
        contents += f"          - file: {relative}/cards/{name}\n"
    (folder / "_toc.yml").write_text(contents, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
