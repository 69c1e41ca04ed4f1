"""`see.memory(compiled=True)`: where the compiled program's buffers lie, and when.

A map: instructions from left to right, bytes from top to bottom. A rectangle is memory
that is taken, as wide as it is needed and as high as it has bytes; one below another's
edge begins where XLA put it. Above it, on the same scale, the bytes that are in use.
"""

from __future__ import annotations

from minijax_lab.explain.buffer_map import KINDS, BuffersRecording, Place, kinds_of
from minijax_lab.explain.recording import Span, count_in_words
from minijax_lab.explain.roofline import roofline_of
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.bar_scene import Bar, BarScene, Told, by_size
from minijax_widgets.buffers_scene import IN_WORDS, ROLES, draw
from minijax_widgets.code import code_panes, mark_of
from minijax_widgets.frame import Frame, FrameStep, Pane, Piece, Row, scene_pane
from minijax_widgets.memory_scene import shares
from minijax_widgets.roofline_scene import counted_of, roofline_panes, told_of
from minijax_widgets.scene import Scene
from minijax_widgets.view import DIFFERS, View, cut, shows, twin

ROWS = 60
# Rectangles that are drawn: the largest. The rest is counted in a sentence.
MOST_PLACES = 240
# Points that are steps; of a longer program a step is several in a row.
MOST_STEPS = 400
COLUMNS = 28  # of the map in the twin


