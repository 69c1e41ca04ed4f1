"""Which line of the user keeps a tracer beyond its trace."""

from __future__ import annotations

import ast
import dis
import gc
import inspect
import sys
import textwrap
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from minijax.core.language import Tracer
from minijax.core.partial_eval import DynamicJaxprTracer
from minijax_lab.explain.recording import Source, Span, file_label

# Methods that put their argument into what they are called on.
PUTS = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}

STORES = {dis.opmap[name] for name in ("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR")}
STORES_OUTSIDE = dis.opmap["STORE_DEREF"]


@dataclass
class Kept:
    """The statement that keeps a value, and what it keeps it in."""

    span: Span
    holder: str  # "Model.last", "history"


def alive_after(traces: list[Any]) -> tuple[Tracer, ...]:
    """Tracers of traces that have ended, to which references remain.

    In a tuple: a list of ours would pass for one of the user's.
    """
    gc.collect()  # those that are merely in a cycle
    ended = {id(trace) for trace in traces}
    tracers = (o for o in gc.get_objects() if issubclass(type(o), Tracer))
    return tuple(
        t for t in tracers if id(getattr(innermost(t), "_trace", None)) in ended
    )


def innermost(tracer: Any) -> DynamicJaxprTracer | None:
    """The variable of a program that a tracer stands for, under its wrappings."""
    while isinstance(tracer, Tracer):
        if isinstance(tracer, DynamicJaxprTracer):
            return tracer
        tracer = getattr(tracer, "primal", getattr(tracer, "value", None))
    return None


def may_keep(code: CodeType) -> bool:
    """Whether a function stores into anything but its own names."""
    operations = set(code.co_code[::2])
    if operations & STORES or not PUTS.isdisjoint(code.co_names):
        return True
    return bool(code.co_freevars) and STORES_OUTSIDE in operations


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
            # A module's names are looked up: `gc.freeze` hides them from the collector.
            here = target.id in names or any(
                vars(module).get(target.id) is value for module in modules_of(source)
            )
            holds = here and target.id in outer
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
    for module in modules_of(source):
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


def modules_of(source: Source) -> Iterator[Any]:
    """The modules that a source may be of: its file's, and what is being run."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if module.__name__ == "__main__" or file_label(file) == source.file:
            yield module


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


def instead_of(line: str) -> str:
    """What to write instead of a statement that keeps a traced value."""
    return f"Write `return ..., {stored(line)}` instead of `{line}`."


def stored(line: str) -> str:
    """What a line stores: `y` of `Model.last = y` and of `history.append(y)`."""
    tree = ast.parse(line).body[0]
    value: Any = getattr(tree, "value", None)
    if isinstance(tree, ast.Expr) and isinstance(value, ast.Call) and value.args:
        value = value.args[-1]
    return ast.unparse(value) if value is not None else "the value"
