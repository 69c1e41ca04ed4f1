"""The recording behind `see.placement` of a program: where each value is, and why.

From three places: Shardy's own record of its steps, the shardings that the compiled
program asks for and gives, and the collectives that XLA wrote into it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.core.trees import keystr, tree_flatten, tree_flatten_with_path
from minijax_lab.explain import shardy
from minijax_lab.explain.foreign_compiled import is_users, span_of
from minijax_lab.explain.hlo_text import element_bits
from minijax_lab.explain.placement import (
    MeshFacts,
    Piece,
    PlacedValue,
    spec_of_cuts,
    suggest,
    type_text,
)
from minijax_lab.explain.recording import (
    Recording,
    Source,
    Sources,
    Span,
    count_in_words,
)
from minijax_lab.explain.spmd import (
    Collective,
    Part,
    Program,
    collectives_of,
    compiled_for,
    program_of,
)
from minijax_lab.explain.tree import size_in_words


@dataclass
class ProgramValue:
    """A value of the program. `step` is the last one of Shardy's that cut it.

    `made_by` is the operation's name in the user's words, `role` "argument", "result"
    or "". A result is `asked` for where its sharding was given, or where a gradient
    lies as its parameter does. `collectives` are those that XLA wrote for the operation
    that makes it.
    """

    placed: PlacedValue
    role: str
    made_by: str = ""
    operands: list[int] = field(default_factory=list)
    step: int = -1
    asked: bool = True
    collectives: list[int] = field(default_factory=list)
    span: Span | None = None
    where: str = ""
    line: str = ""

    @property
    def unasked(self) -> bool:
        """Whether it is a result in copies that nobody asked for."""
        return self.role == "result" and not self.asked and bool(self.placed.better)


@dataclass
class PropagationStep:
    """A step of Shardy: an axis goes from one value of an operation to others."""

    number: int
    axis: str
    operation: str
    source: int
    targets: list[int]
    rule: str
    where: str
    text: str


@dataclass
class Transfer:
    """An argument that is not where the program wants it, and the bytes to move."""

    name: str
    type: str
    before: str
    after: str
    bytes: int
    values: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class PropagationRecording(Recording):
    """A program's values and their placement."""

    kind = "propagation"

    mesh: MeshFacts
    values: list[ProgramValue]
    steps: list[PropagationStep]
    collectives: list[Collective]
    transfers: list[Transfer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def record_propagation(
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    options: dict[str, Any],
    target: str | None = None,
) -> PropagationRecording:
    """Records the placement of a program's values.

    Raises TypeError for a program that is compiled already: Shardy's steps are not kept
    in it.
    """
    if type(function).__name__ in ("Compiled", "CompiledForTarget"):
        raise TypeError(
            "a compiled program has no record of how its shardings came about. Give "
            "see.placement the function, or what .lower(...) returned; see.collectives "
            "takes the compiled program."
        )
    program = program_of(function, args, kwargs, options, target)
    found, reason = shardy.propagate(program.lowered)
    collectives = collectives_of(program)
    builder = _Builder(program, collectives)
    if found is None:
        builder.notes.append(reason)
        found = {"arguments": 0, "values": [], "operations": [], "asked": []}
    builder.build(found)
    transfers = transfers_of(args, kwargs, program, builder.arguments)
    values = builder.values
    unasked = [n for n, value in enumerate(values) if value.unasked]
    return PropagationRecording(
        call=program.name,
        headline=headline(program, values, collectives, target),
        telling=unasked[0] if unasked else max(0, len(values) - 1),
        sources=builder.sources.found,
        mesh=program.mesh,
        values=values,
        steps=builder.steps,
        collectives=builder.collectives,
        transfers=transfers,
        notes=builder.notes,
    )


TENSOR = re.compile(r"tensor<((?:\d+x)*)([\w<>]+?)>$")
DTYPES = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}
PASSING = ("func.return", "stablehlo.return", "sdy.return", "sdy.data_flow_edge")


