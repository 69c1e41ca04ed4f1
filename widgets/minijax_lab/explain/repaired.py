"""The line of the user's own code, repaired: what `see.why` says to write instead.

Only repairs that mean the same are made, and only where the source says all that they
need: `np.sin(x)` becomes `jnp.sin(x)`, `int(x)` becomes `x.astype(int)`, an `if` that
picks one of two values becomes `jnp.where`. Where nothing fits there is no line.
"""

from __future__ import annotations

import ast
import textwrap

from minijax_lab.explain.recording import Source, Span

NUMPY = ("np", "numpy", "onp")
CASTS = ("int", "float", "bool", "complex")


def repaired_line(sources: list[Source], span: Span | None, error: str) -> str:
    """Returns the repaired statement that holds an expression, "" where none is known.

    `error` is the name of the exception's class.
    """
    if span is None:
        return ""
    source = sources[span.source]
    try:
        tree = ast.parse(textwrap.dedent("\n".join(source.lines)))
    except SyntaxError:
        return ""
    first, last = (line - source.first_line + 1 for line in (span.line, span.end_line))
    for body in bodies_of(tree):
        for place, statement in enumerate(body):
            if not statement.lineno <= first <= (statement.end_lineno or first):
                continue
            if isinstance(statement, ast.If) and first <= statement.test.lineno:
                if error != "TracerBoolConversionError":
                    return ""
                return chosen(statement, body[place + 1 :])
            if hasattr(statement, "body"):
                continue  # what is meant stands within
            return mended(statement, error, first, last)
    return ""


def bodies_of(tree: ast.AST) -> list[list[ast.stmt]]:
    """Returns the lists of statements in a tree, the inner ones too."""
    found = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                found.append(body)
    return found


def chosen(statement: ast.If, behind: list[ast.stmt]) -> str:
    """Returns `jnp.where` for an `if` that returns or assigns one of two values."""
    other = statement.orelse or behind[:1]
    if len(statement.body) != 1 or len(other) != 1:
        return ""
    one, two = statement.body[0], other[0]
    if isinstance(one, ast.Return) and isinstance(two, ast.Return):
        if one.value is None or two.value is None:
            return ""
        return f"return {where(statement.test, one.value, two.value)}"
    both = isinstance(one, ast.Assign) and isinstance(two, ast.Assign)
    if not both or not statement.orelse:
        return ""
    assert isinstance(one, ast.Assign) and isinstance(two, ast.Assign)
    targets = [[ast.unparse(target) for target in each.targets] for each in (one, two)]
    if targets[0] != targets[1]:
        return ""
    return f"{' = '.join(targets[0])} = {where(statement.test, one.value, two.value)}"


def where(test: ast.expr, one: ast.expr, two: ast.expr) -> str:
    """Returns the call that takes one value or the other, entry by entry."""
    return f"jnp.where({', '.join(ast.unparse(part) for part in (test, one, two))})"


def mended(statement: ast.stmt, error: str, first: int, last: int) -> str:
    """Returns a statement with what its expressions on some lines should be."""
    before = ast.unparse(statement)
    mender = Mender(error, first, last)
    after = ast.unparse(mender.visit(statement))
    return after if after != before else ""


class Mender(ast.NodeTransformer):
    """Puts in place of an expression what may be traced."""

    def __init__(self, error: str, first: int, last: int) -> None:
        self.error = error
        self.first = first
        self.last = last

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        """`np.f(x)` and `int(x)`."""
        self.generic_visit(node)
        if not self.first <= node.lineno <= self.last:
            return node
        called = node.func
        if self.error == "TracerArrayConversionError":
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                if called.value.id in NUMPY:
                    called.value.id = "jnp"
            return node
        casts = isinstance(called, ast.Name) and called.id in CASTS
        if casts and len(node.args) == 1 and "Conversion" not in self.error:
            method = ast.Attribute(node.args[0], "astype", ast.Load())
            return ast.Call(method, [called], [])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:  # noqa: N802
        """`a if condition else b`."""
        self.generic_visit(node)
        if self.error != "TracerBoolConversionError":
            return node
        return ast.parse(where(node.test, node.body, node.orelse), mode="eval").body
