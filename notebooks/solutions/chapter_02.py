"""Chapter 02: a solution of each exercise, and two answers that must fail."""

import numpy as np

import minijax.numpy as jnp
from tiny import trace as tiny

calls = []


def scaled(x, n):
    """What changes comes in as an argument."""
    return x * n


def scaled_by_calls(x, n):
    """Wrong: the number of calls is written into each program."""
    calls.append(1)
    return x * float(len(calls))


def relu(x):
    """One equation, with a primitive that `tiny` did not have."""
    tiny.MEANING["max"] = np.maximum
    return tiny.bind("max", x, 0.0)


def relu_with_if(x):
    """Wrong: it asks for a value that is not there yet."""
    return x if x > 0 else 0.0


def half(x):
    """Wrong: traceable, one equation, another function."""
    return x * 0.5


def polynomial(x):
    """Horner's rule: two equations a round, six rounds."""
    total = x
    for factor in range(6):
        total = total * x + float(factor)
    return total


# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "02.1": lambda: (["mul", "mul", "sub", "reduce_sum"],),
    "02.2": lambda: (scaled,),
    "02.3": lambda: (relu, tiny.trace),
    "02.4": lambda: (polynomial, 12),
}
WRONG = {
    "02.1": [
        lambda: (["mul", "sub", "reduce_sum"],),
        lambda: (["mul", "mul", "sub", "mean"],),
    ],
    "02.2": [lambda: (scaled_by_calls,), lambda: (lambda x, n: x * 2.0,)],
    "02.3": [lambda: (relu_with_if, tiny.trace), lambda: (half, tiny.trace)],
    "02.4": [lambda: (polynomial, 6), lambda: (lambda x: jnp.sin(x), 1)],
}
