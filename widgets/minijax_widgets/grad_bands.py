"""The bands of `see.grad`: rows of a recording, grouped so that a page can hold them.

A band is one equation of a small program. In a longer one it is a visit of a line of
the user's source, such as one layer of a network; in a very long one lines that were
visited often, and keep little, are one band together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from minijax_lab.explain.backward import bytes_in_words
from minijax_lab.explain.backward_rows import (
    GradArgument,
    GradProgram,
    GradRow,
    GradSum,
)
from minijax_lab.explain.recording import Source
from minijax_lab.explain.residuals import Residual
from minijax_widgets.graph_boxes import repeats

# Up to so many equations each has a band; above, each visit of a source line.
SINGLE = 14
# More bands than this are too many: those that keep little are put together.
MOST = 60
# A band that keeps less than this part of all bytes is folded then.
PART = 0.01
# Of a band of many equations, so many sums of cotangents are steps of their own.
MOST_SUMS = 3
# Programs inside are drawn as long as the picture has room.
INSIDE = 40


@dataclass
class Band:
    """A part of the picture that has one forward glyph and one cotangent.

    `kept` are the residuals made here, `opened` those that are read here on the way
    back. `gradients` are the arguments whose cotangents are complete here.
    """

    number: int
    key: str
    depth: int
    label: str
    source: str
    line: int | None
    rows: list[GradRow]
    program: GradProgram
    times: int
    kept: list[Residual] = field(default_factory=list)
    opened: list[Residual] = field(default_factory=list)
    sums: list[GradSum] = field(default_factory=list)
    gradients: list[GradArgument] = field(default_factory=list)
    runs: int = 1
    alike: int = 0  # so many equal layers are this band; 0: it is none of them
    visit: str = ""  # which one it is of bands with the same label: "2/12"
    note: str = ""  # of the program that begins with this band
    title: str = ""
    meetings: int = 0  # how many sums of cotangents the function makes here
    again: bool = False  # run again on the way back, by a checkpoint: nothing is kept

    @property
    def active(self) -> bool:
        """Whether a cotangent comes here."""
        return any(row.active for row in self.rows)

    @property
    def ground(self) -> str:
        """The colour behind the band: of the function's own every second is bare."""
        return "base" if self.number % 2 and not self.depth else "panel"

    @property
    def shown(self) -> list[Residual]:
        """The residuals that have a box: of equal layers those of the first one."""
        count = len(self.kept) // self.alike if self.alike else len(self.kept)
        return self.kept[:count]

    @property
    def last(self) -> GradRow:
        """The row whose result stands for the band."""
        return self.rows[-1]

    @property
    def cotangent(self) -> GradRow | None:
        """The row whose cotangent stands for the band: the last that has one."""
        return next((row for row in reversed(self.rows) if row.active), None)


def bands_of(program: GradProgram, sources: list[Source]) -> list[Band]:
    """The bands of a program, those of programs inside after their own."""
    found: list[Band] = []
    add_bands(program, sources, found, 0, "", 1)
    for number, band in enumerate(found):
        band.number = number
    return found


def add_bands(
    program: GradProgram,
    sources: list[Source],
    found: list[Band],
    depth: int,
    path: str,
    times: int,
    again: bool = False,
) -> None:
    """Adds the bands of one program to those found."""
    groups = visits = grouped(program)
    runs, alike = [1] * len(groups), [0] * len(groups)
    if len(visits) > MOST:
        groups, runs, alike = layers_joined(visits)
    if len(groups) > MOST:
        groups, runs = folded(program, visits)
        alike = [0] * len(groups)
    own: dict[int, Band] = {}
    before = len(found)
    bands: list[Band] = []
    for place, (rows, count, equal) in enumerate(zip(groups, runs, alike)):
        key = f"{path}{place}"
        band = Band(
            number=0,
            key=key,
            depth=depth,
            label=label_of(rows, sources, 1 if equal else count),
            source=source_of(rows, count, equal),
            line=rows[0].span.line if rows[0].span else None,
            rows=rows,
            program=program,
            times=times,
            runs=count,
            alike=equal,
            again=again,
        )
        found.append(band)
        bands.append(band)
        own.update((row.id, band) for row in rows)
        inside = [p for row in rows for p in row.programs]
        drawn = [p for p in inside if len(p.rows) > 1 or p.times > 1 or depth == 0]
        if inside and len(groups) + len(found) < INSIDE and depth < 2 and count == 1:
            for number, inner in enumerate(drawn):
                add_bands(
                    inner,
                    sources,
                    found,
                    depth + 1,
                    f"{key}.{number}:",
                    times * inner.times,
                    again or inner.title == "checkpoint",
                )
    if program.title and len(found) > before:
        found[before].title = program.title
        found[before].note = program.note
    if bands:
        count_visits(bands)
        place_facts(program, own, bands[0])


