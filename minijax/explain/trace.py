"""The recording behind `see.trace`: a function, traced, and watched while it is.

The function really is traced, as `make_jaxpr` does it. Meanwhile Python reports each
line of the user's code that it starts (`sys.settrace`), and the trace reports each
equation that it writes (the event `bind`). Together they say which expression wrote
which equation, and which lines ran in Python only and will not run again.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import io
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax import events, source_info
from minijax.api import make_jaxpr
from minijax.array import Array
from minijax.core import ClosedJaxpr, Jaxpr, Tracer, Var
from minijax.explain.jaxpr import JaxprRecording, Recorder
from minijax.explain.recording import (
    Recording,
    Sources,
    Span,
    count_in_words,
    file_label,
    signature,
)
from minijax.interpreters.partial_eval import DynamicJaxprTracer
from minijax.pjit import JitFunction
from minijax.tree_util import tree_leaves

LONGEST_TEXT = 60
MOST_NAMES = 12


@dataclass
class Name:
    """A local name and what it holds: a tracer with its variable, or a value."""

    name: str
    text: str
    variable: str  # the name of the jaxpr's variable, "" if there is none
    traced: bool


@dataclass
class TraceStep:
    """Something that happened: an equation, a line of Python only, a call, ..."""

    kind: str  # "equation", "py", "call", "print", "error"
    label: str
    span: Span | None
    equation: int | None  # its id in the jaxpr; None if it is no part of the result
    depth: int  # how many functions of the user are running
    function: str
    text: str  # what was printed, the error's message, the equation
    names: list[Name] = field(default_factory=list)  # what changed since the last step


@dataclass
class LineRuns:
    """How often a line was started, and how many equations it has written."""

    source: int
    line: int
    runs: int
    equations: int


@dataclass(kw_only=True)
class TraceRecording(Recording):
    """A function traced once: its steps, and the jaxpr that they wrote."""

    kind = "trace"

    steps: list[TraceStep]
    lines: list[LineRuns]
    jaxpr: JaxprRecording
    arguments: list[Name]
    constants: list[Name]  # arrays that the function closes over, with their names
    error: str


def record_trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Traces `function` on the given arguments, and records how.

    An exception of the function is recorded as its last step and not raised. Raises
    TypeError if `function` cannot be called.
    """
    if not callable(function):
        raise TypeError(
            f"see.trace takes a function and its arguments, and got "
            f"{type(function).__name__} first."
        )
    watch = _Watch(function)
    return watch.run(args, kwargs)


@dataclass
class _Frame:
    """A running function of the user."""

    statement: int | None = None  # first line of the statement that runs
    bound: int = 0  # equations written when it began
    depth: int = 0


