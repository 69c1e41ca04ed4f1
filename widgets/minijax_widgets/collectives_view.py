"""`see.collectives`: who exchanges what with whom, and one way to do it, in motion."""

from __future__ import annotations

import functools
from typing import Any

from minijax_lab.explain.collectives import (
    CollectivesRecording,
    has_ring,
    in_a_ring,
    over,
    record_collectives,
    ring,
    round_told,
    rounds,
    who_sends,
)
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.spmd import Collective
from minijax_lab.explain.tree import size_in_words
from minijax_widgets import frame as picture
from minijax_widgets.code import code_panes, key_of_line, mark_of
from minijax_widgets.collectives_scene import MOST_MEMBERS, Drawing
from minijax_widgets.placement_scene import MIDDLE, NARROW, NARROW_RING, WIDE, Sizes
from minijax_widgets.scene import Scene
from minijax_widgets.view import DIFFERS, View, shortened, shows, twin, with_options

# So many collectives are drawn; the others are rows.
MOST_DRAWN = 6
NONE = (
    "No device needs another: give arguments that are cut along a dimension that is "
    "summed over."
)
ONE_WAY = "one way to do it; XLA names groups and bytes, not links"


@with_options
def collectives(
    function: Any,
    *args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    target: str | None = None,
    **kwargs: Any,
) -> CollectivesView:
    """Shows the collectives of a function's compiled program on the mesh.

    Args:
      function: a function, jitted or not; or its lowered or compiled program. Real
        JAX's jitted functions and programs are taken too.
      args, kwargs: its arguments: arrays on several devices, or `ShapeDtypeStruct`s
        with shardings.
      in_shardings, out_shardings: as `jit` has them, for a function without `jit`.
      target: machines to compile for that need not be there, such as "h100:8" or
        "tpu-v5e:2x4"; the mesh may be one of CPU devices. For minijax's functions.

    Groups and bytes are read from the optimised program. How the bytes travel is not in
    it: the steps show a ring, which is one way to do it.

    Raises what tracing or compiling raises, and TypeError for other things.
    """
    options = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    return CollectivesView(record_collectives(function, args, kwargs, options, target))


