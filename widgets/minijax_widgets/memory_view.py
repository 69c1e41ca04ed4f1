"""`see.memory`: what is alive along a program, as an area over its equations.

Above, the bytes that are alive while each equation runs, with the peak marked; below,
on the same scale, each array as a bar from the equation that makes it to the last one
that reads it, grouped by the user's lines. What autodiff keeps for the backward pass
stands out as residuals.
"""

from __future__ import annotations

import functools
from typing import Any

from minijax_lab.explain.buffer_map import record_buffers
from minijax_lab.explain.memory import Account, MemoryRecording, Value, record_memory
from minijax_lab.explain.recording import Span, count_in_words
from minijax_lab.explain.roofline import Machine, machine_for
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.bar_scene import Bar, BarScene, Told, by_size, lanes
from minijax_widgets.buffers_view import BuffersView
from minijax_widgets.foreign_pane import lost_panes, lost_rows
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row
from minijax_widgets.memory_bands import MEANINGS, Band, bands, role_of
from minijax_widgets.memory_scene import Drawing, told_of
from minijax_widgets.scene import Scene
from minijax_widgets.view import NOTHING, View, cut, shows, twin, with_options

# Arrays drawn as bars; where more would be, each line has a band for all of its arrays.
MOST_BARS = 160
MOST_LINES = 14
ROWS = 60
# An array is drawn if it is at least this part of the peak.
SMALLEST = 200


@with_options
def memory(
    function: Any,
    *args: Any,
    beside: Any = None,
    target: str | None = None,
    compiled: bool = False,
    roofline: Machine | bool = False,
    **kwargs: Any,
) -> View:
    """Shows what `function` keeps alive on the given arguments, equation by equation.

    Args:
      function: any function of arrays, usually a gradient, such as `grad(loss)`; it is
        traced and compiled, not run. A jaxpr, of minijax or of JAX, serves alike; it is
        not compiled, and it does not say what autodiff keeps.
      args, kwargs: its arguments, arrays or `ShapeDtypeStruct`s.
      beside: a second function of the same arguments to compare with, such as
        `grad(checkpoint(loss))`.
      target: the machine to compile for, such as "h100" or "tpu-v5e:2x2", which need
        not be there; by default the one that minijax runs on.
      compiled: show the compiled program instead: where XLA puts each buffer, and from
        which instruction to which it is needed. Takes what real JAX jitted or lowered
        too.
      roofline: show, below the compiled program's memory, what bounds each kernel:
        True for the machine that it is compiled for, or a `see.Machine`. The numbers
        of the H100 and of TPUs are from their descriptions, those of this CPU are
        measured; times are modelled. It asks for `compiled=True` by itself.

    The count follows the order of the equations. Arguments and constants are counted
    apart, since they belong to the caller. XLA fuses and reorders, so what it allocates
    is given below the line of what differs between machines. Raises what tracing or
    compiling raises.
    """
    if not compiled and roofline is False:
        return MemoryView(record_memory(function, args, kwargs, beside, target=target))
    if beside is not None:
        raise ValueError(
            "see.memory: compiled=True shows one program, and beside= is a second one. "
            "Call see.memory(other, ..., compiled=True) for it."
        )

    record = record_buffers(function, args, kwargs, target)
    if roofline is not False:
        record.machine = machine_for(roofline, record.memory.target)
    return BuffersView(record)


