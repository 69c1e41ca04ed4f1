"""Explicit axes: the types of values say how these are cut over a mesh.

The type `f32[8@x,16]` says that mesh axis "x" cuts the first dimension. The cut of each
result follows from those of the operands (`cuts.py`), while the program is traced, or
is given (`out_sharding=`). Lowered, it is a sharding constraint on the result, so that
the compiled program does what the types say.

Rules and constraints are attached to all primitives when an Explicit mesh is first
used; programs without one do not see them.

In JAX: `lax/utils.py`, `call_sharding_rule`; `interpreters/mlir.py`,
`lower_with_sharding_in_types`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import dot, dtypes, errors, hlo, language, rules, shaping
from minijax.core.language import Primitive, ShapedArray, get_aval
from minijax.core.state import override, state
from minijax.programs.sharding import contexts, cuts
from minijax.programs.sharding.constraints import constrain
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.support.devices.shardings import (
    AbstractMesh,
    AxisType,
    DuplicateSpecError,
    NamedSharding,
    PartitionSpec,
    ShardingTypeError,
)

# The parameter in which a primitive is told how its result is to be cut.
_GIVEN = ("out_sharding", "sharding", "dst_sharding")

# Their types come from programs that they carry, or they are no arrays.
_OWN_TYPES = {
    *("call_exported", "closed_call", "cond", "custom_jvp_call", "custom_lin"),
    *("custom_linear_solve", "custom_vjp_call", "custom_vmap_call", "jit"),
    *("linear_call", "remat2", "remat_opt", "scan", "while", "run_state"),
    *("shard_map", "pallas_call", "reshard", "sharding_constraint", "pvary"),
    *("axis_index", "after_all", "create_token", "debug_callback", "debug_print"),
    *("ffi_call", "pure_callback", "io_callback", "check"),
    *("psum", "pmax", "pmin", "psum_invariant", "all_gather", "all_to_all"),
    *("ppermute", "reduce_scatter", "pbroadcast", "layout_constraint", "dce_sink"),
    *("get", "swap", "addupdate", "new_ref", "freeze", "free_ref", "empty_ref"),
    *("platform_index", "dim_as_value"),
}
# Programs that they carry are lowered equation by equation.
_NOT_CONSTRAINED = {"jit", "closed_call", "shard_map", "custom_jvp_call", "while"}
_NOT_CONSTRAINED |= {"reshard", "sharding_constraint"}


# ----------------------------------------------------------------------------------
# Cuts as part of a type
# ----------------------------------------------------------------------------------


def abstract(mesh: Any) -> AbstractMesh:
    """The axes of a mesh, without devices."""
    return mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh


def as_type(mesh: Any, cut: Sequence[Any]) -> NamedSharding | None:
    """The sharding in the type of a value; None for one that every device has.

    Auto axes are left out: types do not say what the compiler decides.
    """
    mesh = abstract(mesh)
    kinds = mesh._name_to_type
    parts: list[Any] = []
    for part in cut:
        if part is PartitionSpec.UNCONSTRAINED:
            part = None
        names = [n for n in cuts.axes_in(part) if kinds[n] is AxisType.Explicit]
        parts.append(tuple(names) or None)
    if not any(parts):
        return None
    return NamedSharding(mesh, PartitionSpec(*parts))


def typed(aval: Any, sharding: Any) -> Any:
    """The type of an array that lies as a sharding says."""
    if not isinstance(aval, ShapedArray):
        return aval
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh._any_axis_explicit:
        return aval if aval.sharding is None else aval.update(sharding=None)
    install()
    # Inside `auto_axes` the compiler decides, whatever the mesh of the array says.
    inside = state.abstract_mesh
    if inside is not None and inside.shape_tuple == mesh.shape_tuple:
        mesh = inside
    cut = (*sharding.spec.partitions, *(None,) * aval.ndim)[: aval.ndim]
    return aval.update(sharding=as_type(mesh, cut))


def full_spec(sharding: Any, aval: Any) -> Any:
    """On an Explicit mesh, the sharding with an entry for each dimension, as types."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh._any_axis_explicit:
        return sharding
    rank = getattr(aval, "ndim", 0)
    parts = (*sharding.spec.partitions, *(None,) * rank)[:rank]
    return sharding.update(spec=PartitionSpec(*parts))


