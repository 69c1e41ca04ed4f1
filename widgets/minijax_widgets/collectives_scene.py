"""How a collective is drawn: its groups on the mesh, and a ring's parts that move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from minijax_lab.explain.collectives import Message, over
from minijax_lab.explain.placement import MeshFacts
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.spmd import Collective
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.glyph import Drawn, rect, text_width, words
from minijax_widgets.placement_scene import (
    MeshPicture,
    Sizes,
    dress,
    lay_mesh,
    name_axes,
    names_of,
)
from minijax_widgets.scene import Point, Scene
from minijax_widgets.view import cut

# A ring of more members is told in the table and not drawn.
MOST_MEMBERS = 8
# Moving parts are drawn for meshes of up to so many devices.
MOST_MOVING = 64
# The strip of a device in which its parts lie.
STRIP = 22.0


def draw_collective(
    scene: Scene,
    mesh: MeshFacts,
    each: Collective,
    y: float,
    sizes: Sizes,
    key: str,
    start: int,
    count: int,
    messages: Sequence[Message],
) -> tuple[float, float]:
    """Draws a collective; returns the lower and the right end.

    It is before its first round in the step `start`, and has `count` rounds.
    """
    scene.text(6, y + 15, f"{each.opcode}{over(each)}", size=16, weight=700, key=key)
    x = 6 + text_width(f"{each.opcode}{over(each)}", 16) + 20
    many = count_in_words(len(each.groups), "group")
    if each.opcode == "collective-permute":
        many = count_in_words(len(each.groups), "message")
    said = f"{many}, {each.bytes:,} B given by each device"
    if each.opcode != "collective-permute":
        said = f"{many} of {each.size}, {each.bytes:,} B given by each device"
    if not sizes.beside:
        x, y = 6.0, y + 20
    scene.text(x, y + 15, said, role="meshy", size=14, weight=600)
    y += 20
    if each.where:
        letters = int(sizes.width / text_width("m", 12, mono=True)) - 2
        scene.text(
            6, y + 14, cut(f"{each.where}:  {each.line}", letters), size=12, mono=True
        )
        y += 20
    if count and each.opcode != "collective-permute":
        told = "one way to do it: a ring, each sends to the next"
        scene.note(6, y + 14, told)
        y += 18
    gap = (58.0, 34.0) if sizes.beside else (40.0, 30.0)
    room = (sizes.width - 70) / mesh.axes[-1].size - gap[0]
    w = min(sizes.device[0] + 8, max(room, 60)) if len(mesh.axes) > 1 else 90.0
    if sizes.beside:
        w = max(w, min(150.0, room))
    h = sizes.device[1] + STRIP - 10
    high = 30 + 14 * (len(mesh.axes) > 2)
    laid = lay_mesh(mesh, 60, y + high, (w, h), gap, sizes.width - 70)
    if len(mesh.axes) == 1:
        laid = replace(laid, corners=around(laid.corners))
    groups = [group for group in each.groups if max(group) < len(laid.corners)]
    rings = [ring_order(group, mesh) for group in groups]
    if each.opcode == "collective-permute":
        rings = groups
    draw_links(scene, mesh, laid, each, rings, key)
    draw_devices(scene, mesh, laid, each, groups, key)
    if count and len(mesh.devices) <= MOST_MOVING:
        if each.opcode == "collective-permute":
            move_whole(scene, laid, each, start)
        else:
            for group, members in zip(groups, rings, strict=True):
                slots = [group.index(member) for member in members]
                draw_parts(scene, laid, members, slots, each.opcode, messages, start)
    return laid.low + 24, laid.right + 16


def around(corners: list[Point]) -> list[Point]:
    """Returns the places of devices in two lines, or two columns, as a ring: neighbours
    stand beside each other, the last one beside the first; others as they are."""
    lines = sorted({y for _, y in corners})
    columns = sorted({x for x, _ in corners})
    if len(corners) != len(lines) * len(columns):
        return corners
    if len(lines) == 2:
        return [(x, lines[0]) for x in columns] + [(x, lines[1]) for x in columns[::-1]]
    if len(columns) == 2:
        down = [(columns[0], y) for y in lines]
        return down + [(columns[1], y) for y in lines[::-1]]
    return corners


def ring_order(group: Sequence[int], mesh: MeshFacts) -> list[int]:
    """Returns a group in an order in which neighbours of the mesh follow each other.

    Over two axes of which one has two members, the ring goes down one side and up the
    other; over others it goes to and fro.
    """
    places = [list(mesh.place(member).values())[::-1] for member in group]
    used = [d for d in range(len(mesh.axes)) if len({at[d] for at in places}) > 1]
    if len(used) != 2:
        return list(group)
    first, second = used
    lines: dict[int, list[tuple[int, int]]] = {}
    across, down = (first, second)
    if len({at[second] for at in places}) == 2:
        across, down = second, first
    for member, at in zip(group, places, strict=True):
        lines.setdefault(at[across], []).append((at[down], member))
    found: list[int] = []
    for number, line in enumerate(sorted(lines)):
        members = [member for _, member in sorted(lines[line])]
        found += members[::-1] if number % 2 else members
    return found


def draw_devices(
    scene: Scene,
    mesh: MeshFacts,
    laid: MeshPicture,
    each: Collective,
    groups: Sequence[Sequence[int]],
    key: str,
) -> None:
    """Draws the devices; one lights its whole group."""
    w, h = laid.device
    group_of = {member: n for n, group in enumerate(groups) for member in group}
    for position, (x, y) in enumerate(laid.corners):
        number = group_of.get(position)
        parts = dress(mesh, mesh.place(position), w, h)
        ground = rect(2, h - STRIP, w - 4, STRIP - 2, "base", round_by=2)
        parts.append(Drawn("rect", ground.has | {"fill-opacity": "0.85"}))
        name = f"d{mesh.devices[position]}"
        wide = text_width(name, 13) + 2
        label = rect((w - wide) / 2, 5, wide, 17, "base", round_by=3)
        parts.append(Drawn("rect", label.has | {"fill-opacity": "0.8"}))
        parts.append(words(w / 2, 18, name, "text", 13, "middle", 700))
        told = f"d{mesh.devices[position]} takes no part"
        keys = []
        if number is not None:
            others = names_of(mesh, groups[number], ", ", most=16)
            told = f"{name} gives {each.bytes:,} B; its group: {others}"
            keys = [f"{key}g{number}"]
        scene.drawn(x, y, w, h, parts, key=keys, says=told)
    name_axes(scene, mesh, laid)


def draw_links(
    scene: Scene,
    mesh: MeshFacts,
    laid: MeshPicture,
    each: Collective,
    groups: Sequence[Sequence[int]],
    key: str,
) -> None:
    """Draws an arrow from each member of a group to the next."""
    amount = size_in_words(each.sent)
    for number, group in enumerate(groups):
        n = len(group)
        pairs = [(group[k], group[(k + 1) % n]) for k in range(n)]
        if each.opcode == "collective-permute":
            pairs = [(group[0], group[-1])]
        for a, b in pairs:
            if a == b:
                continue
            start, end, via = route(laid, a, b)
            level = abs(start[1] - end[1]) < 1 and not via
            told = f"d{mesh.devices[a]} sends d{mesh.devices[b]} {each.sent:,} B"
            scene.arrow(
                start,
                end,
                via=via,
                role="meshy",
                thick=2.2,
                text=amount if level and a < b else "",
                key=[key, f"{key}g{number}"],
                says=told,
            )


def route(laid: MeshPicture, a: int, b: int) -> tuple[Point, Point, list[Point]]:
    """Returns where an arrow between devices begins and ends, and its corners.

    Between neighbours it is straight, and two of opposite directions lie apart;
    between others it goes around what stands between them.
    """
    w, h = laid.device
    (ax, ay), (bx, by) = laid.middle(a), laid.middle(b)
    dx, dy = bx - ax, by - ay
    if abs(dy) < 1:
        side = 1 if dx > 0 else -1
        if abs(dx) < 2 * w:
            low, out = -7 * side, side * (w / 2 + 3)
            return (ax + out, ay + low), (bx - out, by + low), []
        under = ay + h / 2 + 13
        return (ax, ay + h / 2 + 2), (bx, by + h / 2 + 3), [(ax, under), (bx, under)]
    if abs(dx) < 1:
        side = 1 if dy > 0 else -1
        if abs(dy) < 2 * h + 20:
            away, out = 9 * side, side * (h / 2 + 3)
            return (ax + away, ay + out), (bx + away, by - out), []
        beside = ax + w / 2 + 13
        return (ax + w / 2 + 2, ay), (bx + w / 2 + 3, by), [(beside, ay), (beside, by)]
    far = math.hypot(dx, dy)
    # To where the line between the middles leaves a box.
    reach = min(
        w / 2 / abs(dx) if dx else math.inf, h / 2 / abs(dy) if dy else math.inf
    )
    edge = reach + 4 / far
    return (ax + dx * edge, ay + dy * edge), (bx - dx * edge, by - dy * edge), []


def cell(laid: MeshPicture, position: int, part: int, parts: int) -> tuple:
    """Returns a part's place in a device: x, y, width, height."""
    w, h = laid.device
    x, y = laid.corners[position]
    wide = (w - 8) / parts
    return x + 4 + part * wide, y + h - STRIP + 2, wide - 2, STRIP - 6


