"""Methods of shardings: devices, the parts on each, equality.

These are methods and properties of `Sharding` and `SingleDeviceSharding`, whose classes
are in `core/runtime.py`.

In JAX: `jax/_src/sharding.py` and `sharding_impls.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from minijax.core.runtime import Sharding, SingleDeviceSharding

F = TypeVar("F", bound=Callable)
Shape = tuple[int, ...]
Index = tuple[slice, ...]

# When jax was imported in the same process, jaxlib's own base class carries jax's
# methods, so every public name is defined anew here.


# What the two classes have besides, by name. `assembly.py` gives it to them.
SHARDING_METHODS: dict[str, Any] = {}
SINGLE_DEVICE_METHODS: dict[str, Any] = {}


def on_sharding(method: F) -> F:
    """Enter a method of `Sharding`, under its name."""
    SHARDING_METHODS[method.__name__] = method
    return method


def property_of_sharding(getter: F) -> F:
    """Enter a property of `Sharding`, under the name of its getter."""
    SHARDING_METHODS[getter.__name__] = property(getter)
    return getter


def on_single(method: F) -> F:
    """Enter a method of `SingleDeviceSharding`, under its name."""
    SINGLE_DEVICE_METHODS[method.__name__] = method
    return method


@property_of_sharding
def _device_assignment(self: Sharding) -> tuple[Any, ...]:
    """All devices, in the order in which programs number them."""
    return tuple(self._internal_device_list)


@property_of_sharding
def device_set(self: Sharding) -> set[Any]:
    """All devices that hold a part of the array."""
    return set(self._internal_device_list)


@property_of_sharding
def addressable_devices(self: Sharding) -> set[Any]:
    """The devices of this process among them."""
    return set(self._internal_device_list.addressable_device_list)


@property_of_sharding
def is_fully_addressable(self: Sharding) -> bool:
    """Whether all devices belong to this process."""
    return self._internal_device_list.is_fully_addressable


@property_of_sharding
def is_fully_replicated(self: Sharding) -> bool:
    """Whether each device holds the whole array."""
    return self.num_devices == 1


@on_sharding
def addressable_devices_indices_map(self: Sharding, global_shape: Shape) -> Mapping:
    """As `devices_indices_map`, for the devices of this process."""
    owned = self.addressable_devices
    found = self.devices_indices_map(global_shape)
    return {device: index for device, index in found.items() if device in owned}


@on_sharding
def is_equivalent_to(self: Sharding, other: Sharding, ndim: int) -> bool:
    """Whether both place the same parts of a rank-`ndim` array on the same devices.

    Two shardings can be equivalent without being equal: on one device, all are.
    """
    if self is other:
        return True
    return (
        self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
        or self.num_devices == 1
    ) and (
        self.memory_kind == other.memory_kind
        and self._internal_device_list == other._internal_device_list
    )


@on_single
def __eq__(self: SingleDeviceSharding, other: object) -> bool:
    if self is other:
        return True
    return (
        isinstance(other, SingleDeviceSharding)
        and self._device == other._device
        and self.memory_kind == other.memory_kind
    )


@on_single
def __hash__(self: SingleDeviceSharding) -> int:
    return hash((self._device, self.memory_kind))


@on_single
def __repr__(self: SingleDeviceSharding) -> str:
    kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
    return f"SingleDeviceSharding(device={self._device!r}{kind})"


@on_single
def __reduce__(self: SingleDeviceSharding) -> Any:
    make = functools.partial(SingleDeviceSharding, memory_kind=self.memory_kind)
    return make, (self._device,)


@on_single
def with_memory_kind(self: SingleDeviceSharding, kind: str) -> SingleDeviceSharding:
    """The same device, another of its memories."""
    return SingleDeviceSharding(self._device, memory_kind=kind)


@on_single
def shard_shape(self: SingleDeviceSharding, global_shape: Shape) -> Shape:
    """The shape of the part on each device: here the whole."""
    return tuple(global_shape)


@on_single
def devices_indices_map(
    self: SingleDeviceSharding, global_shape: Shape
) -> dict[Any, Index]:
    """Which slice of the array each device holds: here everything."""
    return {self._device: (slice(None),) * len(global_shape)}
