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

Reverse mode is possible because the number of steps is known. Linearizing runs the same
scan with one more output for each value that the backward pass needs, and stacks these;
the linear program is a scan over the stacks, and its transpose is a scan in the other
direction. Two refinements keep the stacks small. A residual that is a constant, or a
row of an input, is read where it is instead of stacked again. One that is computed from
constants alone is the same in every step: it is computed once, before the loop.

In the transposed loop the cotangent of the carry is the carry; those of constants add
up in the carry too, beginning with zeros, since every step contributes to them; those
of rows are rows.

Each rule first settles which entries of the carry are nonzero (unknown, batched), since
an entry that one step makes nonzero stays so (`operands.settle`). Then it binds a scan
of another program, with the operands in their groups (`Scan.bind`).

In JAX: `lax/control_flow/loops.py`, `scan_p`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import autodiff, partial_eval, shaping
from minijax.core.effects import positional
from minijax.core.events import enter
from minijax.core.jit import jit_p, jit_params
from minijax.core.language import (
    AbstractValue,
    ClosedJaxpr,
    JaxprEqn,
    Var,
    get_aval,
    mapped_aval,
    set_current_trace,
    unmapped_aval,
    weakref_lru_cache,
)
from minijax.core.rules import Accumulator, Zero, instantiate, match_axis, zeros_of
from minijax.primitives.families import lower_fun
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.refs.mutable_arrays import RefAccumulator
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.shape import broadcasting, joining, slicing
from minijax.primitives.shape.rearranging import merged_axes
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.calls import closed_call_p, rewritten
from minijax.programs.control_flow import bodies
from minijax.programs.control_flow.agreement import of_all
from minijax.programs.control_flow.operands import (
    Operands,
    fixpoint,
    merge,
    partition,
    settle,
    split_groups_of_tangents,
    split_list,
)
from minijax.programs.control_flow.while_loops import while_loop
from minijax.transforms import discharge, rematerialize, splitting
from minijax.transforms.rematerialize import split_rules, where, where_not
from minijax.values.inner_programs import (
    InnerProgram,
    descriptions,
    in_python,
    jaxpr_as_fun,
)
from minijax.values.ref_avals import AbstractRef
from minijax.values.symbolic_sizes import size_or_array


def stack_rows(rows: Sequence[Any]) -> Any:
    """Rows as one array with a leading axis."""
    return joining.concatenate([expand_dims(row, (0,)) for row in rows], 0)


def each_step(
    step: Callable, carry: Any, xs: Sequence[Any], count: int, reverse: bool
) -> tuple[Any, list[Any]]:
    """`step(carry, row)` for one row after another: (the last carry, the results)."""
    ys = []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = step(carry, [slicing.index_in_dim(x, i, keepdims=False) for x in xs])
        ys.append(y)
    return carry, ys[::-1] if reverse else ys


scan_p = bodies.body_primitive("scan")


