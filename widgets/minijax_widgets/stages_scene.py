"""The picture of `see.stages`: four columns of boxes, and ribbons between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from minijax_lab.explain.machine_code import KernelCode
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.stages import Stage, StagesRecording
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.fusion_scene import short
from minijax_widgets.scene import Placed, Scene, fitting, text_width

ROW = 26.0
BOX = 20.0
GAP = 12.0
TOP = 46.0
# From so many equations on a line's equations are one box, and so are its operations.
MANY = 48
# From so many kernels on those that compute the same for the same lines are one box.
MANY_KERNELS = 16
# Boxes of kernels that are drawn; the rest is counted.
MOST_KERNELS = 40
# Words of names of operations, where there is little room.
WORDS = {
    "dynamic": "dyn",
    "update": "upd",
    "integer": "int",
    "element": "elt",
    "constant": "const",
    "equations": "eqns",
    "operations": "ops",
}


@dataclass
class Item:
    """A box of a column: what stands in it, and for which lines."""

    text: str
    keys: list[str]
    go: int
    tell: str
    role: str = ""
    equations: tuple[int, ...] = ()  # that it stands for
    place: Placed | None = None


def draw(record: StagesRecording, width: float) -> Scene:
    """Returns the scene: lines, equations, StableHLO, kernels, from left to right."""
    return Drawing(record, width).scene


class Drawing:
    """Places the columns, one band of rows for each of the user's lines."""

    def __init__(self, record: StagesRecording, width: float) -> None:
        self.record = record
        self.wide = width > 560
        shares: tuple[float, ...]
        # Where there is little room a line is its number, a kernel its own.
        shares = (0.31, 0.17, 0.17, 0.35) if self.wide else (0.15, 0.36, 0.33, 0.16)
        if record.code is not None:
            shares = (0.27, 0.15, 0.15, 0.26, 0.17)
            shares = shares if self.wide else (0.13, 0.25, 0.27, 0.15, 0.2)
        gap = (44.0 if len(shares) == 4 else 36.0) if self.wide else 14.0
        room = width - (len(shares) - 1) * gap - 16
        self.widths = [room * share for share in shares]
        self.lefts = [8.0]
        for wide in self.widths[:-1]:
            self.lefts.append(self.lefts[-1] + wide + gap)
        stages = record.stages
        self.folded = len(record.compiled.jaxpr.equations) > MANY
        columns = [[self.items(stage, n) for n, stage in enumerate(stages)]]
        bands = [
            ROW * max(1, *(len(column) for column in items)) + GAP
            for items in columns[0]
        ]
        kernels = self.kernels()
        height = max(TOP + sum(bands), TOP + ROW * len(kernels) + GAP) + 16
        self.scene = Scene(width, height, "the program at every level")
        self.titles()
        y = TOP
        middles: list[float] = []
        for items, band in zip(columns[0], bands):
            for column, boxes in enumerate(items):
                self.column(column, boxes, y)
            for equation in items[1]:
                self.ribbon(items[0][0], equation)
                for operation in items[2]:
                    if set(operation.equations) & set(equation.equations):
                        self.ribbon(equation, operation)
            middles.append(y + (band - GAP) / 2)
            y += band
        self.last_column(columns[0], kernels, middles)

    def titles(self) -> None:
        """Places what each column is, with how much there is of it."""
        record = self.record
        program = record.compiled.program
        outer = [e for e in record.compiled.jaxpr.equations if e.parent is None]
        lines = sum(1 for stage in record.stages if stage.span is not None)
        counts = [lines, len(outer), record.lowering.operations, len(program.kernels)]
        names = [
            "lines",
            "equations",
            "StableHLO",
            f"kernels, {record.compiled.target}",
        ]
        if not self.wide:
            names = ["lines", "eqns", "HLO", "kernels"]
        if record.code is not None:
            found = record.code.codes
            counts.append(sum(len(lines_of(code)) for code in found))
            language = "PTX" if record.code.platform == "cuda" else "LLVM"
            names.append(f"lines of {language}" if self.wide else language)
        for left, count, name in zip(self.lefts, counts, names):
            self.scene.text(left, 20, f"{count:,}", size=15, weight=700)
            self.scene.note(left, 36, name)

    def items(self, stage: Stage, number: int) -> list[list[Item]]:
        """Returns the boxes of a line in the first three columns."""
        record = self.record
        key, tell = [f"g{number}"], told(record, stage)
        text = "(no line of yours)" if self.wide else "none"
        if stage.span is not None:
            text = f"{stage.span.line}"
            if self.wide:
                text += f"  {record.line_text(stage)}"
        line = Item(text, [*key], number, tell, "value")
        equations = record.compiled.jaxpr.equations
        lines = [record.lowering.lines[o] for o in stage.operations]
        names = [(equations[e].primitive, e) for e in stage.equations]
        written = [(each.operation, each.equation) for each in lines]
        return [
            [line],
            self.boxes(names, "equation", number, tell),
            self.boxes(written, "operation", number, tell),
        ]

    def boxes(
        self, names: Sequence[tuple[str, int | None]], what: str, number: int, tell: str
    ) -> list[Item]:
        """Returns a box for each name, or one for all where there are many."""
        key = f"g{number}"
        if self.folded and len(names) > 1:
            every = tuple(e for _, e in names if e is not None)
            text = f"{len(names):,} {what}s"
            return [Item(text, [key], number, tell, equations=every)]
        return [
            Item(
                short(name),
                [key],
                number,
                tell,
                equations=() if equation is None else (equation,),
            )
            for name, equation in names
        ]

    def column(self, column: int, items: Iterable[Item], y: float) -> None:
        """Places boxes under one another."""
        for row, item in enumerate(items):
            item.place = self.scene.box(
                self.lefts[column],
                y + row * ROW,
                self.widths[column],
                BOX,
                text=brief(item.text, self.widths[column] - 6),
                mono=True,
                role=item.role,
                key=item.keys,
                go=item.go,
                tell=item.tell,
            )

    def ribbon(self, start: Item, end: Item) -> None:
        """Places one line between two boxes."""
        assert start.place is not None and end.place is not None
        self.scene.arrow(
            (start.place.x + start.place.w + 1, start.place.cy),
            (end.place.x - 1, end.place.cy),
            curve="h",
            head=False,
            thick=1.0,
            key=[key for key in start.keys if key in end.keys],
        )

    # ---- the compiled program ------------------------------------------------------

    def kernels(self) -> list[list[int]]:
        """Returns the kernels that are drawn: the largest, in their order.

        Where there are many, those that compute the same for the same lines are one.
        """
        program = self.record.compiled.program
        found: dict[object, list[int]] = {}
        for number in range(len(program.kernels)):
            alike: object = number
            if len(program.kernels) > MANY_KERNELS:
                alike = (self.operations(number), *self.stages_of(number))
            found.setdefault(alike, []).append(number)
        groups = list(found.values())
        largest = sorted(
            groups, key=lambda g: -sum(program.kernels[n].bytes for n in g)
        )
        return sorted(largest[:MOST_KERNELS])

    def stages_of(self, number: int) -> list[int]:
        """Returns the lines that a kernel computes for."""
        return [n for n, s in enumerate(self.record.stages) if number in s.kernels]

    def operations(self, number: int) -> str:
        """Returns what a kernel computes, each operation once."""
        program = self.record.compiled.program
        members = program.kernels[number].members
        names = (short(program.module.instructions[m].opcode) for m in members)
        return " ".join(dict.fromkeys(names))

    def last_column(
        self,
        columns: list[list[list[Item]]],
        groups: list[list[int]],
        middles: list[float],
    ) -> None:
        """Places each kernel beside the lines that are in it."""
        wished = []
        for group in groups:
            at = [middles[stage] for stage in self.stages_of(group[0])]
            wished.append(sum(at) / len(at) - BOX / 2 if at else TOP)
        order = sorted(range(len(groups)), key=lambda n: wished[n])
        places, y = [0.0] * len(groups), TOP
        for n in order:
            y = max(y, wished[n])
            places[n] = y
            y += ROW
        limit = self.scene.height - 4 - ROW
        for n in reversed(order):  # what was pushed beyond the end moves up again
            places[n] = max(TOP, min(places[n], limit))
            limit = places[n] - ROW
        for group, y in zip(groups, places):
            self.kernel(group, y, columns)
        drawn = sum(len(group) for group in groups)
        rest = len(self.record.compiled.program.kernels) - drawn
        if rest:
            self.scene.note(
                self.lefts[3], self.scene.height - 4, f"and {rest:,} smaller kernels"
            )

    def kernel(
        self, group: list[int], y: float, columns: list[list[list[Item]]]
    ) -> None:
        """Places a kernel, or several alike, and the ribbons that reach it."""
        program = self.record.compiled.program
        number = group[0]
        kernel, stages = program.kernels[number], self.stages_of(number)
        name = self.operations(number)
        size = size_in_words(sum(program.kernels[n].bytes for n in group))
        title = f"K{number + 1}" if len(group) == 1 else f"{len(group):,} x"
        text = f"{title} {name}" if self.wide else title
        tell = f"{title}: {name}; {size} read and written"
        if not stages:
            tell += "; XLA made it, it belongs to no equation"
        keys = [f"g{stage}" for stage in stages]
        placed = self.scene.named(
            self.lefts[3],
            y,
            self.widths[3],
            BOX,
            text,
            role="kernel" if kernel.fused else "" if stages else "constant",
            key=keys,
            go=stages[0] if stages else None,
            tell=tell,
        )
        self.code(group, placed, keys, stages[0] if stages else None)
        box = Item(text, keys, 0, tell, place=placed)
        inside = {e for n in group for e in program.kernels[n].equations}
        for stage in stages:
            _, equations, operations = columns[stage]
            ends: dict[int, Item] = {}
            for item in (*equations, *operations):  # the last one that stands for it
                ends.update((e, item) for e in item.equations if e in inside)
            for item in {id(item): item for item in ends.values()}.values():
                self.ribbon(item, box)

    def code(
        self, group: list[int], placed: Placed, keys: list[str], go: int | None
    ) -> None:
        """Places how long the code of kernels is: a bar beside their box."""
        if self.record.code is None:
            return
        found = [code for n in group if (code := self.record.code_of(n)) is not None]
        count = sum(len(lines_of(code)) for code in found)
        if not count:
            return
        most = max(len(lines_of(code)) for code in self.record.code.codes)
        text = f"{count:,}" + ("+" if any(code.left_out for code in found) else "")
        room = self.widths[4] - 8 - text_width(text, 12)
        tell = ", ".join(f"{code.kernel}: {told_of_code(code)}" for code in found[:4])
        start, y = self.lefts[4], placed.y + 3
        end = placed.x + placed.w + 1
        self.scene.arrow((end, placed.cy), (start - 1, placed.cy), head=False, key=keys)
        long = min(room, max(4.0, room * count / most))
        self.scene.box(
            start, y, long, BOX - 6, role="value", key=keys, go=go, says=tell
        )
        self.scene.text(start + long + 7, placed.cy + 4, text, size=12)


