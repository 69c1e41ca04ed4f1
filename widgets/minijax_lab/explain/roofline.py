"""The roofline of a compiled program: what bounds each kernel on a described machine.

A kernel that does few operations for each byte waits for memory, one that does many
waits for the arithmetic units; the roof is the lower of the two. All of it is modelled,
from the bytes and operations of the kernels and two numbers of the machine: nothing was
run. S. Williams, A. Waterman, D. Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import minijax
from minijax.backend import targets
from minijax_lab.explain.compiled import CompiledProgram
from minijax_lab.explain.kernels import TRANSCENDENTAL, Kernel, total_of


@dataclass
class Machine:
    """A machine in two numbers: operations a second and bytes a second.

    `source` says where they are from. One of several has two more: `link`, the bytes a
    second that it sends to its neighbours in a ring, and `memory`, its bytes; 0 if they
    are not given.
    """

    name: str
    operations: float
    bandwidth: float
    source: str = "given"
    link: float = 0.0
    memory: int = 0

    @property
    def ridge(self) -> float:
        """The operations for each byte from which on arithmetic is the bound."""
        return self.operations / self.bandwidth


@dataclass
class Dot:
    """A kernel under the roof. `seconds` are at least needed for one run.

    `bound` is "memory" or "arithmetic". Transcendental functions count as one operation
    each, though they take more; XLA counts them apart. `runs` is how often a loop runs
    it, once where only the data say.
    """

    kernel: int
    intensity: float
    operations: int
    bytes: int
    seconds: float
    bound: str
    runs: int = 1


@dataclass
class Roofline:
    """The kernels of a program under the roof of a machine."""

    machine: Machine
    dots: list[Dot]
    seconds: float  # of a run: loops as often as they run, of branches the longest
    unknown: int  # kernels in loops whose length the data decide: counted once
    # Functions such as "sine" that count as one operation though they take many, and
    # how many numbers they are computed of, as often as they run.
    functions: list[str] = field(default_factory=list)
    functions_run: int = 0

    @property
    def waiting(self) -> float:
        """The part of the time in which memory is the bound, from 0 to 1."""
        waits = sum(d.seconds * d.runs for d in self.dots if d.bound == "memory")
        every = sum(d.seconds * d.runs for d in self.dots)
        return waits / every if every else 0.0


def h100() -> Machine:
    """An H100, from the description that programs are compiled with."""
    number = described("h100.txtpb")
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


def chip_named(target: str) -> Machine | None:
    """One chip of a target in bfloat16, with its links; None if nothing is known.

    The numbers are the vendors': of an H100 (SXM) its tensor cores without sparsity and
    NVLink in one direction, of a TPU v5e two of its four links of 400 Gbit/s, which a
    ring along one axis of a slice uses.
    """
    if target.partition(":")[0] == "h100":
        found = described("h100.txtpb")
        return Machine(
            name="h100",
            operations=989.4e12,
            bandwidth=found["memory_bandwidth"],
            source="NVIDIA's data sheet: bfloat16, NVLink one way",
            link=450e9,
            memory=int(found["device_memory_size"]),
        )
    if target.partition(":")[0] == "tpu-v5e":
        return Machine(
            name="tpu-v5e",
            operations=197e12,
            bandwidth=819e9,
            source="Google's description: bfloat16, two of four links",
            link=100e9,
            memory=16 * 2**30,
        )
    return None


def described(name: str) -> dict[str, float]:
    """The numbers in a description that programs are compiled with."""
    text = (Path(targets.__file__).parent / name).read_text()
    return {
        name: float(value)
        for name, value in re.findall(r"^  (\w+): ([\d.]+)$", text, re.M)
    }


def machine_for(roofline: Machine | bool, target: str) -> Machine:
    """The machine that a view's argument `roofline` stands for.

    Raises TypeError for what is neither True nor a Machine, ValueError for True and a
    target of which no numbers are known.
    """
    if isinstance(roofline, Machine):
        if min(roofline.operations, roofline.bandwidth) <= 0:
            raise ValueError(
                f"roofline: {roofline.name} has {roofline.operations:g} operations and "
                f"{roofline.bandwidth:g} bytes a second; both must be above zero."
            )
        return roofline
    if roofline is not True:
        raise TypeError(
            f"roofline={roofline!r}: pass True, for the machine that the program is "
            "compiled for, or see.Machine(name, operations a second, bytes a second)."
        )
    return measured_cpu() if target == "cpu" else machine_named(target)


SIDE = 1024
LONG = 1 << 24


@functools.cache
def measured_cpu() -> Machine:
    """This machine, by a product of two matrices and the sum of a long array."""
    square = np.ones((SIDE, SIDE), np.float32)
    long = np.ones(LONG, np.float32)
    multiply = shortest(lambda a: a @ a, square)
    read = shortest(lambda a: a.sum(), long)
    return Machine(
        name="this CPU",
        operations=2 * SIDE**3 / multiply,
        bandwidth=long.nbytes / read,
        source=f"measured now: a product of float32[{SIDE},{SIDE}], and the sum of "
        f"float32[{LONG}]",
    )


def shortest(function: Callable[[Any], Any], array: np.ndarray) -> float:
    """The seconds that a function takes, the shortest of a few runs."""
    compiled = minijax.jit(function)
    placed = minijax.device_put(array, minijax.devices("cpu")[0])
    compiled(placed).block_until_ready()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        compiled(placed).block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)


def roofline_of(program: CompiledProgram, machine: Machine) -> Roofline:
    """The roofline of a program on a machine."""
    dots = [dot_of(n, kernel, machine) for n, kernel in enumerate(program.kernels)]
    return Roofline(
        machine=machine,
        dots=dots,
        seconds=total_of(
            program.module,
            program.kernels,
            lambda kernel: dot_of(0, kernel, machine).seconds,
        ).amount,
        unknown=sum(kernel.times is None for kernel in program.kernels),
        functions=functions_in(program),
        functions_run=int(
            total_of(
                program.module, program.kernels, lambda kernel: kernel.transcendentals
            ).amount
        ),
    )


def functions_in(program: CompiledProgram) -> list[str]:
    """The transcendental functions that a program computes, each once."""
    instructions = program.module.instructions
    found = [
        instructions[member].opcode
        for kernel in program.kernels
        for member in kernel.members
    ]
    return [name for name in dict.fromkeys(found) if name in TRANSCENDENTAL]


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
        runs=1 if kernel.times is None else kernel.times,
    )
