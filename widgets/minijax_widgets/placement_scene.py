"""How arrays that are cut, and meshes of devices, are drawn.

Each axis of a mesh has a colour and a pattern: the first is a tint of violet that gets
deeper along the axis, the second is teal hatching, the third is olive dots. A piece of
an array wears those of the axes that cut it, and so does a device: what looks the same
holds the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minijax_lab.explain.placement import MeshFacts, PlacedValue
from minijax_widgets.glyph import (
    CARD_STEP,
    LEAST_TEXT,
    Drawn,
    dots,
    line,
    path,
    rect,
    stripes,
    text_width,
    words,
)
from minijax_widgets.scene import Scene, Times, fitting

# The inks of a mesh's axes, in order; further axes have names only.
INKS = ("mesh", "meshy", "meshz")
LEAST_TINT, MOST_TINT = 0.05, 0.45
# No more pieces than this are drawn along one side, and no more devices in a mesh.
MOST_PIECES = 16
MOST_DEVICES = 256


@dataclass(frozen=True)
class Sizes:
    """How large a layout draws."""

    width: float
    piece: tuple[float, float]
    card: tuple[float, float]  # the largest array
    device: tuple[float, float]
    beside: bool  # whether the mesh stands beside the array


SMALL = (66, 34)  # devices, where several arrays are drawn
WIDE = Sizes(900, (92, 44), (380, 280), (104, 52), True)
MIDDLE = Sizes(690, (92, 44), (380, 280), (104, 52), False)
NARROW = Sizes(288, (60, 34), (232, 210), (70, 44), False)
NARROW_RING = Sizes(340, (60, 34), (270, 210), (70, 44), False)  # of eight devices


def ink_of(mesh: MeshFacts, name: str) -> str:
    """Returns the colour of a mesh's axis."""
    for number, axis in enumerate(mesh.axes):
        if axis.name == name and number < len(INKS):
            return INKS[number]
    return "text"


def dress(
    mesh: MeshFacts, at: Mapping[str, int], w: float, h: float, edge: str = "mesh"
) -> list[Drawn]:
    """Returns a rectangle that wears the colours and patterns of places along axes."""
    drawn = [rect(0, 0, w, h, "base", edge, 1.3, round_by=3)]
    for number, axis in enumerate(mesh.axes):
        place = at.get(axis.name)
        if place is None:
            continue
        part = place / max(1, axis.size - 1)
        if number == 0:
            tint = LEAST_TINT + (MOST_TINT - LEAST_TINT) * part
            fill = rect(1, 1, w - 2, h - 2, INKS[0], round_by=2.5)
            drawn.append(Drawn("rect", fill.has | {"fill-opacity": f"{tint:.2f}"}))
        elif number == 1 and place:
            drawn += hatching(place, w, h)
        elif number == 2 and place:
            gap = max(4.0, 9.0 - 3 * part)
            dotted = path(dots(0, 0, w, h, gap), INKS[2], 2.4)
            drawn.append(Drawn("path", dotted.has | {"stroke-linecap": "round"}))
    return drawn


def hatching(place: int, w: float, h: float) -> list[Drawn]:
    """Returns the pattern of a place along the second axis; the first has none."""
    gap = 7.0 if place < 4 else max(3.0, 8.0 - place / 2)
    ways = ((place - 1) % 3) + 1
    found = []
    if ways in (1, 3):
        found.append(path(stripes(0, 0, w, h, gap), INKS[1], 1.3))
    if ways == 2:
        rows = [line([(0, y), (w, y)]) for y in steps(gap, h)]
        found.append(path("".join(rows), INKS[1], 1.3))
    if ways == 3:
        columns = [line([(x, 0), (x, h)]) for x in steps(gap, w)]
        found.append(path("".join(columns), INKS[1], 1.3))
    return found


def steps(gap: float, end: float) -> list[float]:
    """Returns places that are `gap` apart, up to an end."""
    return [gap * number for number in range(1, math.ceil(end / gap))]


