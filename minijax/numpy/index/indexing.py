"""`x[index]` and `x.at[index]`: NumPy's indexing, spelled in four primitives.

An index is read once into a list of `Item`s, one for each entry of the index tuple,
with the axes of the operand that it consumes. Then the cheapest program that serves
is chosen, in this order:

1. integers and slices known now: `slice`, `rev`, `squeeze`, `broadcast_in_dim`;
2. traced scalars among them, steps of one: `dynamic_slice` and the same;
3. everything else, arrays and masks included: one `gather`.

Updates are always one scatter, with the same dimension numbers that the gather of the
same index would have. What the printed program contains, the normalisation of
negative indices (`lt`, `add`, `select_n`) included, is exactly what JAX prints.

In JAX: `numpy/index/indexing.py` (`NDIndexer`) and `ops/scatter.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.core import dtypes, shaping
from minijax.core.array import Array
from minijax.numpy.arguments import concrete_or_error, index_dtype, is_concrete
from minijax.numpy.index.index_items import (
    Item,
    Kind,
    expand_ellipsis,
    expand_masks,
    parse,
)
from minijax.numpy.promotion import constant_like, promote_dtypes
from minijax.numpy.shapes import broadcasting, creation
from minijax.support import element_types
from minijax.values.symbolic_sizes import is_symbolic, slice_indices

_ADVANCED = (Kind.ARRAY, Kind.INTEGER)
_STATIC_MODES = (lax.GatherScatterMode.PROMISE_IN_BOUNDS, lax.GatherScatterMode.CLIP)


# --------------------------------------------------------------------------
# Slices: static and dynamic


class SlicePlan(NamedTuple):
    """A slice (starts are integers, or traced in a dynamic one) and what follows it."""

    starts: list[Any]
    sizes: list[int]
    strides: list[int]
    reversed_axes: list[int]
    squeezed_axes: list[int]
    new_axes: list[int]


def _bounds(index: slice, size: int) -> tuple[int, int, int] | None:
    """`index.indices(size)`, or None where it is not static or not valid."""
    if is_symbolic(size):
        return None
    try:
        return index.indices(size)
    except (TypeError, ValueError):
        return None


def _plan_slices(items: list[Item], shape: tuple[int, ...]) -> SlicePlan | None:
    """Plan integers and slices as one slice; None where an entry does not allow it.

    Scalar arrays are kept as traced starts.
    """
    plan = SlicePlan([], [], [], [], [], [])
    for kind, index, axes in items:
        if kind is Kind.NEW_AXIS:
            kept = len(plan.starts) - len(plan.squeezed_axes)
            plan.new_axes.append(kept + len(plan.new_axes))
            continue
        if kind is Kind.BOOLEAN:
            return None
        size = shape[axes[0]]
        if kind is Kind.SLICE:
            bounds = _bounds(index, size)
            if bounds is None:
                return None
            start, stop, step = bounds
            if step > 0:
                length = max(0, stop - start)
            else:
                # Read forwards from the last element reached, then reverse.
                lowest = stop + 1 + abs(start - stop - 1) % -step
                length = max(0, start + 1 - lowest)
                start = min(size, lowest)
                plan.reversed_axes.append(axes[0])
            plan.starts.append(start)
            plan.sizes.append(length)
            plan.strides.append(abs(step))
            continue
        if is_symbolic(index):
            index = creation.asarray(index)
        if size == 0 or isinstance(index, Sequence) or np.ndim(index) != 0:
            return None
        plan.starts.append(index)
        plan.sizes.append(1)
        plan.strides.append(1)
        plan.squeezed_axes.append(axes[0])
    return plan


def _static_starts(
    plan: SlicePlan, shape: tuple[int, ...], clip: bool, normalize: bool
) -> list[int] | None:
    """Starts of a static slice, or None where an index is traced or out of bounds."""
    starts = list(plan.starts)
    for axis in plan.squeezed_axes:
        start = starts[axis]
        if not isinstance(start, (int, np.integer)):
            return None
        size = shape[axis]
        if is_symbolic(size):
            return None
        start = int(start)
        if normalize and start < 0:
            start += size
        if clip:
            start = min(max(start, 0), size - 1)
        elif not 0 <= start < size:
            return None
        starts[axis] = start
    return starts


def _keeps_parts(x: Array, plan: SlicePlan) -> bool:
    """Whether the slice takes all of each dimension that an Explicit axis cuts."""
    cut = x.aval.cut if type(x) is Array else None  # as in JAX: not while it is traced
    return cut is None or all(
        not cut.spec.axes(axis) or (size == x.shape[axis] and step == 1)
        for axis, (size, step) in enumerate(zip(plan.sizes, plan.strides))
    )


def _static_slice(x: Array, plan: SlicePlan, starts: list[int]) -> Array:
    limits = [start + size for start, size in zip(starts, plan.sizes, strict=True)]
    strides = None if all(step == 1 for step in plan.strides) else plan.strides
    whole = strides is None and not any(starts) and tuple(limits) == x.shape
    result = x if whole else lax.slice(x, starts, limits, strides)
    return _rearrange(result, plan)


def _dynamic_slice(x: Array, plan: SlicePlan, normalize: bool) -> Array:
    starts = list(plan.starts)
    for axis in plan.squeezed_axes:
        starts[axis] = creation.asarray(starts[axis])
    if len(starts) > 1:
        dtype = index_dtype(x.shape)
        starts = [lax.convert_element_type(start, dtype) for start in starts]
    result = lax.dynamic_slice(
        x, starts, slice_sizes=plan.sizes, allow_negative_indices=normalize
    )
    return _rearrange(result, plan)


def _rearrange(x: Array, plan: SlicePlan) -> Array:
    if plan.reversed_axes:
        x = lax.rev(x, plan.reversed_axes)
    if plan.squeezed_axes:
        x = lax.squeeze(x, plan.squeezed_axes)
    if plan.new_axes:
        x = lax.expand_dims(x, plan.new_axes)
    return x


# --------------------------------------------------------------------------
# Gather


_empty = functools.partial(dataclasses.field, default_factory=list)


@dataclasses.dataclass
class GatherPlan:
    """One gather (or scatter) and what surrounds it, entry by entry of an index.

    `starts` holds index arrays, each with the first of the axes of the final index
    array, `indices`, that it varies over; `axis` counts the axes of the gather's
    result, which has no new axes yet, and `result_axis` those of the finished result,
    whose shape, new axes included, is `slice_shape`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    scalar_mask_axes: list[int]
    unique_and_sorted: bool
    axis: int = 0
    result_axis: int = 0
    starts: list[tuple[Any, int]] = _empty()
    indices_shape: list[int] = _empty()
    offset_dims: list[int] = _empty()
    collapsed: list[int] = _empty()
    start_index_map: list[int] = _empty()
    slice_shape: list[int] = _empty()
    gather_slice_shape: list[int] = _empty()
    new_axes: list[int] = _empty()
    reversed_axes: list[int] = _empty()
    indices: Any = None

    @property
    def dimension_numbers(self) -> lax.GatherDimensionNumbers:
        return lax.GatherDimensionNumbers(
            offset_dims=tuple(self.offset_dims),
            collapsed_slice_dims=tuple(sorted(self.collapsed)),
            start_index_map=tuple(self.start_index_map),
        )

    def add_index(self, index: Any, axis: int, collapse: bool) -> None:
        self.starts.append((index, len(self.indices_shape)))
        self.start_index_map.append(axis)
        if collapse:
            self.collapsed.append(axis)

    def add_arrays(self, arrays: Sequence[Any], axes: Sequence[int]) -> None:
        for array, axis in zip(arrays, axes, strict=True):
            array = lax.convert_element_type(array, self.dtype)
            self.add_index(array, axis, collapse=True)
        self.indices_shape += arrays[0].shape
        self.slice_shape += arrays[0].shape
        self.axis += arrays[0].ndim
        self.result_axis += arrays[0].ndim

    def add_scalar(self, index: Any, axis: int) -> None:
        if self.shape[axis] == 0:
            raise IndexError(f"index is out of bounds for axis {axis} with size 0")
        index = lax.convert_element_type(index, self.dtype)
        self.add_index(index, axis, collapse=True)
        self.gather_slice_shape.append(1)

    def add_new_axis(self) -> None:
        self.slice_shape.append(1)
        self.new_axes.append(self.result_axis)
        self.result_axis += 1

    def add_slice(self, index: slice, axis: int) -> None:
        size = self.shape[axis]
        start, _, step, length = slice_indices(index, size)
        self.slice_shape.append(length)
        if step == 1:
            if length != size:
                start = lax.convert_element_type(start, self.dtype)
                self.add_index(start, axis, collapse=False)
            self.gather_slice_shape.append(length)
            self.offset_dims.append(self.axis)
        else:
            first = creation.array(start, dtype=self.dtype)
            stride = creation.array(step, dtype=self.dtype)
            steps = first + stride * lax.iota(self.dtype, length)
            if step < 0:
                self.reversed_axes.append(self.axis)
                steps = lax.rev(steps, dimensions=(0,))
            self.gather_slice_shape.append(1)
            self.add_index(steps, axis, collapse=True)
            self.indices_shape.append(length)
        self.axis += 1
        self.result_axis += 1

    def index_array(self) -> Any:
        """All indices in one array, the last axis running over `start_index_map`."""
        if not self.starts:
            return np.zeros((0,), self.dtype)
        if len(self.starts) == 1:
            index, _ = self.starts[0]
            return lax.expand_dims(index, (np.ndim(index),))
        shape = (*self.indices_shape, 1)
        columns = [
            lax.broadcast_in_dim(index, shape, tuple(range(first, first + index.ndim)))
            for index, first in self.starts
        ]
        return lax.concatenate(columns, len(shape) - 1)


