"""tiny, a toy over NumPy. This piece: tracing, and the program that it writes down."""

import string
from functools import partial
from typing import NamedTuple

import numpy as np

from tiny.tree import flatten, unflatten

KINDS = {"f": "f32", "i": "i32", "u": "u32", "b": "bool"}


class Type(NamedTuple):
    """All that tracing knows of an array."""

    shape: tuple
    dtype: str

    def __str__(self):
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Equation(NamedTuple):
    results: list
    primitive: str
    operands: tuple
    params: dict


class Program:
    """What tracing writes: inputs, equations in their order, and outputs."""

    def __init__(self):
        self.inputs, self.equations, self.outputs = [], [], []

    def __call__(self, *args):
        return unflatten(self.tree, evaluate(self, AGAIN, flatten(args)[0]))

    def __str__(self):
        return text_of(self, Names())


class Names(dict):
    """a, b, ..., z, ba, bb, ...: a name for each thing when it is first met."""

    def __missing__(self, thing):
        number, name = len(self), ""
        while number or not name:
            number, digit = divmod(number, 26)
            name = string.ascii_lowercase[digit] + name
        return self.setdefault(thing, name)


def text_of(program, names):
    """The program as JAX prints it, apart from where long lines are broken."""
    operands = [o for e in program.equations for o in e.operands]
    used = {o for o in operands + program.outputs if isinstance(o, Tracer)}
    arrays = {id(o): o for o in operands + program.outputs if is_array(o)}

    def typed(key, value):
        return f"{names[key]}:{type_of(value)}"

    def atom(value):
        if isinstance(value, Tracer):
            return names[value]
        return names[id(value)] if is_array(value) else f"{value}:{type_of(value)}"

    def param(value):
        if isinstance(value, (list, tuple)) and any(is_program(v) for v in value):
            return f"( {' '.join(map(param, value))} )"
        return " ".join(text_of(value, names).split()) if is_program(value) else value

    constants = " ".join(typed(*item) for item in arrays.items())
    inputs = " ".join(typed(v, v) for v in program.inputs)
    lines = []
    for results, primitive, given, params in program.equations:
        left = " ".join(typed(v, v) if v in used else f"_:{v.type}" for v in results)
        inside = " ".join(f"{k}={param(v)}" for k, v in sorted(params.items()))
        right = primitive + (f"[{inside}]" if inside else "")
        lines.append(" ".join([left, "=", right, *map(atom, given)]))
    head = f"{{ lambda {constants}; {inputs}. let"
    outputs = ", ".join(map(atom, program.outputs))
    last = f"in ({outputs},) }}" if len(program.outputs) == 1 else f"in ({outputs}) }}"
    short = f"{head} {'; '.join(lines)} {last}"
    if len(short) <= 80:
        return short
    return "\n    ".join([head, *lines]) + f"\n  {last}"


def is_program(value):
    return isinstance(value, Program)


def is_array(value):
    return not isinstance(value, Tracer) and np.ndim(value) > 0


class Tracer:
    """Stands in for an array: it has a type, and no numbers."""

    __array_ufunc__ = None  # so that `array + tracer` asks the tracer

    def __init__(self, program, type):
        self.program, self.type = program, type
        self.shape = type.shape

    def __repr__(self):
        return f"Tracer({self.type})"

    def __bool__(self):
        raise TypeError(
            f"{self} has a type and no value, so `if` and `while` cannot look at it; "
            "write cond, scan or where instead."
        )

    def __add__(self, other):
        return bind("add", self, other)

    def __radd__(self, other):
        return bind("add", other, self)

    def __sub__(self, other):
        return bind("sub", self, other)

    def __rsub__(self, other):
        return bind("sub", other, self)

    def __mul__(self, other):
        return bind("mul", self, other)

    def __rmul__(self, other):
        return bind("mul", other, self)

    def __truediv__(self, other):
        return bind("div", self, other)

    def __rtruediv__(self, other):
        return bind("div", other, self)

    def __neg__(self):
        return bind("neg", self)

    def __pow__(self, power):
        if isinstance(power, int):
            return bind("integer_pow", self, y=power)
        return bind("pow", self, power)

    def __gt__(self, other):
        return bind("gt", self, other)

    def __lt__(self, other):
        return bind("lt", self, other)


MEANING = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
MEANING.update(neg=np.negative, log=np.log, exp=np.exp, sin=np.sin, cos=np.cos)
MEANING.update(tanh=np.tanh, sqrt=np.sqrt, pow=np.power)
MEANING["integer_pow"] = lambda x, y: 1.0 / x**-y if y < 0 else x**y
COMPARISONS = {"gt": np.greater, "lt": np.less, "eq": np.equal}
MEANING.update(COMPARISONS)


def entry_by_entry(*types, **params):
    shape = np.broadcast_shapes(*(type.shape for type in types))
    return max((Type(shape, type.dtype) for type in types), key=lambda t: t[1] == "f32")


SHAPES = dict.fromkeys(MEANING, entry_by_entry)
for name in COMPARISONS:
    SHAPES[name] = lambda *types: Type(entry_by_entry(*types).shape, "bool")


def type_of(value):
    if isinstance(value, Type):  # tracing needs no more of an argument than this
        return value
    if isinstance(value, Tracer):
        return value.type
    return Type(np.shape(value), KINDS[np.asarray(value).dtype.kind])


OPEN = []  # the programs that are being written, the innermost last


def bind(primitive, *operands, **params):
    """With numbers: compute. With a tracer among them: write an equation."""
    tracers = [operand for operand in operands if isinstance(operand, Tracer)]
    if not tracers:
        return MEANING[primitive](*operands, **params)
    if any(tracer.program not in OPEN for tracer in tracers):
        raise TypeError(f"{primitive} uses a tracer of a program that is finished.")
    program = max((tracer.program for tracer in tracers), key=OPEN.index)
    types = SHAPES[primitive](*map(type_of, operands), **params)
    several = isinstance(types, list)
    results = [Tracer(program, type) for type in (types if several else [types])]
    program.equations.append(Equation(results, primitive, operands, params))
    return results if several else results[0]


def trace(function, *args):
    """Runs `function` on tracers and returns the program that this wrote down."""
    program = Program()
    leaves, structure = flatten(args)
    program.inputs = [Tracer(program, type_of(leaf)) for leaf in leaves]
    OPEN.append(program)
    try:
        output = function(*unflatten(structure, program.inputs))
    finally:
        OPEN.remove(program)
    program.outputs, program.tree = flatten(output)
    return program


def evaluate(program, table, args, outside=lambda operand: operand):
    """Goes through the equations; the table says what each does with the values.

    `outside` says what to make of an operand that is no variable of the program.
    """
    values = dict(zip(program.inputs, args))

    def read(operand):
        known = isinstance(operand, Tracer) and operand in values
        return values[operand] if known else outside(operand)

    for results, primitive, operands, params in program.equations:
        found = table[primitive](*map(read, operands), **params)
        values.update(zip(results, found if isinstance(found, list) else [found]))
    return [read(output) for output in program.outputs]


class Again(dict):
    """The table that does each equation once more, on other operands."""

    def __missing__(self, primitive):
        return partial(bind, primitive)


AGAIN = Again()
