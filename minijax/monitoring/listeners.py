"""Listeners by JAX's names: what was traced, lowered and compiled, and how long.

The core's events (`core/events.py`) are passed on under the names that JAX gives
them, while there is a listener; what users record goes to the same listeners.

In JAX: `jax/_src/monitoring.py`, and the calls in `dispatch.py` and `compiler.py`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from minijax.support import event_watching

Listener = Callable[..., None]

_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_COMPILED = "/jax/core/compile/backend_compile_duration"
_TRACED = "/jax/core/compile/jaxpr_trace_duration"

_listeners: dict[str, list[Listener]] = {
    "event": [],
    "duration": [],
    "time span": [],
    "scalar": [],
}
_subscription = contextlib.ExitStack()
_lock = threading.RLock()


class _Traces(threading.local):
    """The start times of the traces that run in this thread."""

    def __init__(self) -> None:
        self.begun: list[float] = []


_traces = _Traces()


def _changed() -> None:
    """Subscribe to the core's events while there is a listener."""
    _subscription.close()
    if any(_listeners.values()):
        _subscription.enter_context(event_watching.subscribe(_pass_on))


def _register(kind: str, callback: Listener) -> None:
    with _lock:
        _listeners[kind] = [*_listeners[kind], callback]
        _changed()


def _unregister(kind: str, callback: Listener) -> None:
    with _lock:
        if callback not in _listeners[kind]:
            raise AssertionError(f"{callback!r} is not registered for {kind}s.")
        left = list(_listeners[kind])
        left.remove(callback)
        _listeners[kind] = left
        _changed()


def _pass_on(name: str, data: dict[str, Any]) -> None:
    if name == "trace.begin":
        _traces.begun.append(time.time())
    elif name == "trace.end" and _traces.begun:
        begun = _traces.begun.pop()
        if not _traces.begun:  # inner functions belong to the outermost trace
            function = data["debug_info"].func_name
            _record_work(_TRACED, time.time() - begun, function)
    elif name == "lower":
        _record_work(_LOWERED, data["seconds"], f"jit({data['name']})")
    elif name == "compile":
        if data["from_disk"]:
            record_event("/jax/compilation_cache/cache_hits")
        _record_work(_COMPILED, data["seconds"], f"jit({data['name']})")


def _record_work(event: str, seconds: float, function: str) -> None:
    end = time.time()
    record_scalar(event, end - seconds, fun_name=function)
    record_event_duration_secs(event, seconds, fun_name=function)
    record_event_time_span(event, end - seconds, end, fun_name=function)


def record_event(event: str, **kwargs: str | int) -> None:
    """Calls each listener of events: `listener(event, **kwargs)`."""
    for callback in _listeners["event"]:
        callback(event, **kwargs)


def record_event_duration_secs(
    event: str, duration: float, **kwargs: str | int
) -> None:
    """Calls each listener of durations: `listener(event, seconds, **kwargs)`."""
    for callback in _listeners["duration"]:
        callback(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Calls each listener of time spans, with seconds since the epoch."""
    for callback in _listeners["time span"]:
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Calls each listener of scalars: `listener(event, value, **kwargs)`."""
    for callback in _listeners["scalar"]:
        callback(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Has `callback(event, **kwargs)` called for each event."""
    _register("event", callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Has `callback(event, seconds, **kwargs)` called for each duration."""
    _register("duration", callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Has `callback(event, start, end, **kwargs)` called for each time span."""
    _register("time span", callback)


def register_scalar_listener(callback: Listener) -> None:
    """Has `callback(event, value, **kwargs)` called for each scalar."""
    _register("scalar", callback)


def unregister_event_listener(callback: Listener) -> None:
    """Calls it no more; AssertionError if it is not registered."""
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Calls it no more; AssertionError if it is not registered."""
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Calls it no more; AssertionError if it is not registered."""
    _unregister("time span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Calls it no more; AssertionError if it is not registered."""
    _unregister("scalar", callback)


def clear_event_listeners() -> None:
    """Calls no listener of any kind any more."""
    with _lock:
        for kind in _listeners:
            _listeners[kind] = []
        _changed()
