"""checking_leaks: find what keeps a tracer alive after its trace has ended.

A traced value that a function stores in a global, an attribute or a list outlives the
trace and is an error when it is used, perhaps much later. With the flag
`jax_check_tracer_leaks` every trace checks at its end whether one of its tracers is
still alive, and reports what holds it: Python's garbage collector knows all references,
and the search follows them up to a variable that has a name.

Tracers that nothing but running functions hold are no leak.

In JAX: `jax/_src/core.py`, `maybe_find_leaked_tracers`.
"""

from __future__ import annotations

import gc
import sys
import types
from typing import Any

from minijax.core import errors
from minijax.core.language import Trace, Tracer
from minijax.core.partial_eval import trace_ended
from minijax.core.state import state

# References to a trace without tracers: the caller's, `check_no_leaks`'s own, and the
# argument of `getrefcount`.
_OWN_REFERENCES = 3
_MOST_SHOWN = 5
_LONGEST_CHAIN = 16


@trace_ended.attach
def check_no_leaks(trace: Trace) -> None:
    """Raise an Exception when a tracer of a trace that has ended can still be reached.

    Does nothing while the flag is off. The caller must have dropped its own containers
    of tracers.
    """
    if not state.check_tracer_leaks or sys.getrefcount(trace) <= _OWN_REFERENCES:
        return
    # References in unreachable cycles are no leak.
    gc.collect()
    tracers = (x for x in gc.get_referrers(trace) if isinstance(x, Tracer))
    leaked = [tracer for tracer in tracers if tracer._trace is trace]
    ignored = {id(leaked)}
    shown, stories, chains = 0, [], []
    for tracer in leaked:
        chain = reference_chain(tracer, ignored)
        if not chain:
            continue
        shown += 1
        if shown <= _MOST_SHOWN:
            lines = "\n".join(chain)
            stories.append(f"{tracer}{tracer.birth()}\n{lines}")
            chains.append(chain)
    if not stories:
        return
    if shown > _MOST_SHOWN:
        stories.append(f"... and {shown - _MOST_SHOWN} more.")
    text = "\n\n".join(stories)
    raise errors.with_facts(
        Exception(
            f"Leaked trace {trace}. Leaked tracer(s):\n\n{text}\n\nA function that is "
            "transformed must hand out values only through its results: return the "
            "value instead of storing it."
        ),
        chains=chains,
        rule="a tracer lives as long as its transformation",
        instead="return the value",
    )


def reference_chain(value: Any, ignored: set[int]) -> list[str]:
    """One sentence for each step from a value to a variable that keeps it alive.

    Empty when no object holds it: then a running function does.
    """
    lines: list[str] = []
    seen = {id(value)}
    child = value
    while len(lines) < _LONGEST_CHAIN:
        parent, place = _holder(child, ignored | seen)
        if parent is None:
            break
        name = f"<{type(child).__name__} {id(child)}>"
        lines.append(f"{name} is referred to by {place}")
        if isinstance(parent, (types.ModuleType, type, types.FrameType)):
            break
        seen.add(id(parent))
        child = parent
    return lines


def _holder(child: Any, ignored: set[int]) -> tuple[Any, str]:
    """(an object that refers to `child`, how), or (None, "").

    A namespace, a closure and an object's `__dict__` count as part of what they are of.
    """
    best: tuple[Any, str] = (None, "")
    for parent in gc.get_referrers(child):
        if id(parent) in ignored or parent is sys._getframe():
            continue
        found = _described(parent, child, ignored)
        if found[0] is None:
            continue
        # A tracer that holds a tracer says less than a variable with a name.
        if not isinstance(found[0], Tracer):
            return found
        best = found
    return best


def _described(parent: Any, child: Any, ignored: set[int]) -> tuple[Any, str]:
    if isinstance(parent, types.CellType):
        return _closure(parent)
    if isinstance(parent, dict):
        owner = _owner_of_namespace(parent)
        if owner is not None:
            return owner, f"{_name(owner)}.{_keys(parent, child)[0]}"
        keys = _keys(parent, child)
        if not keys:
            return None, ""
        return parent, f"{_name(parent)}[{keys[0]!r}]"
    if isinstance(parent, (list, tuple)):
        index = next(index for index, item in enumerate(parent) if item is child)
        return parent, f"{_name(parent)}[{index}]"
    if isinstance(parent, types.FrameType):
        return _local_of_frame(parent, child)
    if isinstance(parent, types.FunctionType):
        return parent, f"{_name(parent)} ({parent.__qualname__})"
    for attribute in _attributes(parent):
        if getattr(parent, attribute, None) is child:
            return parent, f"{_name(parent)}.{attribute}"
    return parent, _name(parent)


def _name(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {value.__qualname__}"
    return f"<{type(value).__name__} {id(value)}>"


def _keys(namespace: dict, child: Any) -> list[Any]:
    return [key for key, value in namespace.items() if value is child]


def _closure(cell: types.CellType) -> tuple[Any, str]:
    """The function that closes over a cell, and the name of the variable."""
    for closure in gc.get_referrers(cell):
        if not isinstance(closure, tuple):
            continue
        for function in gc.get_referrers(closure):
            if getattr(function, "__closure__", None) is not closure:
                continue
            names = function.__code__.co_freevars
            cells: tuple = function.__closure__
            index = next(i for i, item in enumerate(cells) if item is cell)
            name = f"{_name(function)} ({function.__name__})"
            return function, f"{name} closed-over variable {names[index]}"
    return None, ""


def _owner_of_namespace(namespace: dict) -> Any:
    """The module, class or object whose variables a dict holds; None if it is none."""
    module = sys.modules.get(namespace.get("__name__", ""))
    if module is not None and module.__dict__ is namespace:
        return module
    for owner in gc.get_referrers(namespace):
        if isinstance(owner, type):
            return owner
        if getattr(owner, "__dict__", None) is namespace:
            return owner
    return None


def _local_of_frame(frame: types.FrameType, child: Any) -> tuple[Any, str]:
    """A function that has ended, whose frame a traceback keeps."""
    names = _keys(frame.f_locals, child)
    name = f"the variable {names[0]}" if names else "a value"
    code = frame.f_code
    place = f"{code.co_name} at {code.co_filename}:{frame.f_lineno}"
    return frame, f"{name} of the function {place}, kept by a traceback or generator"


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return names
