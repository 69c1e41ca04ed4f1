"""Copying a program into one that is being written: `jit(f, inline=True)`.

In JAX: `interpreters/partial_eval.py`, `inline_jaxpr_into_trace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.language.core import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.support import events, source_info
from minijax.support.effects import positional, with_inputs
from minijax.transforms.partial_eval import DynamicJaxprTrace, DynamicJaxprTracer


def inline_jaxpr(
    trace: DynamicJaxprTrace, closed: ClosedJaxpr, args: Sequence[Any]
) -> list[Any]:
    """Copy the equations of a program into one that is being written.

    They get the line of the caller: inlined functions are the library's own.
    """
    jaxpr = closed.jaxpr
    env: dict[Var, Atom] = {}
    for var, value in zip(jaxpr.constvars, closed.consts):
        env[var] = trace.to_atom(value)
    for var, arg in zip(jaxpr.invars, args):
        env[var] = trace.to_atom(arg)
    source = source_info.current()
    for eqn in jaxpr.eqns:
        invars = [v if type(v) is Literal else env[v] for v in eqn.invars]
        staging = eqn.primitive.staging
        if staging is not None and len(invars) == 1 and type(invars[0]) is Literal:
            # With a literal as its argument there may be nothing to write.
            literal = DynamicJaxprTracer(trace, invars[0].aval, invars[0])
            staged = staging(trace, [literal], eqn.params)
            if staged is not NotImplemented:
                env[eqn.outvars[0]] = staged.atom
                continue
        outvars = []
        for old in eqn.outvars:
            new = Var(old.aval)
            env[old] = new
            outvars.append(new)
        effects = eqn.effects
        if effects:
            effects = with_inputs(positional(effects, eqn.invars), invars)
        copy = JaxprEqn(invars, outvars, eqn.primitive, eqn.params, effects, source)
        trace.eqns.append(copy)
        if events.subscribers:
            events.emit("bind", trace=trace, eqn=copy)
    out = [v if type(v) is Literal else env[v] for v in jaxpr.outvars]
    return [DynamicJaxprTracer(trace, atom.aval, atom) for atom in out]
