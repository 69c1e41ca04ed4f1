"""The exercises that need eight devices, in a process that has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.turns(3)
def test_exercises_on_eight_devices():
    names = ("exercises", "judges_of_exercises", "judges_of_programs")
    tests = [HERE / f"test_{name}.py" for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    command += ["-k", "test_exercise or test_every_exercise", *map(str, tests)]
    done = subprocess.run(
        command,
        cwd=HERE.parents[1],
        env={**os.environ, "MINIJAX_TEST_ON_EIGHT_DEVICES": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
