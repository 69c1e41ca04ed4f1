"""Reading an index: what each entry of `x[...]` is, and which axes it consumes.

In JAX: `numpy/index/indexing.py`, `ParsedIndex`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.compile.jit_api import eval_shape
from minijax.core import dtypes, language
from minijax.core.array import Array
from minijax.numpy.arguments import is_concrete
from minijax.numpy.shapes import creation
from minijax.support import special_errors


class Kind(enum.Enum):
    """The kind of one entry of an index."""

    NEW_AXIS = "None"
    SLICE = "slice"
    ELLIPSIS = "ellipsis"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    ARRAY = "array"


_ONE_AXIS = frozenset({Kind.SLICE, Kind.INTEGER, Kind.ARRAY})
_WHOLE = slice(None)


class Item(NamedTuple):
    """One entry of an index, and the axes of the operand that it consumes."""

    kind: Kind
    index: Any
    axes: tuple[int, ...]


# --------------------------------------------------------------------------
# Reading the index


def _kind_of(entry: Any) -> Kind:
    """Classify one entry; raises TypeError or IndexError if it is not an index."""
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        return Kind.INTEGER
    if isinstance(entry, slice):
        return Kind.SLICE
    if entry is None:
        return Kind.NEW_AXIS
    if entry is Ellipsis:
        return Kind.ELLIPSIS
    if isinstance(entry, (bool, np.bool_)):
        return Kind.BOOLEAN
    if isinstance(entry, (language.Tracer, Array, np.ndarray)):
        return _array_kind(entry.dtype)
    if isinstance(entry, str):
        raise TypeError(
            f"JAX does not support string indexing; got idx={entry!r}. Arrays have no "
            "named fields: keep a dict of arrays instead."
        )
    if isinstance(entry, Sequence):
        return _array_kind(_sequence_dtype(entry)) if entry else Kind.ARRAY
    if isinstance(entry, (float, complex, np.generic)):
        return _array_kind(np.dtype(type(entry)))
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer "
        f"or boolean arrays are valid indices. Got {entry}"
    )


def _array_kind(dtype: Any) -> Kind:
    if dtypes.issubdtype(dtype, np.bool_):
        return Kind.BOOLEAN
    if dtypes.issubdtype(dtype, np.integer):
        return Kind.ARRAY
    raise TypeError(
        f"Indexer must have integer or boolean type, got indexer with type {dtype}. "
        "Convert it with .astype(int) if its values are whole numbers."
    )


def _sequence_dtype(entry: Sequence[Any]) -> Any:
    return eval_shape(creation.asarray, entry).dtype


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """The index as a tuple; JAX takes no list in place of a tuple or an array."""
    if isinstance(index, tuple):
        return index
    arrays = (language.Tracer, Array, np.ndarray, str)
    if not isinstance(index, Sequence) or isinstance(index, arrays):
        return (index,)
    nested = any(
        entry is None
        or entry is Ellipsis
        or isinstance(entry, (slice, Sequence))
        or (isinstance(entry, arrays) and np.ndim(entry) != 0)
        for entry in index
    )
    instead = "arr[tuple(seq)]" if nested else "arr[jnp.array(seq)]"
    raise TypeError(
        "Using a non-tuple sequence for multidimensional indexing is not allowed; "
        f"use `{instead}` instead of `arr[seq]`."
    )


def parse(index: Any, shape: tuple[int, ...]) -> list[Item]:
    """The entries of `index` with the axes they consume.

    An ellipsis consumes all axes that no other entry does. Raises IndexError for a
    second ellipsis and for more entries than axes.
    """
    entries = _as_tuple(index)
    kinds = [_kind_of(entry) for entry in entries]
    if len(kinds) <= len(shape) and _ONE_AXIS.issuperset(kinds):
        pairs = zip(kinds, entries, strict=True)
        return [Item(kind, entry, (i,)) for i, (kind, entry) in enumerate(pairs)]
    counts = [
        np.ndim(entry) if kind is Kind.BOOLEAN else int(kind in _ONE_AXIS)
        for kind, entry in zip(kinds, entries, strict=True)
    ]
    if kinds.count(Kind.ELLIPSIS) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    total = sum(counts)
    if total > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {total} were "
            "indexed"
        )
    if Kind.ELLIPSIS in kinds:
        counts[kinds.index(Kind.ELLIPSIS)] = len(shape) - total
    items = []
    axis = 0
    for kind, entry, count in zip(kinds, entries, counts, strict=True):
        items.append(Item(kind, entry, tuple(range(axis, axis + count))))
        axis += count
    return items


def expand_ellipsis(items: list[Item], rank: int) -> list[Item]:
    """Full slices in place of the ellipsis and of axes that no entry mentions."""
    expanded = []
    for item in items:
        if item.kind is Kind.ELLIPSIS:
            expanded += [Item(Kind.SLICE, _WHOLE, (axis,)) for axis in item.axes]
        else:
            expanded.append(item)
    first = max((axis + 1 for item in items for axis in item.axes), default=0)
    expanded += [Item(Kind.SLICE, _WHOLE, (axis,)) for axis in range(first, rank)]
    return expanded


def expand_masks(items: list[Item], shape: tuple[int, ...]) -> list[Item]:
    """Masks as integer arrays, one for each axis they cover.

    How many elements a mask selects is the shape of the result, so its values must be
    known now: raises NonConcreteBooleanIndexError for a traced mask, and IndexError
    for one of the wrong shape.
    """
    expanded = []
    for position, item in enumerate(items):
        if item.kind is not Kind.BOOLEAN:
            expanded.append(item)
            continue
        if not is_concrete(item.index):
            raise special_errors.NonConcreteBooleanIndexError(item.index)
        mask = np.asarray(item.index)
        if mask.ndim == 0:
            expanded.append(Item(Kind.BOOLEAN, bool(mask), ()))
            continue
        expected = tuple(shape[axis] for axis in item.axes)
        if any(size not in (0, want) for size, want in zip(mask.shape, expected)):
            raise IndexError(
                "boolean index did not match shape of indexed array in index "
                f"{position}: got {mask.shape}, expected {expected}"
            )
        for axis, where_true in zip(item.axes, np.nonzero(mask), strict=True):
            expanded.append(Item(Kind.ARRAY, where_true, (axis,)))
    return expanded
