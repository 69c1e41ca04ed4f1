"""tiny, a toy over NumPy. This piece: reverse mode, a linear program backwards."""

from typing import NamedTuple

import numpy as np

from tiny.linearize import linearize
from tiny.operations import broadcast, transpose, where, without
from tiny.trace import AGAIN, Tracer, Type, bind, evaluate, trace, type_of
from tiny.tree import flatten, unflatten

TRANSPOSES = {}


class Unknown(NamedTuple):
    """Stands for a linear operand: only its type is known on the way back."""

    type: Type

    def fit(self, c):
        """Sums a cotangent over the axes along which the operand was spread out."""
        shape, ours = type_of(c).shape, self.type.shape
        more = len(shape) - len(ours)
        sizes = (1,) * more + ours
        axes = tuple(i for i, size in enumerate(sizes) if size != shape[i])
        c = bind("reduce_sum", c, axes=axes) if axes else c
        return c if type_of(c).shape == ours else bind("reshape", c, shape=ours)


def unknown(operand):
    return isinstance(operand, Unknown)


def entries(primitive, *rules):
    """`rules[i](c, *operands)`: what the cotangent c of the result gives operand i."""

    def back(cotangents, *operands):
        (c,) = cotangents
        pairs = zip(rules, operands)
        return [o.fit(rule(c, *operands)) if unknown(o) else None for rule, o in pairs]

    TRANSPOSES[primitive] = back


def alone(primitive):
    """For rules of an operation with one operand: `rule(c, x, **params)`."""

    def keep(rule):
        TRANSPOSES[primitive] = lambda cs, x, **params: [rule(cs[0], x, **params)]

    return keep


def rules_of_entries():
    """The rows of what goes entry by entry: a cotangent for each operand."""
    entries("add", lambda c, x, y: c, lambda c, x, y: c)
    entries("add_any", lambda c, x, y: c, lambda c, x, y: c)
    entries("sub", lambda c, x, y: c, lambda c, x, y: -c)
    entries("mul", lambda c, x, y: c * y, lambda c, x, y: x * c)
    entries("div", lambda c, x, y: c / y)
    entries("neg", lambda c, x: -c)
    entries(
        "select_n",
        None,
        lambda c, which, no, yes: where(which, 0.0, c),
        lambda c, which, no, yes: where(which, c, 0.0),
    )


rules_of_entries()


@alone("reduce_sum")
def spread_out(c, x, axes):
    kept = without(range(len(x.type.shape)), axes)
    return broadcast(c, x.type.shape, tuple(kept))


@alone("broadcast_in_dim")
def sum_up(c, x, shape, broadcast_dimensions):
    axes = tuple(i for i in range(len(shape)) if i not in broadcast_dimensions)
    return x.fit(bind("reduce_sum", c, axes=axes) if axes else c)


@alone("transpose")
def turn_back(c, x, permutation):
    return transpose(c, tuple(int(i) for i in np.argsort(permutation)))


alone("reshape")(lambda c, x, shape: bind("reshape", c, shape=x.type.shape))
alone("take")(lambda c, x, index: bind("put", c, index=index, shape=x.type.shape))
alone("put")(lambda c, x, index, shape: bind("take", c, index=index))


def dot_back(c, x, y, dimension_numbers):
    """What the cotangent c of a product gives its first operand x, which is Unknown."""
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    free_x = without(range(len(x.type.shape)), {*over_x, *batch_x})
    free_y = without(range(len(type_of(y).shape)), {*over_y, *batch_y})
    first = len(batch_x) + len(free_x)
    of_c = list(range(first, first + len(free_y)))
    numbers = ((of_c, list(free_y)), (list(range(len(batch_x))), list(batch_y)))
    found = bind("dot_general", c, y, dimension_numbers=numbers)
    # The axes of y that met x are left, in the order of y.
    met = [over_x[over_y.index(i)] for i in sorted(over_y)]
    order = [*batch_x, *free_x, *met]
    return transpose(found, tuple(int(i) for i in np.argsort(order)))


def dot_back_of_either(cotangents, x, y, dimension_numbers):
    (c,) = cotangents
    if unknown(x):
        return [dot_back(c, x, y, dimension_numbers), None]
    (over_x, over_y), (batch_x, batch_y) = dimension_numbers
    # The result's axes as if x and y had changed places.
    count, mine = len(batch_x), len(type_of(x).shape) - len(over_x)
    order = [*range(count), *range(mine, len(type_of(c).shape))]
    c = transpose(c, [*order, *range(count, mine)])
    swapped = ((over_y, over_x), (batch_y, batch_x))
    return [None, dot_back(c, y, x, swapped)]


TRANSPOSES["dot_general"] = dot_back_of_either


def backward(linear, cotangents):
    """Goes through a linear program from its last equation to its first.

    A variable that was used twice gets two cotangents, and they are added.
    """
    sums = {}

    def add(tracer, c):
        if isinstance(tracer, Tracer) and tracer.program is linear and c is not None:
            known = sums.get(tracer)
            sums[tracer] = c if known is None else bind("add_any", known, c)

    for output, c in zip(linear.outputs, cotangents):
        add(output, c)
    for results, primitive, operands, params in reversed(linear.equations):
        cs = [sums.pop(result, None) for result in results]
        if any(c is not None for c in cs):
            cs = [zero(r) if c is None else c for r, c in zip(results, cs)]
            given = [
                Unknown(o.type) if isinstance(o, Tracer) and o.program is linear else o
                for o in operands
            ]
            parts = TRANSPOSES[primitive](cs, *given, **params)
            for operand, part in zip(operands, parts):
                add(operand, part)
    return [sums.get(v, zero(v)) for v in linear.inputs]


def zero(tracer):
    return np.zeros(tracer.shape, np.float32)


def with_known(program, operands):
    """The linear program of the unknown operands, the others being filled in."""

    def fill(*tangents):
        rest = iter(tangents)
        given = [next(rest) if unknown(o) else o for o in operands]
        return evaluate(program, AGAIN, given)

    return trace(fill, *(o.type for o in operands if unknown(o)))


def vjp(function, *primals):
    """The value, and the function that takes its cotangent to the arguments'."""
    value, linear = linearize(function, *primals)
    structure = flatten(primals)[1]

    def back(cotangent):
        return unflatten(structure, backward(linear, flatten(cotangent)[0]))

    return value, back


def value_and_grad(function):
    def both(first, *rest):
        value, back = vjp(lambda first: function(first, *rest), first)
        if type_of(value).shape != ():
            raise TypeError(f"grad needs one number, and got {type_of(value)}")
        return value, back(1.0)[0]

    return both


def grad(function):
    return lambda *args: value_and_grad(function)(*args)[1]
