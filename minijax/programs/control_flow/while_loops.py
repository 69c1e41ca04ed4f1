"""while_loop: a program repeats as long as another one says so.

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

Nobody knows beforehand how often the body runs, and that shapes the rules. Forward mode
carries tangents along. Reverse mode would have to keep something of every step, in
memory whose size is not known: there is no transpose, and the error says what to write
instead. Partial evaluation runs the known part of the loop once, and writes the whole
loop down again for the rest.

Under `vmap` the examples stop at different steps if the condition has a batch axis: the
loop runs until the last one stops, and examples that have stopped keep their carry. If
it has none, body and carry get their axes where the body needs them.

Refs that the body writes are part of the carry once they are discharged.

In JAX: `lax/control_flow/loops.py`, `while_loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.compile import tokens
from minijax.language.core import (
    AbstractRef,
    AbstractValue,
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Var,
    get_aval,
    jaxpr_as_fun,
    no_debug_info,
    physical_aval,
    register,
    set_current_trace,
    typecompat,
    unmapped_aval,
    weakref_lru_cache,
)
from minijax.language.rules import (
    Zero,
    broadcast_axis,
    instantiate,
    moveaxis,
    zero_tangent_of,
)
from minijax.primitives.elementwise import select
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import broadcasting, casting
from minijax.programs.control_flow.bodies import (
    Body,
    batched_leading,
    check_callable,
    check_carry,
    check_distinct_refs,
    check_effects,
    fixpoint,
    forwarded,
    merge,
    partition,
    reordered,
    run_now,
    split_list,
    to_front,
    trace_body,
)
from minijax.support import dtypes, errors
from minijax.support.config import state
from minijax.support.effects import (
    JaxprInputEffect,
    WriteEffect,
    io_effect,
    ordered_io_effect,
    positional,
)
from minijax.support.effects import with_inputs as effects_on
from minijax.support.traceback_filtering import api_boundary
from minijax.support.tree_util import (
    tree_flatten,
    tree_map,
    tree_unflatten,
    treedef_is_leaf,
)
from minijax.transforms import ad, batching, discharge, partial_eval, rematerialize


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
      TypeError: an argument is no function, the condition is no boolean scalar, or the
        body returns a carry of another type; the message shows both sides of each leaf
        that differs.
      ValueError: on reverse-mode differentiation, which needs a number of steps that is
        known: use `scan`, or `fori_loop` with fixed bounds.
    """
    check_callable("lax.while_loop", cond_fun=cond_fun, body_fun=body_fun)
    if state.disable_jit:
        try:
            return _in_python(cond_fun, body_fun, init_val)
        except errors.ConcretizationTypeError:
            pass  # a condition with a batch axis: only the primitive can do that
    leaves, tree = tree_flatten(init_val)
    condition, body = _trace(cond_fun, body_fun, tree, leaves)
    name = "while_loop body"
    if len(body.out_avals) != len(leaves):
        _check(name, body_fun, tree, leaves, body)
    promoted = promote_weak(leaves, body.out_avals)
    if promoted is not None:
        leaves = promoted
        condition, body = _trace(cond_fun, body_fun, tree, leaves)
    _check(name, body_fun, tree, leaves, body)
    check_effects("while", condition.closed, body.closed)
    check_distinct_refs("while_loop", leaves, body.consts)
    outputs = _bind(condition, body, leaves)
    return tree_unflatten(body.out_tree, outputs)


def _check(
    name: str, fun: Callable, tree: Any, leaves: Sequence[Any], body: Body
) -> None:
    avals = [get_aval(x) for x in leaves]
    check_carry(name, fun, tree, avals, body.out_tree, body.out_avals)


def _in_python(cond_fun: Callable, body_fun: Callable, value: Any) -> Any:
    value = tree_map(casting.asarray, value)
    while cond_fun(value):
        value = tree_map(casting.asarray, body_fun(value))
    return value


def _trace(
    cond_fun: Callable, body_fun: Callable, tree: Any, leaves: Sequence[Any]
) -> tuple[Body, Body]:
    avals = [get_aval(x) for x in leaves]
    in_tree = tree_flatten((tree_unflatten(tree, avals),))[1]
    condition = trace_body(cond_fun, in_tree, avals, "while_cond")
    body = trace_body(body_fun, in_tree, avals, "while_body")
    if not treedef_is_leaf(condition.out_tree) or len(condition.out_avals) != 1:
        raise errors.type_error(
            "cond_fun must return a boolean scalar, but got pytree "
            f"{condition.out_tree}."
        )
    (aval,) = condition.out_avals
    if not isinstance(aval, ShapedArray) or aval.shape or aval.dtype != np.bool_:
        raise errors.type_error(
            f"cond_fun must return a boolean scalar, but got output type {aval}. "
            "Combine several conditions with `&`, `|` or `jnp.all`."
        )
    return condition, body


