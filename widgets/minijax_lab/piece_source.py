"""What a learner wrote for a piece of `tiny`, and how it gets into the file.

A piece is a function in a cell. Into `tiny/MODULE.py` goes the function with what it
needs and the file does not have: imports, helpers and constants of its cell, and those
that cells above have put into the notebook.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import linecache
import operator
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from minijax_lab import solutions

CONSTANTS = (bool, int, float, complex, str, bytes, type(None))


class Refused(ValueError):
    """A piece that cannot stand in its file; the text is a sentence for the learner."""


def found_in(text: str, path: str) -> ast.FunctionDef:
    """Returns the function at `path`, as in "Jitted.key", of a module's text."""
    body: list[ast.stmt] = ast.parse(text).body
    found: Any = None
    for part in path.split("."):
        named = [node for node in body if getattr(node, "name", None) == part]
        if not named:
            raise ValueError(f"there is no {path} in it")
        found, body = named[-1], getattr(named[-1], "body", [])
    assert isinstance(found, ast.FunctionDef)
    return found


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell or a file, and its text."""

    node: ast.stmt
    text: str


def bindings(text: str) -> dict[str, Statement]:
    """Returns the names that definitions, assignments and imports of a text bind.

    An import of several names counts as one of each. A text that Python cannot read,
    such as a cell with commands of IPython's, binds nothing.
    """
    found: dict[str, Statement] = {}
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return {}
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                one: ast.stmt = ast.Import([alias])
                if isinstance(node, ast.ImportFrom):
                    one = ast.ImportFrom(node.module, [alias], node.level)
                found[name] = Statement(one, ast.unparse(one))
            continue
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        lines = text.splitlines()[solutions.first_line(node) - 1 : node.end_lineno]
        found.update(dict.fromkeys(names, Statement(node, "\n".join(lines))))
    return found


def read_names(node: ast.stmt) -> set[str]:
    """Returns the names that a statement reads from its module, at any depth."""
    module = ast.fix_missing_locations(ast.Module([node], []))

    def of(code: CodeType) -> Iterator[str]:
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield instruction.argval
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from of(constant)

    return set(of(compile(module, "<a piece>", "exec")))


def cell_of(function: Any) -> dict[str, Statement]:
    """Returns what the cell of a function binds; nothing for one in another's body."""
    if not inspect.isfunction(function) or "<locals>" in function.__qualname__:
        return {}
    return bindings("".join(linecache.getlines(function.__code__.co_filename)))


