"""Questions about shapes and dtypes that need no computation.

In JAX: `numpy/util.py` and `numpy/lax_numpy.py`.
"""

import math
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import canonicalize_axes
from minijax.numpy.promotion import check_arraylike, unwrap_jax_array
from minijax.numpy.shapes.creation import asarray
from minijax.support import element_types


def ndim(a: Any) -> int:
    """The number of axes of an array or scalar."""
    if hasattr(a, "ndim"):
        return a.ndim
    check_arraylike("ndim", a, emit_warning=True)
    return np.ndim(unwrap_jax_array(a))


def shape(a: Any) -> tuple[int, ...]:
    """The size along each axis of an array or scalar."""
    if hasattr(a, "shape"):
        return a.shape
    check_arraylike("shape", a, emit_warning=True)
    return np.shape(unwrap_jax_array(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the size along `axis` (an integer or several)."""
    check_arraylike("size", a, emit_warning=True)
    sizes = shape(a)
    return math.prod(sizes[i] for i in canonicalize_axes(axis, len(sizes)))


def isscalar(element: Any) -> bool:
    """Whether `element` is a number, or an array of rank zero."""
    if np.isscalar(element):
        return True
    element = unwrap_jax_array(element)
    return isinstance(element, (np.ndarray, Array)) and element.ndim == 0


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex, whatever the imaginary parts are."""
    if x is None or isinstance(x, str):
        return False
    dtype = x.dtype if hasattr(x, "dtype") else asarray(x).dtype
    return dtypes.issubdtype(dtype, np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype `arg1` is of kind `arg2`, such as `jnp.floating`."""
    return dtypes.issubdtype(arg1, arg2)


def result_type(*args: Any) -> Any:
    """The dtype to which arrays, scalars and dtypes promote together."""
    return element_types.result_type(*args)


# Arrays are printed by NumPy, so NumPy's options hold for them.
get_printoptions = np.get_printoptions
printoptions = np.printoptions


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set NumPy's options of printing."""
    np.set_printoptions(*args, **kwargs)
