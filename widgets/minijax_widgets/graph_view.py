"""`see.jaxpr(f, x).graph()`: the equations as boxes, and what flows between them.

Inputs and outputs stand there by name, each box has the glyph of its result. Programs
inside of equations, and lines of long programs, are boxes of their own, which open and
close. The same as text for other tools is DOT, the language of Graphviz.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from minijax_lab.explain.jaxpr import Equation, JaxprRecording, Program
from minijax_lab.explain.recording import count_in_words
from minijax_widgets.frame import Frame, Pane, shape_of_type
from minijax_widgets.glyph import Glyph, glyph, text_width
from minijax_widgets.graph_layout import Item, lay_out
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.scene import Placed, Scene
from minijax_widgets.signs import sign
from minijax_widgets.view import View, cut

# A program of more equations is grouped by line.
# A wider graph stands above the listing.
MOST_BESIDE = 520
MOST_OPEN = 40
CHUNKS = 20
# Boxes that can be opened, of those nearest to the outside.
MOST_UNITS = 40
# At most this many marks in all layouts together.
MOST_MARKS = 8000
HEIGHT = 30.0
PAD = 14.0
HEAD = 26.0
SMALL = 0.5
TEXT_SIZE = 12.0
Target = tuple[str, int]  # ("equation", id), ("group", id), ("input", id), ...


@dataclass
class Group:
    """Neighbouring equations of a long program, which stand as one box."""

    id: int
    title: str
    parts: list[Group | Equation]

    def equations(self) -> Iterator[Equation]:
        """Yields the group's equations, those of inner groups too."""
        for part in self.parts:
            if isinstance(part, Group):
                yield from part.equations()
            else:
                yield part


@dataclass
class Block:
    """A laid-out box: how large it is, and what draws it at a place."""

    w: float
    h: float
    item: Item
    equation: Equation | None = None
    variable: int | None = None
    unit: str = ""
    title: str = ""
    inner: list[Drawing] = field(default_factory=list)
    picture: Glyph | None = None
    is_input: bool = False
    role: str = "value"


@dataclass
class Drawing:
    """A program as laid out: its blocks, and lines with the variables that flow."""

    title: str
    w: float
    h: float
    blocks: list[Block]
    lines: list[tuple[list[tuple[float, float]], int, Block, Block]]


