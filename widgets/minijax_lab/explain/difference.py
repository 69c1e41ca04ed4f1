"""What changed from one jaxpr to another: their equations, aligned.

Equations go together by what they do: their primitive, then how much else they share,
in the order of both programs. Those inside of a called program go together if the calls
do; where the other program has no such call, they go together with equations that stand
there outside of it: a branch of a `cond` that vmap made run always. Of two that go
together it is said what is different: the types, parameters, or which values are read.
Names do not count, so a program and its renaming have no difference.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain.jaxpr import Equation, JaxprRecording, record_jaxpr
from minijax_lab.explain.recording import Recording, count_in_words

# Pairs of equations that are weighed one by one; longer programs go by primitives.
MOST_WEIGHED = 40_000
# Parameters that name a called program: calls of other names are hardly the same.
NAMES = ("name",)
# What runs many times inside of these is not what runs once outside.
LOOPS = ("scan", "while")


@dataclass
class Pair:
    """One row: an equation of the first program, of the second, or of both."""

    change: str  # "same", "changed", "del", "add"
    first: int | None
    second: int | None
    # What is different in an equation that stands in both.
    results: list[int] = field(default_factory=list)  # whose types, by position
    operands: list[int] = field(default_factory=list)  # that are other values
    parameters: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class DifferenceRecording(Recording):
    """Two recorded jaxprs, and how their equations go together."""

    kind = "difference"

    first: JaxprRecording
    second: JaxprRecording
    pairs: list[Pair]


def record_difference(first: Any, second: Any) -> DifferenceRecording:
    """Records what changed from a jaxpr to another; TypeError for anything else."""
    one, two = record_jaxpr(first), record_jaxpr(second)
    alignment = Alignment(one, two)
    pairs = alignment.pairs
    names = (("del", "gone"), ("add", "new"), ("changed", "changed"))
    said = []
    for change, name in names:
        count = sum(pair.change == change for pair in pairs)
        if count or change != "changed":
            said.append(f"{count:,} {name}")
    same = sum(pair.change == "same" for pair in pairs)
    if same or said[2:] == []:
        said.append(f"{same:,} the same")
    finding = ", ".join(said)
    if same == len(pairs):
        finding = f"no difference in {count_in_words(same, 'equation')}"
        back = [alignment.same.get(variable) for variable in returned(two)]
        if back != returned(one):
            finding += "; but other values are returned"
    # What came or went tells more than what merely has another type.
    order = ("add", "del", "changed")
    telling = [
        number
        for change in order
        for number, pair in enumerate(pairs)
        if pair.change == change
    ]
    return DifferenceRecording(
        call=f"{one.call} and {two.call}",
        headline=f"from {one.call} to {two.call}: {finding}",
        telling=telling[0] if telling else 0,
        first=one,
        second=two,
        pairs=pairs,
    )


class Alignment:
    """Goes through both programs, and finds which equations go together."""

    def __init__(self, one: JaxprRecording, two: JaxprRecording) -> None:
        self.one, self.two = one, two
        self.inner_one, self.inner_two = inner_equations(one), inner_equations(two)
        self.origins_one, self.origins_two = origins(one), origins(two)
        # Which variable of the second program is which of the first, and back.
        self.same: dict[int, int] = {}
        self.back: dict[int, int] = {}
        for role in ("constant", "input"):
            for left, right in zip(incoming(one, role), incoming(two, role)):
                self.bind(left, right)
        self.pairs: list[Pair] = []
        self.go_through(None, None)

    def go_through(self, first: int | None, second: int | None) -> None:
        """Aligns the equations of two called programs; None: those outside of all."""
        outside_one = self.inner_one.get(first, [])
        outside_two = self.inner_two.get(second, [])
        left = opened(outside_one, outside_two, self.inner_one)
        right = opened(outside_two, left, self.inner_two)
        # Of a call that has a partner on the other side, what is inside is not told
        # beside it: the two are gone through together.
        left = opened(outside_one, right, self.inner_one)
        for one, two in self.together(left, right):
            if one is None:
                assert two is not None
                self.alone("add", two, right, self.inner_two)
            elif two is None:
                self.alone("del", one, left, self.inner_one)
            else:
                self.pairs.append(self.compared(one, two))
                self.go_through(one.id, two.id)

    def alone(
        self,
        change: str,
        equation: Equation,
        aligned: list[Equation],
        inner: dict[int | None, list[Equation]],
    ) -> None:
        """Adds an equation without a partner, with those inside that had no chance."""
        first = equation.id if change == "del" else None
        second = equation.id if change == "add" else None
        self.pairs.append(Pair(change, first, second))
        for one in inner.get(equation.id, []):
            if one not in aligned:
                self.alone(change, one, aligned, inner)

    # ---- which go together -----------------------------------------------------------

    def together(
        self, left: list[Equation], right: list[Equation]
    ) -> list[tuple[Equation | None, Equation | None]]:
        """Both lists in their order, side by side where two go together."""
        if len(left) * len(right) <= MOST_WEIGHED:
            return weighed(left, right, self.weight)
        found: list[tuple[Equation | None, Equation | None]] = []
        kinds = [[e.primitive for e in part] for part in (left, right)]
        matcher = difflib.SequenceMatcher(a=kinds[0], b=kinds[1], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag == "equal":
                found += zip(left[a:b], right[c:d])
            else:
                found += [(one, None) for one in left[a:b]]
                found += [(None, two) for two in right[c:d]]
        return found

    def weight(self, one: Equation, two: Equation) -> int:
        """How much two equations have in common; 0 for two that never go together."""
        if one.primitive != two.primitive:
            return 0
        parameters = different_parameters(one, two)
        if any(name in parameters for name in NAMES):
            return 1
        weight = 4 + 2 * (not parameters)
        types_one = [self.one.variables[r].type for r in one.results]
        types_two = [self.two.variables[r].type for r in two.results]
        weight += 2 * (types_one == types_two)
        came_one = [self.origins_one.get(o, o) for o in one.operands]
        came_two = [self.origins_two.get(o, o) for o in two.operands]
        return weight + sum(a == b for a, b in zip(came_one, came_two))

    # ---- what is different -----------------------------------------------------------

    def compared(self, one: Equation, two: Equation) -> Pair:
        """Two equations that go together, and what is different in them."""
        results = [
            position
            for position, (a, b) in enumerate(zip(one.results, two.results))
            if self.one.variables[a].type != self.two.variables[b].type
        ]
        pair = Pair(
            "same",
            one.id,
            two.id,
            results,
            [
                position
                for position, b in enumerate(two.operands)
                if position >= len(one.operands)
                or not self.is_same(one.operands[position], b)
            ],
            different_parameters(one, two),
        )
        for a, b in zip(one.results, two.results):
            self.bind(a, b)
        fewer = len(one.operands) > len(two.operands)
        if pair.results or pair.operands or pair.parameters or fewer:
            pair.change = "changed"
        return pair

    def is_same(self, one: int | str, two: int | str) -> bool:
        """Whether two operands are the same literal, or variables that go together."""
        if not isinstance(one, int) or not isinstance(two, int):
            return one == two
        incoming = self.one.variables[one].definition is None
        incoming = incoming and self.two.variables[two].definition is None
        if incoming and one not in self.back and two not in self.same:
            # Inputs of called programs: the first use says which is which.
            self.bind(one, two)
        return self.same.get(two) == one

    def bind(self, one: int, two: int) -> None:
        """Notes that two variables are the same."""
        self.back[one] = two
        self.same[two] = one


def weighed(
    left: list[Equation],
    right: list[Equation],
    weight: Callable[[Equation, Equation], int],
) -> list[tuple[Equation | None, Equation | None]]:
    """The alignment of two lists with the largest sum of weights.

    Source: Needleman and Wunsch (1970), with gaps that cost nothing.
    """
    weights = [[weight(one, two) for two in right] for one in left]
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        row, below, here = best[i], best[i + 1], weights[i]
        for j in reversed(range(len(right))):
            skipped = max(below[j], row[j + 1])
            paired = below[j + 1] + here[j] if here[j] else 0
            row[j] = max(skipped, paired)
    found: list[tuple[Equation | None, Equation | None]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        common = weights[i][j]
        if common and best[i][j] == best[i + 1][j + 1] + common:
            found.append((left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            found.append((left[i], None))
            i += 1
        else:
            found.append((None, right[j]))
            j += 1
    found += [(one, None) for one in left[i:]]
    found += [(None, two) for two in right[j:]]
    return found


def opened(
    equations: list[Equation],
    others: list[Equation],
    inner: dict[int | None, list[Equation]],
) -> list[Equation]:
    """The equations, each call that the others lack followed by what is inside of it.

    Loops stay closed.
    """
    there = {equation.primitive for equation in others}
    found: list[Equation] = []
    for equation in equations:
        found.append(equation)
        if equation.primitive not in there and equation.primitive not in LOOPS:
            found += opened(inner.get(equation.id, []), others, inner)
    return found


def inner_equations(record: JaxprRecording) -> dict[int | None, list[Equation]]:
    """The equations of each called program, by the id of what calls it."""
    found: dict[int | None, list[Equation]] = {}
    for equation in record.equations:
        found.setdefault(equation.parent, []).append(equation)
    return found


def incoming(record: JaxprRecording, role: str) -> list[int]:
    """The variables that come into the outermost program as "constant" or "input"."""
    constants = itertools.takewhile(lambda v: v.role == "constant", record.variables)
    outside = record.variables[: len(list(constants)) + len(record.inputs)]
    return [variable.id for variable in outside if variable.role == role]


def returned(record: JaxprRecording) -> list[int]:
    """The variables that the outermost program returns, as its last line names them."""
    pieces = record.lines[-1].pieces
    return [piece.variable for piece in pieces if piece.variable is not None]


def origins(record: JaxprRecording) -> dict[int | str, str]:
    """Where each variable comes from: the primitive that made it, or its position."""
    found: dict[int | str, str] = {}
    for role in ("constant", "input"):
        for position, number in enumerate(incoming(record, role)):
            found[number] = f"{role} {position}"
    for variable in record.variables:
        if variable.definition is not None:
            found[variable.id] = record.equations[variable.definition].primitive
    return found


def different_parameters(one: Equation, two: Equation) -> list[str]:
    """The names of the parameters that two equations do not share."""
    names = sorted({*one.parameters, *two.parameters})
    return [n for n in names if one.parameters.get(n) != two.parameters.get(n)]