class _Builder:
    """Makes values and steps of what Shardy told."""

    def __init__(self, program: Program, collectives: list[Collective]) -> None:
        self.program = program
        self.mesh = program.mesh
        self.collectives = collectives
        self.sources = Sources()
        self.values: list[ProgramValue] = []
        self.steps: list[PropagationStep] = []
        self.notes: list[str] = []
        self.arguments: list[int] = []
        self.numbers: dict[int, int] = {}  # Shardy's number of a value: ours

    def build(self, found: dict[str, Any]) -> None:
        """Fills the lists."""
        told = found["values"]
        same = aliases(found)
        made: dict[int, dict[str, Any]] = {}
        for operation in found["operations"]:
            for result in operation["results"]:
                made.setdefault(result, operation)
        results: list[int] = []
        read: set[int] = set()
        for operation in found["operations"]:
            operands = [same.get(one, one) for one in operation["operands"]]
            if operation["name"] == "func.return" and not operation["depth"]:
                results = operands
            if operation["name"] != "sdy.data_flow_edge":
                read.update(operands)
        for number, value in enumerate(told):
            origin = made.get(number)
            if same.get(number, number) != number or not self.shown(
                number, found, made
            ):
                continue
            # Shardy leaves what a loop returns and nobody reads without a sharding.
            if origin and len(origin["results"]) > 1 and number not in read:
                continue
            role = "argument" if number < found["arguments"] else ""
            role = "result" if number in results else role
            self.add(number, value, origin, role, told, same)
        for position, number in enumerate(results):
            own = self.numbers.get(number)
            if own is None or self.values[own].role != "result":
                continue
            given = found["asked"]
            # What shard_map returns lies as its out_specs say.
            manual = made.get(number, {}).get("name") == "sdy.manual_computation"
            here = position < len(given) and given[position]
            self.values[own].asked = bool(manual or here)
        outputs = getattr(self.program.compiled, "output_shardings", None)
        self.place([self.numbers.get(number) for number in results], outputs)
        self.place(
            self.arguments, getattr(self.program.compiled, "input_shardings", None)
        )
        self.ask_for_gradients()
        self.add_steps(found, same, results)
        self.add_collectives()

    def ask_for_gradients(self) -> None:
        """Takes results of a backward pass as asked for that lie as an argument does.

        So do gradients and new parameters with data parallelism.
        """
        if "transpose(jvp(" not in self.program.text:
            return
        arguments = [value.placed for value in self.values if value.role == "argument"]
        lies = [(placed.shape, placed.cuts) for placed in arguments]
        for value in self.values:
            value.asked |= (value.placed.shape, value.placed.cuts) in lies

    def shown(
        self, number: int, found: dict[str, Any], made: dict[int, dict[str, Any]]
    ) -> bool:
        """Whether a value is one of the program itself: no constant, in no loop."""
        if number < found["arguments"]:
            return True
        origin = made.get(number)
        if origin is None or origin["depth"] or origin["name"] in PASSING:
            return False
        return origin["name"] != "stablehlo.constant"

    def add(
        self,
        number: int,
        value: dict[str, Any],
        origin: dict[str, Any] | None,
        role: str,
        told: list[dict[str, Any]],
        same: dict[int, int],
    ) -> None:
        """Adds a value."""
        parts = TENSOR.match(value["type"])
        if parts is None:
            return
        shape = [int(n) for n in parts[1].split("x") if n]
        kind = DTYPES.get(parts[2], parts[2].replace("ui", "u"))
        cuts = value["cuts"]
        for other, mine in same.items():
            if mine == number and cuts is None:
                cuts = told[other]["cuts"]
        name = value["name"] if origin is None else named(origin)
        placed = placed_by_cuts(name, kind, shape, cuts, self.mesh)
        own = ProgramValue(placed, role)
        if origin is not None:
            own.made_by = named(origin)
            operands = [same.get(one, one) for one in origin["operands"]]
            own.operands = [self.numbers[o] for o in operands if o in self.numbers]
            self.locate(own, origin["places"])
        else:
            self.arguments.append(len(self.values))
        self.numbers[number] = len(self.values)
        self.values.append(own)

    def locate(self, value: ProgramValue, places: list[list[str]]) -> None:
        """Gives a value the user's line that made it."""
        for file, line, column in places:
            if not is_users(file):
                continue
            end = int(column)
            frame = (file, "", int(line), int(column), int(line), end)
            value.span = span_of(frame, self.sources)
            value.where = f"line {line}"
            if value.span is not None:
                source = self.sources.found[value.span.source]
                value.line = line_of(source, value.span.line)
                value.where = f"{source.file}, line {line}"
            return

    def place(self, numbers: Sequence[int | None], shardings: Any) -> None:
        """Places arguments or results where the compiled program says that they are."""
        given = tree_flatten(shardings)[0]
        if len(given) != len(numbers):
            return
        for own, sharding in zip(numbers, given, strict=True):
            spec = getattr(sharding, "spec", None)
            if own is None or spec is None:
                continue
            before = self.values[own].placed
            entries = [*spec, *([None] * len(before.shape))][: len(before.shape)]
            cuts = []
            for entry in entries:
                names = entry if isinstance(entry, tuple) else (entry,)
                cuts.append([str(n) for n in names if isinstance(n, str)])
            kind = before.type.partition("[")[0]
            after = placed_by_cuts(before.name, kind, before.shape, cuts, self.mesh)
            self.values[own].placed = after

    def add_steps(
        self, found: dict[str, Any], same: dict[int, int], results: list[int]
    ) -> None:
        """Adds Shardy's steps in their order."""
        edges: list[tuple[dict[str, Any], dict[str, Any], list[int], list[int]]] = []
        for operation in found["operations"]:
            for edge in operation["edges"]:
                of = operation["operands"], operation["results"]
                edges.append((edge, operation, *of))
        for position, listed in enumerate(found.get("result_edges", [])):
            for edge in listed:
                leaves = {"name": "func.return", "said": "return", "rule": ""}
                leaves["places"] = []  # type: ignore[assignment]
                edges.append((edge, leaves, [results[position]], [results[position]]))
        edges.sort(key=lambda entry: entry[0]["step"])
        for edge, operation, operands, made in edges:
            source = self.of(edge["from"], operands, made, same)
            targets = [self.of(one, operands, made, same) for one in edge["to"]]
            known = [one for one in targets if one is not None]
            for target in known:
                self.values[target].step = len(self.steps)
            who = named(operation)
            what = "and ".join(in_words(one) for one in edge["to"])
            if operation["name"] == "func.return":
                said = f"axis {edge['axis']}: what is returned stays as it is cut"
            elif operation["name"] == "sdy.data_flow_edge":
                said = f"axis {edge['axis']}: {who} passes it on to its next round"
            else:
                said = f"axis {edge['axis']}: {in_words(edge['from'])}of {who} "
                said += f"gives it to its {what}".rstrip()
            self.steps.append(
                PropagationStep(
                    int(edge["step"]),
                    edge["axis"],
                    who,
                    -1 if source is None else source,
                    known,
                    operation["rule"],
                    self.values[known[0]].where if known else "",
                    said,
                )
            )

    def of(
        self, name: str, operands: list[int], made: list[int], same: dict[int, int]
    ) -> int | None:
        """Our number of `operand-1` or `result-0`; None for one that is not shown."""
        kind, _, position = name.partition("-")
        of = operands if kind == "operand" else made
        if int(position) >= len(of):
            return None
        number = of[int(position)]
        return self.numbers.get(same.get(number, number))

    def add_collectives(self) -> None:
        """Puts each collective at the values that it is for: same name, same line.

        One that XLA made of several is at the values of all. Where a line ran several
        times, values whose pieces are as large as what is sent are as many as the
        collectives, and both are in the program's order.
        """
        asked: list[tuple[int, str, Collective | Part]] = []
        for number, each in enumerate(self.collectives):
            parts: Sequence[Collective | Part] = each.parts or [each]
            asked += [(number, each.opcode, part) for part in parts]
        alike: dict[tuple, list[Collective | Part]] = {}
        for _, opcode, part in asked:
            key = (opcode, part.primitive, part.line, part.bytes)
            alike.setdefault(key, []).append(part)
        for number, opcode, part in asked:
            same = alike[opcode, part.primitive, part.line, part.bytes]
            each = self.collectives[number]
            best = self.value_of(part, same, each)
            if best is None:
                continue
            value = self.values[best]
            if number not in value.collectives:
                value.collectives.append(number)
            if part is each or part.line == each.line:
                # Both lists of sources are of the same files; ours is the one kept.
                each.span = value.span
        for number, each in enumerate(self.collectives):
            if not any(number in value.collectives for value in self.values):
                each.span = None

    def value_of(
        self, part: Collective | Part, same: list[Collective | Part], each: Collective
    ) -> int | None:
        """The value that a collective, or a part of one, is for.

        What an all-reduce gives is no longer cut along its axes.
        """
        summed = set(each.axes) if each.opcode == "all-reduce" else set()
        of = [
            own
            for own, value in enumerate(self.values)
            if (value.made_by, value.line) == (part.primitive, part.line)
            and value.placed.each == part.bytes
            and summed.isdisjoint(itertools.chain(*value.placed.cuts))
        ]
        if part.line and len(of) == len(same):
            return of[next(n for n, one in enumerate(same) if one is part)]
        made = [n for n, v in enumerate(self.values) if v.made_by == part.primitive]
        here = [n for n, v in enumerate(self.values) if v.line == part.line]
        around = [] if here else self.around(each)
        alike = [n for n in around if self.values[n].placed.each == part.bytes]
        same_line = [n for n in made if n in here] if part.primitive else []
        for found in (same_line, here if part.line else [], alike, around, made):
            if found:
                return found[-1]
        return len(self.values) - 1 if self.values else None

    def around(self, each: Collective) -> list[int]:
        """The results of the innermost loop or branch, of those that have values here,
        in which a collective runs."""
        instructions = self.program.module.instructions
        inside = next(i for i in instructions if i.name == each.name).computation
        while True:
            caller = next((i for i in instructions if inside in i.called), None)
            if caller is None:
                return []
            _, line = self.program.lines.get(caller.frame or 0, ("", ""))
            name = caller.op_name.rpartition("/")[2]
            found = [
                number
                for number, value in enumerate(self.values)
                if value.made_by == name and value.line == line
            ]
            if found:
                return found
            inside = caller.computation


