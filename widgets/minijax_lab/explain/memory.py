"""The recording behind `see.memory`: what is alive after each equation of a program.

The count follows the order of the jaxpr: an array is alive from the equation that makes
it to the last one that reads it, results to the end. Arguments and constants belong to
the caller and are counted apart; of what autodiff keeps, constants are a part, as JAX
counts them, and arguments are not. Calls are opened, so that their equations stand in
line; a loop or a branch is one point, which needs for a moment as much as the peak of
its body. XLA orders and fuses the equations anew, so what it allocates is another
number: it comes from the compiled program.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import minijax
from minijax.compile import stages
from minijax.compile.titles import titles
from minijax.core.jit import JitFunction
from minijax.core.language import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Tracer,
    Var,
    programs_in_params,
)
from minijax.support import event_watching
from minijax.values.inner_programs import InnerProgram, inner_programs
from minijax_lab.explain import foreign
from minijax_lab.explain.buffers import compiled_memory
from minijax_lab.explain.calls import program_of, without_statics
from minijax_lab.explain.foreign_programs import refuse_function
from minijax_lab.explain.recording import (
    Recording,
    Sources,
    Span,
    later,
    signature,
    span_text,
)
from minijax_lab.explain.tree import size_in_words


@dataclass
class Value:
    """An array of the program: its type, its bytes, and when it is alive.

    `born` and `dies` are points; what is there from the start is born at -1.
    """

    id: int
    type: str
    shape: list[int]
    bytes: int
    role: str  # "argument", "constant", "literal", "value" or "result"
    name: str  # an argument's path, else the primitive that makes it
    born: int
    dies: int
    span: Span | None = None
    kept: bool = False  # by autodiff, for the backward pass
    backward: bool = False  # made by a transposed equation


@dataclass
class Point:
    """An equation: what is alive while it runs, without arguments and constants.

    `inside` are the bytes that the body of a loop or branch needs at its peak.
    """

    primitive: str
    makes: str
    live: int
    inside: int
    span: Span | None


@dataclass
class Account:
    """One program's memory. Bytes throughout; None for what could not be recorded.

    `compiled` are the bytes that XLA allocates by kind.
    """

    name: str
    points: list[Point]
    values: list[Value]
    peak: int  # the point
    arguments: int
    kept: int | None
    compiled: dict[str, int] | None = None

    @property
    def most(self) -> int:
        """The bytes alive at the peak."""
        return self.points[self.peak].live if self.points else 0

    def alive(self, point: int) -> list[Value]:
        """The values that are alive while an equation runs, largest first."""
        found = [v for v in self.values if v.born <= point <= v.dies and v.born >= 0]
        return sorted(found, key=lambda value: (-value.bytes, value.id))

    def alive_at_each(self, values: list[Value]) -> Iterator[list[Value]]:
        """Which of some values `alive` tells of each point, one after another."""
        born: dict[int, list[Value]] = {}
        for value in values:
            if value.born >= 0:
                born.setdefault(value.born, []).append(value)
        alive: list[Value] = []
        for point in range(len(self.points)):
            alive = [value for value in alive if value.dies >= point]
            for value in born.get(point, ()):
                if value.dies >= point:
                    insort(alive, value, key=lambda v: (-v.bytes, v.id))
            yield alive

    def counts(self) -> list[tuple[int, int]]:
        """At each point, how many values are alive, and the bytes of those kept."""
        alive, kept = ([0] * (len(self.points) + 1) for _ in range(2))
        for value in self.values:
            if value.born >= 0:
                alive[value.born] += 1
                alive[value.dies + 1] -= 1
                if value.kept:
                    kept[value.born] += value.bytes
                    kept[value.dies + 1] -= value.bytes
        return list(zip(itertools.accumulate(alive), itertools.accumulate(kept)))[:-1]


@dataclass(kw_only=True)
class MemoryRecording(Recording):
    """The memory of a program, and of a second one beside it. Steps are its points."""

    kind = "memory"

    accounts: list[Account] = field(default_factory=list)
    # By a factory, as `telling` is: the recording is finished later.
    platform: str = field(default_factory=lambda: "cpu")
    # Facts that a jaxpr of JAX does not carry, a sentence each.
    lost: list[str] = field(default_factory=list)

    def line_of(self, span: Span | None) -> str:
        """A line of the user's source with its number, "" if it is not known."""
        if span is None:
            return ""
        source = self.sources[span.source]
        text = source.lines[span.line - source.first_line].strip()
        return f"{span.line}  {text}"

    def expression(self, span: Span | None) -> str:
        """The user's expression that a span covers."""
        return span_text(self.sources, span)


