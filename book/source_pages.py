"""The files of the core as pages of the book, one section for each function.

`page(path, shown)` writes a file's page: its docstring as text, then its code in order,
with a heading and a target for each top-level function and class. A link of the reading
guide, such as `[linearize](#ad-linearize)`, leads to the target `ad-linearize`.
`targets(path)` lists the targets; a test holds the guide's links against them.
"""

from __future__ import annotations

import ast
from pathlib import Path


def targets(path: Path) -> dict[str, str]:
    """The targets of a file's page, and the name of what stands there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {target(path, node.name): node.name for node in tree.body if is_named(node)}


def target(path: Path, name: str) -> str:
    """The target of a function or class: `ad-linearize`, `core-primitive`."""
    return f"{path.stem}-{name}".lower().replace("_", "-")


def page_name(path: Path) -> str:
    """The name of a file's page."""
    return path.stem.replace("_", "-")


def is_named(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def page(path: Path, shown: str) -> str:
    """The page of a file; `shown` is its path as the reader knows it."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    parts = [f"# {shown}\n\n{ast.get_docstring(tree) or ''}\n"]
    start = (tree.body[0].end_lineno or 0) if ast.get_docstring(tree) else 0
    for node in tree.body:
        if not is_named(node):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)]) - 1
        # Comments right above belong to the function.
        while first > start and lines[first - 1].startswith("#"):
            first -= 1
        parts.append(block(lines[start:first]))
        end = node.end_lineno or node.lineno
        parts.append(
            f"({target(path, node.name)})=\n## {node.name}\n\n"
            + block(lines[first:end], first + 1)
        )
        start = end
    parts.append(block(lines[start:]))
    return "\n".join(part for part in parts if part)


def block(lines: list[str], first: int = 0) -> str:
    """Lines of code as a block, with line numbers if it begins at line `first`."""
    text = "\n".join(lines).strip("\n")
    if not text.strip():
        return ""
    options = f":lineno-start: {first}\n" if first else ""
    return f"```{{code-block}} python\n{options}\n{text}\n```\n"
