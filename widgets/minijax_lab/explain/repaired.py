"""The line of the user's own code, repaired: what `see.why` says to write instead.

Only repairs that mean the same are made, and only where the source says all that they
need: `np.sin(x)` becomes `jnp.sin(x)`, `int(x)` becomes `x.astype(int)`, an `if` that
picks one of two values becomes `jnp.where`, `x[0] = 1.0` a call of `x.at[0].set`, and a
`jit` gets the name of the argument that Python needs. Where nothing fits there is no
line.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax_lab.explain import flight_repairs
from minijax_lab.explain.recording import Source, Span, span_text

NUMPY = ("np", "numpy", "onp")
CASTS = ("int", "float", "bool", "complex")
PICKS = {"min": "minimum", "max": "maximum"}
UPDATES: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}
LOGIC = {
    ast.And: (ast.BitAnd(), "logical_and"),
    ast.Or: (ast.BitOr(), "logical_or"),
}
GRADIENTS = ("grad", "value_and_grad")
LIST_GIVEN = re.compile(r"^(\w+) requires .* got <class 'list'> at position (\d+)")
DTYPE_CHANGED = re.compile(
    r"input carry (?:component )?(?:\w+)?(?:\[1\])? has type (\w+)\[.* has type (\w+)\["
    r".* so the dtypes do"
)


@dataclass
class Fault:
    """What was raised: its class by name, its message, the lines of the expression, and
    the user's name of `minijax.numpy`."""

    error: str
    message: str
    first: int
    last: int
    jnp: str

    @property
    def truth(self) -> bool:
        """Whether Python asked an array whether it is true."""
        return self.error == "TracerBoolConversionError" or self.message.startswith(
            "The truth value of an array"
        )


def repaired_line(
    sources: list[Source],
    span: Span | None,
    error: str,
    message: str = "",
    jnp: str = "jnp",
    given: bool = False,
) -> str:
    """Returns the repaired statement that holds an expression, "" where none is known.

    `error` is the name of the exception's class, `jnp` the user's name of that module;
    `given` says that the expression is what a function returns.
    """
    if span is None:
        return ""
    source = sources[span.source]
    try:
        tree = ast.parse(textwrap.dedent("\n".join(source.lines)))
    except SyntaxError:
        return ""
    first, last = (line - source.first_line + 1 for line in (span.line, span.end_line))
    fault = Fault(error, message, first, last, jnp)
    for body in bodies_of(tree):
        for place, statement in enumerate(body):
            if not statement.lineno <= first <= (statement.end_lineno or first):
                continue
            if isinstance(statement, ast.If) and first <= statement.test.lineno:
                if error != "TracerBoolConversionError":
                    return ""
                return chosen(statement, body[place + 1 :], fault)
            if hasattr(statement, "body"):
                continue  # what is meant stands within
            before = ast.unparse(statement)
            if given:
                give_back(statement, sources, span, message)
            elif isinstance(statement, ast.Assert):
                return ""
            elif message.startswith("JAX arrays are immutable"):
                return updated(statement)
            after = ast.unparse(Mender(fault).visit(statement))
            return after if after != before else ""
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


def chosen(statement: ast.If, behind: list[ast.stmt], fault: Fault) -> str:
    """Returns `jnp.where` for an `if` that returns or assigns one of two values."""
    other = statement.orelse or behind[:1]
    if len(statement.body) != 1 or len(other) != 1:
        return ""
    test = Mender(fault).visit(statement.test)
    one, two = statement.body[0], other[0]
    if isinstance(one, ast.Return) and isinstance(two, ast.Return):
        if one.value is None or two.value is None:
            return ""
        return f"return {where(test, one.value, two.value, fault.jnp)}"
    both = isinstance(one, ast.Assign) and isinstance(two, ast.Assign)
    if not both or not statement.orelse:
        return ""
    assert isinstance(one, ast.Assign) and isinstance(two, ast.Assign)
    targets = [[ast.unparse(target) for target in each.targets] for each in (one, two)]
    if targets[0] != targets[1]:
        return ""
    picked = where(test, one.value, two.value, fault.jnp)
    return f"{' = '.join(targets[0])} = {picked}"


