"""Where an array is: its devices, its parts on them, its memory there.

These are methods and properties of `Array`; the class itself, with the values, is in
`core/array.py`.

In JAX: `jax/_src/array.py`, `ArrayImpl` and `Shard`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from minijax.backend import buffer_copies
from minijax.core import errors
from minijax.core.array import Array, first_device, wrap_as
from minijax.core.events import enter
from minijax.core.language import ShapedArray
from minijax.support.devices.layouts import Format, layout_of_xla, unusual, with_layout
from minijax.support.special_errors import add_callback_cause

F = TypeVar("F", bound=Callable)


# What `Array` has besides, by name. `assembly.py` gives it to the class.
ARRAY_METHODS: dict[str, Any] = {}


def on_array(method: F) -> F:
    """Enter a method of `Array`, under its name."""
    enter(ARRAY_METHODS, method.__name__, method)
    return method


def property_of_array(getter: F) -> F:
    """Enter a property of `Array`, under the name of its getter."""
    enter(ARRAY_METHODS, getter.__name__, property(getter))
    return getter


@property_of_array
def committed(self: Array) -> bool:
    """Whether computations with this array must run where it is."""
    # `_placed` is a sharding then; else None, or the device it happens to be on.
    return self._placed is not None and not hasattr(self._placed, "platform")


@property_of_array
def device(self: Array) -> Any:
    """The device, or the sharding when there are several."""
    devices = self._buffer._sharding.device_set
    return next(iter(devices)) if len(devices) == 1 else self._buffer._sharding


@property_of_array
def format(self: Array) -> Format:
    """How the elements lie in memory, and on which devices."""
    layout = None if self.is_deleted() else layout_of_xla(self._buffer._pjrt_layout)
    return Format(layout, self.sharding)


@on_array
def devices(self: Array) -> set:
    """The devices that hold a part of the array."""
    return set(self._buffer._sharding.device_set)


@property_of_array
def is_fully_addressable(self: Array) -> bool:
    return self._buffer._sharding.is_fully_addressable


@property_of_array
def is_fully_replicated(self: Array) -> bool:
    return self._buffer._sharding.is_fully_replicated


@property_of_array
def addressable_shards(self: Array) -> list[Shard]:
    """The parts of the array on this process's devices."""
    sharding = self._buffer._sharding
    addends = self.aval.cut is not None and self.aval.cut.spec.unreduced
    indices = {} if addends else sharding.devices_indices_map(self.shape)
    copies = _replica_ids(indices)
    return [
        Shard(device, indices.get(device), wrap(part), copies.get(device))
        for device, part in buffer_copies.shards(self._buffer)
    ]


@property_of_array
def global_shards(self: Array) -> list[Shard]:
    """The parts on all devices. Those of other processes come without data."""
    if self.is_fully_addressable:
        return self.addressable_shards
    here = {shard.device: shard for shard in self.addressable_shards}
    indices = self._buffer._sharding.devices_indices_map(self.shape)
    copies = _replica_ids(indices)
    return [
        here.get(device) or Shard(device, index, None, copies[device])
        for device, index in indices.items()
    ]


def _replica_ids(indices: dict[Any, tuple]) -> dict[Any, int]:
    """Which copy of its part each device holds, counted from 0."""
    seen: dict[tuple, int] = {}
    found = {}
    for device, index in indices.items():
        key = tuple((part.start, part.stop) for part in index)
        found[device] = seen[key] = seen.get(key, -1) + 1
    return found


@on_array
def addressable_data(self: Array, index: int) -> Array:
    """The values of the part `index` on this process's devices."""
    return self.addressable_shards[index].data


@on_array
def copy_to_host_async(self: Array) -> None:
    """Begin copying the values to the host, so that reading them waits less."""
    self._check_alive()
    buffer_copies.copy_to_host_async(self._buffer)


@on_array
def is_ready(self: Array) -> bool:
    """Whether the values are there already."""
    return self._buffer.is_ready()


@on_array
def unsafe_buffer_pointer(self: Array) -> int:
    """The address of the array's memory on its device."""
    self._check_alive()
    return buffer_copies.unsafe_buffer_pointer(self._buffer)


@on_array
def delete(self: Array) -> None:
    """Free the memory now; the array cannot be used any more."""
    self._host = None
    self._placed = self._buffer._sharding  # so that later calls look at the buffer
    self._buffer.delete()


@on_array
def on_device_size_in_bytes(self: Array) -> int:
    """Bytes the array takes on its device."""
    return self._buffer.on_device_size_in_bytes()


@property_of_array
def sharding(self: Array) -> Any:
    """How the array is laid out over devices."""
    return self._buffer._sharding


@on_array
def is_deleted(self: Array) -> bool:
    """Whether the memory was freed, by `delete` or by donating the array."""
    return self._buffer.is_deleted()


@on_array
def _check_alive(self: Array) -> None:
    if self._buffer.is_deleted():
        raise deleted_error(self)


@on_array
def _read(self: Array) -> np.ndarray:
    try:
        return buffer_copies.to_numpy(self._buffer)
    except RuntimeError as error:
        if self._buffer.is_deleted():
            raise deleted_error(self) from None
        if isinstance(error, errors.JaxRuntimeError):
            add_callback_cause(error)
        raise


@on_array
def block_until_ready(self: Array) -> Array:
    """Wait until the values are there; returns the array itself."""
    self._check_alive()
    try:
        self._buffer.block_until_ready()
    except errors.JaxRuntimeError as error:
        add_callback_cause(error)
        raise
    return self


def deleted_error(array: Array) -> RuntimeError:
    """The error for using an array whose memory is gone."""
    type_text = array.aval.str_short()
    return errors.with_facts(
        RuntimeError(
            f"Array has been deleted with shape={type_text}. It was donated to a "
            "jitted function (donate_argnums, donate_argnames), which reused its "
            "memory, or `.delete()` was called. Use the function's result instead, or "
            "do not donate the argument."
        ),
        rule="a donated array is gone after the call",
        instead="x = f(x)",
    )


@dataclass(eq=False, repr=False, slots=True)
class Shard:
    """One part of an array: its device, which slice of the whole it is, its data."""

    device: Any
    index: Any  # None of a device's addend, which is no slice
    data: Array | None  # None on the device of another process
    replica_id: Any = 0

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, "
            f"replica_id={self.replica_id}, data={self.data})"
        )


def wrap(buffer: Any) -> Array:
    """An Array around a jaxlib array of unknown origin, its type read off."""
    kind = buffer.aval
    aval = ShapedArray(kind.shape, kind.dtype, bool(kind.weak_type))
    return wrap_as(buffer, aval, placement_of(buffer))


def placement_of(buffer: Any) -> Any:
    """The `_placed` that belongs to a buffer."""
    layout = unusual(layout_of_xla(buffer._pjrt_layout))
    if layout is not None:
        return with_layout(buffer._sharding, layout, buffer._committed)
    if buffer._committed:
        return buffer._sharding
    device = next(iter(buffer._sharding.device_set))
    return None if device == first_device() else device
