"""Broadcasting, and the three-argument `where` that is made of it.

These stand below the other files of this room, since nearly all of them use both.
The jit boundaries (`_broadcast_arrays` inline, `_where` not) are those that JAX's
printed jaxprs show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes, language
from minijax.core.array import Array
from minijax.numpy.arguments import shape_tuple
from minijax.numpy.arraylike import as_array, ensure_arraylike, ensure_arraylike_tuple
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.promotion import constant_like, promote_dtypes
from minijax.primitives.shape.broadcasting import broadcast_to as repeated
from minijax.programs.sharding.cuts import broadcast_shardings


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape to which all `shapes` broadcast; an integer stands for one dimension.

    Raises ValueError when two of them are incompatible.
    """
    if not shapes:
        return ()
    as_tuples: list[Any] = [
        (shape,) if isinstance(shape, int) or np.ndim(shape) == 0 else tuple(shape)
        for shape in shapes
    ]
    return lax.broadcast_shapes(*as_tuples)


def broadcast_to(array: Any, shape: int | Sequence[int], *, out_sharding=None) -> Array:
    """`array` repeated along new leading dimensions and along those of size one.

    The dtype and weak type are those of `array`. Raises ValueError when `shape` has
    fewer dimensions than `array` or differs in one that is not of size one.
    """
    operand = ensure_arraylike("broadcast_to", array)
    return repeated(operand, shape_tuple(shape), out_sharding)


@inline_jit
def _broadcast_arrays(*args: Any) -> list[Array]:
    shapes = [np.shape(arg) for arg in args]
    if all(shape == shapes[0] for shape in shapes):
        return [as_array(arg) for arg in args]
    result_shape = lax.broadcast_shapes(*shapes)
    cut = broadcast_shardings(*map(language.typeof, args))
    return [repeated(arg, result_shape, cut) for arg in args]


def broadcast_arrays(*args: Any) -> list[Array]:
    """All arguments broadcast to one common shape, each with its own dtype.

    Raises ValueError when the shapes are incompatible.
    """
    return _broadcast_arrays(*ensure_arraylike_tuple("broadcast_arrays", args))


@jit
def _where(condition: Any, x: Any, y: Any) -> Array:
    condition, x, y = ensure_arraylike("where", condition, x, y)
    if not dtypes.issubdtype(condition.dtype, np.bool_):
        condition = lax.ne(condition, constant_like(condition, 0))
    x, y = promote_dtypes(x, y)
    if language.typeof(condition).ndim == 0:
        # select_n takes a scalar condition as it is.
        x, y = _broadcast_arrays(x, y)
    else:
        condition, x, y = _broadcast_arrays(condition, x, y)
    return x if 0 in x.shape else lax.select(condition, x, y)
