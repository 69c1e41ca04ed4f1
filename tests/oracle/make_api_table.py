"""Write book/api_table.md: every public name of JAX, there, partly or not, and why.

    python tests/oracle/make_api_table.py            writes the table
    python tests/oracle/make_api_table.py --check    exits 1 if it would change

A function is *there* when its parameters have JAX's names, order, kinds and defaults,
*partly* when they differ; a class is *partly* there when it lacks public attributes.
Why a name is absent, or only partly there, is said once, by pattern, in absent.toml.
"""

import argparse
import dataclasses
import fnmatch
import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import types
import typing
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

TABLE = ROOT / "book" / "api_table.md"
REASONS = pathlib.Path(__file__).resolve().parent / "absent.toml"
EXPECTED_JAX = "0.10.2"

MODULES = (
    "jax",
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.nn.initializers",
    "jax.random",
    "jax.tree",
    "jax.tree_util",
    "jax.sharding",
    "jax.experimental.pallas",
    "jax.experimental.pallas.tpu",
    "jax.experimental.pallas.triton",
    "jax.core",
    "jax.extend.core",
    "jax.extend.core.primitives",
    "jax.interpreters.ad",
    "jax.interpreters.batching",
    "jax.interpreters.mlir",
    "jax.interpreters.partial_eval",
    "jax.ops",
    "jax.image",
    "jax.dlpack",
    "jax.scipy.fft",
    "jax.scipy.linalg",
    "jax.scipy.optimize",
    "jax.scipy.signal",
    "jax.scipy.sparse.linalg",
    "jax.scipy.special",
    "jax.scipy.stats",
    "jax.ffi",
    "jax.stages",
    "jax.export",
    "jax.distributed",
    "jax.experimental.custom_partitioning",
    "jax.experimental.layout",
    "jax.experimental.mesh_utils",
    "jax.experimental.multihost_utils",
    "jax.experimental.serialize_executable",
    "jax.profiler",
)

# Modules whose own names are mixed with all that they import.
MIXED = (
    "jax.experimental.multihost_utils",
    "jax.experimental.serialize_executable",
)

# Defaults that are private objects have no text of their own to compare.
_OPAQUE = object()
_ANY_NUMBER = inspect.Parameter.VAR_POSITIONAL


@dataclasses.dataclass(frozen=True)
class Row:
    """One public name: `status` is 'there', 'partly' or 'not', `note` says why."""

    module: str
    name: str
    status: str
    note: str


def load_reasons(
    path: pathlib.Path = REASONS, kind: str = "group"
) -> list[tuple[str, str]]:
    """Pairs of a name's pattern and the reason why it is absent, in order.

    With `kind="partly"`, why a name is there only in part.
    """
    groups = tomllib.loads(path.read_text())[kind]
    return [(pattern, group["why"]) for group in groups for pattern in group["names"]]


def reason_for(full_name: str, reasons: list[tuple[str, str]]) -> str | None:
    """The reason of the first pattern that `full_name` matches, or None."""
    for pattern, why in reasons:
        if fnmatch.fnmatchcase(full_name, pattern):
            return why
    return None


def public_names() -> dict[str, list[str]]:
    """The names a user may use, of each module, without those that only pass through.

    Read in a fresh process: whatever a process imports beside them becomes an
    attribute of `jax` too (`jax.ad_checkpoint`), and would stand in the table.
    """
    passing = {"annotations", "typing", "sys", "os", "functools"}
    program = (
        "import importlib, json, sys\n"
        "names = {name: dir(importlib.import_module(name)) for name in sys.argv[1:]}\n"
        "print(json.dumps(names))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *MODULES],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        module: [
            name
            for name in sorted(names)
            if not name.startswith("_") and name not in passing
            if module not in MIXED or _is_own(module, name)
        ]
        for module, names in json.loads(done.stdout.splitlines()[-1]).items()
    }


def _is_own(module: str, name: str) -> bool:
    """Whether a name of a module of JAX is defined there, and not imported."""
    value = getattr(importlib.import_module(module), name)
    return getattr(value, "__module__", None) == module


def import_module(name: str) -> types.ModuleType | None:
    """The module `name`, or None when it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def build_rows() -> list[Row]:
    """A row for each public name of each module."""
    reasons, partial = load_reasons(), load_reasons(kind="partly")
    rows = []
    names_of = public_names()
    for module_name in MODULES:
        theirs = importlib.import_module(module_name)
        ours = import_module("mini" + module_name)
        for name in names_of[module_name]:
            rows.append(_row(module_name, name, ours, theirs, reasons, partial))
    return rows


def _row(module_name, name, ours, theirs, reasons, partial) -> Row:
    their_object = getattr(theirs, name)
    missing = not hasattr(ours, name)
    our_object = getattr(ours, name, None)
    if isinstance(their_object, types.ModuleType) and missing:
        # A module that has not been imported is no attribute yet.
        our_object = import_module(f"mini{module_name}.{name}")
        missing = our_object is None
    if missing:
        why = reason_for(f"{module_name}.{name}", reasons)
        return Row(module_name, name, "not", why or "no reason given")
    note = compare(our_object, their_object)
    if not note:
        return Row(module_name, name, "there", "")
    why = reason_for(f"{module_name}.{name}", partial) or "no reason given"
    return Row(module_name, name, "partly", f"{note}. {why}")


def compare(ours: Any, theirs: Any) -> str:
    """How our object falls short of JAX's, in words; empty when it does not."""
    if isinstance(theirs, types.ModuleType):
        return "" if isinstance(ours, types.ModuleType) else "is not a module"
    if typing.get_origin(theirs) is not None:
        return ""  # a name for a type annotation
    if inspect.isclass(theirs):
        return _compare_classes(ours, theirs)
    if callable(theirs):
        if not callable(ours):
            return "cannot be called"
        return _compare_signatures(ours, theirs)
    return ""