def given_sharding(place: Any, what: str) -> NamedSharding:
    """What the user gave as `out_sharding`, on the axes of a mesh.

    Raises:
      ValueError: for a spec where no mesh is in use.
      TypeError: for what is no sharding by name.
    """
    if isinstance(place, PartitionSpec):
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise errors.value_error(
                "Using PartitionSpec when you are not under a mesh context is not "
                f"allowed: {what} got {place}. Pass a NamedSharding, or set the mesh: "
                "`with minijax.set_mesh(mesh):`."
            )
        return NamedSharding(mesh, place)
    if not isinstance(place, NamedSharding):
        raise errors.type_error(
            f"{what} takes a PartitionSpec or a NamedSharding, got {place!r} of type "
            f"{type(place).__name__}."
        )
    return NamedSharding(abstract(place.mesh), place.spec)


# ----------------------------------------------------------------------------------
# The types of results
# ----------------------------------------------------------------------------------


def _given(params: dict[str, Any]) -> Any:
    for name in _GIVEN:
        value = params.get(name)
        if isinstance(value, (NamedSharding, PartitionSpec)):
            return value
    return None


def _with_cuts(primitive: Primitive, rule: Callable) -> Callable:
    """A type rule whose results are cut as the operands or the parameters say."""

    @functools.wraps(rule)
    def type_rule(*avals: Any, **params: Any) -> tuple:
        answer, effects = rule(*avals, **params)
        if primitive.name == "device_put":
            return list(map(_moved_type, avals, params["devices"])), effects
        given = _given(params)
        cut = [a for a in avals if getattr(a, "sharding", None) is not None]
        if given is None and not cut:
            return answer, effects
        several = isinstance(answer, (list, tuple))
        outs = list(answer) if several else [answer]
        mesh = cut[0].sharding.mesh if cut else None
        other = next((a for a in cut if a.sharding.mesh is not mesh), None)
        if other is not None:
            raise errors.value_error(
                f"Mesh for all inputs should be equal. {primitive} got one mesh: "
                f"{mesh} and another mesh: {other.sharding.mesh}. Move one operand: "
                "`minijax.device_put(x, other.sharding)`."
            )
        if given is not None:
            given = given_sharding(given, str(primitive))
            found = [_checked(given, out, primitive) for out in outs]
        else:
            found = _computed(primitive, avals, params, outs, mesh)
        outs = [
            out.update(sharding=sharding) if isinstance(out, ShapedArray) else out
            for out, sharding in zip(outs, found, strict=True)
        ]
        return (outs if several else outs[0]), effects

    return type_rule


def _moved_type(aval: Any, place: Any) -> Any:
    """The type of a value that `device_put` moves."""
    if isinstance(place, PartitionSpec):
        place = given_sharding(place, "device_put")
    return aval if place is None else typed(aval, place)


def _computed(
    primitive: Primitive, avals: Any, params: Any, outs: list, mesh: Any
) -> list:
    rule = cuts.RULES.get(primitive.name)
    if rule is None:
        cuts.fail(
            f"sharding rule for {primitive} is not implemented; its operands are "
            f"{cuts.told(avals)}. Leave this operation to the compiler: "
            "`minijax.sharding.auto_axes(fun, out_sharding=...)`, or reshard the "
            "operands so that every device has all of them."
        )
    found = rule(avals, params, outs)
    try:
        return [as_type(mesh, cut) for cut in found]
    except DuplicateSpecError:
        plain = [out.update(sharding=None) for out in outs]
        texts = [_text(out, cut) for out, cut in zip(plain, found)]
        cuts.fail(
            f"{primitive} operation with inputs: {cuts.told(avals)} produces an "
            f"illegally sharded result: {', '.join(texts)}: one mesh axis would cut "
            "two dimensions. Reshard an operand, or give `out_sharding`."
        )


def _text(aval: Any, cut: Sequence[Any]) -> str:
    sizes = [
        str(size) if part is None else f"{size}@{part}"
        for size, part in zip(aval.shape, cut)
    ]
    name, _, _ = aval.str_short(short_dtypes=True).partition("[")
    return f"{name}[{','.join(sizes)}]"


