"""The derivatives of scan: forward, linearized, transposed, and split for checkpoints.

A step's residuals are stacked: one row for each step. Two kinds are not. Constants and
rows of the inputs are read where they already are (`_forwardable`). Values computed
from constants alone are the same in every step and are computed once (`_hoisted`).

The transposed scan goes in the other direction. The cotangent of the carry is its
carry; those of constants add up in the carry too, beginning with zeros, since every
step contributes to them; those of rows are rows. Refs that gather cotangents stay
constants, or rows.

In JAX: `lax/control_flow/loops.py`, `_scan_linearize`, `_scan_transpose_fancy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minijax.core import autodiff, partial_eval
from minijax.core.language import (
    ClosedJaxpr,
    Var,
    get_aval,
    set_current_trace,
    unmapped_aval,
    weakref_lru_cache,
)
from minijax.core.rules import Accumulator, Zero, instantiate, zeros_of
from minijax.primitives.refs.mutable_arrays import RefAccumulator
from minijax.programs.calls import closed_call_p, rewritten
from minijax.programs.control_flow.bodies import (
    forward_body,
    reordered,
    returning_constants,
    to_back,
    traced,
)
from minijax.programs.control_flow.operands import (
    Operands,
    merge,
    partition,
    settle,
    split_groups_of_tangents,
    split_list,
)
from minijax.programs.control_flow.scan_primitive import Scan, scan_p
from minijax.transforms import rematerialize, splitting
from minijax.transforms.rematerialize import split_rules, where, where_not
from minijax.values.inner_programs import jaxpr_as_fun
from minijax.values.ref_avals import AbstractRef


@scan_p.def_jvp_rule
def _scan_jvp(primals, tangents, **params) -> tuple[list, list]:
    """The tangents of constants are constants, those of the carry are carried on."""
    loop = Scan(**params)
    nonzeros = loop.operands([type(t) is not Zero for t in tangents])
    forward, nonzeros, nonzeros_out = forward_body(loop.jaxpr, nonzeros)
    dots = _given(loop, tangents, nonzeros)
    outputs = loop.bind(forward, loop.operands(primals).beside(dots))
    return split_groups_of_tangents(outputs, *nonzeros_out)


def _given(loop: Scan, tangents: Sequence[Any], nonzeros: Operands) -> Operands:
    """The tangents that are nonzero; zeros that become nonzero are arrays."""
    return loop.operands(tangents).where(nonzeros).map(instantiate)


# ----------------------------------------------------------------------------------
# Two loops instead of one: values and tangents, or known and unknown
# ----------------------------------------------------------------------------------


def _scan_linearize(nonzeros, *primals, **params) -> tuple:
    loop = Scan(**params)
    args = loop.operands(primals)

    def step(flags: tuple, wanted: tuple) -> tuple:
        answer = autodiff.linearize_jaxpr(loop.jaxpr, flags, wanted, _forwardable(args))
        return answer[2], answer

    settled, answer = settle(loop.operands(nonzeros), loop.num_ys, step)
    primal, _, nonzeros_out, places, linear = answer
    num_outputs = len(nonzeros_out)
    outs, once, rows, linear = _run_first(
        loop, primal, args, num_outputs, places, linear
    )
    out_avals = loop.out_avals

    def apply_linear(saved: Sequence[Any], *tangents: Any) -> list[Any]:
        given = _given(loop, tangents, settled)
        answers = _run_second(loop, linear, given, saved, len(once))
        return autodiff.with_zeros(answers, nonzeros_out, out_avals)

    return outs, nonzeros_out, [*once, *rows], apply_linear


scan_p.linearize = _scan_linearize


def _scan_partial_eval(trace, args, params) -> list[Any]:
    """Split a scan into a known and an unknown one, with stacked residuals between."""
    loop = Scan(**params)
    operands = loop.operands(args)

    def step(flags: tuple, wanted: tuple) -> tuple:
        usable = tuple(where_not(flags, _forwardable(operands)))
        answer = splitting.partial_eval_jaxpr(loop.jaxpr, flags, wanted, usable)
        return answer[2], answer

    unknown = loop.operands([trace.is_unknown(arg) for arg in args])
    unknown, answer = settle(unknown, loop.num_ys, step)
    known, rest, unknown_out, places = answer
    num_known = len(unknown_out) - sum(unknown_out)
    with set_current_trace(trace.known):
        outs, once, rows, rest = _run_first(
            loop, known, operands.where_not(unknown), num_known, places, rest
        )
    with set_current_trace(trace.unknown):
        given, saved = operands.where(unknown), [*once, *rows]
        answers = _run_second(loop, rest, given, saved, len(once))
    return merge(unknown_out, outs, answers)


scan_p.partial_eval = _scan_partial_eval


def _forwardable(args: Operands) -> tuple[bool, ...]:
    """Which inputs may be residuals as they are: constants and rows, not the carry."""

    def usable(group: Sequence[Any]) -> list[bool]:
        return [not isinstance(x, np.ndarray) for x in group]

    never = [False] * len(args.carry)
    return (*usable(args.consts), *never, *usable(args.rows))


def _run_first(
    loop: Scan,
    first: ClosedJaxpr,
    args: Operands,
    num_outputs: int,
    places: Sequence[int | None],
    second: ClosedJaxpr,
) -> tuple[list[Any], list[Any], list[Any], ClosedJaxpr]:
    """Run the first of the two loops that a scan is split into.

    `first` returns `num_outputs` outputs and the residuals that `places` does not find
    among the constants of the scan's program and `args`; `second` takes all residuals
    before its own inputs. Returns the outputs, the residuals that are the same in
    every step, those that are rows, and `second` with these last.
    """
    num_new = len(first.out_avals) - num_outputs
    first, consts, hoisted, values = _hoisted(first, args.consts, num_new)
    outputs = []
    if first.out_avals or first.effects:
        outputs = loop.bind(first, args._replace(consts=consts))
    outs, stacked = split_list(outputs, num_outputs)
    saved = partial_eval.fill_forwarded(
        places, [*loop.jaxpr.consts, *args.flat], merge(hoisted, stacked, values)
    )
    first_row = len(loop.jaxpr.consts) + len(args.consts) + len(args.carry)
    new = iter(hoisted)
    is_row = [not next(new) if p is None else p >= first_row for p in places]
    others = len(second.in_avals) - len(is_row)
    second = reordered(second, to_back([*is_row, *[False] * others]))
    once, rows = partition(is_row, saved)
    return outs, once, rows, second


def _run_second(
    loop: Scan, second: ClosedJaxpr, given: Operands, saved: Sequence, num_once: int
) -> list[Any]:
    """Run the second loop: residuals come first as constants and last as rows."""
    once, rows = split_list(saved, num_once)
    consts, carry, xs = given
    return loop.bind(second, Operands([*once, *consts], carry, [*xs, *rows]))


def _hoisted(
    closed: ClosedJaxpr, consts: Sequence[Any], num_residuals: int
) -> tuple[ClosedJaxpr, list[Any], list[bool], list[Any]]:
    """Compute the values that depend on constants alone before the loop.

    Returns the program without that, its constants, which of its last `num_residuals`
    outputs were so computed, and their values.
    """
    is_ref = [type(get_aval(x)) is AbstractRef for x in consts]
    known, rest, hoisted, places = _split_constant_part(closed, is_ref, num_residuals)
    known_args, refs = partition(is_ref, consts)
    values, new = split_list(jaxpr_as_fun(known)(*known_args), sum(hoisted))
    saved = partial_eval.fill_forwarded(places, [*closed.consts, *known_args], new)
    return rest, [*saved, *refs], hoisted, values


def _split_constant_part(
    body: ClosedJaxpr,
    is_ref: Sequence[bool],
    num_residuals: int,
    forwardable: tuple[bool, ...] | None = None,
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], tuple[int | None, ...]]:
    """The part of a loop's body that depends on constants alone, and the rest.

    `is_ref` says which of the constants are refs. Only the last `num_residuals` outputs
    may come from the first part; the flags say which of these do.
    """
    num_outputs = len(body.out_avals) - num_residuals
    others = len(body.in_avals) - len(is_ref)
    before, rest, unknown_out, places = splitting.partial_eval_jaxpr(
        body,
        (*is_ref, *[True] * others),
        (*[True] * num_outputs, *[False] * num_residuals),
        forwardable,
    )
    return before, rest, [not flag for flag in unknown_out[num_outputs:]], places


# ----------------------------------------------------------------------------------
# The transpose
# ----------------------------------------------------------------------------------


@scan_p.def_transpose
def _scan_transpose(cts, *args, **params) -> None:
    """The scan in the other direction.

    Its constants are the values, and the refs that gather cotangents; its carry the
    cotangents of constants, and of the carry; its rows the refs that gather, the
    cotangents of stacked outputs, and the values.
    """
    loop = Scan(**params)
    operands = loop.operands(args)
    kinds = operands.map(_kind)

    def of_kind(kind: type | None) -> Operands:
        return operands.where(kinds.map(lambda own: own is kind))

    values, gathering, sums = map(of_kind, (None, RefAccumulator, Accumulator))
    ct_carry, ct_ys = loop.outputs(cts)
    zero_ys = tuple(type(ct) is Zero for ct in ct_ys)
    const_refs, _, row_refs = ([x.inst().ref for x in group] for group in gathering)
    ct_carry = [instantiate(ct) for ct in ct_carry]
    starts = [zeros_of(x.aval) for x in sums.consts]
    # Every array of rows gets a cotangent, whether it is wanted or not.
    given = Operands(
        [*values.consts, *const_refs],
        [*starts, *ct_carry],
        [*row_refs, *where_not(zero_ys, ct_ys), *values.rows],
    )
    backward = _transposed(loop.jaxpr, kinds, zero_ys, loop.body_avals(given))
    outputs = replace(loop, reverse=not loop.reverse).bind(backward, given)
    for target, answer in zip([*sums.consts, *operands.carry, *sums.rows], outputs):
        if isinstance(target, Accumulator):  # a counter in the carry is not one
            target.accum(answer)


def _kind(arg: Any) -> type | None:
    """What an operand is to the transpose: None for a value.

    `RefAccumulator` for a ref that gathers cotangents, `Accumulator` for a sum.
    """
    if isinstance(arg, RefAccumulator):
        return RefAccumulator
    return Accumulator if isinstance(arg, Accumulator) else None


@weakref_lru_cache
def _transposed(
    body: ClosedJaxpr, kinds: Operands, zero_ys: tuple[bool, ...], avals: Operands
) -> ClosedJaxpr:
    """The body of the transposed scan, for operands of these kinds and types."""
    num_sums = kinds.consts.count(Accumulator)
    own = Operands(*split_list(body.in_avals, len(kinds.consts), len(kinds.carry)))

    def inputs(
        own_avals: Sequence, own_kinds: Sequence, values: Any, refs: Any, sums: Any = ()
    ) -> list[Any]:
        """The body's inputs of one group, from what the transposed body takes."""
        given = {
            None: iter(values),
            RefAccumulator: iter(refs),
            Accumulator: iter(sums),
        }
        result = []
        for aval, kind in zip(own_avals, own_kinds):
            x = next(given[kind], None)
            result.append(x if kind is None else kind(aval.to_ct_aval(), x))
        return result

    def transposed(*args: Any) -> list[Any]:
        consts, carry, rows = split_list(args, len(avals.consts), len(avals.carry))
        values, refs = split_list(consts, kinds.consts.count(None))
        sums, cts = split_list(carry, num_sums)
        row_refs, given, row_values = split_list(
            rows, kinds.rows.count(RefAccumulator), zero_ys.count(False)
        )
        targets = [
            *inputs(own.consts, kinds.consts, values, refs, sums),
            *(Accumulator(get_aval(ct)) for ct in cts),
            *inputs(own.rows, kinds.rows, row_values, row_refs),
        ]
        answers = iter(given)
        ct_ys = [
            Zero(aval.to_ct_aval()) if zero else next(answers)
            for aval, zero in zip(body.out_avals[len(kinds.carry) :], zero_ys)
        ]
        autodiff.backward_pass(body.jaxpr, body.consts, targets, [*cts, *ct_ys])
        return [instantiate(x.freeze()) for x in targets if type(x) is Accumulator]

    return traced(transposed, avals.flat, body)


