"""What `see.vmap` draws of a recording: the lines of its picture, long ones folded.

A line is an equation of one example with the batched equation that does its work, or a
batched equation that a rule inserted. Where a program is long, what repeats is drawn
once, and equations that only pass the axis on stand together in one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax_lab.explain.batch_facts import BatchedEquation, BatchRecording, Row
from minijax_lab.explain.recording import count_in_words

# Above this many lines, repetitions and passing equations are folded.
MANY = 24
# No picture has more lines than this.
MOST = 60
# Of one row's inserted equations.
MOST_INSERTED = 5
LONGEST_PERIOD = 60


@dataclass
class Line:
    """A line of the picture.

    `kind` is "work" (an equation and its batched one), "inserted", "results" or "fold".
    A fold says in `text` what it holds; `rows` are the ids of all rows of the line.
    """

    kind: str
    rows: list[int]
    row: Row | None = None
    eqn: BatchedEquation | None = None
    text: str = ""
    why: str = ""
    depth: int = 0
    program: str = ""
    moves: int = 0
    equations: list[int] = field(default_factory=list)


Unit = list[Row]  # a row, and those of the programs inside of it


def lines_of(record: BatchRecording) -> list[Line]:
    """The lines of a recording's picture."""
    units = units_of(record.rows)
    lines = [line for unit in units for line in unit_lines(unit)]
    if len(lines) <= MANY:
        return lines
    lines = []
    start = 0
    while start < len(units):
        period, times = repetition(units, start)
        passed = 0
        if times < 3:
            period, times = 1, 1
            passed = passing(units, start)
        if passed > 2:
            lines.append(passing_line(units[start : start + passed]))
            start += passed
            continue
        for unit in units[start : start + period]:
            lines += unit_lines(unit)
        if times > 1:
            rest = units[start + period : start + period * times]
            lines.append(repeated_line(rest, times - 1))
        start += period * times
        if len(lines) > MOST and start < len(units):
            rest = units[start:]
            lines.append(rest_line(rest))
            break
    return lines


def units_of(rows: Sequence[Row]) -> list[Unit]:
    """The rows in groups: each row outside of programs, with what is inside of it."""
    units: list[Unit] = []
    for row in rows:
        if row.parent is None:
            units.append([row])
        else:
            units[-1].append(row)
    return units


def unit_lines(unit: Unit) -> list[Line]:
    """The lines of a row and of the programs inside of it."""
    lines: list[Line] = []
    for row in unit:
        inserted = row.inserted
        shown = [] if row.grid else inserted[:MOST_INSERTED]
        made = []
        for eqn in shown:
            made.append(
                Line(
                    "inserted",
                    [row.id],
                    row,
                    eqn,
                    why=eqn.why,
                    depth=row.depth,
                    program=row.program,
                    moves=int(eqn.moves),
                    equations=[eqn.id],
                )
            )
        rest = inserted[len(shown) :]
        if rest and not row.grid:
            text = f"{count_in_words(len(rest), 'more equation')} of its rule"
            made.append(
                Line(
                    "fold",
                    [row.id],
                    text=text,
                    why="what they are for stands in the table below",
                    depth=row.depth,
                    program=row.program,
                    moves=sum(eqn.moves for eqn in rest),
                    equations=[eqn.id for eqn in rest],
                )
            )
        if row.kind == "equation":
            work = next((e for e in row.batched if not e.inserted), None)
            if row.grid:
                work = row.batched[-1]
            line = Line(
                "work",
                [row.id],
                row,
                work,
                why=row.why,
                depth=row.depth,
                program=row.program,
                equations=[e.id for e in row.batched if row.grid or not e.inserted],
            )
            # What is moved behind the work, such as a result, stands behind it.
            at = len(made)
            if work is not None and not row.grid:
                at = sum(1 for one in made if one.equations[0] < work.id)
            made.insert(at, line)
        lines += made
    return lines


def signature(unit: Unit) -> tuple[Any, ...]:
    """What is alike in units that repeat: all but the names."""
    return tuple(
        (
            row.kind,
            row.primitive,
            row.span.line if row.span else None,
            row.depth,
            tuple(
                (eqn.primitive, eqn.inserted, eqn.before, eqn.after)
                + tuple((value.batch, len(value.shape)) for value in eqn.results)
                for eqn in row.batched
            ),
        )
        for row in unit
    )


def repetition(units: Sequence[Unit], start: int) -> tuple[int, int]:
    """(how many units repeat from `start` on, how often): the longest stretch."""
    window = units[start:]
    known: dict[int, tuple[Any, ...]] = {}

    def of(place: int) -> tuple[Any, ...]:
        if place not in known:
            known[place] = signature(window[place])
        return known[place]

    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, len(window) // 2) + 1):
        times = 1
        while (times + 1) * period <= len(window) and all(
            of(times * period + place) == of(place) for place in range(period)
        ):
            times += 1
        if times > 1 and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def passing(units: Sequence[Unit], start: int) -> int:
    """How many units from `start` on only pass the axis on."""
    count = 0
    for unit in units[start:]:
        if any(row.inserted or row.grid or row.depth for row in unit):
            break
        count += 1
    return count


def totals(units: Sequence[Unit]) -> tuple[int, int, int, list[int], list[int]]:
    """(equations, batched ones, moves, ids of the rows, ids of batched equations)."""
    rows = [row for unit in units for row in unit]
    return (
        sum(row.kind == "equation" for row in rows),
        sum(len(row.batched) for row in rows),
        sum(row.moves for row in rows),
        [row.id for row in rows],
        [eqn.id for row in rows for eqn in row.batched],
    )


def moved_in_words(moves: int) -> str:
    """How often the axis moved, as a clause."""
    if not moves:
        return "the axis never moves"
    return "the axis moves " + {1: "once", 2: "twice"}.get(moves, f"{moves:,} times")


def repeated_line(units: Sequence[Unit], times: int) -> Line:
    """The line for units that are like those before."""
    one, many, moves, rows, equations = totals(units)
    often = {1: "once more", 2: "twice more"}.get(times, f"{times:,} times more")
    text = f"the same {often}: {count_in_words(one, 'equation')}, {many:,} batched"
    why = moved_in_words(moves)
    return Line("fold", rows, text=text, why=why, moves=moves, equations=equations)


def passing_line(units: Sequence[Unit]) -> Line:
    """The line for equations that only pass the axis on."""
    one, many, _, rows, equations = totals(units)
    names = list(dict.fromkeys(unit[0].primitive for unit in units))
    told = ", ".join([*names[:4], "..."] if len(names) > 5 else names)
    text = f"{count_in_words(one, 'equation')}, {many:,} batched: {told}"
    lines = sorted({unit[0].span.line for unit in units if unit[0].span})
    if lines:
        of = f"line {lines[0]}"
        if len(lines) > 1:
            of = f"lines {lines[0]} to {lines[-1]}"
        text = f"{of}: {text}"
    return Line(
        "fold", rows, text=text, why="the axis only passes", equations=equations
    )


def rest_line(units: Sequence[Unit]) -> Line:
    """The line for what a picture has no room for."""
    one, many, moves, rows, equations = totals(units)
    text = f"{count_in_words(one, 'more equation')}, {many:,} batched"
    why = f"{moved_in_words(moves)}; the table below has them all"
    return Line("fold", rows, text=text, why=why, moves=moves, equations=equations)
