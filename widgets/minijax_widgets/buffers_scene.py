"""The picture of `see.memory(compiled=True)`: bytes in use above, the map below."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from minijax_lab.explain.buffer_map import KINDS, BuffersRecording, Place
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.scene import Scene, fitting, text_width

CURVE = 96.0
MAP = 300.0
GAP = 26.0
TOP = 44.0
LEAST = 2.0  # the height of a thin place
ROLES = {
    "argument": "constant",
    "constant": "constant",
    "temporaries": "value",
    "result": "batch",
    "on-chip": "mesh",
}
IN_WORDS = {
    "argument": "arguments",
    "constant": "constants",
    "temporaries": "temporaries",
    "result": "results",
    "on-chip": "on-chip memory",
}


def draw(
    record: BuffersRecording,
    drawn: list[int],
    runs: list[range],
    live: list[int],
    goes: dict[int, int],
    tells: dict[int, str],
    width: float,
) -> Scene:
    """Returns the scene.

    `drawn` are the numbers of the places to draw, `runs` the points of each step,
    `goes` the step and `tells` the sentence of each place.
    """
    return Drawing(record, drawn, runs, live, goes, tells, width).scene


@dataclass(eq=False)
class Drawing:
    """Places the curve, then a band for each kind of memory."""

    record: BuffersRecording
    drawn: list[int]
    runs: list[range]
    live: list[int]
    goes: dict[int, int]
    tells: dict[int, str]
    width: float

    def __post_init__(self) -> None:
        self.wide = self.width > 560
        self.numbers = self.record.kernels()
        self.left = 12.0
        self.right = self.width - 12
        self.across = (self.right - self.left) / len(self.live)
        self.starts = self.allocations()
        self.ends = self.ends_of_places()
        total = max(sum(self.heights.values()), 1)
        self.scale = MAP / total
        kinds = [kind for kind in KINDS if self.heights[kind]]
        tall = {kind: max(4.0, self.heights[kind] * self.scale) for kind in kinds}
        height = TOP + CURVE + 34 + sum(tall.values()) + GAP * len(kinds) + 30
        self.scene = Scene(self.width, height, "the memory of the compiled program")
        self.curve()
        y = TOP + CURVE + 34
        tops = {}
        for kind in kinds:
            self.title(kind, y)
            tops[kind] = y + 18
            y += 18 + tall[kind] + GAP - 18
        self.peak()
        for kind in kinds:
            self.band(kind, tops[kind], tall[kind])
        self.kernels(y + 12)

    def x_of(self, point: float) -> float:
        """Returns where a point of the schedule begins."""
        return self.left + point * self.across

    def allocations(self) -> dict[int, int]:
        """Returns where each allocation begins in the band of its kind, in bytes."""
        self.heights = dict.fromkeys(KINDS, 0)
        starts = {}
        for allocation in self.record.memory.allocations:
            if allocation.kind in self.heights:
                starts[allocation.id] = self.heights[allocation.kind]
                self.heights[allocation.kind] += allocation.bytes
        return starts

    def ends_of_places(self) -> dict[int, float]:
        """Returns the point at which each place ends.

        What an instruction overwrites ends where the instruction begins.
        """
        places = self.record.places
        ends: dict[int, float] = {n: places[n].last + 1.0 for n in self.drawn}
        rows: dict[tuple[int, int], list[int]] = {}
        for number in self.drawn:
            place = places[number]
            rows.setdefault((place.allocation, place.offset), []).append(number)
        for row in rows.values():
            row.sort(key=lambda n: places[n].first)
            for one, other in itertools.pairwise(row):
                if places[one].first < places[other].first <= places[one].last:
                    ends[one] = min(ends[one], places[other].first)
        return ends

    # ---- above -----------------------------------------------------------------------

    def curve(self) -> None:
        """Places the bytes in use at each instruction."""
        most = max(self.live) or 1
        scale, base = CURVE / most, TOP + CURVE
        said = "bytes in use at each instruction, in XLA's order"
        self.scene.note(self.left, 16, said if self.wide else "bytes in use")
        for step, run in enumerate(self.runs):
            point = max(run, key=lambda n: self.live[n])
            high = self.live[point] * scale
            name = self.record.memory.schedule[point]
            told = f"{name}: {size_in_words(self.live[point])} in use"
            self.scene.band(
                base - high,
                high,
                x=self.x_of(run[0]),
                w=max(2.0, self.across * len(run)),
                key=[f"p{n}" for n in run],
                role="value",
                go=step,
                says=told,
            )
        points = [(self.x_of(n), base - b * scale) for n, b in enumerate(self.live)]
        points.append((self.right, points[-1][1]))
        self.scene.area(points, role="value")

    def peak(self) -> None:
        """Places what the peak is, and its line through the curve."""
        peak = self.record.telling
        x = self.x_of(peak + 0.5)
        most = self.live[peak]
        self.peak_line(TOP - 2, TOP + CURVE)
        said = f"peak {size_in_words(most)}"
        if self.wide:
            said += f", at {fitting(self.record.memory.schedule[peak], 260)}"
        half = text_width(said, 13, weight=600) / 2 + 4
        x = max(self.left + half, min(x, self.right - half))
        self.scene.text(
            x, TOP - 8, said, size=13, weight=600, role="miss", anchor="middle"
        )

    def peak_line(self, top: float, bottom: float) -> None:
        """Places a part of the line at which most memory is in use."""
        x = self.x_of(self.record.telling + 0.5)
        self.scene.arrow(
            (x, top), (x, bottom), head=False, dash=True, role="miss", label=""
        )

    # ---- the map -------------------------------------------------------------------

    def title(self, kind: str, y: float) -> None:
        """Places what a band is."""
        total = size_in_words(self.heights[kind])
        said = f"{IN_WORDS[kind]}, {total}"
        if kind == "temporaries" and self.wide:
            said += ": buffers that are not needed together share a place"
        if kind == "on-chip":
            said += ": fast, not counted above" if self.wide else ""
        role = ROLES[kind]
        self.scene.text(self.left, y + 12, said, role=role, size=12, weight=600)

    def band(self, kind: str, y: float, tall: float) -> None:
        """Places the rectangles of a kind of memory."""
        self.scene.box(
            self.left, y, self.right - self.left, tall, filled=False, label=""
        )
        self.peak_line(y, y + tall)
        for number in self.drawn:
            place = self.record.places[number]
            if place.kind == kind:
                self.place(number, place, y, y + tall)

    def place(self, number: int, place: Place, y: float, bottom: float) -> None:
        """Places one rectangle; a line where it would be too thin."""
        high = place.bytes * self.scale
        top = y + (self.starts[place.allocation] + place.offset) * self.scale
        top = min(top, bottom - max(high, 3))
        x = self.x_of(place.first)
        wide = max(3.0, self.across * (self.ends[number] - place.first))
        key, role = f"b{number}", ROLES[place.kind]
        go, tell = self.goes[number], self.tells[number]
        if min(high, wide) < 4:
            thick = max(LEAST, high)
            if wide < 4:
                start, end = (x + wide / 2, top), (x + wide / 2, top + max(high, 3))
                thick = 3.0
            else:
                start = (x, top + thick / 2)
                end = (x + wide, top + thick / 2)
            self.scene.arrow(
                start,
                end,
                head=False,
                thick=thick,
                role=role,
                key=key,
                go=go,
                says=tell,
            )
            return
        buffer = self.record.memory.buffers[place.buffers[0]]
        name = buffer.name.removesuffix("{}")
        size = size_in_words(place.bytes)
        text = detail = ""
        room = wide - 12
        if high > 19 and room > 16:
            # Where its name has no room, the number below of the kernel that makes it.
            maker = self.numbers.get(name)
            number_of = "" if maker is None else f"K{maker + 1}"
            fits = (
                told
                for told in (name, number_of)
                if text_width(told, 12, True) * 1.05 < room
            )
            text = next(fits, "")
            if text and high > 36 and text_width(size, 12) < room:
                detail = size
            elif text and text_width(f"{name}  {size}", 12, True) * 1.05 < room:
                text = f"{name}  {size}"
        self.scene.box(
            x,
            top,
            wide,
            high,
            text=text,
            detail=detail,
            mono=True,
            key=key,
            role=role,
            go=go,
            at=go,
            until=place.last // len(self.runs[0]),
            snug=True,
            says=tell,
        )

    def kernels(self, y: float) -> None:
        """Places the numbers of the kernels under the instructions that run them, in
        two rows where one has no room for all."""
        ends = [0.0, 0.0]
        for point, name in enumerate(self.record.memory.schedule):
            number = self.numbers.get(name)
            if number is None or self.across <= 10:
                continue
            text = f"K{number + 1}"
            middle = self.x_of(point + 0.5)
            half = text_width(text, 12) / 2 + 5
            row = next((n for n in (0, 1) if ends[n] <= middle - half), None)
            if row is not None:
                drop = y + 19 * row
                self.scene.note(middle, drop, text, anchor="middle", key=f"p{point}")
                self.scene.height = max(self.scene.height, drop + 9)
                ends[row] = middle + half
