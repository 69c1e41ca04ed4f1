"""Putting arrays on devices, and choosing the device a program runs on.

In JAX: `jax/_src/dispatch.py`, `device_put_p`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import buffer_copies
from minijax.core import dispatch, errors, runtime
from minijax.core.array import Array, default_device, first_device, put, wrap_as
from minijax.core.events import Hook
from minijax.core.language import ClosedJaxpr, Tracer, get_aval, physical_aval
from minijax.core.partial_eval import trace_to_jaxpr
from minijax.primitives.parallel.device_moves import placed_aval, put_now
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.support.devices.layouts import Format, Layout, unusual, with_layout
from minijax.support.devices.partition_spec import PartitionSpec
from minijax.support.memory_spaces import MemorySpace, sharding_in, space_at


@Hook
def put_on_several(value: Any, sharding: Any) -> Array:
    """An array cut up over several devices.

    `programs/sharding/placement.py` attaches it; by default there are not several.
    """
    raise NotImplementedError("`import minijax` attaches arrays on several devices.")


@put_now.attach
def device_put(value: Any, device: Any = None) -> Any:
    """An array on a device or in one of its memories, now; a tracer stays as it is.

    Raises ValueError for any other place.
    """
    if isinstance(value, Tracer):
        check_place(device)
        return value
    if isinstance(device, Format):
        return put_in_format(value, device)
    if isinstance(device, (buffer_copies.ShardingOfSeveral, PartitionSpec)):
        return put_on_several.run(value, device)
    if isinstance(device, MemorySpace):
        return _put_in_memory(value, device)
    target = _device_of(device)
    if space_at(device) is MemorySpace.Host:
        return _put_in_memory(device_put(value, target), MemorySpace.Host)
    if type(value) is Ref:
        raise TypeError(
            "device_put takes arrays, got a ref. Put its content there, and make a ref "
            "of it: `new_ref(device_put(ref[...], device))`."
        )
    if type(value) is Array:
        if target is None:
            return value
        value._check_alive()
        if in_other_memory(value.aval):
            value = _put_in_memory(value, MemorySpace.Device)
        if value.devices() == {target} and value.committed:
            return value
        sharding = runtime.single_device_sharding(target)
        moved = wrap_as(_copied_to(value, target), value.aval, sharding)
        if len(value.devices()) > 1:  # as in JAX, the copy is row-major
            return moved
        return in_layout(moved, getattr(value._placed, "layout", None))
    aval = get_aval(value)
    return put(np.asarray(value, aval.dtype), aval, target)


def put_in_format(value: Any, place: Format) -> Array:
    """An array moved to a sharding's devices and stored in a layout.

    Raises ValueError for `Layout.AUTO`, and where `Layout.check` does.
    """
    if place.layout is Layout.AUTO:
        raise errors.value_error(
            f"device_put got {place}: only the compiler of a program chooses a layout. "
            "Give one, such as `Layout((1, 0))`."
        )
    if isinstance(place.layout, Layout):
        shape = physical_aval(get_aval(value)).shape
        place.layout.check(shape, "an argument of device_put")
    return in_layout(device_put(value, place.sharding), unusual(place.layout))


def in_layout(array: Array, layout: Layout | None) -> Array:
    """The array on the same devices, stored in a layout; None means row-major."""
    held = getattr(array._placed, "layout", None)
    if held == layout:
        return array
    if not array.committed:
        array = wrap_as(array._buffer, array.aval, with_layout(array.sharding, held))
    closed = _identity(array.aval)
    settings = None, False, (), (array.sharding,), ((None,), (layout,))
    return dispatch.run_closed(closed, [array], "in_layout", *settings)[0]


@functools.lru_cache(maxsize=256)
def _identity(aval: Any) -> ClosedJaxpr:
    return ClosedJaxpr(*trace_to_jaxpr(lambda x: [x], (aval,)))


def _put_in_memory(value: Any, space: MemorySpace) -> Array:
    array = value if type(value) is Array else device_put(value)
    array._check_alive()
    (device,) = array.devices()
    aval = placed_aval(array.aval, space)
    return array if aval is array.aval else _copied(array, aval, device)


def _copied(array: Array, aval: Any, device: Any) -> Array:
    """A copy in that memory of the device which the type `aval` says."""
    sharding = sharding_in(aval.memory_space, device)
    array = in_layout(array, None)
    return wrap_as(
        buffer_copies.copy_to_sharding(array._buffer, sharding), aval, sharding
    )


def _copied_to(array: Array, device: Any) -> Any:
    """The buffer of a copy on one device; parts on several are put together."""
    array = in_layout(array, None)
    if array._buffer._sharding.num_devices > 1:
        return runtime.put(array._read(), array._buffer.aval, device, True)
    return buffer_copies.copy_to_device(array._buffer, device)


def in_other_memory(aval: Any) -> bool:
    """Whether arrays of this type lie in another memory than that of their device."""
    return getattr(aval, "memory_space", None) is MemorySpace.Host


def move_to_memories(arrays: list[Array], device: Any) -> list[Array]:
    """Results of a program, which are on its device, in the memories of their types."""
    return [
        _copied(array, array.aval, device) if in_other_memory(array.aval) else array
        for array in arrays
    ]


def check_place(device: Any) -> None:
    """ValueError unless `device` is a place for an array in a program."""
    if not isinstance(
        device, (MemorySpace, buffer_copies.ShardingOfSeveral, PartitionSpec, Format)
    ):
        _device_of(device)


def _device_of(device: Any) -> Any:
    if device is None or hasattr(device, "platform"):
        return device
    devices = getattr(device, "device_set", None)
    if devices is not None and len(devices) == 1:
        return next(iter(devices))
    raise ValueError(
        "device_put takes a device, a sharding, a Format, a `memory.Space` or None (or "
        f"a tree of them), got {device!r}."
    )


# ----------------------------------------------------------------------------------
# Arguments
# ----------------------------------------------------------------------------------


def committed_places(values: Sequence[Any]) -> list[Any]:
    """The shardings of the arrays among the values that are committed."""
    contents = [one._array if type(one) is Ref else one for one in values]
    return [c._placed for c in contents if type(c) is Array and c.committed]


def choose_device(args: Sequence[Any]) -> tuple[Any, bool]:
    """(the device to run on, whether an argument is committed to it).

    Raises ValueError when two arguments are committed to different devices.
    """
    devices = {one for place in committed_places(args) for one in place.device_set}
    if len(devices) > 1:
        raise ValueError(
            "Received incompatible devices for jitted computation: the arguments are "
            f"on {devices}. Move them with `minijax.device_put(x, device)`."
        )
    return (devices.pop(), True) if devices else (default_device(), False)


def place(
    values: Sequence[Any], avals: Sequence[Any], device: Any = None
) -> tuple[Any, bool, list[Any]]:
    """(the device to run on, whether a value is committed to it, the buffers).

    Raises ValueError when two values are committed to different devices.
    """
    committed = False
    if device is None:
        device, committed = choose_device(values)
    buffers = [_buffer_on(*pair, device) for pair in zip(values, avals)]
    return device, committed, buffers


def buffer_on(value: Any, device: Any) -> Any:
    """A value as a jaxlib array on a device; a ref stays a ref."""
    return _buffer_on(value, get_aval(value), device)


def _buffer_on(value: Any, aval: Any, device: Any) -> Any:
    if type(value) is Array:
        if value._placed is None and device == first_device():
            return value._buffer
        value._check_alive()
        value = in_layout(value, None)
        if value.devices() == {device} and not in_other_memory(aval):
            return value._buffer
        return _copied_to(value, device)
    if type(value) is Ref:
        return value
    if hasattr(value, "__jax_array__"):
        return buffer_on(value.__jax_array__(), device)
    return dispatch.host_buffer(value, aval, device)
