"""The equation of `shard_map`, and its rules.

It carries the program of one device. Each operand is cut by its spec, each result put
together by its spec: `P("x")` cuts the first axis along mesh axis "x", and a mesh axis
that a spec does not name holds copies.

In JAX: `jax/_src/shard_map.py`, `shard_map_p`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from minijax.compile import tokens
from minijax.core import arithmetic, autodiff, batching, language, partial_eval, shaping
from minijax.core import lowering as mlir
from minijax.core.dispatch import run_closed
from minijax.core.effects import of_equation, positional
from minijax.core.events import enter
from minijax.core.language import ClosedJaxpr, JaxprEqn, register, set_current_trace
from minijax.core.rules import Zero, scalar_like
from minijax.primitives.parallel import collectives, manual_lowering
from minijax.primitives.parallel.variation import words_of, words_over
from minijax.primitives.refs.mutable_arrays import even_unmapped
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.shape.squeezing import squeeze
from minijax.programs.control_flow.operands import merge
from minijax.programs.shard_map.plain_types import without_variation
from minijax.programs.shard_map.varying import manual_scope
from minijax.programs.sharding import explicit_types as explicit
from minijax.programs.sharding.cuts import axes_in, cut_of
from minijax.programs.sharding.unreduced import NONE
from minijax.support.devices.partition_spec import check_batch_axes
from minijax.support.devices.shardings import AxisType, NamedSharding, PartitionSpec
from minijax.transforms import discharge, rematerialize, splitting
from minijax.transforms.rematerialize import split_rules, where, where_not
from minijax.values.named_axes import NamedAxisEffect
from minijax.values.ref_avals import AbstractRef

shard_map_p = register(language.Primitive("shard_map", multiple_results=True))
shard_map_p.cache_types = False
Params = dict[str, Any]


def scope_of(params: Params) -> manual_scope:
    """The context in which the program of an equation is transformed."""
    axes, checked = params["newly_manual_axes"], params["check_vma"]
    return manual_scope(params["mesh"], axes, checked)


def with_specs(
    params: Params, closed: ClosedJaxpr, ins: Sequence[Any], outs: Sequence[Any]
) -> Params:
    """The parameters with another program in them."""
    new = {"jaxpr": closed, "in_specs": tuple(ins), "out_specs": tuple(outs)}
    return {**params, **new}


# ----------------------------------------------------------------------------------
# Types: whole arrays outside, parts inside
# ----------------------------------------------------------------------------------


def axes_of(spec: PartitionSpec) -> list:
    """The mesh axes that a spec names."""
    return [name for dimension in range(len(spec)) for name in spec.axes(dimension)]


def _scaled(aval: Any, spec: PartitionSpec, mesh: Any, grow: bool) -> tuple:
    sizes = dict(mesh.shape)
    shape = list(aval.shape)
    for dimension in range(len(spec)):
        count = math.prod(sizes[name] for name in spec.axes(dimension))
        size = shape[dimension]
        shape[dimension] = size * count if grow else size // count
    return tuple(shape)


def part_type(aval: Any, spec: Any, mesh: Any, checked: bool, manual: frozenset) -> Any:
    """The type of one device's part of an array."""
    vma = aval.vma | set(mesh.in_types(axes_of(spec))) if checked else frozenset()
    shape = _scaled(aval, spec, mesh, grow=False)
    inside = mesh.abstract_mesh.update_axis_types(
        dict.fromkeys(manual, AxisType.Manual)
    )
    words = words_of(aval) if checked else NONE
    sharding = explicit.as_type(inside, cut_of(aval), words)
    return aval.update(shape=shape, vma=vma, sharding=sharding)


def whole_type(aval: Any, spec: Any, mesh: Any, manual: frozenset) -> Any:
    """The type of the array of which each device has a part of type `aval`."""
    shape = _scaled(aval, spec, mesh, grow=True)
    parts = [(*spec.axes(d), *axes_in(part)) for d, part in enumerate(cut_of(aval))]
    words = words_over(aval, frozenset(mesh.axis_names) - manual, spec)
    sharding = explicit.as_type(mesh, parts, words)
    return aval.update(shape=shape, vma=aval.vma - manual, sharding=sharding)


@shard_map_p.def_effectful_abstract_eval
def _type(*avals, jaxpr: ClosedJaxpr, mesh, out_specs, newly_manual_axes, **_) -> tuple:
    outs = [
        whole_type(aval, spec, mesh, newly_manual_axes)
        for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)
    ]
    effects = positional(jaxpr.effects, jaxpr.jaxpr.invars)
    return outs, _seen_outside(effects, newly_manual_axes)