def promote_weak(
    leaves: Sequence[Any], out_avals: Sequence[AbstractValue]
) -> list[Any] | None:
    """The first carry with its Python numbers in the dtypes that the body gives back.

    None when nothing changes.
    """
    result, changed = [], False
    for leaf, out in zip(leaves, out_avals):
        aval = get_aval(leaf)
        if getattr(aval, "weak_type", False) and not typecompat(aval, out):
            leaf = casting.convert_element_type(leaf, dtypes.result_type(leaf, out))
            changed = True
        result.append(leaf)
    return result if changed else None


def _bind(condition: Body, body: Body, leaves: list[Any]) -> list[Any]:
    """Bind the equation; a carry that nothing changes or asks is a constant."""
    cond_closed, body_closed = condition.closed, body.closed
    consts = list(body.consts)
    num_cond = len(condition.consts)
    unchanged = [
        len(consts) + i == source for i, source in enumerate(forwarded(body_closed))
    ]
    smaller, kept = partial_eval.dce_jaxpr(
        cond_closed.jaxpr,
        [True],
        [True] * num_cond + [not flag for flag in unchanged],
    )
    constant = [not flag for flag in kept[num_cond:]]
    moved: list[Any] = []
    if any(constant):
        cond_closed = ClosedJaxpr(smaller)
        body_closed = partial_eval.prune_outputs(
            body_closed, [not flag for flag in constant]
        )
        body_closed = reordered(body_closed, to_front([False] * len(consts) + constant))
        leaves, moved = partition(constant, leaves)
        consts = [*moved, *consts]
    outputs = while_p.bind(
        *condition.consts,
        *consts,
        *leaves,
        cond_nconsts=num_cond,
        cond_jaxpr=cond_closed,
        body_nconsts=len(consts),
        body_jaxpr=body_closed,
    )
    return merge(constant, outputs, moved) if moved else outputs


# ----------------------------------------------------------------------------------
# The primitive
# ----------------------------------------------------------------------------------

while_p = register(Primitive("while", multiple_results=True))
while_p.cache_types = False


def _effects(
    cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, num_cond: int, num_body: int
) -> frozenset:
    """The effects of both programs, on positions of the equation's inputs."""
    seen = []
    for effect in positional(cond_jaxpr.effects, cond_jaxpr.jaxpr.invars):
        if isinstance(effect, JaxprInputEffect) and effect.input >= num_cond:
            effect = effect.replace(effect.input + num_body)
        seen.append(effect)
    for effect in positional(body_jaxpr.effects, body_jaxpr.jaxpr.invars):
        if isinstance(effect, JaxprInputEffect):
            effect = effect.replace(effect.input + num_cond)
        seen.append(effect)
    return frozenset(seen)


