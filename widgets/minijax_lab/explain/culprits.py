"""The line that is at fault, where the exception was raised at another one.

A loop whose step changes the type of its carry, branches that return different types,
and a gradient of what is no scalar raise where they are called; what is to be changed
stands in the function that was given.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

from minijax_lab.explain.recording import Sources, Span
from minijax_lab.explain.user_source import Source, places_of

# By the rule that was broken, the functions that may break it: their arguments that are
# functions, by name and position.
CARRY = {
    "scan": [("f", 0)],
    "while_loop": [("body_fun", 1)],
    "fori_loop": [("body_fun", 2)],
}
BRANCHES = {"cond": [("true_fun", 1), ("false_fun", 2)]}
GRADIENTS = {name: [("fun", 0)] for name in ("grad", "value_and_grad")}
RULES = {
    "a loop's carry keeps its types": CARRY,
    "a loop's carry keeps its tree": CARRY,
    "branches return equal types": BRANCHES,
    "branches return one tree": BRANCHES,
    "a gradient is of a scalar": GRADIENTS,
}


def returning_lines(
    rule: str, frame: FrameType, span: Span | None, sources: Sources
) -> list[tuple[str, Span]]:
    """Where the functions return that were given to the call at a span: (name, span).

    Nothing where the rule is of another kind or the functions have no source.
    """
    wanted = RULES.get(rule)
    if wanted is None or span is None:
        return []
    found = []
    for call in calls_at(span, sources):
        name = ast.unparse(call.func).rpartition(".")[2]
        for keyword, position in wanted.get(name, ()):
            given = [one.value for one in call.keywords if one.arg == keyword]
            given += call.args[position : position + 1]
            if given and isinstance(given[0], ast.Lambda):
                body = given[0].body
                who = f"the lambda for {keyword}"
                found.append((who, written_at(body, span.source, sources)))
                continue
            function = value_of(given[0], frame) if given else None
            where = returned_by(function, sources)
            if where is not None:
                found.append((getattr(function, "__name__", name), where))
    return found


def written_at(node: ast.expr | ast.stmt, number: int, sources: Sources) -> Span:
    """The span of a node of a source."""
    (line, column), (end_line, end_column) = places_of(node)
    return sources.in_characters(number, line, column, end_line, end_column)


def calls_at(span: Span, sources: Sources) -> Iterator[ast.Call]:
    """The calls in the statements that a span is in."""
    for node in Source.of_part(sources.found[span.source]).parents:
        if isinstance(node, ast.Call) and node.lineno <= span.end_line:
            if (node.end_lineno or node.lineno) >= span.line:
                yield node


def value_of(node: ast.expr, frame: FrameType) -> Any:
    """What a name means in a frame; None for other expressions."""
    if not isinstance(node, ast.Name):
        return None
    return frame.f_locals.get(node.id, frame.f_globals.get(node.id))


def returned_by(function: Any, sources: Sources) -> Span | None:
    """What the last `return` of a function's own code returns; None if not known."""
    if not inspect.isfunction(function):
        return None
    number = sources.add_function(function)
    if number is None:
        return None
    code = inspect.unwrap(function).__code__
    for node in Source.of_part(sources.found[number]).parents:
        if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
            continue
        lines = [node.lineno, *(one.lineno for one in node.decorator_list)]
        if min(lines) != code.co_firstlineno:
            continue
        returns = [one for one in own_statements(node) if isinstance(one, ast.Return)]
        if returns:
            return written_at(returns[-1].value or returns[-1], number, sources)
    return None


def own_statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of a function in their order, without those of inner functions."""
    waiting: list[ast.stmt] = list(function.body)
    while waiting:
        statement = waiting.pop(0)
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            inner = (n for n in ast.iter_child_nodes(statement))
            waiting[:0] = [n for n in inner if isinstance(n, ast.stmt)]
