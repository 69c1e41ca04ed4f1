"""tiny, a toy over NumPy. This piece: forward mode, a tangent beside each value."""

from typing import NamedTuple

import numpy as np

from tiny.operations import broadcast, cos, log, sin, where
from tiny.trace import bind, evaluate, trace, type_of
from tiny.tree import flatten, unflatten

TANGENTS = {}


class Dual(NamedTuple):
    """A value, and how it changes; None stands for a tangent that is zero."""

    value: object
    tangent: object = None


def slopes(primitive, *rules):
    """`rules[i](t, answer, *operands)`: what a change t of operand i does."""

    def both(*duals, **params):
        values = [dual.value for dual in duals]
        answer = bind(primitive, *values, **params)
        total = None
        for rule, dual in zip(rules, duals):
            if rule is not None and dual.tangent is not None:
                part = rule(dual.tangent, answer, *values, **params)
                total = part if total is None else bind("add_any", total, part)
        return Dual(answer, total)

    TANGENTS[primitive] = both


def like(t, answer):
    """A tangent of the answer's shape, for an operand that was spread out."""
    shape = type_of(answer).shape
    return t if type_of(t).shape == shape else t + np.zeros(shape, np.float32)


def share(answer, mine, other):
    """The part of a change that reaches a maximum: half of it at a tie."""
    ties = where(bind("eq", answer, other), 2.0, 1.0)
    return where(bind("eq", answer, mine), 1.0, 0.0) / ties


def largest(t, y, x, axes):
    """The tangent of the largest entries, shared out among equals."""
    shape = type_of(x).shape
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    at = where(bind("eq", x, broadcast(y, shape, kept)), 1.0, 0.0)
    return bind("reduce_sum", t * at, axes=axes) / bind("reduce_sum", at, axes=axes)


def power(x, y):
    return x if y == 1 else bind("integer_pow", x, y=y)


def linear(primitive):
    """For an operation that is linear, the tangent goes the way of the value."""
    slopes(primitive, lambda t, y, x, **params: bind(primitive, t, **params))


def rules_of_school():
    """The rows of what goes entry by entry, and of the product of matrices."""
    slopes("add", lambda t, z, x, y: like(t, z), lambda t, z, x, y: like(t, z))
    slopes("add_any", lambda t, z, x, y: t, lambda t, z, x, y: t)
    slopes("sub", lambda t, z, x, y: like(t, z), lambda t, z, x, y: like(-t, z))
    slopes("mul", lambda t, z, x, y: t * y, lambda t, z, x, y: x * t)
    slopes("div", lambda t, z, x, y: t / y, lambda t, z, x, y: -t * x * y**-2)
    slopes("neg", lambda t, y, x: -t)
    slopes("log", lambda t, y, x: t / x)
    slopes("exp", lambda t, y, x: t * y)
    slopes("sin", lambda t, y, x: t * cos(x))
    slopes("cos", lambda t, y, x: -(t * sin(x)))
    slopes("tanh", lambda t, y, x: (t + t * y) * (1.0 - y))
    slopes("sqrt", lambda t, y, x: t * (0.5 / y))
    slopes("integer_pow", lambda t, z, x, y: t * (float(y) * power(x, y - 1)))
    slopes(
        "pow",
        lambda t, z, x, y: t * (y * bind("pow", x, y - 1.0)),
        lambda t, z, x, y: t * (log(x) * z),
    )
    slopes(
        "dot_general",
        lambda t, z, x, y, **params: bind("dot_general", t, y, **params),
        lambda t, z, x, y, **params: bind("dot_general", x, t, **params),
    )


rules_of_school()
slopes(
    "max",
    lambda t, z, x, y: like(t * share(z, x, y), z),
    lambda t, z, x, y: like(t * share(z, y, x), z),
)
slopes("reduce_max", largest)
slopes(
    "select_n",
    None,
    lambda t, z, which, no, yes: where(which, 0.0, like(t, z)),
    lambda t, z, which, no, yes: where(which, like(t, z), 0.0),
)
for name in ("gt", "lt", "eq", "stop_gradient", "random_uniform"):
    slopes(name)
for name in ("reduce_sum", "broadcast_in_dim", "transpose", "reshape", "take", "put"):
    linear(name)


def jvp(function, primals, tangents):
    """The values of a function, and their changes if its arguments change so."""
    program = trace(function, *primals)
    duals = map(Dual, flatten(primals)[0], flatten(tangents)[0])
    results = evaluate(program, TANGENTS, duals, outside=Dual)
    values = [dual.value for dual in results]
    return (
        unflatten(program.tree, values),
        unflatten(program.tree, [tangent_of(dual) for dual in results]),
    )


def tangent_of(dual):
    zeros = np.zeros(type_of(dual.value).shape, np.float32)
    return zeros if dual.tangent is None else dual.tangent
