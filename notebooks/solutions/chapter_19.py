"""Chapter 19: a solution of each exercise, and two answers that must fail."""

import math

import numpy as np

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

FETCHED = [3, 12, 12, 4, 10]


def online(parts):
    """Begins with -inf, and corrects what was summed before."""
    top, weight = -np.inf, 0.0
    for part in parts:
        larger = max(top, part.max())
        if larger == -np.inf:
            continue  # -inf minus -inf is no number
        weight = weight * np.exp(top - larger) + np.exp(part - larger).sum()
        top = larger
    return top, weight


def uncorrected(parts):
    """Wrong: the old sum belongs to the old largest number."""
    top, weight = -np.inf, 0.0
    for part in parts:
        top = max(top, part.max())
        weight = weight + np.exp(part - top).sum()
    return top, weight


def from_zero(parts):
    """Wrong: zero may be larger than all numbers."""
    top, weight = 0.0, 0.0
    for part in parts:
        larger = max(top, part.max())
        weight = weight * np.exp(top - larger) + np.exp(part - larger).sum()
        top = larger
    return top, weight


def _layer(finish, x, w, b):
    def kernel(x_ref, w_ref, b_ref, o_ref, sum_ref):
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...] @ w_ref[...]

        @pl.when(k == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = finish(sum_ref[...], b_ref[...])

    (n, d), m = x.shape, w.shape[1]
    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((n, m), jnp.float32),
        grid=(n // 16, m // 16, d // 16),
        in_specs=[
            pl.BlockSpec((16, 16), lambda i, j, k: (i, k)),
            pl.BlockSpec((16, 16), lambda i, j, k: (k, j)),
            pl.BlockSpec((16,), lambda i, j, k: (j,)),
        ],
        out_specs=pl.BlockSpec((16, 16), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((16, 16), jnp.float32)],
    )
    return call(x, w, b)


def layer(x, w, b):
    """Bias and relu when the sum is finished."""
    return _layer(lambda total, b: jnp.maximum(total + b, 0), x, w, b)


def relu_outside(x, w, b):
    """Wrong: the product is written, read and written again."""
    return jnp.maximum(_layer(lambda total, b: total + b, x, w, b), 0)


def no_relu(x, w, b):
    """Wrong: it has no activation."""
    return _layer(lambda total, b: total + b, x, w, b)


def _causal(q, k, v, keys_of, masked=True):
    width = q.shape[1]

    def kernel(q_ref, k_ref, v_ref, o_ref, top_ref, weight_ref, sum_ref):
        i, j = pl.program_id(0), pl.program_id(1)

        @pl.when(j == 0)
        def _():
            top_ref[...] = jnp.full_like(top_ref, -jnp.inf)
            weight_ref[...] = jnp.zeros_like(weight_ref)
            sum_ref[...] = jnp.zeros_like(sum_ref)

        @pl.when(j <= i)
        def _():
            scores = q_ref[...] @ k_ref[...].T / math.sqrt(width)
            if masked:
                query = i * 16 + jnp.arange(16)[:, None]
                key = j * 16 + jnp.arange(16)[None, :]
                scores = jnp.where(key <= query, scores, -jnp.inf)
            top = jnp.maximum(top_ref[...], scores.max(1, keepdims=True))
            shrink, e = jnp.exp(top_ref[...] - top), jnp.exp(scores - top)
            top_ref[...] = top
            weight_ref[...] = weight_ref[...] * shrink + e.sum(1, keepdims=True)
            sum_ref[...] = sum_ref[...] * shrink + e @ v_ref[...]

        @pl.when(j == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = sum_ref[...] / weight_ref[...]

    queries = pl.BlockSpec((16, width), lambda i, j: (i, 0))
    keys = pl.BlockSpec((16, width), lambda i, j: (keys_of(i, j), 0))
    call = pl.pallas_call(
        kernel,
        ShapeDtypeStruct(q.shape, jnp.float32),
        grid=(q.shape[0] // 16, k.shape[0] // 16),
        in_specs=[queries, keys, keys],
        out_specs=queries,
        scratch_shapes=[
            pltpu.VMEM((16, 1), jnp.float32),
            pltpu.VMEM((16, 1), jnp.float32),
            pltpu.VMEM((16, width), jnp.float32),
        ],
    )
    return call(q, k, v)


def causal(q, k, v):
    """Beyond the diagonal the map names the block that is there already."""
    return _causal(q, k, v, jnp.minimum)


def all_keys(q, k, v):
    """Wrong: it fetches keys that nobody sees."""
    return _causal(q, k, v, lambda i, j: j)


def unmasked(q, k, v):
    """Wrong: within the last block a query sees what comes after it."""
    return _causal(q, k, v, jnp.minimum, masked=False)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "19.1": (
        "the last axis of the grid runs first: whose block stays?",
        "a block is fetched when its numbers differ from the last program's.",
        "press play in the picture of `product`, and count the copies.",
    ),
    "19.2": (
        "what is the largest of no numbers?",
        "when the largest changes, all terms of the sum change by one factor.",
        "the formula above: s times exp(m - n), plus the new terms.",
    ),
    "19.3": (
        "when is the sum over k finished?",
        "scratch memory for the sum; bias and relu when k is the last one.",
        "`fused_kernel`, with a third input whose block is (j,).",
    ),
    "19.4": (
        "begin with puzzle 19.attention, and a mask within the block.",
        "`pl.when(j <= i)` saves the arithmetic, not the fetch: what saves that?",
        "an index map that names the same block again: `jnp.minimum(j, i)`.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "19.1": lambda: (FETCHED,),
    "19.2": lambda: (online,),
    "19.3": lambda: (layer,),
    "19.4": lambda: (causal,),
}
WRONG = {
    "19.1": [lambda: ([3, 4, 12, 4, 10],), lambda: ([3],)],
    "19.2": [lambda: (uncorrected,), lambda: (from_zero,)],
    "19.3": [lambda: (relu_outside,), lambda: (no_relu,)],
    "19.4": [lambda: (all_keys,), lambda: (unmasked,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "19.1": ["not 4 blocks of y in the grid (3, 4)", "a list of 5 numbers"],
    "19.2": [
        "For random numbers the sum should be 6.2380, and is 7.6704",
        "should be -4",
    ],
    "19.3": ["max is computed outside of the kernel", "the numbers are others"],
    "19.4": ["B are fetched, and 24,000 B are enough", "the numbers are others"],
}
