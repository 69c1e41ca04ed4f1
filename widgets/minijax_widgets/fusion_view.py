"""`see.fusion`: the kernels of a program without fusion, and those that XLA made.

On the left a row for each kernel of the program compiled without its fusing passes; on
the right the kernel that it became a part of, as a box around its operations. A bar is
bytes, read (filled) and written (open), all on one scale.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.compiled import (
    CompiledProgram,
    CompiledRecording,
    record_compiled,
)
from minijax_lab.explain.fusion_groups import Group, groups_of
from minijax_lab.explain.fusion_steps import (
    FusionStep,
    FusionStepsRecording,
    record_fusion_steps,
)
from minijax_lab.explain.kernel_times import measured_times
from minijax_lab.explain.kernels import Kernel
from minijax_lab.explain.recording import Span, count_in_words
from minijax_lab.explain.roofline import Machine, machine_for, roofline_of
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, scene_pane
from minijax_widgets.fusion_scene import draw
from minijax_widgets.roofline_scene import counted_of, roofline_panes, told_of
from minijax_widgets.view import DIFFERS, View, shows, twin, with_options

MOST_ROWS = 400


@with_options
def fusion(
    function: Any,
    *args: Any,
    target: str = "cpu",
    measure: bool = False,
    why: bool = False,
    roofline: Machine | bool = False,
    **kwargs: Any,
) -> FusionView:
    """Shows which operations of `function` XLA put into one kernel, and what it saved.

    Args:
      function: any function of arrays; it is traced and compiled, not run.
      args, kwargs: its arguments, arrays or `ShapeDtypeStruct`s.
      target: "cpu", "h100" or a slice of TPUs such as "tpu-v5e:2x2"; the last two need
        the extras `minijax[h100]` and `minijax[tpu]`, and no such machine.
      measure: run the program here, and put each kernel's time beside its bytes; only
        for the machine that this is.
      why: for "h100", show each of XLA's decisions: what it fused with its estimate of
        the time, and what it left alone, with its reason.
      roofline: show what bounds each kernel, memory or arithmetic: True for the machine
        of the target, or a `see.Machine`. With `measure`, dots stand where they were
        measured; without, on the roof, and times are modelled.

    The left side is the program compiled with XLA's fusing passes switched off. Bytes
    are computed from shapes: every operand read once, every result written once.

    Raises what tracing or compiling raises; ValueError for an unknown target, or for
    `measure` with another machine's.
    """
    if why and target != "h100":
        raise ValueError(
            f"see.fusion: why=True shows XLA's decisions one by one, which it writes "
            f"down for GPUs only, and target={target!r}. Write target='h100'."
        )
    if measure and target != "cpu":
        raise ValueError(
            f"see.fusion: measure=True runs the program on this machine, and "
            f"target={target!r} is another one. Leave one of the two out."
        )
    record = record_compiled(function, args, kwargs, target)
    times = measured_times(function, args, kwargs, record) if measure else None
    decisions = record_fusion_steps(function, args, kwargs, target) if why else None
    machine = None
    if roofline is not False:
        machine = machine_for(roofline, record.target)
    return FusionView(record, times, decisions, machine)


@shows("compiled")
@dataclass(eq=False, repr=False)
class FusionView(View):
    """Kernels before and after fusion, with their bytes."""

    recording: CompiledRecording
    times: dict[int, float] | None = None
    decisions: FusionStepsRecording | None = None
    machine: Machine | None = None

    @property
    def program(self) -> CompiledProgram:
        """The program as compiled."""
        return self.recording.program

    def groups(self) -> list[Group]:
        """Returns each kernel with the kernels that it would be without fusion."""
        return self._groups

    @functools.cached_property
    def _groups(self) -> list[Group]:
        return groups_of(self.recording)

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the equations, and below the line the kernels with their bytes."""
        record = self.recording
        name = record.jaxpr.name
        outer = sum(1 for equation in record.jaxpr.equations if equation.parent is None)
        first = f"fusion of {name}: {count_in_words(outer, 'equation')}"
        rows = [first, DIFFERS]
        rows.append(record.headline)
        if self.machine is not None:
            roof = roofline_of(self.program, self.machine)
            rows.append(f"  roofline of {self.machine.name}: {told_of(roof)}")
            if roof.functions:
                rows.append(f"  {counted_of(roof)}")
        groups = self.groups()
        most = max((kernel.bytes for kernel in self.program.kernels), default=1)
        shown = groups if full else groups[:12]
        for number, group in enumerate(shown):
            mark = ">" if number == self.telling(groups) else " "
            kernel = group.kernel
            before = ""
            if group.before:
                size = size_in_words(sum(k.bytes for k in group.before))
                before = f"{count_in_words(len(group.before), 'kernel')}, {size}"
            bar = "#" * max(1, round(12 * kernel.bytes / max(1, most)))
            told = (
                f"{mark} {before:22} -> K{number + 1} = "
                f"{self.operations(kernel)}  {size_in_words(kernel.bytes)} {bar}"
                f"{turns(kernel)}"
            )
            rows.append(told + self.time_of(number))
        if len(shown) < len(groups):
            rows.append(f"  ... {len(groups) - len(shown)} more kernels")
        if self.decisions is not None:
            rows.append(self.decisions.headline)
            decided = [f"  {self.decided(step)}" for step in self.decisions.steps]
            rows += decided if full else decided[:12]
        if record.unfused is None:
            rows.append(f"  without fusion: {record.unfused_because}")
        return twin(*rows)

    def operations(self, kernel: Kernel) -> str:
        """Returns what a kernel computes: `5 sine, 5 multiply`.

        One of bitcasts alone writes what it reads to another place.
        """
        if not kernel.members:
            return "copy"
        counts = Counter(
            self.program.module.instructions[member].opcode for member in kernel.members
        )
        return ", ".join(
            opcode if count == 1 else f"{count} {opcode}"
            for opcode, count in counts.items()
            if opcode not in ("broadcast", "constant") or len(counts) == 1
        )

    def time_of(self, number: int) -> str:
        """Returns a kernel's measured time, with a comma before it."""
        if self.times is None:
            return ""
        if number not in self.times:
            return ", time not seen"
        return f", {self.times[number]:.1f} us"

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture, the kernels as a table, and the lines."""
        record = self.recording
        groups = self.groups()
        if not groups:
            told = "No kernel runs: give a function that computes something."
            return self.empty(told)
        spans = [span for group in groups for span in self.spans(group.kernel)]
        sources = code_panes(record.sources, spans)
        roofline: list[Pane] = []
        if self.machine is not None:
            goes = {number: number for number in range(len(groups))}
            roofline = roofline_panes(self.program, self.machine, goes, self.times)
        steps = []
        for number, group in enumerate(groups):
            of_kernel = self.spans(group.kernel)
            steps.append(
                FrameStep(
                    f"K{number + 1}",
                    self.detail(number, group),
                    [f"k{number}"],
                    mark_of(
                        sources,
                        of_kernel[0] if of_kernel else None,
                        first_pane=2 + len(roofline),
                    ),
                )
            )
        return self.picture(
            [
                scene_pane(
                    lambda width: draw(record, groups, width, self.detail),
                    940,
                    288,
                    690,
                ),
                *roofline,
                self.table(groups),
                *sources.panes,
                *self.decisions_pane(),
            ],
            steps,
            self.telling(groups),
        )

    def telling(self, groups: list[Group]) -> int:
        """Returns the kernel that saves most; without a comparison, the largest."""
        if self.recording.unfused is None:
            return max(range(len(groups)), key=lambda n: groups[n].kernel.bytes)
        return max(range(len(groups)), key=lambda n: groups[n].saved)

    def spans(self, kernel: Kernel) -> list[Span]:
        """Returns the user's lines behind a kernel."""
        equations = self.recording.jaxpr.equations
        found: dict[tuple[int, int], Span] = {}
        for number in kernel.equations:
            span = equations[number].span
            if span is not None:
                found.setdefault((span.source, span.line), span)
        return list(found.values())

    def table(self, groups: list[Group]) -> Pane:
        """Returns the kernels as a table."""
        rows = []
        repeated = any(group.kernel.times != 1 for group in groups)
        for number, group in enumerate(groups[:MOST_ROWS]):
            kernel = group.kernel
            lines = ", ".join(str(span.line) for span in self.spans(kernel))
            cells: list[Any] = [
                [Piece(f"K{number + 1}", "strong")],
                [Piece(lines or "-")],
                [Piece(size_in_words(kernel.read), "size")],
                [Piece(size_in_words(kernel.written), "size")],
                [Piece(f"{kernel.flops + kernel.transcendentals:,}", "size")],
            ]
            if repeated:
                cells.append([Piece(repetitions(kernel))])
            if self.times is not None:
                cells.append([Piece(self.time_of(number).removeprefix(", "), "size")])
            name = self.program.instruction(kernel).name
            cells.append([Piece(f"{self.operations(kernel)}  "), Piece(name, "faint")])
            rows.append(Row(cells, keys=[f"k{number}"], go=number))
        columns = ["kernel", "lines", "reads", "writes", "operations"]
        columns += ["runs"] if repeated else []
        columns += ["measured"] if self.times is not None else []
        columns.append("computes, and its name in XLA")
        more = len(groups) - len(rows)
        title = "the kernels of the compiled program"
        title += f" ({more:,} more)" if more > 0 else ""
        return Pane(title, rows, columns=columns, wide=True)

    def decisions_pane(self) -> list[Pane]:
        """Returns XLA's decisions as a table, if they were asked for."""
        if self.decisions is None:
            return []
        rows = []
        for step in self.decisions.steps[:MOST_ROWS]:
            times = ""
            if step.us_fused is not None and step.us_unfused is not None:
                times = f"{step.us_fused:.3g} us, unfused {step.us_unfused:.3g} us"
            fused = step.kind == "fusion"
            cells: list[Any] = [
                [Piece("fused" if fused else "left alone", "strong" if fused else "")],
                [Piece(step.producer)],
                [Piece(f"into {', '.join(step.consumers)}" if fused else step.reason)],
                [Piece(times, "size")],
            ]
            rows.append(Row(cells))
        title = "XLA's decisions, in its order (times are its estimates)"
        return [Pane(title, rows, below=True)]

    def decided(self, step: FusionStep) -> str:
        """Returns a decision in words."""
        if step.kind != "fusion":
            return f"left alone: {step.producer}: {step.reason}"
        told = f"fused {step.producer} into {', '.join(step.consumers)}"
        if step.us_fused is not None and step.us_unfused is not None:
            told += f": {step.us_fused:.3g} us instead of {step.us_unfused:.3g} us"
        return told

    def detail(self, number: int, group: Group) -> str:
        """Returns a sentence about a kernel."""
        kernel = group.kernel
        told = f"K{number + 1} computes {self.operations(kernel)}: it reads "
        told += (
            f"{size_in_words(kernel.read)} and writes {size_in_words(kernel.written)}"
        )
        if group.before:
            before = sum(each.bytes for each in group.before)
            many = count_in_words(len(group.before), "kernel")
            moved = "moves" if len(group.before) == 1 else "move"
            told += f"; without fusion {many} {moved} {size_in_words(before)}"
        if kernel.times != 1:
            told += f"; it runs {repetitions(kernel)}"
        if not kernel.fused:
            told += "; one operation, so nothing was fused"
        elif group.saved > 0:
            told += "; the values in between stay in registers"
        if self.times is not None:
            told += f"; measured{self.time_of(number).removeprefix(',')}"
        if not self.recording.jaxpr.equations:
            told += ". There is nothing to fuse: give a function that computes"
        return f"{told}."


def turns(kernel: Kernel) -> str:
    """Returns how often a loop runs a kernel, with a space before it."""
    if kernel.times is None:
        return " a turn"
    return "" if kernel.times == 1 else f" x{kernel.times:,}"


def repetitions(kernel: Kernel) -> str:
    """Returns how often a kernel runs in one run of the program."""
    if kernel.times is None:
        return "as the data say"
    return "once" if kernel.times == 1 else f"{kernel.times:,} times"
