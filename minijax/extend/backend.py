"""The clients of XLA, one for each platform.

In JAX: `jax.extend.backend`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.backend import clients
from minijax.core.array import default_device
from minijax.core.runtime import backends as backends
from minijax.core.runtime import get_backend as get_backend


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA's runtime of a platform; None if it reports none."""
    return getattr(get_backend(platform), "xla_version", None)


def get_default_device() -> Any:
    """The device on which new arrays are made."""
    return default_device()


def register_backend_factory(
    name: str, factory: Callable[[], Any], *, priority: int = 0, **_: Any
) -> None:
    """Make a platform known.

    Args:
      name: the platform's name.
      factory: makes its client; called when platforms are first asked for.
      priority: platforms with a higher one are preferred; CUDA's has 200, the CPU's 0.

    Raises:
      RuntimeError: when the clients have been made already.
    """
    if clients.is_initialized():
        raise RuntimeError(
            f"the platform {name!r} was registered after the first use of a device; "
            "register it before."
        )
    clients.register_factory(name, factory, priority > 0)
