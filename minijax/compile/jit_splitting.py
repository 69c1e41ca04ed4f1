"""How partial evaluation splits a call of a jitted function.

In JAX: `jax/_src/pjit.py`, `_pjit_partial_eval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.compile.pjit import bind_forwarding, changed, jit_p
from minijax.language.core import set_current_trace
from minijax.transforms import partial_eval, splitting


def _jit_partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    """Split a jit into a known and an unknown one, with residuals between."""
    unknown = tuple(trace.is_unknown(arg) for arg in args)
    closed = params["jaxpr"]
    known, rest, unknown_out, forwarded = splitting.partial_eval_jaxpr(closed, unknown)
    known_args = [arg for arg, flag in zip(args, unknown) if not flag]
    num_new = sum(index is None for index in forwarded)
    with set_current_trace(trace.known):
        outputs, count = bind_forwarding(known, known_args, params, num_new)
    residuals = partial_eval.fill_forwarded(
        forwarded, [*closed.consts, *known_args], outputs[count:]
    )
    unknown_args = [arg for arg, flag in zip(args, unknown) if flag]
    with set_current_trace(trace.unknown):
        answers = iter(jit_p.bind(*residuals, *unknown_args, **changed(params, rest)))
    known_outputs = iter(outputs[:count])
    return [next(answers) if flag else next(known_outputs) for flag in unknown_out]


jit_p.partial_eval = _jit_partial_eval
