"""A function's program at every level, with its equations marked.

Each equation of the jaxpr gets its number into its name stack. Lowering writes the name
stack into the location of every operation, and XLA keeps it as `op_name` through its
passes, also where it fuses, copies or rewrites. So an operation or instruction says
itself which equation it comes from: nothing is guessed. The names of instructions and
the program are the same as without the marks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import minijax
from minijax.backend import dumps
from minijax.backend.build_settings import BuildSettings
from minijax.compile import cross_compiling, stages
from minijax.compile.titles import title_of
from minijax.core import lowering
from minijax.core.jit import JitFunction
from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.core.source_info import NameStack, SourceInfo
from minijax.transforms import discharge
from minijax_lab.explain import foreign
from minijax_lab.explain.calls import statics_in_words, without_statics
from minijax_lab.explain.equation_marks import MARK
from minijax_lab.explain.foreign_compiled import is_jitted, is_stage
from minijax_lab.explain.foreign_programs import ForeignProgram, traced_by_jax
from minijax_lab.explain.jaxpr import JaxprRecording, Recorder

STAGES = (stages.Traced, stages.Lowered, stages.Compiled, stages.CompiledForTarget)


@dataclass
class Levels:
    """A program whose equations are marked, and the recording with their numbers."""

    name: str
    closed: ClosedJaxpr
    donated: tuple[bool, ...] | None
    options: dict[str, Any]
    jaxpr: JaxprRecording
    equations: list[JaxprEqn]  # by number, without marks

    def lower(self, platform: str) -> lowering.Lowered:
        """The marked program as StableHLO."""
        closed, donated = self.closed, self.donated
        if discharge.has_refs(closed):
            closed, donated, _ = discharge.pure_and_donated(closed, donated)
        return lowering.lower_to_module(closed, self.name, platform, donated)


def levels_of(function: Any, args: tuple, kwargs: dict[str, Any]) -> Levels:
    """The levels of a function on arguments, of a stage of it, or of a jaxpr.

    A jaxpr, a traced or a jitted function of real JAX serves too: JAX traces, and
    minijax lowers.

    Raises TypeError for a program of JAX that has no jaxpr, or whose jaxpr has a
    primitive that minijax does not have, and for a program read from bytes.
    """
    statics: list[str] = []
    donated: tuple[bool, ...] | None = None
    options: dict[str, Any] = {}
    name = ""
    closed: Any
    traced_by_jax = foreign_jaxpr(function, args, kwargs)
    if traced_by_jax is not None:
        closed = ForeignProgram(traced_by_jax, "this view").closed
    elif isinstance(function, STAGES):
        stage = traced_stage(function)
        closed, donated, name = stage.jaxpr, stage._donated, stage.fun_name
    elif isinstance(function, (ClosedJaxpr, Jaxpr)):
        closed = function
    else:
        stage = traced(function, args, kwargs)
        closed, donated, name = stage.jaxpr, stage._donated, stage.fun_name
        options = dict(stage._options.compiler_options)
        statics = statics_in_words(function, args, kwargs)
    if isinstance(closed, Jaxpr):
        closed = ClosedJaxpr(closed, ())
    is_function = callable(function) and not isinstance(function, STAGES)
    is_function = is_function and traced_by_jax is None
    title = title_of(function) if is_function else name
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


def traced_stage(stage: Any) -> stages.Traced:
    """The first stage of a stage; TypeError if it was read from bytes."""
    while not isinstance(stage, stages.Traced):
        stage = stage._traced
    if stage._options is None:  # `deserialize_and_load` made it
        raise TypeError(
            "a program read from bytes has no jaxpr, which this view shows. Pass the "
            "function and its arguments."
        )
    return stage


def foreign_jaxpr(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The jaxpr of what real JAX made; None for anything else."""
    kind = type(function).__name__
    if foreign.is_jaxpr(function):
        return function
    if is_jitted(function):
        return function.trace(*args, **kwargs).jaxpr
    if not foreign.is_of_jax(function):
        return traced_by_jax(function, args, kwargs)
    if kind == "Traced":
        return function.jaxpr
    if is_stage(function):
        raise TypeError(
            f"a {kind} of JAX has no jaxpr, which this view shows. Pass the jitted "
            "function and its arguments, or jitted.trace(...); see.fusion takes the "
            f"{kind} itself."
        )
    return None


def traced(function: Any, args: tuple, kwargs: dict) -> Any:
    """The stage of a function that is traced for arguments; plain ones are jitted."""
    jitted = function
    if function is None:  # `jit(None)` is a decorator
        raise TypeError("A function and its arguments were expected, got None first.")
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


def target_named(target: str | None) -> cross_compiling.Target:
    """The machine that a view was asked for; by default this machine's CPU."""
    return cross_compiling.find("cpu" if target is None else target)


@contextlib.contextmanager
def compiled_with_dump(
    levels: Levels,
    machine: cross_compiling.Target,
    lowered: lowering.Lowered,
    **options: Any,
) -> Iterator[dumps.Dump]:
    """A context: the program compiled, with what XLA writes about it.

    Options are those of `dumps.compile_with_dump`: `passes`, `fusion_steps`.
    """
    cross_compiling.refuse_calls(machine, lowered)
    settings = BuildSettings(options=levels.options, fast_compile=False)
    callbacks = lowered.host_callbacks
    with (
        lowered.context,
        dumps.compile_with_dump(
            machine, lowered.module, settings, host_callbacks=callbacks, **options
        ) as dump,
    ):
        yield dump
