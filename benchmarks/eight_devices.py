"""A training step on eight CPU devices, in minijax and in jax.

    python benchmarks/eight_devices.py [--rounds 5] [--steps 200]

Each round runs both libraries, one after the other, each in a process of its own (a
process has its eight devices once and for all). Both wait for each step: with 200 steps
in flight on two cores jax 0.10.2 stops with "Aborted" in a collective. Printed are
microseconds for a step, the median of the rounds' ratios, and their range.
`--steps 20000 --rounds 1` is the long run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

STEP = """
import importlib, json, sys, time
import numpy as np

name, steps = sys.argv[1], int(sys.argv[2])
lib, jnp, sharding = (importlib.import_module(name + end) for end in
                      ("", ".numpy", ".sharding"))
lib.config.update("jax_num_cpu_devices", 8)
P, auto = sharding.PartitionSpec, sharding.AxisType.Auto
mesh = lib.make_mesh((4, 2), ("x", "y"), axis_types=(auto, auto))

def put(shape, *spec):
    place = sharding.NamedSharding(mesh, P(*spec))
    return lib.device_put(np.full(shape, 0.01, np.float32), place)

ws, x = (put((64, 128), None, "y"), put((128, 64), "y")), put((64, 64), "x")

def loss(ws, x):
    return ((jnp.tanh(x @ ws[0]) @ ws[1]) ** 2).mean()

def update(ws, x):
    return lib.tree_util.tree_map(lambda w, g: w - 0.1 * g, ws, lib.grad(loss)(ws, x))

step = lib.jit(update)
for _ in range(20):
    ws = lib.block_until_ready(step(ws, x))
start = time.perf_counter()
for _ in range(steps):
    ws = lib.block_until_ready(step(ws, x))
print(json.dumps((time.perf_counter() - start) / steps * 1e6))
"""


def microseconds(library: str, steps: int) -> float:
    """The time of a step, in a process of its own."""
    command = [sys.executable, "-c", STEP, library, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Runs the rounds and prints one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    pairs = []
    for number in range(options.rounds):
        order = ["minijax", "jax"] if number % 2 else ["jax", "minijax"]
        times = {library: microseconds(library, options.steps) for library in order}
        pairs.append((times["minijax"], times["jax"]))
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(column) for column in zip(*pairs))
    print(
        f"a step on eight devices: minijax {ours:,.0f} us, jax {theirs:,.0f} us, ratio "
        f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
        f"{options.rounds} rounds of {options.steps:,} steps"
    )


if __name__ == "__main__":
    main()
