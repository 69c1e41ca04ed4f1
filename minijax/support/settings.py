"""Slots of `state` that rooms above the core own, and their temporary values.

    declare("no_grad_for", ())          # a slot; by default a part of the trace key
    with override("no_grad_for", ("x",)):
        ...

In JAX: `jax/_src/config.py`, `State` and its context managers.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from minijax.core import state as thread_state
from minijax.core.state import TraceKey, state

_UNSET: Any = object()


def declare(name: str, default: Any, *, traced: bool = True) -> None:
    """Add a slot, for a room that owns a context or a flag of its own.

    A slot that is `traced` becomes a part of the trace key. Of a slot that the core
    has declared only the default changes.
    """
    thread_state.install(name, default, traced)


class override:
    """Set one slot of `state` in this thread, within a `with` block; also a decorator.

    The block may nest, end by an exception, and be entered again; the same object
    may be used by several threads.
    """

    __slots__ = ("name", "saved", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value
        self.saved: dict[int, list[tuple[Any, Any, Any, int]]] = {}

    def __enter__(self) -> Any:
        name = self.name
        local = state.__dict__
        thread = threading.get_ident()
        previous = local.get(name, _UNSET)
        previous_key = local.get("trace_key", _UNSET)
        new_key = previous_key
        position = thread_state.positions.get(name)
        if position is not None:
            thread_state.check_hashable(name, self.value)
            with thread_state.lock:
                new_key = _with_field(state.trace_key, position, self.value)
                local[name] = self.value
                thread_state.set_key(local, new_key)
        else:
            local[name] = self.value
        record = (previous, previous_key, new_key, thread_state.generation)
        self.saved.setdefault(thread, []).append(record)

    def __exit__(self, *exception: Any) -> None:
        name = self.name
        thread = threading.get_ident()
        stack = self.saved[thread]
        previous, previous_key, new_key, generation = stack.pop()
        if not stack:
            del self.saved[thread]
        local = state.__dict__
        if previous is _UNSET:
            local.pop(name, None)
        else:
            local[name] = previous
        if name not in thread_state.positions:
            return
        with thread_state.lock:
            in_order = (
                local.get("trace_key") is new_key
                and generation == thread_state.generation
            )
            if previous_key is _UNSET and (in_order or self._was_last(local)):
                thread_state.set_key(local, None)
            elif in_order:
                local["trace_key"] = previous_key
            else:
                local["trace_key"] = thread_state.key_for(local)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with override(self.name, self.value):
                return function(*args, **kwargs)

        return wrapped

    @staticmethod
    def _was_last(local: dict[str, Any]) -> bool:
        """Whether this thread overrides no trace-relevant slot any more."""
        return thread_state.positions.keys().isdisjoint(local)


def _with_field(current: TraceKey, position: int, value: Any) -> TraceKey:
    """The key that differs in one field. Remembered, since `with` blocks repeat."""
    key = current.successors.get((position, value))
    if key is None:
        values = list(current.values)
        values[position] = value
        key = thread_state.interned_key(values)
        if len(current.successors) >= 64:
            # Bounds what a default key, which lives forever, keeps alive.
            current.successors.clear()
        current.successors[(position, value)] = key
    return key
