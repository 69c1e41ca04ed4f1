"""More about where operations were written: for users and for views.

In JAX: `jax/_src/source_info_util.py`, and `jax/_src/api.py`, `named_scope`.
"""

from __future__ import annotations

import linecache

from minijax.support.source_info import (
    Frame,
    NameStack,
    NameStackContext,
    SourceInfo,
    extend_name_stack,
)


def new_source_info() -> SourceInfo:
    """A SourceInfo that knows nothing."""
    return SourceInfo(None, NameStack())


def expression_text(frame: Frame) -> str:
    """The very expression a frame points at; the whole line if it spans several."""
    line = linecache.getline(frame.file_name, frame.start_line)
    if frame.start_line != frame.end_line or not frame.end_column:
        return line.strip()
    # Columns count bytes of UTF-8, not characters.
    encoded = line.encode()[frame.start_column : frame.end_column]
    return encoded.decode(errors="replace").strip()


def named_scope(name: str) -> NameStackContext:
    """Context manager and decorator: give the operations inside a name.

    The name becomes part of the compiled instructions' names, and so of profiles.
    Raises TypeError unless `name` is a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
    return extend_name_stack(name)
