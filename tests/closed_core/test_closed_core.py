"""The core is closed: its files alone, in a folder of their own, do all of their work.

`[tool.minijax]` in pyproject.toml has two lists: `weekend_core` is what one reads,
`weekend_closure` is all that is loaded with it. The files of the second are copied to a
folder where nothing else of minijax is, and run there by a Python that sees jaxlib,
NumPy and ml_dtypes only.
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

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["minijax"]
CORE, CLOSURE = SETTINGS["weekend_core"], SETTINGS["weekend_closure"]
EXPECTED = json.loads(make.EXPECTED.read_text())

MOST_LINES_TO_READ = 3_500
MOST_LINES = 6_500
MOST_FILES = 30
MOST_HOOKS = 12
LEAST_EXECUTED = 0.80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the closure alone, under empty `__init__` files."""
    folder = tmp_path_factory.mktemp("alone")
    for name in CLOSURE:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
        for parent in target.relative_to(folder).parents:
            if parent != Path("."):
                (folder / parent / "__init__.py").write_text("")
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
    allowed = {"minijax"}
    for name in CLOSURE:
        parts = Path(name).with_suffix("").parts
        allowed |= {".".join(parts[: end + 1]) for end in range(len(parts))}
    assert set(told["modules"]) == allowed
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
        ran = set(told["lines"].get(str(folder / name), ()))
        parts = statements(folder / name)
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
    assert len(CLOSURE) <= MOST_FILES and set(CORE) <= set(CLOSURE)
    assert sum(count_code((ROOT / name).read_text()) for name in CORE) <= (
        MOST_LINES_TO_READ
    )
    total = sum(count_code((ROOT / name).read_text()) for name in CLOSURE)
    assert total <= MOST_LINES, total


def test_no_import_is_hidden():
    """Nothing is imported but by `import`; also inside of functions (see above)."""
    hidden = re.compile(r"\bimportlib\b|\b__import__\b|\bexec\(|\bsys\.modules\b")
    assert [n for n in CLOSURE if hidden.search((ROOT / n).read_text())] == []
    allowed = {n.removesuffix(".py").replace("/", ".") for n in CLOSURE}
    for name in CLOSURE:
        for module in imported(ROOT / name):
            assert module in allowed, f"{name} imports {module}"


def imported(path: Path) -> set[str]:
    """The modules of minijax that a file imports, wherever in it."""
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
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] == "minijax":
                for alias in node.names:
                    full = f"{node.module}.{alias.name}".replace(".", "/")
                    is_file = (ROOT / f"{full}.py").exists()
                    found.add(full.replace("/", ".") if is_file else node.module)
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "minijax"}
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
