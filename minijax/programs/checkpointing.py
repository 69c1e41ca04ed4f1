"""checkpoint: less memory for a derivative, by computing values again.

The backward pass of a function needs values of the forward pass. Saved, they cost
memory: for a deep network, one activation per layer. `checkpoint(f)` saves only what
goes into `f`; when the backward pass comes to `f` it runs the forward computation
again.

In a program that is one equation, `remat2`, which carries the function's program. Its
derivative carries the program of values and tangents. The interesting rule is partial
evaluation, where the tangents are unknown: an ordinary equation would be computed now
and its residuals saved. Here `transforms/rematerialize.py` splits the program under
the *policy*: the results come out now, and what remains is again a `remat2` equation,
`differentiated`, which computes the values it needs from the inputs (and from the
residuals that the policy allows) before it computes with tangents. Transposed, it is a
`remat2` whose program does the first part, and then the transposed second part.

XLA would find that the same values are computed twice, keep the first ones, and so undo
everything: hence the inputs of a differentiated `remat2` go through an
`optimization_barrier`, unless `prevent_cse=False`. And a residual is rounded
(`reduce_precision`), so that both passes see the same number whatever precision XLA
fuses with.

In JAX: `jax/_src/ad_checkpoint.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.compile.jit_api import make_jaxpr
from minijax.core import (
    autodiff,
    batching,
    dtypes,
    errors,
    hlo,
    language,
    partial_eval,
    signatures,
    source_info,
)
from minijax.core.effects import remat_allowed_effects
from minijax.core.errors import api_boundary
from minijax.core.events import enter
from minijax.core.rules import Accumulator, Zero
from minijax.core.signatures import check_callable, check_functions, fun_name, wraps
from minijax.core.trees import tree_flatten, tree_unflatten
from minijax.primitives.shape import casting
from minijax.programs.calls import call_discharge, close_jaxpr, def_call, rewritten
from minijax.programs.control_flow.operands import merge
from minijax.programs.saving_policies import checkpoint_name as checkpoint_name
from minijax.programs.saving_policies import checkpoint_policies as checkpoint_policies
from minijax.programs.saving_policies import name_p, nothing_saveable
from minijax.support.tree_util import broadcast_prefix
from minijax.support.user_source import extend_name_stack, summarize
from minijax.transforms import differentiation, rematerialize, splitting
from minijax.transforms.rematerialize import Offloadable as Offloadable
from minijax.transforms.rematerialize import Recompute as Recompute
from minijax.transforms.rematerialize import Saveable as Saveable
from minijax.transforms.rematerialize import split_rules, where, where_not

# ----------------------------------------------------------------------------------
# checkpoint
# ----------------------------------------------------------------------------------


class _NotGiven:
    """The default of an argument that JAX has removed."""


_not_given = _NotGiven()


def checkpoint(
    fun: Callable,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: Any = _not_given,
) -> Callable:
    """`fun`, with values recomputed in the backward pass instead of saved.

    Args:
      fun: takes and returns trees of arrays.
      prevent_cse: whether XLA is kept from merging the two computations; not needed
        inside of `scan`. A tuple says so for each argument.
      policy: which values may be saved nevertheless: one of `checkpoint_policies`, or a
        function `(primitive, *avals, **params) -> bool`.
      static_argnums: positions of arguments that are passed on as they are.
      static_argnames: accepted, and without effect, as in JAX.
      concrete: removed; passing it raises NotImplementedError, as in JAX.

    Raises:
      TypeError: `prevent_cse` is not a bool.
      ValueError: `static_argnums` has a position that no argument has.
    """
    check_callable(fun, "checkpoint")
    if policy is not None:
        check_functions("checkpoint", policy=policy)
    if concrete is not _not_given:
        raise NotImplementedError(
            "The `concrete` option to `checkpoint` was removed in JAX v0.10.0. Say "
            "which arguments are static with `static_argnums`."
        )
    if isinstance(prevent_cse, Sequence):
        prevent_cse = tuple(prevent_cse)
    if not isinstance(prevent_cse, (tuple, bool)):
        raise errors.type_error(
            "prevent_cse must be a bool or tuple of bools, got "
            f"{type(prevent_cse).__name__}"
        )

    @api_boundary
    @wraps(fun)
    def fun_remat(*args: Any, **kwargs: Any) -> Any:
        positions = _static_positions(static_argnums, len(args))
        static = tuple((n, _Static(args[n])) for n in sorted(positions))
        dynamic = [x for n, x in enumerate(args) if n not in positions]
        leaves, in_tree = tree_flatten((tuple(dynamic), kwargs))
        in_avals = tuple(language.shaped_abstractify(leaf) for leaf in leaves)
        jaxpr, consts, out_tree = _trace(fun, static, in_tree, in_avals)
        prevented: bool | tuple[bool, ...] = prevent_cse  # type: ignore[assignment]
        if isinstance(prevent_cse, tuple):
            full = (tuple(dynamic), kwargs) if kwargs else tuple(dynamic)
            flags = broadcast_prefix(prevent_cse, full)
            prevented = (False,) * len(consts) + tuple(flags)
        params = {"jaxpr": jaxpr, "prevent_cse": prevented, "policy": policy}
        outputs = remat_p.bind(*consts, *leaves, **params, differentiated=False)
        return tree_unflatten(out_tree, outputs)

    return fun_remat


def remat(
    fun: Callable,
    *,
    prevent_cse: bool = True,
    policy: Callable | None = None,
    static_argnums: int | tuple[int, ...] = (),
    concrete: Any = _not_given,
) -> Callable:
    """Another name of `checkpoint`."""
    options: dict[str, Any] = {"policy": policy, "static_argnums": static_argnums}
    return checkpoint(fun, prevent_cse=prevent_cse, concrete=concrete, **options)


def _static_positions(static_argnums: Any, count: int) -> frozenset[int]:
    numbers = signatures.argnums_tuple(static_argnums, "static_argnums")
    if not all(-count <= n < count for n in numbers):
        raise errors.value_error(
            "the `static_argnums` argument to `checkpoint` / `remat` can only take "
            "integer values greater than or equal to `-len(args)` and less than "
            f"`len(args)`, but got {numbers}, while `len(args)` = {count}"
        )
    return frozenset(n % count for n in numbers)


class _Static:
    """A static argument: compared by value if it can be hashed, else by identity."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any):
        self.value = value
        try:
            hash(value)
            self.key = (type(value), value)
        except TypeError:
            self.key = (type(value), id(value))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Static) and self.key == other.key


