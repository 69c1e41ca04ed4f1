"""StableHLO in, a running program out: compile, launch, and a cache on disk.

In JAX: `jax/_src/compiler.py`, `compilation_cache.py`, and the C++ half of
`interpreters/pxla.py`, `MeshExecutable`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import platform
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.backend.door import (
    DeviceList,
    HloSharding,
    jaxlib_version,
    jaxlib_version_text,
    release_references,
    result_handler,
    xc,
)

# Compiles a softmax in a third of the time. The programs are slower; the values of the
# elementary functions are the same to rounding.
# (jaxlib 0.12 has no such flag any more.)
_FAST_OPTIONS = (
    {"xla_cpu_use_fusion_emitters": False} if jaxlib_version < (0, 11) else {}
)

# The options that are not XLA flags but fields of the build options.
_BUILD_FIELDS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "memory_fitting_level",
    "optimization_level",
)


def _fast_by_default() -> bool:
    return os.environ.get("MINIJAX_TEST_FAST_COMPILE", "") == "1"


@dataclasses.dataclass(frozen=True)
class CompileSettings:
    """How a program is compiled.

    Attributes:
      num_partitions: how many devices share the program's arrays.
      num_replicas: how many copies of that run side by side (pmap; otherwise 1).
      device_ids: the ids of the devices, `num_replicas * num_partitions` of them, in
        the order in which the program numbers them; None takes the device list's.
      options: XLA flags by name, as in `xla_cpu_enable_fast_math`; unknown names raise
        when compiling.
      fast_compile: spend little on optimisation; None reads
        `MINIJAX_TEST_FAST_COMPILE` from the environment.
      propagate_to_outputs: for each output, whether the compiler chooses its sharding.
      propagate_to_parameters: for each argument, whether the compiler chooses its
        sharding.
      cache_directory: where compiled programs are kept; None keeps none.
    """

    num_partitions: int = 1
    num_replicas: int = 1
    device_ids: tuple[int, ...] | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fast_compile: bool | None = None
    propagate_to_outputs: tuple[bool, ...] | None = None
    propagate_to_parameters: tuple[bool, ...] | None = None
    cache_directory: str | None = None

    @property
    def is_fast(self) -> bool:
        """Whether little is spent on optimisation."""
        if self.fast_compile is None:
            return _fast_by_default()
        return self.fast_compile


def make_options(settings: CompileSettings, devices: Any) -> tuple[Any, dict[str, Any]]:
    """jaxlib's options for these settings, and apart from them the XLA flags.

    The flags are a map in a protocol buffer, whose bytes differ from process to
    process. So they are handed back to be hashed on their own, and set last.
    """
    options = xc.CompileOptions()
    options.num_replicas = settings.num_replicas
    options.num_partitions = settings.num_partitions
    ids = settings.device_ids
    if ids is None:
        ids = tuple(device.id for device in devices)
    assignment = np.asarray(ids, dtype=np.int64).reshape(
        settings.num_replicas, settings.num_partitions
    )
    options.device_assignment = xc.DeviceAssignment.create(assignment)
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = True
    if settings.propagate_to_outputs is not None:
        build.allow_spmd_sharding_propagation_to_output = list(
            settings.propagate_to_outputs
        )
    if settings.propagate_to_parameters is not None:
        build.allow_spmd_sharding_propagation_to_parameters = list(
            settings.propagate_to_parameters
        )
    flags = dict(settings.options)
    if settings.is_fast:
        debug = build.debug_options
        debug.xla_backend_optimization_level = 0
        debug.xla_llvm_disable_expensive_passes = True
        if devices[0].platform == "cpu":
            flags = {**_FAST_OPTIONS, **flags}
    for field in _BUILD_FIELDS:
        if field in flags:
            setattr(build, field, flags.pop(field))
    return options, flags


class Executable:
    """A compiled program on its devices.

    Attributes:
      loaded: jaxlib's executable.
      devices: its devices, as a device list.
      from_disk: whether it came out of the cache on disk; then the source locations in
        its HLO are those of the program that was compiled first.
      seconds: what compiling, or reading from disk, took.

    In JAX: `jax.stages.Executable` and `pxla.MeshExecutable`.
    """

    def __init__(
        self, loaded: Any, devices: Any, from_disk: bool, seconds: float
    ) -> None:
        self.loaded = loaded
        self.devices = devices
        self.from_disk = from_disk
        self.seconds = seconds

    def launcher(
        self,
        out_avals: Sequence[Any],
        out_shardings: Sequence[Any],
        committed: bool | Sequence[bool] = True,
    ) -> Callable[[list[Any]], list[Any]]:
        """The quickest function that runs the program.

        Args:
          out_avals: for each output an object with `shape`, `dtype` and `weak_type`;
            the arrays returned keep it.
          out_shardings: for each output where it lives.
          committed: whether the arrays returned insist on their devices; for all, or
            for each.

        Returns:
          A function from a list of jaxlib arrays to a list of jaxlib arrays. It checks
          nothing: a wrong dtype of the same size gives wrong numbers, and on several
          devices a wrong number of arguments or a wrong shard shape ends the process.
          Whoever calls it has compared avals and shardings before.
        """
        handlers = _result_handlers(out_avals, out_shardings, committed)
        execute = self.loaded.execute_sharded
        launches = itertools.count(1)

        def launch(arguments: list[Any]) -> list[Any]:
            # Each launch leaves a traceback for the next garbage collection to free.
            # A loop that only launches gives Python no reason to collect.
            if not next(launches) & 0xFF:
                release_references()
            return execute(arguments).consume_with_handlers(handlers)

        return launch

    def token_launcher(
        self,
        out_avals: Sequence[Any],
        out_shardings: Sequence[Any],
        committed: bool = True,
    ) -> Callable[[list[Any]], tuple[list[Any], Any]]:
        """As `launcher`, for a program with side effects on one device.

        The function returns the arrays and, beside them, an object whose
        `block_until_ready` waits until the program has run.
        """
        handlers = _result_handlers(out_avals, out_shardings, committed)
        execute = self.loaded.execute_sharded

        def launch(arguments: list[Any]) -> tuple[list[Any], Any]:
            release_references()
            results = execute(arguments, with_tokens=True)
            arrays = results.consume_with_handlers(handlers)
            return arrays, results.consume_token().get_token(0)

        return launch

    def hlo_modules(self) -> list[Any]:
        """The optimised program as jaxlib's HLO objects: what the machine runs."""
        return self.loaded.hlo_modules()

    def hlo_text(self) -> str:
        """The optimised program as HLO text."""
        return "\n\n".join(module.to_string() for module in self.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate ("flops", "bytes accessed", ...); empty if it has none."""
        try:
            found = self.loaded.cost_analysis()
        except xc._xla.JaxRuntimeError as error:
            if "UNIMPLEMENTED" in str(error):
                return {}
            raise
        if isinstance(found, list):
            found = found[0] if found else {}
        return dict(found)

    def memory_stats(self) -> Any:
        """Bytes for arguments, outputs, temporaries and code, per device."""
        return self.loaded.get_compiled_memory_stats()

    def output_shardings(self) -> list[Any] | None:
        """The shardings the compiler gave the outputs, as `HloSharding`s."""
        found = self.loaded.get_output_shardings()
        if found is None:
            return None
        return [HloSharding.from_proto(sharding) for sharding in found]

    def serialize(self) -> bytes:
        """The program as bytes, for the same jaxlib on the same kind of machine."""
        return self.loaded.serialize()


def _result_handlers(
    out_avals: Sequence[Any],
    out_shardings: Sequence[Any],
    committed: bool | Sequence[bool],
) -> list[Any]:
    """What turns each raw output of a launch into a jaxlib array."""
    if isinstance(committed, bool):
        committed = [committed] * len(out_avals)
    return [
        result_handler(aval, sharding, insists)
        for aval, sharding, insists in zip(
            out_avals, out_shardings, committed, strict=True
        )
    ]


def compile_module(
    module: Any,
    device_list: Any,
    settings: CompileSettings | None = None,
    host_callbacks: Sequence[Callable[..., Any]] = (),
) -> Executable:
    """Compiles a program for devices, or finds it on disk.

    Args:
      module: an MLIR module, or its bytecode or text.
      device_list: the devices: a `DeviceList`, or a sequence of devices.
      settings: how; the default is one device and no cache.
      host_callbacks: Python functions that the program calls by their position. A
        program with callbacks is never kept on disk.

    Raises:
      JaxRuntimeError: XLA's own error, as it is, if it refuses the program.
    """
    settings = settings if settings is not None else CompileSettings()
    if not isinstance(device_list, DeviceList):
        device_list = DeviceList(tuple(device_list))
    # XLA reads the bytes into a context of its own, so that compiling, which gives up
    # the interpreter's lock, does not touch the context of the module.
    program = (
        module if isinstance(module, (str, bytes)) else hlo.module_to_bytes(module)
    )
    client = device_list[0].client
    options, flags = make_options(settings, device_list)
    start = time.perf_counter()
    entry = None
    if settings.cache_directory is not None and not host_callbacks:
        entry = DiskEntry(
            settings.cache_directory, cache_key(program, device_list, options, flags)
        )
        stored = entry.read()
        if stored is not None:
            options.env_option_overrides = list(flags.items())
            try:
                loaded = client.deserialize_executable(stored, device_list, options)
            except Exception as error:
                entry.complain(f"could not be loaded ({error})")
            else:
                seconds = time.perf_counter() - start
                return Executable(loaded, device_list, True, seconds)
    options.env_option_overrides = list(flags.items())
    if host_callbacks:
        # Only a module may come with callbacks: parsed where nobody else looks.
        with hlo.make_context():
            loaded = client.compile_and_load(
                hlo.parse(program), device_list, options, list(host_callbacks)
            )
    else:
        loaded = client.compile_and_load(program, device_list, options)
    seconds = time.perf_counter() - start
    if entry is not None:
        entry.write(loaded)
    return Executable(loaded, device_list, False, seconds)


# ---------------------------------------------------------------------------
# The cache on disk


@functools.cache
def _cpu_features() -> str:
    """What the host's processor can do: programs use all of it."""
    wanted = ("model name", "flags", "Features", "CPU part")
    found = {platform.machine()}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in wanted:
                    found.add(value.strip())
    except OSError:
        found.add(platform.processor())
    return "\n".join(sorted(found))


def cache_key(
    program: str | bytes, devices: Any, options: Any, flags: Mapping[str, Any]
) -> str:
    """A name for everything that the compiled program depends on.

    Source locations are left out: an edit that moves a function by a line finds the
    program again.
    """
    if isinstance(program, str):
        program = program.encode()
    parts = [
        hlo.strip_locations(program),
        jaxlib_version_text.encode(),
        options.SerializeAsString(),
        repr(sorted((name, repr(value)) for name, value in flags.items())).encode(),
        os.environ.get("XLA_FLAGS", "").encode(),
        devices[0].client.platform_version.encode(),
        repr([(d.platform, d.device_kind) for d in devices]).encode(),
        _cpu_features().encode(),
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


_MAGIC = b"minijax executable 1\n"


class DiskEntry:
    """One compiled program in a directory that several processes may share.

    Trouble with the disk never stops a program: there is a warning, and it is compiled.
    A directory holds code that will be run, so it should be writable by its user only.
    """

    def __init__(self, directory: str, key: str) -> None:
        self.directory = os.path.expanduser(directory)
        self.path = os.path.join(self.directory, f"{key}.minijax")

    def complain(self, what: str) -> None:
        """Warns; the program is compiled instead."""
        warnings.warn(
            f"The compilation cache's file {self.path} {what}. The program is compiled "
            "again.",
            RuntimeWarning,
            stacklevel=3,
        )

    def read(self) -> bytes | None:
        """The program's bytes; None if there is none or it is damaged."""
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.complain(f"could not be read ({error})")
            return None
        header = len(_MAGIC) + hashlib.sha256().digest_size
        payload = content[header:]
        expected = _MAGIC + hashlib.sha256(payload).digest()
        if content[:header] != expected:
            self.complain("is damaged")
            return None
        return payload

    def write(self, loaded: Any) -> None:
        """Keeps a program, all at once: a reader sees the whole file or none."""
        import tempfile  # here, since it brings half of the standard library along

        try:
            payload = loaded.serialize()
        except Exception as error:
            self.complain(f"could not be made ({error})")
            return
        temporary = None
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self.directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, self.path)
        except OSError as error:
            warnings.warn(
                f"The compilation cache's file {self.path} could not be written "
                f"({error}). The program runs, and is compiled again next time.",
                RuntimeWarning,
                stacklevel=3,
            )
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
