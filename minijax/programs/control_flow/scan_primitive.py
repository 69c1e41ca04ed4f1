"""scan: a loop with a known number of steps, over rows, with a carry.

    { lambda ; a:f32[] b:f32[5]. let
        c:f32[] d:f32[5] = scan[
          jaxpr={ lambda ; e:f32[] f:f32[]. let g:f32[] = add e f in (g, g) }
          length=5
          num_carry=1
          num_consts=0
          reverse=False
          unroll=1
        ] a b
      in (c, d) }

The equation takes constants, the first carry, and arrays whose leading axis is the
steps; its program takes constants, a carry and one row of each array, and gives the
next carry and one row of each output. A row counter, slices and updates appear only
when it is lowered: it becomes a `while`.

That the number of steps is known is what makes reverse mode possible: linearizing runs
the same scan with one output more for each value that the backward pass will need, and
stacks these; the linear program is a scan over the stacks, and its transpose a scan in
the other direction. Two refinements keep the stacks small. A residual that is a
constant, or a row of an input, is not stacked again but read where it is. And one that
is computed from constants alone is the same in every step: it is computed once, before
the loop (`_hoisted`).

In the transposed loop the cotangent of the carry is the carry; those of constants add
up in the carry too, beginning with zeros, since every step contributes to them; those
of rows are rows.

Each rule first settles which entries of the carry are nonzero (unknown, batched): what
a step makes so is so in all steps after it (`fixpoint`).

In JAX: `lax/control_flow/loops.py`, `scan_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.compile.pjit import jit_p, jit_params
from minijax.language.core import (
    AbstractRef,
    AbstractValue,
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    get_aval,
    jaxpr_as_fun,
    mapped_aval,
    register,
    typecompat,
    unmapped_aval,
)
from minijax.language.rules import broadcast_axis, moveaxis
from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.primitives.elementwise import comparing
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.shape import broadcasting, shaping, slicing
from minijax.programs.control_flow.bodies import (
    batched_leading,
    fixpoint,
    merge,
    partition,
    run_now,
    split_list,
)
from minijax.programs.control_flow.while_loops import while_loop
from minijax.support.effects import positional
from minijax.support.effects import with_inputs as effects_on
from minijax.transforms import discharge, partial_eval


def stack_rows(rows: Sequence[Any]) -> Any:
    """Rows as one array with a leading axis."""
    return shaping.concatenate([shaping.expand_dims(row, (0,)) for row in rows], 0)


def joined(x: Any) -> Any:
    """An array of batches of rows as one of rows."""
    first, second, *rest = get_aval(x).shape
    return shaping.reshape(x, (first * second, *rest))


scan_p = register(Primitive("scan", multiple_results=True))
scan_p.cache_types = False


@scan_p.def_effectful_abstract_eval
def _scan_type(
    *avals: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> tuple:
    consts, carry, xs = split_list(avals, num_consts, num_carry)
    rows = [mapped_aval(length, 0, aval) for aval in xs]
    given = [*consts, *carry, *rows]
    if len(given) != len(jaxpr.in_avals) or not all(
        typecompat(a, b) for a, b in zip(jaxpr.in_avals, given)
    ):
        raise TypeError(
            f"the program of scan takes {_short(jaxpr.in_avals)}, called with rows of "
            f"{_short(given)}"
        )
    carry_out, ys = split_list(jaxpr.out_avals, num_carry)
    if not all(typecompat(a, b) for a, b in zip(carry, carry_out)):
        raise TypeError(
            f"scan input carry input and output types mismatch: {_short(carry)} vs "
            f"{_short(carry_out)}"
        )
    out_avals = [*carry_out, *(unmapped_aval(length, 0, y) for y in ys)]
    return out_avals, positional(jaxpr.effects, jaxpr.jaxpr.invars)


def _short(avals: Sequence[AbstractValue]) -> str:
    return " ".join(aval.str_short() for aval in avals) or "nothing"


@scan_p.def_impl
def _scan_impl(*args: Any, **params: Any) -> list[Any]:
    return run_now(scan_p, *args, **params)


@scan_p.def_lowering
def _scan_lowering(ctx: Any, *operands: Any, **params: Any) -> list[Any]:
    return ctx.lower_fun(_as_while, *operands, **params)


def _as_while(
    *args: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """The scan as a `while` that slices rows off and writes rows.

    With `unroll` u > 1 a turn does u steps; the steps that are left over are written
    out after the loop (or before it, in reverse: they are the first rows).
    """
    consts, carry, xs = split_list(args, num_consts, num_carry)
    y_avals = jaxpr.out_avals[num_carry:]
    turns, rest = divmod(length, unroll) if unroll else (0, length)
    if unroll != 1 and turns == 1 and rest == 0:
        turns, rest = 0, length

    def step(carry: list, row: list) -> tuple[list, list]:
        params = jit_params(jaxpr, "body")
        carry, y = split_list(jit_p.bind(*consts, *carry, *row, **params), num_carry)
        return carry, y

    def written_out(count: int, carry: list, rows: list) -> tuple[list, list]:
        ys = []
        for i in reversed(range(count)) if reverse else range(count):
            row = [slicing.index_in_dim(x, i, keepdims=False) for x in rows]
            carry, y = step(carry, row)
            ys.append(y)
        if reverse:
            ys.reverse()
        return carry, [stack_rows(column) for column in zip(*ys)]

    def turn(loop: tuple) -> tuple:
        count, carry, yss = loop
        i = elementwise.sub(turns - 1, count) if reverse else count
        rows = [_row(x, i) for x in xss]
        if unroll == 1:
            carry, ys = step(carry, rows)
        else:
            carry, ys = written_out(unroll, carry, rows)
        yss = [_with_row(stacked, y, i) for stacked, y in zip(yss, ys)]
        return elementwise.add(count, 1), carry, yss

    whole = turns * unroll
    ends = (0, whole) if not reverse else (rest, length)
    over = (whole, length) if not reverse else (0, rest)
    xss = xs if not rest else [slicing.slice_in_dim(x, *ends) for x in xs]
    if unroll != 1:
        xss = [_in_turns(x, turns, unroll) for x in xss] if turns else []
    ys = [broadcasting.empty_of(_stacked(y, whole)) for y in y_avals]
    if turns:
        if unroll != 1:
            ys = [_in_turns(y, turns, unroll) for y in ys]

        def goes_on(loop: tuple) -> Any:
            return comparing.lt(loop[0], turns)

        _, carry, ys = while_loop(goes_on, turn, (0, carry, ys))
        if unroll != 1:
            ys = [joined(y) for y in ys]
    if rest:
        rows = [slicing.slice_in_dim(x, *over) for x in xs]
        carry, last = written_out(rest, carry, rows)
        pairs = zip(last, ys) if reverse else zip(ys, last)
        ys = [shaping.concatenate(list(pair), 0) for pair in pairs]
    return [*carry, *ys]


def _stacked(aval: Any, count: int) -> Any:
    return unmapped_aval(count, 0, aval)


def _in_turns(x: Any, turns: int, unroll: int) -> Any:
    return shaping.reshape(x, (turns, unroll, *get_aval(x).shape[1:]))


def _row(x: Any, i: Any) -> Any:
    """Row i, which is within bounds."""
    sizes = (1, *get_aval(x).shape[1:])
    start = [i] + [np.int32(0)] * (len(sizes) - 1)
    row = dynamic_slicing.dynamic_slice(x, _like(start, i), sizes)
    return shaping.squeeze(row, (0,))


def _with_row(x: Any, row: Any, i: Any) -> Any:
    start = [i] + [np.int32(0)] * (get_aval(x).ndim - 1)
    update = shaping.expand_dims(row, (0,))
    return dynamic_slicing.dynamic_update_slice(x, update, _like(start, i))


def _like(start: list[Any], i: Any) -> list[Any]:
    """Start indices of one dtype: that of the counter."""
    dtype = get_aval(i).dtype
    return [start[0], *(dtype.type(0) for _ in start[1:])]


@scan_p.def_batch
def _scan_batch(
    axis_data: Any,
    args: Sequence[Any],
    dims: Sequence,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> tuple[list[Any], list[int | None]]:
    """The batch axis comes first in a carry and second, after the steps, in rows."""
    mapped = [dim is not None for dim in dims]
    const_bat, init_bat, xs_bat = split_list(mapped, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry

    def step(carry_bat: list[bool]) -> tuple:
        program, after = batched_leading(
            jaxpr,
            axis_data,
            [*const_bat, *carry_bat, *xs_bat],
            [*carry_bat, *[False] * num_ys],
        )
        return after[:num_carry], (program, after)

    carry_bat, (program, batched_out) = fixpoint(init_bat, step)
    consts, init, xs = split_list(args, num_consts, num_carry)
    const_dims, init_dims, xs_dims = split_list(dims, num_consts, num_carry)
    consts = [x if d is None else moveaxis(x, d, 0) for x, d in zip(consts, const_dims)]
    init = [
        x
        if not flag
        else broadcast_axis(x, axis_data.size, 0)
        if d is None
        else moveaxis(x, d, 0)
        for x, d, flag in zip(init, init_dims, carry_bat)
    ]
    xs = [x if d is None else moveaxis(x, d, 1) for x, d in zip(xs, xs_dims)]
    outputs = scan_p.bind(
        *consts,
        *init,
        *xs,
        jaxpr=program,
        num_consts=num_consts,
        num_carry=num_carry,
        **params,
    )
    carry_dims = [0 if flag else None for flag in batched_out[:num_carry]]
    return outputs, [*carry_dims, *(1 if b else None for b in batched_out[num_carry:])]


def _scan_dce(used: list[bool], eqn: JaxprEqn) -> JaxprEqn:
    params = eqn.params
    jaxpr, num_consts = params["jaxpr"], params["num_consts"]
    num_carry = params["num_carry"]
    num_xs = len(jaxpr.in_avals) - num_consts - num_carry
    used_carry, used_ys = split_list(used, num_carry)

    def step(carry: list[bool]) -> tuple:
        smaller, needed = partial_eval.dce_jaxpr(
            jaxpr.jaxpr,
            [*carry, *used_ys],
            [*[False] * num_consts, *carry, *[False] * num_xs],
        )
        return split_list(needed, num_consts, num_carry)[1], (smaller, needed)

    used_carry, (smaller, needed) = fixpoint(used_carry, step)
    invars = [v for v, flag in zip(eqn.invars, needed) if flag]
    used = [*used_carry, *used_ys]
    new_params = {
        **params,
        "jaxpr": _close(smaller, jaxpr),
        "num_consts": sum(needed[:num_consts]),
        "num_carry": sum(used_carry),
    }
    return eqn.replace(
        invars=invars,
        outvars=[v for v, flag in zip(eqn.outvars, used) if flag],
        params=new_params,
        effects=effects_on(positional(smaller.effects, smaller.invars), invars),
    )


def _close(jaxpr: Any, like: ClosedJaxpr) -> ClosedJaxpr:
    """A part of a program with those of its constants that it still has."""
    values = dict(zip(like.jaxpr.constvars, like.consts))
    return ClosedJaxpr(jaxpr, [values[var] for var in jaxpr.constvars])


scan_p.dce = _scan_dce


def _scan_discharge(
    discharged: Sequence[bool],
    in_avals: Any,
    out_avals: Any,
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> tuple[list[Any], list[Any]]:
    """Contents of refs go into the carry; a ref of rows is read and written row by row.

    The carry then begins with a counter, which says the row.
    """
    num_ys = len(jaxpr.out_avals) - num_carry
    is_ref = [
        flag and type(aval) is AbstractRef for flag, aval in zip(discharged, in_avals)
    ]
    const_ref, _, xs_ref = split_list(is_ref, num_consts, num_carry)
    pure = discharge.discharge_state(jaxpr, discharged)
    consts, carry, xs = split_list(args, num_consts, num_carry)
    plain_consts, contents = partition(const_ref, consts)
    plain_xs, row_contents = partition(xs_ref, xs)
    sizes = (len(plain_consts), 1, len(contents), num_carry, len(row_contents))

    def body(*inputs: Any) -> list[Any]:
        own, (count,), held, values, stacked, rows = split_list(inputs, *sizes)
        i = elementwise.sub(length - 1, count) if reverse else count
        outputs = jaxpr_as_fun(pure)(
            *merge(const_ref, own, held),
            *values,
            *merge(xs_ref, rows, [_row(x, i) for x in stacked]),
        )
        values, ys, held, updates = split_list(
            outputs, num_carry, num_ys, len(contents)
        )
        stacked = [_with_row(x, row, i) for x, row in zip(stacked, updates)]
        return [elementwise.add(count, 1), *held, *values, *stacked, *ys]

    state_now = [*contents, *carry, *row_contents]
    avals = [
        *avals_of(plain_consts),
        get_aval(0),
        *avals_of(state_now),
        *(mapped_aval(length, 0, aval) for aval in avals_of(plain_xs)),
    ]
    program, constants = partial_eval.trace_to_jaxpr(body, avals, jaxpr.debug_info)
    outputs = scan_p.bind(
        *plain_consts,
        0,
        *state_now,
        *plain_xs,
        jaxpr=ClosedJaxpr(program, constants),
        num_consts=len(plain_consts),
        num_carry=1 + len(state_now),
        length=length,
        reverse=reverse,
        unroll=unroll,
    )
    _, held, carry, stacked, ys = split_list(
        outputs, 1, len(contents), num_carry, len(row_contents)
    )
    last = iter([*held, *stacked])
    return [next(last) if flag else None for flag in is_ref], [*carry, *ys]


scan_p.discharge = _scan_discharge


def avals_of(values: Sequence[Any]) -> list[AbstractValue]:
    """The types of values."""
    return [get_aval(value) for value in values]
