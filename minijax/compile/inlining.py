"""What a jitted function leaves in the program that is being written.

The equations of `jit(f, inline=True)` are copied into it. Refs that another jitted
function closes over become its last arguments.

In JAX: `jax/_src/pjit.py`, `pjit_staging_rule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import events, source_info
from minijax.core.effects import positional, with_inputs
from minijax.core.jit import jit_p, jit_staging, plain, with_program
from minijax.core.language import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from minijax.core.partial_eval import DynamicJaxprTracer
from minijax.transforms.discharge import has_ref_constants, hoist_refs


@jit_staging.attach
def staging(trace: Any, args: Sequence[Any], params: dict) -> Any:
    """Inline a program, or bind it with the refs that it closes over."""
    hoisted = has_ref_constants(params["jaxpr"])
    if not (hoisted or params["inline"]):
        return NotImplemented
    params = plain(params)
    if params["inline"]:
        return copy_into(trace, params["jaxpr"], args)
    opened, refs = hoist_refs(params["jaxpr"])
    return jit_p.bind(*args, *refs, **with_program(params, opened))


def copy_into(trace: Any, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Copy the equations of a program into one that is being written.

    They get the line of the caller: inlined functions are the library's own.

    In JAX: `interpreters/partial_eval.py`, `inline_jaxpr_into_trace`.
    """
    jaxpr = closed.jaxpr
    atoms = map(trace.to_atom, [*closed.consts, *args])
    env: dict[Var, Atom] = dict(zip(jaxpr.constvars + jaxpr.invars, atoms))
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
        outvars = [Var(v.aval) for v in eqn.outvars]
        env.update(zip(eqn.outvars, outvars))
        effects = eqn.effects
        if effects:
            effects = with_inputs(positional(effects, eqn.invars), invars)
        copy = JaxprEqn(invars, outvars, eqn.primitive, eqn.params, effects, source)
        trace.eqns.append(copy)
        if events.subscribers:
            events.emit("bind", trace=trace, eqn=copy)
    out = [v if type(v) is Literal else env[v] for v in jaxpr.outvars]
    return [DynamicJaxprTracer(trace, atom.aval, atom) for atom in out]
