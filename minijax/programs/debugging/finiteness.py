"""The flags jax_debug_nans and jax_debug_infs: errors instead of NaNs.

While a flag is set, the results of every program that runs are looked at. If it is
one operation, the error names it. A larger one is run again, equation by equation: each
equation is then a program that is looked at, so that the first one that gives a NaN
raises, and an equation that carries a program is searched in the same way. The error
names the primitive and the user's line, which every equation keeps, also those that
`grad` and `vmap` made.

Branches and loops run as Python then, so that the operation in their bodies is found.

In JAX: `jax/_src/dispatch.py`, `check_special`. There the function itself is called
again, without `jit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend.buffer_copies import copy_to_sharding
from minijax.core import dtypes, errors, source_info
from minijax.core.array import Array, wrap_as
from minijax.core.language import ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.core.state import state
from minijax.support.settings import override
from minijax.values.array_places import placement_of
from minijax.values.inner_programs import in_python


def run_checked(program: Any, buffers: list[Any]) -> list[Array]:
    """Launch a program and check its results.

    Raises FloatingPointError when one has a NaN (or inf) that the flags forbid.
    """
    closed = program.lowered.source()
    eager = closed is None or closed.debug_info.traced_for == "eager"
    with override("debug_nans", False), override("debug_infs", False):
        kept = buffers
        if not eager and any(program.lowered.donated):
            kept = _copies_of_donated(program, buffers)
        arrays = program(buffers)
    found = forbidden(arrays)
    if found is None:
        return arrays
    if eager:
        raise _error(found, program.name)
    avals = program.lowered.in_avals
    _step_through(closed, list(map(_array, kept, avals)))
    raise errors.with_facts(
        FloatingPointError(
            f"invalid value ({found}) encountered in jit({program.name}). Run again "
            "one operation after the other, the function did not produce invalid "
            f"values. Either a {found} is a constant of the function or one of its "
            "arguments, which it returns, or the compiler's optimizations (such as "
            "another order of sums) brought it about; then it may be avoided by "
            "leaving out `jit`."
        ),
        rule=_rule(found),
    )


def _step_through(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program equation by equation; raise at the first forbidden result.

    A function of the library may have been traced for another caller: its equations
    count as written where it was called.
    """
    env: dict[Var, Any] = dict(zip(closed.jaxpr.constvars, closed.consts))
    env.update(zip(closed.jaxpr.invars, args))
    file_name = closed.debug_info.place.rpartition(":")[0]
    is_users = source_info.is_user_filename(file_name)

    def read(atom: Any) -> Any:
        return atom.val if type(atom) is Literal else env[atom]

    for eqn in closed.jaxpr.eqns:
        inputs = [read(v) for v in eqn.invars]
        with source_info.user_context(eqn.source_info if is_users else None):
            if eqn.primitive in in_python:
                outputs = _run_control_flow(eqn, inputs)
            else:
                outputs = eqn.primitive.rebind(inputs, eqn.params)
        if not eqn.primitive.multiple_results:
            outputs = [outputs]
        env.update(zip(eqn.outvars, outputs))
    return [read(v) for v in closed.jaxpr.outvars]


def _run_control_flow(eqn: JaxprEqn, inputs: list[Any]) -> list[Any]:
    """Run a branch or a loop, and again step by step if a result is forbidden."""
    with override("debug_nans", False), override("debug_infs", False):
        outputs = eqn.primitive.rebind(inputs, eqn.params)
    found = forbidden(outputs)
    if found is not None:
        in_python[eqn.primitive](_step_through, inputs, eqn.params)
        raise _error(found, eqn.primitive.name)
    return outputs


def _copies_of_donated(program: Any, buffers: list[Any]) -> list[Any]:
    """The buffers, with copies of those that the program takes as donated."""
    lowered = program.lowered
    return [
        copy_to_sharding(buffer, buffer._sharding) if donated else buffer
        for buffer, donated in zip(buffers, lowered.donated)
    ]


def _array(buffer: Any, aval: Any) -> Array:
    return wrap_as(buffer, aval, placement_of(buffer))


def forbidden(arrays: Sequence[Array]) -> str | None:
    """The forbidden value that an array has: "nan", "inf", or None."""
    for array in arrays:
        if not dtypes.issubdtype(array.dtype, np.inexact):
            continue
        values = array._value
        if values.dtype.kind not in "fc":
            values = values.astype(np.float32)
        if state.debug_nans and np.isnan(values).any():
            return "nan"
        if state.debug_infs and np.isinf(values).any():
            return "inf"
    return None


def check_results(arrays: Sequence[Array], name: str) -> None:
    """FloatingPointError for results of an operation, `name`, that a flag forbids."""
    if state.debug_nans or state.debug_infs:
        found = forbidden(arrays)
        if found is not None:
            raise _error(found, name)


def _error(found: str, name: str) -> FloatingPointError:
    """The error of one operation, with the user's line, also in a second run."""
    frame = source_info.user_frame(state.user_traceback) or source_info.user_frame_now()
    message = f"invalid value ({found}) encountered in {name}."
    if frame is not None:
        message += f"\nIt happened at\n  {source_info.format_line(frame)}"
    error = errors.with_facts(
        FloatingPointError(message),
        used_at=frame,
        line=source_info.source_text(frame) if frame else "",
        primitive=name,
        rule=_rule(found),
    )
    error.user_line = frame  # type: ignore[attr-defined]  # the line is there already
    return error


def _rule(found: str) -> str:
    return f"the flag jax_debug_{found}s forbids results with {found}"