def _trace(
    fun: Callable, static: tuple, in_tree: Any, in_avals: tuple
) -> tuple[language.Jaxpr, list[Any], Any]:
    """(program with its constants as first inputs, constants, tree of the result).

    One program for each kind of arguments: two calls then print as one `let`.
    """
    try:
        traced = _trace_cached(fun, static, in_tree, in_avals)
    except TypeError as error:
        if "weak reference" not in str(error) and "unhashable" not in str(error):
            raise
        return _trace_function(fun, static, in_tree, in_avals)
    if any(isinstance(const, language.Tracer) for const in traced[1]):
        # It closes over values of a transformation, which do not outlive it.
        return _trace_function(fun, static, in_tree, in_avals)
    return traced


def _trace_function(
    fun: Callable, static: tuple, in_tree: Any, in_avals: tuple
) -> tuple[language.Jaxpr, list[Any], Any]:
    out_trees: list[Any] = []
    by_place = {n: value.value for n, value in static}

    def flat(*leaves: Any) -> list[Any]:
        dynamic, kwargs = tree_unflatten(in_tree, leaves)
        rest = iter(dynamic)
        count = len(dynamic) + len(by_place)
        args = [by_place[n] if n in by_place else next(rest) for n in range(count)]
        outputs, out_tree = tree_flatten(fun(*args, **kwargs))
        signatures.check_outputs(outputs, out_tree, fun_name(fun), "checkpoint / remat")
        out_trees.append(out_tree)
        return outputs

    args_tree = in_tree.children()[0]
    info = signatures.lazy_debug_info(fun, args_tree, "checkpoint / remat")
    jaxpr, consts = partial_eval.trace_to_jaxpr(flat, in_avals, info)
    jaxpr.debug_info = signatures.with_result_paths(info, out_trees[0])
    signatures.check_program(jaxpr, [], [])
    return partial_eval.convert_constvars_jaxpr(jaxpr), consts, out_trees[0]


_trace_cached = language.weakref_lru_cache(_trace_function)


# ----------------------------------------------------------------------------------
# The primitive
# ----------------------------------------------------------------------------------

remat_p = language.register(language.Primitive("remat2", multiple_results=True))
def_call(remat_p, "jaxpr")
call_discharge(remat_p, "jaxpr")


