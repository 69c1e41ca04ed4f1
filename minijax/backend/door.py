"""The one door to jaxlib: start-up order, names, and differences of versions.

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

from jaxlib import _hlo, _jax  # type: ignore[attr-defined]  # noqa: E402
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
ArrayImpl = _jax.ArrayImpl
DeviceList = _jax.DeviceList
HloSharding = _hlo.HloSharding
JaxRuntimeError = _jax.JaxRuntimeError
Traceback = _jax.Traceback
get_traceback = Traceback.get_traceback
batched_device_put = _jax.batched_device_put
topological_sort = _utils.topological_sort

_process_wide: list[Any] = []


def set_process_wide_state() -> None:
    """Gives jaxlib the three settings objects that its C++ code reads.

    There is one set per process. minijax never reads ours again (it passes
    `enable_x64` explicitly). To be called before the first client is made.
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


# Threads of C++ may not touch Python's reference counts, so they leave tracebacks and
# arrays in a queue. This empties it; it runs whenever Python collects its own garbage.
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


def __getattr__(name: str) -> Any:
    """Loads the pretty printer when it is first asked for."""
    if name == "pretty_printer":
        from jaxlib import _pretty_printer  # type: ignore[attr-defined]

        globals()["pretty_printer"] = _pretty_printer
        return _pretty_printer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