def record_memory(
    function: Any,
    args: tuple,
    kwargs: dict,
    beside: Any = None,
    compiled: bool = True,
    target: str | None = None,
) -> MemoryRecording:
    """Records what `function` keeps alive on arguments; `beside` on the same ones.

    `target` is the machine that it is compiled for; None is the default device.
    """
    functions = [function] if beside is None else [function, beside]
    traces = []
    platform = "cpu"
    for each in functions:
        refuse_function(each, "see.memory", (*args, *kwargs.values()))
        trace = traced(each, args, kwargs)
        if compiled and not foreign.is_jaxpr(each) and not isinstance(each, PROGRAMS):
            if target is None:
                trace.compiled, platform = allocated(each, args, kwargs)
            else:
                memory = compiled_memory(each, args, kwargs, target)
                trace.compiled, platform = memory.kinds, memory.target
        traces.append(trace)

    def finish() -> MemoryRecording:
        sources = Sources()
        accounts = [account_of(trace, sources) for trace in traces]
        first = accounts[0]
        return MemoryRecording(
            call=first.name,
            headline=headline(accounts),
            telling=first.peak,
            sources=sources.found,
            accounts=accounts,
            platform=platform,
            lost=list(LOST) if any(map(foreign.is_jaxpr, functions)) else [],
        )

    # Which arrays are alive when is counted for who looks.
    return later(MemoryRecording, finish)


# What a jaxpr of JAX lacks here; it is only looked at.
LOST = (
    "what autodiff keeps: a jaxpr of a gradient has the forward and the backward pass "
    "in one list, and jax.ad_checkpoint.print_saved_residuals tells what JAX keeps.",
    "what the compiler allocates: jax.jit(f).lower(...).compile().memory_analysis() "
    "tells it.",
)

PROGRAMS = (ClosedJaxpr, Jaxpr)


def headline(accounts: list[Account]) -> str:
    """One sentence: the peak, and what autodiff asks to keep."""
    first = accounts[0]
    name = first.name.rpartition("(")[0]
    if not first.points:
        return f"memory of {name}: no equations, so nothing is made"
    told = f"memory of {name}: peak {size_in_words(first.most)}"
    if len(accounts) > 1:
        told += f", beside {size_in_words(accounts[1].most)}"
    if first.kept is not None:
        told += f"; autodiff asks to keep {size_in_words(first.kept)}"
        if len(accounts) > 1 and accounts[1].kept is not None:
            told += f", beside {size_in_words(accounts[1].kept)}"
    return told


def allocated(function: Any, args: tuple, kwargs: dict) -> tuple[dict[str, int], str]:
    """What the compiled program allocates, in bytes by kind, and the platform."""
    jitted = function
    if not isinstance(function, JitFunction):
        called, args, kwargs = without_statics(function, function, args, kwargs)
        jitted = minijax.jit(called)
    compiled = jitted.lower(*args, **kwargs).compile()
    stats = compiled.memory_analysis()
    kinds = {
        "temporaries": stats.temp_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "arguments": stats.argument_size_in_bytes,
    }
    return kinds, minijax.default_backend()


@dataclass
class Traced:
    """A program, the names of its arguments, and what autodiff kept meanwhile.

    `kept` has the residuals of each linearization, as the tracers that they were.
    """

    closed: Any
    names: list[str]
    kept: list[list[Any]]
    compiled: dict[str, int] | None = None


