"""Which kernels of the unfused program became which kernel of the compiled one."""

from __future__ import annotations

from dataclasses import dataclass

from minijax_lab.explain.compiled import CompiledProgram, CompiledRecording
from minijax_lab.explain.kernels import Kernel


@dataclass
class Group:
    """A kernel of the compiled program, and what it would be without fusion."""

    kernel: Kernel
    before: list[Kernel]

    @property
    def saved(self) -> int:
        """The bytes that fusion spares."""
        return sum(each.bytes for each in self.before) - self.kernel.bytes


def groups_of(recording: CompiledRecording) -> list[Group]:
    """Each kernel with the unfused kernels of its equations.

    An unfused kernel belongs to the kernel that computes one of its equations. One that
    XLA made on its own, such as the broadcast of a constant, belongs where its result
    is read.
    """
    groups = [Group(kernel, []) for kernel in recording.program.kernels]
    if recording.unfused is None or not groups:
        return groups
    kernels = recording.unfused.kernels
    work = [operations(recording.program, group.kernel) for group in groups]
    places: list[int | None] = []
    for kernel in kernels:
        own = operations(recording.unfused, kernel)
        shared = [len(set(kernel.equations) & set(g.kernel.equations)) for g in groups]
        # An equation may be computed in several kernels: then the same operation on
        # the same shape says which.
        scores = [(bool(n), len(own & w), n) for n, w in zip(shared, work)]
        best = max(range(len(groups)), key=lambda number: scores[number])
        places.append(best if shared[best] else None)
    # A kernel that XLA made on its own and left alone is the same one in both.
    for number, kernel in enumerate(kernels):
        if places[number] is None:
            own = operations(recording.unfused, kernel)
            taken = {place for place in places if place is not None}
            places[number] = next(
                (n for n, w in enumerate(work) if w == own and n not in taken), None
            )
    readers = readers_of(recording.unfused)
    # From the end, so that a chain of kernels without equations finds its reader.
    for number in reversed(range(len(kernels))):
        if places[number] is None:
            read_by = readers.get(kernels[number].instruction, [])
            places[number] = next(
                (places[other] for other in read_by if places[other] is not None), None
            )
    for kernel, place in zip(kernels, places):
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
