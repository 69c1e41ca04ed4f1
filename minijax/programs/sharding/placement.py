"""Several devices as the place where a program runs, and arrays spread over them.

Where a program on one device has the device, a program on several has a `Placement`:
the devices, and the sharding of each argument. It stands in the same cache keys.

In JAX: `interpreters/pxla.py`, `_get_and_check_device_assignment` and `shard_args`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend import buffer_copies
from minijax.backend.buffer_copies import ShardingOfSeveral, to_numpy
from minijax.compile import placing
from minijax.core import errors
from minijax.core.array import Array, first_device, wrap_as
from minijax.core.language import get_aval, physical_aval
from minijax.core.runtime import single_device_sharding
from minijax.core.state import state
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.programs.sharding.contexts import mesh_in_use, sharding_of
from minijax.programs.sharding.explicit_types import typed
from minijax.support.devices.layouts import with_layout
from minijax.support.devices.shardings import (
    AbstractMesh,
    Mesh,
    NamedSharding,
    PartitionSpec,
    check_distinct,
)

_ROW = "devices"  # the only axis of a mesh that no user made

# For each argument its sharding, or None where the compiler chooses.
Shardings = tuple[Any, ...]


@dataclass(eq=False)
class Placement:
    """The devices of a program, and how its arguments lie on them.

    Equal placements are one object; make them with `placement_of`.

    Attributes:
      devices: jaxlib's list of devices, in the order in which the program numbers them;
        None if the mesh is an abstract one: the program can only be lowered.
      in_shardings: the sharding of each argument; None where the compiler chooses.
      out_shardings: the same for the results; None if it chooses all.
      mesh: the mesh whose axes name the shardings that the compiler chooses.
      layouts: those of arguments and results, `Layout.AUTO` where the compiler chooses,
        None for row-major order; None for all: nothing lies otherwise.
    """

    devices: Any
    in_shardings: Shardings
    out_shardings: Shardings | None
    mesh: Mesh
    layouts: tuple[tuple, tuple] | None = None

    def __post_init__(self) -> None:
        check_distinct(self.devices or ())
        self.platform = self.devices[0].platform if self.devices else None
        self.replicated: Any = NamedSharding(self.mesh, PartitionSpec())
        # One device alone, whose program has layouts.
        self.alone = self.mesh.size == 1 and self.mesh.axis_names == (_ROW,)
        if self.alone:
            self.replicated = single_device_sharding(self.devices[0])


_placements: dict[tuple, Placement] = {}
# By the ids of the shardings, which are quicker to hash; the placement keeps them.
_by_identity: dict[tuple, tuple[Placement, Any]] = {}
_LIMIT = 4096


def placement_of(
    devices: Any,
    in_shardings: Shardings,
    mesh: Mesh,
    out_shardings: Shardings | None = None,
    layouts: Any = None,
) -> Placement:
    """The placement with these parts: always the same object."""
    # Shardings with different layouts compare equal.
    own = tuple(sharding and sharding.layout for sharding in in_shardings)
    key = (devices, in_shardings, out_shardings, mesh, own, layouts)
    found = _placements.get(key)
    if found is None:
        if len(_placements) >= _LIMIT:
            _placements.clear()
            _by_identity.clear()
        new = Placement(devices, in_shardings, out_shardings, mesh, layouts)
        found = _placements.setdefault(key, new)
    return found


def is_spread(sharding: Any) -> bool:
    """Whether a sharding is one that may have several devices."""
    return isinstance(sharding, ShardingOfSeveral)


# ----------------------------------------------------------------------------------
# The arguments of a program
# ----------------------------------------------------------------------------------


def place(
    values: Sequence[Any], avals: Sequence[Any], device: Any = None
) -> tuple[Any, bool, list[Any]]:
    """(where to run, whether an argument is committed to it, the buffers).

    A `Placement` if one of the values lies on several devices. A value committed to
    nothing stays where it is until the compiler has chosen its sharding.

    Raises ValueError when two values are committed to different devices.
    """
    if type(device) is Placement:
        spread = [spread_out(*pair, device.replicated) for pair in zip(values, avals)]
        return device, True, spread
    if device is None and lie_on_several(values):
        return _place_on_several(values)
    return placing.place(values, avals, device)


def lie_on_several(values: Sequence[Any]) -> bool:
    """Whether one of the values is spread, or two are committed to two devices.

    Or one has a layout of its own: then its program has a `Placement`, too.
    """
    places = placing.committed_places(values)
    devices = {device for place in places for device in place.device_set}
    spread = len(devices) > 1 or any(map(is_spread, places))
    return spread or any(place.layout is not None for place in places)


def _place_on_several(values: Sequence[Any]) -> tuple[Placement, bool, list[Any]]:
    shardings = []
    buffers = []
    for value in values:
        content = value._array if type(value) is Ref else value
        if type(content) is Array and content._placed is not None:
            content._check_alive()
            if content.committed:
                shardings.append(content._placed)
                buffers.append(value if value is not content else content._buffer)
                continue
        shardings.append(None)
        buffers.append(placing.buffer_on(value, first_device()))
    key = tuple(map(id, shardings))
    found = _by_identity.get(key)
    if found is None:
        # That the others are on the same devices is asked where they are used.
        devices, mesh = agreed([next(filter(None, shardings))])
        placement = placement_of(devices, tuple(shardings), mesh)
        found = _by_identity[key] = (placement, shardings)
    return found[0], True, buffers


def agreed(shardings: Sequence[Any], closed: Any = None) -> tuple[Any, Mesh]:
    """The one list of devices on which all committed arguments lie, and their mesh."""
    named = [
        ((closed, position), sharding._internal_device_list)
        for position, sharding in enumerate(shardings)
        if sharding is not None
    ]
    check_alike(named)
    return named[0][1], mesh_of(*shardings) or flat_mesh(named[0][1])


def check_alike(named: Sequence[tuple[Any, Any]]) -> None:
    """ValueError unless all entries have the same devices in the same order.

    An entry is (what, devices). `what` is a text for the message, or for an argument
    (the program, its position).
    """
    for what, devices in named:
        if devices != named[0][1]:
            first, other = (_told(*pair) for pair in (named[0], (what, devices)))
            raise errors.value_error(
                f"Received incompatible devices for jitted computation. Got {first} "
                f"and {other}. Use the same devices in the same order; "
                "`minijax.device_put(x, other.sharding)` moves an array."
            )


def _told(what: Any, devices: Sequence[Any]) -> str:
    """What names devices, for a message: an argument by its path and type."""
    if not isinstance(what, str):
        (closed, at), info = what, what[0].jaxpr.debug_info
        name = dict(enumerate(info.arg_names)).get(at, at)
        what = f"argument {name} of {info.func_name} with shape "
        what += f"{closed.in_avals[at].str_short()} and "
    ids, platform = [one.id for one in devices], devices[0].platform.upper()
    return f"{what}with device ids {ids} on platform {platform}"


def mesh_of(*shardings: Any) -> Mesh | None:
    """The first mesh with devices among those of the shardings."""
    meshes = (getattr(sharding, "mesh", None) for sharding in shardings)
    return next((mesh for mesh in meshes if isinstance(mesh, Mesh)), None)


def with_devices(shardings: Sequence[Any], mesh: Mesh | None) -> list[Any]:
    """The shardings, those over an abstract mesh on the devices of one with its axes.

    That is the mesh in use, or else `mesh`. Raises ValueError if neither has its axes.
    """
    meshes = [one for one in (context_mesh(), mesh) if one is not None]
    found = []
    for sharding in shardings:
        own = getattr(sharding, "mesh", None)
        if isinstance(own, AbstractMesh):
            fits = [one for one in meshes if one.abstract_mesh == own]
            if not fits:
                raise errors.value_error(
                    f"jit got {sharding}, which names no devices. Give the spec alone, "
                    "or a mesh with devices."
                )
            sharding = sharding.update(mesh=fits[0])
        found.append(sharding)
    return found


def flat_mesh(devices: Any) -> Mesh:
    """The devices in a row, for shardings that no mesh of the user describes."""
    return Mesh(np.array(list(devices), dtype=object), (_ROW,))


# ----------------------------------------------------------------------------------
# Arrays
# ----------------------------------------------------------------------------------


def spread_out(value: Any, aval: Any, sharding: Any) -> Any:
    """The buffer of a value of type `aval`, cut up as the sharding says.

    The value is an Array on one device, a NumPy array or a number.
    """
    if type(value) is Array:
        if value._placed is not None:
            value._check_alive()
        if value._buffer._sharding == sharding:
            return placing.in_layout(value, sharding.layout)._buffer
        return _spread_host(value._read(), value._buffer.aval, sharding)
    physical = physical_aval(aval)
    return _spread_host(np.asarray(value, physical.dtype), physical, sharding)


def spread_buffer(buffer: Any, sharding: Any) -> Any:
    """A jaxlib array, wherever it lies, copied to where the sharding says."""
    if buffer._sharding == sharding and sharding.layout is None:
        return buffer
    return _spread_host(to_numpy(buffer), buffer.aval, sharding)


def _spread_host(host: np.ndarray, physical: Any, sharding: Any) -> Any:
    if sharding.layout is not None:
        plain = with_layout(sharding, None)
        spread = wrap_as(_spread_host(host, physical, plain), physical, plain)
        return placing.in_layout(spread, sharding.layout)._buffer
    indices = sharding.addressable_devices_indices_map(host.shape)
    owned = list(sharding._internal_device_list.addressable_device_list)
    parts = [host[indices[device]] for device in owned]
    return buffer_copies.put_shards(parts, physical, sharding)


def put_on_several(value: Any, sharding: Any) -> Array:
    """An array cut up over several devices.

    Raises:
      IndivisibleError: (a ValueError) if a dimension cannot be cut evenly.
      TypeError: if the value is a ref.
    """
    if type(value) is Ref:
        raise TypeError(
            "device_put takes arrays, got a ref. Put its content there, and make a ref "
            "of it: `new_ref(device_put(ref[...], sharding))`."
        )
    aval = get_aval(value)
    sharding = sharding_of(sharding, "device_put", mesh_in_use(), ValueError)
    sharding.shard_shape(aval.shape)
    if type(value) is Array:
        value._check_alive()
        if value.committed and value._placed == sharding:
            return value
    buffer = spread_out(value, aval, sharding)
    return wrap_as(buffer, typed(aval, sharding), sharding)


def context_mesh() -> Mesh | None:
    """The mesh of `set_mesh`, if it has devices, with the axis types of this place."""
    mesh, inside = state.mesh, state.abstract_mesh
    if not isinstance(mesh, Mesh) or mesh.empty:
        return None
    same = inside is not None and inside.shape_tuple == mesh.shape_tuple
    return mesh.update(axis_types=inside.axis_types) if same else mesh