@while_p.def_effectful_abstract_eval
def _while_type(
    *avals: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple:
    cond_consts, body_consts, carry = split_list(avals, cond_nconsts, body_nconsts)
    for name, closed, given in (
        ("condition", cond_jaxpr, [*cond_consts, *carry]),
        ("body", body_jaxpr, [*body_consts, *carry]),
    ):
        if len(closed.in_avals) != len(given) or not all(
            map(typecompat, closed.in_avals, given)
        ):
            raise TypeError(
                f"the {name} of while takes {_short(closed.in_avals)}, called with "
                f"{_short(given)}"
            )
    if len(body_jaxpr.out_avals) != len(carry) or not all(
        map(typecompat, body_jaxpr.out_avals, carry)
    ):
        raise TypeError(
            f"the body of while gives {_short(body_jaxpr.out_avals)} for a carry "
            f"{_short(carry)}"
        )
    effects = _effects(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts)
    return body_jaxpr.out_avals, effects


def _short(avals: Sequence[AbstractValue]) -> str:
    return " ".join(aval.str_short() for aval in avals) or "nothing"


@while_p.def_impl
def _while_impl(*args: Any, **params: Any) -> list[Any]:
    return run_now(while_p, *args, **params)


@while_p.def_lowering
def _while_lowering(
    ctx: Any,
    *operands: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Any]:
    """One loop whose state is all operands; the constants are passed on.

    With a condition for each example the loop goes on while any holds, and the carry of
    an example whose condition does not hold stays.
    """
    if tokens.ordered(cond_jaxpr.effects):
        return ctx.lower_fun(
            _test_in_body,
            *operands,
            cond_jaxpr=cond_jaxpr,
            body_jaxpr=body_jaxpr,
            cond_nconsts=cond_nconsts,
            body_nconsts=body_nconsts,
        )
    module_context, effects = ctx.module_context, body_jaxpr.effects
    operands = (*tokens.current(module_context, effects), *operands)
    types = [operand.type for operand in operands]
    loop = hlo.stablehlo.WhileOp(types, list(operands))
    pred_aval = cond_jaxpr.out_avals[0]

    def condition(state: Sequence[Any]) -> Any:
        cond_consts, _, carry = split_list(state, cond_nconsts, body_nconsts)
        return ctx.lower_jaxpr(cond_jaxpr, *cond_consts, *carry)[0]

    block = loop.regions[0].blocks.append(*types)
    inside = tokens.region(module_context, effects, list(block.arguments))
    with hlo.ir.InsertionPoint(block), inside as before:
        pred = condition(before)
        if pred_aval.shape:
            axes = tuple(range(pred_aval.ndim))
            inner = ctx.replace(avals_in=[pred_aval])
            (pred,) = inner.lower_fun(lambda p: reductions.reduce_or(p, axes), pred)
        hlo.stablehlo.return_([pred])
    block = loop.regions[1].blocks.append(*types)
    inside = tokens.region(module_context, effects, list(block.arguments))
    with hlo.ir.InsertionPoint(block), inside as before:
        cond_consts, body_consts, carry = split_list(before, cond_nconsts, body_nconsts)
        after = ctx.lower_jaxpr(body_jaxpr, *body_consts, *carry)
        if pred_aval.shape:
            pred = condition(before)
            after = [
                _keep_stopped(ctx, pred, pred_aval, new, old, aval)
                for new, old, aval in zip(after, carry, body_jaxpr.out_avals)
            ]
        given = tokens.last(module_context)
        hlo.stablehlo.return_([*given, *cond_consts, *body_consts, *after])
    results = tokens.update(module_context, effects, loop.results)
    return results[cond_nconsts + body_nconsts :]


def _test_in_body(
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Any]:
    """The loop with its condition tested before it and at the end of each turn.

    A condition returns no token, so one with ordered effects moves into the body.
    """
    cond_consts, body_consts, carry = split_list(args, cond_nconsts, body_nconsts)

    def test(carry: Sequence[Any]) -> Any:
        return jaxpr_as_fun(cond_jaxpr)(*cond_consts, *carry)[0]

    def goes_on(state: tuple) -> Any:
        axes = tuple(range(get_aval(state[0]).ndim))
        return reductions.reduce_or(state[0], axes) if axes else state[0]

    def turn(state: tuple) -> tuple:
        pred, before = state
        after = jaxpr_as_fun(body_jaxpr)(*body_consts, *before)
        axes = tuple(range(get_aval(pred).ndim))
        if axes:
            shapes = [get_aval(x).shape for x in after]
            flags = [broadcasting.broadcast_in_dim(pred, s, axes) for s in shapes]
            after = list(map(select.select, flags, after, before))
        return test(after), after

    return while_loop(goes_on, turn, (test(carry), carry))[1]


def _keep_stopped(
    ctx: Any, pred: Any, pred_aval: ShapedArray, new: Any, old: Any, aval: Any
) -> Any:
    """`new` where the predicate of the leading axes holds, `old` elsewhere."""
    physical = physical_aval(aval)
    axes = list(range(pred_aval.ndim))
    mask = ctx.broadcast_in_dim(pred, pred_aval, physical.shape, axes)
    return hlo.stablehlo.select(mask, new, old)


@while_p.def_jvp_rule
def _while_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list, list]:
    """The body carries the tangents of those entries that ever get one."""
    nonzeros = [type(t) is not Zero for t in tangents]
    _, const_nz, init_nz = split_list(nonzeros, cond_nconsts, body_nconsts)

    def step(carry_nz: list[bool]) -> tuple:
        forward, after = ad.jvp_jaxpr(body_jaxpr, [*const_nz, *carry_nz], carry_nz)
        return after, forward

    carry_nz, forward = fixpoint(init_nz, step)
    cond_consts, body_consts, init = split_list(primals, cond_nconsts, body_nconsts)
    _, const_dots, init_dots = split_list(tangents, cond_nconsts, body_nconsts)
    const_dots = [t for t, nonzero in zip(const_dots, const_nz) if nonzero]
    init_dots = [instantiate(t) for t, nonzero in zip(init_dots, carry_nz) if nonzero]
    # From (constants, carry, their dots, its dots) to (both constants, both carries).
    sizes = (body_nconsts, len(init), len(const_dots))
    consts, carry, dots, carry_dots = split_list(
        range(sum(sizes) + len(init_dots)), *sizes
    )
    outputs = while_p.bind(
        *cond_consts,
        *body_consts,
        *const_dots,
        *init,
        *init_dots,
        cond_nconsts=cond_nconsts,
        cond_jaxpr=_with_unread(cond_jaxpr, tuple(get_aval(t) for t in init_dots)),
        body_nconsts=body_nconsts + len(const_dots),
        body_jaxpr=reordered(forward, [*consts, *dots, *carry, *carry_dots]),
    )
    outs, rest = outputs[: len(init)], iter(outputs[len(init) :])
    return outs, [
        next(rest) if nonzero else zero_tangent_of(out)
        for out, nonzero in zip(outs, carry_nz)
    ]


