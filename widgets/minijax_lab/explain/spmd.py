"""A program over several devices as compiled: its mesh, and the collectives in it.

XLA writes one program that all devices run, and into it the collectives: which groups
of devices exchange data, and how much. That is read here from the optimised program's
text, of minijax and of real JAX alike. Which links the data takes, and in how many
messages, is not in it.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minijax
from minijax.compile import stages
from minijax.compile.titles import title_of
from minijax.core import hlo
from minijax.core.trees import tree_flatten
from minijax_lab.explain import foreign, foreign_compiled
from minijax_lab.explain.foreign_compiled import span_of, user_frames
from minijax_lab.explain.foreign_programs import is_of_jaxs
from minijax_lab.explain.hlo_text import Instruction, Module, parse
from minijax_lab.explain.placement import UNNAMED, MeshAxis, MeshFacts, mesh_of
from minijax_lab.explain.recording import Source, Sources, Span

OPCODES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "collective-permute",
    "all-to-all",
    "collective-broadcast",
    "ragged-all-to-all",
)
# minijax's own frames stand between an operation and the user's line.
FRAMES = 60
STAGES = ("Lowered", "Compiled", "CompiledForTarget")


@dataclass
class Part:
    """One of several values that XLA put into one collective: where it comes from."""

    primitive: str
    line: str
    bytes: int
    number: int  # of the line in its file; 0 if unknown


@dataclass
class Collective:
    """One collective of the compiled program.

    `groups` are positions in the mesh; of a collective-permute they are the pairs
    (from, to). `bytes` is what each device gives to it, `result_bytes` what it gets.
    `axes` are the mesh axes along which the members of a group differ. `times` is how
    often a loop around it runs; None if XLA does not know. One that XLA made of several
    has their `parts`.
    """

    opcode: str
    name: str
    groups: list[list[int]]
    axes: list[str]
    bytes: int
    result_bytes: int
    text: str
    times: int | None = 1
    primitive: str = ""
    span: Span | None = None
    where: str = ""
    line: str = ""
    note: str = ""
    itemsize: int = 1
    parts: list[Part] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many devices a group has."""
        return max((len(group) for group in self.groups), default=1)

    @property
    def sent(self) -> int:
        """The bytes that a device sends at most if the members stand in a ring.

        All-reduce: 2(n-1)/n of what it gives; all-gather: n-1 times that;
        reduce-scatter and all-to-all: (n-1)/n; a permutation: all of it. An element is
        not cut: where there are fewer than members, a part may be empty.
        """
        n = self.size
        elements = self.bytes // self.itemsize
        least = elements // max(n, 1) * self.itemsize  # the smallest of n parts
        if self.opcode == "collective-permute":
            return self.bytes if any(a != b for a, b in self.pairs) else 0
        if self.opcode == "all-gather":
            return self.bytes * (n - 1)
        if self.opcode == "all-reduce":
            return 2 * (self.bytes - least) if n > 1 else 0
        return self.bytes - least if n > 1 else 0

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Who sends to whom in a collective-permute."""
        return [(group[0], group[-1]) for group in self.groups]

    @property
    def total(self) -> int:
        """The bytes that all devices send in such a ring, all runs of a loop added."""
        times = self.times or 1
        if self.opcode == "collective-permute":
            return times * self.bytes * sum(a != b for a, b in self.pairs)
        # Each part of what a group works on goes to n-1 members, or around twice.
        sizes = [len(group) for group in self.groups]
        if self.opcode == "all-gather":
            return times * self.bytes * sum(n * (n - 1) for n in sizes)
        around = 2 if self.opcode == "all-reduce" else 1
        return times * around * self.bytes * sum(n - 1 for n in sizes)


@dataclass
class Program:
    """A compiled program with its mesh; `lowered` is its StableHLO, if known."""

    name: str
    text: str
    module: Module
    mesh: MeshFacts
    compiled: Any
    lowered: str = ""
    sources: list[Source] = field(default_factory=list)
    spans: dict[int, Span | None] = field(default_factory=dict)
    lines: dict[int, tuple[str, str]] = field(default_factory=dict)


def program_of(
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    options: dict[str, Any],
    target: str | None = None,
) -> Program:
    """The compiled program of a function, or of a lowered or compiled stage.

    `target` names machines to compile for, such as "h100:8" or "tpu-v5e:2x4".

    JAX compiles what calls JAX or gets its arrays. Raises TypeError for what is none of
    these, or for a target of what JAX compiles or what is compiled already.
    """
    stage = stage_of(function, args, kwargs, options)
    lowered = ""
    compiled = stage
    if target is not None and not isinstance(stage, stages.Lowered):
        raise TypeError(
            f"target={target!r} is for minijax's functions and lowered programs, got "
            f"{stage_in_words(stage)}. Write the function with minijax.numpy, or leave "
            "target out."
        )
    if target is not None:
        with deep_locations():
            compiled = stage.compile(target=target)
        lowered = stage.as_text(debug_info=True)
    elif hasattr(stage, "compile"):
        lowered = stage.as_text(debug_info=True)
        compiled = stage.compile()
    text = compiled.as_text()
    module = parse(text)
    mesh = mesh_of_program(compiled, text)
    name = module.name.removeprefix("jit_")
    of_jax = foreign.is_of_jax(function) or foreign_compiled.is_jitted(function)
    if callable(function) and not of_jax:
        name = title_of(function)  # with the transformations around it
    program = Program(name, text, module, mesh, compiled, lowered)
    sources = Sources()
    for number, frame in user_frames(text).items():
        span = span_of(frame, sources)
        program.spans[number] = span
        said = ""
        if span is not None:
            source = sources.found[span.source]
            said = source.lines[span.line - source.first_line].strip()
            where = f"{source.file}, line {span.line}"
        else:
            where = f"line {frame[2]}"
        program.lines[number] = (where, said)
    program.sources = sources.found
    return program


def compiled_for(target: str | None) -> str:
    """What a headline adds to the name of a program for a target."""
    return "" if target is None else f" for {target}"


def stage_in_words(stage: Any) -> str:
    """What a stage is, in a few words."""
    whose = "JAX's" if foreign.is_of_jax(stage) else "a"
    return f"{whose} {type(stage).__name__} program"


def stage_of(
    function: Any, args: tuple, kwargs: dict[str, Any], options: dict[str, Any]
) -> Any:
    """A lowered or compiled stage."""
    given = {name: value for name, value in options.items() if value is not None}
    kind = type(function).__name__
    if kind in STAGES and hasattr(function, "as_text"):
        if given or args or kwargs:
            raise TypeError(
                f"this {kind} program has its arguments and shardings already. Give "
                "it alone."
            )
        return function
    if hasattr(function, "lower") and callable(function):
        if given:
            raise TypeError(
                f"{', '.join(given)} belongs to jit, and this function is jitted "
                "already. Give it there, or give the function without jit."
            )
        if foreign_compiled.is_jitted(function):
            foreign.leave_out_jax_frames()
        with deep_locations():
            return function.lower(*args, **kwargs)
    if not callable(function):
        raise TypeError(
            f"a function, or a lowered or compiled one, was expected, got {function!r}."
        )
    if is_of_jaxs(function, (args, kwargs)):
        foreign.leave_out_jax_frames()
        return sys.modules["jax"].jit(function, **given).lower(*args, **kwargs)
    with deep_locations():
        return minijax.jit(function, **given).lower(*args, **kwargs)


@contextlib.contextmanager
def deep_locations() -> Iterator[None]:
    """Lets locations keep so many frames that the user's is among them."""
    before = hlo.FRAME_LIMIT
    hlo.FRAME_LIMIT = FRAMES
    try:
        yield
    finally:
        hlo.FRAME_LIMIT = before


