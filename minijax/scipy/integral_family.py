"""Integrals without elementary form: exponential, sine, error, Dawson's, Spence's.

In JAX: `special.py`. Here each is a power series near 0 and a continued fraction, an
asymptotic series or the Faddeeva function elsewhere.
"""

from __future__ import annotations

import functools
import math
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.custom_derivatives import custom_jvp
from minijax.numpy.promotion import promote_args_complex, promote_args_inexact
from minijax.scipy.gamma_family import refuse_complex
from minijax.typing import ArrayLike

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _at_least_single(x: Any) -> Any:
    """`x`, or its float32 where it has half the bits."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


# -- exponential integrals ----------------------------------------------------------


def _power_series(x: Any, count: int) -> Any:
    """The sum of `x**k / (k k!)` over k from 1 to `count`."""

    def add(i: Any, state: Any) -> Any:
        k = (i + 1).astype(x.real.dtype)
        term = state[0] * x / k
        return term, state[1] + term / k

    return lax.fori_loop(0, count, add, (lax.full_like(x, 1), lax.full_like(x, 0)))[1]


def _fraction(n: Any, z: Any) -> Any:
    """E_n(z) by its continued fraction: not close to 0, and no negative real part."""

    def back(i: Any, tail: Any) -> Any:
        k = (80 - i).astype(n.dtype)
        return z + (n + 2 * k - 2) - k * (n + k - 1) / tail

    return lax.exp(-z) / lax.fori_loop(0, 80, back, z + (n + 160))


def _series(n: Any, x: Any) -> Any:
    """E_n(x) of a natural n by its power series, for x in (0, 1]."""
    first = lax.digamma(n) - lax.log(x)
    first = (-x) ** (n - 1) * lax.exp(-lax.lgamma(n)) * first

    def add(k: Any, state: Any) -> Any:
        term, total = state
        gap = k.astype(x.dtype) + 1 - n
        total = total - jnp.where(gap == 0, 0, term / jnp.where(gap == 0, 1, gap))
        return -term * x / (k + 1).astype(x.dtype), total

    return lax.fori_loop(0, 20, add, (lax.full_like(x, 1), first))[1]


def _expn(n: Any, x: Any) -> Any:
    far = _fraction(n, jnp.maximum(x, 1))
    return jnp.where(x > 1, far, _series(n, jnp.minimum(x, 1)))


@partial(custom_jvp, nondiff_argnums=(0,))
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral E_n, of `exp(-x t) / t**n` over t from 1 on.

    NaN for negative `n` or `x`. At 0 it is `1 / (n - 1)`, as in SciPy (jax 0.10.2 has
    `1 / n` there), or inf for n below 2.
    """
    n, x = jnp.broadcast_arrays(*promote_args_inexact("expn", n, x))
    refuse_complex("expn", x)
    inside = (x > 0) & (n > 0)
    out = _expn(jnp.where(inside, n, 1), jnp.where(inside, x, 1))
    out = jnp.where(n == 0, lax.exp(-x) / lax.abs(x), out)
    at_zero = jnp.where(n < 2, np.inf, 1 / jnp.maximum(n - 1, 1))
    out = jnp.where(x == 0, at_zero, out)
    return jnp.where((x >= 0) & (n >= 0), out, np.nan)


@expn.defjvp
def _expn_jvp(n: Any, primals: Any, tangents: Any) -> tuple[Array, Array]:
    return expn(n, *primals), -tangents[0] * expn(jnp.subtract(n, 1), *primals)


@custom_jvp
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei, the integral of `exp(t) / t` from -inf to `x`.

    NaN at 0, as in JAX.
    """
    [x] = promote_args_inexact("expi", x)
    refuse_complex("expi", x)
    inside = jnp.clip(jnp.where(x == 0, 1, x), -1, 40)
    near = np.euler_gamma + lax.log(lax.abs(inside)) + _power_series(inside, 140)
    outside = jnp.maximum(x, 40)

    def back(i: Any, total: Any) -> Any:  # of the asymptotic series, k! / x**k
        return 1 + (39 - i).astype(x.dtype) / outside * total

    far = lax.exp(outside) / outside * lax.fori_loop(0, 39, back, lax.full_like(x, 1))
    below = -_fraction(lax.full_like(x, 1), jnp.maximum(-x, 1))
    out = jnp.where(x < -1, below, jnp.where(x <= 40, near, far))
    return jnp.where(x == 0, np.nan, out)


expi.defjvps(lambda t, y, x: t * lax.exp(x) / x)


def exp1(x: ArrayLike) -> Array:
    """The exponential integral `-expi(-x)`; NaN for negative `x`."""
    [x] = promote_args_inexact("exp1", x)
    return jnp.where(x > 0, -expi(-x), jnp.where(x == 0, np.inf, np.nan))


@custom_jvp
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of `sin(t) / t` from 0 to `x` and, less a log, of `cos(t) / t`.

    They are parts of E_1 on the imaginary axis. The second is that of |x|, and NaN at
    -inf. Raises ValueError for complex numbers.
    """
    [x] = promote_args_inexact("sici", x)
    refuse_complex("sici", x)
    size = lax.abs(_at_least_single(x))
    zero, near = lax.full_like(size, 0), jnp.minimum(size, 2)
    series = _power_series(lax.complex(zero, -near), 30)
    middle = jnp.clip(size, 2, 1e30)
    beyond = _fraction(lax.full_like(size, 1), lax.complex(zero, middle))
    small = size <= 2
    sine = jnp.where(small, -series.imag, np.pi / 2 + beyond.imag)
    cosine = jnp.where(
        small, np.euler_gamma + lax.log(near) + series.real, -beyond.real
    )
    ends = jnp.where(x < 0, np.nan, zero)
    cosine = jnp.where(jnp.isinf(x), ends, cosine)
    return lax.sign(x) * sine.astype(x.dtype), cosine.astype(x.dtype)


