"""`see.placement` of programs on eight devices, for `test_placement_of_programs.py`."""

import importlib
import json
import re
import sys

import numpy as np

import minijax_widgets as see

name = sys.argv[1]
lib = importlib.import_module(name)
jnp = importlib.import_module(f"{name}.numpy")
sharding = importlib.import_module(f"{name}.sharding")
lib.config.update("jax_num_cpu_devices", 8)
P = sharding.PartitionSpec
mesh = lib.make_mesh((4, 2), ("x", "y"), axis_types=(sharding.AxisType.Auto,) * 2)


def put(shape, *spec):
    values = np.ones(shape, np.float32)
    return lib.device_put(values, sharding.NamedSharding(mesh, P(*spec)))


def mlp(x, w, v):
    return jnp.tanh(x @ w) @ v


def crossed(a, b):
    return (a + b).T


def loss(w, x):
    return ((x @ w) ** 2).mean()


def two_layers(w, v, x):
    hidden = jnp.tanh(x @ w)
    return ((hidden @ v) ** 2).mean()


def looped(x):
    def turn(carry, row):
        return carry * 0.5 + row.sum(0), carry.max()

    carry, tops = lib.lax.scan(turn, jnp.zeros(8), x.transpose(1, 0, 2))
    return carry, tops.sum()


def parts(one):
    found = list(one.spec)
    while found and found[-1] is None:
        found.pop()
    return f"P({', '.join(map(repr, found))})"


CASES = {
    "mlp": (
        mlp,
        (put((64, 32), "x"), put((32, 128), None, "y"), put((128, 32), "y")),
        {},
    ),
    "crossed": (crossed, (put((64, 64), "x"), put((64, 64), "y")), {}),
    "asked": (
        crossed,
        (put((64, 64), "x"), put((64, 64), "x")),
        {"out_shardings": sharding.NamedSharding(mesh, P(None, "x"))},
    ),
    "gradient": (lib.grad(loss), (put((32, 8)), put((64, 32), "x")), {}),
    "gradients": (
        lib.grad(two_layers, (0, 1)),
        (put((32, 16)), put((16, 8)), put((64, 32), "x")),
        {},
    ),
    "looped": (looped, (put((8, 16, 8), "x"),), {}),
    "moved": (mlp, (put((64, 32), "x"), put((32, 128)), np.ones((128, 8), "f4")), {}),
}
found = {}
for case, (function, args, options) in CASES.items():
    jitted = lib.jit(function, **options)
    compiled = jitted.lower(*args).compile()
    view = see.placement(jitted, *args)
    record = view.recording
    text = compiled.as_text()
    kinds = ("all-reduce", "all-gather", "collective-permute", "all-to-all")
    results = compiled.output_shardings
    results = results if isinstance(results, (tuple, list)) else [results]
    found[case] = {
        "results": [v.placed.spec for v in record.values if v.role == "result"],
        "theirs": [parts(one) for one in results],
        "collectives": sorted(c.opcode for c in record.collectives),
        "counted": sorted(
            kind for kind in kinds for _ in re.findall(rf" {kind}(?:-start)?\(", text)
        ),
        "placed": [
            [v.placed.type, *map(view.moved, v.collectives)]
            for v in record.values
            if v.collectives
        ],
        "steps": [step.text for step in record.steps],
        "unasked": [v.placed.name for v in record.values if v.unasked],
        "headline": record.headline,
        "frames": len(view.frame().steps),
        "page": len(view.to_html()) if hasattr(view, "to_html") else 0,
        "text": str(view),
    }
print(json.dumps(found))
