"""The line of the user's own code, repaired: what `see.why` says to write instead.

Only repairs that mean the same are made, and only where the source says all that they
need: `np.sin(x)` becomes `jnp.sin(x)`, `int(x)` becomes `x.astype(int)`, an `if` that
picks one of two values becomes `jnp.where`, `x[0] = 1.0` a call of `x.at[0].set`, and a
`jit` gets the name of the argument that Python needs. Where nothing fits, or where it
is not sure that the program then runs, there is no line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax import numpy as jax_numpy
from minijax_lab.explain.flight_repairs import is_jit, option_added
from minijax_lab.explain.user_source import Place, Source, places_of

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
LOOPS = ("fori_loop", "while_loop", "scan")
LISTS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp)
NO_ARRAYS = (*LISTS, ast.DictComp, ast.JoinedStr, ast.Lambda)
LIST_GIVEN = re.compile(r"^(\w+) requires .* got <class 'list'> at position (\d+)")
DTYPE_CHANGED = re.compile(
    r"input carry (?:component )?\w*(\[\d\])? has type (\w+)\[.* has type (\w+)\["
    r".* so the dtypes do"
)


class UnsureError(Exception):
    """It is not sure that a line would run and mean the same: none is told."""


@dataclass
class Fault:
    """What was raised: its class by name, its message, where in the source, and the
    user's name of `minijax.numpy`."""

    error: str
    message: str
    source: Source
    start: Place
    end: Place
    jnp: str = "jnp"
    # Of functions that run while one is traced, inside out: the name of what each
    # calls, and its source.
    callers: list[tuple[str, Source]] = field(default_factory=list)
    inside: Collection[str] = ()  # the names of the functions that run, the library's
    aux: bool = False  # whether a function returns values beside what is differentiated

    @property
    def truth(self) -> bool:
        """Whether Python asked an array whether it is true."""
        return self.error == "TracerBoolConversionError" or self.message.startswith(
            "The truth value of an array"
        )

    def within(self, node: Any) -> bool:
        """Whether the marked expression stands in a node of the source."""
        start, end = places_of(node)
        return start <= self.start and self.end <= end

    def marks(self, node: Any) -> bool:
        """Whether a node is the marked expression."""
        return places_of(node) == (self.start, self.end)

    def above(self, node: ast.AST) -> set[str]:
        """The names of the functions that a node stands in."""
        found = set()
        while node in self.source.parents:
            node = self.source.parents[node]
            found.add(getattr(node, "name", ""))
        return found


def repaired_line(fault: Fault, given: bool, local: Collection[str]) -> str:
    """Returns the repaired statement that holds what is at fault, "" where none is
    known.

    `given` says that it is what a function returns; `local` are the names that a
    statement there may assign and still read before.
    """
    try:
        for body in bodies_of(fault.source.tree):
            for place, statement in enumerate(body):
                branch = isinstance(statement, ast.If) and fault.within(statement.test)
                if branch or fault.within(statement) and not hasattr(statement, "body"):
                    if not fault.source.is_whole(statement):
                        return ""
                    before = ast.unparse(statement)
                    if given:
                        give_back(statement, fault)
                        found = ast.unparse(statement)
                    elif isinstance(statement, ast.If):
                        found = chosen(statement, body[place + 1 :], fault)
                    else:
                        found = mended(statement, fault, local)
                    ast.parse(found)
                    return found if found != before else ""
    except (SyntaxError, UnsureError):
        pass
    return ""


