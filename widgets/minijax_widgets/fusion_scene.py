"""The picture of `see.fusion`: kernels that close around operations, bytes as bars."""

from __future__ import annotations

from collections.abc import Callable

from minijax_lab.explain.compiled import CompiledRecording
from minijax_lab.explain.fusion_groups import Group
from minijax_lab.explain.hlo_text import Module
from minijax_lab.explain.kernels import Kernel
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.scene import Scene, fitting, text_width

ROW = 24.0
CHIP = 25.0
GAP = 14.0
# Kernels that are drawn, unfused rows of one kernel, and operations in one box.
MOST_KERNELS = 40
MOST_ROWS = 12
MOST_CHIPS = 24
LEAST_NAME = 60.0  # of what XLA calls a kernel, in pixels
# XLA's names for operations, where NumPy and the jaxpr have a shorter one.
SHORT = {
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "sine": "sin",
    "cosine": "cos",
    "exponential": "exp",
    "broadcast": "bcast",
    "negate": "neg",
    "maximum": "max",
    "minimum": "min",
    "transpose": "transp",
    "concatenate": "concat",
    "convolution": "conv",
    "convert": "convert",
    "dynamic-slice": "dyn-slice",
    "dynamic-update-slice": "dyn-update",
}


def short(opcode: str) -> str:
    """Returns the name that a chip has room for."""
    return SHORT.get(opcode, opcode)


def draw(
    record: CompiledRecording,
    groups: list[Group],
    width: float,
    told: Callable[[int, Group], str],
) -> Scene:
    """Returns the scene: totals above, then a band for each kernel.

    Where there is little room, a kernel stands below the rows that it was made of.
    """
    return Drawing(record, groups, width, told).scene


