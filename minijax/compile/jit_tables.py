"""jit in the tables of `rematerialize.py` and `discharge.py`.

In JAX: `jax/_src/pjit.py`, `pjit_partial_eval_custom` and `_pjit_state_discharge_rule`.
"""

from __future__ import annotations

from minijax.core.events import enter
from minijax.core.jit import jit_p, plain, with_program
from minijax.core.language import JaxprEqn
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.transforms import discharge, rematerialize

_split = rematerialize.closed_call_rule(with_program)


def _split_jit(saveable, unknown, inst, eqn: JaxprEqn) -> tuple:
    return _split(saveable, unknown, inst, eqn.replace(params=plain(eqn.params)))


def _discharge_jit(discharged, *args, **params) -> tuple[list, list]:
    params = plain(params)
    closed = discharge.discharge_state(params["jaxpr"], discharged)
    results = jit_p.bind(*args, **with_program(params, closed))
    return discharge.split_contents(results, discharged)


enter(rematerialize.split_rules, jit_p, _split_jit)
enter(discharge_rules, jit_p, _discharge_jit)
