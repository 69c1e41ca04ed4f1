"""Whether two whole arrays are equal. In JAX: `numpy/lax_numpy.py`."""

from __future__ import annotations

from typing import Any

from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.arraylike import check_arraylike
from minijax.numpy.math import float_functions, ufuncs
from minijax.numpy.reduce import reductions
from minijax.numpy.shapes import creation


@jit(static_argnames=("equal_nan",))
def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether `isclose` holds for all elements: a boolean array without axes."""
    check_arraylike("allclose", a, b)
    return reductions.all(float_functions.isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether both arrays have the same shape and the same elements.

    NaN equals NaN with `equal_nan`.
    """
    a1, a2 = creation.asarray(a1), creation.asarray(a2)
    if a1.shape != a2.shape:
        return creation.array(False, dtype=bool)
    equal = creation.asarray(a1 == a2)
    if equal_nan:
        both_nan = ufuncs.logical_and(
            float_functions.isnan(a1), float_functions.isnan(a2)
        )
        equal = ufuncs.logical_or(equal, both_nan)
    return reductions.all(equal)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether both arrays are equal once they are broadcast together."""
    a1, a2 = creation.asarray(a1), creation.asarray(a2)
    try:
        equal = ufuncs.equal(a1, a2)
    except ValueError:
        # The shapes do not broadcast.
        return creation.array(False)
    return reductions.all(equal)
