"""Which instructions of two programs compute the same value, by where data come from.

Two instructions have the same value if they do the same operation on the same values;
values begin at the parameters of the program. So the third of twelve equal layers is
the third in both programs, though each of its operations looks like the first layer's.
"""

from __future__ import annotations

import re

from minijax_lab.explain.hlo_text import Instruction, Module

# They name, lay out or copy what is there.
SAME = {
    "bitcast",
    "copy",
    "copy-start",
    "copy-done",
    "opt-barrier",
    "optimization-barrier",
}
# What of the attributes belongs to the operation; the rest are names and hints.
MEANT = re.compile(
    r"\b(?:dimensions|slice|\w+_contracting_dims|\w+_batch_dims|direction|index"
    r"|iota_dimension|padding|window|dim_labels|dynamic_slice_sizes|\w+_dims"
    r"|slice_sizes|comparison_direction|custom_call_target)=(\{.*?\}|[^, ]+)"
)

Value = int | tuple["Value", ...]


class DataFlow:
    """Numbers values; programs read by one `DataFlow` share their numbers."""

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {}

    def values_of(self, module: Module) -> dict[int, Value]:
        """The value of each instruction that the entry reaches, by id.

        Of a computation that is called from several places, the value at the first.
        """
        found: dict[int, Value] = {}
        self.read(module, module.entry.id, None, found)
        return found

    def number(self, *key: object) -> int:
        """The number of a value."""
        return self.numbers.setdefault(key, len(self.numbers))

    def read(
        self,
        module: Module,
        computation: int,
        given: list[Value] | None,
        found: dict[int, Value],
    ) -> Value:
        """Numbers a computation whose parameters are `given`; returns its result."""
        here: dict[int, Value] = {}
        for instruction in module.body(computation):
            operands = [here[number] for number in instruction.operands]
            value = self.value(module, instruction, operands, given, found)
            here[instruction.id] = value
            found.setdefault(instruction.id, value)
        return here[module.computations[computation].root]

    def value(
        self,
        module: Module,
        instruction: Instruction,
        operands: list[Value],
        given: list[Value] | None,
        found: dict[int, Value],
    ) -> Value:
        """The value of an instruction."""
        opcode = instruction.opcode
        if opcode == "parameter":
            position = int(re.match(r"\d+", instruction.attributes)[0])  # type: ignore
            if given is None or position >= len(given):
                return self.number("parameter", position)
            return given[position]
        if opcode in SAME and operands:
            return operands[0]
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element" and isinstance(operands[0], tuple):
            index = re.search(r"index=(\d+)", instruction.attributes)
            return operands[0][int(index[1])] if index else operands[0]
        if opcode in ("fusion", "call") and instruction.called:
            return self.read(module, instruction.called[0], operands, found)
        what = ", ".join(each[0] for each in MEANT.finditer(instruction.attributes))
        if opcode == "constant":
            what = instruction.attributes
        value = self.number(opcode, instruction.type, what, *operands)
        for place, called in enumerate(instruction.called):
            if opcode in ("while", "conditional"):
                sizes = module.body(called)
                count = sum(each.opcode == "parameter" for each in sizes)
                begins: list[Value] = [
                    self.number("inside", value, place * (opcode != "while"), n)
                    for n in range(count)
                ]
                self.read(module, called, begins, found)
        return value
