"""Sums, products, extrema and truth along axes.

The functions here name the primitive and its neutral element; how a reduction is done
stands in `reducing.py`.

In JAX: `numpy/reductions.py`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.api import jit
from minijax.array import Array
from minijax.numpy.arguments import canonicalize_axis
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.promotion import constant_like, dtype_of, ensure_arraylike
from minijax.numpy.reducing import (
    AND,
    MAX,
    MIN,
    OR,
    PROD,
    SUM,
    XOR,
    Axis,
    Reducer,
    plain_axes,
    reduction,
    refuse_out,
    require_integer,
    static_axes,
    to_bool,
    to_number,
)

# --------------------------------------------------------------------------
# Sums and products


@inline_jit(static_argnames=("axis", "dtype", "keepdims", "promote_integers"))
def _reduce_sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    return reduction(
        a,
        "sum",
        SUM,
        prepare=to_number,
        bool_reducer=OR,
        upcast_small_floats=dtype is None,
        promote_integers=promote_integers,
        axis=axis,
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Sum of the elements along `axis` (None: all axes).

    Bools are counted; integers narrower than the default become the default integer
    type unless `promote_integers=False`; float16 and bfloat16 are summed in float32.
    `where` masks elements out, `initial` is added. `out` is not supported.
    """
    if dtype is None and out is None and not keepdims:
        if initial is None and where is None:
            axes = plain_axes(a, axis)
            if axes is not None:
                return lax.reduce_sum(a, axes=axes)
    return _reduce_sum(
        a,
        axis=static_axes(axis),
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
        promote_integers=promote_integers,
    )


