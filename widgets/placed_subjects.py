"""Arrays and programs on eight devices that the gallery shows.

A process has its devices once and for all, so another one makes the recordings. The
lines of the programs stand in the reference pictures: add new ones at the end.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
import minijax_widgets as see
from minijax.sharding import AxisType, NamedSharding, PartitionSpec
from minijax_lab.explain.recording import Recording
from minijax_widgets.collectives_view import CollectivesView
from minijax_widgets.placement_view import PlacementView
from minijax_widgets.propagation_view import PropagationView
from minijax_widgets.scale_view import ScaleView
from minijax_widgets.view import View

VIEWS = {
    "placement": PlacementView,
    "propagation": PropagationView,
    "collectives": CollectivesView,
    "scale": ScaleView,
}


def layer(x, w):
    """Both are cut along what is summed over: the devices have parts of a sum."""
    return jnp.tanh(x @ w).sum(1)


def forgotten(x, w):
    """Nobody says how the weights are cut: each device has all of them."""
    return (x @ w) * 2.0


def around(x):
    """A loop in which each device needs the next one's rows."""
    return minijax.lax.fori_loop(0, 5, lambda i, x: jnp.roll(x, 1, 0) * 0.5, x)


def deep(x, layers):
    """Many layers, cut in turn along what is summed over and along what is not."""
    for w in layers:
        x = jnp.tanh(x @ w)
    return (x * x).sum()


def same(x):
    """Nothing at all."""
    return x


@functools.cache
def recordings() -> dict[str, dict[str, Any]]:
    """The recordings by name, made by a process with eight devices."""
    folders = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": folders},
    )
    if done.returncode:
        raise RuntimeError(f"the process with eight devices failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def view(name: str) -> View:
    """The view of one of the recordings."""
    recording = Recording.from_dict(recordings()[name])
    return VIEWS[recording.kind](recording)


def main() -> None:
    """Prints the recordings as one line of JSON."""
    minijax.config.update("jax_num_cpu_devices", 8)
    automatic = (AxisType.Auto,) * 2
    mesh = minijax.make_mesh((2, 4), ("x", "y"), axis_types=automatic)

    def put(shape: tuple[int, ...], *spec: Any) -> Any:
        place = NamedSharding(mesh, PartitionSpec(*spec))
        return minijax.device_put(np.ones(shape, np.float32), place)

    rows, columns = put((16, 8), "x", "y"), put((8, 12), "y")
    layers = [put((64, 64), *(("y", None), (None, "y"))[n % 2]) for n in range(8)]
    x = put((32, 64), "x")
    network, sizes = (x, layers), range(1, 9)
    views: dict[str, View] = {
        "array": see.placement(rows),
        "tree": see.placement({"w": columns, "b": put((12,)), "x": put((8, 4, 6))}),
        "program": see.placement(layer, rows, columns),
        "copies": see.placement(forgotten, put((16, 8), "x"), np.ones((8, 12), "f")),
        "collectives": see.collectives(layer, rows, columns),
        "loop": see.collectives(around, put((16, 8), "x")),
        "scale": see.scale({"cut": (layer, rows, columns)}),
        "nothing": see.placement(same, rows),
        "deep": see.placement(minijax.grad(deep, 1), *network),
        "deep collectives": see.collectives(minijax.grad(deep, 1), *network),
        "scale of nothing": see.scale({"nothing": (same, rows)}),
        "scale of many": see.scale({f"{n} deep": (deep, x, layers[:n]) for n in sizes}),
        "no collectives": see.collectives(forgotten, put((16, 8), "x"), put((8, 12))),
    }
    print(json.dumps({name: view.recording.to_dict() for name, view in views.items()}))


if __name__ == "__main__":
    main()
