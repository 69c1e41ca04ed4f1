"""How arrays are cut into parts, and which device holds which part.

A `Mesh` gives names to the axes of an array of devices. A `PartitionSpec` says, for
each dimension of an array, along which mesh axes it is cut. Both together are a
`NamedSharding`. With this one the rows are cut in four, and two devices hold each part:

    mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
    NamedSharding(mesh, PartitionSpec("x", None))

In JAX: `jax.sharding`; `jax/_src/named_sharding.py`, `sharding_impls.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.backend.buffer_copies import ShardingOfSeveral
from minijax.backend.sharding_methods import Index, Shape
from minijax.core.runtime import (
    DeviceList,
    HloSharding,
    Sharding,
    SingleDeviceSharding,
    _hlo,
    check_memory_kind,
    replicated,
)
from minijax.support.devices.mesh import AbstractMesh, AxisType, Mesh
from minijax.support.devices.partition_spec import AxisName, PartitionSpec

_OpType = _hlo.OpSharding.Type


class IndivisibleError(ValueError):
    """A dimension's size is not a multiple of the number of parts it is cut into."""


class DuplicateSpecError(Exception):
    """One mesh axis cuts two dimensions."""

    def __init__(self, message: str, mesh: Any, pspec: Any) -> None:
        super().__init__(message)
        self.message = message
        self.mesh = mesh
        self.pspec = pspec


class ShardingTypeError(Exception):
    """The types of operands do not say how a result is cut over an Explicit mesh."""


