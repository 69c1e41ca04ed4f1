"""The normal distribution's functions, entropies, and Box and Cox's transforms.

In JAX: `special.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy.promotion import constant_like, promote_args_inexact
from minijax.scipy.gamma_family import refuse_complex
from minijax.typing import ArrayLike

_LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


def _single_or_double(x: Any) -> Any:
    x = jnp.asarray(x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported: pass float32 or float64.")
    return x


def ndtr(x: ArrayLike) -> Array:
    """The probability that a normal number is below `x`.

    Raises:
      TypeError: `x` is neither float32 nor float64.
    """
    return _ndtr(_single_or_double(x))


def _ndtr(x: Any) -> Any:
    root = x.dtype.type(np.sqrt(0.5))
    scaled = x * root
    size = lax.abs(scaled)
    tail = lax.erfc(size)
    far = lax.select(scaled > 0, 2 - tail, tail)
    return 0.5 * lax.select(size < root, 1 + lax.erf(scaled), far)


@custom_jvp
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: -inf at 0, inf at 1, NaN outside.

    In three pieces as in Cephes (`ndtri.c`), whose coefficients these are.

    Raises:
      TypeError: `p` is neither float32 nor float64.
    """
    p = _single_or_double(p)
    upper = p > 1 - np.exp(-2.0)
    tail = jnp.where(upper, 1 - p, p)
    tail = jnp.where(tail == 0, 0.5, tail)
    # Near the middle, in w = p - 1/2.
    w = tail - 0.5
    ww = lax.square(w)
    middle = w + w * ww * (_polynomial(_MIDDLE[0], ww) / _polynomial(_MIDDLE[1], ww))
    middle = middle * -np.sqrt(2 * np.pi)
    # In the tails, in 1/z, with exp(-z**2 / 2) = p.
    z = lax.sqrt(-2 * lax.log(tail))
    near, far = (_polynomial(a, 1 / z) / _polynomial(b, 1 / z) / z for a, b in _TAILS)
    out = z - lax.log(z) / z - jnp.where(z >= 8, far, near)
    out = jnp.where(tail > np.exp(-2.0), middle, out)
    out = jnp.where(upper, out, -out)
    ends = jnp.where(p == 1, constant_like(p, np.inf), out)
    return jnp.where(p == 0, constant_like(p, -np.inf), ends)


ndtri.defjvps(
    lambda t, y, p: t * lax.exp(lax.square(y) / 2 + constant_like(y, _LOG_ROOT_2PI))
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    return jnp.polyval(np.array(coefficients, x.dtype), x)


# fmt: off
_MIDDLE = (
    (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968,
     -1.2391658386738125),
    (1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937,
     200.26021238006066, -82.03722561683334, 15.90562251262117, -1.1833162112133),
)
_TAILS = (
    ((4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008,
      14.684956192885803, 2.1866330685079025, -0.1402560791713545,
      -0.03504246268278482, -0.0008574567851546854),
     (1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075,
      2.504649462083094, -0.14218292285478779, -0.03808064076915783,
      -0.0009332594808954574)),
    ((3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755,
      0.20148538954917908, 0.012371663481782003, 0.00030158155350823543,
      2.6580697468673755e-06, 6.239745391849833e-09),
     (1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132,
      0.21623699359449663, 0.013420400608854318, 0.00032801446468212774,
      2.8924786474538068e-06, 6.790194080099813e-09)),
)
# fmt: on


def _log_ndtr(x: Any, series_order: int) -> Any:
    # Above `top`, log(1 - tail) is -tail; below `bottom`, ndtr has no digits left.
    bottom, top = (-20, 8) if x.dtype == np.float64 else (-10, 5)
    positive = x > top
    probability = _ndtr(jnp.where(positive, -x, jnp.maximum(x, bottom)))
    low = jnp.minimum(x, bottom)
    square = lax.square(low)
    series, term = lax.full_like(x, 1), lax.full_like(x, 1)
    for n in range(1, series_order + 1):
        term = term * -(2 * n - 1) / square
        series = series + term
    tail = -square / 2 - lax.log(-low) - constant_like(x, _LOG_ROOT_2PI)
    out = jnp.where(x > bottom, lax.log(probability), tail + lax.log(series))
    return jnp.where(positive, -probability, out)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """`log(ndtr(x))`, far below 0 by its asymptotic series.

    Args:
      x: float32 or float64.
      series_order: terms of the series, 0 to 30.

    Raises:
      TypeError: another dtype, or `series_order` is not an int.
      ValueError: `series_order` is out of range.
    """
    if not isinstance(series_order, int):
        raise TypeError("log_ndtr: series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        raise ValueError("log_ndtr: series_order must be from 0 to 30.")
    function = custom_jvp(lambda x: _log_ndtr(x, series_order))
    # The density over the probability.
    function.defjvps(
        lambda t, y, x: (
            t * lax.exp(-lax.square(x) / 2 - constant_like(x, _LOG_ROOT_2PI) - y)
        )
    )
    return function(_single_or_double(x))


# -- entropies ----------------------------------------------------------------------


@custom_jvp
def _xlogx(x: Any) -> Any:
    return jnp.where(x == 0, constant_like(x, 0), x * lax.log(jnp.where(x == 0, 1, x)))


_xlogx.defjvps(lambda t, y, x: t * (lax.log(x) + 1))


def entr(x: ArrayLike) -> Array:
    """`-x * log(x)`: 0 at 0, -inf below."""
    [x] = promote_args_inexact("entr", x)
    refuse_complex("entr", x)
    return lax.select(x < 0, lax.full_like(x, -np.inf), -_xlogx(x))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """`p * log(p / q)`: 0 where `p` is 0 and `q` is not negative, else inf."""
    p, q = promote_args_inexact("rel_entr", p, q)
    refuse_complex("rel_entr", p)
    positive = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(positive, p, 1), jnp.where(positive, q, 1)
    inner = _xlogx(safe_p) - safe_p * lax.log(safe_q)
    return jnp.where(positive, inner, jnp.where((p == 0) & (q >= 0), 0.0, np.inf))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """`p * log(p / q) - p + q`, with `rel_entr`'s values at the borders."""
    p, q = promote_args_inexact("kl_div", p, q)
    refuse_complex("kl_div", p)
    return rel_entr(p, q) - p + q


def _box_cox(logarithm: Any, power: Any) -> Any:
    zero = power == 0
    safe = jnp.where(zero, constant_like(power, 1), power)
    return jnp.where(zero, logarithm, lax.expm1(safe * logarithm) / safe)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`(x**lmbda - 1) / lmbda`, and `log(x)` where `lmbda` is 0."""
    x, lmbda = promote_args_inexact("boxcox", x, lmbda)
    return _box_cox(lax.log(x), lmbda)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox(1 + x, lmbda)`, accurate for small `x`."""
    x, lmbda = promote_args_inexact("boxcox1p", x, lmbda)
    return _box_cox(lax.log1p(x), lmbda)
