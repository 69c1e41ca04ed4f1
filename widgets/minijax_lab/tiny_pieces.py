"""`@piece("trace.bind")`: a piece of `tiny`, written by the learner in a cell.

An empty one (`...`) lets the course's own stand in, so that a notebook runs from top to
bottom. A written one takes its place in a copy of the learner's `tiny`, where the
programs of its chapter are run. If all are right, it is saved in the learner's file.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from minijax_lab import grading, piece_checks, rule_checks, solutions, tiny_score
from minijax_lab.piece_source import Refused, Written, found_in

# The pieces that chapters leave open, and the chapter whose programs are run.
PIECES = {
    "at.Place.set": "01",
    "at.Place.add": "01",
    "trace.bind": "02",
    "trace.trace": "02",
    "trace.evaluate": "02",
    "cache.Jitted.key": "03",
    "cache.Jitted.__call__": "03",
    "tree.flatten": "04",
    "tree.paths": "04",
    "tree.map_tree": "04",
    "threefry.threefry": "05",
    "threefry.uniform": "05",
    "tangents.slopes": "06",
    "tangents.rules_of_school": "06",
    "tangents.jvp": "06",
    "linearize.linearize": "07",
    "linearize.outside": "07",
    "transposes.rules_of_entries": "07",
    "transposes.dot_back": "07",
    "transposes.backward": "07",
    "batching.entries_of_many": "08",
    "batching.dot_of_many": "08",
    "batching.vmap": "08",
    "nesting.hvp": "09",
    "nesting.jacrev": "09",
    "nesting.implicit": "09",
    "loops.cond": "10",
    "loops.scan": "10",
    "loop_rules.scan_change": "10",
    "loop_rules.cond_of_many": "10",
    "loop_rules.scan_of_many": "10",
    "custom.remat": "11",
    "custom.custom_vjp": "11",
    "custom.custom_of_many": "11",
    "leaks.leaks": "12",
    "fuser.kernels_of": "13",
    "fuser.run": "13",
    "export.write": "14",
    "export.checked": "14",
    "export.load": "14",
    "modules.Scope.child": "15",
    "modules.Scope.param": "15",
    "optimizers.chain": "15",
    "optimizers.scale_by_adam": "15",
    "optimizers.add_decayed_weights": "15",
    "optimizers.apply_updates": "15",
    "placed.slices": "16",
    "collectives.all_reduce": "17",
    "collectives.reduce_scatter": "17",
    "collectives.all_gather": "17",
    "kernels.pallas_call": "18",
    "attention.online_softmax": "19",
    "attention.flash_attention": "19",
    "printing.run": "20",
    "printing.threaded": "20",
    "recurrence.recur_tangent": "21",
    "recurrence.recur_transpose": "21",
    "recurrence.recur_of_many": "21",
    "intervals.product": "21",
    "intervals.power": "21",
    "intervals.bounds": "21",
}


CHECKS = piece_checks.CHECKS | rule_checks.CHECKS
# Pieces that may write other equations than the course's: their numbers count.
FREE = {
    "tangents.rules_of_school",
    "transposes.rules_of_entries",
    "transposes.dot_back",
    "batching.dot_of_many",
    "loops.scan",
    "loop_rules.scan_change",
    "loop_rules.scan_of_many",
    "custom.custom_of_many",
}
# The digits of chapter 11 train on these.
PIECES_OF_TRAINING = (
    *("trace.bind", "trace.trace", "trace.evaluate", "tree.flatten", "tree.map_tree"),
    *("threefry.threefry", "threefry.uniform", "tangents.slopes"),
    *("tangents.rules_of_school", "linearize.linearize"),
    *("transposes.rules_of_entries", "transposes.dot_back", "transposes.backward"),
    *("batching.entries_of_many", "batching.dot_of_many", "batching.vmap"),
)


def piece(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Marks a function as the learner's own piece `name` of `tiny`.

    Returns the learner's function if all programs of its chapter are right with it,
    and else the course's, so that the cells below can go on.
    """

    def take(function: Callable[..., Any]) -> Callable[..., Any]:
        if name not in PIECES:
            known = ", ".join(PIECES)
            raise ValueError(f"tiny has no piece {name!r} to write; there are {known}")
        written = Written(name, function)
        if grading.hand_in is not None:
            grading.hand_in(name, (written,))
        if written.is_empty():
            grading.outcomes.append(grading.Outcome(name, "not tried"))
            print(f"{name}: not written yet, so the course's own stands in.")
            return course_piece(name, function)
        complaint = judge(written)
        if complaint is None:
            grading.outcomes.append(grading.Outcome(name, "passed"))
            print(f"{name}: yours now. {save(written)}")
            return function
        grading.outcomes.append(grading.Outcome(name, "failed", complaint))
        print(f"{name}: not yet, so the course's own stands in. {complaint}")
        print(f'  hint("{name}") helps, and solution("{name}") shows one way.')
        return course_piece(name, function)

    return take


