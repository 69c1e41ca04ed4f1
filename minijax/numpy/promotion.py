"""How the arguments of a `jax.numpy` function are prepared for the primitive.

Three steps, in JAX's order: every argument must be an array or a scalar
(`arraylike.py`), all arguments get one dtype (`promote_dtypes` and its
inexact, numeric and complex kinds, on the lattice of `minijax.dtypes`), and
arguments of different rank get leading axes of size one (`promote_shapes`).

Operators run this code millions of times while programs are traced, so each step
first checks whether there is anything to do: two tracers of the same type (types are
interned: one object) are returned unchanged.

In JAX: `numpy/util.py`.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes, language, operators, shaping
from minijax.core.state import state

# Also for the files of this room, which take all about their arguments from here.
from minijax.numpy.arraylike import (  # noqa: F401
    as_array,
    check_arraylike,
    check_arraylike_or_none,
    ensure_arraylike,
    ensure_arraylike_tuple,
    unwrap_jax_array,
)
from minijax.support import element_types
from minijax.values.symbolic_sizes import is_symbolic

_python_scalars = frozenset({bool, int, float, complex})


def check_no_float0s(name: str, *args: Any) -> None:
    """Raise TypeError for float0, the tangent dtype of integers."""
    for arg in args:
        if dtypes.dtype(arg) == dtypes.float0:
            raise TypeError(
                f"Called {name} with a float0 array. float0 is the type of "
                "tangents of integers: it holds nothing and supports no "
                "arithmetic. To get ordinary zeros, write "
                "np.zeros_like(x, dtype=float). If no float0 was expected, a "
                "gradient was probably taken with respect to an integer argument."
            )


def check_for_prngkeys(name: str, *args: Any) -> None:
    """Raise TypeError when a random key is mixed with ordinary numbers."""
    arg_dtypes = [dtypes.dtype(arg) for arg in args]
    if len(set(arg_dtypes)) < 2:
        return
    if any(dtypes.issubdtype(dtype, element_types.prng_key) for dtype in arg_dtypes):
        found = ", ".join(str(dtype) for dtype in arg_dtypes)
        raise TypeError(
            f"{name} does not accept dtypes {found}. Random keys take part in no "
            "arithmetic; draw numbers from them with a function of jax.random."
        )


# --------------------------------------------------------------------------
# One dtype for all


def dtype_of(x: Any) -> Any:
    """The dtype of an array, a tracer, a NumPy or a Python scalar."""
    try:
        return x.dtype
    except AttributeError:
        return dtypes.dtype(x)


def is_complex(x: Any) -> bool:
    """Whether the dtype of an array or scalar is complex."""
    return dtypes.issubdtype(dtype_of(x), np.complexfloating)


def user_dtype(dtype: Any, default: Any, name: str) -> Any:
    """The dtype that a user gave to the function `name`, checked, or the default."""
    if dtype is None:
        return default
    return element_types.check_and_canonicalize_user_dtype(dtype, name)


def constant_like(x: Any, value: Any) -> Any:
    """`value` as a rank-0 constant with the dtype of `x`: a literal when printed.

    Beside a weakly typed scalar it is a Python number, so that results stay weak.
    """
    if is_symbolic(value):
        return lax.convert_element_type(value.__jax_array__(), dtype_of(x))
    aval = getattr(x, "aval", None)
    if aval is not None:
        if not aval.weak_type or aval.shape:
            return language.numpy_scalar(value, aval.dtype)
        scalar = operators.weak_scalar_type(aval.dtype)
    else:
        scalar = type(x) if type(x) in _python_scalars else None
    return np.array(value, dtype_of(x)) if scalar is None else scalar(value)


def strong_constant_like(x: Any, value: Any) -> Any:
    """`value` as a rank-0 constant with the dtype of `x`, never weakly typed."""
    aval = getattr(x, "aval", None)
    return (
        np.array(value, dtype_of(x))
        if aval is None
        else language.numpy_scalar(value, aval.dtype)
    )


def convert_to(x: Any, dtype: Any, weak_type: bool) -> Any:
    """`x` with the given dtype and weakness; constants are converted in Python."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        if aval.dtype == dtype and aval.weak_type == weak_type:
            return x
        return shaping.convert_element_type_to(x, dtype, weak_type)
    if type(x) in _python_scalars:
        # Raises OverflowError for what the default integer type cannot hold. Narrower
        # types wrap around, as they do on the device.
        value = element_types.coerce_to_array(x)
        if not weak_type:
            return value.astype(dtype)
        scalar = operators.weak_scalar_type(dtype)
        if scalar is not None:
            return scalar(x)
    elif not weak_type and isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0:
        return np.asarray(x).astype(dtype)
    return shaping.convert_element_type_to(x, dtype, weak_type)


def promote_dtypes(*args: Any) -> list[Any]:
    """Convert all arguments to the one dtype that the promotion lattice gives."""
    if len(args) < 2:
        return [as_array(arg) for arg in args]
    if len(args) == 2:
        left = getattr(args[0], "aval", None)
        right = getattr(args[1], "aval", None)
        if (
            left is not None
            and right is not None
            and left.dtype == right.dtype
            and left.weak_type == right.weak_type
            and not (left.weak_type and left.dtype == np.bool_)
            and operators.keeps_dtype(left)
        ):
            return list(args)
    dtype, weak_type = dtypes.lattice_result_type(*args)
    return [convert_to(arg, dtype, weak_type) for arg in args]