@shows("memory")
class MemoryView(View):
    """The curve of live bytes, the arrays under it, and the two truths."""

    recording: MemoryRecording

    @property
    def first(self) -> Account:
        """The program itself; a second one stands beside it."""
        return self.recording.accounts[0]

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline, the lines that own the peak, and what is allocated."""
        record, first = self.recording, self.first
        rows = [record.headline]
        if first.points:
            point = first.points[first.peak]
            rows.append(
                f"> peak at equation {first.peak}, {point.primitive}: "
                f"{size_in_words(point.live)} beside {size_in_words(first.arguments)} "
                "of arguments"
            )
        groups = self.owners(first.peak)
        shown = groups if full else groups[:12]
        for span, values in shown:
            size = sum(value.bytes for value in values)
            share = round(30 * size / max(1, first.most))
            line = cut(record.line_of(span) or "(no line of yours)", 40)
            many = count_in_words(len(values), "array")
            bar = "#" * share
            rows.append(f"  {line:40} {many:>10} {size_in_words(size):>10}  {bar}")
        if len(shown) < len(groups):
            rows.append(f"  ... {len(groups) - len(shown)} more lines")
        rows += lost_rows(record.lost)
        rows += self.allocated()
        return twin(*rows)

    def allocated(self) -> list[str]:
        """Returns what the compiled programs allocate, below the line."""
        accounts = [a for a in self.recording.accounts if a.compiled is not None]
        if not accounts:
            return []
        totals = []
        for account in accounts:
            assert account.compiled is not None
            totals.append(size_in_words(account.compiled["temporaries"]))
        said = " and, beside, ".join(totals)
        place = self.recording.platform
        return [
            "-- differs between machines --",
            f"{place} allocates {said} of temporaries",
        ]

    def owners(self, point: int) -> list[tuple[Span | None, list[Value]]]:
        """Returns the user's lines that own what is alive at a point, largest first."""
        groups: dict[Any, tuple[Span | None, list[Value]]] = {}
        for value in self.first.alive(point):
            key = line_key(value.span)
            groups.setdefault(key, (value.span, []))[1].append(value)
        return sorted(groups.values(), key=lambda g: -sum(v.bytes for v in g[1]))

    # ---- the picture ---------------------------------------------------------------

    def frame(self) -> Frame:
        """Returns the picture: the scene, the arrays as a table, the two truths."""
        record, first = self.recording, self.first
        if not first.points:
            return self.empty(NOTHING)
        drawn = self.drawn()
        steps = []
        bars = [value for value in first.values if value.id in drawn]
        for number, (point, alive) in enumerate(
            zip(first.points, first.alive_at_each(bars), strict=True)
        ):
            on = [
                f"p{number}",
                *(band.key for band in self.line_bands if band.live[number]),
            ]
            on += [f"v{value.id}" for value in alive]
            steps.append(FrameStep(point.primitive, self.details[number], on))
        return self.picture(
            [
                Pane(
                    "",
                    [],
                    kind="scene",
                    scene=self.scene(1100),
                    middle=self.scene(690),
                    narrow=self.scene(288),
                ),
                *self.timeline(),
                self.table(drawn),
                self.truths(),
                *lost_panes(record.lost),
            ],
            steps,
            first.peak,
        )

    def drawn(self) -> set[int]:
        """Returns the ids of the arrays that are drawn as bars: the largest ones."""
        seen = [v for v in self.made() if v.bytes * SMALLEST >= self.first.most]
        largest = sorted(seen or self.made(), key=lambda v: (-v.bytes, v.id))
        return {value.id for value in largest[: ROWS if self.line_bands else MOST_BARS]}

    def made(self) -> list[Value]:
        """Returns the arrays that the program makes."""
        return [v for v in self.first.values if v.born >= 0 and v.bytes]

    @functools.cached_property
    def line_bands(self) -> list[Band]:
        """Returns the lines as bands, where the arrays are too many for bars."""
        made = self.made()
        if len(made) <= MOST_BARS:
            return []
        return bands(made, len(self.first.points), MOST_LINES)

    def what_is_drawn(self, wide: bool) -> str:
        """Returns what the lower half of the picture shows."""
        if self.line_bands:
            many = count_in_words(len(self.made()), "array")
            return f"the bytes of all {many}, line by line" if wide else f"all {many}"
        small = len(self.made()) - len(self.drawn())
        told = "each array, from the equation that makes it to the last that reads it"
        if not wide:
            told = "each array, while alive"
        if small:
            told += f"; without {count_in_words(small, 'small one')}"
        return told

    @functools.cached_property
    def details(self) -> list[str]:
        """Returns a sentence about each point of the program."""
        counts = enumerate(self.first.counts())
        return [self._detail(number, *both) for number, both in counts]

    def _detail(self, number: int, alive: int, kept: int) -> str:
        point = self.first.points[number]
        line = self.recording.line_of(point.span)
        where = f", line {line.partition('  ')[0]}" if line else ""
        told = (
            f"equation {number}, {point.primitive} makes {point.makes}{where}: "
            f"{count_in_words(alive, 'array')}, {size_in_words(point.live)} alive"
        )
        if point.inside:
            told += f", {size_in_words(point.inside)} of it inside of its body"
        if number == self.first.peak:
            told += "; the peak"
        if kept:
            told += f"; {size_in_words(kept)} wait for the backward pass"
        return told

    def scene(self, width: int) -> Scene:
        """Returns the curve above and the arrays below, on one scale of bytes."""
        return Drawing(self, width).scene

    def timeline(self) -> list[Pane]:
        """Returns each array of a long program as a bar; the largest in the top rows,
        and in a row one dies before the next is born."""
        if not self.line_bands:
            return []
        made = self.made()
        bars = [
            Bar(
                value.born,
                value.dies + 1,
                0,
                1,
                role_of(value),
                value.born,
                f"{value.type}, {size_in_words(value.bytes)}, made by {made_by(value)}",
            )
            for value in made
        ]
        points = [number + 0.5 for number in range(len(self.first.points))]
        scene = BarScene(
            by_size(bars, [value.bytes for value in made]),
            Told((": alive from equation ", " to "), points="equations "),
            points,
            f"{count_in_words(len(bars), 'array')} as bars along the program",
            MEANINGS,
        )
        title = f"each of {len(bars):,} arrays while it is alive, the largest above"
        return [Pane(title, [], kind="scene", wide=True, scene=scene)]

    def lines(self) -> list[tuple[Span | None, list[list[Value]]]]:
        """Returns the user's lines with their arrays, packed into lanes.

        In a lane one array dies before the next is born, as in an allocator.
        """
        drawn = self.drawn()
        groups: dict[Any, tuple[Span | None, list[Value]]] = {}
        for value in self.first.values:
            if value.id in drawn:
                key = (line_key(value.span), value.backward)
                groups.setdefault(key, (value.span, []))[1].append(value)
        largest = sorted(groups.values(), key=lambda g: -sum(v.bytes for v in g[1]))
        kept = largest[:MOST_LINES]
        kept.sort(key=lambda group: group[1][0].born)
        return [(span, packed(values)) for span, values in kept]

    def table(self, drawn: set[int]) -> Pane:
        """Returns the arrays as a table, largest first."""
        made = self.made()
        values = [v for v in made if v.id in drawn]
        values.sort(key=lambda v: (-v.bytes, v.id))
        rows = []
        for value in values[:ROWS]:
            kept = Piece("kept for backward", "residual") if value.kept else Piece("")
            rows.append(
                Row(
                    [
                        [Piece(size_in_words(value.bytes), "size")],
                        [Piece(value.type, "chip")],
                        made_by(value),
                        [kept],
                    ],
                    keys=[f"v{value.id}"],
                    go=value.born,
                    tell=told_of(value),
                )
            )
        titles = ["bytes", "type", "made by", ""]
        more = len(made) - len(rows)
        title = "arrays, largest first" + (f" ({more:,} more)" if more > 0 else "")
        return Pane(title, rows, columns=titles, wide=True)

    def truths(self) -> Pane:
        """Returns what autodiff asks to keep beside what the compiler allocates."""
        accounts = self.recording.accounts

        def sizes(numbers: list[int | None]) -> str:
            said = ["not recorded" if n is None else size_in_words(n) for n in numbers]
            return ", beside ".join(said)

        allocated = [
            None if a.compiled is None else a.compiled["temporaries"] for a in accounts
        ]
        place = f"{self.recording.platform} allocates (differs between machines)"
        told = {
            "autodiff asks to keep": sizes([a.kept for a in accounts]),
            "peak, equation by equation": sizes([a.most for a in accounts]),
            place: sizes(allocated),
            "arguments": sizes([a.arguments for a in accounts]),
        }
        # A row of nothing but "not recorded" says nothing.
        rows = [
            Row([name, said])
            for name, said in told.items()
            if set(said.split(", beside ")) != {"not recorded"}
        ]
        return Pane("what it asks for, and what it gets", rows, kind="prose")


def line_key(span: Span | None) -> tuple[int, int] | None:
    """Returns what identifies the user's line of a span."""
    return None if span is None else (span.source, span.line)


def made_by(value: Value) -> str:
    """Returns the primitive that made an array, and the user's line."""
    return value.name + (f", line {value.span.line}" if value.span else "")


def packed(values: list[Value]) -> list[list[Value]]:
    """Returns arrays in lanes: each in the first lane that is free when it is born."""
    ordered = sorted(values, key=lambda v: (v.born, -v.bytes))
    rows = lanes([(value.born, value.dies + 1, value.bytes) for value in ordered])
    found: dict[int, list[Value]] = {}
    for value, row in zip(ordered, rows, strict=True):
        found.setdefault(row, []).append(value)
    return list(found.values())
