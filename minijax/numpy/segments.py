"""Reductions of the rows that share a number: `segment_sum` and its kin.

Row i of `data` belongs to segment `segment_ids[i]`; the result has one row for each
segment. Each reduction is one scatter into rows of its neutral element.

In JAX: `ops/scatter.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile import placing
from minijax.language.array import Array
from minijax.numpy import creation, indexing, reductions, ufuncs
from minijax.numpy.arguments import concrete_or_error
from minijax.numpy.arraylike import check_arraylike
from minijax.support import dtypes


def _lowest(dtype: np.dtype) -> Any:
    """The neutral element of `max`."""
    if dtype == np.bool_:
        return False
    if dtypes.issubdtype(dtype, np.integer):
        return dtype.type(dtypes.iinfo(dtype).min)
    return -float("inf")


def _highest(dtype: np.dtype) -> Any:
    """The neutral element of `min`."""
    if dtype == np.bool_:
        return True
    if dtypes.issubdtype(dtype, np.integer):
        return dtype.type(dtypes.iinfo(dtype).max)
    return float("inf")


def _segment_reduce(
    name: str,
    scatter: Callable[..., Array],
    reduce: Callable[..., Array],
    neutral: Any,
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: Any,
    out_sharding: Any,
) -> Array:
    check_arraylike(name, data, segment_ids)
    data, segment_ids = creation.asarray(data), creation.asarray(segment_ids)
    if num_segments is None:
        num_segments = reductions.max(segment_ids) + 1
    num_segments = concrete_or_error(
        int,
        num_segments,
        f"The number of segments is the result's shape: under a transformation pass "
        f"{name}() a static `num_segments`.",
    )
    if num_segments < 0:
        raise ValueError("num_segments must be non-negative.")
    options: dict[str, Any] = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": lax.GatherScatterMode.FILL_OR_DROP if mode is None else mode,
        "normalize_indices": False,
    }
    shape = (num_segments, *data.shape[1:])
    if bucket_size is None:
        rows = creation.full(shape, neutral, dtype=data.dtype)
        out = indexing.scatter_update(rows, segment_ids, data, scatter, **options)
        return out if out_sharding is None else placing.device_put(out, out_sharding)
    if out_sharding is not None:
        raise NotImplementedError(
            f"{name}() takes either `bucket_size` or `out_sharding`; place the result "
            "with device_put."
        )
    # Neighbours go to the same bucket: short sums first, then the sum of those.
    buckets = -(-segment_ids.size // bucket_size)
    rows = creation.full((buckets, *shape), neutral, dtype=data.dtype)
    bucket = ufuncs.floor_divide(creation.arange(segment_ids.shape[0]), bucket_size)
    index = (bucket, segment_ids[None, :])
    out = indexing.scatter_update(rows, index, data, scatter, **options)
    return reduce(out, axis=0).astype(data.dtype)


def segment_sum(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of the rows of `data` in each segment, `(num_segments, *data.shape[1:])`.

    `segment_ids` gives the segment of each row; it need not be sorted, and rows with
    a number outside of `[0, num_segments)` are left out unless `mode` says otherwise.
    `num_segments` is `max(segment_ids) + 1` by default and must be static under `jit`.
    With `bucket_size`, so many neighbours are summed at a time, which rounds less.
    `indices_are_sorted` and `unique_indices` are promises that are not checked.
    Raises ValueError for a negative `num_segments`.
    """
    return _segment_reduce(
        "segment_sum", lax.scatter_add, reductions.sum, 0, data, segment_ids,
        num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )  # fmt: skip


def segment_prod(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The product of the rows in each segment, 1 if it is empty. See `segment_sum`."""
    return _segment_reduce(
        "segment_prod", lax.scatter_mul, reductions.prod, 1, data, segment_ids,
        num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )  # fmt: skip


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The maximum of the rows in each segment. See `segment_sum`.

    An empty segment has the lowest value of the dtype: -inf, or the least integer.
    """
    lowest = _lowest(creation.asarray(data).dtype)
    return _segment_reduce(
        "segment_max", lax.scatter_max, reductions.max, lowest, data, segment_ids,
        num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )  # fmt: skip


def segment_min(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The minimum of the rows in each segment. See `segment_sum`.

    An empty segment has the highest value of the dtype: inf, or the greatest integer.
    """
    highest = _highest(creation.asarray(data).dtype)
    return _segment_reduce(
        "segment_min", lax.scatter_min, reductions.min, highest, data, segment_ids,
        num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding,
    )  # fmt: skip
