"""Compiling StableHLO with XLA, and launching the compiled program.

`several_devices` compiles for several devices, `disk_cache` keeps programs on disk, and
`executables` reads further properties of a compiled program.

In JAX: `jax/_src/compiler.py`, and the C++ half of `interpreters/pxla.py`,
`MeshExecutable`.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import hlo
from .runtime import DeviceList, release_references, result_handler, xc


@dataclasses.dataclass(frozen=True)
class CompileSettings:
    """How a program is compiled.

    Attributes:
      options: XLA flags by name, as in `xla_cpu_enable_fast_math`; unknown names raise
        when compiling.
    """

    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def make_options(self, devices: Any) -> tuple[Any, dict[str, Any]]:
        """(jaxlib's compile options for these settings, the XLA flags).

        In the options the flags would be a map of a protocol buffer, whose bytes differ
        from process to process. So the caller hashes them separately and sets them
        last.
        """
        options = xc.CompileOptions()
        options.num_replicas = 1
        options.num_partitions = len(devices)
        assignment = np.asarray([[one.id for one in devices]], dtype=np.int64)
        options.device_assignment = xc.DeviceAssignment.create(assignment)
        build = options.executable_build_options
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        return options, dict(self.options)


@dataclasses.dataclass(eq=False)
class Executable:
    """A compiled program on its devices.

    Attributes:
      loaded: jaxlib's executable.
      devices: its devices, as a device list.
      from_disk: whether it was read from the cache on disk.
      seconds: the time that compiling it, or reading it from disk, took.

    In JAX: `jax.stages.Executable` and `pxla.MeshExecutable`.
    """

    loaded: Any
    devices: Any
    from_disk: bool
    seconds: float

    def launcher(
        self,
        out_avals: Sequence[Any],
        out_shardings: Sequence[Any],
        committed: bool = True,
    ) -> Callable[[list[Any]], list[Any]]:
        """The function that launches the program, with the least work for each call.

        Args:
          out_avals: for each output an object with `shape`, `dtype` and `weak_type`;
            the arrays returned keep it.
          out_shardings: for each output its sharding.
          committed: whether the arrays returned are committed to their devices.

        Returns:
          A function from a list of jaxlib arrays to a list of jaxlib arrays. It checks
          nothing: a wrong dtype of the same size gives wrong numbers, and on several
          devices a wrong number of arguments or a wrong shard shape ends the process.
          The caller must compare types and shardings first.
        """
        handlers = result_handlers(out_avals, out_shardings, committed)
        execute = self.loaded.execute_sharded
        launches = itertools.count(1)

        def launch(arguments: list[Any]) -> list[Any]:
            # Each launch leaves a traceback, which the next garbage collection frees. A
            # loop that only launches does not cause a collection.
            if not next(launches) & 0xFF:
                release_references()
            return execute(arguments).consume_with_handlers(handlers)

        return launch

    def hlo_modules(self) -> list[Any]:
        """The optimised program, which the device runs, as jaxlib's HLO objects."""
        return self.loaded.hlo_modules()

    def hlo_text(self) -> str:
        """The optimised program as HLO text."""
        return "\n\n".join(module.to_string() for module in self.hlo_modules())


def result_handlers(
    out_avals: Sequence[Any], out_shardings: Sequence[Any], committed: bool
) -> list[Any]:
    """For each output, the object that wraps its raw buffer as a jaxlib array."""
    pairs = zip(out_avals, out_shardings, strict=True)
    return [result_handler(aval, sharding, committed) for aval, sharding in pairs]


def program_of(module: Any) -> str | bytes:
    """A module as bytecode; text and bytecode are returned unchanged.

    XLA parses them in a context of its own. Compiling releases the interpreter's lock,
    so it must not use the context of the module.
    """
    return module if isinstance(module, (str, bytes)) else hlo.module_to_bytes(module)


def device_list_of(devices: Any) -> Any:
    """jaxlib's list of devices for a sequence of devices."""
    return devices if isinstance(devices, DeviceList) else DeviceList(tuple(devices))


def compile_module(
    module: Any,
    devices: Any,
    settings: CompileSettings | None = None,
    host_callbacks: Sequence[Callable[..., Any]] = (),
) -> Executable:
    """Compiles a program for devices.

    Args:
      module: an MLIR module, or its bytecode or text.
      devices: a `DeviceList`, or a sequence of devices.
      settings: how to compile it; None for one device and no flags.
      host_callbacks: Python functions that the program calls by their position.

    Raises:
      JaxRuntimeError: XLA's own error, if it cannot compile the program.
    """
    device_list = device_list_of(devices)
    program = program_of(module)
    compile_and_load = device_list[0].client.compile_and_load
    options, flags = (settings or CompileSettings()).make_options(device_list)
    options.env_option_overrides = list(flags.items())
    start = time.perf_counter()
    if host_callbacks:
        # With callbacks, jaxlib takes a module only. It is parsed in a new context.
        with hlo.make_context():
            parsed = hlo.ir.Module.parse(program)
            loaded = compile_and_load(parsed, device_list, options, [*host_callbacks])
    else:
        loaded = compile_and_load(program, device_list, options)
    return Executable(loaded, device_list, False, time.perf_counter() - start)
