"""Write book/libraries.md: libraries for JAX, run unmodified on minijax.

    python -m tests.as_jax.make_libraries_page FOLDER [LIBRARY ...]

FOLDER is where their wheels are, or are installed. Each program of `libraries/` runs
on jax and on minijax; a row says whether they print the same, to the last digit. Rows
of libraries that are not named stay as they are, and so does what the page says of
Optax's own tests, which `run_optax_tests.py` writes.
"""

import re
import sys
from pathlib import Path

from tests.as_jax import wheels

PAGE = wheels.ROOT / "book" / "libraries.md"
HEAD = """# Libraries on minijax

Made by `tests/as_jax/make_libraries_page.py`; `tests/as_jax/test_libraries.py` runs the
same programs. Each library is its wheel from PyPI, unchanged; its program in
`tests/as_jax/libraries/` runs by `python program.py` on jax {jax}, and by
`python -m minijax.as_jax program.py`. *The same* means that both print the same text,
with all digits.

{optax}

| library | version | what its program does | lines | on minijax |
|---|---|---|---:|---|
"""
OPTAX = re.compile(r"^Optax's own tests.*?(?=\n\n)", re.M | re.S)
ROW = re.compile(r"^\| `(\w+)` \|.*$", re.M)


def write_optax(text: str) -> None:
    """Put what `run_optax_tests.py` found into the page, in place of what it says."""
    PAGE.write_text(OPTAX.sub(lambda _: text, PAGE.read_text()))


def outcome(ours, theirs) -> str:
    """What a program did on minijax, in words for the table."""
    if theirs.returncode:
        return f"stops on jax too: `{last_line(theirs.stderr)}`"
    if ours.returncode:
        return f"stops: `{last_line(ours.stderr)}`"
    if ours.stdout == theirs.stdout:
        return "the same"
    pairs = zip(ours.stdout.splitlines(), theirs.stdout.splitlines())
    return f"{sum(a != b for a, b in pairs)} lines differ"


def last_line(text: str) -> str:
    """The last line of an error that names an exception, short, without paths."""
    lines = [line for line in text.splitlines() if re.match(r"[\w.]+(Error|Exc)", line)]
    line = (lines or text.strip().splitlines() or ["no message"])[-1]
    return re.sub(r"\S*/(\S+)", r"\1", line).replace("|", r"\|")[:150]


def row(name: str, folder: Path) -> str:
    """The line of a library, after its program ran twice."""
    program = wheels.PROGRAMS / f"use_{name}.py"
    doc = program.read_text().split('"""')[1]
    says = " ".join(doc.split(":", 1)[-1].split()).rstrip(".")
    complaint = wheels.install(wheels.NEEDS[name], folder)
    version = wheels.version(wheels.NEEDS[name][0], folder)
    if complaint:
        return f"| `{name}` | {version} | {says} | | not installed: {complaint} |"
    theirs, ours = (wheels.run(program, mini, folder) for mini in (False, True))
    count = len(theirs.stdout.splitlines())
    return f"| `{name}` | {version} | {says} | {count} | {outcome(ours, theirs)} |"


def main() -> int:
    import jax

    folder, *names = sys.argv[1:]
    text = PAGE.read_text() if PAGE.exists() else ""
    optax = OPTAX.search(text)
    rows = {match[1]: match[0] for match in ROW.finditer(text)}
    for name in names or wheels.NEEDS:
        rows[name] = row(name, Path(folder))
        print(rows[name], flush=True)
        known = [rows[each] for each in wheels.NEEDS if each in rows]
        head = HEAD.format(jax=jax.__version__, optax=optax[0] if optax else "")
        PAGE.write_text(head + "\n".join(known) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