def _check_slices_static(items: list[Item]) -> None:
    for position, item in enumerate(items):
        if item.kind is not Kind.SLICE:
            continue
        bounds = (item.index.start, item.index.stop, item.index.step)
        if not all(bound is None or is_concrete(bound) for bound in bounds):
            raise IndexError(
                "Array slice indices must have static start/stop/step to be used with "
                "NumPy indexing syntax. Slice entries must be static integers. Got "
                f"{item.index} at position {position}. To index a statically sized "
                "array at a dynamic position, try lax.dynamic_slice."
            )


def _with_scalar_masks(
    items: list[Item], shape: tuple[int, ...]
) -> tuple[list[Item], tuple[int, ...], list[int]]:
    """Scalar masks as index arrays of length zero or one on axes put in for them."""
    if not any(item.kind is Kind.BOOLEAN for item in items):
        return items, shape, []
    new_items: list[Item] = []
    new_shape: list[int] = []
    mask_axes = []
    for kind, index, axes in items:
        axis = len(new_shape)
        if kind is Kind.BOOLEAN:
            new_items.append(Item(Kind.ARRAY, np.arange(int(index)), (axis,)))
            new_shape.append(1)
            mask_axes.append(axis)
        elif kind is Kind.NEW_AXIS:
            new_items.append(Item(kind, index, axes))
        else:
            new_items.append(Item(kind, index, (axis,)))
            new_shape.append(shape[axes[0]])
    return new_items, tuple(new_shape), mask_axes


