"""Where an operation was written: tracebacks, frames of the user, name stacks.

`DebugInfo` describes, for messages, the function that a program was traced from.

Every equation keeps a `SourceInfo`. Making one must be cheap, since it happens for
every traced operation: `current` stores jaxlib's compact traceback, and files, lines
and columns are computed only when they are needed.

In JAX: `jax/_src/source_info_util.py`.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os.path
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .runtime import Traceback
from .state import install, state

_get_traceback = Traceback.get_traceback


class Frame(NamedTuple):
    """One line of the user's code; columns count from 0, the end is exclusive."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


@dataclass(unsafe_hash=True, slots=True)  # never changed; frozen ones are slow to make
class NameStack:
    """The scopes and transformations around an operation, outermost first.

    Its text, such as `jit(f)/vmap(layer1)`, becomes part of lowered locations. An entry
    is a name and a flag: whether it is a transformation (`jvp`, `vmap`, ...) of what is
    inside. Other names come from `named_scope` or from a jitted function.
    """

    stack: tuple[tuple[str, bool], ...] = ()

    def extend(self, name: str) -> NameStack:
        """The stack with one more scope inside."""
        return NameStack((*self.stack, (name, False)))

    def transform(self, name: str) -> NameStack:
        """The stack with one more transformation inside."""
        return NameStack((*self.stack, (name, True)))

    def __add__(self, inner: NameStack) -> NameStack:
        return NameStack(self.stack + inner.stack) if inner.stack else self

    def __str__(self) -> str:
        parts: list[str] = []
        for name, is_transformation in reversed(self.stack):
            if not is_transformation:
                parts.append(name)
            elif parts:
                parts[-1] = f"{name}({parts[-1]})"
            else:
                parts.append(f"{name}()")
        return "/".join(reversed(parts))


class SourceInfo:
    """The traceback and the name stack at which an operation was written."""

    __slots__ = ("name_stack", "traceback")

    def __init__(self, traceback: Any, name_stack: NameStack) -> None:
        self.traceback = traceback
        self.name_stack = name_stack

    def __repr__(self) -> str:
        return f"SourceInfo({format_line(self) or 'unknown'})"


install("name_stack", NameStack())


def current() -> SourceInfo:
    """The SourceInfo of an operation that is traced now.

    Within `user_context` it is that of the operation being transformed.
    """
    return SourceInfo(state.user_traceback or _get_traceback(), state.name_stack)


def current_name_stack() -> NameStack:
    """The scopes and transformations around this point of the program."""
    return state.name_stack


# ---- which frames are the user's ----------------------------------------------------

_HERE = os.path.dirname(__file__) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep
# Packages may be installed in a folder inside of the standard library's.
_SITE = tuple(
    os.path.join(_STDLIB, folder) + os.sep
    for folder in ("site-packages", "dist-packages")
)
_excluded: list[str] = [_HERE]


@functools.cache
def is_user_filename(file_name: str) -> bool:
    """Whether a file holds the user's code: not this folder, not Python's library.

    Files named `..._test.py` always count as the user's.
    """
    if file_name.endswith("_test.py"):
        return True
    if file_name.startswith(tuple(_excluded)) or file_name.startswith("<frozen"):
        return False
    return not file_name.startswith(_STDLIB) or file_name.startswith(_SITE)


def register_exclusion(path: str) -> None:
    """Never show frames of files whose path starts with `path` as the user's."""
    _excluded.append(path)
    is_user_filename.cache_clear()
    _user_frame_of_traceback.cache_clear()


def _frame_at(code: types.CodeType, instruction: int) -> Frame:
    line, column, end_line, end_column = Traceback.code_addr2location(code, instruction)
    return Frame(code.co_filename, code.co_qualname, line, column, end_line, end_column)


def _traceback_of(source: Any) -> Any:
    return source.traceback if isinstance(source, SourceInfo) else source


def user_frames(source: Any) -> Iterator[Frame]:
    """The frames of the user, innermost first, of a SourceInfo or a traceback."""
    traceback = _traceback_of(source)
    if traceback is None:
        return
    codes, instructions = traceback.raw_frames()
    for code, instruction in zip(codes, instructions):
        if is_user_filename(code.co_filename):
            yield _frame_at(code, instruction)


def user_frame(source: Any) -> Frame | None:
    """The innermost frame of the user, or None."""
    return _user_frame_of_traceback(_traceback_of(source))


@functools.lru_cache(maxsize=1024)
def _user_frame_of_traceback(traceback: Any) -> Frame | None:
    return next(user_frames(traceback), None)


