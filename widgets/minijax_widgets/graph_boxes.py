"""What the graph of a program puts into boxes, and what its values are called."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby

from minijax_lab.explain.jaxpr import Equation, JaxprRecording, Program
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.statements import targets_of
from minijax_widgets.view import cut

# More parts than this stand in groups.
MOST_OPEN = 40
CHUNKS = 20
# Boxes that can be opened, of those nearest to the outside.
MOST_UNITS = 24
# Equations that a repeat saves at least.
LEAST_SAVED = 8
LONGEST_TURN = 200


@dataclass
class Group:
    """Neighbouring equations that stand in one box: a line's, or repeats."""

    id: int
    title: str
    parts: list[Group | Equation]
    repeats: bool = False

    @functools.cached_property
    def count(self) -> int:
        """How many equations it has."""
        return sum(1 for _ in self.equations())

    @functools.cached_property
    def makes(self) -> list[int]:
        """The variables that its equations make."""
        return [result for one in self.equations() for result in one.results]

    @functools.cached_property
    def reads(self) -> list[int]:
        """The variables that come from outside of it."""
        own = set(self.makes)
        read = {o: None for one in self.equations() for o in one.operands}
        return [o for o in read if isinstance(o, int) and o not in own]

    def equations(self) -> Iterator[Equation]:
        """Yields the group's equations, those of inner groups too."""
        for part in self.parts:
            if isinstance(part, Group):
                yield from part.equations()
            else:
                yield part


