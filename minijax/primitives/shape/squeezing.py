"""squeeze and expand_dims: axes of size 1, removed and added.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import hlo
from minijax.core.array import Array
from minijax.core.language import get_aval
from minijax.core.rules import def_linear, moveaxis, standard_primitive
from minijax.core.shaping import broadcast_in_dim, shape_of


def index_of(value: Any, what: str = "an axis, a size or a shift") -> int:
    """`value` as a Python integer; TypeError for a float, a text or None."""
    if not hasattr(value, "__index__") or getattr(value, "ndim", False):
        raise TypeError(f"{what} must be an integer, got {value!r}.")
    return operator.index(value)


def indices_of(values: Any, what: str) -> tuple[int, ...]:
    """`values` as Python integers; TypeError if they are no sequence of integers."""
    if not np.iterable(values):
        raise TypeError(f"{what} must be a sequence of integers, got {values!r}.")
    return tuple(index_of(value, f"each entry of {what}") for value in values)


def flag_of(value: Any, name: str, strict: bool = False) -> bool:
    """`value` as True or False; TypeError for an array, a list or a text.

    If `strict`, it must be True or False: JAX writes such a flag into StableHLO.
    """
    if not isinstance(value, (bool, np.bool_)) and (strict or np.iterable(value)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def lists_of_indices(values: Any, what: str) -> tuple[tuple[int, ...], ...]:
    """Sequences of integers, in tuples; TypeError if they are no such sequences."""
    if not np.iterable(values):
        raise TypeError(f"{what} must be a sequence of sequences, got {values!r}.")
    return tuple(indices_of(value, f"each list of {what}") for value in values)


def canonicalize_axis(axis, rank: int) -> int:
    """An axis counted from the front; ValueError if there is no such axis."""
    axis = index_of(axis, "an axis")
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis + rank if axis < 0 else axis


def expand_dims(array, dimensions: Sequence[int]) -> Any:
    """`array` with axes of size 1 at the places `dimensions` of the result.

    Raises:
      ValueError: when a place is named twice or lies outside of the result.
    """
    old, dimensions = shape_of(array), indices_of(dimensions, "dimensions")
    rank = len(old) + len(dimensions)
    places = [canonicalize_axis(axis, rank) for axis in dimensions]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    shape = list(old)
    for place in sorted(places):
        shape.insert(place, 1)
    kept = [axis for axis in range(rank) if axis not in places]
    return broadcast_in_dim(array, shape, kept)


def _squeeze_shape(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions are not unique: {dimensions}")
    if not all(0 <= axis < x.ndim for axis in dimensions):
        raise ValueError(f"dimensions outside range [0, ndim): {dimensions}")
    if any(x.shape[axis] != 1 for axis in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}"
        )
    return tuple(size for axis, size in enumerate(x.shape) if axis not in dimensions)


# A reshape that says which axes go: of shape (1, 1), it is clear which one stays.
squeeze_p = standard_primitive(
    "squeeze",
    _squeeze_shape,
    lambda x, **_: x.dtype,
    meaning=lambda x, dimensions: np.squeeze(x, dimensions),
)
def_linear(squeeze_p, lambda ct, x, *, dimensions: [expand_dims(ct, dimensions)])


@squeeze_p.def_batch
def _squeeze_batch(axis_data, args, dims, *, dimensions):
    x = moveaxis(args[0], dims[0], 0)
    return squeeze(x, tuple(1 + axis for axis in dimensions)), 0


squeeze_p.def_lowering(lambda ctx, x, **_: hlo.stablehlo.reshape(ctx.result_type(), x))


def squeeze(array, dimensions: Sequence[int]) -> Any:
    """`array` without some of its axes of size 1.

    Raises:
      ValueError: when an axis does not exist, is named twice, or is longer than 1.
    """
    rank = get_aval(array).ndim
    axes = indices_of(dimensions, "dimensions")
    dimensions = tuple(sorted(canonicalize_axis(axis, rank) for axis in axes))
    if not dimensions and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=dimensions)
