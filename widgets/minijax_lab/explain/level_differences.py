"""What an edit of a function changes at every level: source, jaxpr, StableHLO, HLO.

A line that is inserted gives new names to all that follow (`%12`, `add.3`, a jaxpr's
letters). So lines that differ in names alone are equal, as long as each name stands for
one name of the other text.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import NamedTuple

from minijax_lab.explain.hlo_text import Module
from minijax_lab.explain.stages import StagesRecording


@dataclass
class LevelDifference:
    """The difference of two programs at one level.

    `lines` are those of both texts, each behind " " (both), "-" (before only) or "+"
    (after only).
    """

    level: str
    lines: list[str]

    @property
    def changed(self) -> int:
        """How many lines are in one of the texts only."""
        return sum(not line.startswith(" ") for line in self.lines)


LEVELS = ("source", "jaxpr", "stablehlo", "hlo")


class NamedLine(NamedTuple):
    """A line, the same without names, and its names: whether it defines each."""

    text: str
    key: str
    names: list[tuple[str, bool]]


def differences(
    before: StagesRecording, after: StagesRecording
) -> list[LevelDifference]:
    """What an edit changed at every level.

    In the compiled program the lines are instructions, computation by computation.
    """
    return [
        LevelDifference(level, compared(named(before, level), named(after, level)))
        for level in LEVELS
    ]


def compared(before: list[NamedLine], after: list[NamedLine]) -> list[str]:
    """The lines of two texts, aligned without their names."""
    old_keys, new_keys = ([line.key for line in text] for text in (before, after))
    lines = []
    stands_for: dict[str, str] = {}
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            lines += [f"-{line.text}" for line in before[a:b]]
            # What another function of the text called so stands for nothing here.
            for name, defined in (each for line in before[a:b] for each in line.names):
                if defined:
                    stands_for.pop(name, None)
            lines += [f"+{line.text}" for line in after[c:d]]
            continue
        for old, new in zip(before[a:b], after[c:d]):
            if renamed(old, new, stands_for):
                lines.append(f" {new.text}")
            else:
                lines += [f"-{old.text}", f"+{new.text}"]
    return lines


def renamed(old: NamedLine, new: NamedLine, stands_for: dict[str, str]) -> bool:
    """Whether two lines are equal under a renaming; what they define is added to it."""
    same = True
    for (name, defined), (other, _) in zip(old.names, new.names):
        if not defined and stands_for.setdefault(name, other) != other:
            same = False
    for (name, defined), (other, _) in zip(old.names, new.names):
        if defined:
            stands_for[name] = other
    return same


def named(recording: StagesRecording, level: str) -> list[NamedLine]:
    """The lines of a level with their names."""
    if level == "source":
        texts = [line for source in recording.sources for line in source.lines]
        return [NamedLine(text, text, []) for text in texts]
    if level == "jaxpr":
        return [
            NamedLine(
                "".join(piece.text for piece in line.pieces),
                "".join(
                    "_" if piece.variable is not None else piece.text
                    for piece in line.pieces
                ),
                [(p.text, p.defines) for p in line.pieces if p.variable is not None],
            )
            for line in recording.compiled.jaxpr.lines
        ]
    if level == "stablehlo":
        # A program is named after its function: that is no difference.
        texts = [line.text for line in recording.lowering.lines]
        lines = [with_names(text, SSA, None) for text in texts]
        return [line._replace(key=MODULE.sub("module @_", line.key)) for line in lines]
    module = recording.compiled.program.module
    known = {each.name for each in module.instructions}
    known |= {each.name for each in module.computations}
    return [with_names(line, WORD, known) for line in hlo_lines(module)]


def hlo_lines(module: Module) -> list[str]:
    """A compiled program with a line for each instruction."""
    lines = []
    for computation in module.computations:
        lines.append(f"{'ENTRY ' if computation.entry else ''}{computation.name} {{")
        for each in module.body(computation.id):
            lines.append(f"  {'ROOT ' if each.root else ''}{module.line(each)}")
        lines.append("}")
    return lines


MODULE = re.compile(r"^module @\w+")
SSA = re.compile(r"%\w+(?:[:#]\d+)?")
WORD = re.compile(r"[\w.\-]+")


def with_names(
    line: str, pattern: re.Pattern[str], known: set[str] | None
) -> NamedLine:
    """A line of a compiler's text; a name is defined if "=", ":" or "{" follows."""
    names = []

    def hidden(found: re.Match[str]) -> str:
        if known is not None and found[0] not in known:
            return found[0]
        behind = line[found.end() : found.end() + 2]
        names.append((found[0].split(":")[0], behind in (" =", ": ", " {")))
        return "_"

    key = pattern.sub(hidden, line)
    return NamedLine(line, key, names)