@dataclass(frozen=True)
class Scan:
    """The parameters of a scan: its program, and how its operands are grouped."""

    jaxpr: ClosedJaxpr
    length: int
    num_consts: int
    num_carry: int
    reverse: bool
    unroll: int

    @property
    def num_ys(self) -> int:
        """How many outputs are stacked: all but the carry."""
        return len(self.jaxpr.out_avals) - self.num_carry

    @property
    def out_avals(self) -> list[AbstractValue]:
        """The types of the outputs of the equation."""
        carry, ys = self.outputs(self.jaxpr.out_avals)
        types = map(of_all, carry, self.operands(self.jaxpr.in_avals).carry)
        return [*types, *(unmapped_aval(self.length, 0, y) for y in ys)]

    def operands(self, items: Sequence[Any]) -> Operands:
        """One entry per input of the equation, in groups."""
        return Operands(*split_list(items, self.num_consts, self.num_carry))

    def outputs(self, items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """One entry per output of the equation: (carry, stacked)."""
        carry, ys = split_list(items, self.num_carry)
        return carry, ys

    def rows_of(self, avals: Sequence[AbstractValue]) -> list[AbstractValue]:
        """The types of one row of each array."""
        return [mapped_aval(self.length, 0, aval) for aval in avals]

    def body_avals(self, operands: Operands) -> Operands:
        """The types that a body takes for these operands, as tuples."""
        avals = operands.map(get_aval)
        return avals._replace(rows=tuple(self.rows_of(avals.rows)))

    def params(self, jaxpr: ClosedJaxpr, operands: Operands) -> dict[str, Any]:
        """The parameters of a scan of another program with these operands."""
        counts = {"num_consts": len(operands.consts), "num_carry": len(operands.carry)}
        return {**vars(self), "jaxpr": jaxpr, **counts}

    def bind(self, jaxpr: ClosedJaxpr, operands: Operands) -> list[Any]:
        """Scan another program, in the same steps."""
        return scan_p.bind(*operands.flat, **self.params(jaxpr, operands))


@scan_p.def_effectful_abstract_eval
def _scan_type(*avals, **params) -> tuple:
    loop = Scan(**params)
    jaxpr, operands = loop.jaxpr, loop.operands(avals)
    given = operands._replace(rows=loop.rows_of(operands.rows)).flat
    if not bodies.same_types(jaxpr.in_avals, given):
        raise TypeError(
            f"the program of scan takes {bodies.short(jaxpr.in_avals)}, called with "
            f"rows of {bodies.short(given)}"
        )
    carry_out, _ = loop.outputs(jaxpr.out_avals)
    if not bodies.same_types(operands.carry, carry_out):
        raise TypeError(
            "scan input carry input and output types mismatch: "
            f"{bodies.short(operands.carry)} vs {bodies.short(carry_out)}"
        )
    return loop.out_avals, positional(jaxpr.effects, jaxpr.jaxpr.invars)


def _as_while(*args: Any, **params: Any) -> list[Any]:
    """The scan as a `while` that slices rows off and writes rows.

    With `unroll` u > 1 a turn does u steps; the steps that are left over are written
    out after the loop (or before it, in reverse: they are the first rows).
    """
    loop = Scan(**params)
    length, reverse, unroll = loop.length, loop.reverse, loop.unroll
    consts, carry, xs = loop.operands(args)
    _, y_avals = loop.outputs(loop.jaxpr.out_avals)
    turns, rest = divmod(length, unroll) if unroll else (0, length)
    if unroll != 1 and turns == 1 and rest == 0:
        turns, rest = 0, length

    def step(carry: Sequence, row: Sequence) -> tuple[list, list]:
        params = jit_params(loop.jaxpr, "body")
        return loop.outputs(jit_p.bind(*consts, *carry, *row, **params))

    def written_out(count: int, carry: Any, rows: Sequence) -> tuple[list, list]:
        carry, ys = each_step(step, carry, rows, count, reverse)
        return carry, [stack_rows(column) for column in zip(*ys)]

    def turn(state: tuple) -> tuple:
        count, carry, yss = state
        i = elementwise.sub(size_or_array(turns - 1), count) if reverse else count
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
    ys = [broadcasting.empty_of(y.unmapped(whole, 0)) for y in y_avals]
    if turns:
        if unroll != 1:
            ys = [_in_turns(y, turns, unroll) for y in ys]

        def goes_on(state: tuple) -> Any:
            return elementwise.lt(state[0], size_or_array(turns))

        _, carry, ys = while_loop(goes_on, turn, (0, carry, ys))
        if unroll != 1:
            ys = [merged_axes(y, 0) for y in ys]
    if rest:
        rows = [slicing.slice_in_dim(x, *over) for x in xs]
        carry, last = written_out(rest, carry, rows)
        pairs = zip(last, ys) if reverse else zip(ys, last)
        ys = [joining.concatenate(list(pair), 0) for pair in pairs]
    return [*carry, *ys]


scan_p.def_lowering(lower_fun(_as_while))


def _in_turns(x: Any, turns: int, unroll: int) -> Any:
    return shaping.reshape(x, (turns, unroll, *get_aval(x).shape[1:]))


# `_row(x, i)` is row i, and `_with_row(x, row, i)` replaces it; i is within bounds.
_row = functools.partial(
    dynamic_slicing.dynamic_index_in_dim, keepdims=False, allow_negative_indices=False
)
_with_row = functools.partial(
    dynamic_slicing.dynamic_update_index_in_dim, axis=0, allow_negative_indices=False
)


@scan_p.def_batch
def _scan_batch(axis_data, args, dims, **params) -> tuple[list, list]:
    """The batch axis comes first in a carry and second, after the steps, in rows."""
    loop = Scan(**params)

    def step(flags: tuple, wanted: tuple) -> tuple:
        program, after = bodies.batched_leading(loop.jaxpr, axis_data, flags, wanted)
        return after, (program, after)

    mapped = loop.operands([dim is not None for dim in dims])
    mapped, (program, batched_out) = settle(mapped, loop.num_ys, step)

    axes = [
        *(0 if flag else None for flag in (*mapped.consts, *mapped.carry)),
        *(1 if flag else None for flag in mapped.rows),
    ]
    moved = [match_axis(axis_data, *each) for each in zip(args, dims, axes)]
    outputs = loop.bind(program, loop.operands(moved))
    carry_out, ys_out = loop.outputs(batched_out)
    return outputs, [
        *(0 if flag else None for flag in carry_out),
        *(1 if flag else None for flag in ys_out),
    ]


def _scan_dce(used, eqn) -> JaxprEqn:
    loop = Scan(**eqn.params)
    nothing = loop.operands([False] * len(eqn.invars))
    used_carry, used_ys = loop.outputs(used)

    def step(carry: list[bool]) -> tuple:
        kept = nothing._replace(carry=carry).flat
        smaller, needed = partial_eval.dce_closed_jaxpr(
            loop.jaxpr, [*carry, *used_ys], kept
        )
        groups = loop.operands(needed)
        return groups.carry, (smaller, groups)

    used_carry, (smaller, needed) = fixpoint(used_carry, step)
    operands = loop.operands(eqn.invars).where(needed)
    outvars = where([*used_carry, *used_ys], eqn.outvars)
    params = loop.params(smaller, operands)
    return rewritten(eqn, operands.flat, outvars, **params)


scan_p.dce = _scan_dce


def _scan_discharge(discharged, *args, **params) -> tuple[list, list]:
    """Contents of refs go into the carry; a ref of rows is read and written row by row.

    The carry then begins with a counter, the index of the row.
    """
    loop = Scan(**params)
    is_ref = loop.operands(discharged)
    pure = discharge.discharge_state(loop.jaxpr, discharged)
    plain = loop.operands(args).where_not(is_ref)
    contents = loop.operands(args).where(is_ref)
    num_held = len(contents.consts)
    state_now = [*contents.consts, *plain.carry, *contents.rows]
    operands = Operands(plain.consts, [0, *state_now], plain.rows)

    def groups_of_carry(carry: Sequence[Any]) -> list[list[Any]]:
        """(the counter), held contents, the scan's own carry, stacked contents."""
        return split_list(carry, 1, num_held, loop.num_carry)

    def body(*inputs: Any) -> list[Any]:
        consts, state, rows = split_list(
            inputs, len(operands.consts), len(operands.carry)
        )
        (count,), held, carry, stacked = groups_of_carry(state)
        i = count
        if loop.reverse:
            i = elementwise.sub(size_or_array(loop.length - 1), count)
        outputs = jaxpr_as_fun(pure)(
            *merge(is_ref.consts, consts, held),
            *carry,
            *merge(is_ref.rows, rows, [_row(x, i) for x in stacked]),
        )
        carry, ys, held, updates = split_list(
            outputs, loop.num_carry, loop.num_ys, num_held
        )
        stacked = [_with_row(x, row, i) for x, row in zip(stacked, updates)]
        return [elementwise.add(count, 1), *held, *carry, *stacked, *ys]

    program = bodies.traced(body, loop.body_avals(operands).flat, loop.jaxpr)
    outputs = loop.bind(program, operands)
    state, ys = split_list(outputs, len(operands.carry))
    _, held, carry, stacked = groups_of_carry(state)
    last = iter([*held, *stacked])
    return [next(last) if flag else None for flag in is_ref.flat], [*carry, *ys]


enter(discharge_rules, scan_p, _scan_discharge)


def _scan_programs(params: dict[str, Any]) -> list[InnerProgram]:
    loop = Scan(**params)
    places = range(len(loop.jaxpr.in_avals))
    carry = range(loop.num_consts, loop.num_consts + loop.num_carry)
    return [InnerProgram("scan body function", loop.jaxpr.jaxpr, places, carry=carry)]


def _scan_in_python(run: Callable, args: list[Any], params: dict[str, Any]) -> None:
    loop = Scan(**params)
    consts, carry, xs = loop.operands(args)
    steps = range(loop.length)
    for i in reversed(steps) if loop.reverse else steps:
        outputs = run(loop.jaxpr, [*consts, *carry, *(x[i] for x in xs)])
        carry, _ = loop.outputs(outputs)


enter(descriptions, scan_p, _scan_programs)
enter(in_python, scan_p, _scan_in_python)


# ----------------------------------------------------------------------------------
# Derivatives, and the split for checkpoints
#
# A step's residuals are stacked: one row for each step. Two kinds are not. Constants
# and rows of the inputs are read where they already are (`_forwardable`). Values
# computed from constants alone are the same in every step and are computed once
# (`_hoisted`). Refs that gather cotangents stay constants, or rows.
# ----------------------------------------------------------------------------------


@scan_p.def_jvp_rule
def _scan_jvp(primals, tangents, **params) -> tuple[list, list]:
    """The tangents of constants are constants, those of the carry are carried on."""
    loop = Scan(**params)
    nonzeros = loop.operands([type(t) is not Zero for t in tangents])
    forward, nonzeros, nonzeros_out = bodies.forward_body(loop.jaxpr, nonzeros)
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
    second = bodies.reordered(second, bodies.to_back([*is_row, *[False] * others]))
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
    """The kind of an operand of the transpose; None for a value.

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

    return bodies.traced(transposed, avals.flat, body)


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
    before = bodies.returning_constants(before, known, places, sum(constant))
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
    staged = bodies.reordered(staged, bodies.to_back(is_row))
    params = loop.params(staged, staged_in)
    eqn_staged = rewritten(eqn, staged_in.flat, eqn.outvars, **params)
    needed = [v for v in where_not(inst, eqn.invars) if isinstance(v, Var)]
    everything = [True] * len(eqn.outvars)
    residuals = [*needed, *once, *rows]
    return eqn_known, eqn_staged, split.unknown_out, everything, residuals


enter(split_rules, scan_p, _scan_partial_eval_custom)


def _known_call(
    loop: Scan,
    before: ClosedJaxpr,
    rest: ClosedJaxpr,
    invars: Operands,
    is_ref: Sequence[bool],
    num_once: int,
) -> ClosedJaxpr:
    """The program of the known side: the part before the loop, and the loop."""

    def run(*args: Any) -> list[Any]:
        consts, carry, rows = split_list(args, len(invars.consts), len(invars.carry))
        values, refs = partition(is_ref, consts)
        once, own = split_list(jaxpr_as_fun(before)(*values), num_once)
        return [*once, *loop.bind(rest, Operands([*own, *refs], carry, rows))]

    return bodies.traced(run, [v.aval for v in invars.flat], before)
