"""The user's line repaired: from the syntax tree of the user's file.

Where a line has another form than is known here, there is no repaired line, and the
advice stands alone.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

import numpy as np

from minijax_lab.explain.flight_writes import (
    ASSIGNS,
    acted_on,
    assigned,
    own_names,
    stored_names,
)
from minijax_lab.explain.user_source import FUNCTIONS, Line, Source


def edited(source: Source, edits: list[tuple[int, int, int, str]]) -> list[Line]:
    """Lines with texts in the place of others: (line, first byte, last byte, text)."""
    mended: dict[int, bytes] = {}
    # From right to left: what stands left of a text keeps its place.
    for line, start, end, new in sorted(edits, reverse=True):
        whole = mended.get(line, source.lines[line - 1].encode())
        mended[line] = whole[:start] + new.encode() + whole[end:]
    return [
        source.mend(line, source.text(line), whole.decode().strip())
        for line, whole in sorted(mended.items())
    ]


def replaced_line(source: Source, node: Any, new: str) -> Line:
    """The line of a node with the node replaced; of one on several lines, as it is."""
    line, start, end = node.lineno, node.col_offset, node.end_col_offset
    if line != node.end_lineno:
        return source.mend(line, source.text(line), source.text(line))
    return edited(source, [(line, start, end, new)])[0]


def holds(source: Source, lines: list[Line]) -> bool:
    """Whether a file is still a program with its repaired lines, each repaired once."""
    old = [(line.file, line.line) for line in lines if line.old]
    if len(set(old)) < len(old) or any(line.old == line.new for line in lines):
        return False
    whole = dict(enumerate(source.lines, 1))
    for line in lines:
        if line.file == source.file and line.old:
            if not line.new and not source.is_line(source.statement(line.line)):
                return False
            whole[line.line] = line.new and source.indent(line.line) + line.new
    try:
        ast.parse("\n".join(whole.values()))
    except SyntaxError:
        return False
    return True


def jit_call(statement: Any) -> Any:
    """The call of `jit` in a statement."""
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and "jit" in ast.unparse(node.func).split("."):
            return node
    return None


def call_of(statement: Any, name: str) -> Any:
    """The call of a function in a statement; the first one of any, if it has one."""
    calls: list[Any] = [
        node
        for node in (ast.walk(statement) if statement is not None else ())
        if isinstance(node, ast.Call)
    ]
    named = [c for c in calls if ast.unparse(c.func).rpartition(".")[2] == name]
    return (named or calls[:1] or [None])[0]


def free_names(node: Any) -> set[str]:
    """The names that an expression reads, without its own parameters."""
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    own = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return read - own


def set_in(source: Source, name: str, node: Any) -> Any:
    """The function around a node whose name it is there; None: the file's."""
    scopes = {
        source.around(each, FUNCTIONS)
        for each in ast.walk(source.tree)
        if (isinstance(each, ast.arg) and each.arg == name)
        or (isinstance(each, ast.Name) and each.id == name)
        and isinstance(each.ctx, ast.Store)
    }
    while node is not None and node not in scopes:
        node = source.around(node, FUNCTIONS)
    return node


def names_read(source: Source, node: Any) -> set[str]:
    """The names that an expression reads, also inside of its file's functions."""
    read: set[str] = set()
    ahead = free_names(node)
    while ahead:
        read |= ahead
        called = [
            each
            for each in ast.walk(source.tree)
            if (isinstance(each, FUNCTIONS[:2]) and each.name in ahead)
            or (isinstance(each, ast.Assign) and isinstance(each.value, ast.Lambda))
            and assigned(each) & ahead
        ]
        ahead = set().union(*(free_names(f) - own_names(f) for f in called)) - read
    return read


def first_line(function: Any) -> int:
    """The line on which a function begins, with its decorators."""
    return min([function.lineno, *(d.lineno for d in function.decorator_list)])


