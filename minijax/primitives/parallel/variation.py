"""What a value is over mesh axes inside `shard_map`: casts, sums, collectives' marks.

The type of a value says over which mesh axes it varies from device to device. Over
others it is unreduced (each device has an addend), reduced (each has the whole value,
and its cotangents are still to be added up), or the same everywhere: invarying.

    invarying -- pvary --> varying                 transpose: psum_invariant
    invarying -- preduced --> reduced              transpose: unreduced_psum
    varying -- vary_unreduced_cast --> unreduced   transpose: reduced_vary_cast

The casts move no data; the two sums add up over the axes. What varies by itself is the
index along an axis.

In JAX: `lax/parallel.py`, `pvary_p`, `psum_invariant_p`, `axis_index_p` and the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import errors
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.rules import def_linear
from minijax.core.state import state
from minijax.core.trees import tree_leaves
from minijax.primitives.parallel import manual_lowering
from minijax.primitives.parallel.manual_lowering import names_of
from minijax.primitives.shape import broadcasting
from minijax.support.devices.shardings import PartitionSpec, sharding_in_type
from minijax.support.settings import declare
from minijax.values.named_axes import NamedAxisEffect

# The mesh axes of the `shard_map` being traced whose variation is checked.
declare("varying_axes", ())

Names = tuple[Hashable, ...]
Axes = Hashable | Names
Words = tuple[frozenset, frozenset]
Move = tuple[str, ...]


def varying(value: Any) -> frozenset:
    """The axes over which a value varies."""
    return getattr(get_aval(value), "vma", frozenset())


def words_in(sharding: Any) -> Words:
    """The axes over which what lies so is unreduced, and those over which reduced."""
    if sharding is None:
        return frozenset(), frozenset()
    return sharding.spec.unreduced, sharding.spec.reduced


def words_of(aval: Any) -> Words:
    """The axes over which values of a type are unreduced, those over which reduced."""
    return words_in(getattr(aval, "cut", None))


def words_over(aval: Any, axes: frozenset, spec: Any = PartitionSpec()) -> Words:
    """The axes of `words_of` that are among `axes`, and those that a spec names."""
    unreduced, reduced = words_of(aval)
    return unreduced & axes | spec.unreduced, reduced & axes | spec.reduced


def in_mesh_order(axes: Iterable[Hashable]) -> Names:
    """Axes in the order of the mesh."""
    wanted = set(axes)
    return tuple(name for name in state.axis_env.axis_names() if name in wanted)


def in_types(axes: Iterable[Hashable]) -> Names:
    """Those of some axes that types name on the mesh in use."""
    mesh = state.abstract_mesh
    return tuple(axes) if mesh is None else mesh.in_types(axes)


# ----------------------------------------------------------------------------------
# Casts, which move no data, and sums
# ----------------------------------------------------------------------------------

KINDS = ("varying", "unreduced", "reduced")


def kind_over(aval: Any, axes: Iterable[Hashable], what: str) -> str:
    """What a value of a type is over mesh axes: one of `KINDS`, or "invarying".

    Raises ValueError for axes over which it is not the same.
    """
    sets = dict(zip(KINDS, (aval.vma, *words_of(aval))))
    found = {
        next((kind for kind in KINDS if axis in sets[kind]), "invarying")
        for axis in axes
    }
    if len(found) > 1:
        raise errors.value_error(
            f"{what} can only accept axis_name which corresponds to one of varying, "
            f"unreduced, reduced or invarying state of the input. Got input type: "
            f"{aval.str_short()}, axes: {tuple(axes)}: {sorted(found)}. Use `pcast`."
        )
    return found.pop()


def check_one_kind(values: Any, axis_name: Axes, function: str) -> None:
    """ValueError for a value in `shard_map` that is not the same over all axes."""
    names = names_of(axis_name)
    if state.varying_axes and names:
        for value in tree_leaves(values):
            kind_over(get_aval(value), names, f"jax.lax.{function}")


def moved(aval: ShapedArray, axes: Names, name: str, move: Move) -> ShapedArray:
    """The type of a value that is `target` over the axes over which it was `source`.

    `move` is both. Raises ValueError for a value that is not `source`.
    """
    source, target = move
    found = kind_over(aval, axes, name)
    if found != source:
        raise errors.value_error(
            f"{name} takes a value that is {source} over {tuple(axes)}, and got one of "
            f"type {aval.str_short()}, which is {found}."
        )
    sets = dict(zip(KINDS, (aval.vma, *words_of(aval))))
    if source in sets:
        sets[source] -= set(axes)
    if target in sets:
        sets[target] |= set(axes)
    vma, *words = (frozenset(in_types(names)) for names in sets.values())
    cut = aval.cut
    if tuple(words) != words_of(aval):
        mesh = state.abstract_mesh  # of the shard_map
        parts = [None] * aval.ndim if cut is None else cut.spec.partitions
        spec = PartitionSpec(*parts, unreduced=words[0], reduced=words[1])
        cut = sharding_in_type(mesh, spec)
    return aval.update(vma=vma, sharding=cut)


def _move(name: str, *move: str) -> Primitive:
    primitive = register(Primitive(name))
    primitive.cache_types = False

    @primitive.def_effectful_abstract_eval
    def rule(x: ShapedArray, *, axes: Names) -> tuple:
        effects = frozenset(map(NamedAxisEffect, axes if primitive in SUMS else ()))
        return moved(x, axes, name, move), effects

    @primitive.def_batch
    def batch(axis_data: Any, args: Any, dims: Any, **params: Any) -> tuple:
        return primitive.bind(args[0], **params), dims[0]

    return primitive


psum_invariant_p = _move("psum_invariant", "varying", "invarying")
unreduced_psum_p = _move("unreduced_psum", "unreduced", "invarying")
SUMS = (psum_invariant_p, unreduced_psum_p)
for _primitive in SUMS:
    _primitive.def_lowering(manual_lowering.psum_invariant)

pvary_p = _move("pvary", "invarying", "varying")
preduced_p = _move("preduced", "invarying", "reduced")
vary_unreduced_cast_p = _move("vary_unreduced_cast_p", "varying", "unreduced")
reduced_vary_cast_p = _move("reduced_vary_cast_p", "reduced", "varying")
CASTS = {
    ("invarying", "varying"): pvary_p,
    ("invarying", "reduced"): preduced_p,
    ("varying", "unreduced"): vary_unreduced_cast_p,
    ("reduced", "varying"): reduced_vary_cast_p,
}
for _primitive in CASTS.values():
    _primitive.meaning = lambda x, axes: x
    _primitive.def_lowering(lambda ctx, x, *, axes: x)


def_linear(pvary_p, lambda ct, x, axes: [psum_invariant_p.bind(ct, axes=axes)])
def_linear(psum_invariant_p, lambda ct, x, axes: [pvary_p.bind(ct, axes=axes)])


def _transposed(primitive: Primitive, other: Primitive) -> None:
    def_linear(primitive, lambda ct, x, axes: [other.bind(ct, axes=axes)])
    def_linear(other, lambda ct, x, axes: [primitive.bind(ct, axes=axes)])


_transposed(preduced_p, unreduced_psum_p)
_transposed(vary_unreduced_cast_p, reduced_vary_cast_p)


def varied(value: Any, axes: Iterable[Hashable]) -> Any:
    """The value, varying over these axes, too."""
    lacking = set(axes) - varying(value)
    if not lacking:
        return value
    reduced = words_of(get_aval(value))[1]
    cast = reduced_vary_cast_p if reduced == lacking else pvary_p
    return cast.bind(value, axes=in_mesh_order(lacking))


# ----------------------------------------------------------------------------------
# Collectives
# ----------------------------------------------------------------------------------


def staging_of_collective(
    primitive: Primitive,
    parameter: str,
    sum_name: str = "",
    of_unreduced: Primitive | None = None,
    takes_unmarked: bool = False,
) -> Callable:
    """The `staging` of a collective: its operand varies over the axes in `parameter`.

    `sum_name` is the user's function, given for sums only. A sum is the same program
    for equal values and for different ones, with another transpose, so that its operand
    must vary over all of its axes or over none. `of_unreduced` adds up a value that is
    unreduced. If `takes_unmarked`, the operand need not be marked as varying where
    jax_auto_pcast is off.
    """

    def staging(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        checked = state.varying_axes
        if not checked:
            return NotImplemented
        axes = [axis for axis in names_of(params[parameter]) if axis in checked]
        aval = get_aval(args[0])
        if not axes:
            return NotImplemented
        found = "varying"
        if sum_name or any(words.intersection(axes) for words in words_of(aval)):
            found = kind_over(aval, axes, f"jax.lax.{sum_name or primitive}")
        if found == "unreduced" and of_unreduced is not None:
            rest = dict(params)
            if rest.pop("axis_index_groups") is not None:
                raise NotImplementedError(
                    f"{sum_name} of an unreduced value takes no axis_index_groups."
                )
            return of_unreduced.bind(args[0], **rest)
        if found in KINDS[1:]:
            raise errors.value_error(
                f"{primitive} cannot accept args which are {found}. Got "
                f"{aval.str_short()} and axes={tuple(axes)}."
            )
        missing = [axis for axis in axes if axis not in aval.vma]
        if missing and not state.auto_pcast and not takes_unmarked:
            raise errors.value_error(
                f"Collective {primitive} must be applied to a device-varying type, but "
                f"got {aval.str_short()} over axis name {tuple(axes)}. Mark it: "
                "`lax.pcast(x, axes, to='varying')`."
            )
        if missing and state.auto_pcast:
            marked = pvary_p.bind(args[0], axes=tuple(missing))
            return primitive.bind(marked, **params)
        if sum_name == "psum" and axes == list(params["axes"]):
            if params["axis_index_groups"] is not None:
                raise NotImplementedError(
                    "psum with axis_index_groups inside shard_map needs "
                    "check_vma=False: its result still varies over the axis."
                )
            return psum_invariant_p.bind(args[0], axes=tuple(axes))
        return NotImplemented

    return staging


def check_bound(axes: Sequence[Hashable]) -> None:
    """NameError, listing the axes in scope, for a name that is not bound."""
    for name in axes:
        if not isinstance(name, int):
            state.axis_env.axis_size(name)


axis_index_p = register(Primitive("axis_index"))
axis_index_p.cache_types = False


@axis_index_p.def_effectful_abstract_eval
def _axis_index_type(*, axis_name: Hashable) -> tuple:
    check_bound((axis_name,))
    vma = frozenset([axis_name]) & set(state.varying_axes)
    aval = ShapedArray((), np.dtype(np.int32), vma=vma)
    return aval, frozenset([NamedAxisEffect(axis_name)])


@axis_index_p.def_batch
def _axis_index_batch(axis_data, args, dims, *, axis_name):
    return broadcasting.iota(np.dtype(np.int32), axis_data.size), 0


axis_index_p.def_lowering(manual_lowering.axis_index)
axis_index_p.without("jvp transpose", "it has no arguments")


def axis_index(axis_name: Axes) -> Any:
    """The index of this example along a named axis, as int32."""
    axis_size(axis_name)  # of names that are bound
    if not isinstance(axis_name, (tuple, list)):
        return axis_index_p.bind(axis_name=axis_name)
    index: Any = np.int32(0)
    stride = 1
    for name in reversed(axis_name):
        inner = axis_index_p.bind(axis_name=name)
        index = elementwise.add(index, elementwise.mul(inner, np.int32(stride)))
        stride *= axis_size(name)
    return index


def axis_size(axis_name: Axes) -> int:
    """The size of a named axis, as a Python int."""
    return math.prod(state.axis_env.axis_size(name) for name in names_of(axis_name))
