"""`minijax course check folder`: what the learners of a course have solved.

A copy of each notebook runs in a process of its own (`one_notebook.py`), with limits of
time and memory. Whatever happens in it becomes a sentence in the table; nothing stops
the run, and nothing that was handed in is changed.
"""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from minijax_lab import grading, kernel_puzzles, solutions, tiny_pieces
from minijax_lab.one_notebook import code_cells

VERSION = 1
# Best first: several calls of `check` for one exercise count as the best of them.
STATES = ("passed", "failed", "not tried", "not run")
NAME = re.compile(r"""(?:check|puzzle|piece)\(\s*["']([\w.]+)["']""", re.ASCII)
CHAPTER = re.compile(r"(\d\d)_\w+", re.ASCII)
# A larger notebook is not read, and of a learner's folder not more than this is copied.
NOTEBOOK_SIZE, FOLDER_SIZE = 2**26, 2**28
# What a learner's process needs of the teacher's environment; the rest stays here.
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV", "PYTHONPATH")
SHOWN_WIDTH = 300
# What a spreadsheet takes for the beginning of a formula.
FORMULAS = ("=", "+", "-", "@", "|")


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


def answers_of(chapter: str) -> list[str]:
    """Returns what a chapter asks for: its exercises, its pieces and its puzzles."""
    module = grading.chapter(chapter)
    names = [] if module is None else sorted(module.EXERCISES)
    names += [name for name, where in tiny_pieces.PIECES.items() if where == chapter]
    return names + [name for name in kernel_puzzles.PUZZLES if name[:2] == chapter]


def chapter_of(name: str) -> str:
    """Returns the chapter that an exercise, a piece or a puzzle belongs to."""
    return tiny_pieces.PIECES.get(name, name[:2])


def expected(path: Path, sources: Sequence[str]) -> list[str]:
    """Returns the answers of a notebook: those it hands in, and all of its chapter."""
    chapters = {chapter_of(n) for source in sources for n in NAME.findall(source)}
    if CHAPTER.fullmatch(path.stem):
        chapters.add(path.stem[:2])
    return [name for number in sorted(chapters) for name in answers_of(number)]


def copy_for(path: Path, folder: Path, target: Path) -> Path:
    """Copies a notebook, and what lies beside it, to `target`; returns the copy.

    A learner's whole folder comes along, with their `tiny`. A notebook that lies among
    those of others comes alone. Links, and files that are none, stay behind.

    Raises OSError, whose text is a sentence, for what is a link or too large.
    """
    if path.is_symlink():
        raise OSError("It is a link to another file, and links are not followed.")
    relative = path.relative_to(folder)
    if len(relative.parts) > 1:
        home = folder / relative.parts[0]
    elif learner_of(path, folder) != path.stem:
        home = folder
    else:
        home = path
    copy = target / (path.relative_to(home) if home is not path else path.name)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    left = FOLDER_SIZE
    for root, names, files in os.walk(home if home is not path else os.devnull):
        names[:] = [name for name in names if not name.startswith((".", "__pyc"))]
        for name in files:
            source = Path(root) / name
            if source == path or source.is_symlink() or not source.is_file():
                continue
            left -= source.stat().st_size
            if left < 0:
                raise OSError(f"Its folder holds more than {FOLDER_SIZE >> 20} MiB.")
            other = target / source.relative_to(home)
            other.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, other)
    return copy


def check_one(path: Path, folder: Path, limits: Limits) -> Report:
    """Runs a copy of a notebook and returns what became of it; raises nothing."""
    report = Report(learner_of(path, folder), str(path.relative_to(folder)))
    start = time.monotonic()
    try:
        if path.stat().st_size > NOTEBOOK_SIZE:
            raise ValueError(f"It is larger than {NOTEBOOK_SIZE >> 20} MiB.")
        sources = code_cells(path)
        for name in expected(path, sources):
            report.exercises[name] = Result("not run")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            copy = copy_for(path, folder, Path(home) / "work")
            ended, text = run_process(copy, home, limits)
            read_lines(text, report, ended, len(sources))
    except (ValueError, OSError) as error:
        report.problem = str(error)
    except Exception as error:  # one notebook must not keep the others from theirs
        report.problem = f"It could not be graded: {type(error).__name__}: {error}"
    report.seconds = round(time.monotonic() - start, 1)
    return report


