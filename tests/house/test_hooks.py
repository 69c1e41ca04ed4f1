"""The table of hooks in CONTRIBUTING.md is that of the hooks in the core."""

import re
from pathlib import Path

import minijax  # noqa: F401  attaches all of them
from minijax.core.events import hooks

ROOT = Path(__file__).resolve().parents[2]


def file_of(function) -> str:
    return function.__module__.replace(".", "/") + ".py"


def test_the_table_is_that_of_the_core():
    told = re.findall(
        r"^\| `(\w+)` \| `([\w/]+\.py)` \| .* \| `([\w/]+\.py)`.* \|$",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE,
    )
    there = [
        (name, file_of(hook.default), file_of(hook.run))
        for name, hook in hooks.items()
        if file_of(hook.default).startswith("minijax/core/")
    ]
    assert sorted((name, f"minijax/{a}", f"minijax/{b}") for name, a, b in told) == (
        sorted(there)
    )
    assert len(there) <= 12


def test_each_hook_says_what_it_is_for_and_has_a_default():
    for name, hook in hooks.items():
        assert hook.__doc__, name
        assert callable(hook.default) and hook.run is not hook.default, name
