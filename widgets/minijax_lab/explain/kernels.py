"""The kernels of a compiled program: what each reads, writes and computes.

A kernel is an instruction that touches memory, in a computation that runs: the entry,
the body of a loop, a branch. Parameters, constants, tuples and bitcasts move nothing.
A fusion is one kernel. XLA wraps single operations as `fusion` too (`wrapped_sine` on
the CPU): such a kernel is not fused.

Bytes and operations are computed from shapes: every operand is read once and every
result written once; of an array that is only sliced, the slice; of one that is updated
in place, the update. Caches and repeated reads are not in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from minijax_lab.explain.hlo_text import Instruction, Module

# They give names to memory, or mark the end of what another instruction began.
NO_KERNELS = {
    "parameter",
    "constant",
    "tuple",
    "bitcast",
    "get-tuple-element",
    "after-all",
    "add-dependency",
    "opt-barrier",
    "optimization-barrier",
    "partition-id",
    "replica-id",
    "domain",
    "get-dimension-size",
}
# They run other computations; the kernels are in these.
CONTROL = {"while", "conditional", "call", "async-start", "async-update"}
TRANSCENDENTAL = {
    "atan2",
    "cbrt",
    "cosine",
    "erf",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "power",
    "rsqrt",
    "sine",
    "sqrt",
    "tan",
    "tanh",
}
ARITHMETIC = {
    "abs",
    "add",
    "and",
    "ceil",
    "clamp",
    "compare",
    "divide",
    "floor",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "remainder",
    "round-nearest-afz",
    "round-nearest-even",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "subtract",
    "xor",
}
READS_PART = {"slice", "dynamic-slice", "gather"}


@dataclass
class Kernel:
    """One kernel: the instruction, the operations in it, bytes, floating-point work.

    `members` are the operations inside, by id: of a fusion all that it computes,
    otherwise the instruction itself. `times` is how often it runs; None if a loop runs
    as often as the data say. Bytes and operations are those of one run.
    """

    instruction: int
    members: list[int]
    read: int
    written: int
    flops: int
    transcendentals: int
    times: int | None
    equations: list[int]

    @property
    def fused(self) -> bool:
        """Whether more than one operation is in it."""
        return len(self.members) > 1

    @property
    def bytes(self) -> int:
        """The bytes read and written by one run."""
        return self.read + self.written


def kernels_of(module: Module) -> list[Kernel]:
    """The kernels of a program, in the order in which they stand."""
    return list(in_computation(module, module.entry.id, 1))


def in_computation(module: Module, number: int, times: int | None) -> Iterator[Kernel]:
    """The kernels of a computation that runs `times` times."""
    for instruction in module.body(number):
        opcode = instruction.opcode
        if opcode in CONTROL:
            inner = times
            if opcode == "while":
                known = instruction.times is not None and times is not None
                inner = times * instruction.times if known else None  # type: ignore
            for called in instruction.called:
                yield from in_computation(module, called, inner)
        elif opcode not in NO_KERNELS and not opcode.endswith(("-done", "-update")):
            yield kernel_of(module, instruction, times)


def kernel_of(module: Module, instruction: Instruction, times: int | None) -> Kernel:
    """The kernel of an instruction."""
    members = list(members_of(module, instruction))
    work = [work_of(module, member) for member in members]
    found = {member.equation for member in [instruction, *members]}
    return Kernel(
        instruction=instruction.id,
        members=[member.id for member in members],
        read=read_by(module, instruction),
        written=written_by(module, instruction),
        flops=sum(flops for flops, _ in work),
        transcendentals=sum(hard for _, hard in work),
        times=times,
        equations=sorted(number for number in found if number is not None),
    )


def members_of(module: Module, instruction: Instruction) -> Iterator[Instruction]:
    """The operations that a kernel computes."""
    if instruction.opcode != "fusion":
        yield instruction
        return
    for called in instruction.called:
        for inner in module.body(called):
            if inner.opcode not in NO_KERNELS:
                yield from members_of(module, inner)


# ---- bytes ---------------------------------------------------------------------------


def read_by(module: Module, instruction: Instruction) -> int:
    """The bytes that a kernel reads."""
    operands = [module.instructions[number] for number in instruction.operands]
    opcode = instruction.opcode
    if opcode in READS_PART:
        return instruction.bytes + sum(operand.bytes for operand in operands[1:])
    if opcode == "dynamic-update-slice":
        return sum(operand.bytes for operand in operands[1:])
    if opcode != "fusion" or not instruction.called:
        return sum(operand.bytes for operand in operands)
    body = module.body(instruction.called[0])
    users: dict[int, list[Instruction]] = {}
    for inner in body:
        for number in inner.operands:
            users.setdefault(number, []).append(inner)
    total = 0
    for inner in body:
        if inner.opcode == "parameter":
            position = int(re.match(r"\d+", inner.attributes)[0])  # type: ignore
            whole = operands[position].bytes
            total += part_read(inner, users.get(inner.id, []), whole)
    return total


def part_read(parameter: Instruction, users: list[Instruction], whole: int) -> int:
    """What a fusion reads of a parameter: all, or the slices that it takes."""
    total = 0
    for user in users:
        sliced = user.operands and user.operands[0] == parameter.id
        if sliced and user.opcode in READS_PART:
            total += user.bytes
        elif not (sliced and user.opcode == "dynamic-update-slice"):
            return whole
    return min(total, whole)


def written_by(module: Module, instruction: Instruction) -> int:
    """The bytes that a kernel writes."""
    if instruction.opcode == "fusion" and instruction.called:
        root = module.computations[instruction.called[0]].root
        return written_at(module, module.instructions[root])
    return written_at(module, instruction)


def written_at(module: Module, root: Instruction) -> int:
    """The bytes of a result; of an array that is updated in place, the update's."""
    operands = [module.instructions[number] for number in root.operands]
    if root.opcode == "tuple":
        return sum(written_at(module, operand) for operand in operands)
    if root.opcode == "bitcast" and operands:
        return written_at(module, operands[0])
    if root.opcode == "dynamic-update-slice":
        return operands[1].bytes
    if root.opcode == "copy-start":
        return operands[0].bytes  # its result also names the operand and a signal
    return root.bytes


