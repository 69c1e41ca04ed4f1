"""Windows for signal processing: weights that fall off towards both ends.

In JAX: `numpy/window_functions.py`.
"""

from typing import Any

import numpy as np

from minijax import lax
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import concrete_or_error
from minijax.numpy.math.elementary_functions import cos, i0, sqrt
from minijax.numpy.math.ufuncs import abs


def _positions(M: Any, name: str) -> tuple[int, Array | None]:
    """The number of points, and 0, 1, ... if there are at least two of them."""
    M = concrete_or_error(int, M, f"M argument of jnp.{name}")
    return M, lax.iota(dtypes.default_float_dtype(), M) if M > 1 else None


def _ones(M: int) -> Array:
    return lax.full((M,), 1, dtypes.default_float_dtype())


def bartlett(M: int) -> Array:
    """The triangular window with `M` points, zero at both ends."""
    M, n = _positions(M, "bartlett")
    return _ones(M) if n is None else 1 - abs(2 * n + 1 - M) / (M - 1)


def blackman(M: int) -> Array:
    """Blackman's window: three terms of a cosine series."""
    M, n = _positions(M, "blackman")
    if n is None:
        return _ones(M)
    first = 0.5 * cos(2 * np.pi * n / (M - 1))
    return 0.42 - first + 0.08 * cos(4 * np.pi * n / (M - 1))


def hamming(M: int) -> Array:
    """Hamming's window: a raised cosine that does not quite reach zero."""
    M, n = _positions(M, "hamming")
    return _ones(M) if n is None else 0.54 - 0.46 * cos(2 * np.pi * n / (M - 1))


def hanning(M: int) -> Array:
    """Von Hann's window: a raised cosine, zero at both ends."""
    M, n = _positions(M, "hanning")
    return _ones(M) if n is None else 0.5 * (1 - cos(2 * np.pi * n / (M - 1)))


def kaiser(M: int, beta: Any) -> Array:
    """Kaiser's window; larger `beta` makes it narrower. May be traced."""
    M, n = _positions(M, "kaiser")
    if n is None:
        return _ones(M)
    alpha = 0.5 * (M - 1)
    return i0(beta * sqrt(1 - ((n - alpha) / alpha) ** 2)) / i0(beta)
