"""Platforms, their devices, and the way of a value between host and device.

Clients are made when first asked for: the CPU's always, a GPU's when there is a GPU and
its plugin's wheels are installed. `settings` is filled by `minijax.config` (a higher
floor) before that.

In JAX: `jax/_src/xla_bridge.py`, and the device half of `jax/_src/api.py`'s
`device_put`.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import cuda
from minijax.backend.door import _jax, batched_device_put, xc
from minijax.backend.placement import Sharding, SingleDeviceSharding


@dataclasses.dataclass
class PlatformSettings:
    """What the clients are made from. Later changes have no effect on made clients.

    Attributes:
      platforms: names separated by commas, best first, as in `JAX_PLATFORMS`; None or
        "" tries all.
      num_cpu_devices: how many devices the CPU pretends to be; None leaves it to
        `XLA_FLAGS=--xla_force_host_platform_device_count=N`.
      client_options: more keyword arguments for a platform's client, by platform; for
        several processes, the distributed client and this process's number.
    """

    platforms: str | None = None
    num_cpu_devices: int | None = None
    client_options: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def _settings_from_environment() -> PlatformSettings:
    platforms = os.environ.get("MINIJAX_PLATFORMS") or os.environ.get("JAX_PLATFORMS")
    count = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    return PlatformSettings(
        platforms=platforms.lower() if platforms else None,
        num_cpu_devices=int(count) if count.isdigit() and int(count) > 0 else None,
    )


settings = _settings_from_environment()


def _make_cpu_client() -> Any:
    options = dict(settings.client_options.get("cpu", {}))
    if settings.num_cpu_devices is not None:
        options.setdefault("num_devices", settings.num_cpu_devices)
    return xc.make_cpu_client(**options)


def _make_cuda_client() -> Any:
    return cuda.make_client(settings.client_options.get("cuda", {}))


# Best last. A platform that users add goes into both tables.
factories: dict[str, Callable[[], Any]] = {
    "cpu": _make_cpu_client,
    "cuda": _make_cuda_client,
}
_aliases = {"gpu": ("cuda",)}

_lock = threading.RLock()
_clients: dict[str, Any] = {}
_errors: dict[str, str] = {}
_default_client: Any = None


def backends() -> dict[str, Any]:
    """All clients by platform name ("cpu", "cuda"), made at the first call.

    Raises:
      RuntimeError: if a platform that the user asked for by name cannot start.
    """
    global _default_client
    if _default_client is not None:
        return _clients
    with _lock:
        if _default_client is not None:
            return _clients
        if settings.platforms:
            made = _make_requested(settings.platforms)
        else:
            made = _make_available()
        _clients.update(made)
        _default_client = next(iter(made.values()))
        return _clients


def _make_requested(names: str) -> dict[str, Any]:
    """The clients of the platforms the user named, in order; each must start."""
    made: dict[str, Any] = {}
    for name in names.split(","):
        for platform in _aliases.get(name.strip(), (name.strip(),)):
            factory = factories.get(platform)
            if factory is None:
                raise RuntimeError(
                    f"Unable to initialize backend '{platform}': Backend "
                    f"'{platform}' is not in the list of known backends: "
                    f"{list(factories)}. (set JAX_PLATFORMS='' to automatically "
                    "choose an available backend)"
                )
            try:
                made[platform] = factory()
            except Exception as error:
                raise RuntimeError(
                    f"Unable to initialize backend '{platform}': {error} (set "
                    "JAX_PLATFORMS='' to automatically choose an available backend)"
                ) from error
    return made


def _make_available() -> dict[str, Any]:
    """The clients of all platforms that are there, the best first."""
    made: dict[str, Any] = {}
    for platform in reversed(factories):
        if platform == "cuda" and not (cuda.is_installed() and _has_nvidia_device()):
            continue
        try:
            made[platform] = factories[platform]()
        except Exception as error:
            if platform == "cpu":
                raise
            _errors[platform] = str(error)
            print(
                f"minijax: the platform '{platform}' did not start, and is left out: "
                f"{error}",
                file=sys.stderr,
            )
    return made


def _has_nvidia_device() -> bool:
    return bool(glob.glob("/dev/nvidia[0-9]*")) or os.path.exists("/dev/dxg")


def is_initialized() -> bool:
    """Whether the clients are made: from then on `settings` change nothing."""
    return _default_client is not None


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, or the default one.

    Args:
      platform: "cpu", "gpu", "cuda"; None for the default; a client is returned as is.

    Raises:
      RuntimeError: for a platform that is not known or did not start.
    """
    if platform is None:
        if _default_client is None:
            backends()
        return _default_client
    if not isinstance(platform, str):
        return platform
    clients = backends()
    names = _aliases.get(platform, (platform,))
    for name in names:
        if name in clients:
            return clients[name]
    for name in names:
        if name in _errors:
            raise RuntimeError(
                f"Backend '{platform}' failed to initialize: {_errors[name]}. "
                f"Available backends are {list(clients)}"
            )
    if platform in _aliases:
        raise RuntimeError(
            f"Unknown backend: '{platform}' requested, but no platforms that are "
            f"instances of {platform} are present. Platforms present are: "
            + ",".join(clients)
        )
    raise RuntimeError(
        f"Unknown backend {platform}. Available backends are {list(clients)}"
    )


