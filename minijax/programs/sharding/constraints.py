"""with_sharding_constraint: how a value in the middle of a program is cut.

In JAX: `jax/_src/pjit.py`, `sharding_constraint_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import errors, hlo, language
from minijax.core.language import Primitive, get_aval, register
from minijax.core.rules import def_linear, instantiate
from minijax.core.state import state
from minijax.core.trees import tree_flatten
from minijax.programs.sharding.contexts import (
    get_abstract_mesh,
    mesh_of_constraints,
    sharding_of,
)
from minijax.programs.sharding.cuts import cut_in_type, spec_along
from minijax.support.devices.mesh import AbstractMesh, entered_mesh
from minijax.support.devices.partition_spec import check_batch_axes
from minijax.support.devices.shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    sdy_sharding,
)
from minijax.support.tree_util import map_with_prefix

sharding_constraint_p = register(Primitive("sharding_constraint"))
sharding_constraint_p.meaning = lambda x, **_: x


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The same arrays, cut over the devices as the shardings say.

    Inside `jit` it tells the compiler how a value is cut; outside it moves the arrays.

    Args:
      x: a tree of arrays.
      shardings: a sharding, or a `PartitionSpec` for the mesh in use, or a tree of
        these that is a prefix of `x`. A dimension whose entry is
        `PartitionSpec.UNCONSTRAINED` is left to the compiler.

    Raises:
      ValueError: if an array has fewer dimensions than its spec.
      RuntimeError: for a `PartitionSpec` where no mesh is in use.

    In JAX: `jax.lax.with_sharding_constraint`.
    """
    for place in tree_flatten(shardings)[0]:
        if not isinstance(place, (Sharding, PartitionSpec)):
            raise errors.type_error(
                "with_sharding_constraint takes shardings and PartitionSpecs, got "
                f"{place!r} of type {type(place).__name__}. For a layout there is "
                "`minijax.experimental.layout.with_layout_constraint(x, layout)`."
            )
    return map_with_prefix(_constrained, x, shardings)


def _constrained(x: Any, place: Any) -> Any:
    if place is None:
        return x
    sharding = sharding_of(place, "with_sharding_constraint", mesh_of_constraints())
    aval = get_aval(x)
    mesh, free = get_abstract_mesh(), frozenset[int]()
    if isinstance(sharding, NamedSharding):
        try:
            sharding.check_compatible_aval(aval.shape)
        except ValueError as error:
            raise errors.value_error(
                "One of with_sharding_constraint arguments is incompatible with its "
                f"sharding annotation {sharding}: {error} Shorten the spec."
            ) from None
        unknown, parts = PartitionSpec.UNCONSTRAINED, sharding.spec.partitions
        free = frozenset(axis for axis, part in enumerate(parts) if part is unknown)
        refuse_empty(sharding, "with_sharding_constraint")
        if sharding.spec.unreduced or sharding.spec.reduced:
            raise errors.value_error(
                f"with_sharding_constraint got {sharding.spec}: it cannot make a value "
                "unreduced or reduced. Use `minijax.sharding.reshard`."
            )
        check_not_manual(sharding, "with_sharding_constraint")
        if state.trace is language.eval_trace:
            sharding.shard_shape(aval.shape)
        if mesh.are_all_axes_explicit and not mesh.empty:
            _check_same(aval, sharding)
            return x
        _check_auto(sharding)
        bare = isinstance(place, PartitionSpec) and not mesh.empty
        if state.trace is language.eval_trace and hasattr(x, "sharding"):
            if bare or isinstance(sharding.mesh, AbstractMesh):
                _check_lies_on(x.sharding, sharding)
    return sharding_constraint_p.bind(
        x,
        sharding=sharding,
        layout=None,
        context_mesh=entered_mesh() if mesh.empty else mesh,
        unconstrained_dims=free,
    )


