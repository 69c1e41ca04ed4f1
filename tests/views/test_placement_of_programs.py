"""`see.placement` of programs, JAX's and minijax's, against the compiled programs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import placed_subjects as placed
from minijax_widgets.placement_scene import MIDDLE

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


def test_the_collective_of_a_loop_stands_at_the_loop(found):
    """The sum over rows is in the loop's body; the sum after it is another line's."""
    case = found["looped"]
    ((name, moved),) = case["placed"]
    assert name == "f32[8]" and "16 times" in moved
    rows = case["text"].splitlines()
    number = next(n for n, row in enumerate(rows) if "+ all-reduce" in row)
    assert rows[number - 1].lstrip("> ").startswith("while f32[8] ")
    # Of the loop's results only those that are read have a row.
    assert not any(row.lstrip().startswith("while f32[16,8,8]") for row in rows)


def test_what_xla_joins_stands_at_all_of_its_values(found):
    """Both gradients are sums over the batch, and XLA sends them together."""
    case = found["gradients"]
    assert case["collectives"] == ["all-reduce"]
    shapes = sorted(sorted(kind[4:-1].split(",")) for kind, _ in case["placed"])
    assert shapes == [["16", "32"], ["16", "8"]]
    sent = 4 * (32 * 16 + 16 * 8)
    told = f"all-reduce over x of 2 values, {sent:,} B from each device"
    assert [moved for _, moved in case["placed"]] == [told] * 2


@pytest.mark.parametrize("name", ["program", "copies"])
def test_a_page_of_800_pixels_has_texts_beside_the_arrays(name):
    """No array stands under its own title, and the picture keeps its width."""
    view = placed.view(name)
    scene = view.scene(MIDDLE)
    titles = {view.title(value) for value in view.recording.values}
    found = [mark for mark in scene.marks if mark.label in titles]
    assert {mark.label for mark in found} == titles
    assert min(mark.x for mark in found) >= 190
    assert scene.width <= MIDDLE.width + 8
