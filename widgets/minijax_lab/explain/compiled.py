"""The recording of a compiled program, and of what it would be without fusion.

From any instruction to its equations and the user's lines, and back: each equation
carries its number through the compiler (see `levels.py`). Instructions that XLA made on
its own have no equation; they are listed apart.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from minijax.backend import executables
from minijax.backend.build_settings import BuildSettings
from minijax.compile import cross_compiling
from minijax.core import compiler, hlo, lowering, runtime
from minijax_lab.explain import foreign_compiled, long_programs
from minijax_lab.explain.foreign_programs import is_of_jaxs
from minijax_lab.explain.fusion_groups import grouped
from minijax_lab.explain.hlo_text import Instruction, Module, parse
from minijax_lab.explain.jaxpr import JaxprRecording
from minijax_lab.explain.kernels import NO_KERNELS, Kernel, Total, kernels_of, total_of
from minijax_lab.explain.levels import Levels, levels_of, target_named
from minijax_lab.explain.recording import Recording, count_in_words
from minijax_lab.explain.tree import size_in_words

# The passes that put operations into one kernel. What stays then: XLA for CPUs and
# GPUs wraps each single operation as a fusion of its own, which is no fusion here.
FUSING = {
    "cpu": "fusion,dot-library-rewriter",
    "cuda": "fusion,priority-fusion,multi_output_fusion,triton-softmax-rewriter",
    "tpu": "tpu_fusion",
}


@dataclass
class CompiledProgram:
    """A compiled program as data: instructions and kernels.

    `cost` is XLA's own estimate ("flops", "bytes accessed"; empty if it gives none),
    `memory` the bytes that it allocates by kind. A long program without fusion has
    neither: only its text was awaited.
    """

    module: Module
    kernels: list[Kernel]
    cost: dict[str, float]
    memory: dict[str, int]

    @property
    def bytes(self) -> int:
        """The bytes that a run reads and writes (see `Total`)."""
        return int(self.traffic.amount)

    @property
    def traffic(self) -> Total:
        """The bytes that a run reads and writes, and what the sum stands for."""
        return total_of(self.module, self.kernels, lambda kernel: kernel.bytes)

    @property
    def flops(self) -> int:
        """The arithmetic operations of a run (see `Total`)."""
        counted = total_of(self.module, self.kernels, lambda kernel: kernel.flops)
        return int(counted.amount)

    def instruction(self, kernel: Kernel) -> Instruction:
        """The instruction of a kernel."""
        return self.module.instructions[kernel.instruction]


@dataclass(kw_only=True)
class CompiledRecording(Recording):
    """A program compiled for a target. Its steps are its kernels.

    `unfused` is the same program compiled with the passes in `switched_off` left out;
    None where the compiler takes no such order, and then `unfused_because` says why.
    """

    kind = "compiled"

    target: str
    platform: str
    jaxpr: JaxprRecording
    program: CompiledProgram
    unfused: CompiledProgram | None
    switched_off: str
    unfused_because: str = ""
    unmapped: list[int] = field(default_factory=list)

    def equations_of(self, instruction: int) -> list[int]:
        """The equations behind an instruction; of a fusion those of all in it."""
        module = self.program.module
        found: set[int] = set()
        todo = [instruction]
        while todo:
            each = module.instructions[todo.pop()]
            if each.equation is not None:
                found.add(each.equation)
            for computation in each.called:
                todo += module.computations[computation].instructions
        return sorted(found)

    def instructions_of(self, equation: int) -> list[int]:
        """The instructions that come from an equation, or from one that it carries."""
        inside = self.within(equation)
        return [
            each.id
            for each in self.program.module.instructions
            if each.equation in inside or inside.intersection(each.around)
        ]

    def within(self, equation: int) -> set[int]:
        """An equation and those of the programs that it carries."""
        found = {equation}
        for each in self.jaxpr.equations:  # a parent stands before its children
            if each.parent in found:
                found.add(each.id)
        return found

    def lines(self) -> dict[tuple[int, int], list[int]]:
        """The equations of each line of the user's source: by source and line."""
        found: dict[tuple[int, int], list[int]] = {}
        for equation in self.jaxpr.equations:
            if equation.span is not None:
                place = (equation.span.source, equation.span.line)
                found.setdefault(place, []).append(equation.id)
        return found

    def lines_of(self, instruction: int) -> list[tuple[int, int]]:
        """The lines of the user's source behind an instruction."""
        behind = set(self.equations_of(instruction))
        return [place for place, made in self.lines().items() if behind & set(made)]

    def without_equation(self) -> list[int]:
        """The instructions that XLA made on its own."""
        return [
            each.id
            for each in self.program.module.instructions
            if each.opcode not in NO_KERNELS and not self.equations_of(each.id)
        ]

    def without_instructions(self) -> list[int]:
        """The equations that left no instruction: folded, merged, simplified away."""
        made = self.program.module.instructions
        left = {e for each in made for e in (each.equation, *each.around)}
        gone = []
        for equation in self.jaxpr.equations:
            if not self.within(equation.id) & left:
                gone.append(equation.id)
        return gone


