"""Chapter 14: a solution of each exercise, and two answers that must fail."""

import minijax
import minijax.numpy as jnp
from minijax import export, jit

CALLS = "runs refused refused refused runs runs refused runs refused".split()


def spread(x):
    """The standard deviation of each column, by n - 1."""
    if x.shape[0] < 2:
        return jnp.zeros(x.shape[1])
    centred = x - x.mean(0)
    return jnp.sqrt((centred * centred).sum(0) / (x.shape[0] - 1))


def kept_spread():
    """With the constraint, the question in the `if` has one answer."""
    (b,) = export.symbolic_shape("b", constraints=["b >= 2"])
    return export.export(jit(spread))(minijax.ShapeDtypeStruct((b, 4), jnp.float32))


def kept_for_two_rows():
    """Wrong: a number is no name."""
    return export.export(jit(spread))(minijax.ShapeDtypeStruct((2, 4), jnp.float32))


def kept_without_constraint():
    """Wrong: without the `if` one row is divided by zero."""

    def unguarded(x):
        centred = x - x.mean(0)
        return jnp.sqrt((centred * centred).sum(0) / (x.shape[0] - 1))

    (b,) = export.symbolic_shape("b")
    return export.export(jit(unguarded))(minijax.ShapeDtypeStruct((b, 4), jnp.float32))


def pack(function, spec):
    """The program and the program of its derivative, as bytes."""
    return export.export(jit(function))(spec).serialize(vjp_order=1)


def pack_value(function, spec):
    """Wrong: the derivative stays at home."""
    return export.export(jit(function))(spec).serialize()


def pack_text(function, spec):
    """Wrong: the StableHLO alone has no signature."""
    return jit(function).lower(spec).as_text().encode()


MACHINES = {"kernels": [4, 1, 4], "one pass": "h100", "copies": "tpu"}

# From the first idea to what to read; `hint("NN.N")` gives one after the other.
HINTS = {
    "14.1": (
        "ask of each call: is there Python left to trace, or only a finished program?",
        "a compiled object runs one signature; an exported one is a primitive with a "
        "derivative, as long as the derivative was kept.",
        'the sections "What a compiled program checks" and "A program as bytes".',
    ),
    "14.2": (
        "what does the message say that the comparison depends on?",
        'export.symbolic_shape takes constraints=["..."], as the message shows.',
        'the section "A name for a size" of this chapter.',
    ),
    "14.3": (
        "the other process has neither your function nor its closure.",
        "its grad needs a second program: what keeps it is an argument of serialize.",
        "`export.Exported.serialize`: what its arguments mean.",
    ),
    "14.4": (
        "each row with an arrow `-> K` is a kernel of the compiled program.",
        "one pass: x is read once and the result written once, 2 MiB each.",
        "the texts of the three views; click a kernel to see what is in it.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "14.1": lambda: (CALLS,),
    "14.2": lambda: (kept_spread(),),
    "14.3": lambda: (pack,),
    "14.4": lambda: (MACHINES,),
}
WRONG = {
    "14.1": [lambda: (["runs"] * 9,), lambda: (["runs"],)],
    "14.2": [lambda: (kept_for_two_rows(),), lambda: (kept_without_constraint(),)],
    "14.3": [lambda: (pack_value,), lambda: (pack_text,)],
    "14.4": [
        lambda: ({**MACHINES, "kernels": [9, 7, 12]},),
        lambda: ({**MACHINES, "copies": "h100"},),
    ],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "14.1": ["look again at b", "list of 9 words"],
    "14.2": ["With 3 rows: Shape mismatch", "It takes 1 row"],
    "14.3": ["No VJP is available", "not an exported function"],
    "14.4": ["The kernels are not [9, 7, 12]", "\"copies\" is not 'h100'"],
}
