"""A function's program at every level, with its equations marked.

Each equation of the jaxpr gets its number into its name stack. Lowering writes the name
stack into the location of every operation, and XLA keeps it as `op_name` through its
passes, also where it fuses, copies or rewrites. So an operation or instruction says
itself which equation it comes from: nothing is guessed. The names of instructions and
the program are the same as without the marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import minijax
from minijax.compile import mlir, targets
from minijax.compile.pjit import JitFunction
from minijax.compile.titles import title_of
from minijax.language.core import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.support.source_info import NameStack, SourceInfo
from minijax.transforms import discharge
from minijax_lab.explain import foreign
from minijax_lab.explain.calls import statics_in_words, without_statics
from minijax_lab.explain.jaxpr import JaxprRecording, Recorder

# Without "@", at which XLA cuts a name off.
MARK = "equation."
MARKED = re.compile(r"\bequation\.(\d+)/")


def equation_in(name: str) -> int | None:
    """The number of the innermost equation that a name was marked with."""
    found = MARKED.findall(name)
    return int(found[-1]) if found else None


def unmarked(name: str) -> str:
    """A name as it is without the marks."""
    return MARKED.sub("", name)


@dataclass
class Levels:
    """A program whose equations are marked, and the recording with their numbers."""

    name: str
    closed: ClosedJaxpr
    donated: tuple[bool, ...] | None
    options: dict[str, Any]
    jaxpr: JaxprRecording
    equations: list[JaxprEqn]  # by number, without marks

    def lower(self, platform: str) -> mlir.Lowered:
        """The marked program as StableHLO."""
        closed, donated = self.closed, self.donated
        if discharge.has_refs(closed):
            closed, donated, _ = discharge.pure_and_donated(closed, donated)
        return mlir.lower_to_module(closed, self.name, platform, donated)


def levels_of(function: Any, args: tuple, kwargs: dict[str, Any]) -> Levels:
    """The levels of a function on arguments, or of a jaxpr of minijax or of JAX."""
    statics: list[str] = []
    donated: tuple[bool, ...] | None = None
    options: dict[str, Any] = {}
    name = ""
    closed: Any
    if foreign.is_jaxpr(function):
        closed = foreign.as_own(function)
    elif isinstance(function, (ClosedJaxpr, Jaxpr)):
        closed = function
    else:
        stage = traced(function, args, kwargs)
        closed, donated, name = stage.jaxpr, stage._donated, stage.fun_name
        options = dict(stage._options.compiler_options)
        statics = statics_in_words(function, args, kwargs)
    if isinstance(closed, Jaxpr):
        closed = ClosedJaxpr(closed, ())
    title = title_of(function) if callable(function) else ""
    recorder = Recorder(closed.jaxpr, title, statics)
    recording = recorder.recording()
    program = Marker(recorder.equation_ids).closed(closed)
    return Levels(
        name=name or recording.name,
        closed=program,
        donated=donated,
        options=options,
        jaxpr=recording,
        equations=recorder.kept,
    )


def traced(function: Any, args: tuple, kwargs: dict) -> Any:
    """The stage of a function that is traced for arguments; plain ones are jitted."""
    jitted = function
    if not isinstance(function, JitFunction):
        called, args, kwargs = without_statics(function, function, args, kwargs)
        jitted = minijax.jit(called)
    return jitted.trace(*args, **kwargs)


class Marker:
    """Rebuilds a program with the number of each equation in its name stack.

    A program that is carried by several equations stays one program.
    """

    def __init__(self, numbers: dict[int, int]) -> None:
        self.numbers = numbers
        # By the id of the program, which stands beside so that it stays its own.
        self.jaxprs: dict[int, tuple[Jaxpr, Jaxpr]] = {}
        self.programs: dict[int, tuple[ClosedJaxpr, ClosedJaxpr]] = {}

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        found = self.programs.get(id(closed))
        if found is None:
            program = closed.replace(jaxpr=self.jaxpr(closed.jaxpr))
            found = self.programs[id(closed)] = (program, closed)
        return found[0]

    def jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        found = self.jaxprs.get(id(jaxpr))
        if found is None:
            program = jaxpr.replace(eqns=[self.equation(eqn) for eqn in jaxpr.eqns])
            found = self.jaxprs[id(jaxpr)] = (program, jaxpr)
        return found[0]

    def equation(self, eqn: JaxprEqn) -> JaxprEqn:
        number = self.numbers.get(id(eqn))
        params = {name: self.parameter(value) for name, value in eqn.params.items()}
        info = eqn.source_info
        if number is not None:
            # Outermost: what a transformation puts around a name stays around it.
            stack = NameStack(((f"{MARK}{number}", False), *info.name_stack.stack))
            info = SourceInfo(info.traceback, stack)
        return eqn.replace(params=params, source_info=info)

    def parameter(self, value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return self.closed(value)
        if isinstance(value, Jaxpr):
            return self.jaxpr(value)
        if type(value) is tuple:
            return tuple(self.parameter(item) for item in value)
        return value


def target_named(target: str | None) -> targets.Target:
    """The machine that a view was asked for; by default this machine's CPU."""
    return targets.find("cpu" if target is None else target)