@weakref_lru_cache
def _with_unread(closed: ClosedJaxpr, avals: tuple) -> ClosedJaxpr:
    """The program with more inputs, which it does not read."""
    invars = [*closed.jaxpr.invars, *(Var(aval) for aval in avals)]
    jaxpr = closed.jaxpr.replace(invars=invars, debug_info=no_debug_info)
    return ClosedJaxpr(jaxpr, closed.consts)


def _while_partial_eval(trace: Any, args: Sequence[Any], params: dict) -> list[Any]:
    """Run the known part of the loop, and write the whole of it down for the rest."""
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
    unknown = [trace.is_unknown(arg) for arg in args]
    cond_uk, body_uk, init_uk = split_list(unknown, cond_nconsts, body_nconsts)

    def step(carry_uk: list[bool]) -> tuple:
        known, _, after, _ = partial_eval.partial_eval_jaxpr(
            body_jaxpr, (*body_uk, *carry_uk), tuple(carry_uk)
        )
        return after, known

    carry_uk, body_known = fixpoint(init_uk, step)
    cond_known, _, (pred_unknown,), _ = partial_eval.partial_eval_jaxpr(
        cond_jaxpr, (*cond_uk, *carry_uk)
    )
    if pred_unknown or all(carry_uk):
        with set_current_trace(trace.unknown):
            return while_p.bind(*args, **params)
    count = len(carry_uk) - sum(carry_uk)
    keep = [i < count for i in range(len(body_known.out_avals))]
    known_args, _ = partition([*cond_uk, *body_uk, *carry_uk], args)
    with set_current_trace(trace.known):
        known = while_p.bind(
            *known_args,
            cond_nconsts=cond_nconsts - sum(cond_uk),
            cond_jaxpr=cond_known,
            body_nconsts=body_nconsts - sum(body_uk),
            body_jaxpr=partial_eval.prune_outputs(body_known, keep),
        )
    with set_current_trace(trace.unknown):
        everything = while_p.bind(*args, **params)
    return merge(carry_uk, known, [x for x, uk in zip(everything, carry_uk) if uk])


while_p.partial_eval = _while_partial_eval


@while_p.def_transpose
def _while_transpose(cts: Any, *args: Any, **params: Any) -> None:
    raise errors.value_error(
        "Reverse-mode differentiation does not work for lax.while_loop or "
        "lax.fori_loop with dynamic start/stop values: what each step needs for its "
        "way back would have to be kept, and how many steps there are is not known "
        "when the program is compiled. Try using lax.scan, or using fori_loop with "
        "static start/stop.",
        rule="while loops have no transpose",
        instead="use lax.scan, or fori_loop with static bounds",
    )


