"""The arrays that stand in a program as numbers: their names, and who reads them.

A constant's name is searched where the equation that reads it was written: the line
and the column are in the equation's traceback. A name is taken only if it is this very
array there: a global, a name closed over, an attribute or an entry of some object.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType
from typing import Any

from minijax_lab.explain.flight_keys import name_of
from minijax_lab.explain.user_source import Source

Reader = tuple[CodeType, tuple[int, int, int, int]]  # the lines, then the columns


def constants_of(program: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The constants of a closed jaxpr and of those inside, with what reads each."""
    todo, seen, told = [program], set(), set()
    while todo:
        closed = todo.pop()
        if id(closed) in seen:
            continue
        seen.add(id(closed))
        inner = getattr(closed, "jaxpr", closed)
        readers: dict[int, list[Any]] = {}
        for equation in getattr(inner, "eqns", ()):
            for var in equation.invars:
                readers.setdefault(id(var), []).append(equation)
            for value in equation.params.values():
                parts = value if isinstance(value, (tuple, list)) else (value,)
                todo += [p for p in parts if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
        consts = getattr(closed, "consts", ())
        for var, value in zip(getattr(inner, "constvars", ()), consts):
            if id(value) not in told:
                told.add(id(value))
                yield value, readers.get(id(var), [])


def reader_of(equation: Any, is_users: Callable[[str], bool]) -> Reader | None:
    """The innermost place of the user's code that wrote an equation."""
    traceback = getattr(equation.source_info, "traceback", None)
    if traceback is None:
        return None
    for code, instruction in zip(*traceback.raw_frames()):
        if is_users(code.co_filename):
            places = list(code.co_positions())[instruction // 2]
            return None if None in places else (code, places)
    return None


def held_by(value: Any) -> list[Any]:
    """The objects by which a constant may be known: NumPy's arrays are wrapped."""
    inner = getattr(value, "val", None)
    known = [value, inner, getattr(inner, "base", None)]
    return [each for each in known if each is not None]


def name_at(value: Any, reader: Reader, source: Source, known: dict) -> str:
    """The name by which the code at a place reads a constant, "" if none is sure."""
    code, (line, _, column, end) = reader
    same = {id(each) for each in held_by(value)}
    statement = source.statement(line)
    if statement is None:
        return ""
    at = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.expr)
        and (node.lineno, node.col_offset, node.end_col_offset) == (line, column, end)
    ]
    referrers: list[Any] | None = None
    for where in [*at, statement]:
        for node in ast.walk(where):
            if isinstance(node, ast.Name):
                if node.id not in code.co_varnames and id(known.get(node.id)) in same:
                    return node.id
            if isinstance(node, ast.Name) and node.id not in code.co_freevars:
                continue
            if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                continue
            if referrers is None:
                referrers = gc.get_referrers(*held_by(value))
            if isinstance(node, ast.Name):
                cells = (r for r in referrers if isinstance(r, CellType))
                if any(id(cell.cell_contents) in same for cell in cells):
                    return node.id
            elif any(has(holder, node, same) for holder in referrers):
                return source.segment(node)
    return ""


def has(holder: Any, node: ast.Attribute | ast.Subscript, same: set[int]) -> bool:
    """Whether an object has a constant as the attribute or entry that is read."""
    with contextlib.suppress(Exception):
        if isinstance(node, ast.Subscript):
            return id(holder[ast.literal_eval(node.slice)]) in same
        names = holder if isinstance(holder, dict) else vars(holder)
        return id(names.get(node.attr)) in same
    return False


def globals_of(code: CodeType, near: list[dict]) -> dict:
    """The global names of the file that a code object is of."""
    for names in near:
        if names.get("__file__") == code.co_filename:
            return names
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == code.co_filename:
            return vars(module)
    return near[0] if near else {}


def named(
    value: Any,
    equations: list[Any],
    jitted: Any,
    is_users: Callable[[str], bool],
    near: list[dict],
    source_of: Callable[[str], Source],
) -> tuple[str, list[tuple[str, int]]]:
    """A constant's name, and the places of the user's code that read it."""
    places: list[tuple[str, int]] = []
    name = ""
    for equation in equations:
        reader = reader_of(equation, is_users)
        if reader is None:
            continue
        code, (line, *_) = reader
        if (code.co_filename, line) not in places:
            places.append((code.co_filename, line))
        if not name:
            known = globals_of(code, near)
            name = name_at(value, reader, source_of(code.co_filename), known)
    return name or name_of(value, jitted), places
