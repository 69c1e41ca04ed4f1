"""jaxlib's guards of copies between host and device: levels, and explicit copies.

In JAX: `jax/_src/config.py`, and `jax/_src/api.py`, `explicit_device_put_scope`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from minijax.core.runtime import _jax

_guard = _jax.guard_lib
_levels = {
    None: None,
    "allow": _guard.TransferGuardLevel.ALLOW,
    "log": _guard.TransferGuardLevel.LOG,
    "disallow": _guard.TransferGuardLevel.DISALLOW,
    "log_explicit": _guard.TransferGuardLevel.LOG_EXPLICIT,
    "disallow_explicit": _guard.TransferGuardLevel.DISALLOW_EXPLICIT,
}


def set_process_level(direction: str, level: str | None) -> None:
    """The level of threads that set none, for "host_to_device" or another direction."""
    setattr(_guard.global_state(), direction, _levels[level])


@contextlib.contextmanager
def thread_level(direction: str, level: str | None) -> Iterator[None]:
    """Set this thread's level for a while; None leaves it to the process."""
    local = _guard.thread_local_state()
    outer = getattr(local, direction)
    setattr(local, direction, _levels[level])
    try:
        yield
    finally:
        setattr(local, direction, outer)


@contextlib.contextmanager
def explicit(kind: str) -> Iterator[None]:
    """Copies in the block are asked for; `kind` is "device_put" or "device_get"."""
    local, name = _guard.thread_local_state(), f"explicit_{kind}"
    outer = getattr(local, name)
    setattr(local, name, True)
    try:
        yield
    finally:
        setattr(local, name, outer)
