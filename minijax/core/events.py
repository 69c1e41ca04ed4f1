"""Events, which report what the core does, and hooks, which extend it.

Rooms above extend the core in three kinds of places: hooks (`Hook`), methods of classes
(`add_methods`) and entries of tables (`enter`). Each place is filled once.

The core draws nothing and keeps no history. It calls `emit` for each event that a view
may show. A truth test guards the call, so that without subscribers an event costs one
load of a global:

    if events.subscribers:
        events.emit("bind", primitive=primitive, ...)

A subscriber (`event_watching.subscribe`) is called as `callback(name, data)` with a
fresh dict, in the thread and at the moment of the event. The names and fields below are
stable; subscribers must ignore names and fields that they do not know.

- `trace.begin`: the tracing of a function begins. Data: trace, debug_info
- `bind`: a trace has recorded an equation. Data: trace, eqn
- `trace.end`: a function has been traced. Data: trace, debug_info
- `jit.hit`: a call found its program. Data: function, key
- `jit.miss`: a call found none under the `known` keys. Data: function, key, known
- `lower`: a jaxpr became StableHLO. Data: name, seconds, in_avals
- `lower.module`: a module has been built. Data: name, module
- `compile`: a program was compiled. Data: name, seconds, from_disk, executable
- `execute`: a program has been launched. Data: program, results
- `linearize.begin`: the linearization of a function begins. Data: trace, debug_info
- `linearize`: one operation was linearized. Data: primitive, trace
- `linearize.end`: the linear program is complete. Data: trace, jaxpr, residuals
- `transpose`: a linear equation was transposed. Data: primitive, cotangents
- `batch`: a batching rule ran. Data: primitive, trace, dims, out_dims

`seconds` are wall-clock floats. A test holds this list against the calls of `emit`.
In JAX: `jax.monitoring`, which reports durations only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# All hooks by the name of the function that is their default, for the table of hooks.
hooks: dict[str, Hook] = {}


class Hook(Generic[P, R]):
    """A function of the core that a room above may replace, once.

    The decorator makes a hook of the default, next to the call:

        @Hook
        def trace_ended(trace: Trace) -> None:
            "Called when a trace has ended. By default nothing happens."

        trace_ended.run(trace)

    A room above calls `trace_ended.attach(check_no_leaks)`. Until then, and in a core
    without the rooms above, `run` is the default.
    """

    def __init__(self, default: Callable[P, R]) -> None:
        self.__doc__ = default.__doc__
        self.__name__ = default.__name__
        self.default = default
        self.run: Callable[P, R] = default
        hooks[default.__name__] = self

    def attach(self, function: Callable[P, R]) -> Callable[P, R]:
        """Replace the default by `function`; also usable as a decorator.

        Raises RuntimeError the second time, so that the order of calls does not decide
        which function runs.
        """
        if self.run is not self.default:
            raise RuntimeError(f"the hook {self.__name__} has {self.run} already")
        self.run = function
        return function


def add_methods(cls: type, methods: dict[str, Any]) -> None:
    """Add methods and properties, which a room above defines, to a class.

    A method that the class names in `to_fill` is a default, which is replaced once.

    Raises:
      RuntimeError: the class has a method of that name that is not such a default.
    """
    places = vars(cls).get("to_fill", set())
    for name, method in methods.items():
        if name in vars(cls) and name not in places:
            raise RuntimeError(f"the class {cls.__name__} has {name} already")
        places.discard(name)
        setattr(cls, name, method)


def enter(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a table that a room below declares.

    Raises:
      RuntimeError: the table has an entry for `key`.
    """
    if key in table:
        raise RuntimeError(f"the table has {table[key]} for {key} already")
    table[key] = value


Subscriber = Callable[[str, dict[str, Any]], None]

# Hot paths test the truth of this very list: it is changed in place, never replaced.
subscribers: list[Subscriber] = []
warned: set[int] = set()


def emit(name: str, /, **data: Any) -> None:
    """Call every subscriber; the first exception of each one becomes a warning."""
    alone = len(subscribers) == 1
    for callback in tuple(subscribers):
        try:
            callback(name, data if alone else dict(data))
        except Exception as error:
            if id(callback) not in warned:
                warned.add(id(callback))
                warnings.warn(
                    f"The event subscriber {callback!r} raised "
                    f"{type(error).__name__}: {error} at the event {name!r}. The "
                    "program goes on; further errors of this subscriber are silent.",
                    RuntimeWarning,
                    stacklevel=2,
                )
