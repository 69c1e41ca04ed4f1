"""Runs the same programs on eight CPU devices in jax and in minijax.

    echo '["sine"]' | python tests/sharding/both.py MODULE    what both gave, as JSON

A module of cases has `CASES`, a dict from a name to a function of a `Library`. What the
function returns is described: arrays by values, dtype and sharding, texts as they are,
an exception by its class. A process of its own has the eight devices.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "collective-permute",
    "all-to-all",
)


class Library:
    """jax or minijax, by the same names."""

    def __init__(self, name: str) -> None:
        def room(path: str) -> Any:
            return importlib.import_module(f"{name}{path}")

        self.name = name
        self.mj = room("")
        self.jnp = room(".numpy")
        self.lax = room(".lax")
        self.random = room(".random")
        self.debug = room(".debug")
        self.sharding = room(".sharding")
        self.P = self.sharding.PartitionSpec
        self.Named = self.sharding.NamedSharding
        self.mj.config.update("jax_num_cpu_devices", 8)
        auto = self.sharding.AxisType.Auto
        self.auto = auto
        self.explicit = self.sharding.AxisType.Explicit
        self.mesh = self.make_mesh((4, 2), "xy")
        self.line = self.make_mesh((8,), "i")

    def make_mesh(self, sizes: tuple, names: Any, kind: Any = None) -> Any:
        """A mesh with axes of one type, Auto by default."""
        types_ = (kind or self.auto,) * len(sizes)
        return self.mj.make_mesh(sizes, tuple(names), axis_types=types_)

    def on(self, *spec: Any, mesh: Any = None) -> Any:
        """A sharding over the 4x2 mesh, or another."""
        return self.Named(mesh or self.mesh, self.P(*spec))

    def put(self, value: Any, *spec: Any, mesh: Any = None) -> Any:
        """An array cut so."""
        return self.mj.device_put(value, self.on(*spec, mesh=mesh))

    def numbers(self, *shape: int) -> np.ndarray:
        """Small different float32 numbers."""
        size = int(np.prod(shape))
        return (
            ((np.arange(size) * 7919 % 101 - 50) / 17).astype(np.float32).reshape(shape)
        )

    def collectives(self, function: Callable, *args: Any) -> dict[str, int]:
        """How many of each collective the optimised program has."""
        text = self.mj.jit(function).lower(*args).compile().as_text()
        return {
            name: len(re.findall(rf"= [^=\n]* {name}(?:-start)?\(", text))
            for name in COLLECTIVES
        }


def sharding_text(sharding: Any) -> str:
    """How a sharding cuts, in words that both libraries share."""
    text = str(sharding)
    if text.startswith("SingleDeviceSharding"):
        return f"one device: {sorted(d.id for d in sharding.device_set)}"
    if not hasattr(sharding, "spec"):
        return re.sub(r"\(.*", "", text)
    parts = list(sharding.spec.partitions)
    spec = f"P({', '.join(map(repr, parts))})"
    ids = [device.id for device in sharding.mesh.devices.flat]
    return f"{spec} over {dict(sharding.mesh.shape)} of {ids}"


def described(value: Any, tree_leaves: Callable) -> Any:
    """A result as JSON."""
    leaves = tree_leaves(value)
    return [_described(leaf) for leaf in leaves]


def _described(leaf: Any) -> Any:
    if isinstance(leaf, (str, bool, int, float, type(None))):
        return {"text": str(leaf)}
    if isinstance(leaf, np.ndarray | np.generic):
        return {"values": np.asarray(leaf).tolist(), "dtype": str(leaf.dtype)}
    if not hasattr(leaf, "dtype"):
        return {"text": type(leaf).__name__}
    values = np.asarray(leaf)
    return {
        "values": values.astype(np.float64).tolist(),
        "dtype": str(leaf.dtype),
        "weak": bool(leaf.weak_type),
        "sharding": sharding_text(leaf.sharding),
        "committed": bool(leaf.committed),
    }


def run_all(cases: types.ModuleType, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each of these cases, what each library gave."""
    import traceback

    chosen = {name: cases.CASES[name] for name in names}
    found: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    for library in (Library("jax"), Library("minijax")):
        for name, case in chosen.items():
            try:  # a later jax refuses to read a result that is unreduced
                leaves = library.mj.tree_util.tree_leaves
                found[name][library.name] = described(case(library), leaves)
            except Exception as error:
                found[name][library.name] = {
                    "error": [one.__name__ for one in type(error).__mro__],
                    "message": str(error)[:2000],
                    "trace": traceback.format_exc()[-3000:],
                }
    return found


def results_of(module: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What both libraries gave for cases of a module, from a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, module],
        input=json.dumps(list(names)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(f"{module}: {done.returncode}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
    module = importlib.import_module(sys.argv[1])
    importlib.import_module("jax")
    importlib.import_module("tests.cheap_jax").compile_cheaply()
    print(json.dumps(run_all(module, json.load(sys.stdin))))