def _normalized(item: Item, shape: tuple[int, ...]) -> Item:
    """Negative indices counted from the front: in Python, or as three equations."""
    kind, index, axes = item
    if kind is Kind.INTEGER:
        if not isinstance(index, np.unsignedinteger) and index < 0:
            index = index + shape[axes[0]]
    elif kind is Kind.ARRAY:
        if not dtypes.issubdtype(index.dtype, np.unsignedinteger):
            size = shape[axes[0]]
            if index.ndim or not element_types.is_weakly_typed(index):
                size = constant_like(index, size)
            index = lax.select(index < 0, lax.add(index, size), index)
    return Item(kind, index, axes)


def _plan_gather(
    items: list[Item], shape: tuple[int, ...], normalize: bool
) -> GatherPlan:
    """The dimension numbers and start indices that make a gather of an index.

    NumPy's rule for the place of the indexed axes: where the arrays and integers
    stand side by side their common shape takes that place, otherwise it comes first.
    """
    _check_slices_static(items)
    items = [
        item._replace(index=creation.asarray(item.index))
        if isinstance(item.index, Sequence)
        else item
        for item in items
    ]
    places = [i for i, item in enumerate(items) if item.kind in _ADVANCED]
    adjacent = all(b - a == 1 for a, b in zip(places, places[1:]))

    items = expand_ellipsis(items, len(shape))
    items, shape, scalar_mask_axes = _with_scalar_masks(items, shape)
    if normalize:
        items = [_normalized(item, shape) for item in items]

    advanced = [(i, item) for i, item in enumerate(items) if item.kind in _ADVANCED]
    if not any(item.kind is Kind.ARRAY and item.index.ndim for _, item in advanced):
        advanced = []
    plan = GatherPlan(shape, index_dtype(shape), scalar_mask_axes, not advanced)
    arrays = [creation.asarray(item.index) for _, item in advanced]
    positions = {position for position, _ in advanced}
    for position, item in enumerate(items):
        if advanced and position == (advanced[0][0] if adjacent else 0):
            axes = [item.axes[0] for _, item in advanced]
            plan.add_arrays(broadcasting._broadcast_arrays(*arrays), axes)
        if position in positions:
            plan.gather_slice_shape.append(1)
        elif item.kind is Kind.NEW_AXIS:
            plan.add_new_axis()
        elif item.kind is Kind.SLICE:
            plan.add_slice(item.index, item.axes[0])
        else:
            plan.add_scalar(item.index, item.axes[0])
    plan.indices = plan.index_array()
    return plan


