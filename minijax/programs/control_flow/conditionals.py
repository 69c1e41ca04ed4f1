"""cond and switch: one of several programs runs, chosen by a number known at run time.

    { lambda ; a:bool[] b:f32[]. let
        c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
        d:f32[] = cond[branches=({ lambda ; e:f32[]. let f:f32[] = sin e in (f,) }
                                 { lambda ; e:f32[]. let f:f32[] = cos e in (f,) })] c b
      in (d,) }

The equation takes the index of a branch (for `cond`, 0 is false and 1 is true) and the
arguments of all branches; every branch is a program with these inputs and with outputs
of equal types. Both branches are traced, one runs.

A rule transforms each branch and then makes their types equal again. An output is
nonzero, unknown or batched if any branch makes it so (`operands.agree`). The branches
save different residuals for the backward pass: `_Residuals` merges their lists by type,
so that branches that save two vectors and three share two places, and a branch fills
the places that it does not use with empty arrays.

Under `vmap` a predicate with a batch axis has a value for each example, which may take
any branch, so all branches run, and `select_n` picks. For the derivative's sake each
branch sees its own arguments only where it is chosen.

In JAX: `lax/control_flow/conditionals.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.compile import tokens
from minijax.core import arithmetic as elementwise
from minijax.core import autodiff, dtypes, errors, hlo, language, partial_eval, shaping
from minijax.core.effects import positional, with_inputs
from minijax.core.errors import api_boundary
from minijax.core.events import enter
from minijax.core.rules import Accumulator, Zero, batch_at_front, scalar_like
from minijax.core.signatures import check_functions
from minijax.core.state import state
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.elementwise import clamping
from minijax.primitives.families import mapped_at_front
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.refs.ref_effects import RefEffect
from minijax.primitives.shape import broadcasting, casting, ordering
from minijax.programs.calls import rewritten
from minijax.programs.control_flow.agreement import check_branches, of_all
from minijax.programs.control_flow.bodies import (
    Body,
    batched_leading,
    body_primitive,
    check_distinct_refs,
    check_effects,
    forwarded,
    returning_constants,
    same_types,
    share_constants,
    short,
    trace_body,
    traced,
    with_effects,
    with_leading_inputs,
)
from minijax.programs.control_flow.operands import agree, any_of, merge, partition
from minijax.support.io_effects import io_effect, ordered_io_effect
from minijax.transforms import discharge, rematerialize, splitting
from minijax.transforms.rematerialize import split_rules, where, where_not
from minijax.values.concrete import is_concrete
from minijax.values.inner_programs import (
    InnerProgram,
    descriptions,
    in_python,
    jaxpr_as_fun,
)

_not_given = object()


def _operands(operands: tuple, operand: Any) -> tuple:
    if operand is _not_given:
        return operands
    if operands:
        raise errors.type_error(
            "if the keyword `operand` is given there can be no positional operands, "
            f"but there are {len(operands)}."
        )
    return (operand,)


@api_boundary
def cond(
    pred: Any,
    true_fun: Callable,
    false_fun: Callable,
    *operands: Any,
    operand: Any = _not_given,
) -> Any:
    """`true_fun(*operands)` or `false_fun(*operands)`, chosen when the program runs.

    Args:
      pred: a boolean scalar; a number is true when it is not 0.
      true_fun, false_fun: functions of the operands that return equal trees of arrays
        of equal shapes and dtypes. Both are traced, one runs.
      operands: arrays or trees of arrays.

    Returns:
      what the chosen function returns.

    Raises:
      TypeError: `pred` is not a scalar, a branch is not a function, or results differ
        in tree, shape or dtype (the message shows both, leaf by leaf).
    """
    if not callable(false_fun) or not callable(true_fun):
        old = callable(false_fun) and len(operands) == 2 and callable(operands[1])
        if not old:
            check_functions("lax.cond", true_fun=true_fun, false_fun=false_fun)
        # The old form `cond(pred, x, f, y, g)`: f(x) or g(y).
        x, f, (y, g) = true_fun, false_fun, operands
        return cond(pred, lambda x, _: f(x), lambda _, y: g(y), x, y)
    operands = _operands(operands, operand)
    pred = _as_predicate(pred)
    if state.disable_jit and is_concrete(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    leaves, tree = tree_flatten(operands)
    avals = [language.get_aval(x) for x in leaves]
    bodies = [trace_body(f, tree, avals, "cond") for f in (true_fun, false_fun)]
    names = ("true_fun", "false_fun")
    check_branches("cond", names, (true_fun, false_fun), bodies)
    (true_program, false_program), consts = share_constants(bodies)
    index = shaping.convert_element_type(pred, np.int32)
    return _bind("cond", index, (false_program, true_program), consts, leaves, bodies)


def _type_of_array(value: Any) -> language.ShapedArray | None:
    """The type of an array or number; None of anything else."""
    try:
        aval = language.get_aval(value)
    except TypeError:
        return None
    return aval if isinstance(aval, language.ShapedArray) else None


def _as_predicate(pred: Any) -> Any:
    if pred is None:
        raise errors.type_error("cond predicate is None: give a boolean scalar.")
    if isinstance(pred, (list, tuple)):
        raise errors.type_error(
            f"Pred must be a scalar, got {pred} of type {type(pred)}."
        )
    aval = _type_of_array(pred)
    if aval is None:
        raise errors.type_error(
            f"Pred type must be either boolean or number, got {pred}."
        )
    if aval.shape:
        raise errors.type_error(
            f"Pred must be a scalar, got {pred} of shape {aval.shape}. To choose entry "
            "by entry use `jnp.where(pred, x, y)`."
        )
    if dtypes.issubdtype(aval.dtype, np.bool_):
        return pred
    kinds = (np.integer, np.floating)
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in kinds):
        raise errors.type_error(
            f"Pred type must be either boolean or number, got {aval.dtype}."
        )
    if isinstance(pred, (int, float, np.generic)):
        return pred != 0
    return elementwise.ne(pred, scalar_like(aval, 0))


@api_boundary
def switch(
    index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = _not_given
) -> Any:
    """`branches[index](*operands)`, chosen when the program runs.

    Args:
      index: an integer scalar; one out of bounds is clamped to the nearest branch.
      branches: functions of the operands that return equal trees of arrays of equal
        shapes and dtypes. All are traced, one runs.
      operands: arrays or trees of arrays.

    Returns:
      what the chosen function returns.

    Raises:
      TypeError: `index` is not an integer scalar, a branch is not a function, or
        results differ in tree, shape or dtype.
      ValueError: `branches` is empty.
    """
    if not isinstance(branches, Iterable):
        raise errors.type_error(f"lax.switch: branches must be a list, got {branches}.")
    branches = tuple(branches)
    for position, branch in enumerate(branches):
        check_functions("lax.switch", **{f"branches[{position}]": branch})
    operands = _operands(operands, operand)
    index = _as_index(index)
    if not branches:
        raise errors.value_error("lax.switch: the sequence of branches is empty.")
    if len(branches) == 1:
        return branches[0](*operands)
    index = shaping.convert_element_type(index, np.int32)
    last = np.array(len(branches) - 1, np.int32)
    index = clamping.clamp(np.array(0, np.int32), index, last)
    return switch_on(index, branches, operands)


def _as_index(index: Any) -> Any:
    aval = _type_of_array(index)
    if aval is None:
        raise errors.type_error(f"Index type must be an integer, got {index}.")
    if aval.shape:
        raise errors.type_error(
            f"Branch index must be scalar, got {index} of shape {aval.shape}."
        )
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise errors.type_error(
            f"Index type must be an integer, got {index} as {aval.dtype}"
        )
    return index


def switch_on(
    index: Any, branches: Sequence[Callable], operands: tuple, **params: Any
) -> Any:
    """`switch` for an index that is an int32 within bounds."""
    if state.disable_jit and is_concrete(index):
        return branches[int(index)](*operands)
    leaves, tree = tree_flatten(operands)
    avals = [language.get_aval(x) for x in leaves]
    bodies = [trace_body(f, tree, avals, "switch") for f in branches]
    for position, body in enumerate(bodies[1:], 1):
        names = ("branch 0", f"branch{position}")
        functions = (branches[0], branches[position])
        check_branches("switch", names, functions, (bodies[0], body))
    programs, consts = share_constants(bodies)
    return _bind("switch", index, programs, consts, leaves, bodies, **params)


def _bind(
    name: str,
    index: Any,
    programs: Sequence[language.ClosedJaxpr],
    consts: Sequence[Any],
    leaves: Sequence[Any],
    bodies: Sequence[Body],
    **params: Any,
) -> Any:
    """Bind the equation without outputs that every branch only passes through."""
    check_distinct_refs(name, leaves, consts)
    inputs = [*consts, *leaves]
    sources = _passed_on(programs)
    keep = [source is None for source in sources]
    programs = [partial_eval.prune_outputs(closed, keep) for closed in programs]
    check_effects(name, *programs)
    outputs = cond_p.bind(index, *inputs, branches=_alike(programs), **params)
    answers = iter(outputs)
    outputs = [
        next(answers) if source is None else casting.asarray(inputs[source])
        for source in sources
    ]
    return tree_unflatten(bodies[0].out_tree, outputs)


def _passed_on(programs: Sequence[language.ClosedJaxpr]) -> list[int | None]:
    """For each output, the input that it is in every program, or None."""
    return [
        places[0] if len(set(places)) == 1 else None
        for places in zip(*map(forwarded, programs))
    ]


def _alike(
    programs: Sequence[language.ClosedJaxpr],
) -> tuple[language.ClosedJaxpr, ...]:
    """Branches with the same effects: those of any of them."""
    if not any(closed.effects for closed in programs):
        return tuple(programs)
    every = _effects(programs)
    return tuple(
        with_effects(closed, with_inputs(every, closed.jaxpr.invars))
        for closed in programs
    )


def _effects(programs: Sequence[language.ClosedJaxpr]) -> frozenset:
    """The effects of any branch, those on inputs by position."""
    return frozenset().union(
        *(positional(closed.effects, closed.jaxpr.invars) for closed in programs)
    )


# ----------------------------------------------------------------------------------
# The primitive
# ----------------------------------------------------------------------------------

cond_p = body_primitive("cond")


@cond_p.def_effectful_abstract_eval
def _cond_type(index, *avals, branches: tuple, **_) -> tuple:
    if index.dtype != np.int32 or index.shape:
        raise TypeError(f"cond called with index of type {index} instead of int32[]")
    first = branches[0]
    for number, closed in enumerate(branches):
        if len(closed.in_avals) != len(avals):
            raise TypeError(
                f"cond called with {len(avals)} non-predicate operands, but branch "
                f"{number} takes {len(closed.in_avals)} inputs"
            )
        if not same_types(closed.in_avals, avals):
            raise TypeError(
                f"cond branch {number} takes input types {short(closed.in_avals)}, "
                f"called with operands of type {short(avals)}"
            )
        if not same_types(closed.out_avals, first.out_avals):
            raise TypeError(
                f"cond branches 0 and {number} have mismatching output types: "
                f"{short(first.out_avals)} vs {short(closed.out_avals)}"
            )
    behind_index = range(1, len(avals) + 1)
    outs = map(of_all, *(closed.out_avals for closed in branches))
    return list(outs), with_inputs(_effects(branches), behind_index)


@cond_p.def_lowering
def _cond_lowering(ctx, index, *operands, branches: tuple, **_) -> list[Any]:
    module_context = ctx.module_context
    effects = set().union(*(closed.effects for closed in branches))
    given = tokens.current(module_context, effects)
    types = [ctx.result_type(position) for position in range(len(ctx.avals_out))]
    types = [*tokens.types(effects), *types]
    case = hlo.stablehlo.CaseOp(types, index, len(branches))
    for region, closed in zip(case.regions, branches):
        inside = tokens.region(module_context, effects, given)
        with hlo.ir.InsertionPoint(region.blocks.append()), inside:
            results = ctx.lower_jaxpr(closed, *operands)
            hlo.stablehlo.return_([*tokens.last(module_context), *results])
    return tokens.update(module_context, effects, case.results)


@cond_p.def_jvp_rule
def _cond_jvp(primals, tangents, *, branches: tuple, **params) -> tuple[list, list]:
    nonzeros = [type(t) is not Zero for t in tangents[1:]]

    def step(closed: language.ClosedJaxpr, wanted: tuple) -> tuple:
        forward, nonzeros_out = autodiff.jvp_jaxpr(closed, nonzeros, wanted)
        return nonzeros_out, forward

    nonzeros_out, forward = agree(branches, step)
    given = where(nonzeros, tangents[1:])
    outputs = cond_p.bind(*primals, *given, branches=forward, **params)
    return autodiff.split_tangents(outputs, nonzeros_out)


class _Residuals:
    """One list of residuals for several branches, merged by type.

    Branches that save (x), (y) and (x, x), x and y being types, share the places
    x, y, x: the first uses 0, the second 1, the third 0 and 2.
    """

    def __init__(self, avals_of_branches: Sequence[Sequence[language.AbstractValue]]):
        places: dict[tuple, int] = {}
        self.indices: list[list[int]] = []
        for avals in avals_of_branches:
            seen: dict[Any, int] = {}
            own = []
            for aval in avals:
                count = seen[aval] = seen.get(aval, -1) + 1
                own.append(places.setdefault((aval, count), len(places)))
            self.indices.append(own)
        self.avals: tuple[Any, ...] = tuple(aval for aval, _ in places)

    def fill(self, programs: Sequence[language.ClosedJaxpr], num_outputs: int) -> tuple:
        """Programs that return their outputs and then all places."""
        return tuple(
            _filled(closed, num_outputs, self.avals, tuple(own))
            for closed, own in zip(programs, self.indices)
        )

    def read(self, programs: Sequence[language.ClosedJaxpr]) -> tuple:
        """Programs that take all places instead of only their own residuals."""
        result = []
        for closed, own in zip(programs, self.indices):
            places: list[int | None] = [None] * len(self.avals)
            for position, place in enumerate(own):
                places[place] = position
            result.append(
                with_leading_inputs(closed, len(own), tuple(places), self.avals)
            )
        return tuple(result)


@language.weakref_lru_cache
def _filled(
    closed: language.ClosedJaxpr, num_outputs: int, avals: tuple, own: tuple[int, ...]
) -> language.ClosedJaxpr:
    def fun(*args: Any) -> list[Any]:
        outputs = jaxpr_as_fun(closed)(*args)
        places = [broadcasting.empty_of(aval) for aval in avals]
        for place, value in zip(own, outputs[num_outputs:]):
            places[place] = value
        return [*outputs[:num_outputs], *places]

    return traced(fun, closed.in_avals, closed)


def _halves(
    branches: Sequence[language.ClosedJaxpr], parts: Sequence[tuple], num_outputs: int
) -> tuple[tuple, tuple]:
    """The two halves of branches that were split, with the same residuals between.

    `parts` has (first half, second half, places of residuals) for each branch. All
    residuals are results of the first half: the constants of a branch cannot be seen
    from outside.
    """
    first = [
        returning_constants(first, closed, places, num_outputs)
        for closed, (first, _, places) in zip(branches, parts)
    ]
    residuals = _Residuals([closed.out_avals[num_outputs:] for closed in first])
    return (
        residuals.fill(first, num_outputs),
        residuals.read([second for _, second, _ in parts]),
    )


def _cond_linearize(nonzeros, *primals, branches: tuple, **params) -> tuple:
    own = nonzeros[1:]
    nothing = (False,) * len(own)

    def step(closed: language.ClosedJaxpr, wanted: tuple) -> tuple:
        answer = autodiff.linearize_jaxpr(closed, own, wanted, nothing)
        primal, _, nonzeros_out, places, linear = answer
        return nonzeros_out, (primal, linear, places)

    nonzeros_out, parts = agree(branches, step)
    count = len(nonzeros_out)
    forward, linear = _halves(branches, parts, count)
    outputs = cond_p.bind(*primals, branches=forward, **params)
    avals = branches[0].out_avals

    def apply_linear(saved: Sequence[Any], *tangents: Any) -> list[Any]:
        given = where(nonzeros, tangents)
        answers = cond_p.bind(*saved, *given, branches=linear, **params)
        return autodiff.with_zeros(answers, nonzeros_out, avals)

    saved = [primals[0], *outputs[count:]]
    return outputs[:count], nonzeros_out, saved, apply_linear


cond_p.linearize = _cond_linearize


def _cond_partial_eval(trace, args, params) -> list[Any]:
    branches, rest_params = params["branches"], dict(params)
    del rest_params["branches"]
    index_unknown, *own = (trace.is_unknown(arg) for arg in args)
    if any(isinstance(e, RefEffect) for closed in branches for e in closed.effects):
        raise NotImplementedError(
            "State effect not supported in cond partial-eval. Return the new content "
            "from the branches, and write the ref after the cond."
        )
    if index_unknown:
        with language.set_current_trace(trace.unknown):
            return cond_p.bind(*args, **params)
    nothing = (False,) * own.count(False)

    def step(closed: language.ClosedJaxpr, wanted: tuple) -> tuple:
        answer = splitting.partial_eval_jaxpr(closed, tuple(own), wanted, nothing)
        known, rest, unknown_out, places = answer
        return unknown_out, (known, rest, places)

    unknown_out, parts = agree(branches, step)
    count = unknown_out.count(False)
    known, rest = _halves(branches, parts, count)
    index, *operands = args
    known_args, unknown_args = partition(own, operands)
    with language.set_current_trace(trace.known):
        outputs = cond_p.bind(index, *known_args, branches=known, **rest_params)
    with language.set_current_trace(trace.unknown):
        inputs = (index, *outputs[count:], *unknown_args)
        answers = cond_p.bind(*inputs, branches=rest, **rest_params)
    return merge(unknown_out, outputs[:count], answers)


cond_p.partial_eval = _cond_partial_eval


@cond_p.def_transpose
def _cond_transpose(cts, index, *args, branches: tuple, **params) -> None:
    pairs = [autodiff.transpose_jaxpr(closed, args, cts) for closed in branches]
    answered = any_of(own for _, own in pairs)
    avals = tuple(arg.aval for arg in args if isinstance(arg, Accumulator))
    transposed = tuple(_answering(*pair, avals, answered) for pair in pairs)
    values = autodiff.transposed_inputs(args)
    given = [ct for ct in cts if type(ct) is not Zero]
    branches = _alike(transposed)
    answers = cond_p.bind(index, *values, *given, branches=branches, **params)
    autodiff.accumulate(args, answered, answers)


@language.weakref_lru_cache
def _answering(
    transposed: language.ClosedJaxpr,
    own: tuple[bool, ...],
    avals: tuple[language.AbstractValue, ...],
    answers: tuple[bool, ...],
) -> language.ClosedJaxpr:
    """A transposed branch with a cotangent wherever any branch has one."""
    if own == answers:
        return transposed

    def fun(*args: Any) -> list[Any]:
        given = iter(jaxpr_as_fun(transposed)(*args))
        sums = [next(given) if flag else Zero(a) for a, flag in zip(avals, own)]
        sums = autodiff.instantiate_wanted(sums, answers)
        return [ct for ct in sums if type(ct) is not Zero]

    return traced(fun, transposed.in_avals, transposed)


@cond_p.def_batch
def _cond_batch(axis_data, args, dims, *, branches, **params) -> tuple[list, list]:
    if any(isinstance(e, RefEffect) for closed in branches for e in closed.effects):
        raise NotImplementedError(
            "State effect not supported in vmap-of-cond. Return the new content from "
            "the branches, and write the ref after the cond."
        )
    if any({io_effect, ordered_io_effect} & closed.effects for closed in branches):
        raise NotImplementedError(
            "IO effect not supported in vmap-of-cond: with an index for each example "
            "every branch runs. Call the callback after the cond, with what it gave."
        )
    if dims[0] is not None:
        return _select_branches(axis_data, args, dims, branches)
    mapped = [dim is not None for dim in dims[1:]]
    ops = mapped_at_front(args[1:], dims[1:])

    def step(closed: language.ClosedJaxpr, wanted: tuple) -> tuple:
        program, out = batched_leading(closed, axis_data, mapped, wanted or None)
        return out, program

    mapped_out, batched = agree(branches, step)
    out = cond_p.bind(args[0], *ops, branches=batched, **params)
    return out, [0 if flag else None for flag in mapped_out]


def _select_branches(
    axis_data: Any, args: Sequence[Any], dims: Sequence, branches: tuple
) -> tuple[list[Any], list[int | None]]:
    """Each example has its own index: run all branches and select.

    Where a branch is not chosen, its arguments carry no derivatives: a division by zero
    there must not spoil the result.
    """
    index, *ops = (batch_at_front(x, d, axis_data) for x, d in zip(args, dims))
    everything = [True] * len(ops)
    outputs = []
    for number, closed in enumerate(branches):
        wanted = [True] * len(closed.out_avals)
        program, _ = batched_leading(closed, axis_data, everything, wanted)
        chosen = elementwise.eq(index, scalar_like(language.get_aval(index), number))
        own = [_select(axis_data, chosen, ordering.stop_gradient(x), x) for x in ops]
        outputs.append(jaxpr_as_fun(program)(*own))
    out = [_select(axis_data, index, *cases) for cases in zip(*outputs)]
    return out, [0] * len(out)


def _select(axis_data: Any, *operands: Any) -> Any:
    """`select_n` with an index for each example of a batch."""
    return elementwise.select_batch(axis_data, operands, [0] * len(operands))[0]


def _cond_dce(used, eqn) -> language.JaxprEqn:
    def step(closed: language.ClosedJaxpr, wanted: tuple) -> tuple:
        smaller, needed = partial_eval.dce_closed_jaxpr(closed, used, wanted)
        return needed, smaller

    needed, branches = agree(eqn.params["branches"], step)
    invars = where([True, *needed], eqn.invars)
    return rewritten(eqn, invars, where(used, eqn.outvars), branches=branches)


cond_p.dce = _cond_dce


def _cond_partial_eval_custom(saveable, unknown, inst, eqn) -> tuple:
    branches = eqn.params["branches"]
    needed = [v for v in where_not(inst, eqn.invars) if isinstance(v, language.Var)]
    everything = [True] * len(eqn.outvars)
    index_unknown, *own = unknown
    if index_unknown:
        return None, eqn, everything, everything, needed

    def step(closed: language.ClosedJaxpr, wanted: tuple) -> tuple:
        split = rematerialize.partial_eval_jaxpr_custom(
            closed.jaxpr, own, [True] * len(own), wanted or False, True, saveable
        )
        known = language.ClosedJaxpr(split.known, closed.consts)
        staged = language.ClosedJaxpr(split.staged, closed.consts)
        return split.unknown_out, (known, staged, split.num_res)

    unknown_out, parts = agree(branches, step)
    known, staged, counts = zip(*parts)
    pairs = zip(staged, counts)
    residuals = _Residuals([closed.in_avals[:count] for closed, count in pairs])
    saved = [language.Var(aval) for aval in residuals.avals]
    eqn_known = rewritten(
        eqn,
        where_not(unknown, eqn.invars),
        [*where_not(unknown_out, eqn.outvars), *saved],
        branches=residuals.fill(known, unknown_out.count(False)),
    )
    index, *operands = eqn.invars
    eqn_staged = rewritten(
        eqn, [index, *saved, *operands], eqn.outvars, branches=residuals.read(staged)
    )
    return eqn_known, eqn_staged, list(unknown_out), everything, [*needed, *saved]


enter(split_rules, cond_p, _cond_partial_eval_custom)


def _cond_discharge(discharged, index, *args, branches, **params) -> tuple[list, list]:
    """The content of a ref that no branch changes bypasses the equation."""
    pure = [discharge.discharge_state(c, discharged[1:]) for c in branches]
    count = len(branches[0].out_avals)
    places = [*[None] * count, *_passed_on(pure)[count:]]
    keep = [place is None for place in places]
    smaller = tuple(partial_eval.prune_outputs(closed, keep) for closed in pure)
    answers = iter(cond_p.bind(index, *args, branches=smaller, **params))
    results = [next(answers) if place is None else args[place] for place in places]
    return discharge.split_contents(results, discharged)


enter(discharge_rules, cond_p, _cond_discharge)


def _cond_programs(params: dict[str, Any]) -> list[InnerProgram]:
    return [
        InnerProgram("cond branch", closed.jaxpr, range(1, len(closed.in_avals) + 1))
        for closed in params["branches"]
    ]


def _cond_in_python(run: Callable, args: list[Any], params: dict[str, Any]) -> Any:
    index, *operands = args
    branches = params["branches"]
    return run(branches[min(max(int(index), 0), len(branches) - 1)], operands)


enter(descriptions, cond_p, _cond_programs)
enter(in_python, cond_p, _cond_in_python)
