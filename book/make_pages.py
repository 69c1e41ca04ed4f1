"""Gathers the book's pages in a folder, and builds the book from them.

    python book/make_pages.py build/book --html book

Chapters are the committed notebooks, with their exercises as boxes. The table of
primitives, a card for each, the cheat sheet and the table of contents are made afresh
from what is there. `make book` calls this; without `--html` only the pages are written.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import minijax_widgets as see
from minijax_lab import grading
from minijax_lab.explain.cards import families

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import cheat_sheet  # noqa: E402
import scale  # noqa: E402
import source_pages  # noqa: E402
import three_machines  # noqa: E402
from log2 import log2  # noqa: E402

# The parts of the course, by their first chapter.
PARTS = {0: "Watch", 6: "Transform", 13: "Compile", 16: "Scale", 21: "Extend"}
TEACH = ["teaching"]
LOOK_UP = ["cheat_sheet", "machines", "scale", "devices", "processes", "kernels"]
LOOK_UP += ["primitives", "names", "libraries", "where_in_jax"]
TAKE_PART = ["life_of_a_call", "core", "figures", "contributing"]
QUESTION = re.compile(r'predict\("([^"]+)", \.\.\.\)')
WAITING = re.compile(r"^.*put your answer in place of .*\n?", re.M)
EXERCISE = re.compile(r"^\*\*(\d\d)\.(\d) (\w+)\*\* \(([^)]*)\)\.\s+", re.M)


def write(
    folder: Path,
    chapters: str = "",
    cards: set[str] | None = None,
    functions: set[str] | None = None,
) -> None:
    """Writes all pages to `folder`.

    A small book has the chapters whose names begin with `chapters`, some cards, and
    pages of some of the functions that were compiled for three machines.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "notebooks").mkdir(parents=True)
    (folder / "cards").mkdir()
    (folder / "source").mkdir()
    (folder / "machines").mkdir()
    shutil.copytree(HERE / "_static", folder / "_static")
    for name in ("_config.yml", "offline.py"):
        shutil.copyfile(HERE / name, folder / name)
    notebooks = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    notebooks = [path for path in notebooks if path.name.startswith(chapters)]
    for path in notebooks:
        (folder / "notebooks" / path.name).write_text(chapter(path), encoding="utf-8")
    pages = {
        "index": front_page(),
        "cheat_sheet": cheat_sheet.page(notebooks),
        "machines": three_machines.overview_page(),
        "scale": scale.page(raw),
        "devices": read("book/devices.md"),
        "processes": read("book/processes.md"),
        "kernels": read("book/kernels.md"),
        "primitives": primitives_page(),
        "names": read("book/api_table.md"),
        "libraries": read("book/libraries.md"),
        "where_in_jax": read("book/where_in_jax.md"),
        "teaching": teaching_page(),
        "life_of_a_call": read("book/life_of_a_call.md"),
        "core": read("book/core.md"),
        "figures": figures_page(),
        "contributing": read("CONTRIBUTING.md"),
    }
    for name in core_files():
        shown = name.removeprefix("minijax/")
        page_name = source_pages.page_name(Path(name))
        pages[f"source/{page_name}"] = source_pages.page(ROOT / name, shown)
    for family, found in families().items():
        names = [name for name in found if cards is None or name in cards]
        for name in names:
            pages[f"cards/{name}"] = card_page(name, family, names)
    pages |= three_machines.function_pages(raw, functions)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "_toc.yml").write_text(contents(notebooks), encoding="utf-8")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def raw(view: see.View) -> str:
    """A view in a page, live and offline."""
    return f"```{{raw}} html\n{view.to_html()}\n```\n"


# ---- pages --------------------------------------------------------------------------


def front_page() -> str:
    """The front page, with its first view."""
    text = read("book/index.md")
    made = {
        "<!-- first view -->": raw(see.trace(log2, np.float32([1, 2]))),
        "<!-- three machines -->": three_machines.OVERVIEW.format(""),
    }
    for marker, part in made.items():
        if marker not in text:
            raise AssertionError(f"book/index.md has lost its line {marker}")
        text = text.replace(marker, part)
    return text


def teaching_page() -> str:
    """The page for teachers, with what is said of thirty copies."""
    text, marker = read("book/teaching.md"), "<!-- thirty copies -->"
    if marker not in text:
        raise AssertionError(f"book/teaching.md has lost its line {marker}")
    return text.replace(marker, f"```text\n{read('book/thirty_copies.txt')}```")


def primitives_page() -> str:
    """The periodic table: every tile links to a card."""
    table = see.primitives()
    table.links = "cards/{}.html"
    return (
        "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"
        "# Primitives\n\nEvery program is made of these. A tile opens its card: what "
        "the primitive means, all its rules\nin one block, and the checks that were "
        f"run on it when this page was made.\n\n{raw(table)}"
    )


