"""Runs one learner's notebook in this process, and judges what it hands in.

`minijax course check` starts `python -m minijax_lab.one_notebook NOTEBOOK REPORT` for
each notebook. The cells are code of an unknown author: the process has a limit of
memory, a limit of time for each cell and, where the system allows it, no network and no
sight of other processes; its parent ends it when it takes too long. REPORT is the
number of an open file, which has no name, of one JSON object a line, behind a word that
the parent chose; it is written cell by cell, so that what was found before the process
was killed is kept.

A notebook's `check` hands in; `Judge` grades between the cells, by the functions that
were there before the first cell ran, and refuses if a cell has changed one.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minijax_lab import grading
from minijax_lab.grading import TookTooLong, time_limit
from minijax_lab.judging import Judge

# The `clone` flags of Linux for users, a network and processes of a process's own.
NEW_USER, NEW_NETWORK, NEW_PROCESSES = 0x10000000, 0x40000000, 0x20000000
FILE_SIZE = 2**30


def without_others() -> tuple[bool, bool]:
    """Shuts off the network and the sight of other processes; says which it could.

    It must be called while the process has a single thread. The second holds for the
    children of this process.
    """
    if not sys.platform.startswith("linux"):
        return False, False
    unshare = getattr(ctypes.CDLL(None, use_errno=True), "unshare", None)
    if unshare is None:
        return False, False
    for flags in (NEW_NETWORK | NEW_PROCESSES, NEW_NETWORK):
        if unshare(flags) == 0 or unshare(NEW_USER | flags) == 0:
            return True, bool(flags & NEW_PROCESSES)
    return False, False


def wait_for_child() -> None:
    """Goes on in a child, which cannot see or end other processes, and waits for it."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) % 256)


def limit(mebibytes: int) -> None:
    """Lets allocations beyond `mebibytes` and files beyond `FILE_SIZE` fail."""
    try:
        import resource
    except ImportError:
        return
    for kind, size in (
        (resource.RLIMIT_DATA, mebibytes * 2**20),
        (resource.RLIMIT_FSIZE, FILE_SIZE),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (size, size))


def code_cells(path: Path) -> list[str]:
    """Returns the sources of a notebook's code cells.

    Raises ValueError, whose text is a sentence, for a file that is not a notebook.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"It is not a notebook: it is not JSON ({error}).") from None
    except RecursionError:
        raise ValueError("It is not a notebook: its JSON is nested too deep.") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise ValueError("It is not a notebook of format 4: it has no list of cells.")
    sources = []
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            text = "".join(source) if isinstance(source, list) else source
            if not isinstance(text, str):
                raise ValueError("It is not a notebook: a cell's source is not text.")
            sources.append(text)
    return sources


def make_shell() -> Any:
    """Returns an IPython without a history, which runs cells as a kernel would."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    configuration = Config()
    configuration.HistoryManager.enabled = False
    configuration.InteractiveShell.colors = "nocolor"
    return InteractiveShell.instance(config=configuration)


def run_cell(shell: Any, source: str, seconds: float) -> str:
    """Runs a cell; returns what it raised as one line of text, or ""."""
    too_long = f"TookTooLong: the cell ran for more than {seconds:g} seconds"
    try:
        with time_limit(seconds):
            result = shell.run_cell(source, store_history=False)
    except TookTooLong:
        return too_long
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return ""
    if isinstance(error, TookTooLong):
        return too_long
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def main(words: Sequence[str] | None = None) -> int:
    """Runs the notebook named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m minijax_lab.one_notebook")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("report", type=int, help="the open file for what is found")
    parser.add_argument("--cell-seconds", type=float, default=60)
    parser.add_argument("--memory", type=int, default=4096)
    parser.add_argument("--home", default=".")
    parser.add_argument("--course", default="")
    arguments = parser.parse_args(words)

    token = sys.stdin.readline().strip()
    os.set_inheritable(arguments.report, False)
    offline, alone = without_others()
    if alone:
        wait_for_child()
    limit(arguments.memory)

    def tell(**what: Any) -> None:
        line = f"{token} {json.dumps(what)}\n"
        os.write(arguments.report, line.encode())

    tell(offline=offline)
    notebook = arguments.notebook.resolve()
    sources = code_cells(notebook)
    os.chdir(notebook.parent)
    # The learner's own `tiny` beside the notebook comes before the course's.
    sys.path.insert(0, str(notebook.parent))
    if arguments.course:
        sys.path.append(arguments.course)
    # IPython's and matplotlib's files stay out of the teacher's own folders.
    home = arguments.home
    os.environ.update(IPYTHONDIR=home, MPLCONFIGDIR=home, MPLBACKEND="agg")
    shell = make_shell()
    handed: list[tuple[str, tuple[Any, ...]]] = []
    grading.hand_in = lambda name, made: handed.append((name, made))
    judge = Judge()
    for number, source in enumerate(sources, start=1):
        tell(begins=number)
        error = run_cell(shell, source, arguments.cell_seconds)
        if error:
            tell(cell=number, error=error)
        for name, made in handed:
            outcome = judge(name, made)
            if outcome is not None:
                tell(exercise=name, state=outcome.state, reason=outcome.reason)
        handed.clear()
    tell(done=True)
    return 0


if __name__ == "__main__":
    # Threads of the learner's that never end must not keep the process.
    status = main()
    sys.stdout.flush()
    os._exit(status)
