"""The steps that all reductions of `jax.numpy` share.

Check the arguments, choose the dtype in which to compute (small floats are summed in
float32, small integers in the default integer type), mask what `where` leaves out
with the neutral element, reduce, and put the reduced axes back for `keepdims`.

In JAX: `numpy/reduce/reductions.py`, `_reduction`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.compile.jit_api import jit
from minijax.core import dtypes, language
from minijax.core.array import Array
from minijax.core.state import state
from minijax.numpy.arguments import canonicalize_axis, concrete_or_error, index_of
from minijax.numpy.boundaries import inline_jit
from minijax.numpy.promotion import ensure_arraylike, promote_dtypes_numeric
from minijax.numpy.reduce.reduction_options import Axis, Options, static_options
from minijax.numpy.shapes.broadcasting import _where
from minijax.support import element_types

_bool = np.dtype(bool)


class Reducer(NamedTuple):
    """How one kind of reduction is done: the primitive along axes, the same between
    two arrays (for `initial`), the neutral element, and the name of the
    collective that reduces over named axes, where there is one.

    What `is_extremum` has no neutral element that a caller could be given. What has
    `of_bools`, how bools are reduced, is arithmetic: small floats are upcast."""

    along: Callable[..., Array]
    between: Callable[[Any, Any], Array]
    neutral: Any
    over_names: str | None = None
    is_extremum: bool = False
    of_bools: Any = None


AND = Reducer(lax.reduce_and, lax.bitwise_and, True)
OR = Reducer(lax.reduce_or, lax.bitwise_or, False)
XOR = Reducer(lax.reduce_xor, lax.bitwise_xor, False)
MAX = Reducer(lax.reduce_max, lax.max, -np.inf, "pmax", is_extremum=True)
MIN = Reducer(lax.reduce_min, lax.min, np.inf, "pmin", is_extremum=True)
SUM = Reducer(lax.reduce_sum, lax.add, 0, "psum", of_bools=OR)
PROD = Reducer(lax.reduce_prod, lax.mul, 1, of_bools=AND)


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
    if axis is None or type(axis) in (int, str):
        return axis

    def as_ints(axis: Any) -> Any:
        if not np.iterable(axis):
            return index_of(axis, "an axis")
        return tuple(a if isinstance(a, str) else index_of(a, "an axis") for a in axis)

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
    """float32 for the 16-bit floats, in which sums would lose small summands."""
    dtype = np.dtype(dtype)
    if dtype == np.float16 or dtype == dtypes.bfloat16:
        return np.dtype(np.float32)
    return dtype


def promote_small_integer(dtype: Any) -> Any:
    """The default integer type of the same sign, if `dtype` is narrower."""
    if dtypes.issubdtype(dtype, np.bool_):
        return element_types.default_int_dtype()
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        default = element_types.default_uint_dtype()
    elif dtypes.issubdtype(dtype, np.integer):
        default = element_types.default_int_dtype()
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
        elif not element_types.supports_inf(dtype):
            limits = dtypes.finfo(dtype)
        if limits is not None:
            return np.array(limits.min if value < 0 else limits.max, dtype)
    return np.array(value).astype(dtype)


def reduction(
    a: Any,
    name: str,
    reducer: Reducer,
    options: Options,
    prepare: Callable[[Array], Array] | None = None,
) -> Array:
    """Reduce `a` with `reducer` as `options` say, for the function `name`.

    `prepare` converts the array first. Raises as the functions themselves say.
    """
    refuse_out(name, options.out)
    a = ensure_arraylike(name, a)
    dtype, initial = options.dtype, options.initial
    where = check_where(name, options.where)
    needs_initial = reducer.is_extremum and initial is None
    if needs_initial and where is not None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where "
            "mask one has to specify 'initial'"
        )
    if prepare is not None:
        a = prepare(a)
    shape = np.shape(a)
    axes, names = reduced_axes(len(shape), options.axis)
    if needs_initial and 0 in [shape[i] for i in axes]:
        raise ValueError(
            f"zero-size array to reduction operation {name} which has no identity"
        )
    is_arithmetic = reducer.of_bools is not None
    if dtype is None:
        result_dtype = dtypes.canonicalize_dtype(a.dtype)
        if is_arithmetic and options.promote_integers:
            result_dtype = promote_small_integer(result_dtype)
    else:
        result_dtype = element_types.check_and_canonicalize_user_dtype(dtype, name)
    working_dtype = result_dtype
    if is_arithmetic and dtype is None and dtypes.issubdtype(a.dtype, np.inexact):
        working_dtype = upcast_small_float(result_dtype)
    a = lax.convert_element_type(a, working_dtype)
    if is_arithmetic and working_dtype == _bool:
        reducer = reducer.of_bools
    if where is not None:
        a = _where(where, a, neutral_element(working_dtype, reducer.neutral))
    if names:
        if reducer.over_names is None:
            raise NotImplementedError(
                f"jnp.{name}() has no named axes: write `axis=` numbers, or `lax.psum`."
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
    if options.keepdims:
        result = lax.expand_dims(result, axes)
    return lax.convert_element_type(result, result_dtype)


# Sums of these are computed in them and have them: nothing to convert.
_kept_dtypes = frozenset(
    map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128))
)


def _plain_axes(a: Any, axis: Axis) -> tuple[int, ...] | None:
    """The axes to reduce, where nothing must be checked, converted or looked up."""
    aval = getattr(a, "aval", None)
    if aval is None or aval.weak_type or aval.dtype not in _kept_dtypes:
        return None
    if dtypes.canonicalize_dtype(aval.dtype) != aval.dtype:
        return None
    shape = aval.shape
    if 0 in shape:
        return None
    if axis is None:
        return tuple(range(len(shape)))
    if type(axis) is int and -len(shape) <= axis < len(shape):
        return (axis % len(shape),)
    return None


def reduces(
    plain: Callable[..., Array] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of an array and an axis, compiled or inlined with its axis static.

    Most calls have an array, an axis and nothing else. Eager, such a call takes the
    short way of a compiled function that has the axis in it. Under a trace,
    `plain(a, axes)` is what the function does to ordinary floats.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        call = inline_jit(function, static_argnames=static_options(function))

        @functools.lru_cache(maxsize=64)
        def along(axis: int | None) -> Callable[..., Any]:
            return jit(functools.partial(function, axis=axis), inline=True).__call__

        @functools.wraps(function)
        def reduce(a: Any, axis: Axis = None, *args: Any, **keywords: Any) -> Any:
            if not args and not keywords:
                if state.trace is not language.eval_trace:
                    axes = None if plain is None else _plain_axes(a, axis)
                    if axes is not None:
                        return plain(a, axes)  # type: ignore[misc]
                elif type(a) is Array and (axis is None or type(axis) is int):
                    return along(axis)(a)
            return call(a, static_axes(axis), *args, **keywords)

        return reduce

    return decorate


def to_bool(a: Array) -> Array:
    """Whether each element is nonzero, or its real part for complex numbers."""
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        a = lax.real(a)
    return lax.convert_element_type(a, _bool)


def to_number(a: Array) -> Array:
    """Bools as integers; numbers as they are."""
    if a.dtype != _bool:
        return a
    return promote_dtypes_numeric(a)[0]


def require_integer(a: Array) -> Array:
    """Raise ValueError for anything but integers and bools."""
    if not element_types.isdtype(a.dtype, ("bool", "integral")):
        raise ValueError(f"integer argument required; got dtype={a.dtype}")
    return a
