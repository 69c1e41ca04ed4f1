"""Values that must be known now.

A shape, an axis or a Python `if` needs a value, not a tracer. Functions that need one
ask here, and a tracer without a value becomes an error that says what to write.

In JAX: `core.py`, `concrete_or_error`, `is_concrete`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minijax.core import errors
from minijax.core.language import Tracer, eval_trace, to_concrete_value
from minijax.core.state import state
from minijax.support import special_errors


def is_concrete(value: Any) -> bool:
    """Whether the value is known now."""
    return to_concrete_value(value) is not None


def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """`force(val)` (or `val`), or an error that says why it must be known now."""
    force = force or (lambda known: known)
    if not isinstance(val, Tracer):
        return force(val)
    concrete = val.to_concrete_value()
    if concrete is None:
        if force is bool:
            raise errors.TracerBoolConversionError(val)
        if force is operator.index:
            raise special_errors.TracerIntegerConversionError(val)
        raise errors.ConcretizationTypeError(val, context)
    return force(concrete)


def trace_state_clean() -> bool:
    """Whether no transformation is active in this thread."""
    return state.trace is eval_trace
