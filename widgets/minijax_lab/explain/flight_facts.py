"""What the flight recorder keeps: lines of the user's code, calls, misses, bytes."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from minijax_lab.explain.user_source import Line

# What a site keeps of its calls; later ones are thinned out, and always counted.
MOST_TIMES = 512
# Calls are noted in lists of so many, then added up.
NOTED = 256
# Held where counts are added up: threads call and wait at the same lines. What a
# finalizer waits for is added up inside.
COUNTING = threading.RLock()

# ---- lines -------------------------------------------------------------------------


class Lines:
    """Which frames are the user's: neither Python's, nor an installed package's."""

    def __init__(self, folders: list[str]) -> None:
        self.known: dict[str, bool] = {}
        self.libraries = [os.path.join(folder, "") for folder in folders]
        self.libraries.append(os.path.join(sysconfig.get_paths()["stdlib"], ""))
        for folder in sys.path:
            # Where packages are installed, as by `pip install --target`.
            if folder and any(Path(folder).glob("*.dist-info")):
                self.libraries.append(os.path.join(os.path.abspath(folder), ""))

    def is_users(self, file: str) -> bool:
        """Whether the user wrote a file."""
        found = self.known.get(file)
        if found is None:
            found = not (
                file.startswith("<")
                and not file.startswith("<ipython")
                or "site-packages" in file
                or "dist-packages" in file
                or any(os.path.abspath(file).startswith(f) for f in self.libraries)
            )
            self.known[file] = found
        return found

    def frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the user's, None for what an import runs."""
        while frame is not None:
            file = frame.f_code.co_filename
            if self.is_users(file):
                return frame
            if "importlib._bootstrap" in file:
                return None
            frame = frame.f_back
        return None


# ---- what is kept ------------------------------------------------------------------


@dataclass
class Leaf:
    """One array among the arguments: its path, type, place."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    weak: bool
    place: str
    bytes: int
    python: bool = False  # a number of Python's

    @property
    def kind(self) -> str:
        """Python's name of its type: bool, int, float, complex."""
        kinds = ("bool", "int", "float", "complex")
        return next((kind for kind in kinds if self.dtype.startswith(kind)), "int")

    @property
    def type(self) -> str:
        """Its dtype, with `weak` before it."""
        return f"weak {self.dtype}" if self.weak else self.dtype


@dataclass
class Key:
    """What decides whether a kept program serves."""

    leaves: list[Leaf]
    statics: dict[str, Any]
    structure: str
    settings: Any = None
    # Python's numbers and texts that the user's call gave a library that jits.
    given: dict[str, Any] = field(default_factory=dict)


@dataclass
class Miss:
    """A call that no kept program served."""

    made: tuple[str, int] | str  # the line that jitted the function, or its name
    function: str
    object: int  # the jitted function's number
    key: Key | None
    call: int  # the number of the call of that function, 0 if calls are not counted
    begin: float
    seconds: dict[str, float]
    cause: str = ""
    nearest: Miss | None = None
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    also: tuple[str, ...] = ()  # static arguments that changed with what is the cause


@dataclass(slots=True)
class Site:
    """A line of the user's code, and what happened there."""

    file: str
    line: int
    calls: int = 0
    noted: int = 0  # calls, waits and copies between devices
    counts: dict[str, int] = field(default_factory=dict)  # trace, lower, compile, ...
    seconds: dict[str, float] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)
    misses: list[Miss] = field(default_factory=list)
    missed: int = 0
    times: list[float] = field(default_factory=list)
    step: int = 1  # one of so many that were noted is in `times`
    waits: dict[str, int] = field(default_factory=dict)
    waited: float = 0.0  # seconds
    waits_of_host: float = 0.0  # seconds of waiting that work on the host could fill
    copied: int = 0  # bytes brought to the host
    last_wait: float | None = None
    # Calls (begin) and waits (begin, end, bytes, how) as they happened: a step is to
    # wait for one `append`, so `count` adds them up later.
    called: list[float] = field(default_factory=list)
    waited_for: list[tuple[float, float, int, str]] = field(default_factory=list)

    def count(self) -> None:
        """Adds up the calls and waits that were noted."""
        with COUNTING:
            self.add_up()

    def add_up(self) -> None:
        """The same for the thread that holds `COUNTING`."""
        calls, waits = self.called[:], self.waited_for[:]
        del self.called[: len(calls)], self.waited_for[: len(waits)]
        begins = calls + [wait[0] for wait in waits]
        for begin in begins[self.step - 1 - self.noted % self.step :: self.step]:
            self.seen(begin)
        self.calls += len(calls)
        self.noted += len(begins)
        last, unfilled = self.last_wait, 0.0
        for begin, end, _, how in waits:
            self.waits[how] = self.waits.get(how, 0) + 1
            if last is not None:
                # Work on the host since the last wait could have filled this one.
                # (Another thread's may have ended after this one began.)
                unfilled += max(0.0, min(end - begin, begin - last))
            last = end
        self.waited += sum(end - begin for begin, end, *_ in waits)
        self.waits_of_host += unfilled
        self.copied += sum(size for *_, size, _ in waits)
        self.last_wait = last

    def seen(self, now: float) -> None:
        """Keeps the time of a call or copy."""
        self.times.append(now)
        if len(self.times) > MOST_TIMES:
            del self.times[::2]
            self.step *= 2

    def spend(self, stage: str, seconds: float) -> None:
        """Adds the seconds of one stage."""
        with COUNTING:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
            self.counts[stage] = self.counts.get(stage, 0) + 1


@dataclass
class Constant:
    """An array that stands in a program as a number."""

    name: str
    bytes: int
    file: str
    line: int
    programs: int = 1
    made: tuple[str, int] | str = ""
    seconds: float = 0.0
    readers: list[tuple[str, int]] = field(default_factory=list)  # files and lines
    type: str = ""


@dataclass
class Pushed:
    """A NumPy array that is copied to the device."""

    path: str
    bytes: int
    calls: int
    same: bool


@dataclass
class Made:
    """All that one line jitted: `@jit`, or a `jit(...)` in a loop."""

    place: tuple[str, int] | str
    name: str
    objects: int = 0
    calls: int = 0
    statics: tuple[str, ...] = ()
    donated: bool = False
    misses: list[Miss] = field(default_factory=list)
    users: bool = False  # a function of the user's, jitted before the recording
    code_line: int = 0  # of the function itself
    code_file: str = ""
    bound: bool = False  # a method of an object, as `jax.jit(self.step)` gets it
    executable: Any = None
    shapes: Key | None = None
    site: Site | None = None
    passed_on: dict[str, int] = field(default_factory=dict)  # root -> bytes
    # What the last function held by its closure, and what differed from one to another.
    held: dict[str, Any] = field(default_factory=dict)
    varied: set[str] = field(default_factory=set)


@dataclass
class Fault:
    """One thing that costs, where it stands, and how it goes."""

    kind: str
    file: str
    line: int
    words: str
    write: str
    lines: list[Line] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0
    count: int = 0
    at_most: float = 0.0  # seconds of which an unknown part can go
    loose: bool = False  # of an operation outside of jit
    # Of operations outside of jit: the lines that ran them, and their seconds.
    at: dict[tuple[str, int], float] = field(default_factory=dict)
    # The lines that stand for them on the page: a library's call of a method, too.
    ran: set[tuple[str, int]] = field(default_factory=set)

    @property
    def rank(self) -> float:
        """The seconds by which faults are ranked; half, where it is not known how many
        go."""
        return self.seconds + self.at_most / 2
