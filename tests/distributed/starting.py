"""Starting `minijax launch`, and single processes, for tests."""

import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[2]


def environment(**more):
    paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MINIJAX_")}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "MINIJAX_TEST_FAST_COMPILE": "1",
        **more,
    }


@dataclasses.dataclass
class Ended:
    """How a launch ended.

    Attributes:
      code: the exit status.
      seconds: how long it took.
      text: all that was printed.
      pids: the processes that it started.
    """

    code: int
    seconds: float
    text: str

    @property
    def pids(self):
        return [int(pid) for pid in re.findall(r"^\[\d+\] pid (\d+)", self.text, re.M)]

    def said(self, process):
        """What one process printed."""
        prefix = f"[{process}] "
        lines = self.text.splitlines()
        own = [line[len(prefix) :] for line in lines if line.startswith(prefix)]
        return "\n".join(own)

    def left_over(self):
        """The processes that are still there after a moment."""
        end = time.monotonic() + 5
        while (left := [pid for pid in self.pids if is_there(pid)]) and (
            time.monotonic() < end
        ):
            time.sleep(0.05)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


def is_there(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def launch(count, script, *words, devices=2, timeout=3.0, wait=30.0, limit=60, **more):
    """Runs `minijax launch` to its end.

    The output goes to a file: it must outlive a launcher that is killed.
    """
    command = [sys.executable, "-m", "minijax", "launch", "-n", str(count)]
    command += ["--devices", str(devices), "--timeout", str(timeout)]
    command += ["--wait", str(wait), str(PROGRAMS / script), *words]
    return run(command, limit, **more)


def run(command, limit=60, then=None, **more):
    import tempfile

    with tempfile.TemporaryFile("w+") as output:
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment(**more)
        )

        def text():
            output.seek(0)
            return output.read()

        try:
            if then is not None:
                then(process, text)
            code = process.wait(limit)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.monotonic() - start
        # The processes of a launcher that was killed print on their own.
        ended = Ended(code, seconds, text())
        while any(map(is_there, ended.pids)) and time.monotonic() - start < limit:
            time.sleep(0.05)
        return Ended(code, time.monotonic() - start, text())


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