def layers_joined(
    groups: list[list[GradRow]],
) -> tuple[list[list[GradRow]], list[int], list[int]]:
    """Visits of lines, of equal layers the first and the last one, between them a group
    of all others; how many visits each group is, and how many equal layers."""
    numbers: dict[tuple, int] = {}
    kinds = [numbers.setdefault(kind_of(group), len(numbers)) for group in groups]
    found: list[list[GradRow]] = []
    runs: list[int] = []
    alike: list[int] = []

    def add(some: list[list[GradRow]]) -> None:
        found.extend(some)
        runs.extend([1] * len(some))
        alike.extend([0] * len(some))

    done = 0
    for start, turn, times in repeats(kinds):
        add(groups[done : start + turn])
        done = start + turn * (times - 1)
        found.append([row for group in groups[start + turn : done] for row in group])
        runs.append(turn * (times - 2))
        alike.append(times - 2)
    add(groups[done:])
    return found, runs, alike


def kind_of(group: list[GradRow]) -> tuple:
    """What equal layers have in common: expressions, types, how much is kept."""
    return tuple(
        (row_place(row), row.primitive, row.type, len(row.made), row.active)
        for row in group
    )


def source_of(rows: list[GradRow], runs: int, alike: int) -> str:
    """What stands under the label: the user's expression, or how many equations."""
    if alike:
        return f"the same {alike:,} times more"
    if runs > 1:
        return f"{runs:,} visits, joined"
    if len(rows) == 1:
        source = rows[0].source
        return "" if source == rows[0].text else source
    return f"{len(rows)} equations"


def count_visits(bands: list[Band]) -> None:
    """Says of lines that ran several times which time it was."""
    visits: dict[str, list[Band]] = {}
    for band in bands:
        if len(band.rows) > 1 and (band.runs == 1 or band.alike):
            visits.setdefault(f"{band.line}{band.label}", []).append(band)
    for same in visits.values():
        number, all_visits = 0, sum(band.alike or 1 for band in same)
        for band in same:
            number += band.alike or 1
            if all_visits > 1 and not band.alike:
                band.visit = f"{number:,}/{all_visits:,}"
                band.source = f"{number:,} of {all_visits:,}: {band.source}"


def place_facts(program: GradProgram, own: dict[int, Band], first: Band) -> None:
    """Puts residuals, sums and gradients where they belong."""
    for residual in program.residuals:
        home = first if residual.row is None else own[residual.row]
        if residual.origin not in ("argument", "outside"):
            home.kept.append(residual)
        for reader in residual.readers:
            band = own[reader]
            # Its readers come one after another: those of one band together.
            if not band.opened or band.opened[-1] is not residual:
                band.opened.append(residual)
    for found in program.sums:
        band = own[found.after]
        if not found.within:
            band.meetings += 1
        if len(band.sums) < MOST_SUMS or len(band.rows) == 1:
            band.sums.append(found)
    complete: dict[str, int] = {}
    for row in program.rows:
        for name in row.gives:
            # The backward pass goes up: the first row with a part is the last to add.
            complete.setdefault(name, row.id)
    for argument in program.arguments:
        number = complete.get(argument.name)
        if number is not None and not argument.zero:
            own[number].gradients.append(argument)