class Boxes:
    """The boxes of a program: groups ("g3") and equations with programs ("u7")."""

    def __init__(self, recording: JaxprRecording, around: int) -> None:
        self.recording = recording
        self.around = around
        self.inner: dict[int, list[Program]] = {}
        for program in recording.programs:
            if program.parent is not None:
                self.inner.setdefault(program.parent, []).append(program)
        # What the source calls the results of an equation, and a variable.
        self.names: dict[int, str] = {}
        self.value_names: dict[int, str] = {}
        self.groups: list[Group] = []
        self.parts: dict[int, list[Group | Equation]] = {}
        # The unit that an equation stands in, and the unit around each unit.
        self.within: dict[str, str] = {}
        for program in recording.programs:
            members = [recording.equations[n] for n in program.equations]
            self.parts[id(program)] = self.grouped(members)
            outside = "" if program.parent is None else f"u{program.parent}"
            self.note_units(self.parts[id(program)], outside)
            self.note_names(members)
        for program in recording.programs:
            self.note_inner_names(program)
        self.units = self.units_in_order()

    # ---- names -----------------------------------------------------------------------

    def note_names(self, equations: list[Equation]) -> None:
        """Notes what assignments in the source call the results."""
        forward = [e for e in equations if e.span and e.part != "backward"]
        last = {astuple(e.span): e for e in forward if e.span}
        for equation in last.values():
            targets = targets_of(self.recording.sources, equation.span)
            if isinstance(targets, str):
                targets = [targets] if targets else []
            if not targets or len(targets) != len(equation.places):
                continue
            self.names[equation.id] = cut(", ".join(targets), 30)
            for result, name in zip(equation.places, targets, strict=True):
                if result is not None:
                    self.value_names[result] = name

    def note_inner_names(self, program: Program) -> None:
        """Notes names for what a program takes, from those of what it is given."""
        if program.parent is None:
            return
        equation = self.recording.equations[program.parent]
        carried = carries(equation, program)
        for operand, variable in fed(equation, program):
            place = program.inputs.index(variable)
            name = self.name_of(operand) if isinstance(operand, int) else ""
            if place in carried:
                # A condition reads what the body, which comes first, hands on.
                body = self.inner[equation.id][0]
                back = body.outputs[carried.index(place)]
                name = self.value_names.get(back, "") if isinstance(back, int) else ""
            elif place >= first_cut(equation, program):
                name += "[t]"
            if name:
                self.value_names.setdefault(variable, name)

    def name_of(self, variable: int) -> str:
        """Returns a value's name in the source, or else its letter."""
        known = self.recording.variables[variable]
        return self.value_names.get(variable) or known.label or known.name

    def called(self, equation: Equation) -> str:
        """Returns an equation's operation, a jitted function's own name."""
        name = equation.parameters.get("name", "") if equation.programs else ""
        return cut(name or equation.primitive, 30)

    def title_of(self, equation: Equation) -> str:
        """Returns the title of an equation's open box."""
        told = self.called(equation)
        if equation.span is not None:
            told = f"line {equation.span.line}: {told}"
        if turns := equation.parameters.get("length", ""):
            return f"{told}, {count_in_words(int(turns), 'turn')}"
        return told

    # ---- boxes -----------------------------------------------------------------------

    def grouped(self, equations: list[Equation]) -> list[Group | Equation]:
        """Returns the equations by source line, repeats of a Python loop as one box."""
        parts: list[Group | Equation] = []
        start = 0
        numbers: dict[tuple[object, ...], int] = {}
        kinds = [numbers.setdefault(self.kind(e), len(numbers)) for e in equations]
        for first, turn, times in repeats(kinds):
            parts += self.by_line(equations[start:first], len(equations))
            start = first + turn * times
            turns = [equations[at : at + turn] for at in range(first, start, turn)]
            parts += self.by_line(turns[0], len(equations))
            title = f"the same {times - 1:,} times more"
            more = self.group(title, [])
            more.repeats = True
            more.parts = self.turns(turns[1:], 2, times)
            parts.append(more)
        return self.chunked(parts + self.by_line(equations[start:], len(equations)))

    def kind(self, equation: Equation) -> tuple[object, ...]:
        """Returns what equations have in common that repeat each other."""
        types = [self.recording.variables[r].type for r in equation.results]
        span = equation.span
        line = span and (span.source, span.line, span.column)
        return (equation.primitive, line, *types)

    def turns(
        self, turns: list[list[Equation]], number: int, times: int
    ) -> list[Group | Equation]:
        """Returns the turns of a Python loop, in groups of groups if they are many."""
        if len(turns) > CHUNKS:
            size = -(-len(turns) // CHUNKS)
            parts: list[Group | Equation] = []
            for at in range(0, len(turns), size):
                some = turns[at : at + size]
                last = number + at + len(some) - 1
                told = f"turns {number + at:,} to {last:,} of {times:,}"
                group = self.group(told, [])
                group.parts = self.turns(some, number + at, times)
                parts.append(group)
            return parts
        return [
            self.group(f"turn {number + at:,} of {times:,}", list(turn))
            for at, turn in enumerate(turns)
        ]

    def group(self, title: str, parts: list[Group | Equation]) -> Group:
        group = Group(len(self.groups), title, parts)
        self.groups.append(group)
        return group

    def by_line(self, equations: list[Equation], whole: int) -> list[Group | Equation]:
        """Returns neighbours of one source line as groups, unless it made all."""
        parts: list[Group | Equation] = []
        for line, found in groupby(equations, lambda e: e.span and e.span.line):
            run = list(found)
            if line is None or len(run) in (1, whole):
                parts += self.chunked(list(run))
                continue
            told = self.recording.sources[run[0].span.source] if run[0].span else None
            text = told.lines[line - told.first_line].strip() if told else ""
            parts.append(self.group(f"line {line}: {text}", self.chunked(list(run))))
        return parts

    def chunked(self, parts: list[Group | Equation]) -> list[Group | Equation]:
        """Returns the parts, in runs if they are many."""
        if len(parts) <= MOST_OPEN:
            return parts
        size = -(-len(parts) // CHUNKS)
        chunks: list[Group | Equation] = []
        for at in range(0, len(parts), size):
            group = self.group("", parts[at : at + size])
            first, *_, last = [e.id + 1 for e in group.equations()] * 2
            group.title = f"equations {first:,} to {last:,}"
            chunks.append(group)
        return chunks

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

    def is_aside(self, unit: str) -> bool:
        """Whether a box says what another one shows, or is a library's on one line;
        a loop or a branch may be the user's own one on one line."""
        if unit[0] == "g":
            return self.groups[int(unit[1:])].repeats
        equation = self.recording.equations[int(unit[1:])]
        if equation.primitive in ("scan", "while", "cond"):
            return False
        members = [
            self.recording.equations[n]
            for program in self.inner[equation.id]
            for n in program.equations
        ]
        return all(one.span in (None, equation.span) for one in members)

    def label(self, equation: Equation) -> str:
        """Returns what stands in an equation's box."""
        names = [self.recording.variables[r].name for r in equation.results]
        return cut(f"{' '.join(names) or '_'} = {equation.primitive}", 44)


def fed(equation: Equation, program: Program) -> list[tuple[int | str, int]]:
    """Returns (operand, variable of the program) for what an equation hands in.

    The last operands are the program's; the condition of a `while` reads the first
    constants and, at the end, what is carried.
    """
    inputs = program.inputs
    operands = equation.operands
    if program.name == "cond_jaxpr":
        first = int(equation.parameters.get("cond_nconsts", "0"))
        operands = operands[:first] + operands[len(operands) - len(inputs) + first :]
    count = min(len(inputs), len(operands))
    if not count:
        return []
    return list(zip(operands[-count:], inputs[-count:], strict=True))


def carries(equation: Equation, program: Program) -> range:
    """Returns the places of a loop's inputs that each turn hands to the next."""
    told = equation.parameters
    if equation.primitive == "scan":
        first = int(told["num_consts"])
        return range(first, first + int(told["num_carry"]))
    if equation.primitive == "while":
        kind = program.name.partition("_")[0]
        return range(int(told[f"{kind}_nconsts"]), len(program.inputs))
    return range(0)


def first_cut(equation: Equation, program: Program) -> int:
    """Returns the place of the first input of which each turn reads one slice."""
    scans = equation.primitive == "scan"
    return carries(equation, program).stop if scans else len(program.inputs)


def repeats(kinds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields where something repeats itself at once: (start, length of a turn, times).

    The turn is the one that covers most, the shortest of those.
    """
    start = 0
    while start < len(kinds):
        left = len(kinds) - start
        saved = turn = 0
        for length in range(1, min(left // 3, LONGEST_TURN) + 1):
            end = start + length
            while end < len(kinds) and kinds[end] == kinds[end - length]:
                end += 1
            more = (end - start) // length - 1
            if more > 1 and more * length >= max(LEAST_SAVED, saved + 1):
                saved, turn = more * length, length
                if 2 * saved > left:
                    break
        if turn:
            yield start, turn, saved // turn + 1
        start += saved + turn or 1
