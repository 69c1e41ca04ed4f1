"""A process's connection to the coordinator, and the thread that watches it.

When another process or the coordinator is gone, collectives hang, and XLA ends the
process by `abort`, without its number. So a thread of each process listens to the
coordinator, prints who is gone, and ends the process.

XLA's client reaches its service through a socket of this process that passes everything
on: it stays open when the coordinator dies, so that XLA does not notice first.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from minijax.processes.coordinator import numbers, said_of_launch
from minijax.processes.launch_order import Group, group_of
from minijax.processes.lines import Lines, in_background, splice

# Most lines repeat with another place, so the rest of their text is cached.
_text = functools.lru_cache(maxsize=1024)(json.dumps)
_value = functools.lru_cache(maxsize=1024)(json.loads)
# With an error in another process, this one has so long to print its own.
_GRACE = 1.5
# The descriptor of the launcher's error output: what comes last is written there, since
# it must be seen when the launcher itself is gone.
LAST_WORDS = "MINIJAX_LAST_WORDS"


@dataclass(eq=False)
class Membership:
    """This process as one of several.

    Args:
      host, port: the coordinator's address.
      process_id: this process's number.
      num_processes: how many there are.
      initialization_timeout: seconds to wait for the coordinator, and for the others.
      heartbeat_timeout: seconds of silence after which a process is gone; the
        coordinator's own number holds if it is smaller.

    Raises:
      RuntimeError: if nothing listens at the address, if the coordinator refuses the
        process, or if others do not come in time, naming them.
    """

    host: str
    port: int
    process_id: int
    num_processes: int
    initialization_timeout: float
    heartbeat_timeout: float

    def __post_init__(self) -> None:
        self.address = f"{self.host}:{self.port}"
        self.timeout = self.heartbeat_timeout
        self._where = (self.host, self.port)
        self._everybody_done = threading.Event()
        self._done: list[int] = []
        self.groups: dict[str, Group] = {}
        self._leaving = False
        self._ending = False
        end = time.monotonic() + self.initialization_timeout
        self._lines = Lines(self._reach(end, self.initialization_timeout))
        self._join(end, self.initialization_timeout)
        self._heard = time.monotonic()
        in_background(self._watch)

    # Coming.

    def _reach(self, end: float, seconds: float) -> socket.socket:
        while True:
            left = end - time.monotonic()
            try:
                return socket.create_connection(self._where, max(left, 0.1))
            except OSError as error:
                # It may not be there yet: the processes start in any order.
                wait = 0.0 if isinstance(error, socket.gaierror) else 0.2
                if left <= wait or not wait:
                    raise RuntimeError(
                        f"process {self.process_id} reached no coordinator at "
                        f"{self.address} within {seconds:g} s ({error}). Process 0, or "
                        "`minijax launch`, is the coordinator: check that it runs, "
                        "and that coordinator_address is its address."
                    ) from None
                time.sleep(wait)

    def _join(self, end: float, seconds: float) -> None:
        self._lines.send(
            join=self.process_id,
            of=self.num_processes,
            limit=seconds,
            about=f"pid {os.getpid()} on {socket.gethostname()}",
        )
        here: list[int] = []
        gave_up = False
        while True:
            left = end - time.monotonic()
            if gave_up:
                left += 2.0
            try:
                message = self._lines.receive(max(min(left, self.timeout / 5), 0.05))
            except TimeoutError:
                self._lines.send(beat=0)
                if left > 0:
                    continue
                if gave_up or not here:
                    raise self._not_joined(seconds) from None
                gave_up = True
                self._lines.send(gave_up=seconds)
                continue
            except ValueError as error:
                raise RuntimeError(
                    f"what listens at {self.address} is not a coordinator of minijax "
                    f"({error}). Check coordinator_address."
                ) from None
            if message is None:
                raise RuntimeError(
                    f"the coordinator at {self.address} closed the connection while "
                    f"process {self.process_id} waited for the others. Either it "
                    "ended, or something else listens there."
                )
            if "refused" in message:
                raise RuntimeError(
                    f"the coordinator at {self.address} refused process "
                    f"{self.process_id}: {message['refused']}"
                )
            if "welcome" in message:
                self.timeout = min(self.timeout, message["timeout"])
            if "here" in message:
                here = message["here"]
            if "never" in message and message["never"]:
                raise RuntimeError(
                    f"{numbers(message['never'])} of {self.num_processes} did not come "
                    f"to {self.address} within {message['seconds']:g} s; "
                    f"{numbers(here)} did."
                )
            if "lost" in message:
                raise RuntimeError(
                    f"process {message['lost']} ended ({message['why']}) before all "
                    "processes had connected."
                )
            if "all" in message:
                return

    def _not_joined(self, seconds: float) -> Exception:
        return RuntimeError(
            f"the coordinator at {self.address} gave process {self.process_id} no "
            f"answer within {seconds:g} s: it is stopped, or something else listens "
            "there. Check coordinator_address."
        )

    def own_address(self) -> str | None:
        """Where the others reach this process: from where it reached the coordinator.

        None if that is this machine alone.
        """
        address = self._lines.connection.getsockname()[0]
        return None if address.startswith("127.") or address == "::1" else address

    # XLA's way to its service.

    def open_way(self) -> str:
        """The address in this process that leads to XLA's service."""
        listener = socket.create_server(("127.0.0.1", 0))
        in_background(self._pass_on, listener)
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def _pass_on(self, listener: socket.socket) -> None:
        while True:
            inner, _ = listener.accept()
            try:
                outer = socket.create_connection(self._where, self.timeout)
            except OSError:
                continue  # kept open: the watcher says that the coordinator is gone
            outer.settimeout(None)
            Lines(outer).send(relay=True)
            in_background(splice, inner, outer, True)
            in_background(splice, outer, inner, False)

    # Watching.

    def _watch(self) -> None:
        every = min(2.0, self.timeout / 5)
        next_beat = 0.0
        count = 0
        while True:
            now = time.monotonic()
            if now >= next_beat:
                count += 1
                groups = list(self.groups.items())
                places = {name: (group.place, group.last) for name, group in groups}
                self._lines.send(beat=count, places=places)
                next_beat = now + every
            try:
                message = self._lines.receive(every / 2)
            except (TimeoutError, ValueError):
                if time.monotonic() - self._heard > self.timeout and not self._leaving:
                    self._end(
                        f"the coordinator at {self.address} has been silent for "
                        f"{self.timeout:g} s: it is stopped, or cut off"
                    )
                continue
            if message is None:
                if self._leaving:
                    return
                self._end(f"the coordinator at {self.address} is gone")
            self._heard = time.monotonic()
            if "done" in message:
                self._done = message["done"]
                if not self.unfinished():
                    self._everybody_done.set()
            elif "lost" in message:
                self._lose(message)
            elif "launch" in message:
                name, what, place, told = said_of_launch(message["launch"])
                group_of(name, self).hear(what, place, _value(told))

    def _lose(self, message: dict[str, Any]) -> None:
        number = message["lost"]
        if self._leaving:
            return
        if number == self.process_id:
            if message.get("orderly"):
                return  # its own error, which it is about to print
            self._end(f"the others go on without it ({message['why']})")
        if message.get("orderly"):
            time.sleep(_GRACE)
        self._end(
            f"process {number} of {self.num_processes} is gone ({message['why']})"
        )

    def _end(self, why: str) -> NoReturn:
        """Prints the reason and ends the process, whatever its main thread does."""
        if self._ending:
            time.sleep(5.0)  # the main thread prints an error of its own, and ends
        say_last(self.process_id, f"process {self.process_id} ends: {why}.")
        flush = in_background(_flush)
        flush.join(0.5)
        os._exit(1)

    # Launching.

    def tell_launch(self, group: str, what: str, place: int, told: Any = None) -> None:
        """Tells the others of a group about this process's launches."""
        self._lines.send_line(f"launch {group} {what} {place} {_text(told)}".encode())

    # Going.

    def fail(self, error: BaseException) -> None:
        """Reports the error that ends this process to the others."""
        self._ending = True
        self._leaving = True
        text = str(error).partition("\n")[0].rstrip(".")
        self._lines.send(failed=f"{type(error).__name__}: {text[:500]}")

    def wait_for_all(self, seconds: float) -> bool:
        """Whether all processes have come to their end within the seconds."""
        self._lines.send(done=True)
        return self._everybody_done.wait(seconds)

    def unfinished(self) -> list[int]:
        """The processes that have not come to their end."""
        return sorted(set(range(self.num_processes)) - set(self._done))

    def leave(self) -> None:
        """Reports that this process ends as planned."""
        self._leaving = True
        self._lines.send(bye=True)


def say_last(process_id: int, text: str) -> None:
    """Writes a line where it is seen even when the launcher is gone."""
    given = os.environ.get(LAST_WORDS)
    prefix = f"[{process_id}] " if given else ""
    data = f"{prefix}minijax: {text}\n".encode()
    for descriptor in (given, 2):
        if descriptor is not None:
            with contextlib.suppress(OSError, ValueError):
                os.write(int(descriptor), data)
                return


def _flush() -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