def _part_of(sharding: Any, global_shape: Shape) -> Shape:
    """The shape of the part on each device, where it comes out even."""
    parts = sharding.parts(len(global_shape))
    for dimension, (size, count) in enumerate(zip(global_shape, parts, strict=True)):
        if size % count:
            raise IndivisibleError(
                f"Sharding {sharding} implies that array axis {dimension} is "
                f"partitioned {count} times, but the dimension size is {size} "
                f"(full shape: {tuple(global_shape)}, per-dimension tiling "
                f"factors: {list(parts)} should evenly divide the shape)"
            )
    return tuple(size // count for size, count in zip(global_shape, parts))


def _indices(sharding: Any, global_shape: Shape) -> dict[Any, Index]:
    """For each device the slice of the array that it holds, from XLA's tiling."""
    devices = sharding._device_assignment
    check_distinct(devices)
    shape = sharding.shard_shape(global_shape)
    tiling = sharding._to_xla_hlo_sharding(len(shape))
    if tiling.is_replicated():
        return dict.fromkeys(devices, (slice(None),) * len(shape))
    counts = tiling.tile_assignment_dimensions()
    numbers = np.asarray(tiling.tile_assignment_devices()).reshape(counts)
    found = {}
    for place, number in np.ndenumerate(numbers):
        found[devices[number]] = tuple(
            slice(at * size, (at + 1) * size) if count > 1 else slice(None)
            for at, size, count in zip(place, shape, counts)
        )
    return {device: found[device] for device in devices}


class NamedSharding(ShardingOfSeveral):
    """An array cut along the axes of a mesh.

    Args:
      mesh: the devices, or for the type of a traced value an `AbstractMesh`.
      spec: the mesh axes that cut each dimension.
      memory_kind: where on the devices; None means their default memory.

    Raises:
      TypeError: if `spec` is no `PartitionSpec`, or `mesh` no mesh.
      ValueError: if the spec names an axis that the mesh does not have.
      DuplicateSpecError: if the spec uses an axis twice.

    In JAX: `jax.sharding.NamedSharding`.
    """

    mesh = property(lambda self: self._mesh)
    spec = property(lambda self: self._spec)
    _kinds_of_words: tuple[AxisType, ...] = (AxisType.Explicit,)

    def __init__(
        self,
        mesh: Mesh | AbstractMesh,
        spec: PartitionSpec,
        *,
        memory_kind: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding takes a PartitionSpec as its spec, and got {spec!r} of "
                f"type {type(spec)}. Write PartitionSpec({spec!r})."
            )
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"NamedSharding takes a mesh, and got {mesh!r}.")
        check_spec(mesh, spec, self._kinds_of_words)
        self._mesh = mesh
        self._spec = spec
        self.num_devices = mesh.size
        if isinstance(mesh, Mesh) and not mesh.empty:
            self._internal_device_list = mesh._internal_device_list
            memory_kind = check_memory_kind(memory_kind, self._internal_device_list)
        self.memory_kind = memory_kind
        self._hlo_shardings: dict[int, Any] = {}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, NamedSharding)
            and self.mesh is other.mesh
            and self.spec is other.spec
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec, self.memory_kind))

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"

    def __reduce__(self) -> Any:
        make = functools.partial(NamedSharding, memory_kind=self.memory_kind)
        return (make, (self.mesh, self.spec))

    def update(self, **changed: Any) -> NamedSharding:
        """The same sharding with another `mesh`, `spec` or `memory_kind`."""
        spec = changed.pop("spec", self.spec)
        if not isinstance(spec, PartitionSpec):
            spec = PartitionSpec(*spec)
        mesh = changed.pop("mesh", self.mesh)
        kind = changed.pop("memory_kind", self.memory_kind)
        return type(self)(mesh, spec, memory_kind=kind, **changed)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same parts on the same devices, in another of their memories."""
        return self.update(memory_kind=kind)

    def _require_devices(self, what: str) -> None:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(f"{what} is not implemented for an AbstractMesh.")

    @property
    def _is_concrete(self) -> bool:
        return isinstance(self.mesh, Mesh)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        self._require_devices("_device_assignment")
        return tuple(self.mesh.devices.flat)

    @property
    def device_set(self) -> set[Any]:
        """All devices that hold a part of the array."""
        self._require_devices("device_set")
        return set(self.mesh.devices.flat)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process among them."""
        self._require_devices("addressable_devices")
        return set(self.mesh.local_devices)

    def texts_of_sizes(self, sizes: Sequence[str]) -> list[str]:
        """Sizes as types print them, with the axes that cut them: `8@x`, `8@(x,y)`."""
        texts = []
        for size, axes in zip(sizes, (*self.spec.partitions, *[None] * len(sizes))):
            name = f"({','.join(axes)})" if isinstance(axes, tuple) else axes
            texts.append(size if axes is None else f"{size}@{name}")
        return texts

    def words(self) -> list[str]:
        """What types print in braces of such a value: `U:x`, `R:(x,y)`."""
        texts = []
        for letter, axes in (("U", self.spec.unreduced), ("R", self.spec.reduced)):
            names = [name for name in self.mesh.axis_names if name in axes]
            if names:
                text = names[0] if len(names) == 1 else f"({','.join(names)})"
                texts.append(f"{letter}:{text}")
        return texts

    @staticmethod
    def separates(one: NamedSharding | None, other: NamedSharding | None) -> bool:
        """Whether two types that differ only in these cuts are different types.

        A type on no mesh matches any cut without unreduced or reduced axes. Cuts over
        Auto axes, which the compiler chooses, match each other.
        """
        kinds = {type(cut) for cut in (one, other)}
        if one is None or other is None or ManualSharding in kinds:
            spec = (one or other).spec  # type: ignore[union-attr]
            return ManualSharding in kinds or bool(spec.unreduced or spec.reduced)
        return one.mesh._any_axis_explicit or other.mesh._any_axis_explicit

    def dual(self) -> NamedSharding:
        """That of cotangents: what is unreduced forwards is reduced backwards."""
        spec = self.spec.dual()
        return self if spec is self.spec else self.update(spec=spec)

    def without_manual_words(self) -> NamedSharding | None:
        """This cut as a type outside of `shard_map` has it."""
        return self

    # In types: the cut of an array whose dimensions have changed.

    def _of(self, parts: Sequence[Any]) -> NamedSharding:
        return self.update(spec=self.spec.update(partitions=parts))

    def inserted(self, axis: int) -> NamedSharding:
        """With one more dimension, which is not cut, at position `axis`."""
        return self._of(self.with_batch_axis(axis, None).spec.partitions)

    def of(self, axis: int | None) -> NamedSharding | None:
        """That of one dimension alone."""
        parts = self.spec.partitions
        part = parts[axis : axis + 1] if axis is not None else ()
        return self.update(spec=PartitionSpec(*part)) if any(part) else None

    def check_batch_name(self, name: Any) -> None:
        """ValueError for a `spmd_axis_name` of other axes than the dimension's."""
        names = self.mesh.in_types(name if isinstance(name, tuple) else (name,))
        if names != self.spec.axes(0):
            raise ValueError(
                "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis "
                f"type is allowed. Got spmd_axis_name={name!r}, and arrays cut along "
                f"{self.spec.axes(0)}. Leave out spmd_axis_name."
            )

    def inserted_in(self, aval: Any, axis: int) -> NamedSharding:
        """The cut of `aval`, with this one's only dimension at position `axis`."""
        return (aval.cut or self.whole(aval.ndim)).with_batch_axis(axis, self)

    def with_batch_axis(self, axis: int, cut: NamedSharding | None) -> NamedSharding:
        """With one more dimension at position `axis`, cut as the only one of `cut`."""
        part = None if cut is None else cut.spec.partitions[0]
        return self.update(spec=self.spec.inserted(axis, part))

    def whole(self, rank: int) -> NamedSharding:
        """That of an array of `rank` dimensions that each device of the mesh has."""
        return self.update(spec=PartitionSpec(*[None] * rank))

    def without(self, axis: int) -> NamedSharding:
        """With one dimension fewer."""
        parts = self.spec.partitions
        return self._of((*parts[:axis], *parts[axis + 1 :]))

    def of_rank(self, rank: int) -> NamedSharding:
        """With dimensions that are not cut at the end, or without the last ones."""
        parts = (*self.spec.partitions, *(None,) * rank)
        return self._of(parts[:rank])

    def permuted(self, order: Sequence[int]) -> NamedSharding:
        """With dimension `order[i]` at position `i`."""
        parts = (*self.spec.partitions, *(None,) * len(order))
        return self._of([parts[axis] for axis in order])

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        self._require_devices("is_fully_addressable")
        return self._internal_device_list.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        if self.mesh.size == 1:
            return True
        if self.spec.unreduced:
            return False
        return all(self.mesh.shape[axis] == 1 for axis in self._used_axes())

    @property
    def replicated_axes(self) -> frozenset[AxisName]:
        """The mesh axes along which all devices hold the same part."""
        used = set(self._used_axes()) | self.spec.unreduced | self.spec.reduced
        return frozenset(self.mesh.axis_names) - used

    def _used_axes(self) -> list[AxisName]:
        spec = self.spec
        return [axis for d in range(len(spec.partitions)) for axis in spec.axes(d)]

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raises ValueError if an array of this shape has too few dimensions."""
        if len(aval_shape) < len(self.spec):
            scalar = (
                "" if aval_shape else " For scalars the PartitionSpec should be P()"
            )
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least "
                f"{len(self.spec)}, but was applied to a value of rank "
                f"{len(aval_shape)}.{scalar}"
            )

    def parts(self, ndim: int) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        sizes = self.mesh.shape
        return tuple(
            math.prod(sizes[axis] for axis in self.spec.axes(dimension))
            for dimension in range(ndim)
        )

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of the part on each device.

        Raises:
          IndivisibleError: (a ValueError) if a dimension cannot be cut evenly.
          ValueError: if the array has fewer dimensions than the spec.
        """
        self.check_compatible_aval(global_shape)
        return _part_of(self, global_shape)

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """For each device the slice of the array that it holds.

        Raises:
          IndivisibleError: (a ValueError) if a dimension cannot be cut evenly.
          ValueError: if the mesh has a device twice.
          NotImplementedError: if devices hold addends and not parts of the array.
        """
        self._require_devices("devices_indices_map")
        if any(self.mesh.shape[axis] != 1 for axis in self.spec.unreduced):
            raise NotImplementedError(
                f"devices_indices_map has no answer for {self}: its devices hold "
                "addends, which are not parts of the array. Reduce it first."
            )
        return _indices(self, global_shape)

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both place the same parts of a rank-`ndim` array on the same devices.

        Between abstract meshes only the parts are compared.
        """
        if not self._is_concrete and not getattr(other, "_is_concrete", True):
            return self.memory_kind == other.memory_kind and bool(
                self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
            )
        return super().is_equivalent_to(other, ndim)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """The same as XLA's tiling of the devices, for a rank."""
        found = self._hlo_shardings.get(num_dimensions)
        if found is None:
            found = _hlo_sharding_of(self.mesh, self.spec, num_dimensions)
            self._hlo_shardings[num_dimensions] = found
        return found


