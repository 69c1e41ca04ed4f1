"""closed_call: a program inside a program, without a compiled function of its own.

It is what is left of the known side of a checkpointed `scan`: the part before the loop
and the loop, as one equation. Only a program that is being written down keeps it; every
transformation looks inside.

In JAX: `core.py`, `closed_call_p`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.language.core import ClosedJaxpr, JaxprEqn, Primitive, eval_jaxpr, register
from minijax.programs.custom.custom_forward import run_eagerly
from minijax.support.effects import of_equation, positional
from minijax.support.thread_state import state
from minijax.transforms import discharge, partial_eval, rematerialize

closed_call_p = register(Primitive("closed_call", multiple_results=True))
closed_call_p.cache_types = False
for _rule in ("jvp", "transpose", "batch"):
    closed_call_p.without(_rule, "transformations look inside: see `bind_params`")


@closed_call_p.def_effectful_abstract_eval
def _type(*avals: Any, call_jaxpr: ClosedJaxpr) -> tuple:
    effects = positional(call_jaxpr.effects, call_jaxpr.jaxpr.invars)
    return call_jaxpr.out_avals, effects


@closed_call_p.def_impl
def _impl(*args: Any, call_jaxpr: ClosedJaxpr) -> list[Any]:
    return run_eagerly(call_jaxpr, *args)


def _rebind(primitive: Primitive, args: Sequence[Any], params: dict) -> list[Any]:
    if isinstance(state.trace, partial_eval.DynamicJaxprTrace):
        return primitive.bind(*args, **params)
    closed = params["call_jaxpr"]
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


closed_call_p.bind_params = _rebind


@closed_call_p.def_lowering
def _lowering(ctx: Any, *operands: Any, call_jaxpr: ClosedJaxpr) -> list[Any]:
    return ctx.call(call_jaxpr, "closed_call", *operands)


def _dce(used: list[bool], eqn: JaxprEqn) -> JaxprEqn:
    smaller, needed = partial_eval.dce_closed_jaxpr(eqn.params["call_jaxpr"], used)
    invars = [v for v, flag in zip(eqn.invars, needed) if flag]
    return eqn.replace(
        invars=invars,
        outvars=[v for v, flag in zip(eqn.outvars, used) if flag],
        params={"call_jaxpr": smaller},
        effects=of_equation(smaller.jaxpr, invars),
    )


closed_call_p.dce = _dce


def _discharge(
    discharged: Sequence[bool], in_avals: Any, out_avals: Any, *args: Any, **params: Any
) -> tuple[list[Any], list[Any]]:
    closed = discharge.discharge_state(params["call_jaxpr"], discharged)
    results = closed_call_p.bind(*args, call_jaxpr=closed)
    return discharge.split_contents(results, len(out_avals), discharged)


closed_call_p.discharge = _discharge

_split = rematerialize.closed_call_rule(lambda _, closed: {"call_jaxpr": closed})


def _partial_eval_custom(
    saveable: Callable, unknown: list[bool], inst: list[bool], eqn: JaxprEqn
) -> tuple:
    as_call = eqn.replace(params={"jaxpr": eqn.params["call_jaxpr"]})
    return _split(saveable, unknown, inst, as_call)


closed_call_p.partial_eval_custom = _partial_eval_custom
