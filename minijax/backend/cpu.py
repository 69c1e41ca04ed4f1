"""CPU clients with several devices, for one process or for many.

In JAX: `jax/_src/xla_bridge.py`, `make_cpu_client`.
"""

from __future__ import annotations

import sys
from typing import Any

from minijax.backend import clients
from minijax.core.events import enter
from minijax.core.runtime import set_process_wide_state, xc


def share_with_jax() -> None:
    """Set jaxlib's process-wide state, unless jax was imported and has done so.

    When jax is imported later it replaces ours, which is not read again.
    """
    if "jax._src.config" not in sys.modules:
        set_process_wide_state()


def make_client() -> Any:
    """A CPU client as `clients.settings` asks for."""
    share_with_jax()
    settings = clients.settings
    options = dict(settings.client_options.get("cpu", {}))
    if settings.num_cpu_devices is not None:
        options.setdefault("num_devices", settings.num_cpu_devices)
    return xc.make_cpu_client(**options)


enter(clients.factories, "cpu", make_client)
