"""The recording behind `see.trace`: a function, traced, and watched while it is.

The function really is traced, as `make_jaxpr` does it. Meanwhile Python reports each
line of the user's code that it starts (`lines.py`), and the trace reports each
equation that it writes (the event `bind`). Together they say which expression wrote
which equation, and which lines ran in Python only and will not run again.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import get_ident
from typing import Any

import numpy as np

from minijax.compile.jit_api import make_jaxpr
from minijax.compile.titles import title_of
from minijax.core import events, source_info
from minijax.core.array import Array
from minijax.core.jit import JitFunction
from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, Tracer, Var
from minijax.core.partial_eval import DynamicJaxprTracer
from minijax.core.trees import tree_leaves
from minijax.support import event_watching
from minijax_lab.explain import leaks, lines
from minijax_lab.explain.calls import (
    inputs_in_words,
    names_of_values,
    statics_in_words,
    without_statics,
)
from minijax_lab.explain.foreign_programs import refuse_function
from minijax_lab.explain.jaxpr import JaxprRecording, Recorder, leave_open, unfinished
from minijax_lab.explain.leaf_values import rows_or_means
from minijax_lab.explain.lines import PAUSES
from minijax_lab.explain.recording import (
    PARTS,
    Recording,
    Sources,
    Span,
    count_in_words,
    file_label,
    is_installed,
    later,
    signature,
    span_text,
)
from minijax_lab.explain.small_values import (
    Unasked,
    Values,
    cheap_inputs,
    check_choice,
    compute,
    copies,
    unread,
    why_not,
)
from minijax_lab.explain.statements import is_plain_statement, statements_of

LONGEST_TEXT = 60
MOST_NAMES = 12
NOTHING = object()
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Values whose text can be made later, since nobody can change them.
SIMPLE = frozenset((bool, bytes, complex, float, int, str, type(None)))

# Whether a frame's `f_locals` shows what happens later: since Python 3.13 it looks into
# the frame, before that it is a copy.
LIVE = sys.version_info >= (3, 13)


@dataclass
class Name:
    """A local name and what it holds: a tracer with its variable, or a value."""

    name: str
    text: str
    variable: str  # the name of the jaxpr's variable, "" if there is none
    traced: bool
    depth: int = 0  # of the function whose name it is: how many run around it


@dataclass
class TraceStep:
    """Something that happened: an equation, a line of Python only, a call, ..."""

    kind: str  # "equation", "py", "call", "print", "error", "leak"
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
    runs: int  # of the line itself: lambdas and comprehensions on it do not count
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
    # What arrays hold when the program runs, by the names of its variables.
    values: dict[str, Values] = field(default_factory=dict)
    no_values: str = field(default_factory=str)  # the exception that running it raised
    # Why it was not run unasked, where that has to be said.
    unasked: str = field(default_factory=str)


def record_trace(
    function: Callable[..., Any],
    *args: Any,
    values: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Traces `function` on the given arguments, and records how.

    An exception of the function is recorded as its last step and not raised. The
    program is run as well, when the recording is first read: with `values=None` where
    that costs little, with True in any case, effects too. Raises TypeError if
    `function` cannot be called, or has to run and an argument has no value.
    """
    if not callable(function):
        raise TypeError(
            f"see.trace takes a function and its arguments, and got "
            f"{type(function).__name__} first."
        )
    refuse_function(function, "see.trace", (*args, *kwargs.values()), "minijax")
    check_choice(values, "see.trace", args, kwargs)
    watch = _Watch(function)
    return watch.run(args, kwargs, values)


@dataclass(slots=True)
class _Statement:
    """A statement of a function of the user, as its lines lead to it."""

    line: int | None  # the first one; None for lines that belong to no statement
    names: tuple[str, ...] | None  # what it can change; None: any name
    runs: LineRuns | None = None  # once it has run


@dataclass(slots=True)
class _Frame:
    """A running function of the user."""

    source: int
    lines: dict[int, _Statement]
    place: tuple[int, str]  # how many functions run around it, its name
    within: bool  # a lambda or a comprehension: a part of a line of another function
    locals: Mapping[str, Any]
    held: dict[str, Any] = field(default_factory=dict)  # by its names, when last asked
    part: bool = False  # a comprehension: its statement is the one around it
    statement: _Statement | None = None  # the one that runs
    written: int = 0  # equations written when it began
    unsure: bool = False  # whether names may have changed that no statement tells of


