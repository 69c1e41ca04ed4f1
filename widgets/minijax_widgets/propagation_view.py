"""`see.placement` of a program: how cuts spread from value to value, and what moves."""

from __future__ import annotations

import functools
from collections import Counter
from textwrap import wrap

from minijax_lab.explain.collectives import over
from minijax_lab.explain.propagation import ProgramValue, PropagationRecording, Transfer
from minijax_lab.explain.tree import size_in_words
from minijax_widgets import frame as picture
from minijax_widgets.code import CodePanes, code_panes, key_of_line, mark_of
from minijax_widgets.glyph import text_width
from minijax_widgets.placement_scene import (
    MIDDLE,
    NARROW,
    SMALL,
    WIDE,
    Sizes,
    draw_array,
    draw_mesh,
    fitting_device,
    lay_mesh,
    side_room,
)
from minijax_widgets.scene import Scene
from minijax_widgets.view import DIFFERS, View, cut, shortened, shows, twin

# In the wide layout texts end here; beside them stands the mesh.
TEXT_END = 550.0
# From this width on texts stand beside the arrays.
LEAST_BESIDE = 600
# So many values are drawn; of a longer program those where something changes.
MOST_ROWS = 24
GLYPH = 0.62


@shows("propagation")
class PropagationView(View):
    """A row for each value: cut as the program has it; collectives between rows."""

    recording: PropagationRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns a row for each value, with the steps and the collectives."""
        record = self.recording
        rows = []
        for number, value in enumerate(record.values):
            mark = ">" if number == record.telling else " "
            rows.append(f"{mark} {self.title(value)}  {self.how(value)}")
            for count in value.collectives:
                rows.append(f"    + {self.moved(count)}")
            if value.unasked:
                rows.append(f"    {self.advice(value)}")
        rows += [f"  step {n}: {s.text}" for n, s in enumerate(record.steps, start=1)]
        rows += [f"  {self.transferred(transfer)}" for transfer in record.transfers]
        rows += [f"  {note}" for note in record.notes]
        first = f"placement of {record.call} on {record.mesh.text}"
        return twin(first, DIFFERS, record.headline, *shortened(rows, full))

    def title(self, value: ProgramValue) -> str:
        """Returns a value's name and type."""
        kind = f" ({value.role})" if value.role else ""
        return f"{value.placed.name} {value.placed.type}{kind}"

    def how(self, value: ProgramValue) -> str:
        """Returns how a value lies."""
        placed = value.placed
        return f"{placed.spec}: {placed.how}, {placed.each:,} B each"

    def moved(self, number: int) -> str:
        """Returns what a collective moves, in words."""
        each = self.recording.collectives[number]
        many = f" of {len(each.parts)} values" if each.parts else ""
        told = f"{each.opcode}{over(each)}{many}, {each.bytes:,} B from each device"
        if each.times != 1:
            told += " in each round of a loop" if each.times is None else ""
            told += f", {each.times:,} times" if each.times else ""
        return told

    def advice(self, value: ProgramValue) -> str:
        """Returns what would leave fewer copies."""
        placed = value.placed
        return (
            f"Nobody asked for the {placed.copies} copies of this result: "
            f"out_shardings={placed.better} would leave {placed.better_bytes:,} B on "
            f"each device instead of {placed.each:,} B."
        )

    def transferred(self, transfer: Transfer) -> str:
        """Returns what a call moves before it runs."""
        name = transfer.name
        for number in transfer.values:
            name = self.recording.values[number].placed.name
        return (
            f"each call moves {name} {transfer.type} from {transfer.before} to "
            f"{transfer.after}: {transfer.bytes:,} B"
        )

    # ---- the picture ---------------------------------------------------------------

    @functools.cached_property
    def drawn(self) -> list[int]:
        """The values that have a row in the picture."""
        values = self.recording.values
        found = [
            n for n, v in enumerate(values) if v.placed.shape or v.role or v.collectives
        ]
        if len(found) <= MOST_ROWS:
            return found
        ends, inside = [], []
        for number in found:
            value = values[number]
            before = [values[o].placed.cuts for o in value.operands]
            changed = bool(before) and value.placed.cuts not in before
            if value.collectives or value.unasked or number == self.recording.telling:
                ends.append(number)
            elif value.role or changed:
                inside.append(number)
        return sorted([*ends, *inside][:MOST_ROWS])

    @property
    def last(self) -> int:
        """The last step, in which all is there."""
        return 1 + len(self.recording.steps) + len(self.recording.collectives)

    def frame(self) -> picture.Frame:
        """Returns the picture, the values as a table, Shardy's steps, the lines."""
        record = self.recording
        spans = [value.span for value in record.values if value.span is not None]
        sources = code_panes(record.sources, spans)
        panes = []
        if self.drawn:
            panes.append(picture.scene_pane(self.scene, WIDE, NARROW, MIDDLE))
        panes.append(self.table())
        if record.steps:
            panes.append(self.step_table())
        return self.picture(
            [*panes, *sources.panes], self.frame_steps(sources, len(panes)), self.last
        )

    def frame_steps(self, sources: CodePanes, first: int) -> list[picture.FrameStep]:
        """Returns what was given, Shardy's steps, the collectives, the results."""
        record = self.recording
        given = [n for n, v in enumerate(record.values) if v.role == "argument"]
        told = "What was given: the arguments, cut as they are."
        moved = " ".join(self.transferred(one) + "." for one in record.transfers)
        steps = [
            picture.FrameStep(
                "given", f"{told} {moved}".strip(), [f"v{n}" for n in given]
            )
        ]
        for number, step in enumerate(record.steps):
            on = [f"p{number}", *(f"v{n}" for n in step.targets)]
            if step.source >= 0:
                on.append(f"v{step.source}")
            span = record.values[step.targets[0]].span if step.targets else None
            rule = f"  |  rule: {step.rule}" if step.rule else ""
            steps.append(
                picture.FrameStep(
                    f"Shardy, step {number + 1} of {len(record.steps)}",
                    f"{step.text}{rule}",
                    [*on, *key_of_line(span)],
                    mark_of(sources, span, first),
                )
            )
        for number, each in enumerate(record.collectives):
            of = [n for n, v in enumerate(record.values) if number in v.collectives]
            steps.append(
                picture.FrameStep(
                    f"XLA adds: {each.opcode}",
                    f"{self.moved(number)}  |  {each.text}",
                    [f"c{number}", *(f"v{n}" for n in of), *key_of_line(each.span)],
                    mark_of(sources, each.span, first),
                )
            )
        unasked = [n for n, v in enumerate(record.values) if v.unasked]
        results = [n for n, v in enumerate(record.values) if v.role == "result"]
        told = " ".join(self.advice(record.values[n]) for n in unasked)
        if not told:
            told = " ".join(
                f"{self.title(record.values[n])}: {self.how(record.values[n])}."
                for n in results[:3]
            )
        if not any(value.made_by for value in record.values):
            told += " No operation moves it: give a function that computes."
        lit = unasked or results
        spans = [record.values[n].span for n in lit]
        steps.append(
            picture.FrameStep(
                "results",
                told or record.headline,
                # The bytes of the devices stand at the top: the picture begins there.
                ["held", *(f"v{n}" for n in lit)],
                mark_of(sources, spans[0] if spans else None, first),
            )
        )
        return steps

    def table(self) -> picture.Pane:
        """Returns a row for each value."""
        rows = []
        for number, value in enumerate(self.recording.values):
            times = Counter(self.moved(count) for count in value.collectives)
            moved = [f"{n} x {told}" if n > 1 else told for told, n in times.items()]
            notes = [picture.Piece("; ".join(moved), "meshy")] if moved else []
            if value.unasked:
                notes.append(picture.Piece("copies nobody asked for", "miss"))
            rows.append(
                picture.Row(
                    [
                        [picture.Piece(self.title(value), "chip")],
                        self.how(value),
                        notes,
                    ],
                    keys=[f"v{number}", *key_of_line(value.span)],
                    go=self.step_of(value),
                )
            )
        for transfer in self.recording.transfers:
            rows.append(picture.Row([self.transferred(transfer)], look="miss"))
        for said in self.recording.notes:
            rows.append(picture.Row([said], look="miss"))
        titles = ["value", "where", ""]
        return picture.Pane("values", rows, columns=titles, wide=True)

    def step_table(self) -> picture.Pane:
        """Returns a row for each step of Shardy."""
        rows = [
            picture.Row(
                [str(number + 1), step.text, step.rule],
                keys=[f"p{number}"],
                go=number + 1,
            )
            for number, step in enumerate(self.recording.steps)
        ]
        titles = ["step", "what Shardy did", "sdy.sharding_rule"]
        return picture.Pane("propagation", rows, columns=titles, wide=True)

    def step_of(self, value: ProgramValue) -> int:
        """Returns the step in which a value is cut as it stays."""
        return value.step + 1

    def scene(self, sizes: Sizes) -> Scene:
        """Returns the values one under another, and the mesh beside or above them."""
        record = self.recording
        scene = Scene(sizes.width, 100, label=record.headline)
        y = 6.0
        if not sizes.beside:
            y = self.draw_held(scene, 60, 40, sizes) + 22
        middles: dict[int, float] = {}
        text_x = 190.0 if sizes.width > LEAST_BESIDE else 30.0
        shown = [record.values[number].placed for number in self.drawn]
        left = 24 + max((side_room(placed) for placed in shown), default=34.0)
        for number in self.drawn:
            value = record.values[number]
            top = y
            y = self.draw_row(scene, number, y, sizes, text_x, left)
            middles[number] = (top + y) / 2
            y += 10
            for count in value.collectives:
                each = record.collectives[count]
                at = 1 + len(record.steps) + count
                wide = 500 if sizes.beside else sizes.width - 32
                letters = int((wide - 20) / text_width("n", 14, weight=700))
                lines = wrap(self.moved(count), letters)
                tall = 10 + 20 * len(lines)
                keys = [f"c{count}", f"v{number}"]
                scene.band(
                    y, tall, role="meshy", x=24, w=wide, key=keys, at=at,
                    label=self.moved(count), tell=each.text, go=at,
                )  # fmt: skip
                for line, said in enumerate(lines):
                    scene.text(
                        36, y + 20 + 20 * line, said, role="meshy", size=14,
                        weight=700, at=at,
                    )  # fmt: skip
                y += tall + 10
        self.draw_steps(scene, middles)
        mesh_x, low = 620.0, y
        if sizes.beside:
            low = self.draw_held(scene, mesh_x, 40, sizes)
        unasked = [value for value in record.values if value.unasked]
        for value in unasked[:2]:
            at_x = mesh_x - 40 if sizes.beside else 24.0
            low = self.draw_advice(scene, value, at_x, low + 20, sizes)
        scene.end_at(max(y, low) + 8)
        return scene

    def draw_row(
        self,
        scene: Scene,
        number: int,
        y: float,
        sizes: Sizes,
        text_x: float,
        left: float,
    ) -> float:
        """Draws a value, its glyph from `left` on; returns the lower end."""
        record = self.recording
        value = record.values[number]
        key = f"v{number}"
        lines_y = y + 14
        loud = "miss" if value.unasked else "constant"
        said = [self.how(value)]
        beside = sizes.width > LEAST_BESIDE
        if not beside:
            room = sizes.width - text_x - 4
            letters = int(room / text_width("n", 13, weight=600))
            said = wrap(said[0], letters)
            y += 20 + 18 * len(said) + 18 * bool(value.line)
        at = self.step_of(value)
        placed, x = value.placed, left - side_room(value.placed)
        right, low = draw_array(
            scene, placed, record.mesh, x, y - 14, sizes, key, None, GLYPH, at
        )
        x = max(text_x, right + 16) if beside else text_x
        title = self.title(value)
        size = 14 if x + text_width(title, 14, True) < sizes.width else 13
        scene.text(
            x, lines_y + 6, title, size=size, weight=700, mono=True, key=key, go=at
        )
        end = TEXT_END if sizes.beside else sizes.width
        if beside and x + text_width(said[0], 13, weight=600) > end:
            # The bytes get a line of their own, and the mesh keeps its place.
            first, _, each = said[0].rpartition(", ")
            said = [first, each]
        for one in said:
            scene.text(x, lines_y + 27, one, role=loud, size=13, weight=600, at=at)
            lines_y += 18
        lines_y -= 18
        if value.line:
            room = 38 if beside else 36
            scene.note(x, lines_y + 45, cut(value.line, room), mono=True)
        return max(low, lines_y + 50)

    def draw_advice(
        self, scene: Scene, value: ProgramValue, x: float, y: float, sizes: Sizes
    ) -> float:
        """Draws what nobody asked for; returns the lower end."""
        placed = value.placed
        lines = [
            f"Nobody asked for the {placed.copies} copies",
            f"out_shardings={placed.better}",
            f"would leave {placed.better_bytes:,} B on each device",
            f"instead of {placed.each:,} B",
        ]
        wide, tall = min(296.0, sizes.width - 32), 20.0 * len(lines) + 14
        key = [f"v{self.recording.values.index(value)}"]
        scene.band(y, tall, role="miss", x=x, w=wide, key=key, label=self.advice(value))
        for count, one in enumerate(lines):
            bold = 700 if not count else 400
            size = 15 if not count and wide > 290 else 13
            scene.text(
                x + 12, y + 23 + 20 * count, cut(one, int(wide / 7.4)), role="miss",
                size=size,
                weight=bold, mono=count == 1,
            )  # fmt: skip
        return y + tall

    def draw_steps(self, scene: Scene, middles: dict[int, float]) -> None:
        """Draws, at the left edge, from where to where each step of Shardy went."""
        for number, step in enumerate(self.recording.steps):
            for target in step.targets:
                if step.source not in middles or target not in middles:
                    continue
                start, end = middles[step.source], middles[target]
                if start == end:
                    continue
                x = 5 + 4 * (number % 3)
                scene.arrow(
                    (26, start),
                    (26, end),
                    via=[(x, start), (x, end)],
                    role="mesh",
                    thick=2.4,
                    key=f"p{number}",
                    at=number + 1,
                    until=number + 1,
                    says=step.text,
                )

    def draw_held(self, scene: Scene, x: float, y: float, sizes: Sizes) -> float:
        """Draws the mesh with the bytes that each device holds of what goes in and out.

        A device lights its pieces of all values.
        """
        record = self.recording
        mesh = record.mesh
        held = [0] * len(mesh.devices)
        for value in record.values:
            if value.role:
                for piece in value.placed.pieces:
                    for position in piece.devices:
                        held[position] += piece.bytes
        y += 14 * (len(mesh.axes) > 2)
        scene.note(
            x - 40,
            y - 22 - 14 * (len(mesh.axes) > 2),
            "each device: arguments and results",
            key="held",
        )
        across = mesh.axes[-1].size if len(mesh.axes) > 1 else 4
        device = sizes.device if across <= 2 else SMALL
        room = max(220.0, sizes.width - x)
        if not sizes.beside:
            device = fitting_device(mesh, device, sizes.width - x - 14)
        laid = lay_mesh(mesh, x, y + 10, device, width=room)
        looks = [mesh.place(position) for position in range(len(mesh.devices))]
        texts, keys, tells = [], [], []
        for position, id_ in enumerate(mesh.devices):
            texts.append([f"d{id_}", size_in_words(held[position])])
            keys.append([f"v{number}d{position}" for number in self.drawn])
            tells.append(
                f"device {id_} holds {held[position]:,} B of arguments and results"
            )
        draw_mesh(scene, mesh, laid, looks, texts, keys, tells)
        return laid.low
