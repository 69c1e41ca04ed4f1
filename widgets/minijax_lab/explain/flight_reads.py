"""What becomes of a value that a line brought to the host: whether Python decides by
it, and which other lines read the same array.

All of it is read from the syntax tree of the user's file. What is not known counts as
no decision: the advice then says which lines need the value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain.flight_repairs import KNOWN, PYTHON_ONLY, jit_call, reading
from minijax_lab.explain.flight_writes import (
    ASSIGNS,
    assigned,
    own_names,
    stored_names,
    written_root,
)
from minijax_lab.explain.user_source import FUNCTIONS, Source

# Calls whose result is Python's own value of what they are given.
PLAIN = {*PYTHON_ONLY, "abs", "round", "sum", "any", "all", "str"}
OF_NUMPY = ("np.", "numpy.", "math.")
# Methods that put a value into a container.
FILLING = ("append", "extend", "insert", "add", "appendleft")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict, *COMPREHENSIONS)


def tests_of(node: Any) -> list[Any]:
    """The expressions of a node by whose values Python decides what to do."""
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values[:-1]  # the last one is given back as it is
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, (ast.For, ast.comprehension)):
        call: Any = node.iter
        counted = isinstance(call, ast.Call) and ast.unparse(call.func) == "range"
        return getattr(node, "ifs", []) + (call.args if counted else [])
    if isinstance(node, ast.match_case):
        return [node.guard] if node.guard is not None else []
    return [node.subject] if isinstance(node, ast.Match) else []


@dataclass
class Values:
    """The nodes and names that hold what was read; of `filled` names, their entries."""

    source: Source
    reads: set[Any] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)

    def in_(self, node: Any) -> bool:
        """Whether an expression computes with them as Python does, not as JAX does."""
        if node in self.reads:
            return True
        if isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node, ast.Attribute) and node.attr in KNOWN:
                return False
            text = ast.unparse(node)
            if text in self.names | self.filled and self.is_anothers(node):
                return False
            if text in self.filled:
                above = self.source.parents.get(node)
                entries = ast.Subscript, ast.Call, ast.comprehension, ast.Compare
                return isinstance(above, entries)
            if text in self.names:
                return True
        if isinstance(node, ast.Compare):
            if all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
                return False
            if all(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops):
                return self.in_(node.left)  # a key of a dict is no value of it
        if isinstance(node, ast.Call):
            head = ast.unparse(node.func)
            if head in PLAIN or head.startswith(OF_NUMPY) or self.is_plain(head):
                return any(map(self.in_, [*node.args, *node.keywords]))
            return isinstance(node.func, ast.Attribute) and self.in_(node.func.value)
        if isinstance(node, ast.Lambda):
            return False
        return any(map(self.in_, ast.iter_child_nodes(node)))

    def is_anothers(self, node: Any) -> bool:
        """Whether a name is that of an inner function, or of a comprehension, and not
        that of the code around, in which the values were read."""
        name = written_root(node)
        above = self.source.around(node, (*FUNCTIONS, *COMPREHENSIONS))
        while above is not None:
            if any(above in ancestors(self.source, read) for read in self.reads):
                return False
            if isinstance(above, COMPREHENSIONS):
                targets = (stored_names(each.target) for each in above.generators)
                own = set().union(*targets)
            else:
                own = {e.arg for e in ast.walk(above.args) if isinstance(e, ast.arg)}
                own |= own_names(above)
            if name in own:
                return True
            above = self.source.around(above, (*FUNCTIONS, *COMPREHENSIONS))
        return False

    def is_plain(self, name: str) -> bool:
        """Whether a function is the file's own, and nothing jits it."""
        found = [
            each
            for each in ast.walk(self.source.tree)
            if isinstance(each, FUNCTIONS[:2]) and each.name == name
        ]
        marks = [mark for each in found for mark in each.decorator_list]
        jits = [
            call
            for call in map(jit_call, ast.walk(self.source.tree) if found else ())
            if call is not None and name in map(ast.unparse, call.args)
        ]
        return (
            len(found) == 1
            and not jits
            and "jit" not in "".join(map(ast.unparse, marks))
        )

    def follow(self, node: Any) -> None:
        """Adds the names to which a piece of code gives such a value."""
        for each in ast.walk(node):
            if isinstance(each, ASSIGNS) and each.value:
                targets = getattr(each, "targets", None) or [each.target]  # type: ignore
                for target in targets:
                    for part, value in pairs(target, each.value):
                        self.assign(part, value)
            elif isinstance(each, ast.For):
                self.assign(each.target, each.iter, ast.unparse(each.iter))
            elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
                if each.func.attr in FILLING and any(map(self.in_, each.args)):
                    self.filled.add(ast.unparse(each.func.value))

    def assign(self, target: Any, value: Any, iterated: str = "") -> None:
        """Adds what an assignment sets, or a loop over a value, if it holds some."""
        if iterated not in self.filled and not self.in_(value):
            return
        names = stored_names(target)
        if isinstance(target, ast.Subscript):
            self.filled.add(ast.unparse(target.value))
        elif isinstance(value, CONTAINERS) and not iterated and len(names) < 2:
            self.filled |= names
        else:
            self.names |= names
            if isinstance(target, ast.Attribute):
                self.names.add(ast.unparse(target))

    def test(self, node: Any) -> int:
        """The first line of some code on which Python decides by them; 0: nowhere."""
        tests = (test for each in ast.walk(node) for test in tests_of(each))
        return min((test.lineno for test in tests if self.in_(test)), default=0)