@while_p.def_batch
def _while_batch(
    axis_data: Any,
    args: Sequence[Any],
    dims: Sequence,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list[Any], list[int | None]]:
    effects = cond_jaxpr.effects | body_jaxpr.effects
    if ordered_io_effect in effects:
        raise Exception(
            "Ordered IO effects not supported in vmap: the examples of a batch have no "
            "order. Write ordered=False."
        )
    mapped = [dim is not None for dim in dims]
    cond_bat, body_bat, init_bat = split_list(mapped, cond_nconsts, body_nconsts)
    cond_dims, body_dims, init_dims = split_list(dims, cond_nconsts, body_nconsts)

    def step(carry_bat: list[bool]) -> tuple:
        flags = [*body_bat, *carry_bat]
        return batched_leading(body_jaxpr, axis_data, flags, carry_bat)[1], None

    carry_bat, _ = fixpoint(init_bat, step)
    _, (pred_bat,) = batched_leading(cond_jaxpr, axis_data, [*cond_bat, *carry_bat])
    if pred_bat:
        if io_effect in effects:
            raise Exception(
                "Unordered IO effects not supported in while_loop with batched "
                "predicate: the body runs for all examples until the last one stops."
            )
        # Examples stop one by one: each needs a carry of its own.
        carry_dims: list[int | None] = [0] * len(carry_bat)
        pred_dim: int | None = 0
    else:
        # The predicate's own axes come first in every carry.
        rank = cond_jaxpr.out_avals[0].ndim
        carry_dims = [rank if flag else None for flag in carry_bat]
        pred_dim = None
    body = _batched_to(
        body_jaxpr, axis_data, (*body_dims, *carry_dims), tuple(carry_dims)
    )
    condition = _batched_to(
        cond_jaxpr, axis_data, (*cond_dims, *carry_dims), (pred_dim,)
    )
    cond_consts, body_consts, init = split_list(args, cond_nconsts, body_nconsts)
    init = [
        _axis_to(axis_data.size, x, old, new)
        for x, old, new in zip(init, init_dims, carry_dims)
    ]
    outputs = while_p.bind(
        *cond_consts,
        *body_consts,
        *init,
        cond_nconsts=cond_nconsts,
        cond_jaxpr=condition,
        body_nconsts=body_nconsts,
        body_jaxpr=body,
    )
    return outputs, carry_dims


def _axis_to(size: int, x: Any, old: int | None, new: int | None) -> Any:
    if new is None:
        return x
    return broadcast_axis(x, size, new) if old is None else moveaxis(x, old, new)


@weakref_lru_cache
def _batched_to(
    closed: ClosedJaxpr, axis_data: Any, in_dims: tuple, out_dims: tuple
) -> ClosedJaxpr:
    """The program for a batch, with the axes of inputs and outputs where they are said.

    An output that was given no axis must have none.
    """

    def fun(*args: Any) -> list[Any]:
        outputs, dims = batching.batch(jaxpr_as_fun(closed), axis_data, args, in_dims)
        return [
            _axis_to(axis_data.size, x, old, new)
            for x, old, new in zip(outputs, dims, out_dims)
        ]

    avals = [
        unmapped_aval(axis_data.size, dim, aval)
        for aval, dim in zip(closed.in_avals, in_dims, strict=True)
    ]
    jaxpr, consts = partial_eval.trace_to_jaxpr(fun, avals, closed.debug_info)
    return ClosedJaxpr(jaxpr, consts)


def _while_partial_eval_custom(
    saveable: Callable, unknown: list[bool], inst: list[bool], eqn: JaxprEqn
) -> tuple:
    """The known part runs once more in the staged program: nothing can be saved."""
    params = eqn.params
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    sizes = params["cond_nconsts"], params["body_nconsts"]
    cond_uk, body_uk, init_uk = split_list(unknown, *sizes)
    needed = [v for v, flag in zip(eqn.invars, inst) if isinstance(v, Var) and not flag]

    def nothing(*_: Any, **__: Any) -> bool:
        return False

    def step(carry_uk: list[bool]) -> tuple:
        flags = [*body_uk, *carry_uk]
        parts = rematerialize.partial_eval_jaxpr_custom(
            body_jaxpr.jaxpr, flags, [True] * len(flags), carry_uk, True, nothing
        )
        return parts.unknown_out, parts.known

    carry_uk, body_known = fixpoint(init_uk, step)
    flags = [*cond_uk, *carry_uk]
    condition = rematerialize.partial_eval_jaxpr_custom(
        cond_jaxpr.jaxpr, flags, [True] * len(flags), False, True, nothing
    )
    everything = [True] * len(carry_uk)
    if condition.unknown_out[0]:
        return None, eqn, everything, everything, needed
    known_in = rematerialize.where_not([*cond_uk, *body_uk, *carry_uk], eqn.invars)
    known = {
        "cond_nconsts": sizes[0] - sum(cond_uk),
        "cond_jaxpr": ClosedJaxpr(condition.known, cond_jaxpr.consts),
        "body_nconsts": sizes[1] - sum(body_uk),
        "body_jaxpr": ClosedJaxpr(body_known, body_jaxpr.consts),
    }
    effects = _effects(
        known["cond_jaxpr"],
        known["body_jaxpr"],
        known["cond_nconsts"],
        known["body_nconsts"],
    )
    eqn_known = eqn.replace(
        invars=known_in,
        outvars=rematerialize.where_not(carry_uk, eqn.outvars),
        params=known,
        effects=effects_on(effects, known_in),
    )
    return eqn_known, eqn, carry_uk, everything, needed


