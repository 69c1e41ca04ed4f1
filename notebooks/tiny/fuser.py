"""tiny, a toy over NumPy. This piece: neighbours entry by entry become one loop."""

from functools import partial

import numpy as np

from tiny.trace import MEANING, SHAPES, Tracer, entry_by_entry, type_of

ENTRY_BY_ENTRY = {name for name, rule in SHAPES.items() if rule is entry_by_entry}
ENTRY_BY_ENTRY |= {"gt", "lt", "eq"}


def kernels_of(program):
    """Lists of equations: one joins the first kernel that may run it and fits."""
    kernels, home = [], {}
    for equation in program.equations:
        # Its operands must be there: not before the last kernel that makes one.
        earliest = max((home.get(o, 0) for o in variables(equation)), default=0)
        after = range(earliest, len(kernels))
        fitting = [k for k in after if fits(equation, kernels[k][0])]
        chosen = fitting[0] if fitting else len(kernels)
        if not fitting:
            kernels.append([])
        kernels[chosen].append(equation)
        home.update(dict.fromkeys(equation.results, chosen))
    return kernels


def variables(equation):
    return [operand for operand in equation.operands if isinstance(operand, Tracer)]


def fits(equation, first):
    alone = {equation.primitive, first.primitive} - ENTRY_BY_ENTRY
    return not alone and equation.results[0].shape == first.results[0].shape


def written(program, kernel):
    """The results of a kernel that somebody else needs."""
    inside = {result for equation in kernel for result in equation.results}
    outer = [e for e in program.equations if not any(e is own for own in kernel)]
    needed = {o for e in outer for o in variables(e)}
    return inside & (needed | {o for o in program.outputs if isinstance(o, Tracer)})


def traffic(program, kernel):
    """The bytes that a kernel reads and writes; what stays inside costs none."""
    inside = {result for equation in kernel for result in equation.results}
    operands = {id(o): o for equation in kernel for o in equation.operands}
    read = [o for o in operands.values() if not (isinstance(o, Tracer) and o in inside)]
    return sum(map(size, read)), sum(map(size, written(program, kernel)))


def size(value):
    shape, dtype = type_of(value)
    return int(np.prod(shape)) * (1 if dtype == "bool" else 4)


def run(program, args, rows=64):
    """The outputs; a fused kernel goes through all its equations block by block."""
    values = dict(zip(program.inputs, args))
    for kernel in kernels_of(program):
        shape = kernel[0].results[0].shape
        if len(kernel) == 1 or not shape:
            values.update(compute(kernel, values, lambda x: x))
            continue
        kept = written(program, kernel)
        blocks = {result: [] for result in kept}
        for start in range(0, shape[0], rows):
            part = slice(start, start + rows)
            made = compute(kernel, values, partial(of_block, shape, part))
            for result in kept:
                blocks[result].append(made[result])
        values.update({result: np.concatenate(blocks[result]) for result in kept})
    return [values[o] if isinstance(o, Tracer) else o for o in program.outputs]


def of_block(shape, part, x):
    whole = np.ndim(x) < len(shape) or np.shape(x)[0] != shape[0]
    return x if whole else x[part]


def compute(kernel, values, cut):
    made = {}
    for results, primitive, operands, params in kernel:
        given = [
            made[o]
            if isinstance(o, Tracer) and o in made
            else cut(values[o] if isinstance(o, Tracer) else o)
            for o in operands
        ]
        found = MEANING[primitive](*given, **params)
        made.update(zip(results, found if isinstance(found, list) else [found]))
    return made
