"""The picture of `see.scale`: for each plan its memory, messages, seconds, compiling.

Bars of one column share a scale, so that plans are compared by length. A machine's
memory is a line that a bar should not cross.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minijax_lab.explain.scale import SPARE, Owner, Plan, ScaleRecording
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.glyph import Drawn, rect, words
from minijax_widgets.placement_scene import ink_of
from minijax_widgets.roofline_scene import flops_in_words, seconds_in_words
from minijax_widgets.scene import Scene, text_width

# What the parts of a step's memory look like; arguments are plain values.
ROLES = {
    "forward pass": "residual",
    "forward pass again": "batch",
    "backward pass": "cotangent",
    "rest of the step": "",
    SPARE: "constant",
}
BAR = 26.0
COLUMNS = ("memory of a device", "sent by the busiest", "seconds of a step", "made in")


@dataclass
class Part:
    """A part of a bar; `said` is written in it where there is room."""

    amount: float
    role: str
    said: str
    tell: str
    dash: bool = False


Column = Callable[[Plan], list[Part]]


def draw(record: ScaleRecording, width: float) -> Scene:
    """Returns the scene: on a wide page the four bars of a plan stand side by side."""
    return Drawing(record, width).scene


class Drawing:
    """Places a row, or on narrow pages four, for each plan."""

    def __init__(self, record: ScaleRecording, width: float) -> None:
        self.record = record
        self.scene = Scene(width, 10, label=record.headline)
        self.wide = width > 700
        self.columns: list[Column] = [self.memory, self.sent, self.seconds, self.making]
        if record.machine is None:
            self.columns.remove(self.seconds)
        bars = {c: [c(plan) for plan in record.plans] for c in self.columns}
        self.most = {
            column: max(sum(part.amount for part in bar) for bar in found) or 1.0
            for column, found in bars.items()
        }
        # The line of a device's memory is drawn if a bar comes near to it or is longer.
        if self.room < 2 * self.most[self.memory]:
            self.most[self.memory] = max(self.most[self.memory], self.room * 1.04)
        y = self.heads() if self.wide else 8.0
        for number, plan in enumerate(record.plans):
            y = self.plan(number, plan, y)
        self.scene.height = self.legend(y + 2) + 4

    @property
    def room(self) -> int:
        """The memory of a device, 0 if it is not known."""
        return self.record.machine.memory if self.record.machine is not None else 0

    # ---- what the bars are ---------------------------------------------------------

    def memory(self, plan: Plan) -> list[Part]:
        """Returns the memory of a device by owner."""
        return [self.owned(owner) for owner in plan.owners if owner.bytes > 0]

    def owned(self, owner: Owner) -> Part:
        """Returns an owner's part of the bar."""
        role = "value" if owner.argument else ROLES.get(owner.name, "")
        said = f"{owner.name}: {size_in_words(owner.bytes)}"
        return Part(owner.bytes, role, owner.name, said, owner.name == SPARE)

    def sent(self, plan: Plan) -> list[Part]:
        """Returns the bytes that the busiest device sends, by axes."""
        parts = []
        for axes, size in plan.by_axes.items():
            kinds = [each for each in plan.traffic if each.axes == axes]
            told = ", ".join(
                f"{each.opcode} {each.runs:,} x" for each in kinds if each.bytes
            )
            said = f"over {axes}: {size_in_words(size)} ({told})"
            ink = ink_of(plan.mesh, axes)  # one axis in its colour, as where it cuts
            parts.append(Part(size, "mesh" if ink == "text" else ink, axes, said))
        return parts

    def seconds(self, plan: Plan) -> list[Part]:
        """Returns the modelled seconds: kernels by what bounds them, then links."""
        found = (
            ("arithmetic", plan.for_arithmetic, "value"),
            ("memory", plan.for_memory, "residual"),
            ("links", self.record.links(plan), "mesh"),
        )
        return [
            Part(amount, role, name, f"{name}: {seconds_in_words(amount)}, modelled")
            for name, amount, role in found
            if amount
        ]

    def making(self, plan: Plan) -> list[Part]:
        """Returns the seconds of tracing, lowering and compiling, as measured."""
        found = (
            ("trace", plan.traced, "value"),
            ("lower", plan.lowered, "batch"),
            ("compile", plan.compiled, "constant"),
        )
        return [
            Part(amount, role, name, f"{name}: {seconds_in_words(amount)}")
            for name, amount, role in found
        ]

    # ---- where they stand ----------------------------------------------------------

    def heads(self) -> float:
        """Places the columns' titles; returns where the first plan stands."""
        for place, column in enumerate(self.columns):
            x, _ = self.span(place)
            self.scene.text(x, 16, self.title(column), size=12, weight=600)
        return 28.0

    def title(self, column: Column) -> str:
        """Returns what a column shows."""
        columns: tuple[Column, ...] = (
            *(self.memory, self.sent, self.seconds, self.making),
        )
        return COLUMNS[columns.index(column)]

    def span(self, place: int) -> tuple[float, float]:
        """Returns where a column begins, and how wide it is."""
        if not self.wide:
            return 8.0, self.scene.width - 16
        shares = {4: (0.37, 0.23, 0.23, 0.17), 3: (0.45, 0.3, 0.25)}
        share = shares[len(self.columns)]
        room = self.scene.width - 12
        return 6 + room * sum(share[:place]), room * share[place] - 14

    def plan(self, number: int, plan: Plan, y: float) -> float:
        """Places a plan; returns where it ends."""
        key = f"p{number}"
        top = y
        high = 28 + BAR + 22 if self.wide else 34 + len(self.columns) * (BAR + 42)
        self.scene.band(top, high, key=key, go=number, says=told_of(self.record, plan))
        placed = self.scene.text(10, y + 18, plan.name, size=14, weight=700, label="")
        axes = f"on {plan.mesh.text}"
        self.scene.note(placed.x + placed.w + 10, y + 18, axes, label="")
        if not self.record.fits(plan):
            said = f"does not fit{': ' + plan.refused if plan.refused else ''}"
            x = placed.x + placed.w + 22 + text_width(axes, 12)
            if self.wide:
                self.scene.text(x, y + 18, said, role="miss", size=12, weight=600)
            else:
                said = "does not fit"
                self.scene.text(x, y + 18, said, role="miss", size=12, weight=600)
        y += 28
        for place, column in enumerate(self.columns):
            x, wide = self.span(place)
            if not self.wide:
                self.scene.note(x + 2, y + 11, self.title(column), label="")
                y += 16
            self.bar(column, plan, x, y, wide, number)
            if not self.wide:
                y += BAR + 26
        return top + high + 8

    def bar(
        self, column: Column, plan: Plan, x: float, y: float, wide: float, go: int
    ) -> None:
        """Places one bar: its parts side by side, under it the sum."""
        scale = (wide - 4) / self.most[column]
        at = x
        for part in column(plan):
            long = part.amount * scale
            if long >= 1:
                drawn = box_of(part, long)
                self.scene.drawn(at, y, long, BAR, drawn, go=go, says=part.tell)
            at += long
        if column == self.memory and 0 < self.room <= self.most[column]:
            line = x + self.room * scale
            says = f"a device has {size_in_words(self.room)}"
            ends = (line, y - 4), (line, y + BAR + 4)
            self.scene.arrow(*ends, head=False, thick=2, role="miss", says=says)
        self.scene.note(x, y + BAR + 14, self.sum(column, plan), label="")

    def legend(self, y: float) -> float:
        """Places what colours mean below each column, on narrow pages in lines of its
        own; returns where that ends."""
        low = y
        for place, column in enumerate(self.columns):
            meanings = self.meanings(column)
            if not meanings:
                continue
            left, wide = self.span(place)
            x, at = left + 2, y if self.wide else low
            if not self.wide:
                x += self.scene.note(x, at + 11, f"{self.title(column)}:").w + 10
            for name, role in meanings.items():
                long = 19 + text_width(name, 12)
                if x + long > left + wide:
                    x, at = left + 2, at + 20
                part = Part(0, role, "", name, name == SPARE)
                self.scene.drawn(x, at, 14, 14, box_of(part, 14, 14), label="")
                self.scene.note(x + 19, at + 11, name)
                x += long + 12
            low = max(low, at + 20)
        return low

    def meanings(self, column: Column) -> dict[str, str]:
        """Returns the names of a column's colours; those of axes are in its bars."""
        if column == self.sent:
            return {}
        parts = [part for plan in self.record.plans for part in column(plan)]
        if column != self.memory:
            return {part.said: part.role for part in parts}
        owners = {part.said for part in parts}
        used = {name: role for name, role in ROLES.items() if name in owners}
        return {"arguments": "value"} | used

    def sum(self, column: Column, plan: Plan) -> str:
        """Returns the sum of a bar in words."""
        if column == self.memory:
            said = size_in_words(plan.memory)
            said = f"arguments alone {said}" if plan.refused else said
            return said + (f" of {size_in_words(self.room)}" if self.room else "")
        if plan.refused and column != self.making:
            return "not compiled"
        if column == self.sent:
            return size_in_words(plan.sent)
        if column == self.seconds:
            busy = plan.for_arithmetic + plan.for_memory
            links = self.record.links(plan)
            return f"{seconds_in_words(max(busy, links))} at least"
        return f"{seconds_in_words(plan.made)}, {plan.equations:,} equations"


