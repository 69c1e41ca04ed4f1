"""Arrays of devices whose axes have names.

An `AbstractMesh` has names and sizes and no devices: it stands in the types of traced
values, which do not depend on where a program runs.

In JAX: `jax/_src/mesh.py`, and `make_mesh` of `sharding_impls.py`.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import math
import threading
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.core import errors, runtime
from minijax.core.runtime import DeviceList
from minijax.core.state import state
from minijax.core.trees import checked
from minijax.support.devices.partition_spec import AxisName, checked_names
from minijax.support.settings import declare, override

_interning = threading.RLock()

# The meshes of the `with mesh:` blocks around this place, the innermost last.
declare("entered_meshes", ())


# Those that each thread has to leave.
_blocks = threading.local()


class AxisType(enum.Enum):
    """Whether the user or the compiler chooses shardings along a mesh axis.

    Auto: the compiler. Explicit: the types of the values. Manual: the program itself,
    which sees its own part only (inside `shard_map`).
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


_interned: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """How a value differs over the manual axes of a mesh, inside `shard_map`.

    Two that are equal are one object.

    Args:
      varying: a frozenset of the axes over which devices may have different values.
      unreduced: of the axes over which a sum is still to be taken.
      reduced: of the axes over which the sum was taken.

    Raises:
      ValueError: for an axis that two of them name.
      TypeError: for sets that are not frozen.

    In JAX: `jax.sharding.ManualAxisType`.
    """

    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()

    def __new__(cls, **axes: frozenset) -> ManualAxisType:
        key = frozenset(item for item in axes.items() if item[1])
        return _interned.setdefault(key, object.__new__(cls))

    def __post_init__(self) -> None:
        kinds = self.varying, self.unreduced, self.reduced
        if len(frozenset().union(*kinds)) != sum(map(len, kinds)):
            raise errors.value_error(
                "varying, unreduced and reduced cannot have common mesh axes. Got "
                f"{self}: name each axis once."
            )

    def __getnewargs_ex__(self) -> tuple:
        return (), vars(self)  # copies are interned, too


def _axis_types_of(names: tuple, types: Any, class_name: str) -> tuple[AxisType, ...]:
    if types is None:
        return (AxisType.Auto,) * len(names)
    if not isinstance(types, tuple):
        types = (types,)
    if not all(isinstance(axis_type, AxisType) for axis_type in types):
        raise TypeError(
            f"axis_types passed to {class_name} must be of type "
            f"`jax.sharding.AxisType`. Got {types} of type {tuple(map(type, types))}"
        )
    if len(types) != len(names):
        raise ValueError(
            "Number of axis names should match the number of axis_types. Got "
            f"axis_names={names} and axis_types={types}"
        )
    return types