@shows("buffers")
class BuffersView(View):
    """The map of a compiled program's memory."""

    recording: BuffersRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the equations, and below the line the largest places with when they
        are taken."""
        record = self.recording
        outer = sum(1 for equation in record.jaxpr.equations if equation.parent is None)
        held = ", ".join(
            f"{size_in_words(size)} of {kind}" for kind, size in kinds_of(record.memory)
        )
        equations = count_in_words(outer, "equation")
        rows = [f"compiled memory of {record.jaxpr.name}: {equations}", DIFFERS]
        rows += [record.headline, f"  {held}"]
        if record.machine is not None:
            roof = roofline_of(record.program, record.machine)
            rows.append(f"  roofline of {record.machine.name}: {told_of(roof)}")
            if roof.functions:
                rows.append(f"  {counted_of(roof)}")
        numbers = self.largest()
        shown = numbers if full else numbers[:12]
        points = len(record.memory.schedule)
        for number in shown:
            place = record.places[number]
            start = place.first * COLUMNS // points
            end = max(start + 1, -(-(place.last + 1) * COLUMNS // points))
            bar = "." * start + "#" * (end - start) + "." * (COLUMNS - end)
            line = self.line_of(place)
            row = f"  {size_in_words(place.bytes):>10} {place.kind:11} [{bar}] "
            row += f"{cut(self.name_of(place), 26):26} {line.partition('  ')[2]}"
            rows.append(row)
        if len(shown) < len(numbers):
            rows.append(f"  ... {len(numbers) - len(shown):,} more places")
        return twin(*rows)

    def largest(self) -> list[int]:
        """Returns the numbers of the places, largest first."""
        places = self.recording.places
        return sorted(range(len(places)), key=lambda n: (-places[n].bytes, n))

    def name_of(self, place: Place) -> str:
        """Returns the name of the buffer that is first in a place."""
        return self.recording.memory.buffers[place.buffers[0]].name.removesuffix("{}")

    def line_of(self, place: Place) -> str:
        """Returns the user's line behind a place with its number; "" if none is."""
        record = self.recording
        for number in place.buffers:
            span = record.span_of(record.memory.buffers[number])
            if span is not None:
                return self.code_of(span)
        return ""

    def code_of(self, span: Span | None) -> str:
        """Returns a line of the user's with its number; "" for None."""
        if span is None:
            return ""
        source = self.recording.sources[span.source]
        text = source.lines[span.line - source.first_line].strip()
        return f"line {span.line}  {text}"

    # ---- the picture ---------------------------------------------------------------

    def tell(self, step: int) -> None:
        """Changes nothing: the telling point is the peak, wherever the view opens."""

    def frame(self) -> Frame:
        """Returns the picture, the places as a table, and the user's lines."""
        record = self.recording
        if not record.places:
            told = "XLA describes no buffers: give a function that computes something."
            return self.empty(told)
        drawn = sorted(self.largest()[:MOST_PLACES])
        kernels = record.kernels()
        runs = shares(len(record.memory.schedule), MOST_STEPS)
        live = record.memory.live()
        timeline = self.timeline(drawn, runs)
        before = 2 + 2 * bool(record.machine) + len(timeline)
        spans = [record.span_of(b) for b in record.memory.buffers]
        sources = code_panes(record.sources, [s for s in spans if s is not None])
        steps = []
        for run in runs:
            point = max(run, key=lambda n: live[n])
            alive = [
                number
                for number in drawn
                if record.places[number].first <= point <= record.places[number].last
            ]
            span = self.span_at(point)
            running = [kernels.get(record.memory.schedule[n]) for n in run]
            steps.append(
                FrameStep(
                    record.memory.schedule[point],
                    self.detail(point, live[point]),
                    [
                        f"p{point}",
                        *(f"b{number}" for number in alive),
                        *(f"k{number}" for number in running if number is not None),
                    ],
                    mark_of(sources, span, first_pane=before),
                )
            )
        each = len(runs[0])
        telling = record.telling // each
        goes = {n: record.places[n].first // each for n in drawn}
        tells = {n: self.told(record.places[n]) for n in drawn}

        def scene(width: float) -> Scene:
            return draw(record, drawn, runs, live, goes, tells, width)

        return self.picture(
            [
                scene_pane(scene, 1100, 288, 690),
                *timeline,
                *self.roofline(each),
                self.table(goes),
                *sources.panes,
                self.totals(),
            ],
            steps,
            telling,
        )

    def timeline(self, drawn: list[int], runs: list[range]) -> list[Pane]:
        """Returns each place as a bar, if the picture above has not all of them."""
        places = self.recording.places
        if len(drawn) == len(places):
            return []
        bars = [
            Bar(
                place.first,
                place.last + 1,
                0,
                1,
                ROLES[place.kind],
                place.first // len(runs[0]),
                f"{self.name_of(place)}, {size_in_words(place.bytes)}",
            )
            for place in places
        ]
        live = self.recording.memory.live()
        legend: dict[str, str] = {}
        for kind in sorted({place.kind for place in places}):
            role = ROLES[kind]
            said = IN_WORDS[kind]
            legend[role] = f"{legend[role]}, {said}" if role in legend else said
        scene = BarScene(
            by_size(bars, [place.bytes for place in places]),
            Told((": from instruction ", " to "), 1, points="instructions "),
            [max(run, key=lambda n: live[n]) + 0.5 for run in runs],
            f"{count_in_words(len(bars), 'place')} as bars along the program",
            legend,
        )
        title = f"each of {len(bars):,} places while it is needed, the largest above"
        return [Pane(title, [], kind="scene", wide=True, scene=scene)]

    def span_at(self, point: int) -> Span | None:
        """Returns the user's line behind the instruction at a point."""
        record = self.recording
        name = record.memory.schedule[point]
        for buffer in record.memory.buffers:
            if owner(buffer.name) == name:
                return record.span_of(buffer)
        return None

    def roofline(self, each: int) -> list[Pane]:
        """Returns the roofline, if a machine is given; a step has `each` points."""
        record = self.recording
        if record.machine is None:
            return []
        numbers = record.kernels()
        goes = {
            numbers[name]: point // each
            for point, name in enumerate(record.memory.schedule)
            if name in numbers
        }
        return roofline_panes(record.program, record.machine, goes)

    def detail(self, point: int, live: int) -> str:
        """Returns a sentence about a point of the schedule."""
        record = self.recording
        name = record.memory.schedule[point]
        kernel = record.kernel_at(point)
        called = name if kernel is None else f"{name}, kernel K{kernel + 1}"
        told = f"instruction {point + 1:,}, {called}: {size_in_words(live)} in use"
        if point == record.telling:
            told += "; the peak"
        line = self.code_of(self.span_at(point))
        return f"{told}. {line}" if line else f"{told}."

    def told(self, place: Place) -> str:
        """Returns a sentence about a place."""
        record = self.recording
        buffers = [record.memory.buffers[number] for number in place.buffers]
        first = buffers[0]
        told = f"{self.name_of(place)} {first.type}, {size_in_words(place.bytes)}"
        told += f" of {IN_WORDS[place.kind]}: from instruction {place.first + 1:,} to "
        told += f"{place.last + 1:,}, at byte {place.offset:,} of allocation "
        told += str(place.allocation)
        others = list(dict.fromkeys(owner(b.name) for b in buffers[1:]))
        others = [name for name in others if name != owner(first.name)]
        if others:
            shown = ", ".join(others[:3])
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            told += f"; {shown}{more} use the same place"
        line = self.line_of(place)
        return f"{told}. {line}" if line else f"{told}. No line of yours is behind it."

    def table(self, goes: dict[int, int]) -> Pane:
        """Returns the places as a table, largest first."""
        record = self.recording
        rows = []
        numbers = [n for n in self.largest() if n in goes]
        for number in numbers[:ROWS]:
            place = record.places[number]
            first = record.memory.buffers[place.buffers[0]]
            line = self.line_of(place).partition("  ")[0]
            cells: list[list[Piece] | str] = [
                [Piece(size_in_words(place.bytes), "size")],
                [Piece(IN_WORDS[place.kind], ROLES[place.kind])],
                [Piece(first.type.partition("{")[0], "chip")],
                ", ".join(part for part in (self.name_of(place), line) if part),
            ]
            rows.append(
                Row(cells, keys=[f"b{number}"], go=goes[number], tell=self.told(place))
            )
        columns = ["bytes", "for", "type", "first made by"]
        more = len(record.places) - len(rows)
        title = "places, largest first" + (f" ({more:,} more)" if more > 0 else "")
        return Pane(title, rows, columns=columns, wide=True)

    def totals(self) -> Pane:
        """Returns what XLA reports for the whole program."""
        record = self.recording
        rows = [
            Row([kind, size_in_words(size)]) for kind, size in kinds_of(record.memory)
        ]
        live = record.memory.live()
        rows.append(Row(["most in use at once", size_in_words(max(live, default=0))]))
        return Pane(
            "what XLA allocates, and what is in use at once",
            rows,
            kind="prose",
            below=True,
        )


def owner(name: str) -> str:
    """Returns the instruction's name of a buffer."""
    return name.partition("{")[0]


assert set(KINDS) == set(ROLES)