def run_process(path: Path, home: str, limits: Limits) -> tuple[str, str]:
    """Runs a notebook's process.

    Returns a sentence if it did not end by itself, and the lines that it reported.
    """
    course = next((str(f) for f in solutions.FOLDERS if f.is_dir()), "")
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update(HOME=home, PYTHONPATH=search_path(), PYTHONUNBUFFERED="1")
    # The report is a file without a name, and each of its lines begins with a word that
    # the notebook is not told.
    token = secrets.token_hex(16)
    with tempfile.TemporaryFile() as lines, tempfile.TemporaryFile() as complaints:
        report = lines.fileno()
        command = [sys.executable, "-m", "minijax_lab.one_notebook", str(path)]
        command += [str(report), "--cell-seconds", str(limits.cell_seconds)]
        command += ["--home", home, "--memory", str(limits.memory), "--course", course]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=environment,
            pass_fds=[report],
            start_new_session=True,
        )
        ended = ""
        try:
            process.communicate(f"{token}\n".encode(), timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            ended = f"It was ended after {limits.seconds:g} seconds."
        end_group(process)  # what the notebook itself has started
        lines.seek(0)
        found = lines.read().decode(errors="replace").splitlines()
        told = [line.removeprefix(token) for line in found if line.startswith(token)]
        status = process.returncode
        if status and not ended:
            size = complaints.seek(0, os.SEEK_END)
            complaints.seek(max(0, size - 4096))
            end = complaints.read().decode(errors="replace").strip()
            last = end.rpartition("\n")[2]
            how = f"with signal {-status}" if status < 0 else f"with status {status}"
            ended = f"Its process ended {how}{': ' + last if last else ''}."
    return ended, "\n".join(told)


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


def read_lines(text: str, report: Report, ended: str, cells: int) -> None:
    """Fills a report from what the notebook's process wrote down."""
    begun, done = 0, False
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
            line = f"[{number}/{len(waiting)}] {report.notebook}: {said}"
            progress(printable(" ".join(line.split())))
    return reports


def rows_of(reports: Sequence[Report]) -> dict[str, dict[str, Result]]:
    """The best result of each learner for each exercise, from all their notebooks."""
    rows: dict[str, dict[str, Result]] = {}
    for report in reports:
        row = rows.setdefault(report.learner, {})
        for name, result in report.exercises.items():
            before = row.get(name)
            if before is None or order(result) < order(before):
                row[name] = result
    return rows


def summary(reports: Sequence[Report]) -> Iterator[str]:
    """Yields a line for each exercise: how many solved it, the hardest one first.

    Counted are the learners who handed in a notebook of its chapter.
    """
    results: dict[str, list[str]] = {}
    for row in rows_of(reports).values():
        for name, result in row.items():
            results.setdefault(name, []).append(result.state)
    shares = {n: s.count("passed") / len(s) for n, s in results.items()}
    yield ""
    yield "exercises by the share of learners who solved them:"
    width = max((len(name) for name in results), default=0)
    for name in sorted(results, key=lambda name: (shares[name], chapter_of(name))):
        states = results[name]
        others = [f"{states.count(s)} {s}" for s in STATES[1:] if s in states]
        solved = f"{states.count('passed')} of {len(states)}"
        yield f"  {name:{width}}  {shares[name]:4.0%}  {solved}" + (
            f" ({', '.join(others)})" if others else ""
        )


def table(reports: Sequence[Report]) -> Iterator[str]:
    """Yields the lines of the table: for each chapter, learners by exercises."""
    rows = rows_of(reports)
    names = sorted({name for row in rows.values() for name in row})
    width = max([len("learner"), *(len(printable(learner)) for learner in rows)])
    for number in sorted({chapter_of(name) for name in names}):
        columns = [name for name in names if chapter_of(name) == number]
        columns.sort(key=answers_of(number).index)
        wide = [max(len(name), len("not tried")) for name in columns]
        yield ""
        yield line_of([width, *wide], ["learner", *columns])
        for learner, row in rows.items():
            if any(name in row for name in columns):
                words = [row[n].state if n in row else "-" for n in columns]
                yield line_of([width, *wide], [printable(learner), *words])
    reasons = [
        cut(f"{learner} {name}: {result.reason}")
        for learner, row in rows.items()
        for name, result in sorted(row.items())
        if result.state == "failed"
    ]
    problems = [
        cut(f"{report.notebook}: {report.problem}")
        for report in reports
        if report.problem
    ]
    errors = [
        cut(f"{report.notebook}, {error}")
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


def line_of(widths: Sequence[int], words: Sequence[str]) -> str:
    """Returns a line of the table."""
    padded = (f"{word:{width}}" for word, width in zip(words, widths))
    return "  ".join(padded).rstrip()


def order(result: Result) -> int:
    """Sorts states: the best first."""
    return STATES.index(result.state)


def printable(text: str) -> str:
    """Returns a text in which invisible characters are written as their numbers.

    A terminal would take some of them for orders, and a file cannot hold others.
    """
    return "".join(
        character
        if unicodedata.category(character)[0] != "C"
        else character.encode("unicode_escape").decode()
        for character in text
    )


def cut(text: str) -> str:
    """Returns a reason on one line, printable, and not too long."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= SHOWN_WIDTH else line[: SHOWN_WIDTH - 3] + "..."


def plain(text: str) -> str:
    """Returns a text that a spreadsheet does not take for a formula."""
    line = printable(" ".join(text.split()))
    return f"'{line}" if unicodedata.normalize("NFKC", line[:1]) in FORMULAS else line


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
