"""Launches over several processes happen in one order, and are of the same programs.

XLA pairs what the processes launch by counting: the fifth launch of one exchanges
values with the fifth of another, whatever programs they are. So the first process of a
group tells the others, through the coordinator, what it launches, and goes on. Another
process launches only what comes next in that order. A thread whose launch is not next
waits until others have made theirs, or raises an error that names both programs.

A message for each launch costs more than a small program takes. So when launches have
repeated themselves (a training step again and again, or a step and a metric in turn),
the first process promises that they go on so for some time, twice as long each time.
Promised launches need no message. If the first process is to launch something else, it
takes the promise back before: the others answer how far they have come, and what they
launched until there is what it launches too, or else it raises the error. If another
process is to launch something else than was promised, it asks, and waits until the
first process has come there. So never are different programs launched at one place.
"""

from __future__ import annotations

import queue
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
# The longest cycle of programs that is noticed, after so many launches that repeat it;
# then this many are promised, twice as many each time, up to the most.
_CYCLE, _REPEATS, _FIRST, _MOST = 8, 16, 8, 1024
# Messages about launches, between a group's first process and the others.
KINDS = {"launch", "take_back", "come", "doubt"}


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
      title: that of the last one.
    """

    def __init__(self, processes: list[int]) -> None:
        self.processes = processes
        self.name = ",".join(map(str, processes))
        self.place = 0
        self.title = ""
        self._answers: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._decided: dict[int, Told] = {}  # by their places, the last ones made, too
        self._sure = -1  # up to this place it is no mere promise
        self._doubts: set[int] = set()  # the places after which others have asked
        self._promised, self._promise = False, _FIRST
        self._running = 0  # the place whose launch is the next to reach XLA
        self._changed = threading.Condition()

    # What other processes tell this one, with the names of the messages.

    def launch(self, place: int, cycle: list, count: int) -> None:
        """Of the first process: `count` launches from `place` on, which repeat a cycle.

        It makes the launch at `place`, and promises the later ones.
        """
        with self._changed:
            for at in range(count):
                self._decided[place + at] = Told(*cycle[at % len(cycle)])
            self._sure = max(self._sure, place)
            self._changed.notify_all()

    def take_back(self, place: int) -> None:
        """Of the first process: its promise for a place, and later ones, holds no more.

        Launches that were made stay decided.
        """
        with self._changed:
            for later in range(max(place, self.place), self.place + 2 * _MOST):
                self._decided.pop(later, None)
            self._tell("come", self.place)

    def come(self, place: int) -> None:
        """Of another, to the first process: it has made so many launches."""
        self._answers.put(place)

    def doubt(self, place: int) -> None:
        """Of another, to the first process: is the promise for a place kept?

        Without the lock, which is held while a promise is taken back.
        """
        self._doubts.add(place)
        if place < self.place:
            self._confirm(place)

    def _tell(self, kind: str, *what: Any) -> None:
        state.member.tell(**{kind: [self.name, *what]})

    def _confirm(self, place: int) -> None:
        self._tell("launch", place, [self._decided[place]], 1)

    def in_turn(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        """Launches when this launch is next in the first process's order.

        Raises RuntimeError if another program is next there, and no other thread
        launches that, or if the first process does not come.
        """
        with self._changed:
            if self._decided.get(self.place) != own:
                self._wait(own)
            self._decided.pop(self.place - _MOST, None)
            place, self.title = self.place, own.title
            self.place += 1
            if place in self._doubts:
                self._confirm(place)
            while self._running != place:
                self._changed.wait()
        # Without the lock: a launch may wait for other processes.
        try:
            return launch(arguments)
        finally:
            with self._changed:
                self._running += 1
                self._changed.notify_all()

    def _decide(self, own: Told) -> None:
        """The first process: announces its launch, and those that probably follow."""
        self._decided[self.place] = own
        cycle, count = [own], 1
        last = [self._decided.get(self.place - i) for i in range(_REPEATS + _CYCLE)]
        for length in range(1, _CYCLE + 1):
            if last[:_REPEATS] == last[length : length + _REPEATS]:
                # The launch of now was last made `length` places ago.
                cycle = [self._decided[self.place - length + i] for i in range(length)]
                count = self._promise
                self._promised, self._promise = True, min(2 * count, _MOST)
                break
        self._tell("launch", self.place, cycle, count)
        self.launch(self.place, cycle, count)

    def _end_promise(self) -> None:
        """The first process: ends its promise where the others have come to."""
        self._tell("take_back", self.place)
        come = max(self._answers.get() for _ in self.processes[1:])
        for place in range(self.place, come):
            self._confirm(place)
        for place in range(come, self.place + 2 * _MOST):
            self._decided.pop(place, None)
        self._promised, self._promise = False, _FIRST

    def _wait(self, own: Told) -> None:
        """Waits for this thread's turn. The lock is held."""
        place, asked, since = self.place, -1, time.monotonic()
        first = self.processes[0]
        leads = first == state.member.process_id
        while (expected := self._decided.get(self.place)) != own:
            if leads and expected is None:
                self._decide(own)
                return
            if leads and self._promised:
                self._end_promise()
                continue
            if self.place != place:
                place, since = self.place, time.monotonic()
            if expected is not None and not leads and asked < self.place > self._sure:
                asked = self.place
                self._tell("doubt", asked)
            waited = time.monotonic() - since
            if expected is not None and (leads or self.place <= self._sure):
                others = {t.name for t in threading.enumerate()}
                others.discard(own.thread)
                if waited > _PATIENCE or expected.thread not in others:
                    where = "another process" if leads else f"process {first}"
                    raise self._refused(
                        f"is {expected} in {where}, and {own} in "
                        f"process {state.member.process_id}: they would exchange "
                        "values of different programs. Every process of a mesh "
                        "launches the same programs in the same order; of several "
                        "threads, those that launch have the same names in each "
                        "process (threading.Thread(name=...))."
                    )
            elif waited > state.limit:
                raise self._refused(
                    f"has not been made by process {first} within {state.limit:g} s "
                    "(initialization_timeout); process "
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


def places() -> dict[str, tuple[int, str]]:
    """How many launches this process has made in each group, and the last's title."""
    return {name: (each.place, each.title) for name, each in list(_groups.items())}


def hear(message: dict[str, Any]) -> None:
    """What another process of a group says, as the coordinator passes it on."""
    for kind in KINDS & message.keys():
        name, *what = message[kind]
        getattr(_group(name), kind)(*what)


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

    def ordered(arguments: list[Any]) -> list[Any]:
        own = Told(f"jit({name})", digest, threading.current_thread().name)
        return group.in_turn(own, launch, arguments)

    return ordered
