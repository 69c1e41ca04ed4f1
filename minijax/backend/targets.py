"""Machines to compile for that need not be there: H100s, a slice of TPUs.

    target = find("h100")  # one; eight are "h100:8"
    executable = target.compile(module, BuildSettings())
    executable.hlo_text()  # what the H100 would run

The vendor's own compiler comes in a wheel: XLA for NVIDIA's GPUs in `jax-cuda13-pjrt`
(neither CUDA nor a GPU is needed; the file `h100.txtpb` describes the machine), XLA for
TPUs in `libtpu`. Such a program can be looked at, not run.

In JAX: `jax.experimental.topologies`, `get_topology_desc`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from minijax.backend import cuda
from minijax.backend.build_settings import BuildSettings
from minijax.core import compiler, hlo, runtime
from minijax.core.runtime import DeviceList, JaxRuntimeError, jaxlib_version_text, xc

# The libtpu that belongs to a jaxlib; others may not understand its programs.
_LIBTPU = {"0.10.2": "0.0.42", "0.12.0.1": "0.0.50"}

# What libtpu asks of the machine when it starts, answered for one that has no TPU.
_WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_LOG_DIR": "disabled",
    # Compiling reserves no chip, so processes need not take turns.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}

# The generations of TPUs whose slices can be named.
GENERATIONS = ("v2", "v3", "v4", "v5e", "v5p", "v6e")

_lock = threading.RLock()


@dataclasses.dataclass(frozen=True)
class Target:
    """A machine to compile for.

    Attributes:
      name: as users write it: "cpu", "h100", "h100:8", "tpu-v5e:2x2".
      platform: the name under which lowering rules are registered.
      devices: a list of the device that the program is compiled for.
      device_kind: what the vendor calls the device.
      all_devices: those of the whole machine or slice.
      runs: whether programs for it can be run by this process.
    """

    name: str
    platform: str
    devices: Any
    device_kind: str
    all_devices: tuple[Any, ...]
    runs: bool = False

    num_devices = property(lambda self: len(self.all_devices))

    def first(self, count: int) -> Any:
        """A list of the first so many devices. Raises ValueError if there are fewer."""
        if count > self.num_devices:
            raise ValueError(
                f"the program is written for {count} devices, and target={self.name!r} "
                f"has {self.num_devices}. Give a larger one, such as 'h100:{count}' or "
                f"'tpu-v5e:2x{-(-count // 2)}', or a smaller mesh."
            )
        return DeviceList(self.all_devices[:count])

    def compile(
        self,
        module: Any,
        settings: BuildSettings,
        debug: Callable[[Any], None] | None = None,
        host_callbacks: Sequence[Callable[..., Any]] = (),
    ) -> compiler.Executable:
        """Compiles an MLIR module; never from the cache on disk.

        Args:
          module: an MLIR module.
          settings: how.
          debug: sets XLA's debug options, such as where it writes what it does.
          host_callbacks: Python functions that the program calls, if it can run.

        Raises:
          JaxRuntimeError: XLA's own error, if it refuses the program.
          ValueError: if the settings ask for more devices than there are.
        """
        devices = self.first(getattr(settings, "num_partitions", 1))
        options, flags = settings.make_options(devices)
        if debug is not None:
            debug(options.executable_build_options.debug_options)
        options.env_option_overrides = list(flags.items())
        client = devices[0].client
        start = time.perf_counter()
        # In a context of its own: compiling gives up the interpreter's lock.
        with hlo.make_context():
            parsed = hlo.ir.Module.parse(compiler.program_of(module))
            if self.runs:
                given = (parsed, devices, options, [*host_callbacks])
                loaded = client.compile_and_load(*given)
            else:
                loaded = client.compile(parsed, devices, options)
        seconds = time.perf_counter() - start
        return compiler.Executable(loaded, devices, False, seconds)


@functools.cache
@runtime.uninterrupted
def find(name: str) -> Target:
    """The target of a name; its compiler is loaded when it is first asked for.

    Raises:
      ValueError: for a name that is no target's.
      ModuleNotFoundError: if the wheel with the compiler is not installed.
      RuntimeError: if it is not the one that belongs to this jaxlib.
    """
    with _lock:
        if name == "cpu":
            device = runtime.get_backend("cpu").local_devices()[0]
            one = DeviceList((device,))
            return Target(name, "cpu", one, "cpu", (device,), runs=True)
        if isinstance(name, str) and re.fullmatch("h100(:[1-9][0-9]{0,3})?", name):
            count = int(name.partition(":")[2] or 1)
            return _compile_only(name, "cuda", _h100(name, count))
        if isinstance(name, str) and name.startswith("tpu-"):
            return _compile_only(name, "tpu", _tpu(name))
    raise ValueError(_unknown(name))


def _unknown(name: Any) -> str:
    slices = ", ".join(GENERATIONS)
    return (
        f"there is no target {name!r}. Targets are 'cpu', 'h100', several of them in "
        "one machine such as 'h100:8', and slices of TPUs "
        f"such as 'tpu-v5e:2x2': a generation ({slices}) and the chips along each axis."
    )


def _compile_only(name: str, platform: str, topology: Any) -> Target:
    devices = topology._make_compile_only_devices()
    first = DeviceList((devices[0],))
    return Target(name, platform, first, devices[0].device_kind, tuple(devices))


def _h100(name: str, count: int) -> Any:
    """XLA's description of a machine with so many H100s."""
    found = cuda.find_plugin()
    if found is None:
        raise _missing("h100", "NVIDIA's compiler, the wheel jax-cuda13-pjrt", "h100")
    generation, path = found
    wheel = f"jax-cuda{generation}-pjrt"
    _check_version(wheel, jaxlib_version_text, jaxlib_version_text)
    plugin, _ = cuda.load(path)
    text = (Path(__file__).parent / "h100.txtpb").read_text()
    options = {"target_config": text, "topology": f"1x1x{count}"}
    return xc._xla.get_default_c_api_topology(plugin, name, options)