def aliases(found: dict[str, Any]) -> dict[int, int]:
    """What a data-flow edge of Shardy passes on is the value itself."""
    same: dict[int, int] = {}
    for operation in found["operations"]:
        if operation["name"] == "sdy.data_flow_edge":
            of = operation["operands"][0]
            same[operation["results"][0]] = same.get(of, of)
    return same


def named(operation: dict[str, Any]) -> str:
    """An operation by the name of the primitive that made it."""
    said = operation["said"].rstrip(":").rpartition("/")[2]
    return said or operation["name"].partition(".")[2]


def in_words(name: str) -> str:
    """`operand-1` as `operand 1 `."""
    kind, _, number = name.partition("-")
    return f"{kind} {number} " if kind == "operand" else "result "


def line_of(source: Source, line: int) -> str:
    """A line of a source, without its indentation."""
    row = line - source.first_line
    return source.lines[row].strip() if 0 <= row < len(source.lines) else ""


def placed_by_cuts(
    name: str,
    kind: str,
    shape: list[int],
    cuts: list[list[str]] | None,
    mesh: MeshFacts,
) -> PlacedValue:
    """A value that mesh axes cut. What has no sharding is whole on each device.

    A size that the cuts do not divide is cut as XLA does it, with shorter last pieces.
    """
    known = {axis.name for axis in mesh.axes if axis.size > 1}
    given = cuts or [[] for _ in shape]
    used = [[name for name in axes if name in known] for axes in given]
    used = [*used, *([] for _ in shape)][: len(shape)]
    bits = 8 if kind == "bool" else element_bits(kind)
    grouped: dict[tuple, list[int]] = {}
    for position in range(len(mesh.devices)):
        at = mesh.place(position)
        where = []
        for size, axes in zip(shape, used, strict=True):
            count, number = 1, 0
            for axis in axes:
                number = number * mesh.size(axis) + at[axis]
                count *= mesh.size(axis)
            length = -(-size // count)
            start = min(size, number * length)
            where.append((start, min(size, start + length)))
        grouped.setdefault(tuple(where), []).append(position)
    flat = [axis for axes in used for axis in axes]
    pieces = []
    for where_, devices in sorted(grouped.items()):
        at = mesh.place(devices[0])
        amount = math.prod(stop - start for start, stop in where_) * bits // 8
        index = [list(part) for part in where_]
        pieces.append(Piece(index, devices, {axis: at[axis] for axis in flat}, amount))
    value = PlacedValue(
        name,
        type_text(kind, shape),
        shape,
        math.prod(shape) * bits // 8,
        0,
        spec_of_cuts(used),
        used,
        pieces,
    )
    value.spare = [
        axis.name for axis in mesh.axes if axis.size > 1 and axis.name not in flat
    ]
    if bits >= 8 and mesh.named:
        suggest(value, mesh, bits // 8)
    return value


def transfers_of(
    args: tuple, kwargs: dict[str, Any], program: Program, numbers: list[int]
) -> list[Transfer]:
    """What a call with these arguments moves before it runs."""
    wanted = getattr(program.compiled, "input_shardings", None)
    if wanted is None or not (args or kwargs):
        return []
    given = tree_flatten_with_path((args, kwargs))[0]
    places = tree_flatten(wanted, is_leaf=lambda one: one is None)[0]
    if len(places) != len(given):
        return []
    kept = [n for n, place in enumerate(places) if place is not None]
    names = dict(zip(kept, numbers, strict=False))
    found = []
    for position, ((path, leaf), place) in enumerate(zip(given, places, strict=True)):
        shape = getattr(leaf, "shape", ())
        if place is None or not hasattr(leaf, "dtype"):
            continue
        if not hasattr(leaf, "sharding") and not hasattr(leaf, "tobytes"):
            continue
        own = getattr(leaf, "sharding", None)
        amount = moved_bytes(own, place, shape, leaf.dtype.itemsize)
        if not amount:
            continue
        number = names.get(position)
        before = "the host's memory" if own is None else placed_in_words(own)
        found.append(
            Transfer(
                keystr(path) if number is None else "",
                type_text(leaf.dtype, shape),
                before,
                placed_in_words(place),
                amount,
                [] if number is None else [number],
            )
        )
    return found


def moved_bytes(own: Any, place: Any, shape: Any, itemsize: int) -> int:
    """The bytes of pieces that come to devices which do not hold them yet."""
    held: dict[int, tuple] = {}
    if own is not None:
        for device, index in own.devices_indices_map(tuple(shape)).items():
            held[device.id] = slices(index, shape)
    amount = 0
    for device, index in place.devices_indices_map(tuple(shape)).items():
        here = slices(index, shape)
        have = held.get(device.id)
        inside = have is not None and all(
            a >= c and b <= d for (a, b), (c, d) in zip(here, have, strict=True)
        )
        if not inside:
            amount += itemsize * math.prod(stop - start for start, stop in here)
    return amount


def slices(index: Any, shape: Any) -> tuple:
    """An index as starts and stops."""
    return tuple(part.indices(n)[:2] for part, n in zip(index, shape, strict=True))


def placed_in_words(sharding: Any) -> str:
    """A sharding as a spec, or the device that it names."""
    spec = getattr(sharding, "spec", None)
    if spec is not None:
        return f"P({', '.join(map(repr, spec))})"
    devices = sorted(device.id for device in sharding.device_set)
    return f"device {devices[0]}" if len(devices) == 1 else f"{len(devices)} devices"


def headline(
    program: Program,
    values: list[ProgramValue],
    collectives: list[Collective],
    target: str | None = None,
) -> str:
    """One sentence: collectives, and how the results lie."""
    told = f"{program.name} on {program.mesh.text}{compiled_for(target)}: "
    kinds = [each.opcode for each in collectives]
    parts = [
        count_in_words(len(list(same)), kind)
        for kind, same in itertools.groupby(sorted(kinds))
    ]
    told += ", ".join(parts) or "no collectives"
    results = [value for value in values if value.role == "result"]
    if len(results) == 1:
        told += f"; the result in {results[0].placed.how}"
    unasked = [value for value in results if value.unasked]
    if unasked and len(results) > 1:
        told += f"; {count_in_words(len(unasked), 'result')} in copies"
    if unasked:
        extra = sum(
            (value.placed.each - value.placed.better_bytes) * len(program.mesh.devices)
            for value in unasked
        )
        told += f" that nobody asked for, {size_in_words(extra)} more than needed"
    return told
