"""tiny, a toy over NumPy. This piece: a primitive of your own, in all five tables."""

import numpy as np

from tiny.batching import BATCHING, Batched, move, rule, size_of, to_front
from tiny.operations import primitive
from tiny.tangents import TANGENTS, Dual, linear
from tiny.trace import bind
from tiny.transposes import TRANSPOSES, alone, unknown


def neighbours(x, reverse):
    """At each place of the last axis the entry before it; with reverse the next one."""
    moved = np.zeros_like(x)
    if reverse:
        moved[..., :-1] = x[..., 1:]
    else:
        moved[..., 1:] = x[..., :-1]
    return moved


primitive("shift", neighbours, lambda x, reverse: x)


def toy_shift(x, reverse=False):
    return bind("shift", x, reverse=reverse)


linear("shift")
alone("shift")(lambda c, x, reverse: toy_shift(c, not reverse))


@rule("shift")
def shift_of_many(x, axis, reverse):
    return Batched(toy_shift(move(x, axis, 0), reverse), 0)


def recurrence(a, x, reverse):
    """y[t] = a[t] * y[t-1] + x[t] along the last axis; with reverse from the end."""
    y = np.zeros_like(x)
    now = np.zeros_like(x[..., 0])
    steps = range(x.shape[-1])
    for t in reversed(steps) if reverse else steps:
        now = a[..., t] * now + x[..., t]
        y[..., t] = now
    return y


primitive("recur", recurrence, lambda a, x, reverse: x)


def toy_recur(a, x, reverse=False):
    return bind("recur", a, x, reverse=reverse)


def recur_tangent(a, x, reverse):
    """Of the Duals a and x: the answer, and how it changes; a tangent may be None."""
    y = toy_recur(a.value, x.value, reverse)
    change = x.tangent
    if a.tangent is not None:
        part = a.tangent * toy_shift(y, reverse)
        change = part if change is None else change + part
    return Dual(y, None if change is None else toy_recur(a.value, change, reverse))


def recur_transpose(cotangents, a, x, reverse):
    """The cotangents of a and x, one of which is Unknown: the linear operand is x."""
    (c,) = cotangents
    if not unknown(x) or unknown(a):
        raise TypeError("recur is linear in x alone")
    return [None, toy_recur(toy_shift(a, not reverse), c, not reverse)]


def recur_of_many(a, x, reverse):
    """The answer for many examples; a, x or both are Batched with an axis."""
    size = size_of(a, x)
    return Batched(toy_recur(to_front(a, size), to_front(x, size), reverse), 0)


TANGENTS["recur"] = recur_tangent
TRANSPOSES["recur"] = recur_transpose
BATCHING["recur"] = recur_of_many