def course_source(name: str) -> str | None:
    """Returns the course's own text of a piece, or None if there is no such piece."""
    if name not in PIECES:
        return None
    module, _, path = name.partition(".")
    text = course_file(module).read_text(encoding="utf-8")
    node = found_in(text, path)
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


def course_file(module: str) -> Path:
    """Returns the file of `tiny` that ships."""
    for folder in solutions.FOLDERS:
        path = folder / "tiny" / f"{module}.py"
        if path.is_file():
            return path
    raise FileNotFoundError(f"tiny/{module}.py is missing from the course")


def course_piece(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the course's function, which sees the names of the learner's notebook."""
    source = course_source(name)
    assert source is not None
    names: dict[str, Any] = {}
    exec(compile(source, f"<the course's {name}>", "exec"), function.__globals__, names)
    made: Callable[..., Any] = names[name.rpartition(".")[2]]
    return made


def judge(written: Written) -> str | None:
    """Returns what the programs of the piece's chapter find wrong with it, or None."""
    home = str(own_folder().parent)
    try:
        with trial(written) as text, grading.time_limit(tiny_score.SECONDS):
            try:
                score = tiny_score.score_chapter(PIECES[written.name])
                score.failed += written_otherwise(written, score, home)
                if not score.failed:
                    checks = CHECKS.get(written.name, ())
                    return piece_checks.complaint(checks)
            except grading.TookTooLong:
                raise
            except (Exception, SystemExit) as error:
                where, shown = written.place(error, text)
                if where:
                    return grading.told(error, "It", where) + shown
                told = grading.told(error, f"tiny/{written.module}.py with it", "")
                return f"{told} (no line of yours ran then: see what yours returns)"
            where, shown = written.place(score.error, text)
    except grading.TookTooLong:
        return f"It ran for more than {tiny_score.SECONDS} seconds."
    except Refused as refused:
        return str(refused)
    right = f"{score.right} of {score.count} programs of chapter {score.chapter}"
    raised_there = f" It was raised{where}.{shown}" if where else ""
    gets = f"It gets {right} right."
    if score.count == 1:
        gets = f"The program of chapter {score.chapter} goes wrong."
    return f"{gets} First to fail: {score.failed[0]}.{raised_there}"


def written_otherwise(
    written: Written, score: tiny_score.ChapterScore, home: str
) -> list[str]:
    """The programs whose text this piece changes, where it should not.

    What the learner's other pieces, in `tiny` in the folder `home`, write in another
    way is not its fault.
    """
    if written.name in FREE or not score.otherwise:
        return []
    with tiny_score.read_anew(home):
        before = tiny_score.score_chapter(score.chapter).otherwise
    new = [line for line in score.otherwise if line not in before]
    return [f"{line} (right, but written otherwise)" for line in new]


def own_folder() -> Path:
    """Returns the folder of the `tiny` that is imported."""
    return Path(str(importlib.import_module("tiny").__file__)).resolve().parent


def is_yours(name: str) -> bool:
    """Whether a piece in the imported `tiny` is one that the learner has saved."""
    file = own_folder() / f"{name.partition('.')[0]}.py"
    mark = Written.mark(name)
    return file.is_file() and mark in file.read_text(encoding="utf-8").splitlines()


def whose(*names: str) -> str:
    """Returns a sentence on who wrote these pieces: the learner, or the course."""
    yours = [name for name in names if is_yours(name)]
    course = [name for name in names if name not in yours]
    parts = [
        f"{who}: {', '.join(found)}"
        for who, found in (("yours", yours), ("the course's", course))
        if found
    ]
    return "; ".join(parts)


@contextlib.contextmanager
def trial(written: Written) -> Iterator[str]:
    """Imports of `tiny` in the block find a copy of it that has the new piece.

    Yields the text of the module with the piece in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tiny"
        shutil.copytree(own_folder(), copy, ignore=shutil.ignore_patterns("__pyc*"))
        file = copy / f"{written.module}.py"
        text = written.put_into(file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        with tiny_score.read_anew(folder):
            yield text


def save(written: Written) -> str:
    """Writes a piece into the learner's file; returns a sentence on where it went.

    The module that is loaded gets it, too, and keeps its identity: what the notebook
    has imported and what it imports later belong together.
    """
    file = own_folder() / f"{written.module}.py"
    if file == course_file(written.module).resolve():
        return (
            "It is not saved: this is the course's own folder. "
            "`minijax lab` makes a copy to work in."
        )
    text = written.put_into(file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    written.put_into_module(importlib.import_module(f"tiny.{written.module}"))
    return f"Saved in tiny/{written.module}.py."
