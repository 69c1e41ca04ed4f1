"""The derivatives of scan: forward, linearized, transposed, and split for checkpoints.

A step's residuals are stacked: one row for each step. Not stacked are constants and
rows of the inputs, which are there anyway (`_forwardable`), and what is computed from
constants alone, which is the same in every step and is computed once (`_hoisted`).

The transposed scan goes in the other direction. The cotangent of the carry is its
carry; those of constants add up in the carry too, beginning with zeros, since every
step contributes to them; those of rows are rows. Refs that gather cotangents stay
constants, or rows.

In JAX: `lax/control_flow/loops.py`, `_scan_linearize`, `_scan_transpose_fancy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.language.core import (
    AbstractRef,
    AbstractValue,
    ClosedJaxpr,
    JaxprEqn,
    Var,
    get_aval,
    jaxpr_as_fun,
    mapped_aval,
    set_current_trace,
    unmapped_aval,
    weakref_lru_cache,
)
from minijax.language.rules import (
    Accumulator,
    Zero,
    instantiate,
    zero_tangent_of,
    zeros_of,
)
from minijax.primitives.refs.mutable_arrays import RefAccumulator
from minijax.programs.control_flow.bodies import (
    fixpoint,
    merge,
    outputs_reordered,
    partition,
    reordered,
    split_list,
    to_back,
)
from minijax.programs.control_flow.closed_calls import closed_call_p
from minijax.programs.control_flow.scan_primitive import scan_p
from minijax.support.effects import positional
from minijax.support.effects import with_inputs as effects_on
from minijax.transforms import ad, partial_eval, rematerialize


@scan_p.def_jvp_rule
def _scan_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list, list]:
    num_xs = len(primals) - num_consts - num_carry
    nonzeros = [type(t) is not Zero for t in tangents]
    const_nz, init_nz, xs_nz = split_list(nonzeros, num_consts, num_carry)

    def step(carry_nz: list[bool]) -> tuple:
        forward, after = ad.jvp_jaxpr(
            jaxpr,
            [*const_nz, *carry_nz, *xs_nz],
            [*carry_nz, *[False] * (len(jaxpr.out_avals) - num_carry)],
        )
        return after[:num_carry], (forward, after)

    carry_nz, (forward, nonzeros_out) = fixpoint(init_nz, step)
    nonzeros = [*const_nz, *carry_nz, *xs_nz]
    dots = [instantiate(t) if nz else t for t, nz in zip(tangents, nonzeros)]
    const_dots, carry_dots, xs_dots = (
        [t for t in part if type(t) is not Zero]
        for part in split_list(dots, num_consts, num_carry)
    )
    sizes = (num_consts, num_carry, num_xs, len(const_dots), len(carry_dots))
    c, i, x, c_dot, i_dot, x_dot = split_list(range(sum(sizes) + len(xs_dots)), *sizes)
    forward = reordered(forward, [*c, *c_dot, *i, *i_dot, *x, *x_dot])
    num_ys = len(jaxpr.out_avals) - num_carry
    outs = range(len(nonzeros_out) + sum(nonzeros_out))
    c, y, c_dot, y_dot = split_list(outs, num_carry, num_ys, len(carry_dots))
    forward = outputs_reordered(forward, (*c, *c_dot, *y, *y_dot))
    consts, init, xs = split_list(primals, num_consts, num_carry)
    outputs = scan_p.bind(
        *consts,
        *const_dots,
        *init,
        *carry_dots,
        *xs,
        *xs_dots,
        jaxpr=forward,
        num_consts=num_consts + len(const_dots),
        num_carry=num_carry + len(carry_dots),
        **params,
    )
    carry, carry_out, ys, ys_out = split_list(
        outputs, num_carry, len(carry_dots), num_ys
    )
    answers = iter([*carry_out, *ys_out])
    results = [*carry, *ys]
    return results, [
        next(answers) if nonzero else zero_tangent_of(out)
        for out, nonzero in zip(results, nonzeros_out)
    ]


def _scan_linearize(
    nonzeros: tuple[bool, ...],
    *primals: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple:
    const_nz, init_nz, xs_nz = split_list(nonzeros, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry
    forwardable = _forwardable(primals, num_consts, num_carry)

    def step(carry_nz: list[bool]) -> tuple:
        answer = ad.linearize_jaxpr(
            jaxpr,
            (*const_nz, *carry_nz, *xs_nz),
            (*carry_nz, *[False] * num_ys),
            forwardable,
        )
        return answer[2][:num_carry], answer

    carry_nz, answer = fixpoint(init_nz, step)
    primal, num_new, nonzeros_out, places, linear = answer
    nonzeros = (*const_nz, *carry_nz, *xs_nz)
    consts, rest = split_list(primals, num_consts)
    primal, consts, hoisted, hoisted_values = _hoisted(primal, consts, num_new)
    num_outputs = len(nonzeros_out)
    linear, move = _residuals_last(
        linear, places, hoisted, len(jaxpr.consts) + num_consts + num_carry
    )
    outputs = []
    if primal.out_avals or primal.effects:
        outputs = scan_p.bind(
            *consts,
            *rest,
            jaxpr=primal,
            num_consts=len(consts),
            num_carry=num_carry,
            **params,
        )
    outs, stacked = split_list(outputs, num_outputs)
    saved = partial_eval.fill_forwarded(
        places, [*jaxpr.consts, *primals], merge(hoisted, stacked, hoisted_values)
    )
    avals = [aval.to_tangent_aval() for aval in jaxpr.out_avals]
    num_linear_consts = len(move) - sum(move) + sum(const_nz)

    def apply_linear(saved: Sequence[Any], *tangents: Any) -> list[Any]:
        once, rows = partition(move, saved)
        given = [instantiate(t) for t, nz in zip(tangents, nonzeros) if nz]
        answers = iter(
            scan_p.bind(
                *once,
                *given,
                *rows,
                jaxpr=linear,
                num_consts=num_linear_consts,
                num_carry=sum(carry_nz),
                **params,
            )
        )
        return [
            next(answers) if nonzero else Zero(_stacked_aval(aval, index))
            for index, (nonzero, aval) in enumerate(zip(nonzeros_out, avals))
        ]

    def _stacked_aval(aval: Any, index: int) -> Any:
        return aval if index < num_carry else aval.unmapped(params["length"], 0)

    return outs, nonzeros_out, saved, apply_linear


scan_p.linearize = _scan_linearize


def _forwardable(
    args: Sequence[Any], num_consts: int, num_carry: int
) -> tuple[bool, ...]:
    """Which inputs may be residuals as they are: constants and rows, not the carry."""
    return tuple(
        (i < num_consts or i >= num_consts + num_carry)
        and not isinstance(x, np.ndarray)
        for i, x in enumerate(args)
    )


def _residuals_last(
    linear: ClosedJaxpr,
    places: Sequence[int | None],
    hoisted: Sequence[bool],
    first_row: int,
) -> tuple[ClosedJaxpr, list[bool]]:
    """A program that takes its residuals first, with those that are rows last.

    Also says which of the residuals these are: the new ones that are not hoisted, and
    rows of the inputs.
    """
    new = iter(hoisted)
    move = [not next(new) if place is None else place >= first_row for place in places]
    others = len(linear.in_avals) - len(move)
    return reordered(linear, to_back([*move, *[False] * others])), move


def _hoisted(
    closed: ClosedJaxpr, consts: Sequence[Any], num_residuals: int
) -> tuple[ClosedJaxpr, list[Any], list[bool], list[Any]]:
    """Compute what depends on constants alone before the loop.

    Returns the program without that, its constants, which of its last `num_residuals`
    outputs were so computed, and their values.
    """
    is_ref = [type(get_aval(x)) is AbstractRef for x in consts]
    unknown = (
        *is_ref,
        *[True] * (len(closed.in_avals) - len(consts)),
    )
    num_outputs = len(closed.out_avals) - num_residuals
    wanted = (*[True] * num_outputs, *[False] * num_residuals)
    known, rest, unknown_out, places = partial_eval.partial_eval_jaxpr(
        closed, unknown, wanted
    )
    known_args = [x for x, flag in zip(consts, is_ref) if not flag]
    computed = jaxpr_as_fun(known)(*known_args)
    hoisted = [not flag for flag in unknown_out[num_outputs:]]
    values, new = split_list(computed, sum(hoisted))
    saved = partial_eval.fill_forwarded(places, [*closed.consts, *known_args], new)
    refs = [x for x, flag in zip(consts, is_ref) if flag]
    return rest, [*saved, *refs], hoisted, values


def _scan_partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    """Split a scan into a known and an unknown one, with stacked residuals between."""
    params = dict(params)
    jaxpr = params.pop("jaxpr")
    num_consts, num_carry = params.pop("num_consts"), params.pop("num_carry")
    num_ys = len(jaxpr.out_avals) - num_carry
    unknown = [trace.is_unknown(arg) for arg in args]
    const_uk, init_uk, xs_uk = split_list(unknown, num_consts, num_carry)

    def step(carry_uk: list[bool]) -> tuple:
        flags = [*const_uk, *carry_uk, *xs_uk]
        usable = _forwardable(args, num_consts, num_carry)
        answer = partial_eval.partial_eval_jaxpr(
            jaxpr,
            tuple(flags),
            (*carry_uk, *[False] * num_ys),
            tuple(flag for flag, uk in zip(usable, flags) if not uk),
        )
        return answer[2][:num_carry], answer

    carry_uk, (known, rest, unknown_out, places) = fixpoint(init_uk, step)
    unknown = [*const_uk, *carry_uk, *xs_uk]
    known_args, unknown_args = partition(unknown, args)
    num_known_consts = num_consts - sum(const_uk)
    num_known_carry = num_carry - sum(carry_uk)
    num_known_out = len(unknown_out) - sum(unknown_out)
    num_new = len(known.out_avals) - num_known_out
    consts, others = split_list(known_args, num_known_consts)
    with set_current_trace(trace.known):
        known, known_consts, hoisted, values = _hoisted(known, consts, num_new)
        outputs = []
        if known.out_avals or known.effects:
            outputs = scan_p.bind(
                *known_consts,
                *others,
                jaxpr=known,
                num_consts=len(known_consts),
                num_carry=num_known_carry,
                **params,
            )
    first_row = len(jaxpr.consts) + num_known_consts + num_known_carry
    rest, move = _residuals_last(rest, places, hoisted, first_row)
    outs, stacked = split_list(outputs, num_known_out)
    saved = partial_eval.fill_forwarded(
        places, [*jaxpr.consts, *known_args], merge(hoisted, stacked, values)
    )
    once, rows = partition(move, saved)
    with set_current_trace(trace.unknown):
        answers = scan_p.bind(
            *once,
            *unknown_args,
            *rows,
            jaxpr=rest,
            num_consts=len(once) + sum(const_uk),
            num_carry=sum(carry_uk),
            **params,
        )
    return merge(unknown_out, outs, answers)


scan_p.partial_eval = _scan_partial_eval


@scan_p.def_transpose
def _scan_transpose(
    cts: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    length: int,
    unroll: int,
) -> None:
    """The scan in the other direction.

    From constants `[values, linear]`, carry and rows `[linear, values]` to constants
    `[values, refs that gather]`, carry `[cotangents of constants, of the carry]` and
    rows `[refs that gather, cotangents of outputs, values]`.
    """
    consts, carry, xs = split_list(args, num_consts, num_carry)
    # First values, then refs, then accumulators; rows the other way round.
    const_order = sorted(range(num_consts), key=lambda i: _kind(consts[i]))
    xs_order = sorted(range(len(xs)), key=lambda i: (_kind(xs[i]) - 1) % 3)
    first_row = num_consts + num_carry
    jaxpr = reordered(
        jaxpr,
        [
            *const_order,
            *range(num_consts, first_row),
            *(first_row + i for i in xs_order),
        ],
    )
    consts, xs = [consts[i] for i in const_order], [xs[i] for i in xs_order]
    values = [x for x in consts if _kind(x) == 0]
    const_refs = [x.inst().ref for x in consts if _kind(x) == 1]
    const_sums = [x for x in consts if _kind(x) == 2]
    row_refs = [x.inst().ref for x in xs if _kind(x) == 1]
    row_sums = [x for x in xs if _kind(x) == 2]
    row_values = [x for x in xs if _kind(x) == 0]
    ct_carry, ct_ys = split_list(cts, num_carry)
    ct_carry = [instantiate(ct) for ct in ct_carry]
    zero_ys = tuple(type(ct) is Zero for ct in ct_ys)
    given_ys = [ct for ct in ct_ys if type(ct) is not Zero]
    starts = [zeros_of(x.aval) for x in const_sums]
    counts = (len(values), len(const_refs), len(const_sums), len(row_refs))
    # A row's cotangent is computed for every row of it, wanted or not.
    state_now = [*values, *const_refs, *starts, *ct_carry]
    rows = [*row_refs, *given_ys, *row_values]
    in_avals = [get_aval(x) for x in state_now]
    in_avals += [mapped_aval(length, 0, get_aval(x)) for x in rows]
    transposed = _transposed(
        jaxpr, num_carry, counts, len(row_sums), zero_ys, tuple(in_avals)
    )
    outputs = scan_p.bind(
        *state_now,
        *rows,
        jaxpr=transposed,
        num_consts=len(values) + len(const_refs),
        num_carry=len(starts) + num_carry,
        reverse=not reverse,
        length=length,
        unroll=unroll,
    )
    for accumulator, answer in zip([*const_sums, *carry, *row_sums], outputs):
        if isinstance(accumulator, Accumulator):  # a counter in the carry is none
            accumulator.accum(answer)


def _kind(arg: Any) -> int:
    """0 for a value, 1 for a ref that gathers cotangents, 2 for an accumulator."""
    if isinstance(arg, RefAccumulator):
        return 1
    return 2 if isinstance(arg, Accumulator) else 0


@weakref_lru_cache
def _transposed(
    jaxpr: ClosedJaxpr,
    num_carry: int,
    counts: tuple[int, int, int, int],
    num_row_sums: int,
    zero_ys: tuple[bool, ...],
    in_avals: tuple[AbstractValue, ...],
) -> ClosedJaxpr:
    num_values, num_const_refs, num_sums, num_row_refs = counts
    num_consts = num_values + num_const_refs + num_sums
    consts, _, xs = split_list(jaxpr.in_avals, num_consts, num_carry)
    _, ref_avals, sum_avals = split_list(consts, num_values, num_const_refs)
    row_refs, row_sums, _ = split_list(xs, num_row_refs, num_row_sums)

    def transposed(*args: Any) -> list[Any]:
        values, refs, sums, cts, rows, given, kept = split_list(
            args,
            num_values,
            num_const_refs,
            num_sums,
            num_carry,
            num_row_refs,
            len(zero_ys) - sum(zero_ys),
        )
        of_consts = [Accumulator(a.to_ct_aval(), x) for a, x in zip(sum_avals, sums)]
        of_carry = [Accumulator(get_aval(ct)) for ct in cts]
        of_rows = [Accumulator(a.to_ct_aval()) for a in row_sums]
        inputs = [
            *values,
            *(RefAccumulator(a.to_ct_aval(), r) for a, r in zip(ref_avals, refs)),
            *of_consts,
            *of_carry,
            *(RefAccumulator(a.to_ct_aval(), r) for a, r in zip(row_refs, rows)),
            *of_rows,
            *kept,
        ]
        answers = iter(given)
        ct_ys = [
            Zero(aval.to_ct_aval()) if zero else next(answers)
            for aval, zero in zip(jaxpr.out_avals[num_carry:], zero_ys)
        ]
        ad.backward_pass(jaxpr.jaxpr, jaxpr.consts, inputs, [*cts, *ct_ys])
        return [instantiate(x.freeze()) for x in (*of_consts, *of_carry, *of_rows)]

    program, constants = partial_eval.trace_to_jaxpr(
        transposed, in_avals, jaxpr.debug_info
    )
    return ClosedJaxpr(program, constants)


# ----------------------------------------------------------------------------------
# Checkpoints
# ----------------------------------------------------------------------------------


def _scan_partial_eval_custom(
    saveable: Callable, unknown: list[bool], inst: list[bool], eqn: JaxprEqn
) -> tuple:
    """Residuals of a step are stacked, but for those that every step has in common."""
    params = eqn.params
    jaxpr, length = params["jaxpr"], params["length"]
    sizes = params["num_consts"], params["num_carry"]
    const_uk, init_uk, xs_uk = split_list(unknown, *sizes)
    num_ys = len(jaxpr.out_avals) - sizes[1]

    def step(carry_uk: list[bool]) -> tuple:
        parts = rematerialize.partial_eval_jaxpr_custom(
            jaxpr.jaxpr,
            [*const_uk, *carry_uk, *xs_uk],
            [True] * len(unknown),
            [*carry_uk, *[False] * num_ys],
            True,
            saveable,
        )
        return parts.unknown_out[: sizes[1]], parts

    carry_uk, parts = fixpoint(init_uk, step)
    unknown = [*const_uk, *carry_uk, *xs_uk]
    known = ClosedJaxpr(parts.known, jaxpr.consts)
    staged = ClosedJaxpr(parts.staged, jaxpr.consts)
    residual_avals = staged.in_avals[: parts.num_res]
    needed = [v for v, flag in zip(eqn.invars, inst) if isinstance(v, Var) and not flag]
    num_known = [len(flags) - sum(flags) for flags in (const_uk, carry_uk, xs_uk)]
    num_known_out = len(parts.unknown_out) - sum(parts.unknown_out)
    before, loop, in_loop = _split_known(
        known, num_known[0], num_known_out, parts.num_res
    )
    once_avals, row_avals = partition(in_loop, residual_avals)
    once = [Var(aval) for aval in once_avals]
    rows = [Var(unmapped_aval(length, 0, aval)) for aval in row_avals]
    known_in = rematerialize.where_not(unknown, eqn.invars)
    loop_params = {**params, "jaxpr": loop, "num_carry": num_known[1]}
    call = _known_call(before, loop_params, num_known[0], len(once), known_in)
    eqn_known = eqn.replace(
        primitive=closed_call_p,
        invars=known_in,
        outvars=[
            *once,
            *rematerialize.where_not(parts.unknown_out, eqn.outvars),
            *rows,
        ],
        params={"call_jaxpr": call},
        effects=effects_on(positional(call.effects, call.jaxpr.invars), known_in),
    )
    # The staged program: residuals of every step first, stacked ones last.
    order = [
        *(i for i, flag in enumerate(in_loop) if not flag),
        *range(len(in_loop), len(staged.in_avals)),
        *(i for i, flag in enumerate(in_loop) if flag),
    ]
    staged = reordered(staged, order)
    staged_in = [*once, *eqn.invars, *rows]
    eqn_staged = eqn.replace(
        invars=staged_in,
        outvars=list(eqn.outvars),
        params={**params, "jaxpr": staged, "num_consts": len(once) + sizes[0]},
        effects=effects_on(positional(staged.effects, staged.jaxpr.invars), staged_in),
    )
    everything = [True] * len(eqn.outvars)
    return eqn_known, eqn_staged, parts.unknown_out, everything, [*needed, *once, *rows]


scan_p.partial_eval_custom = _scan_partial_eval_custom


def _split_known(
    known: ClosedJaxpr, num_consts: int, num_outputs: int, num_residuals: int
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """The part of a body that depends on constants alone, and the rest.

    Also says which residuals the rest computes, in every step anew.
    """
    is_ref = [type(aval) is AbstractRef for aval in known.in_avals[:num_consts]]
    before, loop, unknown_out, places = partial_eval.partial_eval_jaxpr(
        known,
        (*is_ref, *[True] * (len(known.in_avals) - num_consts)),
        (*[True] * num_outputs, *[False] * num_residuals),
        (False,) * (num_consts - sum(is_ref)),
    )
    assert all(place is None or place < len(known.consts) for place in places)
    if any(place is not None for place in places):
        before = _with_constants(before, known, places, unknown_out)
    return before, loop, list(unknown_out[num_outputs:])


def _with_constants(
    before: ClosedJaxpr, known: ClosedJaxpr, places: Sequence, unknown_out: Sequence
) -> ClosedJaxpr:
    count = len(unknown_out) - sum(unknown_out)

    def fun(*args: Any) -> list[Any]:
        outputs = jaxpr_as_fun(before)(*args)
        saved = partial_eval.fill_forwarded(places, known.consts, outputs[count:])
        return [*outputs[:count], *saved]

    jaxpr, consts = partial_eval.trace_to_jaxpr(fun, before.in_avals, before.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def _known_call(
    before: ClosedJaxpr,
    loop_params: dict,
    num_consts: int,
    num_once: int,
    known_in: Sequence[Any],
) -> ClosedJaxpr:
    """What the known side runs: the part before the loop, and the loop."""

    def run(*args: Any) -> list[Any]:
        consts, rest = split_list(args, num_consts)
        is_ref = [type(get_aval(x)) is AbstractRef for x in consts]
        values, refs = partition(is_ref, consts)
        once, own = split_list(jaxpr_as_fun(before)(*values), num_once)
        params = {**loop_params, "num_consts": len(own) + len(refs)}
        return [*once, *scan_p.bind(*own, *refs, *rest, **params)]

    avals = [v.aval for v in known_in]
    jaxpr, consts = partial_eval.trace_to_jaxpr(run, avals, before.debug_info)
    return ClosedJaxpr(jaxpr, consts)