def draw_parts(
    scene: Scene,
    laid: MeshPicture,
    group: Sequence[int],
    slots: Sequence[int],
    opcode: str,
    messages: Sequence[Message],
    start: int,
) -> None:
    """Draws the parts in a group's devices, and those that move.

    `group` is in the order of the ring, `slots` are its members' places in XLA's order.
    A part is faint until the device holds it whole: the full sum, or the data itself.
    """
    n = len(group)
    there: dict[tuple[int, int], int] = {}
    if opcode in ("all-gather", "all-to-all"):
        there = {(k, k): start for k in range(n)}
    tracks: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for message in messages:
        name, slot = (message.part, 0), message.part
        if opcode == "all-to-all":
            name, slot = (message.sender, message.receiver), message.sender
        if message.whole:
            there.setdefault((message.receiver, slot), start + message.round)
        tracks.setdefault(name, []).append(
            (start + message.round, message.receiver, slot)
        )
    for k in range(n):
        for part in range(n):
            x, y, w, h = cell(laid, group[k], slots[part], n)
            outline = [rect(0, 0, w, h, "base", "mesh", 1.0, round_by=2)]
            scene.drawn(x, y, w, h, outline)
            if (k, part) in there:
                full = [rect(0, 0, w, h, "mesh", round_by=2)]
                scene.drawn(x, y, w, h, full, at=there[k, part])
    for (first, second), track in tracks.items():
        if opcode == "all-to-all":
            home = (first, second)
        else:
            home = (messages_home(messages, first), first)
        x, y, w, h = cell(laid, group[home[0]], slots[home[1]], n)
        moves = []
        for step, member, slot in track:
            to = cell(laid, group[member], slots[slot], n)
            moves.append((step, to[0], to[1]))
        shown = [rect(0, 0, w, h, "residual", "base", 1.0, round_by=3)]
        if w >= 11:
            number = str(slots[second if opcode == "all-to-all" else first])
            shown.append(words(w / 2, h / 2 + 4, number, "base", 11, "middle", 700))
        scene.drawn(x, y, w, h, shown, moves=moves)


def messages_home(messages: Sequence[Message], part: int) -> int:
    """Returns the member at which a part begins its way."""
    return next(m.sender for m in messages if m.part == part and m.round == 1)


def move_whole(scene: Scene, laid: MeshPicture, each: Collective, start: int) -> None:
    """Draws what each device of a permutation sends, and moves it."""
    for a, b in each.pairs:
        if max(a, b) >= len(laid.corners):
            continue
        x, y, w, h = cell(laid, a, 0, 1)
        to = cell(laid, b, 0, 1)
        w = min(w, 30)
        shown = [rect(0, 0, w, h, "residual", "base", 1.0, round_by=3)]
        shown.append(words(w / 2, h / 2 + 4, f"{a}", "base", 11, "middle", 700))
        scene.drawn(x, y, w, h, shown, moves=[(start + 1, to[0], to[1])])