def _checked(given: NamedSharding, out: Any, primitive: Primitive) -> Any:
    if given.spec.unreduced or given.spec.reduced:
        raise NotImplementedError(
            f"{primitive}: out_sharding={given.spec} with unreduced or reduced axes is "
            "not supported; reduce with `shard_map` and `lax.psum_scatter`."
        )
    given.check_compatible_aval(out.shape)
    given.shard_shape(out.shape)
    cut = (*given.spec.partitions, *(None,) * out.ndim)[: out.ndim]
    return as_type(given.mesh, cut)


# ----------------------------------------------------------------------------------
# Parameters in final form, and constraints in the lowered program
# ----------------------------------------------------------------------------------


def _resolving(primitive: Primitive, before: Callable | None) -> Callable:
    """`out_sharding=P("x")` becomes a sharding of the mesh in use."""

    def staging(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        for name in _GIVEN:
            place = params.get(name)
            abstracted = isinstance(place, NamedSharding) and place.mesh is abstract(
                place.mesh
            )
            if isinstance(place, (PartitionSpec, NamedSharding)) and not abstracted:
                final = given_sharding(place, str(primitive))
                return primitive.bind(*args, **{**params, name: final})
        return NotImplemented if before is None else before(trace, args, params)

    return staging


def _part(axis_data: Any) -> Any:
    """The mesh axes that cut the batch axis."""
    return None if axis_data.cut is None else axis_data.cut.spec.partitions[0]


def _with_batch(given: NamedSharding, rank: int, dim: int, part: Any) -> NamedSharding:
    """The cut of a rank-`rank` result that gets a batch axis at `dim`."""
    parts = (*given.spec.partitions, *(None,) * rank)[:rank]
    return given.update(spec=PartitionSpec(*parts[:dim], part, *parts[dim:]))


class _OnEveryDevice(NamedSharding):
    """The cut of a replicated value, where a rule has to be told of its mesh."""

    def permuted(self, order: Sequence[int]) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(*[None] * len(order)))


def _dot_general_transpose(ct: Any, x: Any, y: Any, **params: Any) -> list:
    """The cotangent of an operand that all devices have is summed over the mesh.

    Where the cotangent and the other operand are cut along what is contracted, the
    product would not know how its result is to be cut.
    """
    linear, other = (x, y) if rules.is_linear(x) else (y, x)
    cuts_of_both = (get_aval(ct).sharding, get_aval(other).sharding)
    mesh = next((cut.mesh for cut in cuts_of_both if cut is not None), None)
    if linear.aval.sharding is None and mesh is not None:
        place = _OnEveryDevice(mesh, PartitionSpec())
        told = rules.Accumulator(linear.aval.update(sharding=place))
        x, y = (told, y) if linear is x else (x, told)
    return _plain_dot_transpose(ct, x, y, **params)


def _dot_general_batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
    if params["out_sharding"] is None:
        return _plain_dot_batch(axis_data, args, dims, **params)
    given = given_sharding(params["out_sharding"], "dot_general")
    (left, right), (batch, _) = params["dimension_numbers"]
    ranks = tuple(get_aval(arg).ndim for arg in args)
    numbers, dim = dot._batched_numbers(ranks, tuple(dims), params["dimension_numbers"])
    mapped = sum(d is not None for d in dims)
    rank = sum(ranks) - mapped - len(left) - len(right) - len(batch)
    params["out_sharding"] = _with_batch(given, rank, dim, _part(axis_data))
    return dot.dot_general_p.bind(
        *args, **{**params, "dimension_numbers": numbers}
    ), dim


def _reshape_batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
    if params["sharding"] is None:
        return _plain_reshape_batch(axis_data, args, dims, **params)
    given = given_sharding(params["sharding"], "reshape")
    x = rules.moveaxis(args[0], dims[0], 0)
    order = params["dimensions"]
    order = None if order is None else (0, *(1 + d for d in order))
    sizes = params["new_sizes"]
    cut = _with_batch(given, len(sizes), 0, _part(axis_data))
    sizes = (axis_data.size, *sizes)
    return shaping.reshape(x, sizes, order, out_sharding=cut), 0


