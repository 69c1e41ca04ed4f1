"""Run Optax's own tests, which are in its wheel, on jax and on minijax.

    python -m tests.as_jax.run_optax_tests FOLDER [FILE ...]

FOLDER is where the wheels are, or are installed from PyPI. FILE is the name of one file
of tests, such as `alias_test.py`; without it all are run, one after another, and what
is found is written to book/libraries.md. Prints how many tests pass on jax and on
minijax, each test that ends otherwise on minijax, and those that fail on jax.
"""

import datetime
import os
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from tests.as_jax import make_libraries_page, wheels

WHEELS = [*dict.fromkeys([*wheels.NEEDS["optax"], *wheels.FLAX])]
ENDS = ("passed", "failed", "skipped")


def outcomes(test: Path, minijax: bool, folder: Path) -> dict[str, str]:
    """Of each test of a file: "passed", "failed" or "skipped"."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", *(["minijax.as_jax", "-m"] if minijax else [])]
    command += ["pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"--rootdir={folder}", f"--junit-xml={report}", str(test)]
    path = os.pathsep.join([str(folder), str(wheels.ROOT)])
    own = ("XLA_", "JAX_", "MINIJAX_")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**plain, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    if not report.exists():
        raise SystemExit(f"{test.name} wrote no report:\n{done.stdout[-2000:]}")
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        end = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = end
    return found


def compare(theirs: dict[str, str], ours: dict[str, str]) -> list[str]:
    """A line for each test that ends otherwise on minijax than on jax."""
    return [
        f"{name}: {theirs.get(name, 'not there')} on jax, "
        f"{ours.get(name, 'not there')} on minijax"
        for name in sorted({*theirs, *ours})
        if theirs.get(name) != ours.get(name)
    ]


def told(outcomes: dict[str, str]) -> str:
    """How many tests passed, failed and were skipped."""
    counts = Counter(outcomes.values())
    return ", ".join(f"{counts[end]:,} {end}" for end in ENDS if counts[end])


def paragraph(theirs: dict[str, str], ours: dict[str, str], version: str) -> str:
    """What book/libraries.md says of a run of all tests."""
    import jax

    different = compare(theirs, ours)
    ends = "Each test ended on minijax as on jax."
    if different:
        ends = f"{len(different)} ended otherwise: {'; '.join(different)}."
    text = (
        f"Optax's own tests, of its wheel {version}, were run on "
        f"{datetime.date.today()} by `tests/as_jax/run_optax_tests.py`. On jax "
        f"{jax.__version__}: {told(theirs)}. On minijax: {told(ours)}. {ends}"
    )
    return textwrap.fill(text, 88, break_long_words=False, break_on_hyphens=False)


def main() -> int:
    folder, *names = sys.argv[1:]
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=True)
    if complaint := wheels.install(WHEELS, place):
        raise SystemExit(f"the wheels cannot be installed: {complaint}")
    files = sorted((place / "optax").rglob("*_test.py"))
    if unknown := {*names} - {file.name for file in files}:
        raise SystemExit(f"Optax has no file of tests {', '.join(sorted(unknown))}")
    theirs: dict[str, str] = {}
    ours: dict[str, str] = {}
    for file in files:
        if names and file.name not in names:
            continue
        one, other = (outcomes(file, minijax, place) for minijax in (False, True))
        print(f"{file.name}: {told(one)} on jax; {told(other)} on minijax")
        print(
            "".join(f"    {line}\n" for line in compare(one, other)), end="", flush=True
        )
        theirs.update(one)
        ours.update(other)
    text = paragraph(theirs, ours, wheels.version("optax", place))
    print(f"\n{text}")
    for name in sorted(name for name in theirs if theirs[name] == "failed"):
        print(f"    {name} fails on jax")
    if not names:
        make_libraries_page.write_optax(text)
    return 1 if compare(theirs, ours) else 0


if __name__ == "__main__":
    sys.exit(main())
