"""tiny, a toy over NumPy. This piece: bounds, an interpreter of your own."""

from typing import NamedTuple

import numpy as np

from tiny.trace import bind, evaluate, trace
from tiny.tree import unflatten

INTERVALS = {}


class Interval(NamedTuple):
    """All that is known of a number: it lies between low and high."""

    low: object
    high: object


def increasing(primitive):
    """For an operation of one operand whose result grows with it."""
    INTERVALS[primitive] = lambda x: Interval(*(bind(primitive, end) for end in x))


for name in ("exp", "log", "tanh", "sqrt"):
    increasing(name)
INTERVALS["neg"] = lambda x: Interval(-x.high, -x.low)
INTERVALS["add"] = lambda x, y: Interval(x.low + y.low, x.high + y.high)
INTERVALS["sub"] = lambda x, y: Interval(x.low - y.high, x.high - y.low)


def product(x, y):
    """The interval in which all products of a number of x and one of y lie."""
    corners = [a * b for a in x for b in y]
    return Interval(np.minimum.reduce(corners), np.maximum.reduce(corners))


def power(x, y):
    """The interval of x ** y, for a whole y above 0: an even one is never negative."""
    low, high = x.low**y, x.high**y
    if y % 2:
        return Interval(low, high)
    crosses = (x.low < 0) & (x.high > 0)
    return Interval(
        np.where(crosses, 0.0, np.minimum(low, high)), np.maximum(low, high)
    )


INTERVALS["mul"], INTERVALS["integer_pow"] = product, power


def bounds(function, *intervals):
    """Where the results lie, if each argument lies in its interval."""
    program = trace(function, *(x.low for x in intervals))
    results = evaluate(program, INTERVALS, intervals, outside=lambda x: Interval(x, x))
    return unflatten(program.tree, results)