def unsettled(source: Source, call: Any, function: Any) -> list[str]:
    """What a call reads that has no value yet above a function, or several in time."""
    first = first_line(function)
    outer, around = [], source.around(function, FUNCTIONS)
    while around is not None:
        outer.append(around)
        around = source.around(around, FUNCTIONS)
    given = {a.arg for f in outer for a in ast.walk(f.args) if isinstance(a, ast.arg)}
    lambdas = [each for each in ast.walk(call) if isinstance(each, ast.Lambda)]
    late = {node for each in lambdas for node in ast.walk(each.body)}
    early = {n.id for n in {*ast.walk(call)} - late if isinstance(n, ast.Name)}
    imported: set[str] = set()
    written_into = acted_on(source, source.tree)
    named: dict[str, list[Any]] = {name: [None] for name in written_into}
    for node in ast.walk(source.tree):
        scope = source.around(node, FUNCTIONS)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node.lineno < first:
            imported |= assigned(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                named.setdefault(name, []).append(None)
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            for name in assigned(node):
                named.setdefault(name, []).append(None)
        elif scope is not None and scope not in outer:
            continue
        elif isinstance(node, (ast.Name, *FUNCTIONS[:2], ast.ClassDef)):
            own = {node.id} if isinstance(node, ast.Name) else {node.name}
            if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store):
                # What a lambda's body reads may be defined below.
                below = isinstance(node, FUNCTIONS[:2]) and node.name not in early
                there = source.loop(node) is None and (below or node.lineno < first)
                named.setdefault(own.pop(), []).append(node if there else None)
    return sorted(
        name
        for name in names_read(source, call)
        if None in named.get(name, [])
        or len(named.get(name, [])) + (name in given) > 1
        or not (name in named or name in imported | given or hasattr(builtins, name))
        and "*" not in imported
    )


def local_names(source: Source, statement: Any) -> set[str]:
    """The names of the function around a statement."""
    function: Any = source.around(statement, FUNCTIONS[:2])
    if function is None:
        return set()
    return assigned(function) | {
        a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)
    }


def with_arguments(arguments: ast.arguments, names: list[str]) -> ast.arguments:
    """A function's arguments and more, which go by keyword where places are taken."""
    more = [ast.arg(name) for name in names]
    plain = not (arguments.defaults or arguments.vararg or arguments.kwonlyargs)
    kept = {field: getattr(arguments, field) for field in arguments._fields}
    if plain and not arguments.kwarg:
        return ast.arguments(**kept | {"args": [*arguments.args, *more]})
    kept["kwonlyargs"] = [*arguments.kwonlyargs, *more]
    return ast.arguments(
        **kept | {"kw_defaults": [*arguments.kw_defaults, *[None] * len(more)]}
    )


def free_name(source: Source, line: int) -> str:
    """A name that a file does not use, for the jit of one of its lines."""
    name = f"jitted_{line}"
    while name in "\n".join(source.lines):
        name += "_"
    return name


def stays_traced(source: Source, function: Any, name: str) -> bool:
    """Whether a function computes with a name only what is traced with it or without:
    wherever it is read, it meets an argument in arithmetic."""
    places = function.args.args
    given = {arg.arg for arg in places[: len(places) - len(function.args.defaults)]}
    for node in ast.walk(function.body):
        if isinstance(node, ast.Name) and node.id == name:
            while not has_value_read(node, given):
                node = source.parents[node]
                if not isinstance(node, ast.BinOp):
                    return False
    return True


