"""The kernels of a compiled program: what each reads, writes and computes.

A kernel is an instruction that touches memory, in a computation that runs: the entry,
the body of a loop, a branch. Parameters, constants, tuples and bitcasts move nothing.
A fusion is one kernel. XLA wraps single operations as `fusion` too (`wrapped_sine` on
the CPU): such a kernel is not fused.

Bytes and operations are computed from shapes: every operand is read once and every
result written once; of an array that is only sliced, the slice; of one that is updated
in place, the update. Caches and repeated reads are not in it. Of the branches of a
`cond` one runs: a program's total counts the largest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

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
    if instruction.opcode == "fusion" and instruction.called:
        body = module.body(instruction.called[0])
        wanted = wanted_of(module, body)
        parameters = [inner for inner in body if inner.opcode == "parameter"]
        return sum(
            part(inner, wanted[inner.id]) if inner.elements else inner.bytes
            for inner in parameters
        )
    if instruction.opcode in READS_PART:
        return instruction.bytes + sum(operand.bytes for operand in operands[1:])
    return sum(operand.bytes for operand in operands[updated(instruction) :])


def wanted_of(module: Module, body: list[Instruction]) -> dict[int, int]:
    """How many elements a fusion needs of each instruction in it, to write its root.

    Of an array that is only sliced, the slices; of one that is updated in place, none.
    """
    wanted = dict.fromkeys((inner.id for inner in body), 0)
    root = next(inner for inner in body if inner.root)
    wanted[root.id] = -1  # all
    in_place = {update.id for update in in_place_at(module, root)}
    for inner in reversed(body):
        all_of = wanted[inner.id] < 0 or wanted[inner.id] >= inner.elements
        count = inner.elements if all_of else wanted[inner.id]
        for place, number in enumerate(inner.operands):
            operand = module.instructions[number]
            returned = inner is root and inner.opcode == "tuple"
            if passed_on(inner) or (returned and passed_on(operand)):
                continue
            if inner.opcode == "tuple" or not operand.elements:
                wanted[number] = -1
                continue
            if inner.id in in_place and place < updated(inner):
                continue
            if place == 0 and inner.opcode in READS_PART:
                more = count
            elif all_of or (place and inner.opcode in READS_PART):
                more = operand.elements
            elif operand.elements <= inner.elements:
                more = min(operand.elements, count)
            else:
                more = -(-operand.elements * count // inner.elements)
            if wanted[number] >= 0:
                wanted[number] = min(wanted[number] + more, operand.elements)
    return wanted


def part(array: Instruction, elements: int) -> int:
    """The bytes of some elements of an array; of all for a negative number."""
    if elements < 0:
        return array.bytes
    return -(-array.bytes * elements // max(array.elements, 1))


def updated(instruction: Instruction) -> int:
    """How many of its operands, the first, an instruction updates in place."""
    if instruction.opcode == "scatter":
        return len(instruction.operands) // 2
    return int(instruction.opcode == "dynamic-update-slice")


def in_place_at(module: Module, root: Instruction) -> Iterator[Instruction]:
    """The updates that a result consists of, if a kernel may do them in place.

    What is updated must then be memory that is there: a parameter.
    """
    operands = [module.instructions[number] for number in root.operands]
    if root.opcode == "tuple":
        for operand in operands:
            yield from in_place_at(module, operand)
    elif root.opcode == "bitcast" and operands:
        yield from in_place_at(module, operands[0])
    elif updated(root):
        arrays = [behind_bitcasts(module, each) for each in operands[: updated(root)]]
        if all(array.opcode == "parameter" for array in arrays):
            yield root


def behind_bitcasts(module: Module, instruction: Instruction) -> Instruction:
    """The array that bitcasts give other shapes."""
    while instruction.opcode == "bitcast":
        instruction = module.instructions[instruction.operands[0]]
    return instruction


def passed_on(inner: Instruction) -> bool:
    """Whether a kernel only hands an instruction's result on, from inside of it.

    On a TPU a kernel that runs while a collective is under way takes the collective's
    arrays and returns them.
    """
    return (
        inner.opcode in ("parameter", "all-gather", "all-reduce", "reduce-scatter")
        or inner.opcode in ("all-to-all", "collective-permute")
        or (inner.opcode == "custom-call" and '"AsyncCollective' in inner.attributes)
    )


def written_by(module: Module, instruction: Instruction) -> int:
    """The bytes that a kernel writes."""
    operands = [module.instructions[number] for number in instruction.operands]
    if instruction.opcode == "fusion" and instruction.called:
        root = module.instructions[module.computations[instruction.called[0]].root]
        in_place = {update.id for update in in_place_at(module, root)}
        if passed_on(root):
            return 0
        if root.opcode == "tuple":
            parts = [module.instructions[number] for number in root.operands]
            made = [part for part in parts if not passed_on(part)]
            return sum(written_at(module, part, in_place) for part in made)
        return written_at(module, root, in_place)
    if instruction.opcode == "copy-start":
        return operands[0].bytes  # its result also names the operand and a signal
    return written_at(module, instruction, {instruction.id})


def written_at(module: Module, root: Instruction, in_place: set[int]) -> int:
    """The bytes of a result; of an array that is updated in place, the update's."""
    operands = [module.instructions[number] for number in root.operands]
    if root.opcode == "tuple":
        return sum(written_at(module, operand, in_place) for operand in operands)
    if root.opcode == "bitcast" and operands:
        return written_at(module, operands[0], in_place)
    if root.id in in_place and root.opcode == "dynamic-update-slice":
        return operands[1].bytes
    if root.id in in_place and root.opcode == "scatter":
        return sum(operand.bytes for operand in operands[updated(root) + 1 :])
    return root.bytes


