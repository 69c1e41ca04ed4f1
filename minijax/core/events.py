"""Events and hooks: how the core tells others what it does, and lets them take part.

Parts are attached in three kinds of places, and each place takes one part: hooks
(`Hook`), methods of classes (`add_methods`), entries of tables (`enter`).

The core draws nothing and keeps no history. It calls `emit` at the places that a
view may want to see, guarded by one truth test, so that without a watcher an event
costs a global load:

    if events.subscribers:
        events.emit("bind", primitive=primitive, ...)

A subscriber (`event_watching.subscribe`) is called as `callback(name, data)` with a
fresh dict, in the thread and at the moment of the event. The names and fields below are
stable; subscribers must ignore names and fields that they do not know.

- `trace.begin`: a function starts to be traced. Data: trace, debug_info
- `bind`: a trace has recorded an equation. Data: trace, eqn
- `trace.end`: a function has been traced. Data: trace, debug_info
- `jit.hit`: a call found its program. Data: function, key
- `jit.miss`: a call did not; `known` are the keys it has. Data: function, key, known
- `lower`: a jaxpr became StableHLO. Data: name, seconds, in_avals
- `lower.module`: the module, before it is printed. Data: name, module
- `compile`: a program was compiled. Data: name, seconds, from_disk, executable
- `execute`: a program is started. Data: program
- `linearize.begin`: a function starts to be linearized. Data: trace, debug_info
- `linearize`: one operation was linearized. Data: primitive, trace
- `linearize.end`: the linear program is there. Data: trace, jaxpr, residuals
- `transpose`: a linear equation was transposed. Data: primitive, cotangents
- `batch`: a batching rule ran. Data: primitive, trace, dims, out_dims

`seconds` are wall-clock floats. A test holds this list against the calls of `emit`.
In JAX: `jax.monitoring`, which knows durations only.
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
    """A place in the core where a room above attaches its part.

    Declared by decorating the default, next to where it is called:

        @Hook
        def trace_ended(trace: Trace) -> None:
            "Called when a trace has ended. By default nothing happens."

        trace_ended.run(trace)

    A room above calls `trace_ended.attach(check_no_leaks)`, once. Until then, and in a
    core that runs by itself, the default does the work.
    """

    def __init__(self, default: Callable[P, R]) -> None:
        self.__doc__ = default.__doc__
        self.__name__ = default.__name__
        self.default = default
        self.run: Callable[P, R] = default
        hooks[default.__name__] = self

    def attach(self, function: Callable[P, R]) -> Callable[P, R]:
        """Put `function` in the place of the default; also a decorator.

        RuntimeError the second time: what runs does not depend on what comes last.
        """
        if self.run is not self.default:
            raise RuntimeError(f"the hook {self.__name__} has {self.run} already")
        self.run = function
        return function


def add_methods(cls: type, methods: dict[str, Any]) -> None:
    """Give a class the methods and properties that a room above writes for it.

    A class names in `to_fill` those that it has only until they are given.

    Raises:
      RuntimeError: the class has one of that name, which is not to be filled.
    """
    places = vars(cls).get("to_fill", set())
    for name, method in methods.items():
        if name in vars(cls) and name not in places:
            raise RuntimeError(f"the class {cls.__name__} has {name} already")
        places.discard(name)
        setattr(cls, name, method)


def enter(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Put a part into a table that a room below declares.

    Raises:
      RuntimeError: the table has an entry for `key`.
    """
    if key in table:
        raise RuntimeError(f"the table has {table[key]} for {key} already")
    table[key] = value


Subscriber = Callable[[str, dict[str, Any]], None]

# Hot paths test the truth of this very list: it is changed in place, never replaced.
subscribers: list[Subscriber] = []
_warned: set[int] = set()


def emit(name: str, /, **data: Any) -> None:
    """Tell every subscriber. One that raises is reported once and stays subscribed."""
    alone = len(subscribers) == 1
    for callback in tuple(subscribers):
        try:
            callback(name, data if alone else dict(data))
        except Exception as error:
            if id(callback) not in _warned:
                _warned.add(id(callback))
                warnings.warn(
                    f"The event subscriber {callback!r} raised "
                    f"{type(error).__name__}: {error} at the event {name!r}. The "
                    "program goes on; further errors of this subscriber are silent.",
                    RuntimeWarning,
                    stacklevel=2,
                )
