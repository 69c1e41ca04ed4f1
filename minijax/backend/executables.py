"""More about compiled programs: tokens, cost, memory, shardings, bytes.

In JAX: `jax/_src/stages.py`, `Executable`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import compiler, errors
from minijax.core.runtime import HloSharding, release_references, xc


def token_launcher(
    executable: compiler.Executable,
    out_avals: Sequence[Any],
    out_shardings: Sequence[Any],
    committed: bool = True,
) -> Callable[[list[Any]], tuple[list[Any], Any]]:
    """As `Executable.launcher`, for a program whose caller waits for the results.

    The function returns the arrays and, beside them, an object whose
    `block_until_ready` waits until the program has run on all its devices.
    """
    handlers = compiler.result_handlers(out_avals, out_shardings, committed)
    execute = executable.loaded.execute_sharded

    def launch(arguments: list[Any]) -> tuple[list[Any], Any]:
        release_references()
        results = execute(arguments, with_tokens=True)
        arrays = results.consume_with_handlers(handlers)
        return arrays, results.consume_token()

    return launch


def cost_analysis(executable: compiler.Executable) -> dict[str, float]:
    """XLA's estimate ("flops", "bytes accessed", ...); empty if it has none."""
    try:
        found = executable.loaded.cost_analysis()
    except xc._xla.JaxRuntimeError as error:
        if "UNIMPLEMENTED" in str(error):
            return {}
        raise
    if isinstance(found, list):
        found = found[0] if found else {}
    return dict(found)


def memory_stats(executable: compiler.Executable) -> Any:
    """Bytes for arguments, outputs, temporaries and code, per device."""
    return executable.loaded.get_compiled_memory_stats()


def output_shardings(executable: compiler.Executable) -> list[Any] | None:
    """The shardings the compiler gave the outputs, as `HloSharding`s."""
    return _as_shardings(executable.loaded.get_output_shardings())


def parameter_shardings(executable: compiler.Executable) -> list[Any] | None:
    """The shardings of the arguments, as `HloSharding`s; None if unknown."""
    return _as_shardings(executable.loaded.get_parameter_shardings())


def _as_shardings(found: list[Any] | None) -> list[Any] | None:
    return found and [HloSharding.from_proto(sharding) for sharding in found]


def serialize(executable: compiler.Executable) -> bytes:
    """The program as bytes, for the same jaxlib on the same kind of machine.

    One that was read from the cache on disk is compiled again: XLA writes only what it
    has compiled in this process. Raises ValueError for one that `load` returned.
    """
    compiled = getattr(executable, "compiled_now", executable)
    if compiled.from_disk:
        raise errors.value_error(
            "serialize got a program that was itself read from bytes, and XLA writes "
            "only what it has compiled in this process. Keep the bytes that it was "
            "read from, or compile the function again: `jit(f).lower(x).compile()`."
        )
    return compiled.loaded.serialize()


def load(
    serialized: bytes, devices: Any, settings: compiler.CompileSettings
) -> compiler.Executable:
    """The program that `serialize` gave as bytes, on its devices.

    `settings` are those that it was compiled with: some say how its code is called.
    """
    start = time.perf_counter()
    devices = compiler.device_list_of(devices)
    options, flags = settings.make_options(devices)
    options.env_option_overrides = list(flags.items())
    client = devices[0].client
    loaded = client.deserialize_executable(serialized, devices, options)
    return compiler.Executable(loaded, devices, True, time.perf_counter() - start)
