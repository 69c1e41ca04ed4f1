"""What rules need when they work on a whole Python function.

The rule of `scatter_apply` makes a program of the user's function; the derivative of a
product or a running maximum is that of a tree of smaller operations. Tracing and
differentiating stand on a higher floor, which attaches them here
(`transforms/rules_on_functions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.events import Hook
from minijax.core.language import AbstractValue, DebugInfo, Jaxpr


@Hook
def trace_function(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo,
) -> tuple[Jaxpr, list[Any]]:
    """A flat function as a program: (jaxpr, the values of its constvars)."""
    raise NotImplementedError("no interpreter is there to trace a function")


@Hook
def forward_mode(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """(outputs, their tangents) of a flat function; tangents may be `Zero`."""
    raise NotImplementedError("no interpreter is there to differentiate a function")
