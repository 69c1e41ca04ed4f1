"""`see.placement` of programs, JAX's and minijax's, against the compiled programs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=("jax", "minijax"))
def found(request):
    """What `placed_programs.py` found, in a process with eight devices."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/views/placed_programs.py"), request.param],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_results_and_collectives_are_those_of_the_compiled_program(found):
    for name, case in found.items():
        assert case["results"] == case["theirs"], name
        assert case["collectives"] == case["counted"], name


def test_each_step_of_shardy_has_a_frame(found):
    for name, case in found.items():
        assert case["frames"] == len(case["steps"]) + len(case["collectives"]) + 2, name
    steps = found["mlp"]["steps"]
    assert any("axis x: operand 0 of dot_general gives it" in step for step in steps)
    assert any("axis y: operand 1 of dot_general gives it" in step for step in steps)


def test_copies_that_nobody_asked_for_are_said(found):
    assert found["crossed"]["unasked"] and found["mlp"]["unasked"]
    assert found["asked"]["unasked"] == []
    # With data parallelism all devices have the parameters, and so their gradients.
    assert found["gradient"]["unasked"] == []
    assert found["gradient"]["collectives"] == ["all-reduce"]
    assert "that nobody asked for" in found["crossed"]["headline"]
    assert "Nobody asked for the 8 copies" in found["crossed"]["text"]


def test_what_xla_joins_stands_at_all_of_its_values(found):
    """Both gradients are sums over the batch, and XLA sends them together."""
    case = found["gradients"]
    assert case["collectives"] == ["all-reduce"]
    shapes = sorted(sorted(kind[4:-1].split(",")) for kind, _ in case["placed"])
    assert shapes == [["16", "32"], ["16", "8"]]
    sent = 4 * (32 * 16 + 16 * 8)
    told = f"all-reduce over x of 2 values, {sent:,} B from each device"
    assert [moved for _, moved in case["placed"]] == [told] * 2
