"""Questions and exercises of chapter 21, "Capstone"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.partial_eval import DynamicJaxprTrace
from minijax.core.state import state
from minijax_lab.answers import difference, list_complaint
from minijax_lab.grading import Exercise, Prediction, raised

PREDICTIONS = {
    "21.r1": Prediction(
        "b",
        "The product is linear in c; its other factor comes along.",
        "the transposes of chapter 07",
        because={"c": "c is the linear operand: nothing but its type is known."},
    ),
    "21.r2": Prediction(
        1,
        "The shared operand stays as it is.",
        "`in_axes` in chapter 08",
        because={2: "None says that an argument has no axis of examples."},
    ),
    "21.r3": Prediction(
        1,
        "The loop is one equation, which carries its body once.",
        "`scan` in chapter 10",
        because={100: "Python's `for` is unrolled; `scan` is not."},
    ),
    "21.p1": Prediction(
        1,
        "Tracing asks for the type of the result, and for nothing else.",
        because={
            0: "The tracer of the result needs a type.",
            2: "Nothing is computed while tracing, so no meaning is asked for.",
            6: "Each is asked for by its own transformation, when that comes.",
        },
    ),
    "21.p2": Prediction(
        1.75,
        "1 by way of y[0], 1/2 by way of y[1], and 1/4 by way of y[2].",
        because={
            1: "x[0] is in y[0], and through it in y[1] and y[2].",
            1.5: "That is the slope of x[1].",
        },
    ),
    "21.p3": Prediction(
        -2,
        "The rule of `mul` sees two operands, and -1 times 2 is possible for two.",
        because={
            0: "True of a square. But `mul` does not know that its operands are one.",
            1: "(-1) * (-1) is 1, but that is no bound: between them there is 0 * 0.",
        },
    ),
}

ASKED = "none lowering jvp batch none batch jvp transpose".split()
WORDS = ("none", "type", "meaning", "lowering", "jvp", "transpose", "batch")


def grade_asked(answers: Any) -> str | None:
    """Which rule each of eight calls misses first."""
    what = "words, one for each call"
    return list_complaint(answers, ASKED, what, WORDS)


def outer_primitive() -> Any:
    """A primitive of two operands: a[i] * b[i-1]. Its batching rule is not there."""
    from minijax.extend.core import Primitive
    from minijax.interpreters import mlir

    made = Primitive("times_previous")

    def meaning(a: Any, b: Any) -> Any:
        found = np.zeros_like(b)
        found[..., 1:] = np.asarray(a)[..., 1:] * np.asarray(b)[..., :-1]
        return found

    def types(a: Any, b: Any) -> Any:
        if a.shape != b.shape:
            raise TypeError(f"times_previous takes two equal shapes, not {a} and {b}")
        return b

    def plain(a: Any, b: Any) -> Any:
        return jnp.concatenate(
            [jnp.zeros_like(b[..., :1]), (a[..., 1:] * b[..., :-1])], -1
        )

    made.def_abstract_eval(types)
    made.def_impl(meaning)
    mlir.register_lowering(made, mlir.lower_fun(plain, multiple_results=False))
    return made, plain


def grade_batching(rule: Callable[..., Any]) -> str | None:
    """A batching rule for a primitive of two operands that goes along the last axis."""
    from minijax.interpreters import batching

    made, plain = outer_primitive()
    batching.primitive_batchers[made] = lambda args, axes: rule(made, args, axes)
    one = np.arange(1, 4, dtype=np.float32)
    many = np.arange(9, dtype=np.float32).reshape(3, 3) - 4
    for axes in ((0, 0), (1, 1), (0, 1), (0, None), (None, 0), (None, 1), (1, None)):
        operands = [one if axis is None else many for axis in axes]
        mapped = minijax.vmap(made.bind, axes)
        right = minijax.vmap(plain, axes)(*operands)
        case = f"vmap with in_axes={axes} of a {many.tolist()}"
        try:
            found = mapped(*operands)
        except Exception as error:
            return raised(error, case)
        told = difference(found, right)
        if told:
            return f"{case}. {told}"
        jaxpr = minijax.make_jaxpr(mapped)(*operands)
        count = sum(e.primitive is made for e in jaxpr.jaxpr.eqns)
        if count != 1:
            return (
                f"With in_axes={axes} the three examples take {count} equations of the "
                f"primitive, not 1:\n{jaxpr}"
            )
    wide = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    pairs = minijax.vmap(minijax.vmap(made.bind, (None, 0)), (0, None))
    right = minijax.vmap(minijax.vmap(plain, (None, 0)), (0, None))
    told = difference(pairs(wide[0], wide[1]), right(wide[0], wide[1]))
    if told:
        return f"Under two vmaps, one for each operand. {told}"
    told = difference(minijax.vmap(made.bind, 0, 1)(many, many), plain(many, many).T)
    if told:
        return f"With out_axes=1, which axis did you return? {told}"
    return None


def unwound(a: Any, y: Any) -> Any:
    """x[t] = y[t] - a[t] * y[t-1], in jnp."""
    before = jnp.concatenate([jnp.zeros_like(y[..., :1]), y[..., :-1]], -1)
    return y - a * before


def grade_unwind(unwind: Callable[..., Any]) -> str | None:
    """A primitive with all of its rules."""
    from minijax_lab.primitive_check import complaint

    return complaint(unwind, unwound)


def bytes_made(function: Callable[..., Any], *args: Any) -> dict[str, int]:
    """The bytes of the results of each kind of equation, from a finished jaxpr."""
    found: dict[str, int] = {}
    for eqn in minijax.make_jaxpr(function)(*args).jaxpr.eqns:
        size = sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars)
        found[eqn.primitive.name] = found.get(eqn.primitive.name, 0) + size
    return found


def grade_counting(bytes_of: Callable[..., Any]) -> str | None:
    """A trace of the learner's that counts bytes while minijax writes a program."""
    seen: list[Any] = []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            seen.append(state.trace)
            return function(*args)

        return run

    row, matrix = np.ones(8, np.float32), np.ones((8, 4), np.float32)
    cases: list[tuple[str, Callable[..., Any], tuple]] = [
        ("sin(x) * x", lambda x: lax.mul(lax.sin(x), x), (row,)),
        ("two sines", lambda x: lax.add(lax.sin(x), lax.sin(lax.neg(x))), (row,)),
        ("a comparison", lambda x: lax.gt(x, lax.neg(x)), (row,)),
        ("x @ m", lambda x, m: lax.dot(x, m), (row, matrix)),
        ("a value and where it is", lambda x: lax.top_k(x, 3), (row,)),
        (
            "the gradient of sum(tanh(x))",
            minijax.grad(lambda x: lax.reduce_sum(lax.tanh(x), axes=(0,))),
            (row,),
        ),
        ("nothing", lambda x: x, (row,)),
    ]
    for what, function, args in cases:
        seen.clear()
        found = bytes_of(noted(function), *args)
        right = bytes_made(function, *args)
        if not isinstance(found, dict):
            return f"bytes_of returns a dict, not {type(found).__name__}."
        ours = {str(getattr(k, "name", k)): int(v) for k, v in found.items()}
        if ours != right:
            return (
                f"Of {what}: expected {right}, got {ours}, for\n"
                f"{minijax.make_jaxpr(function)(*args)}"
            )
        if len(seen) != 1:
            return f"Of {what}: the function ran {len(seen)} times; once is enough."
        if not isinstance(seen[0], DynamicJaxprTrace) and "finish" not in dir(seen[0]):
            kind = type(seen[0]).__name__
            return f"Of {what}: it ran under {kind}, so it was not traced."
        if type(seen[0]) is DynamicJaxprTrace:
            return (
                f"Of {what}: it was traced by minijax's own DynamicJaxprTrace. Let a "
                "class of yours take its place, and count there."
            )
        if type(seen[0]).process_primitive is DynamicJaxprTrace.process_primitive:
            return (
                f"Of {what}: {type(seen[0]).__name__} counts nothing while the program "
                "is written. Give it a process_primitive that counts and calls super()."
            )
    return None


EXERCISES = {
    "21.1": Exercise(grade_asked),
    "21.2": Exercise(grade_batching),
    "21.3": Exercise(grade_unwind),
    "21.4": Exercise(grade_counting),
}