@language.weakref_lru_cache
def _dce(jaxpr: language.Jaxpr, used) -> tuple[language.Jaxpr, list[bool]]:
    """`dce_jaxpr`, cached, so that equal checkpoints share one program."""
    return partial_eval.dce_jaxpr(jaxpr, used)


def _for_inputs(prevent_cse: bool | tuple[bool, ...], change: Callable) -> Any:
    """`prevent_cse` for other inputs: a tuple has a flag for each and changes too."""
    return prevent_cse if isinstance(prevent_cse, bool) else tuple(change(prevent_cse))


def _bind_changed(
    closed: language.ClosedJaxpr,
    kept: Sequence[bool],
    args: Any,
    new: Sequence[Any],
    **params,
) -> list[Any]:
    """Bind a program made from that of an equation with the arguments `args`.

    It takes its constants, those arguments that are `kept`, and the inputs `new`.
    """
    params["prevent_cse"] = _for_inputs(
        params["prevent_cse"],
        lambda flags: [
            *[False] * len(closed.consts),
            *where(kept, flags),
            *[True] * len(new),
        ],
    )
    params["jaxpr"] = partial_eval.convert_constvars_jaxpr(closed.jaxpr)
    return remat_p.bind(*closed.consts, *where(kept, args), *new, **params)


@remat_p.def_jvp_rule
def _remat_jvp(primals, tangents, **params) -> tuple[list, list]:
    nonzeros = [type(t) is not Zero for t in tangents]
    forward, nonzeros_out = autodiff.jvp_jaxpr(close_jaxpr(params["jaxpr"]), nonzeros)
    everything, given = [True] * len(primals), where(nonzeros, tangents)
    outputs = _bind_changed(forward, everything, primals, given, **params)
    return autodiff.split_tangents(outputs, nonzeros_out)


def _remat_partial_eval(trace, args, params) -> list[Any]:
    """Compute the known part now; the rest recomputes the values it needs."""
    jaxpr, policy = params["jaxpr"], params["policy"] or nothing_saveable
    bad = remat_allowed_effects.filter_not_in(jaxpr.effects)
    if bad:
        raise NotImplementedError(
            f"Effects not supported in partial-eval of `checkpoint`/`remat`: {bad}. "
            "Leave what has them out of the checkpointed function."
        )
    unknown = [trace.is_unknown(arg) for arg in args]
    split = rematerialize.partial_eval_jaxpr_custom(
        jaxpr, unknown, [True] * len(unknown), False, False, policy
    )
    # Of the staged program, only the unknown outputs are wanted.
    wanted = where(split.inst_out, split.unknown_out)
    rest, used = _dce(split.staged, tuple(wanted))
    used_res, used_args = used[: split.num_res], used[split.num_res :]
    num_known = len(split.known.outvars) - split.num_res
    known, used_known = _dce(split.known, (*[True] * num_known, *used_res))
    rounded = _insert_reduce_precision(known, sum(used_res))
    known_args = where(used_known, where_not(unknown, args))
    with language.set_current_trace(trace.known):
        outputs = language.eval_jaxpr(rounded, (), *known_args)
    known_out, residuals = outputs[:num_known], outputs[num_known:]
    staged_args = where(used_args, args)
    prevent_cse = _for_inputs(
        params["prevent_cse"],
        lambda flags: [*[True] * len(residuals), *where(used_args, flags)],
    )
    new_params = dict(params, jaxpr=rest, differentiated=True, prevent_cse=prevent_cse)
    with language.set_current_trace(trace.unknown):
        answers = remat_p.bind(*residuals, *staged_args, **new_params)
    return merge(split.unknown_out, known_out, answers)


remat_p.partial_eval = _remat_partial_eval


@language.weakref_lru_cache
def _insert_reduce_precision(jaxpr: language.Jaxpr, num_res: int) -> language.Jaxpr:
    """The program with those residuals rounded that its own equations also read."""
    residuals = jaxpr.outvars[len(jaxpr.outvars) - num_res :]
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, language.Var)}
    invars, eqns = list(jaxpr.invars), list(jaxpr.eqns)
    for var in dict.fromkeys(residuals):
        aval = var.aval
        if not isinstance(aval, language.ShapedArray) or var not in used:
            continue
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            continue
        info = dtypes.finfo(aval.dtype)
        bits = {"exponent_bits": info.nexp, "mantissa_bits": info.nmant}
        exact = language.Var(aval)
        where_now = source_info.current()
        round_p = casting.reduce_precision_p
        rounding = language.JaxprEqn(
            [exact], [var], round_p, bits, frozenset(), where_now
        )
        if var in invars:
            invars[invars.index(var)] = exact
            eqns.insert(0, rounding)
            continue
        place = next(i for i, eqn in enumerate(eqns) if var in eqn.outvars)
        maker = eqns[place]
        if maker.primitive is casting.reduce_precision_p and maker.params == bits:
            continue
        outvars = [exact if v is var else v for v in maker.outvars]
        eqns[place] = maker.replace(outvars=outvars)
        rounding.source_info = maker.source_info
        eqns.insert(place + 1, rounding)
    return jaxpr.replace(invars=invars, eqns=eqns)