def user_frame_now() -> Frame | None:
    """The user's innermost frame on the Python stack, for messages of errors."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_user_filename(frame.f_code.co_filename):
            return _frame_at(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


# ---- as text ------------------------------------------------------------------------


def format_frame(frame: Frame) -> str:
    """For example `model.py:12:4 (loss)`, with the path of the code object."""
    place = f"{frame.file_name}:{frame.start_line}"
    if frame.start_column:
        place += f":{frame.start_column}"
    return f"{place} ({frame.function_name})"


def source_text(frame: Frame) -> str:
    """The line of source that a frame points at, or "" when it cannot be read."""
    return linecache.getline(frame.file_name, frame.start_line).strip()


def format_line(source: Any) -> str:
    """Place and text of the user's line, to be put into a message; "" if unknown."""
    frame = source if isinstance(source, Frame) else user_frame(source)
    if frame is None:
        return ""
    text = source_text(frame)
    return f"{format_frame(frame)}: {text}" if text else format_frame(frame)


# ---- contexts -----------------------------------------------------------------------


class NameStackContext:
    """Set the name stack in this thread within a block.

    `user_source` makes it a decorator too.
    """

    __slots__ = ("change", "saved")

    def __init__(self, change: Callable[[NameStack], NameStack]) -> None:
        self.change = change
        self.saved: list[NameStack] = []

    def __enter__(self) -> NameStack:
        self.saved.append(state.name_stack)
        state.name_stack = self.change(state.name_stack)
        return state.name_stack

    def __exit__(self, *exception: Any) -> None:
        state.name_stack = self.saved.pop()


def transform_name_stack(name: str) -> NameStackContext:
    """Context manager: operations inside belong to the transformation `name`."""
    return NameStackContext(lambda stack: stack.transform(name))


def reset_name_stack() -> NameStackContext:
    """Context manager: the name stack inside is empty."""
    return NameStackContext(lambda stack: NameStack())


class user_context:
    """Context manager: operations inside get the line of `source`.

    A transformation enters it around each rule, with the source of the operation that
    is transformed. An exception that leaves it gets a note with that line, unless an
    inner operation has added one. The name stack is that of `source`, inside of
    `outer`.
    """

    __slots__ = ("name_stack", "saved", "traceback")

    def __init__(self, source: Any, *, outer: NameStack | None = None) -> None:
        self.traceback = source
        self.name_stack = None
        if isinstance(source, SourceInfo):
            self.traceback = source.traceback
            inner = source.name_stack
            self.name_stack = inner if outer is None else outer + inner

    def __enter__(self) -> None:
        self.saved = (state.user_traceback, state.name_stack)
        if self.traceback is not None:
            state.user_traceback = self.traceback
        if self.name_stack is not None:
            state.name_stack = self.name_stack

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        state.user_traceback, state.name_stack = self.saved
        if error is None or self.traceback is None or hasattr(error, "user_line"):
            return
        frame = user_frame(self.traceback)
        if frame is None:
            return
        with contextlib.suppress(AttributeError):
            error.user_line = frame
            error.add_note(
                "This was raised while transforming the operation written at\n"
                f"  {format_line(frame)}"
            )


class fresh_context:
    """Context manager: operations inside get their own lines.

    Entered where a user's function is called, because a rule of a transformation may
    be the caller.
    """

    __slots__ = ("saved",)

    def __enter__(self) -> None:
        self.saved = state.user_traceback
        state.user_traceback = None

    def __exit__(self, *exception: Any) -> None:
        state.user_traceback = self.saved


# ---- traced functions, in messages --------------------------------------------------


@dataclass(eq=False, repr=False, slots=True)
class DebugInfo:
    """Where a program came from: used in messages, never in cache keys.

    `traced_for` names the transformation ("jit"), `func_name` the function, `place` is
    "file:line", `names` (of the arguments) and `result_paths` have one entry per leaf.
    The names may be given as a function, which is called when a message needs them.
    """

    traced_for: str
    func_name: str
    place: str = ""
    names: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    result_paths: tuple[str, ...] = ()

    @property
    def arg_names(self) -> tuple[str, ...]:
        if callable(self.names):
            self.names = self.names()
        return self.names

    @property
    def func_src_info(self) -> str:
        return f"{self.func_name} at {self.place}" if self.place else self.func_name

    def check_tracing_allowed(self) -> None:
        """RuntimeError while the flag jax_no_tracing is set."""
        if state.no_tracing:
            raise RuntimeError(
                f"re-tracing function {self.func_src_info} for `jit`, but 'no_tracing' "
                "is set: the function was not called before with arguments of these "
                "types. Call it once outside of `with no_tracing(True):`."
            )

    def with_result_paths(self, paths: tuple[str, ...]) -> DebugInfo:
        return DebugInfo(
            self.traced_for, self.func_name, self.place, self.arg_names, paths
        )


no_debug_info = DebugInfo("unknown", "<unknown>")
