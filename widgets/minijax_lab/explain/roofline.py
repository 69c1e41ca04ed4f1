"""The roofline of a compiled program: what bounds each kernel on a described machine.

A kernel that does few operations for each byte waits for memory, one that does many
waits for the arithmetic units; the roof is the lower of the two. All of it is modelled,
from the bytes and operations of the kernels and two numbers of the machine: nothing was
run. S. Williams, A. Waterman, D. Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from minijax.backend import targets
from minijax_lab.explain.compiled import CompiledProgram
from minijax_lab.explain.kernels import Kernel


@dataclass
class Machine:
    """A machine in two numbers: operations a second and bytes a second.

    `source` says where they are from.
    """

    name: str
    operations: float
    bandwidth: float
    source: str

    @property
    def ridge(self) -> float:
        """The operations for each byte from which on arithmetic is the bound."""
        return self.operations / self.bandwidth


@dataclass
class Dot:
    """A kernel under the roof. `seconds` are at least needed for one run.

    `bound` is "memory" or "arithmetic". Transcendental functions count as one operation
    each, though they take more; XLA counts them apart.
    """

    kernel: int
    intensity: float
    operations: int
    bytes: int
    seconds: float
    bound: str


@dataclass
class Roofline:
    """The kernels of a program under the roof of a machine."""

    machine: Machine
    dots: list[Dot]
    seconds: float  # of all kernels, loops as often as they run
    unknown: int  # kernels in loops whose length the data decide: counted once

    @property
    def waiting(self) -> float:
        """The part of the time in which memory is the bound, from 0 to 1."""
        waits = sum(dot.seconds for dot in self.dots if dot.bound == "memory")
        total = sum(dot.seconds for dot in self.dots)
        return waits / total if total else 0.0


def h100() -> Machine:
    """An H100, from the description that programs are compiled with."""
    text = (Path(targets.__file__).parent / "h100.txtpb").read_text()
    number = {
        name: float(value)
        for name, value in re.findall(r"^  (\w+): ([\d.]+)$", text, re.M)
    }
    units = number["core_count"] * number["fpus_per_core"]
    return Machine(
        name="h100",
        operations=2 * units * number["clock_rate_ghz"] * 1e9,
        bandwidth=number["memory_bandwidth"],
        source="h100.txtpb: float32, a multiplication and an addition a unit and cycle",
    )


def machine_named(target: str) -> Machine:
    """The machine of a target.

    Raises ValueError for one that is not described, such as this CPU.
    """
    if target == "h100":
        return h100()
    if target.startswith("tpu-v5e"):
        source = "Google's description of a TPU v5e chip: bfloat16"
        return Machine("tpu-v5e", 197e12, 819e9, source)
    raise ValueError(
        f"no numbers of {target!r} are known. Give them: Machine(name, operations a "
        "second, bytes a second, where they are from)."
    )


def roofline_of(program: CompiledProgram, machine: Machine) -> Roofline:
    """The roofline of a program on a machine."""
    dots = [dot_of(n, kernel, machine) for n, kernel in enumerate(program.kernels)]
    pairs = list(zip(dots, program.kernels))
    return Roofline(
        machine=machine,
        dots=dots,
        seconds=sum(dot.seconds * (kernel.times or 1) for dot, kernel in pairs),
        unknown=sum(kernel.times is None for kernel in program.kernels),
    )


def dot_of(number: int, kernel: Kernel, machine: Machine) -> Dot:
    """A kernel under a machine's roof."""
    operations = kernel.flops + kernel.transcendentals
    for_memory = kernel.bytes / machine.bandwidth
    for_arithmetic = operations / machine.operations
    return Dot(
        kernel=number,
        intensity=operations / max(kernel.bytes, 1),
        operations=operations,
        bytes=kernel.bytes,
        seconds=max(for_memory, for_arithmetic),
        bound="memory" if for_memory >= for_arithmetic else "arithmetic",
    )