def _seen_outside(effects: Iterable[Any], manual: frozenset) -> frozenset:
    """The effects without those of the axes that are mapped over."""
    inside = {e for e in effects if isinstance(e, NamedAxisEffect) and e.name in manual}
    return frozenset(effects) - inside


@shard_map_p.def_impl
def _now(*args: Any, **params: Any) -> list:
    """A program for the mesh, whose results lie as `out_specs` says."""
    mesh, outs = params["mesh"], None
    if params["newly_manual_axes"] == frozenset(mesh.axis_names):
        outs = tuple(NamedSharding(mesh, spec) for spec in params["out_specs"])
    body = functools.partial(shard_map_p.bind, **params)
    traced = partial_eval.trace_to_jaxpr(body, list(map(language.get_aval, args)))
    closed = ClosedJaxpr(*traced)
    return run_closed(closed, args, "shard_map", None, False, (), outs)


# ----------------------------------------------------------------------------------
# Lowering
# ----------------------------------------------------------------------------------


@shard_map_p.def_lowering
def _lower(
    ctx, *operands, jaxpr, mesh, in_specs, out_specs, newly_manual_axes, **_
) -> list[Any]:
    module = ctx.module_context
    # The region sees nothing from outside: large constants are operands too.
    jaxpr = without_variation(jaxpr)
    large = mlir.free_constants(jaxpr)
    values = [ctx.constants[id(const)] for const in large]
    everywhere = PartitionSpec()
    axes = [name for name in mesh.axis_names if name in newly_manual_axes]
    manual = (*manual_lowering.current_axes(), *axes)

    calls = len(module.host_callbacks)
    kinds = tokens.ordered(jaxpr.effects)
    given = tokens.current(module, kinds)

    def write(arguments: Sequence[Any]) -> list[Any]:
        with (
            manual_lowering.mesh_being_lowered(mesh, manual),
            tokens.region(module, kinds, arguments) as rest,
        ):
            constants = {id(c): v for c, v in zip(large, rest)}
            consts = [mlir.constant_value(constants, const) for const in jaxpr.consts]
            operands = rest[len(large) :]
            results = mlir.lower_eqns(module, jaxpr.jaxpr, consts, operands, constants)
            return [*tokens.last(module), *results]

    specs = [*[everywhere] * len([*given, *large]), *in_specs]
    outs = [*[everywhere] * len(given), *out_specs]
    inputs = [*given, *values, *operands]
    if given and mesh.size == 1:  # of one part, XLA cannot cut a token
        return tokens.update(module, kinds, write(inputs))
    results = manual_lowering.manual_computation(
        inputs,
        [NamedSharding(mesh, spec) for spec in specs],
        [*tokens.types(kinds), *map(mlir.tensor_type, ctx.avals_out)],
        [NamedSharding(mesh, spec) for spec in outs],
        axes,
        write,
        [*(v.type for v in (*given, *values)), *map(mlir.tensor_type, jaxpr.in_avals)],
        open_dims=len(manual) < len(mesh.axis_names),
    )
    if len(manual) < len(mesh.axis_names) and len(module.host_callbacks) > calls:
        rest = [name for name in mesh.axis_names if name not in manual]
        raise NotImplementedError(
            "callbacks are only supported in a shard_map over all axes of its mesh; "
            f"the axes {rest} are left to the compiler. Leave out `axis_names`."
        )
    return tokens.update(module, kinds, results)


# ----------------------------------------------------------------------------------
# Derivatives
# ----------------------------------------------------------------------------------


@shard_map_p.def_jvp_rule
def _jvp(primals, tangents, **params) -> tuple:
    nonzeros = [type(t) is not Zero for t in tangents]
    with scope_of(params):
        closed, nonzeros_out = autodiff.jvp_jaxpr(params["jaxpr"], nonzeros)
    ins, outs = params["in_specs"], params["out_specs"]
    all_ins = [*ins, *where(nonzeros, ins)]
    all_outs = [*outs, *where(nonzeros_out, outs)]
    new = with_specs(params, closed, all_ins, all_outs)
    results = shard_map_p.bind(*primals, *where(nonzeros, tangents), **new)
    return autodiff.split_tangents(results, nonzeros_out)


def _residual_spec(aval: Any, params: Params) -> PartitionSpec:
    """The spec that concatenates a residual over the axes over which it varies."""
    manual = params["newly_manual_axes"]
    axes = aval.vma & manual if params["check_vma"] else manual
    names = tuple(name for name in params["mesh"].axis_names if name in axes)
    unreduced, reduced = words_over(aval, manual)
    parts = [names] if names else []
    return PartitionSpec(*parts, unreduced=unreduced, reduced=reduced)


