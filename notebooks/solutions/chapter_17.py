"""Chapter 17: a solution of each exercise, and two answers that must fail."""

import minijax.numpy as jnp
from minijax import lax

VARYING = "x none y y x none".split()


def softmax(part):
    """Two numbers for each row are exchanged: the largest entry, and the sum."""
    top = lax.pmax(part.max(1, keepdims=True), "i")
    e = jnp.exp(part - top)
    return e / lax.psum(e.sum(1, keepdims=True), "i")


def softmax_of_a_piece(part):
    """Wrong: each device divides by the sum of its own piece."""
    e = jnp.exp(part - part.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def gathered_softmax(part):
    """Wrong: every device gets the whole row."""
    row = lax.all_gather(part, "i", axis=1, tiled=True)
    e = jnp.exp(part - row.max(1, keepdims=True))
    return e / jnp.exp(row - row.max(1, keepdims=True)).sum(1, keepdims=True)


def pipeline(w, xs):
    """In turn t, stage d works on batch t - d."""
    stage, last = lax.axis_index("stage"), 3
    onward = [(d, d + 1) for d in range(last)]
    here = lax.pcast(jnp.zeros(xs.shape[1:]), "stage", to="varying")
    done = []
    for turn in range(len(xs) + last):
        fresh = xs[min(turn, len(xs) - 1)]
        out = jnp.tanh(jnp.where(stage == 0, fresh, here) @ w[0])
        done.append(jnp.where(stage == last, out, 0.0))
        here = lax.ppermute(out, "stage", onward)
    return lax.psum(jnp.stack(done[last:]), "stage")


def one_turn_short(w, xs):
    """Wrong: it takes the results one turn too early."""
    stage, last = lax.axis_index("stage"), 3
    onward = [(d, d + 1) for d in range(last)]
    here = lax.pcast(jnp.zeros(xs.shape[1:]), "stage", to="varying")
    done = []
    for turn in range(len(xs) + last):
        fresh = xs[min(turn, len(xs) - 1)]
        out = jnp.tanh(jnp.where(stage == 0, fresh, here) @ w[0])
        done.append(jnp.where(stage == last, out, 0.0))
        here = lax.ppermute(out, "stage", onward)
    return lax.psum(jnp.stack(done[last - 1 : -1]), "stage")


def all_stages_everywhere(w, xs):
    """Wrong: the weights are sent to all."""
    for stage in lax.all_gather(w[0], "stage", to="invarying"):
        xs = jnp.tanh(xs @ stage)
    return xs


def _multiply(a, piece, owner):
    rows = piece.shape[0]
    return lax.dynamic_slice_in_dim(a, (owner % 8) * rows, rows, 1) @ piece


def both_ways(a, b):
    """The own piece, then those of both neighbours, and so on; the last one once."""
    me = lax.axis_index("i")
    up = [(d, (d + 1) % 8) for d in range(8)]
    down = [(d, (d - 1) % 8) for d in range(8)]
    total, left, right = _multiply(a, b, me), b, b
    for turn in range(1, 5):
        left = lax.ppermute(left, "i", up)
        total = total + _multiply(a, left, me - turn)
        if turn < 4:
            right = lax.ppermute(right, "i", down)
            total = total + _multiply(a, right, me + turn)
    return total


def one_way(a, b):
    """Wrong: seven exchanges, all in one direction."""
    me = lax.axis_index("i")
    up = [(d, (d + 1) % 8) for d in range(8)]
    total = _multiply(a, b, me)
    for turn in range(1, 8):
        b = lax.ppermute(b, "i", up)
        total = total + _multiply(a, b, me - turn)
    return total


def gathered(a, b):
    """Wrong: everything at once."""
    return a @ lax.all_gather(b, "i", tiled=True)


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "17.1": (
        "what comes in by P('x') is the same along y.",
        "psum and pmax over an axis make it equal there; other axes stay.",
        "the table of the five exchanges: what does all_gather's type say?",
    ),
    "17.2": (
        "which two numbers of a whole row does an entry need?",
        "the largest entry of the row is the largest of eight largest entries.",
        "`lax.pmax` and `lax.psum`, each of something of shape (4, 1).",
    ),
    "17.3": (
        "in which turn does stage d work on batch n?",
        "each turn: take a fresh batch (stage 0) or what came in, compute, pass it on.",
        "`jnp.where(stage == 0, ...)`, `lax.ppermute(out, 'stage', pairs)`; the "
        "result is made equal by a psum of what the last stage has.",
    ),
    "17.4": (
        "the piece that is four steps away can come from either side.",
        "keep two pieces that travel, one in each direction.",
        "`around`: give it a second ppermute with the pairs turned round.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "17.1": lambda: (VARYING,),
    "17.2": lambda: (softmax,),
    "17.3": lambda: (pipeline,),
    "17.4": lambda: (both_ways,),
}
WRONG = {
    "17.1": [lambda: ("x x y y x none".split(),), lambda: (["x"],)],
    "17.2": [lambda: (softmax_of_a_piece,), lambda: (gathered_softmax,)],
    "17.3": [lambda: (one_turn_short,), lambda: (all_stages_everywhere,)],
    "17.4": [lambda: (one_way,), lambda: (gathered,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "17.1": ["look again at b", "list of 6 words"],
    "17.2": [
        "The first rows add up to [8.0, 8.0]. At index (",
        "An all-gather carries 2,048 B",
    ],
    "17.3": ["Batch 0 comes out", "An all-gather: weights"],
    "17.4": ["7 exchanges come one after", "There is an all-gather in it"],
}
