"""Collectives and `axis_index` as StableHLO, and the body that they stand in.

The blocks of the primitives, in `collectives.py`, have these functions as lowering
rules.

The program on each device is a `sdy.manual_computation`. A collective lists the groups
of devices that take part, by their positions in the mesh: over axis "x" of a 4x2 mesh
they are [[0, 2, 4, 6], [1, 3, 5, 7]].

In JAX: `lax/parallel.py`, `_allreduce_lowering` and others; `jax/_src/shard_map.py`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax.core import hlo, lowering
from minijax.core.language import Primitive, ShapedArray
from minijax.support.devices.partition_spec import checked_names
from minijax.support.devices.shardings import NamedSharding, PartitionSpec, sdy_sharding


class _Lowering(threading.local):
    """The mesh and the manual axes of the `shard_map` being lowered."""

    mesh: Any = None
    axes: tuple = ()


_current = _Lowering()


class mesh_being_lowered:
    """The context in which the body of a `shard_map` is lowered."""

    def __init__(self, mesh: Any, axes: Sequence[Hashable]) -> None:
        self.new = (mesh, tuple(axes))

    def __enter__(self) -> None:
        self.old = (_current.mesh, _current.axes)
        _current.mesh, _current.axes = self.new

    def __exit__(self, *exception: Any) -> None:
        _current.mesh, _current.axes = self.old


def current_axes() -> tuple:
    """The manual axes of the `shard_map`s being lowered."""
    return _current.axes


def _mesh() -> Any:
    if _current.mesh is None:
        raise NotImplementedError(
            "a collective over a mesh axis is compiled inside shard_map only: map the "
            "function that calls it by `shard_map`."
        )
    return _current.mesh


def _groups(names: Sequence[Hashable], chosen: Any = None) -> np.ndarray:
    """The groups of devices along mesh axes, a row for each group.

    `chosen` are groups of indices along the axes, if only these exchange data.
    """
    mesh = _mesh()
    sizes = mesh.axis_sizes
    order = [mesh.axis_names.index(name) for name in names]
    others = [axis for axis in range(len(sizes)) if axis not in order]
    numbers = np.arange(mesh.size).reshape(sizes).transpose([*others, *order])
    rows = numbers.reshape(-1, int(np.prod([sizes[axis] for axis in order])))
    if chosen is None:
        return rows
    # Groups of different sizes are filled up with -1.
    size = max(map(len, chosen))
    found = np.full((len(rows) * len(chosen), size), -1)
    for at, (row, group) in enumerate(itertools.product(rows, chosen)):
        found[at, : len(group)] = row[list(group)]
    return found


def _channel(ctx: Any) -> Any:
    """A number of its own for each collective of a module."""
    module = ctx.module_context
    module.channels += 1
    return hlo.stablehlo.ChannelHandle.get(module.channels, 1)


def _exchange(ctx: Any, names: Sequence[Hashable], chosen: Any) -> dict[str, Any]:
    return {
        "replica_groups": hlo.dense(_groups(names, chosen).astype(np.int64)),
        "channel_handle": _channel(ctx),
    }


# ----------------------------------------------------------------------------------
# Reductions
# ----------------------------------------------------------------------------------


def _all_reduce(ctx: Any, x: Any, names: Sequence, chosen: Any, combine: str) -> Any:
    (aval,) = ctx.avals_out
    kind = lowering.tensor_type(aval)
    reduced = hlo.stablehlo.AllReduceOp(
        [kind], [x], **_exchange(ctx, names, chosen), use_global_device_ids=True
    )
    _combiner(reduced, aval, combine)
    return reduced.results[0]


def _combiner(operation: Any, aval: Any, combine: str) -> None:
    """The region that says how two entries become one."""
    scalar = lowering.tensor_type(ShapedArray((), aval.dtype))
    block = operation.regions[0].blocks.append(scalar, scalar)
    with hlo.ir.InsertionPoint(block):
        if aval.dtype == np.bool_:
            combine = {"add": "or_", "maximum": "or_", "minimum": "and_"}[combine]
        result = getattr(hlo.stablehlo, combine)(*block.arguments)
        hlo.stablehlo.ReturnOp([result])


def reduction(primitive: Primitive, combine: str, positional: Callable) -> Callable:
    """The lowering rule of psum, pmax or pmin; `positional` reduces along positions."""

    def lower(ctx: Any, x: Any, *, axes: tuple, axis_index_groups: Any) -> Any:
        places = tuple(axis for axis in axes if isinstance(axis, int))
        names = [axis for axis in axes if not isinstance(axis, int)]
        if places:
            (x,) = ctx.lower_fun(lambda y: positional(y, places), x)
        if not names:
            return x
        return _all_reduce(ctx, x, names, axis_index_groups, combine)

    return lower


def psum_invariant(ctx: Any, x: Any, *, axes: tuple) -> Any:
    return _all_reduce(ctx, x, axes, None, "add")


# ----------------------------------------------------------------------------------
# Exchanges
# ----------------------------------------------------------------------------------


def names_of(axis_name: Any) -> tuple:
    """One axis or several as a tuple; TypeError for a name that cannot be hashed."""
    names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
    return checked_names(names, "axis_name")


def _reshape(x: Any, aval: Any, shape: Sequence[int]) -> Any:
    kind = lowering.tensor_type(ShapedArray(tuple(shape), aval.dtype))
    return hlo.stablehlo.reshape(kind, x)


def _inserted(shape: Sequence[int], axis: int) -> list[int]:
    return [*shape[:axis], 1, *shape[axis:]]


def all_gather(
    ctx, x, *, axis_name, all_gather_dimension, tiled, axis_index_groups=None, **_
) -> Any:
    (aval,) = ctx.avals_in
    if not tiled:
        x = _reshape(x, aval, _inserted(aval.shape, all_gather_dimension))
    gathered = hlo.stablehlo.AllGatherOp(
        [ctx.result_type()],
        [x],
        all_gather_dim=all_gather_dimension,
        **_exchange(ctx, names_of(axis_name), axis_index_groups),
        use_global_device_ids=True,
    )
    return gathered.results[0]


def reduce_scatter(
    ctx, x, *, axis_name, scatter_dimension, tiled, axis_index_groups=None, **_
) -> Any:
    (aval,), (out,) = ctx.avals_in, ctx.avals_out
    shape = out.shape if tiled else _inserted(out.shape, scatter_dimension)
    scattered = hlo.stablehlo.ReduceScatterOp(
        lowering.tensor_type(ShapedArray(tuple(shape), aval.dtype)),
        x,
        scatter_dimension=scatter_dimension,
        **_exchange(ctx, names_of(axis_name), axis_index_groups),
        use_global_device_ids=True,
    )
    _combiner(scattered, aval, "add")
    return scattered.results[0] if tiled else _reshape(scattered, aval, out.shape)


def all_to_all(
    ctx, x, *, axis_name, split_axis, concat_axis, axis_index_groups, tiled, **_
) -> Any:
    """Untiled, the axis that is split goes and one of the same size comes."""
    (aval,), (out,) = ctx.avals_in, ctx.avals_out
    split, concat = split_axis, concat_axis
    if not tiled:
        concat = concat_axis if concat_axis <= split_axis else concat_axis + 1
        x = _reshape(x, aval, _inserted(aval.shape, concat))
        split = split_axis + (concat <= split_axis)
    names = names_of(axis_name)
    exchanged = hlo.stablehlo.AllToAllOp(
        [x],
        split_dimension=split,
        concat_dimension=concat,
        split_count=_groups(names, axis_index_groups).shape[1],
        **_exchange(ctx, names, axis_index_groups),
    ).results[0]
    return exchanged if tiled else _reshape(exchanged, aval, out.shape)


def ppermute(ctx: Any, x: Any, *, axis_name: Any, perm: tuple) -> Any:
    rows = _groups(names_of(axis_name))
    pairs = [(row[source], row[target]) for row in rows for source, target in perm]
    return hlo.stablehlo.CollectivePermuteOp(
        x,
        source_target_pairs=hlo.dense(np.array(pairs, np.int64).reshape(-1, 2)),
        channel_handle=_channel(ctx),
    ).results[0]


def pbroadcast(ctx: Any, x: Any, *, axis_name: Any, source: int) -> Any:
    rows = _groups(names_of(axis_name))
    # One step for each destination: a source may send to one device at a time.
    result = x
    index = _index_of(names_of(axis_name))
    equal = hlo.stablehlo.ComparisonDirectionAttr.get("EQ")
    for place in range(rows.shape[1]):
        if place == source:
            continue
        step = np.array([(row[source], row[place]) for row in rows], np.int64)
        moved = hlo.stablehlo.CollectivePermuteOp(
            x, source_target_pairs=hlo.dense(step), channel_handle=_channel(ctx)
        ).results[0]
        here = hlo.stablehlo.compare(index, hlo.constant(np.uint32(place)), equal)
        result = hlo.stablehlo.select(here, moved, result)
    return result


# ----------------------------------------------------------------------------------
# Where am I
# ----------------------------------------------------------------------------------


def _index_of(names: Sequence[Hashable]) -> Any:
    """The index along mesh axes, as ui32."""
    mesh = _mesh()
    sizes = dict(mesh.shape)
    index = None
    for name in names:
        after = mesh.axis_names[mesh.axis_names.index(name) + 1 :]
        stride = int(np.prod([sizes[other] for other in after], dtype=np.int64))
        size = sizes[name]
        place = hlo.stablehlo.partition_id()
        place = hlo.stablehlo.divide(place, hlo.constant(np.uint32(stride)))
        place = hlo.stablehlo.remainder(place, hlo.constant(np.uint32(size)))
        if index is not None:
            scaled = hlo.stablehlo.multiply(index, hlo.constant(np.uint32(size)))
            place = hlo.stablehlo.add(scaled, place)
        index = place
    return index


def axis_index(ctx: Any, *, axis_name: Hashable) -> Any:
    mesh = _mesh()
    int32 = lowering.tensor_type(ShapedArray((), np.dtype(np.int32)))

    def write() -> Any:
        return hlo.stablehlo.convert(int32, _index_of((axis_name,)))

    rest = [name for name in mesh.axis_names if name not in _current.axes]
    if not rest:
        return write()
    # XLA knows the device's number only where all axes are manual.
    spec = NamedSharding(mesh, PartitionSpec())
    (result,) = manual_computation(
        [], [], [int32], [spec], rest, lambda _: [write()], of_rank=[0]
    )
    return result


def manual_computation(
    operands: Sequence[Any],
    ins: Sequence[NamedSharding],
    types: Sequence[Any],
    outs: Sequence[NamedSharding],
    axes: Sequence[Hashable],
    write: Callable[[Sequence[Any]], Sequence[Any]],
    inner_types: Sequence[Any] = (),
    open_dims: bool = False,
    of_rank: Sequence[int] = (),
) -> list[Any]:
    """A region in which each device runs the program that `write` writes.

    `inner_types` are the types of the parts of the operands; `types` those of the whole
    results.
    """
    sdy = hlo.sdy

    def cut(sharding: NamedSharding, kind: Any) -> Any:
        rank = getattr(kind, "rank", 0)  # tokens have none
        return sdy_sharding(sharding, rank, open_dims)

    in_attributes = [cut(s, x.type) for s, x in zip(ins, operands)]
    out_attributes = [cut(s, kind) for s, kind in zip(outs, types)]
    operation = sdy.ManualComputationOp(
        list(types),
        list(operands),
        sdy.TensorShardingPerValueAttr.get(in_attributes),
        sdy.TensorShardingPerValueAttr.get(out_attributes),
        sdy.ManualAxesAttr.get([hlo.string(str(name)) for name in axes]),
    )
    block = operation.body.blocks.append(*inner_types)
    with hlo.ir.InsertionPoint(block):
        sdy.ReturnOp(list(write(list(block.arguments))))
    return list(operation.results)
