"""jaxlib's guards of copies between host and device: levels, and explicit copies.

In JAX: `jax/_src/config.py`, and `jax/_src/api.py`, `explicit_device_put_scope`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from minijax.core.runtime import _jax

_guard = _jax.guard_lib


def _level(name: str | None) -> Any:
    """A level by its name, such as "disallow_explicit"; None for None."""
    return name and getattr(_guard.TransferGuardLevel, name.upper())


def set_process_level(direction: str, level: str | None) -> None:
    """The level of threads that set none, for "host_to_device" or another direction."""
    setattr(_guard.global_state(), direction, _level(level))


def thread_level(
    direction: str, level: str | None
) -> contextlib.AbstractContextManager[None]:
    """Set this thread's level within a block; None leaves it to the process."""
    return _during(direction, _level(level))


def explicit(kind: str) -> contextlib.AbstractContextManager[None]:
    """Copies in the block are explicit; `kind` is "device_put" or "device_get"."""
    return _during(f"explicit_{kind}", True)


@contextlib.contextmanager
def _during(name: str, value: Any) -> Iterator[None]:
    """Set a field of jaxlib's state of this thread within a block."""
    local = _guard.thread_local_state()
    outer = getattr(local, name)
    setattr(local, name, value)
    try:
        yield
    finally:
        setattr(local, name, outer)