# ---- operations ----------------------------------------------------------------------


def work_of(module: Module, instruction: Instruction) -> tuple[int, int]:
    """(arithmetic operations, transcendental functions) of one instruction."""
    operands = [module.instructions[number] for number in instruction.operands]
    opcode, elements = instruction.opcode, instruction.elements
    if opcode in TRANSCENDENTAL:
        return 0, elements
    if opcode in ARITHMETIC:
        return elements, 0
    if opcode == "dot":
        sizes = numbers(instruction.attributes, "lhs_contracting_dims")
        shape = operands[0].shape or []
        return 2 * elements * math.prod(shape[axis] for axis in sizes), 0
    if opcode == "convolution":
        return convolution_work(instruction, operands), 0
    if opcode == "reduce":
        return max(operands[0].elements - (elements or 1), 0), 0
    if opcode == "reduce-window":
        found = re.search(r"size=([\dx]+)", instruction.attributes)
        window = math.prod(map(int, found[1].split("x"))) if found else 1
        return elements * (window - 1), 0
    if opcode == "scatter":
        return operands[-1].elements, 0
    return 0, 0


def convolution_work(instruction: Instruction, operands: list[Instruction]) -> int:
    """A multiplication and an addition for each output and each entry of its filter."""
    labels = re.search(r"dim_labels=\w+_(\w+)->", instruction.attributes)
    shape = operands[1].shape or []
    if labels is None:
        return 0
    out_features = shape[labels[1].index("o")]
    return 2 * instruction.elements * math.prod(shape) // max(out_features, 1)


def numbers(attributes: str, name: str) -> list[int]:
    """The numbers of an attribute such as `lhs_contracting_dims={1}`."""
    found = re.search(rf"\b{name}=\{{([\d,]*)\}}", attributes)
    return [int(part) for part in found[1].split(",") if part] if found else []