def traced(function: Any, args: tuple, kwargs: dict) -> Traced:
    """Traces a function on arguments; a jaxpr is taken as it is."""
    kept: list[list[Any]] = []
    depth = 0

    def hear(name: str, data: dict[str, Any]) -> None:
        nonlocal depth
        if name == "linearize.begin":
            depth += 1
        elif name == "linearize.end":
            depth -= 1
            if not depth:
                kept.append(list(data["residuals"]))

    names: list[str] = []
    if foreign.is_jaxpr(function):
        closed: Any = foreign.as_own(function)
    elif isinstance(function, PROGRAMS):
        closed = function
    else:
        with event_watching.subscribe(hear):
            if isinstance(function, JitFunction):
                closed = stages.trace(function, *args, **kwargs).jaxpr
            else:
                closed = program_of(function, args, kwargs)
        names = argument_names(function, args, kwargs)
    return Traced(closed, names, kept)


def account_of(trace: Traced, sources: Sources) -> Account:
    """The account of a program."""
    closed = trace.closed
    counter = Counter(sources)
    account = counter.account(closed, trace.names)
    account.compiled = trace.compiled
    if trace.kept:
        residuals = {
            value.id: value
            for group in trace.kept
            for residual in group
            if (value := counter.value_of(residual)) is not None
            and value.role != "argument"
        }
        for value in residuals.values():
            value.kept = True
        account.kept = sum(value.bytes for value in residuals.values())
        # What stayed an array while the program was written: it is closed over.
        every = itertools.chain.from_iterable(trace.kept)
        arrays = (r for r in every if hasattr(r, "nbytes"))
        held = {id(r): r for r in arrays if not isinstance(r, Tracer) and r.shape}
        account.kept += sum(r.nbytes for r in held.values())
    return account


def argument_names(function: Callable, args: tuple, kwargs: dict) -> list[str]:
    """The names of a function's array arguments, with key paths, in order."""
    signature_of = getattr(function, "_signature", None)
    if signature_of is None:
        signature_of = minijax.jit(function)._signature
    return [str(n) for n in signature_of.leaf_names(signature_of.bind(args, kwargs))]


def bytes_of(aval: Any) -> int:
    """The bytes of an array; 0 for what is none, such as a token."""
    return int(aval.size * aval.dtype.itemsize) if isinstance(aval, ShapedArray) else 0


