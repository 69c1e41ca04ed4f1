"""Explicit axes: the types of values say how these are cut over a mesh.

The type `f32[8@x,16]` says that mesh axis "x" cuts the first dimension. The cut of each
result follows from those of the operands (`cuts.py`), while the program is traced, or
is given (`out_sharding=`). Lowered, it is a sharding constraint on the result, so that
the compiled program does what the types say.

This is one of the core's extensions of types (`core.TypeExtension`), `Cuts`, which
`assembly.py` enters. Types without a cut pass it unchanged.

In JAX: `lax/utils.py`, `call_sharding_rule`; `interpreters/mlir.py`,
`lower_with_sharding_in_types`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import errors, hlo, lowering
from minijax.core.avals import aval_of_description
from minijax.core.events import enter
from minijax.core.language import (
    Jaxpr,
    Primitive,
    ShapedArray,
    TypeExtension,
    all_primitives,
    eval_trace,
)
from minijax.core.state import state
from minijax.programs.sharding import cuts, unreduced
from minijax.programs.sharding.constraints import constrain
from minijax.programs.sharding.contexts import get_abstract_mesh
from minijax.support.devices.mesh import AxisType, empty_abstract_mesh
from minijax.support.devices.shardings import (
    DuplicateSpecError,
    NamedSharding,
    PartitionSpec,
    sharding_in_type,
)
from minijax.values.ref_avals import ShapeDtypeStruct, struct_aval

# The parameter in which a primitive is told how its result is to be cut.
_GIVEN = ("out_sharding", "sharding", "dst_sharding")

# They say themselves how their results are cut, or their results are no arrays.
_OWN_TYPES = cuts.CARRYING | cuts.CASTING | cuts.EXCHANGING
_OWN_TYPES |= {
    *("reshard", "sharding_constraint", "layout_constraint", "dce_sink", "after_all"),
    *("create_token", "debug_callback", "debug_print", "ffi_call", "pure_callback"),
    *("io_callback", "check", "get", "swap", "addupdate", "new_ref", "freeze"),
    *("free_ref", "empty_ref", "inspect_sharding", "platform_index"),
    "dim_as_value",
}
# Their results lie on the mesh in use even if their operands lie on no mesh.
_IN_CONTEXT = {"broadcast_in_dim", "concatenate", "empty", "empty2", "gather", "iota"}
_IN_CONTEXT |= {"select_n", "stack", *(n for n in cuts.RULES if "scatter" in n)}
# Programs that they carry are lowered equation by equation.
_NOT_CONSTRAINED = {"jit", "closed_call", "shard_map", "custom_jvp_call", "while"}
_NOT_CONSTRAINED |= {"reshard", "sharding_constraint"}


# ----------------------------------------------------------------------------------
# Cuts as part of a type
# ----------------------------------------------------------------------------------


def as_type(
    mesh: Any, cut: Sequence[Any], words: unreduced.Words = unreduced.NONE
) -> NamedSharding | None:
    """The sharding in the type of a value on a mesh; None if all axes are Manual.

    Auto axes are left out: types do not say what the compiler decides. `words` are the
    axes over which the value is unreduced, and those over which it is reduced.

    Raises NotImplementedError for words where other axes are Auto or Manual.
    """
    mesh = mesh.abstract_mesh
    kinds = mesh._name_to_type
    parts: list[Any] = []
    for part in cut:
        if part is PartitionSpec.UNCONSTRAINED:
            part = None
        names = [n for n in cuts.axes_in(part) if kinds[n] is AxisType.Explicit]
        parts.append(mesh.in_types(names) or None)
    unreduced_, reduced = (frozenset(mesh.in_types(names)) for names in words)
    manual = unreduced_ | reduced <= {*mesh.manual_axes}
    if not manual and not mesh.are_all_axes_explicit:
        raise NotImplementedError(
            f"types that are unreduced or reduced need a mesh of Explicit axes, got "
            f"{mesh}. Make the others Explicit, or reshard to a spec without the words."
        )
    spec = PartitionSpec(*parts, unreduced=unreduced_, reduced=reduced)
    return sharding_in_type(mesh, spec)


def type_of(sharding: NamedSharding, rank: int) -> Any:
    """`as_type` of a sharding."""
    parts = (*sharding.spec.partitions, *(None,) * rank)[:rank]
    return as_type(sharding.mesh, parts, unreduced.words_in(sharding))


def typed(aval: Any, sharding: Any) -> Any:
    """The type of an array that lies as a sharding says."""
    if not isinstance(aval, ShapedArray):
        return aval
    mesh = getattr(sharding, "mesh", None)
    if mesh is None:
        return aval if aval.cut is None else aval.update(sharding=None)
    return aval.update(sharding=type_of(sharding, aval.ndim))


def _struct_aval(struct: ShapeDtypeStruct) -> Any:
    aval, kind = struct_aval(struct), struct.manual_axis_type
    if kind is None:
        return _moved(aval, struct.sharding)
    mesh = getattr(struct.sharding, "mesh", empty_abstract_mesh).abstract_mesh
    words = kind.unreduced, kind.reduced
    if not kind.varying.union(*words) <= {*mesh.manual_axes}:
        raise errors.value_error(
            f"{struct} names axes that are not Manual in its sharding. Inside of "
            "`shard_map`, give it `sharding=minijax.typeof(x).sharding`."
        )
    cut = as_type(mesh, struct.sharding.spec.partitions, words)
    return aval.update(vma=kind.varying, sharding=cut)


enter(aval_of_description, ShapeDtypeStruct, _struct_aval)


def full_spec(sharding: Any, aval: Any) -> Any:
    """On an Explicit mesh, the sharding with an entry for each dimension, as types."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh._any_axis_explicit:
        return sharding
    rank = getattr(aval, "ndim", 0)
    parts = (*sharding.spec.partitions, *(None,) * rank)[:rank]
    return sharding.update(spec=sharding.spec.update(partitions=parts))


