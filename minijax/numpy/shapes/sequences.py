"""Numbers in a row: counted, evenly spaced, or given by a function of the index.

In JAX: `numpy/array_creation.py` and `numpy/lax_numpy.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, static_index
from minijax.numpy.math.elementary_functions import log10
from minijax.numpy.math.ufuncs import power, sign
from minijax.numpy.promotion import ensure_arraylike, user_dtype
from minijax.numpy.shapes.broadcasting import broadcast_to
from minijax.numpy.shapes.creation import arange, canonicalize_shape, constant, put_on
from minijax.primitives.shape.slicing import checked_axis
from minijax.support import element_types
from minijax.transforms.vectorization import vmap


def _static_numbers(name: str, num: Any, axis: Any) -> tuple[int, int]:
    num = static_index(num, f"'num' argument of jnp.{name}")
    axis = static_index(axis, f"'axis' argument of jnp.{name}")
    return num, axis


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop` (included if `endpoint`).

    `start` and `stop` broadcast; the new axis stands at `axis`. With `retstep`, the
    pair of the numbers and the step. Floating point, unless `dtype` is given; then
    integers are rounded down. ValueError for negative `num`.
    """
    num, axis = _static_numbers("linspace", num, axis)
    return _linspace(start, stop, num, endpoint, retstep, dtype, axis, device)


@jit(static_argnums=range(2, 8))
def _linspace(start, stop, num, endpoint, retstep: bool, dtype, axis: int, device):
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop, dtype = _inexact_ends("linspace", start, stop, dtype)
    working_dtype = start.dtype
    shape = list(lax.broadcast_shapes(start.shape, stop.shape))
    first = broadcast_to(start, shape)
    last = broadcast_to(stop, shape)
    axis = checked_axis(axis, (*shape, 1)) % (len(shape) + 1)
    shape.insert(axis, 1)
    steps = num - 1 if endpoint else num
    if num > 1:
        delta = (stop - start) / constant(steps, working_dtype)
        real_dtype = dtypes.finfo(working_dtype).dtype
        weight_shape = [1] * len(shape)
        weight_shape[axis] = steps
        weight = lax.reshape(lax.iota(real_dtype, steps), tuple(weight_shape))
        weight = weight / constant(steps, real_dtype)
        weight = lax.convert_element_type(weight, working_dtype)
        # Weighted from both ends, so that both are met exactly.
        left = lax.reshape(first, tuple(shape)) * (1 - weight)
        result = left + lax.reshape(last, tuple(shape)) * weight
        if endpoint:
            end = lax.expand_dims(last, (axis,))
            new_axis = canonicalize_axis(axis, result.ndim)
            result = lax.concatenate([result, end], new_axis)
    elif num == 1:
        delta = lax.full((), np.nan, working_dtype) if endpoint else stop - start
        result = lax.reshape(first, tuple(shape))
    else:
        delta = lax.full((), np.nan, working_dtype)
        shape[axis] = 0
        result = lax.full(tuple(shape), 0, dtype)
    if dtypes.issubdtype(dtype, np.integer) and result.dtype != dtype:
        result = lax.floor(result)
    result = put_on(lax.convert_element_type(result, dtype), device)
    return (result, delta) if retstep else result


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """`base` to the power of `linspace(start, stop)`."""
    num, axis = _static_numbers("logspace", num, axis)
    return _logspace(start, stop, num, endpoint, base, dtype, axis)


@jit(static_argnames=("num", "endpoint", "dtype", "axis"))
def _logspace(start, stop, num: int, endpoint: bool, base, dtype, axis: int) -> Array:
    start, stop, dtype = _inexact_ends("logspace", start, stop, dtype)
    exponents = linspace(start, stop, num, endpoint=endpoint, axis=axis)
    return lax.convert_element_type(power(base, exponents), dtype)


def _inexact_ends(name: str, start: Any, stop: Any, dtype: Any) -> tuple[Any, Any, Any]:
    start, stop = ensure_arraylike(name, start, stop)
    common = element_types.result_type(start, stop)
    dtype = user_dtype(dtype, element_types.to_inexact_dtype(common), name)
    working_dtype = element_types.to_inexact_dtype(dtype)
    start = lax.convert_element_type(start, working_dtype)
    stop = lax.convert_element_type(stop, working_dtype)
    return start, stop, dtype


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop`, each a fixed multiple of the last one."""
    num, axis = _static_numbers("geomspace", num, axis)
    return _geomspace(start, stop, num, endpoint, dtype, axis)


@jit(static_argnames=("num", "endpoint", "dtype", "axis"))
def _geomspace(start, stop, num: int, endpoint: bool, dtype, axis: int) -> Array:
    start, stop, dtype = _inexact_ends("geomspace", start, stop, dtype)
    direction = sign(start)
    first, last = log10(start / direction), log10(stop / direction)
    exponents = logspace(first, last, num, endpoint, base=10.0, dtype=start.dtype)
    result = direction * exponents
    axis = canonicalize_axis(axis, result.ndim)
    if axis != 0:
        order = (*range(1, axis + 1), 0, *range(axis + 1, result.ndim))
        result = lax.transpose(result, order)
    return lax.convert_element_type(result, dtype)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Array:
    """The array whose element at (i, j, ...) is `function(i, j, ...)`.

    `function` sees scalars: it is mapped with `vmap` over each index.
    """
    shape = canonicalize_shape(shape)
    rank = len(shape)
    for i in range(rank):
        axes = [0 if i == j else None for j in range(rank)]
        function = vmap(function, in_axes=tuple(reversed(axes)))
    return function(*(arange(size, dtype=dtype) for size in shape), **kwargs)