def box_of(part: Part, long: float, high: float = BAR) -> list[Drawn]:
    """Returns a part of a bar, with its name where there is room, or its first word."""
    ink, wash = part.role or "line", f"{part.role}-wash" if part.role else "panel"
    drawn = [rect(0.5, 0, long - 1, high, wash, ink, 1.2, "3 2.5" if part.dash else "")]
    for said in dict.fromkeys((part.said, part.said.partition(" ")[0])):
        if said and text_width(said, 11) <= long - 6:
            drawn.append(words(long / 2, BAR / 2 + 4, said, "text", 11, "middle"))
            break
    return drawn


def told_of(record: ScaleRecording, plan: Plan) -> str:
    """Returns a sentence about a plan, for the detail line."""
    devices = len(plan.mesh.devices)
    told = f"{plan.name}, {devices:,} devices ({plan.mesh.text}): "
    if plan.refused:
        return told + f"XLA refuses it, it {plan.refused}."
    told += f"{size_in_words(plan.memory)} of memory in each, "
    told += (
        f"{flops_in_words(plan.flops)}, {size_in_words(plan.sent)} sent by the busiest"
    )
    if not plan.flops + plan.functions:
        return told + " in a step. It computes nothing: give a function that does."
    if record.machine is None:
        return told + " in a step."
    busy = plan.for_arithmetic + plan.for_memory
    told += f"; modelled: kernels {seconds_in_words(busy)}"
    links = record.links(plan)
    return told + (f", links {seconds_in_words(links)}." if links else ".")
