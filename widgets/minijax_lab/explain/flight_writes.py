"""Which names a piece of the user's code may change: by assignment, or by a call.

A repaired line that moves an expression is safe only where nothing between the old
place and the new one changes what it reads. What is not known counts as changed.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from minijax_lab.explain.user_source import FUNCTIONS, Source

ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)


def assigned(node: Any, into: bool = True) -> set[str]:
    """The names that statements set, and those of what they write into."""
    names = set()
    for each in ast.walk(node):
        if isinstance(each, (*FUNCTIONS[:2], ast.ClassDef)):
            names.add(each.name)
        elif isinstance(each, ast.alias):
            names.add((each.asname or each.name).partition(".")[0])
        elif isinstance(getattr(each, "ctx", None), ast.Store):
            names |= written(each) if into else stored_names(each)
    return names


def written(target: Any) -> set[str]:
    """The name of what a target is, or is a part of."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return stored_names(target)


def own_names(function: Any) -> set[str]:
    """The names that a function sets for itself."""
    named = (n for n in ast.walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)))
    return assigned(function, into=False) - {name for n in named for name in n.names}


def stored_names(target: Any) -> set[str]:
    """The names that an assignment sets; an entry of a container sets none."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*map(stored_names, target.elts))
    if isinstance(target, ast.Starred):
        return stored_names(target.value)
    return {target.id} if isinstance(target, ast.Name) else set()


# Libraries whose functions write into none of their arguments.
READING_LIBRARIES = {
    *("jax", "numpy", "flax", "optax", "equinox", "chex", "minijax", "functools"),
    *("math", "itertools", "operator", "dataclasses", "typing", "collections", "time"),
}
# Methods that write into nothing: of arrays, dicts, texts, and Flax's modules.
WRITING_METHODS = {
    *("fill", "sort", "resize", "put", "partition", "setfield", "setflags", "byteswap"),
    *("pop", "popitem", "setdefault", "update", "clear", "append", "extend", "insert"),
    *("remove", "reverse", "add", "discard"),
}
READING_METHODS = {
    *(m for kind in (np.ndarray, dict, str, list, tuple) for m in dir(kind)),
    *("apply", "init", "at", "devices", "block_until_ready", "apply_gradients"),
} - WRITING_METHODS


def library_names(source: Source) -> set[str]:
    """The names that a file imports of libraries that write into no argument."""
    names: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in READING_LIBRARIES:
                    names.add((alias.asname or alias.name).partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in READING_LIBRARIES:
                names |= assigned(node)
    return names


def is_tame(source: Source, name: str, seen: set[str]) -> bool:
    """Whether a function of the file, or a class, writes into none of its arguments."""
    if name in seen:
        return True
    seen.add(name)
    makers = [
        each
        for each in ast.walk(source.tree)
        if isinstance(each, (*FUNCTIONS[:2], ast.ClassDef)) and each.name == name
    ]
    if len(makers) != 1:
        return False
    (maker,) = makers
    calm = True
    if isinstance(maker, ast.ClassDef):
        inits = [f for f in maker.body if getattr(f, "name", "") == "__init__"]
        calm = not inits or is_calm(source, inits[0], seen, {"self"})
    else:
        calm = is_calm(source, maker, seen, set())
    if not calm:
        seen.discard(name)
    return calm


def is_jitted(source: Source, name: str) -> bool:
    """Whether a name of the file is only ever that of a function jitted by JAX.

    Flax's `nnx.jit` hands on the objects themselves, and updates them.
    """
    makers: list[Any] = []
    for node in ast.walk(source.tree):
        if isinstance(node, FUNCTIONS[:2]) and node.name == name:
            makers.append(node.decorator_list)
        elif isinstance(node, ast.arg) and node.arg == name:
            makers.append([])
        elif isinstance(node, ASSIGNS) and name in assigned(node):
            makers.append([getattr(node.value, "func", None)])
        elif isinstance(node, (ast.ClassDef, ast.Import)) and name in assigned(node):
            makers.append([])
        elif isinstance(node, (ast.For, ast.comprehension)):
            if name in stored_names(node.target):
                makers.append([])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "flax"
        ):
            if "jit" in assigned(node):
                return False
    heads = [[ast.unparse(part) for part in maker if part] for maker in makers]
    jits = [re.search(r"(?<!nnx\.)\bjit\b", " ".join(head)) for head in heads]
    return bool(jits) and all(jits)


def is_calm(source: Source, node: Any, seen: set[str], own: set[str]) -> bool:
    """Whether code writes into nothing but what is its own, nor does what it calls."""
    for each in ast.walk(node):
        if isinstance(each, (ast.Global, ast.Nonlocal)):
            return False
        if isinstance(each, (ast.Attribute, ast.Subscript)):
            if not isinstance(each.ctx, ast.Load) and not written(each) <= own:
                return False
        if isinstance(each, ast.Call) and written_by(source, each, seen):
            return False
    return True


def written_by(source: Source, call: ast.Call, seen: set[str]) -> set[str]:
    """The names into whose values a call may write: its arguments' and its object's."""
    function = call.func
    root = written_root(function)
    if isinstance(function, ast.Name) and is_jitted(source, root):
        return set()  # it is handed copies of its arguments' containers
    libraries = library_names(source)
    given = [each.id for each in call.args if isinstance(each, ast.Name)]
    owns = {n.name for n in ast.walk(source.tree) if isinstance(n, FUNCTIONS[:2])}
    if any(each in owns and not is_tame(source, each, seen) for each in given):
        libraries, root = set(), ""  # what it is handed may write: map(bump, [cfg])
    if isinstance(function, ast.Call) and root in libraries:
        if not written_by(source, function, seen):
            return set()  # jax.jit(f)(x)
    if root and isinstance(function, ast.Name):
        if root in libraries or is_tame(source, root, seen):
            return set()
        builtin = getattr(builtins, root, None) is not None
        if builtin and root not in ("setattr", "delattr", "next", "exec", "eval"):
            return set()
    names = set().union(
        *(every_root(each) for each in [*call.args, *(k.value for k in call.keywords)])
    )
    if isinstance(function, ast.Attribute):
        if root in libraries:
            return set()
        if function.attr in READING_METHODS:
            return set()
        names |= {root} - {""}
    return names


def written_root(node: Any) -> str:
    """The name that a chain of attributes, entries and calls begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def every_root(node: Any) -> set[str]:
    """The names whose objects an argument hands on: not those of what it computes."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return set().union(*map(every_root, node.elts))
    if isinstance(node, ast.Dict):
        return set().union(*map(every_root, node.values))
    if isinstance(node, ast.Starred):
        return every_root(node.value)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return {written_root(node)} - {""}
    return set()


def acted_on(source: Source, node: Any) -> set[str]:
    """The names into whose values some call in a piece of code may write: the object of
    a method that is not known to read only, the arguments of a function that may write.

    Arrays of JAX and constants of Python cannot be written into.
    """
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    inside: set[str] = set()
    for function in reached(source, list(calls)):
        own, outer = set(), function
        while outer is not None:  # those of the functions around it, too
            given = {each.arg for each in ast.walk(outer.args) if hasattr(each, "arg")}
            own |= own_names(outer) | given
            outer = source.around(outer, FUNCTIONS[:2])
        within = set()
        for each in of_itself(function):
            if isinstance(each, (ast.Global, ast.Nonlocal)):
                inside |= {*each.names}
            elif isinstance(each, ast.Call):
                within |= written_by(source, each, set())
            elif isinstance(getattr(each, "ctx", None), ast.Store):
                within |= written(each)
        inside |= within - own
    modules = set().union(
        *(assigned(n) for n in ast.walk(source.tree) if isinstance(n, ast.Import))
    )
    found = set().union(*(written_by(source, call, set()) for call in calls))
    found |= inside
    links = aliases(source)
    ahead = set(found)
    while ahead:
        ahead = set().union(*(links.get(name, set()) for name in ahead)) - found
        found |= ahead
    fixed = {name for name in found - inside if is_fixed(source, name)}
    return found - modules - fixed


def of_itself(function: Any) -> Iterator[Any]:
    """The nodes of a function without those of functions that it defines."""
    ahead = [*ast.iter_child_nodes(function)]
    while ahead:
        node = ahead.pop()
        yield node
        if not isinstance(node, FUNCTIONS[:2]):
            ahead += ast.iter_child_nodes(node)


def aliases(source: Source) -> dict[str, set[str]]:
    """By name, the names whose values it may share: `held = [cfg]`, `for c in held`."""
    links: dict[str, set[str]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        elif isinstance(node, ASSIGNS) and node.value is not None:
            targets = getattr(node, "targets", None) or [node.target]  # type: ignore
            value = node.value
        else:
            continue
        shared = every_root(value)
        if isinstance(value, ast.Call):
            library = written_root(value.func) in library_names(source)
            given = [*value.args, *(k.value for k in value.keywords)]
            shared = set() if library else set().union(*map(every_root, given))
            if isinstance(value.func, ast.Attribute) and not library:
                shared |= {written_root(value.func)} - {""}
        for target in targets:
            own = written_root(target)
            for name in stored_names(target) | ({own} if own else set()):
                links.setdefault(name, set()).update(shared - {name})
                for other in shared - {name}:
                    links.setdefault(other, set()).add(name)
    return links


def reached(source: Source, calls: list[Any]) -> list[Any]:
    """The functions of the file that some calls run, and those that these call."""
    defined: dict[str, list[Any]] = {}
    for each in ast.walk(source.tree):
        if isinstance(each, FUNCTIONS[:2]):
            defined.setdefault(each.name, []).append(each)
    found: list[Any] = []
    while calls:
        call = calls.pop()
        name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
        handed = [each.id for each in call.args if isinstance(each, ast.Name)]
        for function in sum((defined.get(each, []) for each in [name, *handed]), []):
            if function not in found:
                found.append(function)
                calls += [c for c in ast.walk(function) if isinstance(c, ast.Call)]
    return found


def is_fixed(source: Source, name: str) -> bool:
    """Whether a name only ever has values that no call can change: functions, numbers,
    what jnp and jax.random make."""
    values: list[Any] = []
    for node in ast.walk(source.tree):
        if isinstance(node, (*FUNCTIONS[:2], ast.ClassDef)) and node.name == name:
            values.append(None)
        elif isinstance(node, ast.arg) and node.arg == name:
            if not isinstance(source.around(node, FUNCTIONS), ast.Lambda):
                return False
        elif isinstance(node, ast.Assign) and name in assigned(node):
            plain = all(isinstance(target, ast.Name) for target in node.targets)
            values.append(node.value if plain else ast.Pass())
        elif isinstance(node, ast.Name) and node.id == name:
            parent = source.parents.get(node)
            if not isinstance(node.ctx, ast.Load) and not isinstance(
                parent, ast.Assign
            ):
                return False
    return bool(values) and all(map(is_immutable, values))


def is_immutable(value: Any) -> bool:
    """Whether an expression makes what cannot be written into."""
    if value is None or isinstance(value, (ast.Constant, ast.Lambda)):
        return True
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        return all(map(is_immutable, ast.iter_child_nodes(value)))
    if isinstance(value, (ast.operator, ast.unaryop)):
        return True
    head = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return head.startswith(("jnp.", "jax.numpy.", "jax.random.", "jax.jit", "optax."))
