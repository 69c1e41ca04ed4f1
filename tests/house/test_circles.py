"""No circles: a module that imports another is not imported by it, however far round.

Imports inside functions count, those for type checkers alone do not.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import minijax

ROOT = Path(minijax.__file__).parent.parent


def _modules() -> dict[str, Path]:
    found = {}
    for path in (ROOT / "minijax").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below, without the branches for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _statements(child)


def imports(name: str, modules: dict[str, Path]) -> set[str]:
    """The modules of minijax that a module imports, anywhere in its code.

    `from package import name` is an import of the module `package.name` where there is
    one, else of the package.
    """
    path = modules[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                module = f"{base}.{alias.name}"
                found.add(module if module in modules else base)
    return (found & modules.keys()) - {name}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one module: Tarjan, 1972."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            component = set(stack[stack.index(module) :])
            del stack[stack.index(module) :]
            if len(component) > 1:
                found.append(component)

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [{"a", "b", "c"}]


def test_no_module_imports_itself_in_a_circle():
    modules = _modules()
    graph = {name: imports(name, modules) for name in modules}
    assert "minijax.core.language" in graph["minijax.core.shaping"]
    found = {frozenset(component) for component in circles(graph)}
    assert found == set()
