"""Access to jaxlib: start-up order, names, and differences between versions.

Everything that minijax takes from jaxlib comes through this file or one of its
neighbours in `minijax/backend/`. No other room writes `import jaxlib`, so that a new
release of jaxlib means a change in this room only.

Importing this file starts no client, and loads no MLIR dialect, no scipy and no jax.
It works in a process that has already imported `jax`, and `jax` may be imported later.

In JAX: `jax/_src/lib/__init__.py`.
"""

from __future__ import annotations

import gc
import os
from typing import Any

# Read by C++ code when the first client is made.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import functools
import signal
import threading

import numpy as np
from jaxlib import _hlo, _jax  # type: ignore[attr-defined]  # noqa: E402
from jaxlib import _pretty_printer as pretty_printer  # type: ignore # noqa: E402, F401
from jaxlib import utils as _utils  # type: ignore[attr-defined]  # noqa: E402
from jaxlib import version as _version  # noqa: E402
from jaxlib import weakref_lru_cache as _weak  # type: ignore[attr-defined] # noqa: E402
from jaxlib import xla_client as xc  # noqa: E402, F401

jaxlib_version_text: str = _version.__version__
jaxlib_version: tuple[int, ...] = tuple(
    int(part) for part in jaxlib_version_text.split(".") if part.isdigit()
)

if jaxlib_version < (0, 10):
    raise ImportError(
        f"minijax needs jaxlib 0.10 or newer, and found {jaxlib_version_text}. "
        "Install a newer one: pip install -U jaxlib"
    )

pytree = _jax.pytree
weakref_lru_cache = _weak.weakref_lru_cache
DeviceList = _jax.DeviceList
HloSharding = _hlo.HloSharding
JaxRuntimeError = _jax.JaxRuntimeError
Traceback = _jax.Traceback
batched_device_put = _jax.batched_device_put
topological_sort = _utils.topological_sort


def uninterrupted(function: Any) -> Any:
    """Decorator: Ctrl-C interrupts the program only after the function has returned.

    For work that cannot be repeated after an interrupt, such as the import of a C++
    extension, which registers things once. Interrupts reach the main thread only.
    """

    @functools.wraps(function)
    def whole(*args: Any, **kwargs: Any) -> Any:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        came: list[Any] = []
        signal.signal(signal.SIGINT, lambda *given: came.append(given))
        try:
            return function(*args, **kwargs)
        finally:
            signal.signal(signal.SIGINT, handler)
            if came and callable(handler):
                handler(*came[-1])

    return whole


_process_wide: list[Any] = []


def set_process_wide_state() -> None:
    """Gives jaxlib the three settings objects that its C++ code reads.

    There is one set per process. minijax does not read it (it passes `enable_x64`
    explicitly). Call this function before the first client is made.
    """
    make = _jax.config.Config
    quiet = {"include_in_jit_key": False, "include_in_trace_context": False}
    enable_x64 = make("minijax_enable_x64", False, **quiet)
    disable_jit = make("minijax_disable_jit", False, **quiet)
    post_hook = make("minijax_post_hook", None, **quiet)
    _jax.jax_jit.set_enable_x64_state(enable_x64)
    _jax.jax_jit.set_disable_jit_state(disable_jit)
    _jax.jax_jit.set_post_hook_state(post_hook)
    _process_wide.extend((enable_x64, disable_jit, post_hook))


# C++ threads must not change Python's reference counts, so they put tracebacks and
# arrays in a queue. This function empties it; Python's garbage collector calls it.
release_references = _jax.collect_garbage


def _after_collection(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop":
        release_references()


gc.callbacks.append(_after_collection)


def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
    """An object that wraps an executable's raw output as an `ArrayImpl`.

    Args:
      aval: anything with `shape`, `dtype` and `weak_type`; kept by the arrays made.
      sharding: a sharding of `minijax.sharding`.
      committed: whether the arrays made are committed to their devices.
    """
    if jaxlib_version < (0, 11):
        # The skipped check would compare devices one by one at every launch.
        return _jax.array_result_handler(aval, sharding, committed, True)
    return _jax.array_result_handler(aval, sharding, committed)


class Clients(dict[str, Any]):
    """The clients of this process by platform name ("cpu"), the default one first.

    `backend/clients.py` replaces `make`, to start the platforms that the user selected,
    and adds `__missing__`, the error for a platform that is not there.
    """

    to_fill = {"make"}

    def make(self) -> dict[str, Any]:
        """New clients, once."""
        set_process_wide_state()
        return {"cpu": xc.make_cpu_client()}


_clients = Clients()
_lock = threading.RLock()


def backends() -> dict[str, Any]:
    """All clients by platform name ("cpu", "cuda"), made at the first call.

    Raises:
      RuntimeError: if a platform that the user selected by name cannot start.
    """
    if not _clients:
        _make_clients()
    return _clients


@uninterrupted
def _make_clients() -> None:
    with _lock:
        if not _clients:
            _clients.update(_clients.make())


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, or the default one.

    Args:
      platform: "cpu", "gpu", "cuda"; None for the default; a client is returned as is.

    Raises:
      RuntimeError: for a platform that is not known or did not start.
    """
    if platform is None:
        return next(iter(backends().values()))
    return platform if isinstance(platform, _jax.Client) else backends()[str(platform)]


def devices(backend: Any = None) -> list[Any]:
    """All devices of a platform, of all processes."""
    return get_backend(backend).devices()


# ---------------------------------------------------------------------------
# Shardings

replicated = HloSharding.replicate()


class Sharding(_jax.Sharding):
    """Which part of an array each device holds.

    jaxlib reads its `_internal_device_list`, `memory_kind`, `num_devices` and
    `_to_xla_hlo_sharding`. `sharding_methods` adds the methods for users.

    In JAX: `jax.sharding.Sharding`.
    """

    memory_kind: str | None = None
    num_devices: int = 0
    layout: Any = None  # of an array whose dimensions are not in row-major order
    _internal_device_list: Any = None


def check_memory_kind(kind: str | None, devices: Any) -> str | None:
    """The memory kind itself, or the devices' default one for None.

    Raises:
      ValueError: if the devices have no memory of this kind.
    """
    # jaxlib raises a "bad cast" for a kind that is not a text.
    name = None if kind is None else str(kind)
    return _jax.check_and_canonicalize_memory_kind(name, devices)


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
      device: a device of `minijax.devices()`.
      memory_kind: where on the device; None means the device's default memory.
        ValueError if the device has no such memory.

    In JAX: `jax.sharding.SingleDeviceSharding`.
    """

    num_devices = 1

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        super().__init__()
        if not isinstance(device, _jax.Device):
            raise TypeError(f"Expected one of minijax.devices(), got {device!r}.")
        self._device = device
        self._internal_device_list = DeviceList((device,))
        self.memory_kind = check_memory_kind(memory_kind, self._internal_device_list)

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
        already. jaxlib does not check this.
      aval: an object with `shape`, `dtype` and `weak_type`; the result keeps it.
      device: the device to copy to.
      committed: whether the result is committed to the device.

    Returns:
      A jaxlib array.
    """
    sharding = single_device_sharding(device)
    # jaxlib reads a foreign byte order as if it were the machine's own.
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return batched_device_put(
        aval, sharding, [array], [device], committed, False, _COPY, True
    )
