"""`minijax course check folder`: what the learners of a course have solved.

Each notebook runs in a process of its own (`one_notebook.py`), with limits of time and
memory. Whatever happens in it becomes a sentence in the table; nothing stops the run.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from minijax_lab import grading, solutions
from minijax_lab.one_notebook import code_cells

VERSION = 1
# Best first: several calls of `check` for one exercise count as the best of them.
STATES = ("passed", "failed", "not tried", "not run")
NAME = re.compile(r"""check\(\s*["'](\d\d\.\d+)["']""")
CHAPTER = re.compile(r"(\d\d)_\w+")
# What a learner's process needs of the teacher's environment; the rest stays here.
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV", "PYTHONPATH")
SHOWN_WIDTH = 300


@dataclass
class Limits:
    """Seconds for a notebook and for each of its cells, and mebibytes of memory."""

    seconds: float = 300
    cell_seconds: float = 60
    memory: int = 4096


@dataclass
class Result:
    """An exercise of a learner: its state, and why it is not passed."""

    state: str
    reason: str = ""


@dataclass
class Report:
    """What became of one notebook. `problem` is a sentence if it did not run whole."""

    learner: str
    notebook: str
    exercises: dict[str, Result] = field(default_factory=dict)
    problem: str = ""
    errors: list[str] = field(default_factory=list)
    offline: bool = False
    seconds: float = 0.0


def notebooks_in(folder: Path) -> list[Path]:
    """Returns the notebooks below `folder`, without Jupyter's own copies."""
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file():
            found.append(path)
    return found


def learner_of(path: Path, folder: Path) -> str:
    """Whose notebook it is: the first folder below `folder`, or the file's own name.

    A folder with the course's chapters in it is one learner's, named as the folder.
    """
    parts = path.relative_to(folder).parts
    if len(parts) > 1:
        return parts[0]
    if CHAPTER.fullmatch(path.stem) and grading.chapter(path.stem[:2]):
        return folder.resolve().name
    return path.stem


def expected(path: Path, sources: Sequence[str]) -> list[str]:
    """Returns the exercises of a notebook: those it checks, and all of its chapter."""
    names = {name for source in sources for name in NAME.findall(source)}
    chapters = {name[:2] for name in names}
    if CHAPTER.fullmatch(path.stem):
        chapters.add(path.stem[:2])
    for number in chapters:
        module = grading.chapter(number)
        if module is not None:
            names |= set(module.EXERCISES)
    known = (name for name in names if grading.chapter(name) is not None)
    return sorted(name for name in known if name in grading.chapter(name).EXERCISES)


def check_one(path: Path, folder: Path, limits: Limits) -> Report:
    """Runs a notebook and returns what became of it; raises nothing."""
    report = Report(learner_of(path, folder), str(path.relative_to(folder)))
    start = time.monotonic()
    try:
        sources = code_cells(path)
    except (ValueError, OSError) as error:
        report.problem = str(error)
        return report
    for name in expected(path, sources):
        report.exercises[name] = Result("not run")
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            lines = Path(home) / "lines.jsonl"
            ended = run_process(path, lines, home, limits)
            read_lines(lines, report, ended, len(sources))
    except OSError as error:
        report.problem = f"Its process could not be started: {error}."
    report.seconds = round(time.monotonic() - start, 1)
    return report


def run_process(path: Path, lines: Path, home: str, limits: Limits) -> str:
    """Runs a notebook's process; returns a sentence if it did not end by itself."""
    course = next((str(f) for f in solutions.FOLDERS if f.is_dir()), "")
    command = [sys.executable, "-m", "minijax_lab.one_notebook", str(path), str(lines)]
    command += ["--cell-seconds", str(limits.cell_seconds), "--home", home]
    command += ["--memory", str(limits.memory), "--course", course]
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update(HOME=home, PYTHONPATH=search_path(), PYTHONUNBUFFERED="1")
    complaints = Path(home) / "stderr"
    with complaints.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            end_group(process)
            return f"It was ended after {limits.seconds:g} seconds."
        end_group(process)  # what the notebook itself has started
    if status == 0:
        return ""
    last = complaints.read_text(errors="replace").strip().rpartition("\n")[2]
    how = f"with signal {-status}" if status < 0 else f"with status {status}"
    return f"Its process ended {how}{': ' + last if last else ''}."


def search_path() -> str:
    """Returns the path on which this process found minijax and the views."""
    folders = [str(solutions.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(folder for folder in folders if folder)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it has started."""
    import signal

    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def read_lines(lines: Path, report: Report, ended: str, cells: int) -> None:
    """Fills a report from what the notebook's process wrote down."""
    begun, done = 0, False
    text = lines.read_text(encoding="utf-8") if lines.is_file() else ""
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except json.JSONDecodeError:
            continue  # the last line of a process that was ended while it wrote
        begun = told.get("begins", begun)
        done = told.get("done", done)
        report.offline = told.get("offline", report.offline)
        if "error" in told:
            report.errors.append(f"cell {told['cell']}: {told['error']}")
        if "exercise" in told:
            add(report, told["exercise"], Result(told["state"], told["reason"]))
    if not done:
        where = f" Cell {begun} of {cells} was running." if begun else ""
        report.problem = (ended or "It ended itself.") + where
        return
    for name, result in report.exercises.items():
        if result.state == "not run":
            report.exercises[name] = Result("not tried", "its check did not run")


def add(report: Report, name: str, result: Result) -> None:
    """Notes a result for an exercise, if it is better than what was there."""
    before = report.exercises.get(name)
    if before is None or STATES.index(result.state) <= STATES.index(before.state):
        report.exercises[name] = result


def check_folder(
    folder: Path,
    limits: Limits,
    jobs: int = 1,
    progress: Callable[[str], None] = print,
) -> list[Report]:
    """Checks all notebooks below `folder`, and tells of each when it is done."""
    reports = []
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        waiting = [
            pool.submit(check_one, path, folder, limits)
            for path in notebooks_in(folder)
        ]
        for number, future in enumerate(waiting, start=1):
            report = future.result()
            reports.append(report)
            passed = sum(r.state == "passed" for r in report.exercises.values())
            said = f"{passed} of {len(report.exercises)} passed"
            said += f", {report.seconds} s"
            if report.problem:
                said += f". {report.problem}"
            progress(f"[{number}/{len(waiting)}] {report.notebook}: {said}")
    return reports


def table(reports: Sequence[Report]) -> Iterator[str]:
    """Yields the lines of the table: for each chapter, learners by exercises."""
    rows: dict[str, dict[str, Result]] = {}
    for report in reports:
        row = rows.setdefault(report.learner, {})
        for name, result in report.exercises.items():
            before = row.get(name)
            if before is None or order(result) < order(before):
                row[name] = result
    names = sorted({name for row in rows.values() for name in row})
    width = max([len("learner"), *(len(learner) for learner in rows)])
    for number in sorted({name[:2] for name in names}):
        columns = [name for name in names if name[:2] == number]
        yield ""
        yield line_of(width, "learner", columns)
        for learner, row in rows.items():
            if any(name in row for name in columns):
                words = [row[n].state if n in row else "-" for n in columns]
                yield line_of(width, learner, words)
    reasons = [
        f"{learner} {name}: {cut(result.reason)}"
        for learner, row in rows.items()
        for name, result in sorted(row.items())
        if result.state == "failed"
    ]
    problems = [
        f"{report.notebook}: {cut(report.problem)}"
        for report in reports
        if report.problem
    ]
    errors = [
        f"{report.notebook}, {cut(error)}"
        for report in reports
        for error in report.errors
    ]
    titles = ("failed", "notebooks that did not run to their end", "cells that raised")
    for title, lines in zip(titles, (reasons, problems, errors)):
        if lines:
            yield ""
            yield f"{title}:"
            yield from (f"  {line}" for line in lines)
    if any(not r.offline and r.exercises for r in reports):
        yield ""
        yield "The network could not be shut off on this system; the notebooks had it."


def line_of(width: int, first: str, words: Sequence[str]) -> str:
    """Returns a line of the table."""
    return f"{first:{width}}  {''.join(f'{word:11}' for word in words)}".rstrip()


def order(result: Result) -> int:
    """Sorts states: the best first."""
    return STATES.index(result.state)


def cut(text: str) -> str:
    """Returns a reason on one line, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_WIDTH else line[: SHOWN_WIDTH - 3] + "..."


def plain(text: str) -> str:
    """Returns a text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def write_csv(reports: Sequence[Report], path: Path) -> None:
    """Writes one row for each learner, notebook and exercise."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["learner", "notebook", "exercise", "state", "reason"])
        for report in reports:
            who = [plain(report.learner), plain(report.notebook)]
            for name, result in sorted(report.exercises.items()):
                writer.writerow([*who, name, result.state, plain(result.reason)])
            if report.problem:
                writer.writerow([*who, "", "problem", plain(report.problem)])


def write_json(reports: Sequence[Report], path: Path) -> None:
    """Writes all that is known, with errors of cells."""
    content = {"version": VERSION, "notebooks": [asdict(r) for r in reports]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
