"""Sums, products, extrema and their running kinds along axes.

All of them go through `_reduction`: check the arguments, choose the dtype in which to
compute (small floats are summed in float32, small integers in the default integer
type), mask what `where` leaves out with the neutral element, reduce, and put the
reduced axes back for `keepdims`.

In JAX: `numpy/reductions.py`.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax.api import jit
from minijax.array import Array
from minijax.numpy.arguments import canonicalize_axis, concrete_or_error
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.broadcasting import _where
from minijax.numpy.promotion import (
    constant_like,
    dtype_of,
    ensure_arraylike,
    promote_dtypes_numeric,
)

_bool = np.dtype(bool)
Axis = int | str | Sequence[int | str] | None


class Reducer(NamedTuple):
    """How one kind of reduction is done: the primitive along axes, the same between
    two arrays (for `initial`), the neutral element, and the name of the
    collective that reduces over named axes, where there is one."""

    along: Callable[..., Array]
    between: Callable[[Any, Any], Array]
    neutral: Any
    over_names: str | None = None


_sum = Reducer(lax.reduce_sum, lax.add, 0, "psum")
_prod = Reducer(lax.reduce_prod, lax.mul, 1)
_max = Reducer(lax.reduce_max, lax.max, -np.inf, "pmax")
_min = Reducer(lax.reduce_min, lax.min, np.inf, "pmin")
_and = Reducer(lax.reduce_and, lax.bitwise_and, True)
_or = Reducer(lax.reduce_or, lax.bitwise_or, False)
_xor = Reducer(lax.reduce_xor, lax.bitwise_xor, False)


# --------------------------------------------------------------------------
# The common frame


def refuse_out(name: str, out: Any) -> None:
    """Raise NotImplementedError when NumPy's `out` argument was given."""
    if out is not None:
        raise NotImplementedError(
            f"The 'out' argument to jnp.{name} is not supported: arrays are immutable. "
            "Use the array that the call returns."
        )


def check_where(name: str, where: Any) -> Any:
    """The mask `where` as an array of bools, or None. ValueError for other dtypes."""
    if where is None:
        return None
    where = ensure_arraylike(name, where)
    if where.dtype != _bool:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array; got "
            f"where.dtype={where.dtype}."
        )
    return where


def static_axes(axis: Any) -> Any:
    """`axis` as an int, a tuple of ints (or axis names), or None.

    Raises ConcretizationTypeError for a traced axis: shapes depend on it.
    """
    if axis is None or type(axis) is int:
        return axis

    def as_ints(axis: Any) -> Any:
        try:
            return operator.index(axis)
        except TypeError:
            return tuple(a if isinstance(a, str) else operator.index(a) for a in axis)

    return concrete_or_error(
        as_ints, axis, "The axis argument must be known statically."
    )


