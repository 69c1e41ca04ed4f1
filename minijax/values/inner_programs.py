"""The programs that an equation carries, and how they are wired to it.

A call gives its inputs to one program and returns what that returns; a branch gives
them to one of several; a loop runs a program again and again. An analysis that looks
into equations need not know these primitives: `inner_programs(eqn)` says for each
program which of the equation's inputs it takes, whether its outputs are those of the
equation, and which of its inputs come from its own last step.

A primitive that is not a plain call enters a function of its parameters in
`descriptions`, next to its definition. One that chooses between programs, or repeats
one, also says in `in_python` what it does, as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.core.language import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, eval_jaxpr


class InnerProgram(NamedTuple):
    """One program of an equation.

    `inputs[i]` is the position of the equation's input that is its i-th input. Its
    outputs are those of the equation, in order, unless it only decides something
    (`decides`), as the condition of a loop does. In a loop, `carry` are the positions
    of those inputs that come from the step before: the inputs before them are the same
    in every step, those after them are new in every step.
    """

    name: str
    jaxpr: Jaxpr
    inputs: Sequence[int]
    decides: bool = False
    carry: range | None = None


# (params) -> the programs.
descriptions: dict[Primitive, Callable[[dict], list[InnerProgram]]] = {}

# (run, args, params): what the primitive does, for `run(program, args) -> outputs`.
in_python: dict[Primitive, Callable[[Callable, list, dict], Any]] = {}


def inner_programs(eqn: JaxprEqn) -> list[InnerProgram]:
    """The programs of an equation; none for an ordinary operation.

    Without a description, an equation with a program in its parameter `jaxpr` or
    `call_jaxpr` that has as many inputs and outputs calls it.
    """
    describe = descriptions.get(eqn.primitive)
    if describe is not None:
        return describe(eqn.params)
    called = called_program(eqn.params)
    counts = len(eqn.invars), len(eqn.outvars)
    if called is None or counts != (len(called.in_avals), len(called.out_avals)):
        return []
    return [InnerProgram(eqn.primitive.name, called.jaxpr, range(len(eqn.invars)))]


def called_program(params: dict[str, Any]) -> ClosedJaxpr | None:
    """The program that an equation calls: its parameter `jaxpr` or `call_jaxpr`."""
    called = params.get("jaxpr", params.get("call_jaxpr"))
    called = ClosedJaxpr(called) if isinstance(called, Jaxpr) else called
    return called if isinstance(called, ClosedJaxpr) else None


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Callable[..., list[Any]]:
    """A function that runs the program on `args` followed by its own arguments."""

    def run(*rest: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args, *rest)

    return run
