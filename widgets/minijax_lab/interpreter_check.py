"""`check.interpreter`: the learner's trace, on 200 generated programs.

Each program is a few array operations, chosen by a seeded generator. It runs once on
minijax's own class and once on the learner's, and the numbers must agree. The smallest
program that fails is shown. Exercises 06.5 and 08.6, in which a learner writes a trace,
are graded by `trace_complaint`, which counts equations, too.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.core import language
from minijax.transforms.replacement import INTERFACES, replace
from minijax_lab.answers import difference
from minijax_lab.evidence import callers, count
from minijax_lab.grading import GENERATED, TookTooLong, raised, time_limit

PROGRAMS = 200
SECONDS = 60

UNARY = ["jnp.sin({0})", "jnp.tanh({0})", "-{0}", "jnp.exp(-{0} * {0})", "{0} * 2.0"]
UNARY += ["jnp.cos({0}) + 1.0", "1.0 / (1.5 + jnp.sin({0}))", "{0}[::-1]"]
BINARY = ["{0} + {1}", "{0} * {1}", "{0} - {1}", "jnp.maximum({0}, {1})"]
BINARY += ["jnp.where({0} > {1}, {0}, {1} * 0.5)"]
MIXING = ["{0} * jnp.sum({0})", "{0} - jnp.max({0})", "M @ {0}", "jnp.cumsum({0})"]
MIXING += ["jnp.dot({0}, {0}) * {0}", "jnp.stack([{0}, {0}]).sum(axis=0)"]


@dataclass
class Program:
    """A generated function of a vector of three numbers."""

    lines: list[str]
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The program as Python."""
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"def f(x):\n{body}\n    return {self.lines[-1].partition(' = ')[0]}"

    def function(self) -> Callable[..., Any]:
        """The program as a function."""
        matrix = np.arange(9, dtype=np.float32).reshape(3, 3) / 9
        scope: dict[str, Any] = {"jnp": jnp, "M": matrix, **self.names}
        exec(compile(self.text, GENERATED, "exec"), scope)
        return scope["f"]


