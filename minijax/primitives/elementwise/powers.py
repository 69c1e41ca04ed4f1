"""x^y with an array as the exponent: pow.

`arithmetic.py` has the powers whose exponent is a Python int.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import dtypes, hlo
from minijax.core.arithmetic import broadcast_like, eq, inexact, log, mul, select, sub
from minijax.core.language import ShapedArray, get_aval
from minijax.core.rules import constant_like as _scalar
from minijax.core.rules import def_jvp_with_output, ints, nary
from minijax.core.shaping import convert_element_type, filled_like


def _pow_dtype(x: ShapedArray, y: ShapedArray) -> Any:
    fractional = dtypes.issubdtype(x.dtype, np.inexact)
    if x.dtype == y.dtype and fractional:
        return x.dtype
    if fractional and dtypes.issubdtype(y.dtype, np.integer):
        return x.dtype
    raise TypeError(
        "the first argument to pow must have an inexact dtype (float or complex), and "
        "the second an inexact or integer dtype; two inexact dtypes must match. Got "
        f"{x.dtype} and {y.dtype}."
    )


def _pow_lowering(ctx, x, y) -> Any:
    x_aval, y_aval = ctx.avals_in
    x, y = ctx.broadcast((x, y))
    if y_aval.dtype != x_aval.dtype:
        y = hlo.stablehlo.convert(ctx.result_type(), y)
    return hlo.stablehlo.power(x, y)


pow_p = nary(
    "pow",
    [inexact, inexact | ints],
    lambda x, y: np.power(x, y.astype(x.dtype)),
    _pow_lowering,
    result_dtype=_pow_dtype,
    same_dtypes=False,
)


def _pow_jvp_base(t, out, x, y) -> Any:  # y x^(y-1)
    whole = dtypes.issubdtype(get_aval(y).dtype, np.integer)
    shape, dtype = get_aval(out).shape, get_aval(out).dtype
    x, y = (convert_element_type(z, dtype) for z in (x, y))
    if not whole:
        return mul(t, mul(y, pow(x, sub(y, filled_like(y, 1)))))
    x, y = broadcast_like(x, shape), broadcast_like(y, shape)
    zero = eq(y, _scalar(y, 0))
    none = filled_like(y, 0)
    slope = mul(replace_zero(y), pow(x, sub(y, filled_like(y, 1))))
    return mul(t, select(zero, none, slope))


def _pow_jvp_exponent(t, out, x, y) -> Any:  # x^y log x
    slope = mul(t, mul(log(replace_zero(x)), out))
    return convert_element_type(slope, get_aval(y).dtype)


def_jvp_with_output(pow_p, _pow_jvp_base, _pow_jvp_exponent)


def replace_zero(x) -> Any:
    """`x` with 1 in place of 0, where a factor of 0 makes the value irrelevant."""
    return select(eq(x, _scalar(x, 0)), filled_like(x, 1), x)


def pow(x, y) -> Any:
    """Elementwise x^y for inexact x; y inexact of the same dtype, or integer."""
    return pow_p.bind(x, y)