class ManualSharding(NamedSharding):
    """The sharding in a type inside `shard_map`: Manual axes may be unreduced there."""

    _kinds_of_words = (AxisType.Explicit, AxisType.Manual)

    def without_manual_words(self) -> NamedSharding | None:
        return sharding_in_type(self.mesh, PartitionSpec(*self.spec.partitions))


def sharding_in_type(mesh: AbstractMesh, spec: PartitionSpec) -> NamedSharding | None:
    """The sharding in a type; None if it says nothing, since all axes are Manual."""
    words = bool(spec.unreduced or spec.reduced)
    if mesh.empty or (mesh.are_all_axes_manual and not words):
        return None
    return (ManualSharding if words and mesh.manual_axes else NamedSharding)(mesh, spec)


def check_spec(
    mesh: Mesh | AbstractMesh,
    spec: PartitionSpec,
    kinds: tuple[AxisType, ...] = NamedSharding._kinds_of_words,
) -> None:
    """Raises if a spec does not fit a mesh; see `NamedSharding`.

    `kinds` are the types of the axes that may be unreduced or reduced.
    """
    seen: set[AxisName] = set()
    repeated: list[AxisName] = []
    for dimension in range(len(spec)):
        for axis in spec.axes(dimension):
            if axis in seen and axis not in repeated:
                repeated.append(axis)
            seen.add(axis)
    if repeated:
        shown = ", ".join(sorted(f"`{axis}`" for axis in repeated))
        raise DuplicateSpecError(
            "A single NamedSharding spec specification can map every mesh axis to at "
            f"most one positional dimension, but {spec} has duplicate entries for "
            f"{shown}",
            mesh,
            spec,
        )
    names = mesh.axis_names
    for axis in seen:
        if axis not in names:
            raise ValueError(
                f"Resource axis: {axis} of {spec} is not found in mesh: {names}."
            )
    if PartitionSpec.UNCONSTRAINED in spec.partitions and not mesh._any_axis_auto:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are "
            f"`Auto`. Got mesh axis_types: {mesh.axis_types}"
        )
    for role in ("unreduced", "reduced"):
        for axis in getattr(spec, role):
            if axis not in names:
                raise ValueError(
                    f"{role.capitalize()} axes {axis} is not found in mesh axes "
                    f"{names}. Got {spec}"
                )
            if mesh._name_to_type[axis] not in kinds:
                raise ValueError(
                    f"{role.capitalize()} axes can only refer to mesh axes that is of "
                    f"type `Explicit`. Got {role} axes: {set(getattr(spec, role))} and "
                    f"mesh: {mesh}"
                )


