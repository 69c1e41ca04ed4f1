"""Differences, gradients and integrals of sampled functions.

In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy import arguments
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.math import ufuncs
from minijax.numpy.promotion import promote_dtypes, promote_dtypes_inexact
from minijax.numpy.reduce import reductions, running
from minijax.numpy.shapes import creation
from minijax.numpy.shapes.broadcasting import _where as where
from minijax.numpy.shapes.broadcasting import broadcast_to
from minijax.numpy.shapes.joining import concatenate
from minijax.numpy.shapes.shaping import moveaxis, ravel, reshape
from minijax.primitives.shape.slicing import checked_size


@jit(static_argnames=("n", "axis"))
def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None
) -> Array:
    """Each element along `axis` less the one before it, `n` times over.

    `prepend` and `append` are put on first. Booleans are compared instead of
    subtracted. Raises ValueError for a scalar and for a negative `n`.
    """
    array = ensure_arraylike("diff", a)
    n = arguments.static_index(n, "'n' argument of jnp.diff")
    axis = arguments.static_index(axis, "'axis' argument of jnp.diff")
    if n == 0:
        return array
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    arguments.check_rank("diff", 1, np.inf, a=array)
    axis = arguments.canonicalize_axis(axis, array.ndim)

    def edge(values: Any) -> list[Array]:
        if values is None:
            return []
        values = ensure_arraylike("diff", values)
        if values.ndim == 0:
            shape = (*array.shape[:axis], 1, *array.shape[axis + 1 :])
            values = broadcast_to(values, shape)
        return [values]

    parts = [*edge(prepend), array, *edge(append)]
    if len(parts) > 1:
        array = concatenate(parts, axis)
    before = (slice(None),) * axis
    subtract = operator.ne if array.dtype == np.bool_ else operator.sub
    for _ in range(n):
        array = subtract(array[(*before, slice(1, None))], array[(*before, slice(-1))])
    return array


@jit
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbours in the flattened array, with values before and after.

    The dtype is that of `ary`.
    """
    array = ravel(ensure_arraylike("ediff1d", ary))
    result = lax.sub(array[1:], array[:-1])

    def edge(values: Any) -> Array:
        values = ensure_arraylike("ediff1d", values)
        return ravel(lax.convert_element_type(values, array.dtype))

    if to_begin is not None:
        result = concatenate((edge(to_begin), result))
    if to_end is not None:
        result = concatenate((result, edge(to_end)))
    return result


@jit(static_argnames=("axis", "edge_order"))
def gradient(
    f: Any,
    *varargs: Any,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """The derivative of sampled values by central differences, one-sided at the ends.

    `varargs` are the spacing for all axes, or for each: a number, or coordinates. One
    axis gives an array, several give a list. For uneven spacing, the second-order
    formula for neighbours at distances h1 and h2 is used.

    Raises ValueError for axes shorter than two and coordinates of the wrong length,
    TypeError for the wrong number of spacings.
    """
    if edge_order is not None:
        raise NotImplementedError(
            "The 'edge_order' argument to jnp.gradient is not supported: leave it out."
        )
    array, *spacing = promote_dtypes_inexact(f, *varargs)
    array = ensure_arraylike("gradient", array)
    if axis is None:
        axes = tuple(range(array.ndim))
    else:
        numbers = arguments.index_tuple(axis)
        axes = tuple(arguments.canonicalize_axis(i, array.ndim) for i in numbers)
    if not axes:
        return []
    if min(array.shape[i] for i in axes) < 2:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 "
            "elements are required."
        )
    if not spacing:
        spacing = [1.0] * len(axes)
    elif len(spacing) == 1:
        spacing = spacing * len(axes)
    elif len(spacing) != len(axes):
        raise TypeError(
            f"Invalid number of spacing arguments {len(spacing)} for {axis=}"
        )
    results = [
        _gradient_along(array, step, i) for i, step in zip(axes, spacing, strict=True)
    ]
    return results[0] if len(axes) == 1 else results


