"""What gathers and scatters share: index vectors, dimension numbers, modes, checks.

The indices of a gather or scatter are vectors along their last axis; each says where in
the operand a block starts. `GatherDimensionNumbers` and `ScatterDimensionNumbers` say
which axes of operand, indices and result (or updates) belong together; they are mirror
images, field by field.

In JAX: `lax/slicing.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import errors
from minijax.core.language import ShapedArray


class GatherDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and result of a gather belong together.

    Attributes:
      offset_dims: the axes of the result along which a block extends, ascending.
      collapsed_slice_dims: the axes of the operand, ascending, that blocks have with
        size 1 and the result does not have.
      start_index_map: for each entry of an index vector, the axis of the operand that
        it indexes.
      operand_batching_dims: axes of the operand, ascending, along which it is not
        indexed but goes along with the indices.
      start_indices_batching_dims: for each of these, the axis of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and updates of a scatter belong together.

    The mirror image of `GatherDimensionNumbers`, field by field.

    Attributes:
      update_window_dims: the axes of the updates, ascending, along which blocks extend.
      inserted_window_dims: the axes of the operand, ascending, that blocks have with
        size 1 and the updates do not have.
      scatter_dims_to_operand_dims: for each entry of an index vector, the axis of the
        operand that it indexes.
      operand_batching_dims: axes of the operand, ascending, along which it is not
        indexed but goes along with indices and updates.
      scatter_indices_batching_dims: for each of these, the axis of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


def block_shape(
    rank: int, updates_shape: Sequence[int], numbers: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """The shape of a block of the operand that one index vector writes."""
    window = iter(updates_shape[axis] for axis in numbers.update_window_dims)
    units = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    return tuple(1 if axis in units else next(window) for axis in range(rank))


def mirror(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The gather that reads what the scatter writes."""
    return GatherDimensionNumbers(*map(tuple, numbers))


def shifted(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of an array that got a new axis at the front."""
    return tuple(1 + axis for axis in axes)


class GatherScatterMode(enum.Enum):
    """What a gather or scatter does with a block that is partly out of bounds.

    CLIP moves it inwards. FILL_OR_DROP reads it, whole, as a fill value, and does not
    write it. PROMISE_IN_BOUNDS is the caller's promise that there are none: nothing is
    checked. ONE_HOT asks `x.at[i].get` for a product with a one-hot matrix.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """A mode from its name; None means "fill" (for updates, "drop").

        Raises ValueError for another name.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None:
            return GatherScatterMode.FILL_OR_DROP
        if not isinstance(mode, str) or mode not in _modes:
            names = ", ".join(map(repr, _modes))
            raise ValueError(f'Unknown gather mode "{mode}": write one of {names}.')
        return _modes[mode]


_modes = {
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}

# ----------------------------------------------------------------------------------
# Checks that gather and scatter share
# ----------------------------------------------------------------------------------


def check_axes(
    name: str, field: str, axes: Sequence[int], rank: int, ascending: bool = True
) -> None:
    """TypeError unless `axes` are axes of an array of that rank, none of them twice."""
    if ascending and list(axes) != sorted(axes):
        raise TypeError(f"{field} in {name} op must be sorted; got {axes}")
    if len(set(axes)) != len(axes):
        raise TypeError(f"{field} in {name} op must not repeat; got: {axes}.")
    for axis in axes:
        if not 0 <= axis < rank:
            raise TypeError(
                f"Invalid {field} set in {name} op; valid range is [0, {rank}); got: "
                f"{axis}."
            )


def check_disjoint(name: str, first: str, second: str, numbers: Any) -> None:
    """TypeError when two fields of the dimension numbers name one axis."""
    axes, others = getattr(numbers, first), getattr(numbers, second)
    if set(axes) & set(others):
        raise TypeError(
            f"{first} and {second} in {name} op must be disjoint; got: {axes} and "
            f"{others}."
        )


def check_index_vectors(
    name: str, field: str, operand: ShapedArray, indices: ShapedArray, axes: Any
) -> None:
    """TypeError unless index vectors have one entry for each of the field's `axes`."""
    if not indices.ndim:
        raise TypeError(
            f"The indices of a {name} op need an axis for the index vectors, got a "
            "scalar. Write `indices[None]`."
        )
    if len(axes) != indices.shape[-1]:
        raise TypeError(
            f"{name.capitalize()} op has {len(axes)} elements in {field} and the index "
            f"vectors, along the last axis of the indices, have {indices.shape[-1]}. "
            "These two numbers must be equal."
        )
    check_axes(name, field, axes, operand.ndim, ascending=False)


def check_numbers(
    name: str, operand: ShapedArray, indices: ShapedArray, numbers: Any, kind: Any
) -> None:
    """TypeError unless dimension numbers, of class `kind`, name each axis once."""
    if not isinstance(numbers, kind):
        raise errors.type_error(
            f"{name}: dimension_numbers must be a {kind.__name__}, got {numbers!r}."
        )
    window, left_out, indexed, batching, of_indices = numbers._fields
    check_index_vectors(name, indexed, operand, indices, numbers[2])
    check_axes(name, window, numbers[0], indices.ndim - 1 + len(numbers[0]))
    check_axes(name, left_out, numbers[1], operand.ndim)
    check_axes(name, batching, numbers[3], operand.ndim)
    for field in (left_out, indexed):
        check_disjoint(name, field, batching, numbers)
    check_batching(name, of_indices, operand, indices, *numbers[3:])


def check_batching(
    name: str,
    field: str,
    operand: ShapedArray,
    indices: ShapedArray,
    operand_axes: Any,
    indices_axes: Any,
) -> None:
    """TypeError unless batching axes of operand and indices are pairs of one size."""
    check_axes(name, field, indices_axes, indices.ndim, ascending=False)
    if indices.ndim - 1 in indices_axes:
        raise TypeError(
            f"{name.capitalize()} op cannot have the index vector dimension as a "
            f"batching dimension; got {indices_axes}."
        )
    if len(operand_axes) != len(indices_axes):
        raise TypeError(
            f"{name.capitalize()} op requires equal numbers of operand_batching_dims "
            f"and {field}, got {operand_axes} and {indices_axes}."
        )
    operand_sizes = tuple(operand.shape[axis] for axis in operand_axes)
    indices_sizes = tuple(indices.shape[axis] for axis in indices_axes)
    if operand_sizes != indices_sizes:
        raise TypeError(
            f"{name.capitalize()} op requires operand batching dimensions and indices "
            f"batching dimensions to have the same shape, got {operand_sizes} and "
            f"{indices_sizes}."
        )


def blocks(
    indices: Any,
    axes: Sequence[int],
    operand_batching: Sequence[int],
    indices_batching: Sequence[int],
    bounds: Sequence[int],
    clip: bool,
) -> Iterator[tuple[tuple[int, ...], list[int] | None]]:
    """The reference in NumPy: each index vector's (place, where its block starts).

    `bounds` are the largest starts at which a block fits. A block that does not fit is
    moved inwards with `clip`, and has None as its start without.
    """
    for place in np.ndindex(*indices.shape[:-1]):
        start = [0] * len(bounds)
        for axis, index in zip(axes, indices[place]):
            start[axis] = int(index)
        for axis, batch_axis in zip(operand_batching, indices_batching):
            start[axis] = place[batch_axis]
        inside = [min(max(s, 0), bound) for s, bound in zip(start, bounds)]
        yield place, inside if clip or inside == start else None
