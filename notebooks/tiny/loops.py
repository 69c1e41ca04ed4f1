"""tiny, a toy over NumPy. This piece: a branch and a loop, each in one equation."""

import numpy as np

from tiny.linearize import tracers_outside
from tiny.operations import primitive
from tiny.trace import AGAIN, Type, bind, evaluate, trace, type_of
from tiny.tree import flatten, unflatten


def cond(pred, true_fun, false_fun, *args):
    """One of two functions; what they take from outside becomes an operand."""
    no, yes = trace(false_fun, *args), trace(true_fun, *args)
    types = [[type_of(output) for output in body.outputs] for body in (no, yes)]
    if types[0] != types[1] or no.tree != yes.tree:
        here, there = (" ".join(map(str, found)) for found in types)
        raise TypeError(f"one branch gives {there}, the other {here}")
    found = list(dict.fromkeys(tracers_outside(no) + tracers_outside(yes)))
    for body in (no, yes):
        body.inputs = found + body.inputs
    operands = found + flatten(args)[0]
    return unflatten(yes.tree, bind("cond", pred, *operands, branches=(no, yes)))


def scan(step, carry, xs, length=None, reverse=False, known=0):
    """A loop over rows: `step(carry, x)` gives the next carry and a row.

    What the step takes from outside goes along as a carry that never changes.
    """
    start, structure = flatten(carry)
    rows, row_structure = flatten(xs)
    length = type_of(rows[0]).shape[0] if rows else length
    row = [Type(type_of(x).shape[1:], type_of(x).dtype) for x in rows]
    body = trace(step, carry, unflatten(row_structure, row))
    before = [type_of(x) for x in start]
    after = [type_of(x) for x in body.outputs[: len(start)]]
    if before != after:
        was, becomes = (" ".join(map(str, types)) for types in (before, after))
        raise TypeError(f"the carry is {was} and becomes {becomes}")
    found = tracers_outside(body)
    body.inputs, body.outputs = found + body.inputs, found + body.outputs
    params = dict(body=body, count=len(found + start), length=length)
    params.update(reverse=reverse, known=known)
    results = bind("scan", *found, *start, *rows, **params)
    return unflatten(body.tree, results[len(found) :])


def run_cond(pred, *operands, branches):
    return evaluate(branches[bool(pred)], AGAIN, operands)


def run_scan(*operands, body, count, length, reverse, known):
    carry, xs, rows = operands[:count], operands[count:], []
    for i in range(length)[:: -1 if reverse else 1]:
        results = evaluate(body, AGAIN, [*carry, *(x[i] for x in xs)])
        carry = results[:count]
        rows.append(results[count:])
    columns = zip(*rows[:: -1 if reverse else 1])
    return [*carry, *map(np.stack, columns)]


def scan_type(*operands, body, count, length, reverse, known):
    types = [type_of(output) for output in body.outputs]
    return types[:count] + [Type((length, *t.shape), t.dtype) for t in types[count:]]


primitive("cond", run_cond, lambda *_, branches: [*map(type_of, branches[0].outputs)])
primitive("scan", run_scan, scan_type)
