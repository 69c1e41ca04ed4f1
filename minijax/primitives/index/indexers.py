"""How a ref is indexed: integers, arrays of integers and slices, one for each axis.

An `NDIndexer` is a pytree: what is known while tracing (static slices) is its
structure, and what may be computed (indices, starts of slices) its leaves. So an
equation that reads `ref[i, :2]` has the operands `ref` and `i`, and a tree that puts
them together.

As in NumPy, arrays of indices broadcast against each other to one shape, which stands
where they stand if they are neighbours, and in front otherwise.

In JAX: `state/indexing.py` and `indexing.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import dtypes, rules, shaping, trees
from minijax.core.language import Literal, Tracer, get_aval, to_concrete_value
from minijax.core.rules import moveaxis
from minijax.primitives.shape import broadcasting, casting
from minijax.support import tree_util


def _is_static(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@tree_util.register_pytree_node_class
@dataclass(frozen=True, slots=True)
class Slice:
    """`size` entries of an axis from `start` on, `stride` apart.

    `start` may be computed; then it is a leaf of the pytree.

    In JAX: `jax.experimental.pallas.Slice`.
    """

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride < 0:
            raise ValueError(f"`stride` must be >= 0, got {self.stride}.")

    is_dynamic_start = property(lambda self: not _is_static(self.start))
    is_dynamic_size = property(lambda self: not _is_static(self.size))

    def tree_flatten(self) -> tuple[tuple, tuple]:
        fields = (self.start, self.size)
        static = tuple(x if _is_static(x) else None for x in fields)
        return tuple(None if _is_static(x) else x for x in fields), (
            *static,
            self.stride,
        )

    @classmethod
    def tree_unflatten(cls, static: tuple, children: Sequence[Any]) -> Slice:
        start, size = (
            known if child is None else child for known, child in zip(static, children)
        )
        return cls(start, size, static[2])

    @classmethod
    def from_slice(cls, bounds: builtins.slice, size: int) -> Slice:
        """Python's `start:stop:step` on an axis of a given size; steps go forward."""
        start, stop, step = bounds.indices(size)
        if step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {step})")
        return cls(start, len(range(start, stop, step)), step)


def dslice(start: Any, size: int | None = None, stride: int | None = None) -> Any:
    """The slice of `size` entries from a start that may be computed.

    With one argument, that many entries from 0 on; `dslice(None)` is the whole axis.

    Raises ValueError when the stride is not known while tracing.
    """
    if start is None:
        return builtins.slice(None)
    stride = 1 if stride is None else stride
    if not isinstance(stride, int):
        raise ValueError(f"`dslice` takes a stride known while tracing, got {stride}.")
    if size is None:
        start, size = 0, start
    return Slice(start, size, stride)


ds = dslice


