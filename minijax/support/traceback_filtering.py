"""Tracebacks without the library's own frames: what a user wrote, and nothing else.

Functions that users call are *boundaries* (`errors.api_boundary`). An exception that
passes the outermost one is treated as the flag `jax_traceback_filtering` says:

- `off`: it is left alone.
- `quiet_remove_frames`: frames of this package are taken out of its traceback, and a
  note says so. The default outside of IPython (`auto`).
- `remove_frames`: the same, and the whole traceback stays reachable as its cause.
- `tracebackhide`: the frames stay, marked so that IPython and pytest hide them. The
  default in IPython.

Nothing happens, and nothing is paid for, while no exception is raised.

In JAX: `jax/_src/traceback_util.py`.
"""

from __future__ import annotations

import builtins
import os.path
import traceback
import types
from typing import Any

from minijax.core.errors import boundaries, filter_traceback
from minijax.core.state import state

_internal = [os.path.dirname(os.path.dirname(__file__)) + os.sep]

_NOTE = (
    "--------------------\n"
    "For simplicity, minijax has removed its internal frames from the traceback of the "
    "following exception. Set JAX_TRACEBACK_FILTERING=off to include these."
)
_APPENDED = (
    "The stack trace below excludes minijax's internal frames.\n"
    "The preceding is the original exception that occurred, unmodified.\n"
    "\n--------------------"
)


class UnfilteredStackTrace(Exception):
    """Stands as the cause of an exception, and has its whole traceback."""


def is_internal(code: types.CodeType) -> bool:
    """Whether a frame with this code is the library's own."""
    return code.co_filename.startswith(tuple(_internal))


def register_exclusion(path: str) -> None:
    """Also leave out frames of files whose path starts with `path`."""
    _internal.append(path)


def filtered(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the library's own frames; None if there are no others."""
    kept = None
    for frame, line in reversed(list(traceback.walk_tb(trace))):
        if not is_internal(frame.f_code):
            kept = types.TracebackType(kept, frame, frame.f_lasti, line)
    return kept


def with_python_traceback(error: BaseException, recorded: Any) -> BaseException:
    """`error`, as if it had been raised where jaxlib's traceback `recorded` was taken.

    The library's own frames are left out.
    """
    if recorded is None:
        return error
    return error.with_traceback(filtered(recorded.as_python_traceback()))


@filter_traceback.attach
def simplify(error: Exception) -> None:
    """Filter the traceback of an exception that leaves a boundary, in place.

    Nothing is done below another boundary: the outermost one does it.
    """
    trace = error.__traceback__
    mode = _mode()
    if trace is None or mode == "off" or _is_below_boundary(trace.tb_frame):
        return
    if mode == "tracebackhide":
        for frame, _ in traceback.walk_tb(trace):
            if is_internal(frame.f_code):
                frame.f_locals["__tracebackhide__"] = True
        return
    # For `see.why`, which reads the operands of the failing operation afterwards.
    error.whole_traceback = trace  # type: ignore[attr-defined]
    error.with_traceback(filtered(trace))
    if mode == "quiet_remove_frames":
        error.add_note(_NOTE)
        return
    line = "".join(traceback.format_exception_only(type(error), error)).strip()
    whole = UnfilteredStackTrace(f"{line}\n\n{_APPENDED}")
    whole.with_traceback(_with_callers(trace))
    whole.__cause__ = error.__cause__
    whole.__context__ = error.__context__
    whole.__suppress_context__ = error.__suppress_context__
    error.__cause__ = whole
    error.__context__ = None


def _mode() -> str:
    mode = state.traceback_filtering
    if mode != "auto":
        return mode
    in_ipython = hasattr(builtins, "get_ipython")
    return "tracebackhide" if in_ipython else "quiet_remove_frames"


def _is_below_boundary(frame: types.FrameType) -> bool:
    caller = frame.f_back
    while caller is not None:
        if caller.f_code in boundaries:
            return True
        caller = caller.f_back
    return False


def _with_callers(trace: types.TracebackType) -> types.TracebackType:
    """The traceback with the users' frames above it, up to a module's own code.

    Beyond the first module level there may be an interactive shell.
    """
    out = trace
    at_module = False
    caller = trace.tb_frame.f_back
    while caller is not None:
        code = caller.f_code
        if at_module and code.co_name != "<module>":
            break
        if not is_internal(code) and "importlib._bootstrap" not in code.co_filename:
            out = types.TracebackType(out, caller, caller.f_lasti, caller.f_lineno)
        at_module = at_module or code.co_name == "<module>"
        caller = caller.f_back
    return out
