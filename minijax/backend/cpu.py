"""CPU clients with several devices, for one process or for many.

In JAX: `jax/_src/xla_bridge.py`, `make_cpu_client`.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from minijax.backend import clients
from minijax.backend.door import set_process_wide_state, xc


def share_with_jax() -> None:
    """Set jaxlib's process-wide state, unless jax was imported and has done so.

    When jax is imported later it replaces ours, which nobody reads again.
    """
    if "jax._src.config" not in sys.modules:
        set_process_wide_state()


def _number_of_devices(options: dict[str, Any]) -> int:
    """How many devices the client will have."""
    if "num_devices" in options:
        return options["num_devices"]
    flag = r"--xla_force_host_platform_device_count=(\d+)"
    found = re.findall(flag, os.environ.get("XLA_FLAGS", ""))
    return int(found[-1]) if found else 1


def make_client() -> Any:
    """A CPU client as `clients.settings` asks for."""
    share_with_jax()
    settings = clients.settings
    options = dict(settings.client_options.get("cpu", {}))
    if settings.num_cpu_devices is not None:
        options.setdefault("num_devices", settings.num_cpu_devices)
    if _number_of_devices(options) > 1:
        # XLA reads it when it makes a client. With its default number of threads on a
        # small machine, more than about 32 launches on several devices in flight wait
        # for each other, and the process is aborted after 40 seconds. With one device
        # so many threads only slow its matrix products. Measured for 8 devices on two
        # (busy) cores, 100 launches in flight: 8 threads stall; 16, 32 and 64 take 6.6,
        # 5.5 and 7.8 ms a launch.
        os.environ.setdefault("PJRT_NPROC", "32")
    return xc.make_cpu_client(**options)


clients.factories["cpu"] = make_client
