"""Gamma, beta, what is counted with them; Bessel functions. In JAX: `special.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.arguments import index_of
from minijax.numpy.promotion import constant_like, promote_args_inexact
from minijax.typing import ArrayLike


def refuse_complex(name: str, *args: Any) -> None:
    """ValueError for complex arguments of a function that has none."""
    if any(jnp.iscomplexobj(arg) for arg in args):
        raise ValueError(f"{name} does not support complex-valued inputs.")


def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function: NaN at negative integers, -1 at -0."""
    [x] = promote_args_inexact("gammasgn", x)
    refuse_complex("gammasgn", x)
    below = lax.floor(x)
    pole = ((x < 0) & (x == below)) | jnp.isnan(x)
    negative = ((x < 0) & (below % 2 != 0)) | ((x == 0) & jnp.signbit(x))
    sign = jnp.where(negative, constant_like(x, -1), constant_like(x, 1))
    return jnp.where(pole, constant_like(x, np.nan), sign)


def gamma(x: ArrayLike) -> Array:
    """The gamma function of a real `x`; NotImplementedError for complex numbers."""
    [x] = promote_args_inexact("gamma", x)
    _only_real("gamma", x)
    return gammasgn(x) * lax.exp(lax.lgamma(x))


def loggamma(x: ArrayLike) -> Array:
    """The logarithm of gamma for `x > 0`, else NaN; real numbers only."""
    [x] = promote_args_inexact("loggamma", x)
    _only_real("loggamma", x)
    return jnp.where(x > 0, lax.lgamma(x), np.nan)