def hoisted(
    source: Source, statement: Any, call: Any, loop: Any, write: str
) -> tuple[list[Line], str]:
    """A `jit(...)` above its loop; what it reads of the loop becomes an argument."""
    line = call.lineno
    function = call.args[0] if call.args else None
    sets_in_loop = assigned(loop) | acted_on(source, loop)
    changed = sorted(free_names(call) & sets_in_loop)
    text = source.segment(call)
    plain = isinstance(statement, ast.Assign) and statement.value is call
    plain = plain and len(statement.targets) == 1
    name = source.segment(statement.targets[0]) if plain else free_name(source, line)
    changed = [each for each in changed if each != name]
    old, new = call, name
    if changed:
        write = once_above(changed, loop)
        called: Any = source.parents.get(call)
        direct = isinstance(called, ast.Call) and called.func is call
        if not isinstance(function, ast.Lambda) or not direct or call.keywords:
            return [], write
        if not all(stays_traced(source, function, each) for each in changed):
            return [], write
        head = with_arguments(function.args, changed)
        made = f"lambda {ast.unparse(head)}: {source.segment(function.body)}"
        text = text.replace(source.segment(function), made)
        given = [source.segment(arg) for arg in [*called.args, *called.keywords]]
        keyed = called.keywords or head.kwonlyargs
        given += [f"{each}={each}" if keyed else each for each in changed]
        old, new = called, f"{name}({', '.join(given)})"
    names = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    sets = sum(isinstance(n.ctx, ast.Store) for n in names)
    within = (names_read(source, call) - {name}) & sets_in_loop - {*changed}
    if within:
        return [], once_above(sorted(within), loop)
    inner = source.around(call, FUNCTIONS) is not source.around(loop, FUNCTIONS)
    if inner or sets != plain:  # another function's names, or f = wrapped(f)
        return [], write
    above = source.mend(loop.lineno, "", f"{name} = {text}", "above the loop")
    if plain:
        return [above, source.mend(line, source.text(line), "")], write
    return [above, replaced_line(source, old, new)], write


def once_above(names: list[str], loop: Any) -> str:
    """Where to make what reads some names that its loop changes, or may change."""
    sets = [name for name in names if name in assigned(loop)]
    if sets:
        return f"make it once, above the loop, and pass {', '.join(sets)} to it"
    acted = "`, `".join(names)
    return f"make it once, above the loop; if a call in it changes `{acted}`, pass that"


def lifted(source: Source, statement: Any, call: Any, function: Any) -> list[Line]:
    """A `jit(...)` out of the function that makes it at each call.

    None out of a method, whose class is no scope for it.
    """
    if isinstance(source.parents.get(function), ast.ClassDef):
        return []
    name = free_name(source, call.lineno)
    mended = replaced_line(source, call, name)
    if isinstance(statement, ast.Assign) and statement.value is call:
        own = source.segment(statement.targets[0])
        inside = {n for n in ast.walk(function) if isinstance(n, ast.Name)}
        there = {n for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
        sets = [n for n in there if n.id == own and not isinstance(n.ctx, ast.Load)]
        given = {n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)}
        one = len(sets) == len(statement.targets) == 1 and own not in given
        # Its own name, where it means nothing else.
        if one and {n for n in there if n.id == own} <= inside:
            name = own
            mended = source.mend(call.lineno, source.text(call.lineno), "")
    above = f"{name} = {source.segment(call)}"
    return [
        source.mend(first_line(function), "", above, f"above {function.name}"),
        mended,
    ]


def without_static(
    source: Source, line: int, name: str
) -> tuple[list[Line], list[int]]:
    """The decorator without one static name, and the lines where Python needs it."""
    statement = source.statement(line)
    uses: list[int] = []
    function: Any = statement if isinstance(statement, FUNCTIONS[:2]) else None
    call = jit_call(statement)
    if call is not None and call.args and isinstance(call.args[0], ast.Lambda):
        function = call.args[0]
    if function is None and statement is not None:
        wanted = source.segment(call.args[0]) if call is not None and call.args else ""
        function = next(
            (
                node
                for node in ast.walk(source.tree)
                if isinstance(node, FUNCTIONS[:2]) and node.name == wanted
            ),
            None,
        )
    number = -1
    more: list[Line] = []
    if function is not None:
        more = by_jnp(source, function, name)
        names = [arg.arg for arg in function.args.args]
        number = names.index(name) if name in names else -1
        uses = sorted({*python_uses(function, name)} - {line.line for line in more})
    for node in ast.walk(statement) if statement is not None else ():
        if not isinstance(node, ast.keyword) or node.arg is None:
            continue
        if not node.arg.startswith("static_arg") or node.value.lineno != node.lineno:
            continue
        try:
            listed = ast.literal_eval(node.value)
        except ValueError:
            continue
        listed = (listed,) if isinstance(listed, (int, str)) else tuple(listed)
        gone = name if node.arg == "static_argnames" else number
        left = tuple(each for each in listed if each != gone)
        if left == listed:
            continue
        if left:
            old = source.text(node.lineno)
            whole = source.segment(node)
            kept = old.replace(whole, f"{node.arg}={left!r}")
            return [source.mend(node.lineno, old, kept), *more], uses
        return [*without_option(source, line, (node.arg,)), *more], uses
    return more, uses


