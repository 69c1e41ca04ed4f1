"""What a recording shows of a learner's function: equations, work, callers, sends.

Graders ask these, so that a shortcut is found by what runs, never by source text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

import minijax
from minijax.core.batching import BatchTrace
from minijax.core.language import Jaxpr, jaxprs_in_params
from minijax.core.partial_eval import dce_jaxpr
from minijax_lab.answers import difference

# What may stand beside a kernel: it changes how an array is seen, and computes nothing.
SHAPING = {
    "reshape",
    "squeeze",
    "broadcast_in_dim",
    "convert_element_type",
    "pad",
    "slice",
    "concatenate",
    "copy",
}


def equations(jaxpr: Any, inside: bool = True) -> Iterator[Any]:
    """Yields the equations of a jaxpr, with those of inner programs after their own."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn
        if inside:
            for inner in jaxprs_in_params(eqn.params):
                yield from equations(inner)


def count(jaxpr: Any, *names: str) -> int:
    """How many equations a jaxpr has of these primitives; of all, if none is named."""
    return sum(not names or e.primitive.name in names for e in equations(jaxpr))


def live(closed: Any) -> Jaxpr:
    """A program without the equations whose results are not read."""
    return dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), True)[0]


def mapped(function: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """Runs a function; returns its result, and how many `vmap`s ran in it."""
    made: list[BatchTrace] = []

    class Noted(BatchTrace):
        def __init__(self, *about: Any) -> None:
            made.append(self)
            super().__init__(*about)

    with minijax.replace(BatchTrace=Noted):
        return function(*args), len(made)


def largest(jaxpr: Any) -> int:
    """The number of entries of the largest array that a program makes."""
    sizes = (v.aval.size for e in equations(jaxpr) for v in e.outvars)
    return max((size for size in sizes if isinstance(size, int)), default=0)


def callers(frame: FrameType | None) -> set[str]:
    """The names of minijax's functions that wait for this frame, such as "jacfwd"."""
    found = set()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] == "minijax":
            found.add(frame.f_code.co_qualname.partition(".")[0])
        frame = frame.f_back
    return found


def calls_of(
    function: Callable[..., Any], *args: Any, of: Callable[..., Any]
) -> list[set[str]]:
    """Runs `function(probe, *args)`; for each call of the probe, who was waiting."""
    seen: list[set[str]] = []

    def probe(*values: Any) -> Any:
        seen.append(callers(sys._getframe(1)))
        return of(*values)

    function(probe, *args)
    return seen


def outside(function: Callable[..., Any], *args: Any) -> set[str]:
    """What a function computes beside its kernels; shaping is not counted."""
    found: set[str] = set()

    def look(jaxpr: Any) -> None:
        for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
            if eqn.primitive.name == "pallas_call":
                continue
            inner = list(jaxprs_in_params(eqn.params))
            for program in inner:
                look(program)
            if not inner:
                found.add(eqn.primitive.name)

    look(minijax.make_jaxpr(function)(*args))
    return found - SHAPING


def wrong_for(case: str, found: Any, right: np.ndarray) -> str | None:
    """A sentence if the result for a case has another shape or other numbers."""
    found = np.asarray(found)
    if found.shape != right.shape:
        return f"For {case} the result has shape {found.shape}, not {right.shape}."
    told = difference(found, right, 1e-4, 1e-4)
    return f"For {case} the numbers are others. {told}" if told else None


def not_in_the_kernel(
    function: Callable[..., Any], *args: Any, allowed: frozenset[str] = frozenset()
) -> str | None:
    """A sentence if a function computes something beside its kernel."""
    beside = sorted(outside(function, *args) - set(allowed))
    if beside:
        return f"{beside[0]} is computed outside of the kernel."
    return None


def multiplied(jaxpr: Any) -> int:
    """The multiplications of all products of a program; loops count each trip.

    Of branches the one with the most counts.
    """
    total = 0
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        if eqn.primitive.name == "dot_general":
            (over, _), _ = eqn.params["dimension_numbers"]
            depth = 1
            for axis in over:
                depth *= eqn.invars[0].aval.shape[axis]
            total += depth * eqn.outvars[0].aval.size
            continue
        inner = [multiplied(program) for program in jaxprs_in_params(eqn.params)]
        if not inner:
            continue
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        total += times * (max(inner) if eqn.primitive.name == "cond" else sum(inner))
    return total


def is_ordered(eqn: Any) -> bool:
    """Whether a callback keeps its place among the others."""
    return any(type(effect).__name__.startswith("Ordered") for effect in eqn.effects)


def own_rules(jaxpr: Any) -> bool:
    """Whether a program uses a derivative that is not one of minijax's own."""
    for eqn in equations(jaxpr):
        for name in ("jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd"):
            made = eqn.params.get(name)
            for held in (
                (made, *vars(made).values()) if hasattr(made, "__dict__") else ()
            ):
                module = getattr(held, "__module__", None)
                if callable(held) and module and module.partition(".")[0] != "minijax":
                    return True
    return False