def where(test: ast.expr, one: ast.expr, two: ast.expr, jnp: str) -> str:
    """Returns the call that takes one value or the other, entry by entry."""
    return f"{jnp}.where({', '.join(ast.unparse(part) for part in (test, one, two))})"


def updated(statement: ast.stmt) -> str:
    """Returns `x = x.at[i].set(v)` for `x[i] = v`, `.add(v)` for `x[i] += v`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, method = statement.targets[0], "set"
    elif isinstance(statement, ast.AugAssign):
        target, method = statement.target, UPDATES.get(type(statement.op), "")
    else:
        return ""
    if not isinstance(target, ast.Subscript) or not method:
        return ""
    array, index, value = map(
        ast.unparse, (target.value, target.slice, statement.value)
    )
    return f"{array} = {array}.at[{index}].{method}({value})"


def is_at(node: ast.expr | None, sources: list[Source], span: Span) -> bool:
    """Whether a node, and no part of it, is what stands at a span."""
    try:
        whole = ast.parse(f"({span_text(sources, span)})", mode="eval").body
    except SyntaxError:
        return False
    return node is not None and ast.dump(node) == ast.dump(whole)


def give_back(
    statement: ast.stmt, sources: list[Source], span: Span, message: str
) -> None:
    """Changes what the function whose result stands at a span returns."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Return) and is_at(node.value, sources, span):
            assert node.value is not None
            node.value = given_back(node.value, message)
        elif isinstance(node, ast.Lambda) and is_at(node.body, sources, span):
            node.body = given_back(node.body, message)


def given_back(value: ast.expr, message: str) -> ast.expr:
    """What a loop's step or a function to be differentiated is to return."""
    if message.startswith("Gradient only defined for scalar-output functions"):
        one = not isinstance(value, (ast.Tuple, ast.Dict))
        return called(value, "sum") if one else value
    changed = DTYPE_CHANGED.search(message)
    if changed is None or not np.can_cast(changed[2], changed[1], "same_kind"):
        return value  # it would cut off what stands behind the point
    dtype = ast.Constant(changed[1])
    if not message.startswith("scan") or "carry[1]" in message:
        if not isinstance(value, ast.Tuple):  # of while_loop or fori_loop
            return called(value, "astype", dtype)
    elif isinstance(value, ast.Tuple) and not isinstance(value.elts[0], ast.Tuple):
        value.elts[0] = called(value.elts[0], "astype", dtype)
    return value


def called(value: ast.expr, method: str, *args: ast.expr) -> ast.expr:
    """Returns the call of a method of a value."""
    call = ast.Call(ast.Attribute(value, method, ast.Load()), list(args), [])
    return ast.copy_location(call, value)