def _only_real(name: str, x: Any) -> None:
    if jnp.iscomplexobj(x):
        raise NotImplementedError(f"{name} takes no {x.dtype} numbers: use x.real.")


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """`n!` as a float, 0 for negative `n`; NotImplementedError for `exact`."""
    if exact:
        raise NotImplementedError("factorial with exact=True: use math.factorial")
    [n] = promote_args_inexact("factorial", n)
    return jnp.where(n < 0, 0, lax.exp(lax.lgamma(n + 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """How many ways there are to choose `k` of `N` things, as a float."""
    N, k = promote_args_inexact("comb", N, k)
    if repetition:
        return jnp.where((k == 0) & (N >= 0), 1.0, comb(N + k - 1, k))
    possible = (k <= N) & (N >= 0) & (k >= 0)
    n, m = jnp.where(possible, N, 0.0), jnp.where(possible, k, 0.0)
    logarithm = lax.lgamma(n + 1) - lax.lgamma(m + 1) - lax.lgamma(n + 1 - m)
    return jnp.where(possible, lax.exp(logarithm), 0.0)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol, `gamma(z + m) / gamma(z)`."""
    z, m = promote_args_inexact("poch", z, m)
    refuse_complex("poch", z)
    return jnp.where(m == 0.0, constant_like(z, 1), gamma(z + m) / gamma(z))


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the gamma function of `d` dimensions; `d` is a known integer."""
    count = index_of(d, "d of multigammaln")
    a, dimensions = map(jnp.asarray, promote_args_inexact("multigammaln", a, d))
    first = constant_like(a, 0.25) * dimensions * (dimensions - 1) * np.log(np.pi)
    halves = jnp.arange(count, dtype=a.dtype) / 2
    return jnp.sum(lax.lgamma(a[..., None] - halves), axis=-1) + first


# Of Stirling's series for log(gamma(x)): the terms in 1/x, 1/x**3, 1/x**5, ...
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def _stirling_rest(x: Any) -> Any:
    """What Stirling's formula leaves of `lgamma(x)`, for `x` of 8 and more."""
    square, total = 1 / (x * x), lax.full_like(x, 0)
    for term in reversed(_STIRLING):
        total = total * square + term
    return total / x


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the modulus of `beta(a, b)`.

    Where the larger argument is 8 or more, the difference of its two `lgamma`s would
    lose digits, and is taken from Stirling's series term by term.
    """
    a, b = promote_args_inexact("betaln", a, b)
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    near = lax.lgamma(small) + (lax.lgamma(large) - lax.lgamma(small + large))
    base = jnp.where(large < 8, constant_like(large, 8), large)
    safe = jnp.where(large < 8, constant_like(small, 1), small)
    far = safe - safe * lax.log(base) - (safe + base - 0.5) * lax.log1p(safe / base)
    far = far + _stirling_rest(base) - _stirling_rest(safe + base)
    return jnp.where(large < 8, near, lax.lgamma(small) + far)


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """`gamma(a) * gamma(b) / gamma(a + b)`."""
    a, b = promote_args_inexact("beta", a, b)
    refuse_complex("beta", a)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return sign * lax.exp(betaln(a, b))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function."""
    return lax.betainc(*promote_args_inexact("betainc", a, b, x))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function."""
    return lax.igamma(*promote_args_inexact("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function."""
    return lax.igammac(*promote_args_inexact("gammaincc", a, x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order `n` of digamma; ValueError if `n` is not an integer."""
    if not jnp.issubdtype(jnp.result_type(n), np.integer):
        raise ValueError(
            "Argument `n` to polygamma must be of integer type. Got dtype "
            f"{jnp.result_type(n)}."
        )
    n, x = promote_args_inexact("polygamma", n, x)
    refuse_complex("polygamma", x)
    return lax.polygamma(n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function; NotImplementedError without `q`, as in JAX."""
    if q is None:
        raise NotImplementedError(
            "zeta needs q: it is Hurwitz's zeta function; Riemann's is zeta(x, 1)."
        )
    return lax.zeta(*promote_args_inexact("zeta", x, q))


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B_0 to B_n, shape (n + 1,); ValueError if `n` is negative.

    `B_2m = (-1)**(m+1) * 2 * (2m)! * zeta(2m) / (2 pi)**2m`.
    """
    n = index_of(n, "n of bernoulli")
    if n < 0:
        raise ValueError("bernoulli: n must be a non-negative integer.")
    first = jnp.array([1, -1 / 2, 1 / 6])
    if n < 3:
        return first[: n + 1]
    even = np.arange(4, n + 1, 2, dtype=np.float64)
    with np.errstate(over="ignore"):
        factors = np.cumprod(-(even - 1) * even / (4 * np.pi**2))
    zetas = 1 + np.sum(np.arange(2.0, 50)[:, None] ** -even, axis=0)
    values = (factors * zetas / np.pi**2).astype(first.dtype)
    return jnp.zeros(n + 1).at[:3].set(first).at[4::2].set(values)


def i0e(x: ArrayLike) -> Array:
    """`exp(-|x|) * i0(x)`."""
    return lax.bessel_i0e(*promote_args_inexact("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """`exp(-|x|) * i1(x)`."""
    return lax.bessel_i1e(*promote_args_inexact("i1e", x))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0."""
    [x] = promote_args_inexact("i0", x)
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 1."""
    [x] = promote_args_inexact("i1", x)
    return lax.exp(lax.abs(x)) * lax.bessel_i1e(x)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 to `v`, shape (v + 1, ...).

    Miller's recurrence down from order `n_iter`, which must lie well above |z|
    (Zhang and Jin, 1996). Raises ValueError for complex numbers.
    """
    [z] = promote_args_inexact("bessel_jn", z)
    refuse_complex("bessel_jn", z)

    def down(state: Any, k: Any) -> Any:
        above, value, total = state
        below = 2 * (k + 1) * value / z - above
        return (value, below, total + jnp.where(k % 2 == 0, 2 * below, 0)), below

    orders = lax.iota(z.dtype, index_of(n_iter, "n_iter of bessel_jn") + 1)
    zero = lax.full_like(z, 0)
    start = (zero, lax.full_like(z, 1e-16), zero)
    (_, first, total), values = lax.scan(down, start, orders, reverse=True)
    return values[: index_of(v, "v of bessel_jn") + 1] / (total - first)
