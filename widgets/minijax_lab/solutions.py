"""Finds the hints and the solutions of exercises, without running them.

They stand in `notebooks/solutions/chapter_NN.py`, not in the notebooks and not in the
graders, so that reading ahead is a choice. Each of those modules has `HINTS` (several
for each exercise; the last says what to read) and `SOLUTIONS` (what to hand in). They
are read as text: a hint needs no import of what the solution imports. The hints for
pieces of `tiny` are in `pieces.py`; their solutions are `tiny` itself.
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# A checkout has the notebooks at its root, a wheel inside of this package.
FOLDERS = (PACKAGE.parents[1] / "notebooks", PACKAGE / "notebooks")


def source_of(name: str) -> str | None:
    """Returns the text of the module with the exercise or piece `name`, or None."""
    number = str(name).partition(".")[0]
    file = f"chapter_{number}.py" if number.isdigit() else "pieces.py"
    for folder in FOLDERS:
        path = folder / "solutions" / file
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


def assigned(module: ast.Module, name: str) -> ast.Dict | None:
    """Returns the dict that a module assigns to `name` at its top level, or None."""
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                return node.value
    return None


def entry(found: ast.Dict | None, name: str) -> ast.expr | None:
    """Returns the value under the key `name` of a dict's text, or None."""
    if found is None:
        return None
    for key, value in zip(found.keys, found.values):
        if isinstance(key, ast.Constant) and key.value == name:
            return value
    return None


def hints(name: str) -> tuple[str, ...]:
    """Returns the hints for the exercise `name`, in their order; none if unknown."""
    source = source_of(name)
    if source is None:
        return ()
    value = entry(assigned(ast.parse(source), "HINTS"), name)
    return () if value is None else tuple(ast.literal_eval(value))


def solution_text(name: str) -> str | None:
    """Returns the code that solves the exercise `name`, or None.

    It holds the imports and definitions that the handed-in objects need, and ends on
    the call of `check`.
    """
    source = source_of(name)
    if source is None:
        return None
    module = ast.parse(source)
    value = entry(assigned(module, "SOLUTIONS"), name)
    if value is None:
        return None
    if isinstance(value, ast.Lambda) and isinstance(value.body, ast.Tuple):
        given = ", ".join(ast.unparse(thing) for thing in value.body.elts)
    else:
        given = f"*{ast.unparse(value)}()"
    lines = source.splitlines()
    parts = [
        "\n".join(lines[first_line(node) - 1 : node.end_lineno])
        for node in needed(module, value)
    ]
    imports = [part for part in parts if part.startswith(("import ", "from "))]
    rest = [part for part in parts if part not in imports]
    call = f'check("{name}", {given})'
    return "\n\n\n".join([*(["\n".join(imports)] if imports else []), *rest, call])


def first_line(node: ast.stmt) -> int:
    """Returns the line on which a statement begins, with its decorators."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def bound_names(node: ast.stmt) -> set[str]:
    """Returns the names that a statement at the top level of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(a.asname or a.name).partition(".")[0] for a in node.names}
    if isinstance(node, ast.Assign):
        return {t.id for t in node.targets if isinstance(t, ast.Name)}
    return set()


def needed(module: ast.Module, start: ast.AST) -> list[ast.stmt]:
    """Returns the statements of a module that `start` needs, in their order."""
    statements = {name: node for node in module.body for name in bound_names(node)}
    found: set[str] = set()
    waiting: list[ast.AST] = [start]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id not in found:
                if node.id in statements:
                    found.add(node.id)
                    waiting.append(statements[node.id])
                    waiting += rules_of(module, node.id)
    wanted = {id(statements[name]) for name in found}
    return [node for node in module.body if id(node) in wanted]


def rules_of(module: ast.Module, name: str) -> list[ast.Name]:
    """Returns the functions that decorators such as `@name.defjvp` attach, by name."""
    return [
        ast.Name(node.name)
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(d).startswith(f"{name}.") for d in node.decorator_list)
    ]