def mended(statement: ast.stmt, fault: Fault, local: Collection[str]) -> str:
    """Returns a statement with what may be traced in the place of what is at fault."""
    if fault.message.startswith("JAX arrays are immutable"):
        return updated(statement, local)
    mender = Mender(fault)
    after = mender.visit(statement)
    fixed = mender.changed and not isinstance(statement, ast.Assert)
    return ast.unparse(after) if fixed else ""


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
    if fault.error != "TracerBoolConversionError":
        return ""
    one: Any = statement.body[0]
    two: Any = other[0]
    if isinstance(one, ast.Return) and isinstance(two, ast.Return):
        told = "return "
    elif isinstance(one, ast.Assign) and isinstance(two, ast.Assign):
        targets = [[ast.unparse(each) for each in both.targets] for both in (one, two)]
        if targets[0] != targets[1] or not statement.orelse:
            return ""
        if any(isinstance(each, NO_ARRAYS) for each in one.targets):
            return ""
        told = " = ".join(targets[0]) + " = "
    else:
        return ""
    if one.value is None or two.value is None:
        return ""
    names = fault.above(statement)
    picked = ast.IfExp(statement.test, one.value, two.value)
    return told + ast.unparse(Mender(fault).where(picked, names))


def is_no_array(node: ast.AST) -> bool:
    """Whether a value is written as a container, a text or None."""
    text = isinstance(node, ast.Constant) and not isinstance(
        node.value, (int, float, complex)
    )
    return text or isinstance(node, NO_ARRAYS)


def updated(statement: ast.stmt, local: Collection[str]) -> str:
    """Returns `x = x.at[i].set(v)` for `x[i] = v`, `.add(v)` for `x[i] += v`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, method = statement.targets[0], "set"
    elif isinstance(statement, ast.AugAssign):
        target, method = statement.target, UPDATES.get(type(statement.op), "")
    else:
        return ""
    if not isinstance(target, ast.Subscript) or not method:
        return ""
    array, value = target.value, statement.value
    entry = isinstance(array, ast.Subscript) and isinstance(array.slice, ast.Constant)
    in_dict = entry and isinstance(array.slice.value, str)  # type: ignore[attr-defined]
    known = isinstance(array, ast.Name) and array.id in local
    if is_no_array(value) or not (in_dict or known):
        return ""
    at = ast.Subscript(ast.Attribute(array, "at"), target.slice)
    return f"{ast.unparse(array)} = {ast.unparse(called(at, method, value))}"


def give_back(statement: ast.stmt, fault: Fault) -> None:
    """Changes what the function whose result is at fault returns."""
    returns = [one for one in fault.source.parents if isinstance(one, ast.Return)]
    inner = [one for one in returns if fault.above(one) == fault.above(statement)]
    if isinstance(statement, ast.Return) and len(inner) > 1:
        raise UnsureError  # which of them was taken?
    for node in ast.walk(statement):
        if isinstance(node, ast.Return) and node.value and fault.marks(node.value):
            node.value = given_back(node.value, fault)
        elif isinstance(node, ast.Lambda) and fault.marks(node.body):
            node.body = given_back(node.body, fault)


def given_back(value: ast.expr, fault: Fault) -> ast.expr:
    """What a loop's step or a function to be differentiated is to return."""
    message, method = fault.message, "astype"
    args: list[ast.expr] = []
    if message.startswith("Gradient only defined for scalar-output functions"):
        method, first = "sum", fault.aux
        if "Output had shape" not in message:
            raise UnsureError
    else:
        changed = DTYPE_CHANGED.search(message)
        if changed is None or not np.can_cast(changed[3], changed[2], "same_kind"):
            raise UnsureError  # it would cut off what stands behind the point
        args = [ast.Constant(changed[2])]
        loops = [name for name in fault.inside if name in LOOPS]
        # A fori_loop is another loop, which carries a count before the value.
        counts = loops[-2:-1] == ["fori_loop"]
        if bool(changed[1]) != counts:
            raise UnsureError  # a part of the carry
        first = message.startswith("scan") and not counts
    if not first and not is_no_array(value):
        return called(value, method, *args)
    if first and isinstance(value, ast.Tuple) and not is_no_array(value.elts[0]):
        value.elts[0] = called(value.elts[0], method, *args)
        return value
    raise UnsureError


def called(value: ast.expr, method: str, *args: ast.expr) -> ast.expr:
    """Returns the call of a method of a value."""
    call = ast.Call(ast.Attribute(value, method, ast.Load()), list(args), [])
    return ast.copy_location(call, value)


