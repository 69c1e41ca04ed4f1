"""Questions and exercises of chapter 17, "shard_map, collectives, processes"."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
from minijax.core.language import Literal, jaxprs_in_params
from minijax.sharding import Mesh, NamedSharding, PartitionSpec
from minijax_lab.answers import difference, list_complaint
from minijax_lab.evidence import count, equations, multiplied
from minijax_lab.grading import Exercise, Prediction

PREDICTIONS = {
    "17.r1": Prediction(
        2,
        "The spec does not name y, which has two indices.",
        "the puzzle of chapter 16",
        because={
            1: "Only if both axes were in the spec.",
            8: "That would be P(), which names no axis.",
        },
    ),
    "17.r2": Prediction(
        "sum",
        "What was copied to several places gets a cotangent from each: they are added.",
        "the transposes of chapter 07",
        because={
            "last": "Then what the other three places do with it would not count.",
            "mean": "Then the slope would be four times too small.",
        },
    ),
    "17.r3": Prediction(
        "examples",
        "The name stands for the batch axis; entries of one example are summed by sum.",
        "the named axis of chapter 08",
        because={"entries": "That is jnp.sum(x), within one example."},
    ),
    "17.p1": Prediction(
        (2, 2),
        "8 rows in 4 parts along x, 4 columns in 2 parts along y.",
        because={
            (8, 4): "Inside of shard_map a device sees its own piece only.",
            (2, 4): "P('x', 'y') cuts the columns, too.",
        },
    ),
    "17.p2": Prediction(
        1,
        "Python runs once, while the function is traced.",
        because={
            8: "Eight devices run the program; the Python function is only traced.",
            4: "Devices do not run Python at all.",
        },
    ),
    "17.p3": Prediction(
        "first",
        "One number cannot be split in parts, and the first way needs half the rounds.",
        because={"second": "It sends fewer bytes where a piece can be split in eight."},
    ),
}

UNCOUNTED = (
    "There is a `while` around it: how often it runs is not in the program. With "
    "`fori_loop`, from one number to another, it is."
)
VARYING = "x none y y x none".split()


def _mesh(sizes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    count = int(np.prod(sizes))
    if len(minijax.devices()) < count:
        raise RuntimeError(
            'This exercise needs eight devices: minijax.config.update("jax_num_cpu_'
            'devices", 8) before the first array is made, as in the first cell.'
        )
    return Mesh(np.array(minijax.devices()[:count]).reshape(sizes), names)


def grade_varying(answers: Any) -> str | None:
    """Over which axes six values vary."""
    words = ("none", "x", "y", "both")
    return list_complaint(answers, VARYING, "words, one for each value", words)


def _collectives(function: Callable[..., Any], *args: Any) -> list[Any]:
    from minijax_lab.explain.collectives import record_collectives

    return list(record_collectives(function, args, {}, {}).collectives)


def grade_softmax(softmax: Callable[..., Any]) -> str | None:
    """A softmax over a dimension that is cut, by sending four numbers."""
    mesh = _mesh((8,), ("i",))
    spec = PartitionSpec(None, "i")
    x = np.random.default_rng(0).normal(size=(4, 1024)).astype(np.float32)
    x[2] += 200.0
    run = minijax.jit(
        minijax.shard_map(softmax, mesh=mesh, in_specs=spec, out_specs=spec)
    )
    found = np.asarray(run(x))
    if found.shape != x.shape:
        return f"The result has shape {found.shape}, not {x.shape}."
    right = np.exp(x - x.max(1, keepdims=True))
    right /= right.sum(1, keepdims=True)
    if not np.all(np.isfinite(found)):
        return "A row of numbers around 200 gives numbers that are not finite."
    told = difference(found, right, atol=1e-6)
    if told:
        return f"The first rows add up to {found.sum(1)[:2].round(3).tolist()}. {told}"
    data = minijax.device_put(x, NamedSharding(mesh, spec))
    sent = _collectives(run, data)
    for one in sent:
        if one.bytes > 32:
            return f"An {one.opcode} carries {one.bytes:,} B from each device."
    total = sum(one.bytes for one in sent)
    if total > 32:
        return f"A device puts {total} B into its collectives; expected at most 32 B."
    return None


def grade_pipeline(pipeline: Callable[..., Any]) -> str | None:
    """Four stages on four devices; the weights stay where they are."""
    mesh = _mesh((4,), ("stage",))
    rng = np.random.default_rng(1)
    w = rng.normal(size=(4, 8, 8)).astype(np.float32) / 3
    xs = rng.normal(size=(6, 2, 8)).astype(np.float32)
    specs = (PartitionSpec("stage"), PartitionSpec())
    run = minijax.jit(
        minijax.shard_map(
            pipeline, mesh=mesh, in_specs=specs, out_specs=PartitionSpec()
        )
    )
    found, right = np.asarray(run(w, xs)), xs
    for stage in w:
        right = np.tanh(right @ stage)
    if found.shape != right.shape:
        return f"The result has shape {found.shape}, not {right.shape}."
    for batch in range(6):
        told = difference(found[batch], right[batch])
        if told:
            return f"Batch {batch} comes out with other numbers. {told}"
    cut = minijax.device_put(w, NamedSharding(mesh, specs[0]))
    for one in _collectives(run, cut, xs):
        if one.opcode == "all-gather":
            return "An all-gather: weights or batches are collected on every device."
        if one.opcode == "collective-permute" and one.bytes > 64:
            return f"A message of {one.bytes} B is more than one batch, 64 B."
    program = minijax.make_jaxpr(run)(cut, xs)
    if not count(program, "ppermute"):
        return "No stage passes a batch on to the next one: there is no ppermute."
    if count(program, "while"):
        return UNCOUNTED
    one_stage = 2 * 8 * 8
    turns = multiplied(program) / one_stage
    if turns > 10:
        return (
            f"A device computes {turns:g} stages of a batch, one after the other; with "
            "all stages at work at once 9 are enough, for 6 batches and 4 stages."
        )
    return None


def grade_both_ways(both_ways: Callable[..., Any]) -> str | None:
    """The product with messages in both directions, in four exchanges."""
    mesh, spec = _mesh((8,), ("i",)), PartitionSpec("i")
    rng = np.random.default_rng(2)
    a = rng.normal(size=(64, 64)).astype(np.float32)
    b = rng.normal(size=(64, 16)).astype(np.float32)
    mapped = minijax.shard_map(
        both_ways, mesh=mesh, in_specs=(spec, spec), out_specs=spec
    )
    run = minijax.jit(mapped)
    told = difference(run(a, b), a @ b, atol=1e-3)
    if told:
        return f"It gives another product. {told}"
    cut = [minijax.device_put(x, NamedSharding(mesh, spec)) for x in (a, b)]
    found = _collectives(run, *cut)
    others = [one.opcode for one in found if one.opcode != "collective-permute"]
    if others:
        return f"There is an {others[0]} in it."
    closed = minijax.make_jaxpr(mapped)(a, b)
    deep = _longest_chain(closed.jaxpr)
    if deep == math.inf:
        return UNCOUNTED
    if deep > 4:
        return f"{deep:.0f} exchanges come one after the other; four are enough."
    ways = {
        (to - source) % 8
        for eqn in equations(closed)
        if eqn.primitive.name == "ppermute"
        for source, to in eqn.params["perm"]
    }
    far = sorted(ways - {1, 7})
    if far:
        return f"A piece goes {far[0]} devices further; send to a neighbour only."
    if ways != {1, 7}:
        return "Pieces go in one direction only; the wires work in both at once."
    return None


def _longest_chain(jaxpr: Any) -> float:
    """How many `ppermute`s stand one after the other, each with what the last gave.

    Those of a `scan` count once for each turn; those of a `while` have no known number.
    """
    depth: dict[Any, float] = {}
    for eqn in jaxpr.eqns:
        inner = max(map(_longest_chain, jaxprs_in_params(eqn.params)), default=0)
        if inner and eqn.primitive.name in ("scan", "while"):
            inner *= eqn.params.get("length", math.inf)
        before = max((depth.get(v, 0) for v in variables(eqn)), default=0)
        own = before + inner + (eqn.primitive.name == "ppermute")
        depth |= dict.fromkeys(eqn.outvars, own)
    return max(depth.values(), default=0)


def variables(eqn: Any) -> list[Any]:
    """The operands of an equation that are no literals."""
    return [v for v in eqn.invars if not isinstance(v, Literal)]


EXERCISES = {
    "17.1": Exercise(grade_varying),
    "17.2": Exercise(grade_softmax),
    "17.3": Exercise(grade_pipeline),
    "17.4": Exercise(grade_both_ways),
}