@tree_util.register_pytree_node_class
@dataclass(frozen=True, slots=True)
class NDIndexer:
    """One entry, a `Slice` or an integer scalar or array, for each axis of `shape`.

    All arrays of integers have the shape `int_indexer_shape`, scalars beside them.

    In JAX: `state/indexing.py`, `NDIndexer`.
    """

    indices: tuple[Any, ...]
    shape: tuple[int, ...]
    int_indexer_shape: tuple[int, ...]

    def tree_flatten(self) -> tuple[list, tuple]:
        leaves, tree = trees.tree_flatten(self.indices)
        return leaves, (tree, self.shape, self.int_indexer_shape)

    @classmethod
    def tree_unflatten(cls, static: tuple, leaves: Sequence[Any]) -> NDIndexer:
        tree, shape, int_indexer_shape = static
        return cls(trees.tree_unflatten(tree, leaves), shape, int_indexer_shape)

    @classmethod
    def from_indices_shape(cls, indices: Any, shape: tuple[int, ...]) -> NDIndexer:
        """Read the index `ref[indices]` of a ref of the given shape.

        Raises ValueError for too many entries, a second ellipsis, arrays that do not
        broadcast, and known indices that are out of bounds.
        """
        entries = _without_ellipsis(indices, len(shape))
        entries = [
            Slice.from_slice(entry, size)
            if isinstance(entry, builtins.slice)
            else entry
            for entry, size in zip(entries, shape)
        ]
        _check_bounds(entries, shape)
        integers = [entry for entry in entries if not isinstance(entry, Slice)]
        common: tuple[int, ...] = ()
        if integers:
            avals = [get_aval(entry) for entry in integers]
            shapes = [aval.shape for aval in avals]
            for aval, entry in zip(avals, integers):
                if not dtypes.issubdtype(aval.dtype, np.integer):
                    raise TypeError(
                        "the index of a ref has integers and slices, got "
                        f"{entry!r} of dtype {aval.dtype}."
                    )
            try:
                common = np.broadcast_shapes(*shapes)
            except ValueError:
                raise ValueError(
                    f"Cannot broadcast shapes for indexing: {shapes}. Arrays of "
                    "indices must have shapes that broadcast against each other."
                ) from None
        entries = [
            entry if isinstance(entry, Slice) else broadcast_to(entry, common)
            for entry in entries
        ]
        return cls(tuple(entries), shape, common)

    @property
    def is_integer(self) -> list[bool]:
        """For each axis, whether it is indexed by integers."""
        return [not isinstance(entry, Slice) for entry in self.indices]

    @property
    def integers_are_neighbours(self) -> bool:
        """Whether nothing but integers stands between integers (or there are none)."""
        return bool(np.all(np.diff(np.flatnonzero(self.is_integer)) == 1))

    def result_shape(self) -> tuple[int, ...]:
        """The shape of the block that the indexer reads or writes."""
        sizes = [entry.size for entry in self.indices if isinstance(entry, Slice)]
        place = 0
        if any(self.is_integer) and self.integers_are_neighbours:
            place = self.is_integer.index(True)
        return (*sizes[:place], *self.int_indexer_shape, *sizes[place:])

    def numpy_index(self) -> tuple[Any, ...]:
        """The same index for a NumPy array; the leaves are NumPy's."""
        return tuple(
            builtins.slice(
                int(entry.start),
                int(entry.start) + entry.size * entry.stride,
                entry.stride,
            )
            if isinstance(entry, Slice)
            else entry
            for entry in self.indices
        )

    def pieces(self) -> list[Any]:
        """The text `[i,:2]` in pieces; see `print_options.prints_equation`."""
        pieces: list[Any] = []
        for entry, size in zip(self.indices, self.shape):
            pieces.append("," if pieces else "[")
            if isinstance(entry, Slice):
                pieces += _slice_pieces(entry, size)
            elif isinstance(entry, Literal):
                pieces.append(str(entry.val))
            else:
                pieces.append(entry)
        return [*pieces, "]"] if pieces else ["[]"]


def _slice_pieces(entry: Slice, axis_size: int) -> list[Any]:
    start, size = entry.start, entry.size
    if isinstance(start, Literal):
        start = start.val
    if not isinstance(start, (int, np.number)):
        return [start, ":", start, f"+{size}"]
    end = start + size
    return [f"{start or ''}:{'' if end == axis_size else end}"]


def _check_bounds(entries: Sequence[Any], shape: tuple[int, ...]) -> None:
    """ValueError when a known index or slice lies outside of the ref."""
    for entry, size in zip(entries, shape):
        if not isinstance(entry, Slice):
            index = _known(entry)
            if index is not None and index >= size:
                raise ValueError(f"Out of bound indexer: idx={index}, dim={size}.")
            continue
        start, count = _known(entry.start), _known(entry.size)
        if start is None or count is None:
            continue
        last = start + (count - 1) * entry.stride
        if (start and start >= size) or (count and last >= size):
            raise ValueError(
                f"Out of bound slice: start={start}, size={count}, "
                f"stride={entry.stride}, dim={size}."
            )


def _known(value: Any) -> int | None:
    """A scalar index that is known now as an int; None for arrays and tracers."""
    value = to_concrete_value(value) if isinstance(value, Tracer) else value
    return None if value is None or get_aval(value).shape else int(value)


def _without_ellipsis(indices: Any, rank: int) -> list[Any]:
    """One entry for each axis: an ellipsis, or the end, stands for whole axes."""
    entries = list(indices) if isinstance(indices, tuple) else [indices]
    whole = builtins.slice(None)
    places = [place for place, entry in enumerate(entries) if entry is Ellipsis]
    if len(places) > 1:
        raise ValueError("Only one ellipsis is supported.")
    if len(entries) - len(places) > rank:
        raise ValueError(
            f"`indices` must not be longer than `shape`: got {len(entries)} indices "
            f"for a ref of {rank} axes."
        )
    missing = [whole] * (rank - len(entries) + len(places))
    if places:
        entries[places[0] : places[0] + 1] = missing
        return entries
    return [*entries, *missing]


