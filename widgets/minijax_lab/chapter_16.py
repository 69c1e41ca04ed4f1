"""Questions and exercises of chapter 16, "Sharding"."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import nn
from minijax.sharding import AxisType, NamedSharding, PartitionSpec
from minijax_lab.answers import difference, listed, same
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "16.r1": Prediction(
        4,
        "1024 x 1024 numbers of 4 bytes.",
        "the puzzle of chapter 13",
        because={1: "That is the number of entries; each one has 4 bytes."},
        unit="MiB",
    ),
    "16.r2": Prediction(
        "compiling",
        "Tracing writes the program down, XLA compiles it, then it runs.",
        "the three times in chapter 03",
        because={
            "tracing": "While tracing, Python runs with tracers, and no compiler.",
            "running": "XLA has finished when the program runs.",
        },
    ),
    "16.r3": Prediction(
        4,
        "Axis 1 has 4 entries, and each is an example of type f32[8].",
        "in_axes in chapter 08",
        because={8: "That is axis 0; in_axes=1 goes along the second axis."},
    ),
    "16.p1": Prediction(
        256,
        "Eight devices with 2 rows of 4 numbers each: four pieces, two copies.",
        because={
            128: "That would be one copy of each entry; nothing in the spec uses y.",
            1024: "That would be all of the array on each device; the rows are cut.",
        },
        unit="B",
    ),
    "16.p2": Prediction(
        "ShardingTypeError",
        "The rows are cut in four and in two, so rows would have to be sent.",
        because={
            "ValueError": "The shapes agree, and so do the devices; the cuts do not.",
            "f32[8@x,4]": "Rows would have to be sent, and no `reshard` asks for it.",
        },
    ),
    "16.p3": Prediction(
        12,
        "embed and read, 4 KiB each, are whole; of the other 32 KiB it has an eighth.",
        because={
            5: "That is an eighth of all; embed and read are cut by P(), not at all.",
            40: "That is data parallel, where each device has all weights.",
        },
        unit="KiB",
    ),
}

SLICES = [
    ((4 * (device % 2), 4 * (device % 2) + 4), (device // 2, device // 2 + 1))
    for device in range(8)
]
# A quarter of one operand and a half of the other.
LEAST_OPERANDS = (256 * 256 // 4 + 256 * 256 // 2) * 4
SHAPES = {
    "embed": (32, 32),
    **dict.fromkeys(("query", "key", "value"), (32, 8, 4)),
    "join": (8, 4, 32),
    "up": (32, 64),
    "down": (64, 32),
    "read": (32, 32),
}


def _mesh(kind: str) -> Any:
    if len(minijax.devices()) < 8:
        raise RuntimeError(
            'This exercise needs eight devices: minijax.config.update("jax_num_cpu_'
            'devices", 8) before the first array is made, as in the first cell.'
        )
    types = (getattr(AxisType, kind),) * 2
    return minijax.make_mesh((4, 2), ("x", "y"), axis_types=types)


def grade_slices(answers: Any) -> str | None:
    """The rows and columns of each of eight devices."""
    given = listed(answers)
    if given is None or len(given) != 8:
        return "Give a list of eight pairs, one for each device."
    for device, (said, right) in enumerate(zip(given, SLICES, strict=True)):
        if not same(said, right):
            return f"Device {device} does not have rows and columns {said}."
    return None


def grade_velocities(velocities: Callable[..., Any]) -> str | None:
    """Zeros that lie as the weights do."""
    mesh = _mesh("Auto")
    specs = dict(zip(SHAPES, [(), ("x",), ("y",), (("x", "y"),), ("y", None, "x")]))
    weights = {
        name: minijax.device_put(
            np.ones(shape, np.float32),
            NamedSharding(mesh, PartitionSpec(*specs.get(name, ("x", "y")))),
        )
        for name, shape in SHAPES.items()
    }
    found = velocities(weights)
    if not isinstance(found, dict) or set(found) != set(weights):
        return "Give a dict with a name for each weight."
    for name, weight in weights.items():
        zeros = found[name]
        if zeros.shape != weight.shape or np.any(np.asarray(zeros)):
            return f"{name}: not zeros of shape {weight.shape}."
        if not zeros.sharding.is_equivalent_to(weight.sharding, weight.ndim):
            told = getattr(zeros.sharding, "spec", zeros.sharding)
            return f"{name} is cut by {weight.sharding.spec}, its zeros by {told}."
    return None


def _loss(w: Any, tokens: Any) -> Any:
    """The transformer of the chapter, on given tokens."""
    x = w["embed"][tokens[:, :-1]]
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, w[n]) for n in ("query", "key", "value"))
    scores = jnp.einsum("bthk,bshk->bhts", q, k) / 2.0
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -1e9)
    mixed = jnp.einsum("bhts,bshk->bthk", nn.softmax(scores), v)
    x = x + jnp.einsum("bthk,hkd->btd", mixed, w["join"])
    x = x + nn.gelu(x @ w["up"]) @ w["down"]
    guesses = nn.log_softmax(x @ w["read"])
    return -jnp.take_along_axis(guesses, tokens[:, 1:, None], axis=-1).mean()


def _trained(w: Any, tokens: Any, shardings: Any) -> list[float]:
    """The losses of three steps, whose weights stay where they are."""

    def step(w: Any, tokens: Any) -> Any:
        value, slopes = minijax.value_and_grad(_loss)(w, tokens)
        return minijax.tree.map(lambda p, g: p - 0.5 * g, w, slopes), value

    run = minijax.jit(step, out_shardings=shardings)
    losses = []
    for _ in range(3):
        w, value = run(w, tokens)
        losses.append(float(value))
    return losses


def grade_fully_sharded(strategy: Any) -> str | None:
    """An eighth of the weights on each device, and the same losses."""
    if not isinstance(strategy, (tuple, list)) or len(strategy) != 2:
        return "Give a pair: the spec of the batch, and a dict of specs."
    batch, specs = strategy
    if not isinstance(specs, dict) or set(specs) != set(SHAPES):
        return f"Give a spec for each of {', '.join(SHAPES)}."
    mesh = _mesh("Auto")
    for name, spec in {"the batch": batch, **specs}.items():
        if not isinstance(spec, PartitionSpec):
            return f"{name}: give a spec, P(...), not a {type(spec).__name__}."
        shape = (16, 17) if name == "the batch" else SHAPES[name]
        part = NamedSharding(mesh, spec).shard_shape(shape)
        if name == "the batch" and part == shape:
            return f"the batch: a device has {part} of {shape}: all do the same work."
        if name != "the batch" and 8 * math.prod(part) > math.prod(shape):
            return f"{name}: a device has {part} of {shape}, more than an eighth."
    rng = np.random.default_rng(0)
    draws = {n: rng.normal(size=s).astype(np.float32) / 5 for n, s in SHAPES.items()}
    tokens = rng.integers(0, 32, size=(16, 17))
    places = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    cut = minijax.device_put(draws, places)
    data = minijax.device_put(tokens, NamedSharding(mesh, batch))
    found = _trained(cut, data, (places, None))
    told = difference(found, _trained(draws, tokens, None), rtol=1e-4)
    return f"The losses of three steps are others. {told}" if told else None


def grade_operands(specs: Any) -> str | None:
    """Nothing is sent, and a device holds as little of the operands as possible."""
    from minijax_lab.explain.collectives import record_collectives

    if not isinstance(specs, (tuple, list)) or len(specs) != 2:
        return "Give a pair of specs: (for a, for b)."
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            return f"Give specs, P(...), not a {type(spec).__name__}."
    mesh = _mesh("Auto")
    ones = np.ones((256, 256), np.float32)
    a, b = (minijax.device_put(ones, NamedSharding(mesh, spec)) for spec in specs)
    found = record_collectives(lambda a, b: a @ b, (a, b), {}, {}).collectives
    if found:
        return f"Each device sends {found[0].bytes:,} B, in an {found[0].opcode}."
    held = sum(x.addressable_shards[0].data.nbytes for x in (a, b))
    if held > LEAST_OPERANDS:
        return (
            f"Nothing is sent, and a device holds {held // 1024} KiB; less is possible."
        )
    return None


EXERCISES = {
    "16.1": Exercise(grade_slices),
    "16.2": Exercise(grade_velocities),
    "16.3": Exercise(grade_fully_sharded),
    "16.4": Exercise(grade_operands),
}
