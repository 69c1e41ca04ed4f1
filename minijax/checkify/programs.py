"""How the error passes through primitives that carry programs.

The program is replaced by its checked form, which takes the leaves of the error before
its inputs and returns them, changed, before its outputs.

Derivatives of custom rules are not checked, as in JAX: the error comes out as it went
in. `checkify(grad(f))` checks what the rules compute.

In JAX: `jax/_src/checkify.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import pjit
from minijax.ad_checkpoint import close_jaxpr, remat_p
from minijax.checkify.error_values import Error
from minijax.checkify.interpreter import (
    CheckedProgram,
    Enabled,
    checked_program,
    rule_for,
)
from minijax.core import ClosedJaxpr, Jaxpr, Primitive, get_aval
from minijax.custom_backward import custom_vjp_call_p
from minijax.custom_forward import RunJaxpr, custom_jvp_call_p
from minijax.interpreters.partial_eval import convert_constvars_jaxpr
from minijax.rules import SymbolicZero, Zero
from minijax.tree_util import tree_flatten, tree_leaves, tree_unflatten


def _avals(values: Sequence[Any]) -> list[Any]:
    return [get_aval(value) for value in values]


# ----------------------------------------------------------------------------------
# jit and checkpoint
# ----------------------------------------------------------------------------------


@rule_for(pjit.jit_p)
def _jit_rule(
    primitive: Primitive, error: Error, enabled: Enabled, *args: Any, **params: Any
) -> tuple[Error, list[Any]]:
    leaves = tree_leaves(error)
    checked = checked_program(params["jaxpr"], enabled, error, _avals(args))
    donated = (False,) * len(leaves) + params["donated_invars"]
    new_params = pjit.changed(params, checked.closed, donated)
    return checked.result(primitive.bind(*leaves, *args, **new_params))


@rule_for(remat_p)
def _remat_rule(
    primitive: Primitive,
    error: Error,
    enabled: Enabled,
    *args: Any,
    jaxpr: Jaxpr,
    prevent_cse: bool | tuple[bool, ...],
    **params: Any,
) -> tuple[Error, list[Any]]:
    leaves = tree_leaves(error)
    checked = checked_program(close_jaxpr(jaxpr), enabled, error, _avals(args))
    consts = checked.closed.consts
    if isinstance(prevent_cse, tuple):
        prevent_cse = (False,) * (len(consts) + len(leaves)) + prevent_cse
    outputs = primitive.bind(
        *consts,
        *leaves,
        *args,
        jaxpr=convert_constvars_jaxpr(checked.closed.jaxpr),
        prevent_cse=prevent_cse,
        **params,
    )
    return checked.result(outputs)


# ----------------------------------------------------------------------------------
# Custom rules
# ----------------------------------------------------------------------------------


class _Passed:
    """The error as it goes in, in the form in which the checked call returns it."""

    def __init__(self, error: Error, checked: CheckedProgram):
        self.leaves, self.tree = tree_flatten(error)
        self.num_in = len(self.leaves)
        self.kinds = checked.kinds

    def out(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the error after the call, when nothing was checked in it."""
        error = tree_unflatten(self.tree, leaves)
        return tree_leaves(error.with_places(self.kinds))


@rule_for(custom_jvp_call_p)
def _custom_jvp_rule(
    primitive: Any,
    error: Error,
    enabled: Enabled,
    *args: Any,
    call_jaxpr: ClosedJaxpr,
    jvp_jaxpr_fun: Callable,
    num_consts: int,
    **params: Any,
) -> tuple[Error, list[Any]]:
    checked = checked_program(call_jaxpr, enabled, error, _avals(args))
    passed = _Passed(error, checked)
    skipped = passed.num_in + num_consts

    def jvp(*values: Any) -> list[Any]:
        half = len(values) // 2
        primals, tangents = values[:half], values[half:]
        outs = jvp_jaxpr_fun(*primals[skipped:], *tangents[skipped:])
        middle = len(outs) // 2
        errors = passed.out(primals[: passed.num_in])
        zeros = [SymbolicZero(aval.to_tangent_aval()) for aval in _avals(errors)]
        return [*errors, *outs[:middle], *zeros, *outs[middle:]]

    jvp.__name__ = getattr(jvp_jaxpr_fun, "__name__", "jvp")
    run = RunJaxpr(checked.closed)
    return checked.result(
        primitive.bind_call(run, jvp, [*passed.leaves, *args], **params)
    )


@rule_for(custom_vjp_call_p)
def _custom_vjp_rule(
    primitive: Any,
    error: Error,
    enabled: Enabled,
    *args: Any,
    call_jaxpr: ClosedJaxpr,
    fwd_jaxpr_thunk: Callable,
    bwd: Callable,
    num_consts: int,
    **params: Any,
) -> tuple[Error, list[Any]]:
    checked = checked_program(call_jaxpr, enabled, error, _avals(args))
    passed = _Passed(error, checked)
    skipped = passed.num_in + num_consts
    num_errors = len(passed.out(passed.leaves))

    def fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list, list]:
        outs, residuals = fwd_jaxpr_thunk(primals[skipped:], perturbed[skipped:])
        return [*passed.out(primals[: passed.num_in]), *outs], residuals

    def backward(
        residuals: Sequence[Any], cotangents: Sequence[Any], in_avals: Sequence[Any]
    ) -> list[Any]:
        zeros = [Zero(aval.to_ct_aval()) for aval in in_avals[:skipped]]
        return [*zeros, *bwd(residuals, cotangents[num_errors:], in_avals[skipped:])]

    fwd.__name__ = getattr(fwd_jaxpr_thunk, "__name__", "fwd")
    backward.__name__ = getattr(bwd, "__name__", "bwd")
    run = RunJaxpr(checked.closed)
    return checked.result(
        primitive.bind_call(run, fwd, backward, [*passed.leaves, *args], **params)
    )
