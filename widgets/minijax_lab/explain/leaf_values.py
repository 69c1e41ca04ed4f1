"""What the arrays in a tree hold, for `see.tree`: numbers, or means, and the pieces."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.core.array import Array
from minijax.core.avals import get_aval
from minijax.core.language import Tracer
from minijax_lab.explain.recording import count_in_words
from minijax_lab.explain.small_values import (
    MOST_SHOWN,
    Values,
    is_real,
    is_small,
    rows_of,
)

LARGEST = sys.float_info.max
# Cells along a side of an array whose numbers are not shown one by one.
FEW = 16
# The same in a program with more than `MANY` arrays, so that its page stays short.
FEWER, MANY = 8, 80
# Without being asked, so many numbers are read, and so many cells are drawn.
MOST_READ = 2**22
MOST_CELLS = 20_000


@dataclass
class Held:
    """What an array holds, as rows of numbers or of the means of blocks.

    `cuts` are where the pieces of an array on several devices end, downwards and
    across, in cells. Axes before the last lie under one another.
    """

    rows: Values
    told: str
    exact: bool = True  # each cell is one number, at its index
    cuts: list[list[float]] = field(default_factory=lambda: [[], []])


@dataclass
class Reader:
    """Reads leaves one by one: all if `wanted` is true, none if it is false, else the
    first ones that are not too many numbers."""

    wanted: bool | None = None
    read: int = 0
    drawn: int = 0

    def held(self, leaf: Any) -> Held | None:
        """What a leaf holds, without rows if they are too many; None of no numbers."""
        if self.wanted is False or not has_numbers(leaf):
            return None
        size = math.prod(np.shape(leaf))
        cells = size if size <= MOST_SHOWN**2 else FEW**2
        if self.wanted is None:
            if self.read + size > MOST_READ or self.drawn + cells > MOST_CELLS:
                return Held([], "too many numbers to draw: values=True draws all")
            self.read += size
            self.drawn += cells
        return held_by(
            leaf, MOST_SHOWN if self.wanted or size <= MOST_SHOWN**2 else FEW
        )


def rows_or_means(values: Mapping[str, Any]) -> dict[str, Values]:
    """The numbers of arrays by their names, as rows: of a large one, and of one with a
    long side, the means of blocks; axes before the last stand under one another. Where
    the cells are too many for a page, the larger arrays have larger blocks."""
    cells = FEW if len(values) <= MANY else FEWER
    sizes = {name: get_aval(value).size for name, value in values.items()}
    found = {}
    left = MOST_CELLS
    for name in sorted(values, key=sizes.__getitem__):
        aval, few = get_aval(values[name]), left < MOST_SHOWN**2
        rows = [] if few and sizes[name] > FEWER**2 else rows_of(values[name])
        if not rows and is_real(aval) and aval.size:
            most = FEWER if few else MOST_SHOWN if is_small(aval) else cells
            rows = held_by(np.asarray(values[name]), most).rows
        if rows:
            found[name] = rows
            left -= len(rows) * len(rows[0])
    return {name: found[name] for name in values if name in found}


def has_numbers(leaf: Any) -> bool:
    """Whether a leaf is an array of real numbers that this process can read."""
    of_jax = type(leaf).__name__ == "ArrayImpl"
    if isinstance(leaf, Tracer):
        return False
    if not (of_jax or isinstance(leaf, (Array, np.ndarray, np.generic, int, float))):
        return False
    if isinstance(leaf, (int, float)):
        return isinstance(leaf, float) or abs(leaf) <= LARGEST
    dtype = leaf.dtype
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufV" or not leaf.size:
        return False
    if dtype.type is np.void or dtype.names:
        return False
    if isinstance(leaf, (np.ndarray, np.generic)):
        return True
    return leaf.is_fully_addressable and not leaf.is_deleted()


def held_by(leaf: Any, most: int) -> Held:
    """What an array holds, in at most so many rows and columns of cells."""
    array = np.asarray(leaf).astype(np.float64)
    table = array.reshape(-1, array.shape[-1] if array.ndim else 1)
    if array.ndim == 1:
        table = array[None]
    down, across = (-(-size // most) for size in table.shape)
    means = mean_of_blocks(table, down, across)
    rows = [[float(f"{x:.4g}") for x in row] for row in means]
    told = [in_words(array)]
    if down * across > 1:
        told.append(f"a cell: the mean of {down} x {across}")
    if array.ndim > 2:
        told.append(f"axis {array.ndim - 1} across, the others down")
    made = Held(rows, "; ".join(told), down * across == 1 and array.ndim < 3)
    devices = getattr(getattr(leaf, "sharding", None), "device_set", ())
    if len(devices) > 1:
        note_pieces(made, leaf, down, across)
    return made


def mean_of_blocks(table: np.ndarray, down: int, across: int) -> np.ndarray:
    """The means of blocks of `down` rows and `across` columns; the last are smaller."""
    starts = [np.arange(0, size, by) for size, by in zip(table.shape, (down, across))]
    rows, columns = (
        np.diff(start, append=size) for start, size in zip(starts, table.shape)
    )
    # Divided before they are added up: the sum of large numbers is infinite.
    with np.errstate(all="ignore"):
        parts = np.add.reduceat(table / np.repeat(rows, rows)[:, None], starts[0], 0)
        return np.add.reduceat(parts / np.repeat(columns, columns), starts[1], 1)


def in_words(array: np.ndarray) -> str:
    """The least, the largest and the mean number, and how many are no numbers."""
    finite = array[np.isfinite(array)]
    if not finite.size:
        return "no number is finite"
    if array.size == 1:
        return f"{array.item():.4g}"
    low, high = finite.min(), finite.max()
    lost = array.size - finite.size
    if low == high:
        told = f"{low:.4g} {'where finite' if lost else 'everywhere'}"
    else:
        mean = (finite / finite.size).sum()
        told = f"{low:.4g} to {high:.4g}, mean {mean:.4g}"
    return f"{told}, {lost} not finite" if lost else told


def note_pieces(made: Held, leaf: Any, down: int, across: int) -> None:
    """Notes how an array lies on several devices, and where its pieces end."""
    where = leaf.sharding.devices_indices_map(leaf.shape)
    pieces = {
        tuple(index.indices(size)[:2] for index, size in zip(indices, leaf.shape))
        for indices in where.values()
    }
    spec = getattr(leaf.sharding, "spec", type(leaf.sharding).__name__)
    told = f"{spec}: {count_in_words(len(pieces), 'piece')}"
    copies = len(where) // len(pieces)
    told += f" x {copies} copies" if copies > 1 else ""
    made.told += f"; {told.replace('PartitionSpec', 'P')} on {len(where)} devices"
    starts = [sorted({piece[d][0] for piece in pieces} - {0}) for d in range(leaf.ndim)]
    if leaf.ndim == 1:
        made.cuts = [[], [start / across for start in starts[0]]]
    elif leaf.ndim == 2:
        made.cuts = [[s / by for s in each] for each, by in zip(starts, (down, across))]
