"""Values kept between bounds: `clip`.

In JAX: `numpy/lax_numpy.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.arraylike import check_arraylike
from minijax.numpy.math import ufuncs
from minijax.numpy.promotion import is_complex
from minijax.numpy.shapes import creation


@jit
def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """`arr` with what is below `min` or above `max` replaced by these bounds.

    Where `min` exceeds `max` the result is `max`. Raises ValueError for complex values.
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr)
    for value in (arr, min, max):
        if value is not None and is_complex(value):
            raise ValueError(
                "Clip received a complex value either through the input or the min/max "
                "keywords. Complex values have no ordering and cannot be clipped. "
                "Take the real or imaginary components first, by jax.numpy.real/imag."
            )
    if min is not None:
        arr = ufuncs.maximum(min, arr)
    if max is not None:
        arr = ufuncs.minimum(max, arr)
    return creation.asarray(arr)
