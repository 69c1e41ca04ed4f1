"""Calls: primitives that carry one program and give it their inputs.

`closed_call`, `remat2`, `custom_jvp_call`, `custom_vjp_call`, `custom_vmap_call` and
`remat_opt` differ in one or two rules. The others follow from the program alone, which
each carries in a parameter, and are written here once: its type, how it is computed and
compiled (`def_call`), and its discharge (`call_discharge`).

`closed_call` is the plainest of them. It stands for the known side of a checkpointed
`scan`: the part before the loop and the loop, as one equation. Only a trace that writes
a program keeps it; every transformation looks inside.

In JAX: `core.py`, `closed_call_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import language, partial_eval, shaping
from minijax.core.effects import no_effects, positional, with_inputs
from minijax.core.events import enter
from minijax.core.state import state
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.transforms import discharge, rematerialize
from minijax.transforms.rematerialize import split_rules, where


def as_array(leaf: Any) -> Any:
    """A plain number as an array or tracer; anything else as it is."""
    plain = isinstance(leaf, (bool, int, float, complex, np.generic))
    if isinstance(leaf, np.void):  # float0: the zero that stands for no tangent
        return np.asarray(leaf)
    return shaping.stage(leaf) if plain else leaf


def run_eagerly(closed: language.ClosedJaxpr, *args: Any) -> list[Any]:
    """Compute a program now; plain numbers that it passes through become arrays."""
    return [
        as_array(x) for x in language.eval_jaxpr(closed.jaxpr, closed.consts, *args)
    ]


@language.weakref_lru_cache
def close_jaxpr(jaxpr: language.Jaxpr) -> language.ClosedJaxpr:
    """The program as a closed one: a copy, since the cache would keep its key alive."""
    return language.ClosedJaxpr(jaxpr.replace())


def rewritten(
    eqn: language.JaxprEqn, invars: Sequence[Any], outvars: Sequence[Any], **params: Any
) -> language.JaxprEqn:
    """A part of an equation as an equation: some parameters are replaced.

    Its effects are among those of the whole, as its type rule finds them.
    """
    params, effects = {**eqn.params, **params}, no_effects
    if eqn.effects:
        _, positions = eqn.primitive.type_rule(*(v.aval for v in invars), **params)
        effects = with_inputs(positions, invars)
    return eqn.replace(
        invars=list(invars), outvars=list(outvars), params=params, effects=effects
    )


# ----------------------------------------------------------------------------------
# Rules that follow from the program
# ----------------------------------------------------------------------------------


def def_call(primitive: language.Primitive, key: str) -> None:
    """Type, evaluation and lowering of a primitive that calls its parameter `key`.

    The parameter is a `ClosedJaxpr`, or a `Jaxpr` without constants.
    """
    primitive.cache_types = False

    @primitive.def_effectful_abstract_eval
    def call_type(*avals, **params) -> tuple:
        program = params[key]
        jaxpr = program.jaxpr if isinstance(program, language.ClosedJaxpr) else program
        return list(jaxpr.out_avals), positional(jaxpr.effects, jaxpr.invars)

    @primitive.def_impl
    def call_impl(*args, **params) -> list[Any]:
        return run_eagerly(_closed(params[key]), *args)

    @primitive.def_lowering
    def call_lowering(ctx, *operands, **params) -> list[Any]:
        return ctx.lower_jaxpr(_closed(params[key]), *operands)


def _closed(program: language.ClosedJaxpr | language.Jaxpr) -> language.ClosedJaxpr:
    return (
        program if isinstance(program, language.ClosedJaxpr) else close_jaxpr(program)
    )


def call_discharge(primitive: language.Primitive, key: str) -> None:
    """The discharge rule of a primitive that calls its parameter `key`."""

    def rule(discharged, *args, **params) -> tuple[list, list]:
        program = params[key]
        pure = discharge.discharge_state(_closed(program), discharged)
        params[key] = pure if isinstance(program, language.ClosedJaxpr) else pure.jaxpr
        results = primitive.bind(*args, **params)
        return discharge.split_contents(results, discharged)

    enter(discharge_rules, primitive, rule)


# ----------------------------------------------------------------------------------
# closed_call
# ----------------------------------------------------------------------------------


class ClosedCallPrimitive(language.Primitive):
    """One equation while tracing; any other trace runs the program's equations."""

    def rebind(self, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        if isinstance(state.trace, partial_eval.DynamicJaxprTrace):
            return self.bind(*args, **params)
        closed = params["call_jaxpr"]
        return language.eval_jaxpr(closed.jaxpr, closed.consts, *args)


closed_call_p = language.register(
    ClosedCallPrimitive("closed_call", multiple_results=True)
)
def_call(closed_call_p, "call_jaxpr")
call_discharge(closed_call_p, "call_jaxpr")
enter(
    split_rules,
    closed_call_p,
    rematerialize.closed_call_rule(
        lambda _, closed: {"call_jaxpr": closed}, "call_jaxpr"
    ),
)
closed_call_p.without("jvp transpose batch", "transformations look inside: `rebind`")


def _dce(used, eqn) -> language.JaxprEqn:
    smaller, needed = partial_eval.dce_closed_jaxpr(eqn.params["call_jaxpr"], used)
    invars, outvars = where(needed, eqn.invars), where(used, eqn.outvars)
    return rewritten(eqn, invars, outvars, call_jaxpr=smaller)


closed_call_p.dce = _dce


@closed_call_p.def_lowering
def _lowering(ctx, *operands, call_jaxpr: language.ClosedJaxpr) -> list[Any]:
    return ctx.call(call_jaxpr, "closed_call", *operands)
