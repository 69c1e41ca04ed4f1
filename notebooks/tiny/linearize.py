"""tiny, a toy over NumPy. This piece: values now, a linear program for later."""

import numpy as np

from tiny.tangents import TANGENTS, Dual, tangent_of
from tiny.trace import OPEN, Program, Tracer, evaluate, trace, type_of
from tiny.tree import flatten, unflatten


def linearize(function, *primals):
    """The value of `function`, and a program from its tangents to the value's.

    Values are computed as usual. Tangents are tracers of a program of their own: what
    is done to them is written there, and what is done to values alone is not.
    """
    program = trace(function, *primals)
    leaves = flatten(primals)[0]
    linear = Program()
    linear.inputs = [Tracer(linear, type_of(leaf)) for leaf in leaves]
    OPEN.append(linear)
    try:
        duals = map(Dual, leaves, linear.inputs)
        results = evaluate(program, TANGENTS, duals, outside=Dual)
    finally:
        OPEN.remove(linear)
    linear.outputs, linear.tree = [tangent_of(dual) for dual in results], program.tree
    return unflatten(program.tree, [dual.value for dual in results]), linear


def outside(program):
    """The tracers and arrays that a program uses and does not make itself.

    For a linear program these are the residuals, kept for it while values go forward.
    """
    made, found = set(program.inputs), {}
    for equation in program.equations:
        made.update(equation.results)
    operands = [o for equation in program.equations for o in equation.operands]
    for operand in operands + program.outputs:
        if operand not in made if isinstance(operand, Tracer) else np.ndim(operand):
            found[id(operand)] = operand
    return list(found.values())


def tracers_outside(program):
    return [value for value in outside(program) if isinstance(value, Tracer)]
