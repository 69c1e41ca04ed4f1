"""Values that all processes share: broadcast, gather, compare, wait for each other.

Each function is called by every process, in the same order.

In JAX: `jax/experimental/multihost_utils.py`.
"""

from __future__ import annotations

import functools
import zlib
from typing import Any

import numpy as np

from minijax.backend.processes import local_device_count, process_count, process_index
from minijax.compile import placing
from minijax.compile.jit_api import jit
from minijax.core import dtypes, errors
from minijax.core.array import Array
from minijax.core.language import Tracer
from minijax.core.runtime import devices
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.programs.sharding.array_copies import returning
from minijax.programs.sharding.making import (
    make_array_from_callback,
    make_array_from_single_device_arrays,
)
from minijax.programs.sharding.placement import flat_mesh, mesh_of
from minijax.support.devices.shardings import Mesh, NamedSharding, PartitionSpec
from minijax.support.tree_util import map_with_prefix, tree_map


@functools.cache
def _mesh() -> Mesh:
    """All devices, a row for each process."""
    each = np.array(devices(), dtype=object)
    grid = each.reshape(process_count(), local_device_count())
    return Mesh(grid, ("processes", "local_devices"))


def _host(value: Any, what: str) -> np.ndarray:
    """A value of this process as a NumPy array, of a dtype that devices have.

    (In a process that is alone nothing goes to a device, and the dtype stays, as in
    JAX.)
    """
    if isinstance(value, Tracer):
        raise errors.type_error(
            f"multihost_utils.{what} moves values between processes now, and cannot "
            "be called inside a function that is being traced. Call it outside of "
            "jit, grad and vmap."
        )
    host = np.asarray(value)
    if process_count() == 1:
        return host
    return np.asarray(host, dtypes.canonicalize_dtype(host.dtype))


def _is_shared(value: Any) -> bool:
    """Whether other processes hold parts of an array."""
    return type(value) is Array and not value.is_fully_addressable


def _everywhere(array: Array, mesh: Mesh) -> np.ndarray:
    """The values of an array that several processes share, in each of them."""
    whole = returning(NamedSharding(mesh, PartitionSpec()))(array)
    return np.asarray(whole.addressable_data(0))


def _rows(host: np.ndarray) -> np.ndarray:
    """The arrays of all processes, one after the other along the first dimension."""
    shape = (host.shape[0] * process_count(), *host.shape[1:])
    sharding = NamedSharding(_mesh(), PartitionSpec("processes"))
    shared = make_array_from_callback(shape, sharding, lambda index: host)
    return _everywhere(shared, _mesh())


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, in each of them, as NumPy arrays.

    Args:
      in_tree: a tree of arrays, of the same shapes in every process; or arrays that
        the processes share, which come out whole.
      tiled: whether the arrays are put one after the other along their first
        dimension; otherwise, and for scalars, they are stacked along a new one.

    Raises:
      ValueError: for a shared array if not tiled.

    In JAX: `multihost_utils.process_allgather`.
    """

    def gather(value: Any) -> np.ndarray:
        if _is_shared(value):
            if not tiled:
                raise errors.value_error(
                    "Gathering global non-fully-addressable arrays only supports "
                    "tiled=True: the processes hold parts of one array, and the "
                    "result is the whole array."
                )
            own = value.sharding
            mesh = mesh_of(own) or flat_mesh(own._internal_device_list)
            return _everywhere(value, mesh)
        host = _host(value, "process_allgather")
        if host.ndim == 0 or not tiled:
            host = host[None]
        return host if process_count() == 1 else _rows(host)

    return tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process, in each of them, as NumPy arrays, bit for bit.

    Args:
      in_tree: a tree of arrays, of the same shapes in every process.
      is_source: whether this process's values are the ones; by default process 0's.

    Raises:
      ValueError: unless exactly one process is the source.

    In JAX: `multihost_utils.broadcast_one_to_all`.
    """
    leaves, structure = tree_flatten(in_tree)
    hosts = [_host(leaf, "broadcast_one_to_all") for leaf in leaves]
    if process_count() == 1:
        return tree_unflatten(structure, hosts)
    source = process_index() == 0 if is_source is None else bool(is_source)
    # All others give zeros, so that the sum of the bytes are the source's own.
    pieces = [np.frombuffer(host.tobytes(), np.uint8) for host in hosts]
    own = np.concatenate([np.ones(1, np.uint8), *pieces]) * np.uint8(source)
    sharding = NamedSharding(_mesh(), PartitionSpec("processes"))
    shape = (process_count(), own.size)
    shared = make_array_from_callback(shape, sharding, lambda index: own[None])
    total = np.asarray(_added(_mesh())(shared).addressable_data(0))
    if total[0] != 1:
        raise errors.value_error(
            f"broadcast_one_to_all: {total[0]} processes say is_source=True; exactly "
            "one must."
        )
    ends = np.cumsum([host.nbytes for host in hosts])
    found = [
        np.frombuffer(piece.tobytes(), host.dtype).reshape(host.shape).copy()
        for piece, host in zip(np.split(total[1:], ends), hosts)
    ]
    return tree_unflatten(structure, found)


