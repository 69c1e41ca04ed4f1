"""What is tried on each judge: right answers, wrong ones, and what each refusal says.

`python -m tests.notebooks.census` hands them all in and prints the table, in Markdown;
names after it are the items to show ("07", "07.2", "trace.bind"). test_census.py counts
without handing in. Every answer is one that a test hands in, too.
"""

import contextlib
import io
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minijax

sys.path.append(str(Path(__file__).resolve().parents[2] / "notebooks"))
EIGHT = "MINIJAX_TEST_ON_EIGHT_DEVICES" in os.environ
if EIGHT:
    minijax.config.update("jax_num_cpu_devices", 8)

from minijax_lab import (  # noqa: E402
    check,
    grading,
    kernel_puzzles,
    predict,
    puzzle,
    tiny_pieces,  # noqa: E402
)
from minijax_lab.piece_source import Written  # noqa: E402
from tests.notebooks import (  # noqa: E402
    test_exercises,
    test_judges_00_to_07,
    test_judges_08_to_20,
    test_judges_of_15,
    test_judges_of_21,
    test_judges_of_changed_pieces,
    test_judges_of_exercises,
    test_judges_of_lists,
    test_judges_of_pieces,
    test_judges_of_predictions,
    test_judges_of_programs,
    test_judges_of_puzzles,
    test_judges_of_traces,
    test_kernel_puzzles,
)

OF_ANSWERS = (
    test_judges_00_to_07,
    test_judges_08_to_20,
    test_judges_of_15,
    test_judges_of_21,
    test_judges_of_programs,
    test_judges_of_traces,
)


@dataclass
class Item:
    """An exercise, a prediction, a piece or a puzzle, and what is tried on it."""

    kind: str
    right: list[Any] = field(default_factory=list)
    wrong: list[Any] = field(default_factory=list)


def exercises(items: dict[str, Item]) -> None:
    """Adds the answers of exercises: a tuple of what is handed in."""
    for chapter in test_exercises.CHAPTERS:
        module = test_exercises.answers(chapter)
        for name in grading.chapter(chapter).EXERCISES:
            right, wrong = [module.SOLUTIONS[name]], [*module.WRONG[name]]
            items[name] = Item("exercise", right, wrong)
    for table in OF_ANSWERS:
        for case in table.ANSWERS.taken:
            items[case.values[0]].right.append(case.values[1])
        for case in table.ANSWERS.refused:
            items[case.values[0]].wrong.append(case.values[1])
    for name, made in test_judges_of_exercises.RIGHT:
        items[name].right.append(made)
    for name, made, _ in test_judges_of_exercises.WRONG:
        items[name].wrong.append(made)
    for name in test_judges_of_lists.LISTS:
        answer = test_judges_of_lists.right(name)
        ways = test_judges_of_lists.otherwise(answer).values()
        items[name].right += [(way,) for way in ways]
        mistakes = test_judges_of_lists.mistakes(answer).values()
        items[name].wrong += [(mistake,) for mistake in mistakes]


def pieces(items: dict[str, Item]) -> None:
    """Adds the answers of pieces: their text."""
    changed = test_judges_of_changed_pieces
    for name in tiny_pieces.PIECES:
        item = items[name] = Item("piece", [str(tiny_pieces.course_source(name))])
        item.right += test_judges_of_pieces.RIGHT.get(name, [])
        item.wrong += [text for text, _ in test_judges_of_pieces.WRONG.get(name, [])]
        for slip in changed.SAME.get(name, []):
            item.right.append(changed.changed(name, *slip).source)
        for slip in changed.SLIPS.get(name, []):
            item.wrong.append(changed.changed(name, *slip).source)


def puzzles(items: dict[str, Item]) -> None:
    """Adds the answers of kernel puzzles: a tuple of what is handed in."""
    others = test_judges_of_puzzles
    for name in kernel_puzzles.PUZZLES:
        item = items[name] = Item(
            "puzzle", [test_kernel_puzzles.SOLVED.SOLUTIONS[name]]
        )
        item.right += [(made,) for made in others.RIGHT.get(name, [])]
        item.wrong += test_kernel_puzzles.SOLVED.WRONG[name]
        item.wrong += [(made,) for made, _ in others.WRONG.get(name, [])]


def predictions(items: dict[str, Item]) -> None:
    """Adds the answers to questions."""
    for name, question in test_judges_of_predictions.questions().items():
        right = test_judges_of_predictions.written(question)
        items[name] = Item("prediction", right, test_judges_of_predictions.missed(name))


def census() -> dict[str, Item]:
    """Returns every item of the course by its name, with the answers tried on it."""
    items: dict[str, Item] = {}
    for add in (predictions, exercises, puzzles, pieces):
        add(items)
    return dict(sorted(items.items()))


def said(call: Callable[..., Any], *args: Any) -> str:
    """Returns what a call prints; a judge may take its time on a machine in use."""
    grading.SECONDS = 60
    with contextlib.redirect_stdout(io.StringIO()) as out:
        call(*args)
    return out.getvalue()


def refusal(name: str, kind: str, answer: Any) -> str | None:
    """Hands in an answer; returns what is said against it, or None if it is taken."""
    if kind == "piece":
        return tiny_pieces.judge(Written(name, answer.strip()))
    if kind == "prediction":
        told = said(predict, name, answer)
        return None if told.startswith(f"{name}: yes. ") else told.partition("; ")[2]
    made = answer() if callable(answer) else answer
    grading.failures.clear()
    kernel_puzzles.failures.clear()
    told = said(puzzle if kind == "puzzle" else check, name, *made)
    if told.startswith(f"{name}: solved."):
        return None
    return told.partition("not yet. ")[2].partition("\n  hint")[0]


def rows(items: dict[str, Item]) -> Iterator[str]:
    """Yields the table's lines; an answer that is judged wrongly is marked."""
    for name, item in items.items():
        for number, answer in enumerate(item.right):
            complaint = refusal(name, item.kind, answer)
            if complaint is not None:
                yield f"REFUSED {name}: right answer {number}: {complaint}"
        told: dict[str, int] = defaultdict(int)
        for number, answer in enumerate(item.wrong):
            complaint = refusal(name, item.kind, answer)
            if complaint is None:
                yield f"TAKEN {name}: wrong answer {number}"
            told[" ".join((complaint or "").replace("|", "/").split())] += 1
        sentences = "<br>".join(
            f"{text} ({n} times)" if n > 1 else text for text, n in told.items()
        )
        yield f"| {name} | {len(item.right)} | {len(item.wrong)} | {sentences} |"


def main(wanted: list[str]) -> None:
    """Prints the table of the items whose names begin so, or of all."""
    items = census()
    here = {
        name: item
        for name, item in items.items()
        if (item.kind == "exercise" and name[:2] in test_exercises.ON_EIGHT) == EIGHT
        and (not wanted or any(name.startswith(one) for one in wanted))
    }
    if not EIGHT:
        print("| item | right answers | wrong answers | what the refusals say |")
        print("|---|---|---|---|")
    for row in rows(here):
        print(row, flush=True)
    if not EIGHT:
        command = [sys.executable, "-m", "tests.notebooks.census", *wanted]
        environment = {**os.environ, "MINIJAX_TEST_ON_EIGHT_DEVICES": "1"}
        subprocess.run(command, env=environment, check=True)
        right, wrong = (
            sum(len(getattr(item, kind)) for item in items.values())
            for kind in ("right", "wrong")
        )
        print(f"\n{len(items)} items, {right} right answers, {wrong} wrong answers")


if __name__ == "__main__":
    main(sys.argv[1:])