while_p.partial_eval_custom = _while_partial_eval_custom


def _while_discharge(
    discharged: Sequence[bool],
    in_avals: Any,
    out_avals: Any,
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[list[Any], list[Any]]:
    """Refs of the constants become part of the carry, those of the body first.

    A condition that writes runs again in the body, so that what it writes stays.
    """
    sizes = cond_nconsts, body_nconsts
    is_ref = [
        flag and type(aval) is AbstractRef for flag, aval in zip(discharged, in_avals)
    ]
    cond_ref, body_ref, _ = split_list(is_ref, *sizes)
    cond_flags, body_flags, carry_flags = split_list(discharged, *sizes)
    cond_args, body_args, carry = split_list(args, *sizes)
    writes = _writes(cond_jaxpr, cond_args) & _writes(body_jaxpr, body_args)
    if writes:
        raise NotImplementedError(
            "Cannot write to the same ref in both cond and body of while loop."
        )
    condition_writes = bool(_writes(cond_jaxpr, cond_args))
    condition = discharge.discharge_state(cond_jaxpr, [*cond_flags, *carry_flags])
    body = discharge.discharge_state(body_jaxpr, [*body_flags, *carry_flags])
    cond_consts, cond_contents = partition(cond_ref, cond_args)
    body_consts, body_contents = partition(body_ref, body_args)
    num_own_consts = len(body_consts)
    if condition_writes:
        body_consts = [*cond_consts, *body_consts]
    num_carry, counts = len(carry), (len(body_contents), len(cond_contents))

    def new_body(*inputs: Any) -> list[Any]:
        consts, of_body, of_cond, values = split_list(inputs, len(body_consts), *counts)
        own = consts[len(consts) - num_own_consts :]
        if condition_writes:
            all_cond = merge(cond_ref, consts[: len(cond_consts)], of_cond)
            of_cond = jaxpr_as_fun(condition)(*all_cond, *values)[1:]
        results = jaxpr_as_fun(body)(*merge(body_ref, own, of_body), *values)
        return [*results[num_carry:], *of_cond, *results[:num_carry]]

    def new_condition(*inputs: Any) -> list[Any]:
        consts, _, of_cond, values = split_list(inputs, len(cond_consts), *counts)
        return jaxpr_as_fun(condition)(*merge(cond_ref, consts, of_cond), *values)[:1]

    state_now = [*body_contents, *cond_contents, *carry]
    outputs = while_p.bind(
        *cond_consts,
        *body_consts,
        *state_now,
        cond_nconsts=len(cond_consts),
        cond_jaxpr=_closed(new_condition, [*cond_consts, *state_now], cond_jaxpr),
        body_nconsts=len(body_consts),
        body_jaxpr=_closed(new_body, [*body_consts, *state_now], body_jaxpr),
    )
    of_body, of_cond, results = split_list(outputs, *counts)
    contents = [
        *merge(cond_ref, [None] * len(cond_consts), of_cond),
        *merge(body_ref, [None] * num_own_consts, of_body),
        *[None] * num_carry,
    ]
    return contents, results


while_p.discharge = _while_discharge


def _writes(closed: ClosedJaxpr, consts: Sequence[Any]) -> set[int]:
    """The ids of the contents of refs that a program writes to."""
    effects = positional(closed.effects, closed.jaxpr.invars)
    return {id(consts[e.input]) for e in effects if isinstance(e, WriteEffect)}


def _closed(fun: Callable, args: Sequence[Any], like: ClosedJaxpr) -> ClosedJaxpr:
    avals = [get_aval(arg) for arg in args]
    jaxpr, consts = partial_eval.trace_to_jaxpr(fun, avals, like.debug_info)
    return ClosedJaxpr(jaxpr, consts)
