"""Sums, products, extrema and truth along axes.

The functions here name the primitive and its neutral element; how a reduction is done
stands in `reducing.py`.

In JAX: `numpy/reduce/reductions.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axis, index_of
from minijax.numpy.boundaries import inline_jit, introduce
from minijax.numpy.promotion import constant_like, dtype_of, ensure_arraylike
from minijax.numpy.reduce import reducing
from minijax.numpy.reduce.reduction_options import (
    OF_EXTREMUM,
    OF_SUM,
    OF_TRUTH,
    Axis,
    Options,
    takes,
)
from minijax.support import element_types
from minijax.typing import ArrayLike

# --------------------------------------------------------------------------
# Sums and products


@reducing.reduces(lax.reduce_sum)
@takes(OF_SUM)
def sum(a: Array, options: Options) -> Array:
    """Sum of the elements along `axis` (None: all axes).

    Bools are counted; integers narrower than the default become the default integer
    type unless `promote_integers=False`; float16 and bfloat16 are summed in float32.
    `where` masks elements out, `initial` is added. `out` is not supported.
    """
    return reducing.reduction(a, "sum", reducing.SUM, options, reducing.to_number)


@reducing.reduces(lax.reduce_prod)
@takes(OF_SUM)
def prod(a: Array, options: Options) -> Array:
    """Product of the elements along `axis`; dtypes as in `sum`."""
    return reducing.reduction(a, "prod", reducing.PROD, options, reducing.to_number)


# --------------------------------------------------------------------------
# Extrema


@reducing.reduces(lax.reduce_max)
@takes(OF_EXTREMUM)
def max(a: Array, options: Options) -> Array:
    """Largest element along `axis`; NaN if there is one. ValueError along an
    axis of size zero and for `where` without `initial`: there is no neutral element."""
    return reducing.reduction(a, "max", reducing.MAX, options)


@reducing.reduces(lax.reduce_min)
@takes(OF_EXTREMUM)
def min(a: Array, options: Options) -> Array:
    """Smallest element along `axis`; NaN if there is one. Errors as in `max`."""
    return reducing.reduction(a, "min", reducing.MIN, options)


@takes(OF_EXTREMUM)
def amax(a: Array, options: Options) -> Array:
    """The same as `max`."""
    return max(a, **options.only(OF_EXTREMUM))


@takes(OF_EXTREMUM)
def amin(a: Array, options: Options) -> Array:
    """The same as `min`."""
    return min(a, **options.only(OF_EXTREMUM))


def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Largest minus smallest element along `axis` ("peak to peak")."""
    a = ensure_arraylike("ptp", a)
    return _ptp(a, reducing.static_axes(axis), out, keepdims)


@jit(static_argnames=("axis", "keepdims"))
def _ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    reducing.refuse_out("ptp", out)
    return lax.sub(
        amax(a, axis=axis, keepdims=keepdims), amin(a, axis=axis, keepdims=keepdims)
    )


def index_search(
    compile: Callable[..., Any],
) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Makes `argmax` and its like of their arithmetic, `search(a, axis, keepdims)`.

    `compile` is the kind of jit, under the name with an underscore.
    """

    def decorate(search: Callable[..., Array]) -> Callable[..., Array]:
        name = search.__name__

        def public(
            a: ArrayLike,
            axis: int | None = None,
            out: None = None,
            keepdims: bool | None = None,
        ) -> Array:
            a = ensure_arraylike(name, a)
            reducing.refuse_out(name, out)
            axis = None if axis is None else index_of(axis, "an axis")
            return compiled(a, axis, keepdims=bool(keepdims))

        introduce(public, search)
        search.__name__ = search.__qualname__ = "_" + name
        compiled = compile(search, static_argnames=("axis", "keepdims"))
        return public

    return decorate


@index_search(inline_jit)
def argmax(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the largest element along `axis` (None: in the flattened array).

    The first one if there are several; a NaN counts as the largest. The result has
    the default integer dtype. ValueError for an axis of size zero.
    """
    return _index_of("argmax", lax.argmax, a, axis, keepdims)


@index_search(inline_jit)
def argmin(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the smallest element along `axis`; otherwise as `argmax`."""
    return _index_of("argmin", lax.argmin, a, axis, keepdims)


def _index_of(
    name: str, find: Callable[..., Array], a: Array, axis: int | None, keepdims: bool
) -> Array:
    if axis is None:
        kept = list(range(a.ndim))
        a = lax.reshape(a, (a.size,))
        axis = 0
    else:
        kept = [axis]
    axis = canonicalize_axis(axis, a.ndim)
    if a.shape[axis] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    result = find(a, axis, element_types.default_int_dtype())
    return lax.expand_dims(result, kept) if keepdims else result


# --------------------------------------------------------------------------
# Truth


@reducing.reduces()
@takes(OF_TRUTH)
def all(a: Array, options: Options) -> Array:
    """Whether all elements along `axis` are nonzero (True when there are none)."""
    return reducing.reduction(a, "all", reducing.AND, options, reducing.to_bool)


@reducing.reduces()
@takes(OF_TRUTH)
def any(a: Array, options: Options) -> Array:
    """Whether some element along `axis` is nonzero (False when there are none)."""
    return reducing.reduction(a, "any", reducing.OR, options, reducing.to_bool)


@jit(static_argnames=("axis", "keepdims"))
def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements along `axis` are nonzero, in the default integer dtype."""
    a = ensure_arraylike("count_nonzero", a)
    nonzero = lax.ne(a, constant_like(a, 0))
    return sum(
        nonzero, axis=axis, dtype=element_types.default_int_dtype(), keepdims=keepdims
    )


# --------------------------------------------------------------------------
# What `bitwise_and.reduce` and its like mean


def _ufunc_reduction(
    name: str, reducer: reducing.Reducer, prepare: Callable[[Array], Array] | None
) -> Callable[..., Array]:
    """What `ufunc.reduce` calls: a reduction with every option by name."""

    def reduce(a: Any, axis: Axis = None, dtype: Any = None, **more: Any) -> Array:
        chosen = reducer
        if name == "reduce_bitwise_and":
            ones = np.array(-1).astype(dtype_of(a) if dtype is None else dtype)
            chosen = reducer._replace(neutral=ones)  # all bits set
        options = Options(reducing.static_axes(axis), dtype, **more)
        return reducing.reduction(a, name, chosen, options, prepare)

    return reduce


_reduce_max = _ufunc_reduction("max", reducing.MAX, None)
_reduce_min = _ufunc_reduction("min", reducing.MIN, None)
_reduce_bitwise_and = _ufunc_reduction(
    "reduce_bitwise_and", reducing.AND, reducing.require_integer
)
_reduce_bitwise_or = _ufunc_reduction(
    "reduce_bitwise_or", reducing.OR, reducing.require_integer
)
_reduce_bitwise_xor = _ufunc_reduction(
    "reduce_bitwise_xor", reducing.XOR, reducing.require_integer
)
_reduce_logical_and = _ufunc_reduction(
    "reduce_logical_and", reducing.AND, reducing.to_bool
)
_reduce_logical_or = _ufunc_reduction(
    "reduce_logical_or", reducing.OR, reducing.to_bool
)
_reduce_logical_xor = _ufunc_reduction(
    "reduce_logical_xor", reducing.XOR, reducing.to_bool
)
