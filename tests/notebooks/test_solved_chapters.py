"""Chapters that a learner has filled in, rightly, run as well as empty ones.

Every piece of `tiny` is written into its cell and every exercise is solved; then no
cell raises, every exercise passes and every program of the chapter is right: with one
piece or all, in a new copy of the course and in one that holds the pieces already.
"""

import ast
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from minijax_lab import command, grading, solutions, tiny_pieces

HERE = Path(__file__).resolve().parent
CHAPTERS = sorted(set(tiny_pieces.PIECES.values()))
# `make test` runs these alone; the others are as slow and take the same way.
ALWAYS = ("06", "10")


def as_the_course(name: str, source: str) -> tuple[str, str]:
    """What stands above a piece, and the piece."""
    return "", source


def with_helpers(name: str, source: str) -> tuple[str, str]:
    """The same, by an import, a constant and a helper above the `def`."""
    (node,) = ast.parse(source).body
    arguments = ast.unparse(node.args)
    given = ", ".join(
        [one.arg for one in node.args.args]
        + [f"*{one.arg}" for one in [node.args.vararg] if one]
        + [f"{one.arg}={one.arg}" for one in node.args.kwonlyargs]
        + [f"**{one.arg}" for one in [node.args.kwarg] if one]
    )
    lines = source.splitlines()
    body = "\n".join(lines[node.body[0].lineno - 1 :])
    helper = f"mine_{node.name}"
    above = f"""\
import builtins as of_python
from functools import partial as mine_partial

NOUGHT = of_python.len(())
SAME = mine_partial(of_python.max, NOUGHT)


def {helper}({arguments}):
    assert SAME(NOUGHT) == NOUGHT
{body}


"""
    return above, f"def {node.name}({arguments}):\n    return {helper}({given})"


def filled(source: str, names: list[str], write) -> list[str]:
    """Returns the cells that a cell becomes, with its piece written if it is named."""
    lines, parts = source.splitlines(), []
    nodes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    for node in sorted(nodes, key=lambda node: -node.lineno):
        if node.decorator_list:
            (decorator,) = node.decorator_list
            if not ast.unparse(decorator).startswith("piece("):
                continue
            name = ast.literal_eval(decorator.args[0])
            if name not in names:
                continue
            above, text = write(name, str(tiny_pieces.course_source(name)))
            text = textwrap.indent(text, " " * node.col_offset)
            lines[node.lineno - 1 : node.end_lineno] = text.splitlines()
            parts.append(above)
    if parts:
        return ["\n".join([*parts, *lines])]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node).endswith(", ...)"):
            if ast.unparse(node.func) == "check":
                name = ast.literal_eval(node.args[0])
                text = solutions.solution_text(name)
                names_ = '{"check": check, "__name__": "learner"}'
                return [source, f"exec({text!r}, {names_})"]
    return [source]


def solve(folder: Path, chapter: str, names: list[str], write) -> None:
    """Writes answers into a chapter of a copy of the course, runs it, and judges."""
    (path,) = (Path(command.course_folder())).glob(f"{chapter}_*.ipynb")
    notebook = json.loads(path.read_text())
    cells = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            for text in filled(source, names, write):
                cells.append({**cell, "source": text, "outputs": []})
    solved = folder / f"solved_{path.name}"
    solved.write_text(json.dumps({**notebook, "cells": cells}))
    found = folder / "found.json"
    ran = subprocess.run(
        [sys.executable, str(HERE / "run_chapter.py"), str(solved), str(found)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    result = json.loads(found.read_text())
    assert result["errors"] == [], ran.stdout[-3000:]
    wanted = {*names, *grading.chapter(chapter).EXERCISES}
    states = {name: result["states"][name] for name in wanted}
    assert {name: ["passed", ""] for name in wanted} == states
    assert "failed:" not in ran.stdout
    for name in names:
        file = folder / "tiny" / f"{name.partition('.')[0]}.py"
        assert f"# yours: {name}\n" in file.read_text()


def pieces_of(chapter: str) -> list[str]:
    return [name for name, where in tiny_pieces.PIECES.items() if where == chapter]


def marked(values, always):
    return [
        pytest.param(value, marks=() if value in always else pytest.mark.slow)
        for value in values
    ]


@pytest.fixture
def copy(tmp_path):
    pytest.importorskip("IPython")
    pytest.importorskip("sklearn")
    command.copy_course(tmp_path)
    return tmp_path


@pytest.mark.parametrize("chapter", marked(CHAPTERS, ALWAYS))
def test_a_chapter_with_all_its_pieces_twice_in_one_copy(chapter, copy):
    for write in (as_the_course, with_helpers):
        solve(copy, chapter, pieces_of(chapter), write)


ALONE = [name for name, at in tiny_pieces.PIECES.items() if len(pieces_of(at)) > 1]


@pytest.mark.parametrize("name", marked(ALONE, ("batching.vmap",)))
def test_a_chapter_with_one_of_its_pieces(name, copy):
    solve(copy, tiny_pieces.PIECES[name], [name], with_helpers)


@pytest.mark.slow
def test_the_whole_course_twice_in_one_copy(copy):
    for write in (with_helpers, as_the_course):
        for chapter in CHAPTERS:
            solve(copy, chapter, pieces_of(chapter), write)