def default_backend() -> str:
    """The name of the default platform: "cpu" or "gpu"."""
    return get_backend().platform


def devices(backend: Any = None) -> list[Any]:
    """All devices of a platform, of all processes."""
    return get_backend(backend).devices()


def local_devices(
    process_index: int | None = None, backend: Any = None, host_id: int | None = None
) -> list[Any]:
    """The devices of one process, by default of this one.

    Raises:
      ValueError: if there is no process of this number.
    """
    if host_id is not None:
        process_index = host_id
    if process_index is None:
        process_index = get_backend(backend).process_index()
    if not 0 <= process_index < process_count(backend):
        raise ValueError(f"Unknown process_index {process_index}")
    return [d for d in devices(backend) if d.process_index == process_index]


def device_count(backend: Any = None) -> int:
    """How many devices a platform has, in all processes."""
    return int(get_backend(backend).device_count())


def local_device_count(backend: Any = None) -> int:
    """How many devices of a platform belong to this process."""
    return int(get_backend(backend).local_device_count())


def process_index(backend: Any = None) -> int:
    """This process's number: 0 unless several processes work together."""
    return get_backend(backend).process_index()


def process_count(backend: Any = None) -> int:
    """How many processes work together."""
    return max((d.process_index for d in devices(backend)), default=0) + 1


def process_indices(backend: Any = None) -> list[int]:
    """The numbers of all processes."""
    return list(range(process_count(backend)))


# ---------------------------------------------------------------------------
# From host to device

_COPY = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_SHARE = _jax.HostBufferSemantics.ZERO_COPY
# Whether an array that is put somewhere may stay what it is.
ArrayCopySemantics = _jax.ArrayCopySemantics

_single: dict[Any, SingleDeviceSharding] = {}


def single_device_sharding(device: Any) -> SingleDeviceSharding:
    """The sharding that puts everything on this device: one object per device."""
    found = _single.get(device)
    if found is None:
        # setdefault, so that two threads get the same object.
        found = _single.setdefault(device, SingleDeviceSharding(device))
    return found


def put(array: np.ndarray, aval: Any, device: Any, committed: bool) -> Any:
    """Copies a NumPy array to a device.

    The device gets its own copy: what is written to `array` afterwards changes nothing.

    Args:
      array: any strides and byte order; its dtype and shape must be those of `aval`
        already. jaxlib takes an array of another dtype without complaint.
      aval: an object with `shape`, `dtype` and `weak_type`; the result keeps it.
      device: where to.
      committed: whether the result insists on the device.

    Returns:
      A jaxlib array.
    """
    sharding = _single.get(device)
    if sharding is None:
        sharding = single_device_sharding(device)
    # jaxlib reads a foreign byte order as if it were the machine's own.
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return batched_device_put(
        aval, sharding, [array], [device], committed, False, _COPY, True
    )


