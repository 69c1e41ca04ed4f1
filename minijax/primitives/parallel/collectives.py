"""Collectives: operations over a named axis, such as the batch axis of a `vmap`.

Inside `vmap(f, axis_name="i")` the axis has a name and no position. `psum(x, "i")` adds
up over it; the batching rule then turns the name into a position, and what remains is
an ordinary reduction.

In JAX: `lax/parallel.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, errors, rules, shaping, sums
from minijax.core.language import Primitive, ShapedArray, Tracer, get_aval, register
from minijax.core.state import state
from minijax.primitives.index import gathering
from minijax.primitives.index.dynamic_slicing import dynamic_slice_in_dim
from minijax.primitives.parallel import manual_lowering
from minijax.primitives.parallel.manual_lowering import names_of
from minijax.primitives.parallel.variation import (
    Axes,
    axis_index,
    axis_size,
    check_bound,
    check_one_kind,
    in_types,
    moved,
    staging_of_collective,
    unreduced_psum_p,
)
from minijax.primitives.reduce import reductions
from minijax.primitives.shape import broadcasting, rearranging, slicing, squeezing
from minijax.primitives.shape.squeezing import canonicalize_axis, expand_dims, squeeze
from minijax.support import element_types
from minijax.support.tree_util import tree_map
from minijax.values.named_axes import NamedAxisEffect


def _reduced(axis_name: Axes) -> tuple[Hashable, ...]:
    """The axes that a user sums over; ValueError for positions inside `shard_map`."""
    names = names_of(axis_name)
    check_bound(names)
    if state.varying_axes and _named(names) != names:
        raise errors.value_error(
            f"axis_name={axis_name!r} has a position, and inside shard_map it may have "
            "names of axes only. Reduce the positions first: `x.sum(0)`, `x.max(0)`."
        )
    return names


def _no_list(axis_name: Axes, everywhere: bool = False) -> tuple[Hashable, ...]:
    """`names_of`; TypeError for a list within `shard_map`, or `everywhere`."""
    refused = isinstance(axis_name, list) and (everywhere or state.manual_mesh)
    return names_of((axis_name,) if refused else axis_name)


def _named(axes: Sequence[Hashable]) -> tuple[Hashable, ...]:
    return tuple(axis for axis in axes if not isinstance(axis, int))


def _groups(axis_index_groups: Any) -> tuple[tuple[int, ...], ...] | None:
    """Groups of indices as tuples; ValueError unless each index is in one of them."""
    if axis_index_groups is None:
        return None
    groups = squeezing.lists_of_indices(axis_index_groups, "axis_index_groups")
    indices = [i for group in groups for i in group]
    if set(indices) != set(range(len(indices))):
        raise ValueError(
            f"axis_index_groups must cover all indices exactly once, got {groups}"
        )
    return groups


def _group_size(axis_name: Axes, groups: tuple | None) -> int:
    """How many indices exchange data: those of a group, or all of the axes.

    Raises ValueError for groups that leave out an index of the axes.
    """
    size = axis_size(axis_name)
    if groups is not None and sum(map(len, groups)) != size:
        raise ValueError(
            f"axis_index_groups={groups} must name each of the {size} indices once."
        )
    return size if groups is None else len(groups[0])


def _refuse_groups(name: str, groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(
            f"{name} with axis_index_groups is not supported over a vmapped axis. "
            "Split it into two axes, vmap over both, and name one of them."
        )


def _check_axis(name: str, axis: int, rank: int) -> None:
    if not -rank <= squeezing.index_of(axis, name) < rank:
        raise IndexError(f"{name}={axis} of an operand with {rank} dimensions")


def _exchanged_along(axis_name: Axes, axis_index_groups: Any, tiled: bool) -> dict:
    """The parameters that the exchanges of data have in common."""
    groups = _groups(axis_index_groups)
    if groups and len(set(map(len, groups))) > 1:
        raise ValueError(f"axis_index_groups must have one size, got {groups}")
    size = _group_size(axis_name, groups)
    along = {"axis_name": _no_list(axis_name), "axis_index_groups": groups}
    return {**along, "axis_size": size, "tiled": tiled}


def _effects(axes: Sequence[Hashable]) -> frozenset:
    return frozenset(NamedAxisEffect(name) for name in _named(axes))


# ----------------------------------------------------------------------------------
# Reductions over axes: named ones (str) and, once batched, positions (int)
# ----------------------------------------------------------------------------------


def _all_reduce(
    name: str, combine: str, meaning: Callable, positional: Callable
) -> Primitive:
    """psum, pmax or pmin: `axes` has names, and positions of the operand's axes."""
    primitive = register(Primitive(name))
    primitive.cache_types = False
    primitive.meaning = lambda x, axes, axis_index_groups: meaning(x, axis=axes)

    @primitive.def_effectful_abstract_eval
    def type_rule(x: ShapedArray, *, axes: tuple, axis_index_groups) -> tuple:
        check_bound(axes)
        removed = {axis for axis in axes if isinstance(axis, int)}
        shape = tuple(n for axis, n in enumerate(x.shape) if axis not in removed)
        cut = x.cut
        for axis in sorted(removed, reverse=True):
            cut = cut and cut.without(axis)
        return ShapedArray(shape, x.dtype, x.weak_type, cut), _effects(axes)

    @primitive.def_batch
    def batch(axis_data, args, dims, **params) -> tuple:
        (x,), (dim,) = args, dims
        axes, axis_index_groups = params["axes"], params["axis_index_groups"]
        moved = tuple(_moved(axis, axis_data.name, dim) for axis in axes)
        if axis_data.name not in axes:
            out = primitive.bind(x, axes=moved, axis_index_groups=axis_index_groups)
            removed = sum(isinstance(axis, int) and axis < dim for axis in moved)
            return out, dim - removed
        _refuse_groups(name, axis_index_groups)
        if dim is rules.not_mapped:
            rest = tuple(axis for axis in axes if axis != axis_data.name)
            if name == "psum":
                x = elementwise.mul(rules.scalar_like(get_aval(x), axis_data.size), x)
            if rest:
                x = primitive.bind(x, axes=rest, axis_index_groups=None)
            return x, rules.not_mapped
        return primitive.bind(x, axes=moved, axis_index_groups=None), rules.not_mapped

    lower = manual_lowering.reduction(primitive, combine, positional)
    primitive.def_lowering(lower)
    sums = ("psum", unreduced_psum_p) if name == "psum" else ()
    primitive.staging = staging_of_collective(primitive, "axes", *sums)
    return primitive


