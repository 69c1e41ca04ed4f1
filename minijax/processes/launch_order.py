"""Launches over several processes happen in one order, and are of the same programs.

XLA pairs what the processes launch by counting: the fifth launch of one exchanges
values with the fifth of another, whatever programs they are. So the processes of a
group send each other lines, through the coordinator:

    next PLACE PROGRAM     the first process launches it there, and goes on
    cycle PLACE PROGRAMS   from there on it launches these in turn, and tells no more
    ask PLACE              another process would launch something else than the cycle
    leave PLACE            the first process ends the cycle, and waits for answers
    at PLACE PROCESS       so many launches that process has made

In order:

1.  The first process decides: it tells `next`, and launches. Another process launches
    only what it was told. A thread whose launch is not next waits until others have
    made theirs, or raises an error that names both programs.
2.  When the first process's launches repeat, it tells `cycle`. All go on in the cycle
    without a word.
3.  A process that would launch something else says `ask`. The first process says
    `leave`, at once, or when it would launch something else itself. The others answer
    `at`. All follow the cycle up to the last place named; from there on 1 holds again.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from minijax.core import errors
from minijax.processes.coordinator import numbers

Launch = Callable[[list[Any]], list[Any]]

_EXCHANGES = re.compile(
    r"\b(all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|"
    r"collective-broadcast|ragged-all-to-all)(-start)?\("
)
# With no launch of another thread for so long, one that is not next is refused.
_PATIENCE = 10.0
# A cycle has at most this many launches, and begins when they have been repeated.
_LONGEST = 8
# The search for a cycle follows every fourth launch: it costs a fifth of a message.
_EVERY = 4


class Told(NamedTuple):
    """One launch: which program, by its title and a digest, and from which thread."""

    title: str
    digest: str
    thread: str

    def __str__(self) -> str:
        where = "" if self.thread == "MainThread" else f" from thread {self.thread!r}"
        return f"{self.title}{where}"


class Group:
    """The launches of one group of processes, as this process sees them.

    Attributes:
      processes: the numbers of the processes; the first decides.
      place: how many launches this process has made.
      last: the title of the last one.
    """

    def __init__(self, name: str, member: Any) -> None:
        self.processes = [int(number) for number in name.split(",")]
        self.place = 0
        self.last = ""
        self._member = member
        self._is_first = self.processes[0] == member.process_id
        self._say = functools.partial(member.tell_launch, name)
        self._changed = threading.Condition()
        self._launching = False
        # What was told of places to come, outside of a cycle.
        self._decided: dict[int, Told] = {}
        # The cycle, the place where it begins, and the place where it ends, which is
        # infinity until the first process ends it.
        self._cycle: tuple[Told, ...] = ()
        self._since = 0
        self._until: float = 0
        self._asked = False
        # Of the first process: its last launches, and who has not answered `leave`.
        self._told: deque[Told] = deque(maxlen=2 * _LONGEST)
        self._silent: set[int] = set()

    # This process launches.

    def launch(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        """Launches when this launch is next in the first process's order.

        Raises RuntimeError if that says that another program is next, and no other
        thread launches it, or if a process does not come.
        """
        with self._changed:
            if self._launching or self._next(own) != own:
                self._wait_for_turn(own)
            self._count(own)
            self._launching = True
        try:
            return launch(arguments)
        finally:
            with self._changed:
                self._launching = False
                self._changed.notify_all()

    def _next(self, own: Told) -> Told | None:
        """What is launched next; None while that is not known."""
        if self._since <= self.place < self._until:
            return self._in_cycle(self.place)
        if self._is_first and not self._silent:
            return own
        return self._decided.get(self.place)

    def _in_cycle(self, place: int) -> Told:
        return self._cycle[(place - self._since) % len(self._cycle)]

    def _count(self, own: Told) -> None:
        """Counts a launch. The first process tells it, unless the cycle says it."""
        place, self.place = self.place, self.place + 1
        self._decided.pop(place, None)
        self.last = own.title
        if not self._is_first or self._until == math.inf:
            return
        self._say("next", place, own)
        self._told.append(own)
        may_repeat = self.place % _EVERY == 0 and not self._silent
        if may_repeat and (cycle := _repeated(tuple(self._told))):
            self._told.clear()
            self._start_cycle(self.place, cycle)
            self._say("cycle", self.place, cycle)

    # Other processes say something.

    def hear(self, what: str, place: int, told: Any = None) -> None:
        """Notes what another process says of the group's launches."""
        with self._changed:
            if what == "next" and place >= self.place:
                self._decided[place] = Told(*told)
            elif what == "cycle":
                self._start_cycle(place, tuple(Told(*one) for one in told))
            elif what == "ask" and self._is_first:
                self._leave_cycle()
            elif what == "leave":
                self._end_cycle(place)
                self._say("at", self.place, self._member.process_id)
            elif what == "at" and self._is_first:
                self._silent.discard(told)
                self._until = max(self._until, place)
            self._changed.notify_all()

    def _start_cycle(self, place: int, cycle: tuple[Told, ...]) -> None:
        self._cycle, self._since, self._until = cycle, place, math.inf
        self._asked = False

    def _leave_cycle(self) -> None:
        """Ends the cycle, or asks the first process to, if that was not yet done."""
        if self._until == math.inf and self._is_first:
            self._until, self._silent = self.place, {*self.processes[1:]}
            self._say("leave", self.place)
        elif self._until == math.inf and not self._asked:
            self._asked = True
            self._say("ask", self.place)

    def _end_cycle(self, place: int) -> None:
        """Notes what the cycle says of launches to come before a place."""
        for one in range(max(self.place, self._since), place):
            self._decided[one] = self._in_cycle(one)
        self._until = 0

    # A thread waits.

    def _wait_for_turn(self, own: Told) -> None:
        """Waits until a launch is next, and no other is under way. The lock is held."""
        place, since = self.place, time.monotonic()
        while (expected := self._next(own)) != own or self._launching:
            is_final = self._until < math.inf
            if expected != own:
                self._leave_cycle()
            waited = time.monotonic() - since
            if self._launching or self.place != place:
                place, since = self.place, time.monotonic()
            elif expected is not None and is_final:
                others = {t.name for t in threading.enumerate()} - {own.thread}
                if waited > _PATIENCE or expected.thread not in others:
                    self._refuse_other(own, expected)
            elif waited > self._member.initialization_timeout:
                self._refuse_absent(own)
            self._changed.wait(0.2)

    def _refuse_other(self, own: Told, expected: Told) -> NoReturn:
        told = "another process" if self._is_first else f"process {self.processes[0]}"
        self._refuse(
            f"is {expected} in {told}, and {own} in process {self._member.process_id}: "
            "they would exchange values of different programs. Every process of a mesh "
            "launches the same programs in the same order; if several threads launch, "
            "they have the same names in each process "
            "(threading.Thread(name=...))."
        )

    def _refuse_absent(self, own: Told) -> NoReturn:
        """The first process has not told, or another has not answered it."""
        limit = f"{self._member.initialization_timeout:g} s (initialization_timeout)"
        what = f"has not been made by process {self.processes[0]}"
        if self._silent:
            what = f"waits for {numbers(self._silent)}, which did not answer"
        own_at = f"process {self._member.process_id} is at {own}"
        self._refuse(f"{what} within {limit}; {own_at}.")

    def _refuse(self, why: str) -> NoReturn:
        place = f"launch {self.place + 1} over several processes"
        raise errors.with_facts(RuntimeError(f"{place} {why}"))


