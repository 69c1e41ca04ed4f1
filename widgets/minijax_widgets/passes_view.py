"""`see.passes`: what each of XLA's passes changed in a program.

The picture is a row for each pass: how many instructions came (filled), changed (open)
and went (red), on one scale, beside the size of the program. Below it stands the
selected pass as a difference, instruction by instruction.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from minijax_lab.explain.passes import Difference, PassesRecording, record_passes
from minijax_lab.explain.recording import count_in_words
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, scene_pane
from minijax_widgets.scene import Scene, fitting
from minijax_widgets.view import DIFFERS, WIDTH, View, cut, shows, twin, with_options

ROW = 26.0
MOST_PASSES = 80
# Differences of one pass that are shown, and characters of a line.
MOST_CHANGES = 60
LONGEST = 160


@with_options
def passes(function: Any, *args: Any, target: str = "cpu", **kwargs: Any) -> PassesView:
    """Shows what each of XLA's passes changed while it compiled `function`.

    Args:
      function: any function of arrays; it is traced and compiled, not run.
      args, kwargs: its arguments, arrays or `ShapeDtypeStruct`s.
      target: "cpu", "h100" or a slice of TPUs such as "tpu-v5e:2x2".

    Passes that change nothing are left out. Raises what tracing or compiling raises.
    """
    return PassesView(record_passes(function, args, kwargs, target))


@shows("passes")
class PassesView(View):
    """XLA's passes, each as a difference."""

    recording: PassesRecording

    def text(self, full: bool = False) -> str:
        """Returns a row for each pass; all of it differs between machines."""
        record = self.recording
        rows = [
            f"passes of {record.jaxpr.name}",
            DIFFERS,
            record.headline,
        ]
        shown = record.passes if full else record.passes[:24]
        longest = max([24, *(len(each.name) for each in shown)])
        for number, each in enumerate(shown):
            mark = ">" if number == record.telling else " "
            counts = f"+{len(each.added)} ~{len(each.altered)} -{len(each.removed)}"
            row = f"{mark} {each.name:{longest}} {counts:12} {each.instructions:5}  "
            indent = " " * len(row)
            rows += wrap(row + each.meaning, WIDTH, subsequent_indent=indent) or [row]
        if len(shown) < len(record.passes):
            rows.append(f"  ... {len(record.passes) - len(shown)} more passes")
        return twin(*rows)

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture, and the differences of all passes."""
        record = self.recording
        if not record.passes:
            told = "No pass changed the program: give a function that computes more."
            return self.empty(told)
        steps = [
            FrameStep(each.name, self.detail(number), [f"p{number}"])
            for number, each in enumerate(record.passes)
        ]
        if not record.jaxpr.equations:
            steps[
                record.telling
            ].detail += " The program has no operation: give a function that computes."
        changes = Pane("what the passes changed", self.rows(), kind="listing")
        return self.picture(
            [
                scene_pane(self.scene, 690, 288),
                changes,
            ],
            steps,
            min(record.telling, len(steps) - 1),
        )

    def detail(self, number: int) -> str:
        """Returns a sentence about a pass."""
        each = self.recording.passes[number]
        parts = [
            f"{count_in_words(len(each.added), 'instruction')} new",
            f"{len(each.altered):,} changed",
            f"{len(each.removed):,} gone",
        ]
        told = f"{each.name}: {', '.join(parts)}; the program has {each.instructions:,}"
        told += f" afterwards. {each.meaning.capitalize()}." if each.meaning else "."
        return told

    def rows(self) -> list[Row]:
        """Returns the differences, a block for each pass."""
        rows = []
        for number, each in enumerate(self.recording.passes[:MOST_PASSES]):
            key = [f"p{number}"]
            rows.append(Row([each.name], keys=key, go=number, look="group"))
            found = self.recording.differences(number)
            for difference in found[:MOST_CHANGES]:
                rows += changed(difference, key, number)
            if len(found) > MOST_CHANGES:
                more = f"... {len(found) - MOST_CHANGES:,} more"
                rows.append(Row([[Piece(more, "constant")]], keys=key, depth=1))
            if each.reordered and not found:
                said = [Piece("the same instructions in another order", "constant")]
                rows.append(Row([said], keys=key, depth=1))
        return rows

    def scene(self, width: float) -> Scene:
        """Returns a row for each pass, with what it changed as bars: beside its name,
        or on a narrow page below."""
        record = self.recording
        shown = record.passes[:MOST_PASSES]
        wide = width > 560
        names = 250.0 if wide else width - 8
        most = max((each.changes for each in shown), default=1) or 1
        largest = max([len(record.first), *(each.instructions for each in shown)])
        room = (width - names - 30) * 0.46 if wide else width - 30
        start = 12 + names if wide else 8.0
        tall = ROW if wide else 2 * ROW
        size_at = start + room + 60
        size_room = width - size_at - 60
        scene = Scene(width, 40 + tall * len(shown) + 14, "XLA's passes")
        at = start
        kinds = [
            (text, role, filled, counts)
            for text, role, filled, counts in (
                ("new", "value", True, [len(each.added) for each in shown]),
                ("changed", "value", False, [len(each.altered) for each in shown]),
                ("gone", "miss", True, [len(each.removed) for each in shown]),
            )
            if any(counts)
        ]
        for text, role, filled, _ in kinds:
            scene.box(at, 8, 12, 12, role=role, filled=filled)
            placed = scene.note(at + 17, 19, text)
            at = placed.x + placed.w + 20
        if wide:
            said = "instructions in the program"
            scene.note(size_at, 19, said)
        for number, each in enumerate(shown):
            y = 34 + number * tall
            key, told = f"p{number}", self.detail(number)
            scene.box(
                8,
                y,
                names - 8,
                ROW - 5,
                text=fitting(each.name, names - 22),
                mono=True,
                key=key,
                go=number,
                says=told,
            )
            x = start
            y += tall - ROW
            for _, role, filled, counts in kinds:
                if counts[number]:
                    long = max(5.0, (room - 12) * counts[number] / most)
                    scene.box(x, y + 3, long, 14, role=role, filled=filled)
                    x += long + 3
            if each.reordered and not each.changes:
                scene.note(x, y + 15, "reordered")
            if wide:
                long = max(4.0, size_room * each.instructions / largest)
                scene.box(size_at, y + 3, long, 14)
                text = f"{each.instructions:,}"
                scene.note(size_at + long + 6, y + 15, text)
        return scene


def changed(difference: Difference, key: list[str], number: int) -> list[Row]:
    """Returns an instruction before and after a pass, as rows."""
    rows = []
    moved = difference.before and difference.after
    if moved and difference.before == difference.after:
        told = f"  {cut(difference.after, LONGEST - 30)}"
        told += f"   moved from {difference.was_in} to {difference.is_in}"
        return [Row([told], keys=key, go=number, depth=1)]
    if difference.before:
        text = f"- {cut(difference.before, LONGEST)}"
        rows.append(Row([text], keys=key, go=number, depth=1, look="del"))
    if difference.after:
        text = f"+ {cut(difference.after, LONGEST)}"
        rows.append(Row([text], keys=key, go=number, depth=1, look="add"))
    return rows
