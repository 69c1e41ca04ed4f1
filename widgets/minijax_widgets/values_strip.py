"""A strip of heat maps: what the equation of a step reads and makes, in large cells.

Operands stand on the left, an arrow says what is done to them, the result is on the
right; on narrow pages below. A step changes what the places show, never the places.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from minijax_lab.explain.small_values import Values
from minijax_widgets.cells import are_written, largest_of, values_parts
from minijax_widgets.frame import Pane, Row, scene_pane
from minijax_widgets.glyph import Drawn, line, path, rect, text_width, words
from minijax_widgets.scene import Scene, fitting
from minijax_widgets.view import short_name

TITLE = "values of this step, when it runs"
# Operands of one equation that have a place.
MOST = 3
ABOVE, TOLD = 20, 16  # a name, over its cells, and what a cell is of a reduced one
# The largest cell.
CELL = (92.0, 44.0)
# Primitives that add: equal numbers in operands and result have equal inks.
ADDS = frozenset(("sum", "add", "add_any", "sub"))


@dataclass(frozen=True)
class Flow:
    """What a step reads, what it does, and what it makes: names, with a name's text;
    or why nothing is known of it."""

    reads: Sequence[str] = ()
    does: str = ""
    makes: Sequence[str] = ()
    role: str = "value"
    product: bool = False  # a sum of products, row by column, of the two it reads
    why: str = ""


@dataclass(frozen=True)
class Layout:
    """How wide the strip is; `under` has the result on a line of its own."""

    width: float
    under: bool = False
    tallest: float = 148  # of an array


WIDE, MIDDLE, NARROW = Layout(1040), Layout(690), Layout(288, True, 92)
ARROW = 128  # its width


@dataclass
class Strip:
    """The flows of all steps, and what the values of their names are."""

    flows: list[Flow]
    values: Mapping[str, Values]
    types: Mapping[str, str]
    tallest: float = 0.0
    above: float = ABOVE

    def panes(self, no_values: str, unasked: str = "") -> list[Pane]:
        """Returns the strip as a pane if some step computes a known value, and why
        values are missing: what running the program raised, or what it would cost;
        none if no one asked for any."""
        told, look = "", ""
        made = [name for flow in self.flows if flow.reads for name in flow.makes]
        some = any(map(self.values.get, made))
        if unasked:
            told = f"{'some' if some else 'no'} values: {unasked}; values=True shows "
            told += "all" if some else "what arrays hold"
        if no_values:
            told, look = f"no values: running the program raised {no_values}", "miss"
        panes = []
        if some:
            panes.append(scene_pane(self.scene, WIDE, NARROW, MIDDLE, TITLE))
            panes[0].kind = "strip"
        if told:
            row = Row([told], look=look)
            panes.append(Pane("", [row], kind="prose", wide=True, below=some))
        return panes

    def scene(self, layout: Layout) -> Scene:
        """Returns the strip for a page of some width."""
        read = [self.shown(flow) for flow in self.flows]
        most = max(map(len, read), default=0) or 1
        arrow_in = 0 if layout.under else ARROW
        wide = (layout.width - arrow_in) / (most + (not layout.under))
        rest = layout.width - ARROW if layout.under else wide
        self.tallest = layout.tallest
        heights = [self.size(name, wide)[1] for reads in read for name in reads]
        heights += [self.size(n, rest)[1] for flow in self.flows for n in flow.makes]
        self.above = ABOVE + TOLD * any(map(self.reduced, self.values))
        tall = self.above + max(heights, default=0.0)
        scene = Scene(layout.width, tall * (1 + layout.under) + 8, TITLE)
        inks = [
            self.inks(
                flow, [(n, wide) for n in reads] + [(n, rest) for n in flow.makes[:1]]
            )
            for flow, reads in zip(self.flows, read)
        ]
        for place in range(most):
            # The last operand stands at the arrow.
            at = [place - most + len(reads) for reads in read]
            drawn = [
                self.map(reads[n], wide, tall, ink) if n >= 0 else []
                for n, reads, ink in zip(at, read, inks)
            ]
            show(scene, place * wide, 0, wide, tall, drawn)
        x, y = (0.0, tall) if layout.under else (most * wide, 0.0)
        signs = [arrow(flow, tall, self.above) for flow in self.flows]
        show(scene, x, y, ARROW, tall, signs)
        made = [
            self.map(flow.makes[0], rest, tall, ink, flow) if flow.makes else []
            for flow, ink in zip(self.flows, inks)
        ]
        show(scene, x + ARROW, y, rest, tall, made)
        letters = int(layout.width / 6.6)
        whys = [
            [
                words(0, self.above + 16 * number, said, "constant", 12)
                for number, said in enumerate(wrap(flow.why, letters))
            ]
            for flow in self.flows
        ]
        show(scene, 0, 0, layout.width, tall, whys)
        return scene

    def inks(self, flow: Flow, shown: list[tuple[str, float]]) -> tuple[float, bool]:
        """Returns the magnitude that has the deepest ink in what a step shows, 0 for
        each array's own, and whether numbers stand in some of the cells."""
        tables = [(self.values.get(name), name, wide) for name, wide in shown]
        known = [(values, name, wide) for values, name, wide in tables if values]
        adds = flow.does in ADDS
        largest = largest_of([values for values, _, _ in known]) if adds else 0.0
        lighter = False
        for values, name, wide in known:
            w, h = self.size(name, wide)
            lighter |= are_written(values, (w / len(values[0]), h / len(values)))
        return largest, lighter

    def shown(self, flow: Flow) -> list[str]:
        """The operands that have a place: each once, those with values first."""
        once = dict.fromkeys(flow.reads)
        return sorted(once, key=lambda name: name not in self.values)[:MOST]

    def size(self, name: str, wide: float) -> tuple[float, float]:
        """How large a name's cells are together."""
        values = self.values.get(name) or [[0.0]]
        w = min(CELL[0], (wide - 6) / len(values[0]))
        h = min(CELL[1], self.tallest / len(values))
        return min(w, 2 * h) * len(values[0]), h * len(values)

    def reduced(self, name: str) -> str:
        """What a cell of a name's array is, if not one number at its index."""
        values = self.values.get(name)
        return reduced(self.types.get(name, ""), values) if values else ""

    def map(
        self,
        name: str,
        wide: float,
        tall: float,
        ink: tuple[float, bool],
        flow: Flow | None = None,
    ) -> list[Drawn]:
        """Returns one array with its name, in the middle of its place."""
        kind = self.types.get(name, "")
        letters = int((wide - 8) / text_width("m", 12, True) / 1.05)
        said = short_name(name, max(4, letters))
        if kind and len(said) + 1 + len(kind) <= letters:
            said = f"{said}:{kind}"
        values = self.values.get(name)
        w, h = self.size(name, wide) if values else (0.0, 32.0)
        middle = self.above + (tall - self.above) / 2
        # The top of the name's line, which stands right above the cells.
        top = middle - h / 2 - self.above
        title = words(wide / 2, top + 13, said, size=12, anchor="middle", mono=True)
        if not values:
            told = "keys" if "key<" in kind else "no values"
            w = text_width(told, 12) + 24
            box = rect((wide - w) / 2, middle - 16, w, 32, "none", "line", 1, "4 3")
            return [
                title,
                box,
                words(wide / 2, middle + 4, told, "constant", 12, "middle"),
            ]
        drawn = [title]
        if told := self.reduced(name):
            short = told
            if text_width(told, 11) > wide - 4:
                short = told.removeprefix("flattened to ")
                if told != (block := told.removeprefix("reduced: means of ")):
                    short = f"{block.replace(' x ', 'x')} means"
                short = fitting(short, wide - 4)
            drawn.append(words(wide / 2, top + 29, short, "constant", 11, "middle"))
        exact = flow and not any(map(self.reduced, [name, *flow.reads]))
        at = (wide - w) / 2, middle - h / 2
        each = w / len(values[0]), h / len(values)
        product = "|".join(["", *flow.reads]) if flow and exact and flow.product else ""
        cells = values_parts(
            values,
            ink[0] or largest_of([values]),
            each,
            at=at,
            lighter=ink[1],
            spelled=True,
            product=product,
            name=f"{name}, {told}, at " if told else name,
        )
        return [*drawn, *cells]


