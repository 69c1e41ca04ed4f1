"""The recording behind `see.placement` of arrays: which device holds which piece.

Arrays and shardings are asked through what JAX's and minijax's have in common:
`sharding.devices_indices_map(shape)`, `sharding.mesh`, `array.committed`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.core.trees import keystr, tree_flatten_with_path
from minijax_lab.explain.recording import Recording, count_in_words
from minijax_lab.explain.tree import size_in_words

# What the axis of a sharding without a named mesh is called.
UNNAMED = "device"


@dataclass
class MeshAxis:
    """A mesh's axis."""

    name: str
    size: int


@dataclass
class MeshFacts:
    """The devices of a mesh, in its order. Without names it has one axis."""

    axes: list[MeshAxis]
    devices: list[int]  # their ids
    kind: str  # "cpu", "NVIDIA H100", ...
    named: bool = True

    @property
    def text(self) -> str:
        """The axes with their sizes: `x=4, y=2`."""
        if not self.named:
            return count_in_words(len(self.devices), "device")
        return ", ".join(f"{axis.name}={axis.size}" for axis in self.axes)

    def place(self, position: int) -> dict[str, int]:
        """Where along each axis the device at a position stands."""
        found: dict[str, int] = {}
        for axis in reversed(self.axes):
            position, found[axis.name] = divmod(position, axis.size)
        return found

    def size(self, name: str) -> int:
        """The size of an axis."""
        return next((axis.size for axis in self.axes if axis.name == name), 1)


@dataclass
class Piece:
    """A part of an array, and the positions in the mesh of all devices that hold it.

    `at` says where along the axes that cut the array it stands.
    """

    index: list[list[int]]  # start and stop along each dimension
    devices: list[int]
    at: dict[str, int]
    bytes: int

    @property
    def text(self) -> str:
        """The slice: `[0:2, 8:16]`."""
        return "[" + ", ".join(f"{a}:{b}" for a, b in self.index) + "]"


