"""The picture of `see.memory`: a curve of bytes, and a bar for each array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax_lab.explain.memory import Account, Point, Value
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.memory_bands import MEANINGS, draw_band, role_of
from minijax_widgets.scene import Scene, text_width
from minijax_widgets.view import cut

if TYPE_CHECKING:
    from minijax_widgets.memory_view import MemoryView

# Columns under the curve that can be pointed at; each is for some equations in a row.
MOST_COLUMNS = 160
LEAST_BAR = 4.0
LEAST_BAND = 14.0
RIGHT = 24
# How tall the curve may be, the tallest first: the first one with which the picture is
# no higher than `TALLEST`, so that a window shows it whole.
TALL = (160, 130, 105, 85)
TALLEST = 640
TOP = 44  # where the curve begins
LEAST_INSIDE = 0.15  # of the peak: what a body needs is drawn above that


class Drawing:
    """The curve above and the arrays below, on one scale of bytes.

    Below stand the largest arrays as bars, or, of many arrays, a band for each line.
    """

    def __init__(self, view: MemoryView, width: int) -> None:
        self.view, self.bands = view, view.line_bands
        self.record = record = view.recording
        self.lines = lines = [] if self.bands else view.lines()
        self.account = record.accounts[0]
        self.wide = width > 500
        self.left = 190 if self.wide else 8
        self.room = width - self.left - RIGHT
        self.across = self.room / len(self.account.points)
        # On a narrow page a line of the user's stands above its bars.
        self.label = 0 if self.wide else 18
        most = max(account.most for account in record.accounts) or 1
        for tall in TALL:
            self.base, self.scale = TOP + tall, tall / most
            self.heights = [
                [max(LEAST_BAR, max(map(self.high, lane))) for lane in lanes]
                for _, lanes in lines
            ]
            self.highest = [
                max(LEAST_BAND, max(band.live) * self.scale) for band in self.bands
            ]
            below = sum(high + 8 + self.label for high in self.highest)
            below += sum(self.group(own) + 8 for own in self.heights)
            if self.base + 42 + below <= TALLEST:
                break
        self.scene = Scene(width, self.base + 42 + below)
        self.draw_columns()
        self.draw_curves()
        self.draw_legend()
        self.draw_bands(self.draw_bars())

    def group(self, heights: list[float]) -> float:
        """Returns how high the bars of a line are, with their line; its text fits."""
        return max(LEAST_BAND, sum(heights) + len(heights)) + self.label

    def high(self, value: Value) -> float:
        """Returns how high an array is drawn."""
        return value.bytes * self.scale

    def x_of(self, point: float) -> float:
        """Returns where a point of the program begins."""
        return self.left + point * self.across

    def draw_columns(self) -> None:
        """Draws what can be pointed at under the curve."""
        told = "bytes alive while each equation runs"
        if self.scene.width > 1000 and any(map(self.is_inside, self.account.points)):
            told += "; dashed: inside of a loop or branch, while it runs"
        self.scene.note(8, 14, told)
        points = self.account.points
        for numbers in shares(len(points), MOST_COLUMNS):
            number = max(numbers, key=lambda n: points[n].live)
            high = points[number].live * self.scale
            self.scene.band(
                self.base - high,
                high,
                x=self.x_of(numbers[0]),
                w=max(self.across * len(numbers), 2.0),
                key=[f"p{n}" for n in numbers],
                role="value",
                go=number,
                says=self.view.details[number],
            )
            self.draw_inside(points[number], self.x_of(numbers[0]), len(numbers))

    def is_inside(self, point: Point) -> bool:
        """Whether what a body needs is a part of a column that can be seen."""
        return point.inside > LEAST_INSIDE * self.account.most

    def draw_inside(self, point: Point, x: float, equations: int) -> None:
        """Draws what the body of a loop or branch needs of a column, at its top."""
        wide, tall = self.across * equations, point.inside * self.scale
        if wide < LEAST_BAR or not self.is_inside(point):
            return
        said = f"{size_in_words(point.inside)} inside of {point.primitive}"
        fits = tall > 19 and text_width(said, 12) * 1.05 + 6 < wide
        self.scene.box(
            x,
            self.base - point.live * self.scale,
            wide,
            tall,
            role="value",
            dash=True,
            text=said if fits else "",
        )

    def draw_curves(self) -> None:
        """Draws the curve with its peak, and that of a second function beside it."""
        scene, first = self.scene, self.account
        scene.area(self.stepped(first, self.across), role="value")
        peak = first.points[first.peak].live
        middle = self.x_of(first.peak) + self.across / 2
        y = self.base - peak * self.scale - 6
        if len(self.record.accounts) > 1 and self.record.accounts[1].points:
            other = self.record.accounts[1]
            step = self.room / len(other.points)
            curve = self.stepped(other, step)
            scene.area(curve, key="beside", role="constant", dash=True)
            said = f"beside {size_in_words(other.most)}"
            x = within(self.left + (other.peak + 0.5) * step, said, scene.width)
            other_y = self.base - other.most * self.scale - 6
            both = text_width(said, 12)
            both += text_width(size_in_words(peak), 12, weight=600)
            apart = both / 2 + 8
            if abs(other_y - y) < 14 and abs(x - middle) < apart:
                # Beside the other label: above it stands the legend.
                x = middle + apart if x >= middle else middle - apart
            scene.note(x, other_y, said, anchor="middle")
        said = size_in_words(peak)
        x = within(middle, said, scene.width)
        scene.note(x, y, said, role="value", anchor="middle", weight=600)

    def stepped(self, account: Account, across: float) -> list[tuple[float, float]]:
        """Returns a curve of live bytes: each height holds until the next point's x."""
        heights = [self.base - point.live * self.scale for point in account.points]
        corners = [(self.left + number * across, y) for number, y in enumerate(heights)]
        return [*corners, (self.left + len(heights) * across, heights[-1])]

    def draw_legend(self) -> None:
        """Writes what the bars are, and what their colours say."""
        told = self.view.what_is_drawn(self.wide)
        self.scene.note(8, self.base + 16, told)
        drawn = {role_of(value) for value in self.account.values} - {"value"}
        legend = [one for one in MEANINGS.items() if one[0] in drawn]
        end = self.scene.width - RIGHT
        for role, said in reversed(legend if self.wide else []):
            placed = self.scene.note(end, 14, said, role=role, anchor="end", weight=600)
            end = placed.x - 16

    def draw_bars(self) -> float:
        """Draws the arrays, under the user's line that made them; returns the end."""
        y = self.base + 34.0
        for (span, lanes), heights in zip(self.lines, self.heights, strict=True):
            top = y
            code = cut(self.record.line_of(span) or "(no line of yours)", 27)
            if lanes[0][0].backward:
                code = f"{code.partition('  ')[0]}  backward"
            x, anchor = (self.left - 8, "end") if self.wide else (self.left, "start")
            self.scene.text(x, y + 11, code, mono=True, size=11, anchor=anchor)
            y += self.label
            for lane, high in zip(lanes, heights, strict=True):
                for value in lane:
                    self.draw_bar(value, y + high)
                y += high + 1
            y = top + self.group(heights) + 8
        return y

    def draw_bands(self, y: float) -> None:
        """Draws a band for each of the user's lines, with all of its arrays."""
        for band, high in zip(self.bands, self.highest, strict=True):
            name = self.record.line_of(band.span) or "(no line of yours)"
            name = "all other lines" if band.rest else name
            code = cut(name, 27)
            if band.role == "cotangent":
                code = f"{code.partition('  ')[0]}  backward"
            x, anchor, base = self.left, "start", y + 11
            if self.wide:
                x, anchor, base = x - 8, "end", y + high - min(high, 14.0) / 2 + 4
            self.scene.text(x, base, code, mono=True, size=11, anchor=anchor)
            y += self.label
            draw_band(
                self.scene, band, name, y + high, self.scale, LEAST_BAR, self.x_of
            )
            y += high + 8

    def draw_bar(self, value: Value, low: float) -> None:
        """Draws an array from the equation that makes it to the last one that reads."""
        start, end = self.x_of(value.born), self.x_of(value.dies + 1)
        role = "cotangent" if value.backward else "value"
        own = max(LEAST_BAR, self.high(value))
        size = size_in_words(value.bytes)
        fits = own > 17 and text_width(size, 12) * 1.05 + 6 < end - start
        self.scene.box(
            start,
            low - own,
            max(end - start, LEAST_BAR),
            own,
            key=f"v{value.id}",
            role="residual" if value.kept else role,
            text=size if fits else "",
            lid=value.kept and own > 8,
            go=value.born,
            at=value.born,
            until=value.dies,
            snug=True,
            tell=told_of(value),
        )


def within(middle: float, text: str, width: float) -> float:
    """Returns the middle of a text that stays in the picture."""
    half = text_width(text, 12, weight=600) / 2 + 4
    return max(half, min(middle, width - half))


def told_of(value: Value) -> str:
    """Returns a sentence about an array."""
    told = (
        f"{value.type}, {size_in_words(value.bytes)}, made by {value.name}: alive from "
        f"equation {value.born} to {value.dies}"
    )
    if value.kept:
        told += "; autodiff keeps it for the backward pass"
    elif value.role == "result":
        told += "; a result"
    return told


def shares(count: int, most: int) -> list[range]:
    """Returns the numbers below `count` in at most `most` runs of one length."""
    each = -(-count // most)
    return [range(start, min(count, start + each)) for start in range(0, count, each)]
