"""How the error passes through primitives that carry programs.

The program is replaced by its checked form, which takes the leaves of the error before
its inputs and returns them, changed, before its outputs.

Derivatives of custom rules are not checked, as in JAX: the error comes out as it went
in. `checkify(grad(f))` checks what the rules compute.

In JAX: `jax/_src/checkify.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minijax.core import errors, partial_eval, rules
from minijax.core import jit as pjit
from minijax.core.language import ClosedJaxpr, DebugInfo, get_aval, weakref_lru_cache
from minijax.core.trees import tree_flatten, tree_leaves, tree_unflatten
from minijax.experimental.checkify import error_values
from minijax.experimental.checkify.checking_interpreter import (
    Checked,
    CheckedProgram,
    checked_program,
    checkify_jaxpr,
    rule_for,
)
from minijax.experimental.checkify.error_values import Error
from minijax.primitives.parallel.variation import varied
from minijax.primitives.shape import ordering
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.calls import close_jaxpr, closed_call_p
from minijax.programs.checkpointing import remat_p
from minijax.programs.control_flow import bodies, conditionals, while_loops
from minijax.programs.control_flow.scan_primitive import Scan, scan_p
from minijax.programs.custom.custom_backward import custom_vjp_call_p
from minijax.programs.custom.custom_calls import RunJaxpr, named_like
from minijax.programs.custom.custom_forward import custom_jvp_call_p
from minijax.programs.shard_map import primitive as mapping
from minijax.programs.sharding.cuts import cut_of
from minijax.programs.sharding.reshard import reshard
from minijax.support.devices.shardings import NamedSharding, PartitionSpec
from minijax.values.inner_programs import jaxpr_as_fun
from minijax.values.symbolic_zeros import SymbolicZero


def _avals(values: Sequence[Any]) -> list[Any]:
    return [get_aval(value) for value in values]


# ----------------------------------------------------------------------------------
# jit and checkpoint
# ----------------------------------------------------------------------------------


@rule_for(pjit.jit_p)
def _jit_rule(primitive, error, enabled, *args, **params) -> Checked:
    leaves = tree_leaves(error)
    checked = checked_program(params["jaxpr"], enabled, error, _avals(args))
    donated = (False,) * len(leaves) + params["donated_invars"]
    new_params = pjit.with_program(params, checked.closed, donated)
    return checked.result(primitive.bind(*leaves, *args, **new_params))


@rule_for(remat_p)
def _remat_rule(primitive, error, enabled, *args, **params) -> Checked:
    leaves, prevent_cse = tree_leaves(error), params["prevent_cse"]
    program = close_jaxpr(params["jaxpr"])
    checked = checked_program(program, enabled, error, _avals(args))
    consts = checked.closed.consts
    if isinstance(prevent_cse, tuple):
        flags = (False,) * (len(consts) + len(leaves))
        params["prevent_cse"] = flags + prevent_cse
    params["jaxpr"] = partial_eval.convert_constvars_jaxpr(checked.closed.jaxpr)
    return checked.result(primitive.bind(*consts, *leaves, *args, **params))


@rule_for(closed_call_p)
def _closed_call_rule(primitive, error, enabled, *args, **params) -> Checked:
    call = params["call_jaxpr"]
    return checkify_jaxpr(call.jaxpr, call.consts, enabled, error, *args)


# ----------------------------------------------------------------------------------
# Branches and loops: the error is the same before and after, in every branch
# ----------------------------------------------------------------------------------


_checked_one = functools.partial(checked_program, one=True)


@rule_for(conditionals.cond_p)
def _cond_rule(primitive, error, enabled, *args, **params) -> Checked:
    index, *operands = args
    avals, branches = _avals(operands), params["branches"]
    for branch in branches:
        error = error.with_places(_checked_one(branch, enabled, error, avals).kinds)
    programs = [_checked_one(x, enabled, error, avals) for x in branches]
    params["branches"] = tuple(program.closed for program in programs)
    outputs = primitive.bind(index, *tree_leaves(error), *operands, **params)
    # The values are those of the branch that was run; a code has one meaning in all.
    results = [program.result(outputs) for program in programs]
    meanings: dict[int, Any] = {}
    for result, _ in results:
        meanings |= result._metadata
    after, outs = results[0]
    return after.with_metadata(meanings), outs


@rule_for(scan_p)
def _scan_rule(primitive, error, enabled, *args, **params) -> Checked:
    loop = Scan(**params)
    operands, avals = loop.operands(args), loop.jaxpr.in_avals
    error = error.with_places(_checked_one(loop.jaxpr, enabled, error, avals).kinds)
    checked = _checked_one(loop.jaxpr, enabled, error, avals)
    body = _errors_in_carry(checked.closed, error, len(operands.consts))
    carry = [*tree_leaves(error), *operands.carry]
    return checked.result(loop.bind(body, operands._replace(carry=carry)))


def _errors_in_carry(
    checked: ClosedJaxpr, error: Error, num_consts: int
) -> ClosedJaxpr:
    """A checked program of a loop with its constants before the error, not after it."""
    count = len(tree_leaves(error))
    others = len(checked.in_avals) - count - num_consts
    is_const = [*[False] * count, *[True] * num_consts, *[False] * others]
    return bodies.reordered(checked, bodies.to_front(is_const))


@rule_for(while_loops.while_p)
def _while_rule(primitive, error, enabled, *args, **params) -> Checked:
    """Checks of the condition run before the loop and at the end of each step.

    A condition returns a truth value and nothing else, so the body runs it once more.
    """
    loop = while_loops.While(**params)
    cond_consts, body_consts, carry = loop.operands(args)
    cond_jaxpr, num_cond = loop.cond_jaxpr, len(cond_consts)
    if cond_jaxpr.out_avals[0].shape:
        raise errors.value_error(
            "Checkify does not support batched while-loops (checkify-of-vmap-of-while):"
            " write vmap outside, `vmap(checkify(f))`."
        )
    error, _ = checkify_jaxpr(
        cond_jaxpr.jaxpr, cond_jaxpr.consts, enabled, error, *cond_consts, *carry
    )
    step = _step_and_condition(cond_jaxpr, loop.body_jaxpr, num_cond)
    error = error.with_places(_checked_one(step, enabled, error, step.in_avals).kinds)
    body = _checked_one(step, enabled, error, step.in_avals)
    condition = _checked_one(cond_jaxpr, enabled, error, cond_jaxpr.in_avals)
    num_out = len(condition.closed.out_avals)
    truth = partial_eval.prune_outputs(
        condition.closed, [False] * (num_out - 1) + [True]
    )
    step_consts = [*cond_consts, *body_consts]
    outputs = while_loops.bind_while(
        _errors_in_carry(truth, error, num_cond),
        _errors_in_carry(body.closed, error, len(step_consts)),
        while_loops.WhileOperands(
            cond_consts, step_consts, [*tree_leaves(error), *carry]
        ),
    )
    return body.result(outputs)


@weakref_lru_cache
def _step_and_condition(
    cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int
) -> ClosedJaxpr:
    """The body, followed by the condition on its results, whose result is dropped."""
    condition, step = jaxpr_as_fun(cond_jaxpr), jaxpr_as_fun(body_jaxpr)

    def fun(*values: Any) -> list[Any]:
        out = step(*values[cond_nconsts:])
        ordering.dce_sink(condition(*values[:cond_nconsts], *out))
        return out

    avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
    old = body_jaxpr.debug_info
    info = DebugInfo(old.traced_for, old.func_name, old.place)
    return ClosedJaxpr(*partial_eval.trace_to_jaxpr(fun, avals, info))


# ----------------------------------------------------------------------------------
# shard_map
# ----------------------------------------------------------------------------------


@rule_for(mapping.shard_map_p)
def _shard_map_rule(primitive, error, enabled, *args, **params) -> Checked:
    """Each device has an error of its own; together they are those of a batch.

    A check that comes after them takes the error of one device that has one.
    """
    error = error_values.one_error(error)
    mesh, manual = params["mesh"], params["newly_manual_axes"]
    checks = params["check_vma"]
    axes = tuple(name for name in mesh.axis_names if name in manual)
    copied, cut = PartitionSpec(), PartitionSpec(axes)

    def part(leaf: Any) -> Any:
        return mapping.part_type(get_aval(leaf), copied, mesh, checks, manual)

    leaves, program = tree_leaves(error), params["jaxpr"]
    with mapping.scope_of(params):
        avals = program.in_avals
        checked = checked_program(program, enabled, error, avals, one=True, typed=part)
        inner = checked.closed
        count = len(inner.out_avals) - len(params["out_specs"])

        def on_each(*values: Any) -> list[Any]:
            results = jaxpr_as_fun(inner)(*values)
            stacked = [expand_dims(result, [0]) for result in results[:count]]
            return [*(varied(one, axes) for one in stacked), *results[count:]]

        closed = ClosedJaxpr(*partial_eval.trace_to_jaxpr(on_each, inner.in_avals))
    ins = [*[copied] * len(leaves), *params["in_specs"]]
    outs = [*[cut] * count, *params["out_specs"]]
    new_params = mapping.with_specs(params, closed, ins, outs)
    outputs = primitive.bind(*leaves, *args, **new_params)
    # Where types say how arrays are cut, one error could not be chosen of cut ones.
    whole = NamedSharding(mesh, copied)
    errors = [
        reshard(one, whole) if any(cut_of(get_aval(one))) else one
        for one in outputs[:count]
    ]
    return checked.result([*errors, *outputs[count:]])


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
    primitive, error, enabled, *args, call_jaxpr, jvp_jaxpr_fun, num_consts, **params
) -> Checked:
    checked = checked_program(call_jaxpr, enabled, error, _avals(args))
    passed = _Passed(error, checked)
    skipped = passed.num_in + num_consts

    @named_like(jvp_jaxpr_fun)
    def jvp(*values) -> list[Any]:
        half = len(values) // 2
        primals, tangents = values[:half], values[half:]
        outs = jvp_jaxpr_fun(*primals[skipped:], *tangents[skipped:])
        middle = len(outs) // 2
        errors = passed.out(primals[: passed.num_in])
        zeros = [SymbolicZero(aval.to_tangent_aval()) for aval in _avals(errors)]
        return [*errors, *outs[:middle], *zeros, *outs[middle:]]

    run = RunJaxpr(checked.closed)
    return checked.result(
        primitive.bind_call(run, jvp, [*passed.leaves, *args], **params)
    )


@rule_for(custom_vjp_call_p)
def _custom_vjp_rule(
    primitive, error, enabled, *args, call_jaxpr, bwd, num_consts, **params
) -> Checked:
    fwd_jaxpr_thunk = params.pop("fwd_jaxpr_thunk")
    checked = checked_program(call_jaxpr, enabled, error, _avals(args))
    passed = _Passed(error, checked)
    skipped = passed.num_in + num_consts
    num_errors = len(passed.out(passed.leaves))

    @named_like(fwd_jaxpr_thunk)
    def fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list, list]:
        outs, residuals = fwd_jaxpr_thunk(primals[skipped:], perturbed[skipped:])
        return [*passed.out(primals[: passed.num_in]), *outs], residuals

    @named_like(bwd)
    def backward(
        residuals: Sequence[Any], cotangents: Sequence[Any], in_avals: Sequence[Any]
    ) -> list[Any]:
        zeros = [rules.Zero(aval.to_ct_aval()) for aval in in_avals[:skipped]]
        return [*zeros, *bwd(residuals, cotangents[num_errors:], in_avals[skipped:])]

    run = RunJaxpr(checked.closed)
    return checked.result(
        primitive.bind_call(run, fwd, backward, [*passed.leaves, *args], **params)
    )
