"""`check.primitive`: a primitive of the learner's, rule by rule, then in programs.

It is compared with a function that says the same in `jnp`: its type, its value, its
change, its slope, its batches and what XLA computes; then both stand in generated
programs. The first thing that differs is told, the smallest program first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.core.language import all_primitives
from minijax_lab.answers import difference
from minijax_lab.grading import TookTooLong, raised
from minijax_lab.interpreter_check import BATCH, X, generated

# The rules of a primitive that is linear in one of its operands, and what asks for
# each.
RULES = {
    "type": ("type_rule", "tracing"),
    "meaning": ("impl", "a call on numbers"),
    "jvp": ("jvp", "jvp and grad"),
    "transpose": ("transpose", "grad"),
    "batch": ("batch", "vmap"),
    "lowering": ("lowerings", "jit"),
}
PROGRAMS = 24
BINARY = ("own(A, {0})", "own(jnp.tanh({0}), {1})", "own(A, {0}) * 0.5 + {1}")
A = np.array([0.5, -0.8, 0.9], np.float32)
AXES: tuple[tuple[Any, Any], ...] = ((0, 0), (0, None), (None, 0), (1, 1), (1, 0))
Binary = Callable[[Any, Any], Any]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between -1 and 1 that no two entries share."""
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return values.astype(np.float32)


def own_equations(function: Callable[..., Any], *args: Any) -> list[Any]:
    """The equations of a function whose primitive is not one of minijax's."""
    jaxpr = minijax.make_jaxpr(function)(*args).jaxpr
    known = all_primitives.values()
    return [e for e in jaxpr.eqns if not any(e.primitive is p for p in known)]


def rules_of(function: Binary) -> dict[str, bool]:
    """Which rules the primitive has that a function of two arrays binds."""
    (equation,) = own_equations(function, A, X)
    primitive = equation.primitive
    return {name: bool(getattr(primitive, at)) for name, (at, _) in RULES.items()}


def uses(function: Binary) -> Iterator[tuple[str, Callable[..., Any], tuple]]:
    """What is done with a function of two arrays, in words, and on which arrays."""
    square, wide = numbers(3, 3), numbers(2, 3, seed=1)
    both = (wide, numbers(2, 3, seed=2))

    def total(a: Any, x: Any) -> Any:
        return jnp.sum(jnp.sin(function(a, x)))

    yield "", function, (A, X)
    yield " of rows", function, both
    yield " in jit", minijax.jit(function), both
    for which, changes in (
        ("x moves", (np.zeros_like(A), X)),
        ("a moves", (X, np.zeros_like(A))),
        ("both move", (X, A)),
    ):
        yield (
            f": how it changes if {which}",
            lambda a, x, t=changes: minijax.jvp(function, (a, x), t)[1],
            (A, X),
        )
    for number, name in enumerate("ax"):
        yield f": its gradient for {name}", minijax.grad(total, number), (A, X)
    yield " in jit: its gradients", minijax.jit(minijax.grad(total, (0, 1))), both
    hessian = minijax.jacfwd(minijax.jacrev(total, (0, 1)), (0, 1))
    yield ": its second derivatives", hessian, (A, X)
    for axes in AXES:
        given = (square, numbers(3, 3, seed=3))
        operands = [A if at is None else x for at, x in zip(axes, given)]
        mapped = minijax.vmap(function, axes)
        yield f" under vmap, in_axes {axes}", mapped, tuple(operands)
    of_many = minijax.vmap(minijax.vmap(function, (None, 0)), (0, None))
    yield " under two vmaps, every pair", of_many, both
    per_example = minijax.vmap(minijax.grad(total, 1), (None, 0))
    yield " under vmap of grad", per_example, (A, square)