class Written:
    """A piece as a learner wrote it.

    Attributes:
      name: of the piece, as in "cache.Jitted.key".
      module, path: where it belongs: "cache" and "Jitted.key".
      source: its text, from `def` on.
      line: where the `def` stands in its cell, from 1 on.
    """

    def __init__(self, name: str, function: Callable[..., Any] | str) -> None:
        """Takes the function, or its text alone."""
        self.name = name
        self.module, _, self.path = name.partition(".")
        self.notebook: dict[str, Any] = {}
        text, above = function if isinstance(function, str) else "", 0
        if not isinstance(function, str):
            text = textwrap.dedent(inspect.getsource(function))
            self.notebook = getattr(function, "__globals__", {})
            above = function.__code__.co_firstlineno - 1
        self.cell = cell_of(function)
        (node,) = ast.parse(text).body
        if not isinstance(node, ast.FunctionDef):
            raise ValueError("a piece of tiny is a function: write it with def")
        self.node, self.line = node, above + node.lineno
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        self.source = "\n".join(lines)
        self.begins = self.mark(name)
        self.ends = f"# down to here: what {name} needs"

    @staticmethod
    def mark(name: str) -> str:
        """The line above a piece in the learner's file."""
        return f"# yours: {name}"

    def is_empty(self) -> bool:
        """Whether the function's body is `...`, below its docstring."""
        *before, last = self.node.body
        nothing = isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)
        return nothing and len(before) <= 1

    def put_into(self, text: str) -> str:
        """Returns a module's text with the piece in it, and what the piece needs.

        Raises:
          Refused: for a helper whose name the file has for something else, one that
            cannot be found, and a decorator, which would not come along.
        """
        if len(self.node.decorator_list) > 1:
            raise Refused(
                "A decorator of your own would not be saved: leave "
                f'@piece("{self.name}") alone above the def.'
            )
        text, earlier = self.without_earlier(text)
        needed = self.needed(text)
        node = found_in(text, self.path)
        lines = text.splitlines()
        indented = textwrap.indent(self.source, " " * node.col_offset).splitlines()
        lines[node.lineno - 1 : node.end_lineno] = indented
        needed = self.needed_by_others("\n".join(lines), earlier, needed) + needed
        (top,) = (
            one
            for one in ast.parse(text).body
            if one.lineno <= node.lineno <= (one.end_lineno or 0)
        )
        above = [self.begins]
        if needed:
            parts = "\n\n\n".join(statement.text for statement in needed)
            above += [*parts.splitlines(), self.ends, "", ""]
        at = solutions.first_line(top) - 1
        lines[at:at] = above
        return "\n".join(lines) + "\n"

    def needed_by_others(
        self, text: str, earlier: dict[str, Statement], needed: list[Statement]
    ) -> list[Statement]:
        """Of what an earlier answer brought along, what another piece uses by now."""
        there = set(bindings(text)).union(
            *(bindings(statement.text) for statement in needed)
        )
        waiting: list[ast.stmt] = ast.parse(text).body
        kept: dict[str, Statement] = {}
        while waiting:
            for name in sorted(read_names(waiting.pop()) & set(earlier) - there):
                there.add(name)
                kept[name] = earlier[name]
                waiting.append(earlier[name].node)
        unique = {id(s.node): s for name, s in earlier.items() if name in kept}
        return list(unique.values())

    def without_earlier(self, text: str) -> tuple[str, dict[str, Statement]]:
        """Returns a module's text without what an earlier answer brought, and that."""
        lines = text.splitlines()
        brought: list[str] = []
        if self.begins in lines:
            start = end = lines.index(self.begins)
            if self.ends in lines:
                end = lines.index(self.ends) + 2
            brought = lines[start : end + 1]
            del lines[start : end + 1]
        return "\n".join(lines) + "\n", bindings("\n".join(brought))

    def place(self, error: BaseException | None, text: str) -> tuple[str, str]:
        """Says at which line of the learner's an exception was raised, and shows it.

        `text` is the module's with the piece in it, which ran. Both are "" where no
        line of the piece was running, nor of a helper that came along with it.
        """
        lines, where, shown = text.splitlines(), "", ""
        piece = found_in(text, self.path)
        mine: list[tuple[ast.stmt, str, int]] = [(piece, piece.name, self.line)]
        if self.ends in lines:
            first, last = lines.index(self.begins), lines.index(self.ends)
            for name, there in bindings(text).items():
                made = self.cell.get(name) or cell_of(self.notebook.get(name)).get(name)
                if made and first < getattr(there.node, "lineno", 0) <= last:
                    mine.append((there.node, name, made.node.lineno))
        for frame, line in traceback.walk_tb(error.__traceback__ if error else None):
            if not frame.f_code.co_filename.endswith(f"tiny{os.sep}{self.module}.py"):
                continue
            for node, name, at in mine:
                if node.lineno <= line <= (node.end_lineno or 0):
                    where = f" at line {at + line - node.lineno} of {name}"
                    shown = f"\n  {lines[line - 1].strip()}"
        return where, shown

    def put_into_module(self, module: ModuleType) -> None:
        """Lets a loaded module's function, wherever it is used, run the saved piece."""
        file = str(module.__file__)
        linecache.checkcache(file)
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
        body = ast.parse("\n".join(lines)).body
        if self.ends in lines:
            first, last = lines.index(self.begins), lines.index(self.ends)
            needed = [node for node in body if first < node.lineno <= last]
            exec(compile(ast.Module(needed, []), file, "exec"), vars(module))
        made: dict[str, Any] = {}
        called = f"{self.path}()"  # what fills a table has to fill it anew
        again = [node for node in body if ast.unparse(node) == called]
        node = found_in("\n".join(lines), self.path)
        exec(compile(ast.Module([node], []), file, "exec"), vars(module), made)
        new, old = made[node.name], operator.attrgetter(self.path)(module)
        for attribute in ("__code__", "__defaults__", "__kwdefaults__", "__doc__"):
            setattr(old, attribute, getattr(new, attribute))
        exec(compile(ast.Module(again, []), file, "exec"), vars(module))

    def needed(self, text: str) -> list[Statement]:
        """Returns what the piece needs and a module's text has not, in order."""
        there = bindings(text)
        found: dict[int, Statement] = {}
        seen = {self.path.partition(".")[0]}

        def visit(node: ast.stmt, cell: dict[str, Statement]) -> None:
            for name in sorted(read_names(node) - seen):
                seen.add(name)
                made, home = self.origin(name, name in there, cell)
                if made is None:
                    continue
                if name not in there:
                    visit(made.node, home)
                    found[id(made.node)] = made
                elif ast.dump(there[name].node) != ast.dump(made.node):
                    raise Refused(
                        f"tiny/{self.module}.py has a `{name}` of its own, and your "
                        "cell has another: give yours another name."
                    )

        (start,) = ast.parse(self.source).body
        visit(start, self.cell)
        imports = (ast.Import, ast.ImportFrom)
        return sorted(found.values(), key=lambda s: not isinstance(s.node, imports))

    def origin(
        self, name: str, is_there: bool, cell: dict[str, Statement]
    ) -> tuple[Statement | None, dict[str, Statement]]:
        """Returns the statement that makes a name, and the cell it stands in."""
        if name in cell:
            return cell[name], cell
        if is_there or hasattr(builtins, name) or name not in self.notebook:
            return None, {}
        value = self.notebook[name]
        other = cell_of(value)
        if name in other:
            return other[name], other
        line = ""
        home, called = getattr(value, "__module__", ""), getattr(value, "__name__", "")
        if isinstance(value, ModuleType):
            line = f"import {value.__name__} as {name}"
        elif isinstance(value, CONSTANTS):
            line = f"{name} = {value!r}"
        elif home == "__main__":
            pass  # a class or a value of the notebook itself
        elif getattr(sys.modules.get(str(home)), str(called), None) is value:
            renamed = "" if called == name else f" as {name}"
            line = f"from {home} import {called}{renamed}"
        if not line:
            raise Refused(
                f"`{name}` is made in another cell, and tiny/{self.module}.py has "
                "none: write it into the cell of the piece."
            )
        return Statement(ast.parse(line).body[0], line), {}
