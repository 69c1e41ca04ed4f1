"""The coordinator connects the processes of a run and notices when one is gone.

It listens on one port. Each process keeps a connection to it, says its number, and
beats; a connection that closes without a goodbye, or is silent for too long, is a
process that is gone, and all others are told. Behind the same port is XLA's own
coordination service, to which a connection that asks for it is passed on.

It is in the launcher (`minijax launch`), or else in process 0.

Messages from a process: `join` (its number), `beat`, `gave_up` (it waits no longer for
the others to come), `launch` (what it tells a group of its launches), `done` (its
program has ended), `bye`, `failed` (with the error that ends it). To a process:
`welcome`, `refused`, `here` (who has come), `all`, `never` (who did not come), `beat`,
`lost` (who is gone), `launch` (as it was told), `done` (who has ended).
"""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from minijax.backend import distributed
from minijax.processes.lines import Lines, free_port, in_background, splice

# The message about a process that an error ends; the error follows.
ENDED_WITH = "it ended with "


@dataclasses.dataclass
class Member:
    """One process, as the coordinator knows it."""

    lines: Lines
    about: str
    heard: float
    limit: float = 300.0  # seconds for the others to come to a launch
    finished: bool = False
    # In each group, how many launches it has made, and the first that another process
    # has made since: when that was noticed, its number, the program's title.
    places: dict[str, int] = dataclasses.field(default_factory=dict)
    behind: dict[str, tuple] = dataclasses.field(default_factory=dict)


def numbers(ids: Any) -> str:
    """ "process 1", "processes 0, 2 and 3"."""
    each = [str(number) for number in sorted(ids)]
    if len(each) == 1:
        return f"process {each[0]}"
    return f"processes {', '.join(each[:-1])} and {each[-1]}"


def said_of_launch(line: bytes) -> tuple[str, str, int, str]:
    """The group, what is said, the place and the JSON of a line about a launch.

    Raises ValueError or TypeError for another line.
    """
    _, group, what, place, told = str(line, "utf-8").split(" ", 4)
    return group, what, int(place), told


