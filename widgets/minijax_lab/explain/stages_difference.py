"""The recording behind `see.stages(f, *args, beside=g)`: what an edit changes.

At each level the lines that are in one program only, each with the user's line that it
comes from, so that a line of the source leads to all that its edit changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from minijax_lab.explain.level_differences import LEVELS, differences
from minijax_lab.explain.recording import Recording, count_in_words
from minijax_lab.explain.stages import StagesRecording


@dataclass
class Line:
    """A line of a level: " " in both, "-" before only, "+" after only.

    `group` is the number of the edit, or of the user's line, that it belongs to; None
    for what no line of the user's made.
    """

    sign: str
    text: str
    group: int | None


@dataclass
class Group:
    """Lines of the source that belong together: an edit, or a line that stayed.

    Lines are given by their numbers in the file, before and after.
    """

    before: list[int]
    after: list[int]
    edited: bool


@dataclass(kw_only=True)
class StagesDifferenceRecording(Recording):
    """Two functions at every level. Its steps are groups under which lines changed."""

    kind = "stages_difference"

    before: StagesRecording
    after: StagesRecording
    levels: list[list[Line]]  # as `LEVELS`
    groups: list[Group]
    steps: list[int] = field(default_factory=list)  # groups


def stages_difference(
    before: StagesRecording, after: StagesRecording
) -> StagesDifferenceRecording:
    """The difference of two recordings."""
    told = {each.level: each.lines for each in differences(before, after)}
    groups, group_of = grouped(before, after, told["source"])
    levels = []
    for level in LEVELS:
        owners = owners_of(before, level), owners_of(after, level)
        lines = []
        for text, i, j in places(told[level]):
            side = 0 if text[0] == "-" else 1
            place = owners[side][i if side == 0 else j]
            group = None if place is None else group_of.get((side, *place))
            lines.append(Line(text[0], text[1:], group))
        levels.append(lines)
    counts: dict[int, int] = {}
    for lines in levels:
        for line in lines:
            if line.sign != " " and line.group is not None:
                counts[line.group] = counts.get(line.group, 0) + 1
    steps = sorted(counts)
    most = max(steps, key=lambda n: (groups[n].edited, counts[n]), default=0)
    changed = [sum(line.sign != " " for line in lines) for lines in levels]
    name = after.compiled.jaxpr.name
    first = before.compiled.jaxpr.name
    names = name if name == first else f"{first} and {name}"
    said = ["source", "jaxpr", "StableHLO"]
    parts = [
        f"{count_in_words(n, 'line')} of {level}" for n, level in zip(changed, said)
    ]
    headline = f"difference of {names}: {', '.join(parts)}"
    if not any(changed):
        headline = f"difference of {names}: none at any level"
    return StagesDifferenceRecording(
        call=after.call,
        headline=headline,
        telling=steps.index(most) if steps else 0,
        sources=after.sources,
        before=before,
        after=after,
        levels=levels,
        groups=groups,
        steps=steps,
    )


def places(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Each line of a difference with its place in the old and in the new text."""
    i = j = 0
    for line in lines:
        yield line, i, j
        i += line[0] != "+"
        j += line[0] != "-"


Place = tuple[int, int]  # a source and a line in it


def owners_of(record: StagesRecording, level: str) -> list[Place | None]:
    """The user's line behind each line of a level."""
    if level == "source":
        return [
            (source.id, source.first_line + offset)
            for source in record.sources
            for offset in range(len(source.lines))
        ]
    home: dict[int, Place] = {}
    for stage in record.stages:
        if stage.span is not None:
            for equation in stage.equations:
                home[equation] = (stage.span.source, stage.span.line)
    equations: list[int | None]
    if level == "jaxpr":
        equations = [line.equation for line in record.compiled.jaxpr.lines]
    elif level == "stablehlo":
        equations = [line.equation for line in record.lowering.lines]
    else:
        # As `level_differences.hlo_lines`: a head and an end around each computation.
        module = record.compiled.program.module
        equations = []
        for computation in module.computations:
            inside: list[int | None] = []
            for number in computation.instructions:
                behind = record.compiled.equations_of(number)
                inside.append(behind[0] if behind else None)
            equations += [None, *inside, None]
    return [None if each is None else home.get(each) for each in equations]


def grouped(
    before: StagesRecording, after: StagesRecording, lines: list[str]
) -> tuple[list[Group], dict[tuple[int, int, int], int]]:
    """The groups, and the group of each line of the source: by side, source, line."""
    old, new = owners_of(before, "source"), owners_of(after, "source")
    groups: list[Group] = []
    group_of: dict[tuple[int, int, int], int] = {}

    def add(sides: dict[int, list[Place]], edited: bool) -> None:
        for side, found in sides.items():
            group_of.update({(side, *place): len(groups) for place in found})
        one, two = ([place[1] for place in sides.get(side, [])] for side in (0, 1))
        groups.append(Group(one, two, edited))

    for same, run in itertools.groupby(places(lines), lambda each: each[0][0] == " "):
        each = list(run)
        gone = [old[i] for line, i, _ in each if line[0] != "+"]
        come = [new[j] for line, _, j in each if line[0] != "-"]
        pairs = [({0: [a]}, {1: [b]}) for a, b in zip(gone, come) if a and b]
        if len(gone) == len(come) == len(pairs):  # line for line
            for one, other in pairs:
                add(one | other, not same)
        else:
            sides = {0: [p for p in gone if p], 1: [p for p in come if p]}
            add(sides, True)
    return groups, group_of