def _remat_custom_rule(saveable, unknown, inst, eqn) -> tuple:
    """A checkpoint in a checkpoint: split in two under the policy of the outer one."""
    params = eqn.params
    split = rematerialize.partial_eval_jaxpr_custom(
        params["jaxpr"], unknown, inst, False, False, saveable
    )
    residuals = [language.Var(v.aval) for v in split.staged.invars[: split.num_res]]
    prevent_cse = params["prevent_cse"]
    known = rewritten(
        eqn,
        where_not(unknown, eqn.invars),
        [*where_not(split.unknown_out, eqn.outvars), *residuals],
        jaxpr=split.known,
        prevent_cse=_for_inputs(prevent_cse, lambda flags: where_not(unknown, flags)),
    )
    staged = rewritten(
        eqn,
        [*residuals, *where(inst, eqn.invars)],
        where(split.inst_out, eqn.outvars),
        jaxpr=split.staged,
        prevent_cse=_for_inputs(
            prevent_cse, lambda flags: [*[True] * split.num_res, *where(inst, flags)]
        ),
        differentiated=True,
    )
    needed = [v for v in where_not(inst, eqn.invars) if isinstance(v, language.Var)]
    return known, staged, split.unknown_out, split.inst_out, [*needed, *residuals]


enter(split_rules, remat_p, _remat_custom_rule)


@remat_p.def_transpose
def _remat_transpose(cts, *args, **params) -> None:
    linear = tuple(isinstance(arg, Accumulator) for arg in args)
    zero_cts = tuple(type(ct) is Zero for ct in cts)
    program, answered = _transpose(close_jaxpr(params["jaxpr"]), linear, zero_cts)
    values, given = [not flag for flag in linear], where_not(zero_cts, cts)
    answers = _bind_changed(program, values, args, given, **params)
    autodiff.accumulate(args, answered, answers)


@language.weakref_lru_cache
def _transpose(
    closed: language.ClosedJaxpr, linear: tuple[bool, ...], zero_cts: tuple[bool, ...]
) -> tuple[language.ClosedJaxpr, list[bool]]:
    """A program that recomputes the nonlinear part and transposes the linear part.

    The second result flags those linear inputs that it has a cotangent for.
    """
    answered: list[bool] = []
    num_values = len(linear) - sum(linear)

    def transposed(*args: Any) -> list[Any]:
        values, given = args[:num_values], iter(args[num_values:])
        known, rest, unknown_out, forwarded = splitting.partial_eval_jaxpr(
            closed, linear
        )
        with extend_name_stack("rematted_computation"):
            outputs = language.eval_jaxpr(known.jaxpr, known.consts, *values)
        num_known = len(unknown_out) - sum(unknown_out)
        residuals = partial_eval.fill_forwarded(
            forwarded, [*closed.consts, *values], outputs[num_known:]
        )
        all_cts = [
            Zero(aval.to_ct_aval()) if zero else next(given)
            for aval, zero in zip(closed.out_avals, zero_cts)
        ]
        inputs = [
            Accumulator(aval.to_ct_aval()) for aval in where(linear, closed.in_avals)
        ]
        autodiff.backward_pass(
            rest.jaxpr, rest.consts, [*residuals, *inputs], where(unknown_out, all_cts)
        )
        sums = [accumulator.freeze() for accumulator in inputs]
        answered.extend(type(ct) is not Zero for ct in sums)
        return [ct for ct in sums if type(ct) is not Zero]

    in_avals = where_not(linear, closed.in_avals)
    in_avals += [aval.to_ct_aval() for aval in where_not(zero_cts, closed.out_avals)]
    jaxpr, consts = partial_eval.trace_to_jaxpr(transposed, in_avals, closed.debug_info)
    return language.ClosedJaxpr(jaxpr, consts), answered