def _broadcast_batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
    if params["sharding"] is None:
        return _plain_broadcast_batch(axis_data, args, dims, **params)
    given = given_sharding(params["sharding"], "broadcast_in_dim")
    x = rules.moveaxis(args[0], dims[0], 0)
    shape = params["shape"]
    new = (0, *(1 + d for d in params["broadcast_dimensions"]))
    cut = _with_batch(given, len(shape), 0, _part(axis_data))
    shape = (axis_data.size, *shape)
    return shaping.broadcast_in_dim(x, shape, new, out_sharding=cut), 0


_plain_dot_transpose: Any = dot.dot_general_p.transpose
_plain_dot_batch: Any = dot.dot_general_p.batch
_plain_reshape_batch: Any = shaping.reshape_p.batch
_plain_broadcast_batch: Any = shaping.broadcast_in_dim_p.batch


def _constraining(rule: Callable, plain_operands: bool) -> Callable:
    """A lowering rule that says in the program how its results are cut."""

    @functools.wraps(rule)
    def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
        wanted = [getattr(aval, "sharding", None) for aval in ctx.avals_out]
        ins = [getattr(aval, "sharding", None) for aval in ctx.avals_in]
        mesh = next((s.mesh for s in (*wanted, *ins) if s is not None), None)
        if mesh is None:
            return rule(ctx, *operands, **params)
        if plain_operands:
            # What a rule traces by itself is the compiler's to cut.
            ctx = ctx.replace(
                avals_in=list(map(_plain, ctx.avals_in)),
                avals_out=list(map(_plain, ctx.avals_out)),
            )
        with override("lowering_explicit", True):
            results = rule(ctx, *operands, **params)
        single = isinstance(results, hlo.ir.Value)
        values = [results] if single else list(getattr(results, "results", results))
        marked = [
            _marked(value, aval, sharding, mesh)
            for value, aval, sharding in zip(values, ctx.avals_out, wanted)
        ]
        return marked[0] if single else marked

    return lower


def _plain(aval: Any) -> Any:
    cut = getattr(aval, "sharding", None) is not None
    return aval.update(sharding=None) if cut else aval


def _marked(value: Any, aval: Any, sharding: Any, mesh: Any) -> Any:
    if not isinstance(aval, ShapedArray) or not isinstance(value, hlo.ir.Value):
        return value
    if sharding is None:
        if not aval.ndim:
            return value
        sharding = NamedSharding(mesh, PartitionSpec())
    if mesh.auto_axes:
        parts = (*sharding.spec.partitions, *(None,) * aval.ndim)[: aval.ndim]
        free = [PartitionSpec.UNCONSTRAINED if p is None else p for p in parts]
        sharding = NamedSharding(mesh, PartitionSpec(*free))
    return constrain(value, sharding)


_plain_zeros_of: list[Callable] = []


def _zeros_of(aval: Any) -> Any:
    """Zeros of a type, cut as it says."""
    sharding = getattr(aval, "sharding", None)
    if sharding is None or dtypes.is_float0(aval.dtype):
        return _plain_zeros_of[0](aval)
    return rules.broadcast_in_dim_p.bind(
        rules.scalar_like(aval, 0),
        shape=aval.shape,
        broadcast_dimensions=(),
        sharding=sharding,
    )


_installed: list[bool] = []


def install() -> None:
    """Attach types and constraints to all primitives; the first Explicit mesh does."""
    if _installed:
        return
    _installed.append(True)
    _plain_zeros_of.append(rules.zeros_of)
    rules.zeros_of = _zeros_of
    dot.dot_general_p.transpose = _dot_general_transpose
    dot.dot_general_p.batch = _dot_general_batch
    shaping.reshape_p.batch = _reshape_batch
    shaping.broadcast_in_dim_p.batch = _broadcast_batch
    for name, primitive in list(language.all_primitives.items()):
        if name not in _OWN_TYPES and primitive.type_rule is not None:
            primitive.type_rule = _with_cuts(primitive, primitive.type_rule)
            primitive.staging = _resolving(primitive, primitive.staging)
        if name in _NOT_CONSTRAINED:
            continue
        for platform, rule in list(primitive.lowerings.items()):
            primitive.lowerings[platform] = _constraining(rule, name not in _OWN_TYPES)


contexts.when_explicit.append(install)

__all__ = ["ShardingTypeError", "as_type", "given_sharding", "install", "typed"]