class _Watch:
    """Watches one tracing, and keeps little more than what it is told.

    The recording makes texts, places in the source and the names of variables when a
    view first reads it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.given = function  # knows which arguments are static
        while isinstance(function, JitFunction):
            function = function._fun
        self.function = function
        self.sources = Sources()
        # Steps, and equations that are to be made steps. What happens often is kept in
        # flat lists: each object more is one for the garbage collector.
        self.happened: list[TraceStep | JaxprEqn] = []
        self.told = 0  # how many of them are steps
        # From which on they happened in another function: its depth, and its name.
        self.places: list[tuple[int, tuple[int, str]]] = []
        # Names, each with what it holds since the step of that number, and with the
        # depth of the function whose name it is.
        self.named: list[tuple[int, int, str, Any]] = []
        self.frames: dict[types.FrameType, _Frame] = {}
        self.stack: list[types.FrameType] = []
        self.place: tuple[int, str] = (0, "")
        # 1 once the function has ended: a rule that runs later is no part of it.
        self.after = 0
        self.lines: list[LineRuns] = []
        self.spans: dict[tuple[int, int], Span] = {}  # by source and line
        self.runs: dict[tuple[int, int], LineRuns] = {}  # by source and line
        # By the id of a function's code, which `sources` keeps, and by line.
        self.statements: dict[int, dict[int, _Statement]] = {}
        self.outer: Any = None  # the trace that writes the result
        self.traces: list[Any] = []  # all that began while watching
        self.kept: list[leaks.Kept] = []  # traced values that outlived their traces
        self.arguments: list[tuple[int, int, str, Any]] = []
        self.printed = io.StringIO()
        self.error: BaseException | None = None
        self.followed: dict[str, bool] = {}
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.installed = code is not None and is_installed(code.co_filename)

    # ---- running -------------------------------------------------------------------

    def run(
        self, args: tuple, kwargs: dict[str, Any], values: bool | None
    ) -> TraceRecording:
        """Traces the function and returns what was seen."""

        @functools.wraps(self.function)
        def fresh(*arguments: Any, **named: Any) -> Any:
            # A function of its own: a kept program would show nothing.
            with lines.watching(self):
                return self.function(*arguments, **named)

        self.statics = statics_in_words(self.given, args, kwargs)
        closed: ClosedJaxpr | None = None
        with self.watching():
            try:
                called, args, kwargs = without_statics(self.given, fresh, args, kwargs)
                closed = make_jaxpr(called)(*args, **kwargs)
            except Exception as error:
                self.error = error
        while self.stack:  # those through which an exception went unseen
            self.leaves(self.stack[-1])
        if closed is None:
            return self.recording(None, {})
        self.find_leaks()
        # A global may hold something else when a view first reads the recording.
        known = names_of_values(self.function)
        given: Given | None = None
        leaves = tree_leaves((args, kwargs))
        if values:
            given = Given(copies(leaves), copies(closed.consts))
        elif values is None:
            read, consts = cheap_inputs(leaves), cheap_inputs(closed.consts)
            given = Given(read, consts)
            given.choose(closed, unread([*leaves, *closed.consts], [*read, *consts]))

        def finish() -> TraceRecording:
            made = self.recording(closed, known, given)
            made.unasked = given.unasked if given is not None else ""
            return made

        return later(TraceRecording, finish)

    def find_leaks(self) -> None:
        """Finds the statements that keep traced values beyond their traces."""
        traces, self.traces = self.traces, []
        codes = [
            code for number, code in self.sources.ids.values() if number is not None
        ]
        if not any(map(leaks.may_keep, codes)):
            return
        for tracer in leaks.alive_after(traces):
            for source in self.sources.found:
                found = leaks.keeping_assignment(tracer, source)
                if found is not None and found not in self.kept:
                    self.kept.append(found)

    def note_leaks(self, steps: list[TraceStep]) -> str:
        """Adds a step for each leak; returns what the headline says of them."""
        for kept in self.kept:
            line = span_text(self.sources.found, kept.span)
            text = (
                f"A traced value stays in {kept.holder} after this call. It has no "
                "number: code that uses it gets an UnexpectedTracerError. "
                f"{leaks.instead_of(line)}"
            )
            label = f"leaks into {kept.holder}"
            steps.append(TraceStep("leak", label, kept.span, None, 0, "", text))
        holders = list(dict.fromkeys(kept.holder for kept in self.kept))
        return f"; a traced value leaks into {', '.join(holders)}" if holders else ""

    def inputs(self, printed: JaxprRecording) -> list[str]:
        """The inputs by their arguments, and the static ones as they are."""
        labels = [v.label for v in printed.variables if v.label]
        return [*inputs_in_words(labels, printed.inputs), *self.statics]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Listens to what is printed and to the trace's equations."""
        with contextlib.redirect_stdout(_Printed(self)):
            with event_watching.subscribe(self.listener()):
                yield

    # ---- Python --------------------------------------------------------------------

    def follows(self, code: types.CodeType) -> bool:
        """Whether a function is the user's, and its source is known."""
        file = code.co_filename
        followed = self.followed.get(file)
        if followed is None:
            # An installed library is followed only if it is what is traced.
            followed = source_info.is_user_filename(file)
            followed = followed and (self.installed or not is_installed(file))
            self.followed[file] = followed
        return followed and self.sources.add_code(code) is not None

    def enters(self, frame: types.FrameType) -> None:
        """A function of the user begins."""
        code = frame.f_code
        number = self.sources.add_code(code)
        assert number is not None
        depth = len(self.frames) + self.after
        self.moves((depth, code.co_name))
        lines = self.statements.setdefault(id(code), {})
        within = depth > 0 and code.co_name.startswith("<")
        state = _Frame(number, lines, self.place, within, frame.f_locals)
        state.part = code.co_name in PARTS
        self.frames[frame] = state
        self.stack.append(frame)
        if not depth:
            before, self.named = self.named, []
            self.note_names(state, frame.f_locals, 0)
            self.arguments, self.named = self.named, before
        elif not within:
            span = self.span_at(number, code.co_firstlineno)
            self.add("call", code.co_name, span, "")
            self.note_names(state, frame.f_locals, len(self.happened) - 1)
        # A generator may go on in the middle of a statement, which did not begin here.
        state.unsure = within or bool(code.co_flags & PAUSES)

    def moves(self, place: tuple[int, str]) -> None:
        """What happens from now on happens in another function."""
        self.place = place
        self.places.append((len(self.happened), place))

    def line(self, frame: types.FrameType, line: int) -> None:
        """Python begins a line of the user."""
        state = self.frames.get(frame)
        if state is None:
            return
        statement = state.lines.get(line)
        if statement is None:
            statement = self.new_statement(frame.f_code, state, line)
        before = state.statement
        if statement is not before:
            if before is not None:
                self.end_statement(frame, state, before)
            state.statement = statement
            state.written = len(self.happened) - self.told

    def new_statement(
        self, code: types.CodeType, state: _Frame, line: int
    ) -> _Statement:
        """The statement that a line belongs to which has not run before."""
        known = statements_of(code)
        first = known.of_line.get(line) if known.of_line else line
        statement = None
        if first is not None and first != line:
            statement = state.lines.get(first)
        if statement is None:
            names = known.changed_by(first) if first is not None else None
            statement = _Statement(first, names)
            if first is not None:
                state.lines[first] = statement
        state.lines[line] = statement
        return statement

    def leaves(self, frame: types.FrameType) -> None:
        """A function of the user ends."""
        state = self.frames.get(frame)
        if state is None:
            return
        if state.statement is not None:
            self.end_statement(frame, state, state.statement)
        del self.frames[frame]
        if self.stack[-1] is frame:
            self.stack.pop()
        else:
            self.stack.remove(frame)
        if not self.frames:
            self.after = 1
        self.moves(self.frames[self.stack[-1]].place if self.stack else (0, ""))

    def end_statement(
        self, frame: types.FrameType, state: _Frame, statement: _Statement
    ) -> None:
        """A statement is over: it wrote equations, or it was Python only."""
        line = statement.line
        if line is None:
            state.unsure = True  # what such a line changed is not known
            return
        count = len(self.happened)
        if not state.part:
            runs = statement.runs
            if runs is None:
                runs = statement.runs = self.runs_of(state.source, line)
            runs.runs += not state.within
            written = count - self.told - state.written
            if written:
                runs.equations += written
            elif runs.runs == 1 and not state.within and not self.is_plain(runs):
                self.add("py", "py", self.span_at(state.source, line), "", state.place)
                count += 1
        # What a statement assigned is there once its last equation is.
        if state.unsure:
            state.unsure = False
            self.note_names(state, frame.f_locals, count - 1)
        elif statement.names != ():
            now = state.locals if LIVE else frame.f_locals
            self.note_names(state, now, count - 1, statement.names)

    def runs_of(self, source: int, line: int) -> LineRuns:
        """How often a statement ran, also as a part of other functions."""
        runs = self.runs.get((source, line))
        if runs is None:
            runs = self.runs[source, line] = LineRuns(source, line, 0, 0)
            self.lines.append(runs)
        return runs

    def span_at(self, number: int, line: int) -> Span:
        """The whole of a line, without its indentation."""
        found = self.spans.get((number, line))
        if found is not None:
            return found
        source = self.sources.found[number]
        index = line - source.first_line
        text = source.lines[index] if 0 <= index < len(source.lines) else ""
        start = len(text) - len(text.lstrip())
        span = self.spans[number, line] = Span(number, line, start, line, len(text))
        return span

    def note_names(
        self,
        state: _Frame,
        now: Mapping[str, Any],
        step: int,
        names: Iterable[str] | None = None,
    ) -> None:
        """Notes the local names that hold something else than when last asked.

        `names` are those that can have changed; by default all.
        """
        held, named, depth = state.held, self.named, state.place[0]
        if names is None:
            # What a comprehension goes through has a name of Python's own: ".0".
            names = [name for name in now if name[0] != "."]
        before = len(named)
        for name in names:
            value = now.get(name, NOTHING)
            if value is NOTHING or held.get(name, NOTHING) is value:
                continue
            held[name] = value
            if name == "_":
                continue  # the name of a value that is not used
            kind = type(value)
            if kind is DynamicJaxprTracer:
                named.append((step, depth, name, value.atom))
            elif kind in SIMPLE:
                named.append((step, depth, name, value))
            else:
                told = described(name, value)
                if told is not None:
                    named.append((step, depth, name, told))
        if len(named) > before + MOST_NAMES:
            del named[before:-MOST_NAMES]

    # ---- the trace -----------------------------------------------------------------

    def listener(self) -> events.Subscriber:
        """The subscriber for equations that a trace wrote, and for its beginning."""
        append, thread = self.happened.append, get_ident()

        def listen(name: str, data: dict[str, Any]) -> None:
            if name == "bind":
                if get_ident() == thread:
                    append(data["eqn"])
            elif name == "trace.begin":
                self.traces.append(data["trace"])
                self.outer = self.outer or data["trace"]

        return listen

    def add(
        self,
        kind: str,
        label: str,
        span: Span | None,
        text: str,
        place: tuple[int, str] | None = None,
    ) -> None:
        """Adds a step that is no equation."""
        depth, function = place or self.place
        self.happened.append(TraceStep(kind, label, span, None, depth, function, text))
        self.told += 1

    def note_printed(self, text: str) -> None:
        """The user's function printed something."""
        last = self.happened[-1] if self.happened else None
        if isinstance(last, TraceStep) and last.kind == "print":
            last.text += text
            return
        frame = self.stack[-1] if self.stack else None
        span = None
        if frame is not None:
            span = self.sources.span(frame.f_code, frame.f_lasti)
        self.add("print", "print", span, text)

    # ---- the result ----------------------------------------------------------------

    def recording(
        self,
        closed: ClosedJaxpr | None,
        known: dict[int, str],
        given: Given | None = None,
    ) -> TraceRecording:
        """All that was seen, with the names that the printer gives to variables."""
        jaxpr = closed.jaxpr if closed is not None else self.unfinished()
        recorder = Recorder(jaxpr)
        printed = recorder.recording()
        if closed is None:
            leave_open(printed)

        def named(depth: int, name: str, value: Any) -> Name:
            if isinstance(value, Name):
                return replace(value, depth=depth)
            if type(value) in SIMPLE:
                return Name(name, shortened(repr(value)), "", False, depth)
            number = recorder.variable_ids.get(value) if type(value) is Var else None
            variable = printed.variables[number].name if number is not None else ""
            text = value.aval.str_short(short_dtypes=True)
            return Name(name, text, variable, True, depth)

        steps: list[TraceStep] = []
        depth, function = 0, ""
        places = iter([*self.places, (len(self.happened), (0, ""))])
        moved, place = next(places)
        for position, step in enumerate(self.happened):
            while moved <= position:
                depth, function = place
                moved, place = next(places)
            if not isinstance(step, TraceStep):
                eqn = step
                number = recorder.equation_ids.get(id(eqn))
                span = self.sources.of_operation(eqn.source_info)
                label = eqn.primitive.name
                step = TraceStep("equation", label, span, number, depth, function, "")
            steps.append(step)
        for position, depth, name, value in self.named:
            if position >= 0:  # else it is older than all steps
                steps[position].names.append(named(depth, name, value))
        message = ""
        if self.error is not None:
            message = self.note_error(steps)
        constants = constants_of(closed, known, recorder, printed) if closed else []
        call = f"{title_of(self.function)}({signature(self.inputs(printed))})"
        only = self.lines_in_python()
        written = [step for step in steps if step.kind == "equation"]
        kept = [step for step in written if step.equation is not None]
        # Counted in the program: of an inner function that was traced before, only the
        # call is written now.
        every = printed.equations
        outer = sum(1 for equation in every if equation.parent is None)
        headline = f"trace of {call}: {count_in_words(outer, 'equation')}"
        if outer < len(every):
            headline += f", {len(every):,} with those of inner programs"
        if len(kept) < len(written):
            headline += f", {len(written) - len(kept):,} of programs in between"
        if only:
            lines = count_in_words(len(only), "line")
            headline += f"; {lines} ran in Python only and will not run again"
        if message:
            headline += f"; stopped by {type(self.error).__name__}"
        headline += self.note_leaks(steps)
        first_leak = len(steps) - len(self.kept) if self.kept else 0
        kinds = ("equation", "error")
        telling = [i for i, step in enumerate(steps) if step.kind in kinds]
        values, no_values = values_of(closed, given, recorder, printed)
        return TraceRecording(
            call=call,
            headline=headline,
            telling=first_leak or (telling[-1] if telling else max(0, len(steps) - 1)),
            sources=self.sources.found,
            steps=steps,
            lines=self.lines,
            jaxpr=printed,
            arguments=[named(0, name, value) for *_, name, value in self.arguments],
            constants=constants,
            error=message,
            values=values,
            no_values=no_values,
        )

    def unfinished(self) -> Jaxpr:
        """The program as far as it had been written when the function raised."""
        if self.outer is None:
            return Jaxpr([], [], [], [])
        consts = [*self.outer.constants.values()]
        trace = self.outer
        return unfinished(consts, trace.invars, trace.eqns, trace.debug_info)

    def note_error(self, steps: list[TraceStep]) -> str:
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
        steps.append(step)
        return f"{label}: {message}"

    def lines_in_python(self) -> list[LineRuns]:
        """The statements that never wrote an equation."""
        return [
            runs
            for runs in self.lines
            if not runs.equations and not self.is_plain(runs)
        ]

    def is_plain(self, runs: LineRuns) -> bool:
        """Whether a statement only hands on what is there: `return x`, a docstring."""
        source = self.sources.found[runs.source]
        text = source.lines[runs.line - source.first_line].strip()
        return is_plain_statement(text)


