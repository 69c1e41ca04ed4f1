"""Where operations were written, as users and views ask for it.

In JAX: `jax/_src/source_info_util.py`, and `jax/_src/api.py`, `named_scope`.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from minijax.core import source_info
from minijax.core.source_info import register_exclusion as register_exclusion


def new_source_info() -> source_info.SourceInfo:
    """A SourceInfo without traceback and name stack."""
    return source_info.SourceInfo(None, source_info.NameStack())


def user_stacklevel() -> int:
    """The `stacklevel` with which the caller's warning points at the user's line."""
    frame: types.FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None:
        if source_info.is_user_filename(frame.f_code.co_filename):
            return level
        level += 1
        frame = frame.f_back
    return 1


def extend_name_stack(name: str) -> source_info.NameStackContext:
    """Context manager and decorator: operations inside belong to the scope `name`."""
    return source_info.NameStackContext(lambda stack: stack.extend(name))


def named_scope(name: str) -> source_info.NameStackContext:
    """Context manager and decorator: give the operations inside a name.

    The name becomes part of the compiled instructions' names, and so of profiles.
    Raises TypeError unless `name` is a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
    return extend_name_stack(name)


def decorate(
    self: source_info.NameStackContext, function: Callable[..., Any]
) -> Callable[..., Any]:
    """What `named_scope` does as a decorator: `NameStackContext.__call__`."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with source_info.NameStackContext(self.change):
            return function(*args, **kwargs)

    return wrapped


def summarize(source: Any, num_frames: int = 1) -> str:
    """The user's innermost frames, outermost first, one a line; "unknown" if none."""
    frames = []
    for frame in source_info.user_frames(source):
        frames.append(source_info.format_frame(frame))
        if len(frames) == num_frames:
            break
    return "\n".join(reversed(frames)) or "unknown"
