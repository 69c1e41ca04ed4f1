"""What decides whether a kept program serves, and how two calls differ.

The arguments are taken apart by the library's own public names, on misses only.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from types import FrameType
from typing import Any

import numpy as np

from minijax_lab.explain.flight_facts import Key, Leaf, Miss

# ---- keys --------------------------------------------------------------------------


def signature_of(function: Any) -> Any:
    """The parameters of a function, None for one that has none to show."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def held_by(function: Any) -> dict[str, Any]:
    """The numbers and arrays that a function holds by its closure and defaults: what
    tells two of one name apart, without the arrays themselves."""
    code = getattr(function, "__code__", None)
    found: dict[str, Any] = {}
    for name, cell in zip(
        getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or ()
    ):
        with contextlib.suppress(ValueError):  # a cell without a value yet
            found[name] = cell.cell_contents
    signature = signature_of(function) if code is not None else None
    for name, each in (signature.parameters if signature else {}).items():
        found[name] = each.default
    held = {}
    for name, value in found.items():
        if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
            held[name] = type(value), repr(value)
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            held[name] = type(value), str(id(value))
    return held


def static_places(front: Any, count: int) -> tuple[set[int], set[str]]:
    """Which arguments are static: by place and by name."""
    info = getattr(front.jitted, "_jit_info", None)
    if info is not None:
        numbers, names = info.static_argnums, info.static_argnames
    else:
        numbers = as_tuple(front.options.get("static_argnums"))
        names = as_tuple(front.options.get("static_argnames"))
    return {n % count if n < 0 and count else n for n in numbers}, set(names)


def as_tuple(value: Any) -> tuple:
    """One, several or no entries as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (int, str)) else tuple(value)


def key_of(library: Any, front: Any, args: tuple, kwargs: dict) -> Key | None:
    """The arguments of a call as the library's key has them."""
    numbers, names = static_places(front, len(args))
    parameters = list(front.signature.parameters) if front.signature else []
    return taken_apart(library, args, kwargs, numbers, names, parameters)


def given_to_library(call: FrameType, users: FrameType) -> dict[str, Any]:
    """What the user gave a library's function (Equinox's `filter_jit`) that called a
    jitted one, by name; {} where the user called that one."""
    frame = call.f_back
    if frame is None or frame is users:
        return {}
    while frame.f_back is not None and frame.f_back is not users:
        frame = frame.f_back
    held = frame.f_locals
    code = frame.f_code
    if not code.co_flags & inspect.CO_VARARGS:
        return {}
    at = code.co_argcount + code.co_kwonlyargcount
    args, first = held.get(code.co_varnames[at], ()), ""
    if code.co_argcount == 1:
        first = code.co_varnames[0]
    signature = signature_of(held.get(first)) if first else None
    names = list(signature.parameters) if signature is not None else []
    told = {
        names[n] if n < len(names) else f"args[{n}]": value
        for n, value in enumerate(args)
    }
    if code.co_flags & inspect.CO_VARKEYWORDS:
        told |= held.get(code.co_varnames[at + 1], {})
    return told


def as_given(library: Any, key: Key, front: Any, call: FrameType, given: dict) -> None:
    """Names what a library passed on as the user's call has it."""
    args, kwargs = call.f_locals["args"], call.f_locals["kwargs"]
    numbers, names = static_places(front, len(args))
    parameters = list(front.signature.parameters) if front.signature else []
    statics = {n for n, name in enumerate(parameters) if name in names} | numbers
    dynamic = [value for n, value in enumerate(args) if n not in statics]
    dynamic += [kwargs[name] for name in sorted(kwargs) if name not in names]
    leaves = library.tree_util.tree_leaves(tuple(dynamic))
    plain = (bool, int, float, complex, str)
    key.given = {n: value for n, value in given.items() if isinstance(value, plain)}
    paths: dict[int, list[str]] = {}
    for name, value in given.items():
        for path, leaf in library.tree_util.tree_flatten_with_path(value)[0]:
            told = name + library.tree_util.keystr(path)
            paths.setdefault(id(leaf), []).append(told)
    for leaf, value in zip(key.leaves, leaves):
        # One object in two places (`f(x, 1, 1)`) may be either.
        found = paths.get(id(value), [])
        leaf.path = found[0] if len(found) == 1 else leaf.path


