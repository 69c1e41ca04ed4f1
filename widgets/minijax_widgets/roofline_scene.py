"""The roofline of a program: a log-log picture with a dot for each kernel.

To the right a kernel does more operations for each byte, upwards more in a second. The
roof is what the machine can do: it rises with its bandwidth up to its arithmetic. A
kernel that was not measured stands on the roof, where it is at best.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minijax_lab.explain.compiled import CompiledProgram
from minijax_lab.explain.kernels import Kernel
from minijax_lab.explain.roofline import Dot, Machine, Roofline, roofline_of
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.frame import Pane, Piece, Row, scene_pane
from minijax_widgets.fusion_scene import short
from minijax_widgets.scene import Scene, text_width

TOP = 34.0
TALL = 250.0
LARGEST = 20.0  # a dot's radius
SMALLEST = 3.5
MOST_DOTS = 300
MOST_ROWS = 60


def roofline_panes(
    program: CompiledProgram,
    machine: Machine,
    goes: Mapping[int, int],
    times: Mapping[int, float] | None = None,
) -> list[Pane]:
    """Returns the picture and a table; `goes` are the steps of kernels, `times` their
    measured microseconds. Marks and rows of kernel 0 have the key "k0"."""
    roof = roofline_of(program, machine)
    if not roof.dots:
        return []

    def scene(width: float) -> Scene:
        return Drawing(program, roof, goes, times, width).scene

    title = f"roofline of {machine.name}: {told_of(roof)}"
    title += f"; {counted_of(roof)}" if roof.functions else ""
    picture = scene_pane(scene, 1100, 288, 690, title)
    return [picture, table(program, roof, goes, times)]


def told_of(roof: Roofline) -> str:
    """Returns the modelled time of the program, and how much of it memory takes."""
    told = f"{seconds_in_words(roof.seconds)}, modelled"
    share = round(100 * roof.waiting)
    return f"{told}; memory is the bound for {share}% of it"


def counted_of(roof: Roofline) -> str:
    """Returns what counts as less than it is, "" if nothing does.

    How many operations a sine takes depends on the machine and its compiler.
    """
    if not roof.functions:
        return ""
    some = " and ".join(roof.functions[:2]) + (", ..." if roof.functions[2:] else "")
    told = f"{some}: {roof.functions_run:,} results"
    told += ", loops of unknown length once" * bool(roof.unknown)
    return f"{told}, each counted as one operation though it takes more"


def table(
    program: CompiledProgram,
    roof: Roofline,
    goes: Mapping[int, int],
    times: Mapping[int, float] | None,
) -> Pane:
    """Returns the kernels with what bounds each, slowest first."""
    order = sorted(roof.dots, key=lambda dot: -dot.seconds)
    rows = []
    for dot in order[:MOST_ROWS]:
        kernel = program.kernels[dot.kernel]
        runs = repeated(kernel)
        cells: list[list[Piece] | str] = [
            [
                Piece(f"K{dot.kernel + 1}", "strong"),
                Piece(f" {computes(program, kernel)}"),
            ],
            [Piece(seconds_in_words(dot.seconds), "size")],
        ]
        if times is not None:
            seen = times.get(dot.kernel)
            said = "not seen" if seen is None else seconds_in_words(seen / 1e6)
            cells.append([Piece(said, "size")])
        cells.append([Piece(f"{number_in_words(dot.intensity)} a byte", "size")])
        cells.append(dot.bound + runs)
        rows.append(
            Row(cells, keys=[f"k{dot.kernel}"], go=goes.get(dot.kernel), tell=tell(dot))
        )
    columns = ["kernel", "modelled"]
    columns += ["measured"] if times is not None else []
    columns += ["operations", "bound by"]
    more = len(order) - len(rows)
    title = f"modelled for {roof.machine.name} ({roof.machine.source})"
    title += f", {more:,} more kernels" if more > 0 else ""
    return Pane(title, rows, columns=columns, wide=True)


def repeated(kernel: Kernel) -> str:
    """Returns how often a kernel runs; the times are those of one run."""
    if kernel.times is None:
        return ", runs as often as the data say"
    return "" if kernel.times == 1 else f", runs {kernel.times:,} times"


def tell(dot: Dot) -> str:
    """Returns a sentence about a kernel under the roof."""
    return (
        f"K{dot.kernel + 1}: {dot.operations:,} operations on "
        f"{size_in_words(dot.bytes)}, {number_in_words(dot.intensity)} a byte; "
        f"{dot.bound} is the bound: {seconds_in_words(dot.seconds)}, modelled"
    )


def computes(program: CompiledProgram, kernel: Kernel) -> str:
    """Returns what a kernel computes, each operation once, at most four."""
    instructions = program.module.instructions
    names = [short(instructions[member].opcode) for member in kernel.members]
    names = list(dict.fromkeys(names))
    return " ".join(names[:4]) + (" ..." if len(names) > 4 else "")


@dataclass(eq=False)
class Drawing:
    """Places the roof, then a dot for each kernel, large ones first."""

    program: CompiledProgram
    roof: Roofline
    goes: Mapping[int, int]
    times: Mapping[int, float] | None
    width: float

    def __post_init__(self) -> None:
        self.wide = self.width > 560
        self.left = 74.0 if self.wide else 52.0
        self.right = self.width - 16
        self.base = TOP + TALL
        self.rates = {dot.kernel: self.rate(dot) for dot in self.roof.dots}
        self.x_ends = self.across()
        self.y_ends = self.upwards()
        self.scene = Scene(self.width, self.base + 64, "the roofline")
        self.taken: list[tuple[float, float, float, float]] = []
        self.axes()
        self.lines()
        self.dots()

    # ---- scales --------------------------------------------------------------------

    def rate(self, dot: Dot) -> float:
        """Returns the operations a second of a kernel: measured, else at best."""
        seen = None if self.times is None else self.times.get(dot.kernel)
        if not seen:
            return dot.operations / dot.seconds if dot.seconds else 0.0
        runs = self.program.kernels[dot.kernel].times or 1
        return dot.operations * runs / (seen / 1e6)

    def across(self) -> tuple[float, float]:
        """Returns the powers of ten at which the picture begins and ends."""
        found = [dot.intensity for dot in self.roof.dots if dot.operations]
        found.append(self.roof.machine.ridge)
        return math.floor(math.log10(min(found) / 2)), math.log10(max(found) * 8)

    def upwards(self) -> tuple[float, float]:
        """Returns the powers of ten of the operations a second."""
        machine = self.roof.machine
        found = [rate for rate in self.rates.values() if rate]
        found.append(machine.bandwidth * 10 ** self.x_ends[0])
        highest = max(machine.operations * 8, *(rate * 3 for rate in found))
        return math.log10(min(found)), math.log10(highest)

    def x_of(self, intensity: float) -> float:
        """Returns where so many operations a byte stand; none at all at the left."""
        start, end = self.x_ends
        if intensity <= 0:
            return self.left + 4
        part = (math.log10(intensity) - start) / (end - start)
        return self.left + part * (self.right - self.left)

    def y_of(self, rate: float) -> float:
        """Returns where so many operations a second stand."""
        start, end = self.y_ends
        if rate <= 0:
            return self.base
        return self.base - (math.log10(rate) - start) / (end - start) * TALL

    # ---- marks ---------------------------------------------------------------------

    def axes(self) -> None:
        """Places the two sides of the ridge, and the powers of ten."""
        scene, machine = self.scene, self.roof.machine
        ridge = self.x_of(machine.ridge)
        scene.band(TOP, TALL, x=self.left, w=ridge - self.left, role="value", label="")
        scene.band(TOP, TALL, x=ridge, w=self.right - ridge, label="")
        middle = (self.left + ridge) / 2
        for x, text, role in (
            (middle, "memory is the bound" if self.wide else "memory", "value"),
            ((ridge + self.right) / 2, "arithmetic", "constant"),
        ):
            scene.text(
                x, TOP - 8, text, role=role, size=12, weight=600, anchor="middle"
            )
        for power in range(math.ceil(self.x_ends[0]), math.floor(self.x_ends[1]) + 1):
            x = self.x_of(10.0**power)
            scene.arrow((x, self.base), (x, self.base + 5), head=False, label="")
            text = number_in_words(10.0**power)
            scene.note(x, self.base + 19, text, size=11, anchor="middle")
        said = "operations for each byte"
        if self.wide:
            said += (
                ": a dot is a kernel, its area the bytes; filled: memory is the bound"
            )
        scene.note(self.left, self.base + 40, said)
        if self.times is not None:
            said = "dots are measured; above the roof the data were in a cache"
            said = said if self.wide else "above the roof: in a cache"
            scene.note(self.left, self.base + 57, said)
        start, end = self.y_ends
        powers = range(math.ceil(start), math.floor(end) + 1)
        for power in powers[:: max(1, len(powers) // 6)]:
            y = self.y_of(10.0**power)
            scene.arrow((self.left - 5, y), (self.left, y), head=False, label="")
            scene.note(
                self.left - 8,
                y + 4,
                number_in_words(10.0**power),
                size=11,
                anchor="end",
            )
        scene.text(4, TOP - 8, "ops/s", size=11, role="constant")

    def lines(self) -> None:
        """Places the roof, with what each part of it is."""
        machine, scene = self.roof.machine, self.scene
        least = 10 ** self.x_ends[0]
        start = (self.left, self.y_of(machine.bandwidth * least))
        corner = (self.x_of(machine.ridge), self.y_of(machine.operations))
        end = (self.right, corner[1])
        told = (
            f"{machine.name}: {number_in_words(machine.operations)} operations and "
            f"{number_in_words(machine.bandwidth)} bytes a second ({machine.source})"
        )
        scene.arrow(
            start, end, via=[corner], head=False, role="text", thick=2.2, says=told
        )
        flat = f"{number_in_words(machine.operations)}op/s"
        above = [(self.right - 6, corner[1] - up) for up in (8, LARGEST + 8)]
        self.rate_label(flat, above, "end")
        steep = f"{number_in_words(machine.bandwidth)}B/s"
        right, up = corner[0] - start[0], corner[1] - start[1]
        self.rate_label(
            steep,
            [
                (start[0] + right * part + 10, start[1] + up * part + 14)
                for part in (0.12, 0.3, 0.45, 0.6, 0.75)
            ],
        )
        # Names stand beside the roof, not on it.
        for part in range(64):
            x = start[0] + (end[0] - start[0]) * part / 64
            rise = min(1.0, (x - start[0]) / max(1.0, corner[0] - start[0]))
            y = start[1] + (corner[1] - start[1]) * rise
            self.taken.append((x, y - 2, x + 8, y + 2))

    def rate_label(
        self, text: str, places: Sequence[tuple[float, float]], anchor: str = "start"
    ) -> None:
        """Writes a rate at the first of some places on the roof where no dot is."""
        wide = text_width(text, 12, weight=600)

        def box(x: float, y: float) -> tuple[float, float, float, float]:
            left = x - wide if anchor == "end" else x
            return left, y - 11, left + wide, y + 3

        dots = [(x - r, y - r, x + r, y + r) for _, x, y, r in self.placed]
        places = [(x, min(y, self.base - 5)) for x, y in places]
        free = (at for at in places if not any(overlap(box(*at), d) for d in dots))
        x, y = next(free, places[0])
        self.scene.text(x, y, text, size=12, weight=600, anchor=anchor)
        self.taken.append(box(x, y))

    @functools.cached_property
    def placed(self) -> list[tuple[Dot, float, float, float]]:
        """Returns the kernels to draw, large ones first: place and radius of each."""
        order = sorted(self.roof.dots, key=lambda dot: -dot.bytes)[:MOST_DOTS]
        most = order[0].bytes or 1
        return [
            (
                dot,
                self.x_of(dot.intensity),
                self.y_of(self.rates[dot.kernel]),
                max(SMALLEST, LARGEST * math.sqrt(dot.bytes / most)),
            )
            for dot in order
        ]

    def dots(self) -> None:
        """Places a dot for each kernel, and names where there is room."""
        taken = self.taken
        named = self.placed
        for dot, x, y, radius in named:
            said = tell(dot)
            if self.times is not None and dot.kernel in self.times:
                took = seconds_in_words(self.times[dot.kernel] / 1e6)
                said += f"; measured: {took}"
            self.scene.dot(
                x,
                y,
                radius,
                key=f"k{dot.kernel}",
                role="value" if dot.bound == "memory" else "text",
                filled=dot.bound == "memory",
                go=self.goes.get(dot.kernel),
                says=said,
            )
        alike: dict[tuple[int, int], list[int]] = {}
        # A dot has its square but for the corners.
        for _, x, y, radius in named:
            r = 0.7 * radius
            taken.append((x - r, y - r, x + r, y + r))
        for dot, x, y, _ in named:
            alike.setdefault((round(x / 4), round(y / 4)), []).append(dot.kernel)
        for dot, x, y, radius in named:
            group = alike[round(x / 4), round(y / 4)]
            if dot.kernel != group[0]:
                continue
            for text in (words_of(group), words_of(group, 1)):
                wide = text_width(text, 12, True)
                place = self.room(x, y, radius, wide, taken)
                if place is not None:
                    break
            else:
                continue
            taken.append((place[0], place[1] - 11, place[0] + wide, place[1] + 3))
            self.scene.text(
                *place, text, size=12, mono=True, key=[f"k{n}" for n in group]
            )

    def room(
        self,
        x: float,
        y: float,
        radius: float,
        wide: float,
        taken: Sequence[tuple[float, float, float, float]],
    ) -> tuple[float, float] | None:
        """Returns where a dot's name has room: below it or above, right or left, or
        else beside it."""
        sides = (x + radius * 0.75, x - radius * 0.75 - wide)
        drops = (radius * 0.75 + 10, radius + 26, radius + 40, radius + 54, -radius - 6)
        beside = x - radius - wide - 10, x + radius + 10
        for left, drop in (
            *itertools.product(sides, drops),
            *itertools.product(sides, [-radius - 24]),  # high above only if it must
            *itertools.product(beside, [4]),
        ):
            base = y + drop
            inside = self.left < left and left + wide < self.right
            box = (left, base - 11, left + wide, base + 3)
            free = not any(overlap(box, other) for other in taken)
            if inside and free and base < self.base - 2:
                return left, base
        return None


def words_of(kernels: Sequence[int], most: int = 3) -> str:
    """Returns the names of kernels at one place: `K1 K4`, or how many more."""
    shown = " ".join(f"K{number + 1}" for number in kernels[:most])
    more = len(kernels) - most
    return shown + (f" and {more} more" if more > 0 else "")


def overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    """Whether two boxes, by their corners, lie over each other."""
    apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1]
    return not (apart or other[3] < one[1])


def number_in_words(number: float) -> str:
    """Returns for example `0.25`, `20`, `3.35 T`."""
    units = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    for size, unit in units:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.2g}" if number < 10 else f"{number:.3g}"


def flops_in_words(flops: float) -> str:
    """Returns for example `472 flop`, `8.19 kflop`, `1.2 Tflop`."""
    said = number_in_words(flops)
    return f"{said}flop" if " " in said else f"{said} flop"


def seconds_in_words(seconds: float) -> str:
    """Returns for example `2.5 us` or `1.2 ms`."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