def card_page(name: str, family: str, names: list[str]) -> str:
    """One card, and links to those of its family."""
    others = " ".join(
        f"**{other}**" if other == name else f"[{other}]({other}.md)" for other in names
    )
    title = family.replace("_", " ")
    after = dict(zip(names, names[1:])).get(name)
    following = f"[{after}]({after}.md)" if after else "[Primitives](../primitives.md)"
    return (
        f"---\norphan: true\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"
        f"# {name}\n\n{raw(see.card(name))}\n"
        f"[Primitives](../primitives.md), {title}: {others}\n\nNext: {following}\n"
    )


def core_files() -> list[str]:
    """The files of the weekend core, in reading order, as paths from the root."""
    settings = tomllib.loads(read("pyproject.toml"))
    return settings["tool"]["minijax"]["weekend_core"]


def figures_page() -> str:
    """What minijax costs beside jax, what views cost, and how to read it."""
    parts = [read(f"benchmarks/{name}.md") for name in ("RESULTS", "VIEWS", "README")]
    lowered = [re.sub(r"^#", "##", part, flags=re.M) for part in parts]
    text = "# Figures\n\n" + "\n\n".join(lowered)
    return text.replace("stands in README.md", "stands below")


def contents(notebooks: list[Path]) -> str:
    """The table of contents: the chapters by part, and what is made here."""
    lines = ["format: jb-book", "root: index", "parts:"]
    caption = None
    for path in notebooks:
        number = int(path.name[:2])
        part = PARTS[max(first for first in PARTS if first <= number)]
        if part != caption:
            caption = part
            lines += [f"  - caption: {part}", "    chapters:"]
        lines.append(f"      - file: notebooks/{path.stem}")
    for part, names in (("Teach", TEACH), ("Look up", LOOK_UP), ("Inside", TAKE_PART)):
        lines += [f"  - caption: {part}", "    chapters:"]
        for name in names:
            lines.append(f"      - file: {name}")
            if name == "core":
                lines.append("        sections:")
                files = [source_pages.page_name(Path(p)) for p in core_files()]
                lines += [f"          - file: source/{stem}" for stem in files]
    return "\n".join(lines) + "\n"


# ---- chapters -----------------------------------------------------------------------


def chapter(path: Path) -> str:
    """A notebook as the book shows it: exercises in boxes, hidden cells folded, and
    the answers to its questions behind a click."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown: list[Any] = []
    for cell in notebook["cells"]:
        shown.append(cell)
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = with_exercises(text)
        elif cell["metadata"].get("jupyter", {}).get("source_hidden"):
            tags: list[Any] = cell["metadata"].setdefault("tags", [])
            tags.append("hide-input")
        elif names := QUESTION.findall(text):
            for output in cell["outputs"]:
                output["text"] = WAITING.sub("", "".join(output.get("text", "")))
            cell["outputs"] = [one for one in cell["outputs"] if one["text"]]
            source = "\n".join(map(answer_box, names))
            shown.append({"cell_type": "markdown", "metadata": {}, "source": source})
            shown[-1]["id"] = f"answers-{len(shown)}"
    return json.dumps(notebook | {"cells": shown})


def answer_box(name: str) -> str:
    """The answer to a question and why, folded until it is clicked."""
    question = grading.chapter(name).PREDICTIONS[name]
    unit = f" {question.unit}" if question.unit else ""
    return (
        f"````{{dropdown}} {name}: answer first, then click\n"
        f"`{question.answer}`{unit}. {question.why}\n````\n"
    )


def with_exercises(text: str) -> str:
    """The text of a cell, each exercise in a box of sphinx-exercise."""
    found = list(EXERCISE.finditer(text))
    if not found:
        return text
    parts = [text[: found[0].start()]]
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends):
        number, which, title, time = match.groups()
        parts.append(
            f"`````{{exercise}} {number}.{which} {title}, {time}\n"
            f":label: exercise-{number}-{which}\n:nonumber:\n\n"
            f"{text[match.end() : end].strip()}\n`````\n\n"
        )
    return "".join(parts)


# ---- the command --------------------------------------------------------------------


def build(folder: Path, html: Path) -> None:
    """Builds the book of the pages in `folder`, in `html/_build/html`."""
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", "--all", "--quiet"]
    subprocess.run([*command, "--path-output", str(html), str(folder)], check=True)
    # For those who debug the theme's scripts: a twelfth of the book.
    for source_map in (html / "_build" / "html").glob("**/*.map"):
        source_map.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pages are written")
    parser.add_argument("--html", type=Path, help="where the book is built")
    given = parser.parse_args()
    write(given.folder)
    if given.html is not None:
        build(given.folder, given.html)
