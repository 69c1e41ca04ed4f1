"""Launches over several processes happen in one order, and are of the same programs.

XLA pairs what the processes launch by counting: the fifth launch of one exchanges
values with the fifth of another, whatever programs they are. So the first process of a
group tells the others, through the coordinator, what it launches, and goes on. Another
process launches only what comes next in that order. A thread whose launch is not next
waits until others have made theirs, or raises an error that names both programs.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.core import errors

Launch = Callable[[list[Any]], list[Any]]

_EXCHANGES = re.compile(
    r"\b(all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|"
    r"collective-broadcast|ragged-all-to-all)(-start)?\("
)
# With no launch of another thread for so long, one that is not next is refused.
_PATIENCE = 10.0


class Told(NamedTuple):
    """One launch: which program, by its title and a digest, and from which thread."""

    title: str
    digest: str
    thread: str

    def __str__(self) -> str:
        where = "" if self.thread == "MainThread" else f" from thread {self.thread!r}"
        return f"{self.title}{where}"


class State:
    """This process's connection, None when it is alone, and the limit in seconds for
    others to come to a launch."""

    member: Any = None
    limit: float = 300.0


state = State()


class Group:
    """The launches of one group of processes, as this process sees them.

    Attributes:
      processes: the numbers of the processes; the first decides.
      place: how many launches this process has made.
    """

    def __init__(self, processes: list[int]) -> None:
        self.processes = processes
        self.name = ",".join(map(str, processes))
        self.place = 0
        self._decided: dict[int, Told] = {}
        self._changed = threading.Condition()

    def decided(self, place: int, told: Told) -> None:
        """Records the launch that the first process announced for a place."""
        with self._changed:
            self._decided[place] = told
            self._changed.notify_all()

    def lead(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        """Announces the launch to the other processes, then launches."""
        with self._changed:
            state.member.tell_launch(self.name, self.place, own)
            self.place += 1
            return launch(arguments)

    def follow(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        """Launches when this launch is next in the first process's order.

        Raises RuntimeError if it says that another program is next, and no other thread
        launches that, or if the first process does not come.
        """
        with self._changed:
            if self._decided.get(self.place) != own:
                self._wait(own)
            del self._decided[self.place]
            self.place += 1
            try:
                return launch(arguments)
            finally:
                self._changed.notify_all()

    def _wait(self, own: Told) -> None:
        """Waits for this thread's turn. The lock is held."""
        place, since = self.place, time.monotonic()
        while (expected := self._decided.get(self.place)) != own:
            if self.place != place:
                place, since = self.place, time.monotonic()
            waited = time.monotonic() - since
            if expected is not None:
                others = {t.name for t in threading.enumerate()}
                others.discard(own.thread)
                if waited > _PATIENCE or expected.thread not in others:
                    raise self._refused(
                        f"is {expected} in process {self.processes[0]}, and {own} in "
                        f"process {state.member.process_id}: they would exchange "
                        "values of different programs. Every process of a mesh "
                        "launches the same programs in the same order; of several "
                        "threads, those that launch have the same names in each "
                        "process (threading.Thread(name=...))."
                    )
            elif waited > state.limit:
                raise self._refused(
                    f"has not been made by process {self.processes[0]} within "
                    f"{state.limit:g} s (initialization_timeout); process "
                    f"{state.member.process_id} is at {own}."
                )
            self._changed.wait(0.2)

    def _refused(self, why: str) -> Exception:
        return errors.with_facts(
            RuntimeError(f"launch {self.place + 1} over several processes {why}")
        )


_groups: dict[str, Group] = {}
_making = threading.Lock()


def _group(name: str) -> Group:
    with _making:
        if name not in _groups:
            _groups[name] = Group([int(number) for number in name.split(",")])
        return _groups[name]


def places() -> dict[str, int]:
    """How many launches this process has made in each group."""
    return {name: group.place for name, group in list(_groups.items())}


def hear(name: str, place: int, told: tuple[str, str, str]) -> None:
    """What the first process of a group launches, as the coordinator passes it on."""
    _group(name).decided(place, Told(*told))


def join(member: Any, limit: float = 300.0) -> None:
    """Announces launches by `member` from now on; None for a process alone."""
    _groups.clear()
    state.member, state.limit = member, limit


def in_order(
    launch: Launch, name: str, text: str, devices: Any, executable: Any
) -> Launch:
    """The launch of a program, in the order of all processes of its devices.

    Args:
      launch: buffers in, buffers out.
      name: the program's name.
      text: the program, as it was compiled.
      devices: the devices it runs on, of several processes.
      executable: the compiled program. Without collectives it may run at any time.
    """
    if state.member is None or not _EXCHANGES.search(executable.hlo_text()):
        return launch
    import hashlib

    processes = sorted({device.process_index for device in devices})
    group = _group(",".join(map(str, processes)))
    ids = [device.id for device in devices]
    digest = hashlib.sha256(f"{ids}{text}".encode()).hexdigest()[:16]
    first = processes[0] == state.member.process_id
    turn = group.lead if first else group.follow

    def ordered(arguments: list[Any]) -> list[Any]:
        own = Told(f"jit({name})", digest, threading.current_thread().name)
        return turn(own, launch, arguments)

    return ordered