class BaseMesh:
    """What meshes with and without devices have in common."""

    axis_names: tuple[AxisName, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    size: int

    @classmethod
    def _interned(cls, known: Any, key: tuple, **fields: Any) -> Any:
        """The mesh of a key, which has these fields: equal meshes are one object."""
        with _interning:
            found = known.get(key)
            if found is None:
                found = object.__new__(cls)
                found.__dict__.update(fields)
                known[key] = found
        return found

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("A mesh cannot be changed; use its method `update`.")

    @functools.cached_property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]:
        """Pairs of name and size."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @functools.cached_property
    def shape(self) -> collections.OrderedDict[AxisName, int]:
        """From name to size, in the order of the axes."""
        return collections.OrderedDict(self.shape_tuple)

    @property
    def empty(self) -> bool:
        """Whether this is the mesh of no devices, which stands for "no mesh"."""
        return self.size == 0

    @functools.cached_property
    def _name_to_type(self) -> dict[AxisName, AxisType]:
        return dict(zip(self.axis_names, self.axis_types, strict=True))

    def in_types(self, axes: Iterable[AxisName]) -> tuple[AxisName, ...]:
        """Those of some axes that types name. A flag leaves out axes of size one."""
        if not state.remove_size_one_mesh_axis_from_type:
            return tuple(axes)
        return tuple(axis for axis in axes if self.shape.get(axis) != 1)

    def _names_of(self, wanted: AxisType) -> tuple[AxisName, ...]:
        return tuple(n for n, t in self._name_to_type.items() if t is wanted)

    # The names of the axes of a type.
    auto_axes = functools.cached_property(lambda self: self._names_of(AxisType.Auto))
    explicit_axes = functools.cached_property(
        lambda self: self._names_of(AxisType.Explicit)
    )
    manual_axes = functools.cached_property(
        lambda self: self._names_of(AxisType.Manual)
    )

    # Whether there are axes, and all are of a type.
    are_all_axes_auto = property(lambda self: {*self.axis_types} == {AxisType.Auto})
    are_all_axes_explicit = property(
        lambda self: {*self.axis_types} == {AxisType.Explicit}
    )
    are_all_axes_manual = property(lambda self: {*self.axis_types} == {AxisType.Manual})

    _any_axis_auto = property(lambda self: bool(self.auto_axes))
    _any_axis_explicit = property(lambda self: bool(self.explicit_axes))


class Mesh(BaseMesh, contextlib.ContextDecorator):
    """An array of devices whose axes have names.

    Args:
      devices: an array (or nested list) of devices of any rank.
      axis_names: a name for each axis; a string is one name.
      axis_types: an `AxisType` for each axis; all Auto by default.

    Raises:
      ValueError: if names or types do not fit the rank, or a name is None.
      TypeError: if the types are no `AxisType`s.

    Equal meshes are one object.

    Within `with mesh:` a `PartitionSpec` alone, in `with_sharding_constraint` and in
    `experimental.pjit`, refers to this mesh. It is the older form of `set_mesh`, which
    more functions know, and warns with a DeprecationWarning.

    In JAX: `jax.sharding.Mesh`.
    """

    devices: np.ndarray

    def __new__(
        cls,
        devices: Any,
        axis_names: Any,
        axis_types: tuple[AxisType, ...] | None = None,
    ) -> Mesh:
        if not isinstance(devices, np.ndarray):
            devices = np.array(devices)
        checked(axis_names, Iterable, "names as axis_names")
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        names = checked_names(names, "axis_names")
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if devices.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the "
                "length of its second argument (`axis_names`), but got devices.ndim == "
                f"{devices.ndim} and len(axis_names) == {len(names)}."
            )
        types = _axis_types_of(names, axis_types, "Mesh")
        flat = tuple(devices.flat)
        key = (flat, devices.shape, names, types)
        own = np.array(flat, dtype=object).reshape(devices.shape)
        own.flags.writeable = False
        is_empty = not names and flat[0] is None
        return cls._interned(
            _meshes,
            key,
            devices=own,
            axis_names=names,
            axis_sizes=devices.shape,
            axis_types=types,
            size=0 if is_empty else math.prod(devices.shape),
        )

    def __reduce__(self) -> Any:
        return (Mesh, (self.devices, self.axis_names, self.axis_types))

    def __enter__(self) -> Mesh:
        if state.disallow_mesh_context_manager:
            raise RuntimeError(
                "jax_disallow_mesh_context_manager forbids `with mesh:`. Write "
                "`with minijax.set_mesh(mesh):`."
            )
        warnings.warn(
            "`with mesh:` is the older form of `with minijax.set_mesh(mesh):`, which "
            "`jit`, `device_put` and `shard_map` know too.",
            DeprecationWarning,
            stacklevel=2,
        )
        block = override("entered_meshes", (*state.entered_meshes, self))
        block.__enter__()
        _blocks.__dict__.setdefault("open", []).append(block)
        return self

    def __exit__(self, *exception: Any) -> None:
        _blocks.open.pop().__exit__(*exception)

    def __str__(self) -> str:
        if self.empty:
            return "Mesh()"
        sizes = ", ".join(f"'{name}': {size}" for name, size in self.shape_tuple)
        return f"Mesh({sizes}, axis_types={self.axis_types})"

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}, "
            f"axis_types={self.axis_types})"
        )

    def update(
        self, devices: Any = None, axis_names: Any = None, axis_types: Any = None
    ) -> Mesh:
        """The same mesh with some of its parts replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @functools.cached_property
    def _internal_device_list(self) -> Any:
        return DeviceList(tuple(self.devices.flat))

    @functools.cached_property
    def device_ids(self) -> np.ndarray:
        """The devices' ids, in the shape of the mesh."""
        ids = [device.id for device in self.devices.flat]
        return np.array(ids, dtype=np.int64).reshape(self.devices.shape)

    @functools.cached_property
    def local_devices(self) -> list[Any]:
        """The devices of this process, in the order of the mesh."""
        return [
            device
            for device in self.devices.flat
            if device.process_index == device.client.process_index()
        ]

    @functools.cached_property
    def local_mesh(self) -> Mesh:
        """This process's part of the mesh, with the same axes.

        Raises ValueError if its devices are no block of the mesh.
        """
        own = set(self.local_devices)
        places = np.argwhere(np.vectorize(lambda d: d in own)(self.devices))
        if not len(places):
            return self
        first, last = places.min(axis=0), places.max(axis=0) + 1
        block = self.devices[tuple(map(slice, first, last))]
        if block.size != len(own):
            raise ValueError(
                "When passing host local inputs to pjit or pmap, devices connected to "
                "a single host must form a contiguous subcube of the global device "
                f"mesh: this process's devices {sorted(d.id for d in own)} do not in "
                f"{self}."
            )
        return self.update(devices=block)

    @property
    def is_multi_process(self) -> bool:
        """Whether other processes own some of the devices."""
        return self.devices.size != len(self.local_devices)

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """Names, sizes and types without the devices, but with their kind."""
        if not self.axis_names:
            return empty_abstract_mesh
        device = self.devices.flat[0]
        cores = {"tpu": "num_cores", "gpu": "core_count"}.get(device.platform)
        kind = AbstractDevice(
            device.device_kind,
            getattr(device, cores, None) if cores else None,
            device.platform,
        )
        return AbstractMesh(
            self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind
        )


