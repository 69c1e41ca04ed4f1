"""`see.jaxpr(before, after)`: two jaxprs side by side, equations aligned."""

from __future__ import annotations

from typing import Any

from minijax_lab.explain.difference import DifferenceRecording, Pair, record_difference
from minijax_lab.explain.jaxpr import Equation
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.view import View, cut, shortened, views

MARKS = {"same": " ", "changed": "~", "del": "-", "add": "+"}
LABELS = {"same": "same", "changed": "changed", "del": "gone", "add": "new"}
SAID = {
    "same": "the same in both",
    "changed": "in both",
    "del": "only in the first",
    "add": "only in the second",
}
LONGEST_PARAMETER = 44


def difference(first: Any, second: Any) -> DifferenceView:
    """Shows what changed from one jaxpr to another."""
    return DifferenceView(record_difference(first, second))


class DifferenceView(View):
    """The equations of two programs in one table: the old left, the new right."""

    recording: DifferenceRecording

    def __init__(self, recording: DifferenceRecording) -> None:
        super().__init__(recording)
        self.first = JaxprView(recording.first)
        self.second = JaxprView(recording.second)

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
        for position, result in enumerate(equation.results):
            gap = " " if position else ""
            pieces.append(Piece(f"{gap}{variables[result].name}:"))
            role = "changed" if position in pair.results else ""
            pieces.append(Piece(variables[result].type, role))
        pieces.append(Piece(f"{'' if equation.results else '_'} = "))
        pieces.append(Piece(equation.primitive))
        name = self.shown_parameter(view, equation, pair)
        if name:
            value = cut(equation.parameters[name], LONGEST_PARAMETER)
            more = " ..." if len(equation.printed) > 1 else ""
            role = "changed" if name in pair.parameters else ""
            pieces += [Piece("["), Piece(f"{name}={value}", role), Piece(f"{more}]")]
        for position, operand in enumerate(equation.operands):
            role = "changed" if position in pair.operands else ""
            pieces += [Piece(" "), Piece(view.name(operand), role)]
        return [piece for piece in pieces if piece.text]

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

    def frame(self) -> Frame:
        """Returns the picture: a row for each pair, changes in colour."""
        rows, steps = [], []
        for number, pair in enumerate(self.recording.pairs):
            left, right = self.sides(pair)
            look = pair.change if pair.change in ("add", "del") else ""
            cells: list[Any] = [
                MARKS[pair.change],
                "" if left is None else self.side(self.first, left, pair),
                "" if right is None else self.side(self.second, right, pair),
            ]
            rows.append(Row(cells, keys=[f"p{number}"], go=number, look=look))
            label = f"{LABELS[pair.change]}: {self.newest(pair)[1].primitive}"
            steps.append(FrameStep(label, self.detail(pair), [f"p{number}"]))
        columns = ["", self.recording.first.call, self.recording.second.call]
        return Frame(
            kind="difference",
            call=self.recording.call,
            headline=self.recording.headline,
            panes=[Pane("", rows, columns=columns, kind="sides")],
            steps=steps,
            telling=self.recording.telling,
            text=self.text(full=True),
        )


views["difference"] = DifferenceView
