"""`see.scale`: what a step would cost on devices that are not there."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.roofline import Machine
from minijax_lab.explain.scale import Plan, ScaleRecording, record_scale
from minijax_lab.explain.tree import size_in_words
from minijax_widgets import frame as picture
from minijax_widgets.roofline_scene import seconds_in_words
from minijax_widgets.scale_scene import draw, told_of
from minijax_widgets.view import (
    DIFFERS,
    WIDTH,
    View,
    shortened,
    shows,
    twin,
    with_options,
)


@with_options
def scale(
    function: Any,
    *args: Any,
    target: str | None = None,
    machine: Machine | None = None,
    **kwargs: Any,
) -> ScaleView:
    """Shows what a step costs each device: memory, messages, seconds, compiling.

    Args:
      function: a function, jitted or not; or a dict of plans that are compared, each a
        tuple of a function and its arguments: {"data": (step, params, batch)}.
      args, kwargs: its arguments: `ShapeDtypeStruct`s with shardings, so that nothing
        is allocated, or arrays.
      target: machines to compile for that need not be there, such as "h100:8" or
        "tpu-v5e:16x16"; the mesh may be one of CPU devices, of as many.
      machine: the numbers of one device, for the modelled seconds; by default those
        known of the target, in bfloat16.

    Collectives, buffers and kernels are the compiled program's. The seconds of a step
    are modelled from them: the least that a roofline allows, and the links busy with
    rings. Nothing runs. A program that XLA refuses, since it does not fit, is shown
    with what its arguments take.

    Raises TypeError for other things, ValueError for an unknown target, and what
    tracing or compiling raises otherwise.
    """
    return ScaleView(record_scale(function, args, kwargs, target, machine))


@shows("scale")
class ScaleView(View):
    """A row of bars for each plan."""

    recording: ScaleRecording

    def text(self, full: bool = False) -> str:
        """Returns for each plan its memory by owner and its messages by axes."""
        record = self.recording
        rows = []
        for number, plan in enumerate(record.plans):
            mark = ">" if number == record.telling else " "
            where = f"{mark} {plan.name} on {plan.mesh.text}"
            fits = "" if record.fits(plan) else f"  does not fit {plan.refused}"
            rows.append(where + fits)
            for line in self.lines(plan):
                rows += wrap(
                    line, WIDTH, initial_indent="    ", subsequent_indent=" " * 8
                )
        first = f"scale of {record.call}"
        return twin(first, DIFFERS, record.headline, *shortened(rows, full))

    def lines(self, plan: Plan) -> list[str]:
        """Returns what is told of a plan below its name."""
        owners = ", ".join(f"{o.name} {size_in_words(o.bytes)}" for o in plan.owners)
        lines = [f"memory {size_in_words(plan.memory)}: {owners}"]
        for each in plan.traffic:
            more = " at least, a loop counted once" if each.unknown else ""
            lines.append(
                f"{each.opcode} over {each.axes}: {count_in_words(each.runs, 'run')}, "
                f"{size_in_words(each.bytes)} sent by the busiest device{more}"
            )
        functions = f"{plan.functions:,} of exp, tanh and the like, "
        functions = functions if plan.functions else ""
        if not plan.refused:
            lines.append(
                f"{count_in_words(plan.flops, 'operation')}, "
                f"{functions}"
                f"{size_in_words(plan.moved)} of traffic, "
                f"{count_in_words(plan.equations, 'equation')}, "
                f"{count_in_words(plan.instructions, 'instruction')}"
            )
        return lines

    def frame(self) -> picture.Frame:
        """Returns the picture, and a table of owners and collectives."""
        record = self.recording
        steps = [
            picture.FrameStep(plan.name, told_of(record, plan), [f"p{number}"])
            for number, plan in enumerate(record.plans)
        ]
        machine = record.machine
        title = ""
        if machine is not None:
            title = f"seconds modelled for {machine.name} ({machine.source})"
        pane = picture.scene_pane(
            lambda width: draw(record, width), 1000, 288, 690, title
        )
        return self.picture(
            [pane, self.messages(), self.owners()], steps, record.telling
        )

    def messages(self) -> picture.Pane:
        """Returns a row for each kind of collective of each plan."""
        rows = []
        for number, plan in enumerate(self.recording.plans):
            for each in plan.traffic:
                times = count_in_words(each.runs, "run")
                times += " at least" if each.unknown else ""
                cells: list[list[picture.Piece] | str] = [
                    plan.name,
                    [picture.Piece(f"{each.opcode} over {each.axes}", "chip")],
                    [picture.Piece(size_in_words(each.bytes), "size")],
                    times,
                ]
                rows.append(picture.Row(cells, keys=[f"p{number}"], go=number))
        if not rows:
            rows.append(picture.Row(["no collectives", "", "", ""]))
        columns = ["plan", "collective", "busiest sends", "in a step"]
        return picture.Pane("collectives by axis", rows, columns=columns, below=True)

    def owners(self) -> picture.Pane:
        """Returns for each plan its compiling, and below it whose the memory is."""
        rows = []
        for number, plan in enumerate(self.recording.plans):
            keys = [f"p{number}"]
            cells: list[list[picture.Piece] | str]
            cells = [[picture.Piece(plan.name, "strong")], size_in_words(plan.memory)]
            rows.append(picture.Row(cells, keys=keys, go=number, look="group"))
            facts = [(o.name, size_in_words(o.bytes)) for o in plan.owners]
            facts += [
                ("traced in", seconds_in_words(plan.traced)),
                ("lowered in", seconds_in_words(plan.lowered)),
                ("compiled in", seconds_in_words(plan.compiled)),
            ]
            for name, said in facts:
                row = picture.Row([name, said], keys=keys, go=number, depth=1)
                rows.append(row)
        columns = ["whose memory", "in a device"]
        return picture.Pane(
            "memory by owner, and compiling", rows, columns=columns, kind="prose"
        )