def _gather(
    x: Array,
    plan: GatherPlan,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    fill_value: Any,
) -> Array:
    if fill_value is not None:
        concrete_or_error(None, fill_value, "fill_value argument to indexed get()")
        if np.ndim(fill_value) != 0:
            raise ValueError("fill_value argument to indexed get() must be a scalar")
        if isinstance(fill_value, np.ndarray):
            fill_value = fill_value.item()
    if plan.scalar_mask_axes:
        x = lax.expand_dims(x, plan.scalar_mask_axes)
    if 0 in plan.slice_shape:
        return lax.full_like(x, 0, shape=tuple(plan.slice_shape))
    if np.size(plan.indices):
        x = lax.gather(
            x,
            plan.indices,
            plan.dimension_numbers,
            plan.gather_slice_shape,
            unique_indices=unique_indices or plan.unique_and_sorted,
            indices_are_sorted=indices_are_sorted or plan.unique_and_sorted,
            mode=mode,
            fill_value=fill_value,
        )
    if plan.reversed_axes:
        x = lax.rev(x, plan.reversed_axes)
    return lax.expand_dims(x, plan.new_axes)


# --------------------------------------------------------------------------
# What array methods call


def getitem(x: Array, index: Any) -> Array:
    """`x[index]`, with a fast path for one static integer, the most common form."""
    if type(index) is int:
        shape = x.shape
        known = shape and not is_symbolic(shape[0])
        if known and -shape[0] <= index < shape[0]:
            if shape[0] > 1:
                start = index + shape[0] if index < 0 else index
                zeros = (0,) * (len(shape) - 1)
                x = lax.slice(x, (start, *zeros), (start + 1, *shape[1:]))
            return lax.squeeze(x, (0,))
    return rewriting_take(x, index)


