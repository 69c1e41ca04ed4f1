"""Draws the graph of a program in the places that Graphviz gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minijax_lab.explain.jaxpr import Equation
from minijax_widgets.glyph import text_width
from minijax_widgets.graph_layout import Laid, Point
from minijax_widgets.graph_sketch import (
    LINE,
    PAD,
    ROUND,
    SMALL,
    TEXT_SIZE,
    Box,
    Node,
    Sketch,
    title_lines,
    widest,
)
from minijax_widgets.scene import Scene
from minijax_widgets.signs import sign

# A longer line cannot be seen at once in a narrow window: a step does not light it.
LONGEST_LIT = 300.0


# Where the title of a box begins, where the box does, its lines, on which ground.
Title = tuple[float, float, list[str], str]


@dataclass(frozen=True)
class Drawer:
    """Draws a sketch in its places."""

    sketch: Sketch
    places: Laid
    scene: Scene
    goes: dict[str, int]
    detail: Callable[[Equation], str]

    def draw(self) -> None:
        """Draws boxes, lines over them, titles and nodes over lines."""
        titles: list[Title] = []
        self.draw_boxes(self.sketch.whole, titles)
        for number, ends in enumerate(self.sketch.edges):
            self.draw_line(self.places.lines[str(number)], ends)
        for title in titles:
            self.draw_title(*title)
        for name, node in self.sketch.nodes.items():
            x, y = self.places.nodes[name]
            left, top = x - node.w / 2 + PAD, y - node.h / 2 + PAD
            if node.title:
                self.draw_node(node, left, top)
            else:
                self.draw_value(node, left, top)

    def draw_title(self, at: float, top: float, lines: list[str], role: str) -> None:
        """Draws the title of a box on the box's ground: a line goes behind it."""
        high = LINE * len(lines) + 1
        wide = widest(lines) + 4
        self.scene.band(top + 6, high, x=at - 2, w=wide, role=role, label="")
        for number, told in enumerate(lines):
            down = top + LINE * number
            self.scene.text(
                at, down + 18, told, size=TEXT_SIZE, weight=600, mono=True, label=""
            )

    def draw_boxes(self, box: Box, titles: list[Title]) -> None:
        for number, part in enumerate(box.inside):
            if isinstance(part, str):
                continue
            place = self.places.clusters[self.sketch.key_of(part, number)]
            left, top, right, bottom = (at + PAD for at in place)
            self.draw_loops(part, (left, top, right, bottom))
            left, top = left + part.rim, top + part.rim
            w, h = right - part.rim - left, bottom - part.rim - top
            lines = part.equation is None and part.unit
            self.scene.box(
                left,
                top,
                w,
                h,
                key=[part.unit],
                filled=bool(lines),
                tell=f"{part.title}  |  a click closes this box" if part.unit else "",
                label=f"{part.title}, open",
                opens=self.goes.get(part.unit),
            )
            at = left + 10
            if part.unit:
                draw_sign(self.scene, "opened", at, top + 14)
                at += 14
            letters = int((left + w - at - 8) / widest(["m"]))
            told = title_lines(part.title, max(letters, 4), part.lines)
            titles.append((at, top, told, "" if lines else "base"))
            self.draw_boxes(part, titles)

    def draw_loops(self, box: Box, place: tuple[float, float, float, float]) -> None:
        """Draws what goes round a box: out at its end, back along a side, in again."""
        across = self.places.across
        low, near, high, far = place
        if not across:
            low, near, high, far = near, low, far, high
        for number, (start, end, variable) in enumerate(box.loops):
            told = self.sketch.record.variables[variable]
            name = self.sketch.boxes.name_of(variable)
            gap = 4 + ROUND * (number // 2)
            side = near + gap if number % 2 == 0 else far - gap
            first, last = (
                (self.places.nodes[one], self.sketch.nodes[one]) for one in (start, end)
            )

            def turned(along: float, beside: float) -> Point:
                return (along, beside) if across else (beside, along)

            half = [one.w / 2 if across else one.h / 2 for _, one in (first, last)]
            outs, ins = (
                [at + PAD for at in (place if across else place[::-1])]
                for place, _ in (first, last)
            )
            self.scene.arrow(
                turned(outs[0] + half[0], outs[1]),
                turned(ins[0] - half[1], ins[1]),
                via=[
                    turned(high - gap, outs[1]),
                    turned(high - gap, side),
                    turned(low + gap, side),
                    turned(low + gap, ins[1]),
                ],
                role="value",
                thick=2,
                tell=f"{name}, {told.type}, goes round: the next turn reads it",
                label=f"{name} goes round",
            )
            text = f"{name} goes round: {told.type}"
            x, y = turned((low + high) / 2, side)
            w = text_width(text, 11, weight=600) + 12
            if across and w < high - low - 4 * ROUND:
                self.scene.band(y - 8, 16, x=x - w / 2, w=w, role="base", label="")
                self.scene.text(
                    x, y + 4, text, role="value", size=11, anchor="middle", weight=600,
                    label="",
                )  # fmt: skip

    def draw_line(self, points: list[Point], ends: tuple[str, str]) -> None:
        moved = [(x + PAD, y + PAD) for x, y in points]
        known = [self.sketch.record.variables[v] for v in self.sketch.edges[ends]]
        told = ", ".join(f"{self.sketch.boxes.name_of(v.id)}:{v.type}" for v in known)
        wide = max(max(axis) - min(axis) for axis in zip(*moved, strict=True))
        makers = [self.sketch.nodes[end].equation for end in ends]
        # Graphviz ends a curve before its tip, which is a straight piece.
        curve, tip = moved[:-1], moved[-1]
        self.scene.arrow(
            curve[0],
            tip,
            via=curve[1:-1],
            curve="bezier",
            key=[f"e{e.id}" for e in makers if e and wide <= LONGEST_LIT],
            tell=told,
            label=f"{', '.join(v.name for v in known)} flows from here to there",
        )

    def draw_value(self, node: Node, left: float, top: float) -> None:
        """Draws what comes in or goes out."""
        wide = node.w
        keys = [f"v{variable}" for variable in node.variables]
        self.scene.text(
            left + wide / 2, top + 12, node.name, role="value", size=TEXT_SIZE,
            anchor="middle", weight=600, mono=True, key=keys, tell=node.tell,
        )  # fmt: skip
        down = top + node.head
        if node.note:
            self.scene.note(left + wide / 2, down + 12, node.note, anchor="middle")
        if node.picture is not None:
            self.scene.glyph(
                node.shape or (),
                left + wide / 2 - (node.picture.left + node.picture.right) / 2,
                down + 3 - node.picture.top,
                centered=True,
                role=node.role,
                scale=SMALL,
                label="",
            )

    def draw_node(self, node: Node, left: float, top: float) -> None:
        """Draws an equation, or a closed box."""
        opens = self.goes.get(node.unit) if node.unit else None
        keys = [node.unit, f"closed {node.unit}"] if node.unit else []
        label = told = node.tell or node.title
        go = None
        if node.equation is not None:
            keys += [f"e{node.equation.id}"]
            told = self.detail(node.equation)
            label = self.sketch.boxes.label(node.equation)
            go = node.equation.id
        if opens is not None:
            told += "  |  a click opens this box"
            go = None
        w, h = node.w, node.h - node.head
        if node.name:
            self.scene.text(
                left + w / 2, top + 12, node.name, role="value", size=TEXT_SIZE,
                anchor="middle", weight=600, mono=True, label="",
            )  # fmt: skip
        top += node.head
        for shift in (6, 3) if node.pile else ():
            self.scene.box(left + shift, top - shift, w, h, label="")
        self.scene.box(
            left,
            top,
            w,
            h,
            key=keys,
            role="" if node.unit else "value",
            filled=bool(node.unit),
            tell=told,
            label=label,
            opens=opens,
            go=go,
        )
        at = left + 6
        if opens is not None:
            draw_sign(self.scene, "shut", at, top + 11)
            at += 14
        for number, line in enumerate(node.lines):
            self.scene.text(
                at, top + 15 + LINE * number, line, size=TEXT_SIZE, mono=True, label="",
                weight=600 if node.unit else 400,
            )  # fmt: skip
        below = top + LINE * (len(node.lines) - 1)
        if node.note:
            self.scene.note(at, below + 31, node.note, size=11, label="")
        if node.picture is not None:
            self.scene.glyph(
                node.shape or (),
                left + w / 2 - (node.picture.left + node.picture.right) / 2,
                top + h - 4 - node.picture.bottom,
                scale=SMALL,
                centered=True,
                label="",
            )


def draw_sign(scene: Scene, name: str, x: float, y: float) -> None:
    """Places a sign whose left side has its middle at (x, y)."""
    wide, drawn = sign(name)
    scene.drawn(x, y, wide, 0, drawn)
