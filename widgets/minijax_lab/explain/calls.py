"""Calls as users write them: static arguments, and inputs by their names.

What a view is given is a function and the arguments of a call. Here it becomes a
program: arguments that `jit` was told are static, and those that cannot be arrays (a
text, a function), are fixed; the others are traced.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.compile.jit_api import make_jaxpr
from minijax.compile.titles import title_of, titles
from minijax.core.jit import JitFunction
from minijax.core.language import ClosedJaxpr
from minijax.core.source_info import is_user_filename
from minijax.core.trees import keystr, tree_flatten_with_path, tree_leaves
from minijax_lab.explain.recording import is_installed

# `params['layer3']['w']`: the argument, and the first step of the way from it.
ROOT = re.compile(r"[^\[.]+")
STEP = re.compile(r"\[[^\]]*\]|\.\w+")
NUMBERED = re.compile(r"([A-Za-z]+?)_?\d+$")


def program_of(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> ClosedJaxpr:
    """The jaxpr of `function` for these arguments, static ones being what they are."""
    traced, args, kwargs = without_statics(function, function, args, kwargs)
    closed = make_jaxpr(traced)(*args, **kwargs)
    title = title_of(function)
    if not title.isidentifier():
        titles[closed.jaxpr] = title
    return closed


def without_statics(
    function: Callable[..., Any],
    called: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
) -> tuple[Callable[..., Any], tuple, dict[str, Any]]:
    """`called` as a function of the arguments that are traced, and those arguments.

    Which are static, `function` says: it, or what it was made from, may be jitted.
    """
    numbers, names = statics_of(function)
    fixed = {i: a for i, a in enumerate(args) if i in numbers or cannot_be_traced(a)}
    named = {n: a for n, a in kwargs.items() if n in names or cannot_be_traced(a)}
    if not fixed and not named:
        return called, args, kwargs

    def bound(*dynamic: Any, **others: Any) -> Any:
        rest = iter(dynamic)
        every = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
        return called(*every, **named, **others)

    functools.update_wrapper(bound, called, updated=())
    bound.__wrapped__ = called  # type: ignore[attr-defined]
    parameters = parameters_without(called, set(fixed), set(named))
    if parameters is not None:
        bound.__signature__ = parameters  # type: ignore[attr-defined]
    dynamic = tuple(a for i, a in enumerate(args) if i not in fixed)
    return bound, dynamic, {n: a for n, a in kwargs.items() if n not in named}


def statics_of(function: Any) -> tuple[set[int], set[str]]:
    """The positions and names that `jit` was told are static."""
    numbers: set[int] = set()
    names: set[str] = set()
    while function is not None:
        if isinstance(function, JitFunction):
            numbers |= set(function._signature.static_nums)
            names |= set(function._signature.static_names)
        function = getattr(function, "__wrapped__", None)
    return numbers, names


def cannot_be_traced(argument: Any) -> bool:
    """Whether an argument, or a part of it, is a text or a function."""
    return any(
        isinstance(leaf, (str, bytes)) or inspect.isroutine(leaf)
        for leaf in tree_leaves(argument)
    )


def parameters_without(
    function: Callable[..., Any], numbers: set[int], names: set[str]
) -> inspect.Signature | None:
    """The signature of a function without its fixed arguments; None if unknown."""
    try:
        given = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    kept = [
        parameter
        for i, (name, parameter) in enumerate(given.parameters.items())
        if name not in names
        and (i not in numbers or parameter.kind is parameter.VAR_POSITIONAL)
    ]
    # What has no default must not stand behind what has one: names are all that counts.
    plain = [p.replace(default=inspect.Parameter.empty) for p in kept]
    return given.replace(parameters=plain)


def statics_in_words(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> list[str]:
    """The fixed arguments as written: ["kind='tanh'"]."""
    numbers, names = statics_of(function)
    try:
        known = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        known = []
    said = []
    for i, value in enumerate(args):
        if i in numbers or cannot_be_traced(value):
            name = known[i] if i < len(known) else f"argument {i}"
            said.append(f"{name}={short(value)}")
    for name, value in kwargs.items():
        if name in names or cannot_be_traced(value):
            said.append(f"{name}={short(value)}")
    return said


def short(value: Any) -> str:
    """A static value as a short text, without addresses."""
    if inspect.isroutine(value) or isinstance(value, JitFunction):
        return title_of(value)
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return text if len(text) <= 24 else text[:21] + "..."


def inputs_in_words(names: Sequence[str], types: Sequence[str]) -> list[str]:
    """The inputs by their arguments: ["params: dict of 12 layers", "x: f32[8,16]"].

    Plain arguments, up to four of them, are told by their types alone.
    """
    if len(names) != len(types):
        return list(types)
    if len(types) <= 4 and not any(has_path(name) for name in names):
        return list(types)
    roots: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        found = ROOT.match(name)
        roots.setdefault(found.group() if found else name, []).append(position)
    said = []
    for root, positions in roots.items():
        if len(positions) == 1 and names[positions[0]] == root:
            said.append(f"{root}: {types[positions[0]]}")
        else:
            paths = [names[i][len(root) :] for i in positions]
            said.append(f"{root}: {tree_in_words(paths)}")
    return said


def has_path(name: str) -> bool:
    """Whether a name leads into a tree: `params['w']`."""
    return ROOT.sub("", name, count=1) != ""


def tree_in_words(paths: list[str]) -> str:
    """What an argument is, from the ways to its arrays: "dict of 12 layers"."""
    steps = []
    for path in paths:
        found = STEP.match(path)
        steps.append(found.group() if found else path)
    first = list(dict.fromkeys(steps))
    kind = "tree"
    if all(step.startswith(("['", '["')) for step in first):
        kind = "dict"
    elif all(re.fullmatch(r"\[\d+\]", step) for step in first):
        kind = "sequence"
    keys = [step.strip("[]'\".") for step in first]
    stems = {found.group(1) for key in keys if (found := NUMBERED.match(key))}
    counted = len(first) > 1 and len(stems) == 1 and all(map(NUMBERED.match, keys))
    what = next(iter(stems)) if counted else "entry"
    plural = f"{what}s" if counted else "entries"
    number = len(first)
    said = f"{kind} of {number} {what if number == 1 else plural}"
    return said if len(paths) == number else f"{said} ({len(paths)} arrays)"


# Functions of the user's that are read for their names.
MOST_READ = 50


def codes_of(
    function: Callable[..., Any],
) -> Iterator[tuple[Callable[..., Any], list[types.CodeType]]]:
    """The user's functions that a function names or closes over, itself the first, and
    the code of each with that of the functions inside of it."""
    left = [function]
    read: set[types.CodeType] = set()
    while left and len(read) < MOST_READ:
        function = inspect.unwrap(left.pop())
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is None or code in read or is_installed(code.co_filename):
            continue
        if not is_user_filename(code.co_filename):
            continue
        read.add(code)
        codes = [code]
        for each in codes:
            codes += [c for c in each.co_consts if isinstance(c, types.CodeType)]
            named = map(function.__globals__.get, each.co_names)
            left += [value for value in named if callable(value)]
        left += [value for value in closed_over(function).values() if callable(value)]
        yield function, codes


def closed_over(function: Callable[..., Any]) -> dict[str, Any]:
    """The values of the variables that a function closes over."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # empty
            found[name] = cell.cell_contents
    return found


