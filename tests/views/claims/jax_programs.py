"""What the claims are held against: counts and lines taken from jax's own objects."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.extend
from jax._src import source_info_util
from jax._src.ad_checkpoint import saved_residuals

from tests.views.claims.forty import Case


@functools.cache
def closed_jaxpr(case: Case) -> Any:
    """JAX's jaxpr of a case."""
    return jax.make_jaxpr(case.make(jax))(*case.args)


def programs_in(value: Any) -> list[Any]:
    """The jaxprs in a parameter."""
    if isinstance(value, jax.extend.core.ClosedJaxpr):
        return [value.jaxpr]
    if isinstance(value, jax.extend.core.Jaxpr):
        return [value]
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in programs_in(part)]
    return []


def every_equation(jaxpr: Any, seen: dict[int, Any] | None = None) -> list[Any]:
    """The equations of a program and of those in it, each program once."""
    seen = {} if seen is None else seen
    if id(jaxpr) in seen:
        return []
    seen[id(jaxpr)] = jaxpr
    found = []
    for eqn in jaxpr.eqns:
        found.append(eqn)
        for name in sorted(eqn.params):
            for inner in programs_in(eqn.params[name]):
                found += every_equation(inner, seen)
    return found


def kept_by_jax(case: Case) -> list[tuple[Any, str]]:
    """What JAX saves for the way back, and where it says that this comes from.

    It lists numbers that are written into the program, which take no memory; and the
    0.0 that the jitted `_pad` hands out, which minijax writes in, too.
    """
    numbers = ("literal", "output of jitted function '_pad'")
    return [
        (aval, source)
        for aval, source in saved_residuals(case.loss(jax), *case.args)
        if aval.shape or not any(said in source for said in numbers)
    ]


def lines_of(eqn: Any) -> list[int]:
    """The user's lines that wrote an equation, the innermost first."""
    frames = source_info_util.user_frames(eqn.source_info.traceback)
    return [f.start_line for f in frames if f.file_name.endswith("forty.py")]


def own_program(case: Case) -> Any:
    """JAX's jaxpr of a case; of a function that is jitted, the program in the call."""
    closed = closed_jaxpr(case)
    if hasattr(case.make(jax), "lower"):
        (call,) = closed.jaxpr.eqns
        return call.params["jaxpr"]
    return closed
