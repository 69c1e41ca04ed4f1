"""Running sums and products: `cumsum`, `cumprod`, and the array API's spelling.

In JAX: `numpy/reduce/reductions.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis
from minijax.numpy.promotion import constant_like, ensure_arraylike
from minijax.numpy.reduce.reducing import promote_small_integer, refuse_out
from minijax.numpy.reduce.reduction_options import OF_RUNNING, Options, compiled
from minijax.numpy.shapes.broadcasting import _where
from minijax.support import element_types
from minijax.typing import ArrayLike

_bool = np.dtype(bool)


def cumulative(
    name: str,
    scan: Callable[..., Array],
    a: Any,
    options: Options,
    *,
    replace_nan: Any = None,
    promote_integers: bool = False,
) -> Array:
    """The common steps of `cumsum`, `cumprod` and their forms that skip NaN."""
    refuse_out(name, options.out)
    axis: Any = options.axis
    dtype = options.dtype
    a = ensure_arraylike(name, a)
    if axis is None or a.ndim == 0:
        a = lax.reshape(a, (a.size,))
    axis = canonicalize_axis(0 if axis is None else axis, a.ndim)
    if replace_nan is not None:
        a = _where(lax.ne(a, a), constant_like(a, replace_nan), a)
    if dtype is None:
        result_dtype = a.dtype
        if promote_integers or result_dtype == _bool:
            result_dtype = promote_small_integer(result_dtype)
        working_dtype = result_dtype
    elif np.dtype(dtype) == _bool:
        result_dtype = _bool
        a = a if a.dtype == _bool else lax.ne(a, constant_like(a, 0))
        working_dtype = promote_small_integer(_bool)
    else:
        result_dtype = element_types.check_and_canonicalize_user_dtype(dtype, name)
        working_dtype = result_dtype
    a = lax.convert_element_type(a, working_dtype)
    return lax.convert_element_type(scan(a, axis), result_dtype)


@compiled(OF_RUNNING)
def cumsum(a: ArrayLike, options: Options) -> Array:
    """Running sum along `axis` (None: of the flattened array), of the same shape."""
    return cumulative("cumsum", lax.cumsum, a, options)


@compiled(OF_RUNNING)
def cumprod(a: ArrayLike, options: Options) -> Array:
    """Running product along `axis` (None: of the flattened array)."""
    return cumulative("cumprod", lax.cumprod, a, options)


@compiled(OF_RUNNING)
def _cumsum_with_promotion(a: ArrayLike, options: Options) -> Array:
    return cumulative("cumulative_sum", lax.cumsum, a, options, promote_integers=True)


def _axis_of_running(x: Array, axis: int | None, what: str) -> int:
    if x.ndim == 0:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {what}, however a "
            "scalar value or scalar array was given."
        )
    if axis is None and x.ndim > 1:
        raise ValueError(
            f"The input array has rank {x.ndim}, so axis must be given: it is optional "
            "for one-dimensional arrays only."
        )
    return canonicalize_axis(0 if axis is None else axis, x.ndim)


def _with_initial(result: Array, axis: int, value: int) -> Array:
    shape = list(result.shape)
    shape[axis] = 1
    first = lax.full(shape, value, dtype=result.dtype)
    return lax.concatenate([first, result], dimension=axis)


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """The array API's running sum; `include_initial` puts a zero in front.

    ValueError for scalars, and without `axis` for arrays of rank above one.
    """
    x = ensure_arraylike("cumulative_sum", x)
    axis = _axis_of_running(x, axis, "sum")
    result = _cumsum_with_promotion(x, axis=axis, dtype=dtype)
    return _with_initial(result, axis, 0) if include_initial else result


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """The array API's running product; `include_initial` puts a one in front."""
    x = ensure_arraylike("cumulative_prod", x)
    axis = _axis_of_running(x, axis, "product")
    result = cumulative("cumulative_prod", lax.cumprod, x, Options(axis, dtype))
    return _with_initial(result, axis, 1) if include_initial else result