def _gradient_along(array: Array, step: Any, axis: int) -> Array:
    part = functools.partial(lax.slice_in_dim, array, axis=axis)
    first = part(1, 2) - part(0, 1)
    last = part(-1, None) - part(-2, -1)
    if np.ndim(step) == 0:
        middle = (part(2, None) - part(None, -2)) * 0.5 / step
        last = last / step
        first = first / step
        return concatenate((first, middle, last), axis=axis)
    if np.ndim(step) != 1:
        raise ValueError("Spacing arrays must be 1D arrays or scalars.")
    if len(step) != array.shape[axis]:
        raise ValueError(
            "Spacing arrays must have the same length as the dimension along which the "
            "gradient is calculated."
        )
    shape = [1] * array.ndim
    shape[axis] = len(step)
    place = functools.partial(lax.slice_in_dim, reshape(step, shape), axis=axis)
    first = first / (place(1, 2) - place(0, 1))
    last = last / (place(-1, None) - place(-2, -1))
    h1 = place(1, -1) - place(0, -2)
    h2 = place(2, None) - place(1, -1)
    left = -h2 / (h1 * (h1 + h2))
    center = (h2 - h1) / (h1 * h2)
    right = h1 / (h2 * (h1 + h2))
    middle = left * part(0, -2) + center * part(1, -1) + right * part(2, None)
    return concatenate((first, middle, last), axis=axis)


@jit(static_argnames=("axis",))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral of samples `y` along `axis` by the trapezoidal rule.

    `x` gives their positions, or `dx` the spacing. Integers give a floating result.
    """
    if x is None:
        (values,) = promote_dtypes_inexact(ensure_arraylike("trapezoid", y))
        spacing = creation.asarray(dx)
        if spacing.ndim > 0:
            spacing = lax.expand_dims(spacing, range(values.ndim - spacing.ndim))
            spacing = moveaxis(spacing, axis, -1)
    else:
        y, x = ensure_arraylike("trapezoid", y, x)
        values, places = promote_dtypes_inexact(y, x)
        if places.ndim == 1:
            spacing = diff(places)
        else:
            spacing = moveaxis(diff(places, axis=axis), axis, -1)
    values = moveaxis(values, axis, -1)
    if spacing.ndim == 0 or spacing.shape[-1] == 1:
        step = spacing if spacing.ndim == 0 else spacing[..., 0]
        total = reductions.sum(values, -1)
        return step * (total - 0.5 * (values[..., 0] + values[..., -1]))
    pairs = values[..., 1:] + values[..., :-1]
    return 0.5 * reductions.sum(spacing * pairs, -1)


@jit(static_argnames=("axis",))
def unwrap(
    p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * np.pi
) -> Array:
    """`p` with jumps larger than `discont` removed by adding multiples of `period`.

    `discont` is half a period unless given. Raises ValueError for complex values.
    """
    array, period = promote_dtypes(ensure_arraylike("unwrap", p), period)
    array, period = ensure_arraylike("unwrap", array, period)
    if dtypes.issubdtype(array.dtype, np.complexfloating):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if checked_size(axis, array.shape) == 0:
        return array
    discont = period / 2 if discont is None else discont
    is_whole = dtypes.issubdtype(array.dtype, np.integer)
    half = period // 2 if is_whole else period / 2
    jumps = diff(array, axis=axis)
    wrapped = ufuncs.mod(jumps + half, period) - half
    wrapped = where((wrapped == -half) & (jumps > 0), half, wrapped)
    correction = where(ufuncs.abs(jumps) < discont, 0, wrapped - jumps)
    first = lax.slice_in_dim(array, 0, 1, axis=axis)
    rest = lax.slice_in_dim(array, 1, None, axis=axis)
    rest = rest + running.cumsum(correction, axis=axis)
    return concatenate((first, rest), axis=axis)
