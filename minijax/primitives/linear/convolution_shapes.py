"""Shapes of windows and convolutions: dilation, strides, padding, dimension numbers.

In JAX: `lax/convolution.py` and `lax/utils.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import errors


class ConvDimensionNumbers(NamedTuple):
    """Where batch, feature and spatial dimensions are.

    `lhs_spec` and `out_spec` list the positions of (batch, feature, spatial...),
    `rhs_spec` those of (output feature, input feature, spatial...).
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = (
    None | ConvDimensionNumbers | tuple[str, str, str]  # "NHWC", "HWIO", "NHWC"
)

Pads = Sequence[tuple[int, int]]


def dilated(size: int, dilation: int) -> int:
    """The size of a dimension with `dilation - 1` holes between its entries."""
    return 0 if size == 0 else 1 + dilation * (size - 1)


def dilated_shape(shape: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """`dilated` for each dimension, by a positive dilation of its own."""
    if len(dilation) != len(shape) or any(factor <= 0 for factor in dilation):
        raise errors.type_error(f"{dilation} are not {len(shape)} positive dilations")
    return tuple(dilated(size, factor) for size, factor in zip(shape, dilation))


def strided(size: int, window: int, stride: int) -> int:
    """How many windows fit into a dimension."""
    return 0 if size < window else (size - window) // stride + 1


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Padding of each spatial dimension for "SAME", "SAME_LOWER" or "VALID".

    Raises RuntimeError for another name.
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME' or 'SAME_LOWER', got "
            f"{padding!r}."
        )
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides):
        out = -(-size // max(stride, 1))  # the operation refuses a stride of 0
        total = max((out - 1) * stride + window - size, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if kind == "SAME" else (large, small))
    return pads


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of a convolution of shapes in canonical order (batch, feature, ...)."""
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected "
            f"{len(lhs_shape) - 2}, got {len(pads)}."
        )
    padded = [size + low + high for size, (low, high) in zip(lhs_shape[2:], pads)]
    if any(size < 0 for size in padded):
        raise ValueError(
            "Negative padding is larger than the size of the corresponding dimension: "
            f"got padding={pads} for lhs_shape[2:]={tuple(lhs_shape[2:])}"
        )
    space = map(strided, padded, rhs_shape[2:], strides)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple:
    """Positions of (batch, feature, spatial...) for three strings such as "NHWC".

    Raises TypeError for strings that do not name the same dimensions.
    """
    lhs, rhs, out = dimension_numbers
    marks = (("N", "C"), ("O", "I"), ("N", "C"))
    for index, (spec, pair) in enumerate(zip(dimension_numbers, marks)):
        for mark in pair:
            if spec.count(mark) != 1:
                raise TypeError(
                    f"convolution dimension_numbers[{index}] must contain the "
                    f"characters '{pair[0]}' and '{pair[1]}' exactly once, got {spec}."
                )
        if len(spec) != len(set(spec)):
            raise TypeError(
                f"convolution dimension_numbers[{index}] cannot have duplicate "
                f"characters, got {spec}."
            )
    spatial = [set(spec) - set(pair) for spec, pair in zip(dimension_numbers, marks)]
    if not spatial[0] == spatial[1] == spatial[2]:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of "
            f"spatial characters, got {tuple(dimension_numbers)}."
        )
    order = [mark for mark in rhs if mark not in "OI"]
    return tuple(
        tuple(spec.index(mark) for mark in (*pair, *order))
        for spec, pair in zip((lhs, rhs, out), marks)
    )


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Dimension numbers in canonical form; None means (batch, feature, spatial...).

    Raises TypeError when they do not fit the shapes.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs ndim to be equal, got "
            f"{len(lhs_shape)} and {len(rhs_shape)}."
        )
    if dimension_numbers is None:
        order = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(order, order, order)
    if not isinstance(dimension_numbers, (tuple, list)):
        raise TypeError(
            "convolution dimension_numbers must be tuple/list or None, got "
            f"{type(dimension_numbers)}."
        )
    if len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, got "
            f"{len(dimension_numbers)}."
        )
    for index, spec in enumerate(dimension_numbers):
        if not isinstance(spec, str):
            raise TypeError(
                "convolution dimension_numbers elements must be strings, got "
                f"{tuple(map(type, dimension_numbers))}."
            )
        if len(spec) != len(lhs_shape):
            raise TypeError(
                f"convolution dimension_numbers[{index}] must have len equal to the "
                f"ndim of lhs and rhs, got {len(spec)} for lhs and rhs shapes "
                f"{tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a convolution without dilation, for dimension numbers as strings."""
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        [lhs_shape[d] for d in lhs],
        [rhs_shape[d] for d in rhs],
        window_strides,
        padding,
    )
    return tuple(shape[out.index(d)] for d in range(len(shape)))


def windows_of(
    x: np.ndarray,
    neutral: Any,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> np.ndarray:
    """All windows of an array in NumPy: shape (windows..., entries of one).

    Negative padding cuts off.
    """
    spread = np.full(dilated_shape(x.shape, base_dilation), neutral, x.dtype)
    spread[tuple(slice(None, None, step) for step in base_dilation)] = x
    kept = [
        slice(max(-low, 0), size - max(-high, 0))
        for size, (low, high) in zip(spread.shape, padding)
    ]
    pads = [(max(low, 0), max(high, 0)) for low, high in padding]
    spread = np.pad(spread[tuple(kept)], pads, constant_values=neutral)
    extent = dilated_shape(window_dimensions, window_dilation)
    if any(size < width for size, width in zip(spread.shape, extent)):
        counts = map(strided, spread.shape, extent, window_strides)
        return np.zeros((*counts, math.prod(window_dimensions)), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(spread, extent)
    view = view[tuple(slice(None, None, step) for step in window_strides)]
    inner = tuple(slice(None, None, step) for step in window_dilation)
    view = view[(slice(None),) * x.ndim + inner]
    return view.reshape((*view.shape[: x.ndim], -1))
