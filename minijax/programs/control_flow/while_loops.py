"""while_loop: a body repeats as long as a condition holds.

    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = while[
          body_jaxpr={ lambda ; d:f32[] e:f32[]. let f:f32[] = mul e d in (f,) }
          body_nconsts=1
          cond_jaxpr={ lambda ; g:f32[]. let h:bool[] = lt g 100.0:f32[] in (h,) }
          cond_nconsts=0
        ] b a
      in (c,) }

The equation takes the constants of the condition, those of the body, and the carry:
what the loop changes. XLA has this as one operation, whose state also holds the
constants; the state keeps its types from step to step, so the carry must too.

The number of steps is not known in advance, and that shapes the rules. Forward mode
carries tangents along. Reverse mode would have to save values of every step, in memory
of unknown size: there is no transpose, and the error says what to write instead.
Partial evaluation runs the known part of the loop once, and writes the whole loop down
again for the rest.

Under `vmap` the examples stop at different steps if the condition has a batch axis: the
loop runs until the last one stops, and examples that have stopped keep their carry. If
it has none, body and carry get their axes where the body needs them.

Refs that the body writes are part of the carry once they are discharged.

In JAX: `lax/control_flow/loops.py`, `while_loop`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.compile import tokens
from minijax.core import arithmetic as elementwise
from minijax.core import batching, errors, hlo, language, partial_eval, shaping
from minijax.core.effects import of_equation, positional
from minijax.core.errors import api_boundary
from minijax.core.events import enter
from minijax.core.rules import Zero, instantiate, match_axis
from minijax.core.signatures import check_functions
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.reduce import reductions
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.refs.ref_effects import WriteEffect
from minijax.primitives.shape import casting
from minijax.programs.calls import rewritten
from minijax.programs.control_flow.agreement import check_carry
from minijax.programs.control_flow.bodies import (
    Body,
    batched_leading,
    body_primitive,
    carry_to_consts,
    check_distinct_refs,
    check_effects,
    forward_body,
    forwarded,
    same_types,
    short,
    trace_body,
    traced,
)
from minijax.programs.control_flow.operands import (
    Groups,
    Operands,
    merge,
    settle,
    split_groups_of_tangents,
    split_list,
)
from minijax.support import element_types
from minijax.support.io_effects import io_effect, ordered_io_effect
from minijax.support.tree_util import tree_map, treedef_is_leaf
from minijax.transforms import discharge, rematerialize, splitting
from minijax.transforms.rematerialize import split_rules, where, where_not
from minijax.values.inner_programs import (
    InnerProgram,
    descriptions,
    in_python,
    jaxpr_as_fun,
)


@api_boundary
def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """`val = body_fun(val)` as long as `cond_fun(val)`, beginning with `init_val`.

    Args:
      cond_fun: takes the carry and returns a boolean scalar.
      body_fun: takes the carry and returns a carry of the same tree, shapes and dtypes.
      init_val: the first carry, an array or a tree of arrays.

    Returns:
      the carry for which `cond_fun` is false.

    Raises:
      TypeError: an argument is not a function, the condition is not a boolean scalar,
        or the body returns a carry of another type; the message shows both sides of
        each leaf that differs.
      ValueError: on reverse-mode differentiation, which needs a number of steps that is
        known: use `scan`, or `fori_loop` with fixed bounds.
    """
    check_functions("lax.while_loop", cond_fun=cond_fun, body_fun=body_fun)
    if state.disable_jit:
        try:
            return _in_python(cond_fun, body_fun, init_val)
        except errors.ConcretizationTypeError:
            pass  # a condition with a batch axis: only the primitive can do that
    leaves, tree = tree_flatten(init_val)
    condition, body = _trace(cond_fun, body_fun, tree, leaves)
    if len(body.out_avals) != len(leaves):
        _check(body_fun, tree, leaves, body)
    promoted = promote_weak(leaves, body.out_avals)
    if promoted is not None:
        leaves = promoted
        condition, body = _trace(cond_fun, body_fun, tree, leaves)
    _check(body_fun, tree, leaves, body)
    check_effects("while", condition.closed, body.closed)
    check_distinct_refs("while_loop", leaves, body.consts)
    outputs = _bind(condition, body, leaves)
    return tree_unflatten(body.out_tree, outputs)


def _check(fun: Callable, tree: Any, leaves: Sequence[Any], body: Body) -> None:
    avals = [language.get_aval(x) for x in leaves]
    check_carry("while_loop body", fun, tree, avals, body.out_tree, body.out_avals)


def _in_python(cond_fun: Callable, body_fun: Callable, value: Any) -> Any:
    value = tree_map(casting.asarray, value)
    while cond_fun(value):
        value = tree_map(casting.asarray, body_fun(value))
    return value


def _trace(
    cond_fun: Callable, body_fun: Callable, tree: Any, leaves: Sequence[Any]
) -> tuple[Body, Body]:
    avals = [language.get_aval(x) for x in leaves]
    in_tree = tree_flatten((tree_unflatten(tree, avals),))[1]
    condition = trace_body(cond_fun, in_tree, avals, "while_cond")
    body = trace_body(body_fun, in_tree, avals, "while_body")
    if not treedef_is_leaf(condition.out_tree) or len(condition.out_avals) != 1:
        raise errors.type_error(
            "cond_fun must return a boolean scalar, but got pytree "
            f"{condition.out_tree}."
        )
    (aval,) = condition.out_avals
    if (
        not isinstance(aval, language.ShapedArray)
        or aval.shape
        or aval.dtype != np.bool_
    ):
        raise errors.type_error(
            f"cond_fun must return a boolean scalar, but got output type {aval}. "
            "Combine several conditions with `&`, `|` or `jnp.all`."
        )
    return condition, body


def promote_weak(
    leaves: Sequence[Any], out_avals: Sequence[language.AbstractValue]
) -> list[Any] | None:
    """The first carry with its Python numbers in the dtypes that the body returns.

    None when nothing changes.
    """
    result, changed = [], False
    for leaf, out in zip(leaves, out_avals):
        aval = language.get_aval(leaf)
        if getattr(aval, "weak_type", False) and not language.typecompat(aval, out):
            leaf = shaping.convert_element_type(
                leaf, element_types.result_type(leaf, out)
            )
            changed = True
        result.append(leaf)
    return result if changed else None


def _bind(condition: Body, body: Body, leaves: list[Any]) -> list[Any]:
    """Bind the equation; a carry that is neither changed nor tested is a constant."""
    num_cond = len(condition.consts)
    unchanged = [
        len(body.consts) + i == source
        for i, source in enumerate(forwarded(body.closed))
    ]
    smaller, kept = partial_eval.dce_jaxpr(
        condition.closed.jaxpr,
        [True],
        [True] * num_cond + [not flag for flag in unchanged],
    )
    constant = [not flag for flag in kept[num_cond:]]
    operands = Operands(body.consts, leaves)
    body_closed, operands, moved = carry_to_consts(body.closed, operands, constant)
    outputs = bind_while(
        language.ClosedJaxpr(smaller) if moved else condition.closed,
        body_closed,
        WhileOperands(condition.consts, operands.consts, operands.carry),
    )
    return merge(constant, outputs, moved)


# ----------------------------------------------------------------------------------
# The primitive
# ----------------------------------------------------------------------------------

while_p = body_primitive("while")


class WhileOperands(
    namedtuple("WhileOperands", "cond_consts body_consts carry"), Groups
):
    """What the equation takes, or something about each: a value, a type, a flag."""

    @property
    def of_condition(self) -> Operands:
        """What the condition takes."""
        return Operands(self.cond_consts, self.carry)

    @property
    def of_body(self) -> Operands:
        """What the body takes."""
        return Operands(self.body_consts, self.carry)


@dataclass(frozen=True)
class While:
    """The parameters of a loop: its two programs, and how many constants each takes."""

    cond_jaxpr: language.ClosedJaxpr
    body_jaxpr: language.ClosedJaxpr
    cond_nconsts: int
    body_nconsts: int

    def operands(self, items: Sequence[Any]) -> WhileOperands:
        """What belongs to the inputs of the equation, in groups."""
        return WhileOperands(*split_list(items, self.cond_nconsts, self.body_nconsts))


def while_params(
    cond_jaxpr: language.ClosedJaxpr,
    body_jaxpr: language.ClosedJaxpr,
    operands: WhileOperands,
) -> dict[str, Any]:
    """The parameters of a loop with these programs and operands."""
    counts = len(operands.cond_consts), len(operands.body_consts)
    return vars(While(cond_jaxpr, body_jaxpr, *counts))


def bind_while(
    cond_jaxpr: language.ClosedJaxpr,
    body_jaxpr: language.ClosedJaxpr,
    operands: WhileOperands,
) -> list[Any]:
    """Bind a loop with these programs and operands."""
    params = while_params(cond_jaxpr, body_jaxpr, operands)
    return while_p.bind(*operands.flat, **params)


@while_p.def_effectful_abstract_eval
def _while_type(*avals, **params) -> tuple:
    loop = While(**params)
    given = loop.operands(avals)
    for name, closed, own in (
        ("condition", loop.cond_jaxpr, given.of_condition.flat),
        ("body", loop.body_jaxpr, given.of_body.flat),
    ):
        if not same_types(closed.in_avals, own):
            raise TypeError(
                f"the {name} of while takes {short(closed.in_avals)}, called with "
                f"{short(own)}"
            )
    out_avals = loop.body_jaxpr.out_avals
    if not same_types(out_avals, given.carry):
        raise TypeError(
            f"the body of while gives {short(out_avals)} for a carry "
            f"{short(given.carry)}"
        )
    # The effects of both programs, on positions of the equation's inputs.
    places = loop.operands(range(len(avals)))
    of_condition = of_equation(loop.cond_jaxpr.jaxpr, places.of_condition.flat)
    of_body = of_equation(loop.body_jaxpr.jaxpr, places.of_body.flat)
    return out_avals, of_condition | of_body


@while_p.def_lowering
def _while_lowering(ctx, *operands, **params) -> list[Any]:
    """One loop whose state is all operands; constants pass through unchanged.

    With a condition for each example the loop goes on while any of them holds; an
    example whose condition is false keeps its carry.
    """
    loop = While(**params)
    cond_jaxpr, body_jaxpr = loop.cond_jaxpr, loop.body_jaxpr
    if tokens.ordered(cond_jaxpr.effects):
        return ctx.lower_fun(_test_in_body, *operands, **params)
    module_context, effects = ctx.module_context, body_jaxpr.effects
    operands = (*tokens.current(module_context, effects), *operands)
    types = [operand.type for operand in operands]
    operation = hlo.stablehlo.WhileOp(types, list(operands))
    pred_aval = cond_jaxpr.out_avals[0]

    def condition(state: Sequence[Any]) -> Any:
        now = loop.operands(state)
        return ctx.lower_jaxpr(cond_jaxpr, *now.of_condition.flat)[0]

    block = operation.regions[0].blocks.append(*types)
    inside = tokens.region(module_context, effects, list(block.arguments))
    with hlo.ir.InsertionPoint(block), inside as before:
        pred = condition(before)
        if pred_aval.shape:
            axes = tuple(range(pred_aval.ndim))
            inner = ctx.replace(avals_in=[pred_aval])
            (pred,) = inner.lower_fun(lambda p: reductions.reduce_or(p, axes), pred)
        hlo.stablehlo.return_([pred])
    block = operation.regions[1].blocks.append(*types)
    inside = tokens.region(module_context, effects, list(block.arguments))
    with hlo.ir.InsertionPoint(block), inside as before:
        now = loop.operands(before)
        after = ctx.lower_jaxpr(body_jaxpr, *now.of_body.flat)
        if pred_aval.shape:
            pred = condition(before)
            after = [
                _keep_stopped(ctx, pred, pred_aval, new, old, aval)
                for new, old, aval in zip(after, now.carry, body_jaxpr.out_avals)
            ]
        given = tokens.last(module_context)
        hlo.stablehlo.return_([*given, *now._replace(carry=after).flat])
    results = tokens.update(module_context, effects, operation.results)
    return loop.operands(results).carry


def _test_in_body(*args: Any, **params: Any) -> list[Any]:
    """The loop with its condition tested before it and at the end of each turn.

    A condition returns no token, so one with ordered effects moves into the body.
    """
    loop = While(**params)
    cond_consts, body_consts, carry = loop.operands(args)

    def test(carry: Sequence[Any]) -> Any:
        return jaxpr_as_fun(loop.cond_jaxpr)(*cond_consts, *carry)[0]

    def goes_on(state: tuple) -> Any:
        axes = tuple(range(language.get_aval(state[0]).ndim))
        return reductions.reduce_or(state[0], axes) if axes else state[0]

    def turn(state: tuple) -> tuple:
        pred, before = state
        after = jaxpr_as_fun(loop.body_jaxpr)(*body_consts, *before)
        axes = tuple(range(language.get_aval(pred).ndim))
        if axes:
            shapes = [language.get_aval(x).shape for x in after]
            flags = [shaping.broadcast_in_dim(pred, s, axes) for s in shapes]
            after = list(map(elementwise.select, flags, after, before))
        return test(after), after

    return while_loop(goes_on, turn, (test(carry), carry))[1]


def _keep_stopped(
    ctx: Any, pred: Any, pred_aval: language.ShapedArray, new: Any, old: Any, aval: Any
) -> Any:
    """`new` where the predicate of the leading axes holds, `old` elsewhere."""
    physical = language.physical_aval(aval)
    axes = list(range(pred_aval.ndim))
    mask = ctx.broadcast_in_dim(pred, pred_aval, physical.shape, axes)
    return hlo.stablehlo.select(mask, new, old)


@while_p.def_jvp_rule
def _while_jvp(primals, tangents, **params) -> tuple[list, list]:
    """The body carries the tangents of the entries that get one in some step."""
    loop = While(**params)
    operands = loop.operands(primals)
    dots = loop.operands(tangents)
    nonzeros = loop.operands([type(t) is not Zero for t in tangents])
    body, settled, nonzeros_out = forward_body(loop.body_jaxpr, nonzeros.of_body)
    given = dots.of_body.where(settled)
    carry_dots = [instantiate(t) for t in given.carry]
    consts, carry, _ = operands.of_body.beside(Operands(given.consts, carry_dots))
    avals = tuple(language.get_aval(t) for t in carry_dots)
    outputs = bind_while(
        _with_unread(loop.cond_jaxpr, avals),
        body,
        WhileOperands(operands.cond_consts, consts, carry),
    )
    return split_groups_of_tangents(outputs, *nonzeros_out)


@language.weakref_lru_cache
def _with_unread(closed: language.ClosedJaxpr, avals: tuple) -> language.ClosedJaxpr:
    """The program with more inputs, which it does not read."""
    invars = [*closed.jaxpr.invars, *(language.Var(aval) for aval in avals)]
    jaxpr = closed.jaxpr.replace(invars=invars, debug_info=language.no_debug_info)
    return language.ClosedJaxpr(jaxpr, closed.consts)


def _while_partial_eval(trace, args, params) -> list[Any]:
    """Run the known part of the loop, and write the whole of it down for the rest."""
    loop = While(**params)
    operands = loop.operands(args)
    unknown = loop.operands([trace.is_unknown(arg) for arg in args])

    def step(flags: tuple, wanted: tuple) -> tuple:
        answer = splitting.partial_eval_jaxpr(loop.body_jaxpr, flags, wanted)
        known, _, unknown_out, _ = answer
        return unknown_out, known

    settled, body = settle(unknown.of_body, 0, step)
    unknown = unknown._replace(carry=settled.carry)
    condition, _, (pred_unknown,), _ = splitting.partial_eval_jaxpr(
        loop.cond_jaxpr, tuple(unknown.of_condition.flat)
    )
    if pred_unknown or all(unknown.carry):
        with language.set_current_trace(trace.unknown):
            return while_p.bind(*args, **params)
    known_operands = operands.where_not(unknown)
    count = len(known_operands.carry)
    keep = [i < count for i in range(len(body.out_avals))]
    with language.set_current_trace(trace.known):
        body = partial_eval.prune_outputs(body, keep)
        known = bind_while(condition, body, known_operands)
    with language.set_current_trace(trace.unknown):
        everything = while_p.bind(*args, **params)
    return merge(unknown.carry, known, where(unknown.carry, everything))


while_p.partial_eval = _while_partial_eval


@while_p.def_transpose
def _while_transpose(cts, *args, **params) -> None:
    raise errors.value_error(
        "Reverse-mode differentiation does not work for lax.while_loop or "
        "lax.fori_loop with dynamic start/stop values: the backward pass would need "
        "the residuals of each step, but the number of steps is not known when the "
        "program is compiled. Try using lax.scan, or using fori_loop with static "
        "start/stop.",
        rule="while loops have no transpose",
        instead="use lax.scan, or fori_loop with static bounds",
    )


@while_p.def_batch
def _while_batch(axis_data, args, dims, **params) -> tuple[list, list]:
    loop = While(**params)
    operands = loop.operands(args)
    in_dims = loop.operands(dims)
    mapped = loop.operands([dim is not None for dim in dims])
    effects = loop.cond_jaxpr.effects | loop.body_jaxpr.effects
    if ordered_io_effect in effects:
        raise Exception(
            "Ordered IO effects not supported in vmap: the examples of a batch have no "
            "order. Write ordered=False."
        )

    def step(flags: tuple, wanted: tuple) -> tuple:
        return batched_leading(loop.body_jaxpr, axis_data, flags, wanted)[::-1]

    settled, _ = settle(mapped.of_body, 0, step)
    of_condition = Operands(mapped.cond_consts, settled.carry)
    _, (pred_mapped,) = batched_leading(loop.cond_jaxpr, axis_data, of_condition.flat)
    if pred_mapped:
        if io_effect in effects:
            raise Exception(
                "Unordered IO effects not supported in while_loop with batched "
                "predicate: the body runs for all examples until the last one stops."
            )
        # Examples stop one by one: each needs a carry of its own.
        carry_dims: list[int | None] = [0] * len(settled.carry)
        pred_dim: int | None = 0
    else:
        # The predicate's own axes come first in every carry.
        rank = loop.cond_jaxpr.out_avals[0].ndim
        carry_dims = [rank if flag else None for flag in settled.carry]
        pred_dim = None
    carry = [
        match_axis(axis_data, x, dim, wanted)
        for x, dim, wanted in zip(operands.carry, in_dims.carry, carry_dims)
    ]
    in_dims = in_dims._replace(carry=carry_dims)
    body = _batched_to(
        loop.body_jaxpr, axis_data, tuple(in_dims.of_body.flat), tuple(carry_dims)
    )
    condition = _batched_to(
        loop.cond_jaxpr, axis_data, tuple(in_dims.of_condition.flat), (pred_dim,)
    )
    outputs = bind_while(condition, body, operands._replace(carry=carry))
    return outputs, carry_dims


@language.weakref_lru_cache
def _batched_to(
    closed: language.ClosedJaxpr, axis_data: Any, in_dims: tuple, out_dims: tuple
) -> language.ClosedJaxpr:
    """The program for a batch, with the axes of inputs and outputs at given places.

    An output whose place is None must have no axis.
    """

    def fun(*args: Any) -> list[Any]:
        outputs, dims = batching.batch(jaxpr_as_fun(closed), axis_data, args, in_dims)
        return [
            match_axis(axis_data, x, dim, wanted)
            for x, dim, wanted in zip(outputs, dims, out_dims)
        ]

    avals = [
        language.unmapped_aval(axis_data.size, dim, aval, axis_data.cut)
        for aval, dim in zip(closed.in_avals, in_dims, strict=True)
    ]
    return traced(fun, avals, closed)


def _while_partial_eval_custom(saveable, unknown, inst, eqn) -> tuple:
    """The known part runs once more in the staged program: nothing can be saved."""
    loop = While(**eqn.params)
    unknown_in = loop.operands(unknown)
    invars = loop.operands(eqn.invars)
    needed = [v for v in where_not(inst, eqn.invars) if isinstance(v, language.Var)]

    def nothing(*_: Any, **__: Any) -> bool:
        return False

    def split(
        closed: language.ClosedJaxpr, flags: Sequence[bool], wanted: Any
    ) -> tuple:
        halves = rematerialize.partial_eval_jaxpr_custom(
            closed.jaxpr, flags, [True] * len(flags), wanted, True, nothing
        )
        return halves.unknown_out, language.ClosedJaxpr(halves.known, closed.consts)

    def step(flags: tuple, wanted: tuple) -> tuple:
        return split(loop.body_jaxpr, flags, wanted)

    settled, body = settle(unknown_in.of_body, 0, step)
    unknown_in = unknown_in._replace(carry=settled.carry)
    flags = unknown_in.of_condition.flat
    (pred_unknown,), condition = split(loop.cond_jaxpr, flags, False)
    everything = [True] * len(eqn.outvars)
    if pred_unknown:
        return None, eqn, everything, everything, needed
    known_in = invars.where_not(unknown_in)
    known_out = where_not(unknown_in.carry, eqn.outvars)
    params = while_params(condition, body, known_in)
    eqn_known = rewritten(eqn, known_in.flat, known_out, **params)
    return eqn_known, eqn, unknown_in.carry, everything, needed


enter(split_rules, while_p, _while_partial_eval_custom)


def _while_discharge(discharged, *args, **params) -> tuple[list, list]:
    """Refs of the constants become part of the carry, those of the body first.

    A condition that writes runs again in the body, so that what it writes stays.
    """
    loop = While(**params)
    operands = loop.operands(args)
    is_ref = loop.operands(discharged)
    cond_writes = _writes(loop.cond_jaxpr, operands.cond_consts)
    if cond_writes & _writes(loop.body_jaxpr, operands.body_consts):
        raise NotImplementedError(
            "Cannot write to the same ref in both cond and body of while loop. Write "
            "it in the body only."
        )
    pure_condition = jaxpr_as_fun(
        discharge.discharge_state(loop.cond_jaxpr, is_ref.of_condition.flat)
    )
    pure_body = jaxpr_as_fun(
        discharge.discharge_state(loop.body_jaxpr, is_ref.of_body.flat)
    )
    plain, contents = operands.where_not(is_ref), operands.where(is_ref)
    # A condition that runs in the body as well needs its constants there.
    extra = plain.cond_consts if cond_writes else []
    counts = len(contents.body_consts), len(contents.cond_consts)

    def test(consts: Sequence, held: Sequence, carry: Sequence) -> list[Any]:
        """The condition's result, then the contents of its refs."""
        return pure_condition(*merge(is_ref.cond_consts, consts, held), *carry)

    def body(*inputs: Any) -> list[Any]:
        cond_consts, body_consts, of_body, of_cond, carry = split_list(
            inputs, len(extra), len(plain.body_consts), *counts
        )
        if cond_writes:
            of_cond = test(cond_consts, of_cond, carry)[1:]
        own = merge(is_ref.body_consts, body_consts, of_body)
        results, of_body = split_list(pure_body(*own, *carry), len(carry))
        return [*of_body, *of_cond, *results]

    def condition(*inputs: Any) -> list[Any]:
        consts, _, of_cond, carry = split_list(inputs, len(plain.cond_consts), *counts)
        return test(consts, of_cond, carry)[:1]

    now = WhileOperands(
        plain.cond_consts,
        [*extra, *plain.body_consts],
        [*contents.body_consts, *contents.cond_consts, *operands.carry],
    )
    avals = now.map(language.get_aval)
    outputs = bind_while(
        traced(condition, avals.of_condition.flat, loop.cond_jaxpr),
        traced(body, avals.of_body.flat, loop.body_jaxpr),
        now,
    )
    of_body, of_cond, results = split_list(outputs, *counts)
    last = iter([*of_cond, *of_body])
    return [next(last) if flag else None for flag in discharged], results


