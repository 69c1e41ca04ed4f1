"""The picture of `see.stages`: four columns of boxes, and ribbons between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minijax_lab.explain.stages import Stage, StagesRecording
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.fusion_scene import fitting, short
from minijax_widgets.scene import Placed, Scene

ROW = 26.0
BOX = 20.0
GAP = 12.0
TOP = 46.0
# From so many equations on a line's equations are one box, and so are its operations.
MANY = 48
# Kernels that are drawn; the rest is counted.
MOST_KERNELS = 40


@dataclass
class Item:
    """A box of a column: what stands in it, and for which lines."""

    text: str
    keys: list[str]
    go: int
    tell: str
    role: str = ""
    place: Placed | None = None


def draw(record: StagesRecording, width: float) -> Scene:
    """Returns the scene: lines, equations, StableHLO, kernels, from left to right."""
    return Drawing(record, width).scene


class Drawing:
    """Places the columns, one band of rows for each of the user's lines."""

    def __init__(self, record: StagesRecording, width: float) -> None:
        self.record = record
        self.wide = width > 560
        shares = (0.31, 0.17, 0.17, 0.35) if self.wide else (0.34, 0.22, 0.16, 0.28)
        gap = 44.0 if self.wide else 14.0
        room = width - 3 * gap - 16
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
        height = max(TOP + sum(bands), TOP + ROW * len(kernels) + GAP) + 10
        self.scene = Scene(width, height, "the program at every level")
        self.titles()
        y = TOP
        middles: list[float] = []
        for items, band in zip(columns[0], bands):
            for column, boxes in enumerate(items):
                self.column(column, boxes, y)
            self.ribbons(items[0], items[1])
            self.ribbons(items[1], items[2])
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
        for left, count, name in zip(self.lefts, counts, names):
            self.scene.text(left, 20, f"{count:,}", size=15, weight=700)
            self.scene.text(left, 36, name, role="constant", size=12)

    def items(self, stage: Stage, number: int) -> list[list[Item]]:
        """Returns the boxes of a line in the first three columns."""
        record = self.record
        key, tell = [f"g{number}"], told(record, stage)
        text = record.line_text(stage) or "(no line of yours)"
        if stage.span is not None and self.wide:
            text = f"{stage.span.line}  {text}"
        line = Item(text, [*key], number, tell, "value")
        equations = record.compiled.jaxpr.equations
        names = [equations[e].primitive for e in stage.equations]
        operations = [record.lowering.lines[o].operation for o in stage.operations]
        return [
            [line],
            self.boxes(names, "equation", key, number, tell),
            self.boxes(operations, "operation", key, number, tell),
        ]

    def boxes(
        self, names: list[str], what: str, key: list[str], number: int, tell: str
    ) -> list[Item]:
        """Returns a box for each name, or one for all where there are many."""
        if self.folded and len(names) > 1:
            return [Item(f"{len(names):,} {what}s", [*key], number, tell)]
        return [Item(short(name), [*key], number, tell) for name in names]

    def column(self, column: int, items: Iterable[Item], y: float) -> None:
        """Places boxes under one another."""
        for row, item in enumerate(items):
            item.place = self.scene.box(
                self.lefts[column],
                y + row * ROW,
                self.widths[column],
                BOX,
                text=fitting(item.text, self.widths[column] - 10),
                mono=True,
                role=item.role,
                key=item.keys,
                go=item.go,
                tell=item.tell,
            )

    def ribbons(self, before: list[Item], after: list[Item]) -> None:
        """Places a line from each box to each of the next column; the shorter side
        shares its boxes."""
        if not before or not after:
            return
        many = max(len(before), len(after))
        for number in range(many):
            start = before[number * len(before) // many]
            end = after[number * len(after) // many]
            self.ribbon(start, end)

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

    def kernels(self) -> list[int]:
        """Returns the kernels that are drawn: the largest, in their order."""
        kernels = self.record.compiled.program.kernels
        largest = sorted(range(len(kernels)), key=lambda n: -kernels[n].bytes)
        return sorted(largest[:MOST_KERNELS])

    def last_column(
        self, columns: list[list[list[Item]]], kernels: list[int], middles: list[float]
    ) -> None:
        """Places each kernel beside the lines that are in it."""
        record = self.record
        program = record.compiled.program
        where: dict[int, list[int]] = {number: [] for number in kernels}
        for stage_number, stage in enumerate(record.stages):
            for number in stage.kernels:
                if number in where:
                    where[number].append(stage_number)
        wished = []
        for number in kernels:
            at = [middles[stage] for stage in where[number]]
            wished.append(sum(at) / len(at) - BOX / 2 if at else TOP)
        order = sorted(range(len(kernels)), key=lambda n: wished[n])
        places, y = [0.0] * len(kernels), TOP
        for n in order:
            y = max(y, wished[n])
            places[n] = y
            y += ROW
        over = y - (self.scene.height - 4)
        if over > 0:  # pushed beyond the end: move up from there, never above the top
            limit = self.scene.height - 4 - ROW
            for n in reversed(order):
                places[n] = max(TOP, min(places[n], limit))
                limit = places[n] - ROW
        for number, y in zip(kernels, places):
            self.kernel(number, y, columns, where[number])
        rest = len(program.kernels) - len(kernels)
        if rest:
            self.scene.text(
                self.lefts[3],
                self.scene.height - 4,
                f"and {rest:,} smaller kernels",
                role="constant",
                size=12,
            )

    def kernel(
        self, number: int, y: float, columns: list[list[list[Item]]], stages: list[int]
    ) -> None:
        """Places a kernel, and the ribbons that reach it."""
        program = self.record.compiled.program
        kernel = program.kernels[number]
        opcodes = [short(program.module.instructions[m].opcode) for m in kernel.members]
        name = " ".join(dict.fromkeys(opcodes))
        size = size_in_words(kernel.bytes)
        text = f"K{number + 1} {name}" if self.wide else f"K{number + 1}"
        tell = f"K{number + 1}: {', '.join(opcodes)}; {size} read and written"
        if not stages:
            tell += "; XLA made it, it belongs to no equation"
        keys = [f"g{stage}" for stage in stages]
        placed = self.scene.box(
            self.lefts[3],
            y,
            self.widths[3],
            BOX,
            text=fitting(text, self.widths[3] - 12),
            mono=True,
            role="kernel" if kernel.fused else "" if stages else "constant",
            key=keys,
            go=stages[0] if stages else None,
            tell=tell,
        )
        box = Item(text, keys, 0, tell, place=placed)
        for stage in stages:
            last = columns[stage][2] or columns[stage][1]
            self.ribbon(last[len(last) // 2], box)


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
    into = f", in {kernels}" if kernels else ", in no kernel: folded or simplified away"
    return f"{where}: {', '.join(parts)}{into}"
