"""A function's statements: which lines are one, and which names each can change.

Worked out once for each function, from its source and from its instructions, so that
little is left to do while it runs.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import linecache
import textwrap
from dataclasses import dataclass
from types import CodeType

from minijax_lab.explain.recording import Source, Span, lines_of, once_a_code

# Instructions that give a local name a value, and how many names they mention: later
# versions of Python have some that do the work of two.
STORES = {
    number: name.count("FAST") or 1
    for name, number in dis.opmap.items()
    if name.startswith(("STORE_FAST", "STORE_DEREF"))
}


@dataclass(slots=True)
class Statements:
    """The statements of a function, each known by its first line."""

    # Of each line. Empty where the source cannot be parsed alone, as for a lambda
    # inside of a call; then every line counts as its own statement.
    of_line: dict[int, int]
    # The names that a statement can change; None where anything may change them.
    names: dict[int, tuple[str, ...]] | None
    # Those that inner functions can change, at any time.
    shared: tuple[str, ...]

    def changed_by(self, statement: int) -> tuple[str, ...] | None:
        """The names that can have changed once a statement has run; None: any."""
        names = self.names
        return names.get(statement, self.shared) if names is not None else None


@once_a_code
def statements_of(code: CodeType) -> Statements:
    """The statements of a function."""
    of_line = first_lines(*lines_of(code))
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return Statements(of_line, None, ())  # the body of a class, or a module
    every = (*code.co_cellvars, *code.co_freevars)
    # Other functions change them only where they say so, somewhere in the same file.
    said = any("nonlocal" in line for line in linecache.getlines(code.co_filename))
    shared = every if said else ()
    changed: dict[int, set[str]] = {}
    for line, name in stored_names(code):
        statement = of_line.get(line) if of_line else line
        if statement is not None and name != "_":  # not used
            changed.setdefault(statement, set()).add(name)
    order = {name: i for i, name in enumerate((*code.co_varnames, *every))}
    names = {
        statement: tuple(sorted(found.union(shared), key=order.__getitem__))
        for statement, found in changed.items()
    }
    return Statements(of_line, names, shared)


def stored_names(code: CodeType) -> list[tuple[int, str]]:
    """The local names that a function's instructions give a value, with their lines."""
    found: list[tuple[int, str]] = []
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    names = (*code.co_varnames, *cells, *code.co_freevars)
    raw = code.co_code
    extended = 0
    for start, end, line in code.co_lines():
        for index in range(start, end, 2):
            operation, argument = raw[index], raw[index + 1] | extended
            extended = argument << 8 if operation == dis.EXTENDED_ARG else 0
            mentioned = STORES.get(operation)
            if mentioned is None or line is None:
                continue
            pair = (argument >> 4, argument & 15) if mentioned == 2 else (argument,)
            found += [(line, names[one]) for one in pair if one < len(names)]
    return found


def first_lines(lines: list[str], first: int) -> dict[int, int]:
    """For each line of a function, the first line of the statement it belongs to."""
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        return {}
    table: dict[int, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = node.end_lineno or node.lineno
        if body and isinstance(body, list) and isinstance(body[0], ast.stmt):
            last = max(node.lineno, body[0].lineno - 1)
        for line in range(node.lineno, last + 1):
            # Inner statements are walked after the outer ones that contain them.
            table[first + line - 1] = first + node.lineno - 1
    return table


@functools.lru_cache(maxsize=4096)
def is_plain_statement(text: str) -> bool:
    """Whether a statement hands on names only, or is a docstring."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return text.startswith(('"""', "'''", "def ", "@"))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        return isinstance(statement.value, ast.Lambda)  # as a `def` of one line
    if isinstance(statement, ast.Return):
        value = statement.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        return all(part is None or isinstance(part, ast.Name) for part in parts)
    return isinstance(statement, (ast.FunctionDef, ast.Pass))


def targets_of(sources: list[Source], span: Span | None) -> str | list[str]:
    """The names that an assignment gives to the value of an expression.

    One text for one target, a list for several (`*rest` keeps its star), "" where the
    expression is no assignment's whole value, or the source cannot be parsed alone.
    """
    if span is None:
        return ""
    source = sources[span.source]
    for node in assignments(tuple(source.lines)):
        value = node.value
        place = (value.lineno, value.end_lineno)
        here = (
            span.line - source.first_line + 1,
            span.end_line - source.first_line + 1,
        )
        if place != here:
            continue
        # Columns are counted in the text without its indentation.
        width = (value.end_col_offset or 0) - value.col_offset
        if here[0] == here[1] and width != span.end_column - span.column:
            continue
        target = node.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)):
            return [ast.unparse(part) for part in target.elts]
        return ast.unparse(target)
    return ""


@functools.lru_cache(maxsize=256)
def assignments(lines: tuple[str, ...]) -> list[ast.Assign]:
    """The assignments in a piece of source; none if it cannot be parsed alone."""
    try:
        tree = ast.parse(textwrap.dedent("\n".join(lines)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
