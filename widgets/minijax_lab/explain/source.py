"""The recording behind `see.source`: a piece of code, and where it stands."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import minijax
from minijax.core.language import Primitive
from minijax_lab.explain.recording import Recording, Source, file_label
from minijax_lab.explain.references import Reference, counterpart, is_own, references


@dataclass(kw_only=True)
class SourceRecording(Recording):
    """A source text. `counterpart` is where JAX has the same thing, if that is said.

    `names` are the names in it that can be looked at in the same way.
    """

    kind = "source"

    path: str
    counterpart: str
    names: list[Reference] = field(default_factory=list)


def record_source(target: Any) -> SourceRecording:
    """Records the source of a class, a function, a module, or a primitive's block.

    Raises TypeError for a value that was not written in Python, such as an array.
    """
    if isinstance(target, Primitive):
        return record_block(target)
    target = inspect.unwrap(target) if callable(target) else target
    try:
        lines, first = inspect.getsourcelines(target)
        path = Path(inspect.getsourcefile(target) or "")
    except (OSError, TypeError) as error:
        raise TypeError(
            "see.source shows classes, functions, modules and primitives written in "
            f"Python; it found no source for {type(target).__name__} {target!r}."
        ) from error
    name = getattr(target, "__qualname__", getattr(target, "__name__", "?"))
    return recorded(name, path, max(first, 1), lines, target)


def recorded(
    name: str, path: Path, first: int, lines: list[str], target: Any
) -> SourceRecording:
    """The recording of lines of a file; `target` says in which module names stand."""
    code = textwrap.dedent("".join(lines)).rstrip("\n")
    shown = short_path(path)
    said = counterpart(code)
    if not said and is_own(getattr(inspect.getmodule(target), "__name__", None)):
        whole = counterpart(inspect.getdoc(inspect.getmodule(target)) or "")
        said = f"{whole} (the module)" if whole else ""
    source = Source(0, name, file_label(shown), first, code.split("\n"))
    sources = [source]
    return SourceRecording(
        call=name,
        headline=f"source of {name}, {shown}",
        names=references(target, source, sources),
        sources=sources,
        path=shown,
        counterpart=said,
    )


def record_block(primitive: Primitive) -> SourceRecording:
    """The statements of its module that make a primitive and set its rules.

    Raises TypeError for a primitive that no module of minijax defines.
    """
    place = defined_in(primitive)
    if place is None:
        raise TypeError(f"the source of the primitive {primitive} was not found.")
    path, variable = place
    text = path.read_text(encoding="utf-8")
    parts: list[str] = []
    first = 0
    lines = text.split("\n")
    names = {variable}
    statements = ast.parse(text).body
    for statement in statements:
        mentioned = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        if isinstance(statement, ast.FunctionDef) and not decorated(statement, names):
            continue
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.ClassDef)):
            continue
        if not mentioned & names:
            continue
        decorators = getattr(statement, "decorator_list", [])
        start = min([statement.lineno, *(d.lineno for d in decorators)])
        first = first or start
        parts.append("\n".join(lines[start - 1 : statement.end_lineno]))
        # The rules that the block names stand in the same file.
    for name in sorted(rules_named(parts, statements)):
        body = next(
            s for s in statements if isinstance(s, ast.FunctionDef) and s.name == name
        )
        parts.append("\n".join(lines[body.lineno - 1 : body.end_lineno]))
    code = [f"{line}\n" for line in "\n\n".join(parts).split("\n")]
    return recorded(f"primitive {primitive}", path, first, code, module_of(path))


def module_of(path: Path) -> ModuleType | None:
    """The imported module that a file of minijax is."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return module
    return None


def decorated(function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a function is a rule of one of the named primitives: `@sin_p.def_...`."""
    used = {
        node.id
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Name)
    }
    return bool(used & names)


def rules_named(parts: list[str], statements: list[ast.stmt]) -> set[str]:
    """The functions of the module, private to it, that a block's statements name."""
    private = {
        s.name
        for s in statements
        if isinstance(s, ast.FunctionDef)
        and s.name.startswith("_")
        and not s.decorator_list
    }
    found = set()
    for part in parts:
        for node in ast.walk(ast.parse(textwrap.dedent(part))):
            if isinstance(node, ast.Name) and node.id in private:
                found.add(node.id)
    return found


def defined_in(primitive: Primitive) -> tuple[Path, str] | None:
    """The file in which a primitive is made, and the variable that holds it there."""
    by_name, by_variable = made_primitives()
    variable = f"{primitive.name}_p"
    return by_name.get(primitive.name) or by_variable.get(variable)


MAKES_PRIMITIVE = re.compile(
    r'^(\w+_p)\b[^\n=]*=\s*(?:[\w.]+\(\s*)+"([^"\n]+)"', re.MULTILINE
)
SETS_VARIABLE = re.compile(r"^(\w+_p)\b.*=", re.MULTILINE)


@functools.cache
def made_primitives() -> tuple[dict[str, tuple], dict[str, tuple]]:
    """Where primitives are made: by the name given there, and by their variable."""
    package = Path(minijax.__file__).resolve().parent
    by_name: dict[str, tuple] = {}
    by_variable: dict[str, tuple] = {}
    for path in sorted(package.glob("**/*.py")):
        text = path.read_text(encoding="utf-8")
        if "_p" not in text or path.name == "rules.py":
            continue
        for found in MAKES_PRIMITIVE.finditer(text):
            by_name.setdefault(found.group(2), (path, found.group(1)))
        if {package / "primitives", package / "core"} & set(path.parents):
            for found in SETS_VARIABLE.finditer(text):
                by_variable.setdefault(found.group(1), (path, found.group(1)))
    return by_name, by_variable


def short_path(path: Path) -> str:
    """Returns a path from its package's name on, without the machine's folders."""
    parts = path.parts
    for package in ("minijax_widgets", "minijax_lab", "minijax", "tiny"):
        if package in parts[:-1]:
            last = len(parts) - 1 - parts[::-1].index(package)
            return "/".join(parts[last:])
    return "cell" if "ipykernel" in str(path) else path.name