def mesh_of_program(compiled: Any, text: str) -> MeshFacts:
    """The mesh of a program's shardings; without one, its devices in a row."""
    found: list[Any] = []
    known: dict[Any, int] = {}
    for attribute in ("input_shardings", "output_shardings"):
        for sharding in tree_flatten(getattr(compiled, attribute, None))[0]:
            mesh: Any = getattr(sharding, "mesh", None)
            if getattr(mesh, "devices", None) is not None and mesh.size:
                found.append(sharding)
    if found:
        biggest = max(found, key=lambda sharding: sharding.mesh.size)
        meshes: list[MeshFacts] = []
        return meshes[mesh_of(biggest, meshes, known)]
    count = re.search(r"\bnum_partitions=(\d+)", text)
    size = int(count[1]) if count else 1
    return MeshFacts([MeshAxis(UNNAMED, size)], list(range(size)), "", named=False)


# ---- collectives --------------------------------------------------------------------

PAIRS = re.compile(r"\bsource_target_pairs=\{(.*?\})\}")
CHANNEL = re.compile(r"\bchannel_id=\d+")
MESH = re.compile(r"mesh\[([^\]]*)\](?:, device_ids=\((.*?\)?)\))? (\{[^}]*\})")
DEVICE_IDS = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?$")
MESH_AXIS = re.compile(r"'([^']+)'=(\d+)")
USED_AXIS = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")
IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")