def _tpu(name: str) -> Any:
    """libtpu's description of a slice of TPUs."""
    spec = importlib.util.find_spec("libtpu")
    if spec is None or spec.origin is None:
        raise _missing(name, "Google's compiler, the wheel libtpu", "tpu")
    if jaxlib_version_text in _LIBTPU:
        wanted = _LIBTPU[jaxlib_version_text]
        _check_version("libtpu", wanted, f"{wanted}.*")
    generation, _, shape = name.removeprefix("tpu-").partition(":")
    sizes = shape.split("x")
    if generation not in GENERATIONS or not all(size.isdigit() for size in sizes):
        raise ValueError(_unknown(name))
    if generation in ("v5e", "v6e") and max(map(int, sizes)) > 16:
        # Later libtpu would end the process.
        raise ValueError(
            f"{name!r}: no side of a slice of {generation} has more than 16 chips."
        )
    path = os.path.join(os.path.dirname(spec.origin), "libtpu.so")
    with _environment():
        if not xc.pjrt_plugin_loaded("tpu"):
            xc.load_pjrt_plugin_dynamically("tpu", path)
        if not xc.pjrt_plugin_initialized("tpu"):
            xc.initialize_pjrt_plugin("tpu")
    options: dict[str, Any] = {}
    if set(sizes) == {"1"}:
        options["chips_per_host_bounds"] = [1, 1, 1]  # four chips by default
    try:
        return xc.make_tfrt_tpu_c_api_device_topology(
            f"{generation}:{shape}", **options
        )
    except JaxRuntimeError as error:
        message = str(error).splitlines()[0]
        raise ValueError(f"{_unknown(name)} libtpu says: {message}") from None


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """The environment in which libtpu starts without a TPU; what is set stays."""
    added = {name: v for name, v in _WITHOUT_TPU.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _missing(target: str, compiler_name: str, extra: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"target={target!r} needs {compiler_name}, which is not installed. Add it "
        f"with: pip install 'minijax[{extra}]'"
    )


def _check_version(wheel: str, prefix: str, wanted: str) -> None:
    """RuntimeError if a wheel is installed in another version than `prefix`."""
    from importlib import metadata  # here: it brings mail, archives and sockets along

    try:
        version = metadata.version(wheel)
    except metadata.PackageNotFoundError:
        return  # a library without its wheel's papers
    if version != prefix and not version.startswith(f"{prefix}."):
        raise RuntimeError(
            f"{wheel} is version {version}, and jaxlib {jaxlib_version_text} needs "
            f"{wanted}. Install that one: pip install '{wheel}=={wanted}'"
        )