def reduced(kind: str, values: Values) -> str:
    """Returns what a cell is, of an array whose type says that it has more numbers or
    more axes than there are rows and columns; else ""."""
    # Of a type such as f32[64@x,4]{V:y} the sizes, without the axes of a mesh.
    inside = kind.partition("[")[2].partition("]")[0]
    sides = [int(size) for size in re.findall(r"(?:^|,)(\d+)", inside)]
    if len(sides) < 3 and math.prod(sides) <= len(values) * len(values[0]):
        return ""
    rows, columns = math.prod(sides[:-1]), sides[-1]
    down, across = -(-rows // len(values)), -(-columns // len(values[0]))
    if down * across == 1:
        return f"flattened to rows of {columns}"
    return f"reduced: means of {down} x {across}"


def arrow(flow: Flow, tall: float, above: float) -> list[Drawn]:
    """Returns what is done to the operands, over an arrow to the result."""
    if not flow.does:
        return []
    middle, end = above + (tall - above) / 2, ARROW - 10
    head = [(end, middle), (end - 10, middle - 5), (end - 10, middle + 5)]
    drawn = [
        path(line([(10, middle), (end - 8, middle)]), flow.role, 2.4),
        path(line(head) + "Z", fill=flow.role),
    ]
    for number, text in enumerate(reversed(flow.does.split("\n"))):
        said, up = fitting(text, ARROW - 4), middle - 9 - 15 * number
        drawn.append(words(ARROW / 2, up, said, size=12, anchor="middle", mono=True))
    return drawn


def show(
    scene: Scene, x: float, y: float, w: float, h: float, drawn: list[list[Drawn]]
) -> None:
    """Places what is drawn there in each step."""
    turns = [
        (step, parts)
        for step, parts in enumerate(drawn)
        if step and parts != drawn[step - 1]
    ]
    scene.drawn(x, y, w, h, drawn[0] if drawn else [], turns=turns)
