"""How partial evaluation, and checkpointing, split a call of a jitted function.

In JAX: `jax/_src/pjit.py`, `_pjit_partial_eval` and `pjit_partial_eval_custom`.
"""

from __future__ import annotations

from typing import Any

from minijax.core import partial_eval
from minijax.core.jit import bind_forwarding, jit_p, with_program
from minijax.core.language import set_current_trace
from minijax.transforms import rematerialize, splitting


def _jit_partial_eval(trace, args, params) -> list[Any]:
    """Split a jit into a known and an unknown one, with residuals between."""
    unknown = tuple(trace.is_unknown(arg) for arg in args)
    closed = params["jaxpr"]
    known, rest, unknown_out, forwarded = splitting.partial_eval_jaxpr(closed, unknown)
    known_args = [arg for arg, flag in zip(args, unknown) if not flag]
    num_new = sum(index is None for index in forwarded)
    with set_current_trace(trace.known):
        outputs, new = bind_forwarding(known, known_args, params, num_new)
    sources = [*closed.consts, *known_args]
    residuals = partial_eval.fill_forwarded(forwarded, sources, new)
    unknown_args = [arg for arg, flag in zip(args, unknown) if flag]
    rest_params = with_program(params, rest)
    with set_current_trace(trace.unknown):
        answers = iter(jit_p.bind(*residuals, *unknown_args, **rest_params))
    known_outputs = iter(outputs)
    return [next(answers) if flag else next(known_outputs) for flag in unknown_out]


jit_p.partial_eval = _jit_partial_eval
jit_p.partial_eval_custom = rematerialize.closed_call_rule(with_program)