def collectives_of(program: Program) -> list[Collective]:
    """The collectives of a program, in the order in which XLA wrote them."""
    module, mesh = program.module, program.mesh
    runs = runs_of(module)
    found = []
    fused = fused_in(module)
    begun: set[str] = set()
    for instruction in module.instructions:
        opcode = instruction.opcode.removesuffix("-start")
        if opcode not in OPCODES or instruction.computation not in runs:
            continue
        channel = CHANNEL.search(instruction.attributes)
        if channel is not None and instruction.computation in fused:
            # On a TPU each kernel that runs meanwhile names the collective again.
            if channel[0] in begun:
                continue
            begun.add(channel[0])
        groups = groups_of(instruction, len(mesh.devices))
        given = sum(module.instructions[o].bytes for o in instruction.operands)
        result = instruction.bytes
        if instruction.opcode.endswith("-start") and opcode != "all-reduce":
            result = max(0, result - given)  # a tuple of what is given and the result
        said = instruction
        if said.frame is None:
            said = module.user_of(instruction, program.lines) or instruction
        frame = said.frame or 0
        where, line = program.lines.get(frame, ("", ""))
        parts = parts_of(instruction, program)
        found.append(
            Collective(
                opcode,
                instruction.name,
                groups,
                axes_of(groups, mesh),
                given,
                result,
                module.line(instruction),
                runs[instruction.computation],
                said.op_name.rpartition("/")[2],
                program.spans.get(frame),
                where,
                line,
                note_of(groups, parts, frame, program),
                itemsize_of(module, instruction),
                parts,
            )
        )
    return found


def fused_in(module: Module) -> set[int]:
    """The computations that are the insides of kernels."""
    return {
        called
        for instruction in module.instructions
        if instruction.opcode == "fusion"
        for called in instruction.called
    }


def parts_of(instruction: Instruction, program: Program) -> list[Part]:
    """The values that one instruction exchanges, if XLA joined several."""
    count = len(instruction.operands)
    if count < 2 or instruction.opcode.startswith("all-to-all"):
        return []
    found = []
    for operand in instruction.operands:
        made = program.module.instructions[operand]
        _, line = program.lines.get(made.frame or 0, ("", ""))
        span = program.spans.get(made.frame or 0)
        primitive = made.op_name.rpartition("/")[2]
        found.append(Part(primitive, line, made.bytes, span.line if span else 0))
    return found


def note_of(
    groups: list[list[int]], parts: list[Part], frame: int, program: Program
) -> str:
    """What a reader should know of a collective that its row does not say."""
    if not groups:
        return "its groups are written in a form not read here"
    if not parts:
        return ""
    span = program.spans.get(frame)
    own = span.line if span else 0
    others = sorted({part.number for part in parts} - {own})
    if not own or others[:1] == [0]:
        return f"XLA joined {len(parts)} of them; the line is that of one"
    if not others:
        return f"XLA joined {len(parts)} of them"
    told = ", ".join(map(str, others[:6])) + (", ..." if len(others) > 6 else "")
    lines = "line" if len(others) == 1 else "lines"
    return f"XLA joined {len(parts)} of them; the others are of {lines} {told}"


