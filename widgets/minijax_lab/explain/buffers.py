"""The memory of a compiled program: which buffer is alive when, and where it lies.

XLA orders the instructions, finds for each array from which instruction to which it is
needed, and puts arrays that are not needed at the same time into the same place. It
writes both down: live ranges, and the assignment of arrays to allocations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minijax.backend import executables
from minijax.compile import cross_compiling
from minijax.core import compiler
from minijax_lab.explain.hlo_text import Module, parse
from minijax_lab.explain.levels import (
    Levels,
    compiled_with_dump,
    levels_of,
    target_named,
)


@dataclass
class Buffer:
    """An array of the compiled program, in an allocation at an offset, both in bytes.

    `name` is that of the instruction that makes it, with the position in its tuple if
    it makes several (`while.0{2}`). It is alive from the point `first` to `last`, both
    included; None where XLA gives no range, as inside of a kernel.
    """

    name: str
    type: str
    bytes: int
    allocation: int
    offset: int
    first: int | None
    last: int | None
    equation: int | None


@dataclass
class Allocation:
    """Memory that XLA asks for at once; `kind` is what it is for.

    "argument", "result", "temporaries", "constant", "thread" for the numbers that a
    thread keeps for itself; on a TPU also "on-chip" for its fast memory and "flags".
    """

    id: int
    bytes: int
    kind: str


@dataclass
class CompiledMemory:
    """All buffers of a program. A point is an instruction in the order of `schedule`.

    `told_peak` is the point that XLA calls the peak and `told_most` the bytes that it
    counts there, by shapes, shared memory twice; so it need not be where most memory is
    in use. `kinds` are the bytes that it reports for the whole program.
    """

    target: str
    platform: str
    schedule: list[str]
    buffers: list[Buffer]
    allocations: list[Allocation]
    told_peak: int
    told_most: int
    kinds: dict[str, int] = field(default_factory=dict)

    def alive(self, point: int) -> list[Buffer]:
        """The buffers that are alive at a point, largest first."""
        found = [
            buffer
            for buffer in self.buffers
            if buffer.first is not None and buffer.last is not None
            if buffer.first <= point <= buffer.last
        ]
        return sorted(found, key=lambda buffer: (-buffer.bytes, buffer.name))

    def live(self) -> list[int]:
        """The bytes of memory in use at each point, without what is on a TPU's chip.

        A result that overwrites its operand takes no memory of its own.
        """
        apart = {each.id for each in self.allocations if each.kind in APART}
        begin: dict[int, list[Buffer]] = {}
        for buffer in self.buffers:
            if buffer.first is not None and buffer.allocation not in apart:
                begin.setdefault(buffer.first, []).append(buffer)
        live = []
        alive: list[Buffer] = []
        for point in range(len(self.schedule)):
            alive = [b for b in alive if b.last is not None and b.last >= point]
            alive += begin.get(point, ())
            live.append(occupied(alive))
        return live

    @property
    def peak(self) -> int:
        """The first point at which most memory is in use."""
        live = self.live()
        return live.index(max(live)) if live else 0

    def sharing(self, allocation: int) -> list[Buffer]:
        """The buffers of an allocation by offset: they share it, one after another."""
        found = [b for b in self.buffers if b.allocation == allocation]
        return sorted(found, key=lambda b: (b.offset, b.first or 0))


def occupied(buffers: list[Buffer]) -> int:
    """The bytes that buffers cover; where several share memory it counts once."""
    total = 0
    end: tuple[int, int] = (-1, 0)  # an allocation, and how far it is covered
    for buffer in sorted(buffers, key=lambda b: (b.allocation, b.offset)):
        start = buffer.offset
        stop = start + buffer.bytes
        if buffer.allocation == end[0]:
            start = max(start, end[1])
            stop = max(stop, end[1])
        total += stop - start
        end = (buffer.allocation, stop)
    return total


def compiled_memory(
    function: Any, args: tuple, kwargs: dict[str, Any], target: str | None = None
) -> CompiledMemory:
    """The memory of a function's program as compiled for a target.

    Raises OSError if XLA can write nowhere, ValueError for an unknown target.
    """
    return memory_of(levels_of(function, args, kwargs), target_named(target))


def memory_of(levels: Levels, machine: cross_compiling.Target) -> CompiledMemory:
    """The memory of a program's levels."""
    return compiled_with_memory(levels, machine)[0]