def _compare_classes(ours: Any, theirs: type) -> str:
    # A class may be our function or scalar kind: what is asked of it is its names.
    public = {name for name in dir(theirs) if not name.startswith("_")}
    lacking = sorted(public - set(dir(ours)))
    return _list_some("lacks", lacking)


def _list_some(verb: str, names: list[str], most: int = 6) -> str:
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    rest = len(names) - most
    return f"{verb} {shown}" + (f" and {rest} more" if rest > 0 else "")


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _compare_signatures(ours: Any, theirs: Any) -> str:
    our_signature, their_signature = _signature(ours), _signature(theirs)
    if their_signature is None:
        return ""
    if our_signature is None:
        return "has no signature to read"
    if [p.kind for p in their_signature.parameters.values()] == [_ANY_NUMBER]:
        return ""  # `*args` alone names nothing that ours could lack
    our_parameters = list(our_signature.parameters.values())
    their_parameters = list(their_signature.parameters.values())
    notes = []
    our_names = [parameter.name for parameter in our_parameters]
    their_names = [parameter.name for parameter in their_parameters]
    lacking = [name for name in their_names if name not in our_names]
    extra = [name for name in our_names if name not in their_names]
    notes.append(_list_some("lacks", lacking))
    notes.append(_list_some("adds", extra))
    if not lacking and not extra and our_names != their_names:
        notes.append("parameters stand in another order")
    by_name = dict(our_signature.parameters)
    for parameter in their_parameters:
        if parameter.name in by_name:
            notes.append(_compare_parameter(by_name[parameter.name], parameter))
    return "; ".join(note for note in notes if note)


def _compare_parameter(ours: inspect.Parameter, theirs: inspect.Parameter) -> str:
    if ours.kind != theirs.kind:
        return f"`{theirs.name}` is {_kind(ours)}, in JAX {_kind(theirs)}"
    our_default, their_default = _default(ours), _default(theirs)
    if _OPAQUE in (our_default, their_default) or our_default == their_default:
        return ""
    return f"`{theirs.name}` is {our_default} by default, in JAX {their_default}"


def _kind(parameter: inspect.Parameter) -> str:
    return parameter.kind.description


def _default(parameter: inspect.Parameter) -> Any:
    """The default as text: of an object with an address, only that there is one."""
    value = parameter.default
    if value is inspect.Parameter.empty:
        return "required"
    if inspect.isclass(value) or callable(value):
        return getattr(value, "__name__", _OPAQUE)
    text = repr(value)
    return _OPAQUE if re.search(r"\bat 0x|^<object", text) else text


def render(rows: list[Row]) -> str:
    """The table as a page of the book."""
    lines = [
        "# Every public name of JAX",
        "",
        f"Made by `tests/oracle/make_api_table.py` against jax {EXPECTED_JAX}; a test"
        " keeps it true.",
        "A function is *there* when its parameters are JAX's, *partly* when they"
        " differ.",
        "",
        "| module | names | there | partly | not |",
        "|---|---:|---:|---:|---:|",
    ]
    for module in MODULES:
        own = [row for row in rows if row.module == module]
        counts = [sum(row.status == s for row in own) for s in _STATUSES]
        cells = " | ".join(str(count) for count in [len(own), *counts])
        lines.append(f"| `{module}` | {cells} |")
    for module in MODULES:
        lines += ["", f"## `{module}`", "", "| name | | |", "|---|---|---|"]
        for row in rows:
            if row.module == module:
                lines.append(f"| `{row.name}` | {row.status} | {_cell(row.note)} |")
    return "\n".join(lines) + "\n"


_STATUSES = ("there", "partly", "not")


def _cell(note: str) -> str:
    return note.replace("|", r"\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    options = parser.parse_args()
    import jax

    if jax.__version__ != EXPECTED_JAX:
        print(f"the table belongs to jax {EXPECTED_JAX}, this is {jax.__version__}")
        return 2
    rows = build_rows()
    text = render(rows)
    counts = {s: sum(row.status == s for row in rows) for s in _STATUSES}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    for row in rows:
        if row.note.endswith("no reason given"):
            print(f"absent.toml gives no reason for {row.module}.{row.name}")
    if options.check:
        return 0 if TABLE.exists() and TABLE.read_text() == text else 1
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
