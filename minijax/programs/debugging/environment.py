"""Versions and devices for a bug report, and the arrays in memory.

In JAX: `jax/_src/environment_info.py`, and `jax.live_arrays`.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np

from minijax.backend import processes
from minijax.core import runtime
from minijax.core.array import Array
from minijax.core.runtime import jaxlib_version_text
from minijax.support.version import __version__
from minijax.values.array_places import wrap


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that are alive on the devices of a platform (None: the default one).

    Arrays that the library keeps for itself are among them. Each comes in a new
    `Array`, and typed keys come as their uint32 words.
    """
    return [wrap(buffer) for buffer in runtime.get_backend(platform).live_arrays()]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices and settings, to be put into a bug report.

    With `return_string` the text is returned and not printed.
    """
    (first, *_) = devices = runtime.devices()
    count, local = len(devices), processes.local_device_count()
    python = sys.version.replace("\n", " ")
    lines = [
        f"minijax: {__version__}",
        f"jaxlib: {jaxlib_version_text}",
        f"numpy:  {np.__version__}",
        f"python: {python}",
        f"device info: {first.device_kind}-{count}, {local} local devices",
        f"process_count: {processes.process_count()}",
        f"platform: {platform.uname()}",
    ]
    prefixes = ("JAX_", "MINIJAX_", "XLA_")
    lines += [f"{k}={v}" for k, v in os.environ.items() if k.startswith(prefixes)]
    driver = _nvidia_smi()
    if driver:
        lines += ["", "$ nvidia-smi", driver]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def _nvidia_smi() -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