def plain_key(library: Any, function: Any, info: Any, local: dict) -> Key | None:
    """The same from a frame of JAX's own."""
    args, kwargs = local.get("args", ()), local.get("kwargs") or {}
    numbers = set(getattr(info, "static_argnums", ()) or ())
    names = set(getattr(info, "static_argnames", ()) or ())
    parameters = getattr(info, "fun_signature", None)
    listed = list(parameters.parameters) if parameters is not None else []
    return taken_apart(library, args, kwargs, numbers, names, listed)


def parameters_of(frame: FrameType) -> dict[str, Any]:
    """The parameters of an operation that runs by itself, without programs."""
    outer: FrameType | None = frame
    for _ in range(3):
        outer = outer.f_back if outer is not None else None
        if outer is not None and outer.f_code.co_name == "apply_primitive":
            held = outer.f_locals.get("params") or {}
            plain = {n: v for n, v in held.items() if "axpr" not in type(v).__name__}
            return {name: str(value)[:200] for name, value in plain.items()}
    return {}


def taken_apart(
    library: Any,
    args: tuple,
    kwargs: dict,
    numbers: set[int],
    names: set[str],
    parameters: list[str],
) -> Key | None:
    """Arguments as named leaves and static values; None where they are no arrays."""
    statics: dict[str, Any] = {}
    dynamic: dict[str, Any] = {}
    for place, value in enumerate(args):
        name = parameters[place] if place < len(parameters) else f"args[{place}]"
        (statics if place in numbers or name in names else dynamic)[name] = value
    for name in sorted(kwargs):
        (statics if name in names else dynamic)[name] = kwargs[name]
    util = library.tree_util
    leaves = []
    try:
        for name, value in dynamic.items():
            for path, leaf in util.tree_flatten_with_path(value)[0]:
                leaves.append(leaf_of(library, name + util.keystr(path), leaf))
        structure = str(util.tree_structure(tuple(dynamic.values())))
    except Exception:  # what JAX refuses, or a version with other names
        return None
    if kwargs:
        structure += " " + " ".join(sorted(kwargs))
    return Key(leaves, statics, structure, settings_now(library))


def leaf_of(library: Any, path: str, value: Any) -> Leaf:
    """One array of the arguments."""
    aval = library.typeof(value)
    shape = tuple(aval.shape)
    weak = bool(getattr(aval, "weak_type", False))
    committed = getattr(value, "_committed", False) or getattr(
        value, "committed", False
    )
    place = places(value) if committed else ""
    size = int(getattr(aval.dtype, "itemsize", 0))
    for n in shape:
        size *= n if isinstance(n, int) else 1
    python = isinstance(value, (bool, int, float, complex))
    return Leaf(path, shape, str(aval.dtype), weak, place, size, python)


def places(array: Any) -> str:
    """Where a committed array lies: `cpu:0`, or a sharding."""
    try:
        devices = sorted(array.sharding.device_set, key=lambda device: device.id)
    except Exception:
        return ""
    if len(devices) > 1:
        spec = getattr(array.sharding, "spec", None)
        return f"{len(devices)} devices" + ("" if spec is None else f", {spec}")
    return f"{devices[0].platform}:{devices[0].id}"


def settings_now(library: Any) -> Any:
    """The settings that a program depends on, where the library has them."""
    config = sys.modules.get(f"{library.__name__}._src.config")
    context = getattr(config, "trace_context", None)
    try:
        return hash(context()) if context is not None else None
    except Exception:
        return None


def same_value(one: Any, two: Any) -> bool:
    """Whether two static values are equal to JAX, with their types: 1 is not 1.0."""
    try:
        return type(one) is type(two) and bool(one == two)
    except Exception:
        return one is two