class Mender(ast.NodeTransformer):
    """Puts in place of an expression what may be traced."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.inside = False  # of an expression that is put in another one's place
        self.changed = False  # whether that holds what is at fault

    def visit(self, node: ast.AST) -> Any:
        """Mends a node; for truth values only what holds the one that was asked for."""
        inside = self.inside
        if self.fault.truth and not inside and not self.fault.within(node):
            asking = ast.IfExp, ast.BoolOp, ast.Not, ast.Compare
            for each in ast.walk(node):
                if isinstance(each, asking) or self.picks(each):
                    raise UnsureError  # the next to be asked whether it is true
            return node
        found = super().visit(node)
        self.inside = inside
        return found

    def picks(self, node: Any) -> bool:
        """Whether a node is Python's `min` or `max` of two values."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return False
        two = len(node.args) == 2 and not node.keywords
        return self.fault.truth and two and node.func.id in PICKS

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        """`np.f(x)`, `int(x)`, `min(x, y)`, and calls with arguments of wrong kinds."""
        fault, function = self.fault, node.func
        marked, within = fault.marks(node), fault.within(node)
        if fault.error == "ConcretizationTypeError" and is_cast(node):
            if not marked or not only_computed(node, fault.source, fault.callers):
                raise UnsureError
            self.changed = True
            return called(node.args[0], "astype", function)
        if self.picks(node):
            self.inside = self.changed = True
            node.func = named(f"{fault.jnp}.{PICKS[ast.unparse(function)]}")
        self.generic_visit(node)
        if not fault.start[0] <= node.lineno <= fault.end[0]:
            return node
        if fault.error == "TracerArrayConversionError":
            if isinstance(function, ast.Attribute):
                if isinstance(function.value, ast.Name) and function.value.id in NUMPY:
                    if not hasattr(jax_numpy, function.attr):
                        raise UnsureError
                    function.value.id = fault.jnp
                    self.changed |= within
            return node
        if not marked:
            return node
        name = ast.unparse(function).rpartition(".")[2]
        before = ast.unparse(node)
        listed = LIST_GIVEN.search(fault.message)
        if listed and name == listed[1] and int(listed[2]) < len(node.args):
            place = int(listed[2])
            wrapped = named(f"{fault.jnp}.asarray")
            node.args[place] = ast.Call(wrapped, [node.args[place]], [])
        if fault.message.startswith("Non-hashable static"):
            for place, items in enumerate(node.args):
                told = f" is {ast.unparse(items)} of type list"
                if isinstance(items, ast.List) and told in fault.message:
                    if not any(map(is_no_array, items.elts)):
                        node.args[place] = ast.Tuple(items.elts, ast.Load())
        if fault.message.startswith("grad requires real"):
            self.of_floats(node)
        self.changed |= ast.unparse(node) != before
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
        if self.fault.error != "TracerBoolConversionError":
            return self.generic_visit(node)
        if not self.fault.within(node.test):
            if not self.inside:
                return self.generic_visit(node)  # what is at fault is in a branch
            if not is_boolean(node.test):
                raise UnsureError
        return self.where(node, self.fault.above(node))

    def where(self, node: ast.IfExp, functions: set[str]) -> ast.expr:
        """Returns the call that takes one value or the other, entry by entry."""
        for each in (node.body, node.orelse):
            calls = (one for one in ast.walk(each) if isinstance(one, ast.Call))
            again = (ast.unparse(one.func).rpartition(".")[2] for one in calls)
            if is_no_array(each) or not functions.isdisjoint(again):
                raise UnsureError
        self.inside = self.changed = True
        parts = [ast.unparse(self.visit(node.test))]
        parts += [ast.unparse(self.visit(each)) for each in (node.body, node.orelse)]
        return named(f"{self.fault.jnp}.where({', '.join(parts)})")

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # noqa: N802
        """`a > 0 and b > 0`."""
        if not self.fault.truth:
            return self.generic_visit(node)
        # A first part that Python found true or false may guard the ones behind it.
        passed = places_of(node.values[1])[0] <= self.fault.start
        if self.fault.within(node) and passed or not all(map(is_boolean, node.values)):
            raise UnsureError
        self.inside = self.changed = True
        self.generic_visit(node)
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
        negated = self.fault.truth and isinstance(node.op, ast.Not)
        if negated:
            if not self.fault.within(node) and not is_boolean(node):
                raise UnsureError
            self.inside = self.changed = True
        self.generic_visit(node)
        if not negated:
            return node
        function = named(f"{self.fault.jnp}.logical_not")
        return ast.Call(function, [node.operand], [])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:  # noqa: N802
        """`0 < a < 1`."""
        if self.fault.truth and not is_boolean(node):
            raise UnsureError
        if not self.fault.truth or len(node.ops) == 1:
            return self.generic_visit(node)
        self.inside = self.changed = True
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.Compare(left, [op], [right])
            for left, op, right in zip(sides, node.ops, sides[1:])
        ]
        found = pairs[0]
        for each in pairs[1:]:
            found = ast.BinOp(found, ast.BitAnd(), each)
        return found


