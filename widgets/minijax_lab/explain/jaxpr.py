"""The recording behind `see.jaxpr`: a jaxpr as plain data, tied to its own text.

The text is the one the printer makes, letter for letter. The printer says which part
of each line is which variable or equation, so nothing here parses text. Variables and
equations have small whole numbers as ids, in the order in which they are printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.compile.titles import title_of, titles
from minijax.core.language import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    jaxprs_in_params,
)
from minijax.values import print_options
from minijax_lab.explain import causes, foreign
from minijax_lab.explain.calls import (
    has_path,
    inputs_in_words,
    program_of,
    statics_in_words,
)
from minijax_lab.explain.foreign_programs import traced_by_jax
from minijax_lab.explain.recording import (
    Recording,
    Sources,
    Span,
    count_in_words,
    signature,
    span_text,
)
from minijax_lab.explain.words import meaning

LONGEST_PARAMETER = 200
ADDRESS = " at 0x"
# Kinds of rules that write equations of a backward pass.
BACKWARD = ("transpose", "sum of cotangents")


@dataclass
class Variable:
    """A variable: where it is defined (None: it comes in) and where it is used."""

    id: int
    name: str
    type: str
    role: str  # "input", "constant" or "value"
    definition: int | None
    uses: list[int] = field(default_factory=list)
    returned: bool = False
    label: str = ""  # of an input: the argument, and the way into it


def is_path(label: str) -> bool:
    """Whether a label tells more than a letter does: `params['w']`, not `x`."""
    return has_path(label)


@dataclass
class Equation:
    """One equation. `parent` is the equation whose program it belongs to, if any.

    An operand is a variable's id, or a literal's text. `part` is "backward" for what
    backward mode wrote, "kept" for what such equations read, and "" for others, or
    where causes were not recorded.
    """

    id: int
    parent: int | None
    primitive: str
    operands: list[int | str]
    results: list[int]
    parameters: dict[str, str]
    printed: list[str]  # names of the parameters that the printer shows
    meaning: str
    span: Span | None
    programs: int = 0
    # What wrote it, in words, and the rules in between; "" where it was not recorded.
    story: str = ""
    rules: list[str] = field(default_factory=list)
    order: str = ""  # in which transformations came
    part: str = ""
    # The results with None for those that nothing reads, as the program's outputs go.
    places: list[int | None] = field(default_factory=list)


@dataclass
class Program:
    """A program: the whole one, or one that an equation carries.

    `name` is the parameter that holds it, such as `body_jaxpr` or `branches 0`. An
    output is a variable's id, or a literal's text.
    """

    parent: int | None
    name: str
    inputs: list[int]
    outputs: list[int | str]
    equations: list[int]


@dataclass
class Piece:
    """A part of a printed line: plain text, or a variable's name."""

    text: str
    variable: int | None = None
    defines: bool = False


@dataclass
class Line:
    """One printed line, and the equation that it shows (None: the frame around)."""

    pieces: list[Piece]
    equation: int | None


@dataclass(kw_only=True)
class JaxprRecording(Recording):
    """All that a view of a jaxpr draws. Its steps are the equations."""

    kind = "jaxpr"

    name: str
    inputs: list[str]
    outputs: list[str]
    variables: list[Variable]
    equations: list[Equation]
    lines: list[Line]
    programs: list[Program] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The jaxpr as printed."""
        return "\n".join("".join(p.text for p in line.pieces) for line in self.lines)

    def span_text(self, equation: Equation) -> str:
        """The user's expression that made an equation, "" if it is not known."""
        return span_text(self.sources, equation.span)


