"""Putting arrays on devices.

In JAX: `jax/_src/dispatch.py`, `device_put_p`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.array import Array, put, wrap_as
from minijax.backend import platforms
from minijax.core import Tracer, get_aval


def device_put(value: Any, device: Any = None) -> Any:
    """An array on a device; inside a transformation, the value itself.

    In a program that is being written every array is where the program runs.
    """
    if isinstance(value, Tracer):
        return value
    target = _device_of(device)
    if type(value) is Array:
        if target is None:
            return value
        value._check_alive()
        if value.devices() == {target} and value.committed:
            return value
        sharding = platforms.single_device_sharding(target)
        return wrap_as(
            platforms.copy_to_device(value._buffer, target), value.aval, sharding
        )
    aval = get_aval(value)
    return put(np.asarray(value, aval.dtype), aval, target)


def _device_of(device: Any) -> Any:
    if device is None or hasattr(device, "platform"):
        return device
    devices = getattr(device, "device_set", None)
    if devices is not None and len(devices) == 1:
        return next(iter(devices))
    raise ValueError(
        f"device_put takes a device or a sharding of one device, got {device!r}. "
        "Arrays spread over several devices are not supported here yet."
    )