def explain(miss: Miss, before: list[Miss]) -> None:
    """Says what differs from the nearest call that its line had compiled for."""
    if not before:
        miss.cause = "first"
        return
    key = miss.key
    if key is None:
        miss.cause = "unknown"
        return
    best: tuple[int, list, Miss | None] = (1 << 30, [], None)
    for known in reversed(before):
        if known.key is None:
            continue
        changes = differences(known.key, key)
        weight = sum(WEIGHTS[kind] for kind, *_ in changes)
        if weight < best[0]:
            best = weight, changes, known
            if not weight:
                break
    _, changes, nearest = best
    miss.nearest = nearest
    miss.changes = [(kind, name, told) for kind, name, told in changes]
    if nearest is None:
        miss.cause = "unknown"
    elif not changes:
        other = nearest.object != miss.object
        miss.cause = "loop" if other else "again"
    else:
        kinds = {kind for kind, *_ in changes}
        order = ("structure", "static", "settings", "place", "shape", "type")
        miss.cause = next(kind for kind in order if kind in kinds)


WEIGHTS = {
    "structure": 100,
    "settings": 30,
    "place": 4,
    "static": 4,
    "shape": 4,
    "type": 2,
}


def differences(known: Key, key: Key) -> list[tuple[str, str, str]]:
    """What differs between two keys: (kind, name, in words)."""
    found: list[tuple[str, str, str]] = []
    if known.settings != key.settings:
        found.append(("settings", "", "another setting of JAX"))
    for name in dict.fromkeys([*known.statics, *key.statics]):
        one, two = known.statics.get(name), key.statics.get(name)
        if not same_value(one, two):
            found.append(("static", name, f"{short(one)} -> {short(two)}"))
    if known.structure != key.structure or len(known.leaves) != len(key.leaves):
        paths = {leaf.path for leaf in known.leaves}
        new = [leaf.path for leaf in key.leaves if leaf.path not in paths]
        now = {leaf.path for leaf in key.leaves}
        gone = [leaf.path for leaf in known.leaves if leaf.path not in now]
        told = "; ".join(
            f"{word} {', '.join(names[:3])}"
            for word, names in (("new", new), ("gone", gone))
            if names
        )
        found.append(("structure", "", told or "other containers"))
        return found
    for one, two in zip(known.leaves, key.leaves):
        if one.shape != two.shape:
            found.append(("shape", two.path, f"{text(one)} -> {text(two)}"))
        elif (one.dtype, one.weak) != (two.dtype, two.weak):
            found.append(("type", two.path, f"{one.type} -> {two.type}"))
        if one.place != two.place:
            told = f"{one.place or 'anywhere'} -> {two.place or 'anywhere'}"
            found.append(("place", two.path, told))
    return found


def text(leaf: Leaf) -> str:
    """A shape as it is written: (64, 3)."""
    return str(leaf.shape)


def short(value: Any) -> str:
    """A static value in at most forty letters."""
    told = getattr(value, "__name__", None) or repr(value)
    return told if len(told) <= 40 else told[:37] + "..."


def name_of(value: Any, jitted: Any) -> str:
    """The name by which a function reads a constant; "" where it has none."""
    seen: set[int] = set()
    todo = [getattr(jitted, "__wrapped__", None)]
    while todo and len(seen) < 200:
        function = todo.pop()
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        function = getattr(function, "__wrapped__", function)
        code = getattr(function, "__code__", None)
        if code is None:
            continue
        # A function inside reads the names of the module, too.
        inner = [code]
        for each in inner:
            inner += [c for c in each.co_consts if hasattr(c, "co_names")]
        read = [name for each in inner for name in each.co_names]
        names = dict(zip(code.co_freevars, function.__closure__ or ()))
        reached: dict[str, Any] = {}
        for name, cell in names.items():
            with contextlib.suppress(ValueError):
                reached[name] = cell.cell_contents
        known = function.__globals__
        reached |= {name: known[name] for name in read if name in known}
        for name, held in reached.items():
            if held is value or like(held, value):
                return name
            if hasattr(held, "__code__") or hasattr(held, "__wrapped__"):
                todo.append(held)
    return ""


def like(held: Any, value: Any) -> bool:
    """Whether a NumPy array is the one that JAX copied: its type, shape, beginning."""
    if not isinstance(held, np.ndarray) or held.shape != tuple(value.shape):
        return False
    if held.nbytes != getattr(value, "nbytes", -1):
        return False
    with contextlib.suppress(Exception):
        inner = getattr(value, "val", value)
        return bool((np.asarray(inner).ravel()[:64] == held.ravel()[:64]).all())
    return False