def _repeated(told: tuple[Told, ...]) -> tuple[Told, ...]:
    """The shortest cycle of the last launches, if one thread made them; or none."""
    if len(told) == 2 * _LONGEST and len({one.thread for one in told}) == 1:
        for length in range(1, _LONGEST + 1):
            if told[length:] == told[:-length]:
                return told[-length:]
    return ()


def group_of(name: str, member: Any) -> Group:
    """The launches of the processes that the name lists; made when first asked for."""
    return member.groups.get(name) or member.groups.setdefault(
        name, Group(name, member)
    )


def in_order(
    launch: Launch, name: str, text: str, devices: Any, executable: Any, member: Any
) -> Launch:
    """The launch of a program, in the order of all processes of its devices.

    Args:
      launch: buffers in, buffers out.
      name: the program's name.
      text: the program, as it was compiled.
      devices: the devices it runs on, of several processes.
      executable: the compiled program. Without collectives it may run at any time.
      member: this process as one of several, or None.
    """
    if member is None or not _EXCHANGES.search(executable.hlo_text()):
        return launch
    import hashlib

    processes = sorted({device.process_index for device in devices})
    group = group_of(",".join(map(str, processes)), member)
    ids = [device.id for device in devices]
    digest = hashlib.sha256(f"{ids}{text}".encode()).hexdigest()[:16]
    told = functools.cache(functools.partial(Told, f"jit({name})", digest))

    def ordered(arguments: list[Any]) -> list[Any]:
        own = told(threading.current_thread().name)
        return group.launch(own, launch, arguments)

    return ordered