def grouped(program: GradProgram) -> list[list[GradRow]]:
    """The rows of each visit of a source line; of a small program, each by itself."""
    if len(program.rows) <= SINGLE:
        return [[row] for row in program.rows]
    groups: list[list[GradRow]] = []
    line: tuple[int, int] | None = None
    first: str = ""
    before: str = ""
    for row in program.rows:
        here = (row.span.source, row.span.line) if row.span else None
        # Within a line its expressions come in turn: when the first one comes again
        # after others, the line runs again.
        again = here == line and row_place(row) == first and before != first
        if not groups or here != line or again:
            groups.append([])
            line, first = here, row_place(row)
        groups[-1].append(row)
        before = row_place(row)
    return groups


def row_place(row: GradRow) -> str:
    """The expression that made a row, and where it stands."""
    if row.span is None:
        return ""
    return (
        f"{row.span.line}:{row.span.column}:{row.span.end_line}:{row.span.end_column}"
    )


def folded(
    program: GradProgram, groups: list[list[GradRow]]
) -> tuple[list[list[GradRow]], list[int]]:
    """Groups that keep little joined with their neighbours, and how many each joins."""
    kept: dict[int, int] = {}
    for residual in program.residuals:
        if residual.row is not None:
            kept[residual.row] = kept.get(residual.row, 0) + residual.bytes
    total = sum(kept.values())
    bytes_of = [sum(kept.get(row.id, 0) for row in group) for group in groups]
    open_ones = {
        place
        for place, count in sorted(enumerate(bytes_of), key=lambda item: -item[1])[
            : MOST // 3
        ]
        if total and count > PART * total
    }
    found: list[list[GradRow]] = []
    runs: list[int] = []
    joining = False
    for place, group in enumerate(groups):
        if place in open_ones:
            found.append(group)
            runs.append(1)
            joining = False
        elif joining:
            found[-1] = [*found[-1], *group]
            runs[-1] += 1
        else:
            found.append(group)
            runs.append(1)
            joining = True
    return found, runs


def label_of(rows: list[GradRow], sources: list[Source], runs: int) -> str:
    """What stands over a band: an equation, a source line, or how many lines."""
    if runs > 1:
        lines = {row.span.line for row in rows if row.span}
        if len(lines) == 1:
            return f"line {min(lines)} ran {runs:,} times: {len(rows):,} equations"
        return f"{len(lines)} lines, {len(rows):,} equations"
    if len(rows) == 1:
        return rows[0].text
    span = rows[0].span
    if span is None:
        return f"{len(rows)} equations"
    source = sources[span.source]
    index = span.line - source.first_line
    if not 0 <= index < len(source.lines):
        return f"line {span.line}: {len(rows)} equations"
    return source.lines[index].strip()


def met_told(found: GradSum) -> str:
    """Which cotangents meet, in a sentence."""
    if len(found.rows) == 1:
        return (
            f"each turn adds its cotangent of {found.name} to that of the turns before"
        )
    where = f" in {found.within}'s transpose" if found.within else ""
    return f"{len(found.rows)} cotangents of {found.name} add{where} (add_any)"


def hands_on(band: Band, home: Band) -> bool:
    """Whether a band's way back gives a part of a cotangent of another band."""
    wanted = {name for row in home.rows for name in row.results}
    return any(name in wanted for row in band.rows for name in row.gives)


def residual_told(residual: Residual, times: int) -> str:
    """A residual in a sentence: what it is, how large, why it is kept."""
    size = bytes_in_words(residual.bytes)
    if times > 1:
        size = f"{size}, {times:,} times"
    made = f", from {residual.made_by}" if residual.made_by else ""
    why = "; ".join(residual.reasons[:3])
    more = len(residual.reasons) - 3
    why += f"; and {more} more" if more > 0 else ""
    return f"{residual.name}: {residual.type}, {size}{made}. Kept because of {why}."