def _linearize(nonzeros, *primals, **params) -> tuple:
    """Two shard_maps: the primal one, which also returns residuals, and the linear."""
    closed = params["jaxpr"]
    with scope_of(params):
        primal, num_new, nonzeros_out, forwarded, linear = autodiff.linearize_jaxpr(
            closed, tuple(nonzeros)
        )
        new = [at is None for at in forwarded]
        primal, linear, new_specs = _joined(primal, linear, new, params)
    ins, outs = params["in_specs"], params["out_specs"]
    primal_params = with_specs(params, primal, ins, [*new_specs, *outs])
    bound = shard_map_p.bind(*primals, **primal_params)
    new, results = bound[:num_new], bound[num_new:]
    residuals = partial_eval.fill_forwarded(forwarded, primals, new)
    specs = partial_eval.fill_forwarded(forwarded, ins, new_specs)
    linear_ins = [*specs, *where(nonzeros, ins)]
    linear_params = with_specs(params, linear, linear_ins, where(nonzeros_out, outs))
    out_avals = [language.get_aval(result) for result in results]

    def apply_linear(residuals: Sequence[Any], *tangents: Any) -> list[Any]:
        given = where(nonzeros, tangents)
        answers = shard_map_p.bind(*residuals, *given, **linear_params)
        return autodiff.with_zeros(answers, nonzeros_out, out_avals)

    return results, nonzeros_out, residuals, apply_linear


shard_map_p.linearize = _linearize


def _partial_eval(trace, args, params) -> list[Any]:
    """Split into a known and an unknown shard_map, with residuals between."""
    unknown = tuple(trace.is_unknown(arg) for arg in args)
    with scope_of(params):
        known, rest, unknown_out, forwarded = splitting.partial_eval_jaxpr(
            params["jaxpr"], unknown
        )
        new = [at is None for at in forwarded]
        known, rest, new_specs = _joined(known, rest, new, params)
        num_new = len(new_specs)
    ins, outs = params["in_specs"], params["out_specs"]
    known_args, known_specs = where_not(unknown, args), where_not(unknown, ins)
    out_specs = [*new_specs, *where_not(unknown_out, outs)]
    known_params = with_specs(params, known, known_specs, out_specs)
    with set_current_trace(trace.known):
        bound = shard_map_p.bind(*known_args, **known_params)
    residuals = partial_eval.fill_forwarded(forwarded, known_args, bound[:num_new])
    specs = partial_eval.fill_forwarded(forwarded, known_specs, new_specs)
    rest_ins = [*specs, *where(unknown, ins)]
    rest_params = with_specs(params, rest, rest_ins, where(unknown_out, outs))
    with set_current_trace(trace.unknown):
        given = [*residuals, *where(unknown, args)]
        answers = shard_map_p.bind(*given, **rest_params)
    return merge(unknown_out, bound[num_new:], answers)


shard_map_p.partial_eval = _partial_eval


def _partial_eval_custom(saveable, unknown, inst, eqn) -> tuple:
    """Split for `checkpoint`: what is saved, and what is computed again."""
    params, mesh = eqn.params, eqn.params["mesh"]
    manual = params["newly_manual_axes"]
    with scope_of(params):
        flags = tuple(unknown), tuple(inst)
        split = rematerialize.split_closed(params["jaxpr"], *flags, saveable)
        known, staged, unknown_out, inst_out, from_input, from_output = split
        new = [a is b is None for a, b in zip(from_input, from_output, strict=True)]
        known, staged, new_specs = _joined(known, staged, new, params)
    ins, outs = params["in_specs"], params["out_specs"]
    known_in, known_specs = where_not(unknown, eqn.invars), where_not(unknown, ins)
    known_out = where_not(unknown_out, eqn.outvars)
    known_out_specs = where_not(unknown_out, outs)
    pairs = zip(known.out_avals, new_specs)
    new_vars = [language.Var(whole_type(*pair, mesh, manual)) for pair in pairs]
    taken = list(zip(known_in, known_specs))
    given = list(zip(known_out, known_out_specs))
    fresh = iter(zip(new_vars, new_specs))
    saved, saved_specs = autodiff.unzip(
        given[b] if b is not None else next(fresh) if a is None else taken[a]
        for a, b in zip(from_input, from_output)
    )
    eqn_known = eqn.replace(
        invars=known_in,
        outvars=[*new_vars, *known_out],
        params=with_specs(params, known, known_specs, [*new_specs, *known_out_specs]),
    )
    staged_specs = [*saved_specs, *where(inst, ins)]
    eqn_staged = eqn.replace(
        invars=[*saved, *where(inst, eqn.invars)],
        outvars=where(inst_out, eqn.outvars),
        params=with_specs(params, staged, staged_specs, where(inst_out, outs)),
    )
    needed = (*where_not(inst, eqn.invars), *saved)
    residuals = [v for v in needed if isinstance(v, language.Var)]
    return eqn_known, eqn_staged, unknown_out, inst_out, residuals