def compiled_with_memory(
    levels: Levels, machine: cross_compiling.Target
) -> tuple[CompiledMemory, compiler.Executable]:
    """The memory of a program's levels, and the program that has it."""
    lowered = levels.lower(machine.platform)
    with compiled_with_dump(levels, machine, lowered) as dump:
        stats = executables.memory_stats(dump.executable)
        module = parse(dump.executable.hlo_modules()[0].to_string())
        memory = read_memory(dump.folder, module, stats, machine.platform)
        memory.target = machine.name
    return memory, dump.executable


def read_memory(
    folder: Path, module: Module, stats: Any, platform: str
) -> CompiledMemory:
    """The memory of a program, from the folder in which XLA described it."""

    def last(ending: str) -> str:
        found = sorted(folder.glob(f"*{ending}"))
        return found[-1].read_text(errors="replace") if found else ""

    schedule, alive, peak, most = live_ranges(last("-live-range.txt"))
    equations = {each.name: each.equation for each in module.instructions}
    allocations, buffers = assignment(last("-buffer-assignment.txt"), platform)
    for buffer in buffers:
        name, brace, _ = buffer.name.partition("{")
        key = buffer.name if brace else f"{name}{{}}"
        buffer.first, buffer.last = alive.get(key, (None, None))
        buffer.equation = equations.get(name)
    kinds = {
        "temporaries": stats.temp_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "arguments": stats.argument_size_in_bytes,
    }
    return CompiledMemory(
        target=platform,
        platform=platform,
        schedule=schedule,
        buffers=buffers,
        allocations=allocations,
        told_peak=peak,
        told_most=most,
        kinds=kinds,
    )


# ---- what XLA writes -----------------------------------------------------------------

INSTRUCTION = re.compile(r"^    (\d+):(\S+)$", re.MULTILINE)
RANGE = re.compile(r"^    (\S+\{[\d,]*\}):(\d+)-(\d+)$", re.MULTILINE)
PEAK = re.compile(r"^  Live ranges at (\d+) \(peak\):\n((?:    .*\n)*)", re.MULTILINE)
CUMULATIVE = re.compile(r"\(cumulative: (\d+) bytes\)")
# jaxlib 0.12 names a page before what the allocation is for.
ALLOCATION = re.compile(r"^allocation (\d+): size (\d+), (?:page \d+, )?(.*)$")
VALUE = re.compile(r"^ value: <\d+ (.+?) @\d+> \(size=(\d+),offset=(\d+)\): (.*)$")


def live_ranges(text: str) -> tuple[list[str], dict[str, tuple[int, int]], int, int]:
    """(the schedule, the range of each buffer, the peak's point, the bytes there)."""
    schedule = [name for _, name in INSTRUCTION.findall(text)]
    ranges = {name: (int(a), int(b)) for name, a, b in RANGE.findall(text)}
    found = PEAK.search(text)
    if found is None:
        return schedule, ranges, 0, 0
    sums = CUMULATIVE.findall(found[2])
    return schedule, ranges, int(found[1]), int(sums[-1]) if sums else 0


def assignment(text: str, platform: str) -> tuple[list[Allocation], list[Buffer]]:
    """The allocations, and the buffers in them; ranges and equations come later."""
    allocations: list[Allocation] = []
    buffers: list[Buffer] = []
    for line in text.split("\n"):
        if found := ALLOCATION.match(line):
            kind = kind_of(found[3], platform)
            allocations.append(Allocation(int(found[1]), int(found[2]), kind))
        elif (value := VALUE.match(line)) and allocations:
            name = value[1].removesuffix(" (phi)")
            buffers.append(
                Buffer(
                    name=name,
                    type=value[4],
                    bytes=int(value[2]),
                    allocation=allocations[-1].id,
                    offset=int(value[3]),
                    first=None,
                    last=None,
                    equation=None,
                )
            )
    return allocations, buffers


# What libtpu calls colours are memories: 1 is the fast one on the chip.
COLOUR = re.compile(r"^color (\d+), ")
APART = ("on-chip", "flags")


def kind_of(told: str, platform: str) -> str:
    """What an allocation is for, from what XLA says of it."""
    colour = COLOUR.match(told)
    if platform == "tpu" and colour is not None and colour[1] != "0":
        return "on-chip" if colour[1] == "1" else "flags"
    if told.startswith("parameter"):
        return "argument"
    if "live-out" in told or "output shape" in told:
        return "result"
    if "thread-local" in told:
        return "thread"
    return "constant" if "constant" in told else "temporaries"
