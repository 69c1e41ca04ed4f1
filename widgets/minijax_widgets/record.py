"""A flight recorder for programs that use JAX.

    python -m minijax_widgets.record train.py --steps 100

runs the script as `python train.py --steps 100` would, and writes one page that opens
without a network: each line of the user's code at which something was traced, lowered,
compiled or waited for, ranked by avoidable seconds, with the reason and the repaired
line.

    with see.recording() as record:
        train()
    record

does the same in a notebook. JAX is not imported here: `jax.jit` hands out the same
functions with a recorder in front from the moment at which the script imports JAX.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

import minijax
from minijax_lab.explain.flight import Ear, listening
from minijax_lab.explain.flight_facts import Lines
from minijax_lab.explain.flight_programs import read_programs
from minijax_widgets.record_page import Report, make_report, page, text

# Lines in these folders are not the user's.
OWN = (Path(minijax.__file__).parent, Path(__file__).parent)


class Recorder:
    """What a program spends on JAX, between the beginning and end of a `with` block."""

    def __init__(self, title: str = "recording", command: str = "") -> None:
        self.title = title
        self.command = command or "with see.recording():"
        folders = [*OWN, OWN[1].parent / "minijax_lab"]
        self.lines = Lines([str(folder) for folder in folders])
        self.ears: list[Ear] = []
        self.now: tuple[str, ...] = ("jax",)
        self.report: Report | None = None
        self.error = ""

    def __enter__(self) -> Recorder:
        self.ears.clear()
        self.report = None
        self.block = listening(self.ears, self.lines, self.now)
        self.begin = time.perf_counter()
        self.block.__enter__()
        return self

    def __exit__(self, kind: Any, raised: Any, trace: Any) -> None:
        self.took = time.perf_counter() - self.begin
        self.block.__exit__(None, None, None)
        if raised is not None and not isinstance(raised, SystemExit):
            self.error = f"{type(raised).__name__}: {raised}"

    def finished(self) -> Report:
        """The report; RuntimeError inside of the block."""
        if any(ear.on for ear in self.ears):
            raise RuntimeError("the recording goes on: leave its `with` block first.")
        if self.report is None:
            makers = [made for ear in self.ears for made in ear.made.values()]
            programs = read_programs(makers, self.lines.is_users)
            for made in makers:
                made.executable = None
            self.report = make_report(
                self.title, self.command, self.took, self.ears, programs, self.error
            )
            for ear in self.ears:
                ear.began = self.begin
            self.report.began = self.begin
        return self.report

    def text(self, full: bool = False) -> str:
        """The findings as plain text; `full=True` lists all, with repaired lines."""
        return text(self.finished(), full)

    def to_html(self) -> str:
        """The page."""
        return page(self.finished())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; bars of a page that stood there before are outlined in it.

        Raises ValueError for a path that does not end in .html.
        """
        if not str(path).endswith((".html", ".htm")):
            raise ValueError(
                "a recording is saved as .html; the path "
                f"{os.fspath(path)!r} does not end so."
            )
        report = self.finished()
        report.before = told_before(Path(path))
        Path(path).write_text(page(report), encoding="utf-8")

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        whole = escape(self.to_html(), quote=True)
        frame = (
            f'<iframe srcdoc="{whole}" title="recording" '
            'style="width:100%;height:720px;border:0"></iframe>'
        )
        return {"text/plain": self.text(), "text/html": frame}


def recording() -> Recorder:
    """Records what the block spends on JAX, line by line of the caller's code.

        with see.recording() as record:
            train()
        record                         # in a notebook, the page
        print(record.text())           # the findings, a line each
        record.save("train.html")

    Real JAX is listened to if it is loaded or imported in the block, minijax if the
    caller has imported it. Functions that were jitted before have their misses told,
    their calls not counted.
    """
    caller = sys._getframe(1).f_globals
    recorder = Recorder()
    names = {getattr(value, "__name__", "") for value in caller.values()}
    modules = {str(name).partition(".")[0] for name in names}
    if "minijax" in modules or "jax" not in sys.modules:
        recorder.now = ("jax", "minijax")
    return recorder


def told_before(path: Path) -> dict[str, float]:
    """The seconds by line of the page that is written over; {} if it is none."""
    if not path.is_file():
        return {}
    found = re.search(
        r'<script type="application/json" id="record">(.*?)</script>',
        path.read_text(encoding="utf-8", errors="replace"),
    )
    try:
        kept = json.loads(found[1]) if found else {}
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}


def run(script: str, arguments: list[str], output: Path) -> int:
    """Runs a script under the recorder and writes its page; returns its exit status."""
    command = " ".join(["python -m minijax_widgets.record", script, *arguments])
    recorder = Recorder(os.path.basename(script), command)
    path, before = sys.path[0], sys.argv
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    status, interrupt = 0, None
    try:
        with recorder:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        if ended.code and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
    except KeyboardInterrupt as stopped:
        interrupt = stopped  # Python's own end of it follows below
    except BaseException as raised:
        trace = of_script(raised, recorder.lines)
        sys.excepthook(type(raised), raised.with_traceback(trace), trace)
        if trace is None:
            return 1  # not a line of it ran: there is nothing to show
        status = 1
    finally:
        sys.argv, sys.path[0] = before, path
    recorder.save(output)
    print(f"{recorder.text()}\nrecorded: {output}", file=sys.stderr)
    if interrupt is not None:
        raise interrupt.with_traceback(of_script(interrupt, recorder.lines))
    return status


def of_script(raised: BaseException, lines: Lines) -> Any:
    """The traceback of an exception from the script's own first line on; None for the
    error of a script that cannot be compiled, as Python shows it."""
    trace = raised.__traceback__
    while trace is not None and not lines.is_users(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is None and isinstance(raised, SyntaxError):
        return None
    return trace or raised.__traceback__


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the script's exit status, or 2 for wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m minijax_widgets.record",
        description="Runs a script that uses JAX and writes one page: the lines that "
        "cost, why, and what to write instead.",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="the page (default: SCRIPT.record.html)"
    )
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    script = Path(options.script)
    if not script.is_file():
        parser.error(f"there is no file {script}.")
    output = Path(options.output or script.with_suffix(".record.html").name)
    if not output.absolute().parent.is_dir():
        parser.error(f"the folder of {output} does not exist; make it first.")
    if output.suffix not in (".html", ".htm"):
        parser.error(f"the page is a file that ends in .html, not {output}.")
    return run(str(script), options.arguments, output)


if __name__ == "__main__":
    sys.exit(main())
