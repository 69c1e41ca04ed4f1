"""Where else to look: the names in a piece of minijax's source that are minijax's own.

Names are resolved as Python resolves them: in the module of the code, attribute by
attribute, and `self.name` in the class that is shown. Names that the code binds itself
are left out.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from minijax.core.language import Primitive
from minijax_lab.explain.recording import Source, Span, file_label

# A module names hundreds of things: those that come first are shown.
MOST = 60
LONGEST = 40  # lines of a reference's own source that are kept


@dataclass
class Reference:
    """A name in the source, what it stands for, and how to look at that."""

    name: str  # as the source has it: "ad.JVPTrace"
    kind: str  # "function", "class", "primitive"
    shown: str  # what `see.source` takes: "minijax.core.autodiff.JVPTrace"
    path: str
    line: int
    says: str  # the first sentence of its docstring
    counterpart: str  # where JAX has it, if that is said
    source: int | None = None  # its own source
    spans: list[Span] = field(default_factory=list)


def references(target: Any, source: Source, sources: list[Source]) -> list[Reference]:
    """The references of a source, in the order in which it names them.

    Their own sources, up to `LONGEST` lines, are added to `sources`. Empty for code
    that is not minijax's, and for code that cannot be parsed.
    """
    module = inspect.getmodule(target)
    if module is None or not is_own(module.__name__):
        return []
    text = textwrap.dedent("\n".join(source.lines))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    lines = text.split("\n")
    offset = len(source.lines[0]) - len(lines[0])
    found: dict[int, Reference | None] = {}
    bound = names_bound(tree)
    for node in sorted(named_nodes(tree), key=lambda n: (n.lineno, n.col_offset)):
        name, value = resolved(ast.unparse(node), module, target, bound)
        if value is None or value is target or value is inspect.unwrap(target):
            continue
        if id(value) not in found:
            known = sum(one is not None for one in found.values())
            made = described(name, value, module) if known < MOST else None
            if made is not None:
                made.source = add_source(value, made, sources)
            found[id(value)] = made
        reference = found[id(value)]
        if reference is not None and node.lineno == node.end_lineno:
            line = source.first_line + node.lineno - 1
            # Python counts bytes of UTF-8.
            before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
            start = offset + len(before)
            end = start + len(name)
            reference.spans.append(Span(source.id, line, start, line, end))
    return [one for one in found.values() if one is not None and one.spans]


def named_nodes(tree: ast.AST) -> Iterator[Any]:
    """The names and dotted names that a program reads, each as long as it goes."""
    for node in ast.iter_child_nodes(tree):
        if is_dotted(node):
            yield node
            # In `jvps[p].bind` only the inner part is a name.
        else:
            yield from named_nodes(node)


def is_dotted(node: ast.AST) -> bool:
    """Whether a node is `a` or `a.b.c`, and is read."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def names_bound(tree: ast.AST) -> set[str]:
    """The names that functions bind themselves: arguments and what they assign."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    bound.add(inner.id)
                elif isinstance(inner, ast.FunctionDef) and inner is not node:
                    bound.add(inner.name)
    return bound


def resolved(
    name: str, module: ModuleType, target: Any, bound: set[str]
) -> tuple[str, Any]:
    """What a dotted name of minijax's code stands for; None for anything else.

    Of `sin_p.bind` that is the primitive, and the name is `sin_p`.
    """
    first, *rest = name.split(".")
    if first == "self" and len(rest) == 1 and inspect.isclass(target):
        value = inspect.getattr_static(target, rest[0], None)
    elif first in bound:
        return name, None
    else:
        value = vars(module).get(first)
        for depth, part in enumerate(rest):
            if isinstance(value, Primitive):
                return ".".join([first, *rest[:depth]]), value
            value = inspect.getattr_static(value, part, None)
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, Primitive):
        return name, value
    unwrapped = inspect.unwrap(value) if callable(value) else None
    if not (inspect.isfunction(unwrapped) or inspect.isclass(unwrapped)):
        return name, None
    return name, unwrapped if is_own(unwrapped.__module__) else None


def is_own(module: str | None) -> bool:
    """Whether a module is minijax's."""
    return module is not None and module.split(".")[0] in ("minijax", "minijax_lab")


def described(name: str, value: Any, module: ModuleType) -> Reference | None:
    """A reference without its spans; None if its place is not found."""
    if isinstance(value, Primitive):
        place = place_of_primitive(value)
        if place is None:
            return None
        home, variable, line = place
        shown = f"{home.__name__}.{variable}"
        says = f"The primitive `{value.name}`, with its rules."
        path = short(home.__file__ or "")
        return Reference(name, "primitive", shown, path, line, says, "")
    try:
        file = inspect.getsourcefile(value) or ""
        _, line = inspect.getsourcelines(value)
    except (OSError, TypeError):
        return None
    kind = "class" if inspect.isclass(value) else "function"
    shown = f"{value.__module__}.{value.__qualname__}"
    if "<" in shown:  # made inside of another function
        shown = f"{module.__name__}.{name}"
    text = inspect.getdoc(value) or ""
    return Reference(
        name, kind, shown, short(file), line, first_sentence(text), counterpart(text)
    )


def add_source(value: Any, reference: Reference, sources: list[Source]) -> int | None:
    """Adds the beginning of a reference's own source; returns its id."""
    if isinstance(value, Primitive):
        return None
    lines, first = inspect.getsourcelines(value)
    text = textwrap.dedent("".join(lines)).rstrip("\n").split("\n")
    hidden = len(text) - LONGEST
    if hidden > 0:
        text = [*text[:LONGEST], f"... {hidden:,} more lines"]
    label = file_label(reference.path)
    sources.append(Source(len(sources), reference.name, label, first, text))
    return len(sources) - 1


@functools.cache
def place_of_primitive(primitive: Primitive) -> tuple[ModuleType, str, int] | None:
    """The module, the variable and the line that make a primitive."""
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(("minijax.primitives.", "minijax.core.")):
            continue
        for variable, value in vars(module).items():
            if value is not primitive:
                continue
            text = inspect.getsource(module)
            made = re.search(rf"^{variable}\b[^\n]*=", text, re.MULTILINE)
            if made:
                return module, variable, text.count("\n", 0, made.start()) + 1
    return None


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    text = " ".join(text.partition("\n\n")[0].split())
    # A full stop inside of code, between backticks, ends no sentence.
    end = re.match(r"(?:`[^`]*`|[^`])*?\.(?=\s|$)", text)
    return end.group() if end else text


def counterpart(text: str) -> str:
    """What follows "In JAX:" in a docstring, up to the end of the sentence."""
    found = re.search(r"In JAX: (.*?)(?:\.\s|\.$|\.\"|\"\"\"|\n\n|$)", text, re.DOTALL)
    return " ".join(found.group(1).split()).rstrip('."') if found else ""


def short(file: str) -> str:
    """A file's path from the package on."""
    parts = file.replace("\\", "/").split("/")
    last = len(parts) - 1 - parts[::-1].index("minijax") if "minijax" in parts else -1
    return "/".join(parts[last:])