def pairs(target: Any, value: Any) -> list[tuple[Any, Any]]:
    """The parts of an assignment: `a, b = 1, x` sets `a` to 1 and `b` to `x`."""
    kinds = (ast.Tuple, ast.List)
    if isinstance(target, kinds) and isinstance(value, kinds):
        stars = any(isinstance(e, ast.Starred) for e in [*target.elts, *value.elts])
        if len(target.elts) == len(value.elts) and not stars:
            return list(zip(target.elts, value.elts))
    return [(target, value)]


def ancestors(source: Source, node: Any) -> set[Any]:
    """All that a node is a part of."""
    found = set()
    while node in source.parents:
        node = source.parents[node]
        found.add(node)
    return found


def reads_at(node: Any, line: int) -> list[Any]:
    """The calls of some code that bring something to the host on a line."""
    here = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and each.lineno <= line <= (each.end_lineno or 0)
    ]
    found = [each for each in here if reading(each) is not None]
    return found or [c for c in here if ast.unparse(c.func).startswith(OF_NUMPY)]


def decided_at(source: Source, line: int) -> int:
    """The line at which Python decides by what is read at a line, or 0: the same one,
    for a test of `if` or `while`, or one of the same pass that tests what the value was
    assigned to."""
    statement = source.statement(line)
    whole = statement
    parent = source.parents.get(statement)
    if isinstance(parent, (ast.If, ast.While)) and parent.lineno == line:
        whole = parent  # `if x > 3: break`
    elif statement is None:
        return 0
    reads = reads_at(source.tree, line)
    if any(reading(each) is not None for each in reads):
        return decided_by(source, set(reads), set())
    # An array in a test is read without a call.
    idle = isinstance(statement, (ast.Break, ast.Continue, ast.Pass))
    nodes = ast.walk(whole if idle else statement)
    tests = [test for node in nodes for test in tests_of(node)]
    if any(test.lineno <= line <= test.end_lineno for test in tests):
        return line
    return decided_by(source, set(reads), set())


def decided_by(source: Source, reads: set[Any], seen: set[str]) -> int:
    """The line at which Python decides by some calls' results, in the same pass."""
    for read in reads:
        statement = source.around(read, ast.stmt)
        values = Values(source, {read})
        for node in within(source, read):
            if any(read in ast.walk(test) for test in tests_of(node)):
                return int(read.lineno)
        scope = source.loop(statement) or source.around(statement, FUNCTIONS[:2])
        scope = outer_scope(source, statement) or scope
        if scope is not None:
            values.follow(statement)
            before = -1
            while before < len(values.names) + len(values.filled):
                before = len(values.names) + len(values.filled)
                values.follow(scope)
            values.names |= array_of(source, scope, read)
            line = values.test(scope)
            if line:
                return line
        function = source.around(statement, FUNCTIONS[:2])
        name = function.name if function is not None else ""
        if isinstance(statement, ast.Return) and name and name not in seen:
            if values.in_(statement.value):
                line = decided_by(source, calls_of(source, name), seen | {name})
                if line:
                    return line
    return 0


def outer_scope(source: Source, statement: Any) -> Any:
    """The code around a function in which an assigned name is, if the function calls it
    `global` or `nonlocal`; None if it calls it neither."""
    function = source.around(statement, FUNCTIONS[:2])
    stored = assigned(statement, into=False)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Global) and stored & {*node.names}:
            return source.tree
        if isinstance(node, ast.Nonlocal) and stored & {*node.names}:
            return source.around(function, FUNCTIONS[:2])
    return None


def within(source: Source, node: Any) -> Iterator[Any]:
    """A node, and all that it is a part of, up to its statement."""
    yield node
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
        yield node


def calls_of(source: Source, name: str) -> set[Any]:
    """The calls of a function, or a method, of the file, by its name."""
    defined = [
        each
        for each in ast.walk(source.tree)
        if isinstance(each, FUNCTIONS[:2]) and each.name == name
    ]
    return {
        each
        for each in ast.walk(source.tree)
        if isinstance(each, ast.Call)
        and ast.unparse(each.func).rpartition(".")[2] == name
        and len(defined) == 1
    }


def array_of(source: Source, scope: Any, read: Any) -> set[str]:
    """The name of the array that a call reads, if the name is set once in a pass: all
    that is read by it is one array."""
    array = reading(read)
    if not isinstance(array, ast.Name) or not isinstance(scope, (ast.For, ast.While)):
        return set()
    sets = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and node.id == array.id
        if isinstance(node.ctx, ast.Store)
    ]
    return {array.id} if len(sets) == 1 else set()


def read_again(source: Source, statement: Any) -> list[Any]:
    """The other statements of each pass that read the array that a statement reads.

    The first read keeps the values on the host; without it the next one waits.
    """
    loop = source.loop(statement)
    reads = [node for node in ast.walk(statement) if reading(node) is not None]
    names: set[str] = set()
    if loop is not None and not isinstance(statement, (ast.For, ast.While)):
        names = set().union(*(array_of(source, loop, read) for read in reads))
    found = []
    for node in ast.walk(loop) if names else ():
        other = source.around(node, ast.stmt)
        arrays: list[Any] = [reading(node)]
        if isinstance(node, ast.FormattedValue):
            arrays = [node.value]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            arrays = node.args
        if other is None or other is statement or other in found:
            continue
        if any(isinstance(each, ast.Name) and each.id in names for each in arrays):
            if source.loop(other) is loop and each_pass(source, other, statement):
                found.append(other)
    return sorted(found, key=lambda each: each.lineno)


def each_pass(source: Source, other: Any, statement: Any) -> bool:
    """Whether one statement runs whenever another one of its loop does."""
    above = source.around(other, (ast.If, ast.For, ast.While, ast.Try))
    while above is not None and not isinstance(above, (ast.For, ast.While)):
        if statement not in ast.walk(above):
            return False
        above = source.around(above, (ast.If, ast.For, ast.While, ast.Try))
    return True
