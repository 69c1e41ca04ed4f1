"""Every batching rule against a loop over the batch."""

import itertools

import numpy as np
import pytest

from tests.oracle.oracle import value_difference
from tests.rules.cases import CASES

minijax = pytest.importorskip("minijax")

SIZE = 3
MAPPABLE = [entry for entry in CASES if entry.mappable]


def axes_to_try(entry):
    """Where the batch axis of each argument stands: each argument alone, all in front,
    all behind, all in different places."""
    count = len(entry.args)
    choices = []
    if count > 1:
        for position in entry.mappable:
            choices.append(tuple(0 if k == position else None for k in range(count)))
    mapped = [k in entry.mappable for k in range(count)]
    front = tuple(0 if m else None for m in mapped)
    behind = tuple(entry.args[k].ndim if m else None for k, m in enumerate(mapped))
    cycle = itertools.cycle([0, 1])
    mixed = tuple(
        min(next(cycle), entry.args[k].ndim) if m else None
        for k, m in enumerate(mapped)
    )
    if entry.name == "mulhi":
        # XLA's CPU compiler (JAX's too) fails when it moves an axis of this operation.
        return [*choices, front]
    return sorted({*choices, front, behind, mixed}, key=str)


def batched(entry, axes):
    """The arguments with a batch of different elements along the chosen axes."""
    made = []
    for number, (arg, axis) in enumerate(zip(entry.args, axes)):
        if axis is None:
            made.append(arg)
            continue
        made.append(np.stack([vary(arg, k + number) for k in range(SIZE)], axis))
    return made


def vary(arg, k):
    """The `k`-th element of a batch: another array that the case accepts."""
    if arg.dtype.kind in "fc":
        return arg if k == 0 else arg * (1 + 0.03 * k)
    if arg.dtype.kind == "b":
        return arg ^ (k % 2 == 1)
    return np.roll(arg, k) if arg.ndim else arg


@pytest.mark.parametrize("entry", MAPPABLE, ids=lambda entry: entry.name)
def test_batching(entry):
    with minijax.enable_x64(True):
        function = entry.build(minijax)
        one = minijax.jit(function)
        for axes in axes_to_try(entry):
            args = batched(entry, axes)
            mapped = minijax.jit(minijax.vmap(function, in_axes=axes))(*args)
            loop = [
                one(*[a if x is None else np.take(a, k, x) for a, x in zip(args, axes)])
                for k in range(SIZE)
            ]
            compare(mapped, loop, axes)


def compare(mapped, loop, axes):
    leaves = minijax.tree_util.tree_leaves(mapped)
    expected = [minijax.tree_util.tree_leaves(result) for result in loop]
    for number, leaf in enumerate(leaves):
        wanted = np.stack([np.asarray(result[number]) for result in expected])
        where = f"result {number} with in_axes={axes}"
        assert leaf.shape == wanted.shape, where
        assert leaf.dtype == wanted.dtype, where
        message = value_difference(np.asarray(leaf), wanted)
        assert message is None, f"{where}: {message} (mapped, loop)"
