"""tiny, a toy over NumPy. This piece: derivatives of derivatives, and of a solution."""

import numpy as np

from tiny.batching import BATCHING, entries_of_many, vmap
from tiny.linearize import tracers_outside
from tiny.operations import primitive
from tiny.tangents import TANGENTS, Dual, jvp
from tiny.trace import SHAPES, bind, trace, type_of
from tiny.transposes import grad, vjp


def hvp(function, x, v):
    """The Hessian times v: forward mode over reverse mode, without the Hessian."""
    return jvp(grad(function), (x,), (v,))[1]


def jacfwd(function):
    """A column of the Jacobian for each entry of the argument, all by one vmap."""

    def of(x):
        basis = np.eye(type_of(x).shape[0], dtype=np.float32)
        return vmap(lambda v: jvp(function, (x,), (v,))[1], 0, -1)(basis)

    return of


def jacrev(function):
    """A row of the Jacobian for each entry of the result, all by one vmap."""

    def of(x):
        value, back = vjp(function, x)
        basis = np.eye(type_of(value).shape[0], dtype=np.float32)
        return vmap(lambda c: back(c)[0])(basis)

    return of


def root(function, a, start):
    """The x with function(a, x) = 0 that Newton's steps reach, entry by entry."""
    program = trace(function, a, start)
    if tracers_outside(program):
        raise TypeError("root's function must get all that is traced by its argument a")
    return bind("root", a, start, program=program)


def newton(a, x, program):
    for _ in range(50):
        value, slope = jvp(lambda x: program(a, x), (x,), (np.ones_like(x),))
        x = x - value / slope
    return x


def implicit(a, start, program):
    """If function(a, x) stays 0, then x moves by -(change by a) / (slope in x)."""
    x = bind("root", a.value, start.value, program=program)
    if a.tangent is None:
        return Dual(x)
    one = np.ones(type_of(x).shape, np.float32)
    _, slope = jvp(lambda x: program(a.value, x), (x,), (one,))
    _, change = jvp(lambda a: program(a, x), (a.value,), (a.tangent,))
    return Dual(x, -(change / slope))


primitive("root", newton, lambda a, start, program: SHAPES["add"](a, start))
TANGENTS["root"] = implicit
BATCHING["root"] = lambda *xs, program: entries_of_many("root", *xs, program=program)
