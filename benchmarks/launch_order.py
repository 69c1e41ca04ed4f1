"""What the order of launches costs a step of several processes.

    minijax launch -n 2 --devices 1 benchmarks/launch_order.py

Each process trains the same network on a batch that is cut over the processes. The same
step is compiled twice, once with its launches told to the others and once without, and
the two run in turns. Printed are the medians of both, and of the differences of
neighbouring turns; then the least time of each, and the least time that the process
computed, which other programs of the machine disturb less.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.processes import launch_order
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

TURNS, STEPS = 40, 10
WIDTHS = (int(sys.argv[1]),) if len(sys.argv) > 1 else (64, 512)


def step(params: Any, x: Any) -> Any:
    """One step of gradient descent, and the loss."""

    def loss(params: Any) -> Any:
        h = x
        for w in params:
            h = jnp.tanh(h @ w)
        return jnp.mean(h * h)

    value, slopes = minijax.value_and_grad(loss)(params)
    return [w - 0.01 * g for w, g in zip(params, slopes, strict=True)], value


def seconds(run: Any, params: Any, x: Any, each: bool) -> tuple[float, float]:
    """The mean seconds of a step, and those that all threads of the process computed.

    Each step waits for its loss, or only the last.
    """
    start, computed = time.perf_counter(), time.process_time()
    for number in range(STEPS):
        params, value = run(params, x)
        if each or number == STEPS - 1:
            float(value)
    ends = time.perf_counter() - start, time.process_time() - computed
    return ends[0] / STEPS, ends[1] / STEPS


def main() -> None:
    minijax.distributed.initialize()
    mesh = Mesh(np.array(minijax.devices()), ("x",))
    whole = NamedSharding(mesh, PartitionSpec())
    told = launch_order.in_order
    for width in WIDTHS:
        params = [minijax.device_put(np.eye(width, dtype="f"), whole)] * 3
        x = minijax.device_put(
            np.ones((256, width), "f"), NamedSharding(mesh, PartitionSpec("x"))
        )
        ordered = minijax.jit(lambda params, x: step(params, x))
        seconds(ordered, params, x, True)
        launch_order.in_order = lambda launch, *others: launch
        plain = minijax.jit(lambda params, x: step(params, x))
        seconds(plain, params, x, True)
        launch_order.in_order = told
        for each in (True, False):
            pairs = []
            for turn in range(TURNS):
                runs = [ordered, plain] if turn % 2 else [plain, ordered]
                found = {run: seconds(run, params, x, each) for run in runs}
                pairs.append((found[ordered], found[plain]))
            walls = [(told_[0], plain_[0]) for told_, plain_ in pairs]
            with_it, without = (statistics.median(one) for one in zip(*walls))
            more = statistics.median(a - b for a, b in walls)
            least = [[1e3 * min(kind) for kind in zip(*one)] for one in zip(*pairs)]
            if minijax.process_index() == 0:
                print(
                    f"width {width}, {'each loss' if each else 'last loss'} read: "
                    f"{1e3 * with_it:.3f} ms a step with the order told, "
                    f"{1e3 * without:.3f} ms without; {1e6 * more:+.0f} us, "
                    f"{100 * more / without:+.2f}%; least "
                    f"{least[0][0]:.3f} and {least[1][0]:.3f} ms, computed "
                    f"{least[0][1]:.3f} and {least[1][1]:.3f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