def variables_of(function: Callable[..., Any]) -> set[str]:
    """What the user's code calls its variables: in a function, in those inside of it,
    and in those that it names as a global or closes over."""
    return {
        name
        for _, codes in codes_of(function)
        for code in codes
        for name in (*code.co_varnames, *code.co_cellvars)
    }


def names_of_values(function: Callable[..., Any]) -> dict[int, str]:
    """What the user's code calls the values that are not its arguments, by their ids:
    "W, a global", "params['w'], closed over", "self.w, an attribute"."""
    known: dict[int, str] = {}

    def note(name: str, value: Any, what: str) -> None:
        if inspect.ismodule(value) or inspect.isclass(value) or callable(value):
            return
        known.setdefault(id(value), f"{name}, {what}")
        with contextlib.suppress(ValueError):  # keys that have no order
            for path, leaf in tree_flatten_with_path(value)[0]:
                known.setdefault(id(leaf), f"{name}{keystr(path)}, {what}")

    def note_attributes(name: str, owner: Any) -> None:
        for attribute, value in getattr(owner, "__dict__", {}).items():
            note(f"{name}.{attribute}", value, "an attribute")

    owner = getattr(function, "__self__", None)
    note_attributes("self", owner)
    for each, codes in codes_of(function):
        found = [
            (name, value, "closed over") for name, value in closed_over(each).items()
        ]
        for code in codes:
            values = {name: each.__globals__.get(name) for name in code.co_names}
            found += [(name, value, "a global") for name, value in values.items()]
        for name, value, what in found:
            note(name, value, what)
            if not (inspect.ismodule(value) or inspect.isclass(value)):
                note_attributes(name, value)
    return known
