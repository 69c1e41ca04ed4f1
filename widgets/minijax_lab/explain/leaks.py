"""Which line of the user keeps a tracer beyond its trace."""

from __future__ import annotations

import ast
import gc
import inspect
import sys
import textwrap
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.recording import Source, Span, file_label

# Methods that put their argument into what they are called on.
PUTS = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}


@dataclass
class Kept:
    """The statement that keeps a value, and what it keeps it in."""

    span: Span
    holder: str  # "Model.last", "history"


def keeping_assignment(value: Any, source: Source) -> Kept | None:
    """The statement of `source` that put `value` where it still is; None if none is.

    Only what really holds the value counts: of `a.x = y; b.z = y` that whose attribute
    holds it now.
    """
    names, contained = holders(value)
    text = textwrap.dedent("\n".join(source.lines))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    indent = len(source.lines[0]) - len(text.split("\n", 1)[0])
    outer = outer_names(tree)
    for node, target in stores(tree):
        known = holds_now(target, value, source)
        if known is not None:
            holds = known
        elif isinstance(target, ast.Attribute):
            holds = target.attr in names
        elif isinstance(target, ast.Name):
            holds = target.id in names and target.id in outer
        else:
            holds = contained or isinstance(target, ast.Subscript) and bool(names)
        if holds:
            first = source.first_line - 1
            assert node.end_lineno is not None and node.end_col_offset is not None
            span = Span(
                source.id,
                first + node.lineno,
                indent + node.col_offset,
                first + node.end_lineno,
                indent + node.end_col_offset,
            )
            shown = target.func.value if isinstance(target, ast.Call) else target  # type: ignore[attr-defined]
            return Kept(span, ast.unparse(shown))
    return None


def holds_now(target: Any, value: Any, source: Source) -> bool | None:
    """Whether a target of the source's module holds `value`; None if it is not found.

    Only names of the module and plain attributes are looked up: no code runs for it.
    """
    if isinstance(target, ast.Name):
        return None
    holder: Any = target.func if isinstance(target, ast.Call) else target
    holder = holder.value
    path = []
    while isinstance(holder, ast.Attribute):
        path.append(holder.attr)
        holder = holder.value
    if not isinstance(holder, ast.Name):
        return None
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if module.__name__ != "__main__" and file_label(file) != source.file:
            continue
        found = vars(module).get(holder.id)
        for name in reversed(path):
            found = inspect.getattr_static(found, name, None)
        if found is None:
            continue
        if isinstance(target, ast.Attribute):
            return inspect.getattr_static(found, target.attr, None) is value
        if isinstance(found, dict):
            return any(held is value for held in found.values())
        if isinstance(found, (list, set, tuple, deque)):
            return any(held is value for held in found)
    return None


def holders(value: Any) -> tuple[set[str], bool]:
    """The names under which dicts hold a value, and whether a list or set does."""
    names: set[str] = set()
    contained = False
    for holder in gc.get_referrers(value):
        if isinstance(holder, dict):
            names |= {str(key) for key, held in holder.items() if held is value}
        elif isinstance(holder, (list, set, deque)):
            contained = True
    return names, contained


def outer_names(tree: ast.AST) -> set[str]:
    """The names that functions declare to be of an outer scope."""
    kinds = (ast.Global, ast.Nonlocal)
    return {n for node in ast.walk(tree) if isinstance(node, kinds) for n in node.names}


def stores(tree: ast.AST) -> Iterator[tuple[Any, Any]]:
    """Statements and calls that store, each with what they store to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, (ast.Attribute, ast.Subscript, ast.Name)):
                    yield node, target
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            if not isinstance(node.target, ast.Name) or node.value is not None:
                yield node, node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in PUTS:
                yield node, node
