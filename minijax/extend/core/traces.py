"""Asking for the current trace, and taking it.

In JAX: `jax/_src/core.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from minijax.core.batching import BatchTrace
from minijax.core.language import Trace, eval_trace, set_current_trace
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.core.state import state


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Context manager: gives the current trace; inside, operations compute now."""
    trace = state.trace
    with set_current_trace(eval_trace):
        yield trace


def find_top_trace(_: Any) -> Trace:
    """The current trace; the argument is not looked at, as in JAX."""
    return state.trace


class OpaqueTraceState:
    """Which trace was current: equal to another one taken under the same trace."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace):
        self._trace = trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return hash((OpaqueTraceState, id(self._trace)))


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """A token that is equal at two points of a program under the same trace.

    `convention` is accepted as in JAX.
    """
    return OpaqueTraceState(state.trace)


def nonempty_axis_env() -> bool:
    """Whether a named axis is in scope."""
    return bool(state.axis_env.axis_sizes)


def unsafe_get_axis_names() -> list[Hashable]:
    """The named axes in scope."""
    return list(state.axis_env.axis_sizes)


def _under(kind: type) -> bool:
    trace: Any = state.trace
    while trace is not None:
        if isinstance(trace, kind):
            return True
        trace = getattr(trace, "parent", None)
    return False


def unsafe_am_i_under_a_jit() -> bool:
    """Whether a program is being written down."""
    return _under(DynamicJaxprTrace)


def unsafe_am_i_under_a_vmap() -> bool:
    """Whether a batch axis is being added, by a transformation not yet written down."""
    return _under(BatchTrace)