@inline_jit(static_argnames=("axis", "dtype", "keepdims", "promote_integers"))
def _reduce_prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    return reduction(
        a,
        "prod",
        PROD,
        prepare=to_number,
        bool_reducer=AND,
        upcast_small_floats=dtype is None,
        promote_integers=promote_integers,
        axis=axis,
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Product of the elements along `axis`; dtypes as in `sum`."""
    return _reduce_prod(
        a,
        axis=static_axes(axis),
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
        promote_integers=promote_integers,
    )


# --------------------------------------------------------------------------
# Extrema


@inline_jit(static_argnames=("axis", "keepdims"))
def _reduce_max(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    return reduction(
        a,
        "max",
        MAX,
        has_identity=False,
        axis=axis,
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def max(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Largest element along `axis`; NaN wins. ValueError along an axis of size zero
    and for `where` without `initial`, since there is no neutral element."""
    if out is None and initial is None and where is None and not keepdims:
        axes = plain_axes(a, axis)
        if axes is not None and 0 not in a.aval.shape:
            return lax.reduce_max(a, axes=axes)
    return _reduce_max(
        a,
        axis=static_axes(axis),
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


@inline_jit(static_argnames=("axis", "keepdims", "dtype"))
def _reduce_min(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    return reduction(
        a,
        "min",
        MIN,
        has_identity=False,
        axis=axis,
        dtype=dtype,
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def min(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Smallest element along `axis`; NaN wins. Errors as in `max`."""
    if out is None and initial is None and where is None and not keepdims:
        axes = plain_axes(a, axis)
        if axes is not None and 0 not in a.aval.shape:
            return lax.reduce_min(a, axes=axes)
    return _reduce_min(
        a,
        axis=static_axes(axis),
        out=out,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )


def amax(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The same as `max`."""
    return max(a, axis, out, keepdims, initial, where)


def amin(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """The same as `min`."""
    return min(a, axis, out, keepdims, initial, where)


def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Largest minus smallest element along `axis` ("peak to peak")."""
    a = ensure_arraylike("ptp", a)
    return _ptp(a, static_axes(axis), out, keepdims)


@jit(static_argnames=("axis", "keepdims"))
def _ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    refuse_out("ptp", out)
    return lax.sub(
        amax(a, axis=axis, keepdims=keepdims), amin(a, axis=axis, keepdims=keepdims)
    )


def argmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the largest element along `axis` (None: in the flattened array).

    The first one if there are several; a NaN counts as the largest. The result has
    the default integer dtype. ValueError for an axis of size zero.
    """
    a = ensure_arraylike("argmax", a)
    refuse_out("argmax", out)
    axis = None if axis is None else operator.index(axis)
    return _argmax(a, axis, keepdims=bool(keepdims))


def argmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the smallest element along `axis`; otherwise as `argmax`."""
    a = ensure_arraylike("argmin", a)
    refuse_out("argmin", out)
    axis = None if axis is None else operator.index(axis)
    return _argmin(a, axis, keepdims=bool(keepdims))


@inline_jit(static_argnames=("axis", "keepdims"))
def _argmax(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    return _index_of("argmax", lax.argmax, a, axis, keepdims)


@inline_jit(static_argnames=("axis", "keepdims"))
def _argmin(a: Array, axis: int | None = None, keepdims: bool = False) -> Array:
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
    result = find(a, axis, dtypes.default_int_dtype())
    return lax.expand_dims(result, kept) if keepdims else result


# --------------------------------------------------------------------------
# Truth


@inline_jit(static_argnames=("axis", "keepdims"))
def _reduce_all(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    return reduction(
        a,
        "all",
        AND,
        prepare=to_bool,
        axis=axis,
        out=out,
        keepdims=keepdims,
        where=where,
    )


def all(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Whether all elements along `axis` are nonzero (True when there are none)."""
    return _reduce_all(
        a, axis=static_axes(axis), out=out, keepdims=keepdims, where=where
    )


@inline_jit(static_argnames=("axis", "keepdims"))
def _reduce_any(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    return reduction(
        a,
        "any",
        OR,
        prepare=to_bool,
        axis=axis,
        out=out,
        keepdims=keepdims,
        where=where,
    )


def any(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Whether some element along `axis` is nonzero (False when there are none)."""
    return _reduce_any(
        a, axis=static_axes(axis), out=out, keepdims=keepdims, where=where
    )


@jit(static_argnames=("axis", "keepdims"))
def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements along `axis` are nonzero, in the default integer dtype."""
    a = ensure_arraylike("count_nonzero", a)
    nonzero = lax.ne(a, constant_like(a, 0))
    return sum(nonzero, axis=axis, dtype=dtypes.default_int_dtype(), keepdims=keepdims)


# --------------------------------------------------------------------------
# What `bitwise_and.reduce` and its like mean


def _ufunc_reduction(
    name: str, reducer: Reducer, prepare: Callable[[Array], Array], all_bits: bool
) -> Callable[..., Array]:
    def reduce(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        chosen = reducer
        if all_bits:
            neutral = np.array(-1).astype(dtype_of(a) if dtype is None else dtype)
            chosen = reducer._replace(neutral=neutral)
        return reduction(
            a,
            name,
            chosen,
            prepare=prepare,
            axis=static_axes(axis),
            dtype=dtype,
            out=out,
            keepdims=keepdims,
            initial=initial,
            where=where,
        )

    reduce.__name__ = f"_{name}"
    return inline_jit(reduce, static_argnames=("axis", "keepdims", "dtype"))


_reduce_bitwise_and = _ufunc_reduction(
    "reduce_bitwise_and", AND, require_integer, all_bits=True
)
_reduce_bitwise_or = _ufunc_reduction(
    "reduce_bitwise_or", OR, require_integer, all_bits=False
)
_reduce_bitwise_xor = _ufunc_reduction(
    "reduce_bitwise_xor", XOR, require_integer, all_bits=False
)
_reduce_logical_and = _ufunc_reduction(
    "reduce_logical_and", AND, to_bool, all_bits=False
)
_reduce_logical_or = _ufunc_reduction("reduce_logical_or", OR, to_bool, all_bits=False)
_reduce_logical_xor = _ufunc_reduction(
    "reduce_logical_xor", XOR, to_bool, all_bits=False
)
