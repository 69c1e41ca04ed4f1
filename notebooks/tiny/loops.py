"""tiny, a toy over NumPy. This piece: a branch and a loop, each in one equation."""

from functools import partial

import numpy as np

from tiny.trace import MEANING, Tracer, bind, look_up, trace


class Body:
    """A program inside of an equation, written down once."""

    def __init__(self, function, *args):
        self.program = trace(function, *args)
        self.shape = np.shape(self.program.output)

    def __call__(self, *args):
        return self.program(*args)

    def __str__(self):
        return " ".join(str(self.program).split())


def write(primitive, shape, *operands):
    """Like `bind`, for a result whose shape the bodies tell."""
    tracers = [operand for operand in operands if isinstance(operand, Tracer)]
    if not tracers:
        return MEANING[primitive](*operands)
    result = Tracer(tracers[0].program, shape)
    result.program.equations.append((result, primitive, operands))
    return result


def cond(pred, true_fun, false_fun, x):
    no, yes = Body(false_fun, x), Body(true_fun, x)
    if no.shape != yes.shape:
        raise TypeError(f"one branch gives {yes.shape}, the other {no.shape}")
    return write("cond", no.shape, pred, no, yes, x)


def scan(step, carry, xs):
    body = Body(step, carry, np.zeros(np.shape(xs)[1:]))
    if body.shape != np.shape(carry):
        raise TypeError(f"the carry is {np.shape(carry)} and becomes {body.shape}")
    return write("scan", body.shape, body, carry, xs)


def run_cond(pred, no, yes, x):
    return yes(x) if pred else no(x)


def run_scan(body, carry, xs):
    for x in xs:
        carry = body(carry, x)
    return carry


MEANING.update(cond=run_cond, scan=run_scan, select=np.where, greater=np.greater)


def many(program):
    """The program for many examples, one after the other along the last axis."""

    def run(*args):
        values = dict(zip(program.inputs, args))
        for result, primitive, operands in program.equations:
            given = [look_up(values, operand) for operand in operands]
            rule = BATCHING.get(primitive, partial(bind, primitive))
            values[result] = rule(*given)
        return look_up(values, program.output)

    return run


def cond_of_many(pred, no, yes, x):
    if np.shape(pred) == ():
        return cond(pred, many(yes.program), many(no.program), x)
    return bind("select", pred, many(yes.program)(x), many(no.program)(x))


def scan_of_many(body, carry, xs):
    step = many(body.program)
    shape = Body(step, carry, np.zeros(np.shape(xs)[1:])).shape
    return scan(step, bind("add", carry, np.zeros(shape)), xs)


BATCHING = {"cond": cond_of_many, "scan": scan_of_many}
