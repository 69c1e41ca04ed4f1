"""Launches over several processes happen in one order, and are of the same programs.

XLA pairs what the processes launch by counting: the fifth launch of one exchanges
values with the fifth of another, whatever programs they are. So the first process of a
group tells the others, through the coordinator, what it launches, and goes on. Another
process launches only what comes next in that order. A thread whose launch is not next
waits until others have made theirs, or raises an error that names both programs.

When the first process's launches repeat, it tells the others so, and nothing more: all
go on in that cycle. Who would launch something else first asks to leave the cycle. The
others answer at which place they are, and up to the last of these places all launch
what the cycle says. From there on the first process tells each launch again.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import time
from collections import deque
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
# A cycle has at most so many launches, and has been made twice.
_LONGEST = 8


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
        self._decided: dict[int, Told] = {}
        # What is launched in turn, from one place on and before another one.
        self._cycle: list[Told] = []
        self._since = 0
        self._until: float = 0
        self._asked = False
        # Of the first process: what it told, and how many answers it waits for.
        self._told: deque[Told] = deque(maxlen=2 * _LONGEST)
        self._awaited = 0

    def launch(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        """Launches when this launch is next in the first process's order.

        Raises RuntimeError if that says that another program is next, and no other
        thread launches it, or if the first process does not come.
        """
        with self._changed:
            if self._launching or self._next(own) != own:
                self._wait(own)
            tells = self._is_first and self._until < math.inf
            if tells:
                self._say("next", self.place, own)
            self._decided.pop(self.place, None)
            self.place += 1
            self.last = own.title
            if tells:
                self._look_for_cycle(own)
            self._launching = True
        try:
            return launch(arguments)
        finally:
            with self._changed:
                self._launching = False
                self._changed.notify_all()

    def hear(self, what: str, place: int, told: Any = None) -> None:
        """Notes what another process says of the group's launches."""
        with self._changed:
            if what in ("ask", "at"):  # to the first process
                if self._is_first and what == "ask":
                    self._leave()
                elif self._is_first:
                    self._awaited -= 1
                    self._until = max(self._until, place)
            elif what == "leave":
                for one in range(max(self.place, self._since), place):
                    self._decided[one] = self._in_cycle(one)
                self._until = 0
                self._say("at", self.place)
            elif what == "cycle":
                self._start_cycle(place, [Told(*one) for one in told])
            elif place >= self.place:
                self._decided[place] = Told(*told)
            self._changed.notify_all()

    def _in_cycle(self, place: int) -> Told:
        return self._cycle[(place - self._since) % len(self._cycle)]

    def _next(self, own: Told) -> Told | None:
        """What is launched next; None while that is not known."""
        if self._since <= self.place < self._until:
            return self._in_cycle(self.place)
        if self._is_first and not self._awaited:
            return own
        return self._decided.get(self.place)

    def _look_for_cycle(self, own: Told) -> None:
        """Tells the others that the launches repeat, if those of one thread do."""
        self._told.append(own)
        told = list(self._told)
        if len(told) < 2 * _LONGEST or self._awaited:
            return
        length = next((n for n in range(1, _LONGEST + 1) if told[n:] == told[:-n]), 0)
        if length and len({one.thread for one in told}) == 1:
            self._told.clear()
            self._start_cycle(self.place, told[-length:])
            self._say("cycle", self.place, self._cycle)

    def _start_cycle(self, place: int, cycle: list[Told]) -> None:
        self._cycle, self._since, self._until = cycle, place, math.inf
        self._asked = False

    def _leave(self) -> None:
        """Asks to leave the cycle, if that was not yet done."""
        if self._until == math.inf and self._is_first:
            self._until, self._awaited = self.place, len(self.processes) - 1
            self._say("leave", self.place)
        elif self._until == math.inf and not self._asked:
            self._asked = True
            self._say("ask", self.place)

    def _wait(self, own: Told) -> None:
        """Waits for this thread's turn. The lock is held."""
        place, since = self.place, time.monotonic()
        while (expected := self._next(own)) != own or self._launching:
            is_final = self._until < math.inf
            if expected != own:
                self._leave()
            waited = time.monotonic() - since
            if self._launching or self.place != place:
                place, since = self.place, time.monotonic()
            elif expected is not None and is_final:
                others = {t.name for t in threading.enumerate()}
                others.discard(own.thread)
                if waited > _PATIENCE or expected.thread not in others:
                    first = self.processes[0]
                    told = "another process" if self._is_first else f"process {first}"
                    raise self._refused(
                        f"is {expected} in {told}, and {own} in process "
                        f"{self._member.process_id}: they would exchange values of "
                        "different programs. Every process of a mesh launches the "
                        "same programs in the same order; of several threads, those "
                        "that launch have the same names in each process "
                        "(threading.Thread(name=...))."
                    )
            elif waited > self._member.initialization_timeout:
                limit = f"{self._member.initialization_timeout:g} s "
                limit += "(initialization_timeout)"
                raise self._refused(
                    f"has not been made by process {self.processes[0]} within {limit}; "
                    f"process {self._member.process_id} is at {own}."
                )
            self._changed.wait(0.2)

    def _refused(self, why: str) -> Exception:
        place = f"launch {self.place + 1} over several processes"
        return errors.with_facts(RuntimeError(f"{place} {why}"))


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
    tolds: dict[str, Told] = {}

    def ordered(arguments: list[Any]) -> list[Any]:
        thread = threading.current_thread().name
        own = tolds.get(thread)
        if own is None:
            own = tolds[thread] = Told(f"jit({name})", digest, thread)
        return group.launch(own, launch, arguments)

    return ordered
