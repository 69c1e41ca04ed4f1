"""How a collective is drawn: its groups on the mesh, and a ring's parts that move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from minijax_lab.explain.collectives import Message, in_a_ring, over, ways
from minijax_lab.explain.placement import MeshFacts
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.spmd import Collective
from minijax_lab.explain.tree import size_in_words
from minijax_widgets.glyph import LEAST_TEXT, Drawn, line, path, rect, text_width, words
from minijax_widgets.placement_scene import (
    MIDDLE,
    MeshPicture,
    Sizes,
    dress,
    lay_mesh,
    mesh_room,
    name_axes,
    names_of,
)
from minijax_widgets.scene import Point, Scene, Times
from minijax_widgets.view import cut, evenly

# A ring of more members is told in the table and not drawn.
MOST_MEMBERS = 8
# Moving parts are drawn for meshes of up to so many devices.
MOST_MOVING = 64
# The strip of a device in which its parts lie.
STRIP = 22.0
# How wide the table of what it costs is.
COSTS = 276.0


@dataclass(frozen=True)
class Drawing:
    """A collective on its way into a scene.

    It is before its first round in the step `start`, and has `count` rounds.
    """

    scene: Scene
    mesh: MeshFacts
    each: Collective
    sizes: Sizes
    key: str
    start: int
    count: int
    messages: Sequence[Message]

    def draw(self, y: float) -> float:
        """Draws the collective; returns the lower end."""
        scene, mesh, each, sizes = self.scene, self.mesh, self.each, self.sizes
        title = f"{each.opcode}{over(each)}"
        *above, last = wrap(title, int(sizes.width / text_width("m", 16, weight=700)))
        for part in above:
            scene.text(6, y + 15, part, size=16, weight=700, key=self.key)
            y += 20
        placed = scene.text(6, y + 15, last, size=16, weight=700, key=self.key)
        x = placed.x + placed.w + 20
        many = count_in_words(len(each.groups), "group")
        if each.opcode == "collective-permute":
            many = count_in_words(len(each.groups), "message")
        said = f"{many}, {each.bytes:,} B given by each device"
        if each.opcode != "collective-permute":
            said = f"{many} of {each.size}, {each.bytes:,} B given by each device"
        letters = int((sizes.width - x) / text_width("m", 14, weight=600))
        if not sizes.beside or above or letters < 20:
            x, y = 6.0, y + 24  # below what lights up around the title
            letters = int((sizes.width - x) / text_width("m", 14, weight=600))
        for part in evenly(said, letters):
            scene.text(x, y + 15, part, role="meshy", size=14, weight=600)
            y += 20
        if each.where:
            letters = int(sizes.width / text_width("m", 12, mono=True)) - 2
            parts = [f"{each.where}:  {each.line}"]
            if len(parts[0]) > letters:
                lines = wrap(each.line, letters - 2, max_lines=3, placeholder=" ...")
                parts = [f"{each.where}:", *(f"  {one}" for one in lines)]
            for part in parts:
                scene.text(6, y + 14, cut(part, letters), size=12, mono=True)
                y += 20
        if self.count and each.opcode != "collective-permute":
            told = "each sends to the next" if in_a_ring(each) else "each sends to each"
            scene.note(6, y + 14, f"one way to do it: {told}")
            y += 18
        if self.stands_in_a_ring():
            return self.ring(y)
        top = y
        gap = (58.0, 34.0) if sizes.beside else (40.0, 30.0)
        left = 60.0 if len(mesh.axes) == 1 else mesh_room(mesh)
        wide = sizes.width - left - 10
        if len(mesh.axes) > 1 and wide / mesh.axes[-1].size < 60 + gap[0]:
            gap = 16.0, 30.0  # arrows without their bytes, which the table has
        said_room = text_width(size_in_words(each.sent), LEAST_TEXT) + 8
        if said_room > gap[0] and mesh.axes[-1].size * (60 + said_room) <= wide:
            gap = said_room, gap[1]
        room = (wide + gap[0]) / mesh.axes[-1].size - gap[0]
        w = min(sizes.device[0] + 8, max(room, 50)) if len(mesh.axes) > 1 else 90.0
        if sizes.beside:
            w = max(w, min(150.0, room))
        h = sizes.device[1] + STRIP - 10
        high = 30 + 14 * (len(mesh.axes) > 2)
        laid = lay_mesh(mesh, left, y + high, (w, h), gap, wide)
        if len(mesh.axes) == 1:
            laid = replace(laid, corners=around(laid.corners))
        groups = [group for group in each.groups if max(group) < len(laid.corners)]
        rings = [ring_order(group, mesh) for group in groups]
        if each.opcode == "collective-permute":
            rings = groups
        self.links(laid, rings)
        self.devices(laid, groups)
        scene.extent(laid.corners[0][0], top, 1, laid.low + 12 - top, self.key)
        if self.count and len(mesh.devices) <= MOST_MOVING:
            if each.opcode == "collective-permute":
                self.move_whole(laid)
            else:
                for group, members in zip(groups, rings, strict=True):
                    slots = [group.index(member) for member in members]
                    self.parts(laid, members, slots)
        if not self.count:
            return laid.low + 24
        beside = laid.right + COSTS + 60 <= sizes.width
        at = (laid.right + 60, y + high) if beside else (6.0, laid.low + 30)
        return max(laid.low + 24, self.tell_ways(*at))

    def devices(self, laid: MeshPicture, groups: Sequence[Sequence[int]]) -> None:
        """Draws the devices; one lights its whole group."""
        mesh = self.mesh
        w, h = laid.device
        group_of = {member: n for n, group in enumerate(groups) for member in group}
        for position, (x, y) in enumerate(laid.corners):
            number = group_of.get(position)
            parts = dress(mesh, mesh.place(position), w, h)
            ground = rect(2, h - STRIP, w - 4, STRIP - 2, "base", round_by=2)
            parts.append(Drawn("rect", ground.has | {"fill-opacity": "0.85"}))
            name = f"d{mesh.devices[position]}"
            wide = text_width(name, 13, weight=700) + 2
            label = rect((w - wide) / 2, 5, wide, 17, "base", round_by=3)
            parts.append(Drawn("rect", label.has | {"fill-opacity": "0.8"}))
            parts.append(words(w / 2, 18, name, "text", 13, "middle", 700))
            told = f"d{mesh.devices[position]} takes no part"
            keys = []
            if number is not None:
                others = names_of(mesh, groups[number], ", ", most=16)
                told = f"{name} gives {self.each.bytes:,} B; its group: {others}"
                keys = [f"{self.key}g{number}"]
            self.scene.drawn(x, y, w, h, parts, key=keys, says=told)
        name_axes(self.scene, mesh, laid)

    def links(self, laid: MeshPicture, groups: Sequence[Sequence[int]]) -> None:
        """Draws an arrow from each member of a group to the next."""
        each, devices = self.each, self.mesh.devices
        amount = size_in_words(each.sent)
        room = text_width(amount, LEAST_TEXT)
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
                far = abs(start[0] - end[0])
                told = f"d{devices[a]} sends d{devices[b]} {each.sent:,} B"
                self.scene.arrow(
                    start,
                    end,
                    via=via,
                    role="meshy",
                    thick=2.2,
                    text=amount if level and a < b and far > room else "",
                    key=[self.key, f"{self.key}g{number}"],
                    says=told,
                )

    def parts(
        self, laid: MeshPicture, group: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Draws the parts in a group's devices, and those that move.

        `group` is in the order of the ring, `slots` are its members' places in XLA's
        order. A part is faint until the device holds it whole: the full sum, or the
        data itself.
        """
        scene, each, start = self.scene, self.each, self.start
        n = len(group)
        there: dict[tuple[int, int], int] = {}
        if each.opcode in ("all-gather", "all-to-all"):
            there = {(k, k): start for k in range(n)}
        tracks: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for message in self.messages:
            name, slot = (message.part, 0), message.part
            if each.opcode == "all-to-all":
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
            if each.opcode == "all-to-all":
                home = (first, second)
            else:
                home = (messages_home(self.messages, first), first)
            x, y, w, h = cell(laid, group[home[0]], slots[home[1]], n)
            moves = []
            for step, member, slot in track:
                to = cell(laid, group[member], slots[slot], n)
                moves.append((step, to[0], to[1]))
            shown = [rect(0, 0, w, h, "residual", "base", 1.0, round_by=3)]
            if w >= 8:
                number = str(slots[second if each.opcode == "all-to-all" else first])
                shown.append(words(w / 2, h / 2 + 4, number, "base", 11, "middle", 700))
            scene.drawn(x, y, w, h, shown, moves=moves)

    def move_whole(self, laid: MeshPicture) -> None:
        """Draws what each device of a permutation sends, and moves it."""
        for a, b in self.each.pairs:
            if max(a, b) >= len(laid.corners):
                continue
            x, y, w, h = cell(laid, a, 0, 1)
            to = cell(laid, b, 0, 1)
            w = min(w, 30)
            shown = [rect(0, 0, w, h, "residual", "base", 1.0, round_by=3)]
            shown.append(words(w / 2, h / 2 + 4, f"{a}", "base", 11, "middle", 700))
            self.scene.drawn(x, y, w, h, shown, moves=[(self.start + 1, to[0], to[1])])

    def stands_in_a_ring(self) -> bool:
        """Whether it is drawn as a ring: all devices of a mesh of one axis."""
        mesh, each = self.mesh, self.each
        if (
            len(mesh.axes) != 1
            or not 2 < len(mesh.devices) <= MOST_MEMBERS
            or not self.count
        ):
            return False
        alone = len(each.groups) == 1 and each.size == len(mesh.devices)
        return alone or each.opcode == "collective-permute"

    def ring(self, y: float) -> float:
        """Draws all devices of one axis as a ring; returns the lower end.

        A device is cut into as many sectors as there are devices: its parts. A full
        sector is finished; a number in it says how many devices have been added.
        """
        mesh, each, key, start = self.mesh, self.each, self.key, self.start
        n = len(mesh.devices)
        whole = each.opcode == "collective-permute"
        small = self.sizes.width < MIDDLE.width
        device = 32.0 if small else 42.0
        room = 2 * device + (32 if small else 44)
        radius = max(room / 2 / math.sin(math.pi / n), device + (68 if small else 86))
        middle = radius + device + 8
        ring = Circle(middle, y + middle, radius, device, n, 1 if whole else n)
        members = list(range(n)) if whole else each.groups[0]
        # Arrows of a ring light up; those of an all-to-all change, and a frame does.
        self.tell_sent(ring, key * (each.opcode == "all-to-all"))
        self.circles(ring, members)
        if in_a_ring(each):
            pairs = [(members[k], members[(k + 1) % n]) for k in range(n)]
        else:
            pairs = each.pairs if whole else []
        for a, b in pairs:
            told = f"d{mesh.devices[a]} sends d{mesh.devices[b]} {each.sent:,} B"
            says: Times = {"says": told, "at": start + whole}
            if a != b:
                ends = ring.chord(a, b)
                self.scene.arrow(
                    *ends, role="meshy", thick=2.2, key=[key, f"{key}g0"], **says
                )
        if whole:
            for a, b in each.pairs:
                turns = [(start, chip(f"{a}"))]
                send_chip(
                    self.scene, ring.part(a, 0), turns, [(start + 1, *ring.part(b, 0))]
                )
        else:
            self.fill_sectors(ring, members)
            self.send_chips(ring, members)
        self.scene.extent(0, y, 2 * middle, 2 * middle, key)
        right, low = 2 * middle, y + 2 * middle
        beside = 2 * middle + COSTS + 40 <= self.sizes.width
        # JupyterLab has room for 789 in a window of 1280 pixels.
        at = (right + 16, y + middle / 2) if beside else (6.0, low + 10)
        return max(low, self.tell_ways(*at))

    def adds(self) -> bool:
        """Whether the parts are added up."""
        return self.each.opcode in ("all-reduce", "reduce-scatter")

    def circles(self, ring: Circle, members: Sequence[int]) -> None:
        """Draws the devices without what they hold."""
        told = f"gives {self.each.bytes:,} B and sends {self.each.sent:,} B"
        for position in members:
            x, y = ring.point(position, ring.radius)
            name = f"d{self.mesh.devices[position]}"
            side = 2 * ring.device + 3
            outline = rect(0, 0, side, side, "base", "mesh", 1.3, round_by=side / 2)
            label = words(side / 2, side / 2 + 4.5, name, "text", 13, "middle", 700)
            self.scene.drawn(
                x - side / 2,
                y - side / 2,
                side,
                side,
                [outline, label],
                key=[f"{self.key}g0"],
                says=f"{name} {told}",
            )

    def fill_sectors(self, ring: Circle, members: Sequence[int]) -> None:
        """Draws each part in each device: how many were added, and when it is whole.

        A part that has not come yet is empty, a sum that is not finished is faint.
        """
        each, start = self.each, self.start
        n = ring.parts
        adds = self.adds()
        # By member and part: from which step on so many devices are in it; if whole.
        states = {
            (k, part): [(start, 1 if adds or k == part else 0, not adds and k == part)]
            for k in range(n)
            for part in range(n)
        }
        if each.opcode == "all-to-all":
            states = {place: [(start, 1, place[0] == place[1])] for place in states}
        for message in self.messages:
            slot = message.sender if each.opcode == "all-to-all" else message.part
            count = 1
            if adds:
                sender = states[message.sender, message.part]
                before = [
                    one for step, one, _ in sender if step < start + message.round
                ]
                reached = states[message.receiver, slot][-1][1]
                count = min(n, before[-1] + (0 if before[-1] == n else reached))
            state = (start + message.round, count, message.whole)
            states[message.receiver, slot].append(state)
        for (k, part), found in states.items():
            turns = []
            for step, count, whole in found:
                faint = 0.75 if whole else 0.2 if count else 0.05
                drawn = [ring.sector(part, "mesh", faint)]
                if adds:
                    x, y = ring.inside(part)
                    ink = "base" if whole else "text"
                    drawn.append(words(x, y + 4, f"{count}", ink, 11, "middle"))
                turns.append((step, drawn))
            place = ring.point(members[k], ring.radius)
            self.scene.drawn(*place, 0, 0, turns[0][1], turns=turns[1:])

    def send_chips(self, ring: Circle, members: Sequence[int]) -> None:
        """Draws parts that move: with the devices in a sum, or with whose they are."""
        start = self.start
        ways: dict[tuple[int, int], list[Message]] = {}
        direct = self.each.opcode == "all-to-all"
        for message in self.messages:
            name = (message.sender, message.receiver) if direct else (message.part, 0)
            ways.setdefault(name, []).append(message)
        for track in ways.values():
            moves, turns = [], []
            first = track[0]
            for number, message in enumerate(track, 2):
                slot = message.sender if direct else message.part
                to = ring.part(members[message.receiver], slot)
                moves.append((start + message.round, *to))
                said = min(number, ring.count)
                if self.each.opcode in ("all-gather", "all-to-all"):
                    said = members[slot]
                turns.append((start + message.round, chip(f"{said}")))
            home = ring.part(members[first.sender], first.part)
            send_chip(self.scene, home, [(start, []), *turns], moves)
            if direct:
                a, b = members[first.sender], members[first.receiver]
                arrow = arrow_between(*ring.chord(a, b))
                now = start + first.round
                self.scene.drawn(0, 0, 0, 0, [], turns=[(now, arrow), (now + 1, [])])

    def tell_sent(self, ring: Circle, lit: str) -> None:
        """Writes into the middle how much each device has sent after a round."""
        far = ring.radius + ring.device + 4
        last = max((message.round for message in self.messages), default=1)
        turns = []
        for number in range(last + 1):
            lines = [
                ("each has sent", "constant", 12, 400),
                (size_in_words(self.each.sent * number // last), "text", 16, 700),
                (f"of {size_in_words(self.each.sent)}", "constant", 12, 400),
            ]
            drawn = [
                words(far, far - 16 + 19 * row, text, ink, size, "middle", weight)
                for row, (text, ink, size, weight) in enumerate(lines)
            ]
            turns.append((self.start + number, drawn))
        corner, side = (ring.x - far, ring.y - far), 2 * far
        self.scene.drawn(*corner, side, side, turns[0][1], turns=turns[1:], key=lit)

    def tell_ways(self, x: float, y: float) -> float:
        """Writes what the collective costs by each algorithm; returns the lower end."""
        scene = self.scene
        found = ways(self.each)
        scene.text(x, y + 14, "what it costs, by algorithm", weight=700)
        y += 36
        columns = (x + 190, x + 272)
        for at, said in zip(columns, ("rounds", "each sends"), strict=True):
            scene.text(at, y, said, role="constant", size=12, anchor="end")
        for number, way in enumerate(found):
            y += 22
            if not number:
                scene.drawn(x, y - 15, COSTS, 20, [rect(0, 0, COSTS, 20, "value-wash")])
            weight = 400 if number else 700
            scene.text(x + 4, y, way.name, weight=weight)
            for at, said in zip(columns, (f"{way.rounds}", size_in_words(way.sent))):
                scene.text(at, y, said, weight=weight, anchor="end")
        y += 24
        whole = self.each.opcode == "collective-permute"
        if self.stands_in_a_ring() and self.adds():
            scene.note(x, y, "a number: how many devices are in this sum")
            y += 18
        elif not self.stands_in_a_ring() and not whole:
            scene.note(x, y, "a number: which part of the array")
            y += 18
        told = "" if whole else "dark: the device has it whole; "
        wide = x + 300 > self.sizes.width
        for part in wrap(f"{told}amber: what moves", 34 if wide else 99):
            scene.note(x, y, part)
            y += 18
        return y - 10


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
    for number, place in enumerate(sorted(lines)):
        members = [member for _, member in sorted(lines[place])]
        found += members[::-1] if number % 2 else members
    return found


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


def messages_home(messages: Sequence[Message], part: int) -> int:
    """Returns the member at which a part begins its way."""
    return next(m.sender for m in messages if m.part == part and m.round == 1)


# ---- a mesh of one axis, as a ring ---------------------------------------------------


@dataclass(frozen=True)
class Circle:
    """Where devices stand that are drawn as a ring, and how large."""

    x: float
    y: float
    radius: float  # of the ring
    device: float  # of a device
    count: int
    parts: int  # into how many sectors a device is cut

    def point(self, position: float, out: float) -> Point:
        """Returns the point in the direction of a device, so far from the middle."""
        turn = 2 * math.pi * position / self.count - math.pi / 2
        return self.x + out * math.cos(turn), self.y + out * math.sin(turn)

    def part(self, position: int, slot: int) -> Point:
        """Returns the middle of a device's sector."""
        x, y = self.point(position, self.radius)
        dx, dy = self.inside(slot)
        return x + dx, y + dy

    def inside(self, slot: int) -> Point:
        """Returns the middle of a sector, from the middle of its device."""
        if self.parts == 1:
            return 0.0, 0.68 * self.device
        turn = 2 * math.pi * (slot + 0.5) / self.parts - math.pi / 2
        return 0.71 * self.device * math.cos(turn), 0.71 * self.device * math.sin(turn)

    def chord(self, a: int, b: int) -> tuple[Point, Point]:
        """Returns where an arrow from a device to another begins and ends."""
        (ax, ay), (bx, by) = (self.point(one, self.radius) for one in (a, b))
        off = (self.device + 4) / math.dist((ax, ay), (bx, by))
        dx, dy = (bx - ax) * off, (by - ay) * off
        return (ax + dx, ay + dy), (bx - dx, by - dy)

    def sector(self, slot: int, ink: str, faint: float) -> Drawn:
        """Returns a sector of a device whose middle is (0, 0)."""
        around = (slot / self.parts, (slot + 1) / self.parts)
        turns = [2 * math.pi * part - math.pi / 2 for part in around]
        (a, b), (c, d) = [(math.cos(turn), math.sin(turn)) for turn in turns]
        far, near = self.device, 0.42 * self.device
        arc = (
            f"M{far * a:.1f} {far * b:.1f}A{far:g} {far:g} 0 0 1 {far * c:.1f} "
            f"{far * d:.1f}L{near * c:.1f} {near * d:.1f}A{near:g} {near:g} 0 0 0 "
            f"{near * a:.1f} {near * b:.1f}Z"
        )
        made = path(arc, "base", 1.5, fill=ink)
        return Drawn("path", made.has | {"fill-opacity": f"{faint:.2f}"})


def chip(text: str) -> list[Drawn]:
    """Returns a part that moves, around (0, 0)."""
    disc = Drawn("circle", {"cx": 0.0, "cy": 0.0, "r": 9.0, "fill": "residual"})
    return [disc, words(0, 4, text, "base", 11, "middle", 700)]


def send_chip(
    scene: Scene,
    home: Point,
    turns: list[tuple[int, list[Drawn]]],
    moves: Sequence[tuple[int, float, float]],
) -> None:
    """Places a part that moves."""
    scene.drawn(*home, 0, 0, turns[0][1], turns=turns[1:], moves=moves)


def arrow_between(start: Point, end: Point) -> list[Drawn]:
    """Returns a straight arrow as parts, for a mark that changes."""
    far = math.dist(start, end)
    dx, dy = (end[0] - start[0]) / far, (end[1] - start[1]) / far
    back = (end[0] - 9 * dx, end[1] - 9 * dy)
    tip = [
        end,
        (back[0] - 4 * dy, back[1] + 4 * dx),
        (back[0] + 4 * dy, back[1] - 4 * dx),
    ]
    return [
        path(line([start, back]), "meshy", 2.0),
        path(line(tip) + "Z", fill="meshy"),
    ]
