"""The recording behind `see.keys`: which random key came from which, and what used it.

The function is traced, and its program is followed with the keys in place of their
values: an array of keys is an array of numbers, one for each different key, and a
slice, a reshape or a lookup is done to these numbers by the primitive's own meaning.
Loops are gone through round by round, branches one beside the other. So it is counted
how often each key is drawn from: rows of a split, rounds of a loop and examples of a
`vmap` each count. Where a key depends on a number that only the run knows, the
recording says that it cannot tell.

Both kinds of keys are followed, typed ones and raw pairs of 32-bit words.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from minijax.core.source_info import is_user_filename
from minijax.core.state import state
from minijax.support.event_watching import subscribe
from minijax.support.settings import override
from minijax_lab.explain.calls import program_of, statics_in_words
from minijax_lab.explain.foreign_programs import refuse_function
from minijax_lab.explain.key_following import Follower
from minijax_lab.explain.key_values import KeysRecording, Shared, Use, Value, Within
from minijax_lab.explain.recording import span_text


def record_keys(
    function: Callable[..., Any], *args: Any, **kwargs: Any
) -> KeysRecording:
    """Records what becomes of the random keys in `function`.

    Raises TypeError if `function` cannot be called, and what tracing raises.
    """
    if not callable(function):
        raise TypeError(
            "see.keys takes a function and its arguments, such as "
            f"see.keys(f, random.key(0)), and got {type(function).__name__} first."
        )
    refuse_function(function, "see.keys", (*args, *kwargs.values()), "minijax")
    shared = Shared()
    # A program that was traced before would tell nothing of the `vmap` that it was
    # traced in, so nothing of what other settings traced is taken.
    mark = (f"keys {id(shared)}", Shared)
    with override("replaced", (*state.replaced, mark)), subscribe(shared.listen):
        closed = program_of(function, args, kwargs)
    follower = Follower(shared, names_outside(function))
    names = closed.jaxpr.debug_info.arg_names
    values: list[Value | None] = []
    for position, var in enumerate(closed.jaxpr.invars):
        name = names[position] if position < len(names) else f"argument {position}"
        values.append(follower.incoming(var, name, "argument"))
    follower.run(closed.jaxpr, follower.constants(closed), values)
    statics = statics_in_words(function, args, kwargs)
    return follower.recording(function, closed.jaxpr, statics)


def names_outside(function: Any) -> dict[int, str]:
    """The names under which a function sees what it does not define, by their id."""
    found: dict[int, str] = {}
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    pending = [(function, getattr(function, "__code__", None))]
    seen = set()
    while pending:
        function, code = pending.pop()
        if code is None or code in seen:
            continue
        seen.add(code)
        names = getattr(function, "__globals__", {})
        values = {name: names[name] for name in code.co_names if name in names}
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # not filled yet
                values[name] = cell.cell_contents
        for name, value in values.items():
            found.setdefault(id(value), name)
            inner = getattr(value, "__wrapped__", value)
            if isinstance(inner, FunctionType) and is_user_filename(
                inner.__code__.co_filename
            ):
                pending.append((inner, inner.__code__))
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                # What it closes over is looked up where the outer function has it.
                pending.append((Within(names), inner))
    return found


def use_text(record: KeysRecording, use: Use) -> str:
    """Where a key was used, as the user wrote it."""
    return span_text(record.sources, use.span)
