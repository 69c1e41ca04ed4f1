"""The graph of a program with some boxes open: what there is, as Graphviz takes it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from minijax_lab.explain.jaxpr import Equation
from minijax_lab.explain.recording import count_in_words
from minijax_widgets.frame import shape_of_type
from minijax_widgets.glyph import Glyph, glyph, text_width
from minijax_widgets.graph_boxes import Boxes, Group, carries, fed, first_cut
from minijax_widgets.view import cut, short_name

# More inputs or outputs of the same box stand as one.
MOST_ALIKE = 3
PAD = 10.0
HEAD = 20.0
# The space between lines that go round.
ROUND = 16.0
# Titles: the least letters in a line, in graphs of four kinds; the most lines and their
# height; the most letters, also of a value's name, which is cut if it is longer.
LETTERS, SMALL_LETTERS, DOWN_LETTERS, NARROW_LETTERS = 10, 34, 30, 18
LINES, LINE = 5, 16.0
MOST_LETTERS, MOST_OF_NAME = 140, 28
# Titles and arrows of a graph of so few nodes have more room.
MOST_OF_SMALL = 14
SMALL = 0.5
TEXT_SIZE = 12.0


@dataclass
class Node:
    """A box to be placed: its title, the value's name above, its glyph below."""

    title: str = ""
    name: str = ""
    note: str = ""
    equation: Equation | None = None
    variables: list[int] = field(default_factory=list)
    unit: str = ""
    pile: bool = False
    type: str = ""
    role: str = "value"
    tell: str = ""
    letters: int = LETTERS

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines of its title."""
        return title_lines(self.title, self.letters)

    @functools.cached_property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the value that it makes, None where that has none."""
        return shape_of_type(self.type)

    @functools.cached_property
    def picture(self) -> Glyph | None:
        """The glyph of the value that it makes."""
        if self.shape is None:
            return None
        return glyph(self.shape, role=self.role, scale=SMALL)

    @property
    def w(self) -> float:
        """How wide it is."""
        wide = widest(self.lines) / 1.05 + (28 if self.unit else 11)
        named = text_width(self.name, TEXT_SIZE, mono=True) * 1.08 + 4
        seen = self.picture.w + 12 if self.picture else 0.0
        noted = text_width(self.note, 11) + (22 if self.unit else 0)
        return max(wide if self.title else 0.0, named, seen, noted)

    @property
    def head(self) -> float:
        """How high the name above the box is."""
        return 19.0 if self.name else 0.0

    @property
    def h(self) -> float:
        """How high it is, with the name."""
        high = self.head + (15.0 if self.note else 0.0)
        if self.title:
            high += 22 + LINE * (len(self.lines) - 1)
        return high + (self.picture.h + 6 if self.picture else 0.0)


