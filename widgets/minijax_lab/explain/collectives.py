"""The recording behind `see.collectives`: what devices exchange, and one way to do it.

Groups and bytes are the compiled program's. The messages of a ring are not: they are
one algorithm, worked out here for the picture.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.placement import MeshFacts
from minijax_lab.explain.recording import Recording, count_in_words
from minijax_lab.explain.spmd import (
    Collective,
    collectives_of,
    compiled_for,
    program_of,
)
from minijax_lab.explain.tree import size_in_words


@dataclass
class Message:
    """A part that one member of a group sends to another in a round.

    Members and parts count from 0 within the group. `whole` says that the part is
    finished when it arrives: the full sum, or data that needs none.
    """

    round: int
    sender: int
    receiver: int
    part: int
    whole: bool


@dataclass(kw_only=True)
class CollectivesRecording(Recording):
    """The collectives of a program."""

    kind = "collectives"

    mesh: MeshFacts
    collectives: list[Collective]
    target: str = ""


def record_collectives(
    function: Any,
    args: tuple,
    kwargs: dict[str, Any],
    options: dict[str, Any],
    target: str | None = None,
) -> CollectivesRecording:
    """Records the collectives of a function's compiled program."""
    program = program_of(function, args, kwargs, options, target)
    found = collectives_of(program)
    biggest = max(range(len(found)), key=lambda n: found[n].total, default=0)
    return CollectivesRecording(
        call=program.name,
        headline=headline(program.name + compiled_for(target), found, program.mesh),
        telling=biggest,
        sources=program.sources,
        mesh=program.mesh,
        collectives=found,
        target=target or "",
    )


def headline(name: str, found: list[Collective], mesh: MeshFacts) -> str:
    """One sentence: how many of each kind, over which axes, how many bytes."""
    if not found:
        return f"{name} on {mesh.text}: no collectives, no device needs another"
    if len(found) == 1:
        one = found[0]
        told = f"{name}: 1 {one.opcode}{over(one)}, groups of {one.size}, "
        told += f"{one.bytes:,} B given and {one.sent:,} B sent by each device"
        if one.times != 1:
            told += (
                f", {one.times:,} times" if one.times else " in each round of a loop"
            )
    else:
        kinds = Counter(each.opcode for each in found)
        told = f"{name}: " + ", ".join(count_in_words(n, k) for k, n in kinds.items())
    total = sum(each.total for each in found)
    how = "in rings" if any(in_a_ring(each) for each in found) else "straight"
    return f"{told}; {how} {size_in_words(total)} would be sent in all"


def in_a_ring(collective: Collective) -> bool:
    """Whether each member sends to the next alone; else straight to who gets it."""
    return collective.opcode not in ("all-to-all", "collective-permute")


def over(collective: Collective) -> str:
    """Over which axes: ` over x and y`."""
    axes = " and ".join(collective.axes)
    return f" over {axes}" if axes else ""


def ring(opcode: str, members: int) -> list[Message]:
    """The messages of one algorithm for a collective in a group: a ring.

    Each member sends to the next one. Of an all-reduce, each part first goes around
    once and is added to on its way (n-1 rounds), then its sum goes around once more.
    """
    n = members
    messages = []
    if opcode == "all-reduce":
        for number in range(1, 2 * n - 1):
            for part in range(n):
                sender = (part + number - 1) % n
                whole = number >= n - 1
                messages.append(Message(number, sender, (sender + 1) % n, part, whole))
    elif opcode == "reduce-scatter":
        for number in range(1, n):
            for part in range(n):
                # It ends at the member whose part it is.
                sender = (part + number) % n
                whole = number == n - 1
                messages.append(Message(number, sender, (sender + 1) % n, part, whole))
    elif opcode == "all-gather":
        for number in range(1, n):
            for part in range(n):
                sender = (part + number - 1) % n
                messages.append(Message(number, sender, (sender + 1) % n, part, True))
    elif opcode == "all-to-all":
        for number in range(1, n):
            for sender in range(n):
                receiver = (sender + number) % n
                messages.append(Message(number, sender, receiver, receiver, True))
    return messages


def rounds(opcode: str, members: int) -> int:
    """How many rounds the ring of a collective has."""
    if opcode == "collective-permute":
        return 1
    return max((message.round for message in ring(opcode, members)), default=0)


def has_ring(opcode: str) -> bool:
    """Whether a picture of one way to do it is known here."""
    return opcode in (
        "all-reduce",
        "reduce-scatter",
        "all-gather",
        "all-to-all",
        "collective-permute",
    )


def round_told(collective: Collective, number: int) -> str:
    """A sentence about a round."""
    n = collective.size
    part = collective.bytes // max(1, n)
    if collective.opcode == "collective-permute":
        return f"each device sends its {collective.bytes:,} B to another"
    if collective.opcode == "all-gather":
        return (
            f"each device passes on {collective.bytes:,} B; now each holds "
            f"{number + 1} of {n} parts"
        )
    if collective.opcode == "all-to-all":
        return f"each device sends {part:,} B to the one {number} further"
    if number < n:
        return (
            f"each device sends {part:,} B to the next, which adds its own: a sum of "
            f"{number + 1} of {n}"
        )
    return (
        f"each device passes on a finished sum of {part:,} B; now each holds "
        f"{number - n + 2} of {n}"
    )
