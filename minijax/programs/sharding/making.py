"""Arrays on several devices, made of parts.

In JAX: `jax/_src/array.py`, `make_array_from_callback` and others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.backend import buffer_copies
from minijax.compile import placing
from minijax.core import dtypes, errors
from minijax.core.array import Array, wrap_as
from minijax.core.language import ShapedArray, physical_aval
from minijax.programs.sharding.explicit_types import typed
from minijax.support.devices.shardings import Sharding

Shape = tuple[int, ...]


def make_array_from_callback(
    shape: Shape, sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Array:
    """An array whose parts a function gives: each process makes only its own.

    Args:
      shape: the shape of the whole.
      sharding: how it is cut.
      data_callback: from the index of a part (a tuple of slices) to its values. Called
        once for each different part of this process.
      dtype: the dtype; by default that of the values.

    Raises:
      ValueError: if a part has the wrong shape, or the array cannot be cut so.
      TypeError: if `sharding` is not a sharding.
    """
    _check_sharding(sharding, "make_array_from_callback")
    shape = tuple(shape)
    part_shape = sharding.shard_shape(shape)
    indices = sharding.addressable_devices_indices_map(shape)
    made: dict[tuple, np.ndarray] = {}
    parts = []
    for device in sharding._internal_device_list.addressable_device_list:
        index = indices[device]
        key = tuple((part.start, part.stop) for part in index)
        if key not in made:
            value = np.asarray(data_callback(index))
            if value.shape != part_shape:
                raise errors.value_error(
                    f"make_array_from_callback: data_callback({index}) returned an "
                    f"array of shape {value.shape}; the part has shape {part_shape}."
                )
            kind = dtypes.canonicalize_dtype(value.dtype if dtype is None else dtype)
            made[key] = value.astype(kind)
        parts.append(made[key])
    if not parts:
        raise errors.value_error(
            "make_array_from_callback: this process has none of the sharding's devices."
        )
    return _of_parts(parts, ShapedArray(shape, parts[0].dtype), sharding)


def _check_sharding(sharding: Any, function: str) -> None:
    if not isinstance(sharding, Sharding):
        raise errors.type_error(
            f"{function} takes a sharding, got {sharding!r}. Write `NamedSharding(mesh,"
            " spec)`; to a layout, move the result: `device_put(result, format)`."
        )


def _of_parts(parts: Sequence[Any], aval: Any, sharding: Any) -> Array:
    buffer = buffer_copies.put_shards(parts, physical_aval(aval), sharding)
    return wrap_as(buffer, typed(aval, sharding), sharding)


def make_array_from_single_device_arrays(
    shape: Shape, sharding: Any, arrays: Sequence[Array], *, dtype: Any = None
) -> Array:
    """An array of the parts that lie on the devices already; nothing is copied.

    Args:
      shape: the shape of the whole.
      sharding: how it is cut.
      arrays: one array on each device of this process.
      dtype: needed where this process has no device of the sharding; else the arrays'.

    Raises:
      TypeError: if `arrays` is not a sequence of arrays, or `sharding` no sharding.
      ValueError: if the devices, shapes or dtypes do not fit.
    """
    if isinstance(arrays, Array) or not isinstance(arrays, Sequence):
        raise errors.type_error(
            "make_array_from_single_device_arrays takes a list of arrays, one for each "
            f"device, got {type(arrays).__name__}."
        )
    _check_sharding(sharding, "make_array_from_single_device_arrays")
    shape = tuple(shape)
    part_shape = sharding.shard_shape(shape)
    owned = list(sharding._internal_device_list.addressable_device_list)
    by_device: dict[Any, Array] = {}
    for array in arrays:
        if not isinstance(array, Array):
            raise errors.type_error(
                "make_array_from_single_device_arrays takes a list of arrays, and one "
                f"is of type {type(array).__name__}. `device_put` it first."
            )
        if len(array.devices()) != 1:
            raise errors.value_error(
                "make_array_from_single_device_arrays: each of `arrays` lies on one "
                f"device; got {array!r}."
            )
        if array.shape != part_shape:
            raise errors.value_error(
                "make_array_from_single_device_arrays: a part has shape "
                f"{part_shape} under {sharding}, got one of shape {array.shape}."
            )
        by_device[next(iter(array.devices()))] = array
    if not len(by_device) == len(arrays) == len(owned) or set(by_device) != set(owned):
        raise errors.value_error(
            "make_array_from_single_device_arrays: `arrays` must hold one array for "
            f"each of the devices {[d.id for d in owned]}, got arrays on devices "
            f"{[next(iter(a.devices())).id for a in arrays]}."
        )
    kinds = {array.dtype for array in arrays}
    if dtype is not None:
        kinds.add(dtypes.canonicalize_dtype(dtype))
    if len(kinds) != 1:
        raise errors.value_error(
            "make_array_from_single_device_arrays: the parts have different dtypes, "
            f"{sorted(map(str, kinds))}. Convert them first."
        )
    (kind,) = kinds
    parts = [placing.in_layout(by_device[device], None)._buffer for device in owned]
    return _of_parts(parts, ShapedArray(shape, kind), sharding)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Shape | None = None
) -> Any:
    """An array of which this process has the part `local_data`.

    With one process that is all of it.

    Args:
      sharding: how the whole is cut.
      local_data: the NumPy array of this process: the parts of its devices, put
        together.
      global_shape: the shape of the whole; by default, each dimension is as many times
        longer as there are processes along it.

    Raises:
      TypeError: if `sharding` is not a sharding.
      ValueError: if the data does not fit the shape.
    """
    _check_sharding(sharding, "make_array_from_process_local_data")
    data = np.asarray(local_data)
    owned = sharding.addressable_devices
    factors = _processes_along(sharding, data.ndim, owned)
    wanted = (None,) * data.ndim if global_shape is None else global_shape
    shape = tuple(
        n * k if size is None else size
        for size, n, k in zip(wanted, data.shape, factors, strict=True)
    )
    if shape == data.shape:  # every process has the whole
        return make_array_from_callback(shape, sharding, lambda index: data[index])
    indices = sharding.addressable_devices_indices_map(shape)
    starts = [
        min(index[axis].start or 0 for index in indices.values())
        for axis in range(data.ndim)
    ]

    def part(index: tuple[slice, ...]) -> np.ndarray:
        own = tuple(
            slice(
                (at.start or 0) - first, (size if at.stop is None else at.stop) - first
            )
            for at, first, size in zip(index, starts, shape)
        )
        return data[own]

    return make_array_from_callback(shape, sharding, part)


def _processes_along(sharding: Any, ndim: int, owned: set) -> list[int]:
    """How many times longer the whole is than this process's part, by dimension."""
    probe = tuple(sharding.parts(ndim))
    indices = sharding.devices_indices_map(probe)
    here = [index for device, index in indices.items() if device in owned]

    def count(found: Iterable[tuple], axis: int) -> int:
        return len({index[axis].start for index in found})

    return [count(indices.values(), a) // count(here, a) for a in range(ndim)]
