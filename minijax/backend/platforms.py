"""Platforms, their devices, and the way of a value between host and device.

Clients are made when first asked for. Here the CPU's with one device: `cpu` and `cuda`
add what several devices and GPUs need. `settings` is filled by `minijax.config` (a
higher floor) before that.

How jaxlib is told on which devices an array lives is here too: `Sharding`, the base of
all shardings, and the one for a single device.

In JAX: `jax/_src/xla_bridge.py`, `jax/_src/sharding.py`, and the device half of
`jax/_src/api.py`'s `device_put`.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minijax.backend.door import (
    DeviceList,
    HloSharding,
    _jax,
    batched_device_put,
    set_process_wide_state,
    xc,
)


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


settings = PlatformSettings()


def _make_cpu_client() -> Any:
    set_process_wide_state()
    return xc.make_cpu_client()


# How the client of a platform is made, the best platform last, and whether a platform
# is there at all. A platform that users add goes into both tables.
factories: dict[str, Callable[[], Any]] = {"cpu": _make_cpu_client}
is_there: dict[str, Callable[[], bool]] = {"cpu": lambda: True}
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
        made = _make_clients()
        _clients.update(made)
        _default_client = next(iter(made.values()))
        return _clients


def _make_clients() -> dict[str, Any]:
    """The clients of the platforms that the user named, or of all that are there.

    The best, or first named, comes first. Each that was named must start, and the CPU.
    """
    asked = settings.platforms
    names = [name for name in reversed(factories) if is_there[name]()]
    if asked:
        each = [name.strip() for name in asked.split(",")]
        names = [platform for name in each for platform in _aliases.get(name, (name,))]
    made: dict[str, Any] = {}
    for platform in names:
        try:
            if platform not in factories:
                raise RuntimeError(
                    f"Backend '{platform}' is not in the list of known backends: "
                    f"{list(factories)}."
                )
            made[platform] = factories[platform]()
        except Exception as error:
            if asked or platform == "cpu":
                raise RuntimeError(
                    f"Unable to initialize backend '{platform}': {error} (set "
                    "JAX_PLATFORMS='' to automatically choose an available backend)"
                ) from error
            _errors[platform] = str(error)
            print(
                f"minijax: the platform '{platform}' did not start, and is left out: "
                f"{error}",
                file=sys.stderr,
            )
    return made


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


# ---------------------------------------------------------------------------
# Shardings

Shape = tuple[int, ...]
Index = tuple[slice, ...]

replicated = HloSharding.replicate()


class Sharding(_jax.Sharding):
    """Which part of an array each device holds.

    jaxlib reads `_internal_device_list`, `memory_kind`, `num_devices` and
    `_to_xla_hlo_sharding` of it. When jax was imported in the same process, jaxlib's
    own base class carries jax's methods, so every public name is defined anew here.

    In JAX: `jax.sharding.Sharding`.
    """

    memory_kind: str | None = None
    num_devices: int = 0
    _internal_device_list: Any = None

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        """All devices, in the order in which programs number them."""
        return tuple(self._internal_device_list)

    @property
    def device_set(self) -> set[Any]:
        """All devices that hold a part of the array."""
        return set(self._internal_device_list)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process among them."""
        return set(self._internal_device_list.addressable_device_list)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return self._internal_device_list.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        return self.num_devices == 1

    def addressable_devices_indices_map(self, global_shape: Shape) -> Mapping:
        """As `devices_indices_map`, for the devices of this process."""
        owned = self.addressable_devices
        found = self.devices_indices_map(global_shape)
        return {device: index for device, index in found.items() if device in owned}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both place the same parts of a rank-`ndim` array on the same devices.

        Two shardings can be equivalent without being equal: on one device, all are.
        """
        if self is other:
            return True
        return (
            self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
            or self.num_devices == 1
        ) and (
            self.memory_kind == other.memory_kind
            and self._internal_device_list == other._internal_device_list
        )


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
      device: a device of `minijax.devices()`.
      memory_kind: where on the device; None means the device's default memory.
        ValueError if the device has no such memory.

    In JAX: `jax.sharding.SingleDeviceSharding`.
    """

    num_devices = 1
    is_fully_replicated = True

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        super().__init__()
        self._device = device
        self._internal_device_list = DeviceList((device,))
        self.memory_kind = _jax.check_and_canonicalize_memory_kind(
            memory_kind, self._internal_device_list
        )
        self._hash = hash((device, self.memory_kind))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"SingleDeviceSharding(device={self._device!r}{kind})"

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, another of its memories."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of the part on each device: here the whole."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """Which slice of the array each device holds: here everything."""
        return {self._device: (slice(None),) * len(global_shape)}

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return replicated


# ---------------------------------------------------------------------------
# From host to device

_COPY = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

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

    On the CPU a single-device array is not copied. Shardings of several devices have a
    method that puts the parts together.

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
    return sharding.to_numpy(buffer)
