"""`see.placement`: which device holds which piece of an array, and who holds copies."""

from __future__ import annotations

import functools
from dataclasses import replace
from textwrap import wrap
from typing import Any

from minijax_lab.explain.placement import (
    PlacedValue,
    PlacementRecording,
    record_placement,
)
from minijax_lab.explain.propagation import record_propagation
from minijax_lab.explain.tree import size_in_words
from minijax_widgets import frame as picture
from minijax_widgets.glyph import text_width
from minijax_widgets.placement_scene import (
    MIDDLE,
    NARROW,
    SMALL,
    WIDE,
    Sizes,
    draw_array,
    draw_mesh,
    fitting_device,
    lay_mesh,
    mesh_room,
    names_of,
    piece_told,
)
from minijax_widgets.propagation_view import PropagationView
from minijax_widgets.scene import Scene
from minijax_widgets.view import WIDTH, View, cut, shortened, shows, twin, with_options

# Of a tree so many arrays are drawn; the others are rows.
MOST_DRAWN = 6
MOST_PIECE_STEPS = 64
# The largest array, where two stand side by side.
HALF = (170, 150)
# The mesh stands beside an array that leaves so many pixels.
LEAST_BESIDE = 340


@with_options
def placement(
    value: Any,
    *args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    target: str | None = None,
    **kwargs: Any,
) -> PlacementView | PropagationView:
    """Shows where an array is, or each array of a tree, or each value of a program.

    An array is drawn cut into its pieces, each with the devices that hold it; the
    devices are drawn as their mesh. An axis of the mesh has one colour and one pattern
    in both. Real JAX's arrays and programs are taken too, and `ShapeDtypeStruct`s with
    a sharding.

    Args:
      value: an array, a tree of arrays; or a function, jitted or not, or what its
        `.lower(...)` returned. A function is compiled, not run.
      args, kwargs: the function's arguments.
      in_shardings, out_shardings: as `jit` has them, for a function without `jit`.
      target: machines to compile for that need not be there, such as "h100:8" or
        "tpu-v5e:2x4"; the mesh may be one of CPU devices. For minijax's functions.

    Of a program it shows how Shardy carried the cuts from value to value, one step at a
    time, what XLA moves between devices, and results in copies that nobody asked for.

    Raises TypeError for what is on no device, and what tracing or compiling raises.
    """
    options = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    if callable(value) or hasattr(value, "as_text"):
        return PropagationView(record_propagation(value, args, kwargs, options, target))
    extra = [*args, *kwargs.values(), in_shardings, out_shardings, target]
    if any(one is not None for one in extra):
        raise TypeError(
            "see.placement takes arguments, shardings and a target for a function; of "
            "arrays it takes one tree. Put several arrays into a list."
        )
    return PlacementView(record_placement(value))


