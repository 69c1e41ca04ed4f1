"""Runs notebooks again in place, prints what changed, refuses what nothing explains.

A committed output is a promise to the learner, and a refresh must not become the way to
silence a failing test. So a changed output is accepted when its notebook's code or
minijax's code changed since the last commit, and refused otherwise unless it is named.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

KEPT_CELL_METADATA = ("tags", "jupyter")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def normalise(notebook: Any) -> None:
    """Removes from `notebook` what differs between two runs of the same code."""
    notebook.metadata = {
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
    }
    count = 0
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index:02d}"
        cell.metadata = {
            key: value
            for key, value in cell.metadata.items()
            if key in KEPT_CELL_METADATA
        }
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if output.output_type == "stream":
                output.text = last_of_each_line(output.text)
            elif "data" in output:
                output.metadata = {}
                # A widget without its state reopens as "model not found".
                output.data.pop("application/vnd.jupyter.widget-view+json", None)


def last_of_each_line(text: str) -> str:
    """Keeps of a line that was redrawn (a progress bar) only its last drawing."""
    return re.sub(r"^[^\n]*\r(?=[^\n])", "", text, flags=re.MULTILINE)


def merge_streams(outputs: list[Any]) -> list[Any]:
    """Joins pieces of one stream that the kernel happened to send apart."""
    merged: list[Any] = []
    for output in outputs:
        previous = merged[-1] if merged else None
        if (
            previous is not None
            and output.output_type == "stream"
            and previous.output_type == "stream"
            and previous.name == output.name
        ):
            previous.text += output.text
        else:
            merged.append(output)
    return merged


def output_text(cell: Any) -> str:
    """Returns what nbval compares of a cell's outputs, as text."""
    parts: list[str] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            if output.name == "stdout":
                parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}\n")
        else:
            text = output.data.get("text/plain", "")
            parts.append(text if text.endswith("\n") else text + "\n")
    held = "".join(parts)
    return held.split("-- differs between machines --")[0]


def is_held(cell: Any) -> bool:
    """Says whether the tests compare this cell's outputs."""
    return "nbval-ignore-output" not in cell.metadata.get("tags", [])


def committed(path: Path) -> Any | None:
    """Returns the notebook at `path` as the last commit has it, or None."""
    answer = subprocess.run(
        ["git", "show", f"HEAD:./{path.name}"],
        cwd=path.parent or Path("."),
        capture_output=True,
        text=True,
    )
    if answer.returncode != 0:
        return None
    return nbformat.reads(answer.stdout, as_version=4)


def code_changed() -> bool:
    """Says whether minijax's or the views' code differs from the last commit."""
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run(
        ["git", "diff", "--quiet", "HEAD", "--"]
        + ["minijax", "widgets", "notebooks/tiny"],
        cwd=root,
        capture_output=True,
    )
    return answer.returncode != 0


def differences(before: Any, after: Any) -> Iterator[tuple[int, str]]:
    """Yields (code cell number, unified difference) for each held change."""
    old = [cell for cell in before.cells if cell.cell_type == "code"]
    new = [cell for cell in after.cells if cell.cell_type == "code"]
    for number, (old_cell, new_cell) in enumerate(zip(old, new), start=1):
        if not is_held(new_cell):
            continue
        old_text, new_text = output_text(old_cell), output_text(new_cell)
        if old_text != new_text:
            lines = difflib.unified_diff(
                old_text.splitlines(), new_text.splitlines(), "was", "is", lineterm=""
            )
            yield number, "\n".join(lines)


def shown(notebook: Any) -> list[Any]:
    """Returns what a reader sees of the notebook and two runs of it have in common."""
    cells: list[Any] = []
    for cell in notebook.cells:
        cells.append((cell.cell_type, cell.source, cell.metadata))
        if cell.cell_type == "code" and is_held(cell):
            pages = [o.data.get("text/html") for o in cell.outputs if "data" in o]
            cells.append((cell.execution_count, output_text(cell), pages))
    return cells


def sources(notebook: Any) -> list[str]:
    """Returns the notebook's code cells' sources."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def run(path: Path) -> Any:
    """Returns the notebook at `path`, run from top to bottom and normalised."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = merge_streams(cell.outputs)
    normalise(notebook)
    return notebook


def refresh(paths: Sequence[Path], accept: Sequence[str] = ()) -> int:
    """Refreshes the notebooks at `paths`; returns 1 if a change was refused.

    `accept` names cells whose unexplained change is wanted, as "02:7" (chapter 02,
    seventh code cell). A refused notebook is left as it was.
    """
    status = 0
    library_changed = code_changed()
    for path in paths:
        before = nbformat.read(path, as_version=4)
        after = run(path)
        reference = committed(path)
        explained = (
            reference is None or library_changed or sources(reference) != sources(after)
        )
        refused: list[str] = []
        changed = 0
        for number, difference in differences(before, after):
            changed += 1
            name = f"{path.name[:2]}:{number}"
            print(f"{path.name}, code cell {number}\n{difference}")
            if not explained and name not in accept:
                refused.append(name)
        if refused:
            status = 1
            print(
                f"{path.name}: left as it was. {', '.join(refused)} changed although "
                "neither the notebook nor minijax's code did; find out why, or add "
                + " ".join(f"--accept {name}" for name in refused)
            )
            continue
        if shown(before) == shown(after):
            print(f"{path.name}: as it was")
            continue
        nbformat.write(after, path)
        print(f"{path.name}: written, {changed} held outputs changed")
    return status
