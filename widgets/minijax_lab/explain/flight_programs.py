"""What the flight recorder reads from the compiled programs: bytes, memory, exchanges.

The programs are those that the library made for the user's calls; nothing is compiled
for the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain import foreign_compiled
from minijax_lab.explain.flight_facts import Made
from minijax_lab.explain.kernels import kernels_of

# Programs that are read, kernels that are listed, letters that are read at most.
MOST_PROGRAMS = 3
MOST_KERNELS = 8
MOST_TEXT = 4_000_000

EXCHANGES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
# What the user's own code asks for, by the name of the operation.
ASKED = (
    "psum",
    "pmax",
    "pmin",
    "all_gather",
    "all_to_all",
    "ppermute",
    "reduce_scatter",
    "pbroadcast",
)


@dataclass
class KernelFacts:
    """One kernel: what it computes, the user's line, bytes of all its runs."""

    name: str
    line: int
    read: int
    written: int
    times: int


@dataclass
class Exchange:
    """A collective operation, and whether the user's code wrote it."""

    name: str
    line: int
    bytes: int
    asked: bool


@dataclass
class ProgramFacts:
    """A compiled program: kernels by bytes, memory by owner, collectives."""

    name: str
    line: int
    calls: int
    bytes: int
    kernels: list[KernelFacts]
    memory: list[tuple[str, int]] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    made: Made | None = field(default=None, repr=False)

    @property
    def peak(self) -> int:
        """The bytes of all owners."""
        return sum(size for _, size in self.memory)


def read_programs(
    makers: list[Made], is_users: Callable[[str], bool]
) -> list[ProgramFacts]:
    """The programs that moved most bytes, calls counted."""
    found = []
    for made in makers:
        if made.executable is None or made.site is None:
            continue
        try:
            facts = read_program(made, is_users)
        except Exception:  # a program that has no text, or one of another version
            continue
        if facts is not None:
            found.append(facts)
    found.sort(key=lambda facts: -facts.bytes * max(1, facts.calls))
    return found[:MOST_PROGRAMS]


def read_program(made: Made, is_users: Callable[[str], bool]) -> ProgramFacts | None:
    """One program; None for one without kernels, or with too long a text."""
    text = made.executable.hlo_modules()[0].to_string()
    if len(text) > MOST_TEXT:
        return None
    module, recording = foreign_compiled.read_program(text)
    lines = {
        number: frame[2]
        for number, frame in foreign_compiled.user_frames(text, is_users).items()
    }
    kernels: list[KernelFacts] = []
    exchanges: list[Exchange] = []
    for kernel in kernels_of(module):
        instruction = module.instructions[kernel.instruction]
        members = [module.instructions[number] for number in kernel.members]
        opcode = instruction.opcode.removesuffix("-start")
        framed = [m for m in [instruction, *members] if m.frame in lines]
        said = framed[-1] if framed else None
        if said is None and opcode in EXCHANGES:
            said = module.user_of(instruction, lines)
        line = lines[said.frame or 0] if said else 0
        times = kernel.times or 1
        operations = [m.opcode for m in members if m.opcode not in PLAIN]
        name = ", ".join(dict.fromkeys(operations)) or instruction.opcode
        kernels.append(
            KernelFacts(name, line, kernel.read * times, kernel.written * times, times)
        )
        if opcode in EXCHANGES:
            last = instruction.op_name.rpartition("/")[2]
            asked = any(last.startswith(word) for word in ASKED)
            size = kernel.written * times
            exchanges.append(Exchange(opcode, line, size, asked))
    if not kernels:
        return None
    whole = sum(kernel.read + kernel.written for kernel in kernels)
    kernels.sort(key=lambda kernel: -kernel.read - kernel.written)
    assert made.site is not None
    return ProgramFacts(
        made.name,
        made.site.line,
        made.calls,
        whole,
        kernels[:MOST_KERNELS],
        memory_of(made),
        exchanges,
        made,
    )


PLAIN = {"parameter", "constant", "broadcast", "bitcast", "tuple", "get-tuple-element"}


def memory_of(made: Made) -> list[tuple[str, int]]:
    """Who owns the bytes of a run, as the compiler allocates them."""
    stats: Any = made.executable.get_compiled_memory_stats()
    owners: dict[str, int] = {}
    for leaf in made.shapes.leaves if made.shapes is not None else ():
        parts = leaf.path.replace("['", ".").replace("']", "").split(".")
        owner = ".".join(parts[:2])
        owners[owner] = owners.get(owner, 0) + leaf.bytes
    results = stats.output_size_in_bytes - stats.alias_size_in_bytes
    if results > 0:
        owners["results, beside the arguments"] = results
    if stats.temp_size_in_bytes > 0:
        owners["made and freed on the way"] = stats.temp_size_in_bytes
    return sorted(owners.items(), key=lambda owner: -owner[1])