def constants_of(
    closed: ClosedJaxpr, known: dict[int, str], recorder: Any, printed: JaxprRecording
) -> list[Name]:
    """Arrays that the program closes over, by the name that the user's code has."""
    found = []
    for var, value in zip(closed.jaxpr.constvars, closed.consts):
        variable = printed.variables[recorder.variable_ids[var]]
        name = known.get(id(value), "closed over, or made while tracing")
        found.append(Name(name, variable.type, variable.name, False))
    return found


@dataclass
class Given:
    """What a program is run on, None for what is not read; `chosen` are the ids of the
    equations that run (None: all), `unasked` is why others do not."""

    inputs: Sequence[Any]
    consts: Sequence[Any]
    chosen: set[int] | None = None
    unasked: str = ""

    def known(self, closed: ClosedJaxpr) -> dict[Any, Any]:
        """The values of a program's variables before it runs."""
        found = dict(zip(closed.jaxpr.constvars, self.consts, strict=True))
        found.update(zip(closed.jaxpr.invars, self.inputs, strict=True))
        return {var: value for var, value in found.items() if value is not None}

    def choose(self, closed: ClosedJaxpr, why: str) -> None:
        """Chooses what runs without a request for values; `why` is what is known to
        be left before."""
        unasked = Unasked(self.known(closed), why)
        self.chosen = unasked.chosen(closed.eqns)
        self.unasked = unasked.why


def values_of(
    closed: ClosedJaxpr | None,
    given: Given | None,
    recorder: Recorder,
    printed: JaxprRecording,
) -> tuple[dict[str, Values], str]:
    """What arrays hold when the program runs on the arguments, and what running it
    raised."""
    if closed is None or given is None:
        return {}, ""
    found = given.known(closed)
    rows: dict[str, Values] = {}

    def run() -> None:
        for eqn in closed.eqns:
            if given.chosen is None or id(eqn) in given.chosen:
                compute(eqn, found)
        known = {
            printed.variables[number].name: found[var]
            for var, number in recorder.variable_ids.items()
            if var in found
        }
        rows.update(rows_or_means(known))

    error = why_not(run)
    return ({} if error else rows), error


def described(name: str, value: Any) -> Name | None:
    """A name and what it holds; None for functions, modules and the like."""
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


class _Printed(io.TextIOBase):
    """Standard output while a function is watched."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def write(self, text: str) -> int:
        self.watch.note_printed(text)
        return len(text)


def shortened(text: str) -> str:
    """A text in at most `LONGEST_TEXT` letters, on one line, without addresses."""
    text = ADDRESS.sub("", " ".join(text.split()))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."
