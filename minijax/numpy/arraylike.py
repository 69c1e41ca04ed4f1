"""What counts as an array: checks of the arguments of `jax.numpy`'s functions.

Arrays, tracers, NumPy arrays, NumPy and Python scalars, and objects that define
`__jax_array__`. Lists and tuples do not count, on purpose.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, language
from minijax.core.array import Array
from minijax.core.shaping import convert_element_type_to
from minijax.support import element_types

_traced_or_array = (language.Tracer, Array)
_array_types = (language.Tracer, Array, np.ndarray)


def is_arraylike(x: Any) -> bool:
    """Whether `x` is an array, a scalar, or says how to become an array."""
    return (
        isinstance(x, _array_types)
        or np.isscalar(x)
        or getattr(x, "__jax_array__", None) is not None
    )


def check_arraylike(name: str, *args: Any, emit_warning: bool = False) -> None:
    """Raise TypeError unless every argument is an array or a scalar.

    The message names the function and the position of the first argument that is
    neither. `emit_warning` turns the error into a DeprecationWarning.
    """
    for position, arg in enumerate(args):
        if is_arraylike(arg):
            continue
        message = (
            f"{name} requires ndarray or scalar arguments, got {type(arg)} at "
            f"position {position}."
        )
        if isinstance(arg, (list, tuple)):
            message += (
                " Python sequences are not turned into arrays silently, because "
                "each element would become an operation of the traced program; "
                "write jnp.asarray(...) around it."
            )
        if emit_warning:
            warnings.warn(
                message + " This will become an error.",
                category=DeprecationWarning,
                stacklevel=3,
            )
            return
        raise TypeError(message)


def check_arraylike_or_none(name: str, *args: Any) -> None:
    """Like `check_arraylike`, but `None` is accepted too."""
    for position, arg in enumerate(args):
        if arg is not None and not is_arraylike(arg):
            raise TypeError(
                f"{name} requires ndarray, scalar, or None arguments, got "
                f"{type(arg)} at position {position}."
            )


def unwrap_jax_array(x: Any) -> Any:
    """The array of an object with `__jax_array__`; other objects as they are."""
    method = getattr(x, "__jax_array__", None)
    return x if method is None else method()


def as_array(x: Any) -> Any:
    """An array-like value as an Array or Tracer; Python scalars stay weakly typed."""
    if isinstance(x, _traced_or_array):
        return x
    x = unwrap_jax_array(x)
    if isinstance(x, _traced_or_array):
        return x
    return convert_element_type_to(x, dtypes.dtype(x), element_types.is_weakly_typed(x))


def ensure_arraylike(name: str, *args: Any) -> Any:
    """Check the arguments and return them as arrays.

    One argument comes back as an array, several come back as a tuple of arrays.
    Tracers and arrays are returned as they are.
    """
    if len(args) == 1:
        arg = args[0]
        if isinstance(arg, _traced_or_array):
            return arg
        check_arraylike(name, arg)
        return as_array(arg)
    check_arraylike(name, *args)
    return tuple(as_array(arg) for arg in args)


def ensure_arraylike_tuple(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """`ensure_arraylike` for a sequence of any length; always returns a tuple."""
    check_arraylike(name, *args)
    return tuple(as_array(arg) for arg in args)
