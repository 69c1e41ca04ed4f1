"""The recording behind `see.stages`: one function at every level, linked by equation.

The user's lines, the equations, the StableHLO and the compiled instructions. Each
operation says itself which equation it comes from (`levels.py`), so each user's line
reaches its instructions, and each instruction its lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain.compiled import CompiledRecording, compiled_of
from minijax_lab.explain.levels import levels_of, target_named
from minijax_lab.explain.lowering import LoweringRecording, lowering_of
from minijax_lab.explain.machine_code import (
    KernelCode,
    MachineCodeRecording,
    machine_code_of,
)
from minijax_lab.explain.passes import PassesRecording, passes_of
from minijax_lab.explain.recording import Recording, Span, count_in_words


@dataclass
class Stage:
    """A line of the user's, and what it is at every level, by number.

    `span` is None for equations that no line of the user's wrote.
    """

    span: Span | None
    equations: list[int]
    operations: list[int] = field(default_factory=list)  # lines of the StableHLO
    instructions: list[int] = field(default_factory=list)
    kernels: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class StagesRecording(Recording):
    """A function at every level. Its steps are the user's lines.

    `own` are the compiled instructions that belong to no equation: XLA made them.
    """

    kind = "stages"

    lowering: LoweringRecording
    compiled: CompiledRecording
    stages: list[Stage]
    own: list[int]
    # The machine code of the kernels and XLA's passes, where they were asked for.
    code: MachineCodeRecording | None = field(default_factory=lambda: None)
    passes: PassesRecording | None = field(default_factory=lambda: None)

    def code_of(self, kernel: int) -> KernelCode | None:
        """The code of a kernel by its number; None if no code was made for it."""
        if self.code is None:
            return None
        program = self.compiled.program
        name = program.instruction(program.kernels[kernel]).name
        return next((code for code in self.code.codes if code.kernel == name), None)

    def line_text(self, stage: Stage) -> str:
        """The user's line of a stage, as written."""
        if stage.span is None:
            return ""
        source = self.sources[stage.span.source]
        return source.lines[stage.span.line - source.first_line].strip()


def record_stages(
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    target: str | None = None,
    code: bool = False,
    passes: bool = False,
) -> StagesRecording:
    """Records a function at every level, as compiled for a target.

    With `code` also what XLA wrote for each kernel, with `passes` what each pass did.

    Raises as `record_compiled` does.
    """
    machine = target_named(target)
    levels = levels_of(function, args, kwargs)
    lowered = levels.lower(machine.platform)
    lowering = lowering_of(levels, machine.platform, lowered)
    compiled = compiled_of(levels, machine, lowered, before_fusion=False)
    stages = stages_of(lowering, compiled)
    record = levels.jaxpr
    outer = [equation for equation in record.equations if equation.parent is None]
    lines = sum(1 for stage in stages if stage.span is not None)
    told = (
        f"stages of {record.call}: {count_in_words(lines, 'line')}, "
        f"{count_in_words(len(outer), 'equation')}, "
        f"{count_in_words(lowering.operations, 'StableHLO operation')}"
    )
    return StagesRecording(
        call=record.call,
        headline=told,
        telling=telling(stages),
        sources=record.sources,
        lowering=lowering,
        compiled=compiled,
        stages=stages,
        own=compiled.unmapped,
        code=machine_code_of(levels, machine) if code else None,
        passes=passes_of(levels, machine) if passes else None,
    )


def stages_of(lowering: LoweringRecording, compiled: CompiledRecording) -> list[Stage]:
    """The lines of the user's with what became of each, in the program's order."""
    record = compiled.jaxpr
    found: dict[tuple[int, int] | None, Stage] = {}
    home: dict[int, Stage] = {}
    for equation in record.equations:
        span = equation.span
        place = None if span is None else (span.source, span.line)
        stage = found.setdefault(place, Stage(span, []))
        stage.equations.append(equation.id)
        home[equation.id] = stage
    for number, line in enumerate(lowering.lines):
        if line.equation is not None and line.operation:
            home[line.equation].operations.append(number)
    # A program that two equations carry stands under the first: what runs for another
    # is the other's as well.
    first = {equation.parent for equation in record.equations}
    others = {e.id for e in record.equations if e.programs and e.id not in first}
    program = compiled.program

    def stages_behind(number: int) -> list[Stage]:
        each = program.module.instructions[number]
        behind = [one for one in each.around if one in others]
        if each.equation is not None:
            behind.append(each.equation)
        return list({id(home[one]): home[one] for one in behind}.values())

    for instruction in program.module.instructions:
        for stage in stages_behind(instruction.id):
            stage.instructions.append(instruction.id)
    for number, kernel in enumerate(program.kernels):
        for member in (kernel.instruction, *kernel.members):
            for stage in stages_behind(member):
                if number not in stage.kernels:
                    stage.kernels.append(number)
    return list(found.values())


def telling(stages: list[Stage]) -> int:
    """The line with most instructions for each equation."""
    shares = [len(s.instructions) / max(1, len(s.equations)) for s in stages]
    return shares.index(max(shares)) if shares else 0
