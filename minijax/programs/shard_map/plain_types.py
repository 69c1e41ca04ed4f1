"""A program without the axes over which its values vary, for lowering.

The types have been checked when the program is lowered. The rules of lowering trace
loops of their own, in which nothing is to be marked any more.
"""

from __future__ import annotations

from typing import Any

from minijax.core import language
from minijax.primitives.parallel.collectives import psum_p
from minijax.primitives.parallel.variation import CASTS, SUMS


@language.weakref_lru_cache
def without_variation(closed: language.ClosedJaxpr) -> language.ClosedJaxpr:
    """The program with plain types, in which `psum` stands for `psum_invariant`."""
    return language.ClosedJaxpr(_plain(closed.jaxpr), closed.consts)


def _plain_type(aval: Any) -> Any:
    if not isinstance(aval, language.ShapedArray) or not (aval.vma or aval.cut):
        return aval
    cut = aval.cut and aval.cut.without_manual_words()
    return aval.update(vma=frozenset(), sharding=cut)


def _plain(jaxpr: language.Jaxpr) -> language.Jaxpr:
    new: dict[language.Var, Any] = {}

    def read(atom: Any) -> Any:
        return atom if type(atom) is language.Literal else new[atom]

    def write(var: language.Var) -> language.Var:
        new[var] = language.Var(_plain_type(var.aval))
        return new[var]

    constvars = list(map(write, jaxpr.constvars))
    invars = list(map(write, jaxpr.invars))
    eqns = []
    for eqn in jaxpr.eqns:
        inputs = list(map(read, eqn.invars))
        if eqn.primitive in CASTS.values():
            new[eqn.outvars[0]] = inputs[0]
            continue
        primitive, params = eqn.primitive, eqn.params
        if primitive in SUMS:
            primitive, params = psum_p, {**params, "axis_index_groups": None}
        params = {name: _plain_value(value) for name, value in params.items()}
        outvars = list(map(write, eqn.outvars))
        new_eqn = eqn.replace(invars=inputs, outvars=outvars, params=params)
        eqns.append(new_eqn.replace(primitive=primitive))
    outvars = list(map(read, jaxpr.outvars))
    return jaxpr.replace(constvars=constvars, invars=invars, eqns=eqns, outvars=outvars)


def _plain_value(value: Any) -> Any:
    if isinstance(value, language.ClosedJaxpr):
        return without_variation(value)
    if isinstance(value, language.Jaxpr):
        return _plain(value)
    return tuple(map(_plain_value, value)) if type(value) is tuple else value