class Counter:
    """Walks a program in order and notes when each array is made and last read."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.values: list[Value] = []
        self.points: list[tuple[JaxprEqn, list[int], int, Span | None]] = []
        self.ids: dict[Var, int] = {}

    def account(self, program: Jaxpr | ClosedJaxpr, names: list[str]) -> Account:
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        self.constants(program)
        for position, variable in enumerate(jaxpr.invars):
            name = names[position] if position < len(names) else "argument"
            self.add(variable, "argument", name)
        self.walk(jaxpr)
        last = len(self.points) - 1
        for atom in jaxpr.outvars:
            if isinstance(atom, Var):
                value = self.values[self.ids[atom]]
                value.dies = last
                if value.role == "value":
                    value.role = "result"
        points = self.counted()
        peak = max(range(len(points)), key=lambda i: points[i].live, default=0)
        outside = [v for v in self.values if v.role in ("argument", "constant")]
        name = titles.get(jaxpr, jaxpr.debug_info.func_name)
        types = [v.aval.str_short(short_dtypes=True) for v in jaxpr.invars]
        name = "lambda" if name == "<lambda>" else name
        return Account(
            name=f"{name}({signature(types)})",
            points=points,
            values=self.values,
            peak=peak,
            arguments=sum(value.bytes for value in outside),
            kept=None,
        )

    def constants(self, program: Jaxpr | ClosedJaxpr) -> None:
        """Counts the arrays that a program and those inside of it close over, each
        once: a function that is called twice reads one array."""
        numbers: dict[int, int] = {}
        left: list[Jaxpr | ClosedJaxpr] = [program]
        seen: set[int] = set()
        while left:
            each = left.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            held: Sequence[Any] = ()
            if isinstance(each, ClosedJaxpr):
                held, each = each.consts, each.jaxpr
            for variable, value in zip(each.constvars, held or each.constvars):
                if id(value) in numbers:
                    self.ids[variable] = numbers[id(value)]
                else:
                    numbers[id(value)] = self.add(variable, "constant", "constant")
            for eqn in each.eqns:
                left += programs_in_params(eqn.params)

    def walk(self, jaxpr: Jaxpr, call: Span | None = None) -> None:
        for eqn in jaxpr.eqns:
            span = self.sources.of_operation(eqn.source_info, call)
            programs = inner_programs(eqn)
            if len(programs) == 1 and is_call(programs[0], eqn):
                self.open(eqn, programs[0], span)
                continue
            point = len(self.points)
            for atom in eqn.invars:
                if isinstance(atom, Var):
                    self.read(self.values[self.ids[atom]], point)
            inside = max((peak_of(program.jaxpr) for program in programs), default=0)
            made = []
            for variable in eqn.outvars:
                name = eqn.primitive.name
                made.append(self.add(variable, "value", name, point, eqn, span))
            self.points.append((eqn, made, inside, span))

    def open(self, eqn: JaxprEqn, program: InnerProgram, call: Span | None) -> None:
        """Walks a called program as if it stood in the caller's place."""
        inner = program.jaxpr
        for variable, position in zip(inner.invars, program.inputs, strict=True):
            self.same(variable, eqn.invars[position])
        self.walk(inner, call)
        for variable, atom in zip(eqn.outvars, inner.outvars, strict=True):
            self.same(variable, atom)

    def same(self, variable: Var, atom: Any) -> None:
        """Another name for a value; a literal takes no memory of its own."""
        if isinstance(atom, Literal):
            self.add(variable, "literal", "literal")
        else:
            self.ids[variable] = self.ids[atom]

    def add(
        self,
        variable: Var,
        role: str,
        name: str,
        born: int = -1,
        eqn: JaxprEqn | None = None,
        span: Span | None = None,
    ) -> int:
        number = len(self.values)
        self.ids[variable] = number
        aval = variable.aval
        self.values.append(
            Value(
                id=number,
                type=aval.str_short(short_dtypes=True),
                shape=[int(size) for size in getattr(aval, "shape", ())],
                bytes=0 if isinstance(variable, DropVar) else bytes_of(aval),
                role=role,
                name=name,
                born=born,
                dies=born,
                span=span,
                backward=eqn is not None and is_transposed(eqn),
            )
        )
        return number

    def read(self, value: Value, point: int) -> None:
        value.dies = max(value.dies, point)

    def value_of(self, residual: Any) -> Value | None:
        """The value that a tracer stood for while the program was written."""
        variable = getattr(residual, "atom", None)
        number = self.ids.get(variable) if isinstance(variable, Var) else None
        return None if number is None else self.values[number]

    def counted(self) -> list[Point]:
        """The points with their live bytes: what is born is added, what died taken."""
        change = [0] * (len(self.points) + 1)
        for value in self.values:
            if value.born >= 0:
                change[value.born] += value.bytes
                change[value.dies + 1] -= value.bytes
        points = []
        live = 0
        for (eqn, made, inside, span), more in zip(self.points, change):
            live += more
            points.append(
                Point(
                    primitive=eqn.primitive.name,
                    makes=", ".join(self.values[i].type for i in made) or "nothing",
                    live=live + inside,
                    inside=inside,
                    span=span,
                )
            )
        return points


def is_transposed(eqn: JaxprEqn) -> bool:
    """Whether an equation belongs to a backward pass, by its scopes."""
    return "transpose(" in str(eqn.source_info.name_stack)


def is_call(program: InnerProgram, eqn: JaxprEqn) -> bool:
    """Whether an equation runs its program exactly once, on its own inputs."""
    once = program.carry is None and not program.decides
    same = len(program.jaxpr.outvars) == len(eqn.outvars)
    return once and same and eqn.primitive.name not in LOOPS


# One program each, run more or less than once.
LOOPS = {"scan", "while", "cond", "pallas_call"}


def peak_of(jaxpr: Jaxpr) -> int:
    """The most bytes alive at once in the body of a loop or branch."""
    counter = Counter(Sources())
    account = counter.account(jaxpr, [])
    return account.most
