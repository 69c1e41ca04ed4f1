"""device_put between several devices, also for arrays that other processes share.

An array of which other processes hold parts cannot be read and cut up again here; a
program that returns it, cut as wanted, moves its parts. All processes run it.

In JAX: `jax/_src/dispatch.py`, `_device_put_sharding_impl`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.backend.buffer_copies import to_numpy
from minijax.compile import placing
from minijax.compile.jit_api import jit
from minijax.core import errors
from minijax.core.array import Array
from minijax.core.language import get_aval, physical_aval
from minijax.primitives.refs.mutable_arrays import Ref
from minijax.processes.fingerprints import compare_values
from minijax.programs.sharding import placement
from minijax.programs.sharding.constraints import refuse_empty
from minijax.programs.sharding.contexts import mesh_in_use, sharding_of
from minijax.support.devices.shardings import PartitionSpec


@placing.put_on_several.attach
def put_on_several(value: Any, sharding: Any) -> Array:
    """An array cut up over several devices; see `placement.put_on_several`.

    Raises:
      ValueError: for an array that other processes share and other devices than its
        own.
      AssertionError: if the processes give different values.
    """
    sharding = sharding_of(sharding, "device_put", mesh_in_use(), ValueError)
    refuse_empty(sharding, "device_put")
    spec = getattr(sharding, "spec", None)
    if spec is not None and PartitionSpec.UNCONSTRAINED in spec.partitions:
        raise errors.value_error(
            f"device_put got {spec}: only the compiler of a program can choose how a "
            "dimension is cut. Write None, or the axes."
        )
    if type(value) is Array and spec is not None and spec.unreduced:
        return _moved_by_program(value, sharding)
    if type(value) is Array and not value.is_fully_addressable:
        if not value.is_fully_replicated or not value.sharding.addressable_devices:
            return _moved_by_program(value, sharding)
    elif not sharding.is_fully_addressable and type(value) is not Ref:
        # Each process cuts its parts out of its own value.
        if type(value) is not Array or not value.committed:
            kind = physical_aval(get_aval(value))
            held = value._buffer if type(value) is Array else None
            host = to_numpy(held) if held is not None else np.asarray(value)
            devices = sharding._internal_device_list
            compare_values("device_put", np.asarray(host, kind.dtype), devices)
    return placement.put_on_several(value, sharding)


def _moved_by_program(value: Array, sharding: Any) -> Array:
    if value.sharding == sharding:
        return value
    if value.sharding._internal_device_list != sharding._internal_device_list:
        raise errors.value_error(
            "device_put: the array lies on the devices "
            f"{[d.id for d in value.sharding._internal_device_list]}, some of them of "
            "other processes, and cannot be moved to the devices "
            f"{[d.id for d in sharding._internal_device_list]}. Give a sharding of the "
            "same devices in the same order."
        )
    return returning(sharding)(value)


@functools.lru_cache(maxsize=256)
def returning(sharding: Any) -> Callable[[Any], Any]:
    """A program that returns its argument, lying as the sharding says."""

    def moved(x: Any) -> Any:
        return x

    return jit(moved, out_shardings=sharding)
