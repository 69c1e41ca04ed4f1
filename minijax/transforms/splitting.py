"""One program becomes two: what can be computed now, and what cannot.

`partial_eval_jaxpr` runs a program under a `JaxprTrace` whose two sides both write
programs. With `x` known and `t` not,

    { lambda ; x:f32[] t:f32[]. let a:f32[] = sin x; b:f32[] = mul a t in (b,) }

becomes

    { lambda ; x:f32[]. let a:f32[] = sin x in (a,) }             the known program
    { lambda ; a:f32[] t:f32[]. let b:f32[] = mul a t in (b,) }   the unknown one

with the residual `a` between them. Loops, branches and calls use it for the programs
that they carry.

In JAX: `interpreters/partial_eval.py`, `partial_eval_jaxpr_nounits_fwd`.
"""

from __future__ import annotations

from minijax.core import partial_eval, source_info
from minijax.core.language import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    set_current_trace,
    weakref_lru_cache,
)
from minijax.core.rules import Flags
from minijax.transforms.residual_order import residual_order
from minijax.transforms.unknown_refs import eval_split


@weakref_lru_cache
def partial_eval_jaxpr(
    closed: ClosedJaxpr,
    unknown_in: tuple[bool, ...],
    wanted: tuple[bool, ...] = (),
    forwardable: tuple[bool, ...] | None = None,
) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple[bool, ...], tuple[int | None, ...]]:
    """Split a program by which inputs are known.

    Returns `(known, unknown, unknown_out, forwarded)`: `known` maps the known inputs to
    the known outputs followed by new residuals; `unknown` maps residuals followed by
    the unknown inputs to the unknown outputs. `forwarded[i]` is the position among
    `[*closed.consts, *known inputs]` of the i-th residual, or None for a new one;
    `forwardable` says for which of the known inputs that may be. Outputs flagged in
    `wanted` are unknown in any case.

    In JAX: `partial_eval.py`, `partial_eval_jaxpr_nounits_fwd`.
    """
    debug_info = closed.jaxpr.debug_info
    known_trace = partial_eval.DynamicJaxprTrace(debug_info)
    unknown_trace = partial_eval.DynamicJaxprTrace(debug_info, dead_code=True)
    trace = partial_eval.JaxprTrace(known_trace, unknown_trace)
    args = [
        (unknown_trace if unknown else known_trace).new_arg(aval)
        for aval, unknown in zip(closed.in_avals, unknown_in, strict=True)
    ]
    with set_current_trace(trace), source_info.reset_name_stack():
        outputs = eval_split(
            closed.jaxpr, closed.consts, unknown_in, unknown_trace, args
        )
    flags = wanted or (False,) * len(outputs)
    unknown_out = tuple(trace.is_unknown(x) or w for x, w in zip(outputs, flags))
    unknown_jaxpr, residuals = unknown_trace.finish(
        [out for out, unknown in zip(outputs, unknown_out) if unknown]
    )
    order = residual_order(unknown_jaxpr)
    unknown_jaxpr.constvars = [unknown_jaxpr.constvars[index] for index in order]
    residuals = [residuals[index] for index in order]
    known_args = [arg for arg, unknown in zip(args, unknown_in) if not unknown]
    sources = partial_eval.allowed_sources(closed.consts, known_args, forwardable)
    forwarded, new_residuals = partial_eval.split_forwarded(residuals, sources)
    known_outputs = [out for out, unknown in zip(outputs, unknown_out) if not unknown]
    known = ClosedJaxpr(*known_trace.finish([*known_outputs, *new_residuals]))
    unknown_closed = ClosedJaxpr(
        partial_eval.convert_constvars_jaxpr(_drop_unread(unknown_jaxpr))
    )
    return known, unknown_closed, unknown_out, forwarded


@partial_eval.split_program.attach
def split_program_of_jit(closed: ClosedJaxpr, unknown_in: Flags) -> tuple:
    """`partial_eval_jaxpr`, for the rule of `jit_p`."""
    return partial_eval_jaxpr(closed, tuple(unknown_in))


def _drop_unread(jaxpr: Jaxpr) -> Jaxpr:
    """The program with `_` for each result that is never read."""
    read = {v for eqn in jaxpr.eqns for v in eqn.invars}.union(jaxpr.outvars)
    eqns = [
        eqn.replace(outvars=[v if v in read else DropVar(v.aval) for v in eqn.outvars])
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=eqns)