def rewriting_take(
    x: Array,
    index: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    fill_value: Any = None,
    normalize_indices: bool = True,
) -> Array:
    """The elements of `x` at `index`, any of NumPy's forms.

    Without a `mode`, and with "promise_in_bounds" or "clip", integers and slices are
    read by (dynamic) slices; otherwise, and with masks and arrays, by one gather that
    treats what is out of bounds as `mode` says. The dtype and weak type are those of
    `x`.

    Raises IndexError for too many indices, a mask of the wrong shape, slices that are
    not static or an index into an empty axis; TypeError for indices that are neither
    integers nor booleans, and for lists in place of tuples or arrays;
    NonConcreteBooleanIndexError for a traced mask.
    """
    shape = x.shape
    items = parse(index, shape)
    parsed_mode = None if mode is None else lax.GatherScatterMode.from_any(mode)
    if parsed_mode is None or parsed_mode in _STATIC_MODES:
        plan = _plan_slices(expand_ellipsis(items, len(shape)), shape)
        if plan is not None:
            clip = parsed_mode is lax.GatherScatterMode.CLIP
            starts = _static_starts(plan, shape, clip, normalize_indices)
            if not _keeps_parts(x, plan):
                pass  # as in JAX, the rule of the gather below decides
            elif starts is not None:
                return _static_slice(x, plan, starts)
            elif all(step == 1 for step in plan.strides):
                return _dynamic_slice(x, plan, normalize_indices)
    gather_plan = _plan_gather(expand_masks(items, shape), shape, normalize_indices)
    return _gather(x, gather_plan, indices_are_sorted, unique_indices, mode, fill_value)


def scatter_update(
    x: Any,
    index: Any,
    y: Any,
    scatter_op: Callable[..., Array],
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    normalize_indices: bool = True,
) -> Array:
    """`x` with the elements at `index` combined with `y` by one scatter.

    `scatter_op` is one of `lax.scatter`, `scatter_add`, `scatter_sub`, `scatter_mul`,
    `scatter_min` and `scatter_max`. `y` is broadcast to the shape that `x[index]` has.
    The result has the shape, dtype and weak type of `x`. Warns where `y` does not fit
    into that dtype; raises as `rewriting_take` does.
    """
    x = creation.asarray(x)
    if isinstance(y, int) and _fits(y, x.dtype):
        y = creation.asarray(y, dtype=x.dtype)
    else:
        y = creation.asarray(y)
    items = expand_masks(parse(index, x.shape), x.shape)
    if not element_types.safe_to_cast(y, x):
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={y.dtype} to dtype={x.dtype}. In future JAX releases this will "
            "result in an error.",
            FutureWarning,
            stacklevel=3,
        )
    dtype = x.dtype
    weak_type = element_types.is_weakly_typed(x)
    plan = _plan_gather(items, x.shape, normalize_indices)
    if 0 in plan.slice_shape:
        return x
    x, y = promote_dtypes(x, y)
    y = broadcasting.broadcast_to(y, tuple(plan.slice_shape))
    y = lax.squeeze(y, plan.new_axes)
    if plan.reversed_axes:
        y = lax.rev(y, plan.reversed_axes)
    if plan.scalar_mask_axes:
        x = lax.expand_dims(x, plan.scalar_mask_axes)
    numbers = plan.dimension_numbers
    result = scatter_op(
        x,
        plan.indices,
        y,
        lax.ScatterDimensionNumbers(
            update_window_dims=numbers.offset_dims,
            inserted_window_dims=numbers.collapsed_slice_dims,
            scatter_dims_to_operand_dims=numbers.start_index_map,
        ),
        indices_are_sorted=indices_are_sorted or plan.unique_and_sorted,
        unique_indices=unique_indices or plan.unique_and_sorted,
        mode=mode,
    )
    if plan.scalar_mask_axes:
        result = lax.squeeze(result, plan.scalar_mask_axes)
    return shaping.convert_element_type_to(result, dtype, weak_type)


def _fits(value: int, dtype: Any) -> bool:
    """Whether the Python integer can be held by an integer dtype."""
    if not dtypes.issubdtype(dtype, np.integer):
        return False
    info = dtypes.iinfo(dtype)
    return info.min <= operator.index(value) <= info.max
