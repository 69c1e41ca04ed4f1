"""`see.kernel`: the grid of a `pallas_call`, program by program, block by block."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from textwrap import wrap
from typing import Any

from minijax_lab.explain.kernel_facts import (
    KernelRecording,
    Operand,
    better_order,
    pipeline,
)
from minijax_lab.explain.pallas_kernels import record_kernel
from minijax_lab.explain.recording import Span, count_in_words
from minijax_lab.explain.roofline import Machine
from minijax_widgets import frame as picture
from minijax_widgets.bar_scene import Bar, BarScene, Told
from minijax_widgets.code import CodePanes, code_panes
from minijax_widgets.kernel_scene import (
    LESS,
    MIDDLE,
    NARROW,
    OUTSIDE,
    WIDE,
    KnownBars,
    KnownUses,
    Laid,
    Sizes,
    draw_array,
    draw_bytes,
    draw_problem,
    kind_of,
)
from minijax_widgets.kernel_values import draw_in_array, draw_on_chip, values_text
from minijax_widgets.scene import Scene
from minijax_widgets.view import WIDTH, View, cut, shortened, shows, twin, with_options

# So many programs have a step of their own; those with findings always do.
MOST_STEPS = 1000
MOST_DRAWN = 8
# The pipeline's rows, and what colour each has.
LANES = {"copy in": "value", "compute": "text", "copy out": "residual"}
# A longer pipeline shows this many programs at first.
SLOTS = 10
MOST_PROBLEMS = 20
NO_PROGRAMS = (
    "The grid has no programs: give operands for which the grid has at least one."
)
MOST_TEXT_CELLS = 8


@with_options
def kernel(
    function: Callable[..., Any],
    *args: Any,
    machine: Machine | None = None,
    which: int = 0,
    values: bool | None = None,
    **kwargs: Any,
) -> KernelView:
    """Shows the kernel that `function` calls by `pallas_call`: its grid and blocks.

    Args:
      function: what `pallas_call` returned, or a function that calls it.
      args, kwargs: its arguments. With arrays the programs are run one by one, and
        races, accesses outside of a ref and reads of memory that nobody wrote are
        found; with `ShapeDtypeStruct`s the blocks alone are shown.
      machine: for which the pipeline is modelled, as `see.Machine(name, operations a
        second, bytes a second)`; a TPU v5e without it.
      which: the number of the kernel, of a function that calls several.
      values: show what small blocks hold, too, of the first programs: how numbers move
        from the arrays to the chip, and what each program leaves. None: where all
        blocks have at most 32 rows and columns, and there are at most 256 programs.

    Bytes are those that a pipeline copies: a block that the program before had is not
    fetched again. Raises what tracing raises, TypeError for a function of JAX, and
    ValueError for one that calls no kernel.
    """
    if machine is not None and not isinstance(machine, Machine):
        raise TypeError(
            f"see.kernel: machine={machine!r} is no see.Machine(name, operations a "
            "second, bytes a second)."
        )
    record = record_kernel(
        function, args, kwargs, machine=machine, which=which, values=values
    )
    return KernelView(record)


@shows("kernel")
class KernelView(View):
    """The grid beside its operands, bytes against the ideal, a modelled pipeline."""

    recording: KernelRecording

    @functools.cached_property
    def known_bars(self) -> KnownBars:
        """The bars of bytes, which layouts share."""
        return {}

    @functools.cached_property
    def known_uses(self) -> KnownUses:
        """Which blocks each step uses; a layout takes what another has counted."""
        return {}

    @functools.cached_property
    def places(self) -> list[str]:
        """Where each program stands in the grid, as text."""
        record = self.recording
        return [record.place_text(program) for program in range(len(record.places))]

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline, the telling program's blocks, and a row an operand."""
        record = self.recording
        rows = [record.headline]
        program = record.telling
        if record.places:
            count = len(record.places)
            at = record.place_text(program)
            rows.append(f"> program {at}, {program + 1:,} of {count:,}")
            rows += self.drawn_as_text(program)
        rows += shortened(self.operand_rows(), full)
        for problem in record.problems:
            told = f"{'x' if problem.is_wrong else ' '} {problem.kind}: "
            rows += wrap(told + problem.message, WIDTH, subsequent_indent="    ")
        if self.order_told:
            rows.append(f"  {self.order_told}")
        if record.note:
            rows.append(f"  {record.note}")
        return twin(*rows)

    def drawn_as_text(self, program: int) -> list[str]:
        """Returns blocks as letters: `[#]` now, `oo` used, `..` not yet."""
        columns = []
        grid = self.grid_operand
        for operand in [grid, *self.drawn]:
            if operand.starts:
                columns.append(letters(operand, program, operand is grid))
        rows: list[str] = []
        for line in range(max(len(column) for column in columns)):
            row = "  "
            for column in columns:
                wide = max(map(len, column)) + 3
                row += (column[line] if line < len(column) else "").ljust(wide)
            rows.append(cut(row.rstrip(), WIDTH))
        return rows

    def operand_rows(self) -> list[str]:
        """Returns a row for each operand."""
        rows = []
        for operand in self.recording.operands:
            told = f"  {operand.name} {operand.type}"
            if operand.starts:
                told += f" in blocks {tuple(operand.block)}, {operand.index_map}: "
                told += self.traffic(operand)
            else:
                told += f", {operand.role}"
            rows.append(cut(told, WIDTH))
        return rows

    @functools.cached_property
    def order_told(self) -> str:
        """Which order of the grid's axes would copy less, if there is one."""
        better = better_order(self.recording)
        if better is None:
            return ""
        axes, total = better
        now = self.recording.fetched + self.recording.written
        return (
            f"with the axes of the grid in the order ({', '.join(axes)}), {total:,} B "
            f"would be copied instead of {now:,}"
        )

    def traffic(self, operand: Operand) -> str:
        """Returns how often blocks of an operand are copied, and the bytes."""
        if not operand.moved:
            return f"left in {operand.space}"
        verb = "fetched" if operand.role == "input" else "written"
        told = f"{operand.copied:,} B {verb}"
        if operand.copied > operand.ideal:
            told += f", {operand.ideal:,} needed"
        return told

    def operand_told(self, operand: Operand) -> str:
        """Returns what an operand is, what is copied of it, and what the code does."""
        parts = [operand.role + (f" in {operand.space}" if operand.space else "")]
        if operand.starts:
            parts[0] += f" in blocks {tuple(operand.block)}, {operand.index_map}"
            parts.append(self.traffic(operand))
        read = sum(a for a, _ in operand.touched)
        written = sum(b for _, b in operand.touched)
        if read:
            parts.append(f"the code reads {read:,} B")
        if written:
            parts.append(f"the code writes {written:,} B")
        return "; ".join(parts)

    def remarks(self, operand: Operand) -> str:
        """Returns what the reader may not have meant."""
        found = []
        if operand.role == "input" and operand.moved:
            idle = [
                n
                for n, (read, _) in enumerate(operand.touched)
                if not read and operand.moves[n]
            ]
            if idle:
                many = count_in_words(len(idle), "program")
                found.append(f"fetched for {many} that never read it")
            again = sum(operand.again)
            if again:
                found.append(f"{count_in_words(again, 'block')} fetched again")
        elif operand.role == "output" and any(operand.again):
            again = sum(operand.again)
            found.append(f"{count_in_words(again, 'block')} written back again")
        if operand.starts and operand.moved and len(operand.starts) > 1:
            stays = operand.moves.count(False)
            if stays:
                found.append(f"stays for {count_in_words(stays, 'program')}")
        return "; ".join(found)

    # ---- the picture ---------------------------------------------------------------

    @functools.cached_property
    def programs(self) -> list[int]:
        """The programs that have a step."""
        record = self.recording
        count = len(record.places)
        found = set(range(min(count, MOST_STEPS)))
        found |= {problem.program for problem in record.problems[:MOST_PROBLEMS]}
        found |= {record.telling}
        return sorted(program for program in found if program < count)

    @functools.cached_property
    def steps(self) -> dict[int, int]:
        """The step of each program that has one."""
        return {program: step for step, program in enumerate(self.programs)}

    @functools.cached_property
    def grid_operand(self) -> Operand:
        """The grid as an array whose blocks are single programs."""
        record = self.recording
        shape = list(record.grid)
        name = f"grid {tuple(shape)}"
        return Operand(
            name, "grid", "", shape, 1, [1] * len(shape), starts=record.places
        )

    @functools.cached_property
    def drawn(self) -> list[Operand]:
        """The operands that are drawn: those that are cut into blocks first."""
        operands = self.recording.operands
        ordered = sorted(operands, key=lambda operand: not operand.starts)
        return ordered[:MOST_DRAWN]

    @property
    def first_whole(self) -> Operand | None:
        """The first drawn operand without blocks."""
        return next((one for one in self.drawn if not one.starts), None)

    def axes_told(self) -> str:
        """Returns where the grid's axes are in its picture."""
        axes = self.recording.axes
        if not axes:
            return "one program"
        told = [f"{axes[-1]} across"]
        if len(axes) > 1:
            told.append(f"{axes[-2]} down")
        if len(axes) > 2:
            told.append(f"{', '.join(axes[:-2])} cards")
        return ", ".join(reversed(told))

    def frame(self) -> picture.Frame:
        """Returns the picture: grid and operands, findings, a table, the source."""
        record = self.recording
        panes: list[picture.Pane] = []
        steps: list[picture.FrameStep] = []
        if record.places:
            panes.append(picture.scene_pane(self.scene, WIDE, NARROW, MIDDLE))
            panes[0].wide, panes[0].less = False, self.scene(LESS)
        *sources, jaxpr = self.code()
        panes += [*sources, *self.timeline()]
        wrong = {problem.program for problem in record.wrong}
        for step, program in enumerate(self.programs):
            on = [f"s{step}"]
            for number, problem in enumerate(record.problems[:MOST_PROBLEMS]):
                if problem.program == program:
                    on.append(f"e{number}")
                    on += [f"line{line}" for line in problem.lines]
            steps.append(
                picture.FrameStep(
                    record.place_text(program),
                    self.told(program),
                    on,
                    look="error" if program in wrong else "",
                    live=self.live(program),
                )
            )
        if not steps:
            steps.append(picture.FrameStep("", NO_PROGRAMS))
        if record.problems:
            panes.append(self.findings())
        panes += [self.table(), jaxpr]
        refetches = [self.steps[n] for n in record.refetches if n in self.steps]
        errors = sorted(
            {self.steps[p.program] for p in record.wrong if p.program in self.steps}
        )
        return self.picture(
            panes,
            steps,
            self.steps.get(record.telling, 0),
            axes=self.axes(),
            live="values" if any(one.values for one in record.operands) else None,
            jumps=[
                picture.Jump("r", "next block that is copied again", refetches),
                picture.Jump("e", "next finding", errors),
            ],
        )

    def live(self, program: int) -> list[tuple[str, str, bool]]:
        """Returns the values of a program's blocks as text."""
        return [
            (operand.name, values_text(operand.values[program]), False)
            for operand in self.recording.operands
            if program < len(operand.values) and operand.values[program]
        ]

    def axes(self) -> picture.Axes | None:
        """Returns the grid for sliders, if it has several axes to slide along."""
        record = self.recording
        if sum(size > 1 for size in record.grid) < 2:
            return None
        places = [record.places[program] for program in self.programs]
        # As far as there are steps: of a large grid only the first programs have one.
        sizes = [1 + max(numbers) for numbers in zip(*places)]
        return picture.Axes(record.axes, sizes, places)

    def told(self, program: int) -> str:
        """Returns a sentence about a program: what it reads and writes, and bytes."""
        record = self.recording
        said = f"program {record.place_text(program)}: "
        parts = []
        for operand in record.operands:
            if not operand.starts:
                continue
            part = operand.slice_text(program)
            kind = kind_of(operand, program)
            if operand.moved and operand.moves[program] and kind != OUTSIDE:
                kind += f", {operand.block_bytes(program):,} B"
            parts.append(f"{part} {kind}")
        said += "; ".join(parts) or "it has no operands"
        touched = [
            one.touched[program]
            for one in record.operands
            if program < len(one.touched)
        ]
        if touched:
            read = sum(a for a, _ in touched)
            written = sum(b for _, b in touched)
            said += f". Its code reads {read:,} B of refs and writes {written:,} B"
        for problem in record.problems:
            if problem.program == program and problem.is_wrong:
                said += f". {problem.kind}: {problem.message}"
                break
        return said

    def scene(self, sizes: Sizes) -> Scene:
        """Returns the picture: grid, operands and bytes in lines."""
        record = self.recording
        scene = Scene(sizes.width, 100, label=record.headline)
        x = y = 6.0
        low = y
        arrays: list[Laid | None] = [None] * len(record.operands)
        grid: Laid | None = None
        for operand in [self.grid_operand, *self.drawn]:
            is_grid = operand is self.grid_operand
            key = "grid" if is_grid else f"o{record.operands.index(operand)}"
            text = self.axes_told() if is_grid else ""
            trial = Scene(sizes.width, 100)
            end = draw_array(trial, operand, x, y, sizes, self.programs[:1], key, text)
            full = x > 6 and end.right > sizes.width
            # What has no blocks stands beside the bytes, if all have no room.
            if full or (operand is self.first_whole and x + 420 > sizes.width):
                x, y = 6.0, low + 26
            laid = draw_array(
                scene, operand, x, y, sizes, self.programs, key, text, self.known_uses
            )
            if is_grid:
                grid = laid
            else:
                arrays[record.operands.index(operand)] = laid
                draw_in_array(scene, operand, laid, self.programs)
            low = max(low, laid.low)
            x = laid.right + 34
        more = len(record.operands) - len(self.drawn)
        if more > 0:
            low += 20
            scene.note(6, low, f"and {more} more operands")
        if x > 6 and x + 260 > sizes.width:
            x, y = 6.0, low + 26
        low = max(low, draw_bytes(scene, record, x, y, self.programs, self.known_bars))
        by_name = dict(zip((one.name for one in record.operands), arrays))
        placed = {name: laid for name, laid in by_name.items() if laid is not None}
        foot = draw_on_chip(
            scene, self.drawn, placed, self.programs, self.places, low + 22
        )
        low = max(low, foot)
        assert grid is not None
        for number, problem in enumerate(record.problems[:MOST_PROBLEMS]):
            if problem.is_wrong:
                step = self.steps[problem.program]
                draw_problem(scene, problem, number, grid, arrays, step)
        scene.end_at(low + 10)
        return scene

    def timeline(self) -> list[picture.Pane]:
        """Returns the modelled pipeline of all programs as bars in three rows."""
        slots = pipeline(self.recording)
        if not slots or not slots[-1].copy_out[1]:
            return []
        spans = [end - start for slot in slots for start, end in slot.lanes]
        # So that also the shortest bar has a start and an end that differ.
        shortest = min(span for span in spans if span > 0)
        digits = max(1, 2 - math.floor(math.log10(shortest * 1e9)))
        bars = [
            Bar(
                round(start * 1e9, digits),
                round(end * 1e9, digits),
                row,
                1,
                role,
                self.steps.get(slot.program, -1),
                # Where a name does not fit, the place stays whole.
                f"{self.places[slot.program].replace(' ', '')} {lane}",
            )
            for slot in slots
            for row, (lane, role) in enumerate(LANES.items())
            for start, end in [slot.lanes[row]]
            if end > start
        ]
        scene = BarScene(
            bars,
            Told((", modelled: ", " to "), 0, " ns"),
            None,
            "the modelled pipeline",
            {role: lane for lane, role in LANES.items()},
            sight=SLOTS / len(slots) if len(slots) > SLOTS else None,
        )
        machine = self.recording.machine
        dtypes = (f" in {d}" for d in ("bfloat16", "float32") if d in machine.source)
        speed = f"{machine.operations / 1e12:,.1f} Tflop/s{next(dtypes, '')}"
        title = (
            f"pipeline of {count_in_words(len(slots), 'program')}, modelled for "
            f"{machine.name}: {machine.bandwidth / 1e9:,.0f} GB/s, {speed}, "
            "no latencies; two buffers for each block"
        )
        return [picture.Pane(title, [], kind="scene", wide=True, scene=scene)]

    def findings(self) -> picture.Pane:
        """Returns a row for each finding, that goes to its program."""
        record = self.recording
        rows = []
        for number, problem in enumerate(record.problems):
            look = "error" if problem.is_wrong else ""
            ink = "miss" if problem.is_wrong else "constant"
            at = record.place_text(problem.program)
            rows.append(
                picture.Row(
                    [
                        [picture.Piece(f"{problem.kind} {at}", ink)],
                        problem.message,
                    ],
                    keys=[f"e{number}"],
                    go=self.steps.get(problem.program),
                    look=look,
                    tell=problem.message,
                )
            )
        return picture.Pane("what the interpreter found", rows, kind="prose", wide=True)

    def table(self) -> picture.Pane:
        """Returns a row for each operand."""
        record = self.recording
        rows = []
        for number, operand in enumerate(record.operands):
            loud = "miss" if any(operand.again) else "constant"
            told = [picture.Piece(self.operand_told(operand))]
            remarks = self.remarks(operand)
            if remarks:
                told += [picture.Piece("; "), picture.Piece(remarks, loud)]
            chip = picture.Piece(f"{cut(operand.name, 20)} {operand.type}", "chip")
            rows.append(picture.Row([[chip], told], keys=[f"o{number}"]))
        held = f"{record.on_chip:,} B: two buffers for each block, and scratch memory"
        rows.append(picture.Row([[picture.Piece("on chip")], held]))
        if self.order_told:
            rows.append(picture.Row([[picture.Piece("order")], self.order_told]))
        title = "operands"
        if record.note:
            title += f" ({record.note})"
        count, shown = len(record.places), len(self.programs)
        if shown < count:
            title += f"; {shown:,} of {count:,} programs have a step"
        return picture.Pane(title, rows, kind="prose", wide=True)

    def code(self) -> list[picture.Pane]:
        """Returns the kernel's source, its own lines linked, and its jaxpr."""
        record = self.recording
        spans = [Span(source, line, 0, line, 0) for source, line in record.lines]
        made: CodePanes = code_panes(record.sources, spans)
        wrong = {line for problem in record.wrong for line in problem.lines}
        for source, pane in zip(
            (s for s in made.sources if s.id in made.numbers), made.panes
        ):
            for offset, row in enumerate(pane.rows):
                line = source.first_line + offset
                for number, operand in enumerate(record.operands):
                    if line in operand.lines:
                        row.keys.append(f"o{number}")
                if line in wrong:
                    row.keys.append(f"line{line}")
                    row.look = "miss"
        jaxpr = [
            picture.Row([str(number), line])
            for number, line in enumerate(record.jaxpr, 1)
        ]
        panes = list(made.panes)
        panes.append(
            picture.Pane("the kernel as a jaxpr", jaxpr, "code", wide=True, key="j")
        )
        return panes


