"""Arrays on several devices, and copies between devices.

In JAX: `jax/_src/array.py`, and `interpreters/pxla.py`, `shard_args`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import runtime

_SHARE = runtime._jax.HostBufferSemantics.ZERO_COPY
# Whether an array that is put somewhere may stay what it is.
ArrayCopySemantics = runtime._jax.ArrayCopySemantics


class _JaxBlocker:
    """Keeps jaxlib from importing jax on its own, thread by thread.

    Some C++ functions import `jax._src.core` to find a class for their result, and do
    without when there is none. That would load all of jax into a process that only
    needs minijax. A `jax` that is already imported is not touched.
    """

    def __init__(self) -> None:
        self.threads: dict[int, int] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "jax" and threading.get_ident() in self.threads:
            raise ModuleNotFoundError("minijax works without jax", name="jax")

    def __enter__(self) -> None:
        thread = threading.get_ident()
        self.threads[thread] = self.threads.get(thread, 0) + 1
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def __exit__(self, *exception: Any) -> None:
        thread = threading.get_ident()
        self.threads[thread] -= 1
        if not self.threads[thread]:
            del self.threads[thread]


without_jax = _JaxBlocker()


def to_numpy(buffer: Any) -> np.ndarray:
    """The value of a jaxlib array as a read-only NumPy array.

    On the CPU a single-device array is not copied. Shardings of several devices have a
    method that puts the parts together.

    Raises:
      RuntimeError: if the array was deleted or donated, or if other processes hold
        parts of it.
      JaxRuntimeError: if the program that computes it failed.
    """
    if buffer.is_deleted():
        raise RuntimeError("Array has been deleted.")
    sharding = buffer._sharding
    if sharding.num_devices == 1:
        # For NumPy's own dtypes jaxlib's arrays have the buffer protocol, unless the
        # program failed or the device is no CPU. (NumPy itself would not say so.)
        if buffer.aval.dtype.isbuiltin == 1:
            with contextlib.suppress(BufferError):
                return np.asarray(memoryview(buffer))
        with without_jax:
            return buffer._single_device_array_to_np_array_did_copy()[0]
    return sharding.to_numpy(buffer)


def put_shards(
    shards: Sequence[Any], aval: Any, sharding: runtime.Sharding, committed: bool = True
) -> Any:
    """Makes one array of the parts for each device of this process.

    Args:
      shards: NumPy arrays or single-device arrays, in the order of the sharding's
        addressable devices, each of the sharding's shard shape.
      aval: shape, dtype and weak type of the whole.
      sharding: where the parts go.
      committed: whether the result is committed to its devices.
    """
    parts = [_own(part) if isinstance(part, np.ndarray) else part for part in shards]
    owned = list(sharding._internal_device_list.addressable_device_list)
    # Nothing else refers to the copies, so jaxlib may use them as they are. (If
    # jaxlib makes the copies, it fails on parts that have the same address.)
    return runtime.batched_device_put(
        aval, sharding, parts, owned, committed, False, _SHARE, True
    )


def _own(part: np.ndarray) -> np.ndarray:
    """A contiguous copy in the machine's byte order."""
    return np.array(part, dtype=part.dtype.newbyteorder("="), order="C", copy=True)


def copy_to_device(buffer: Any, device: Any) -> Any:
    """Copies an array on one device to another one."""
    return copy_to_sharding(buffer, runtime.single_device_sharding(device))


def copy_to_sharding(buffer: Any, sharding: runtime.Sharding) -> Any:
    """Copies an array to other devices, part by part: as many devices as it has now."""
    copied = runtime._jax.batched_copy_array_to_devices_with_sharding(
        [buffer],
        [sharding._internal_device_list],
        [sharding],
        [ArrayCopySemantics.ALWAYS_COPY],
    )
    return copied[0]


def copy_to_host_async(buffer: Any) -> None:
    """Starts copying an array's parts to the host, so that reading them waits less."""
    with without_jax:
        for _, part in shards(buffer):
            part._copy_single_device_array_to_host_async()


def unsafe_buffer_pointer(buffer: Any) -> int:
    """The address of a single-device array's memory; valid while the array lives."""
    with without_jax:
        return buffer.unsafe_buffer_pointer()


class _PartAval(NamedTuple):
    """The aval of one part of an array, where the caller has no better one."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool


def shards(buffer: Any, part_aval: Any = None) -> list[tuple[Any, Any]]:
    """The parts of an array on this process's devices: pairs (device, jaxlib array).

    Args:
      buffer: a jaxlib array.
      part_aval: the aval that each part gets; by default a plain one.
    """
    sharding = buffer._sharding
    owned = list(sharding._internal_device_list.addressable_device_list)
    if sharding.num_devices == 1:
        return [(device, buffer) for device in owned]
    if part_aval is None:
        whole = buffer.aval
        shape = sharding.shard_shape(whole.shape)
        part_aval = _PartAval(shape, whole.dtype, whole.weak_type)
    with without_jax:
        parts = list(buffer._arrays)
    kind = sharding.memory_kind
    place: Callable[[Any], Any] = runtime.single_device_sharding
    if kind not in (None, owned[0].default_memory().kind):
        place = functools.partial(runtime.SingleDeviceSharding, memory_kind=kind)
    # Without jax, jaxlib leaves the parts without avals.
    return [
        (device, part._rewrap_with_aval_and_sharding(part_aval, place(device)))
        for device, part in zip(owned, parts, strict=True)
    ]


class ShardingOfSeveral(runtime.Sharding):
    """The base of shardings that may have several devices."""

    def to_numpy(self, buffer: Any) -> np.ndarray:
        """The value of an array on several devices, put together from its parts.

        Raises:
          RuntimeError: if other processes hold parts of it.
        """
        if self.is_fully_replicated and self.addressable_devices:
            with without_jax:
                return buffer._single_device_array_to_np_array_did_copy()[0]
        shape = buffer.aval.shape
        if not self.is_fully_addressable and not self._is_whole_here(shape):
            raise RuntimeError(
                "Fetching value for `jax.Array` that spans non-addressable (non "
                "process local) devices is not possible: other processes hold parts of "
                "it. Read this process's parts, `x.addressable_shards`, or gather it "
                "onto every process, `minijax.experimental.multihost_utils."
                "process_allgather(x, tiled=True)`. A function that is traced takes it "
                "as an argument, and cannot close over it."
            )
        whole = np.empty(shape, buffer.aval.dtype)
        indices = self.addressable_devices_indices_map(shape)
        for device, part in shards(buffer):
            whole[indices[device]] = to_numpy(part)
        whole.flags.writeable = False
        return whole

    def _is_whole_here(self, shape: tuple[int, ...]) -> bool:
        """Whether this process's parts make up the whole array."""

        def parts(indices: Any) -> set[tuple]:
            return {tuple((i.start, i.stop) for i in index) for index in indices}

        everywhere = self.devices_indices_map(shape).values()
        here = self.addressable_devices_indices_map(shape).values()
        return parts(everywhere) == parts(here)


def dlpack_capsule(buffer: Any, stream: Any) -> Any:
    """A DLPack capsule of a buffer on one device; a GPU's `stream` waits for it."""
    return runtime._jax.buffer_to_dlpack_managed_tensor(buffer, stream=stream)
