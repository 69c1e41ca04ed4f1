"""Devices of all processes, counted and numbered.

In JAX: `jax/_src/xla_bridge.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.core.runtime import devices, get_backend


def default_backend() -> str:
    """The name of the default platform: "cpu" or "gpu"."""
    return get_backend().platform


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