enter(split_rules, shard_map_p, _partial_eval_custom)


def _joined(
    known: ClosedJaxpr, rest: ClosedJaxpr, new: Sequence[bool], params: Params
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[PartitionSpec]]:
    """Two programs with residuals from one to the other, and the residuals' specs.

    The first returns them last; `new` says which first inputs of the second they are.
    A residual that is a scalar on each device gets an axis, along which they stand.
    """
    count = len(known.out_avals) - sum(new)
    avals = known.out_avals[count:]
    specs = [_residual_spec(aval, params) for aval in avals]
    lifted = [not aval.shape and len(spec) > 0 for aval, spec in zip(avals, specs)]
    flags = iter(lifted)
    opened = [flag and next(flags) for flag in new]
    return _residuals_first(known, count, lifted), _with_scalars(rest, opened), specs


def _residuals_first(
    closed: ClosedJaxpr, count: int, lifted: Sequence[bool]
) -> ClosedJaxpr:
    """The program with its residuals first, scalars with an axis of size 1."""

    def program(*args: Any) -> list[Any]:
        results = language.eval_jaxpr(closed.jaxpr, closed.consts, *args)
        residuals = [
            shaping.broadcast_in_dim(one, (1,), ()) if lift else one
            for one, lift in zip(results[count:], lifted)
        ]
        return [*residuals, *results[:count]]

    return ClosedJaxpr(*partial_eval.trace_to_jaxpr(program, closed.in_avals))


def _with_scalars(closed: ClosedJaxpr, opened: Sequence[bool]) -> ClosedJaxpr:
    """The linear program; some residuals come with an axis of size 1."""
    if not any(opened):
        return closed
    flags = [*opened, *[False] * (len(closed.in_avals) - len(opened))]
    avals = [
        aval.update(shape=(1,)) if flag else aval
        for aval, flag in zip(closed.in_avals, flags)
    ]

    def program(*args: Any) -> list[Any]:
        given = [squeeze(arg, (0,)) if flag else arg for arg, flag in zip(args, flags)]
        return language.eval_jaxpr(closed.jaxpr, closed.consts, *given)

    return ClosedJaxpr(*partial_eval.trace_to_jaxpr(program, avals))


def _unnamed(spec: PartitionSpec, params: Params) -> tuple:
    """The manual axes along which a value with this spec is copied."""
    copied = params["newly_manual_axes"].difference(axes_of(spec), spec.unreduced)
    return tuple(name for name in params["mesh"].axis_names if name in copied)


@shard_map_p.def_transpose
def _transpose(cts, *args, **params) -> None:
    """A shard_map of the transposed program, from cotangents to cotangents.

    Where variation is not checked, nothing says whether the copies of a result are
    equal. Each then gets its share of the cotangent, and the cotangents of the copies
    of an operand are added up.
    """
    closed, checked = params["jaxpr"], params["check_vma"]
    ins, outs, mesh = params["in_specs"], params["out_specs"], params["mesh"]
    sizes = dict(mesh.shape)
    if any(type(aval) is AbstractRef for aval in closed.in_avals):
        raise NotImplementedError(
            "A shard_map that takes a ref has no derivative in reverse mode. Give it "
            "the array and return the new one, or make the ref inside."
        )
    linear = [autodiff.is_linear(arg) for arg in args]
    with scope_of(params):
        transposed, answered = autodiff.transpose_jaxpr(closed, args, cts)
        values = autodiff.transposed_inputs(args)
        answer_specs = where(answered, [s.dual() for s in where(linear, ins)])
        transposed = _cotangents_first(
            transposed,
            len(values),
            [() if checked else _unnamed(spec, params) for spec in answer_specs],
        )
    given, given_specs = [], []
    for ct, spec, aval in zip(cts, outs, closed.out_avals):
        if type(ct) is Zero:
            continue
        if checked and not {*mesh.in_types(axes_of(spec))} <= aval.vma:
            raise ValueError(
                f"a shard_map's result of type {aval.str_short()} has a cotangent that "
                f"varies over {axes_of(spec)}, as out_specs={spec}. Mark the result: "
                "`lax.pcast(x, axes, to='varying')`."
            )
        spec = spec.dual()
        copies = math.prod(sizes[name] for name in _unnamed(spec, params))
        if not checked and copies > 1:
            ct = arithmetic.div(ct, scalar_like(language.get_aval(ct), copies))
        given.append(ct)
        given_specs.append(spec)
    given_specs += where_not(linear, ins)
    new = with_specs(params, transposed, given_specs, answer_specs)
    autodiff.accumulate(args, answered, shard_map_p.bind(*given, *values, **new))


