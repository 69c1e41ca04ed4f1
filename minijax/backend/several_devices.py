"""How a program for several devices is compiled.

In JAX: `jax/_src/compiler.py`, `get_compile_options`.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.backend import executables
from minijax.backend.build_settings import BuildSettings
from minijax.core.compiler import Executable
from minijax.core.runtime import xc

# How many launches on several CPU devices may be under way. XLA's CPU client has as
# many threads as devices, or as cores if those are more. Each device of a launch that
# waits for the others can hold one. On two cores, from about 32 launches on all wait
# for each other, and XLA ends the process after 40 seconds; jax 0.10.2 ends, too. More
# threads, by the variable PJRT_NPROC, allow more launches and cost more: with 32, a
# step on eight devices took 1.29 ms in the mean, with the default 0.85 ms.
LAUNCHES_UNDER_WAY = 8
Launch = Callable[[list[Any]], tuple[list[Any], Any]]
_under_way: collections.deque[Any] = collections.deque()
# All devices get the launches in one order: in two orders they wait for each other.
_order = threading.Lock()


class _OfThread(threading.local):
    """What a thread may do.

    Attributes:
      waits: whether it waits for launches. XLA's threads do not: they run callbacks,
        and a program that is under way may need the callback's result.
      launches: whether it may launch on several devices.
    """

    def __init__(self) -> None:
        self.waits = not isinstance(threading.current_thread(), threading._DummyThread)
        self.launches = True


_of_thread = _OfThread()


@contextlib.contextmanager
def in_callback() -> Iterator[None]:
    """Within it runs a callback of a program on several CPU devices.

    A launch on several devices is refused: they all wait for the callback.
    """
    before = _of_thread.launches
    _of_thread.launches = False
    try:
        yield
    finally:
        _of_thread.launches = before


@dataclasses.dataclass(frozen=True)
class PartitionedSettings(BuildSettings):
    """How a program is compiled for several devices.

    Attributes:
      num_partitions: how many devices share the program's arrays.
      propagate_to_parameters: for each argument, whether the compiler chooses its
        sharding.
      propagate_to_outputs: the same for each output.
    """

    num_partitions: int = 1
    propagate_to_parameters: tuple[bool, ...] | None = None
    propagate_to_outputs: tuple[bool, ...] | None = None

    def make_options(self, devices: Any) -> tuple[Any, dict[str, Any]]:
        """jaxlib's options for these settings, and apart from them the XLA flags."""
        options, flags = super().make_options(devices)
        build = options.executable_build_options
        if self.propagate_to_outputs is not None:
            build.allow_spmd_sharding_propagation_to_output = [
                *self.propagate_to_outputs
            ]
        if self.propagate_to_parameters is not None:
            build.allow_spmd_sharding_propagation_to_parameters = [
                *self.propagate_to_parameters
            ]
        return options, flags


def sharding_callback(found: Callable[[Any], None]) -> Any:
    """The bytes that make XLA's partitioner call `found` with a value's sharding.

    They hold the address of `found`, which must live until the program is compiled.
    """
    return xc._xla.encode_inspect_sharding_callback(found)


def is_bounded(executable: Executable) -> bool:
    """Whether the number of the program's launches under way has a bound."""
    devices = executable.devices
    return len(devices) > 1 and devices[0].platform == "cpu"


def bounded(run: Launch) -> Launch:
    """A function of `executables.token_launcher`, called in order and in bounds.

    A launch returns before the program has run, unless `LAUNCHES_UNDER_WAY` others are
    still under way: then it waits for the oldest of them. It raises RuntimeError in a
    callback of a program on several devices.
    """

    def launch(arguments: list[Any]) -> tuple[list[Any], Any]:
        if not _of_thread.launches:
            raise RuntimeError(
                "A callback of a program on several CPU devices launched a program on "
                "several devices. They all wait for the callback, so it would never "
                "run. Compute on one device in the callback, or compute the value "
                "before the call and pass it as an argument."
            )
        with _order:
            results, token = run(arguments)
        _under_way.append(token)
        if len(_under_way) > LAUNCHES_UNDER_WAY and _of_thread.waits:
            # Another thread may have taken it. If it failed, its results say so.
            with contextlib.suppress(IndexError, xc._xla.JaxRuntimeError):
                _under_way.popleft().block_until_ready()
        return results, token

    return launch


def bounded_launcher(
    executable: Executable,
    out_avals: Sequence[Any],
    out_shardings: Sequence[Any],
    committed: bool = True,
) -> Callable[[list[Any]], list[Any]]:
    """As `Executable.launcher`, for several devices of the host's processor."""
    run = executables.token_launcher(executable, out_avals, out_shardings, committed)
    launch = bounded(run)
    return lambda arguments: launch(arguments)[0]