def _hlo_sharding_of(
    mesh: Mesh | AbstractMesh, spec: PartitionSpec, ndim: int
) -> HloSharding:
    """XLA's form of a mesh and a spec.

    XLA numbers the devices in the mesh's order, reshapes the numbers to the mesh,
    transposes the axes that cut dimension 0 to the front, then those of dimension 1,
    and so on, and reshapes to the number of parts of each dimension. What is left over
    goes to the end, one more dimension for each kind: devices with the same part, with
    parts the program handles itself, with addends.
    """
    if any(map(spec.axes, range(max(ndim, 0), len(spec)))):
        raise IndexError(f"{spec} cuts more dimensions than {ndim}. Shorten it.")
    sizes = mesh.shape
    # Axes of size 1 cut nothing; without them, equal tilings have equal forms.
    kept = [name for name in mesh.axis_names if sizes[name] > 1]
    position = {name: i for i, name in enumerate(kept)}
    order: list[int] = []
    tiles: list[int] = []
    for dimension in range(ndim):
        axes = [axis for axis in spec.axes(dimension) if axis in position]
        order.extend(position[axis] for axis in axes)
        tiles.append(math.prod(sizes[axis] for axis in axes))
    left: dict[Any, list[AxisName]] = {
        _OpType.REPLICATED: [],
        _OpType.MANUAL: [],
        _OpType.UNREDUCED: [],
    }
    for name in kept:
        if position[name] in order:
            continue
        if mesh._name_to_type[name] is AxisType.Manual:
            left[_OpType.MANUAL].append(name)
        elif name in spec.unreduced:
            left[_OpType.UNREDUCED].append(name)
        else:
            left[_OpType.REPLICATED].append(name)
    if len(left[_OpType.REPLICATED]) == len(kept):
        return replicated
    kinds = []
    for kind, names in sorted(left.items(), key=lambda item: item[0].value):
        if names:
            kinds.append(kind)
            tiles.append(math.prod(sizes[name] for name in names))
            order.extend(position[name] for name in names)
    return HloSharding.iota_tile(
        dims=tiles,
        reshape_dims=[sizes[name] for name in kept],
        transpose_perm=order,
        subgroup_types=kinds,
    )


