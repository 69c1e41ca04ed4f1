"""Indices written as vectors of zeros and a one: `nn.one_hot`, which `take` needs.

In JAX: `nn/functions.py`.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, SupportsIndex

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, static_index
from minijax.numpy.shapes.creation import asarray
from minijax.typing import DTypeLike


def one_hot(
    x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: int | str = -1
) -> Array:
    """Writes each index as a vector with a 1 at that index and 0 elsewhere.

    An index outside `[0, num_classes)` gives a vector of zeros.

    Args:
        x: indices of any shape.
        num_classes: the length of each vector; a Python number, since it is a shape.
        dtype: of the result; the default float.
        axis: where the new axis stands in the result; or the name of a mapped axis of
            size `num_classes`, of which each instance gets its own entry.

    Returns:
        An array of `x.ndim + 1` axes (`x.ndim` if `axis` is a name).

    Raises:
        ValueError: `axis` is out of range, or names an axis of another size.
    """
    num_classes = static_index(
        num_classes, "one_hot needs num_classes as a number, since it is a shape."
    )
    x = asarray(x)
    dtype = dtypes.default_float_dtype() if dtype is None else dtype
    return _one_hot(x, num_classes, dtype=dtype, axis=axis)


@partial(jit, static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x: Array, num_classes: int, *, dtype: DTypeLike, axis: int | str) -> Array:
    if not isinstance(axis, SupportsIndex):
        size = lax.axis_size(axis)
        if size != num_classes:
            raise ValueError(
                f"one_hot along the mapped axis {axis!r} needs num_classes to be its "
                f"size, {size}, but num_classes is {num_classes}."
            )
        return asarray(x == lax.axis_index(axis), dtype=dtype)
    position = canonicalize_axis(axis, x.ndim + 1)
    column = lax.expand_dims(x, (operator.index(axis),))
    shape = [1] * x.ndim
    shape.insert(position, num_classes)
    classes = lax.broadcasted_iota(x.dtype, shape, position)
    return (column == classes).astype(dtype)
