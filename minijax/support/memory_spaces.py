"""The memories of a device: its own, and the host's that it can reach.

In JAX: `jax/_src/core.py`, `MemorySpace`.
"""

from __future__ import annotations

import enum
from typing import Any

from minijax.core import runtime


class MemorySpace(enum.Enum):
    """Where an array lies: in the device's memory, in the host's, or anywhere."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__

    @property
    def of_type(self) -> MemorySpace | None:
        """The memory space in the type of an array there; None for the device's."""
        return None if self is MemorySpace.Device else self


_spaces = {"device": MemorySpace.Device, "pinned_host": MemorySpace.Host}


def space_of_kind(kind: str) -> MemorySpace:
    """The space that holds memory of this kind; ValueError for an unknown one."""
    space = _spaces.get(kind)
    if space is None:
        raise ValueError(
            f"the memory kind must be one of {', '.join(map(repr, _spaces))}; got "
            f"{kind!r}."
        )
    return space


def space_at(place: Any) -> MemorySpace | None:
    """The space that a place names: a space itself, or a sharding's memory kind."""
    if isinstance(place, MemorySpace):
        return place
    return _spaces.get(getattr(place, "memory_kind", None) or "")


def sharding_in(space: MemorySpace | None, device: Any) -> Any:
    """One device with its memory of this space."""
    if space is not MemorySpace.Host:
        return runtime.single_device_sharding(device)
    return runtime.SingleDeviceSharding(device, memory_kind="pinned_host")