# ----------------------------------------------------------------------------------
# Checkpoints
# ----------------------------------------------------------------------------------


def _scan_partial_eval_custom(saveable, unknown, inst, eqn) -> tuple:
    """Residuals of a step are stacked, except those that all steps have in common."""
    loop = Scan(**eqn.params)

    def step(flags: tuple, wanted: tuple) -> tuple:
        split = rematerialize.partial_eval_jaxpr_custom(
            loop.jaxpr.jaxpr, flags, [True] * len(flags), wanted, True, saveable
        )
        return split.unknown_out, split

    settled, split = settle(loop.operands(unknown), loop.num_ys, step)
    known = ClosedJaxpr(split.known, loop.jaxpr.consts)
    staged = ClosedJaxpr(split.staged, loop.jaxpr.consts)
    invars = loop.operands(eqn.invars)
    known_in = invars.where_not(settled)
    is_ref = [type(v.aval) is AbstractRef for v in known_in.consts]
    nothing = (False,) * (len(is_ref) - sum(is_ref))
    before, rest, constant, places = _split_constant_part(
        known, is_ref, split.num_res, nothing
    )
    assert all(place is None or place < len(known.consts) for place in places)
    before = returning_constants(before, known, places, sum(constant))
    avals = staged.in_avals[: split.num_res]
    once = [Var(aval) for aval in where(constant, avals)]
    rows = [Var(unmapped_aval(loop.length, 0, a)) for a in where_not(constant, avals)]
    eqn_known = rewritten(
        eqn.replace(primitive=closed_call_p, params={}),
        known_in.flat,
        [*once, *where_not(split.unknown_out, eqn.outvars), *rows],
        call_jaxpr=_known_call(loop, before, rest, known_in, is_ref, len(once)),
    )
    # The staged program takes the residuals of every step first and stacked ones last.
    is_row = [*(not flag for flag in constant), *[False] * len(eqn.invars)]
    staged_in = Operands([*once, *invars.consts], invars.carry, [*invars.rows, *rows])
    staged = reordered(staged, to_back(is_row))
    params = loop.params(staged, staged_in)
    eqn_staged = rewritten(eqn, staged_in.flat, eqn.outvars, **params)
    needed = [v for v in where_not(inst, eqn.invars) if isinstance(v, Var)]
    everything = [True] * len(eqn.outvars)
    residuals = [*needed, *once, *rows]
    return eqn_known, eqn_staged, split.unknown_out, everything, residuals


split_rules[scan_p] = _scan_partial_eval_custom


def _known_call(
    loop: Scan,
    before: ClosedJaxpr,
    rest: ClosedJaxpr,
    invars: Operands,
    is_ref: Sequence[bool],
    num_once: int,
) -> ClosedJaxpr:
    """What the known side runs: the part before the loop, and the loop."""

    def run(*args: Any) -> list[Any]:
        consts, carry, rows = split_list(args, len(invars.consts), len(invars.carry))
        values, refs = partition(is_ref, consts)
        once, own = split_list(jaxpr_as_fun(before)(*values), num_once)
        return [*once, *loop.bind(rest, Operands([*own, *refs], carry, rows))]

    return traced(run, [v.aval for v in invars.flat], before)