def by_jnp(source: Source, function: Any, name: str) -> list[Line]:
    """The lines on which NumPy computes with an argument, with jnp instead."""
    names = computed_from(function, name)
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and source.segment(node.func).rpartition(".")[0] in ("np", "numpy", "math")
        and hasattr(np, source.segment(node.func).rpartition(".")[2])
        and any(has_value_read(part, names) for part in node.args)
    ]
    if "jnp" not in "\n".join(source.lines):
        return []
    found = []
    for call in calls:
        func: Any = call.func
        start, end = func.col_offset, func.end_col_offset
        method = source.segment(call.func).rpartition(".")[2]
        found.append((call.lineno, start, end, f"jnp.{method}"))
    return edited(source, found)


# They compare numbers, or make Python's own of them, which a tracer refuses.
PYTHON_ONLY = ("range", "int", "float", "complex", "bool", "min", "max", "sorted")


def computed_from(function: Any, name: str) -> set[str]:
    """A name, and those that a function assigns what it computes from that value."""
    names, before = {name}, 0
    while len(names) > before:
        before = len(names)
        for node in ast.walk(function):
            value = getattr(node, "value", None)
            if isinstance(node, ASSIGNS) and value and has_value_read(value, names):
                targets = [*getattr(node, "targets", ()), getattr(node, "target", None)]
                names |= set().union(*map(stored_names, targets))
    return names


def python_uses(function: Any, name: str) -> list[int]:
    """The lines of a function at which Python, not JAX, needs a value."""
    found = []
    names = computed_from(function, name)
    for node in ast.walk(function):
        parts: list[Any] = []
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            parts = [node.test]
        elif isinstance(node, ast.BoolOp):
            parts = node.values[:-1]  # the last one is given back as it is
        elif isinstance(node, ast.Slice):
            parts = [node.lower, node.upper, node.step]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            parts = [node.operand]
        elif isinstance(node, ast.Call):
            head = ast.unparse(node.func)
            if head in PYTHON_ONLY or head.startswith(("np.", "math.")):
                parts = node.args
            else:
                parts = shape_arguments(node, head)
        found += [part.lineno for part in parts if part and has_value_read(part, names)]
    return found


# Where the arguments that decide a result's shape begin, and end.
SHAPED = {
    "zeros": (0, 1),
    "ones": (0, 1),
    "full": (0, 1),
    "arange": (0, 3),
    "reshape": (1, None),
}


def shape_arguments(call: Any, head: str) -> list[Any]:
    """The arguments of a call that JAX takes as numbers: those that make a shape."""
    of, _, function = head.rpartition(".")
    if function not in SHAPED:
        return []
    begin, end = SHAPED[function]
    named = [each.value for each in call.keywords if each.arg == "shape"]
    if of not in ("jnp", "jax.numpy"):
        begin = 0  # the method of an array
    return call.args[begin:end] + named


# What a tracer tells without a value.
KNOWN = {"shape", "ndim", "dtype", "size"}


def has_value_read(node: Any, names: set[str]) -> bool:
    """Whether an expression reads the value of one of some names: `is`, `len` and what
    a type knows need none."""
    if isinstance(node, ast.Compare):
        if all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            return False
    if isinstance(node, ast.Attribute) and node.attr in KNOWN:
        return False
    if isinstance(node, ast.Call):
        if ast.unparse(node.func) in ("len", "isinstance", "type"):
            return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(has_value_read(each, names) for each in ast.iter_child_nodes(node))


