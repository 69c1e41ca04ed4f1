"""Compiled programs as bytes, for another process with the same jaxlib and machine.

In JAX: `jax/experimental/serialize_executable.py`.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from minijax.backend import executables, lapack, portable_artifacts
from minijax.backend.build_settings import BuildSettings
from minijax.backend.disk_cache import cpu_features
from minijax.compile.stages import Compiled, Traced
from minijax.core import errors, language, lowering, runtime
from minijax.programs.launching import LibraryProgram
from minijax.programs.sharding.partitioned import PartitionedProgram
from minijax.programs.sharding.placement import Placement, placement_of
from minijax.support.version import __version__

# Add one to it when the bytes get other parts, or parts with another meaning.
_FORMAT = 1


class _Pickler(pickle.Pickler):
    """Writes devices by their ids."""

    def persistent_id(self, value: Any) -> int | None:
        return value.id if isinstance(value, type(runtime.devices()[0])) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, devices: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self.devices = {device.id: device for device in devices}

    def persistent_load(self, number: int) -> Any:
        if number not in self.devices:
            raise errors.value_error(
                f"the program was compiled for the device with id {number}, and those "
                f"given have the ids {sorted(self.devices)}. Compile it again for them."
            )
        return self.devices[number]


def _stamps(data: bytes) -> tuple[bytes, bytes]:
    """What must be the same where a program is read: the machine, and the bytes."""
    here = f"{_FORMAT} {__version__} {runtime.jaxlib_version_text} {cpu_features()}"
    return hashlib.sha256(here.encode()).digest(), hashlib.sha256(data).digest()


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """(the program as bytes, the tree of its arguments, the tree of its results).

    Raises ValueError for a program that calls Python, closes over large arrays or refs,
    has effects, runs on devices of several processes, or was itself read from bytes.

    In JAX: `jax.experimental.serialize_executable.serialize`.
    """
    program, traced = compiled._program, compiled._traced
    lowered, place = program.lowered, program.device
    several = type(place) is Placement
    plain = type(program) is (PartitionedProgram if several else LibraryProgram)
    elsewhere = several and not place.devices.is_fully_addressable
    more = lowered.constants or lowered.host_callbacks or lowered.effects
    if more or elsewhere or not plain:
        raise errors.value_error(
            f"serialize got {traced.fun_name}, whose compiled program needs more than "
            "its arguments: Python functions, large arrays that it closes over, refs, "
            "an order of effects, or other processes. Pass arrays as arguments; "
            "`minijax.export` keeps the program before it is compiled."
        )
    if several:
        rest = place.in_shardings, place.mesh, place.out_shardings, place.layouts
        where: tuple[Any, ...] = (list(place.devices), *rest)
    else:
        where = [place], isinstance(program.placed, runtime.Sharding)
    names = traced.fun_name, traced.jaxpr.jaxpr.debug_info.arg_names, traced._donated
    whole = lowered._replace(context=None, module=None, source=None)
    file = io.BytesIO()
    payload = executables.serialize(program.executable)
    targets = portable_artifacts.custom_call_targets(lowered.module)
    _Pickler(file).dump((payload, targets, tuple(whole), where, names))
    data = file.getvalue()
    return b"".join(_stamps(data)) + data, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """The compiled program again, in this process.

    Args:
      serialized, in_tree, out_tree: what `serialize` gave. The bytes are native code,
        and reading them can run any code: read only bytes from a source you trust.
      backend: the name of the platform, or its client.
      execution_devices: the devices among which its own are found by their ids; by
        default all of the backend.

    Raises ValueError for bytes that are damaged, that another jaxlib, minijax or kind
    of machine wrote, or of a program whose devices are not there; RuntimeError for a
    backend that is not there.

    In JAX: `jax.experimental.serialize_executable.deserialize_and_load`.
    """
    stamps, data = (serialized[:32], serialized[32:64]), serialized[64:]
    reasons = "were written with another jaxlib, minijax or processor", "are damaged"
    for found, wanted, what in zip(stamps, _stamps(data), reasons):
        if found != wanted:
            raise errors.value_error(
                f"the bytes of the compiled program {what}. Compile it here, and "
                "serialize it again."
            )
    devices = runtime.devices(backend)
    if execution_devices is not None:
        devices = list(execution_devices)
    payload, targets, whole, where, names = _Unpickler(data, devices).load()
    used, *rest = where
    lapack.load_for(targets)
    executable = executables.load(payload, used, BuildSettings())
    lowered = lowering.Lowered(*whole)._replace(source=lambda: None)
    if len(rest) == 1:
        program: Any = LibraryProgram(lowered, executable, *used, *rest)
    else:
        place = placement_of(executable.devices, *rest)
        program = PartitionedProgram(lowered, executable, place)
    name, arg_names, donated = names
    info = language.DebugInfo("jit", name, names=arg_names)
    types = lowered.in_avals, lowered.out_avals
    ins, outs = (list(map(language.Var, avals)) for avals in types)
    closed = language.ClosedJaxpr(language.Jaxpr([], ins, outs, [], debug_info=info))
    params = {"name": name, "donated_invars": donated}
    made = SimpleNamespace(closed=closed, params=params, out_tree=out_tree)
    return Compiled(Traced(made, SimpleNamespace(tree=in_tree), None), program)
