"""What the order of launches costs a step of several processes.

    minijax launch -n 2 --devices 1 benchmarks/launch_order.py [WIDTH]

Each process trains the same network on a batch that is cut over the processes. First
the step is launched again and again, so that the order is a cycle and nothing is sent;
then two equal steps are launched in an order that never repeats, so that each launch is
told to the other process. Each process prints

- the seconds that its launches spent on the order, as part of the step: all that the
  training thread does before and after XLA's own launch. Where launches never repeat,
  the second process waits there for the first, as it otherwise would in a collective:
  its own figure is no added time;
- the differences of pairs: the same steps with the order and without it, in turns; the
  median, and the interval that holds it in 95 of 100 samples of the pairs. What the
  machine does beside is in it: two processes on two cores differ by more than the order
  costs.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.processes import connecting
from minijax.processes.launch_order import Group, Launch, Told
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

TURNS, STEPS = 60, 20
WIDTHS = (int(sys.argv[1]),) if len(sys.argv) > 1 else (64, 512)


class Measured(Group):
    """Launches in order; `seconds` is what the order took without XLA's launch."""

    seconds = 0.0

    def launch(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        begin = time.perf_counter()
        inside = 0.0

        def timed(arguments: list[Any]) -> list[Any]:
            nonlocal inside
            start = time.perf_counter()
            out = launch(arguments)
            inside = time.perf_counter() - start
            return out

        try:
            return super().launch(own, timed, arguments)
        finally:
            self.seconds += time.perf_counter() - begin - inside


class Untold(Group):
    """Launches at once, and tells nobody."""

    def launch(self, own: Told, launch: Launch, arguments: list[Any]) -> list[Any]:
        return launch(arguments)


def step(params: Any, x: Any) -> Any:
    """One step of gradient descent, and the loss."""

    def loss(params: Any) -> Any:
        h = x
        for w in params:
            h = jnp.tanh(h @ w)
        return jnp.mean(h * h)

    value, slopes = minijax.value_and_grad(loss)(params)
    return [w - 0.01 * g for w, g in zip(params, slopes, strict=True)], value


def compiled(group: Group, params: Any, x: Any) -> list[Callable[..., Any]]:
    """Two equal steps of different names, whose launches are of this group."""
    assert connecting.state.member is not None
    everybody = ",".join(map(str, group.processes))
    connecting.state.member.groups[everybody] = group
    steps = [
        minijax.jit(lambda params, x: step(params, x)),
        minijax.jit(lambda params, x: step(params, x * 1.0)),
    ]
    for each in steps:
        float(each(params, x)[1])
    return steps


def seconds(steps: list[Callable[..., Any]], params: Any, x: Any) -> float:
    """The mean seconds of a step, the last of which is waited for."""
    start = time.perf_counter()
    for one in steps:
        params, value = one(params, x)
    float(value)
    return (time.perf_counter() - start) / len(steps)


def interval(found: np.ndarray) -> tuple[float, float, float]:
    """The median, and what holds it in 95 of 100 samples (bootstrap, percentiles)."""
    samples = np.random.default_rng(0).choice(found, (2000, len(found)))
    low, high = np.percentile(np.median(samples, axis=1), [2.5, 97.5])
    return float(np.median(found)), float(low), float(high)


def main() -> None:
    minijax.distributed.initialize()
    mesh = Mesh(np.array(minijax.devices()), ("x",))
    whole = NamedSharding(mesh, PartitionSpec())
    cut = NamedSharding(mesh, PartitionSpec("x"))
    name = ",".join(map(str, range(minijax.process_count())))
    for width in WIDTHS:
        params = [minijax.device_put(np.eye(width, dtype="f"), whole)] * 3
        x = minijax.device_put(np.ones((256, width), "f"), cut)
        ordered = Measured(name, connecting.state.member)
        plain = Untold(name, connecting.state.member)
        without = compiled(plain, params, x)
        told = compiled(ordered, params, x)
        for kind in ("in a cycle", "never repeated"):
            choose = random.Random(width)  # the same in each process
            walls, ours = [], []
            for turn in range(TURNS + 1):
                order = [0] * STEPS
                if kind == "never repeated":
                    order = [choose.randrange(2) for _ in order]
                found = {}
                for steps in (told, without) if turn % 2 else (without, told):
                    ordered.seconds = 0.0
                    chosen = [steps[number] for number in order]
                    found[steps is told] = seconds(chosen, params, x)
                    if steps is told:
                        ours.append(ordered.seconds / STEPS)
                walls.append((found[True], found[False]))
            # The first turn begins the cycle, or ends it.
            both = np.array(walls[1:])
            usual = float(np.median(both[:, 1]))
            more, low, high = interval((both[:, 0] - both[:, 1]) / usual)
            own = float(np.median(ours[1:]))
            process = minijax.process_index()
            print(
                f"process {process}, width {width}, {kind}: a step {1e3 * usual:.3f} "
                f"ms; its order {1e6 * own:.1f} us, {own / usual:.2%}; with and "
                f"without in turns {more:+.1%} ({low:+.1%} to {high:+.1%})",
                flush=True,
            )


if __name__ == "__main__":
    main()
