"""Which kernels of the unfused program became which kernel of the compiled one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minijax_lab.explain.data_flow import DataFlow, Value
from minijax_lab.explain.kernels import Kernel

if TYPE_CHECKING:
    from minijax_lab.explain.compiled import CompiledProgram, CompiledRecording


@dataclass
class Group:
    """A kernel of the compiled program, and what it would be without fusion."""

    kernel: Kernel
    before: list[Kernel]

    @property
    def saved(self) -> int:
        """The bytes that fusion spares, all turns of a loop added if it knows them."""
        runs = self.kernel.times or 1
        before = sum(each.bytes * (each.times or 1) for each in self.before)
        return before - self.kernel.bytes * runs


def groups_of(recording: CompiledRecording) -> list[Group]:
    """Each kernel of a recording with the unfused kernels of its values."""
    return grouped(recording.program, recording.unfused)


def grouped(program: CompiledProgram, unfused: CompiledProgram | None) -> list[Group]:
    """Each kernel of a program with the kernels that it would be without fusion.

    An unfused kernel belongs to the kernel that computes the same value of the same
    data; where XLA changed the operation as it fused, to one with its equation, not
    before the kernels that it reads from. What no kernel computes, such as the
    broadcast of a constant, belongs where its result is read.
    """
    groups = [Group(kernel, []) for kernel in program.kernels]
    if unfused is None or not groups:
        return groups
    flow = DataFlow()
    values, values_before = (flow.values_of(p.module) for p in (program, unfused))
    holders: dict[Value, list[int]] = {}
    of_equation: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        for member in group.kernel.members:
            holders.setdefault(values[member], []).append(number)
        for equation in group.kernel.equations:
            of_equation.setdefault(equation, []).append(number)
    work = [operations(program, group.kernel) for group in groups]
    readers = readers_of(unfused)
    written_by: dict[int, list[int]] = {}
    for instruction, read_by in readers.items():
        for reader in read_by:
            written_by.setdefault(reader, []).append(instruction)
    position = {kernel.instruction: n for n, kernel in enumerate(unfused.kernels)}
    places: list[int | None] = []
    for number, kernel in enumerate(unfused.kernels):
        same = Counter(
            holder
            for member in kernel.members
            for holder in set(holders.get(values_before[member], ()))
        )
        sources = (position[i] for i in written_by.get(number, ()) if i in position)
        known = [places[source] for source in sources if source < number]
        after = max((place for place in known if place is not None), default=0)
        own = operations(unfused, kernel)
        if same:
            candidates = [n for n, count in same.items() if count == max(same.values())]
        else:
            shared = {n for e in kernel.equations for n in of_equation.get(e, ())}
            alike = {n: len(own & work[n]) for n in shared}
            most = max(alike.values(), default=0)
            candidates = [n for n, count in alike.items() if count == most]
        candidates.sort(key=lambda n: (n < after, n))
        places.append(candidates[0] if candidates else None)
    # A kernel that XLA made on its own and left alone is the same one in both.
    for number, kernel in enumerate(unfused.kernels):
        if places[number] is None:
            own = operations(unfused, kernel)
            taken = {place for place in places if place is not None}
            places[number] = next(
                (n for n, w in enumerate(work) if w == own and n not in taken), None
            )
    # From the end, so that a chain of kernels without equations finds its reader.
    for number in reversed(range(len(places))):
        if places[number] is None:
            read_by = readers.get(unfused.kernels[number].instruction, [])
            places[number] = next(
                (places[other] for other in read_by if places[other] is not None), None
            )
    for kernel, place in zip(unfused.kernels, places):
        if place is not None:
            groups[place].before.append(kernel)
    return groups


def operations(program: CompiledProgram, kernel: Kernel) -> set[tuple[str, str]]:
    """What a kernel computes, as (operation, type)."""
    found = (program.module.instructions[member] for member in kernel.members)
    return {(instruction.opcode, instruction.type) for instruction in found}


def readers_of(program: CompiledProgram) -> dict[int, list[int]]:
    """For each instruction the kernels that read it, by position; bitcasts opened."""
    module = program.module
    position = {kernel.instruction: n for n, kernel in enumerate(program.kernels)}
    found: dict[int, list[int]] = {}
    for instruction in module.instructions:
        for operand in instruction.operands:
            if instruction.id in position:
                found.setdefault(operand, []).append(position[instruction.id])
    for instruction in reversed(module.instructions):
        if instruction.opcode in ("bitcast", "tuple", "get-tuple-element"):
            for operand in instruction.operands:
                found.setdefault(operand, []).extend(found.get(instruction.id, []))
    return found