class _Watch:
    """Watches one tracing. Everything that needs names waits until it is over."""

    def __init__(self, function: Callable[..., Any]) -> None:
        while isinstance(function, JitFunction):
            function = function.__wrapped__
        self.function = function
        self.sources = Sources()
        self.steps: list[TraceStep] = []
        self.frames: dict[types.FrameType, _Frame] = {}
        self.stack: list[types.FrameType] = []
        self.runs: dict[tuple[int, int], LineRuns] = {}
        self.bound = 0
        self.bound_eqns: list[tuple[int, Any]] = []  # (step, equation)
        self.outer: Any = None  # the trace that writes the result
        self.held: dict[str, Any] = {}
        self.variables: list[tuple[Name, Var]] = []
        self.arguments: list[Name] = []
        self.printed = io.StringIO()
        self.error: BaseException | None = None
        self.statements: dict[types.CodeType, dict[int, int]] = {}
        self.followed: dict[str, bool] = {}
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.installed = code is not None and is_installed(code.co_filename)

    # ---- running -------------------------------------------------------------------

    def run(self, args: tuple, kwargs: dict[str, Any]) -> TraceRecording:
        """Traces the function and returns what was seen."""

        @functools.wraps(self.function)
        def fresh(*arguments: Any, **named: Any) -> Any:
            # A function of its own: a kept program would show nothing.
            return self.function(*arguments, **named)

        closed: ClosedJaxpr | None = None
        with self.watching():
            try:
                closed = make_jaxpr(fresh)(*args, **kwargs)
            except Exception as error:
                self.error = error
        return self.recording(closed)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Listens to Python's lines and to the trace's equations."""
        before = sys.gettrace()
        with contextlib.redirect_stdout(_Printed(self)):
            with events.subscribe(self.listen):
                sys.settrace(self.on_call)
                try:
                    yield
                finally:
                    sys.settrace(before)

    # ---- Python --------------------------------------------------------------------

    def on_call(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """Python begins a function; only those of the user are followed."""
        code = frame.f_code
        file = code.co_filename
        followed = self.followed.get(file)
        if followed is None:
            followed = self.is_followed(file)
        if not followed:
            return None
        number = self.sources.add_code(code)
        if number is None:
            return None
        depth = len(self.frames)
        self.frames[frame] = _Frame(None, self.bound, depth)
        self.stack.append(frame)
        if depth and not code.co_name.startswith("<"):
            names = self.changed_names(frame, fresh=True)
            span = self.span_at(number, code.co_firstlineno)
            self.add("call", code.co_name, span, frame, "", names)
        elif not depth:
            self.arguments = self.changed_names(frame, fresh=True)
        return self.on_line

    def is_followed(self, file: str) -> bool:
        """Whether a file is the user's: an installed library only if it is traced."""
        of_user = source_info.is_user_filename(file)
        self.followed[file] = of_user and (self.installed or not is_installed(file))
        return self.followed[file]

    def on_line(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """Python begins a line, or ends a function, of the user."""
        if event == "line":
            state = self.frames.get(frame)
            if state is None:
                return None
            statement = self.statement_of(frame.f_code, frame.f_lineno)
            if statement != state.statement:
                self.end_statement(frame, state)
                state.statement = statement
                state.bound = self.bound
        elif event == "return":
            state = self.frames.get(frame)
            if state is not None:
                self.end_statement(frame, state)
                del self.frames[frame]
                self.stack.remove(frame)
        return self.on_line

    def end_statement(self, frame: types.FrameType, state: _Frame) -> None:
        """A statement is over: it wrote equations, or it was Python only."""
        line = state.statement
        number = self.sources.ids.get(frame.f_code)
        if line is None or number is None:
            return
        runs = self.runs.setdefault((number, line), LineRuns(number, line, 0, 0))
        runs.runs += 1
        runs.equations += self.bound - state.bound
        names = self.changed_names(frame)
        silent = self.bound == state.bound and runs.runs == 1
        if silent and not self.is_plain(runs):
            self.add("py", "py", self.span_at(number, line), frame, "", names)
        elif names and self.steps:
            # What a statement assigned is there once its last equation is.
            self.steps[-1].names.extend(names)
        state.statement = None

    def statement_of(self, code: types.CodeType, line: int) -> int | None:
        """The first line of the statement that a line belongs to; None for none."""
        table = self.statements.get(code)
        if table is None:
            table = self.statements[code] = statement_lines(code)
        return table.get(line, None if table else line)

    def span_at(self, number: int, line: int) -> Span:
        """The whole of a line, without its indentation."""
        source = self.sources.found[number]
        index = line - source.first_line
        text = source.lines[index] if 0 <= index < len(source.lines) else ""
        start = len(text) - len(text.lstrip())
        return Span(number, line, start, line, len(text))

    def changed_names(self, frame: types.FrameType, fresh: bool = False) -> list[Name]:
        """The local names that hold something else than when last asked."""
        if fresh:
            self.held = {}
        changed = []
        for name, value in list(frame.f_locals.items()):
            if name in self.held and self.held[name] is value:
                continue
            self.held[name] = value
            told = self.described(name, value)
            if told is not None:
                changed.append(told)
        return changed[-MOST_NAMES:]

    def described(self, name: str, value: Any) -> Name | None:
        """A name and what it holds; None for functions, modules and the like."""
        if isinstance(value, DynamicJaxprTracer):
            told = Name(name, value.aval.str_short(short_dtypes=True), "", True)
            if isinstance(value.atom, Var):
                self.variables.append((told, value.atom))
            return told
        if isinstance(value, Tracer):
            kind = type(value).__name__.removesuffix("Tracer")
            text = f"{value.aval.str_short(short_dtypes=True)} ({kind})"
            return Name(name, text, "", True)
        if isinstance(value, (Array, np.ndarray)):
            sizes = ",".join(map(str, value.shape))
            return Name(name, f"array {value.dtype}[{sizes}]", "", False)
        if callable(value) or isinstance(value, types.ModuleType):
            return None
        if isinstance(value, (dict, list, tuple)):
            leaves = tree_leaves(value)
            traced = sum(isinstance(leaf, Tracer) for leaf in leaves)
            if traced:
                text = f"{type(value).__name__} of {count_in_words(traced, 'tracer')}"
                return Name(name, text, "", True)
        try:
            text = repr(value)
        except Exception:
            text = type(value).__name__
        return Name(name, shortened(text), "", False)

    # ---- the trace -----------------------------------------------------------------

    def listen(self, name: str, data: dict[str, Any]) -> None:
        """The trace wrote an equation, or one began."""
        if name == "trace.begin" and self.outer is None:
            self.outer = data["trace"]
        if name != "bind":
            return
        eqn = data["eqn"]
        self.bound += 1
        # Its place in the source is looked up when all is over.
        self.bound_eqns.append((len(self.steps), eqn))
        frame = self.stack[-1] if self.stack else None
        self.add("equation", eqn.primitive.name, None, frame, "", [])

    def add(
        self,
        kind: str,
        label: str,
        span: Span | None,
        frame: types.FrameType | None,
        text: str,
        names: list[Name],
    ) -> None:
        """Adds a step."""
        depth = self.frames[frame].depth if frame in self.frames else 0
        function = frame.f_code.co_name if frame is not None else ""
        self.steps.append(
            TraceStep(kind, label, span, None, depth, function, text, names)
        )

    def note_printed(self, text: str) -> None:
        """The user's function printed something."""
        if self.steps and self.steps[-1].kind == "print":
            self.steps[-1].text += text
            return
        frame = self.stack[-1] if self.stack else None
        span = None
        if frame is not None:
            span = self.sources.span(frame.f_code, frame.f_lasti)
        self.add("print", "print", span, frame, text, [])

    # ---- the result ----------------------------------------------------------------

    def recording(self, closed: ClosedJaxpr | None) -> TraceRecording:
        """All that was seen, with the names that the printer gives to variables."""
        jaxpr = closed.jaxpr if closed is not None else self.unfinished()
        recorder = Recorder(jaxpr)
        printed = recorder.recording()
        for step, eqn in self.bound_eqns:
            number = recorder.equation_ids.get(id(eqn))
            self.steps[step].equation = number
            self.steps[step].span = self.sources.of_operation(eqn.source_info)
        for name, var in self.variables:
            number = recorder.variable_ids.get(var)
            name.variable = printed.variables[number].name if number is not None else ""
        message = ""
        if self.error is not None:
            message = self.note_error()
        constants = self.constants(closed, recorder, printed) if closed else []
        call = f"{name_of(self.function)}({signature(printed.inputs)})"
        only = self.lines_in_python()
        written = [step for step in self.steps if step.kind == "equation"]
        kept = [step for step in written if step.equation is not None]
        headline = f"trace of {call}: {count_in_words(len(kept), 'equation')}"
        if len(kept) < len(written):
            headline += f", {len(written) - len(kept):,} of programs in between"
        if only:
            lines = count_in_words(len(only), "line")
            headline += f"; {lines} ran in Python only and will not run again"
        if message:
            headline += f"; stopped by {type(self.error).__name__}"
        kinds = ("equation", "error")
        telling = [i for i, step in enumerate(self.steps) if step.kind in kinds]
        return TraceRecording(
            call=call,
            headline=headline,
            telling=telling[-1] if telling else max(0, len(self.steps) - 1),
            sources=self.sources.found,
            steps=self.steps,
            lines=list(self.runs.values()),
            jaxpr=printed,
            arguments=self.arguments,
            constants=constants,
            error=message,
        )

    def unfinished(self) -> Jaxpr:
        """The program as far as it had been written when the function raised."""
        if self.outer is None:
            return Jaxpr([], [], [], [])
        consts = [a for a, _ in self.outer.constants.values() if isinstance(a, Var)]
        trace = self.outer
        return Jaxpr(consts, trace.invars, [], trace.eqns, debug_info=trace.debug_info)

    def note_error(self) -> str:
        """Adds the step of the exception; returns its message."""
        assert self.error is not None
        message = str(self.error).strip()
        for file in self.sources.files:
            message = message.replace(file, file_label(file))
        span = None
        traceback = self.error.__traceback__
        function = ""
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if source_info.is_user_filename(code.co_filename):
                found = self.sources.span(code, traceback.tb_lasti)
                span = found or span
                function = code.co_name
            traceback = traceback.tb_next
        label = type(self.error).__name__
        step = TraceStep("error", label, span, None, 0, function, message)
        self.steps.append(step)
        return f"{label}: {message}"

    def lines_in_python(self) -> list[LineRuns]:
        """The statements that never wrote an equation."""
        return [
            runs
            for runs in self.runs.values()
            if not runs.equations and not self.is_plain(runs)
        ]

    def is_plain(self, runs: LineRuns) -> bool:
        """Whether a statement only hands on what is there: `return x`, a docstring."""
        source = self.sources.found[runs.source]
        text = source.lines[runs.line - source.first_line].strip()
        return is_plain_statement(text)

    def constants(
        self, closed: ClosedJaxpr, recorder: Any, printed: JaxprRecording
    ) -> list[Name]:
        """Arrays that the program closes over, by the name that the function has."""
        known: dict[int, str] = {}
        function = inspect.unwrap(self.function)
        cells = getattr(function, "__closure__", None) or ()
        code = getattr(function, "__code__", None)
        if code is not None:
            for name, cell in zip(code.co_freevars, cells):
                with contextlib.suppress(ValueError):
                    known[id(cell.cell_contents)] = f"{name}, closed over"
            for name in code.co_names:
                value = function.__globals__.get(name)
                if value is not None:
                    known.setdefault(id(value), f"{name}, a global")
        found = []
        for var, value in zip(closed.jaxpr.constvars, closed.consts):
            variable = printed.variables[recorder.variable_ids[var]]
            name = known.get(id(value), "made while tracing")
            found.append(Name(name, variable.type, variable.name, False))
        return found


class _Printed(io.TextIOBase):
    """Standard output while a function is watched."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def write(self, text: str) -> int:
        self.watch.note_printed(text)
        return len(text)


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    parts = file.replace("\\", "/").split("/")
    return "site-packages" in parts or "dist-packages" in parts


def name_of(function: Callable[..., Any]) -> str:
    """A function's name; of a lambda, "lambda"."""
    name = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else name


def shortened(text: str) -> str:
    """A text in at most `LONGEST_TEXT` letters, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."


def is_plain_statement(text: str) -> bool:
    """Whether a statement hands on names only, or is a docstring."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return text.startswith(('"""', "'''", "def ", "@"))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Return):
        value = statement.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        return all(part is None or isinstance(part, ast.Name) for part in parts)
    return isinstance(statement, (ast.FunctionDef, ast.Pass))


def statement_lines(code: types.CodeType) -> dict[int, int]:
    """For each line of a function, the first line of the statement it belongs to.

    Empty where the source cannot be parsed alone, as for a lambda inside of a call;
    then every line counts as its own statement.
    """
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return {}
    table: dict[int, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = node.end_lineno or node.lineno
        if body and isinstance(body, list) and isinstance(body[0], ast.stmt):
            last = max(node.lineno, body[0].lineno - 1)
        for line in range(node.lineno, last + 1):
            # Inner statements are walked after the outer ones that contain them.
            table[first + line - 1] = first + node.lineno - 1
    return table