@shows("collectives")
class CollectivesView(View):
    """The mesh with the groups of each collective."""

    recording: CollectivesRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns a row for each collective, with its groups."""
        record = self.recording
        rows = []
        for number, each in enumerate(record.collectives):
            mark = ">" if number == record.telling else " "
            sent = f"{each.bytes:,} B from each device"
            groups = f"{self.groups_told(each)}{self.times_told(each)}"
            rows.append(f"{mark} {each.opcode}{over(each)}  {sent}  {groups}")
            if each.where:
                rows.append(f"    {self.line_told(each)}")
            how = "in a ring" if in_a_ring(each) else "straight to others"
            turns = f" in each of {each.times:,} turns" if (each.times or 1) > 1 else ""
            sends = f"{who_sends(each, record.mesh)} {each.sent:,} B{turns}"
            rows.append(f"    {how} {sends}, all {each.total:,} B")
        first = f"collectives of {record.call} on {record.mesh.text}"
        return twin(first, DIFFERS, record.headline, *shortened(rows, full))

    def groups_told(self, each: Collective) -> str:
        """Returns the groups: `{d0 d1} {d2 d3}`, of many the first."""
        if not each.groups:
            return each.note
        ids = self.recording.mesh.devices
        sign = ">" if each.opcode == "collective-permute" else " "
        told = [
            "{" + sign.join(f"d{ids[member]}" for member in group) + "}"
            for group in each.groups[:8]
        ]
        more = len(each.groups) - len(told)
        return " ".join(told) + (f" +{more}" if more else "")

    def line_told(self, each: Collective) -> str:
        """Returns the user's line, and whether others had a part in it."""
        told = f"{each.where}  {each.line}".strip() or each.primitive
        return f"{told}  ({each.note})" if each.groups and each.note else told

    def times_told(self, each: Collective) -> str:
        """Returns how often it runs, if not once."""
        if each.times is None:
            return "  in a loop of unknown length"
        return "" if each.times == 1 else f"  {each.times:,} times"

    # ---- the picture ---------------------------------------------------------------

    @functools.cached_property
    def drawn(self) -> list[int]:
        """The collectives that are drawn: the telling one and the first others."""
        found = [n for n, each in enumerate(self.recording.collectives) if each.groups]
        first = found[:MOST_DRAWN]
        if found and self.recording.telling not in first:
            first = sorted([*first[:-1], self.recording.telling])
        return first

    def rounds_of(self, number: int) -> int:
        """Returns how many rounds of a collective are shown."""
        each = self.recording.collectives[number]
        if not has_ring(each.opcode) or each.size > MOST_MEMBERS:
            return 0
        return rounds(each.opcode, each.size)

    @functools.cached_property
    def starts(self) -> dict[int, int]:
        """The step in which each drawn collective is before its first round."""
        found, count = {}, 0
        for number in self.drawn:
            found[number] = count
            count += 1 + self.rounds_of(number)
        return found

    def tell(self, step: int) -> None:
        """Makes the collective of a step the telling one."""
        begun = [number for number, start in self.starts.items() if start <= step]
        super().tell(begun[-1] if begun else 0)

    def frame(self) -> picture.Frame:
        """Returns the picture, a table of the collectives, and the lines."""
        record = self.recording
        spans = [each.span for each in record.collectives if each.span is not None]
        sources = code_panes(record.sources, spans)
        steps = []
        first_pane = 2 if self.drawn else 1
        for number in self.drawn:
            each = record.collectives[number]
            marks = mark_of(sources, each.span, first_pane)
            lit = [f"c{number}", *key_of_line(each.span)]
            made = f" It comes from {each.primitive}." if each.primitive else ""
            told = f"{each.opcode}{over(each)}: each device gives {each.bytes:,} B."
            steps.append(
                picture.FrameStep(each.opcode, f"{told}{made}  {each.text}", lit, marks)
            )
            count = self.rounds_of(number)
            for one in range(1, count + 1):
                said = round_told(each, one)
                label = f"{each.opcode}, round {one} of {count}"
                if each.opcode != "collective-permute":
                    said += f"  ({ONE_WAY})"
                steps.append(
                    picture.FrameStep(label, said, [*lit, f"c{number}r{one}"], marks)
                )
        if not steps:
            steps.append(picture.FrameStep("none", NONE))
        panes = []
        if self.drawn:
            narrow = NARROW_RING if len(record.mesh.axes) == 1 else NARROW
            panes.append(picture.scene_pane(self.scene, WIDE, narrow, MIDDLE))
        panes.append(self.table())
        telling = self.starts.get(record.telling, 0)
        if self.drawn and self.rounds_of(record.telling):
            telling += 1
        return self.picture([*panes, *sources.panes], steps, telling)

    def table(self) -> picture.Pane:
        """Returns a row for each collective."""
        rows = []
        for number, each in enumerate(self.recording.collectives):
            groups = f"{count_in_words(len(each.groups), 'group')} of {each.size}"
            if each.opcode == "collective-permute":
                groups = count_in_words(len(each.groups), "message")
            rows.append(
                picture.Row(
                    [
                        [
                            picture.Piece(f"{each.opcode}{over(each)}", "chip"),
                            # A line breaks before the groups, not within them.
                            picture.Piece("  " + groups.replace(" ", "\xa0")),
                        ],
                        [size(each.sent), picture.Piece(self.times_told(each))],
                        [size(each.bytes)],
                        [size(each.total)],
                        self.line_told(each),
                    ],
                    keys=[f"c{number}", *key_of_line(each.span)],
                    go=self.starts.get(number),
                    tell=each.text,
                )
            )
        if not rows:
            rows.append(picture.Row(["no collectives", *[""] * 4]))
        titles = ["collective, groups", "each sends", "each gives", "all send"]
        titles.append("your line")
        return picture.Pane("collectives", rows, columns=titles, wide=True)

    def scene(self, sizes: Sizes) -> Scene:
        """Returns the drawn collectives, one under another."""
        scene = Scene(sizes.width, 100, label=self.recording.headline)
        y = 6.0
        for number in self.drawn:
            each = self.recording.collectives[number]
            drawing = Drawing(
                scene,
                self.recording.mesh,
                each,
                sizes,
                f"c{number}",
                self.starts[number],
                self.rounds_of(number),
                ring(each.opcode, each.size) if self.rounds_of(number) else [],
            )
            y = 22 + drawing.draw(y)
        scene.end_at(y)
        return scene


def size(count: int) -> picture.Piece:
    """Returns a number of bytes with its unit, which stay in one line."""
    return picture.Piece(size_in_words(count), "size")