@shows("placement")
class PlacementView(View):
    """Arrays cut into their pieces, beside the mesh that holds them."""

    recording: PlacementRecording

    # ---- text ----------------------------------------------------------------------

    def text(self, full: bool = False) -> str:
        """Returns the headline and a row for each array, with its pieces."""
        record = self.recording
        rows = []
        for number, value in enumerate(record.values):
            rows += self.twin(value, number == record.telling)
        return twin(record.headline, *shortened(rows, full))

    def twin(self, value: PlacedValue, telling: bool) -> list[str]:
        """Returns an array's rows of the text twin."""
        mark = ">" if telling else " "
        told = f"{mark} {value.name} {value.type}"
        if value.mesh is None:
            return [cut(f"{told}  {value.note}", WIDTH)]
        mesh = self.recording.meshes[value.mesh]
        told += f"  {value.spec}  {value.cut_text}  {value.how}"
        rows = [f"{told}  {value.each:,} B each"]
        held = []
        for piece in value.pieces[:8]:
            held.append(f"{names_of(mesh, piece.devices, '=')}{piece.text}")
        more = len(value.pieces) - len(held)
        rows.append("    " + "  ".join(held) + (f"  +{more}" if more else ""))
        rows += [f"    {said}" for said in self.remarks(value)]
        return [cut(row, WIDTH) for row in rows]

    def remarks(self, value: PlacedValue) -> list[str]:
        """Returns what the reader may not have meant."""
        found = []
        if value.better and value.spare:
            axes = " and ".join(value.spare)
            found.append(
                f"{value.copies} copies over {axes}: {value.better} would leave "
                f"{value.better_bytes:,} B on each device instead of {value.each:,} B"
            )
        elif value.spare:
            axes = " and ".join(value.spare)
            found.append(
                f"{value.copies} copies over {axes}; no dimension can be cut evenly"
            )
        if value.committed is False:
            found.append("uncommitted: a computation may take it to another device")
        if value.memory and value.memory not in ("device", "unpinned_host"):
            found.append(f"memory kind {value.memory}")
        return found

    def place_told(self, value: PlacedValue) -> str:
        """Returns whether an array is committed, and its memory, in few words."""
        # What is not committed is told among the remarks.
        said = "committed" if value.committed else ""
        memory = f"{value.memory} memory" if value.memory else ""
        return ", ".join(part for part in (said, memory) if part)

    # ---- the picture ---------------------------------------------------------------

    @functools.cached_property
    def drawn(self) -> list[int]:
        """The arrays that are drawn: the first ones, and the telling one."""
        placed = [n for n, v in enumerate(self.recording.values) if v.mesh is not None]
        first = placed[:MOST_DRAWN]
        if placed and self.recording.telling not in first:
            first = sorted([*first[:-1], self.recording.telling])
        return first

    @functools.cached_property
    def starts(self) -> dict[int, int]:
        """The step of each drawn array's first piece."""
        found, count = {}, 0
        for number in self.drawn:
            found[number] = count
            count += self.steps_of(number)
        return found

    def steps_of(self, number: int) -> int:
        """Returns how many steps an array has: one for each piece."""
        return min(len(self.recording.values[number].pieces), MOST_PIECE_STEPS)

    def frame(self) -> picture.Frame:
        """Returns the picture: arrays beside their meshes, then a table."""
        record = self.recording
        steps = []
        for number in self.drawn:
            value = record.values[number]
            assert value.mesh is not None
            mesh = record.meshes[value.mesh]
            for count in range(self.steps_of(number)):
                told = piece_told(value, mesh, count)
                on = [f"v{number}s{count}", f"v{number}"]
                steps.append(picture.FrameStep(value.name, told, on))
        if not steps:
            steps.append(picture.FrameStep("host", record.values[0].note))
        panes = []
        if self.drawn:
            panes.append(picture.scene_pane(self.scene, WIDE, NARROW, MIDDLE))
        panes.append(self.table())
        return self.picture(panes, steps, self.starts.get(record.telling, 0))

    def table(self) -> picture.Pane:
        """Returns a row for each array."""
        rows = []
        for number, value in enumerate(self.recording.values):
            remarks = "; ".join(self.remarks(value)) or value.note
            many = bool(value.better)
            place = self.place_told(value)
            place += "; " if place and remarks else ""
            each = f"{value.each:,} B each" if value.pieces else ""
            rows.append(
                picture.Row(
                    [
                        [picture.Piece(f"{value.name} {value.type}", "chip")],
                        value.spec,
                        value.how,
                        each,
                        [
                            picture.Piece(place, "constant"),
                            picture.Piece(remarks, "miss" if many else "constant"),
                        ],
                    ],
                    keys=[f"v{number}"],
                    go=self.starts.get(number),
                )
            )
        titles = ["array", "spec", "pieces", "bytes", "place, remark"]
        return picture.Pane("arrays", rows, columns=titles, wide=True)

    def scene(self, sizes: Sizes) -> Scene:
        """Returns the drawn arrays, each beside its mesh: in two columns where they
        have the room, else one under another."""
        scene = Scene(sizes.width, 100, label=self.recording.headline)
        columns = [6.0]
        half = replace(sizes, width=(sizes.width - 30) / 2, card=HALF)
        if sizes.beside and len(self.drawn) > 1:
            trial = Scene(half.width, 100)
            for number in self.drawn:
                self.draw(trial, number, 0, 0, half)
            trial.end_at(0, 0)
            if trial.width <= half.width:
                columns, sizes = [6.0, half.width + 30], half
        ends = [6.0] * len(columns)
        for count, number in enumerate(self.drawn):
            place = count % len(columns)
            if not place:
                ends = [max(ends)] * len(columns)
            end = self.draw(scene, number, columns[place], ends[place], sizes)
            ends[place] = 18 + end
        scene.end_at(max(ends))
        return scene

    def draw(
        self, scene: Scene, number: int, x: float, y: float, sizes: Sizes
    ) -> float:
        """Draws an array and the mesh that holds it; returns the lower end."""
        value = self.recording.values[number]
        assert value.mesh is not None
        mesh = self.recording.meshes[value.mesh]
        prefix = f"v{number}"
        name = f"{value.name} {value.type}"
        placed = scene.text(x, y + 14, name, size=15, weight=700, mono=True)
        said = f"{value.spec}:  {value.how}"
        told_x, size = x + placed.w + 16, 15
        if told_x + text_width(said, size, weight=600) > x + sizes.width:
            told_x, y = x, y + 18
            room = (sizes.width - 22) / text_width(said, 15, weight=600)
            size = max(11, int(15 * min(1.0, room)))
        loud = "miss" if value.better else "constant"
        scene.text(told_x, y + 14, said, role=loud, size=size, weight=600)
        y += 18
        start = self.starts[number]
        right, low = draw_array(scene, value, mesh, x, y, sizes, prefix, start)
        mesh_x, mesh_y = x + mesh_room(mesh), low + 44
        rest = x + sizes.width - right - mesh_room(mesh)
        beside = sizes.beside or rest > LEAST_BESIDE
        if beside:
            mesh_x, mesh_y = right + 20 + mesh_room(mesh), y + 22
        mesh_y += 14 * (len(mesh.axes) > 2)
        room = max(240.0, x + sizes.width - mesh_x)
        device = sizes.device if len(self.drawn) == 1 else SMALL
        if not sizes.beside:
            device = fitting_device(mesh, device, x + sizes.width - mesh_x - 14)
        laid = lay_mesh(mesh, mesh_x, mesh_y, device, width=room)
        self.draw_devices(scene, number, laid)
        low = max(low, laid.low) if beside else laid.low
        for remark in self.remarks(value)[: bool(value.better)]:
            letters = int((sizes.width - 40) / text_width("m", 13))
            lines = wrap(remark, letters)
            tall = 18.0 * len(lines) + 10
            low += 14
            wide = sizes.width - 12
            scene.band(low, tall, role="miss", x=x, w=wide, label=remark)
            for count, one in enumerate(lines):
                scene.text(x + 12, low + 19 + 18 * count, one, role="miss", size=13)
            low += tall
        return low

    def draw_devices(self, scene: Scene, number: int, laid: Any) -> None:
        """Draws the mesh, each device in the colours of the piece that it holds."""
        value = self.recording.values[number]
        assert value.mesh is not None
        mesh = self.recording.meshes[value.mesh]
        holds = {d: n for n, piece in enumerate(value.pieces) for d in piece.devices}
        looks, texts, keys, tells = [], [], [], []
        go: list[int | None] = []
        for position, id_ in enumerate(mesh.devices):
            held = value.pieces[holds[position]]
            looks.append(held.at)
            texts.append([f"d{id_}", size_in_words(held.bytes)])
            keys.append([f"v{number}d{position}", f"v{number}s{holds[position]}"])
            at = ", ".join(f"{axis}={k}" for axis, k in mesh.place(position).items())
            where = f" ({at})" if mesh.named else ""
            tells.append(
                f"device {id_}{where} holds {value.name}{held.text}, {held.bytes:,} B"
            )
            step = self.starts[number] + holds[position]
            go.append(step if holds[position] < self.steps_of(number) else None)
        draw_mesh(scene, mesh, laid, looks, texts, keys, tells, go)