@remat_p.def_batch
def _remat_batch(axis_data, args, dims, **params) -> tuple:
    closed = close_jaxpr(params["jaxpr"])
    _, out_dims = batching.batch_jaxpr(closed, axis_data, dims)
    mapped = [dim is not None for dim in out_dims]
    batched, _ = batching.batch_jaxpr(closed, axis_data, dims, mapped)
    outputs = _bind_changed(batched, [True] * len(args), args, [], **params)
    return outputs, [0 if flag else None for flag in mapped]


def _remat_dce(used, eqn) -> language.JaxprEqn:
    jaxpr, needed = _dce(eqn.params["jaxpr"], tuple(used))
    prevent_cse = _for_inputs(
        eqn.params["prevent_cse"], lambda flags: where(needed, flags)
    )
    invars, outvars = where(needed, eqn.invars), where(used, eqn.outvars)
    return rewritten(eqn, invars, outvars, jaxpr=jaxpr, prevent_cse=prevent_cse)


remat_p.dce = _remat_dce


@remat_p.def_lowering
def _remat_lowering(ctx, *operands, jaxpr: language.Jaxpr, **params) -> list[Any]:
    """The program inline, behind a barrier if XLA must not merge it with its copy."""
    flags = params["prevent_cse"]
    if isinstance(flags, bool):
        flags = (flags,) * len(operands)
    values = list(operands)
    if params["differentiated"] and any(flags):
        behind = hlo.stablehlo.OptimizationBarrierOp(where(flags, operands))
        values = merge(flags, where_not(flags, operands), behind.results)
    return ctx.lower_jaxpr(close_jaxpr(jaxpr), *values)


# ----------------------------------------------------------------------------------
# What is saved
# ----------------------------------------------------------------------------------


def saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The values that the backward pass of `f` keeps from the forward pass.

    Returns pairs of a type and where the value comes from: an argument, a constant, or
    the line of the operation that computes it.
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    linear: list[language.Jaxpr] = []

    def residuals_of(*flat: Any) -> list[Any]:
        def call(*flat: Any) -> Any:
            args, kwargs = tree_unflatten(in_tree, flat)
            return f(*args, **kwargs)

        _, pullback = differentiation.vjp(call, *flat)
        linear.append(pullback.jaxpr)
        return tree_flatten(pullback)[0]

    jaxpr = make_jaxpr(residuals_of)(*leaves).jaxpr
    info = signatures.CallSignature(f)
    names = info.leaf_names(info.bind(args, kwargs))
    literals = _literals_of(linear[0])
    return [(v.aval, "from a literal") for v in literals] + _sources(jaxpr, names)


def _literals_of(jaxpr: language.Jaxpr) -> list[language.Literal]:
    """The scalars that a linear program multiplies with."""
    found = [
        atom
        for eqn in jaxpr.eqns
        for atom in eqn.invars
        if isinstance(atom, language.Literal)
    ]
    return list({id(atom.val): atom for atom in found}.values())


def _sources(jaxpr: language.Jaxpr, names: Sequence[str]) -> list[tuple[Any, str]]:
    # Of a rounded value, what it was rounded from.
    rounded = {
        eqn.outvars[0]: eqn.invars[0]
        for eqn in jaxpr.eqns
        if eqn.primitive is casting.reduce_precision_p
    }
    saved = {rounded.get(v, v) for v in jaxpr.outvars if isinstance(v, language.Var)}
    found: list[tuple[Any, str]] = [
        (v.aval, "from a literal")
        for v in jaxpr.outvars
        if isinstance(v, language.Literal)
    ]
    found += [(v.aval, "from a constant") for v in jaxpr.constvars if v in saved]
    found += [
        (v.aval, f"from the argument {name}")
        for v, name in zip(jaxpr.invars, names)
        if v in saved
    ]
    for eqn in jaxpr.eqns:
        place = summarize(eqn.source_info)
        for var in eqn.outvars:
            if var not in saved:
                continue
            if eqn.primitive is name_p:
                text = f"named '{eqn.params['name']}' from {place}"
            elif eqn.primitive.name == "jit":
                name = eqn.params["name"]
                text = f"output of jitted function '{name}' from {place}"
            else:
                text = f"output of {eqn.primitive} from {place}"
            found.append((var.aval, text))
    return found


def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Print what the backward pass of `f` keeps, one value a line."""
    for aval, source in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {source}")