def _moved(axis: Hashable, name: Hashable, dim: int | None) -> Hashable:
    """An axis of an operand with a batch axis, called `name`, at `dim`."""
    if axis == name:
        return dim
    return axis + (axis >= dim) if isinstance(axis, int) and dim is not None else axis


psum_p = _all_reduce("psum", "add", np.sum, lambda x, axes: sums.reduce_sum(x, axes))


def _psum_transpose(ct, x, *, axes: tuple, axis_index_groups) -> list:
    """The transpose of a sum is a broadcast: along positions, then over names."""
    positions = [axis for axis in axes if isinstance(axis, int)]
    if positions:
        kept = tuple(d for d in range(x.ndim) if d not in positions)
        ct = shaping.broadcast_in_dim(ct, x.shape, kept)
    return [psum_p.bind(ct, axes=_named(axes), axis_index_groups=axis_index_groups)]


rules.def_linear(psum_p, _psum_transpose)

pmax_p = _all_reduce(
    "pmax", "maximum", np.max, lambda x, axes: reductions.reduce_max(x, axes)
)
pmin_p = _all_reduce(
    "pmin", "minimum", np.min, lambda x, axes: reductions.reduce_min(x, axes)
)
for _primitive in (pmax_p, pmin_p):
    _primitive.without("jvp", "JAX has no derivative of pmax and pmin either")
    _primitive.without("transpose", "it is not linear")


