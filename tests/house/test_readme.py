"""README's first program runs and prints what README says."""

import functools
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import count_lines

table = functools.cache(count_lines.table)
ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_first_program_prints_what_readme_says():
    program, *_ = blocks("python")
    expected, *_ = blocks("text")
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == expected
    assert len(program.strip().splitlines()) <= 20


def test_paths_and_targets_exist():
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"`make ([a-z-]+)`", text)
    paths = re.findall(r"`((?:minijax|notebooks|tests)/[\w/.]+)`", text)
    assert targets and paths
    for target in targets:
        assert f"\n{target}:" in makefile
    for path in paths:
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize(
    "part, counted",
    [
        ("the ten files", "weekend core"),
        ("`minijax/core/`, all of it", "core"),
        ("`minijax/`, the core included", "minijax"),
        ("`widgets/`, the views", "widgets"),
    ],
)
def test_the_sizes_are_those_that_the_counter_finds(part, counted):
    """Within four percent, so that a small change does not make README wrong."""
    text = (ROOT / "README.md").read_text()
    (size,) = re.findall(rf"^\| {re.escape(part)} \| about ([\d,]+) \|$", text, re.M)
    assert int(size.replace(",", "")) == pytest.approx(table()[counted], rel=0.04)


def test_contributing_shows_code_that_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    shown = re.findall(r"```python\n# (\S+)\n(.*?)```", text, re.DOTALL)
    assert len(shown) >= 5
    for path, code in shown:
        assert code in (ROOT / path).read_text(), f"{path} has changed:\n{code}"


def test_contributing_names_files_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:minijax|notebooks|tests)/[\w/.]+)`", text)
    assert len(paths) > 5
    for path in paths:
        if "NN_" not in path:
            assert (ROOT / path).exists(), path


def test_the_picture_is_the_view_of_today():
    place = ROOT / "book" / "readme_picture.py"
    made = runpy.run_path(str(place))["pictures"]()
    text = (ROOT / "README.md").read_text()
    for name, picture in made.items():
        committed = (ROOT / "book" / "_static" / name).read_text(encoding="utf-8")
        assert committed == picture, "run python book/readme_picture.py, and look"
        assert f"book/_static/{name}" in text
