"""The recording behind `see.memory(compiled=True)`: the buffers of a compiled program.

With the equations and the user's lines behind each, and, if a machine is given, with
the time that each kernel needs there at least.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minijax
from minijax.backend import dumps
from minijax_lab.explain import foreign_compiled
from minijax_lab.explain.buffers import (
    Buffer,
    CompiledMemory,
    compiled_with_memory,
    read_memory,
)
from minijax_lab.explain.compiled import CompiledProgram, program_of, read_by_jax
from minijax_lab.explain.jaxpr import JaxprRecording
from minijax_lab.explain.levels import levels_of, target_named
from minijax_lab.explain.recording import Recording, Span
from minijax_lab.explain.roofline import Machine
from minijax_lab.explain.tree import size_in_words

KINDS = ("argument", "constant", "temporaries", "result", "on-chip")


@dataclass
class Place:
    """A rectangle of the map: memory that is taken from one point to another.

    Buffers that XLA puts into the same place at the same time, as what a loop carries
    and gives back, are one rectangle. `buffers` are numbers in the recording's list.
    """

    allocation: int
    kind: str
    offset: int
    bytes: int
    first: int
    last: int
    buffers: list[int]


@dataclass(kw_only=True)
class BuffersRecording(Recording):
    """The memory of a compiled program. Its steps are the points of its schedule."""

    kind = "buffers"

    jaxpr: JaxprRecording
    memory: CompiledMemory
    program: CompiledProgram
    places: list[Place]
    machine: Machine | None = field(default_factory=lambda: None)

    def span_of(self, buffer: Buffer) -> Span | None:
        """The user's line behind a buffer."""
        equations = self.jaxpr.equations
        number = buffer.equation
        while number is not None:
            equation = equations[number]
            if equation.span is not None:
                return equation.span
            number = equation.parent
        return None

    def kernel_at(self, point: int) -> int | None:
        """The number of the kernel that runs at a point; None if none does."""
        return self.kernels().get(self.memory.schedule[point])

    def kernels(self) -> dict[str, int]:
        """The number of each kernel by the name of its instruction."""
        return {
            self.program.instruction(kernel).name: number
            for number, kernel in enumerate(self.program.kernels)
        }


def record_buffers(
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    target: str | None = None,
    machine: Machine | None = None,
) -> BuffersRecording:
    """Records the buffers of a function's program as compiled for a target.

    The function may be one that real JAX jitted, or a program that it lowered.

    Raises OSError if XLA can write nowhere, ValueError for an unknown target, or for
    none on a machine with a GPU, TypeError for a Compiled of JAX, which no longer knows
    its buffers.
    """
    if foreign_compiled.is_stage(function):
        return buffers_by_jax(function, target, machine)
    if target is None and minijax.default_backend() != "cpu":
        raise ValueError(
            f"the buffers of programs for this machine's {minijax.default_backend()} "
            "are not recorded; name a target: target='cpu', 'h100' or 'tpu-v5e:2x2'."
        )
    levels = levels_of(function, args, kwargs)
    memory, executable = compiled_with_memory(levels, target_named(target))
    program = program_of(executable, levels.jaxpr)
    return recording_of(levels.jaxpr, memory, program, machine)


def buffers_by_jax(
    stage: Any, target: str | None, machine: Machine | None
) -> BuffersRecording:
    """The buffers of a program that real JAX lowered; JAX compiles it."""
    if type(stage).__name__ != "Lowered":
        raise TypeError(
            "a Compiled of JAX no longer knows its buffers. Pass its Lowered: "
            "see.memory(jitted.lower(...), compiled=True)."
        )
    with dumps.private_folder() as folder:
        options = {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}
        compiled = stage.compile(options)
        platform = foreign_compiled.platform_of(compiled)
        foreign_compiled.check_target(target, platform)
        module, jaxpr = foreign_compiled.read_program(compiled.as_text())
        memory = read_memory(Path(folder), module, compiled.memory_analysis(), platform)
    return recording_of(jaxpr, memory, read_by_jax(module, compiled), machine)


def recording_of(
    jaxpr: JaxprRecording,
    memory: CompiledMemory,
    program: CompiledProgram,
    machine: Machine | None,
) -> BuffersRecording:
    """The recording of what was compiled."""
    peak = memory.peak
    live = memory.live()
    told = f"memory of {jaxpr.name} compiled for {memory.target}: "
    if live:
        told += f"peak {size_in_words(live[peak])} at {memory.schedule[peak]}, "
        told += f"instruction {peak + 1:,} of {len(live):,}"
    else:
        told += "nothing is computed"
    return BuffersRecording(
        call=jaxpr.call,
        headline=told,
        telling=peak,
        sources=jaxpr.sources,
        jaxpr=jaxpr,
        memory=memory,
        program=program,
        places=places_of(memory),
        machine=machine,
    )


def kinds_of(memory: CompiledMemory) -> list[tuple[str, int]]:
    """The bytes that XLA reports for the whole program, by kind."""
    return [
        (kind, memory.kinds[kind]) for kind in ("arguments", "results", "temporaries")
    ]


def places_of(memory: CompiledMemory) -> list[Place]:
    """The rectangles of a program's map, by kind, allocation and offset."""
    kinds = {each.id: each.kind for each in memory.allocations}
    found: dict[tuple[int, int, int], list[Place]] = {}
    order = sorted(
        (number for number, b in enumerate(memory.buffers) if b.first is not None),
        key=lambda number: memory.buffers[number].first or 0,
    )
    for number in order:
        buffer = memory.buffers[number]
        kind = kinds[buffer.allocation]
        if kind not in KINDS or not buffer.bytes:
            continue
        assert buffer.first is not None and buffer.last is not None
        # To the end of the program is one point further than its last instruction.
        last = min(buffer.last, len(memory.schedule) - 1)
        row = found.setdefault((buffer.allocation, buffer.offset, buffer.bytes), [])
        if row and buffer.first < row[-1].last:
            row[-1].last = max(row[-1].last, last)
            row[-1].buffers.append(number)
            continue
        row.append(
            Place(
                allocation=buffer.allocation,
                kind=kind,
                offset=buffer.offset,
                bytes=buffer.bytes,
                first=buffer.first,
                last=last,
                buffers=[number],
            )
        )
    places = [place for row in found.values() for place in row]
    places.sort(key=lambda p: (KINDS.index(p.kind), p.allocation, p.offset, p.first))
    return places