def without_option(source: Source, line: int, options: tuple[str, ...]) -> list[Line]:
    """A `jit(...)`, or a decorator, without an option."""
    statement = source.statement(line)
    for node in ast.walk(statement) if statement is not None else ():
        if not isinstance(node, ast.Call) or node.lineno != node.end_lineno:
            continue
        kept = [
            keyword
            for keyword in node.keywords
            if not (keyword.arg or "").startswith(options)
        ]
        if len(kept) == len(node.keywords):
            continue
        arguments = [source.segment(each) for each in [*node.args, *kept]]
        head = source.segment(node.func)
        new = f"{head}({', '.join(arguments)})"
        decorates = isinstance(source.parents.get(node), FUNCTIONS[:2])
        if decorates and head.rpartition(".")[2] == "partial" and len(arguments) == 1:
            new = arguments[0]
        elif decorates and not arguments:
            new = head
        return [replaced_line(source, node, new)]
    return []


def with_option(source: Source, line: int, option: str) -> list[Line]:
    """A `jit(...)`, or a decorator, with an option more."""
    statement = source.statement(line)
    for node in getattr(statement, "decorator_list", []):
        parts = [node.func, *node.args] if isinstance(node, ast.Call) else [node]
        if any(map(is_jit, parts)):
            return [option_added(source, node, option)]  # or partial(jax.jit, ...)
    call = jit_call(statement)
    if call is not None and call.lineno == call.end_lineno:
        return [option_added(source, call, option)]
    return []


def option_added(source: Source, node: Any, option: str) -> Line:
    """The line of a `jit`, or of a call of it, with an option more."""
    text = source.segment(node)
    if not isinstance(node, ast.Call):
        return replaced_line(source, node, f"{text}({option})")
    between = ", " if node.args or node.keywords else ""
    return replaced_line(source, node, f"{text[:-1]}{between}{option})")


def is_jit(node: ast.expr) -> bool:
    """Whether an expression names `jit`."""
    return ast.unparse(node).rpartition(".")[2] == "jit"


def above_the_loop(source: Source, line: int) -> list[Line]:
    """A statement above its loop, if it reads nothing that the loop sets."""
    statement = source.statement(line)
    loop = source.loop(statement) if statement is not None else None
    if loop is None or not isinstance(statement, ast.Assign):
        return []
    if free_names(statement.value) & (assigned(loop) | acted_on(source, loop)):
        return []
    text = source.segment(statement)
    return [
        source.mend(loop.lineno, "", text, "above the loop"),
        source.mend(line, source.text(line), ""),
    ]


def argument_node(source: Source, statement: Any, path: str, made: Any) -> Any:
    """The expression that a call passes for a leaf's argument."""
    root = path.partition("[")[0].partition(".")[0]
    call = call_of(statement, made.name if made is not None else "")
    if call is None:
        return None
    for keyword in call.keywords:
        if keyword.arg == root:
            return keyword.value
    around = source if not made.code_file else Source(made.code_file)
    names = parameters_at(around, made.code_line, call, made.bound)
    if root not in names and made is not None:
        # A library jitted what the user's function became.
        own = [f for f in ast.walk(source.tree) if isinstance(f, FUNCTIONS[:2])]
        lines = [f.lineno for f in own if f.name == made.name]
        names = parameters_at(source, lines[0], call, False) if len(lines) == 1 else []
    place = names.index(root) if root in names else len(call.args)
    if any(isinstance(arg, ast.Starred) for arg in call.args[: place + 1]):
        return None  # nobody knows how many arguments it stands for
    return call.args[place] if place < len(call.args) else None


def parameters_at(source: Source, line: int, call: ast.Call, bound: bool) -> list[str]:
    """The parameters of the function that begins at a line, as a call gives them: of a
    method, without the object that it is looked up in or bound to."""
    for node in ast.walk(source.tree):
        if isinstance(node, FUNCTIONS):
            marks = [d.lineno for d in getattr(node, "decorator_list", [])]
            if line in (node.lineno, *marks):
                names = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args]]
                return names[bound or is_method_call(source, node, call) :]
    return []