@functools.cache
def _added(mesh: Mesh) -> Any:
    def added(rows: Any) -> Any:
        return rows.sum(axis=0, dtype=np.uint8)

    return jit(added, out_shardings=NamedSharding(mesh, PartitionSpec()))


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError, naming processes, unless all have the same values.

    In JAX: `multihost_utils.assert_equal`.
    """
    leaves, _ = tree_flatten(in_tree)
    differing: set[int] = set()
    found = []
    for leaf in leaves:
        if _is_shared(leaf):
            continue  # one array, of which each has its parts
        each = process_allgather(leaf)
        found.append(each)
        differing |= {i for i, x in enumerate(each) if not np.array_equal(x, each[0])}
    if differing:
        from minijax.processes.coordinator import numbers

        raise AssertionError(
            f"{fail_message}. {numbers(differing)} differs from process 0. Expected: "
            f"{found}; got: {in_tree}."
        )


def sync_global_devices(name: str) -> None:
    """Waits until all processes have called it with the same name.

    Raises AssertionError for different names.

    In JAX: `multihost_utils.sync_global_devices`.
    """
    value = np.uint32(zlib.crc32(name.encode()))
    assert_equal(value, f"sync_global_devices name mismatch ('{name}')")


def host_local_array_to_global_array(
    local_inputs: Any, global_mesh: Mesh, pspecs: Any
) -> Any:
    """Arrays that all processes share, of the parts that each process has.

    Args:
      local_inputs: a tree of this process's arrays.
      global_mesh: the mesh; each process's devices are a block of it.
      pspecs: a `PartitionSpec`, or a prefix tree of them, by which `local_inputs` are
        cut over this process's devices and the result over all.

    In JAX: `multihost_utils.host_local_array_to_global_array`.
    """

    def share(value: Any, spec: Any) -> Array:
        if _is_shared(value):
            return value
        host = _host(value, "host_local_array_to_global_array")
        local = NamedSharding(global_mesh.local_mesh, spec)
        whole = NamedSharding(global_mesh, spec)
        parts = [
            placing.device_put(host[index], device)
            for device, index in local.devices_indices_map(host.shape).items()
        ]
        shape = _in_proportion(host.shape, whole, local)
        return make_array_from_single_device_arrays(shape, whole, parts)

    return _with_specs(share, local_inputs, pspecs)


def global_array_to_host_local_array(
    global_inputs: Any, global_mesh: Mesh, pspecs: Any
) -> Any:
    """This process's parts of arrays that all share, as arrays of its own.

    Args:
      global_inputs: a tree of arrays.
      global_mesh: the mesh; each process's devices are a block of it.
      pspecs: a `PartitionSpec`, or a prefix tree of them: how the arrays are cut.

    In JAX: `multihost_utils.global_array_to_host_local_array`.
    """

    def own(value: Any, spec: Any) -> Array:
        whole = NamedSharding(global_mesh, spec)
        if not isinstance(value, Array) or isinstance(value, Tracer):
            host = _host(value, "global_array_to_host_local_array")
            value = placing.device_put(host, whole)
        elif value.is_fully_addressable:
            return value
        if not value.sharding.is_equivalent_to(whole, value.ndim):
            value = placing.device_put(value, whole)
        local = NamedSharding(global_mesh.local_mesh, spec)
        shape = _in_proportion(value.shape, local, whole)
        parts = [shard.data for shard in value.addressable_shards]
        return make_array_from_single_device_arrays(shape, local, parts)

    return _with_specs(own, global_inputs, pspecs)


def _in_proportion(shape: tuple, new: Any, old: Any) -> tuple:
    """A shape, longer or shorter as one sharding has more or fewer parts."""
    sizes = zip(shape, new.parts(len(shape)), old.parts(len(shape)))
    return tuple(size * parts // before for size, parts, before in sizes)


def _with_specs(function: Any, tree: Any, pspecs: Any) -> Any:
    if pspecs is None:
        raise errors.value_error(
            "`None` is not a valid input to the pspecs argument. Please use "
            "minijax.sharding.PartitionSpec() to replicate the input."
        )
    return map_with_prefix(function, tree, pspecs)
