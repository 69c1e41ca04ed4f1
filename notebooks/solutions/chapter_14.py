"""Chapter 14: a solution of each exercise, and two answers that must fail."""

import dataclasses
from pathlib import Path

from jaxlib.mlir.passmanager import PassManager

import minijax
import minijax.numpy as jnp
from minijax import export, jit, lax
from minijax.backend import portable_artifacts

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


def steps_to_one(n):
    """How many steps Collatz's rule takes from n to 1."""
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def numbers_on_the_way(n):
    """Wrong: it counts the numbers, and not the steps between them."""
    return steps_to_one(n) + 1


def in_32_bits(n):
    """Wrong: what the file does, which overflows on the way from 837,799."""
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else (3 * n + 1 + 2**31) % 2**32 - 2**31
        steps += 1
    return steps


def write_message(path):
    """Writes the file of the chapter's beginning, without names of lines and files.

    Run as `chapter_14.write_message("notebooks/recordings/message.bin")`.
    """

    @jit
    def message(x):
        def step(state):
            x, count = state
            two = jnp.full_like(x, 2)
            after = lax.select(lax.rem(x, two) == 0, lax.div(x, two), 3 * x + 1)
            return lax.select(x > 1, after, x), count + (x > 1)

        goes_on = lambda state: jnp.any(state[0] > 1)  # noqa: E731
        return lax.while_loop(goes_on, step, (x, jnp.zeros_like(x)))[1]

    numbers = minijax.ShapeDtypeStruct((4096,), jnp.int32)
    kept = export.export(message, platforms=["cpu", "cuda", "tpu"])(numbers)
    module = kept.mlir_module(serialized=False)
    with module.context:
        PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
        program = portable_artifacts.to_bytes(module)
    others = (program,) * len(kept._others)
    kept = dataclasses.replace(kept, mlir_module_serialized=program, _others=others)
    Path(path).write_bytes(kept.serialize())


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
    "14.5": (
        "there is one `while`: its first part says how long it goes on, its second "
        "part what one turn does to two arrays.",
        "`%11` chooses between two numbers, by whether the rest of a division by 2 is "
        "0; the other array counts turns.",
        "what was asked in Hamburg in 1937, by Lothar Collatz.",
    ),
}

# Each answer is the tuple of arguments for `check`, made when it is needed.
SOLUTIONS = {
    "14.1": lambda: (CALLS,),
    "14.2": lambda: (kept_spread(),),
    "14.3": lambda: (pack,),
    "14.4": lambda: (MACHINES,),
    "14.5": lambda: (steps_to_one,),
}
WRONG = {
    "14.1": [lambda: (["runs"] * 9,), lambda: (["runs"],)],
    "14.2": [lambda: (kept_for_two_rows(),), lambda: (kept_without_constraint(),)],
    "14.3": [lambda: (pack_value,), lambda: (pack_text,)],
    "14.4": [
        lambda: ({**MACHINES, "kernels": [9, 7, 12]},),
        lambda: ({**MACHINES, "copies": "h100"},),
    ],
    "14.5": [lambda: (numbers_on_the_way,), lambda: (in_32_bits,)],
}
# What `check` says of each wrong answer.
COMPLAINTS = {
    "14.1": ["look again at b", "list of 9 words"],
    "14.2": ["With 3 rows: Shape mismatch", "It takes 1 row"],
    "14.3": ["No VJP is available", "not an exported function"],
    "14.4": ["The kernels are not [9, 7, 12]", "\"copies\" is not 'h100'"],
    "14.5": ["For 1 it is 0, and yours gives 1", "For 837,799 it is 524, and yours"],
}
