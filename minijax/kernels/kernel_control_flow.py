"""Programs inside of a kernel, for every machine: calls, branches, loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import hlo
from minijax.core.language import ClosedJaxpr
from minijax.kernels.kernel_rules import RuleContext, shared
from minijax.programs.control_flow.while_loops import While
from minijax.values.inner_programs import called_program


@shared("jit", "closed_call", "custom_jvp_call", "custom_vjp_call")
def _call(ctx: RuleContext, *values: Any, **params: Any) -> list[Any]:
    program = called_program(params)
    assert program is not None
    return ctx.lower(program, *values)


@shared("cond")
def _cond(
    ctx: RuleContext, index: Any, *values: Any, branches: Sequence[ClosedJaxpr], **_
) -> list[Any]:
    """The last branch if the index is as large, otherwise one of those before."""
    return _choose(ctx, index, values, branches, len(branches) - 1)


def _choose(
    ctx: RuleContext, index: Any, values: Any, branches: Any, last: int
) -> list[Any]:
    if last == 0:
        return ctx.lower(branches[0], *values)
    arith, scf = dialect("arith"), dialect("scf")
    limit = ctx.machine.constant(last, np.int32)
    chosen = arith.cmpi(arith.CmpIPredicate.sge, index, limit)
    types = [ctx.machine.value_type(aval) for aval in ctx.avals_out]
    operation = scf.IfOp(chosen, types, has_else=True)
    with hlo.ir.InsertionPoint(operation.then_block):
        scf.yield_(ctx.lower(branches[last], *values))
    with hlo.ir.InsertionPoint(operation.else_block):
        scf.yield_(_choose(ctx, index, values, branches, last - 1))
    return list(operation.results)


@shared("scan")
def _scan(
    ctx: RuleContext,
    *values: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    unroll: int,
    **_: Any,
) -> list[Any]:
    """A loop with a known number of steps, `unroll` of them written out in each turn"""
    if len(values) > num_consts + num_carry or len(ctx.avals_out) > num_carry:
        raise NotImplementedError(
            "a scan over rows in a kernel; write a `fori_loop` that reads each row "
            "from its ref."
        )
    consts, carry = values[:num_consts], list(values[num_consts:])

    def steps(count: int, carry: list[Any]) -> list[Any]:
        for _ in range(count):
            carry = ctx.lower(jaxpr, *consts, *carry)
        return carry

    turns, rest = divmod(length, max(unroll, 1))
    if turns == 1:
        return steps(length, carry)
    if turns:
        scf = dialect("scf")
        bounds = [ctx.machine.constant(x, np.int32) for x in (0, turns, 1)]
        loop = scf.ForOp(*bounds, carry)
        with hlo.ir.InsertionPoint(loop.body):
            scf.yield_(steps(max(unroll, 1), list(loop.inner_iter_args)))
        carry = list(loop.results)
    return steps(rest, carry)


@shared("while")
def _while(ctx: RuleContext, *values: Any, **params: Any) -> list[Any]:
    program = While(**params)
    operands = program.operands(values)
    scf, ir = dialect("scf"), hlo.ir
    carry = list(operands.carry)
    types = [value.type for value in carry]
    loop = scf.WhileOp(types, carry)
    with ir.InsertionPoint(loop.before.blocks.append(*types)):
        inside = list(loop.before.blocks[0].arguments)
        (goes_on,) = ctx.lower(program.cond_jaxpr, *operands.cond_consts, *inside)
        scf.condition(goes_on, inside)
    with ir.InsertionPoint(loop.after.blocks.append(*types)):
        inside = list(loop.after.blocks[0].arguments)
        scf.yield_(ctx.lower(program.body_jaxpr, *operands.body_consts, *inside))
    return list(loop.results)