def itemsize_of(module: Module, instruction: Instruction) -> int:
    """The bytes of an element of what an instruction is given; 1 for several types."""
    sizes = set()
    for number in instruction.operands:
        operand = module.instructions[number]
        sizes.add(operand.bytes // operand.elements if operand.elements else 1)
    return sizes.pop() or 1 if len(sizes) == 1 else 1


def runs_of(module: Module) -> dict[int, int | None]:
    """How often each computation runs, loops of unknown length as None."""
    runs: dict[int, int | None] = {module.entry.id: 1}
    todo = [module.entry.id]
    while todo:
        computation = todo.pop()
        outer = runs[computation]
        for instruction in module.body(computation):
            for called in instruction.called:
                times = outer
                if instruction.opcode == "while":
                    inner = instruction.times
                    times = None if outer is None or inner is None else outer * inner
                if called not in runs:
                    runs[called] = times
                    todo.append(called)
    return runs


def groups_of(instruction: Instruction, count: int) -> list[list[int]]:
    """The groups that an instruction's attributes name; [] if they cannot be read."""
    pairs = PAIRS.search(instruction.attributes)
    if pairs is not None:
        numbers = [int(n) for n in re.findall(r"\d+", pairs[1])]
        return [numbers[i : i + 2] for i in range(0, len(numbers), 2)]
    start = instruction.attributes.find("replica_groups=")
    if start < 0:
        return [list(range(count))]
    text = instruction.attributes[start + len("replica_groups=") :]
    iota = IOTA.match(text)
    if iota is not None:
        shape = [int(n) for n in iota[1].split(",")]
        sizes = [int(n) for n in iota[2].split(",")]
        numbers_ = np.arange(math.prod(sizes)).reshape(sizes)
        if iota[3]:
            numbers_ = numbers_.transpose([int(n) for n in iota[3].split(",")])
        return [[int(n) for n in row] for row in numbers_.reshape(shape)]
    of_mesh = MESH.match(text)
    if of_mesh is not None:
        return groups_of_mesh(of_mesh[1], of_mesh[2] or "", of_mesh[3])
    if text.startswith("{}"):
        return [list(range(count))]
    if text.startswith("{{"):
        inside = text[1 : text.index("}}") + 1]
        rows = re.findall(r"\{([\d,]*)\}", inside)
        return [[int(n) for n in row.split(",") if n] for row in rows]
    return []


def ordered_devices(text: str, count: int) -> np.ndarray:
    """The devices of `device_ids=([2,2,2]T(0,2,1))` or `(0,2,1,3)`, in their order."""
    iota = DEVICE_IDS.match(text)
    if iota is None:
        numbers = [int(n) for n in re.findall(r"\d+", text)]
        return np.array(numbers) if numbers else np.arange(count)
    table = np.arange(count).reshape([int(n) for n in iota[1].split(",")])
    if iota[2]:
        table = table.transpose([int(n) for n in iota[2].split(",")])
    return table.reshape(-1)


def groups_of_mesh(axes: str, devices: str, used: str) -> list[list[int]]:
    """The groups of `mesh['a'=4,'b'=2] {'b'}`; `'a':(2)2` is a part of an axis.

    Such an axis counts as several: those before the part, the part, those after it.
    """
    sizes = [(name, int(size)) for name, size in MESH_AXIS.findall(axes)]
    parts: list[int] = []
    chosen: dict[tuple[str, str], int] = {}
    asked = USED_AXIS.findall(used)
    for name, size in sizes:
        cuts = {1, size}
        for other, before, length in asked:
            if other == name and before:
                cuts |= {int(before), int(before) * int(length)}
        ends = sorted(cuts)
        for start, end in zip(ends, ends[1:], strict=False):
            chosen[name, str(start)] = len(parts)
            parts.append(end // start)
        if size == 1:
            chosen[name, "1"] = len(parts)
            parts.append(1)
    last: list[int] = []
    for name, before, length in asked:
        if not before:
            last += [place for (of, _), place in chosen.items() if of == name]
            continue
        start, end = int(before), int(before) * int(length)
        for (of, at), place in chosen.items():
            if of == name and start <= int(at) < end:
                last.append(place)
    numbers = ordered_devices(devices, math.prod(parts)).reshape(parts)
    first = [place for place in range(len(parts)) if place not in last]
    count = math.prod(parts[place] for place in last)
    table = numbers.transpose([*first, *last]).reshape(-1, count)
    return [[int(n) for n in row] for row in table]


def axes_of(groups: list[list[int]], mesh: MeshFacts) -> list[str]:
    """The mesh axes along which the members of a group differ."""
    found = []
    for axis in mesh.axes:
        for group in groups:
            if len({mesh.place(member)[axis.name] for member in group}) > 1:
                found.append(axis.name)
                break
    return found
