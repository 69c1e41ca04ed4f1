"""What the flight recorder costs a training step of real JAX.

Run `python benchmarks/recorder.py [rounds]`, with jax installed. A step is one call of
a jitted function and one `float(loss)`. Rounds of 40 steps run in turns: plain, with
empty functions in the place of the recorder's (the floor of any hook), and recorded. A
figure is the difference of a round's median from that of the plain round beside it.
"""

import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "widgets"))

import jax
import jax.numpy as jnp

from minijax_lab.explain.flight import Ear
from minijax_lab.explain.flight_facts import Lines

STEPS = 40


def train(params: Any, x: Any, y: Any) -> Any:
    """One step of a network of two layers."""

    def loss_of(params: Any) -> Any:
        hidden = jax.nn.relu(x @ params["w"] + params["b"])
        return jnp.mean(jax.nn.logsumexp(hidden @ params["v"], axis=1) - y)

    loss, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


class Empty:
    """A hook that does nothing."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def medians(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """The median step and the CPU seconds of a step, in microseconds, by round."""
    array = type(jnp.zeros(()))
    value: Any = array.__dict__["_value"]
    plain = jax.jit(train)
    ear = Ear(jax, Lines([]))
    ear.start()
    recorded, recorded_value = jax.jit(train), array.__dict__["_value"]
    empty_value = property(lambda each: value.fget(each))
    ways = {
        "plain": (plain, value),
        "empty hooks": (Empty(plain), empty_value),
        "recorded": (recorded, recorded_value),
    }
    x, y = jnp.ones((32, 16)), jnp.ones(32)
    first = {"w": jnp.ones((16, 32)), "b": jnp.ones(32), "v": jnp.ones((32, 10))}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            step, array._value = ways[name]
            params, times = first, []
            for number in range(STEPS + 5):
                if number == 5:
                    cpu = time.process_time()
                begin = time.perf_counter()
                params, loss = step(params, x, y)
                float(loss)
                times.append(time.perf_counter() - begin)
            cpu = (time.process_time() - cpu) / STEPS
            found[name].append((statistics.median(times[5:]) * 1e6, cpu * 1e6))
    array._value = recorded_value
    ear.stop()
    return found


def main() -> None:
    """Prints a line for each way."""
    found = medians(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
    plain = found["plain"]
    for name, steps in found.items():
        wall, cpu = (statistics.median(each[i] for each in steps) for i in (0, 1))
        more, more_cpu = (
            statistics.median(one[i] - two[i] for one, two in zip(steps, plain))
            for i in (0, 1)
        )
        print(
            f"{name:12} {wall:6.1f} us a step, {more:+5.1f} ({more / wall:+.1%}); "
            f"{cpu:6.1f} us of the CPU, {more_cpu:+5.1f} ({more_cpu / cpu:+.1%})"
        )


if __name__ == "__main__":
    main()