def complaint(function: Binary, plain: Binary) -> str | None:
    """What is wrong with a function that binds one primitive of the learner's.

    `plain(a, x)` is the same in jnp. Both take two arrays of one shape [..., n].
    """
    mine = own_equations(function, A, X)
    jaxpr = minijax.make_jaxpr(function)(A, X)
    if len(mine) != 1 or len(jaxpr.jaxpr.eqns) != 1:
        return f"Its program should be one equation with your primitive:\n{jaxpr}"
    for name, has_rule in rules_of(function).items():
        if not has_rule:
            return f"It has no rule for: {name}. {RULES[name][1]} would ask for it."
    try:
        minijax.make_jaxpr(function)(A, numbers(4))
    except (TypeError, ValueError):
        pass
    else:
        return "Operands of shapes (3,) and (4,) are taken: raise a TypeError."
    for shape, dtype in (((2, 5), np.float32), ((4,), np.float16)):
        given = minijax.ShapeDtypeStruct(shape, dtype)
        kind = minijax.eval_shape(function, given, given)
        if kind.shape != shape or kind.dtype != dtype:
            return (
                f"Of two {np.dtype(dtype)}{list(shape)} its type is "
                f"{kind.dtype}{list(kind.shape)}."
            )
    pairs = zip(uses(function), uses(plain))
    for (what, own, args), (_, right, _) in pairs:
        before = [np.array(arg) for arg in args]
        try:
            found = minijax.tree.leaves(own(*args))
        except TookTooLong:
            raise
        except Exception as error:
            return raised(error, f"The function{what}")
        told = [
            difference(leaf, other, 1e-4, 1e-5)
            for leaf, other in zip(found, minijax.tree.leaves(right(*args)))
        ]
        if any(told):
            shown = ", ".join(
                str(np.round(arg.astype(float), 3).tolist()) for arg in args
            )
            return f"The function of ({shown}){what}. {next(t for t in told if t)}"
        if any(not np.array_equal(a, b) for a, b in zip(args, before)):
            return f"The function{what} changed its operands."
    changed = own_equations(
        lambda x, t: minijax.jvp(lambda x: function(A, x), (x,), (t,)), X, X
    )
    if len(changed) != 2:
        return (
            "It is linear in its second operand, so its change along it is the "
            f"primitive once more; expected 2 of its equations, got {len(changed)}."
        )
    mapped = own_equations(minijax.vmap(function), BATCH, BATCH)
    if len(mapped) != 1:
        return f"Under vmap of 4 examples there are {len(mapped)} of its equations."
    return in_programs(function, plain)[1]


def in_programs(function: Binary, plain: Binary) -> tuple[int, str | None]:
    """How many generated programs agree, and what is wrong with the next one."""
    for seed in range(PROGRAMS):
        program = generated(seed * 7, BINARY, own=function, A=A)
        other = generated(seed * 7, BINARY, own=plain, A=A)
        own, right = program.function(), other.function()
        what, use = WAYS[seed % len(WAYS)]
        try:
            found = use(own)
        except TookTooLong:
            raise
        except Exception as error:
            told = raised(error)
        else:
            told = difference(found, use(right), 1e-3, 1e-4) or ""
        if told:
            return seed, f"In this program, {what}:\n{program.text}\n{told}"
    return PROGRAMS, None


# Each program goes one of these ways.
WAYS: tuple[tuple[str, Callable[[Callable[..., Any]], Any]], ...] = (
    ("run in jit", lambda f: minijax.jit(f)(X)),
    ("differentiated forward", lambda f: minijax.jvp(f, (X,), (A,))[1]),
    ("differentiated backward", lambda f: minijax.grad(lambda x: jnp.sum(f(x)))(X)),
    ("under vmap", lambda f: minijax.vmap(f)(BATCH)),
)


def primitive(function: Binary, plain: Binary) -> None:
    """Prints whether a primitive agrees with the same function in jnp.

    Exceptions of the learner's rules are reported, not raised.
    """
    name = getattr(function, "__name__", str(function))
    try:
        told = complaint(function, plain)
    except Exception as error:
        told = raised(error)
    if told is None:
        told = f"six rules; {PROGRAMS} of {PROGRAMS} random programs agree with jnp's."
        print(f"{name}: {told}")
    else:
        print(f"{name}: not yet. {told}")