@sici.defjvp
def _sici_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return sici(x), (t * jnp.sinc(x / np.pi), t * lax.cos(x) / x)


# -- error functions ----------------------------------------------------------------


@functools.cache
def _faddeeva_table(count: int = 32) -> tuple[float, np.ndarray]:
    """A length and the coefficients of Weideman's rational approximation (1994)."""
    length = math.sqrt(count / math.sqrt(2))
    t = length * np.tan(np.arange(1 - 2 * count, 2 * count) * np.pi / (4 * count))
    values = np.concatenate([[0], np.exp(-t * t) * (length**2 + t * t)])
    spectrum = np.fft.fft(np.fft.fftshift(values)).real / (4 * count)
    return length, spectrum[count:0:-1]


@custom_jvp
def _faddeeva(z: Any) -> Any:
    length, table = _faddeeva_table()
    upper = z.imag >= 0
    turned = jnp.where(upper, z, -z) * 1j
    below = 1 / (length - turned)
    out = 2 * jnp.polyval(table.astype(z.dtype), (length + turned) * below) * below
    out = (out + 1 / math.sqrt(math.pi)) * below
    return jnp.where(upper, out, 2 * lax.exp(-z * z) - out)


_faddeeva.defjvps(lambda t, w, z: t * (_TWO_OVER_ROOT_PI * 1j - 2 * z * w))


def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function, `exp(-z**2) * erfc(-i z)`, complex."""
    return _faddeeva(*promote_args_complex("wofz", z))


def _odd_factorials(x: Any, count: int) -> Any:
    """The sum of `(2k - 1)!! (x / 2)**k` over k from 0 to `count`."""
    terms = np.cumprod([1, *np.arange(0.5, count)])
    return jnp.polyval(terms[::-1].astype(x.dtype), x)


@custom_jvp
def _erfcx(x: Any) -> Any:
    wide = _at_least_single(x)
    # Where exp(x**2) would be infinite.
    large = wide > np.sqrt(np.log(jnp.finfo(wide.dtype).max))
    near, far = jnp.where(large, 1, wide), jnp.where(large, wide, 1)
    tail = _odd_factorials(-1 / lax.square(far), 8) / (far * math.sqrt(math.pi))
    out = jnp.where(large, tail, lax.exp(lax.square(near)) * lax.erfc(near))
    return out.astype(x.dtype)


_erfcx.defjvps(lambda t, y, x: t * (2 * x * y - _TWO_OVER_ROOT_PI))


def erfcx(x: ArrayLike) -> Array:
    """`exp(x**2) * erfc(x)`, also where `erfc` is 0; of complex numbers too."""
    [x] = promote_args_inexact("erfcx", x)
    return _faddeeva(1j * x) if jnp.iscomplexobj(x) else _erfcx(x)


@custom_jvp
def _dawsn(x: Any) -> Any:
    wide = _at_least_single(x)
    small = lax.abs(wide) < 7
    near, far = jnp.where(small, wide, 0), jnp.where(small, 7, wide)
    # The integral of an even function, by Gauss and Legendre's rule.
    points, weights = np.polynomial.legendre.leggauss(64)
    points = (1 - points[32:] ** 2).astype(wide.dtype)
    values = lax.exp(-lax.square(near)[..., None] * points)
    inside = near * (values @ weights[32:].astype(wide.dtype))
    tail = _odd_factorials(1 / lax.square(far), 24) / (2 * far)
    return jnp.where(small, inside, tail).astype(x.dtype)


_dawsn.defjvps(lambda t, y, x: t * (1 - 2 * x * y))


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: `exp(-x**2)` times that of `exp(t**2)` from 0 to `x`."""
    [x] = promote_args_inexact("dawsn", x)
    refuse_complex("dawsn", x)
    return _dawsn(x)


# -- the dilogarithm ----------------------------------------------------------------

# Of the series of Spence's function in -log(x): Bernoulli's numbers over (k + 1)!.
_SPENCE = [1, -1 / 4, 1 / 36, 0, -1 / 3600, 0, 1 / 211680, 0, -1 / 10886400, 0]
_SPENCE += [1 / 526901760, 0, -691 / 16999766784000, 0, 1 / 1120863744000, 0]
_SPENCE += [-3617 / 181400588328960000, 0, 43867 / 97072790126247936000]


@custom_jvp
def spence(x: Array) -> Array:
    """Spence's function, the integral of `log(t) / (1 - t)` from 1 to `x`.

    NaN below 0. TypeError if `x` is neither float32 nor float64.
    """
    x = jnp.asarray(x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported: pass float32 or float64.")
    inside = jnp.where(x > 1, 1 / x, x)
    low = inside < 0.5
    u = -jnp.where(low, lax.log1p(-inside), lax.log(inside))
    out = u * jnp.polyval(np.array(_SPENCE[::-1], x.dtype), u)
    edge = np.pi**2 / 6 + u * lax.log(jnp.where(inside == 0, 1, inside)) - out
    out = jnp.where(low, edge, out)
    return jnp.where(x > 1, -lax.square(lax.log(x)) / 2 - out, out)


def _spence_slope(t: Any, y: Any, x: Any) -> Any:
    at_one = x == 1
    return t * jnp.where(at_one, -1, lax.log(x) / jnp.where(at_one, 1, 1 - x))


spence.defjvps(_spence_slope)
