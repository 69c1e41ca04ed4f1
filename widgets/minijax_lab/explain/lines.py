"""Which lines of the user's functions run, recorded at a small cost in time.

Python 3.12 and later ask the interpreter for events of the user's functions only
(`sys.monitoring`); all other code runs at its full speed. Python 3.11 has nothing but
`sys.settrace`, which makes every function slower that runs while it is on, minijax's
own too. So it is switched off while one of minijax's operations runs, and comes back
when that operation ends: nothing of the user's can run in between.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import os.path
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

import minijax
from minijax.core.jit import JitFunction
from minijax.core.language import Primitive, all_primitives
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.core.state import state
from minijax.numpy.math.ufunc_api import ufunc
from minijax.support.user_source import extend_name_stack, named_scope
from minijax_lab.explain.recording import once_a_code

PACKAGE = os.path.dirname(minijax.__file__) + os.sep

# Rooms whose functions run nothing of the user's, but for those that are given it: by
# a parameter of one of these names, or kept for later by functions of this file.
CORE_OPERATIONS = ["avals", "events", "arithmetic", "shaping", "sums", "dot"]
CORE_OPERATIONS += ["operators"]
OPERATIONS = tuple(
    os.path.join(PACKAGE, *place)
    for place in [("core", f"{name}.py") for name in CORE_OPERATIONS]
    + [(room, "") for room in ("nn", "numpy", "primitives", "random")]
)
GIVEN = {"f", "fn", "fun", "func", "func1d", "funclist", "funcs", "function", "mode"}
GIVEN |= {"_dot_general", "branches", "mask_func", "pyfunc"}
KEEPS = "vectorizing.py"
PAUSES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Watcher(Protocol):
    """Who listens. All methods are called in the thread that is watched."""

    def follows(self, code: CodeType) -> bool:
        """Whether a function is to be followed."""

    def enters(self, frame: FrameType) -> None:
        """A followed function begins, or goes on after a `yield`."""

    def line(self, frame: FrameType, line: int) -> None:
        """A line of a followed function is about to run."""

    def leaves(self, frame: FrameType) -> None:
        """A followed function ends, also by an exception, or stops at a `yield`."""


def watching(watcher: Watcher) -> Any:
    """Context manager: `watcher` is told the lines that this thread runs inside."""
    if sys.version_info >= (3, 12):
        tool = free_tool()
        if tool is not None:
            return Monitoring(watcher, tool)
    return Tracing(watcher)


# ---- sys.settrace -------------------------------------------------------------------

OTHER, FOLLOWED, OPERATION, GIVEN_ONE, HOLDER, ENTERS, BIND = range(7)


class Tracing:
    """Lines by `sys.settrace`, which is off while an operation of minijax runs."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        # Running functions that may handle an exception, or were given a function.
        self.guarded = 0
        # Those that count because of a `with` that is not the user's.
        self.withs: set[FrameType] = set()

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        # A trace of the user's own class runs inside of minijax's operations.
        self.guarded = len(state.replaced)
        begin = self.on_call()
        self.pause.__del__ = functools.partial(sys.settrace, begin)
        sys.settrace(begin)

    def __exit__(self, *exception: Any) -> None:
        # Frames that an exception keeps alive may end later.
        self.pause.__del__ = nothing
        sys.settrace(self.before)
        self.withs.clear()

    def on_call(self) -> Callable[..., Any]:
        """What Python calls when it begins a function.

        A function with all that it needs at hand: it runs for every operation.
        """
        # By the id of a function's code, which is kept so that the id stays its own:
        # to hash a code object takes as long as all the rest.
        kinds: dict[int, int] = {}
        codes: list[CodeType] = []
        known, settrace = kinds.get, sys.settrace
        pause = self.pause = new_pause()
        on_event = self.on_event()

        def begin(frame: FrameType, event: str, arg: Any) -> Any:
            code = frame.f_code
            kind = known(id(code))
            if kind is None:
                kind = kinds[id(code)] = self.kind_of(code)
                codes.append(code)
            if kind == OPERATION and not self.guarded:
                settrace(None)
                return pause()
            if kind == FOLLOWED:
                # The frame of a function that raised lives on while a handler has
                # the exception, and with it the pause that it began.
                if code.co_exceptiontable and handles_exceptions(code):
                    self.guarded += 1
                elif code.co_name == "__enter__":
                    self.on_with(frame)
                self.watcher.enters(frame)
                return on_event
            if kind == OPERATION or kind == OTHER:
                return None
            if kind == BIND:
                if self.guarded or not writes_only(frame.f_locals["self"]):
                    return None
                settrace(None)
                return pause()
            if kind == ENTERS:
                self.on_with(frame)
                return None
            return self.on_given(frame, kind)

        return begin

    def on_with(self, frame: FrameType) -> None:
        """A `with` begins, in code that may catch exceptions and keep them."""
        holder = frame.f_locals.get("self")
        generator = getattr(getattr(holder, "gen", None), "gi_code", None)
        if generator is not None and generator.co_filename.startswith(PACKAGE):
            return  # a context manager of minijax's, made of a generator
        caller = frame.f_back
        if caller is None or caller in self.withs or caller.f_trace is None:
            return
        code = caller.f_code
        if code.co_exceptiontable and not handles_exceptions(code):
            self.guarded += 1
            self.withs.add(caller)

    def on_given(self, frame: FrameType, kind: int) -> Any:
        """A function begins that may run one that it was given."""
        if kind == HOLDER:
            holder = frame.f_locals.get("self")
            if is_own(holder):
                if self.guarded:
                    return None
                sys.settrace(None)
                return self.pause()
            if isinstance(holder, JitFunction):
                return None  # the user's function begins inside, as any other
        self.guarded += 1
        frame.f_trace_lines = False
        return self.on_end

    def on_end(self, frame: FrameType, event: str, arg: Any) -> Any:
        """An operation that was given a function ends."""
        if event == "return":
            self.guarded -= 1
        return self.on_end

    def on_event(self) -> Callable[..., Any]:
        """What Python calls when it begins a line, or ends a function, of the user.

        A function with all that it needs at hand: it runs for every line.
        """
        line, leaves = self.watcher.line, self.watcher.leaves

        def go_on(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line":
                line(frame, frame.f_lineno)
            elif event == "return":
                code = frame.f_code
                if code.co_exceptiontable:
                    if frame in self.withs:
                        self.withs.discard(frame)
                        self.guarded -= 1
                    elif handles_exceptions(code):
                        self.guarded -= 1
                leaves(frame)
            # Python keeps a frame's function when that returns None. One that named
            # itself would be a cycle, and all that was recorded wait for its collector.

        return go_on

    def kind_of(self, code: CodeType) -> int:
        """What is to be done with a function."""
        kind = kind_in_minijax(code)
        if kind == OTHER and self.watcher.follows(code):
            return FOLLOWED
        foreign = not code.co_filename.startswith(PACKAGE)
        return ENTERS if foreign and code.co_name == "__enter__" else kind


def new_pause() -> Any:
    """A class whose instances call its `__del__` when they are dropped.

    One stands in an operation's frame as its tracing function, and Python drops it when
    the operation returns, since nothing else holds the frame. Here `__del__` is written
    in C: a Python function would cost as much as all the rest.
    """
    methods = {"__slots__": (), "__del__": nothing, "__call__": nothing}
    return type("Pause", (), methods)


def nothing(*args: Any) -> None:
    """Does nothing."""


@once_a_code
def kind_in_minijax(code: CodeType) -> int:
    """What is to be done with a function of minijax; OTHER for those of others."""
    if code in HOLDERS:
        return HOLDER
    if code is Primitive.bind.__code__:
        return BIND
    if code in SCOPES or is_operation(code):
        return OPERATION
    if code.co_filename.startswith(OPERATIONS) and not code.co_flags & PAUSES:
        return GIVEN_ONE
    return OTHER


@once_a_code
def handles_exceptions(code: CodeType) -> bool:
    """Whether a function has an `except` or a `finally`: more than its `with`s need."""
    raw = code.co_code
    entries = iter(code.co_exceptiontable)

    def number() -> int:
        """Six bits in each byte, the highest first; one bit says that more follow."""
        byte = next(entries)
        found = byte & 63
        while byte & 64:
            byte = next(entries)
            found = found << 6 | byte & 63
        return found

    with contextlib.suppress(StopIteration):
        while True:
            number(), number()
            handler = 2 * number()
            number()
            begins = raw[handler] == dis.opmap["PUSH_EXC_INFO"]
            if begins and raw[handler + 2] != dis.opmap["WITH_EXCEPT_START"]:
                return True
    return False


# Methods of objects that hold a function, the user's or one of minijax's own.
HOLDERS = {JitFunction.__call__.__code__}
HOLDERS |= {m.__code__ for m in vars(ufunc).values() if inspect.isfunction(m)}


def writes_only(primitive: Any) -> bool:
    """Whether to bind a primitive here is to write an equation, and no rule runs."""
    own = all_primitives.get(primitive.name) is primitive
    return own and type(state.trace) is DynamicJaxprTrace


# What `with named_scope(name):` runs.
Scope: Any = type(named_scope("any"))
SCOPES = {
    function.__code__
    for function in (
        named_scope,
        extend_name_stack,
        Scope.__init__,
        Scope.__enter__,
        Scope.__exit__,
    )
}


def is_own(holder: Any) -> bool:
    """Whether the held function is one of minijax's, as that of `jnp.add`."""
    function = getattr(holder, "_fun", None) or getattr(holder, "_func", None)
    code = getattr(function, "__code__", None)
    return code is not None and is_operation(code)


def is_operation(code: CodeType) -> bool:
    """Whether nothing of the user's can run while a function runs."""
    if code.co_flags & PAUSES:
        return False  # its frame lives on between two values
    if not code.co_filename.startswith(OPERATIONS) or code.co_filename.endswith(KEEPS):
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    return GIVEN.isdisjoint(code.co_varnames[:count])


# ---- sys.monitoring -----------------------------------------------------------------


def free_tool() -> int | None:
    """An id that no debugger or profiler uses; None if there is none left."""
    for tool in (4, 3):
        if sys.monitoring.get_tool(tool) is None:  # type: ignore[attr-defined]
            return tool
    return None


class Monitoring:
    """Lines by `sys.monitoring`: only functions that are followed cost anything."""

    def __init__(self, watcher: Watcher, tool: int) -> None:
        self.watcher = watcher
        self.tool = tool
        self.monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        # By ids: to hash a code object, Python goes through all of its instructions.
        self.followed: dict[int, CodeType] = {}

    def __enter__(self) -> None:
        monitoring, events = self.monitoring, self.monitoring.events
        self.thread = threading.get_ident()
        self.local = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        self.calls = {
            events.PY_START: self.on_start,
            events.PY_RESUME: self.on_resume,
            events.LINE: self.on_line,
            events.PY_RETURN: self.on_end,
            events.PY_YIELD: self.on_end,
            events.PY_UNWIND: self.on_end,
            events.PY_THROW: self.on_resume,
        }
        monitoring.use_tool_id(self.tool, "minijax")
        for event, call in self.calls.items():
            monitoring.register_callback(self.tool, event, call)
        everywhere = events.PY_START | events.PY_UNWIND | events.PY_THROW
        monitoring.set_events(self.tool, everywhere)
        # What was switched off for the last recording is wanted again.
        monitoring.restart_events()

    def __exit__(self, *exception: Any) -> None:
        monitoring = self.monitoring
        monitoring.set_events(self.tool, 0)
        for code in self.followed.values():
            monitoring.set_local_events(self.tool, code, 0)
        for event in self.calls:
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)
        # In a cycle, all that was recorded would wait for the garbage collector.
        self.calls.clear()

    def on_start(self, code: CodeType, offset: int) -> Any:
        """A function begins."""
        if threading.get_ident() != self.thread:
            return None
        if id(code) not in self.followed:
            if not self.watcher.follows(code):
                return self.monitoring.DISABLE
            self.followed[id(code)] = code
            self.monitoring.set_local_events(self.tool, code, self.local)
        self.watcher.enters(sys._getframe(1))
        return None

    def on_resume(self, code: CodeType, *where: Any) -> None:
        """A generator goes on."""
        if id(code) in self.followed and threading.get_ident() == self.thread:
            frame = sys._getframe(1)
            self.watcher.enters(frame)
            if code.co_name == "<genexpr>":
                # It is one line, which begins anew with each value.
                self.watcher.line(frame, frame.f_lineno)

    def on_line(self, code: CodeType, line: int) -> None:
        """A line is about to run."""
        if threading.get_ident() == self.thread:
            self.watcher.line(sys._getframe(1), line)

    def on_end(self, code: CodeType, *what: Any) -> None:
        """A function ends or yields."""
        if id(code) in self.followed and threading.get_ident() == self.thread:
            self.watcher.leaves(sys._getframe(1))