@dataclass
class PlacedValue:
    """An array and where it is. `mesh` is None for one in the host's memory.

    `cuts` are the mesh axes that cut each dimension, `spare` those along which devices
    hold the same; `better` is a spec that cuts along those too.
    """

    name: str
    type: str
    shape: list[int]
    bytes: int
    mesh: int | None = None
    spec: str = ""
    cuts: list[list[str]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    spare: list[str] = field(default_factory=list)
    better: str = ""
    better_bytes: int = 0
    committed: bool | None = None
    memory: str = ""
    note: str = ""

    @property
    def copies(self) -> int:
        """How many devices hold each piece."""
        return max((len(piece.devices) for piece in self.pieces), default=1)

    @property
    def each(self) -> int:
        """The bytes of the largest piece."""
        return max((piece.bytes for piece in self.pieces), default=0)

    @property
    def cut_text(self) -> str:
        """The shape with its cuts: `[8/x,16/y]`."""
        sides = []
        for size, axes in itertools.zip_longest(self.shape, self.cuts, fillvalue=()):
            sides.append("/".join([str(size), *axes]))  # type: ignore[misc]
        return f"[{','.join(sides)}]"

    @property
    def how(self) -> str:
        """Pieces and copies in words."""
        if self.mesh is None:
            return "in the host's memory"
        if len(self.pieces) == 1 and self.copies == 1:
            return "whole, on one device"
        pieces = count_in_words(len(self.pieces), "piece")
        if self.copies == 1:
            return f"{pieces}, no copies"
        return f"{pieces} x {self.copies} copies"


@dataclass(kw_only=True)
class PlacementRecording(Recording):
    """Arrays on devices."""

    kind = "placement"

    meshes: list[MeshFacts]
    values: list[PlacedValue]

    def device_bytes(self, mesh: int) -> list[int]:
        """The bytes that each device of a mesh holds."""
        found = [0] * len(self.meshes[mesh].devices)
        for value in self.values:
            if value.mesh == mesh:
                for piece in value.pieces:
                    for position in piece.devices:
                        found[position] += piece.bytes
        return found


def record_placement(tree: Any, name: str = "x") -> PlacementRecording:
    """Records where the arrays of a tree are.

    Raises TypeError if a leaf is not an array and has no sharding.
    """
    meshes: list[MeshFacts] = []
    known: dict[Any, int] = {}
    values = []
    for path, leaf in tree_flatten_with_path(tree)[0]:
        values.append(placed_value(leaf, name + keystr(path), meshes, known))
    if not values:
        raise TypeError(
            "see.placement: this tree has no arrays to be placed; give it an array, a "
            "tree with arrays, or a function and its arguments."
        )
    telling = next((i for i, v in enumerate(values) if v.copies > 1), 0)
    return PlacementRecording(
        call=name,
        headline=headline(values, meshes),
        telling=telling,
        meshes=meshes,
        values=values,
    )


def placed_value(
    leaf: Any, name: str, meshes: list[MeshFacts], known: dict[Any, int]
) -> PlacedValue:
    """A leaf with its pieces; its mesh is added to the meshes."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        text = type_text(leaf.dtype, leaf.shape)
        note = "a NumPy array: it is copied to a device by each call that takes it"
        return PlacedValue(
            name, text, list(leaf.shape), int(leaf.nbytes), memory="host", note=note
        )
    sharding = getattr(leaf, "sharding", None)
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or sharding is None:
        raise TypeError(
            f"see.placement: {name} is a {type(leaf).__name__}, which is on no device. "
            "Give an array, a ShapeDtypeStruct with a sharding, or a tree of such."
        )
    itemsize = getattr(dtype, "itemsize", 4)
    value = value_of(
        name, type_text(dtype, shape), shape, itemsize, sharding, meshes, known
    )
    value.committed = committed_of(leaf)
    return value


def value_of(
    name: str,
    text: str,
    shape: Iterable[int],
    itemsize: int,
    sharding: Any,
    meshes: list[MeshFacts],
    known: dict[Any, int],
) -> PlacedValue:
    """A value of a shape that a sharding cuts."""
    sides = [int(size) for size in shape]
    number = mesh_of(sharding, meshes, known)
    mesh = meshes[number]
    order = {id_: position for position, id_ in enumerate(mesh.devices)}
    grouped: dict[tuple, list[int]] = {}
    for device, index in sharding.devices_indices_map(tuple(sides)).items():
        slices = [part.indices(n)[:2] for part, n in zip(index, sides, strict=True)]
        grouped.setdefault(tuple(slices), []).append(order[device.id])
    cuts = cuts_of(sharding, sides, mesh, list(grouped))
    used = [axis for axes in cuts for axis in axes]
    pieces = []
    for count, (where, devices) in enumerate(sorted(grouped.items())):
        at = mesh.place(min(devices)) if mesh.named else {UNNAMED: count}
        pieces.append(
            Piece(
                [list(part) for part in where],
                sorted(devices),
                {axis: at[axis] for axis in used},
                itemsize * math.prod(stop - start for start, stop in where),
            )
        )
    total = itemsize * math.prod(sides)
    value = PlacedValue(name, text, sides, total, number, cuts=cuts, pieces=pieces)
    value.spec = spec_text(sharding)
    value.memory = str(getattr(sharding, "memory_kind", None) or "")
    spare = [a.name for a in mesh.axes if a.name not in used and a.size > 1]
    value.spare = spare if mesh.named and value.copies > 1 else []
    suggest(value, mesh, itemsize)
    return value


def mesh_of(sharding: Any, meshes: list[MeshFacts], known: dict[Any, int]) -> int:
    """The number of a sharding's mesh; one is made for a sharding without a mesh."""
    mesh: Any = getattr(sharding, "mesh", None)
    devices: Any = getattr(mesh, "devices", None)
    named = devices is not None and getattr(mesh, "size", 0) > 0
    if named:
        flat = list(devices.flat)
        axes = [MeshAxis(str(n), s) for n, s in zip(mesh.axis_names, devices.shape)]
    else:
        flat = sorted(sharding.device_set, key=lambda device: device.id)
        axes = [MeshAxis(UNNAMED, len(flat))]
    ids = [int(device.id) for device in flat]
    key = (tuple((axis.name, axis.size) for axis in axes), tuple(ids))
    if key not in known:
        known[key] = len(meshes)
        kind = str(getattr(flat[0], "device_kind", flat[0].platform))
        meshes.append(MeshFacts(axes, ids, kind, named))
    return known[key]


def cuts_of(
    sharding: Any, shape: list[int], mesh: MeshFacts, slices: list[tuple]
) -> list[list[str]]:
    """The mesh axes that cut each dimension."""
    spec = getattr(sharding, "spec", None) if mesh.named else None
    if spec is None:
        return [
            [UNNAMED] if len({part[d] for part in slices}) > 1 else []
            for d in range(len(shape))
        ]
    entries = [*spec, *([None] * len(shape))][: len(shape)]
    cuts = []
    for entry in entries:
        names = entry if isinstance(entry, tuple) else (entry,)
        # Neither None nor P.UNCONSTRAINED is an axis; an axis of size 1 cuts nothing.
        axes = {axis.name for axis in mesh.axes if axis.size > 1}
        cuts.append([str(n) for n in names if isinstance(n, str) and n in axes])
    return cuts


def spec_text(sharding: Any) -> str:
    """A spec as people write it: `P('x', None)`; else the class of the sharding."""
    spec = getattr(sharding, "spec", None)
    if spec is None:
        return type(sharding).__name__
    return f"P({', '.join(map(repr, spec))})"


def spec_of_cuts(cuts: list[list[str]]) -> str:
    """A spec that makes such cuts."""
    entries = []
    for axes in cuts:
        entries.append(repr(axes[0]) if len(axes) == 1 else repr(tuple(axes) or None))
    while entries and entries[-1] == "None":
        entries.pop()
    return f"P({', '.join(entries)})"


def suggest(value: PlacedValue, mesh: MeshFacts, itemsize: int) -> None:
    """Notes a spec that cuts along the axes that hold copies, if the sizes allow it."""
    cuts = [list(axes) for axes in value.cuts]
    left = [
        n // math.prod([mesh.size(a) for a in axes])
        for n, axes in zip(value.shape, cuts, strict=True)
    ]
    placed = False
    order = [axis.name for axis in mesh.axes]
    for name in value.spare:
        count = mesh.size(name)
        fits = [d for d, n in enumerate(left) if n and n % count == 0]
        # A dimension that is whole is cut before one that is cut already.
        fits.sort(key=lambda d: (len(cuts[d]), d))
        if fits:
            cuts[fits[0]].append(name)
            cuts[fits[0]].sort(key=order.index)
            left[fits[0]] //= count
            placed = True
    if placed:
        value.better = spec_of_cuts(cuts)
        value.better_bytes = itemsize * math.prod(left)


def committed_of(leaf: Any) -> bool | None:
    """Whether an array is committed; None where there is no array yet."""
    for name in ("committed", "_committed"):
        found = getattr(leaf, name, None)
        if isinstance(found, bool):
            return found
    return None


SHORT = (
    ("float", "f"),
    ("bfloat", "bf"),
    ("uint", "u"),
    ("int", "i"),
    ("complex", "c"),
)


def type_text(dtype: Any, shape: Iterable[int]) -> str:
    """A type as jaxprs print it: `f32[8,16]`."""
    name = str(getattr(dtype, "name", dtype))
    for long, short in SHORT:
        rest = name.removeprefix(long)
        if name.startswith(long) and rest[:1].isdigit():
            name = short + rest
            break
    return f"{name}[{','.join(map(str, shape))}]"


def headline(values: list[PlacedValue], meshes: list[MeshFacts]) -> str:
    """One sentence: pieces, copies, and the bytes on each device."""
    if len(values) == 1:
        return headline_of_one(values[0], meshes)
    held = [0]
    for value in values:
        for piece in value.pieces:
            held.append(piece.bytes * len(piece.devices))
    total = sum(value.bytes for value in values)
    count = count_in_words(len(values), "array")
    told = f"{count}, {size_in_words(total)} of values, {size_in_words(sum(held))} held"
    copied = [value for value in values if value.copies > 1]
    if copied:
        told += f"; {len(copied)} of them in copies"
    return told


def headline_of_one(value: PlacedValue, meshes: list[MeshFacts]) -> str:
    """One sentence on one array."""
    told = f"{value.name} {value.type}"
    if value.mesh is None:
        return f"{told} is in the host's memory: {size_in_words(value.bytes)}"
    mesh = meshes[value.mesh]
    if len(mesh.devices) == 1:
        device = mesh.devices[0]
        return f"{told} is whole on device {device}: {size_in_words(value.bytes)}"
    told += f" on a mesh {mesh.text}" if mesh.named else f" on {mesh.text}"
    told += f": {value.how}, {size_in_words(value.each)} on each device"
    return told
