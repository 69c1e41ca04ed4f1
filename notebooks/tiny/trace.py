"""tiny, a toy over NumPy. This piece: tracing, and the program that it writes down."""

import itertools
import string

import numpy as np

MEANING = {"add": np.add, "mul": np.multiply, "div": np.divide, "log": np.log}


class Program:
    """What tracing writes: inputs, equations in their order, and an output."""

    def __init__(self):
        self.inputs = []
        self.equations = []  # each is (result, primitive, operands)
        more = (f"v{number}" for number in itertools.count())
        self.names = itertools.chain(string.ascii_lowercase, more)

    def __str__(self):
        inputs = " ".join(f"{v.name}:{v.shape}" for v in self.inputs)
        lines = [f"{{ lambda {inputs}. let"]
        for result, primitive, operands in self.equations:
            words = " ".join(str(operand) for operand in operands)
            lines.append(f"    {result.name}:{result.shape} = {primitive} {words}")
        return "\n".join([*lines, f"  in {self.output} }}"])

    def __call__(self, *args):
        values = dict(zip(self.inputs, args))
        for result, primitive, operands in self.equations:
            numbers = [look_up(values, operand) for operand in operands]
            values[result] = MEANING[primitive](*numbers)
        return look_up(values, self.output)


class Tracer:
    """Stands in for an array: it has a name and a shape, and no numbers."""

    __array_ufunc__ = None  # so that `array + tracer` asks the tracer

    def __init__(self, program, shape):
        self.program = program
        self.shape = shape
        self.name = next(program.names)

    def __str__(self):
        return self.name

    def __add__(self, other):
        return bind("add", self, other)

    def __mul__(self, other):
        return bind("mul", self, other)

    def __truediv__(self, other):
        return bind("div", self, other)

    def __rtruediv__(self, other):
        return bind("div", other, self)


def look_up(values, operand):
    """A tracer's number, or the operand itself if it is a number already."""
    return values[operand] if isinstance(operand, Tracer) else operand


def bind(primitive, *operands):
    """With numbers: compute. With a tracer among them: write an equation."""
    tracers = [operand for operand in operands if isinstance(operand, Tracer)]
    if not tracers:
        return MEANING[primitive](*operands)
    program = tracers[0].program
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands))
    result = Tracer(program, shape)
    program.equations.append((result, primitive, operands))
    return result


def trace(function, *args):
    """Runs `function` on tracers and returns the program that this wrote down."""
    program = Program()
    program.inputs = [Tracer(program, np.shape(arg)) for arg in args]
    program.output = function(*program.inputs)
    return program
