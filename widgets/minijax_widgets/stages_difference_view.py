"""`see.stages(f, *args, beside=g)`: what an edit of a function changes at every level.

Four columns: source, jaxpr, StableHLO, compiled program. What both programs have is
folded into grey boxes, what only one has stands as a box of its own. Above, the kernels
and the bytes that they move, before and after, on one scale.
"""

from __future__ import annotations

import re
from itertools import groupby

from minijax_lab.explain.compiled import stands_for
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.stages_difference import Line, StagesDifferenceRecording
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, scene_pane
from minijax_widgets.scene import Scene
from minijax_widgets.view import DIFFERS, View, cut, shows, twin

LONGEST = 110
BOX = 20.0
ROW = 24.0
TOP = 116.0
TITLES = ("source", "jaxpr", "StableHLO", "compiled")
# Boxes of a column, and changed lines of the twin and of a pane.
MOST_BOXES = 28
MOST_TOLD = 10
MOST_ROWS = 1200
# So many lines in a row that are the same in both are folded in the texts.
MANY_ALIKE = 4
ROLES = {"-": "miss", "+": "batch"}
LOOKS = {"-": "del", "+": "add", " ": ""}


@shows("stages_difference")
class StagesDifferenceView(View):
    """Two functions, level by level, with what differs."""

    recording: StagesDifferenceRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the changed lines of each level, the compiled ones below the line."""
        record = self.recording
        rows = [record.headline]
        for level, lines in enumerate(record.levels):
            if level == 3:
                rows.append(DIFFERS)
                rows.append(self.moved())
            rows.append(f"{TITLES[level]}: {counted(lines)}")
            changed = [line for line in lines if line.sign != " " and said(line)]
            shown = changed if full else changed[:MOST_TOLD]
            rows += [f"  {each.sign} {said(each)}" for each in shown]
            if len(shown) < len(changed):
                rows.append(f"  ... {len(changed) - len(shown):,} more")
        return twin(*rows)

    def moved(self) -> str:
        """Returns the kernels and bytes before and after."""
        parts = []
        for stages in (self.recording.before, self.recording.after):
            program = stages.compiled.program
            many = count_in_words(len(program.kernels), "kernel")
            open_ = stands_for(program.traffic)
            parts.append(f"{many}, {size_in_words(program.bytes)}{open_}")
        targets = dict.fromkeys(
            each.compiled.target
            for each in (self.recording.before, self.recording.after)
        )
        return f"{' and '.join(targets)}: {' -> '.join(parts)} read and written"

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture, and the four differences as texts."""
        record = self.recording
        steps = [
            FrameStep(self.name_of(group), self.detail(group), [f"h{group}"])
            for group in record.steps
        ]
        if not steps:
            told = "What changed belongs to no line of yours; it stands in the texts."
            if not any(line.sign != " " for lines in record.levels for line in lines):
                told = "Both are the same program at every level."
            steps = [FrameStep("", told)]
        picture = scene_pane(lambda width: Drawing(self, width).scene, 1080, 288, 690)
        return self.picture(
            [picture, *(self.pane(level) for level in range(4))], steps, record.telling
        )

    def name_of(self, group: int) -> str:
        """Returns which lines a group is: `line 12`, or `line 12 -> 13`."""
        each = self.recording.groups[group]
        lines = [numbers_of(each.before), numbers_of(each.after)]
        if not each.edited or lines[0] == lines[1]:
            return f"line {lines[1] or lines[0]}"
        if not lines[0]:
            return f"line {lines[1]}, new"
        return (
            f"line {lines[0]} -> {lines[1]}" if lines[1] else f"line {lines[0]}, gone"
        )

    def detail(self, group: int) -> str:
        """Returns what changed with an edit, or with a line that stayed."""
        each = self.recording.groups[group]
        parts = []
        for level, lines in enumerate(self.recording.levels):
            own = [line for line in lines if line.group == group and line.sign != " "]
            if own:
                parts.append(f"{TITLES[level]} {counted(own)}")
        told = f"{self.name_of(group)}: {'; '.join(parts)}."
        if not each.edited:
            told += " The line itself is the same."
        return told

    def step_of(self, line: Line) -> int | None:
        """Returns the step of a line's group; None where it has none."""
        steps = self.recording.steps
        return steps.index(line.group) if line.group in steps else None

    def pane(self, level: int) -> Pane:
        """Returns a level as a text, long parts that are the same folded."""
        lines = self.recording.levels[level]
        rows: list[Row] = []
        for same, run in groupby(lines, lambda line: line.sign == " "):
            each = list(run)
            depth = int(same and len(each) >= MANY_ALIKE)
            if depth:
                told = f"{len(each):,} lines are the same in both"
                rows.append(Row([[Piece(told, "constant")]], look="group", folded=True))
            for line in each:
                go = None if same else self.step_of(line)
                rows.append(
                    Row(
                        [cut(f"{line.sign} {line.text}", LONGEST)],
                        keys=[] if go is None else [f"h{line.group}"],
                        go=go,
                        depth=depth,
                        look=LOOKS[line.sign],
                    )
                )
        hidden = len(rows) - MOST_ROWS
        more = f", {hidden:,} more rows" if hidden > 0 else ""
        title = f"{TITLES[level]}: {counted(lines)}{more}"
        return Pane(title, rows[:MOST_ROWS], kind="listing")


