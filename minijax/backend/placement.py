"""How jaxlib is told on which devices an array lives: the base of all shardings.

`minijax.sharding` builds its named shardings on `Sharding`. The class for one device
stands here, because this room needs it to put a value on a device.

In JAX: `jax/_src/sharding.py`, `Sharding`, and `sharding_impls.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minijax.backend.door import DeviceList, HloSharding, _jax

Shape = tuple[int, ...]
Index = tuple[slice, ...]

replicated = HloSharding.replicate()


class Sharding(_jax.Sharding):
    """Which part of an array each device holds.

    jaxlib reads `_internal_device_list`, `memory_kind`, `num_devices` and
    `_to_xla_hlo_sharding` of it. When jax was imported in the same process, jaxlib's
    own base class carries jax's methods, so every public name is defined anew here.

    In JAX: `jax.sharding.Sharding`.
    """

    memory_kind: str | None = None
    num_devices: int = 0
    _internal_device_list: Any = None

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        """All devices, in the order in which programs number them."""
        return tuple(self._internal_device_list)

    @property
    def device_set(self) -> set[Any]:
        """All devices that hold a part of the array."""
        return set(self._internal_device_list)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process among them."""
        return set(self._internal_device_list.addressable_device_list)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return self._internal_device_list.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return self.num_devices == 1

    def addressable_devices_indices_map(self, global_shape: Shape) -> Mapping:
        """As `devices_indices_map`, for the devices of this process."""
        owned = self.addressable_devices
        found = self.devices_indices_map(global_shape)
        return {device: index for device, index in found.items() if device in owned}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
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


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
      device: a device of `minijax.devices()`.
      memory_kind: where on the device; None means the device's default memory.

    In JAX: `jax.sharding.SingleDeviceSharding`.
    """

    num_devices = 1
    is_fully_replicated = True

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        super().__init__()
        self._device = device
        self._internal_device_list = DeviceList((device,))
        self.memory_kind = check_memory_kind(memory_kind, self._internal_device_list)
        self._hash = hash((device, self.memory_kind))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"SingleDeviceSharding(device={self._device!r}{kind})"

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, another of its memories."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of the part on each device: here the whole."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """Which slice of the array each device holds: here everything."""
        return {self._device: (slice(None),) * len(global_shape)}

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return replicated


def check_memory_kind(kind: str | None, devices: Any) -> str | None:
    """The memory kind itself, or the devices' default one for None.

    Raises:
      ValueError: if the devices have no memory of this kind.
    """
    return _jax.check_and_canonicalize_memory_kind(kind, devices)