def record_compiled(
    function: Any, args: tuple, kwargs: dict[str, Any], target: str | None = None
) -> CompiledRecording:
    """Records a function's program as compiled for a target, with and without fusion.

    The function may be one that real JAX jitted, or a program that it lowered or
    compiled: then JAX compiles, and operations stand for equations.

    Raises ValueError for an unknown target, ModuleNotFoundError for one whose compiler
    is not installed.
    """
    if (
        callable(function)
        and not foreign_compiled.is_stage(function)
        and is_of_jaxs(function, (args, kwargs))
    ):
        function = sys.modules["jax"].jit(function)  # as it is, if it is jitted
    if foreign_compiled.is_jitted(function):
        function = function.lower(*args, **kwargs)
    if foreign_compiled.is_stage(function):
        return compiled_by_jax(function, target)
    machine = target_named(target)
    return compiled_of(levels_of(function, args, kwargs), machine)


def compiled_of(
    levels: Levels,
    machine: cross_compiling.Target,
    lowered: lowering.Lowered | None = None,
    before_fusion: bool = True,
) -> CompiledRecording:
    """The recording of levels that may have been lowered already.

    Without `before_fusion` only one program is compiled: without fusion XLA takes ten
    times as long for 4,000 operations.
    """
    lowered = levels.lower(machine.platform) if lowered is None else lowered
    cross_compiling.refuse_calls(machine, lowered)
    program = program_of(compile_now(machine, lowered, levels.options), levels.jaxpr)
    names = (machine.name, machine.platform)
    if not before_fusion:
        return recording_of(levels.jaxpr, *names, program, None, "not asked for")
    unfused, because = without_fusion(levels, machine, lowered)
    return recording_of(levels.jaxpr, *names, program, unfused, because)


def without_fusion(
    levels: Levels, machine: cross_compiling.Target, lowered: lowering.Lowered
) -> tuple[CompiledProgram | None, str]:
    """The program compiled without the passes that fuse; None with the reason."""
    switched_off = FUSING[machine.platform]
    options = {**levels.options, "xla_disable_hlo_passes": switched_off}
    is_long = len(levels.equations) > long_programs.LONG
    # What calls Python needs this process.
    if is_long and machine.name == "cpu" and not lowered.host_callbacks:
        module = hlo.module_to_bytes(lowered.module)
        text, because = long_programs.text_of(module, options)
        return (program_in(text, levels.jaxpr) if text else None), because
    try:
        executable = compile_now(machine, lowered, options)
    except runtime.JaxRuntimeError as error:
        return None, str(error).splitlines()[0]
    return program_of(executable, levels.jaxpr), ""


def recording_of(
    jaxpr: JaxprRecording,
    target: str,
    platform: str,
    program: CompiledProgram,
    unfused: CompiledProgram | None,
    because: str,
) -> CompiledRecording:
    """The recording of a compiled program, and of the one without fusion if it is."""
    recording = CompiledRecording(
        call=jaxpr.call,
        headline=headline(jaxpr.name, target, program, unfused),
        telling=telling(program, unfused),
        sources=jaxpr.sources,
        target=target,
        platform=platform,
        jaxpr=jaxpr,
        program=program,
        unfused=unfused,
        switched_off=FUSING.get(platform, FUSING["cpu"]),
        unfused_because=because,
    )
    recording.unmapped = recording.without_equation()
    return recording


