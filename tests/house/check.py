"""The quick check: what reads the whole tree, and the tests nearest to what changed.

    python tests/house/check.py [--list]

Style, types, floors and line counts come first, all at once; then the golden tests,
and test files by their nearness to the files that differ from the main branch or are
not committed: those that changed, those of the same name, those that import a changed
file, those of its room. What two minutes are too short for is skipped by name.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Of the two minutes, the part in which a test may start.
SECONDS = 100

# The tests of each room: of the prefixes of a path, the longest counts.
ROOMS = {
    "minijax/backend/": "tests/backend",
    "minijax/support/": "tests/vocabulary",
    "minijax/values/": "tests/vocabulary tests/rules/test_replacement.py",
    "minijax/primitives/": "tests/rules tests/primitives",
    "minijax/primitives/random/": "tests/random",
    "minijax/primitives/parallel/": "tests/oracle/test_collectives.py",
    "minijax/transforms/": (
        "tests/oracle/test_found.py tests/rules/test_derivatives.py "
        "tests/rules/test_batching.py tests/oracle/test_derivatives.py"
    ),
    "minijax/compile/": (
        "tests/oracle/test_found.py tests/programs/test_stages.py "
        "tests/programs/test_device_put.py tests/stress"
    ),
    "minijax/programs/": "tests/programs",
    "minijax/programs/control_flow/": "tests/programs/test_control_flow.py",
    "minijax/programs/debugging/": (
        "tests/programs/test_leaks.py tests/programs/test_debug_nans.py "
        "tests/programs/test_key_reuse.py tests/programs/test_breakpoint.py"
    ),
    "minijax/experimental/": "tests/programs/test_checkify.py",
    "minijax/numpy/": "tests/numpy",
    "minijax/nn/": "tests/nn",
    "minijax/random/": "tests/random",
    "minijax/extend/": "tests/extend",
    "minijax/": "tests/oracle/test_public_names.py tests/oracle/test_found.py",
    "minijax_lab/": "tests/notebooks tests/views tests/house/test_command.py",
    "widgets/": "tests/views",
    "notebooks/": "tests/notebooks",
    "book/": "tests/views/test_book.py",
    "README.md": "tests/house/test_readme.py",
    "": "tests/house/test_house.py",
}
GOLDEN = "tests/golden"
LINT = {
    "style": ["-m", "ruff", "check", "."],
    "types": ["-m", "mypy"],
    "floors": [
        "-c",
        "from importlinter.cli import lint_imports_command as command; command()",
    ],
    "line counts": ["tests/house/count_lines.py"],
}


def git(*words: str) -> list[str]:
    """The lines that git prints; none where it fails."""
    answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.splitlines() if answer.returncode == 0 else []


def changed_files() -> list[str]:
    """Paths that differ from where this branch left the main one, or are new."""
    base = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    changed = git("diff", "--name-only", *(base or ["HEAD"]))
    changed += git("ls-files", "--others", "--exclude-standard")
    return sorted({path for path in changed if (ROOT / path).is_file()})


def imported(path: Path) -> set[str]:
    """The modules that a file names in its imports, with the names taken from them."""
    found: set[str] = set()
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def room_of(path: str) -> str:
    """The tests of the room in which a file stands."""
    return ROOMS[max((room for room in ROOMS if path.startswith(room)), key=len)]


def nearest(changed: list[str]) -> list[str]:
    """Test files and folders, the nearest to the changed files first."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    imports = {path: imported(path) for path in tests}
    steps: list[list[str]] = [[], [], [], []]
    for path in changed:
        stem = Path(path).stem
        if path.startswith("tests/"):
            if stem.startswith("test_"):
                steps[0].append(path)
                continue
        elif path.endswith(".ipynb"):
            steps[0].append(path)
        else:
            same = re.compile(rf"test_(?:\w+_)?{re.escape(stem)}(?:_view)?\.py")
            steps[1] += [_name(test) for test in tests if same.fullmatch(test.name)]
            steps[3] += room_of(path).split()
        if path.endswith(".py"):
            module = (
                path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            )
            module = module.removeprefix("widgets.")
            steps[2] += [_name(test) for test in tests if module in imports[test]]
    return [GOLDEN, *dict.fromkeys(path for step in steps for path in step)]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lint() -> bool:
    """Runs what reads the whole tree, all at once; returns whether all is well."""
    started = {
        name: subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, command in LINT.items()
    }
    well = True
    for name, process in started.items():
        said, _ = process.communicate()
        print(f"{name}: {'in order' if process.returncode == 0 else 'NOT in order'}")
        if process.returncode != 0:
            well = False
            print(said)
    return well


def main() -> int:
    """Checks; returns the exit status."""
    end = time.time() + SECONDS
    changed = changed_files()
    paths = nearest(changed)
    print(f"{len(changed)} changed files; their tests, the nearest first:")
    print(*(f"  {path}" for path in paths), sep="\n", flush=True)
    if "--list" in sys.argv:
        return 0
    well = lint()
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-n", "2"]
    command += ["--dist", "loadscope", "--no-loadscope-reorder", "--maxfail", "10"]
    if any(path.endswith(".ipynb") for path in paths):
        command += ["--nbval", "--nbval-current-env"]
        command += ["--nbval-sanitize-with", "tests/notebooks/sanitize.cfg"]
    environment = {**os.environ, "MINIJAX_TEST_UNTIL": str(end)}
    answer = subprocess.run([*command, *paths], cwd=ROOT, env=environment)
    return 0 if well and answer.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
