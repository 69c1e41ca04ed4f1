"""A piece of the user's source, to be read and repaired: text and syntax tree."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain import recording

Place = tuple[int, int]  # a line of the file, and a column in bytes of UTF-8


@dataclass
class Line:
    """A repaired line: the old text ("" for a new one) and what to write."""

    line: int
    old: str
    new: str
    where: str = ""  # "above the loop", "after the loop"
    file: str = ""


class Source:
    """A file of the user's, as text and as a syntax tree."""

    def __init__(self, file: str, lines: list[str] | None = None) -> None:
        self.file = file
        found = linecache.getlines(file) if lines is None else lines
        self.lines = [line.rstrip("\n") for line in found]
        try:
            self.tree: Any = ast.parse("\n".join(self.lines))
        except SyntaxError:  # a notebook's cell with magics
            self.tree = ast.Module([], [])
        self.parents: dict[Any, Any] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    @classmethod
    def of_part(cls, part: recording.Source) -> Source:
        """A function's source as a recording has it, each node at its place in the
        file: lines above are empty, and `if` holds what is indented."""
        above = [""] * (part.first_line - 1)
        if above and part.lines[0][:1].isspace():
            above[-1] = "if True:"
        return cls(part.file, above + part.lines)

    def places(self, span: recording.Span) -> tuple[Place, Place]:
        """Where the expression at a span begins and ends."""
        return (
            (span.line, self.in_bytes(span.line, span.column)),
            (span.end_line, self.in_bytes(span.end_line, span.end_column)),
        )

    def in_bytes(self, line: int, column: int) -> int:
        """A column in characters, as a syntax tree counts it."""
        return len(self.lines[line - 1][:column].encode())

    def mend(self, line: int, old: str, new: str, where: str = "") -> Line:
        """A repaired line of this file."""
        return Line(line, old, new, where, self.file)

    def text(self, line: int) -> str:
        """A line without its indentation."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def indent(self, line: int) -> str:
        """The indentation of a line."""
        whole = self.lines[line - 1]
        return whole[: len(whole) - len(whole.lstrip())]

    def statement(self, line: int) -> Any:
        """The innermost simple statement on a line, or the head that it is in."""
        best = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and reaches(node, line):
                if best is None or node.lineno >= best.lineno:
                    best = node
        return best

    def is_whole(self, statement: Any) -> bool:
        """Whether a statement stands on its lines alone: a line can replace it."""
        (first, column), (last, end) = places_of(statement)
        behind = self.lines[last - 1].encode()[end:].decode().strip()
        if isinstance(statement, ast.If):
            return self.text(first).startswith("if")
        before = self.lines[first - 1].encode()[:column].strip()
        return not before and (not behind or behind.startswith("#"))

    def is_line(self, statement: Any) -> bool:
        """Whether a statement is one whole line."""
        one = statement is not None and statement.lineno == statement.end_lineno
        return one and self.is_whole(statement)

    def around(self, node: Any, kinds: Any) -> Any:
        """The innermost node of some kinds around another one."""
        node = self.parents.get(node)
        while node is not None and not isinstance(node, kinds):
            node = self.parents.get(node)
        return node

    def loop(self, node: Any) -> Any:
        """The loop that a node is repeated by, within its own function."""
        found = self.around(node, (ast.For, ast.While, FUNCTIONS))
        return found if isinstance(found, (ast.For, ast.While)) else None

    def segment(self, node: Any) -> str:
        """The text of a node."""
        return ast.get_source_segment("\n".join(self.lines), node) or ""


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def reaches(node: Any, line: int) -> bool:
    """Whether a line is in a statement; of one with a body, in its head."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    last = node.end_lineno
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        last = max(first, body[0].lineno - 1)
    return first <= line <= last


def places_of(node: Any) -> tuple[Place, Place]:
    """Where a node of the source begins and ends; nowhere, for a new one."""
    if not hasattr(node, "end_lineno"):
        return (0, 0), (0, 0)
    start = node.lineno, node.col_offset
    return start, (node.end_lineno, node.end_col_offset)