def given_sharding(place: Any, what: str) -> NamedSharding:
    """The `out_sharding` that the user passed, on the axes of a mesh.

    Raises:
      ValueError: for a spec where no mesh is in use.
      TypeError: for a sharding that names no axes of a mesh.
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
    return type(place)(place.mesh.abstract_mesh, place.spec)


# ----------------------------------------------------------------------------------
# The types of results
# ----------------------------------------------------------------------------------


def _given(params: dict[str, Any]) -> NamedSharding | None:
    for name in _GIVEN:
        value = params.get(name)
        if isinstance(value, PartitionSpec) and any(value):
            raise errors.value_error(
                f"{name}={value} is not tied to a mesh, and an equation outlives the "
                f"mesh in use. Pass `NamedSharding(mesh, {value})`."
            )
        if isinstance(value, NamedSharding):
            return type(value)(value.mesh.abstract_mesh, value.spec)
    return None


class _Repeating(lowering.LoweringRuleContext):
    """Marks also what is repeated for an elementwise operation, as its result."""

    mark: Callable = staticmethod(lambda value: value)  # of a copy for another rule

    def broadcast_to(self, operand: Any, aval: Any, shape: Any) -> Any:
        result = super().broadcast_to(operand, aval, shape)
        return result if result is operand else self.mark(result)


class Cuts(TypeExtension):
    """Types that say how a value is cut over the Explicit axes of a mesh."""

    def result(self, primitive: Primitive, avals: Any, params: Any, out: Any) -> Any:
        """The results, cut as the parameters or the operands say (`cuts.py`)."""
        if primitive.name == "device_put":
            if any(getattr(a, "vma", None) for a in avals):
                _check_stays(params["devices"])
            return list(map(_moved, out, params["devices"]))
        if primitive.name in _OWN_TYPES or not _is_known(primitive):
            unreduced.refuse_unless_own(primitive.name, avals)
            return out
        given = _given(params)
        mesh = _one_mesh(primitive, avals)
        typed_ = mesh._any_axis_explicit or unreduced.has_words(avals)
        if given is None and not typed_:
            return _on_mesh(out, mesh)
        several = isinstance(out, (list, tuple))
        outs = list(out) if several else [out]
        if given is not None:
            words = unreduced.words_of_results(primitive.name, avals, params, given)
            found = [_checked(given, one, words) for one in outs]
        else:
            found = _computed(primitive, avals, params, outs, mesh)
        outs = [
            one.update(sharding=sharding) if isinstance(one, ShapedArray) else one
            for one, sharding in zip(outs, found, strict=True)
        ]
        return outs if several else outs[0]

    def final(self, place: Any, name: str) -> Any:
        """A spec alone means the mesh in use; types have the axes without devices.

        Outside of programs, with no mesh in use, a sharding names devices to run on.

        Raises ValueError for mesh axes that types do not show, or of another mesh.
        """
        if place is None:
            return None
        given, used = given_sharding(place, name), get_abstract_mesh()
        automatic = used.are_all_axes_auto and given.mesh.are_all_axes_auto
        moving = name == "reshard" and not used.manual_axes
        if not (used.empty or used == given.mesh or automatic or moving):
            raise errors.value_error(
                f"The mesh in use, {used}, should match the mesh of {place}, which "
                f"{name} got. Set that one: `with minijax.set_mesh(mesh):`."
            )
        kinds = given.mesh._name_to_type
        named = [axis for part in given.spec.partitions for axis in cuts.axes_in(part)]
        shown = (AxisType.Explicit, None)  # None: not an axis, but UNCONSTRAINED
        hidden = [axis for axis in named if kinds.get(axis) not in shown]
        if hidden:
            raise errors.value_error(
                f"PartitionSpec passed to {name} cannot contain axis names that are of "
                f"type Auto or Manual. Got {given.spec}, of which {hidden} are not "
                "Explicit. Use `lax.with_sharding_constraint` for Auto axes."
            )
        return place if used.empty and state.trace is eval_trace else given

    def lowers(self, jaxpr: Jaxpr) -> bool:
        """Whether a value of the program is cut."""
        made = (v for eqn in jaxpr.eqns for v in eqn.outvars)
        variables = (*jaxpr.constvars, *jaxpr.invars, *made)
        cuts_ = (getattr(v.aval, "cut", None) for v in variables)
        return any(cut is not None and cut.mesh._any_axis_explicit for cut in cuts_)

    def lower(self, rule: Callable, ctx: Any, *operands: Any, **params: Any) -> Any:
        """Writes into the program how the results of an equation are cut."""
        name = ctx.primitive.name
        wanted = [getattr(aval, "cut", None) for aval in ctx.avals_out]
        ins = [getattr(aval, "cut", None) for aval in ctx.avals_in]
        mesh = next((s.mesh for s in (*wanted, *ins) if s is not None), None)
        if mesh is None or name in _NOT_CONSTRAINED:
            return rule(ctx, *operands, **params)
        if len(operands) > 1 and name in cuts.ELEMENTWISE:
            # Operands of the result's shape get its cut first.
            pairs, out = zip(operands, ctx.avals_in), ctx.avals_out[0]
            operands = tuple(_aligned(x, a, out, mesh) for x, a in pairs)
        if name not in _OWN_TYPES:
            # The compiler chooses the cuts of what a rule traces.
            types, module = ctx.avals_out, ctx.module_context
            ins, outs = (list(map(_plain, a)) for a in (ctx.avals_in, ctx.avals_out))
            ctx = _Repeating(module, ctx.primitive, ins, outs, ctx.constants)
            ctx.mark = lambda value: _marked(value, types[0], wanted[0], mesh)
        results = rule(ctx, *operands, **params)
        single = isinstance(results, hlo.ir.Value)
        values = [results] if single else list(getattr(results, "results", results))
        each = zip(values, ctx.avals_out, wanted)
        marked = [_marked(*one, mesh) for one in each]
        return marked[0] if single else marked


def _check_stays(places: Sequence[Any]) -> None:
    """ValueError for shardings by name, of values that vary inside `shard_map`."""
    if any(isinstance(place, NamedSharding) for place in places):
        raise errors.value_error(
            f"device_put inside of shard_map got {list(places)}, and a value there is "
            "one device's part. Move the whole array, before or after shard_map."
        )


def _one_mesh(primitive: Primitive, avals: Any) -> Any:
    """The mesh of the results: that of the operands, or for some the one in use.

    Raises ValueError for operands on two meshes, or on another than the one in use, of
    which one has Explicit axes. In JAX: `core.py`, `check_avals_context_mesh`.
    """
    used = empty_abstract_mesh if state.manual_mesh else get_abstract_mesh()
    found = empty_abstract_mesh
    # An equation that is transformed was checked against its mesh when written.
    context = used if state.user_traceback is None else found
    for aval in avals:
        mesh = getattr(aval, "cut", None) and aval.cut.mesh
        if mesh is None:
            continue
        for other in (context, found):
            alike = other.empty or other is mesh or mesh.manual_axes
            if not (alike or (other.are_all_axes_auto and mesh.are_all_axes_auto)):
                raise errors.value_error(
                    "Mesh for all inputs should be equal to the context mesh. "
                    f"{primitive} got one mesh: {other} and another mesh: {mesh} for "
                    f"shape {aval.str_short()}. Move the array: "
                    "`minijax.device_put(x, NamedSharding(mesh, spec))`."
                )
        found = mesh
    name = primitive.name
    several = len(avals) > 1 and name in cuts.ELEMENTWISE
    return used if found.empty and (several or name in _IN_CONTEXT) else found


def _on_mesh(out: Any, mesh: Any) -> Any:
    if mesh.empty or mesh.are_all_axes_manual:
        return out
    if isinstance(out, (list, tuple)):
        return [_on_mesh(one, mesh) for one in out]
    is_array = isinstance(out, ShapedArray)
    return out.update(sharding=as_type(mesh, (None,) * out.ndim)) if is_array else out


def _moved(aval: Any, place: Any) -> Any:
    """The type of a value with a sharding.

    Raises IndivisibleError (a ValueError) if a dimension cannot be cut evenly.
    """
    if isinstance(place, NamedSharding):
        place.shard_shape(aval.shape)
    return aval if place is None else typed(aval, place)


def _is_known(primitive: Primitive) -> bool:
    """Whether a primitive is minijax's; a user's primitive states its types itself."""
    return all_primitives.get(primitive.name) is primitive


def _computed(
    primitive: Primitive, avals: Any, params: Any, outs: list, mesh: Any
) -> list:
    rule = cuts.RULES.get(primitive.name)
    words = unreduced.words_of_results(primitive.name, avals, params, None)
    if rule is None and not any(any(cuts.cut_of(aval)) for aval in avals):
        return [as_type(mesh, cuts.whole(getattr(out, "ndim", 0))) for out in outs]
    if rule is None:
        cuts.fail(
            f"sharding rule for {primitive} is not implemented; its operands are "
            f"{cuts.told(avals)}. Leave this operation to the compiler: "
            "`minijax.sharding.auto_axes(fun, out_sharding=...)`, or reshard the "
            "operands so that every device has all of them."
        )
    found = rule(avals, params, outs)
    try:
        return [as_type(mesh, cut, words) for cut in found]
    except DuplicateSpecError:
        cuts.fail(
            f"{primitive} operation with inputs: {cuts.told(avals)} produces an "
            f"illegally sharded result, cut as {', '.join(map(str, found))}: one mesh "
            "axis would cut two dimensions. Reshard an operand, or give `out_sharding`."
        )


def _checked(given: NamedSharding, out: Any, words: unreduced.Words) -> Any:
    given.check_compatible_aval(out.shape)
    given.shard_shape(out.shape)
    return type_of(given.update(spec=given.spec.update(None, *words)), out.ndim)


def _plain(aval: Any) -> Any:
    cut = getattr(aval, "cut", None) is not None
    return aval.update(sharding=None) if cut else aval


def _aligned(value: Any, aval: Any, out: Any, mesh: Any) -> Any:
    """An operand with the cut of the result, if their shapes are equal."""
    other = aval.shape == out.shape and cuts.cut_of(aval) != cuts.cut_of(out)
    return _marked(value, out, out.cut, mesh) if other else value


def _marked(value: Any, aval: Any, sharding: Any, mesh: Any) -> Any:
    if not isinstance(aval, ShapedArray) or not isinstance(value, hlo.ir.Value):
        return value
    sharding = sharding or NamedSharding(mesh, PartitionSpec())
    return constrain(value, sharding, bool(mesh.auto_axes))
