"""The tools that read the whole tree: style, types, floors."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


def run_tool(module: str, *command: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed here; `make env` installs it")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "widgets")])
    answer = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=paths),
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_style():
    run_tool("ruff", "-m", "ruff", "check", ".")


def test_types():
    run_tool("mypy", "-m", "mypy")


def test_floors():
    program = "from importlinter.cli import lint_imports_command as c; c()"
    run_tool("importlinter", "-c", program, "--no-cache")


def test_the_floors_are_held(tmp_path):
    """A room that reaches up makes the contract fail: the linter does its work."""
    if importlib.util.find_spec("importlinter") is None:
        pytest.skip("importlinter is not installed here; `make env` installs it")
    rooms = ["minijax", "minijax/backend", "minijax/values", "minijax/support"]
    for name in (*rooms, "minijax_lab", "minijax_widgets"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "minijax/values/ref_avals.py").write_text("import jaxlib\n")
    upward = "from minijax.values import ref_avals\n"
    (tmp_path / "minijax/support/config.py").write_text(upward)
    (tmp_path / "minijax/cellar.py").write_text("import minijax_widgets\n")
    settings = (ROOT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(settings)
    program = "from importlinter.cli import lint_imports_command as c; c()"
    answer = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(tmp_path)),
    )
    assert answer.returncode == 1
    said = " ".join(answer.stdout.split())
    for contract in ("on its own floor", "knows no pictures", "import jaxlib"):
        assert f"{contract}" in said
    assert said.count("BROKEN") >= 3
    assert "Contracts: 2 kept, 3 broken" in said


def test_differences_of_a_later_jax_name_tests_that_are_there():
    listed = tomllib.loads((ROOT / "tests" / "later_jax.toml").read_text())
    for difference in listed["differences"]:
        for test in difference["tests"]:
            file, name = test.split("::")
            text = (ROOT / "tests" / file).read_text()
            assert f"def {name}(" in text or f"    {name}," in text, test