# ----------------------------------------------------------------------------------
# broadcast_to: an array of indices repeated to the common shape
# ----------------------------------------------------------------------------------

broadcast_to_p = rules.standard_primitive(
    "broadcast_to",
    lambda x, *, shape: shape,
    lambda x, *, shape: x.dtype,
    weak_type_rule=lambda x, *, shape: False,
    meaning=lambda x, shape: np.broadcast_to(x, shape),
)
broadcast_to_p.without("jvp transpose", "indices are integers, without tangents")


@broadcast_to_p.def_batch
def _broadcast_to_batch(axis_data, args, dims, *, shape) -> Any:
    x = moveaxis(args[0], dims[0], 0)
    rank = get_aval(x).ndim - 1
    places = (0, *range(1 + len(shape) - rank, 1 + len(shape)))
    return shaping.broadcast_in_dim(x, (axis_data.size, *shape), places), 0


@broadcast_to_p.def_lowering
def _broadcast_to_lowering(ctx, x, *, shape) -> Any:
    (aval,) = ctx.avals_in
    return ctx.broadcast_in_dim(
        x, aval, shape, range(len(shape) - aval.ndim, len(shape))
    )


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Any:
    """An index repeated to the common shape of all indices."""
    a = casting.asarray(a)
    return a if get_aval(a).shape == shape else broadcast_to_p.bind(a, shape=shape)


# ----------------------------------------------------------------------------------
# Under vmap
# ----------------------------------------------------------------------------------


def batched(
    indexer: NDIndexer,
    flat_dims: Sequence[int | None],
    size: int,
    ref_shape: tuple[int, ...],
    ref_dim: int | None,
) -> tuple[NDIndexer, int, list[int] | None]:
    """The indexer of a batch of refs, of indices, or of both.

    `flat_dims` are the batch axes of the indexer's leaves. Returns the new indexer, the
    batch axis of its block, and how the example's axes were permuted (None: not): where
    an index for the batch makes integers that were neighbours stand apart, theirs come
    to the front.

    In JAX: `state/primitives.py`, `_batch_indexer`, `_get_vmap`, `_swap_vmap`.
    """
    leaves = [_Dim(dim) for dim in flat_dims]
    dims = trees.tree_unflatten(trees.tree_structure(indexer), leaves)
    index_is_mapped = any(dim is not None for dim in flat_dims)
    common = (size, *indexer.int_indexer_shape)
    entries = [
        _batched_entry(entry, dim, common)
        for entry, dim in zip(indexer.indices, dims.indices)
    ]
    by_index = index_is_mapped or bool(indexer.int_indexer_shape)
    if not by_index:
        common = ()
    if ref_dim is not None:
        example: Any = Slice(0, size)
        if by_index:
            example = broadcasting.broadcasted_iota(np.dtype(np.int32), common, 0)
        entries.insert(ref_dim, example)
    new = NDIndexer(tuple(entries), ref_shape, common)
    if not by_index:
        assert ref_dim is not None
        return new, ref_dim - sum(new.is_integer[:ref_dim]), None
    if new.integers_are_neighbours:
        return new, new.is_integer.index(True), None
    if not indexer.integers_are_neighbours:
        return new, 0, None
    place, count = indexer.is_integer.index(True), len(common) - 1
    rank = len(new.result_shape())
    order = [
        0,
        *range(1 + place, 1 + place + count),
        *range(1, 1 + place),
        *range(1 + place + count, rank),
    ]
    return new, 0, order


class _Dim:
    """The batch axis of a leaf, in its place in a tree (where None is not a leaf)."""

    __slots__ = ("axis",)

    def __init__(self, axis: int | None):
        self.axis = axis


def _batched_entry(entry: Any, dim: Any, common: tuple[int, ...]) -> Any:
    if isinstance(entry, Slice):
        if any(leaf.axis is not None for leaf in trees.tree_leaves(dim)):
            raise NotImplementedError(
                "A ref cannot be sliced at starts that differ between the examples of "
                "vmap. Index it by an array of integers, `start + jnp.arange(size)`."
            )
        return entry
    if dim.axis is not None:
        return moveaxis(entry, dim.axis, 0)
    rank = get_aval(entry).ndim
    if not rank:
        return entry
    return shaping.broadcast_in_dim(entry, common, tuple(range(1, rank + 1)))
