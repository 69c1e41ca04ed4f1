"""A CUDA client through jaxlib's plugin interface, without jax.

The plugin's wheels (`jax-cuda13-plugin`, `jax-cuda13-pjrt`, NVIDIA's libraries) must be
of jaxlib's own version. Their module `jax_plugins.xla_cuda13` imports jax, so it is not
imported: the shared library beside it is loaded directly. In a process with jax, import
jax before the first array of minijax is made: both load the library.

In JAX: `jax_plugins/xla_cuda13/__init__.py`.
"""

from __future__ import annotations

import functools
import glob
import importlib
import importlib.util
import os
import sys
from typing import Any

from minijax.backend import clients, foreign_targets
from minijax.backend.cpu import share_with_jax
from minijax.core.events import enter
from minijax.core.runtime import jaxlib_version_text, xc


def find_plugin() -> tuple[str, str] | None:
    """The newest CUDA generation whose plugin is installed, and its library's path."""
    spec = importlib.util.find_spec("jax_plugins")  # imports nothing of it
    for generation in ("13", "12"):
        for folder in (spec and spec.submodule_search_locations) or ():
            path = os.path.join(folder, f"xla_cuda{generation}", "xla_cuda_plugin.so")
            if os.path.exists(path):
                return generation, path
    return None


def is_installed() -> bool:
    """Whether the plugin's wheels are there; says nothing about a GPU."""
    return find_plugin() is not None


@functools.cache
def _register_handlers(generation: str, c_api: Any) -> None:
    """Gives XLA the GPU functions of the plugin: callbacks, linear algebra."""
    name = f"jax_cuda{generation}_plugin"
    version = importlib.import_module(f"{name}.version").__version__
    if version != jaxlib_version_text:
        raise RuntimeError(
            f"{name.replace('_', '-')} is version {version}, but jaxlib is "
            f"{jaxlib_version_text}. Install the plugin at jaxlib's version."
        )
    extension = importlib.import_module(f"{name}.cuda_plugin_extension")
    add_type = functools.partial(extension.register_custom_type, c_api)
    add_call = functools.partial(extension.register_custom_call_target, c_api)
    xc.register_custom_type_handler("CUDA", add_type)
    xc.register_custom_call_handler("CUDA", add_call)
    for type_name, value in extension.ffi_types().items():
        xc.register_custom_type(type_name, value, platform="CUDA")
    for call_name, value in extension.ffi_handlers().items():
        xc.register_custom_call_target(call_name, value, platform="CUDA", api_version=1)
    for part in ("solver", "linalg", "sparse"):
        module = importlib.import_module(f"jaxlib.gpu_{part}")
        for call_name, value, api_version in module.registrations()["CUDA"]:
            foreign_targets.register_ffi_target(call_name, value, "CUDA", api_version)
        for call_name in getattr(module, "batch_partitionable_targets", list)():
            foreign_targets.register_ffi_target_as_batch_partitionable(call_name)


@functools.cache
def load(path: str) -> tuple[str, Any]:
    """Loads the plugin, once. It finds NVIDIA's libraries in the wheels beside it.

    jax takes the name "cuda" when it first asks for its devices, and fails if it is
    taken; so where jax is imported and has not yet asked, the plugin gets another name.

    Returns:
      The plugin's name, and its interface in C; None if jax has loaded it.
    """
    from jaxlib import _profiler  # type: ignore[attr-defined]

    name, c_api = "cuda", None
    if not xc.pjrt_plugin_loaded(name):
        name = "minijax_cuda" if "jax" in sys.modules else name
        c_api = xc.load_pjrt_plugin_dynamically(name, path)
        _profiler.register_plugin_profiler(c_api)
    if not xc.pjrt_plugin_initialized(name):
        xc.initialize_pjrt_plugin(name)
    return name, c_api


def reads_programs(device: Any) -> bool:
    """Whether a device loads compiled programs: a GPU if its plugin is named "cuda"."""
    return device.platform != "gpu" or xc.pjrt_plugin_loaded("cuda")


def make_client(options: dict[str, Any]) -> Any:
    """A client for the GPUs of this machine.

    Args:
      options: of the plugin's own: `visible_devices`, `memory_fraction`, `num_nodes`;
        and `distributed_client` for several processes.

    Raises:
      RuntimeError: if the plugin is not installed, of another version, or finds no GPU.
    """
    plugin = find_plugin()
    if plugin is None:
        raise RuntimeError(
            "The CUDA plugin is not installed. Install it at jaxlib's version: pip "
            f"install 'jax-cuda13-plugin[with-cuda]=={jaxlib_version_text}'"
        )
    share_with_jax()
    generation, path = plugin
    name, c_api = load(path)
    if c_api is not None:  # jax gives XLA the same functions
        _register_handlers(generation, c_api)
    # Some of them finish on the CPU, with SciPy's LAPACK.
    importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()
    given = dict(options)
    distributed_client = given.pop("distributed_client", None)
    plugin_options = {**xc.generate_pjrt_gpu_plugin_options(), **given}
    return xc.make_c_api_client(name, plugin_options, distributed_client)


def is_there() -> bool:
    """Whether the plugin is installed and the machine has a GPU of NVIDIA's."""
    has_device = bool(glob.glob("/dev/nvidia[0-9]*")) or os.path.exists("/dev/dxg")
    return has_device and is_installed()


enter(
    clients.factories,
    "cuda",
    lambda: make_client(clients.settings.client_options.get("cuda", {})),
)
enter(clients.is_there, "cuda", is_there)