# ---- the whole program ---------------------------------------------------------------


@dataclass
class Total:
    """A sum over the kernels of a program that runs once.

    Of a branch the largest counts, and then `at_most` is set if the others differ; a
    loop as often as it runs, and one of unknown length once, and then `a_turn` is set.
    """

    amount: float = 0
    at_most: bool = False
    a_turn: bool = False


def total_of(
    module: Module, kernels: list[Kernel], amount: Callable[[Kernel], float]
) -> Total:
    """The sum of an amount over what runs of a program's kernels."""
    amounts = {kernel.instruction: amount(kernel) for kernel in kernels}
    total = Total()
    total.amount = amount_in(module, module.entry.id, amounts, total)
    return total


def amount_in(
    module: Module, computation: int, amounts: dict[int, float], total: Total
) -> float:
    """The sum over one run of a computation; notes in `total` what it stands for."""
    found = 0.0
    for instruction in module.body(computation):
        found += amounts.get(instruction.id, 0)
        if instruction.opcode not in CONTROL:
            continue
        inside = [amount_in(module, c, amounts, total) for c in instruction.called]
        if instruction.opcode == "conditional":
            total.at_most |= len(set(inside)) > 1
            found += max(inside, default=0)
        elif instruction.opcode == "while" and instruction.times is None:
            total.a_turn |= any(inside)
            found += sum(inside)
        else:
            turns = instruction.times if instruction.opcode == "while" else 1
            found += sum(inside) * (turns or 0)
    return found


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


LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
WINDOW = re.compile(r"\bwindow=\{([^}]*)\}")


def convolution_work(instruction: Instruction, operands: list[Instruction]) -> int:
    """A multiplication and an addition for each output and each entry of its filter
    that meets an entry of the input: none for padding, nor for holes between entries.

    XLA for TPUs writes products of matrices so, with their batch as a window.
    """
    labels = LABELS.search(instruction.attributes)
    if labels is None or None in (operands[0].shape, operands[1].shape):
        return 0
    given, weights, made = (
        dict(zip(text, shape or (), strict=True))
        for text, shape in zip(
            labels.groups(),
            (operands[0].shape, operands[1].shape, instruction.shape),
            strict=True,
        )
    )
    window = WINDOW.search(instruction.attributes)
    parts = dict(part.split("=") for part in (window[1] if window else "").split())
    count = made["b"] * made["f"] * weights["i"]
    for place, name in enumerate(sorted(label for label in given if label.isdigit())):

        def of(word: str, usual: str, place: int = place) -> str:
            return parts[word].split("x")[place] if word in parts else usual

        low = int(of("pad", "0_0").split("_")[0])
        at = np.arange(made[name])[:, None] * int(of("stride", "1"))
        at = at + np.arange(weights[name]) * int(of("rhs_dilate", "1")) - low
        spread = int(of("lhs_dilate", "1"))
        meets = (at % spread == 0) & (at >= 0) & (at < given[name] * spread)
        count *= int(meets.sum())
    return 2 * count


def numbers(attributes: str, name: str) -> list[int]:
    """The numbers of an attribute such as `lhs_contracting_dims={1}`."""
    found = re.search(rf"\b{name}=\{{([\d,]*)\}}", attributes)
    return [int(part) for part in found[1].split(",") if part] if found else []
