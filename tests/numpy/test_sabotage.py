"""A rule that ignores one of its parameters turns the tests of its family red."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.numpy.sabotaged import FAULTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "primitives",
    [["sort"], pytest.param([], marks=pytest.mark.slow)],
    ids=["sort", "all"],
)
def test_an_ignored_parameter_turns_the_tests_red(primitives):
    command = [sys.executable, "-m", "tests.numpy.sabotaged", *primitives]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    counts = json.loads(ran.stdout)
    green = [told for told, count in counts.items() if not count["failed"]]
    assert len(counts) == (len(primitives) or len(FAULTS))
    assert not green, f"faults that no test notices: {green}"
