"""The core is closed: its files alone, in a folder of their own, do all of their work.

The folder `minijax/core/` is copied to a place where nothing else of minijax is, under
another name, and run there by a Python that sees jaxlib, NumPy and ml_dtypes only.
`weekend_core` in pyproject.toml lists the files that one reads.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest

import minijax
import minijax.lax
from tests.closed_core import make, programs
from tests.golden.normalise import normalise
from tests.house.count_lines import count_code

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["minijax"]
CORE = SETTINGS["weekend_core"]
FOLDER = ROOT / "minijax" / "core"
CLOSURE = sorted(path.name for path in FOLDER.iterdir() if path.is_file())
COPY = "copied_core"
EXPECTED = json.loads(make.EXPECTED.read_text())

MOST_LINES_TO_READ = 3_500
MOST_LINES = 6_300
MOST_FILES = 30
MOST_HOOKS = 12
LEAST_EXECUTED = 0.80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The core's folder alone, under another name."""
    folder = tmp_path_factory.mktemp("alone")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(FOLDER, folder / COPY, ignore=ignore)
    shutil.copy(HERE / "programs.py", folder)
    return folder


@pytest.fixture(scope="module")
def told(folder):
    answer = subprocess.run(
        [sys.executable, "-I", str(HERE / "alone.py"), str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert answer.returncode == 0, answer.stderr[-6000:]
    return json.loads(answer.stdout)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_prints_as_jax(told, name):
    wanted = EXPECTED["programs"][name]["text"]
    assert normalise(told["programs"][name]["text"]) == normalise(wanted)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_computes_as_jax(told, name):
    ours, theirs = told["programs"][name], EXPECTED["programs"][name]["results"]
    assert len(ours["results"]) == len(ours["eager"]) == len(theirs)
    for how in ("results", "eager"):
        for mine, wanted in zip(ours[how], theirs):
            if how == "results":
                assert mine[:3] == wanted[:3]
            np.testing.assert_allclose(mine[3], wanted[3], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", programs.WRONG)
def test_errors_are_those_of_the_whole(told, name):
    kind, text = told["wrong"][name]
    assert kind == EXPECTED["wrong"][name][0]
    assert make.without_places(text) == EXPECTED["wrong"][name][1]


def test_nothing_else_is_loaded(told, folder):
    files = {f"{COPY}.{Path(name).stem}" for name in CLOSURE}
    assert set(told["modules"]) == files - {f"{COPY}.__init__"} | {COPY}
    assert {"jaxlib", "numpy", "ml_dtypes"} <= set(told["others"])
    assert not {"jax", "scipy", "minijax_lab"} & set(told["others"])


def test_every_hook_was_at_its_default(told):
    attached = [name for name, at_default in told["hooks"].items() if not at_default]
    # Eager operations are computed through XLA by dispatch.py, which is in the closure.
    assert attached == ["run_eagerly"]
    assert len(told["hooks"]) <= MOST_HOOKS


def statements(path: Path) -> list[set[int]]:
    """The lines of each simple statement and of each head of a compound one."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.stmt):
            continue
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text:
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno
        first = min([node.lineno, *(d.lineno for d in decorators(node))])
        found.append(set(range(first, max(last, node.lineno) + 1)))
    return found


def decorators(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def test_most_of_it_was_needed(told, folder, record_property):
    """A line counts as executed when its statement was."""
    total = done = 0
    rest = []
    for name in CLOSURE:
        ran = set(told["lines"].get(str(folder / COPY / name), ()))
        parts = statements(FOLDER / name)
        covered = [part for part in parts if part & ran]
        every = set().union(*parts) if parts else set()
        reached = set().union(*covered) if covered else set()
        total += len(every)
        done += len(reached & every)
        rest.append((len(every - reached), name))
    worst = ", ".join(f"{name}: {n}" for n, name in sorted(rest, reverse=True)[:8])
    record_property("executed", f"{done} of {total}")
    assert done / total >= LEAST_EXECUTED, f"{done} of {total}; not run: {worst}"


def test_it_is_small_enough():
    assert len(CLOSURE) <= MOST_FILES
    assert {Path(name).name for name in CORE} <= set(CLOSURE)
    assert sum(count_code((ROOT / name).read_text()) for name in CORE) <= (
        MOST_LINES_TO_READ
    )
    total = sum(count_code((FOLDER / name).read_text()) for name in CLOSURE)
    assert total <= MOST_LINES, total


def test_no_import_is_hidden():
    """The core imports its own files by one dot, also inside of functions."""
    hidden = re.compile(r"\bimportlib\b|\b__import__\b|\bexec\(|\bsys\.modules\b")
    assert [n for n in CLOSURE if hidden.search((FOLDER / n).read_text())] == []
    others = {"jaxlib", "numpy", "ml_dtypes"} | set(sys.stdlib_module_names)
    for name in CLOSURE:
        for level, module in imported(FOLDER / name):
            if level == 0:
                assert module.split(".")[0] in others, f"{name} imports {module}"
            else:
                known = not module or f"{module}.py" in CLOSURE
                assert level == 1 and known, f"{name} imports {'.' * level}{module}"


def imported(path: Path) -> set[tuple[int, str]]:
    """What a file imports, wherever in it: (dots, module); not for type checkers."""
    found = set()
    tree = ast.parse(path.read_text())
    for_checkers = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_checkers:
            continue
        if isinstance(node, ast.ImportFrom):
            found.add((node.level, node.module or ""))
        elif isinstance(node, ast.Import):
            found |= {(0, alias.name) for alias in node.names}
    return found


@pytest.mark.skipif(
    jax.__version__ != EXPECTED["jax"], reason="the corpus belongs to another jax"
)
def test_the_corpus_is_jaxs():
    """expected.json is what jax gives today; errors are those of minijax as a whole."""
    assert make.of_jax().keys() == EXPECTED["programs"].keys()
    for name, told in make.of_jax().items():
        assert told["text"] == EXPECTED["programs"][name]["text"]
    theirs = make.of_wrong(jax)
    for name, (kind, text) in make.of_wrong(minijax).items():
        assert kind == theirs[name][0] != "nothing"
        assert text == EXPECTED["wrong"][name][1]
