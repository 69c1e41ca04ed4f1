"""HLO text read into data: computations, instructions, what they compute and call.

XLA prints a program as computations of instructions, one a line:

    %fused (p: f32[8]) -> f32[8] {
      %p = f32[8]{0} parameter(0)
      ROOT %s = f32[8]{0} sine(%p), metadata={op_name="jit(f)/sin"}
    }

    ENTRY %main (x: f32[8]) -> f32[8] {
      %x = f32[8]{0} parameter(0)
      ROOT %r = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused
    }

jaxlib's own objects know no shapes and no attributes, and the dumps of passes are text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from minijax_lab.explain.equation_marks import equations_in, unmarked


@dataclass
class Instruction:
    """One instruction. Operands are instructions, `called` are computations, by id.

    `type` is without layout (`f32[8,4]`), `layout` what stands in braces behind it:
    the order of the axes, tiles, memory space. `shape` is None for a tuple. `equation`
    is the equation that XLA says it comes from.
    """

    id: int
    computation: int
    name: str
    opcode: str
    type: str
    layout: str
    shape: list[int] | None
    bytes: int
    operands: list[int]
    called: list[int]
    attributes: str
    kind: str  # of a fusion: "Loop", "Input", "Output", "Custom"
    root: bool
    op_name: str
    equation: int | None
    times: int | None = None  # of a loop, how often it runs, if XLA knows
    frame: int | None = None  # the stack of Python frames, in the tables of the text
    # The equations that carry it, the outermost first: calls, loops, branches.
    around: list[int] = field(default_factory=list)

    @property
    def elements(self) -> int:
        """How many numbers an array has; 0 for a tuple."""
        count = 0 if self.shape is None else 1
        for size in self.shape or ():
            count *= size
        return count


@dataclass
class Computation:
    """A computation: its instructions in XLA's order, and the one that it returns."""

    id: int
    name: str
    instructions: list[int]
    root: int
    entry: bool = False


@dataclass
class Module:
    """A program as XLA prints it."""

    name: str
    computations: list[Computation]
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def entry(self) -> Computation:
        """The computation that runs."""
        return next(c for c in self.computations if c.entry)

    def body(self, computation: int) -> list[Instruction]:
        """The instructions of a computation."""
        ids = self.computations[computation].instructions
        return [self.instructions[number] for number in ids]

    def readers(self, instruction: Instruction) -> Iterator[Instruction]:
        """What reads an instruction; of a kernel, the instructions inside of it."""
        for each in self.instructions:
            if instruction.id not in each.operands:
                continue
            if each.opcode == "fusion":
                place = str(each.operands.index(instruction.id))
                for inner in self.body(each.called[0]):
                    if inner.opcode == "parameter" and inner.attributes == place:
                        yield from self.readers(inner)
            else:
                yield each

    def user_of(self, instruction: Instruction, known: Container) -> Instruction | None:
        """An instruction whose stack of frames is `known`: this one, or its reader.

        jaxlib 0.12 gives the gathering of an argument the argument's name and no stack.
        Readers without a name, and the end of a collective, are passed over.
        """
        level = [instruction]
        while level:
            found = [each for each in level if each.frame in known]
            if found:
                return found[-1]
            passed = [
                each
                for each in level
                if each is instruction
                or not each.op_name
                or each.opcode.endswith("-done")
            ]
            level = [reader for each in passed for reader in self.readers(each)]
        return None

    def line(self, instruction: Instruction) -> str:
        """An instruction as text, with its attributes."""
        operands = ", ".join(self.instructions[i].name for i in instruction.operands)
        told = f"{instruction.name} = {instruction.type}{instruction.layout} "
        if instruction.opcode in ("constant", "parameter"):
            return f"{told}{instruction.opcode}({instruction.attributes})"
        told += f"{instruction.opcode}({operands})"
        if instruction.attributes:
            told += f", {instruction.attributes}"
        return told


HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$|^(ENTRY )?%?([\w.\-]+) \{$")
LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-#]+) = (.*)$")
OPCODE = re.compile(r" ([a-z][\w\-]*)\(")
ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\]")
NAME = re.compile(r"%?([\w.\-#]+)$")
# What XLA writes into files since jaxlib 0.12 for element 2 of a tuple: `%tuple#2`.
ELEMENT = re.compile(r"%(([\w.\-]+)#(\d+))")
METADATA = re.compile(r',? ?metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
CONFIG = re.compile(r",? ?backend_config=.*$")
CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation)="
    r"%?([\w.\-]+)|\b(?:branch_computations|called_computations|calls)=\{([^}]*)\}"
)
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
STACK = re.compile(r"\bstack_frame_id=(\d+)")
KIND = re.compile(r"\bkind=k(\w+)")
COMMENT = re.compile(r"/\*.*?\*/")

BITS = {"pred": 8, "token": 0, "opaque": 0}


def element_bits(kind: str) -> int:
    """The bits of an element of a type such as `f32`, `bf16`, `c64`, `f8e4m3fn`."""
    if kind in BITS:
        return BITS[kind]
    found = re.match(r"(?:bf|[a-z])(\d+)", kind)
    return int(found[1]) if found else 0


def size_of(text: str) -> int:
    """The bytes of a type: an array, or all the arrays of a tuple."""
    total = 0
    for kind, sizes in ARRAY.findall(text):
        count = 1
        for size in dimensions(sizes):
            count *= size
        total += -(-count * element_bits(kind) // 8)
    return total


def dimensions(sizes: str) -> list[int]:
    """The sizes of `8,<=4`; one that is only bounded counts as its bound."""
    return [int(size.lstrip("<=")) for size in sizes.split(",") if size]


def closing(text: str, start: int) -> int:
    """The position behind the bracket that closes the one at `start`."""
    depth = 0
    quoted = False
    for position in range(start, len(text)):
        character = text[position]
        if character == '"' and text[position - 1] != "\\":
            quoted = not quoted
        elif not quoted and character in "([{":
            depth += 1
        elif not quoted and character in ")]}":
            depth -= 1
            if not depth:
                return position + 1
    return len(text)


def split(text: str) -> Iterator[str]:
    """The parts of a list between commas outside of all brackets."""
    start = depth = 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and not depth:
            yield text[start:position].strip()
            start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def without_layout(text: str) -> tuple[str, str]:
    """(a type without layouts, the layout of an array)."""
    if text.startswith("("):
        parts = [without_layout(part)[0] for part in split(text[1:-1])]
        return f"({', '.join(parts)})", ""
    brace = text.find("{")
    return (text, "") if brace < 0 else (text[:brace], text[brace:])


def parse(text: str) -> Module:
    """The program of a module's text.

    Raises ValueError for a text that is no HLO module.
    """
    name = re.match(r"\s*HloModule ([\w.\-]+)", text)
    if name is None:
        raise ValueError("this is not a text of an HLO module: it begins otherwise.")
    module = Module(name[1], [])
    computations: dict[str, int] = {}
    pending: list[tuple[Instruction, list[str], list[str]]] = []
    current: Computation | None = None
    named: dict[str, int] = {}
    lines = with_elements(text) if ELEMENT.search(text) else text.split("\n")
    for line in lines:
        if current is None:
            found = HEADER.match(line) if line.endswith("{") else None
            if found is not None:
                entry = bool(found[1] or found[3])
                title = found[2] or found[4]
                number = len(module.computations)
                current = Computation(number, title, [], -1, entry)
                module.computations.append(current)
                computations[title] = number
                named = {}
        elif line.startswith("}"):
            current = None
        elif (found := LINE.match(line)) is not None:
            instruction, operands, called = parse_instruction(found)
            instruction.id = len(module.instructions)
            instruction.computation = current.id
            instruction.operands = [named[o] for o in operands if o in named]
            named[instruction.name] = instruction.id
            module.instructions.append(instruction)
            current.instructions.append(instruction.id)
            if instruction.root:
                current.root = instruction.id
            if called:
                pending.append((instruction, operands, called))
    for instruction, _, called in pending:
        instruction.called = [computations[c] for c in called if c in computations]
    for instruction, _, _ in pending:
        if instruction.opcode == "while" and instruction.times is None:
            instruction.times = turns_of(module, instruction)
    return module


def with_elements(text: str) -> Iterator[str]:
    """The lines of a text, with a `get-tuple-element` before the first use of each
    element that is written `%tuple#2`."""
    written: dict[str, str] = {}
    for line in text.split("\n"):
        if (found := LINE.match(line)) is not None:
            for name, source, index in ELEMENT.findall(METADATA.sub("", line)):
                if name not in written:
                    whole = COMMENT.sub("", written[source])
                    kind = list(split(whole[1 : closing(whole, 0) - 1]))[int(index)]
                    origin = METADATA.search(whole)
                    yield (
                        f"  %{name} = {kind} get-tuple-element(%{source}), "
                        f"index={index}{origin[0] if origin else ''}"
                    )
                    written[name] = kind
            written[found[2]] = found[3]
        elif line.startswith("}"):
            written = {}
        yield line


def turns_of(module: Module, loop: Instruction) -> int | None:
    """How often a loop runs that counts from one constant to another.

    XLA for TPUs does not write it down: the condition is `counter < end`, and the body
    adds a constant to the counter. None for any other loop.
    """

    def behind(number: int) -> Instruction:
        found = module.instructions[number]
        while found.opcode in ("copy", "bitcast"):
            found = module.instructions[found.operands[0]]
        return found

    def constant(instruction: Instruction) -> int | None:
        number = re.match(r"-?\d+", instruction.attributes)
        known = instruction.opcode == "constant" and instruction.shape == []
        return int(number[0]) if known and number else None

    def counter(instruction: Instruction) -> int | None:
        found = re.search(r"\bindex=(\d+)", instruction.attributes)
        element = instruction.opcode == "get-tuple-element"
        return int(found[1]) if element and found else None

    roots = [module.instructions[module.computations[c].root] for c in loop.called]
    tests = [root for root in roots if root.opcode == "compare"]
    bodies = [root for root in roots if root.opcode == "tuple"]
    if len(tests) != 1 or len(bodies) != 1 or "direction=LT" not in tests[0].attributes:
        return None
    left, right = (behind(number) for number in tests[0].operands)
    place, end = counter(left), constant(right)
    given = behind(loop.operands[0]) if loop.operands else None
    if place is None or end is None or given is None or given.opcode != "tuple":
        return None
    start = constant(behind(given.operands[place]))
    added = behind(bodies[0].operands[place])
    if start is None or added.opcode != "add":
        return None
    parts = [behind(number) for number in added.operands]
    step = next((n for n in map(constant, parts) if n is not None), None)
    if step is None or step < 1 or place not in map(counter, parts):
        return None
    return max(0, -(-(end - start) // step))


def parse_instruction(
    found: re.Match[str],
) -> tuple[Instruction, list[str], list[str]]:
    """(an instruction, the names of its operands, of the computations it calls)."""
    rest = COMMENT.sub("", found[3])
    end = closing(rest, 0) if rest.startswith("(") else rest.index(" ")
    kind, layout = without_layout(rest[:end])
    begins = OPCODE.match(rest, end)
    if begins is None:
        raise ValueError(f"an instruction of HLO without an operation: {found[0]}")
    stop = closing(rest, begins.end() - 1)
    inside = rest[begins.end() : stop - 1]
    behind = rest[stop:].removeprefix(",").strip()
    opcode = begins[1]
    operands: list[str] = []
    attributes = CONFIG.sub("", METADATA.sub("", behind)).strip(", ")
    if opcode in ("constant", "parameter"):
        attributes = ", ".join(part for part in (inside, attributes) if part)
    else:
        operands = [NAME.search(part)[1] for part in split(inside)]  # type: ignore
    called = []
    for one, several in CALLED.findall(behind):
        called += [one] if one else [n.strip().lstrip("%") for n in several.split(",")]
    op_name = OP_NAME.search(behind)
    full = op_name[1] if op_name else ""
    marks = equations_in(full)
    array = None if kind.startswith("(") else ARRAY.match(kind)
    trips = TRIPS.search(behind)
    stack = STACK.search(behind)
    fusion = KIND.search(attributes)
    instruction = Instruction(
        id=0,
        computation=0,
        name=found[2],
        opcode=opcode,
        type=kind,
        layout=layout,
        shape=dimensions(array[2]) if array else None,
        bytes=size_of(kind),
        operands=[],
        called=[],
        attributes=attributes,
        kind=fusion[1] if fusion and opcode == "fusion" else "",
        root=bool(found[1]),
        op_name=unmarked(full),
        equation=marks[-1] if marks else None,
        times=int(trips[1]) if trips else None,
        frame=int(stack[1]) if stack else None,
        around=marks[:-1],
    )
    return instruction, operands, called