class Drawing:
    """Places the totals, then a column for each level; one under another if narrow."""

    def __init__(self, view: StagesDifferenceView, width: float) -> None:
        self.view = view
        self.record = view.recording
        self.wide = width > 560
        gap = 22.0
        self.column = (width - 16 - 3 * gap) / 4 if self.wide else width - 16
        parts = [boxes_of(lines) for lines in self.record.levels]
        tall = [40 + ROW * len(each) + 18 for each in parts]
        height = TOP + (max(tall) if self.wide else sum(tall))
        self.scene = Scene(width, height, "what changed at every level")
        self.totals(width)
        x, y = 8.0, TOP
        for level, boxes in enumerate(parts):
            self.level(level, boxes, x, y)
            if self.wide:
                x += self.column + gap
            else:
                y += tall[level]

    def totals(self, width: float) -> None:
        """Places the bytes that the kernels move, before and after."""
        programs = [
            each.compiled.program for each in (self.record.before, self.record.after)
        ]
        most = max(program.bytes for program in programs) or 1
        room = width - 62 - (200 if self.wide else 96)
        for row, (name, program) in enumerate(zip(("before", "after"), programs)):
            y = 10 + 30 * row
            self.scene.text(8, y + 16, name, size=13, weight=600)
            long = max(4.0, room * program.bytes / most)
            self.scene.box(62, y, long, 22, role="value", label=name)
            told = size_in_words(program.bytes)
            many = count_in_words(len(program.kernels), "kernel")
            told += f", {many}" if self.wide else ""
            self.scene.text(62 + long + 8, y + 16, told, size=13, weight=600)
        end = 8.0
        for role, text in (
            ("constant", "in both"), ("miss", "- before"), ("batch", "+ after")
        ):  # fmt: skip
            self.scene.box(end, 74, 16, 12, role=role)
            placed = self.scene.note(end + 22, 84, text)
            end = placed.x + placed.w + 18

    def level(
        self, level: int, boxes: list[tuple[Line | None, str]], x: float, y: float
    ) -> None:
        """Places a level: a box for each line that changed, one for what did not."""
        lines = self.record.levels[level]
        self.scene.text(x, y + 10, TITLES[level], size=13, weight=600)
        self.scene.note(x, y + 27, counted(lines))
        at = y + 38
        for line, text in boxes:
            if line is None:
                self.scene.box(
                    x, at, self.column, BOX, role="constant", text=text, label=text
                )
                at += ROW
                continue
            go = self.view.step_of(line)
            tell = (
                f"{'only before' if line.sign == '-' else 'only after'}: {said(line)}"
            )
            self.scene.named(
                x,
                at,
                self.column,
                BOX,
                f"{line.sign} {brief(line)}",
                role=ROLES[line.sign],
                key=[] if go is None else [f"h{line.group}"],
                go=go,
                says=tell,
            )
            at += ROW


def boxes_of(lines: list[Line]) -> list[tuple[Line | None, str]]:
    """Returns what a column shows: changed lines, and None for those between them."""
    boxes: list[tuple[Line | None, str]] = []
    for same, run in groupby(lines, lambda line: line.sign == " "):
        each = [line for line in run if said(line)]
        if same and each:
            boxes.append((None, f"{count_in_words(len(each), 'line')} the same"))
        elif not same:
            boxes += [(line, "") for line in each]
    if len(boxes) <= MOST_BOXES:
        return boxes
    rest = sum(1 for line, _ in boxes[MOST_BOXES:] if line is not None)
    return [*boxes[:MOST_BOXES], (None, f"{rest:,} more changed, in the text")]


def said(line: Line) -> str:
    """Returns a line without its indentation; "" for one that says nothing."""
    text = line.text.strip()
    return "" if text in ("{", "}", "}, {") else text


OPERATION = re.compile(r"^(?:ROOT )?(%?[\w.\-]+(?::\d+)?) = (.*)$")
TYPE = re.compile(r"^(?:\([^=]*?\)|\w+\[[^ ]*) (?=[\w\-]+\()")


def brief(line: Line) -> str:
    """Returns what a box has room for: an operation without its types."""
    text = said(line)
    found = OPERATION.match(text)
    if found is None:
        return text
    what = TYPE.sub("", found[2]).removeprefix("stablehlo.")
    return f"{found[1]} = {what.partition(' : ')[0]}"


def counted(lines: list[Line]) -> str:
    """Returns how many lines are gone and new."""
    gone = sum(line.sign == "-" for line in lines)
    new = sum(line.sign == "+" for line in lines)
    if not gone and not new:
        return "the same"
    return f"{gone:,} gone, {new:,} new"


def numbers_of(lines: list[int]) -> str:
    """Returns line numbers: `12`, or the first and last of several."""
    if len(lines) < 2:
        return "".join(str(line) for line in lines)
    return f"{min(lines)}-{max(lines)}"