enter(discharge_rules, while_p, _while_discharge)


def _writes(closed: language.ClosedJaxpr, consts: Sequence[Any]) -> set[int]:
    """The ids of the contents of refs that a program writes to."""
    effects = positional(closed.effects, closed.jaxpr.invars)
    return {id(consts[e.input]) for e in effects if isinstance(e, WriteEffect)}


def _while_programs(params: dict[str, Any]) -> list[InnerProgram]:
    count = params["cond_nconsts"] + len(params["body_jaxpr"].in_avals)
    loop = While(**params)
    places = loop.operands(range(count))
    condition, body = places.of_condition, places.of_body
    return [
        InnerProgram(
            "while_loop cond function",
            loop.cond_jaxpr.jaxpr,
            condition.flat,
            decides=True,
            carry=range(len(condition.consts), len(condition.flat)),
        ),
        InnerProgram(
            "while_loop body function",
            loop.body_jaxpr.jaxpr,
            body.flat,
            carry=range(len(body.consts), len(body.flat)),
        ),
    ]


def _while_in_python(run: Callable, args: list[Any], params: dict[str, Any]) -> Any:
    loop = While(**params)
    now = loop.operands(args)
    if loop.cond_jaxpr.out_avals[0].shape:
        return None  # a batch of loops: all run until the last one ends
    while bool(run(loop.cond_jaxpr, now.of_condition.flat)[0]):
        now = now._replace(carry=run(loop.body_jaxpr, now.of_body.flat))
    return list(now.carry)


enter(descriptions, while_p, _while_programs)
enter(in_python, while_p, _while_in_python)