def reduced_axes(rank: int, axis: Axis) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Split `axis` into positions (counted from the front) and names of mapped axes."""
    if axis is None:
        return tuple(range(rank)), ()
    if type(axis) is int:
        return (canonicalize_axis(axis, rank),), ()
    axes = axis if isinstance(axis, (tuple, list, np.ndarray)) else (axis,)
    names = tuple(a for a in axes if isinstance(a, str))
    positions = tuple(
        canonicalize_axis(a, rank) for a in axes if not isinstance(a, str)
    )
    if len(set(positions)) != len(positions) or len(set(names)) != len(names):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return positions, names


def upcast_small_float(dtype: Any) -> np.dtype:
    """float32 for the 16-bit floats, in which sums would lose everything small."""
    dtype = np.dtype(dtype)
    if dtype == np.float16 or dtype == dtypes.bfloat16:
        return np.dtype(np.float32)
    return dtype


def promote_small_integer(dtype: Any) -> Any:
    """The default integer type of the same sign, if `dtype` is narrower."""
    if dtypes.issubdtype(dtype, np.bool_):
        return dtypes.default_int_dtype()
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        default = dtypes.default_uint_dtype()
    elif dtypes.issubdtype(dtype, np.integer):
        default = dtypes.default_int_dtype()
    else:
        return dtype
    if dtypes.iinfo(dtype).bits < dtypes.iinfo(default).bits:
        return default
    return dtype


def neutral_element(dtype: Any, value: Any) -> np.ndarray:
    """`value` in `dtype`; infinities become the largest number that exists there."""
    if dtype == _bool:
        return np.array(value > 0, dtype)
    if np.isinf(value):
        limits: Any = None
        if not dtypes.issubdtype(dtype, np.inexact):
            limits = dtypes.iinfo(dtype)
        elif not dtypes.supports_inf(dtype):
            limits = dtypes.finfo(dtype)
        if limits is not None:
            return np.array(limits.min if value < 0 else limits.max, dtype)
    return np.array(value).astype(dtype)


def _reduction(
    a: Any,
    name: str,
    reducer: Reducer,
    *,
    has_identity: bool = True,
    prepare: Callable[[Array], Array] | None = None,
    bool_reducer: Reducer | None = None,
    upcast_small_floats: bool = False,
    promote_integers: bool = False,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    refuse_out(name, out)
    a = ensure_arraylike(name, a)
    where = check_where(name, where)
    if initial is None and not has_identity and where is not None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where "
            "mask one has to specify 'initial'"
        )
    if prepare is not None:
        a = prepare(a)
    shape = np.shape(a)
    axes, names = reduced_axes(len(shape), axis)
    if initial is None and not has_identity and 0 in [shape[i] for i in axes]:
        raise ValueError(
            f"zero-size array to reduction operation {name} which has no identity"
        )
    if dtype is None:
        result_dtype = a.dtype
        if promote_integers:
            result_dtype = promote_small_integer(result_dtype)
    else:
        result_dtype = dtypes.check_and_canonicalize_user_dtype(dtype, name)
    working_dtype = result_dtype
    if upcast_small_floats and dtypes.issubdtype(result_dtype, np.inexact):
        working_dtype = upcast_small_float(result_dtype)
    a = lax.convert_element_type(a, working_dtype)
    if bool_reducer is not None and working_dtype == _bool:
        reducer = bool_reducer
    if where is not None:
        a = _where(where, a, neutral_element(working_dtype, reducer.neutral))
    if names:
        if reducer.over_names is None:
            raise NotImplementedError(
                f"Named reductions are not implemented for jnp.{name}()"
            )
        result = getattr(lax, reducer.over_names)(a, (*axes, *names))
    else:
        result = reducer.along(a, axes=axes)
    if initial is not None:
        initial = lax.convert_element_type(initial, working_dtype)
        if np.shape(initial) != ():
            raise ValueError(
                "initial value must be a scalar. Got array of shape "
                f"{np.shape(initial)}"
            )
        result = reducer.between(initial, result)
    if keepdims:
        result = lax.expand_dims(result, axes)
    return lax.convert_element_type(result, result_dtype)


# Sums of these are computed in them and have them: nothing to convert.
_kept_dtypes = frozenset(
    map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128))
)


def plain_axes(a: Any, axis: Axis) -> tuple[int, ...] | None:
    """The axes to reduce, where a single primitive is all there is to do.

    None where something must be checked, converted, or looked up first.
    """
    aval = getattr(a, "aval", None)
    if aval is None or aval.weak_type or aval.dtype not in _kept_dtypes:
        return None
    rank = len(aval.shape)
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    return None


def _to_bool(a: Array) -> Array:
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        a = lax.real(a)
    return lax.convert_element_type(a, _bool)


def _to_number(a: Array) -> Array:
    if a.dtype != _bool:
        return a
    return promote_dtypes_numeric(a)[0]


def _require_integer(a: Array) -> Array:
    if not dtypes.isdtype(a.dtype, ("bool", "integral")):
        raise ValueError(f"integer argument required; got dtype={a.dtype}")
    return a


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
    return _reduction(
        a,
        "sum",
        _sum,
        prepare=_to_number,
        bool_reducer=_or,
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
    return _reduction(
        a,
        "prod",
        _prod,
        prepare=_to_number,
        bool_reducer=_and,
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
    return _reduction(
        a,
        "max",
        _max,
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
    return _reduction(
        a,
        "min",
        _min,
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
    return _reduction(
        a,
        "all",
        _and,
        prepare=_to_bool,
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
    return _reduction(
        a,
        "any",
        _or,
        prepare=_to_bool,
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
    def reduction(
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
        return _reduction(
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

    reduction.__name__ = f"_{name}"
    return inline_jit(reduction, static_argnames=("axis", "keepdims", "dtype"))


_reduce_bitwise_and = _ufunc_reduction(
    "reduce_bitwise_and", _and, _require_integer, all_bits=True
)
_reduce_bitwise_or = _ufunc_reduction(
    "reduce_bitwise_or", _or, _require_integer, all_bits=False
)
_reduce_bitwise_xor = _ufunc_reduction(
    "reduce_bitwise_xor", _xor, _require_integer, all_bits=False
)
_reduce_logical_and = _ufunc_reduction(
    "reduce_logical_and", _and, _to_bool, all_bits=False
)
_reduce_logical_or = _ufunc_reduction(
    "reduce_logical_or", _or, _to_bool, all_bits=False
)
_reduce_logical_xor = _ufunc_reduction(
    "reduce_logical_xor", _xor, _to_bool, all_bits=False
)