def psum(x: Any, axis_name: Axes, *, axis_index_groups: Any = None) -> Any:
    """The sum over one or several named axes, for each array of a tree.

    A Python number counts once for each index of the axes: `psum(1, "i")` is its size.
    Raises NameError for a name that no `vmap` or `shard_map` binds.
    """
    check_one_kind(x, in_types(names_of(axis_name)), "psum")
    names = in_types(_reduced(axis_name))
    if not names:
        return x
    groups = _groups(axis_index_groups)
    size = _group_size(_named(names), groups)

    def leaf(value: Any) -> Any:
        if get_aval(value).dtype == np.bool_:
            value = shaping.convert_element_type(value, np.int32)
        is_number = not isinstance(value, Tracer) and isinstance(value, _NUMBERS)
        if is_number:
            return value * size
        if not isinstance(value, Tracer) and _named(names) == names:
            return elementwise.mul(rules.scalar_like(get_aval(value), size), value)
        return psum_p.bind(value, axes=names, axis_index_groups=groups)

    return tree_map(leaf, x)


_NUMBERS = (bool, int, float, complex, np.generic)


def pmean(x: Any, axis_name: Axes, *, axis_index_groups: Any = None) -> Any:
    """The mean over one or several named axes, for each array of a tree.

    The mean of integers is floating.
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count = _group_size(axis_name, _groups(axis_index_groups))

    def mean(value: Any) -> Any:
        dtype = get_aval(value).dtype
        if not dtypes.issubdtype(dtype, np.inexact):
            inexact = element_types.to_inexact_dtype(dtype)
            value = shaping.convert_element_type(value, inexact)
        return elementwise.div(value, rules.scalar_like(get_aval(value), count))

    return tree_map(mean, total)


def pmax(x: Any, axis_name: Axes, *, axis_index_groups: Any = None) -> Any:
    """The maximum over one or several named axes, for each array of a tree."""
    return _extremum(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Axes, *, axis_index_groups: Any = None) -> Any:
    """The minimum over one or several named axes, for each array of a tree."""
    return _extremum(pmin_p, x, axis_name, axis_index_groups)


def _extremum(primitive: Primitive, x: Any, axis_name: Axes, groups: Any) -> Any:
    names = _reduced(_no_list(axis_name))
    groups = _groups(groups)
    _group_size(_named(names), groups)
    return _of_each(primitive, x, axes=names, axis_index_groups=groups)


def _of_each(primitive: Primitive, x: Any, **params: Any) -> Any:
    """A tree of arrays, with the primitive applied to each."""
    return tree_map(lambda value: primitive.bind(value, **params), x)


# ----------------------------------------------------------------------------------
# Moving data along the axis
# ----------------------------------------------------------------------------------


def exchange(
    name: str,
    type_rule: Callable,
    batch_mapped: Callable,
    lower: Callable,
    batch_one_of: Callable | None = None,
    adds_axes: int = 0,
    moves: tuple[str, str] | None = None,
    takes_unmarked: bool = False,
) -> Primitive:
    """A primitive that moves data along `axis_name`.

    `batch_mapped(x, dim, axis_data, **params)` is what becomes of it once the axis has
    a position: (out, out dim). `lower` is the lowering rule over a mesh axis.
    `batch_one_of(x, dim, axis_data, names, **params)` is the same for one of several
    axes; None where that is not supported. `adds_axes` says how many axes more the
    output has than the operand, unless it is `tiled`. `moves` says what the operand is
    over the axes, and what the result is. `takes_unmarked` is as in
    `staging_of_collective`.
    """
    primitive = register(Primitive(name))
    primitive.cache_types = False

    @primitive.def_effectful_abstract_eval
    def rule(x: ShapedArray, *, axis_name, **params) -> tuple:
        names = names_of(axis_name)
        check_bound(names)
        size = _group_size(names, params.get("axis_index_groups"))
        out = type_rule(x, size, **params)
        out = out.update(sharding=x.cut and x.cut.of_rank(out.ndim))
        if moves is None:
            return out, _effects(names)
        return moved(out.update(vma=x.vma), names, name, moves), _effects(names)

    @primitive.def_batch
    def batch(axis_data, args, dims, *, axis_name, **params):
        (x,), (dim,) = args, dims
        names = names_of(axis_name)
        if axis_data.name not in names:
            if dim is rules.not_mapped:
                return primitive.bind(x, axis_name=axis_name, **params), dim
            shifted = _shifted(params, dim)
            out = primitive.bind(x, axis_name=axis_name, **shifted)
            if adds_axes and not params["tiled"] and shifted == params:
                dim += adds_axes
            return out, dim
        _refuse_groups(name, params.get("axis_index_groups"))
        if len(names) == 1:
            return batch_mapped(x, dim, axis_data, **params)
        if batch_one_of is None:
            raise NotImplementedError(
                f"{name} over several axes under vmap: call it for one after the other."
            )
        return batch_one_of(x, dim, axis_data, names, **params)

    primitive.def_lowering(lower)
    if name == "reduce_scatter":
        sums = ("psum_scatter", unreduced_reduce_scatter_p)
        primitive.staging = staging_of_collective(primitive, "axis_name", *sums)
    elif moves is None:
        primitive.staging = staging_of_collective(
            primitive, "axis_name", takes_unmarked=takes_unmarked
        )
    return primitive


def _shifted(params: dict[str, Any], dim: int) -> dict[str, Any]:
    """Parameters for an operand with a new axis at `dim`."""
    positions = ["all_gather_dimension", "scatter_dimension"]
    positions += ["split_axis", "concat_axis"]
    return {k: v + (dim <= v) if k in positions else v for k, v in params.items()}


def _ppermute_batch(x, dim: int | None, axis_data, *, perm: tuple) -> tuple:
    """Reorder the slices."""
    size = axis_data.size
    if len(perm) != size:
        raise errors.value_error(
            f"ppermute over a vmapped axis of size {size} got perm={perm}: it must "
            "name a source for each index. Zeros for the others: multiply the result "
            "by a mask of `lax.axis_index`, or use `shard_map`."
        )
    if dim is rules.not_mapped:
        return x, rules.not_mapped
    order = sorted(perm, key=lambda pair: pair[1] % size)
    sources = [source % size for source, _ in order]
    x = rules.moveaxis(x, dim, 0)
    shape = get_aval(x).shape
    numbers = gathering.GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    indices = np.array(sources, np.int32)[:, None]
    return gathering.gather(x, indices, numbers, (1, *shape[1:])), 0


ppermute_p = exchange(
    "ppermute", lambda x, size, perm: x, _ppermute_batch, manual_lowering.ppermute
)
rules.def_linear(
    ppermute_p,
    lambda ct, x, axis_name, perm: [
        ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))
    ],
)


def ppermute(x: Any, axis_name: Axes, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends values along a named axis: `perm` has pairs (source, destination).

    Indices that receive nothing get zeros.

    Raises:
      ValueError: for a repeated source or destination.
      TypeError: for indices that are no integers.
      IndexError: for an index that the axis does not have.
    """
    pairs = squeezing.lists_of_indices(perm, "perm")
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"perm must have pairs (source, destination), got {perm!r}.")
    size = axis_size(axis_name)
    if any(not -size <= index < size for pair in pairs for index in pair):
        raise IndexError(f"ppermute over {size} indices got perm={perm}")
    for what, ends in zip(("sources", "destinations"), zip(*pairs) if pairs else ()):
        if len(set(ends)) != len(ends):
            raise ValueError(f"ppermute {what} must be unique, got {perm}")
    return _of_each(ppermute_p, x, axis_name=_no_list(axis_name), perm=pairs)