@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """A kind of device.

    In JAX: `jax.sharding.AbstractDevice`.
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self._fields()})"

    def _fields(self) -> str:
        return (
            f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform}"
        )


class AbstractMesh(BaseMesh):
    """Names, sizes and types of mesh axes, without devices.

    Args:
      axis_sizes: a size for each axis.
      axis_names: a name for each axis.
      axis_types: an `AxisType` for each axis; all Auto by default.
      abstract_device: the kind of the devices, if it is known.

    Raises:
      ValueError: if the lengths differ.
      TypeError: if the types are no `AxisType`s.

    Equal abstract meshes are one object.

    In JAX: `jax.sharding.AbstractMesh`.
    """

    abstract_device: AbstractDevice | None

    def __new__(
        cls,
        axis_sizes: Sequence[int],
        axis_names: Sequence[AxisName],
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        sizes = tuple(axis_sizes)
        checked(axis_names, Iterable, "names as axis_names")
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(sizes) != len(names):
            raise ValueError(
                "AbstractMesh needs a name for each axis. Got axis_sizes="
                f"{sizes} and axis_names={names}"
            )
        types = _axis_types_of(names, axis_types, "AbstractMesh")
        key = (sizes, names, types, abstract_device)
        return cls._interned(
            _abstract_meshes,
            key,
            axis_sizes=sizes,
            axis_names=names,
            axis_types=types,
            abstract_device=abstract_device,
            size=math.prod(sizes) if sizes else 0,
        )

    def __reduce__(self) -> Any:
        make = functools.partial(AbstractMesh, abstract_device=self.abstract_device)
        return (make, (self.axis_sizes, self.axis_names, self.axis_types))

    def __repr__(self) -> str:
        sizes = ", ".join(f"'{name}': {size}" for name, size in self.shape_tuple)
        device = self.abstract_device
        kind = "" if device is None else f", {device._fields()}"
        return f"AbstractMesh({sizes or '()'}, axis_types={self.axis_types}{kind})"

    def update(
        self,
        axis_sizes: Any = None,
        axis_names: Any = None,
        axis_types: Any = None,
        **changed: Any,
    ) -> AbstractMesh:
        """The same mesh with some of its parts replaced."""
        changed.setdefault("abstract_device", self.abstract_device)
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **changed,
        )

    def update_axis_types(
        self, name_to_type: Mapping[AxisName, AxisType]
    ) -> AbstractMesh:
        """The same mesh with other types for some axes."""
        return self.update(
            axis_types=tuple(
                name_to_type.get(name, axis_type)
                for name, axis_type in self._name_to_type.items()
            )
        )

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    _internal_device_list = None

    def __enter__(self) -> NoReturn:
        raise ValueError(
            "AbstractMesh does not implement __enter__: it has no devices. Write `with "
            "minijax.sharding.use_abstract_mesh(mesh):`."
        )

    def __exit__(self, *exception: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name in _OF_DEVICES:
            raise ValueError(f"AbstractMesh does not implement {name}")
        raise AttributeError(f"AbstractMesh has no attribute {name!r}")


_OF_DEVICES = "device_ids devices is_multi_process local_devices local_mesh".split()
_meshes: weakref.WeakValueDictionary[Any, Mesh] = weakref.WeakValueDictionary()
_abstract_meshes: weakref.WeakValueDictionary[Any, AbstractMesh]
_abstract_meshes = weakref.WeakValueDictionary()

empty_abstract_mesh = AbstractMesh((), ())
empty_concrete_mesh = Mesh(np.empty((), dtype=object), ())


def entered_mesh() -> Mesh:
    """The mesh of the innermost `with mesh:`; an empty one if there is none."""
    return state.entered_meshes[-1] if state.entered_meshes else empty_concrete_mesh


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[AxisName],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of this shape, over the first devices of the default platform.

    The devices are taken in their own order. (For a TPU, jax orders them along the
    chips' links.)

    Args:
      axis_shapes: the size of each axis.
      axis_names: the name of each axis.
      axis_types: the type of each axis; all Explicit by default.
      devices: the devices to choose from.

    Raises:
      ValueError: if sizes are no positive integers or there are too few devices.
      TypeError: if sizes are no sequence, or devices no devices.
    """
    devices = runtime.devices() if devices is None else devices
    if not all(hasattr(device, "platform") for device in devices):
        raise TypeError(f"make_mesh takes devices, got devices={devices}")
    axis_shapes = tuple(axis_shapes)
    try:
        sizes = tuple(size.__index__() for size in axis_shapes)
    except (AttributeError, TypeError) as error:
        raise ValueError(
            "`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got "
            f"{axis_shapes}"
        ) from error
    if any(size < 1 for size in sizes):
        raise ValueError(f"make_mesh: axis_shapes={sizes} has an axis without devices.")
    count = math.prod(sizes)
    if count > len(devices):
        raise ValueError(
            f"Number of devices {len(devices)} must be >= the product of mesh_shape "
            f"{sizes}"
        )
    chosen = np.array(list(devices)[:count], dtype=object).reshape(sizes)
    axis_types = (AxisType.Explicit,) * len(sizes) if axis_types is None else axis_types
    return Mesh(chosen, axis_names, axis_types)