@dataclasses.dataclass(eq=False)
class Coordinator:
    """The coordinator's side of all connections.

    Args:
      host: the address to listen on; "" is all of the machine's.
      port: 0 takes a free one.
      num_processes: how many processes are to come.
      timeout: seconds of silence after which a process is gone.
      on_lost: called with the number of a process that is gone, and why.

    Raises:
      OSError: if the port is taken.
    """

    host: str
    port: int
    num_processes: int
    timeout: float
    on_lost: Callable[[int, str], None] | None = None

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._members: dict[int, Member] = {}
        self._lost: dict[int, str] = {}
        self._done: set[int] = set()
        self._closed = False
        self._listener = socket.create_server((self.host, self.port))
        self.port = self._listener.getsockname()[1]
        self._service_port = free_port()
        self._service = distributed.start_service(
            f"127.0.0.1:{self._service_port}", self.num_processes
        )
        in_background(self._accept)
        in_background(self._notice_silence)

    def close(self, seconds: float = 5.0, orderly: bool = True) -> None:
        """Waits until all have said goodbye, or are gone, and stops listening.

        XLA's service ends with the process if not all have left it in good order: to
        stop it aborts the processes that are still connected, perhaps this one.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._lock:
                if all(member.finished for member in self._members.values()):
                    break
            time.sleep(0.02)
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.close()
        if orderly:
            self._service.shutdown()
        else:
            distributed.keep_for_ever(self._service)

    # What comes in.

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                # The listener is closed, or a client was gone before it was accepted.
                time.sleep(0.05)
                continue
            in_background(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        lines = Lines(connection)
        try:
            first = lines.receive(10.0)
            if first and "relay" in first:
                self._relay(lines)
                return
            if first and "join" in first and self._join(lines, first):
                self._listen_to(first["join"], lines)
        except (ValueError, RecursionError, TimeoutError, OSError):
            pass  # not a connection of one of our processes
        lines.close()

    def _relay(self, lines: Lines) -> None:
        """Passes a connection on to XLA's service."""
        service = socket.create_connection(("127.0.0.1", self._service_port))
        service.sendall(lines.take_rest())
        in_background(splice, service, lines.connection, True)
        splice(lines.connection, service, True)

    def _join(self, lines: Lines, first: dict[str, Any]) -> bool:
        """Whether the process got its number; ValueError for a malformed message."""
        number, count, about = (first.get(name) for name in ("join", "of", "about"))
        limit = first.get("limit", Member.limit)
        if type(limit) not in (int, float):
            raise ValueError(f"not a message: {first}")
        if type(number) is not int or type(count) is not int or type(about) is not str:
            raise ValueError(f"not a message: {first}")
        with self._lock:
            why = None
            if count != self.num_processes:
                why = (
                    f"process {number} was told that there are {count} processes, and "
                    f"the coordinator that there are {self.num_processes}. Give all "
                    "the same num_processes."
                )
            elif not 0 <= number < count:
                why = (
                    f"there is no process {number} of {count}: the numbers are 0 to "
                    f"{count - 1}. Give each process its own process_id."
                )
            elif number in self._members:
                why = (
                    f"there is a process {number} already "
                    f"({self._members[number].about}). Give each process its own "
                    "process_id."
                )
            if why is not None:
                lines.send(refused=why)
                return False
            member = Member(lines, about, time.monotonic())
            member.limit = limit
            self._members[number] = member
            lines.send(welcome=number, timeout=self.timeout)
            self._tell(here=sorted(self._members))
            if len(self._members) == self.num_processes:
                self._tell(all=True)
            for lost, reason in self._lost.items():
                lines.send(lost=lost, why=reason)
        return True

    def _listen_to(self, number: int, lines: Lines) -> None:
        member = self._members[number]
        why = "its connection closed without a goodbye: it was killed, or crashed"
        try:
            self._read(number, member, lines)
        except (ValueError, LookupError, RecursionError, TypeError):
            why = "it sent bytes that are not a message of a process"
        if not member.finished:
            self._lose(number, why)

    def _read(self, number: int, member: Member, lines: Lines) -> None:
        """Handles the messages of a process until its connection ends."""
        while (message := lines.receive()) is not None:
            member.heard = time.monotonic()
            if "beat" in message:
                lines.send(beat=message["beat"])
                with self._lock:
                    self._note_places(member, dict(message.get("places", {})))
            elif "launch" in message:
                self._pass_on(number, message["launch"])
            elif "done" in message:
                with self._lock:
                    self._done.add(number)
                    self._tell(done=sorted(self._done))
            elif "bye" in message:
                member.finished = True
            elif "failed" in message:
                self._lose(number, ENDED_WITH + message["failed"], orderly=True)
            elif "gave_up" in message:
                with self._lock:
                    missing = set(range(self.num_processes)) - set(self._members)
                    seconds = float(message["gave_up"])
                    self._tell(never=sorted(missing), seconds=seconds)

    # Launches over several processes.

    def _pass_on(self, number: int, line: bytes) -> None:
        """Sends a group what one of its processes says of its launches."""
        name, *_ = said_of_launch(line)
        for other in map(int, name.split(",")):
            member = self._members.get(other)
            if other != number and member is not None and not member.finished:
                member.lines.send_line(line)

    def _note_places(self, member: Member, places: dict[str, Any]) -> None:
        """Notes how far a process's launches are, and which processes are behind."""
        for name, (place, title) in places.items():
            if place > member.places.get(name, 0):
                member.behind.pop(name, None)
            member.places[name] = int(place)
            for other in (self._members[int(number)] for number in name.split(",")):
                if other.places.get(name, 0) < place and not other.finished:
                    other.behind.setdefault(name, (time.monotonic(), place, title))

    def _late(self, now: float) -> Iterator[tuple[int, str]]:
        """Silent processes, those that did not come to a launch, and what to say."""
        for number, member in self._members.items():
            if member.finished:
                continue
            if now - member.heard > self.timeout:
                why = f"it has been silent for {self.timeout:g} s: stopped, or cut off"
                yield number, why
            for since, place, title in member.behind.values():
                if now - since > member.limit:
                    yield (
                        number,
                        f"it has not reached launch {place} over several processes, "
                        f"{title}, within {member.limit:g} s (initialization_timeout)",
                    )

    # Who is gone.

    def _tell(self, **message: Any) -> None:
        for member in self._members.values():
            if not member.finished:
                member.lines.send(**message)

    def _lose(self, number: int, why: str, orderly: bool = False) -> None:
        with self._lock:
            member = self._members[number]
            if number in self._lost or self._closed:
                member.finished = True
                return
            about = f"{member.about}: {why}"
            self._lost[number] = about
            # It is told too: a process that was stopped and goes on reads it.
            self._tell(lost=number, why=about, orderly=orderly)
            member.finished = True
        if self.on_lost is not None:
            self.on_lost(number, about)

    def _notice_silence(self) -> None:
        """Declares silent processes lost. It notes when it was itself suspended."""
        last = time.monotonic()
        while not self._closed:
            time.sleep(min(0.25, self.timeout / 8))
            now = time.monotonic()
            if now - last > self.timeout / 2:
                # The coordinator itself was stopped: no process is known to be late.
                with self._lock:
                    for member in self._members.values():
                        member.heard = now
                        member.behind.clear()
            last = now
            with self._lock:
                late = list(self._late(now))
            for number, why in late:
                self._lose(number, why)
