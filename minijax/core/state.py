"""The state of a thread: the slots of `state`, and the trace key.

`state` holds the current trace (`state.trace`), the bound axis names
(`state.axis_env`), the current mesh (`state.mesh`) and the value of each flag
(`state.enable_x64`). A read is one attribute load. Class attributes of `State` are the
defaults of the whole process; an attribute of the instance is the override of one
thread.

`state.trace_key` is one object for all values that can change the result of tracing.
Caches use it as a part of their key: it hashes and compares by identity, and equal
combinations of values share one object while it is alive.

`settings.py` adds slots and overrides them temporarily in one thread; `config` builds
the users' flags on top, and declares the slots of those that the core does not read.

In JAX: `jax/_src/config.py`, `State` and `trace_context()`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any


class TraceKey:
    """The values of all trace-relevant settings, in the order of `positions`.

    It hashes and compares by identity, so it is the cheapest possible part of a cache
    key. `config` adds the method `differing`, which names the fields in which two
    differ.
    """

    __slots__ = ("__weakref__", "successors", "values")

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values
        # The keys reached from here by changing one field: (position, value) -> key.
        self.successors: dict[tuple[int, Any], TraceKey] = {}


class State(threading.local):
    """Process-wide defaults (class attributes), overridden thread by thread.

    The core installs its own defaults of `trace` and `name_stack` when it is imported,
    so that a new thread starts in eager evaluation. Write a slot that is a part of the
    trace key with `install` or `settings.override`, never by plain assignment: those
    two keep `trace_key` right.
    """

    trace: Any = None
    trace_key: TraceKey = TraceKey(())
    # The scopes around an operation, and the traceback that stands for the user's line
    # while a rule of a transformation runs (None: the real call stack).
    name_stack: Any = None
    user_traceback: Any = None
    # Called with the operands of each equation before it is recorded, unless None.
    entering: Any = None

    # Contexts and flags that decide what a trace yields: the trace key, in this order.
    axis_env: Any = ()
    mesh: Any = None
    abstract_mesh: Any = None
    # The classes by which `minijax.replace` replaced traces, as pairs (name, class). In
    # the key, they keep the programs of one class apart from those of another.
    replaced: tuple[tuple[str, type], ...] = ()
    enable_x64: bool = False
    explicit_x64_dtypes: str = "warn"
    numpy_dtype_promotion: str = "standard"
    default_device: Any = None
    disable_jit: bool = False

    # Flags that act outside programs.
    no_tracing: bool = False
    check_tracer_leaks: bool = False


state = State()

lock = threading.RLock()
# Names that are part of the trace key, in order, with their position in it.
positions: dict[str, int] = {
    name: position
    for position, name in enumerate(
        (
            *("axis_env", "mesh", "abstract_mesh", "replaced"),
            *("enable_x64", "explicit_x64_dtypes", "numpy_dtype_promotion"),
            *("default_device", "disable_jit"),
        )
    )
}
_keys: weakref.WeakValueDictionary[tuple, TraceKey] = weakref.WeakValueDictionary()
# The thread dictionaries that override a trace-relevant slot, by thread identifier.
# An update of a default must also renew the keys of these threads.
overriding: dict[int, dict[str, Any]] = {}
# Counts updates of defaults: a saved key is restored only within one generation.
generation = 0


def interned_key(values: Iterable[Any]) -> TraceKey:
    plain = tuple(values)
    key = _keys.get(plain)
    if key is None:
        key = TraceKey(plain)
        _keys[plain] = key
    return key


def check_hashable(name: str, value: Any) -> None:
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"The setting {name} is part of every cache key, so its value must be "
            f"hashable; got {value!r}."
        ) from error


def key_for(local: dict[str, Any]) -> TraceKey:
    return interned_key(
        local[name] if name in local else getattr(State, name) for name in positions
    )


def renew_keys() -> None:
    """Rebuild the default key and the keys of threads that override something."""
    global generation
    generation += 1
    State.trace_key = key_for({})
    for local in list(overriding.values()):
        local["trace_key"] = key_for(local)


def set_key(local: dict[str, Any], key: TraceKey | None) -> None:
    """Give this thread, whose overrides are `local`, its own key; None: the default."""
    if key is None:
        local.pop("trace_key", None)
        overriding.pop(threading.get_ident(), None)
    else:
        local["trace_key"] = key
        overriding[threading.get_ident()] = local


def install(name: str, value: Any, traced: bool = False) -> None:
    """Set the process-wide default of a slot of `state` (`trace`, `mesh`, a flag).

    A slot that is `traced` becomes a part of the trace key. Threads that override the
    slot keep their override. The value is not validated: this is for the rooms that own
    a slot; users call `config.update`.
    """
    with lock:
        if traced and name not in positions:
            positions[name] = len(positions)
        if name in positions:
            check_hashable(name, value)
        setattr(State, name, value)
        if name in positions:
            renew_keys()


renew_keys()
