"""The line counter counts right, and the ceilings of DESIGN.md hold."""

import importlib.util
from pathlib import Path

HERE = Path(__file__).resolve().parent

specification = importlib.util.spec_from_file_location(
    "count_lines", HERE / "count_lines.py"
)
assert specification is not None and specification.loader is not None
count_lines = importlib.util.module_from_spec(specification)
specification.loader.exec_module(count_lines)

EXAMPLE = '''"""A module's docstring,
of two lines."""

import os  # a comment behind code does not hide it


# a comment alone
class A:
    """Documented."""

    text = """three
    lines of
    data"""


def f(
    x,
):
    \'\'\'Documented, too.\'\'\'
    return x
'''


def test_counts_code_only():
    # import, class, text (3), def with its parameter (3), return
    assert count_lines.count_code(EXAMPLE) == 9


def test_ceilings():
    assert count_lines.complaints() == []


def test_each_room_has_one_floor():
    floors = count_lines.rooms()
    assert floors["core"] == "core"
    assert floors["backend"] == "backend"
    assert floors["numpy"] == "what users call"