def pshuffle(x: Any, axis_name: Axes, perm: Sequence[int]) -> Any:
    """Permutes values along a named axis: index i gets the value of `perm[i]`."""
    perm = squeezing.indices_of(perm, "perm")
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)))))


def _pbroadcast_batch(x, dim: int | None, axis_data, *, source: int) -> tuple:
    """The slice of the source, which is the same for each index."""
    if dim is rules.not_mapped:
        return x, rules.not_mapped
    return slicing.index_in_dim(x, source, dim, keepdims=False), rules.not_mapped


pbroadcast_p = exchange(
    "pbroadcast",
    lambda x, size, source: x,
    _pbroadcast_batch,
    manual_lowering.pbroadcast,
)


def _pbroadcast_transpose(ct, x, *, axis_name, source: int) -> list:
    """All cotangents go to the source."""
    index = axis_index(axis_name)
    is_source = elementwise.eq(index, rules.scalar_like(get_aval(index), source))
    total = broadcasting.broadcast(psum(ct, axis_name), ())
    return [elementwise.select(is_source, total, broadcasting.full_like(ct, 0))]


rules.def_linear(pbroadcast_p, _pbroadcast_transpose)


def pbroadcast(x: Any, axis_name: Axes, source: int) -> Any:
    """The value of the index `source` of a named axis, for each array of a tree.

    Raises ValueError if the axis has no such index.
    """
    if not 0 <= source < axis_size(_no_list(axis_name)):
        raise ValueError(
            f"pbroadcast has source {source}, which is not an index of an axis of size "
            f"{axis_size(axis_name)}."
        )
    return _of_each(pbroadcast_p, x, axis_name=axis_name, source=source)


