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
    tiny.SHAPES["max"] = tiny.entry_by_entry
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


# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "02.1": (
        "play Python: write down each operation on x, in the order in which it runs.",
        "the loop runs twice while tracing; print and if leave nothing.",
        "minijax/core/partial_eval.py, `DynamicJaxprTrace`.",
    ),
    "02.2": (
        "the two printed traces: which literal differs, and where did it come from?",
        "what changes between two calls must come in as an argument.",
        "the puzzle of chapter 03, which is about the same literal.",
    ),
    "02.3": (
        "jnp.maximum(x, 0) needs no `if`; which primitive would that be in `tiny`?",
        "give MEANING and SHAPES a new entry, np.maximum and entry_by_entry, and let "
        "relu call `bind` with it.",
        "tiny/trace.py, `bind`.",
    ),
    "02.4": (
        "count what runs in the loop's body, times how often it runs.",
        "print(make_jaxpr(f)(np.ones(3, np.float32))) and compare with your count, "
        "line by line.",
        "the text of make_jaxpr(f)(x), line by line.",
    ),
}

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
# What `check` says of each wrong answer.
COMPLAINTS = {
    "02.1": ["It has 4 equations, not 3", "Equation 4 is not mean"],
    "02.2": ["Two traces with the same arguments differ", "is not x * n"],
    "02.3": ["so `if` and `while` cannot look at it", "the program gives"],
    "02.4": ["It has 12 equations, not 6", "Equations in it: 1."],
}