def is_method_call(source: Source, function: Any, call: ast.Call) -> bool:
    """Whether a call finds a function of a class in one of its objects."""
    owner = source.parents.get(function)
    if not isinstance(owner, ast.ClassDef) or not isinstance(call.func, ast.Attribute):
        return False
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    if call.func.attr != function.name or "staticmethod" in marks:
        return False
    return ast.unparse(call.func.value) != owner.name


def argument_at(source: Source, statement: Any, path: str, made: Any) -> str:
    """The same as text, with the leaf's path behind it."""
    node = argument_node(source, statement, path, made)
    if node is None:
        return ""
    rest = path[len(path.partition("[")[0].partition(".")[0]) :]
    return source.segment(node) + rest


READERS = {"float", "int", "bool", "np.asarray", "np.array", "numpy.asarray"}


def reading(node: Any) -> Any:
    """What a call brings to the host: the `loss` of `float(loss)`, `loss.item()`."""
    if not isinstance(node, ast.Call):
        return None
    if ast.unparse(node.func) in READERS | {"jax.device_get"} and len(node.args) == 1:
        return node.args[0]
    method = getattr(node.func, "attr", "")
    if method in ("item", "tolist", "block_until_ready") and not node.args:
        return node.func.value  # type: ignore[attr-defined]
    return None


def kept_on_device(source: Source, statement: Any, often: bool) -> list[Line]:
    """The line without its read, and the read after the loop."""
    found = [node for node in ast.walk(statement) if reading(node) is not None]
    loop = source.loop(statement)
    if len(found) != 1 or loop is None or not source.is_whole(statement):
        return []
    read: Any = found[0]
    kept = source.segment(reading(read))
    text = source.segment(read)
    line, old = read.lineno, source.text(read.lineno)
    end = loop.end_lineno + 1
    bare = old.replace(text, kept, 1)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if call is read:
            return [
                source.mend(line, old, ""),
                source.mend(end, "", text, "after the loop"),
            ]
        head = ast.unparse(call.func)
        if head.endswith(".append"):
            name = head.removesuffix(".append")
            if reads_within(source, loop, statement, name):
                return []
            each = ast.unparse(read.func)
            each = "x.item()" if each.endswith(".item") else f"{each}(x)"
            after = f"{name} = [{each} for x in jax.device_get({name})]"
            if each not in ("float(x)", "int(x)", "bool(x)", "x.item()"):
                after = f"{name} = jax.device_get({name})"
            return [
                source.mend(line, old, bare),
                source.mend(end, "", after, "after the loop"),
            ]
    if isinstance(statement, ast.AugAssign):
        name = source.segment(statement.target)
        if reads_within(source, loop, statement, name):
            return []
        after = f"{name} = {text.replace(kept, name, 1)}"
        return [
            source.mend(line, old, bare),
            source.mend(end, "", after, "after the loop"),
        ]
    step = counted_by(source, loop)
    if often and step and isinstance(statement, ast.Expr):
        return [source.mend(line, old, f"if {step} % 100 == 0: {old}")]
    return []


def counted_by(source: Source, loop: Any) -> str:
    """The name that counts the passes of a loop, by `range` or `enumerate`; or ""."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return ""
    head, target = source.segment(loop.iter.func), loop.target
    if head == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif head != "range":
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def reads_within(source: Source, loop: Any, statement: Any, name: str) -> list[int]:
    """The lines of a loop, but for one statement, that read what has a name."""
    within = {*ast.walk(statement)}
    return sorted(
        node.lineno
        for node in ast.walk(loop)
        if isinstance(node, (ast.Name, ast.Attribute))
        and node not in within
        and source.segment(node) == name
    )


def host_reads(source: Source, statement: Any) -> list[int]:
    """Where a loop reads the list, or the name, that a read of the device goes into."""
    loop = source.loop(statement)
    name = ""
    if isinstance(statement, ast.AugAssign):
        name = source.segment(statement.target)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name = source.segment(statement.targets[0])
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        name = ast.unparse(statement.value.func)
        name = name.removesuffix(".append") if name.endswith(".append") else ""
    return reads_within(source, loop, statement, name) if loop and name else []
