"""The text of a long program that XLA compiles without fusion, from another process.

XLA for CPUs writes a program's instructions, and then puts its kernels into an order in
a time that grows faster than the square of their number: 4,000 take 15 seconds, 10,000
take minutes. The view reads only the instructions. So the process that compiles, this
module, is ended as soon as it has written them.

    python -m minijax_lab.explain.long_programs FOLDER OPTIONS PARENT < program.mlir

It also ends, and removes its folder, once the process PARENT is no longer its parent.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from minijax.backend import dumps
from minijax.backend.build_settings import BuildSettings

# Programs of more equations are compiled so: a new process takes a second.
LONG = 1_500
SECONDS = 120
WRITTEN = "after_optimizations.txt"
# XLA writes this file when that one is whole.
NEXT = "after_optimizations-buffer-assignment.txt"


def text_of(module: bytes, options: dict[str, Any]) -> tuple[str, str]:
    """The HLO text of a module compiled for the CPU; "" with the reason if there is
    none."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, "-m", "minijax_lab.explain.long_programs"]
    with dumps.private_folder() as folder, open(folder / "errors", "w+") as errors:
        child = subprocess.Popen(
            [*command, str(folder), json.dumps(options), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        )
        try:
            assert child.stdin is not None
            with child.stdin as program:
                program.write(module)
            end = time.monotonic() + SECONDS
            while child.poll() is None and not ended(folder, NEXT):
                if time.monotonic() > end:
                    return "", f"XLA took more than {SECONDS} seconds"
                time.sleep(0.02)
        except BrokenPipeError:
            child.wait()
        finally:
            child.kill()
            child.wait()
        written = ended(folder, WRITTEN)
        if written:
            return written[0].read_text(errors="replace"), ""
        errors.seek(0)
        last = [line for line in errors.read().splitlines() if line.strip()][-1:]
        return "", f"XLA did not compile it: {''.join(last)[:200]}"


def ended(folder: Path, ending: str) -> list[Path]:
    """The files of the whole program with that ending; those of parts have others."""
    return sorted(path for path in folder.glob(f"*.jit_*{ending}"))


def end_with(parent: int, folder: str) -> None:
    """Waits until the parent has ended; then removes the folder, and ends."""
    while os.getppid() == parent:
        time.sleep(0.2)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def main() -> None:
    """Compiles the module on the standard input; XLA writes into a folder."""
    from minijax.backend import targets

    folder, options, parent = sys.argv[1:]
    watch = threading.Thread(target=end_with, args=(int(parent), folder), daemon=True)
    watch.start()

    def debug(given: Any) -> None:
        given.xla_dump_to = folder
        given.xla_dump_hlo_as_text = True

    settings = BuildSettings(options=json.loads(options), fast_compile=False)
    targets.find("cpu").compile(sys.stdin.buffer.read(), settings, debug)


if __name__ == "__main__":
    main()