class GraphView(View):
    """The graph of a jaxpr's equations, beside its listing.

    `around` is the equation whose boxes are open at first; the telling one by default.
    """

    recording: JaxprRecording

    def __init__(self, recording: JaxprRecording, around: int | None = None) -> None:
        super().__init__(recording)
        self.listing = JaxprView(recording)
        self.around = recording.telling if around is None else around
        self.inner: dict[int, list[Program]] = {}
        for program in recording.programs:
            if program.parent is not None:
                self.inner.setdefault(program.parent, []).append(program)
        self.groups: list[Group] = []
        self.parts = {
            id(program): self.grouped(
                [recording.equations[n] for n in program.equations]
            )
            for program in recording.programs
        }
        # The unit that an equation stands in, and the unit around each unit.
        self.within: dict[str, str] = {}
        for program in recording.programs:
            outside = "" if program.parent is None else f"u{program.parent}"
            self.note_units(self.parts[id(program)], outside)
        self.units = self.units_in_order()
        self.small = len(recording.equations) <= MOST_OPEN

    def grouped(self, equations: list[Equation]) -> list[Group | Equation]:
        """Returns the equations, grouped by line, or else in runs, if they are many."""
        if len(equations) <= MOST_OPEN:
            return list(equations)
        runs = [
            (line, list(run))
            for line, run in groupby(equations, lambda e: e.span and e.span.line)
        ]
        if not 1 < len(runs) <= MOST_OPEN:
            size = -(-len(equations) // CHUNKS)
            times = repeats(equations)
            if times > 1:
                # The turns of a Python loop stay together.
                turn = len(equations) // times
                size = -(-size // turn) * turn
            chunks = range(0, len(equations), size)
            runs = [(None, equations[start : start + size]) for start in chunks]
        parts: list[Group | Equation] = []
        for line, run in runs:
            if len(run) == 1:
                parts.append(run[0])
                continue
            told = f"{len(run)} equations, {run[0].id + 1} to {run[-1].id + 1}"
            if line is not None:
                text = self.recording.span_text(run[0]).partition("\n")[0]
                told = cut(f"line {line}: {text}", 40)
                told += f"  ({count_in_words(len(run), 'equation')})"
            group = Group(len(self.groups), told, [])
            self.groups.append(group)
            group.parts = self.grouped(run)
            parts.append(group)
        return parts

    def note_units(self, parts: list[Group | Equation], outside: str) -> None:
        """Notes which unit each equation and each unit stands in."""
        for part in parts:
            if isinstance(part, Group):
                self.within[f"g{part.id}"] = outside
                self.note_units(part.parts, f"g{part.id}")
            else:
                self.within[f"e{part.id}"] = outside
                if part.id in self.inner:
                    self.within[f"u{part.id}"] = outside

    def units_in_order(self) -> list[str]:
        """Returns the boxes that open: the way to `around`, then the outer ones."""
        found = [name for name in self.within if name[0] in "ug"]
        way = self.way_to(f"e{self.around}") if self.recording.equations else []
        found.sort(key=lambda name: (name not in way, len(self.way_to(name))))
        return found[:MOST_UNITS]

    def way_to(self, name: str) -> list[str]:
        """Returns the units around an equation or a unit, the innermost first."""
        way = []
        while outside := self.within.get(name, ""):
            way.append(outside)
            name = outside
        return way

    # ---- text ------------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and an arrow for each value that flows."""
        arrows = [
            f"  {self.label(a)} -> {self.label(b)}  {name}"
            for a, b, name in edges_of(self.recording)
        ]
        if not full and len(arrows) > 200:
            hidden = len(arrows) - 200
            note = f"  ... {hidden:,} more: print(v.text(full=True))"
            arrows = [*arrows[:200], note]
        return "\n".join([self.recording.headline, *arrows])

    def label(self, equation: Equation) -> str:
        """Returns what stands in an equation's box."""
        names = [self.recording.variables[r].name for r in equation.results]
        return cut(f"{' '.join(names) or '_'} = {equation.primitive}", 44)

    def dot(self) -> str:
        """Returns the graph in Graphviz's language."""
        lines = ["digraph jaxpr {", "  node [shape=box]"]
        for equation in self.recording.equations:
            lines.append(f"  e{equation.id} [label={json.dumps(self.label(equation))}]")
        for a, b, name in edges_of(self.recording):
            lines.append(f"  e{a.id} -> e{b.id} [label={json.dumps(name)}]")
        return "\n".join([*lines, "}"])

    # ---- the picture -----------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture: the graph, and the listing."""
        frame = self.listing.frame()
        first, layouts = self.scenes()
        graph = Pane("graph", [], kind="scene", scene=first, layouts=layouts)
        # A small one stands beside the listing.
        graph.wide = first.width > MOST_BESIDE
        frame.panes.insert(0, graph)
        for pane in frame.panes[2:]:
            pane.below = True
        for number, step in enumerate(frame.steps):
            step.marks = [(p + 1, r, a, b) for p, r, a, b in step.marks]
            # A step in a closed box lights the box.
            step.on += [f"closed {unit}" for unit in self.way_to(f"e{number}")]
        frame.text = self.text(full=True)
        return frame

    def scenes(self) -> tuple[Scene, list[Scene]]:
        """Returns the picture at first, and the layouts that its boxes open."""
        if not self.recording.equations:
            return self.scene(set(), {}), []
        # A click on a box shows the layout with that number.
        if self.small:
            every = set(self.units)
            closing = {unit: 1 + n for n, unit in enumerate(self.units)}
            layouts = [self.scene(every, closing)]
            for unit in self.units:
                shut = {u for u in every if u == unit or unit in self.way_to(u)}
                layouts.append(self.scene(every - shut, closing | {unit: 0}))
            return layouts[0], layouts
        numbers = {unit: 1 + n for n, unit in enumerate(self.units)}
        layouts = [self.scene(set(), numbers)]
        marks = len(layouts[0].marks)
        for unit in self.units:
            opened = {unit, *self.way_to(unit)}
            goes = dict(numbers)
            for one in opened:
                goes[one] = numbers.get(self.within.get(one, ""), 0)
            layouts.append(self.scene(opened, goes))
            marks += len(layouts[-1].marks)
            if marks > MOST_MARKS:
                break
        for scene in layouts:
            for mark in scene.marks:
                if mark.opens is not None and mark.opens >= len(layouts):
                    mark.opens = None
        way = [u for u in self.way_to(f"e{self.around}") if u in numbers]
        first = numbers[way[0]] if way else 0
        return layouts[first if first < len(layouts) else 0], layouts

    def scene(self, opened: set[str], goes: dict[str, int]) -> Scene:
        """Returns the picture with some boxes open."""
        drawing = self.drawing(self.recording.programs[0], opened)
        scene = Scene(
            drawing.w + 2 * PAD,
            drawing.h + 2 * PAD,
            "graph of the equations; the listing beside it says the same",
        )
        self.draw(scene, drawing, PAD, PAD, goes)
        return scene

    def drawing(self, program: Program, opened: set[str]) -> Drawing:
        """Lays out a program with its inputs and its outputs."""
        parts = self.parts[id(program)]
        returned = [out for out in program.outputs if isinstance(out, int)]
        return self.laid(program.name, parts, program.inputs, returned, opened)

    def laid(
        self,
        title: str,
        parts: list[Group | Equation],
        inputs: list[int],
        returned: list[int],
        opened: set[str],
    ) -> Drawing:
        """Lays out neighbouring equations between what comes in and what goes out."""
        blocks: list[Block] = []
        maker: dict[int, int] = {}
        flows: list[tuple[int, int, int]] = []
        used = {
            operand
            for part in parts
            for equation in (part.equations() if isinstance(part, Group) else [part])
            for operand in equation.operands
            if isinstance(operand, int)
        }
        for variable in inputs:
            if variable in used or variable in returned:
                maker[variable] = len(blocks)
                blocks.append(self.end_block(variable, comes_in=True))
        for part in parts:
            number = len(blocks)
            if isinstance(part, Group):
                members = list(part.equations())
                made = {result for e in members for result in e.results}
                needs = [
                    operand
                    for e in members
                    for operand in e.operands
                    if isinstance(operand, int) and operand not in made
                ]
                blocks.append(self.group_block(part, made, needs, returned, opened))
            else:
                made = set(part.results)
                needs = [
                    operand for operand in part.operands if isinstance(operand, int)
                ]
                blocks.append(self.equation_block(part, opened))
            for operand in dict.fromkeys(needs):
                if operand in maker:
                    flows.append((maker[operand], number, operand))
            maker |= dict.fromkeys(made, number)
        for variable in returned:
            if variable in maker:
                flows.append((maker[variable], len(blocks), variable))
            blocks.append(self.end_block(variable, comes_in=False))
        if not blocks:
            return Drawing(title, 40.0, 20.0, [], [])
        placed = lay_out(
            [block.item for block in blocks], [(a, b) for a, b, _ in flows]
        )
        lines = [
            (points, variable, blocks[a], blocks[b])
            for points, (a, b, variable) in zip(placed.lines, flows, strict=True)
        ]
        return Drawing(title, placed.width, placed.height, blocks, lines)

    def end_block(self, variable: int, comes_in: bool) -> Block:
        """Returns the block of an input or an output: its glyph, with its name."""
        told = self.recording.variables[variable]
        role = "constant" if told.role == "constant" else "value"
        shape = shape_of_type(told.type)
        name = told.name if comes_in else f"returns {told.name}"
        made = glyph(
            shape if shape is not None else (),
            role=role,
            name=name if shape is not None else f"{name}:{told.type}",
            scale=SMALL,
        )
        return Block(
            made.w,
            made.h,
            Item(made.w, made.h, late=comes_in),
            variable=variable,
            picture=made,
            is_input=comes_in,
            role=role,
        )

    def equation_block(self, equation: Equation, opened: set[str]) -> Block:
        """Returns the block of an equation, with its programs if it is open."""
        label = self.label(equation)
        unit = f"u{equation.id}"
        inner = self.inner.get(equation.id, [])
        if inner and unit in opened:
            return self.open_block(
                equation, unit, label, [self.drawing(p, opened) for p in inner]
            )
        result = equation.results[0] if equation.results else None
        kind = self.recording.variables[result].type if result is not None else ""
        shape = shape_of_type(kind)
        picture = glyph(shape, scale=SMALL, sizes=False) if shape is not None else None
        if inner:
            count = sum(len(program.equations) for program in inner)
            label += f"  ({count_in_words(count, 'equation')} inside)"
        w = text_width(label, TEXT_SIZE, mono=True) + 24
        h = HEIGHT
        if picture is not None:
            w += picture.w + 8
            h = max(h, picture.h + 10)
        return Block(
            w,
            h,
            Item(w, h),
            equation,
            unit=unit if inner else "",
            title=label,
            picture=picture,
        )

    def group_block(
        self,
        group: Group,
        made: set[int],
        needs: list[int],
        returned: list[int],
        opened: set[str],
    ) -> Block:
        """Returns the block of a group, with its equations if it is open."""
        unit = f"g{group.id}"
        if unit in opened:
            members = {equation.id for equation in group.equations()}
            variables = self.recording.variables
            leaving = [
                result
                for result in sorted(made)
                if result in returned or set(variables[result].uses) - members
            ]
            inputs = list(dict.fromkeys(needs))
            inside = self.laid("", group.parts, inputs, leaving, opened)
            return self.open_block(None, unit, group.title, [inside])
        w = text_width(group.title, TEXT_SIZE, mono=True) + 24
        return Block(w, HEIGHT, Item(w, HEIGHT), unit=unit, title=group.title)

    def open_block(
        self,
        equation: Equation | None,
        unit: str,
        title: str,
        inner: list[Drawing],
    ) -> Block:
        """Returns the block of an open box: a frame around what it holds."""
        named = len(inner) > 1 or (inner and inner[0].title != "")
        head = HEAD + (18 if named else 0)
        w = sum(drawing.w + 2 * PAD for drawing in inner)
        w = max(w, text_width(title, TEXT_SIZE, mono=True) + 44)
        h = max((drawing.h for drawing in inner), default=0.0) + head + 2 * PAD
        return Block(w, h, Item(w, h), equation, unit=unit, title=title, inner=inner)

    def draw(
        self, scene: Scene, drawing: Drawing, x: float, y: float, goes: dict[str, int]
    ) -> None:
        """Draws a laid-out program with its top left corner at (x, y)."""
        frames = [block for block in drawing.blocks if block.inner]
        for block in frames:
            self.draw_open(scene, block, x, y, goes)
        for points, variable, start, end in drawing.lines:
            moved = [(x + px, y + py) for px, py in points]
            told = self.recording.variables[variable]
            keys = [key_of(one) for one in (start, end) if one.equation is not None]
            scene.arrow(
                moved[0],
                moved[-1],
                via=moved[1:-1],
                curve="v",
                key=keys,
                tell=f"{told.name}:{told.type}",
                label=f"{told.name} flows from here to there",
            )
        for block in drawing.blocks:
            if not block.inner:
                self.draw_block(scene, block, x, y, goes)

    def draw_open(
        self, scene: Scene, block: Block, x: float, y: float, goes: dict[str, int]
    ) -> None:
        left, top = x + block.item.x - block.w / 2, y + block.item.y
        told = "a click closes this box"
        keys = [block.unit]
        scene.box(
            left,
            top,
            block.w,
            block.h,
            key=keys,
            tell=f"{block.title}  |  {told}",
            label=f"{block.title}, open",
            opens=goes.get(block.unit),
        )
        draw_sign(scene, "opened", left + 10, top + 14)
        scene.text(
            left + 24,
            top + 18,
            block.title,
            size=TEXT_SIZE,
            weight=600,
            mono=True,
            label="",
        )
        at = left + (block.w - sum(d.w + 2 * PAD for d in block.inner)) / 2
        for drawing in block.inner:
            down = top + HEAD + PAD
            if drawing.title:
                scene.note(at + PAD, down, drawing.title, size=TEXT_SIZE)
                down += 18
            self.draw(scene, drawing, at + PAD, down, goes)
            at += drawing.w + 2 * PAD

    def draw_block(
        self, scene: Scene, block: Block, x: float, y: float, goes: dict[str, int]
    ) -> Placed:
        left, top = x + block.item.x - block.w / 2, y + block.item.y
        if block.variable is not None:
            told = self.recording.variables[block.variable]
            picture = block.picture
            assert picture is not None
            shape = shape_of_type(told.type)
            known = shape if shape is not None else ()
            prefix = "" if block.is_input else "returns "
            name = prefix + told.name
            comes = "comes in" if block.is_input else "is returned"
            return scene.glyph(
                known,
                left,
                top,
                key=[f"v{told.id}"],
                role=block.role,
                name=name if shape is not None else f"{name}:{told.type}",
                scale=SMALL,
                tell=f"{told.name}:{told.type} {comes}",
            )
        keys = [key_of(block)]
        opens = goes.get(block.unit) if block.unit else None
        if block.unit:
            keys = [block.unit, *keys, f"closed {block.unit}"]
        told_of = block.title
        go = None
        if block.equation is not None:
            told_of = self.listing.detail(block.equation)
            go = block.equation.id
        if opens is not None:
            told_of += "  |  a click opens this box"
            go = None
        role = "" if block.unit else "value"
        placed = scene.box(
            left,
            top,
            block.w,
            block.h,
            key=keys,
            role=role,
            filled=bool(block.unit),
            tell=told_of,
            label=block.title,
            opens=opens,
            go=go,
        )
        middle = top + block.h / 2
        at = left + 8
        if opens is not None:
            draw_sign(scene, "shut", at, middle)
            at += 14
        scene.text(at, middle + 4, block.title, size=TEXT_SIZE, mono=True, label="")
        if block.picture is not None:
            # The glyph's middle, from its right bound.
            scene.glyph(
                shape_of_type(self.result_type(block)) or (),
                left + block.w - 8 - block.picture.right,
                middle,
                scale=SMALL,
                sizes=False,
                centered=True,
                label="",
            )
        return placed

    def result_type(self, block: Block) -> str:
        """Returns the type of an equation's first result."""
        assert block.equation is not None
        return self.recording.variables[block.equation.results[0]].type


def draw_sign(scene: Scene, name: str, x: float, y: float) -> None:
    """Places a sign whose left side has its middle at (x, y)."""
    wide, drawn = sign(name)
    scene.drawn(x, y, wide, 0, drawn)


def repeats(equations: list[Equation]) -> int:
    """Returns how often the same primitives follow each other: the turns of a loop."""
    names = [equation.primitive for equation in equations]
    for turn in range(2, len(names) // 2 + 1):
        if len(names) % turn == 0 and names[turn:] == names[:-turn]:
            return len(names) // turn
    return 1


def key_of(block: Block) -> str:
    """Returns the key that lights a block with its row."""
    return f"e{block.equation.id}" if block.equation is not None else block.unit


def edges_of(record: JaxprRecording) -> list[tuple[Equation, Equation, str]]:
    """Returns what flows between equations: (from, to, variable)."""
    found = []
    for equation in record.equations:
        for operand in dict.fromkeys(equation.operands):
            if not isinstance(operand, int):
                continue
            variable = record.variables[operand]
            if variable.definition is not None:
                maker = record.equations[variable.definition]
                found.append((maker, equation, variable.name))
    return found