def is_boolean(node: ast.expr) -> bool:
    """Whether an expression is true or false, entry by entry, of arrays too."""
    if isinstance(node, ast.BoolOp):
        return all(map(is_boolean, node.values))
    if isinstance(node, ast.Compare):
        identity = ast.Is, ast.IsNot, ast.In, ast.NotIn
        return not any(isinstance(each, identity) for each in node.ops)
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negated and is_boolean(node.operand)  # type: ignore[attr-defined]


def is_cast(node: ast.Call) -> bool:
    """Whether a call is `int(x)` or the like, of what is no constant."""
    cast = isinstance(node.func, ast.Name) and node.func.id in CASTS
    return cast and len(node.args) == 1 and not isinstance(node.args[0], ast.Constant)


def only_computed(
    node: ast.AST,
    source: Source,
    callers: list[tuple[str, Source]],
    names: Collection[str] = (),
) -> bool:
    """Whether Python computes with a value, with what it gives a name, and with what
    is returned to those that call, alone: an array can stand there, and not in a size,
    an index of a list or a count."""
    above = source.parents[node]
    while isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        if any(map(is_no_array, ast.iter_child_nodes(above))):
            return False
        above = source.parents[above]
    if isinstance(above, ast.Return) and callers:
        (name, file), *others = callers
        calls = [
            each
            for each in file.parents
            if isinstance(each, ast.Call)
            and ast.unparse(each.func).rpartition(".")[2] == name
        ]
        return bool(calls) and all(only_computed(c, file, others) for c in calls)
    if not isinstance(above, ast.Assign):
        return isinstance(above, ast.Return)
    if not all(isinstance(each, ast.Name) for each in above.targets):
        return False
    known = {*names, *map(ast.unparse, above.targets)}
    return all(
        only_computed(each, source, callers, known)
        for each in source.parents
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
        if each.id in known.difference(names)
    )


def named(text: str) -> ast.expr:
    """Returns an expression from its text."""
    return ast.parse(text, mode="eval").body


def static_line(files: list[str], function: str, name: str) -> tuple[int, str]:
    """Returns the line, with its number, in which `jit` of a function is told that an
    argument is static; (0, "") unless exactly one is found in the files."""
    found: list[tuple[int, str]] = []
    static = f"static_argnames='{name}'"
    for source in map(Source, dict.fromkeys(files)):
        for node in source.parents:
            if isinstance(node, ast.FunctionDef) and node.name == function:
                jits = [one for one in node.decorator_list if is_jit(one)]
            elif isinstance(node, ast.Call) and is_jit(node.func) and node.args:
                kept = any("static" in (each.arg or "") for each in node.keywords)
                if ast.unparse(node.args[0]) != function or kept:
                    continue
                statement = source.statement(node.lineno)
                one_line = statement.lineno == statement.end_lineno
                if not one_line or not source.is_whole(statement):
                    return 0, ""  # a part of a statement is no line
                jits = [node]
            else:
                continue
            lines = [option_added(source, one, static) for one in jits]
            found += [(line.line, line.new) for line in lines]
    return found[0] if len(found) == 1 else (0, "")