def _cotangents_first(
    closed: ClosedJaxpr, num_values: int, copies: Sequence[tuple]
) -> ClosedJaxpr:
    """The transposed program, with the cotangents as its first inputs."""
    avals = closed.in_avals
    num_cts = len(avals) - num_values

    def program(*args: Any) -> list[Any]:
        given = [*args[num_cts:], *args[:num_cts]]
        results = language.eval_jaxpr(closed.jaxpr, closed.consts, *given)
        return [
            collectives.psum(one, axes) if axes else one
            for one, axes in zip(results, copies, strict=True)
        ]

    cts_first = [*avals[num_values:], *avals[:num_values]]
    return ClosedJaxpr(*partial_eval.trace_to_jaxpr(program, cts_first))


# ----------------------------------------------------------------------------------
# vmap, and leaving out what is not needed
# ----------------------------------------------------------------------------------


@shard_map_p.def_batch
@even_unmapped
def _batch(axis_data, args, dims, **params) -> tuple:
    name = axis_data.spmd_name
    names = axes_in(name)
    for specs in ("in_specs", "out_specs"):
        check_batch_axes(name, params[specs], f"shard_map {specs}")
    if outside := {*names} - params["newly_manual_axes"]:
        if not outside <= {*params["mesh"].explicit_axes}:
            raise ValueError(
                f"vmap(spmd_axis_name={name!r}) of a shard_map that does not map over "
                f"{outside}. Add them to axis_names, or leave out spmd_axis_name."
            )
        name, names = None, ()  # the types say how these cut the batch
    count = math.prod(params["mesh"].shape[one] for one in names)
    part = dataclasses.replace(axis_data, size=axis_data.size // count, spmd_name=None)
    with scope_of(params):
        batched, out_dims = batching.batch_jaxpr(params["jaxpr"], part, dims)
        if names and params["check_vma"]:
            batched = _retyped(batched, dims, frozenset(names))
    ins = [s.inserted(dim, name) for s, dim in zip(params["in_specs"], dims)]
    outs = [s.inserted(dim, name) for s, dim in zip(params["out_specs"], out_dims)]
    return shard_map_p.bind(*args, **with_specs(params, batched, ins, outs)), out_dims


def _retyped(closed: ClosedJaxpr, dims: Sequence, axes: frozenset) -> ClosedJaxpr:
    """The program whose batched inputs vary over mesh axes, too."""
    avals = [
        aval if dim is None else aval.update(vma=aval.vma | axes)
        for aval, dim in zip(closed.in_avals, dims)
    ]
    program = functools.partial(language.eval_jaxpr, closed.jaxpr, closed.consts)
    return ClosedJaxpr(*partial_eval.trace_to_jaxpr(program, avals))


def _dce(used: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    params = eqn.params
    with scope_of(params):
        closed, kept = partial_eval.dce_closed_jaxpr(params["jaxpr"], used)
    ins, outs = params["in_specs"], params["out_specs"]
    new = with_specs(params, closed, where(kept, ins), where(used, outs))
    invars = where(kept, eqn.invars)
    manual = params["newly_manual_axes"]
    effects = _seen_outside(of_equation(closed.jaxpr, invars), manual)
    outvars = where(used, eqn.outvars)
    return eqn.replace(invars=invars, outvars=outvars, params=new, effects=effects)


shard_map_p.dce = _dce


def _discharge(discharged, *args, **params) -> tuple[list, list]:
    """The last content of a ref is put together as its argument is cut."""
    with scope_of(params):
        closed = discharge.discharge_state(params["jaxpr"], discharged)
    ins = params["in_specs"]
    outs = [*params["out_specs"], *where(discharged, ins)]
    results = shard_map_p.bind(*args, **with_specs(params, closed, ins, outs))
    return discharge.split_contents(results, discharged)


enter(discharge_rules, shard_map_p, _discharge)