def refuse_empty(sharding: Any, what: str) -> None:
    """ValueError for a sharding over a mesh of no devices."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.empty:
        raise errors.value_error(
            f"{what} got {sharding}, whose mesh is empty. Give a mesh with axes."
        )


def check_not_manual(sharding: Any, what: str) -> None:
    """ValueError for axes that cut nothing inside of a `shard_map` around this place.

    These are the ones over which it maps, and those of another mesh.
    """
    if state.manual_mesh is None or not isinstance(sharding, NamedSharding):
        return
    mesh, manual = state.manual_mesh
    named = {*sharding._used_axes()}
    if not named.isdisjoint(manual) or not named <= {*mesh.axis_names}:
        raise errors.value_error(
            f"{what} names the axes {sorted(map(str, named))} in a shard_map or pmap "
            f"over {sorted(map(str, manual))}, where a value is one device's part. "
            "Leave these axes out of the spec."
        )


def _check_auto(sharding: NamedSharding) -> None:
    """ValueError for axes that the compiler does not cut by itself."""
    auto = sharding.mesh.auto_axes
    if not {*sharding._used_axes()} <= {*auto}:
        raise errors.value_error(
            "The spec of NamedSharding passed to with_sharding_constraint can only "
            f"refer to Auto axes of the mesh. Got spec={sharding.spec} and mesh="
            f"{sharding.mesh}, of which {auto} are Auto. For others there is "
            "`minijax.sharding.reshard`."
        )


def _check_lies_on(own: Any, sharding: NamedSharding) -> None:
    """An error for an array elsewhere than on a mesh with the sharding's axes."""
    mesh = sharding.mesh.shape_tuple
    named = isinstance(own, NamedSharding)
    if not named or own.mesh.shape_tuple != mesh:
        wrong = errors.value_error if named else errors.type_error
        raise wrong(
            f"with_sharding_constraint got {sharding.spec} for the mesh {mesh}, "
            f"and the array lies elsewhere: {own}. Give a sharding with devices, or "
            "move the array there by `minijax.device_put`."
        )


def _check_same(aval: Any, sharding: NamedSharding) -> None:
    """AssertionError unless the type is cut as the constraint demands."""
    told = spec_along(aval, frozenset(sharding.mesh.axis_names))
    if told != PartitionSpec(*cut_in_type(sharding.spec, sharding.mesh, aval.ndim)):
        error = AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of "
            f"type `Explicit`. The array sharding: {told} did not match the sharding "
            f"provided: {sharding.spec}. Please use `minijax.sharding.reshard` to "
            "shard your input to the sharding you want."
        )
        raise errors.with_facts(error)


sharding_constraint_p.def_abstract_eval(lambda x, **_: x)
def_linear(
    sharding_constraint_p,
    lambda ct, x, **params: [sharding_constraint_p.bind(instantiate(ct), **params)],
)


@sharding_constraint_p.def_batch
def _constraint_batch(
    axis_data: Any, args: Sequence, dims: Sequence, **params
) -> tuple:
    (x,), (dim,) = args, dims
    name = axis_data.spmd_name
    free = {d + (d >= dim) for d in params["unconstrained_dims"]}
    sharding = params["sharding"]
    if isinstance(sharding, NamedSharding):
        check_batch_axes(name, [sharding.spec], "with_sharding_constraint spec")
        part = name
        if name is None:  # nothing is known of the new axis
            part = PartitionSpec.UNCONSTRAINED
            free.add(dim)
        spec = sharding.spec.inserted(dim, part)
        rest = language.get_aval(x).ndim - len(spec.partitions) if name is None else 0
        # With an unconstrained part JAX prints all parts.
        sharding = sharding.update(spec=PartitionSpec(*spec.partitions, *[None] * rest))
    params = {**params, "sharding": sharding, "unconstrained_dims": frozenset(free)}
    return sharding_constraint_p.bind(x, **params), dim


def constrain(value: Any, sharding: Any, open_dims: bool = False) -> Any:
    """The StableHLO value, with the operation that says how it is cut.

    With `open_dims` the compiler may cut further, along Auto axes.
    """
    if not isinstance(sharding, NamedSharding):
        return value
    cut = sdy_sharding(sharding, value.type.rank, open_dims)
    return hlo.sdy.ShardingConstraintOp(value, cut).result


sharding_constraint_p.def_lowering(
    lambda ctx, x, *, sharding, **_: constrain(x, sharding)
)
