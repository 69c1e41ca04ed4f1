"""`reshard`, and functions that change the types of mesh axes: `auto_axes`.

In JAX: `jax/_src/pjit.py`, `reshard_p`, `auto_axes` and `explicit_axes`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import api, errors, language
from minijax.core.array import Array
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.rules import def_linear, instantiate
from minijax.core.state import state
from minijax.core.trees import tree_flatten
from minijax.primitives.parallel.variation import varied, words_in, words_over
from minijax.programs.sharding import contexts
from minijax.programs.sharding.constraints import constrain, refuse_empty
from minijax.programs.sharding.cuts import cut_along, cut_of
from minijax.programs.sharding.explicit_types import Cuts, as_type, full_spec
from minijax.programs.sharding.placement import put_on_several
from minijax.support.devices.shardings import (
    AxisType,
    ManualSharding,
    Mesh,
    NamedSharding,
    PartitionSpec,
)
from minijax.support.tree_util import map_with_prefix, tree_map

reshard_p = register(Primitive("reshard"))
reshard_p.meaning = lambda x, **_: x
reshard_p.cache_types = False
reshard_p.pretty = lambda params: {}


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The same arrays, cut over the mesh in another way; their types say so.

    Args:
      xs: a tree of arrays.
      out_shardings: a `PartitionSpec` for the mesh in use, or a `NamedSharding`, or a
        tree of these that is a prefix of `xs`.

    Raises:
      ValueError: for None, for a spec where no mesh is in use, and for a dimension
        that cannot be cut evenly.

    In JAX: `jax.sharding.reshard`.
    """
    return map_with_prefix(_resharded, xs, out_shardings)


def _resharded(x: Any, place: Any) -> Any:
    if place is None:
        raise errors.value_error(
            "Reshard should only be used with out_shardings which are non-None and "
            "have a non-empty mesh. Got sharding None."
        )
    sharding = Cuts().final(place, "reshard")
    refuse_empty(sharding, "reshard")
    aval = get_aval(x)
    if PartitionSpec.UNCONSTRAINED in sharding.spec.partitions:
        raise errors.value_error(
            f"reshard got {sharding.spec}: types say how each dimension is cut. Write "
            "None, or the axes."
        )
    try:
        sharding.shard_shape(aval.shape)
    except ValueError as error:
        raise errors.value_error(f"reshard: {error}") from None
    sharding = full_spec(sharding, aval)
    own, used = x._placed if type(x) is Array else None, contexts.mesh_in_use()
    here = isinstance(used, Mesh) and used.abstract_mesh == sharding.mesh
    if here and isinstance(own, NamedSharding):
        if own.mesh.abstract_mesh != sharding.mesh:
            return put_on_several(x, sharding.update(mesh=used))
    mesh = getattr(place, "mesh", None)
    concrete = mesh if isinstance(mesh, Mesh) else None
    return reshard_p.bind(x, dst_sharding=sharding, concrete_mesh=concrete)


@reshard_p.def_abstract_eval
def _reshard_type(x: ShapedArray, *, dst_sharding: Any, **_: Any) -> ShapedArray:
    mesh = dst_sharding.mesh
    words = words_over(x, frozenset(mesh.manual_axes), dst_sharding.spec)
    cut = cut_of(x.update(sharding=dst_sharding))
    return x.update(sharding=as_type(mesh, cut, words))


def _back(ct: Any, x: Any, **params: Any) -> list:
    """The cotangent, cut as `x` is; that of a value on no mesh stays as it is."""
    ct, cut = instantiate(ct), x.aval.cut
    cut = cut and cut.without_manual_words()
    if cut is None:
        return [ct]
    return [reshard_p.bind(ct, **{**params, "dst_sharding": cut})]


def_linear(reshard_p, _back)


@reshard_p.def_batch
def _reshard_batch(axis_data: Any, args: Sequence, dims: Sequence, **params) -> tuple:
    (x,), (dim,) = args, dims
    sharding = params["dst_sharding"]
    params["dst_sharding"] = sharding.with_batch_axis(dim, axis_data.cut)
    return reshard_p.bind(x, **params), dim


@reshard_p.def_lowering
def _reshard_lowering(ctx: Any, x: Any, *, dst_sharding: Any, **_: Any) -> Any:
    mesh = dst_sharding.mesh
    if dst_sharding.spec.unreduced:
        # Else the compiler takes the operand for addends, too.
        own = ctx.avals_in[0].cut or NamedSharding(mesh, PartitionSpec())
        x = constrain(x, own)
    explicit = mesh._any_axis_explicit
    return constrain(x, dst_sharding, bool(mesh.auto_axes)) if explicit else x


# ----------------------------------------------------------------------------------
# Who decides
# ----------------------------------------------------------------------------------


def _mesh_with(axes: Any, kind: AxisType, shardings: Any, what: str) -> tuple:
    """(the mesh in use, the same with some axes of another type); None without one."""
    mesh = contexts.get_abstract_mesh()
    for one in tree_flatten(shardings)[0]:
        if isinstance(one, NamedSharding):
            if not mesh.empty and one.mesh.abstract_mesh != mesh:
                raise errors.value_error(
                    f"{what}: the mesh in use is {mesh}, and a sharding names "
                    f"{one.mesh.abstract_mesh}. Use one mesh: `minijax.set_mesh(mesh)`."
                )
            mesh = one.mesh.abstract_mesh
    if mesh.empty:
        return None, None
    names = mesh.axis_names if axes is None else axes
    names = names if isinstance(names, tuple) else (names,)
    for name in names:
        if name not in mesh.axis_names:
            raise errors.value_error(
                f"{what}(axes={axes!r}): the mesh has no axis {name!r}, its axes are "
                f"{mesh.axis_names}."
            )
        if mesh._name_to_type[name] is AxisType.Manual:
            raise NotImplementedError(
                f"{what}: mesh axis {name!r} is Manual here, inside `shard_map`, where "
                "each device sees its own part only. Call it outside, or leave it out."
            )
    return mesh, mesh.update_axis_types(dict.fromkeys(names, kind))