def _all_gather_type(x: ShapedArray, size: int, *, all_gather_dimension, tiled, **_):
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= size
    else:
        shape.insert(all_gather_dimension, size)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _all_gather_batch(x, dim: int | None, axis_data, **params) -> tuple:
    axis = params["all_gather_dimension"]
    x = rules.match_axis(axis_data, x, dim, axis)
    return rearranging.merged_axes(x, axis) if params["tiled"] else x, rules.not_mapped


def _renamed(params: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Parameters for the transpose, which calls one of them by another name."""
    return {new if name == old else name: value for name, value in params.items()}


def _all_gather(name: str, transpose: Callable, **options: Any) -> Primitive:
    """A primitive that gathers; `transpose` is as `def_linear` takes it."""
    functions = _all_gather_type, _all_gather_batch, manual_lowering.all_gather
    primitive = exchange(name, *functions, adds_axes=1, **options)
    rules.def_linear(primitive, transpose)
    return primitive


def _scattered(ct: Any, x: Any, **params: Any) -> list:
    unreduced = "axis_index_groups" not in params
    scatter = unreduced_reduce_scatter_p if unreduced else reduce_scatter_p
    names = "all_gather_dimension", "scatter_dimension"
    return [scatter.bind(ct, **_renamed(params, *names))]


def _own_part(ct, x, *, all_gather_dimension, axis_name, axis_size, tiled) -> list:
    """A device's own part of the cotangent, which is equal on all: no exchange."""
    size = get_aval(ct).shape[all_gather_dimension] // axis_size
    start = elementwise.mul(axis_index(axis_name), np.int32(size))
    part = dynamic_slice_in_dim(ct, start, size, all_gather_dimension)
    return [part if tiled else squeeze(part, (all_gather_dimension,))]


all_gather_p = _all_gather("all_gather", _scattered)
# Where marks are missing, JAX refuses all collectives but this one.
all_gather_invariant_p = _all_gather(
    "all_gather_invariant", _own_part, takes_unmarked=True
)
all_gather_reduced_p = _all_gather(
    "all_gather_reduced", _scattered, moves=("varying", "reduced")
)
_GATHERS = {"varying": all_gather_p, "invarying": all_gather_invariant_p}
_GATHERS["reduced"] = all_gather_reduced_p


def all_gather(
    x: Any,
    axis_name: Axes,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values of all indices along a named axis, stacked along a new axis `axis`.

    With `tiled` they are concatenated along the existing axis instead. `to` says how
    the type of the result varies over a mesh: "varying"; "invarying" where the program
    is to know that it is equal on all devices; "reduced" where its cotangents, one for
    each device, are then added up. Raises ValueError for another.
    """
    if not _no_list(axis_name, everywhere=True):
        return x
    if to not in _GATHERS:
        raise ValueError(
            f"Got unexpected `to` value {to!r} for `lax.all_gather`. Allowed values "
            f"are: {sorted(_GATHERS)}"
        )
    along = _exchanged_along(axis_name, axis_index_groups, tiled)
    if to != "varying" and along.pop("axis_index_groups") is not None:
        raise NotImplementedError(
            f"all_gather got to={to!r} and axis_index_groups: the result differs "
            "between the groups, so it varies over the axis. Leave `to` out."
        )

    def leaf(value: Any) -> Any:
        rank = get_aval(value).ndim + (not tiled)
        dimension = canonicalize_axis(axis, rank)
        return _GATHERS[to].bind(value, all_gather_dimension=dimension, **along)

    return tree_map(leaf, x)


def _reduce_scatter_type(x: ShapedArray, size: int, *, scatter_dimension, tiled, **_):
    shape = list(x.shape)
    _check_axis("scatter_dimension", scatter_dimension, x.ndim)
    if scatter_dimension < 0:
        raise ValueError(
            f"scatter_dimension={scatter_dimension} is counted from the back; write "
            f"{scatter_dimension + x.ndim}."
        )
    if shape[scatter_dimension] % size if tiled else shape[scatter_dimension] != size:
        raise ValueError(
            f"reduce_scatter operand scatter dimension size {shape[scatter_dimension]} "
            f"must {'be divisible by' if tiled else 'match'} the axis size {size}"
        )
    if tiled:
        shape[scatter_dimension] //= size
    else:
        del shape[scatter_dimension]
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _reduce_scatter_batch(x, dim: int | None, axis_data, **params) -> tuple:
    axis = params["scatter_dimension"]
    if dim is rules.not_mapped:
        total = elementwise.mul(x, rules.scalar_like(get_aval(x), axis_data.size))
    else:
        total = sums.reduce_sum(x, (dim,))
    if params["tiled"]:
        total = rearranging.split_axis(total, axis, axis_data.size)
    return total, axis


def _reduce_scatter(name: str, gather: Primitive, moves: Any = None) -> Primitive:
    batch, lower = _reduce_scatter_batch, manual_lowering.reduce_scatter
    primitive = exchange(
        name, _reduce_scatter_type, batch, lower, adds_axes=-1, moves=moves
    )
    names = "scatter_dimension", "all_gather_dimension"

    def transpose(ct: Any, x: Any, **params: Any) -> list:
        return [gather.bind(ct, **_renamed(params, *names))]

    rules.def_linear(primitive, transpose)
    return primitive


unreduced_reduce_scatter_p = _reduce_scatter(
    "unreduced_reduce_scatter", all_gather_reduced_p, ("unreduced", "varying")
)
reduce_scatter_p = _reduce_scatter("reduce_scatter", all_gather_p)


def psum_scatter(
    x: Any,
    axis_name: Axes,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sums over a named axis; each index keeps its own part of the sum.

    The part is a slice of `scatter_dimension`, whose size must be that of the axis (or,
    with `tiled`, a multiple of it).
    """
    names = in_types(_no_list(axis_name, everywhere=True))
    if not names:
        return x
    check_one_kind(x, names, "psum_scatter")
    along = _exchanged_along(names, axis_index_groups, tiled)
    return _of_each(reduce_scatter_p, x, scatter_dimension=scatter_dimension, **along)


def _all_to_all_type(x: ShapedArray, size: int, *, split_axis, concat_axis, tiled, **_):
    shape = list(x.shape)
    if shape[split_axis] % size:
        raise ValueError(
            f"all_to_all requires the size of the split axis, {shape[split_axis]}, to "
            f"be divisible by the size of the named axis, {size}"
        )
    shape[split_axis] //= size
    shape[concat_axis] *= size
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _all_to_all_batch(x, dim: int | None, axis_data, **params) -> tuple:
    """Split one axis, exchange the pieces with the batch axis, join them in another."""
    size = axis_data.size
    split_axis, concat_axis = params["split_axis"], params["concat_axis"]
    if dim is rules.not_mapped:
        x, dim = rules.broadcast_axis(x, axis_data, 0), 0
    if split_axis != concat_axis:
        x = rearranging.merged_axes(rules.moveaxis(x, dim, concat_axis), concat_axis)
        return rearranging.split_axis(x, split_axis, size), split_axis
    axis = split_axis + (dim <= split_axis)
    x = rearranging.split_axis(x, axis, size)
    batch = dim + (axis <= dim)
    order = list(range(get_aval(x).ndim))
    order[axis], order[batch] = batch, axis
    return rearranging.merged_axes(shaping.transpose(x, tuple(order)), axis), dim


def _all_to_all_batch_one_of(
    x, dim: int | None, axis_data: rules.AxisData, names: tuple, **params
) -> tuple:
    """One of several axes gets a position; the others keep their names.

    The exchange over all of them is an exchange over the axes before this one, over
    this one, and over those after it. Three leading axes collect what each of the
    three brings, and are joined with `concat_axis` at the end.
    """
    size = axis_data.size
    if dim is rules.not_mapped:
        x, dim = rules.broadcast_axis(x, axis_data, 0), 0
    position = names.index(axis_data.name)
    before, after = names[:position], names[position + 1 :]
    x = expand_dims(rules.moveaxis(x, dim, 0), (0, 2))
    split_axis = params.pop("split_axis") + 3
    concat_axis = params.pop("concat_axis") + 3
    exchange = functools.partial(all_to_all_p.bind, **params)
    if before:
        x = exchange(x, axis_name=before, split_axis=split_axis, concat_axis=0)
    # Splitting makes the new batch axis; the rest of the split axis comes after it.
    x = rearranging.split_axis(x, split_axis, size)
    batch = split_axis
    concat_axis += split_axis <= concat_axis
    if after:
        x = exchange(x, axis_name=after, split_axis=split_axis + 1, concat_axis=2)
    x = rearranging.merged_axes(rearranging.merged_axes(x, 0), 0)
    # Two of the leading axes are gone. The third stands before `concat_axis` next.
    x = rearranging.merged_axes(rules.moveaxis(x, 0, concat_axis - 3), concat_axis - 3)
    return x, batch - 3


all_to_all_p = exchange(
    "all_to_all",
    _all_to_all_type,
    _all_to_all_batch,
    manual_lowering.all_to_all,
    _all_to_all_batch_one_of,
)
rules.def_linear(
    all_to_all_p,
    lambda ct, x, split_axis, concat_axis, **params: [
        all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)
    ],
)


def all_to_all(
    x: Any,
    axis_name: Axes,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange an axis of the array with a named axis.

    Each index sends its j-th piece of `split_axis` to index j, and joins what it gets
    along `concat_axis`. Without `tiled`, `split_axis` must have the size of the named
    axis and disappears, and a new axis appears at `concat_axis`.
    """
    groups = _groups(axis_index_groups)
    size = _group_size(_no_list(axis_name), groups)
    along = {"axis_name": axis_name, "axis_index_groups": groups, "tiled": tiled}

    def leaf(value: Any) -> Any:
        shape = get_aval(value).shape
        _check_axis("split_axis", split_axis, len(shape))
        split = split_axis + (split_axis < 0) * len(shape)
        concat = canonicalize_axis(concat_axis, len(shape))
        if not tiled:
            if shape[split] != size:
                raise ValueError(
                    "all_to_all requires the size of the mapped axis axis_name to "
                    f"equal x.shape[split_axis], but they are {size} and "
                    f"{shape[split]} respectively."
                )
            if split != concat:
                concat += split < concat
                split += split > concat
                value = expand_dims(value, (concat,))
        out = all_to_all_p.bind(value, split_axis=split, concat_axis=concat, **along)
        if not tiled and split != concat:
            out = squeeze(out, (split,))
        return out

    return tree_map(leaf, x)


def pswapaxes(
    x: Any, axis_name: Axes, axis: int, *, axis_index_groups: Any = None
) -> Any:
    """Exchange an axis of the array with a named axis of the same size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
