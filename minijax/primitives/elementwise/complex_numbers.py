"""Complex numbers: their parts, putting them together, the conjugate.

Cotangents pair with tangents without conjugation: the cotangent of a holomorphic
function's argument is `ct * f'(z)`. Hence the signs in the transposes of `imag` and
`complex`, as in JAX.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules
from minijax.core.language import get_aval
from minijax.core.shaping import compare
from minijax.primitives.shape import broadcasting


def _zero(like: Any) -> Any:
    return rules.scalar_like(get_aval(like).strip_weak_type(), 0)


def is_complex(x: Any) -> bool:
    return dtypes.issubdtype(get_aval(x).dtype, np.complexfloating)


def _real_dtype(dtype) -> Any:
    return np.empty(0, dtype).real.dtype


def _complex_dtype(dtype) -> Any:
    return np.result_type(dtype, np.complex64)


real_p = rules.unary("real", rules.complexes, np.real, "real", _real_dtype)
rules.def_linear(real_p, lambda ct, x: [complex(ct, _zero(ct))])

imag_p = rules.unary("imag", rules.complexes, np.imag, "imag", _real_dtype)
rules.def_linear(imag_p, lambda ct, x: [complex(_zero(ct), elementwise.neg(ct))])

complex_p = rules.nary(
    "complex",
    [{np.float32, np.float64}] * 2,
    lambda x, y: x + 1j * y,
    "complex",
    result_dtype=lambda x, y: _complex_dtype(x.dtype),
)
# Cotangents pair with tangents without conjugation, hence the sign (as in JAX).
rules.def_linear(
    complex_p,
    lambda ct, x, y: [
        elementwise.unbroadcast(x.aval, real(ct)) if rules.is_linear(x) else None,
        elementwise.unbroadcast(y.aval, imag(elementwise.neg(ct)))
        if rules.is_linear(y)
        else None,
    ],
)


def _conj(x: Any) -> Any:
    if is_complex(x):
        return complex(real(x), elementwise.neg(imag(x)))
    return complex(x, broadcasting.full_like(x, 0))


conj_p = rules.unary(
    "conj",
    rules.complexes | {np.float32, np.float64},
    lambda x, input_dtype: np.conj(x).astype(_complex_dtype(x.dtype)),
    lambda ctx, x, input_dtype: ctx.lower_fun(_conj, x),
    _complex_dtype,
)
rules.def_linear(
    conj_p,
    lambda ct, x, input_dtype: [
        conj(ct) if dtypes.issubdtype(input_dtype, np.complexfloating) else real(ct)
    ],
)


def real(x: Any) -> Any:
    """The real part of complex numbers."""
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """The imaginary part of complex numbers."""
    return imag_p.bind(x)


def complex(x: Any, y: Any) -> Any:
    """The complex numbers x + iy; x and y float32 or float64."""
    return complex_p.bind(x, y)


def conj(x: Any) -> Any:
    """The complex conjugate; real x become complex."""
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


# ----------------------------------------------------------------------------------
# Extrema
# ----------------------------------------------------------------------------------


def complex_extremum(direction: str, dtype: Any, x: Any, y: Any) -> Any:
    """The one whose real part lies further in a direction; of equals, by imag."""
    part = _real_dtype(dtype)
    stablehlo = hlo.stablehlo
    real_x, real_y = stablehlo.real(x), stablehlo.real(y)
    first = stablehlo.select(
        compare(real_x, real_y, "EQ", part),
        compare(stablehlo.imag(x), stablehlo.imag(y), direction, part),
        compare(real_x, real_y, direction, part),
    )
    return stablehlo.select(first, x, y)
