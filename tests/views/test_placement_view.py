"""`see.placement` of arrays, JAX's and minijax's, on eight CPU devices."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("jax", "minijax")


@pytest.fixture(scope="module", params=LIBRARIES)
def found(request):
    """What `placed_arrays.py` found, in a process with eight devices."""
    script = ROOT / "tests/views/placed_arrays.py"
    done = subprocess.run(
        [sys.executable, str(script), request.param],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_bytes_are_those_of_the_shards(found):
    """Bytes on each device are counted from `addressable_shards`, piece by piece."""
    assert len(found["arrays"]) >= 10
    for name, array in found["arrays"].items():
        assert array["recorded"] == array["counted"], name
        assert array["indices"] == array["their_indices"], name


def test_copies_are_said(found):
    arrays = found["arrays"]
    assert arrays["xy"]["headline"] == (
        "x f32[8,16] on a mesh x=4, y=2: 8 pieces, no copies, 64 B on each device"
    )
    assert "4 pieces x 2 copies" in arrays["x"]["headline"]
    assert "P('x', 'y') would leave 64 B on each device" in arrays["x"]["text"]
    assert "no dimension can be cut evenly" in arrays["scalar"]["text"]
    assert "uncommitted" in arrays["one"]["text"]


def test_a_piece_lights_its_devices(found):
    """Devices have the key of the piece that they hold, and pieces of their devices."""
    keys = found["arrays"]["x"]["keys"]
    lit = [label for label, has in keys if "v0s1" in has]
    assert len([label for label in lit if label.startswith("device")]) == 2
    assert len([label for label in lit if label.startswith("x[")]) == 1
    lit = [label for label, has in keys if "v0d5" in has]
    assert any(label.startswith("x[4:6") for label in lit)


def test_trees_and_host_arrays(found):
    assert found["tree"].startswith("3 arrays, 592 B of values")
    assert "a NumPy array" in found["tree"]
    assert found["refused"] == "TypeError"
    assert found["same_after_saving"]