def generated(seed: int, more: tuple[str, ...] = (), **scope: Any) -> Program:
    """The program of a seed; later seeds give longer ones.

    A line in three has one of the forms `more`, which may use the names of `scope`.
    """
    chooser = random.Random(seed)
    names = ["x"]
    lines = []
    for number in range(1 + seed // 40):
        form = chooser.choice([*UNARY, *BINARY, *MIXING])
        if more and number % 3 == seed % 3:
            form = chooser.choice(more)
        operands = [chooser.choice(names) for _ in range(2)]
        name = f"v{number}"
        lines.append(f"{name} = {form.format(*operands)}")
        names.append(name)
    return Program(lines, scope)


X = np.array([0.3, -0.7, 1.1], np.float32)
BATCH = np.stack([X, X[::-1] * 2, X - 0.5, X * 0.1])


def used(kind: str, function: Callable[..., Any]) -> Any:
    """Runs a program through the transformation that a kind of trace serves."""
    if kind == "BatchTrace":
        return minijax.vmap(function)(BATCH)
    if kind == "JVPTrace":
        return minijax.jvp(function, (X,), (np.ones_like(X),))
    if kind == "LinearizeTrace":
        return minijax.grad(lambda x: jnp.sum(function(x)))(X)
    closed = minijax.make_jaxpr(function)(X)
    return language.eval_jaxpr(closed.jaxpr, closed.consts, X)[0]


def kind_of(made: type) -> str:
    """Which of minijax's traces a class stands for: by its ancestors, then its name.

    Raises TypeError when neither tells.
    """
    for ancestor in made.__mro__:
        if ancestor.__name__ in INTERFACES:
            return ancestor.__name__
    for name in INTERFACES:
        if name.removesuffix("Trace").lower() in made.__name__.lower():
            return name
    if hasattr(made, "new_arg") and hasattr(made, "finish"):
        return "DynamicJaxprTrace"
    raise TypeError(
        f"{made.__name__}: whose place does it take? Name it after one of "
        f"{', '.join(INTERFACES)}, or make it a subclass."
    )


def interpreter(made: type, programs: int = PROGRAMS) -> None:
    """Runs generated programs on a trace of the learner's, and prints how it went.

    `made` is a class that can stand in for one of minijax's traces (`minijax.replace`
    says what it needs). Exceptions of the learner's code are reported, not raised.
    """
    name = getattr(made, "__name__", str(made))
    try:
        kind = kind_of(made)
        replace(**{kind: made})
    except (TypeError, AttributeError) as error:
        print(f"{name}: not yet. {error}")
        return
    agreed = 0
    try:
        with time_limit(SECONDS):
            for seed in range(programs):
                program = generated(seed)
                complaint = compared(kind, made, program)
                if complaint is not None:
                    print(f"{name}: not yet. After {agreed} programs this one differs:")
                    print(program.text)
                    print(complaint)
                    return
                agreed += 1
    except TookTooLong:
        print(f"{name}: not yet. {agreed} programs took more than {SECONDS} seconds.")
        return
    print(f"{name}: {agreed} of {programs} programs agree with minijax's {kind}.")


def compared(kind: str, made: type, program: Program) -> str | None:
    """What is different on a learner's class, in words; None if nothing is."""
    expected = used(kind, program.function())
    try:
        with replace(**{kind: made}):
            return unlike(used(kind, program.function()), expected)
    except TookTooLong:
        raise
    except Exception as error:
        return raised(error)


def unlike(found: Any, expected: Any) -> str | None:
    """What is different between two trees of results, in words."""
    wanted_leaves = minijax.tree.leaves(expected)
    leaves = minijax.tree.leaves(found)
    if len(leaves) != len(wanted_leaves):
        return f"{len(leaves)} results, and it should be {len(wanted_leaves)}."
    for leaf, wanted in zip(leaves, wanted_leaves):
        if np.shape(leaf) != np.shape(wanted):
            return f"The shape is {np.shape(leaf)} and should be {np.shape(wanted)}."
        if not np.allclose(leaf, wanted, rtol=1e-4, atol=1e-5):
            return f"It gives {np.asarray(leaf)} and should give {np.asarray(wanted)}."
    return None


@dataclass
class Run:
    """What a learner's trace has to run: a function that uses a transformation.

    Attributes:
      text: the program in it, for a sentence.
      function, args: what is called.
      where: how each of its results is called in a sentence.
    """

    text: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    where: Sequence[str]


class Refused(Exception):
    """What a learner's trace did wrong, in a sentence."""


def watched(kind: str, made: type) -> type:
    """The learner's class, which refuses results that are no results at once."""

    class Watched(made):  # type: ignore[misc]
        def process_primitive(self, primitive: Any, args: Any, params: Any) -> Any:
            found = super().process_primitive(primitive, args, params)
            several = isinstance(found, (list, tuple))
            if found is None or several != primitive.multiple_results:
                right = "a list" if primitive.multiple_results else "one result"
                given = "nothing" if found is None else f"a {type(found).__name__}"
                raise Refused(
                    f"process_primitive returns {given} for {primitive.name}, and "
                    f"should return {right}."
                )
            return found

        def tracer(self, value: Any, *rest: Any) -> Any:
            if kind in callers(sys._getframe(1)):
                raise Refused("minijax's own process_primitive runs in it: write it.")
            if isinstance(value, (list, tuple)):
                raise Refused("tracer is given a list, and makes a pair of one result.")
            return super().tracer(value, *rest)

    return Watched


def trace_complaint(
    kind: str, made: type, runs: Iterable[Run], needless: str
) -> str | None:
    """What is wrong with a learner's trace in the engine, or None: numbers, equations.

    `needless` is said of one that writes more equations than minijax's own.
    """
    replace(**{kind: made})  # says what a class lacks
    own = replace(**{kind: watched(kind, made)})
    for run in runs:
        case = f"For {run.text}"
        wanted = minijax.tree.leaves(run.function(*run.args))
        few = count(minijax.make_jaxpr(run.function)(*run.args))
        try:
            with own:
                found = minijax.tree.leaves(run.function(*run.args))
                case = f"For {run.text} under make_jaxpr"
                many = count(minijax.make_jaxpr(run.function)(*run.args))
        except TookTooLong:
            raise
        except Refused as error:
            return f"{case}: {error}"
        except RecursionError:
            return (
                f"{case}: process_primitive is asked again for what it binds, without "
                "end. The parent has to be in charge meanwhile."
            )
        except minijax.errors.UnexpectedTracerError:
            return (
                f"{case}: a tracer came to a trace that does not know it. The parent, "
                "and no other, has to be in charge of what you bind."
            )
        except Exception as error:
            return f"{case}: {raised(error)}"
        for where, mine, right in zip(run.where, found, wanted):
            told = difference(np.asarray(mine), np.asarray(right), atol=1e-5)
            if told:
                return f"For {run.text}{where}: {told}"
        if many > few:
            return (
                f"For {run.text} the program has {many} equations, and {few} are "
                f"enough: {needless}"
            )
    return None
