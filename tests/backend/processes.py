"""Programs in processes of their own: other devices, other import orders."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(program: str, devices: int | None = None, **environment: str) -> str:
    """Runs Python text and returns what it printed; fails with its error output."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("XLA_")}
    variables.pop("JAX_PLATFORMS", None)
    variables["PYTHONPATH"] = str(ROOT)
    if devices is not None:
        flag = f"--xla_force_host_platform_device_count={devices}"
        variables["XLA_FLAGS"] = flag
    variables.update(environment)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# For programs that must never import jax, however it is installed: jaxlib's C++ code
# would swallow an ImportError, so the attempt ends the process.
FORBID_JAX = """
import os, sys
class _Forbid:
    def find_spec(self, name, path=None, target=None):
        if name == "jax":
            print("somebody imports jax", file=sys.stderr, flush=True)
            os._exit(9)
sys.meta_path.append(_Forbid())
"""