def letters(operand: Operand, program: int, is_grid: bool) -> list[str]:
    """Returns an operand's blocks as rows of letters, with its name above."""
    title = "grid" if is_grid else operand.name
    rank = len(operand.shape)
    counts = []
    for axis in (-2, -1):
        if rank < -axis:
            counts.append(1)
            continue
        size = max(1, operand.block[axis])
        counts.append(-(-operand.shape[axis] // size))
    if max(counts) > MOST_TEXT_CELLS:
        if is_grid:
            return [title, str(tuple(operand.starts[program]))]
        return [title, operand.slice_text(program), kind_of(operand, program)]

    def cell(number: int) -> tuple[int, ...]:
        start = operand.starts[number]
        found = []
        for axis in (-2, -1):
            inside = rank >= -axis
            found.append(start[axis] // max(1, operand.block[axis]) if inside else 0)
        return (*start[: max(0, rank - 2)], *found)

    now = cell(program)
    past = {cell(number) for number in range(program)}
    rows = [title]
    for row in range(counts[0]):
        line = ""
        for column in range(counts[1]):
            here = (*now[:-2], row, column)
            line += "[#]" if here == now else " o " if here in past else " . "
        rows.append(line)
    again = "" if is_grid else kind_of(operand, program)
    if again:
        rows.append(again)
    return rows
