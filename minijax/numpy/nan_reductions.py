"""Reductions that leave NaN out: `nansum`, `nanmean`, `nanmax` and the others.

NaN is replaced by the neutral element before the ordinary reduction. Where a minimum
or maximum sees nothing but NaN, the result is NaN.

In JAX: `numpy/reductions.py` and `numpy/lax_numpy.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.language.array import Array
from minijax.numpy.broadcasting import _where
from minijax.numpy.moments import mean as plain_mean
from minijax.numpy.moments import squared_magnitude, variance_dtypes
from minijax.numpy.promotion import constant_like, ensure_arraylike, user_dtype
from minijax.numpy.reducing import Axis, check_where, neutral_element, refuse_out
from minijax.numpy.reductions import (
    all,
    argmax,
    argmin,
    index_search,
    max,
    min,
    prod,
    sum,
)
from minijax.numpy.running import cumulative
from minijax.support import dtypes
from minijax.transforms.api import jit


def _is_nan(a: Array) -> Array:
    return lax.ne(a, a)


def _nan_reduction(
    a: Any,
    name: str,
    reduction: Callable[..., Array],
    neutral: Any,
    axis: Axis,
    keepdims: bool,
    where: Any,
    **keywords: Any,
) -> Array:
    """`reduction` of what is not NaN. An extremum without `initial` needs something:
    of nothing but NaN it is NaN."""
    a = ensure_arraylike(name, a)
    where = check_where(name, where)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return reduction(a, axis=axis, keepdims=keepdims, where=where, **keywords)
    without_nan = _where(_is_nan(a), neutral_element(a.dtype, neutral), a)
    result = reduction(
        without_nan, axis=axis, keepdims=keepdims, where=where, **keywords
    )
    if reduction not in (min, max) or keywords["initial"] is not None:
        return result
    nothing_else = all(_is_nan(a), axis=axis, keepdims=keepdims)
    return _where(nothing_else, constant_like(a, np.nan), result)


@jit(static_argnames=("axis", "keepdims"))
def nanmin(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Smallest element that is not NaN; NaN if there is none."""
    options = {"out": out, "initial": initial}
    return _nan_reduction(a, "nanmin", min, np.inf, axis, keepdims, where, **options)


@jit(static_argnames=("axis", "keepdims"))
def nanmax(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Largest element that is not NaN; NaN if there is none."""
    options = {"out": out, "initial": initial}
    return _nan_reduction(a, "nanmax", max, -np.inf, axis, keepdims, where, **options)


@jit(static_argnames=("axis", "dtype", "keepdims"))
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Sum in which NaN counts as zero; otherwise as `sum`."""
    options = {"dtype": dtype, "out": out, "initial": initial}
    return _nan_reduction(a, "nansum", sum, 0, axis, keepdims, where, **options)


@jit(static_argnames=("axis", "dtype", "keepdims"))
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Product in which NaN counts as one; otherwise as `prod`."""
    options = {"dtype": dtype, "out": out, "initial": initial}
    return _nan_reduction(a, "nanprod", prod, 1, axis, keepdims, where, **options)


@jit(static_argnames=("axis", "dtype", "keepdims"))
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: Any = None,
) -> Array:
    """Mean of the elements that are not NaN; NaN if there is none."""
    a = ensure_arraylike("nanmean", a)
    where = check_where("nanmean", where)
    refuse_out("nanmean", out)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return plain_mean(a, axis, dtype, out, keepdims, where=where)
    dtype = user_dtype(dtype, dtypes.to_inexact_dtype(a.dtype), "nanmean")
    counts = lax.bitwise_not(_is_nan(a))
    count = sum(counts, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    total = nansum(a, axis, dtype=dtype, keepdims=keepdims, where=where)
    return lax.div(total, count)


@jit(static_argnames=("axis", "dtype", "keepdims"))
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Variance of the elements that are not NaN; see `var`."""
    a = ensure_arraylike("nanvar", a)
    where = check_where("nanvar", where)
    refuse_out("nanvar", out)
    working_dtype, dtype = variance_dtypes(a.dtype, dtype, "nanvar")
    a = lax.convert_element_type(a, working_dtype)
    if mean is None:
        mean = nanmean(a, axis, dtype=working_dtype, keepdims=True, where=where)
    else:
        mean = lax.convert_element_type(ensure_arraylike("nanvar", mean), working_dtype)
    # NaN leaves before the square, so that the gradient stays free of it too.
    distance = _where(_is_nan(a), 0, lax.sub(a, mean))
    squares = squared_magnitude(distance)
    counts = lax.bitwise_not(_is_nan(a))
    divisor = sum(counts, axis=axis, keepdims=keepdims, where=where) - ddof
    undefined = lax.le(divisor, constant_like(divisor, 0))
    total = sum(squares, axis, keepdims=keepdims, where=where)
    total = _where(undefined, np.nan, total)
    divisor = _where(undefined, 1, divisor)
    result = lax.div(total, lax.convert_element_type(divisor, total.dtype))
    return lax.convert_element_type(result, dtype)


@jit(static_argnames=("axis", "dtype", "keepdims"))
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Standard deviation of the elements that are not NaN; see `std`."""
    a = ensure_arraylike("nanstd", a)
    where = check_where("nanstd", where)
    refuse_out("nanstd", out)
    options = {"ddof": ddof, "keepdims": keepdims, "where": where, "mean": mean}
    return lax.sqrt(nanvar(a, axis, dtype, **options))


def nanargmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the largest element that is not NaN; -1 if there is none."""
    return index_search("nanargmax", _nanargmax, a, axis, out, keepdims)


def nanargmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the smallest element that is not NaN; -1 if there is none."""
    return index_search("nanargmin", _nanargmin, a, axis, out, keepdims)


@jit(static_argnames=("axis", "keepdims"))
def _nanargmax(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _index_without_nan(argmax, -np.inf, a, axis, keepdims)


@jit(static_argnames=("axis", "keepdims"))
def _nanargmin(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _index_without_nan(argmin, np.inf, a, axis, keepdims)


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
    nothing_else = all(nan_mask, axis=axis, keepdims=keepdims)
    return _where(nothing_else, -1, index)


@jit(static_argnames=("axis", "dtype"))
def nancumsum(
    a: Any, axis: int | None = None, dtype: Any = None, out: None = None
) -> Array:
    """Running sum in which NaN counts as zero."""
    return cumulative("nancumsum", lax.cumsum, a, axis, dtype, out, replace_nan=0)


@jit(static_argnames=("axis", "dtype"))
def nancumprod(
    a: Any, axis: int | None = None, dtype: Any = None, out: None = None
) -> Array:
    """Running product in which NaN counts as one."""
    return cumulative("nancumprod", lax.cumprod, a, axis, dtype, out, replace_nan=1)
