"""`see.jaxpr(before, after)`: two jaxprs side by side, equations aligned."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import Any

from minijax_lab.explain.difference import DifferenceRecording, Pair, record_difference
from minijax_lab.explain.jaxpr import Equation
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.view import View, cut, shortened, shows

MARKS = {"same": " ", "changed": "~", "del": "-", "add": "+"}
LABELS = {"same": "same", "changed": "changed", "del": "gone", "add": "new"}
SAID = {
    "same": "the same in both",
    "changed": "in both",
    "del": "only in the first",
    "add": "only in the second",
}
LONGEST_PARAMETER = 44
# So many equations in a row that are the same in both fold into one row.
MANY_ALIKE = 4
SIZES = re.compile(r"(.*?\[)([\d,]*)(\].*)")


def difference(first: Any, second: Any) -> DifferenceView:
    """Shows what changed from one jaxpr to another."""
    return DifferenceView(record_difference(first, second))


@shows("difference")
class DifferenceView(View):
    """The equations of two programs in one table: the old left, the new right."""

    recording: DifferenceRecording

    def __init__(self, recording: DifferenceRecording) -> None:
        super().__init__(recording)
        self.first = JaxprView(recording.first)
        self.second = JaxprView(recording.second)
        self.added = self.added_axes()

    def added_axes(self) -> dict[tuple[Any, Any], dict[int, tuple[int, int]]]:
        """Returns for each pair which results have one axis more: its place and size.

        Where sizes alone leave a choice, it is the axis that most others have.
        """
        one, two = self.recording.first.variables, self.recording.second.variables
        choices: dict[tuple[Any, Any], dict[int, list[tuple[int, int]]]] = {}
        votes: Counter[tuple[int, int]] = Counter()
        for pair in self.recording.pairs:
            left, right = self.sides(pair)
            if left is None or right is None:
                continue
            for position in pair.results:
                before = one[left.results[position]].type
                after = two[right.results[position]].type
                found = axes_more(before, after)
                if found:
                    key = (pair.first, pair.second)
                    choices.setdefault(key, {})[position] = found
                    votes.update(found)
        return {
            key: {
                position: max(found, key=lambda axis: (votes[axis], -axis[0]))
                for position, found in results.items()
            }
            for key, results in choices.items()
        }

    def sides(self, pair: Pair) -> tuple[Equation | None, Equation | None]:
        """Returns a row's equations; None for one that is not there."""
        record = self.recording
        left = right = None
        if pair.first is not None:
            left = record.first.equations[pair.first]
        if pair.second is not None:
            right = record.second.equations[pair.second]
        return left, right

    def newest(self, pair: Pair) -> tuple[JaxprView, Equation]:
        """Returns a row's equation, the second program's if both have it."""
        left, right = self.sides(pair)
        if right is not None:
            return self.second, right
        assert left is not None
        return self.first, left

    def shown_parameter(self, view: JaxprView, equation: Equation, pair: Pair) -> str:
        """Returns the name of the parameter to show: one that changed, else a first."""
        changed = [n for n in pair.parameters if n in equation.parameters]
        printed = sorted(equation.printed, key=lambda name: name != "name")
        return ([n for n in changed if n in printed] or changed or printed or [""])[0]

    def side(self, view: JaxprView, equation: Equation, pair: Pair) -> list[Piece]:
        """Returns an equation with what is different in it marked."""
        variables = view.recording.variables
        pieces = [Piece("  " * view.depth(equation))]
        axes = self.added.get((pair.first, pair.second), {})
        for position, result in enumerate(equation.results):
            gap = " " if position else ""
            pieces.append(Piece(f"{gap}{variables[result].name}:"))
            pieces += self.type(view, variables[result].type, position, pair, axes)
        pieces.append(Piece(f"{'' if equation.results else '_'} = "))
        pieces.append(Piece(equation.primitive))
        name = self.shown_parameter(view, equation, pair)
        if name:
            value = cut(equation.parameters[name], LONGEST_PARAMETER)
            more = " ..." if len(equation.printed) > 1 else ""
            role = "changed" if name in pair.parameters else ""
            pieces += [Piece("["), Piece(f"{name}={value}", role), Piece(f"{more}]")]
        for position, operand in enumerate(equation.operands):
            # Another value of the same name: the sentence below says so, a box would
            # stand around two names that are the same.
            role = "changed" if position in pair.operands else ""
            if position < len(self.names(pair)) and self.names(pair)[position] == 1:
                role = ""
            pieces += [Piece(" "), Piece(view.name(operand), role)]
        return [piece for piece in pieces if piece.text]

    def names(self, pair: Pair) -> list[int]:
        """Returns for each operand how many names it has in the two programs."""
        left, right = self.sides(pair)
        if left is None or right is None:
            return []
        both = zip(left.operands, right.operands)
        return [len({self.first.name(a), self.second.name(b)}) for a, b in both]

    def type(
        self,
        view: JaxprView,
        text: str,
        position: int,
        pair: Pair,
        axes: dict[int, tuple[int, int]],
    ) -> list[Piece]:
        """Returns a type; of one with an axis more only that axis is marked."""
        if position not in pair.results:
            return [Piece(text)]
        found = SIZES.match(text)
        if position not in axes or found is None:
            return [Piece(text, "changed")]
        if view is self.first:
            return [Piece(text)]
        sizes = found[2].split(",")
        axis = axes[position][0]
        before = "".join(f"{size}," for size in sizes[:axis])
        after = "".join(f",{size}" for size in sizes[axis + 1 :])
        return [
            Piece(f"{found[1]}{before}"),
            Piece(sizes[axis], "changed"),
            Piece(f"{after}{found[3]}"),
        ]

    def caption(self, pair: Pair) -> str:
        """Returns what happened to the results of an equation, in words; "" if that is
        more than an axis that was added."""
        axes = set(self.added.get((pair.first, pair.second), {}).values())
        if len(axes) != 1:
            return ""
        axis, size = axes.pop()
        first, second = self.recording.first.call, self.recording.second.call
        mapped = second.startswith("vmap(") and not first.startswith("vmap(")
        return f"{'vmap added axis' if mapped else 'new axis'} {axis}, {size:,} long"

    def changes(self, pair: Pair) -> list[str]:
        """Returns what is different in an equation that stands in both, in words."""
        left, right = self.sides(pair)
        if left is None or right is None:
            return []
        one, two = self.recording.first.variables, self.recording.second.variables
        told = []
        for position in pair.results:
            before = one[left.results[position]].type
            after = two[right.results[position]].type
            told.append(f"{before} -> {after}")
        for name in pair.parameters:
            before = cut(left.parameters.get(name, "-"), LONGEST_PARAMETER)
            after = cut(right.parameters.get(name, "-"), LONGEST_PARAMETER)
            told.append(f"{name}: {before} -> {after}")
        for position in pair.operands:
            name = self.second.name(right.operands[position])
            told.append(f"reads {name}, which is another value")
        if len(left.operands) > len(right.operands):
            told.append(f"reads {len(right.operands)} of {len(left.operands)} values")
        return told

    def text(self, full: bool = False) -> str:
        """Returns the headline and one row for each equation of either program."""
        rows = []
        for number, pair in enumerate(self.recording.pairs):
            view, equation = self.newest(pair)
            left = f"{'  ' * view.depth(equation)}{view.short(equation)}"
            changed = self.changes(pair)
            if changed:
                left = f"{cut(left, 52):52}  {changed[0]}"
                left += f"; {len(changed) - 1} more" if len(changed) > 1 else ""
            mark = ">" if number == self.recording.telling else " "
            rows.append(cut(f"{mark}{MARKS[pair.change]} {left}", 100))
        return "\n".join([self.recording.headline, *shortened(rows, full)])

    def detail(self, pair: Pair) -> str:
        """Returns a sentence about a row."""
        view, equation = self.newest(pair)
        told = [view.short(equation), SAID[pair.change]]
        if pair.change == "changed":
            told[1] = "; ".join(self.changes(pair))
        if equation.meaning:
            told.append(equation.meaning)
        return "  |  ".join(told)

    def row_of(self, number: int, pair: Pair, depth: int) -> Row:
        """Returns the row of a pair: its mark, and the equation on either side."""
        left, right = self.sides(pair)
        look = pair.change if pair.change in ("add", "del") else ""
        cells: list[Any] = [
            MARKS[pair.change],
            "" if left is None else self.side(self.first, left, pair),
            "" if right is None else self.side(self.second, right, pair),
        ]
        return Row(cells, keys=[f"p{number}"], go=number, depth=depth, look=look)

    def frame(self) -> Frame:
        """Returns the picture: a row for each pair, changes in colour."""
        rows, steps = [], []
        for number, pair in enumerate(self.recording.pairs):
            label = f"{LABELS[pair.change]}: {self.newest(pair)[1].primitive}"
            steps.append(FrameStep(label, self.detail(pair), [f"p{number}"]))
        runs = groupby(
            enumerate(self.recording.pairs),
            lambda one: (one[1].change == "same", self.caption(one[1])),
        )
        for (same, caption), pairs in runs:
            run = list(pairs)
            depth = int(same and len(run) >= MANY_ALIKE)
            start = run[0][0]
            if depth:
                said = f"{len(run):,} equations are the same in both"
                rows.append(
                    Row(
                        ["", said, ""],
                        look="group",
                        go=start,
                        folded=len(run) < len(steps),
                    )
                )
            elif caption:
                rows.append(Row(["", "", [Piece(caption, "batch")]], look="group"))
            rows += [self.row_of(number, pair, depth) for number, pair in run]
        columns = ["", self.recording.first.call, self.recording.second.call]
        return self.picture(
            [Pane("", rows, columns=columns, kind="sides")],
            steps,
            self.recording.telling,
        )


def axes_more(before: str, after: str) -> list[tuple[int, int]]:
    """Returns which axes of the type `after` may be the one that `before` lacks, with
    their sizes; none where they differ in more."""
    one, two = SIZES.fullmatch(before), SIZES.fullmatch(after)
    if one is None or two is None or (one[1], one[3]) != (two[1], two[3]):
        return []
    old = one[2].split(",") if one[2] else []
    new = two[2].split(",") if two[2] else []
    return [
        (axis, int(size))
        for axis, size in enumerate(new)
        if [*new[:axis], *new[axis + 1 :]] == old
    ]
