"""Blocks of arrays: what reading and writing a ref means for the array in it.

When a program loses its refs (`transforms/discharge.py`), a read becomes a slice of
the current content, and a write gives a new content. An index that selects everything
costs nothing; slices known while tracing are a `slice`; integers and slices that are
computed, a `dynamic_slice` and a `dynamic_update_slice`; everything else a gather and a
scatter over arrays of indices.

In JAX: `state/discharge.py`, `transform_array`, `transform_swap_array`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import shaping
from minijax.core.language import Primitive, get_aval
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.index.indexers import NDIndexer, Slice
from minijax.primitives.shape import broadcasting, slicing
from minijax.primitives.shape.squeezing import expand_dims, squeeze
from minijax.support.tables import Table

# By primitive: how it is discharged, as `transforms/discharge.py` says.
discharge_rules = Table("discharge_rules")


def discharges(primitive: Primitive) -> Callable[[Callable], Callable]:
    """Decorator of `(content, *args, **params) -> (new content or None, outputs)`.

    It makes the discharge rule of a primitive whose first argument is the only ref.
    """

    def set_rule(rule) -> Callable:
        def discharge(discharged, *args, **params) -> tuple[list[Any], Any]:
            content, out = rule(*args, **params)
            return [content, *[None] * (len(args) - 1)], out

        discharge_rules[primitive] = discharge
        return rule

    return set_rule


def read(x: Any, indexers: Sequence[NDIndexer]) -> Any:
    """The block that the indexers, one after another, select of an array."""
    for indexer in indexers:
        x = _read_one(x, indexer)
    return x


def swap(x: Any, indexers: Sequence[NDIndexer], value: Any) -> tuple[Any, Any]:
    """(the array with a block replaced, what was there)."""
    contents = [x]
    for indexer in indexers:
        contents.append(_read_computed(contents[-1], indexer))
    new = value
    for content, indexer in zip(reversed(contents[:-1]), reversed(indexers)):
        new = _write_one(content, indexer, new)
    return new, contents[-1]


def add(x: Any, indexers: Sequence[NDIndexer], value: Any) -> Any:
    """The array with something added to a block.

    Raises NotImplementedError for an index of an index.
    """
    if len(indexers) > 1:
        raise NotImplementedError(
            "Only single indexer is supported: write one index for `ref.at[i].at[j]`."
        )
    if not indexers or selects_everything(indexers[0]):
        return elementwise.add(x, value)
    (indexer,) = indexers
    computed = as_dynamic_slice(indexer)
    if computed is not None:
        starts, sizes, squeezed = computed
        old = dynamic_slicing.dynamic_slice(x, starts, sizes)
        value = expand_dims(value, squeezed)
        return dynamic_slicing.dynamic_update_slice(
            x, elementwise.add(old, value), starts
        )
    order, x, indexer = _integers_in_front(x, indexer)
    arrays = _index_arrays(indexer)
    return _back(shaping.stage(x).at[arrays].add(value), order)


def selects_everything(indexer: NDIndexer) -> bool:
    """Whether the block is the whole array."""
    return all(
        isinstance(entry, Slice)
        and not entry.is_dynamic_start
        and not entry.is_dynamic_size
        and entry.start == 0
        and entry.size == size
        for entry, size in zip(indexer.indices, indexer.shape)
    )


def _read_one(x: Any, indexer: NDIndexer) -> Any:
    if selects_everything(indexer):
        return x
    bounds = _as_static_slice(indexer)
    if bounds is not None:
        return slicing.slice(x, *zip(*bounds))
    return _read_computed(x, indexer)


def _read_computed(x: Any, indexer: NDIndexer) -> Any:
    """A read by `dynamic_slice` or a gather, as writes need it, too."""
    if selects_everything(indexer):
        return x
    computed = as_dynamic_slice(indexer)
    if computed is not None:
        starts, sizes, squeezed = computed
        block = dynamic_slicing.dynamic_slice(x, starts, sizes)
        return squeeze(block, squeezed)
    _, x, indexer = _integers_in_front(x, indexer)
    return shaping.stage(x)[_index_arrays(indexer)]


def _write_one(x: Any, indexer: NDIndexer, value: Any) -> Any:
    if selects_everything(indexer):
        return value
    computed = as_dynamic_slice(indexer)
    if computed is not None:
        starts, _, squeezed = computed
        value = expand_dims(value, squeezed)
        return dynamic_slicing.dynamic_update_slice(x, value, starts)
    order, x, indexer = _integers_in_front(x, indexer)
    arrays = _index_arrays(indexer)
    return _back(shaping.stage(x).at[arrays].set(value), order)


# ----------------------------------------------------------------------------------
# The index as slices, computed slices, or arrays
# ----------------------------------------------------------------------------------


def _as_static_slice(indexer: NDIndexer) -> list[tuple[int, int, int]] | None:
    """(start, limit, stride) of each axis, if all are known while tracing."""
    bounds = []
    for entry in indexer.indices:
        if not isinstance(entry, Slice) or not isinstance(entry.start, int):
            return None
        limit = entry.start + (entry.size - 1) * entry.stride + 1
        bounds.append((entry.start, limit, entry.stride))
    return bounds


def as_dynamic_slice(indexer: NDIndexer) -> tuple[tuple, tuple, tuple] | None:
    """(starts, sizes, axes of integers), if there are scalars and slices only."""
    for entry in indexer.indices:
        if isinstance(entry, Slice):
            if entry.stride != 1:
                return None
        elif get_aval(entry).shape:
            return None
    starts = tuple(
        shaping.convert_element_type(
            entry.start if isinstance(entry, Slice) else entry, np.dtype(np.int32)
        )
        for entry in indexer.indices
    )
    sizes = tuple(
        entry.size if isinstance(entry, Slice) else 1 for entry in indexer.indices
    )
    integers = tuple(np.flatnonzero(indexer.is_integer).tolist())
    return starts, sizes, integers


def _integers_in_front(
    x: Any, indexer: NDIndexer
) -> tuple[tuple[int, ...] | None, Any, NDIndexer]:
    """(order of axes, array, indexer), integers first if they stand apart.

    The block's axes stay where NumPy has them only if the integers, which a gather
    cannot tell from slices turned into arrays, come first.
    """
    if indexer.integers_are_neighbours:
        return None, x, indexer
    integers = indexer.is_integer
    order = tuple(sorted(range(len(integers)), key=lambda axis: not integers[axis]))
    moved = NDIndexer(
        tuple(indexer.indices[axis] for axis in order),
        indexer.shape,
        indexer.int_indexer_shape,
    )
    return order, shaping.transpose(x, order), moved


def _back(x: Any, order: tuple[int, ...] | None) -> Any:
    return x if order is None else shaping.transpose(x, np.argsort(order))


def _index_arrays(indexer: NDIndexer) -> tuple[Any, ...]:
    """Every entry as an array of integers, shaped to broadcast to the block."""
    rank = len(indexer.result_shape())
    integers = indexer.is_integer
    after = integers[::-1].index(True) if any(integers) else 0
    arrays = []
    axis_of_block = 0
    seen_integers = False
    for entry, is_integer in zip(indexer.indices, integers):
        if is_integer:
            if not seen_integers:
                axis_of_block += len(indexer.int_indexer_shape)
            seen_integers = True
            trailing = after
        else:
            iota = broadcasting.iota(np.dtype(np.int32), entry.size)
            entry = iota * entry.stride + entry.start
            trailing = rank - axis_of_block - 1
            axis_of_block += 1
        if trailing:
            shape = get_aval(entry).shape
            entry = shaping.reshape(entry, (*shape, *(1,) * trailing))
        arrays.append(entry)
    return tuple(arrays)
