"""What changed from one jaxpr to another: their equations, aligned.

Two equations are the same if they do the same to the same: primitive, parameters,
types, and operands that were found to be the same before. Names do not count, so a
program and its renaming have no difference.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from minijax.explain.jaxpr import JaxprRecording, record_jaxpr
from minijax.explain.recording import Recording, count_in_words


@dataclass
class Pair:
    """One row: an equation of the first program, of the second, or of both."""

    change: str  # "same", "del", "add"
    first: int | None
    second: int | None


@dataclass(kw_only=True)
class DifferenceRecording(Recording):
    """Two recorded jaxprs, and how their equations go together."""

    kind = "difference"

    first: JaxprRecording
    second: JaxprRecording
    pairs: list[Pair]


def record_difference(first: Any, second: Any) -> DifferenceRecording:
    """Records what changed from a jaxpr to another; TypeError for anything else."""
    one, two = record_jaxpr(first), record_jaxpr(second)
    pairs = aligned(one, two)
    added = sum(pair.change == "add" for pair in pairs)
    gone = sum(pair.change == "del" for pair in pairs)
    same = sum(pair.change == "same" for pair in pairs)
    if not added and not gone:
        finding = f"no difference in {count_in_words(same, 'equation')}"
    else:
        finding = f"{gone:,} gone, {added:,} new, {same:,} the same"
    call = f"{one.call} and {two.call}"
    changed = [i for i, pair in enumerate(pairs) if pair.change != "same"]
    return DifferenceRecording(
        call=call,
        headline=f"from {one.call} to {two.call}: {finding}",
        telling=changed[0] if changed else 0,
        first=one,
        second=two,
        pairs=pairs,
    )


def aligned(one: JaxprRecording, two: JaxprRecording) -> list[Pair]:
    """The rows of both programs in their order."""
    left, right = signatures(one), signatures(two)
    pairs: list[Pair] = []
    matcher = difflib.SequenceMatcher(a=left, b=right, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            pairs += [Pair("same", i, j) for i, j in zip(range(a, b), range(c, d))]
        else:
            pairs += [Pair("del", i, None) for i in range(a, b)]
            pairs += [Pair("add", None, j) for j in range(c, d)]
    return pairs


def signatures(record: JaxprRecording) -> list[str]:
    """What each equation does, with the operands by how they came to be.

    A variable is known by its type and by what made it, a few steps deep: enough to
    tell `mul x y` from `mul y y` without counting names.
    """
    made: dict[int, str] = {}
    position = 0
    for variable in record.variables:
        if variable.definition is None:
            made[variable.id] = f"{variable.role}{position}:{variable.type}"
            position += 1
    found: list[str] = []
    for equation in record.equations:
        operands = [
            made.get(o, "?") if isinstance(o, int) else str(o)
            for o in equation.operands
        ]
        types = [record.variables[r].type for r in equation.results]
        params = sorted(equation.parameters.items())
        text = f"{equation.primitive}{params}({','.join(operands)})->{types}"
        found.append(text)
        short = f"{equation.primitive}({','.join(o[:24] for o in operands)})"
        for index, result in enumerate(equation.results):
            made[result] = f"{short}.{index}:{record.variables[result].type}"
    return found