def brief(text: str, room: float) -> str:
    """Returns the name of an operation in a room: where it is wider, its first words
    in short; other text is cut with dots."""

    def fits(told: str) -> bool:
        return fitting(told, room) == told

    count, _, name = text.partition(" ")
    if count.isdigit() and not fits(text):
        text = f"{count} {WORDS.get(name, name)}"
    if fits(text) or not text.isidentifier():
        return fitting(text, room)
    words = [WORDS.get(word, short(word)) for word in text.split("_")]
    counts = [n for n in range(len(words), 0, -1) if words[n - 1] != "in"]
    told = ["_".join(words[:count]) for count in counts]
    return next((one for one in told if fits(one)), fitting(text, room))


def lines_of(code: KernelCode) -> list[str]:
    """Returns the lines of a kernel's code as it runs, but for those left out."""
    return code.optimised.split("\n") if code.optimised else []


def told_of_code(code: KernelCode) -> str:
    """Returns how much code a kernel has."""
    if code.language == "ptx":
        told = count_in_words(len(lines_of(code)), "line") + " of PTX"
    else:
        before = count_in_words(len(code.written.split("\n")), "line")
        told = f"{before} of LLVM as XLA wrote them, {len(lines_of(code)):,} optimised"
    if code.left_out:
        told += f", and {code.left_out:,} that are not kept"
    return told


def told(record: StagesRecording, stage: Stage) -> str:
    """Returns a sentence about a line of the user's."""
    counts: list[tuple[int, str]] = [
        (len(stage.equations), "equation"),
        (len(stage.operations), "StableHLO operation"),
        (len(stage.instructions), f"{record.compiled.target} instruction"),
    ]
    parts = [f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts]
    where = "no line of yours" if stage.span is None else f"line {stage.span.line}"
    kernels = ", ".join(f"K{number + 1}" for number in stage.kernels)
    if len(stage.kernels) > 6:
        kernels = f"{len(stage.kernels):,} kernels"
    into = f", in {kernels}" if kernels else ", in no kernel: folded or simplified away"
    return f"{where}: {', '.join(parts)}{into}"
