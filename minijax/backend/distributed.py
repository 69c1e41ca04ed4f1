"""XLA's distributed runtime: its service, a process's connection to it, and Gloo.

The service keeps what the processes tell each other (a key-value store), and Gloo moves
arrays between their CPU devices. The service's clients `abort` when another process is
gone, so their heartbeats are set to never: `programs/processes/` watches the processes.

In JAX: `jax/_src/distributed.py`.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from minijax.backend import clients
from minijax.core.runtime import _jax

_NEVER = 10**7  # seconds


def start_service(address: str, num_processes: int) -> Any:
    """XLA's coordination service at "host:port"; its `shutdown` ends it."""
    return _jax.get_distributed_runtime_service(
        address,
        num_processes,
        heartbeat_timeout=_NEVER,
        cluster_register_timeout=_NEVER,
        shutdown_timeout=5,
    )


def keep_for_ever(service: Any) -> None:
    """Never frees a service: freeing it aborts the processes that are connected."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(service))


def connect(address: str, process_id: int, seconds: int) -> Any:
    """This process's client of the service at "host:port".

    The process aborts if the service does not answer within the seconds. So call this
    only when the service runs and all processes will connect.
    """
    # A proxy for the network beyond this machine must not get between them.
    os.environ.setdefault("no_grpc_proxy", "127.0.0.1,localhost")
    client = _jax.get_distributed_runtime_client(
        address,
        process_id,
        init_timeout=seconds,
        shutdown_timeout=5,
        heartbeat_timeout=_NEVER,
        shutdown_on_destruction=False,
        use_compression=True,
    )
    client.connect()
    return client


def use_for_clients(
    client: Any, process_id: int, num_processes: int, host: str | None
) -> None:
    """Makes the platforms' clients, which are made later, each one of several.

    Args:
      client: of `connect`.
      process_id: this process's number.
      num_processes: how many there are.
      host: the address under which the others reach this process; None asks the
        system for the machine's name.
    """
    place = {
        "distributed_client": client,
        "node_id": process_id,
        "num_nodes": num_processes,
    }
    clients.set_options("cuda", **place)
    gloo = _jax.make_gloo_tcp_collectives(client, hostname=host)
    clients.set_options("cpu", **place, collectives=gloo)


def forget_for_clients() -> None:
    """Undoes `use_for_clients`, for clients that are not made yet."""
    names = "distributed_client node_id num_nodes collectives".split()
    for platform in ("cpu", "cuda"):
        clients.set_options(platform, **dict.fromkeys(names))


class Store:
    """The key-value store that the processes share.

    `get` waits until a process has set the key; all values are text.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def set(self, key: str, value: str) -> None:
        """Sets a key once."""
        self._client.key_value_set(key, value)

    def get(self, key: str, seconds: float) -> str | None:
        """The value of a key; None if no process set it in that many seconds."""
        try:
            return self._client.blocking_key_value_get(key, int(seconds * 1000))
        except _jax.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise
