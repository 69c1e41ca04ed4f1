"""`pad`, in all of NumPy's modes.

Only a constant is put on by the `pad` primitive; the other modes join the array with
pieces of itself, one axis after the other. In JAX: `numpy/lax_numpy.py`, `_pad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.core.shaping import convert_element_type_to
from minijax.numpy.arguments import canonicalize_axis, concrete_or_error
from minijax.numpy.arraylike import check_arraylike, ensure_arraylike
from minijax.numpy.math import float_functions
from minijax.numpy.reduce import moments, quantiles, reductions
from minijax.numpy.shapes import broadcasting, creation, repeating, sequences, shaping
from minijax.support import element_types, tree_util
from minijax.transforms.vectorization import vmap

Pairs = tuple[tuple[Any, Any], ...]

# The modes that are known by name, and the keyword that each of them takes.
_MODES = {
    "constant": "constant_values",
    "edge": None,
    "empty": None,
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": None,
}


# What these modes put on is taken from the axis: there is nothing in an empty one.
_REPEATS = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reductions.amax,
    "minimum": reductions.amin,
    "mean": moments.mean,
    "median": quantiles.median,
}


def _as_pairs(values: Any, rank: int, name: str) -> Pairs:
    """A pair (before, after) for each axis, from any of the forms that NumPy takes."""
    context = f"{name} argument of jnp.pad"
    values = tree_util.tree_map(lambda v: concrete_or_error(None, v, context), values)
    try:
        table = np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            message = f"`{name}` entries must be the same shape: {values}"
            raise TypeError(message) from error
        raise
    if table.shape == (rank, 2):
        rows = table
    elif table.shape in ((), (1,), (2,), (1, 2)):
        rows = np.broadcast_to(table.reshape(-1), (rank, 2))
    else:
        raise ValueError(
            f"jnp.pad: {name} with nd={rank} has unsupported shape {table.shape}. "
            f"Valid shapes are ({rank}, 2), (1, 2), (2,), (1,), or ()."
        )
    return tuple((before, after) for before, after in rows.tolist())


def pad(
    array: Any,
    pad_width: Any,
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """`array` with elements put before and after it along each axis.

    `pad_width` is one number, one pair (before, after), or a pair for each axis; it
    must be static. `mode` is one of "constant" (with `constant_values`), "edge",
    "empty", "linear_ramp" (`end_values`), "maximum", "mean", "median", "minimum" (all
    with `stat_length`), "reflect", "symmetric" (both with `reflect_type`) and "wrap",
    or a function that pads one vector. The dtype and weak type are those of `array`.

    Raises TypeError for widths that are not integers, ValueError for negative ones and
    for keywords that do not go with the mode.
    """
    array = ensure_arraylike("pad", array)
    widths = _as_pairs(pad_width, array.ndim, "pad_width")
    if not all(isinstance(width, int) for pair in widths for width in pair):
        raise TypeError("`pad_width` must be of integral type.")
    if callable(mode):
        return _pad_with_function(array, widths, mode, kwargs)
    if mode not in _MODES:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad: it has {[*_MODES]}."
        )
    unsupported = set(kwargs) - {_MODES[mode]}
    if unsupported:
        raise ValueError(
            f"unsupported keyword arguments for mode '{mode}': {unsupported}"
        )
    constants = kwargs.get("constant_values", 0)
    lengths, ends = kwargs.get("stat_length"), kwargs.get("end_values", 0)
    kind = kwargs.get("reflect_type", "even")
    return _pad(array, widths, mode, constants, lengths, ends, kind)


@jit(static_argnums=(1, 2, 4, 5, 6))
def _pad(
    array: Any,
    pad_width: Pairs,
    mode: str,
    constant_values: Any,
    stat_length: Any,
    end_values: Any,
    reflect_type: str,
) -> Array:
    array = creation.asarray(array)
    if array.ndim == 0:
        return array
    if any(width < 0 for pair in pad_width for width in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        return _pad_constant(array, pad_width, creation.asarray(constant_values))
    pad_axis: Callable[..., Array]
    if mode == "wrap":
        pad_axis = _pad_wrap
    elif mode in ("symmetric", "reflect"):
        odd, repeat_edge = reflect_type == "odd", mode == "symmetric"
        pad_axis = partial(_pad_mirrored, repeat_edge=repeat_edge, odd=odd)
    elif mode == "edge":
        pad_axis = _pad_edge
    elif mode == "linear_ramp":
        ends = _as_pairs(end_values, array.ndim, "end_values")
        pad_axis = partial(_pad_linear_ramp, ends=ends)
    elif mode == "empty":
        pad_axis = _pad_empty
    else:
        lengths = None
        if stat_length is not None:
            lengths = _as_pairs(stat_length, array.ndim, "stat_length")
        statistic = _STATISTICS[mode]
        pad_axis = partial(_pad_statistic, lengths=lengths, statistic=statistic)
    for axis, (before, after) in enumerate(pad_width):
        if array.shape[axis] == 0 and mode in _REPEATS:
            if before > 0 or after > 0:
                raise ValueError(f"Cannot apply '{mode}' padding to empty axis")
        else:
            array = pad_axis(array, axis, before, after)
    return array


def _like(value: Any, array: Array) -> Array:
    return convert_element_type_to(
        value, array.dtype, element_types.is_weakly_typed(array)
    )


def _pad_constant(array: Array, widths: Pairs, values: Array) -> Array:
    values = _like(values, array)
    if values.ndim == 1 and values.shape[0] not in (1, 2):
        raise ValueError(
            f"jnp.pad: constant_values has unsupported shape {values.shape}. If the "
            "shape is 1D or 2D, the last dimension must be of size 1 or 2."
        )
    if values.ndim == 0 or values.shape == (1,):
        value = values if values.ndim == 0 else shaping.squeeze(values)
        return lax.pad(array, value, [(low, high, 0) for low, high in widths])
    rank = array.ndim
    values = broadcasting.broadcast_to(values, (rank, 2))
    for axis, (low, high) in enumerate(widths):
        no_padding = [(0, 0, 0)] * rank
        if low != 0:
            no_padding[axis] = (low, 0, 0)
            array = lax.pad(array, values[axis, 0], no_padding)
        if high != 0:
            no_padding[axis] = (0, high, 0)
            array = lax.pad(array, values[axis, 1], no_padding)
    return array


def _pad_wrap(array: Array, axis: int, before: int, after: int) -> Array:
    size = array.shape[axis]
    copies_before, rest_before = divmod(before, size)
    copies_after, rest_after = divmod(after, size)
    parts = [array] * (copies_before + 1 + copies_after)
    if rest_before > 0:
        tail = lax.slice_in_dim(array, size - rest_before, size, axis=axis)
        parts = [tail, *parts]
    if rest_after > 0:
        parts.append(lax.slice_in_dim(array, 0, rest_after, axis=axis))
    return lax.concatenate(parts, dimension=axis)


def _pad_mirrored(
    array: Array, axis: int, before: int, after: int, *, repeat_edge: bool, odd: bool
) -> Array:
    if before == 0 and after == 0:
        return array
    size = array.shape[axis]
    # Where there is nothing but an edge, it is repeated in any case.
    offset = 0 if repeat_edge or size == 1 else 1
    array = _mirror(array, axis, before, size, offset, odd, front=True)
    return _mirror(array, axis, after, size, offset, odd, front=False)


def _mirror(
    array: Array, axis: int, missing: int, size: int, offset: int, odd, front
) -> Array:
    """Put reflections at one end, at most one length of the array at a time."""

    def end(x: Array, skipped: int, length: int) -> Array:
        if front:
            return lax.slice_in_dim(x, skipped, skipped + length, axis=axis)
        return lax.slice_in_dim(x, -(length + skipped), -skipped or None, axis=axis)

    edge = end(array, 0, 1)
    while missing > 0:
        length = min(missing, size - offset)
        missing -= length
        piece = shaping.flip(end(array, offset, length), axis=axis)
        if odd:
            piece = 2 * edge - piece
            if size > 1:
                edge = end(piece, 0, 1)
        parts = [piece, array] if front else [array, piece]
        array = lax.concatenate(parts, dimension=axis)
    return array


def _pad_edge(array: Array, axis: int, before: int, after: int) -> Array:
    first = lax.slice_in_dim(array, 0, 1, axis=axis)
    first = repeating.repeat(first, before, axis=axis)
    last = lax.slice_in_dim(array, -1, None, axis=axis)
    last = repeating.repeat(last, after, axis=axis)
    return lax.concatenate([first, array, last], dimension=axis)


def _pad_linear_ramp(
    array: Array, axis: int, before: int, after: int, *, ends: Pairs
) -> Array:
    def ramp(end: Any, edge: Array, length: int) -> Array:
        options = {"endpoint": False, "dtype": array.dtype, "axis": axis}
        values = sequences.linspace(end, shaping.squeeze(edge, axis), length, **options)
        return _like(values, array)

    first = lax.slice_in_dim(array, 0, 1, axis=axis)
    last = lax.slice_in_dim(array, -1, None, axis=axis)
    up = ramp(ends[axis][0], first, before)
    down = shaping.flip(ramp(ends[axis][1], last, after), axis)
    return lax.concatenate([up, array, down], dimension=axis)


def _pad_statistic(
    array: Array,
    axis: int,
    before: int,
    after: int,
    *,
    lengths: Pairs | None,
    statistic: Callable[..., Array],
) -> Array:
    if lengths is None:
        low = high = statistic(array, axis=axis, keepdims=True)
    else:
        size = array.shape[axis]
        length_low, length_high = (min(length, size) for length in lengths[axis])
        if length_low == 0 or length_high == 0:
            raise ValueError("stat_length of 0 yields no value for padding")
        head = lax.slice_in_dim(array, 0, length_low, axis=axis)
        tail = lax.slice_in_dim(array, -length_high, None, axis=axis)
        low = statistic(head, axis=axis, keepdims=True)
        high = statistic(tail, axis=axis, keepdims=True)
    if dtypes.issubdtype(array.dtype, np.integer):
        low = float_functions.round(low)
        high = float_functions.round(high)
    low = _like(low, array)
    high = _like(high, array)
    low = repeating.repeat(low, before, axis=axis)
    high = repeating.repeat(high, after, axis=axis)
    return lax.concatenate([low, array, high], dimension=axis)


def _pad_empty(array: Array, axis: int, before: int, after: int) -> Array:
    def piece(width: int) -> Array:
        shape = (*array.shape[:axis], width, *array.shape[axis + 1 :])
        return creation.empty_like(array, shape=shape)

    return lax.concatenate([piece(before), array, piece(after)], dimension=axis)


def _pad_with_function(
    array: Array, widths: Pairs, function: Callable[..., Any], kwargs: dict[str, Any]
) -> Array:
    padded = _pad_constant(array, widths, creation.asarray(0))
    for axis, pair in enumerate(widths):
        padded = apply_along_axis(function, axis, padded, pair, axis, kwargs)
    return padded


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Array:
    """`func1d` applied to every vector of `arr` along `axis`, by `vmap`.

    What the function returns takes the place of that axis.
    """
    check_arraylike("apply_along_axis", arr)
    rank = np.ndim(arr)
    axis = canonicalize_axis(axis, rank)

    def function(vector: Array) -> Any:
        return func1d(vector, *args, **kwargs)

    for i in range(1, rank - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(arr)


def apply_over_axes(
    func: Callable[[Any, int], Any], a: Any, axes: Sequence[int]
) -> Array:
    """`func(a, axis)` for one axis after the other, keeping the number of axes.

    Raises ValueError when `func` returns an array of another rank.
    """
    array = ensure_arraylike("apply_over_axes", a)
    for axis in axes:
        result = func(array, axis)
        if result.ndim == array.ndim - 1:
            result = lax.expand_dims(result, (axis,))
        elif result.ndim != array.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        array = result
    return array
