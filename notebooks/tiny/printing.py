"""tiny, a toy over NumPy. This piece: printing in order, by a token."""

from tiny.trace import MEANING, SHAPES, Equation, Program, Tracer, Type, bind

TOKEN = Type((), "token")


def printed(x, *tokens, words):
    """Prints, and gives back the token that it was given, if any."""
    print(words.format(x))
    return list(tokens)


MEANING["print"] = printed
SHAPES["print"] = lambda x, *tokens, words: list(tokens)


def say(words, x):
    """Prints when the program runs, not while it is traced."""
    bind("print", x, words=words)


def run(program, args, choose):
    """Runs each equation when its operands are there; `choose` picks from those."""
    values = dict(zip(program.inputs, args))
    waiting = list(program.equations)

    def read(operand):
        return values[operand] if isinstance(operand, Tracer) else operand

    def is_ready(equation):
        return all(o in values for o in equation.operands if isinstance(o, Tracer))

    while waiting:
        ready = [i for i, equation in enumerate(waiting) if is_ready(equation)]
        results, primitive, operands, params = waiting.pop(choose(ready))
        found = MEANING[primitive](*map(read, operands), **params)
        values.update(zip(results, found if isinstance(found, list) else [found]))
    return [read(output) for output in program.outputs]


def threaded(program):
    """The program with one more input, a token, which each print takes and gives."""
    result = Program()
    token = Tracer(result, TOKEN)
    result.inputs = [*program.inputs, token]
    for equation in program.equations:
        if equation.primitive == "print":
            operands = (*equation.operands, token)
            token = Tracer(result, TOKEN)
            equation = Equation([token], "print", operands, equation.params)
        result.equations.append(equation)
    result.outputs = [*program.outputs, token]
    return result