def _promote_dtypes_through(adjust: Callable[[Any], Any], args: Sequence[Any]) -> list:
    dtype, weak_type = dtypes.lattice_result_type(*args)
    dtype = adjust(dtype)
    return [convert_to(arg, dtype, weak_type) for arg in args]


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """Like `promote_dtypes`; integers and bools become floating point."""
    return _promote_dtypes_through(element_types.to_inexact_dtype, args)


def promote_dtypes_numeric(*args: Any) -> list[Any]:
    """Like `promote_dtypes`; bools become integers."""
    return _promote_dtypes_through(element_types.to_numeric_dtype, args)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """Like `promote_dtypes`; everything becomes complex."""
    return _promote_dtypes_through(element_types.to_complex_dtype, args)


# --------------------------------------------------------------------------
# One rank for all


def _shape(x: Any) -> tuple[int, ...]:
    aval = getattr(x, "aval", None)
    return np.shape(x) if aval is None else aval.shape


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """Give all arguments one rank by adding leading axes of size one.

    Scalars stay scalars: the primitives take them beside arrays of any rank. With
    the flag `numpy_rank_promotion` set to "warn" or "raise", ranks that differ are
    reported, as in JAX.
    """
    if len(args) < 2:
        return [as_array(arg) for arg in args]
    shapes = [_shape(arg) for arg in args]
    ranks = {len(shape) for shape in shapes}
    ranks.discard(0)
    if len(ranks) < 2:
        return list(args)
    if state.numpy_rank_promotion != "allow":
        _report_rank_promotion(name, shapes)
    rank = len(lax.broadcast_shapes(*shapes))
    return [
        lax.broadcast_to_rank(arg, rank) if len(shape) < rank else arg
        for arg, shape in zip(args, shapes, strict=True)
    ]


def _report_rank_promotion(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    text = " ".join(map(str, shapes))
    if state.numpy_rank_promotion == "warn":
        warnings.warn(
            f"Following NumPy automatic rank promotion for {name} on shapes {text}. "
            "Set jax_numpy_rank_promotion to 'allow' to silence this warning.",
            stacklevel=4,
        )
        return
    raise ValueError(
        f"Operands could not be broadcast together for {name} on shapes {text}, "
        "because the option jax_numpy_rank_promotion is 'raise'. Reshape the "
        "argument of lower rank, for example with x[None, :]."
    )


# --------------------------------------------------------------------------
# All three steps


def _promote(
    name: str, adjust: Callable[..., list[Any]], args: tuple[Any, ...]
) -> list[Any]:
    check_arraylike(name, *args)
    args = tuple(unwrap_jax_array(arg) for arg in args)
    check_no_float0s(name, *args)
    check_for_prngkeys(name, *args)
    return promote_shapes(name, *adjust(*args))


def _operands_without_promotion(
    name: str, args: tuple[Any, ...], kinds: Any
) -> list[Any] | None:
    """Arguments that need no promotion (arrays of one type, or one and a number)."""
    if len(args) == 2:
        left, right = args
        aval = getattr(left, "aval", None)
        if aval is None:
            aval = getattr(right, "aval", None)
            if aval is not None and aval.dtype in kinds:
                if type(left) is float or type(left) is int:
                    number = operators.number_beside(aval, left)
                    return None if number is None else [number, right]
        elif aval.dtype in kinds:
            other = getattr(right, "aval", None)
            if other is aval and operators.keeps_dtype(aval):
                return [left, right]
            if (
                type(other) is language.ShapedArray
                and other.dtype == aval.dtype
                and other.weak_type == aval.weak_type
                and operators.keeps_dtype(aval)
            ):
                return promote_shapes(name, left, right)
            if type(right) is float or type(right) is int:
                number = operators.number_beside(aval, right)
                return None if number is None else [left, number]
    elif len(args) == 1:
        aval = getattr(args[0], "aval", None)
        if aval is not None and aval.dtype in kinds:
            return [args[0]]
    return None


def promote_args(name: str, *args: Any) -> list[Any]:
    """Check the arguments of function `name` and give them one dtype and rank."""
    ready = _operands_without_promotion(name, args, operators.NUMBER_TYPES)
    return _promote(name, promote_dtypes, args) if ready is None else ready


def promote_args_inexact(name: str, *args: Any) -> list[Any]:
    """Like `promote_args`; integers and bools become floating point."""
    ready = _operands_without_promotion(name, args, operators.INEXACT_TYPES)
    return _promote(name, promote_dtypes_inexact, args) if ready is None else ready


def promote_args_real(name: str, *args: Any) -> list[Any]:
    """Like `promote_args_inexact`; TypeError for complex numbers."""
    promoted = promote_args_inexact(name, *args)
    if any(map(np.iscomplexobj, promoted)):
        raise TypeError(f"{name} takes real numbers, got complex ones: use x.real.")
    return promoted


def promote_args_numeric(name: str, *args: Any) -> list[Any]:
    """Like `promote_args`; bools become integers."""
    ready = _operands_without_promotion(name, args, operators.NUMBER_TYPES)
    return _promote(name, promote_dtypes_numeric, args) if ready is None else ready


def promote_args_complex(name: str, *args: Any) -> list[Any]:
    """Like `promote_args`; everything becomes complex."""
    return _promote(name, promote_dtypes_complex, args)
