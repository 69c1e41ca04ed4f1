"""Programs over several devices, compiled for machines that are not there."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from minijax.backend import cuda

ROOT = Path(__file__).resolve().parents[2]
TARGETS = [
    pytest.param("cpu", id="cpu"),
    pytest.param(
        "h100:8",
        marks=pytest.mark.skipif(
            not cuda.is_installed(), reason="jax-cuda13-pjrt (minijax[h100]) is missing"
        ),
    ),
    pytest.param(
        "tpu-v5e:2x4",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("libtpu") is None,
            reason="libtpu (minijax[tpu]) is missing",
        ),
    ),
]
SCRIPT = """
import json, sys
import numpy as np
import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.sharding import AxisType, NamedSharding, PartitionSpec as P

minijax.config.update("jax_num_cpu_devices", 8)
target = sys.argv[1]
mesh = minijax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

def struct(shape, *spec):
    where = NamedSharding(mesh, P(*spec))
    return minijax.ShapeDtypeStruct(shape, np.float32, sharding=where)

def loss(a, w, v):
    return ((jnp.tanh(a @ w) @ v) ** 2).mean()

args = (struct((64, 128), "x"), struct((128, 256), None, "y"), struct((256, 128), "y"))
step = minijax.jit(minijax.grad(loss, argnums=(1, 2)))
compiled = step.lower(*args).compile(target=target)
sent = see.collectives(step, *args, target=target)
placed = see.placement(step, *args, target=target)

def message(make):
    try:
        make()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"

lowered = step.lower(*args)
print(json.dumps({
    "partitions": "num_partitions=8" in compiled.as_text(),
    "spec": str(compiled.input_shardings[0][1].spec),
    "sent": [[c.opcode, c.axes, c.groups, c.bytes] for c in sent.recording.collectives],
    "headlines": [sent.recording.headline, placed.recording.headline],
    "lines": [c.line for c in sent.recording.collectives],
    "steps": len(placed.recording.steps),
    "small": message(lambda: lowered.compile(target="tpu-v5e:2x2"))
    if target.startswith("tpu") else message(lambda: lowered.compile(target="h100"))
    if target.startswith("h100") else "",
    "twice": message(lambda: see.collectives(compiled, target=target)),
    "arrays": message(lambda: see.placement(args[0], target=target)),
}))
"""
# What XLA does on each: the sum over y for the second product, then the sum over x of
# both gradients.
SENT = [
    ["all-reduce", ["y"], [[0, 1, 2, 3], [4, 5, 6, 7]], 16384],
    ["all-reduce", ["x"], [[0, 4], [1, 5], [2, 6], [3, 7]], 65536],
]


@pytest.mark.parametrize("target", TARGETS)
def test_collectives_of_eight_devices(target):
    """Each machine runs the same collectives; the mesh is one of CPU devices."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, target], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["partitions"] and found["spec"] == "P(None, 'y')"
    assert found["sent"] == SENT
    assert all(f"for {target}: " in line for line in found["headlines"])
    assert found["steps"] >= 20
    assert found["twice"].startswith("TypeError: ") and "Compiled" in found["twice"]
    assert "takes arguments, shardings and a target for a function" in found["arrays"]
    if target != "cpu":
        assert "is written for 8 devices, and target=" in found["small"]
