"""Which refs of a program are unknown, because unknown values are written to them.

Partial evaluation goes through a program from its start and calls unknown what depends
on something unknown. A ref breaks that order: made with a known content, it may be
written later with an unknown value, and from then on holds one. Such a ref must be
unknown from the beginning, or a read would find the old content in the known program.

This is the case of every ref of tangents that begins with zeros: forward mode makes it
beside the ref of values, and only its writes depend on the tangents.

The analysis looks into programs inside of equations, so that a loop that writes two
refs, one with values and one with tangents, makes only the second unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import language
from minijax.primitives.refs.ref_effects import (
    AccumEffect,
    InternalMutableArrayEffect,
    WriteEffect,
)
from minijax.transforms.walking import run_equations
from minijax.values.inner_programs import inner_programs


def unknown_refs(
    jaxpr: language.Jaxpr, unknown_in: Sequence[bool]
) -> set[language.Var]:
    """The refs that a program makes with known contents and writes unknown ones to."""
    if not any(isinstance(e, InternalMutableArrayEffect) for e in jaxpr.effects):
        return set()
    unknown = {v for v, flag in zip(jaxpr.invars, unknown_in, strict=True) if flag}
    _spread(jaxpr, unknown)
    return {
        var
        for eqn in jaxpr.eqns
        if eqn.primitive.makes_ref and unknown.isdisjoint(eqn.invars)
        for var in eqn.outvars
        if var in unknown
    }


def _spread(jaxpr: language.Jaxpr, unknown: set[language.Var]) -> None:
    """Add to `unknown` all that depends on it, and refs to which it is written."""
    while True:
        size = len(unknown)
        for eqn in jaxpr.eqns:
            _spread_eqn(eqn, unknown)
        if len(unknown) == size:
            return


def _spread_eqn(eqn: language.JaxprEqn, unknown: set[language.Var]) -> None:
    flags = [v in unknown for v in eqn.invars]
    if not any(flags):
        return
    programs = inner_programs(eqn)
    for program in programs:
        inner, carry = program.jaxpr, program.carry or range(0)
        inside = {v for v, place in zip(inner.invars, program.inputs) if flags[place]}
        while True:
            size = len(inside)
            _spread(inner, inside)
            # What one step makes unknown stays unknown in all later steps.
            pairs = zip(carry, inner.outvars)
            inside.update(inner.invars[place] for place, v in pairs if v in inside)
            if len(inside) == size:
                break
        outer_inputs = [eqn.invars[place] for place in program.inputs]
        ends: list[Any] = [*zip(outer_inputs, inner.invars)]
        if not program.decides:
            ends += zip(eqn.outvars, inner.outvars)
        unknown.update(
            outer
            for outer, own in ends
            if own in inside and type(outer) is not language.Literal
        )
    if programs:
        return
    unknown.update(eqn.outvars)
    for effect in eqn.effects:
        if isinstance(effect, (WriteEffect, AccumEffect)):
            unknown.add(effect.input)


def eval_split(
    jaxpr: language.Jaxpr,
    consts: Sequence[Any],
    unknown_in: Sequence[bool],
    unknown: language.Trace,
    args: Sequence[Any],
) -> list[Any]:
    """`core.eval_jaxpr`, except that unknown refs are made in the trace `unknown`."""
    refs = unknown_refs(jaxpr, unknown_in)
    if not refs:
        return language.eval_jaxpr(jaxpr, consts, *args)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))

    def step(eqn: language.JaxprEqn, inputs: list[Any]) -> Any:
        if refs.isdisjoint(eqn.outvars):
            return eqn.primitive.rebind(inputs, eqn.params)
        with language.set_current_trace(unknown):
            return eqn.primitive.rebind(inputs, eqn.params)

    return run_equations(jaxpr, env, step)
