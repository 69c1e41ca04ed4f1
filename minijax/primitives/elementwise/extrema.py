"""Maximum and minimum of two operands, elementwise.

In JAX: `lax/lax.py`, `max_p` and `min_p`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core import dtypes, hlo
from minijax.core.arithmetic import div, eq, mul, select
from minijax.core.language import Primitive
from minijax.core.rules import anything, def_jvp_with_output, nary
from minijax.core.shaping import filled_like
from minijax.primitives.elementwise.complex_numbers import complex_extremum


def _balanced_equal(x: Any, out: Any, y: Any) -> Any:
    """1 where `x` alone is the extremum, 1/2 where both operands are, else 0."""
    alone = select(eq(x, out), filled_like(out, 1), filled_like(out, 0))
    share = select(eq(y, out), filled_like(out, 2), filled_like(out, 1))
    return div(alone, share)


_DIRECTIONS = {"maximum": "GT", "minimum": "LT"}


def combine_values(operation: str, dtype: Any, x: Any, y: Any) -> Any:
    """One operation of StableHLO on elements of `dtype`, which may be complex."""
    if operation in _DIRECTIONS and dtypes.issubdtype(dtype, np.complexfloating):
        return complex_extremum(_DIRECTIONS[operation], dtype, x, y)
    return getattr(hlo.stablehlo, operation)(x, y)


def _extremum(name: str, meaning: Callable, operation: str) -> Primitive:
    def lower(ctx: Any, x: Any, y: Any) -> Any:
        x, y = ctx.broadcast((x, y))
        return combine_values(operation, ctx.avals_out[0].dtype, x, y)

    primitive = nary(name, [anything, anything], meaning, lower)
    def_jvp_with_output(
        primitive,
        lambda t, out, x, y: mul(t, _balanced_equal(x, out, y)),
        lambda t, out, x, y: mul(t, _balanced_equal(y, out, x)),
    )
    return primitive


max_p = _extremum("max", np.maximum, "maximum")
min_p = _extremum("min", np.minimum, "minimum")


def max(x: Any, y: Any) -> Any:
    """Elementwise maximum; NaN if either operand is. Complex numbers by real part."""
    return max_p.bind(x, y)


def min(x: Any, y: Any) -> Any:
    """Elementwise minimum; NaN if either operand is."""
    return min_p.bind(x, y)
