"""What a TPU's vector unit does in its own way: roll, bitcast, masked load and store.

In JAX: `pallas/mosaic/primitives.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import shaping
from minijax.core.language import get_aval
from minijax.kernels import masked_access
from minijax.primitives.elementwise import rounding
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.shape import casting, joining, slicing
from minijax.support import element_types


def load(ref: Any, *, mask: Any = None) -> Any:
    """Read a ref, or a view of one; where the mask is False there is no value."""
    return masked_access.load(ref, mask=mask)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Write a ref, or a view of one, where the mask is True."""
    masked_access.store(ref, val, mask=mask)


def roll(
    x: Any,
    shift: Any,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Any:
    """`x` moved along an axis; what leaves at the end comes back at the start.

    Args:
      x: an array.
      shift: how far, not negative; it may be computed.
      axis: the axis.
      stride, stride_axis: row `i` along `stride_axis` moves `i * stride` further.

    Raises ValueError for axes that `x` does not have, and for negative numbers.
    """
    rank = get_aval(x).ndim
    if isinstance(shift, int) and shift < 0:
        raise ValueError(f"shift must be non-negative, got {shift}.")
    if not 0 <= axis < rank:
        raise ValueError(f"axis is out of range: {axis} of an array of rank {rank}.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both specified or not.")
    if stride is None or stride_axis is None:
        return _rolled(x, shift, axis)
    if stride < 0:
        raise ValueError(f"stride must be non-negative, got {stride}.")
    if not 0 <= stride_axis < rank:
        raise ValueError(
            f"stride_axis is out of range: {stride_axis} of an array of rank {rank}."
        )
    if axis == stride_axis:
        raise ValueError("axis and stride_axis must be different.")
    rows = [
        _rolled(
            slicing.slice_in_dim(x, i, i + 1, axis=stride_axis),
            shift + i * stride,
            axis,
        )
        for i in range(get_aval(x).shape[stride_axis])
    ]
    return joining.concatenate(rows, stride_axis)


def _rolled(x: Any, shift: Any, axis: int) -> Any:
    size = get_aval(x).shape[axis]
    if isinstance(shift, int):
        start = -shift % size
        if start == 0:
            return x
        end = slicing.slice_in_dim(x, start, size, axis=axis)
        return joining.concatenate(
            [end, slicing.slice_in_dim(x, 0, start, axis=axis)], axis
        )
    shift = shaping.convert_element_type(shift, np.dtype(np.int32))
    start = size - rounding.rem(shift, np.int32(size))
    twice = joining.concatenate([x, x], axis)
    return dynamic_slicing.dynamic_slice_in_dim(twice, start, size, axis)


def bitcast(x: Any, ty: Any) -> Any:
    """The same bits as another dtype; the last axis but one grows or shrinks with it.

    Raises ValueError for arrays of one axis, and for rows that do not fit together.
    """
    aval = get_aval(x)
    dtype = element_types.check_and_canonicalize_user_dtype(ty, "bitcast")
    if aval.ndim < 2:
        raise ValueError(
            "bitcast of an array with fewer than two axes; reshape it to (1, n) first."
        )
    *front, rows, columns = aval.shape
    old, new = aval.dtype.itemsize, np.dtype(dtype).itemsize
    if rows * old % new:
        raise ValueError(
            f"bitcast from {aval.dtype} to {dtype}: {rows} rows cannot be packed, "
            f"{new // old} into one."
        )
    if old == new:
        return casting.bitcast_convert_type(x, dtype)
    last = len(front)
    if old < new:  # neighbours along the rows go into one number
        x = shaping.reshape(x, (*front, rows * old // new, new // old, columns))
        x = shaping.transpose(x, (*range(last + 1), last + 2, last + 1))
        return casting.bitcast_convert_type(x, dtype)
    x = casting.bitcast_convert_type(x, dtype)
    x = shaping.transpose(x, (*range(last + 1), last + 2, last + 1))
    return shaping.reshape(x, (*front, rows * old // new, columns))