@dataclass(eq=False)
class Box:
    """An open box: what is in it, and what goes round: (from, to, variable)."""

    unit: str
    title: str
    equation: Equation | None = None
    outside: Box | None = None
    inside: list[str | Box] = field(default_factory=list)
    loops: list[tuple[str, str, int]] = field(default_factory=list)
    lines: int = 1  # of its title

    @property
    def rim(self) -> float:
        """The room that the lines that go round take on each side."""
        return ROUND * -(-len(self.loops) // 2)


class Sketch:
    """A program with some boxes open: nodes, nested boxes, and what flows.

    `letters` are those of a line of a title, 0 for as many as fit.
    """

    def __init__(self, boxes: Boxes, opened: set[str], letters: int = 0) -> None:
        self.letters = letters
        self.boxes = boxes
        self.record = boxes.recording
        self.opened = opened
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str], list[int]] = {}
        self.makers: dict[int, list[str]] = {}
        self.whole = Box("", "")
        program = self.record.programs[0]
        self.read_inputs = [
            variable
            for variable in program.inputs
            if self.record.variables[variable].uses or variable in program.outputs
        ]
        for variable in self.read_inputs:
            self.add_value(self.whole, f"v{variable}", variable)
        self.add_parts(self.whole, boxes.parts[id(program)])
        for number, output in enumerate(program.outputs):
            if isinstance(output, int):
                name = f"o{number}"
                self.flow(output, name)
                told = f"returns {boxes.value_names.get(output, '')}".strip()
                self.add_value(self.whole, name, output, told, makes=False)
        self.join_ends()

    # ---- what there is -------------------------------------------------------------

    def add(self, box: Box, name: str, node: Node, results: Sequence[int]) -> None:
        """Adds a node that makes some variables."""
        self.nodes[name] = node
        box.inside.append(name)
        self.makers |= {result: [name] for result in results}

    def add_value(
        self, box: Box, name: str, variable: int, told: str = "", makes: bool = True
    ) -> None:
        """Adds what comes in or goes out: a glyph with its name."""
        known = self.record.variables[variable]
        role = "constant" if known.role == "constant" else "value"
        whole = told or self.boxes.name_of(variable)
        shown = whole
        if len(whole) > MOST_OF_NAME:
            shown = short_name(whole, (self.letters or SMALL_LETTERS) - 4)
        node = Node(
            name=shown,
            variables=[variable],
            role=role,
            type=known.type,
            tell=f"{known.name}:{known.type}" + f"  |  {whole}" * (shown != whole),
        )
        self.add(box, name, node, [variable] if makes else [])

    def flow(self, variable: int | str, to: str) -> None:
        """Notes that a node reads a variable; a literal's text flows from nowhere."""
        for maker in self.makers.get(variable, []) if isinstance(variable, int) else []:
            told = self.edges.setdefault((maker, to), [])
            if variable not in told and isinstance(variable, int):
                told.append(variable)

    def add_parts(self, box: Box, parts: list[Group | Equation]) -> None:
        """Adds equations and groups, in their order."""
        for part in parts:
            unit = f"g{part.id}" if isinstance(part, Group) else f"u{part.id}"
            if isinstance(part, Group):
                if unit in self.opened:
                    inner = Box(unit, part.title, outside=box)
                    box.inside.append(inner)
                    self.add_parts(inner, part.parts)
                    continue
                count = count_in_words(part.count, "equation")
                node = Node(
                    part.title,
                    note=count,
                    unit=unit,
                    pile=part.repeats,
                    tell=part.title,
                    letters=self.letters or SMALL_LETTERS,
                )
                for operand in part.reads:
                    self.flow(operand, unit)
                self.add(box, unit, node, part.makes)
            elif part.id in self.boxes.inner and unit in self.opened:
                self.add_open(box, unit, part)
            else:
                self.add_equation(box, part)

    def add_equation(self, box: Box, equation: Equation) -> None:
        name = f"e{equation.id}"
        node = Node(self.boxes.called(equation), equation=equation)
        node.name = self.boxes.names.get(equation.id, "")
        inner = self.boxes.inner.get(equation.id, [])
        if inner:
            node.unit = f"u{equation.id}"
            count = sum(len(program.equations) for program in inner)
            node.note = f"{count_in_words(count, 'equation')} inside"
        if equation.results:
            node.type = self.record.variables[equation.results[0]].type
        for operand in equation.operands:
            self.flow(operand, name)
        self.add(box, name, node, equation.results)

    def add_open(self, box: Box, unit: str, equation: Equation) -> None:
        """Adds an equation's programs. What they read comes straight from outside, but
        for what a loop carries or cuts: that stands at their left by its own name."""
        programs = self.boxes.inner[equation.id]
        frame = Box(unit, self.boxes.title_of(equation), equation, box)
        box.inside.append(frame)
        made: dict[int, list[str]] = {}
        for program in programs:
            inner = frame
            if len(programs) > 1:
                inner = Box("", program.name, outside=frame)
                frame.inside.append(inner)
            carried = carries(equation, program)
            for operand, variable in fed(equation, program):
                place = program.inputs.index(variable)
                if place in carried or place >= first_cut(equation, program):
                    self.flow(operand, f"v{variable}")
                    self.add_value(inner, f"v{variable}", variable)
                elif isinstance(operand, int):
                    self.makers[variable] = self.makers.get(operand, [])
            self.add_parts(inner, self.boxes.parts[id(program)])
            if program.name == "cond_jaxpr":
                continue
            for number, output in enumerate(program.outputs):
                if not isinstance(output, int):
                    continue
                ends = self.makers.get(output, [])
                if number < len(carried):
                    start = f"v{program.inputs[carried[number]]}"
                    if start not in self.nodes:
                        continue
                    end = f"r{equation.id}_{number}"
                    self.flow(output, end)
                    told = self.boxes.name_of(program.inputs[carried[number]])
                    self.add_value(inner, end, output, told, makes=False)
                    inner.loops.append((end, start, output))
                    ends = [end]
                if number < len(equation.places):
                    result = equation.places[number]
                    if result is not None:
                        made.setdefault(result, []).extend(ends)
        self.makers |= made

    def join_ends(self) -> None:
        """Makes one of many inputs that only the same closed boxes read, and of many
        outputs that the same box makes."""
        beside: dict[str, set[str]] = {}
        for start, end in self.edges:
            beside.setdefault(start, set()).add(end)
            beside.setdefault(end, set()).add(start)
        alike: dict[tuple[str, frozenset[str]], list[str]] = {}
        for end in [part for part in self.whole.inside if isinstance(part, str)]:
            others = frozenset(beside.get(end, ()))
            closed = end[0] == "o" or all(self.nodes[one].unit for one in others)
            if not self.nodes[end].title and others and closed:
                alike.setdefault((end[0], others), []).append(end)
        for number, ((kind, others), ends) in enumerate(alike.items()):
            if len(ends) <= MOST_ALIKE:
                continue
            joined = [self.nodes.pop(end) for end in ends]
            gone = set(ends)
            self.whole.inside = [p for p in self.whole.inside if p not in gone]
            for pair in [(one, other) for one in ends for other in others]:
                self.edges.pop(pair, None)
                self.edges.pop(pair[::-1], None)
            names = [node.name for node in joined]
            out = kind == "o"
            node = Node(
                name="returns" if out else cut(f"{names[0]} to {names[-1]}", 40),
                note=f"{len(names):,} {'outputs' if out else 'inputs'}",
                variables=[variable for one in joined for variable in one.variables],
                tell=", ".join(one.tell if out else one.name for one in joined[:20]),
            )
            name = f"m{number}"
            self.nodes[name] = node
            self.whole.inside.append(name)
            for other in sorted(others):
                self.edges[(other, name) if out else (name, other)] = node.variables

    # ---- as Graphviz takes it ------------------------------------------------------

    @property
    def small(self) -> bool:
        """Whether titles and arrows have more room."""
        return len(self.nodes) <= MOST_OF_SMALL

    def dot(self) -> str:
        """Returns the sketch in Graphviz's language, a pixel for a point."""
        apart = 0.3 if self.small else 0.14
        lines = ["digraph {", f"nodesep=0.16; ranksep={apart};"]
        lines.append('node [shape=box fixedsize=true label=""];')
        self.write(self.whole, lines)
        for number, (start, end) in enumerate(self.edges):
            lines.append(f"{start} -> {end} [id={number}];")
        return "\n".join([*lines, "}"])

    def write(self, box: Box, lines: list[str]) -> None:
        for number, part in enumerate(box.inside):
            if isinstance(part, str):
                node = self.nodes[part]
                size = f"width={node.w / 72:.4f} height={node.h / 72:.4f}"
                lines.append(f"{part} [{size}];")
                continue
            lines.append(f"subgraph cluster{self.key_of(part, number)} {{")
            told = title_lines(part.title, self.letters_of(part))
            part.lines = len(told)
            wide = max(60.0, widest(told) + 28)
            high = HEAD + LINE * (part.lines - 1) + part.rim
            room = f'WIDTH="{wide:.0f}" HEIGHT="{high:.0f}"'
            lines.append(f"margin={PAD / 2 + part.rim:.0f}; labeljust=l;")
            lines.append(
                f'label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" {room}>'
                "<TR><TD></TD></TR></TABLE>>;"
            )
            for ends in zip(*[loop[:2] for loop in part.loops], strict=True):
                lines.append(f"{{rank=same; {'; '.join(dict.fromkeys(ends))}}}")
            self.write(part, lines)
            lines.append("}")

    def letters_of(self, box: Box) -> int:
        """Returns how many letters of an open box's title stand in a line: as many as
        fit over its longest row of nodes, so that the title makes it no wider."""
        if self.letters or self.small:
            return self.letters or SMALL_LETTERS
        rows: dict[str, float] = {}
        for name in [part for part in box.inside if isinstance(part, str)]:
            before = [rows.get(a, 0.0) for a, b in self.edges if b == name]
            rows[name] = self.nodes[name].w + max(before, default=0.0)
        room = max(rows.values(), default=0.0) + PAD - 28
        return max(LETTERS, min(SMALL_LETTERS, int(room / widest(["m"]))))

    @staticmethod
    def key_of(box: Box, number: int) -> str:
        """Returns the name of a box: a program in a loop's box counts from 0 on."""
        return (
            f"_{box.unit}"
            if box.unit
            else f"_{box.outside and box.outside.unit}_{number}"
        )


def title_lines(title: str, letters: int, most: int = LINES) -> list[str]:
    """Returns a title in lines of so many letters, of more where it has many. A word
    of more letters than a line goes on in the next after a sign of its own."""
    parts = []
    for word in cut(title, MOST_LETTERS).split():
        pieces = [word] if len(word) <= letters else re.findall(r"\w+\W*|\W+", word)
        parts += [*pieces[:-1], f"{pieces[-1]} "]
    lines = [""]
    for part in parts:
        if lines[-1] and len(f"{lines[-1]}{part}".rstrip()) > letters:
            lines.append("")
        lines[-1] += part
    if len(lines) > most:
        return title_lines(title, letters + 1, most)
    return [line.rstrip() for line in lines]


def widest(lines: Sequence[str]) -> float:
    """Returns how wide lines of a title are."""
    return max((text_width(one, TEXT_SIZE, True) * 1.05 for one in lines), default=0.0)
