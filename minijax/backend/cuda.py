"""A CUDA client through jaxlib's plugin interface, without jax.

The plugin's wheels (`jax-cuda13-plugin`, `jax-cuda13-pjrt`, NVIDIA's libraries) must be
of jaxlib's own version. Their module `jax_plugins.xla_cuda13` imports jax, so it is not
imported: the shared library beside it is loaded directly.

In JAX: `jax_plugins/xla_cuda13/__init__.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import importlib
import importlib.util
import os
from typing import Any

from minijax.backend import clients
from minijax.backend.cpu import share_with_jax
from minijax.core.events import enter
from minijax.core.runtime import jaxlib_version_text, xc

# Later ones need earlier ones. Each is a folder below `nvidia/` and a file name.
_LIBRARIES = (
    ("cuda_runtime", "libcudart.so.*"),
    ("nvjitlink", "libnvJitLink.so.*"),
    ("cuda_nvrtc", "libnvrtc.so.*"),
    ("cublas", "libcublasLt.so.*"),
    ("cublas", "libcublas.so.*"),
    ("cuda_cupti", "libcupti.so.*"),
    ("cusparse", "libcusparse.so.*"),
    ("cusolver", "libcusolver.so.*"),
    ("cufft", "libcufft.so.*"),
    ("nccl", "libnccl.so.*"),
    ("nvshmem", "libnvshmem_host.so.*"),
    ("cudnn", "libcudnn.so.*"),
)
_GENERATIONS = ("13", "12")


def _folders_of(package: str) -> list[str]:
    """The folders of a namespace package, without importing anything of it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return list(spec.submodule_search_locations)


def find_plugin() -> tuple[str, str] | None:
    """The newest CUDA generation whose plugin is installed, and its library's path."""
    for generation in _GENERATIONS:
        for folder in _folders_of("jax_plugins"):
            path = os.path.join(folder, f"xla_cuda{generation}", "xla_cuda_plugin.so")
            if os.path.exists(path):
                return generation, path
    return None


def is_installed() -> bool:
    """Whether the plugin's wheels are there; says nothing about a GPU."""
    return find_plugin() is not None


def _load_libraries(generation: str) -> None:
    """Loads NVIDIA's libraries from their wheels, so that the plugin finds them.

    The wheels of CUDA 13 share one folder; those of CUDA 12 have one each. A library
    that is missing there may still come from the system.
    """
    for folder in _folders_of("nvidia"):
        for package, pattern in _LIBRARIES:
            places = (
                os.path.join(folder, f"cu{generation}", "lib", pattern),
                os.path.join(folder, package, "lib", pattern),
            )
            found = [path for place in places for path in sorted(glob.glob(place))]
            if found:
                # One that cannot be loaded may not be needed: the plugin says so
                # if it is.
                with contextlib.suppress(OSError):
                    ctypes.CDLL(found[0])


def _register_handlers(generation: str, c_api: Any) -> None:
    """Gives XLA the GPU kernels of the plugin: linear algebra, callbacks."""
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
    generation, path = plugin
    share_with_jax()
    if not xc.pjrt_plugin_loaded("cuda"):
        _load_libraries(generation)
        c_api = xc.load_pjrt_plugin_dynamically("cuda", path)
        _register_handlers(generation, c_api)
    if not xc.pjrt_plugin_initialized("cuda"):
        xc.initialize_pjrt_plugin("cuda")
    given = dict(options)
    distributed_client = given.pop("distributed_client", None)
    plugin_options = {**xc.generate_pjrt_gpu_plugin_options(), **given}
    return xc.make_c_api_client("cuda", plugin_options, distributed_client)


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