def auto_axes(
    f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable:
    """`f`, for whose operations the compiler chooses the cuts.

    Args:
      f: a function of arrays. Without it, a decorator.
      axes: the mesh axes that become Auto inside; by default all.
      out_sharding: how the results are cut, a tree of specs that is a prefix of the
        result. If it is not given here, calls pass it as a keyword argument.

    Raises:
      TypeError: if `out_sharding` is given nowhere.
      ValueError: for an unknown axis.

    In JAX: `jax.sharding.auto_axes`.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    function = f

    @functools.wraps(function)
    def automatic(*args: Any, **kwargs: Any) -> Any:
        outs = _given_or_passed(out_sharding, "out_sharding", "results", kwargs)
        mesh, inner = _mesh_with(axes, AxisType.Auto, outs, "auto_axes")
        names = (axes,) if isinstance(axes, str) else axes
        if mesh is None or {*mesh.auto_axes} == {*(names or mesh.axis_names)}:
            return function(*args, **kwargs)
        with contexts.use_abstract_mesh(inner):
            args = _on_mesh(args, inner)
            results = function(*args, **kwargs)
        with contexts.use_abstract_mesh(mesh):
            return reshard(results, outs)

    return automatic


def _given_or_passed(given: Any, name: str, what: str, kwargs: dict) -> Any:
    """The argument of the decorator, or else the call's keyword argument."""
    if given is None and name not in kwargs:
        raise errors.type_error(
            f"Missing required keyword argument: '{name}'. It says how the {what} are "
            f"cut: write `{name}=P(...)`."
        )
    return kwargs.pop(name) if given is None else given


@api.first_cotangent.attach
def _first_cotangent(aval: Any) -> Any:
    """The cotangent 1. Where cotangents are addends, only one device's addend is 1."""
    one, cut = api.first_cotangent.default(aval), aval.to_ct_aval().cut
    if aval.vma and not state.auto_pcast:
        raise errors.value_error(
            f"grad of a value of type {aval.str_short()}: its cotangent must vary, and "
            "jax_auto_pcast is off. Use `vjp`, and `lax.pcast` the cotangent."
        )
    if not any(words_in(cut)):
        return varied(one, aval.vma)
    if isinstance(cut, ManualSharding):
        raise errors.value_error(
            f"grad of a value of type {aval.str_short()} in shard_map: cotangents are "
            "addends. `lax.pcast` it to 'varying', and add it up: `lax.psum`."
        )
    return reshard(one, cut)


def _on_mesh(values: Any, mesh: Any) -> Any:
    """The values with types of a mesh some of whose axes have become Auto."""

    def moved(leaf: Any) -> Any:
        aval = get_aval(leaf)
        if not isinstance(aval, ShapedArray):
            return leaf
        parts = cut_along(aval, mesh.explicit_axes)
        sharding = NamedSharding(mesh, PartitionSpec(*parts))
        return reshard_p.bind(leaf, dst_sharding=sharding, concrete_mesh=None)

    return tree_map(moved, values)


def explicit_axes(
    f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable:
    """`f`, for whose operations the types say how values are cut.

    Args:
      f: a function of arrays. Without it, a decorator.
      axes: the mesh axes that become Explicit inside; by default all.
      in_sharding: how the arguments are cut inside, a tree of specs that is a prefix of
        them. If it is not given here, calls pass it as a keyword argument.

    Raises:
      TypeError: if `in_sharding` is given nowhere.
      ValueError: for an unknown axis, or where no mesh is in use.

    In JAX: `jax.sharding.explicit_axes`.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    function = f

    @functools.wraps(function)
    def explicit(*args: Any, **kwargs: Any) -> Any:
        ins = _given_or_passed(in_sharding, "in_sharding", "arguments", kwargs)
        mesh, inner = _mesh_with(axes, AxisType.Explicit, None, "explicit_axes")
        if mesh is None:
            raise errors.value_error(
                "Context mesh cannot be empty. Please use `jax.set_mesh` API to enter "
                "into a mesh context when using `explicit_axes` API."
            )
        with contexts.use_abstract_mesh(inner):
            results = function(*reshard(args, ins), **kwargs)
        return _on_mesh(results, mesh)

    return explicit


def changes_type(value: Any, place: Any) -> bool:
    """Whether placing a value this way is a `reshard`, which changes its type.

    Otherwise it is `device_put`.
    """
    if isinstance(place, PartitionSpec):
        mesh = contexts.get_abstract_mesh()
        if not mesh.empty:
            Cuts().final(place, "out_sharding")
        return mesh._any_axis_explicit
    if not isinstance(place, NamedSharding) or not place.mesh._any_axis_explicit:
        return False
    traced = language.state.trace is not language.eval_trace
    return traced or not isinstance(place.mesh, Mesh)
