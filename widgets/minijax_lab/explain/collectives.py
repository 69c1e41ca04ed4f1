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


@dataclass
class Way:
    """One algorithm for a collective: rounds, and what the busiest device sends."""

    name: str
    rounds: int
    sent: int


def ways(collective: Collective) -> list[Way]:
    """Algorithms for a collective; the first is the one whose messages are drawn.

    Bytes are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective
    Communication Operations in MPICH" (2005). Those that double or halve the distance
    in each round are told for groups of 2, 4, 8, ... whose parts are equal.
    """
    opcode, n, sent = collective.opcode, collective.size, collective.sent
    first = "in a ring" if in_a_ring(collective) else "straight"
    found = [Way(first, rounds(opcode, n), sent)]
    deep = (n - 1).bit_length()
    whole = collective.bytes // collective.itemsize % n == 0
    if n < 3 or not sent or not in_a_ring(collective):
        return found
    if opcode == "all-reduce":
        if 2**deep == n and whole:
            found.append(Way("by halving and doubling", 2 * deep, sent))
        if 2**deep == n:
            found.append(Way("by doubling", deep, deep * collective.bytes))
        found.append(Way("in a tree", 2 * deep, deep * collective.bytes))
    elif 2**deep == n and (whole or opcode == "all-gather"):
        how = "by doubling" if opcode == "all-gather" else "by halving"
        found.append(Way(how, deep, sent))
    return found


def headline(name: str, found: list[Collective], mesh: MeshFacts) -> str:
    """One sentence: what each device sends and how, then the collectives."""
    if not found:
        return f"{name} on {mesh.text}: no collectives, no device needs another"
    sent = size_in_words(sum(each.sent * (each.times or 1) for each in found))
    unknown = any(each.times is None for each in found)
    turn = " in each turn of a loop of unknown length" if unknown else ""
    if len(found) > 1:
        kinds = Counter(each.opcode for each in found)
        told = ", ".join(count_in_words(n, kind) for kind, n in kinds.items())
        straight = any(not in_a_ring(each) for each in found)
        how = " in rings" if any(in_a_ring(each) for each in found) else ""
        how += (" and straight" if how else " straight") if straight else ""
        return f"{name}: each device sends up to {sent}{how}{turn}: {told}"
    one = found[0]
    first, *others = ways(one)
    told = f"{name}: {who_sends(one, mesh)} {sent} {first.name}"
    if first.rounds > 1:
        told += f", {first.rounds} rounds"
    best = min(others, key=lambda way: way.rounds, default=None)
    if best is not None and one.times == 1:
        told += f" ({size_in_words(best.sent)} {best.name}, {best.rounds} rounds)"
    told += f"{turn}: {one.opcode}{over(one)}, "
    if one.opcode == "collective-permute":
        told += count_in_words(len(one.groups), "message")
    else:
        told += f"groups of {one.size}"
    if one.times and one.times > 1:
        told += f", {one.times:,} times"
    return told


def who_sends(collective: Collective, mesh: MeshFacts) -> str:
    """ "each device sends", "up to" behind it where some send less or nothing."""
    most = collective.sent * (collective.times or 1) * len(mesh.devices)
    return "each device sends" + (" up to" if collective.total < most else "")


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
        return f"each sender sends its {collective.bytes:,} B to another device"
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
