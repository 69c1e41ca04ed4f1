"""Means, variances and weighted averages along axes.

Small floats are summed in float32; integers give floating-point results. Quantiles
are in `quantiles.py`, the kinds that skip NaN in `nan_reductions.py`.

In JAX: `numpy/reduce/reductions.py`.
"""

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axes
from minijax.numpy.promotion import ensure_arraylike, promote_dtypes_inexact, user_dtype
from minijax.numpy.reduce import reducing, reduction_options
from minijax.numpy.reduce.reductions import sum
from minijax.numpy.shapes.broadcasting import _where, broadcast_to
from minijax.numpy.shapes.creation import constant
from minijax.primitives.shape.slicing import checked_size
from minijax.support import element_types
from minijax.typing import ArrayLike


def _plain_mean(a: Any, axes: tuple[int, ...]) -> Array:
    count = constant(math.prod([a.aval.shape[i] for i in axes]), a.aval.dtype)
    return lax.div(lax.reduce_sum(a, axes), count)


@reducing.reduces(_plain_mean)
@reduction_options.takes(reduction_options.OF_MEAN)
def mean(a: Array, options: reduction_options.Options) -> Array:
    """The mean along `axis` (None: all axes), in floating point; NaN for no elements.

    `where` says which elements count. `out` is not supported.
    """
    a = ensure_arraylike("mean", a)
    where = reducing.check_where("mean", options.where)
    reducing.refuse_out("mean", options.out)
    default = element_types.to_inexact_dtype(a.dtype)
    working_dtype = result_dtype = user_dtype(options.dtype, default, "mean")
    if options.dtype is None:
        working_dtype = reducing.upcast_small_float(default)
    axis, keepdims = options.axis, options.keepdims
    count = count_elements(a, axis, keepdims, where, working_dtype)
    total = sum(a, axis, dtype=working_dtype, keepdims=keepdims, where=where)
    return lax.convert_element_type(lax.div(total, count), result_dtype)


def count_elements(
    a: Array, axis: reduction_options.Axis, keepdims: bool, where: Any, dtype: Any
) -> Any:
    """How many elements of `a` are reduced over: a constant, or a sum over `where`."""
    if where is not None:
        return sum(broadcast_to(where, a.shape), axis, dtype=dtype, keepdims=keepdims)
    if axis is None:
        return constant(a.size, dtype)
    size = 1
    for each in axis if isinstance(axis, (tuple, list)) else (axis,):
        is_name = isinstance(each, str)
        size *= lax.axis_size(each) if is_name else checked_size(each, a.shape)
    return constant(size, dtype)


