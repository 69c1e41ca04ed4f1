"""Reductions that leave NaN out: `nansum`, `nanmean`, `nanmax` and the others.

NaN is replaced by the neutral element before the ordinary reduction. Where a minimum
or maximum sees nothing but NaN, the result is NaN.

In JAX: `numpy/reduce/reductions.py` and `numpy/lax_numpy.py`.
"""

from collections.abc import Callable

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.promotion import constant_like, ensure_arraylike, user_dtype
from minijax.numpy.reduce import reduction_options, reductions, running
from minijax.numpy.reduce.moments import mean as plain_mean
from minijax.numpy.reduce.moments import squared_magnitude, variance_dtypes
from minijax.numpy.reduce.reducing import check_where, neutral_element, refuse_out
from minijax.numpy.shapes.broadcasting import _where
from minijax.support import element_types
from minijax.typing import ArrayLike


def _is_nan(a: Array) -> Array:
    return lax.ne(a, a)


def _nan_reduction(
    a, reduction: Callable[..., Array], neutral, options: reduction_options.Options
) -> Array:
    """`reduction` of the elements that are not NaN.

    An extremum without `initial` is NaN if all elements are.
    """
    name = f"nan{reduction.__name__}"
    is_extremum = reduction in (reductions.min, reductions.max)
    of_sum, of_extremum = reduction_options.OF_NAN_SUM, reduction_options.OF_EXTREMUM
    names = of_extremum if is_extremum else of_sum
    a = ensure_arraylike(name, a)
    options = options._replace(where=check_where(name, options.where))
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return reduction(a, **options.only(names))
    without_nan = _where(_is_nan(a), neutral_element(a.dtype, neutral), a)
    result = reduction(without_nan, **options.only(names))
    if not is_extremum or options.initial is not None:
        return result
    nothing_else = reductions.all(_is_nan(a), **options.only("axis keepdims"))
    return _where(nothing_else, constant_like(a, np.nan), result)


@reduction_options.compiled(reduction_options.OF_EXTREMUM)
def nanmin(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Smallest element that is not NaN; NaN if there is none."""
    return _nan_reduction(a, reductions.min, np.inf, options)


@reduction_options.compiled(reduction_options.OF_EXTREMUM)
def nanmax(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Largest element that is not NaN; NaN if there is none."""
    return _nan_reduction(a, reductions.max, -np.inf, options)


@reduction_options.compiled(reduction_options.OF_NAN_SUM)
def nansum(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Sum in which NaN counts as zero; otherwise as `sum`."""
    return _nan_reduction(a, reductions.sum, 0, options)


@reduction_options.compiled(reduction_options.OF_NAN_SUM)
def nanprod(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Product in which NaN counts as one; otherwise as `prod`."""
    return _nan_reduction(a, reductions.prod, 1, options)


@reduction_options.compiled(reduction_options.OF_NAN_MEAN)
def nanmean(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Mean of the elements that are not NaN; NaN if there is none."""
    a = ensure_arraylike("nanmean", a)
    options = options._replace(where=check_where("nanmean", options.where))
    refuse_out("nanmean", options.out)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return plain_mean(a, **options.only(reduction_options.OF_NAN_MEAN))
    dtype = user_dtype(
        options.dtype, element_types.to_inexact_dtype(a.dtype), "nanmean"
    )
    summed = options._replace(dtype=dtype).only("axis dtype keepdims where")
    count = reductions.sum(lax.bitwise_not(_is_nan(a)), **summed)
    return lax.div(nansum(a, **summed), count)


@reduction_options.compiled(reduction_options.OF_NAN_VARIANCE)
def nanvar(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Variance of the elements that are not NaN; see `var`."""
    a = ensure_arraylike("nanvar", a)
    where, mean = check_where("nanvar", options.where), options.mean
    refuse_out("nanvar", options.out)
    working_dtype, dtype = variance_dtypes(a.dtype, options.dtype, "nanvar")
    a = lax.convert_element_type(a, working_dtype)
    if mean is None:
        mean = nanmean(a, options.axis, dtype=working_dtype, keepdims=True, where=where)
    else:
        mean = lax.convert_element_type(ensure_arraylike("nanvar", mean), working_dtype)
    # NaN leaves before the square, so that the gradient stays free of it too.
    distance = _where(_is_nan(a), 0, lax.sub(a, mean))
    squares = squared_magnitude(distance)
    summed = options._replace(where=where).only("axis keepdims where")
    divisor = reductions.sum(lax.bitwise_not(_is_nan(a)), **summed) - options.ddof
    undefined = lax.le(divisor, constant_like(divisor, 0))
    total = _where(undefined, np.nan, reductions.sum(squares, **summed))
    divisor = _where(undefined, 1, divisor)
    result = lax.div(total, lax.convert_element_type(divisor, total.dtype))
    return lax.convert_element_type(result, dtype)


@reduction_options.compiled(reduction_options.OF_NAN_VARIANCE)
def nanstd(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Standard deviation of the elements that are not NaN; see `std`."""
    a = ensure_arraylike("nanstd", a)
    options = options._replace(where=check_where("nanstd", options.where))
    refuse_out("nanstd", options.out)
    return lax.sqrt(nanvar(a, **options.only(reduction_options.OF_NAN_VARIANCE)))


@reductions.index_search(jit)
def nanargmax(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the largest element that is not NaN; -1 if there is none."""
    return _index_without_nan(reductions.argmax, -np.inf, a, axis, keepdims)


@reductions.index_search(jit)
def nanargmin(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the smallest element that is not NaN; -1 if there is none."""
    return _index_without_nan(reductions.argmin, np.inf, a, axis, keepdims)


def _index_without_nan(
    find: Callable[..., Array],
    neutral: float,
    a: Array,
    axis: int | None,
    keepdims: bool,
) -> Array:
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return find(a, axis=axis, keepdims=keepdims)
    nan_mask = _is_nan(a)
    index = find(_where(nan_mask, neutral, a), axis=axis, keepdims=keepdims)
    nothing_else = reductions.all(nan_mask, axis=axis, keepdims=keepdims)
    return _where(nothing_else, -1, index)


@reduction_options.compiled(reduction_options.OF_RUNNING)
def nancumsum(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Running sum in which NaN counts as zero."""
    return running.cumulative("nancumsum", lax.cumsum, a, options, replace_nan=0)


@reduction_options.compiled(reduction_options.OF_RUNNING)
def nancumprod(a: ArrayLike, options: reduction_options.Options) -> Array:
    """Running product in which NaN counts as one."""
    return running.cumulative("nancumprod", lax.cumprod, a, options, replace_nan=1)
