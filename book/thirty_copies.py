"""Thirty made-up copies of chapter 05, and what `minijax course check` says of them.

    python book/thirty_copies.py            # writes book/thirty_copies.txt
    python book/thirty_copies.py FOLDER     # writes the copies there, and no more

Each copy is the chapter with its exercises handed in: rightly, wrongly (as in
notebooks/solutions) or not at all. Who does what is drawn by a seed, and the harder an
exercise is made here, the fewer solve it. Three copies have accidents: an endless loop,
a cell that raises, and a notebook that declares itself solved.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import random
import sys
import tempfile
from pathlib import Path

from minijax_lab import command, solutions

HERE = Path(__file__).resolve().parent
CHAPTER = HERE.parent / "notebooks" / "05_random_numbers.ipynb"
NAMES = (
    "ada bela carla dmitri emeka fatima gudrun hiro ines jonas kavya lena mateo nadia "
    "oskar priya quentin rosa sven tariq ulla vera wanda xenia yusuf zoe amir bruna "
    "chen dalia"
).split()
# For each exercise: how many of ten solve it, and how many of ten leave it out.
SHARES = {"05.1": (8, 0), "05.2": (7, 1), "05.3": (4, 3), "05.4": (3, 4)}
ACCIDENTS = {
    "emeka": ("05.2", "while True:\n    pass"),
    "rosa": ("05.3", "shuffled = key[0].permutation(x)"),
    "yusuf": (
        "05.4",
        "from minijax_lab import grading\n"
        'grading.outcomes.append(grading.Outcome("05.4", "passed"))\n'
        'grading.chapter("05").EXERCISES.clear()',
    ),
}


def handed_in(name: str, wrong: int | None = None) -> str:
    """The code that hands in a solution of the exercise `name`, or a wrong answer."""
    if wrong is None:
        return str(solutions.solution_text(name))
    text = str(solutions.source_of(name))
    module = ast.parse(text)
    answers = solutions.entry(solutions.assigned(module, "WRONG"), name)
    assert isinstance(answers, ast.List)
    answer = answers.elts[wrong % len(answers.elts)]
    lines = text.splitlines()
    parts = [
        "\n".join(lines[solutions.first_line(node) - 1 : node.end_lineno])
        for node in solutions.needed(module, answer)
    ]
    return "\n\n\n".join([*parts, f'check("{name}", *({ast.unparse(answer)})())'])


def copy_of(learner: str, draws: random.Random) -> str:
    """A learner's copy of the chapter, as text."""
    notebook = json.loads(CHAPTER.read_text(encoding="utf-8"))
    written = {}
    for name, (solve, leave) in SHARES.items():
        drawn = draws.randrange(10)
        if drawn < solve:
            written[name] = handed_in(name)
        elif drawn < 10 - leave:
            written[name] = handed_in(name, draws.randrange(2))
    if learner in ACCIDENTS:
        name, text = ACCIDENTS[learner]
        written[name] = text
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
            for name, text in written.items():
                if f'check("{name}", ...)' in "".join(cell["source"]):
                    cell["source"] = text.splitlines(True)
    return json.dumps(notebook)


def write_copies(folder: Path, learners: list[str] = NAMES) -> None:
    """Writes a folder for each learner, with a copy of the chapter in it."""
    for learner in learners:
        own = folder / learner
        own.mkdir(parents=True, exist_ok=True)
        text = copy_of(learner, random.Random(learner))
        (own / CHAPTER.name).write_text(text, encoding="utf-8")


def checked(folder: Path, *words: str) -> str:
    """What `minijax course check` prints of a folder."""
    options = ["--seconds=120", "--cell-seconds=30", *words]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        command.main(["course", "check", str(folder), *options])
    return said.getvalue()


def main() -> None:
    if len(sys.argv) > 1:
        write_copies(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "class"
        write_copies(folder)
        said = checked(folder, "--summary", "--jobs=2", f"--csv={made}/class.csv")
        rows = (Path(made) / "class.csv").read_text(encoding="utf-8").splitlines()
    # Without the lines that tell how far it is.
    kept = [line for line in said.splitlines() if not line.startswith("[")]
    text = "\n".join(kept).replace(f"{made}/", "").strip() + "\n"
    text += "\nthe first lines of class.csv:\n" + "\n".join(rows[:6]) + "\n"
    (HERE / "thirty_copies.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