@reducing.reduces()
def average(
    a: Any,
    axis: reduction_options.Axis = None,
    weights: Any = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean of `a`, each element counted with its weight.

    `weights` has the shape of `a`, or of the reduced axes alone. `returned` asks for
    the pair of the average and the sum of the weights. ValueError when the shapes of
    `a` and `weights` do not fit.
    """
    axes = canonicalize_axes(axis, np.ndim(a))
    if weights is None:
        (a,) = promote_dtypes_inexact(ensure_arraylike("average", a))
        result = mean(a, axis=axis, keepdims=keepdims)
        count = a.size if axis is None else math.prod(a.shape[i] for i in axes)
        weights_sum: Any = None
        if returned:
            weights_sum = lax.full((), count, dtype=result.dtype)
    else:
        a, weights = promote_dtypes_inexact(*ensure_arraylike("average", a, weights))
        if a.shape != weights.shape:
            weights = _weights_along(a, weights, axis, axes)
        weights_sum = sum(weights, axis=axis, keepdims=keepdims)
        result = sum(a * weights, axis=axis, keepdims=keepdims) / weights_sum
    if not returned:
        return result
    if result.shape != weights_sum.shape:
        weights_sum = broadcast_to(weights_sum, result.shape)
    return result, weights_sum


def _weights_along(
    a: Array, weights: Array, axis: reduction_options.Axis, axes: tuple[int, ...]
) -> Array:
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    shape = tuple(size if i in axes else 1 for i, size in enumerate(a.shape))
    return lax.reshape(weights, shape, dimensions=tuple(map(int, np.argsort(axes))))


def _settled(options: reduction_options.Options) -> dict[str, Any]:
    """The arguments of the compiled functions, without a given mean.

    What to take off the count has two names: NumPy's `ddof`, and the array API's.
    """
    ddof, correction = options.ddof, options.correction
    if correction is None:
        correction = ddof
    elif not isinstance(ddof, int) or ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    axis = reducing.static_axes(options.axis)
    settled = options.only("dtype out keepdims where")
    return settled | {"axis": axis, "correction": correction}


@reduction_options.takes(reduction_options.OF_VARIANCE)
def var(a: ArrayLike, options: reduction_options.Options) -> Array:
    """The variance along `axis`: the mean squared distance from the mean.

    The sum of squares is divided by the count minus `ddof` (the array API calls it
    `correction`). A known `mean` (with `keepdims=True`) saves computing it. Real for
    complex numbers too. NaN where the divisor is not positive.
    """
    return _var(ensure_arraylike("var", a), a_mean=options.mean, **_settled(options))


@jit(static_argnames=("axis", "dtype", "keepdims"))
def _var(a, *, axis, dtype, out, correction, keepdims, where, a_mean):
    where = reducing.check_where("var", where)
    reducing.refuse_out("var", out)
    working_dtype, dtype = variance_dtypes(a.dtype, dtype, "var")
    a = lax.convert_element_type(a, working_dtype)
    if a_mean is None:
        a_mean = mean(a, axis, dtype=working_dtype, keepdims=True, where=where)
    else:
        a_mean = ensure_arraylike("var", a_mean)
        a_mean = lax.convert_element_type(a_mean, working_dtype)
    squares = squared_magnitude(lax.sub(a, a_mean))
    count = count_elements(a, axis, keepdims, where, squares.dtype)
    divisor = lax.sub(count, lax.convert_element_type(correction, squares.dtype))
    total = sum(squares, axis, dtype=squares.dtype, keepdims=keepdims, where=where)
    result = lax.convert_element_type(lax.div(total, divisor), dtype)
    return _where(divisor > 0, result, np.nan)


def squared_magnitude(distance: Array) -> Array:
    """|distance|^2, real for complex numbers too."""
    if dtypes.issubdtype(distance.dtype, np.complexfloating):
        return lax.real(lax.mul(distance, lax.conj(distance)))
    return lax.square(distance)


def variance_dtypes(a_dtype: Any, dtype: Any, name: str) -> tuple[Any, Any]:
    """The dtype in which to compute a variance, and the dtype of the result."""
    if dtype is not None:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, name)
        if dtypes.issubdtype(a_dtype, np.complexfloating) and not dtypes.issubdtype(
            dtype, np.complexfloating
        ):
            raise ValueError(
                "jax.numpy.var does not support a real dtype for the variance of "
                "complex numbers. Leave dtype out: the result is real anyway."
            )
        return reducing.upcast_small_float(dtype), np.dtype(dtype)
    if not dtypes.issubdtype(a_dtype, np.inexact):
        dtype = element_types.to_inexact_dtype(a_dtype)
        return reducing.upcast_small_float(dtype), np.dtype(dtype)
    return reducing.upcast_small_float(a_dtype), np.dtype(dtypes.finfo(a_dtype).dtype)


@reduction_options.takes(reduction_options.OF_VARIANCE)
def std(a: ArrayLike, options: reduction_options.Options) -> Array:
    """The standard deviation along `axis`: the square root of `var`."""
    return _std(ensure_arraylike("std", a), mean=options.mean, **_settled(options))


@jit(static_argnames=("axis", "dtype", "keepdims"))
def _std(a: Array, *, dtype: Any, out: None, where: Any, **options: Any) -> Array:
    where = reducing.check_where("std", where)
    if dtype is not None:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, "std")
        if not dtypes.issubdtype(dtype, np.inexact):
            raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    reducing.refuse_out("std", out)
    return lax.sqrt(var(a, dtype=dtype, where=where, **options))
