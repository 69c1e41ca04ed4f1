"""`distributed.initialize`: this process becomes one of several.

From then on `devices()` are the devices of all processes, and a program on a mesh of
them runs in all processes, each of which launches it.

In JAX: `jax/_src/distributed.py`.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minijax.backend import clients, distributed
from minijax.core import runtime

if TYPE_CHECKING:
    from minijax.processes.coordinator import Coordinator
    from minijax.processes.membership import Membership

# What `minijax launch` sets for the processes that it starts.
ADDRESS = "MINIJAX_COORDINATOR_ADDRESS"
NUM_PROCESSES = "MINIJAX_NUM_PROCESSES"
PROCESS_ID = "MINIJAX_PROCESS_ID"
LAUNCHED = "MINIJAX_LAUNCHED"
INITIALIZATION_TIMEOUT = "MINIJAX_INITIALIZATION_TIMEOUT"

_INITIALIZATION_SECONDS = 300


class State:
    """This process's place among several; all None when it is alone."""

    member: Membership | None = None
    coordinator: Coordinator | None = None
    client: Any = None
    store: distributed.Store | None = None
    initialization_timeout: float = _INITIALIZATION_SECONDS
    shutdown_timeout: float = 300
    failed: bool = False


state = State()


def is_initialized() -> bool:
    """Whether this process is one of several.

    In JAX: `jax.distributed.is_initialized`.
    """
    return state.client is not None


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = _INITIALIZATION_SECONDS,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Makes this process one of several that compute together, and waits for them.

    Each process calls it, before anything that needs a device. Started by `minijax
    launch`, a script calls it without arguments. Otherwise process 0 is the
    coordinator, at the address that all are given.

    Args:
      coordinator_address: "host:port" of the coordinator; by default of the variable
        MINIJAX_COORDINATOR_ADDRESS or JAX_COORDINATOR_ADDRESS.
      num_processes: how many there are.
      process_id: this one's number, from 0.
      local_device_ids: the devices of this machine that are this process's. On the CPU
        only their number counts.
      cluster_detection_method: None or "deactivate": minijax asks no cluster; pass the
        numbers that it gives, as the book shows for some.
      initialization_timeout: seconds to wait for the coordinator and the others, and
        later for the others to come to a program that runs on all, at each launch.
      heartbeat_timeout_seconds: after so many seconds of silence a process, or the
        coordinator, is gone: the others say so and end.
      shutdown_timeout_seconds: how long a process that has ended waits for the others.
      coordinator_bind_address: where process 0 listens; by default at the address
        itself if that is this machine alone, and else at all of its addresses.
      slice_index, partition_index: must be None.

    Raises:
      RuntimeError: if it was called before, if devices exist already, if nothing
        listens at the address, or if not all processes come in time.
      ValueError: for an argument that is missing or wrong.

    In JAX: `jax.distributed.initialize`.
    """
    # Here, since a process that is alone needs neither sockets nor JSON.
    from minijax.processes.lines import split_address
    from minijax.processes.membership import Membership

    if is_initialized():
        raise RuntimeError(
            "distributed.initialize should only be called once: this process is one "
            "of several already."
        )
    if clients.is_initialized():
        raise RuntimeError(
            "distributed.initialize() must be called before any calls that start a "
            "backend: any computation, and also devices() and device_put. Call it at "
            "the start of the program."
        )
    _refuse(cluster_detection_method, slice_index, partition_index)
    host, port = split_address(_address(coordinator_address))
    count = _number(num_processes, "num_processes", NUM_PROCESSES)
    process = _number(process_id, "process_id", PROCESS_ID)
    if not 0 <= process < count:
        raise ValueError(
            "process_id and num_processes must be nonnegative, with process_id < "
            f"num_processes. Got process_id={process}, num_processes={count}."
        )
    _take_local_devices(local_device_ids)
    seconds: float = initialization_timeout
    if seconds == _INITIALIZATION_SECONDS:
        seconds = float(os.environ.get(INITIALIZATION_TIMEOUT, seconds))
    if process == 0 and LAUNCHED not in os.environ:
        state.coordinator = _start_coordinator(
            host, port, count, heartbeat_timeout_seconds, coordinator_bind_address
        )
    try:
        member = Membership(
            host, port, process, count, seconds, heartbeat_timeout_seconds
        )
    except BaseException:
        if state.coordinator is not None:
            state.coordinator.close(2.0, orderly=False)
            state.coordinator = None
        raise
    state.member = member
    state.initialization_timeout = seconds
    state.shutdown_timeout = shutdown_timeout_seconds
    if shutdown_timeout_seconds == _INITIALIZATION_SECONDS and LAUNCHED in os.environ:
        state.shutdown_timeout = seconds
    state.client = distributed.connect(member.open_way(), process, int(seconds) + 1)
    state.store = distributed.Store(state.client)
    own = host if _is_loopback(host) else member.own_address()
    distributed.use_for_clients(state.client, process, count, own)
    if not _hooked:
        _hooked.append(sys.excepthook)
        sys.excepthook = _uncaught
        atexit.register(_at_exit)


def shutdown() -> None:
    """Ends the work with the others: waits until all have called it, and disconnects.

    It is also called when the program ends. Without `initialize`, nothing happens.

    Raises:
      RuntimeError: if others have not come within `shutdown_timeout_seconds`.

    In JAX: `jax.distributed.shutdown`.
    """
    member = state.member
    if member is None:
        return
    missing: list[int] = []
    if not state.failed:
        _finish_launched()
        if not member.wait_for_all(state.shutdown_timeout):
            missing = member.unfinished()
    late = None
    if missing:
        from minijax.processes.coordinator import numbers

        late = RuntimeError(
            f"process {member.process_id} has ended, and {numbers(missing)} of "
            f"{member.num_processes} did not come to the end within "
            f"{state.shutdown_timeout:g} s (shutdown_timeout_seconds)."
        )
        member.fail(late)
    elif not state.failed:
        state.client.shutdown()
    member.leave()
    if state.coordinator is not None:
        orderly = not missing and not state.failed
        state.coordinator.close(10.0 if orderly else 2.0, orderly)
    if not clients.is_initialized():
        distributed.forget_for_clients()
    state.member = state.coordinator = state.client = state.store = None
    if late is not None:
        raise late


# ----------------------------------------------------------------------------------
# Arguments
# ----------------------------------------------------------------------------------


def _refuse(cluster: Any, slice_index: Any, partition_index: Any) -> None:
    if cluster not in (None, "deactivate"):
        raise ValueError(
            f"cluster_detection_method={cluster!r}: minijax asks no cluster for its "
            "numbers. Pass coordinator_address, num_processes and process_id."
        )
    given = {"slice_index": slice_index, "partition_index": partition_index}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r}: the processes are not divided into partitions "
                "here. Leave it out."
            )


def _address(given: str | None) -> str:
    found = given or os.environ.get(ADDRESS)
    found = found or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if not found:
        raise ValueError(
            "coordinator_address should be defined. Start the script with `minijax "
            "launch -n 4 script.py`, or pass the address and port of process 0, as in "
            "initialize('10.0.0.1:1234', num_processes=4, process_id=0)."
        )
    return found


def _number(given: int | None, name: str, variable: str) -> int:
    if given is None and os.environ.get(variable):
        return int(os.environ[variable])
    if given is None:
        raise ValueError(
            f"{name} must be defined: pass it, or start the script with `minijax "
            "launch`."
        )
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{name} must be an int, got {given!r} of type {type(given)}.")
    return given


def _take_local_devices(ids: int | Sequence[int] | None) -> None:
    if ids is None:
        return
    wanted = [ids] if isinstance(ids, int) else list(ids)
    if not wanted or len(set(wanted)) != len(wanted):
        raise ValueError(f"local_device_ids names no device, or one twice: {ids!r}.")
    clients.set_options("cuda", visible_devices=wanted)
    there = clients.settings.num_cpu_devices
    if there is not None and max(wanted) >= there:
        raise ValueError(
            f"local_device_ids={ids!r}: this process has {there} CPU devices (the "
            "setting jax_num_cpu_devices)."
        )
    clients.choose(num_cpu_devices=len(wanted))


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.")


def _start_coordinator(
    host: str, port: int, count: int, timeout: float, bind: str | None
) -> Coordinator:
    from minijax.processes.coordinator import Coordinator
    from minijax.processes.lines import split_address

    bind = bind or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
    if bind:
        own, port = split_address(bind)
    else:
        own = "127.0.0.1" if _is_loopback(host) else ""
    own = "" if own in ("::", "0.0.0.0") else own
    try:
        return Coordinator(own, port, count, timeout)
    except OSError as error:
        raise RuntimeError(
            f"process 0 cannot listen at {own or '*'}:{port} as the coordinator "
            f"({error}). Choose another port, or give the address of this machine."
        ) from None


# ----------------------------------------------------------------------------------
# The end of the process
# ----------------------------------------------------------------------------------

# The hook for uncaught exceptions that was there before.
_hooked: list[Any] = []


def _uncaught(kind: type, error: BaseException, traceback: Any) -> None:
    member = state.member
    if member is None:
        _hooked[0](kind, error, traceback)
        return
    state.failed = True
    is_of_gloo = "Gloo" in str(error)
    if not is_of_gloo:
        member.fail(error)
    _hooked[0](kind, error, traceback)
    if is_of_gloo:
        # Another process is gone, and Gloo does not know which. The thread that watches
        # does, or will before long, and ends this process with that.
        time.sleep(member.timeout + 2.0)
        member.fail(error)


def _finish_launched() -> None:
    """Waits for what was launched: others need this process until it is done."""
    for client in runtime.backends().values() if clients.is_initialized() else ():
        for array in client.live_arrays():
            if not array.is_deleted():
                try:
                    array.block_until_ready()
                except RuntimeError:
                    continue  # reading the array raises its error


def _at_exit() -> None:
    own = 0 if state.member is None else state.member.process_id
    try:
        shutdown()
    except Exception as error:
        from minijax.processes.membership import say_last

        say_last(own, str(error))
        os._exit(1)


def _watch_launcher() -> None:
    """Ends a process whose launcher is gone before it has called `initialize`.

    Later the thread of `membership.py` watches.
    """
    import threading

    launcher = os.getppid()
    if os.environ[LAUNCHED] != str(launcher):
        return  # started by a script that was launched

    def watch() -> None:
        while state.member is None:
            time.sleep(0.5)
            if os.getppid() != launcher and state.member is None:
                from minijax.processes.membership import say_last

                number = int(os.environ[PROCESS_ID])
                say_last(number, f"process {number} ends: the launcher is gone.")
                os._exit(1)

    threading.Thread(target=watch, name="minijax launcher", daemon=True).start()


if LAUNCHED in os.environ:
    _watch_launcher()
