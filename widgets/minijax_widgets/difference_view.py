"""`see.jaxpr(before, after)`: two jaxprs side by side, equations aligned."""

from __future__ import annotations

from typing import Any

from minijax.explain.difference import DifferenceRecording, Pair, record_difference
from minijax_widgets.frame import Frame, FrameStep, Pane, Row
from minijax_widgets.jaxpr_view import JaxprView
from minijax_widgets.view import View, cut, shortened, views

MARKS = {"same": " ", "del": "-", "add": "+"}
LABELS = {"same": "same", "del": "gone", "add": "new"}


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

    def sides(self, pair: Pair) -> tuple[str, str]:
        """Returns a row's equations as text; "" for one that is not there."""
        record = self.recording
        left = right = ""
        if pair.first is not None:
            left = self.first.short(record.first.equations[pair.first])
        if pair.second is not None:
            right = self.second.short(record.second.equations[pair.second])
        return left, right

    def primitive(self, pair: Pair) -> str:
        """Returns the name of a row's primitive."""
        record = self.recording
        if pair.second is not None:
            return record.second.equations[pair.second].primitive
        assert pair.first is not None
        return record.first.equations[pair.first].primitive

    def text(self, full: bool = False) -> str:
        """Returns the headline and one row for each equation of either program."""
        rows = []
        for pair in self.recording.pairs:
            left, right = self.sides(pair)
            rows.append(cut(f"{MARKS[pair.change]} {right or left}", 100))
        return "\n".join([self.recording.headline, *shortened(rows, full)])

    def frame(self) -> Frame:
        """Returns the picture: a row for each pair, changes in colour."""
        rows, steps = [], []
        for number, pair in enumerate(self.recording.pairs):
            left, right = self.sides(pair)
            look = "" if pair.change == "same" else pair.change
            cells: list[Any] = [MARKS[pair.change], left, right]
            rows.append(Row(cells, keys=[f"p{number}"], go=number, look=look))
            said = {
                "same": "the same in both",
                "del": "only in the first",
                "add": "only in the second",
            }
            label = f"{LABELS[pair.change]}: {self.primitive(pair)}"
            detail = f"{right or left}  |  {said[pair.change]}"
            steps.append(FrameStep(label, detail, [f"p{number}"]))
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