class Drawing:
    """Places everything from top to bottom."""

    def __init__(
        self,
        record: CompiledRecording,
        groups: list[Group],
        width: float,
        told: Callable[[int, Group], str],
    ) -> None:
        self.record = record
        self.told = told
        self.wide = width > 560
        self.left = 20.0 if self.wide else 8.0
        self.names = 150.0 if self.wide else 122.0
        self.right = width * 0.5 if self.wide else self.left
        end = self.right - 122 if self.wide else width - 80
        self.room = end - self.left - self.names
        # Beside a kernel stands the array that it writes.
        self.beside = 118.0 if self.wide else 0.0
        self.inside = width - self.right - 16 - self.beside
        kernels = [k for g in groups for k in (g.kernel, *g.before)]
        self.most = max((kernel.bytes for kernel in kernels), default=1) or 1
        largest = sorted(range(len(groups)), key=lambda n: -weight(groups[n]))
        drawn = sorted(largest[:MOST_KERNELS])
        height = 112 + sum(self.height(groups[n]) + GAP for n in drawn)
        height += 30 if len(drawn) < len(groups) else 0
        self.scene = Scene(width, height, "kernels before and after fusion")
        y = self.totals()
        for number in drawn:
            self.kernel(number, groups[number], y)
            y += self.height(groups[number]) + GAP
        if len(drawn) < len(groups):
            rest = [g for n, g in enumerate(groups) if n not in set(drawn)]
            moved = size_in_words(sum(g.kernel.bytes for g in rest))
            said = f"and {len(rest):,} smaller kernels, {moved} in all"
            said += ": in the table" * self.wide
            self.scene.note(self.left, y + 14, said)

    # ---- the bars of all bytes -----------------------------------------------------

    def totals(self) -> float:
        """Places the two totals on one scale; returns where they end."""
        record, scene = self.record, self.scene
        after = record.program
        rows = [("compiled", after, "kernel")]
        if record.unfused is not None:
            rows.insert(0, ("without fusion", record.unfused, ""))
        most = max(program.bytes for _, program, _ in rows) or 1
        start = self.left + 118
        room = scene.width - start - (190 if self.wide else 80)
        y = 8.0
        for name, program, role in rows:
            long = max(3.0, room * program.bytes / most)
            scene.text(self.left, y + 17, name, size=13, weight=600)
            scene.box(start, y, long, 24, role=role or "value", label=name)
            many = count_in_words(len(program.kernels), "kernel")
            said = size_in_words(program.bytes)
            said += f", {many}" if self.wide else ""
            scene.text(start + long + 8, y + 17, said, size=13, weight=600)
            y += 32
        said = "a bar is bytes: read (filled) and written (open), all on one scale"
        if self.wide:
            scene.note(self.left, y + 14, said)
        return y + 34

    # ---- one kernel ----------------------------------------------------------------

    def kernel(self, number: int, group: Group, y: float) -> None:
        """Places a kernel, and beside it what it would be without fusion."""
        rows = group.before[:MOST_ROWS]
        tall = self.height(group)
        key, told = f"k{number}", self.told(number, group)
        top = y
        ends = [
            self.row(kernel, y + row * ROW, key, number, told)
            for row, kernel in enumerate(rows)
        ]
        if len(group.before) > len(rows):
            rest = group.before[MOST_ROWS:]
            said = (
                f"and {len(rest):,} more, {size_in_words(sum(k.bytes for k in rest))}"
            )
            self.scene.text(self.left, y + len(rows) * ROW + 15, said, role="constant")
        if not self.wide:
            top = y + self.rows_height(group)
        else:
            top = y + (tall - self.box_height(group.kernel)) / 2
            self.curves(ends, y, tall, key)
        self.box(number, group, top, told)
        self.result(group.kernel, top + self.box_height(group.kernel) / 2, key)

    def result(self, kernel: Kernel, middle: float, key: str) -> None:
        """Places the array that a kernel writes, to its right."""
        shape = self.record.program.instruction(kernel).shape
        if not self.wide or shape is None:
            return
        start = self.right + self.inside
        placed = self.scene.glyph(
            tuple(shape),
            start + self.beside / 2 + 14,
            middle,
            centered=True,
            scale=0.8,
        )
        end = placed.x - 4
        if end > start + 8:
            self.scene.arrow((start, middle), (end, middle), key=key, thick=1.0)

    def row(self, kernel: Kernel, y: float, key: str, number: int, told: str) -> float:
        """Places one kernel of the unfused program; returns where it ends."""
        assert self.record.unfused is not None
        module = self.record.unfused.module
        name = " ".join(short(module.instructions[m].opcode) for m in kernel.members)
        x, wide = self.left, self.names - 10
        self.scene.named(x, y + 1, wide, ROW - 4, name, key=key, go=number, tell=told)
        return self.bars(kernel, self.left + self.names, y + 4, self.room)

    def bars(self, kernel: Kernel, x: float, y: float, room: float) -> float:
        """Places the bytes of a kernel: what it reads filled, what it writes open.
        Returns where they end."""
        scale = (room - 3) / self.most
        read, written = kernel.read * scale, kernel.written * scale
        read = max(read, 2.0) if kernel.read else 0.0
        written = max(written, 2.0) if kernel.written else 0.0
        if read:
            self.scene.box(x, y, max(read, 4.0), 14, role="value")
        at = x + read + 3
        if written:
            self.scene.box(at, y, max(written, 4.0), 14, role="value", filled=False)
        said = size_in_words(kernel.bytes)
        self.scene.note(at + written + 8, y + 12, said)
        return at + written + 8 + text_width(said, 12)

    def curves(self, ends: list[float], y: float, tall: float, key: str) -> None:
        """Places a line from each row on the left, where it ends, into the kernel."""
        bend = min(max(ends, default=0.0) + 6, self.right - 46)
        for row, x in enumerate(ends):
            at = y + row * ROW + ROW / 2 - 1
            self.scene.arrow(
                (min(x + 6, bend), at),
                (self.right - 4, y + tall / 2),
                via=[(bend, at)],
                curve="h",
                key=key,
                thick=1.0,
                head=row == 0,
            )

    def box(self, number: int, group: Group, y: float, told: str) -> None:
        """Places the kernel: its name, the operations inside, its bytes."""
        kernel, module = group.kernel, self.record.program.module
        key = f"k{number}"
        x, room, tall = self.right, self.inside, self.box_height(kernel)
        self.scene.box(
            x,
            y,
            room,
            tall,
            role="kernel" if kernel.fused else "",
            key=key,
            go=number,
            says=told,
        )
        name = self.record.program.instruction(kernel).name.lstrip("%")
        title = f"K{number + 1}"
        placed = self.scene.text(x + 12, y + 19, title, size=13, weight=700)
        at, left = x + 22 + placed.w, room - 34 - placed.w
        if kernel.times != 1:
            runs = (
                "runs as often as the data say"
                if kernel.times is None
                else f"runs {kernel.times:,} times"
            )
            end = x + room - 12
            left -= self.scene.note(end, y + 19, runs, anchor="end").w + 12
        if left > LEAST_NAME:
            self.scene.note(at, y + 19, fitting(name, left), mono=True)
        under = self.chips(module, kernel, x + 12, y + 30, room - 24)
        self.bars(kernel, x + 12, under + 4, self.room)

    def chips(
        self, module: Module, kernel: Kernel, x: float, y: float, room: float
    ) -> float:
        """Places the operations of a kernel in lines; returns where they end."""
        last: tuple[int, float, int] | None = None
        end = y
        for left, line, wide, name, member in self.chip_places(kernel, room):
            end = y + line * (CHIP + 5)
            if member is None:
                self.scene.note(x + left, end + 16, name)
                continue
            placed = self.scene.box(x + left, end, wide, CHIP - 3, text=name, mono=True)
            reads = module.instructions[member].operands
            if last is not None and last[2] == line and last[0] in reads:
                middle = end + (CHIP - 3) / 2
                self.scene.arrow((last[1], middle), (x + left, middle), thick=1.0)
            last = member, placed.x + placed.w, line
        return end + CHIP

    def chip_places(
        self, kernel: Kernel, room: float
    ) -> list[tuple[float, int, float, str, int | None]]:
        """Returns where a kernel's operations stand: from the left, the line, the
        width, the name and the operation; None for the note of how many more."""
        instructions = self.record.program.module.instructions
        shown: list[int | None] = [*kernel.members[:MOST_CHIPS]]
        left = len(kernel.members) - len(shown)
        shown += [None] if left else []
        found, at, line = [], 0.0, 0
        for member in shown:
            name = f"and {left:,} more"
            if member is not None:
                name = short(instructions[member].opcode)
            wide = text_width(name, 12, member is not None) + 16
            if at + wide > room and at > 0:
                at, line = 0.0, line + 1
            found.append((at, line, wide, name, member))
            at += wide + 16
        return found

    # ---- heights -------------------------------------------------------------------

    def rows_height(self, group: Group) -> float:
        """Returns the height of the rows of the unfused program."""
        more = len(group.before) > MOST_ROWS
        rows = min(len(group.before), MOST_ROWS) + more
        return rows * ROW + (6 if rows else 0)

    def height(self, group: Group) -> float:
        """Returns the height of a kernel with all that stands beside it."""
        box = self.box_height(group.kernel)
        if self.wide:
            return max(box, self.rows_height(group))
        return box + self.rows_height(group)

    def box_height(self, kernel: Kernel) -> float:
        """Returns the height of the box of a kernel."""
        return 30 + self.chip_lines(kernel) * (CHIP + 5) + 26

    def chip_lines(self, kernel: Kernel) -> int:
        """Returns how many lines the operations of a kernel take."""
        places = self.chip_places(kernel, self.inside - 24)
        return max((line for _, line, *_ in places), default=0) + 1


def weight(group: Group) -> int:
    """Returns how much of the picture's point a kernel is: the bytes around it."""
    return max(group.kernel.bytes, sum(each.bytes for each in group.before))