def put_shards(
    shards: Sequence[Any], aval: Any, sharding: Sharding, committed: bool = True
) -> Any:
    """Makes one array of the parts for each device of this process.

    Args:
      shards: NumPy arrays or single-device arrays, in the order of the sharding's
        addressable devices, each of the sharding's shard shape.
      aval: shape, dtype and weak type of the whole.
      sharding: where the parts go.
      committed: whether the result insists on its devices.
    """
    parts = [_own(part) if isinstance(part, np.ndarray) else part for part in shards]
    owned = list(sharding._internal_device_list.addressable_device_list)
    # The copies are nobody else's, so jaxlib may use them as they are. (With its own
    # copying it fails on parts that stand at one address.)
    return batched_device_put(
        aval, sharding, parts, owned, committed, False, _SHARE, True
    )


def _own(part: np.ndarray) -> np.ndarray:
    """A contiguous copy in the machine's byte order."""
    return np.array(part, dtype=part.dtype.newbyteorder("="), order="C", copy=True)


def copy_to_device(buffer: Any, device: Any) -> Any:
    """Copies a single-device array to another device, or to the same one."""
    return copy_to_sharding(buffer, single_device_sharding(device))


def copy_to_sharding(buffer: Any, sharding: Sharding) -> Any:
    """Copies an array to other devices, part by part: as many devices as it has now."""
    copied = _jax.batched_copy_array_to_devices_with_sharding(
        [buffer],
        [sharding._internal_device_list],
        [sharding],
        [ArrayCopySemantics.ALWAYS_COPY],
    )
    return copied[0]


# ---------------------------------------------------------------------------
# From device to host


class _JaxBlocker:
    """Keeps jaxlib from importing jax on its own, thread by thread.

    Some C++ functions import `jax._src.core` to find a class for their result, and do
    without when there is none. That would load all of jax into a process that only
    wants minijax. A `jax` that is already imported is not touched.
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

    On the CPU a single-device array is not copied. An array on several devices is put
    together from its parts.

    Raises:
      RuntimeError: if the array was deleted or given away, or if other processes hold
        parts of it.
    """
    if buffer.is_deleted():
        raise RuntimeError("Array has been deleted.")
    sharding = buffer._sharding
    if sharding.num_devices == 1:
        # For NumPy's own dtypes jaxlib's arrays speak the buffer protocol.
        if buffer.aval.dtype.isbuiltin == 1:
            return np.asarray(buffer)
        with without_jax:
            return buffer._single_device_array_to_np_array_did_copy()[0]
    if sharding.is_fully_replicated:
        with without_jax:
            return buffer._single_device_array_to_np_array_did_copy()[0]
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            "Fetching value for `jax.Array` that spans non-addressable (non process "
            "local) devices is not possible. Read its `addressable_shards`, or gather "
            "it onto every process first."
        )
    whole = np.empty(buffer.aval.shape, buffer.aval.dtype)
    indices = sharding.addressable_devices_indices_map(buffer.aval.shape)
    for device, part in shards(buffer):
        whole[indices[device]] = to_numpy(part)
    whole.flags.writeable = False
    return whole


def copy_to_host_async(buffer: Any) -> None:
    """Starts copying an array's parts to the host, so that reading them waits less."""
    with without_jax:
        for _, part in shards(buffer):
            part._copy_single_device_array_to_host_async()


def unsafe_buffer_pointer(buffer: Any) -> int:
    """The address of a single-device array's memory; valid while the array lives."""
    with without_jax:
        return buffer.unsafe_buffer_pointer()


@dataclasses.dataclass(frozen=True)
class _PartAval:
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
    # Without jax, jaxlib leaves the parts without avals.
    return [
        (
            device,
            part._rewrap_with_aval_and_sharding(
                part_aval, single_device_sharding(device)
            ),
        )
        for device, part in zip(owned, parts, strict=True)
    ]