def compiled_by_jax(stage: Any, target: str | None) -> CompiledRecording:
    """The recording of a program that real JAX lowered or compiled.

    Raises ValueError for a target that is not the platform that JAX compiled it for.
    """
    is_lowered = type(stage).__name__ == "Lowered"
    compiled = stage.compile() if is_lowered else stage
    platform = foreign_compiled.platform_of(compiled)
    foreign_compiled.check_target(target, platform)
    module, jaxpr = foreign_compiled.read_program(compiled.as_text())
    program = read_by_jax(module, compiled)
    unfused, because = None, "JAX's Compiled has one program; give its Lowered"
    if is_lowered:
        switched_off = FUSING.get(platform, FUSING["cpu"])
        before = stage.compile({"xla_disable_hlo_passes": switched_off})
        text = before.as_text()
        plain = parse(text)
        foreign_compiled.renumber(plain, jaxpr, text)
        unfused, because = read_by_jax(plain, before), ""
    return recording_of(jaxpr, platform, platform, program, unfused, because)


def read_by_jax(module: Module, compiled: Any) -> CompiledProgram:
    """A program with what JAX's own stage tells of its cost and memory."""
    stats = compiled.memory_analysis()
    cost = compiled.cost_analysis() or {}
    return CompiledProgram(module, kernels_of(module), dict(cost), memory_of(stats))


def memory_of(stats: Any) -> dict[str, int]:
    """The bytes that XLA reports, by kind."""
    return {
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "code": stats.generated_code_size_in_bytes,
    }


def compile_now(
    machine: cross_compiling.Target, lowered: lowering.Lowered, options: dict[str, Any]
) -> compiler.Executable:
    """Compiled afresh: what is kept on disk has other marks, or none."""
    settings = BuildSettings(options=options, fast_compile=False)
    with lowered.context:
        return machine.compile(lowered.module, settings, None, lowered.host_callbacks)


def program_of(
    executable: compiler.Executable, jaxpr: JaxprRecording
) -> CompiledProgram:
    """The program of an executable as data."""
    program = program_in(executable.hlo_modules()[0].to_string(), jaxpr)
    program.memory = memory_of(executables.memory_stats(executable))
    program.cost = executables.cost_analysis(executable)
    return program


def program_in(text: str, jaxpr: JaxprRecording) -> CompiledProgram:
    """The program that a text in HLO is, as data."""
    module = parse(text)
    find_by_frames(module)
    for loop in module.instructions:
        # libtpu does not write down how often a loop runs; a scan says it itself.
        if loop.opcode == "while" and loop.times is None and loop.equation is not None:
            equation = jaxpr.equations[loop.equation]
            if equation.primitive == "scan":
                loop.times = int(equation.parameters["length"])
    return CompiledProgram(module, kernels_of(module), {}, {})


def find_by_frames(module: Module) -> None:
    """Gives an instruction without a name the equation of its stack of frames, which
    another instruction, with a name, has too."""
    named = [each for each in module.instructions if each.equation is not None]
    behind = {each.frame: each for each in named}
    for each in module.instructions:
        if each.op_name or each.opcode == "parameter" or each.frame not in behind:
            continue
        if each.frame is not None:
            each.equation = behind[each.frame].equation
            each.around = behind[each.frame].around


def headline(
    name: str,
    target: str,
    program: CompiledProgram,
    unfused: CompiledProgram | None,
) -> str:
    """One sentence: kernels and bytes, before and after fusion."""
    after = count_in_words(len(program.kernels), "kernel")
    traffic = program.traffic
    what = stands_for(traffic)
    if unfused is None:
        moved = size_in_words(program.bytes)
        return f"{name} compiled for {target}: {after}, {moved} read and written{what}"
    before = count_in_words(len(unfused.kernels), "kernel")
    told = f"fusion of {name} on {target}: {before} -> "
    told += f"{len(program.kernels):,}, {size_in_words(unfused.bytes)} -> "
    told += size_in_words(program.bytes)
    if program.bytes and unfused.bytes > program.bytes:
        told += f" ({times_in_words(unfused.bytes / program.bytes)}x)"
    return told + what


def times_in_words(times: float) -> str:
    """How many times as much: two digits, and of a large number all before the dot."""
    return f"{times:.2g}" if times < 99.5 else f"{times:,.0f}"


def stands_for(traffic: Total) -> str:
    """What a sum leaves open, to be written behind it; "" if nothing."""
    told = ", at most: the larger branch" if traffic.at_most else ""
    return told + (", one turn of a loop: turns unknown" if traffic.a_turn else "")


def telling(program: CompiledProgram, unfused: CompiledProgram | None) -> int:
    """The kernel that saves most bytes; if unknown, the one that moves most."""
    saved = [
        group.kernel.bytes * (group.kernel.times or 1)
        if unfused is None
        else group.saved
        for group in grouped(program, unfused)
    ]
    return saved.index(max(saved)) if saved else 0
