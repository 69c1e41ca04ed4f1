"""Devices in the shape of a mesh. In JAX: `jax.experimental.mesh_utils`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import runtime

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices in the shape of a mesh, for `Mesh`.

    On CPUs they keep their order, on GPUs they are sorted by id: no link between two of
    them is quicker than another, so that both options change nothing. (jax also orders
    a TPU's devices along the links between its chips.)

    Args:
      mesh_shape: the size of each axis; the last should communicate most.
      devices: by default all.
      contiguous_submeshes, allow_split_physical_axes: for TPUs.

    Raises:
      ValueError: if the number of devices is not the product of the sizes.
      NotImplementedError: for the devices of a TPU.
    """
    given = runtime.devices() if devices is None else list(devices)
    try:
        shape = tuple(size.__index__() for size in mesh_shape)
    except (AttributeError, TypeError):
        raise ValueError(
            "`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. "
            f"Got {mesh_shape}"
        ) from None
    if math.prod(shape) != len(given):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape "
            f"{shape}"
        )
    platform = getattr(given[-1], "platform", None)
    if platform == "tpu":
        raise NotImplementedError(
            "create_device_mesh does not know the links between a TPU's chips. Write "
            "`numpy.array(devices).reshape(mesh_shape)`."
        )
    if platform == "gpu":
        given = sorted(given, key=lambda device: device.id)
    return _array(given, shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices in the shape of a mesh, where some stand closer together than others.

    Args:
      mesh_shape: the mesh of the devices that stand together (a granule).
      dcn_mesh_shape: the mesh of the granules, with as many axes; the result's sizes
        are the products of the two.
      devices: by default all.
      process_is_granule: the devices of a process stand together; otherwise those of a
        slice of a TPU.
      should_sort_granules_by_key: sort the granules by number; otherwise they keep
        the order in which the devices name them.
      allow_split_physical_axes: for TPUs.

    Raises:
      ValueError: if the numbers of granules or of their devices do not fit.
    """
    given = runtime.devices() if devices is None else list(devices)
    key = "process_index" if process_is_granule else "slice_index"
    if not hasattr(given[0], key):
        raise ValueError(
            f"Device {given[0]} does not have attribute {key}. See "
            "`process_is_granule` option."
        )
    granules: dict[int, list[Any]] = {}
    for device in given:
        granules.setdefault(getattr(device, key), []).append(device)
    order = sorted(granules) if should_sort_granules_by_key else list(granules)
    if math.prod(dcn_mesh_shape) != len(order):
        raise ValueError(
            f"Number of slices {len(order)} must equal the product of dcn_mesh_shape "
            f"{dcn_mesh_shape}"
        )
    if len(mesh_shape) != len(dcn_mesh_shape):
        raise ValueError(
            f"mesh_shape {tuple(mesh_shape)} and dcn_mesh_shape "
            f"{tuple(dcn_mesh_shape)} have different numbers of axes; give size 1 "
            "to an axis that is not split."
        )
    whole = np.empty([a * b for a, b in zip(mesh_shape, dcn_mesh_shape)], dtype=object)
    for number, place in zip(order, np.ndindex(*dcn_mesh_shape)):
        block = tuple(slice(at * n, (at + 1) * n) for at, n in zip(place, mesh_shape))
        whole[block] = create_device_mesh(
            mesh_shape,
            granules[number],
            allow_split_physical_axes=allow_split_physical_axes,
        )
    return whole


def _array(devices: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    flat = np.empty(len(devices), dtype=object)
    flat[:] = devices
    return flat.reshape(shape)