def spec_of_hlo_sharding(
    sharding: HloSharding, mesh: Mesh | AbstractMesh
) -> PartitionSpec:
    """The spec for which `mesh` gives this sharding: what the compiler chose, by name.

    Raises:
      ValueError: if the axes of the mesh cannot say it.
    """
    if sharding.is_replicated() or (sharding.is_maximal() and mesh.size == 1):
        return PartitionSpec()
    if not sharding.is_tiled():
        raise ValueError(f"The sharding {sharding} has no PartitionSpec.")
    dimensions = sharding.tile_assignment_dimensions()
    numbers = np.asarray(sharding.tile_assignment_devices()).reshape(dimensions)
    # Moving one step along a mesh axis adds this to a device's number.
    steps = {}
    step = 1
    for name, size in reversed(mesh.shape_tuple):
        if size > 1:
            steps[step] = name
        step *= size
    partitions = []
    for dimension, count in enumerate(dimensions):
        line = np.moveaxis(numbers, dimension, 0).reshape(count, -1)[:, 0]
        axes: list[AxisName] = []
        done = 1
        while done < count:
            name = steps.get(int(line[done] - line[0]))
            if name is None:
                raise ValueError(f"{sharding} is not cut along the axes of {mesh}.")
            axes.insert(0, name)
            done *= mesh.shape[name]
        partitions.append(tuple(axes))
    kinds = sharding.subgroup_types()
    unreduced: set[AxisName] = set()
    if kinds or sharding.replicate_on_last_tile_dim():
        extra = len(kinds) or 1
        for kind, names in zip(kinds, partitions[-extra:]):
            unreduced.update(names if kind == _OpType.UNREDUCED else ())
        partitions = partitions[:-extra]
    while partitions and not partitions[-1]:
        partitions.pop()
    return PartitionSpec(*partitions, unreduced=unreduced)


class GSPMDSharding(ShardingOfSeveral):
    """An array cut in a way that only XLA's own terms describe.

    Args:
      devices: the devices, in the order in which the tiling numbers them.
      hlo_sharding: the tiling.
      memory_kind: where on the devices; None means their default memory.

    In JAX: `GSPMDSharding` of `jax/_src/sharding_impls.py`.
    """

    def __init__(
        self,
        devices: Sequence[Any],
        hlo_sharding: HloSharding,
        *,
        memory_kind: str | None = None,
    ) -> None:
        super().__init__()
        self._internal_device_list = DeviceList(tuple(devices))
        self._hlo_sharding = hlo_sharding
        self.num_devices = len(self._internal_device_list)
        self.memory_kind = check_memory_kind(memory_kind, self._internal_device_list)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, GSPMDSharding)
            and bool(self._hlo_sharding == other._hlo_sharding)
            and self.memory_kind == other.memory_kind
            and self._internal_device_list == other._internal_device_list
        )

    def __hash__(self) -> int:
        return hash((self._internal_device_list, self.memory_kind))

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"GSPMDSharding({self._hlo_sharding!r}{kind})"

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same parts on the same devices, in another of their memories."""
        devices = self._device_assignment
        return GSPMDSharding(devices, self._hlo_sharding, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return self.num_devices == 1 or self._hlo_sharding.is_replicated()

    def parts(self, ndim: int) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        if self.is_fully_replicated:
            return (1,) * ndim
        return tuple(self._hlo_sharding.tile_assignment_dimensions()[:ndim])

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of the part on each device.

        Raises:
          IndivisibleError: (a ValueError) if a dimension cannot be cut evenly.
        """
        return _part_of(self, global_shape)

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """For each device the slice of the array that it holds."""
        return _indices(self, global_shape)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> HloSharding:
        return self._hlo_sharding


def make_single_device_sharding(
    device: Any, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding that puts everything on `device`: `SingleDeviceSharding` itself."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def check_distinct(devices: Any) -> None:
    """ValueError if a device is there twice: each holds one part of an array."""
    if len(set(devices)) < len(devices):
        raise ValueError(
            f"The devices {[device.id for device in devices]} contain one twice. Give "
            "a mesh, or pmap(devices=...), each of them once."
        )


def sdy_sharding(sharding: NamedSharding, ndim: int, open_dims: bool = False) -> Any:
    """Shardy's attribute for a rank-`ndim` value, in the current MLIR context.

    Args:
      sharding: the sharding; axes of size 1 included.
      ndim: the value's rank.
      open_dims: let the compiler cut further along Auto axes. Explicit axes that the
        spec does not use are then marked as replicated.
    """
    mesh, spec = sharding.mesh, sharding.spec
    partitions = spec.partitions
    dimensions = []
    for dimension in range(ndim):
        free = (
            dimension < len(partitions)
            and partitions[dimension] is PartitionSpec.UNCONSTRAINED
        )
        dimensions.append((spec.axes(dimension), free or open_dims))
    kept: Sequence[AxisName] = ()
    if open_dims:
        unused = sharding.replicated_axes
        kept = [name for name in mesh.explicit_axes if name in unused]
    unreduced = [name for name in mesh.axis_names if name in spec.unreduced]
    return hlo_parts.sdy_sharding(mesh.shape_tuple, dimensions, kept, unreduced)
