"""Reductions of the rows that share a number: `segment_sum` and its kin.

Row i of `data` belongs to segment `segment_ids[i]`; the result has one row for each
segment. Each reduction is one scatter into rows of its neutral element.

In JAX: `ops/scatter.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core.array import Array
from minijax.numpy.arguments import static_index
from minijax.numpy.arraylike import check_arraylike
from minijax.numpy.boundaries import introduce
from minijax.numpy.index import indexing
from minijax.numpy.math import ufuncs
from minijax.numpy.reduce import reducing, reductions
from minijax.numpy.shapes import creation
from minijax.typing import ArrayLike


def _segment_reduction(
    scatter: Callable[..., Array], reduce: Callable[..., Array]
) -> Callable[[Callable[[np.dtype], Any]], Callable[..., Array]]:
    """Makes a reduction over segments of its neutral element, a function of the dtype.

    `scatter` combines rows with what is there already; `reduce` combines the buckets.
    """

    def decorate(neutral_of: Callable[[np.dtype], Any]) -> Callable[..., Array]:
        name = neutral_of.__name__

        def public(
            data: ArrayLike,
            segment_ids: ArrayLike,
            num_segments: int | None = None,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            bucket_size: int | None = None,
            mode: str | lax.GatherScatterMode | None = None,
            out_sharding: Any = None,
        ) -> Array:
            check_arraylike(name, data, segment_ids)
            rows, ids = creation.asarray(data), creation.asarray(segment_ids)
            if num_segments is None:
                num_segments = reductions.max(ids).astype(int) + 1
            num_segments = static_index(
                num_segments,
                "The number of segments is the result's shape: under a transformation "
                f"pass {name}() a static `num_segments`.",
            )
            if num_segments < 0:
                raise ValueError("num_segments must be non-negative.")
            update = functools.partial(
                indexing.scatter_update,
                scatter_op=scatter,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
                mode=lax.GatherScatterMode.FILL_OR_DROP if mode is None else mode,
                normalize_indices=False,
            )
            neutral = neutral_of(rows.dtype)
            shape = (num_segments, *rows.shape[1:])
            if bucket_size is None:
                empty = creation.full(shape, neutral, dtype=rows.dtype)
                return creation.laid_out(update, out_sharding, empty, ids, rows)
            if out_sharding is not None:
                raise NotImplementedError(
                    f"{name}() takes either `bucket_size` or `out_sharding`; place the "
                    "result with device_put."
                )
            # Neighbours go to the same bucket: short sums first, then the sum of those.
            buckets = -(-ids.size // static_index(bucket_size, "bucket_size"))
            empty = creation.full((buckets, *shape), neutral, dtype=rows.dtype)
            bucket = ufuncs.floor_divide(creation.arange(ids.shape[0]), bucket_size)
            out = update(empty, (bucket, ids[None, :]), rows)
            return reduce(out, axis=0).astype(rows.dtype)

        return introduce(public, neutral_of)

    return decorate


@_segment_reduction(lax.scatter_add, reductions.sum)
def segment_sum(dtype: np.dtype) -> Any:
    """The sum of the rows of `data` in each segment, `(num_segments, *data.shape[1:])`.

    `segment_ids` gives the segment of each row; it need not be sorted, and rows with
    a number outside of `[0, num_segments)` are left out unless `mode` says otherwise.
    `num_segments` is `max(segment_ids) + 1` by default and must be static under `jit`.
    With `bucket_size`, so many neighbours are summed at a time, which rounds less.
    `indices_are_sorted` and `unique_indices` are promises that are not checked.
    Raises ValueError for a negative `num_segments`.
    """
    return 0


@_segment_reduction(lax.scatter_mul, reductions.prod)
def segment_prod(dtype: np.dtype) -> Any:
    """The product of the rows in each segment, 1 if it is empty. See `segment_sum`."""
    return 1


@_segment_reduction(lax.scatter_max, reductions.max)
def segment_max(dtype: np.dtype) -> Any:
    """The maximum of the rows in each segment. See `segment_sum`.

    An empty segment has the lowest value of the dtype: -inf, or the least integer.
    """
    return reducing.neutral_element(dtype, -np.inf)


@_segment_reduction(lax.scatter_min, reductions.min)
def segment_min(dtype: np.dtype) -> Any:
    """The minimum of the rows in each segment. See `segment_sum`.

    An empty segment has the highest value of the dtype: inf, or the greatest integer.
    """
    return reducing.neutral_element(dtype, np.inf)
