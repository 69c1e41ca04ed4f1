"""`minijax launch`: one script in several processes of this machine.

The launcher is the coordinator, starts the processes, and prints their lines with their
number in front. When one is gone it ends the others. When the launcher itself is gone,
each process notices (once it has imported minijax) and ends. So no process is left
running.

It computes nothing itself: no platform's client is made in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

from minijax.processes import connecting
from minijax.processes.coordinator import ENDED_WITH, Coordinator
from minijax.processes.lines import in_background
from minijax.processes.membership import LAST_WORDS

# Gloo's C++ code writes a message for each group on the standard output of a process,
# in pieces: those of two threads may stand in one line, and the rest in the next.
_GLOO_BEGINS = b"[Gloo] Rank "
_GLOO = re.compile(rb"\[Gloo\] Rank |Expected number of connected peer ranks")
_GLOO_REST = re.compile(rb"(\d+| is connected to | peer ranks\. |is : )*\n")
# What a process that was asked to end may take.
_GRACE = 2.0


@dataclasses.dataclass
class Launch:
    """What to start.

    Attributes:
      command: the program and its arguments.
      num_processes: how many times.
      num_devices: CPU devices for each process; None leaves it to the environment.
      timeout: seconds of silence after which a process, or the launcher, is gone.
      initialization_timeout: seconds that processes wait for each other.
    """

    command: Sequence[str]
    num_processes: int
    num_devices: int | None = None
    timeout: float = 10.0
    initialization_timeout: float = 60.0


class _Running:
    """The started processes, and what is printed of them."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.started = time.monotonic()
        self._printing = threading.Lock()
        self.events: queue.Queue[tuple[int, str]] = queue.Queue()
        self.coordinator = Coordinator(
            "127.0.0.1", 0, launch.num_processes, launch.timeout
        )
        self.coordinator.on_lost = lambda *lost: self.events.put(lost)
        # Error output that is there when the launcher is not.
        self.last_words = os.dup(2)
        self.processes: list[subprocess.Popen[bytes]] = []
        self._pumps: list[threading.Thread] = []

    def start(self) -> None:
        for number in range(self.launch.num_processes):
            process = subprocess.Popen(
                list(self.launch.command),
                env=self._environment(number),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(self.last_words,),
                start_new_session=True,  # so that its children end with it
            )
            self.processes.append(process)
            streams = (process.stdout, sys.stdout), (process.stderr, sys.stderr)
            for source, sink in streams:
                self._pumps.append(in_background(self._pump, number, source, sink))

    def _environment(self, number: int) -> dict[str, str]:
        found = {
            "PYTHON_COLORS": "0",  # each line gets a prefix: a colour would be cut
            **os.environ,
            connecting.ADDRESS: f"127.0.0.1:{self.coordinator.port}",
            connecting.NUM_PROCESSES: str(self.launch.num_processes),
            connecting.PROCESS_ID: str(number),
            connecting.LAUNCHED: str(os.getpid()),
            connecting.INITIALIZATION_TIMEOUT: str(self.launch.initialization_timeout),
            LAST_WORDS: str(self.last_words),
            "PYTHONUNBUFFERED": "1",
        }
        if self.launch.num_devices is not None:
            found["JAX_NUM_CPU_DEVICES"] = str(self.launch.num_devices)
        return found

    def _pump(self, number: int, source: IO[bytes], sink: Any) -> None:
        prefix = f"[{number}] ".encode()
        unfinished = 0  # messages of Gloo whose end has not come yet
        for line in source:
            if _GLOO.search(line) or (unfinished and _GLOO_REST.fullmatch(line)):
                unfinished = max(0, unfinished + line.count(_GLOO_BEGINS) - 1)
                continue
            with self._printing:
                sink.buffer.write(prefix + line.rstrip(b"\n") + b"\n")
                sink.flush()

    def say(self, text: str) -> None:
        with self._printing:
            print(f"minijax launch: {text}", file=sys.stderr, flush=True)

    # How it ends.

    def wait(self) -> int:
        """Waits for all; the exit status: of the first that failed, or 0."""
        while True:
            culprit = self._culprit()
            if culprit is not None:
                return self._report(*culprit)
            if all(process.poll() == 0 for process in self.processes):
                return 0
            time.sleep(0.05)

    def _culprit(self) -> tuple[int, str] | None:
        """The first lost process, and the coordinator's reason.

        The others end because of it, so that its own number must be found first.
        """
        codes = [process.poll() for process in self.processes]
        try:
            return self.events.get(timeout=0.2 if any(codes) else 0)
        except queue.Empty:
            return next(((n, "") for n, code in enumerate(codes) if code), None)

    def _report(self, number: int, why: str) -> int:
        process = self.processes[number]
        with contextlib.suppress(subprocess.TimeoutExpired):
            # One that raised is about to print its error.
            process.wait(5.0 if ENDED_WITH in why else 0.5)
        code = process.poll()
        after = f"after {time.monotonic() - self.started:.1f} s"
        # One without a status was stopped, or cut off.
        gone = f"is gone {after} ({why})"
        how = gone if code is None else f"{_ended(code)} {after}"
        self.say(f"process {number} {how}.")
        self._end_others(number)
        code = process.returncode or 1
        return code if code > 0 else 128 - code

    def _alive(self) -> list[int]:
        return [n for n, process in enumerate(self.processes) if process.poll() is None]

    def _end_others(self, culprit: int) -> None:
        """Waits for the other processes to report and end, then ends the rest."""
        self._wait_until_gone(_GRACE, culprit)
        left = self._alive()
        if left:
            names = ", ".join(map(str, left))
            self.say(f"ending {'process' if len(left) == 1 else 'processes'} {names}.")
        self.end(signal.SIGTERM, 1.0)

    def end(self, first: signal.Signals, seconds: float = _GRACE) -> None:
        """Ends every process and what it has started."""
        self._signal_all(first)
        self._wait_until_gone(seconds)
        self._signal_all(signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def _wait_until_gone(self, seconds: float, but: int | None = None) -> None:
        end = time.monotonic() + seconds
        while set(self._alive()) - {but} and time.monotonic() < end:
            time.sleep(0.02)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self.processes:
            # The group of a process that has ended may still have members.
            if process.poll() is None or number == signal.SIGKILL:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)

    def finish(self) -> None:
        """Prints what is left of the output."""
        for pump in self._pumps:
            pump.join(2.0)


def _ended(code: int) -> str:
    if code > 0:
        return f"ended with status {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def run(launch: Launch) -> int:
    """Runs the processes to their end; returns the exit status.

    0 if all ended well, else the status of the first that did not (128 + the signal's
    number for a signal); 130 after Ctrl-C.
    """
    running = _Running(launch)
    told = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        running.start()
        return running.wait()
    except KeyboardInterrupt:
        running.say("interrupted; ending all processes.")
        running.end(signal.SIGINT)
        return 130
    finally:
        signal.signal(signal.SIGTERM, told)
        running._signal_all(signal.SIGKILL)
        running.finish()


def _as_interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