class Mender(ast.NodeTransformer):
    """Puts in place of an expression what may be traced."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        """`np.f(x)`, `int(x)`, `min(x, y)`, and calls with arguments of wrong kinds."""
        self.generic_visit(node)
        fault = self.fault
        if not fault.first <= node.lineno <= fault.last:
            return node
        function = node.func
        name = ast.unparse(function).rpartition(".")[2]
        if fault.error == "TracerArrayConversionError":
            if isinstance(function, ast.Attribute):
                if isinstance(function.value, ast.Name) and function.value.id in NUMPY:
                    function.value.id = fault.jnp
            return node
        if fault.truth and name in PICKS and len(node.args) == 2:
            node.func = named(f"{fault.jnp}.{PICKS[name]}")
        listed = LIST_GIVEN.search(fault.message)
        if listed and name == listed[1] and int(listed[2]) < len(node.args):
            place = int(listed[2])
            wrapped = named(f"{fault.jnp}.asarray")
            node.args[place] = ast.Call(wrapped, [node.args[place]], [])
        if fault.message.startswith("Non-hashable static") and "list" in fault.message:
            lists = [n for n, arg in enumerate(node.args) if isinstance(arg, ast.List)]
            for place in lists if len(lists) == 1 else ():
                items: Any = node.args[place]
                node.args[place] = ast.Tuple(items.elts, ast.Load())
        if fault.message.startswith("grad requires real"):
            self.of_floats(node)
        casts = isinstance(function, ast.Name) and function.id in CASTS
        if casts and len(node.args) == 1 and fault.error == "ConcretizationTypeError":
            return called(node.args[0], "astype", function)
        return node

    def of_floats(self, node: ast.Call) -> None:
        """`grad(f)(3)`: a whole number as the first argument becomes a float."""
        inner = node.func
        if not isinstance(inner, ast.Call) or not node.args:
            return
        if ast.unparse(inner.func).rpartition(".")[2] not in GRADIENTS:
            return
        first = node.args[0]
        if len(inner.args) == 1 and not inner.keywords:
            if isinstance(first, ast.Constant) and type(first.value) is int:
                node.args[0] = ast.Constant(float(first.value))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:  # noqa: N802
        """`a if condition else b`."""
        self.generic_visit(node)
        if self.fault.error != "TracerBoolConversionError":
            return node
        picked = where(node.test, node.body, node.orelse, self.fault.jnp)
        return named(picked)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # noqa: N802
        """`a > 0 and b > 0`."""
        self.generic_visit(node)
        if not self.fault.truth:
            return node
        operator, function = LOGIC[type(node.op)]
        found, *others = node.values
        for each in others:
            if all(isinstance(one, ast.Compare | ast.BinOp) for one in (found, each)):
                found = ast.BinOp(found, operator, each)
            else:
                wrapped = named(f"{self.fault.jnp}.{function}")
                found = ast.Call(wrapped, [found, each], [])
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:  # noqa: N802
        """`not a`."""
        self.generic_visit(node)
        if not self.fault.truth or not isinstance(node.op, ast.Not):
            return node
        function = named(f"{self.fault.jnp}.logical_not")
        return ast.Call(function, [node.operand], [])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:  # noqa: N802
        """`0 < a < 1`."""
        self.generic_visit(node)
        if not self.fault.truth or len(node.ops) == 1:
            return node
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.Compare(left, [op], [right])
            for left, op, right in zip(sides, node.ops, sides[1:])
        ]
        found = pairs[0]
        for each in pairs[1:]:
            found = ast.BinOp(found, ast.BitAnd(), each)
        return found


def named(text: str) -> ast.expr:
    """Returns an expression from its text."""
    return ast.parse(text, mode="eval").body


def static_line(files: list[str], function: str, name: str) -> tuple[int, str]:
    """Returns the line, with its number, in which `jit` of a function is told that an
    argument is static; (0, "") unless exactly one is found in the files."""
    found: list[tuple[int, str]] = []
    static = f"static_argnames='{name}'"
    for file in dict.fromkeys(files):
        source = flight_repairs.Source(file)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                for one in node.decorator_list:
                    if not isinstance(one, ast.Call) and is_jit(one):
                        found.append((one.lineno, f"@{ast.unparse(one)}({static})"))
            elif isinstance(node, ast.Call) and is_jit(node.func) and node.args:
                kept = any("static" in (each.arg or "") for each in node.keywords)
                if ast.unparse(node.args[0]) != function or kept:
                    continue
                new = f"{ast.unparse(node)[:-1]}, {static})"
                statement = source.statement(node.lineno)
                if statement is not None and not hasattr(statement, "body"):
                    if statement.end_lineno == statement.lineno:
                        new = source.replaced(statement, node, new)
                found.append((node.lineno, new))
    return found[0] if len(found) == 1 else (0, "")


def is_jit(node: ast.expr) -> bool:
    """Whether an expression names `jit`."""
    return ast.unparse(node).rpartition(".")[2] == "jit"
