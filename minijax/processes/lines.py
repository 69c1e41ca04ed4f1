"""Messages between processes: one JSON object a line, over a socket.

Messages about launches are the most frequent. They have another form, and the
coordinator passes them on unread: `launch GROUP WHAT PLACE JSON`.

And the splicing of two sockets, by which other traffic takes the same way.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

_LONGEST = 2**20


class Lines:
    """One end of a connection over which messages go."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._held = b""
        self._sending = threading.Lock()
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, **message: Any) -> bool:
        """Sends one message; False if the connection is gone."""
        return self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> bool:
        """Sends one line; False if the connection is gone."""
        try:
            with self._sending:
                self.connection.sendall(line + b"\n")
        except OSError:
            return False
        return True

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next message; None when the other end closed the connection.

        A line about a launch is the message {"launch": line}.

        Raises:
          TimeoutError: if none came within the seconds.
          ValueError, RecursionError: if what comes is not a message of ours.
        """
        while b"\n" not in self._held:
            try:
                self.connection.settimeout(seconds)
                data = self.connection.recv(65536)
            except TimeoutError:
                raise
            except OSError:
                return None
            if not data:
                return None
            self._held += data
            if len(self._held) > _LONGEST:
                raise ValueError("a line longer than any message")
        line, _, self._held = self._held.partition(b"\n")
        if line.startswith(b"launch "):
            return {"launch": line}
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError(f"not a message: {line[:80]!r}")
        return message

    def take_rest(self) -> bytes:
        """The bytes received after the last message, when no more messages follow."""
        self.connection.settimeout(None)
        rest, self._held = self._held, b""
        return rest

    def close(self) -> None:
        """Closes the connection; the other end reads to the end what was sent."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            self.connection.close()


def in_background(function: Callable[..., Any], *args: Any) -> threading.Thread:
    """Runs a function in a thread that does not keep the process alive."""
    # With a name of its own it does not count among the user's, "Thread-1", ...
    name = f"minijax {function.__name__}"
    thread = threading.Thread(target=function, name=name, args=args, daemon=True)
    thread.start()
    return thread


def splice(source: socket.socket, sink: socket.socket, close: bool) -> None:
    """Passes bytes on until the source ends; then closes the sink, if asked to."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    if close:
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def split_address(address: str) -> tuple[str, int]:
    """("host", port) of "host:port".

    Raises ValueError for anything else.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise ValueError(
            "coordinator_address is the host and port of the coordinator, as in "
            f"'10.0.0.1:1234'; got {address!r}."
        )
    return host.strip("[]"), int(port)


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
