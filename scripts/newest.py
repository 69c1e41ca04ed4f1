"""Prints what another jaxlib breaks: installs it, runs the tests, groups what fails.

    python scripts/newest.py --python python3.13
    python scripts/newest.py --python python3.13 --jaxlib 0.12.0.1 tests/programs

The environment, `build/newest`, holds the newest jaxlib that `pyproject.toml` allows,
or the one that is named, with the jax of the same version as the oracle. Failures are
grouped by their message. What `tests/later_jax.toml` says that this jax does otherwise
is listed before them. Ends with status 1 if a test failed.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build" / "newest"
REPORT = ROOT / "build" / "newest.xml"
SHOWN = 4


def install(python: str, jaxlib: str | None) -> Path:
    """Makes or refreshes the environment; returns its Python."""
    command = ["sh", "scripts/environment.sh", str(ENVIRONMENT), "lab,test"]
    environment = os.environ | {"PYTHON": python}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    inside = ENVIRONMENT / "bin" / "python"
    if jaxlib:
        wanted = [f"jaxlib=={jaxlib}", f"jax=={jaxlib}"]
        subprocess.run([inside, "-m", "pip", "install", "-q", *wanted], check=True)
    return inside


def run(python: Path, tests: list[str], jobs: int) -> None:
    """Runs tests with pytest, which writes its report as XML."""
    command = [python, "-m", "pytest", "-q", "--tb=line", f"--junit-xml={REPORT}"]
    command += ["-n", str(jobs), "--dist", "loadscope"] if jobs > 1 else []
    subprocess.run([*command, *tests], cwd=ROOT)


def cause(message: str) -> str:
    """The first line of a failure without numbers, addresses and names of variables."""
    line = next(iter(message.strip().splitlines()), "no message")
    return re.sub(r"0x[0-9a-f]+|[-+]?\d[\d.e+-]*", "N", line)[:160]


def outcomes(report: Path) -> tuple[dict[str, list[str]], dict[str, list[str]], int]:
    """(failures by cause, known differences by reason, the number that passed)."""
    failed: dict[str, list[str]] = collections.defaultdict(list)
    known: dict[str, list[str]] = collections.defaultdict(list)
    passed = 0
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        result = next((child for child in case if child.tag != "properties"), None)
        message = "" if result is None else result.get("message", "")
        if result is None:
            passed += 1
        elif result.tag in ("failure", "error"):
            failed[cause(message)].append(name)
        elif result.get("type") == "pytest.xfail":
            known[message].append(name)
    return failed, known, passed


def show(title: str, groups: dict[str, list[str]]) -> None:
    """Prints groups of tests, the largest first, each with its first few names."""
    print(f"\n{title}: {sum(map(len, groups.values()))} in {len(groups)} groups")
    for reason, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(names):5}  {reason}")
        for name in names[:SHOWN]:
            print(f"         {name}")
        if len(names) > SHOWN:
            print(f"         ... {len(names) - SHOWN} more")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jaxlib", help="a version; the newest allowed without it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("tests", nargs="*", default=["tests"])
    options = parser.parse_args()
    python = install(options.python, options.jaxlib)
    versions = "import jax, jaxlib; print(jax.__version__, jaxlib.__version__)"
    subprocess.run([python, "-c", versions], check=True)
    run(python, options.tests, options.jobs)
    failed, known, passed = outcomes(REPORT)
    show("known differences", known)
    show("broken", failed)
    print(f"\n{passed} passed, {sum(map(len, failed.values()))} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