def record_call(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> JaxprRecording:
    """Records the jaxpr of a function for the arguments of a call, with causes.

    A function that calls JAX's, or arrays of JAX, are for JAX to trace.
    """
    if (closed := traced_by_jax(function, args, kwargs)) is not None:
        return record_jaxpr(closed)
    statics = statics_in_words(function, args, kwargs)
    with causes.recording():
        jaxpr = program_of(function, args, kwargs).jaxpr
    return Recorder(jaxpr, title_of(function), statics).recording()


def record_jaxpr(closed: Any) -> JaxprRecording:
    """Records a jaxpr of minijax or of JAX; raises TypeError if it is none."""
    if foreign.is_jaxpr(closed):
        closed = foreign.as_own(closed)
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(
            f"record_jaxpr takes a jaxpr, such as make_jaxpr(f)(x) returns, and got "
            f"{type(closed).__name__}."
        )
    return Recorder(jaxpr).recording()


class Recorder:
    """Collects a jaxpr's variables, equations and lines, and gives them ids."""

    def __init__(
        self, jaxpr: Jaxpr, title: str = "", statics: Sequence[str] = ()
    ) -> None:
        self.jaxpr = jaxpr
        self.title = title or titles.get(jaxpr, "")
        self.statics = statics
        self.variables: list[Variable] = []
        self.programs: list[Program] = []
        self.equations: list[Equation] = []
        self.sources = Sources()
        self.variable_ids: dict[Var, int] = {}
        self.equation_ids: dict[int, int] = {}
        self.seen: set[int] = set()
        # Keeps the equations alive whose `id` stands in `equation_ids`.
        self.kept: list[JaxprEqn] = []

    def recording(self) -> JaxprRecording:
        self.visit(self.jaxpr, parent=None)
        self.find_kept()
        lines = list(self.printed_lines())
        self.find_printed_parameters(lines)
        telling = self.telling()
        name = self.title or self.jaxpr.debug_info.func_name
        name = "lambda" if name == "<lambda>" else name
        types = [v.aval.str_short(short_dtypes=True) for v in self.jaxpr.invars]
        names = self.jaxpr.debug_info.arg_names
        if len(names) == len(types):
            for variable, label in zip(self.jaxpr.invars, names):
                self.variables[self.variable_ids[variable]].label = label
        inputs = [*inputs_in_words(names, types), *self.statics]
        call = f"{name}({signature(inputs)})"
        return JaxprRecording(
            call=call,
            headline=f"jaxpr of {call}: {self.finding()}",
            telling=telling,
            sources=self.sources.found,
            name=name,
            inputs=types,
            outputs=[v.aval.str_short(short_dtypes=True) for v in self.jaxpr.outvars],
            variables=self.variables,
            equations=self.equations,
            lines=lines,
            programs=self.programs,
        )

    # ---- structure -----------------------------------------------------------------

    def visit(self, jaxpr: Jaxpr, parent: int | None, name: str = "") -> None:
        if id(jaxpr) in self.seen:
            return
        self.seen.add(id(jaxpr))
        program = Program(parent, name, [], [], [])
        self.programs.append(program)
        for variable in jaxpr.constvars:
            program.inputs.append(self.add_variable(variable, "constant", None))
        for variable in jaxpr.invars:
            program.inputs.append(self.add_variable(variable, "input", None))
        for eqn in jaxpr.eqns:
            program.equations.append(self.visit_equation(eqn, parent))
        for atom in jaxpr.outvars:
            if isinstance(atom, Literal):
                program.outputs.append(literal_text(atom))
            else:
                program.outputs.append(self.variable_ids[atom])
                self.variables[self.variable_ids[atom]].returned = True

    def visit_equation(self, eqn: JaxprEqn, parent: int | None) -> int:
        number = len(self.equations)
        self.kept.append(eqn)
        self.equation_ids[id(eqn)] = number
        operands: list[int | str] = []
        for atom in eqn.invars:
            if isinstance(atom, Literal):
                operands.append(literal_text(atom))
                continue
            operands.append(self.variable_ids[atom])
            uses = self.variables[self.variable_ids[atom]].uses
            if not uses or uses[-1] != number:
                uses.append(number)
        programs = named_programs(eqn)
        cause = causes.cause_of(eqn)
        within = self.sources.place(cause.within if cause else None)
        call = None if parent is None else self.equations[parent].span
        equation = Equation(
            id=number,
            parent=parent,
            primitive=eqn.primitive.name,
            operands=operands,
            results=[],
            parameters=parameters_as_text(eqn),
            printed=[],
            meaning=meaning(eqn.primitive.name, eqn.params),
            span=self.sources.of_operation(eqn.source_info, call),
            programs=len(programs),
            story=causes.in_words(cause) if cause is not None else "",
            rules=causes.moments_of(cause, within),
            order=causes.order_in_words(str(eqn.source_info.name_stack), cause),
        )
        self.equations.append(equation)
        if cause is not None and any(rule.kind in BACKWARD for rule in cause.rules):
            equation.part = "backward"
        for name, program in programs:
            self.visit(program, number, name)
        for variable in eqn.outvars:
            dropped = isinstance(variable, DropVar)
            place = None if dropped else self.add_variable(variable, "value", number)
            equation.places.append(place)
            if place is not None:
                equation.results.append(place)
        return number

    def find_kept(self) -> None:
        """Notes which equations are read by those of a backward pass."""
        for variable in self.variables:
            if variable.definition is None:
                continue
            made = self.equations[variable.definition]
            readers = (self.equations[use] for use in variable.uses)
            if not made.part and any(one.part == "backward" for one in readers):
                made.part = "kept"

    def add_variable(self, variable: Var, role: str, definition: int | None) -> int:
        number = len(self.variables)
        self.variable_ids[variable] = number
        kind = variable.aval.str_short(short_dtypes=True)
        self.variables.append(Variable(number, "", kind, role, definition))
        return number

    # ---- text ----------------------------------------------------------------------

    def printed_lines(self) -> Iterator[Line]:
        """Yields the printed lines, cut where the printer says a variable stands."""
        spans: list[list[tuple[int, int, Any]]] = []
        text = print_options.pretty_print(self.jaxpr, use_color=False, source_map=spans)
        for number, line in enumerate(text.split("\n")):
            marks = sorted(
                spans[number] if number < len(spans) else [], key=lambda mark: mark[0]
            )
            yield self.cut(line, marks)

    def cut(self, line: str, marks: list[tuple[int, int, Any]]) -> Line:
        pieces: list[Piece] = []
        equation: int | None = None
        done = 0
        for start, end, source in marks:
            if isinstance(source, JaxprEqn):
                number = self.equation_ids.get(id(source))
                # A line that opens with the end of one equation's inner program shows
                # that equation; otherwise its first equation is the one it shows.
                equation = number if equation is None else equation
                continue
            if not isinstance(source, Var) or source not in self.variable_ids:
                continue
            if start > done:
                pieces.append(Piece(line[done:start]))
            number = self.variable_ids[source]
            name = line[start:end]
            self.variables[number].name = name
            defines = line[end : end + 1] == ":"
            pieces.append(Piece(name, number, defines))
            done = end
        if done < len(line):
            pieces.append(Piece(line[done:]))
        return Line(pieces, equation)

    def find_printed_parameters(self, lines: list[Line]) -> None:
        """Notes which parameters stand in the text of each equation's own lines."""
        for line in lines:
            if line.equation is None:
                continue
            equation = self.equations[line.equation]
            text = "".join(piece.text for piece in line.pieces)
            for name in equation.parameters:
                shown = re.search(rf"(?<!\w){re.escape(name)}=", text)
                if shown and name not in equation.printed:
                    equation.printed.append(name)

    # ---- what to look at first -----------------------------------------------------

    def telling(self) -> int:
        """Returns the equation whose result is used most, else the last one."""
        best: int | None = None
        most = 1
        for variable in self.variables:
            uses = len(variable.uses)
            if variable.role == "value" and uses > most:
                most = uses
                best = variable.definition
        if best is None and self.equations:
            outer = [e.id for e in self.equations if e.parent is None]
            best = outer[-1]
        return best or 0

    def finding(self) -> str:
        """Returns the headline's sentence about the program."""
        outer = sum(1 for equation in self.equations if equation.parent is None)
        found = count_in_words(outer, "equation")
        if not self.equations:
            return f"{found}; what comes out is what came in"
        if outer < len(self.equations):
            found += f", {len(self.equations):,} with those of inner programs"
        reused = [v for v in self.variables if v.role == "value" and len(v.uses) > 1]
        if not reused:
            return f"{found}; no intermediate is used twice"
        most = max(reused, key=lambda variable: len(variable.uses))
        times = "twice" if len(most.uses) == 2 else f"{len(most.uses)} times"
        if len(reused) == 1:
            return f"{found}; one intermediate, {most.name}, is used {times}"
        return (
            f"{found}; {len(reused):,} intermediates are used more than once, "
            f"{most.name} {times}"
        )


def unfinished(
    consts: list[Var], inputs: list[Var], eqns: list[JaxprEqn], debug_info: Any
) -> Jaxpr:
    """A program as far as it was written, with names for results nobody reads yet."""
    read = {atom for eqn in eqns for atom in eqn.invars if isinstance(atom, Var)}
    results = [var for eqn in eqns for var in eqn.outvars]
    unread = [v for v in results if v not in read and not isinstance(v, DropVar)]
    return Jaxpr(consts, inputs, unread, eqns, debug_info=debug_info)


def literal_text(atom: Literal) -> str:
    """Returns a literal as the listing shows it."""
    return f"{atom.val}:{atom.aval.str_short(short_dtypes=True)}"


def named_programs(eqn: JaxprEqn) -> list[tuple[str, Jaxpr]]:
    """Returns the programs that an equation carries, with their parameters' names."""
    found = []
    for name, value in sorted(eqn.params.items()):
        inner = list(jaxprs_in_params({name: value}))
        for number, program in enumerate(inner):
            found.append((f"{name} {number}" if len(inner) > 1 else name, program))
    return found


def leave_open(recording: JaxprRecording) -> None:
    """Takes back what `unfinished` made up: its program returns nothing yet."""
    for variable in recording.variables:
        variable.returned = False
    recording.outputs = []
    recording.programs[0].outputs = []
    recording.lines[-1] = Line([Piece("    ...")], None)


def parameters_as_text(eqn: JaxprEqn) -> dict[str, str]:
    """Returns an equation's parameters as short texts; programs are left out, and
    objects that have no text of their own.
    """
    texts: dict[str, str] = {}
    for name, value in sorted(eqn.params.items()):
        parts = value if isinstance(value, (tuple, list)) and value else [value]
        if all(isinstance(part, (Jaxpr, ClosedJaxpr)) for part in parts):
            continue
        text = str(value)
        if ADDRESS in text:
            continue  # a function, an object of ours: its place in memory tells nothing
        if len(text) > LONGEST_PARAMETER:
            text = text[:LONGEST_PARAMETER] + "..."
        texts[name] = text
    return texts