def labelled(
    w: float, h: float, lines: Sequence[str], over: Sequence[Drawn] = ()
) -> list[Drawn]:
    """Returns lines of text in the middle of a box, on a ground if there is a pattern.

    Lines without room are left out; what is told on hover says them.
    """
    bold = dict.fromkeys(lines[:1], 700)
    wides = {
        one: text_width(one, LEAST_TEXT, weight=bold.get(one, 400)) for one in lines
    }
    shown = [one for one in lines if wides[one] <= w - 2]
    shown = shown[: max(0, int((h - 3) // 14))]
    if not shown or len(shown[0]) < len(lines[0]):
        return []
    wide = max(wides[one] for one in shown)
    tall = 14 * len(shown)
    ground = rect((w - wide) / 2, (h - tall) / 2, wide, tall, "base", round_by=3)
    found = [Drawn("rect", ground.has | {"fill-opacity": "0.8"})]
    if not any(part.tag == "path" for part in over):
        found = []
    for number, one in enumerate(shown):
        y = (h - tall) / 2 + 14 * number + 11
        weight = bold.get(one, 400)
        found.append(words(w / 2, y, one, "text", LEAST_TEXT, "middle", weight))
    return found


def names_of(
    mesh: MeshFacts, positions: Sequence[int], sign: str = " = ", most: int = 4
) -> str:
    """Returns the names of devices: `d0 = d1`; of many the first ones."""
    names = [f"d{mesh.devices[position]}" for position in positions[:most]]
    more = len(positions) - len(names)
    if more and most == 1:
        return f"{names[0]} +{more}"
    return sign.join([*names, *([f"+{more}"] if more else [])])


# ---- the array ----------------------------------------------------------------------


def draw_array(
    scene: Scene,
    value: PlacedValue,
    mesh: MeshFacts,
    x: float,
    y: float,
    sizes: Sizes,
    prefix: str,
    first_step: int | None = 0,
    small: float = 1.0,
    at: int = 0,
) -> tuple[float, float]:
    """Draws an array cut into its pieces; returns the right and the lower end.

    Each piece has the key `{prefix}s{number}` and those of the devices that hold it,
    `{prefix}d{position}`. Leading dimensions that are cut are panels side by side, the
    others depth. `at` is the step in which it is cut.
    """
    rank = len(value.shape)
    counts = [pieces_along(value, d) for d in range(rank)]
    rows = counts[-2] if rank > 1 else 1
    columns = counts[-1] if rank else 1
    piece_w, piece_h = (side * small for side in sizes.piece)
    card_w, card_h = (side * small for side in sizes.card)
    w = min(card_w, max(piece_w * min(columns, MOST_PIECES), reach(value, -1) * small))
    h = min(card_h, max(piece_h * min(rows, MOST_PIECES), reach(value, -2) * small))
    if not rank:
        w = h = piece_h
    depth = min(4, math.prod(value.shape[:-2])) if rank > 2 else 1
    deep = CARD_STEP * (depth - 1)
    panels: dict[tuple, list[int]] = {}
    for number, piece in enumerate(value.pieces):
        key = tuple((start, stop) for start, stop in piece.index[: max(0, rank - 2)])
        panels.setdefault(key, []).append(number)
    left, top = x + side_room(value), y + 22 + deep
    right, low = left, top
    px, py = left, top
    for count, (where, members) in enumerate(panels.items()):
        if count and px + w + deep > x + max(sizes.width * 0.62 * small, w + 60):
            px, py = left, low + 30 + deep
        if at:
            scene.box(px, py, w, h, role="constant", filled=False, dash=True)
        if count == 8:
            more = f"and {len(panels) - count} more of {len(panels)} slabs"
            scene.note(px, py + 14, more)
            low = max(low, py + 20)
            break
        for card in reversed(range(1, depth)):
            shift = CARD_STEP * card
            scene.box(px + shift, py - shift, w, h, role="mesh", filled=False)
        if len(panels) > 1:
            said = "[" + ", ".join(f"{a}:{b}" for a, b in where) + ", ...]"
            scene.text(px, py - deep - 5, said, size=11, role="constant", mono=True)
        draw_pieces(
            scene, value, mesh, members, (px, py, w, h), (rows, columns), prefix,
            first_step, at,
        )  # fmt: skip
        right, low = max(right, px + w + deep), max(low, py + h)
        px += w + deep + 22
    draw_sides(scene, value, mesh, (left, top, w, h), deep, at)
    if rank:
        low += 20
    return right, low


def side_room(value: PlacedValue) -> float:
    """Returns the room to the left of an array that the sizes there need."""
    said = [sized(value, -2)] if len(value.shape) > 1 else []
    said += [leading(value)] if len(value.shape) > 2 else []
    return max([34.0, *(text_width(one, 12, weight=700) + 10 for one in said)])


def sized(value: PlacedValue, axis: int) -> str:
    """Returns the size of a dimension with the axes that cut it: `256/model`."""
    return "/".join([f"{value.shape[axis]}", *value.cuts[axis]])


def leading(value: PlacedValue) -> str:
    """Returns the sizes of all dimensions but the last two."""
    return " \u00d7 ".join(sized(value, n) for n in range(len(value.shape) - 2))


def reach(value: PlacedValue, axis: int) -> float:
    """Returns how long the side of a dimension is drawn at least, in pixels."""
    if len(value.shape) < -axis:
        return 0.0
    return 40 + 16 * math.log2(max(1, value.shape[axis]))


def pieces_along(value: PlacedValue, dimension: int) -> int:
    """Returns into how many pieces a dimension is cut."""
    return max(1, len({tuple(piece.index[dimension]) for piece in value.pieces}))


def draw_pieces(
    scene: Scene,
    value: PlacedValue,
    mesh: MeshFacts,
    members: list[int],
    place: tuple[float, float, float, float],
    grid: tuple[int, int],
    prefix: str,
    first_step: int | None,
    at: int,
) -> None:
    """Draws the pieces of one slab."""
    x, y, w, h = place
    rows, columns = grid
    shown_rows, shown_columns = min(rows, MOST_PIECES), min(columns, MOST_PIECES)
    side_w, side_h = w / shown_columns, h / shown_rows
    rank = len(value.shape)
    for count, number in enumerate(members):
        row, column = divmod(count, columns)
        if row >= shown_rows or column >= shown_columns:
            continue
        piece = value.pieces[number]
        gap = 2.0 if side_w > 12 and side_h > 12 else 0.0
        wide, tall = side_w - gap, side_h - gap
        parts = dress(mesh, piece.at, wide, tall)
        if not rank:
            circle: dict[str, Any] = {"cx": wide / 2, "cy": tall / 2, "r": wide / 2.2}
            circle |= {"fill": "mesh-wash", "stroke": "mesh", "stroke-width": 1.4}
            parts = [Drawn("circle", circle)]
        said = [names_of(mesh, piece.devices), f"{piece.bytes:,} B"]
        if len(piece.devices) > 2:
            said = [names_of(mesh, piece.devices, " "), said[1]]
        first, *more = names_of(mesh, piece.devices, most=1).split()
        for lines in (said, [" ".join([first, *more])], [first, *more]):
            label = labelled(wide, tall, lines, parts)
            if label:
                parts += label
                break
        told = piece_told(value, mesh, number)
        keys = [f"{prefix}s{number}", *(f"{prefix}d{d}" for d in piece.devices)]
        times: Times = {"label": told, "tell": told, "at": at}
        if first_step is not None:
            times["go"] = first_step + number
        scene.drawn(
            x + column * side_w + gap / 2, y + row * side_h + gap / 2, wide, tall,
            parts, key=keys, **times,
        )  # fmt: skip
    hidden = max(rows - shown_rows, columns - shown_columns)
    if hidden > 0:
        shown = f"the first {shown_rows} x {shown_columns} of {rows} x {columns} pieces"
        scene.text(x, y + h + 32, shown, role="constant", size=11)


def piece_told(value: PlacedValue, mesh: MeshFacts, number: int) -> str:
    """Returns a sentence about a piece."""
    piece = value.pieces[number]
    who = names_of(mesh, piece.devices, ", ")
    told = (
        f"{value.name}{piece.text if piece.index else ''}: {piece.bytes:,} B on {who}"
    )
    if len(piece.devices) > 1:
        told += f", the same {piece.bytes:,} B on {len(piece.devices)} devices"
    return told


def draw_sides(
    scene: Scene,
    value: PlacedValue,
    mesh: MeshFacts,
    place: tuple[float, float, float, float],
    deep: float,
    at: int,
) -> None:
    """Writes the sizes beside the sides, with the axes that cut them in their ink."""
    x, y, w, h = place
    rank = len(value.shape)

    def inked(axes: Sequence[str]) -> dict[str, Any]:
        role = ink_of(mesh, axes[0]) if axes else "constant"
        return {"role": role, "weight": 700 if axes else 400, "at": at}

    for back in (1, 2):
        if rank < back:
            continue
        axes = value.cuts[-back]
        said, ink = sized(value, -back), inked(axes)
        if back == 1:
            scene.note(x + w / 2, y + h + 15, said, anchor="middle", **ink)
        else:
            scene.note(x - 6, y + h / 2 + 4, said, anchor="end", **ink)
    if rank > 2:
        used = [axes[0] for axes in value.cuts[: rank - 2] if axes]
        scene.note(x - 6, y - deep + 4, leading(value), anchor="end", **inked(used))


# ---- the mesh -----------------------------------------------------------------------


@dataclass(frozen=True)
class MeshPicture:
    """Where each device was placed: x, y of its corner; its size; the whole extent."""

    corners: list[tuple[float, float]]
    device: tuple[float, float]
    right: float
    low: float

    def middle(self, position: int) -> tuple[float, float]:
        """Returns the middle of a device."""
        x, y = self.corners[position]
        return x + self.device[0] / 2, y + self.device[1] / 2


def fitting_device(
    mesh: MeshFacts, device: tuple[float, float], width: float, gap: float = 10
) -> tuple[float, float]:
    """Returns the size of a device, less wide where a row of them would not fit."""
    columns = mesh.axes[-1].size if len(mesh.axes) > 1 else 1
    return min(device[0], max(40.0, (width + gap) / columns - gap)), device[1]


def lay_mesh(
    mesh: MeshFacts,
    x: float,
    y: float,
    device: tuple[float, float],
    gap: tuple[float, float] = (10, 10),
    width: float = 400,
) -> MeshPicture:
    """Lays the devices out: the last axis across, the one before down, others as
    blocks; a mesh of one axis in lines as long as the width allows."""
    w, h = device
    sizes = [axis.size for axis in mesh.axes]
    count = min(len(mesh.devices), MOST_DEVICES)
    fit = max(1, int((width + gap[0]) // (w + gap[0])))
    corners = []
    if len(sizes) == 1:
        across = min(sizes[0], fit)
        # Lines of equal length, if there are several.
        across = math.ceil(sizes[0] / math.ceil(sizes[0] / across))
        for position in range(count):
            row, column = divmod(position, across)
            corners.append((x + column * (w + gap[0]), y + row * (h + gap[1])))
    else:
        rows, columns = sizes[-2:]
        block = (columns * (w + gap[0]) + 14, rows * (h + gap[1]) + 24)
        per_line = max(1, int(width // block[0]))
        for position in range(count):
            number, inside = divmod(position, rows * columns)
            row, column = divmod(inside, columns)
            down, across = divmod(number, per_line)
            corners.append(
                (
                    x + across * block[0] + column * (w + gap[0]),
                    y + down * block[1] + row * (h + gap[1]),
                )
            )
    right = max(a for a, _ in corners) + w
    low = max(b for _, b in corners) + h
    return MeshPicture(corners, device, right, low)


def draw_mesh(
    scene: Scene,
    mesh: MeshFacts,
    picture: MeshPicture,
    looks: Sequence[Mapping[str, int]],
    texts: Sequence[Sequence[str]],
    keys: Sequence[Sequence[str]],
    tells: Sequence[str],
    go: Sequence[int | None] | None = None,
) -> None:
    """Draws the devices of a mesh with the names of its axes."""
    w, h = picture.device
    for position, (x, y) in enumerate(picture.corners):
        parts = dress(mesh, looks[position], w, h)
        parts += labelled(w, h, texts[position], parts)
        times: Times = {"label": tells[position], "tell": tells[position]}
        if go is not None and go[position] is not None:
            times["go"] = go[position]
        scene.drawn(x, y, w, h, parts, key=keys[position], **times)
    name_axes(scene, mesh, picture)


def mesh_room(mesh: MeshFacts) -> float:
    """Returns the room to the left of a mesh that the names there take."""
    if not mesh.named or len(mesh.axes) == 1:
        return 20.0
    rows = mesh.axes[-2]
    return 12 + text_width(numbered(rows.name, rows.size - 1), 11, weight=600)


def numbered(name: str, place: int, room: float = 110.0) -> str:
    """Returns an axis and a place along it, the name cut with dots to fit the room."""
    said = f"={place}"
    return fitting(name, room - text_width(said, 12, True)) + said


def name_axes(scene: Scene, mesh: MeshFacts, picture: MeshPicture) -> None:
    """Writes the names of a mesh's axes beside its devices."""
    if not mesh.named:
        return
    w, h = picture.device
    x0, y0 = picture.corners[0]
    if len(mesh.axes) == 1:
        axis = mesh.axes[0]
        for place in (0, len(picture.corners) - 1):
            cx, cy = picture.corners[place]
            said = f"{axis.name}={place}"
            # Over a device of a further line stands another one.
            base = cy + h + 14 if cy > y0 else cy - 8
            scene.text(cx + w / 2, base, said, role=INKS[0], size=11, anchor="middle")
        return
    rows, columns = mesh.axes[-2:]
    inside = rows.size * columns.size
    for row in range(rows.size):
        if row * columns.size < len(picture.corners):
            cy = picture.corners[row * columns.size][1] + h / 2 + 4
            said = numbered(rows.name, row)
            ink = ink_of(mesh, rows.name)
            scene.text(x0 - 6, cy, said, role=ink, size=11, anchor="end", weight=600)
    pitch = 110.0
    if columns.size > 1 and len(picture.corners) > 1:
        pitch = picture.corners[1][0] - x0
    # In little room the first column alone has the name, and the others "=1", "=2".
    longest = text_width(f"{columns.name}={columns.size - 1}", 11, weight=600)
    beside = (longest + text_width(f"={columns.size - 1}", 11, weight=600)) / 2
    once = longest > pitch - 8 and beside < pitch - 4
    for column in range(min(columns.size, len(picture.corners))):
        cx = picture.corners[column][0] + w / 2
        said = numbered(columns.name, column, 110 if once else pitch - 8)
        said = said.removeprefix(columns.name) if once and column else said
        options: Any = {"size": 11, "anchor": "middle", "weight": 600}
        scene.text(cx, y0 - 8, said, role=ink_of(mesh, columns.name), **options)
    for block in range(1 if len(mesh.axes) > 2 else 0, len(picture.corners) // inside):
        if len(mesh.axes) == 2:
            break
        cx, cy = picture.corners[block * inside]
        at = mesh.place(block * inside)
        said = " ".join(f"{axis.name}={at[axis.name]}" for axis in mesh.axes[:-2])
        scene.text(cx, cy - 5, said, role=INKS[0], size=11, weight=600)
    if len(mesh.axes) > 2:
        said = " ".join(f"{axis.name}=0" for axis in mesh.axes[:-2])
        scene.text(x0, y0 - 21, said, role=INKS[0], size=11, weight=600)
