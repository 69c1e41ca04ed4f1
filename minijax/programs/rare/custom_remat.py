"""remat_opt: what `defvjp(..., optimize_remat=True)` makes of a forward rule.

A forward rule computes the function's value and residuals for the backward pass. Under
`checkpoint` the residuals of the first pass are thrown away, but a rule that is one
fused kernel computes them in any case. So the rule becomes one equation that carries
its program and a thunk that traces the function itself: where no residual is read,
dead-code elimination replaces the rule by the function.

In JAX: `jax/_src/custom_derivatives.py`, `optimize_remat_of_custom_vjp_fwd`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax.core import autodiff, batching, language, partial_eval
from minijax.core.effects import of_equation
from minijax.core.language import ClosedJaxpr, JaxprEqn, Primitive, get_aval
from minijax.core.rules import Zero, instantiate
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.programs.calls import as_array, closed_call_p, def_call
from minijax.programs.control_flow.bodies import outputs_reordered, reordered
from minijax.programs.control_flow.operands import (
    order_beside_tangents,
    split_groups_of_tangents,
)
from minijax.programs.custom.custom_forward import FlatCall, split_static
from minijax.transforms.rematerialize import where

remat_opt_p = language.register(Primitive("remat_opt", multiple_results=True))
def_call(remat_opt_p, "fwd_jaxpr")
remat_opt_p.without("transpose", "JAX has none: it would be a second derivative")


def optimized_forward(
    fun: Callable, fwd: Callable, nondiff: tuple[int, ...], flat_fwd: Callable
) -> Callable:
    """The rule `fwd` as one equation. `flat_fwd(fwd, call)` runs it on flat lists."""

    @functools.wraps(fwd)
    def forward(*args: Any) -> tuple[Any, Any]:
        leaves, in_tree = tree_flatten(tuple(split_static(args, nondiff)[1]))
        leaves = [as_array(leaf) for leaf in leaves]
        call = FlatCall(fun, args, nondiff, in_tree)
        flat = flat_fwd(fwd, call)
        passed_on: list[int | None] = []

        def program(*values: Any) -> list[Any]:
            outs, residuals = flat(values, [True] * len(values))
            given = {id(value): position for position, value in enumerate(values)}
            passed_on[:] = [given.get(id(residual)) for residual in residuals]
            kept = [r for r, p in zip(residuals, passed_on) if p is None]
            return [*kept, *outs]

        avals = [get_aval(leaf) for leaf in leaves]
        trace = partial_eval.trace_to_jaxpr
        jaxpr, consts = trace(program, avals)
        num_res = passed_on.count(None)
        results = remat_opt_p.bind(
            *consts,
            *leaves,
            num_consts=len(consts),
            num_res=num_res,
            fwd_jaxpr=ClosedJaxpr(partial_eval.convert_constvars_jaxpr(jaxpr)),
            fun_jaxpr_thunk=lambda: ClosedJaxpr(*trace(call, avals)),
        )
        kept = iter(results[:num_res])
        residuals = [next(kept) if p is None else leaves[p] for p in passed_on]
        outs = tree_unflatten(flat.out_tree, results[num_res:])
        return outs, tree_unflatten(flat.res_tree, residuals)

    return forward


def _open(both: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    return ClosedJaxpr(partial_eval.convert_constvars_jaxpr(both.jaxpr)), both.consts


@remat_opt_p.def_batch
def _batch(axis, args, dims, *, num_consts: int, num_res: int, **params) -> tuple:
    fwd_jaxpr, fun_jaxpr_thunk = params["fwd_jaxpr"], params["fun_jaxpr_thunk"]
    _, out_dims = batching.batch_jaxpr(fwd_jaxpr, axis, dims)
    mapped = [dim is not None for dim in out_dims]
    batched, consts = _open(batching.batch_jaxpr(fwd_jaxpr, axis, dims, mapped)[0])

    def thunk() -> ClosedJaxpr:
        inputs, wanted = dims[num_consts:], mapped[num_res:]
        return batching.batch_jaxpr(fun_jaxpr_thunk(), axis, inputs, wanted)[0]

    outputs = remat_opt_p.bind(
        *consts,
        *args,
        num_consts=len(consts) + num_consts,
        num_res=num_res,
        fwd_jaxpr=batched,
        fun_jaxpr_thunk=thunk,
    )
    return outputs, [0 if flag else None for flag in mapped]


@remat_opt_p.def_jvp_rule
def _jvp(primals, tangents, *, num_consts, num_res, **params) -> tuple[list, list]:
    """The rule of values and tangents; its residuals are those and their tangents."""
    fwd_jaxpr, fun_jaxpr_thunk = params["fwd_jaxpr"], params["fun_jaxpr_thunk"]
    nonzeros = [type(t) is not Zero for t in tangents[:num_consts]]
    of_consts = where(nonzeros, tangents[:num_consts])
    # Arguments' tangents are all there, since the function may be written instead.
    of_args = [instantiate(t) for t in tangents[num_consts:]]
    args, results = [True] * len(of_args), [True] * len(fwd_jaxpr.out_avals)
    residuals, outs = results[:num_res], results[num_res:]
    forward, _ = autodiff.jvp_jaxpr(fwd_jaxpr, [*nonzeros, *args], results)
    forward = reordered(forward, order_beside_tangents([nonzeros, args]))
    forward = outputs_reordered(forward, order_beside_tangents([residuals, outs]))
    program, consts = _open(forward)

    def thunk() -> ClosedJaxpr:
        return autodiff.jvp_jaxpr(fun_jaxpr_thunk(), args, outs)[0]

    outputs = remat_opt_p.bind(
        *consts,
        *primals[:num_consts],
        *of_consts,
        *primals[num_consts:],
        *of_args,
        num_consts=len(consts) + num_consts + len(of_consts),
        num_res=2 * num_res,
        fwd_jaxpr=program,
        fun_jaxpr_thunk=thunk,
    )
    return split_groups_of_tangents(outputs, residuals, outs)


def _dce(used, eqn) -> JaxprEqn:
    """Without residuals that are read, the function stands in the rule's place."""
    params = eqn.params
    num_consts, num_res = params["num_consts"], params["num_res"]
    thunk = params["fun_jaxpr_thunk"]
    outvars = [v for v, flag in zip(eqn.outvars, used) if flag]
    if any(used[:num_res]):

        def smaller() -> ClosedJaxpr:
            return partial_eval.prune_outputs(thunk(), used[num_res:])

        keep = [position >= num_consts for position in range(len(eqn.invars))]
        closed, used_in = partial_eval.dce_closed_jaxpr(params["fwd_jaxpr"], used, keep)
        params = {
            **params,
            "num_consts": sum(used_in[:num_consts]),
            "num_res": sum(used[:num_res]),
            "fwd_jaxpr": closed,
            "fun_jaxpr_thunk": smaller,
        }
        primitive, invars = remat_opt_p, eqn.invars
    else:
        closed, used_in = partial_eval.dce_closed_jaxpr(thunk(), used[num_res:])
        params = {"call_jaxpr": closed}
        primitive = closed_call_p
        invars = eqn.invars[num_consts:]
    invars = [v for v, flag in zip(invars, used_in) if flag]
    effects = of_equation(closed.jaxpr, invars)
    changed = {"primitive": primitive, "params": params, "effects": effects}
    return eqn.replace(invars=invars, outvars=outvars, **changed)


remat_opt_p.dce = _dce
