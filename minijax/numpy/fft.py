"""`jax.numpy.fft`: Fourier transforms along any axes, of any length.

An axis is cut or filled with zeros to its length `n` or `s`. `norm` says where the
factor 1 / n goes: "backward" (None) to the inverse, "forward", or half to each,
"ortho". Real input has half of the frequencies, which the names with an r leave out.

In JAX: `numpy/fft.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core import dtypes
from minijax.core.array import Array
from minijax.numpy.arguments import index_of, index_tuple
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.promotion import promote_dtypes_inexact
from minijax.primitives.shape.slicing import checked_size
from minijax.programs.linear_algebra import fourier
from minijax.programs.linear_algebra.fourier import FftType
from minijax.support.element_types import to_inexact_dtype


def _scale(sizes: Any, name: str, norm: str) -> Any:
    if norm == "backward":
        return jnp.array(1)
    (sizes,) = promote_dtypes_inexact(sizes)
    if norm not in ("ortho", "forward"):
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward".'
        )
    factor = jnp.prod(sizes)
    factor = jnp.sqrt(factor) if norm == "ortho" else factor
    return factor if name.startswith("i") else 1 / factor


def _several(x: Any, kind: FftType, sizes: Sequence[int]) -> Any:
    """The transform of the last axes; XLA takes three at once, so others by twos."""
    if len(sizes) <= 3:
        return fourier.fft(x, kind, tuple(sizes))
    count = 2 if len(sizes) == 4 else 3
    others = tuple(range(x.ndim - len(sizes), x.ndim - count))
    last = tuple(range(x.ndim - len(sizes) + count, x.ndim))
    forward = kind in (FftType.RFFT, FftType.FFT)
    if forward:
        x = fourier.fft(x, kind, tuple(sizes[-count:]))
    inner = FftType.FFT if forward else FftType.IFFT
    x = _several(jnp.moveaxis(x, others, last), inner, sizes[:-count])
    x = jnp.moveaxis(x, last, others)
    return x if forward else fourier.fft(x, kind, tuple(sizes[-count:]))


def _ints(name: str, word: str, given: Any) -> tuple[int, ...]:
    if not np.iterable(given):
        raise TypeError(f"jax.numpy.fft.{name}: {word} must be a tuple, got {given!r}.")
    return tuple(index_of(one, f"{word} of jax.numpy.fft.{name}") for one in given)


def _transform(
    name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None
) -> Array:
    x = ensure_arraylike(f"jax.numpy.fft.{name}", a)
    if s is not None:
        s = _ints(name, "n or s", s)
        if any(size <= 0 for size in s):
            raise ValueError(f"Shape should be positive, got {s}.")
        if axes is not None and len(s) != len(axes):
            raise ValueError(
                f"Shape and axes have different lengths: {s} and {tuple(axes)}."
            )
    axes = None if axes is None else _ints(name, "axes", axes)
    count = len(axes) if axes is not None else x.ndim if s is None else len(s)
    if axes is not None and len(set(axes)) != count:
        raise ValueError(f"jax.numpy.fft.{name} takes an axis once. Got {axes=}.")
    last = tuple(range(x.ndim - count, x.ndim))
    if axes is not None:
        x = jnp.moveaxis(x, axes, last)
    if s is not None:
        wanted = list(x.shape)
        for axis, size in zip(last, s, strict=True):
            wanted[axis] = size
        if kind is FftType.IRFFT:
            wanted[-1] = wanted[-1] // 2 + 1
        x = x[tuple(map(slice, wanted))]
        x = jnp.pad(x, [(0, size - own) for size, own in zip(wanted, x.shape)])
    else:
        s = [x.shape[axis] for axis in last]
        if kind is FftType.IRFFT and s:
            s[-1] = max(0, 2 * (s[-1] - 1))
    out = _several(x, kind, s)
    if norm is not None:
        out *= _scale(jnp.array(s, dtype=out.dtype), name, norm)
    return out if axes is None else jnp.moveaxis(out, last, axes)


def _along_one(
    name: str, kind: FftType, a: Any, n: int | None, axis: int, norm: str | None
) -> Array:
    if isinstance(axis, (list, tuple)):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use "
            f"jax.numpy.fft.{name}n. Got axis = {axis!r}."
        )
    axes = None if axis is None else [axis]
    return _transform(name, kind, a, None if n is None else [n], axes, norm)


def _makers(
    name: str, kind: FftType, words: str
) -> tuple[Callable, Callable, Callable]:
    """The function along one axis, along two, and along several."""

    def one(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None):
        return _along_one(name, kind, a, n, axis, norm)

    def two(
        a: Any,
        s: Sequence[int] | None = None,
        axes: Sequence[int] = (-2, -1),
        norm: str | None = None,
    ):
        if len(_ints(f"{name}2", "axes", axes)) != 2:
            raise ValueError(
                f"jax.numpy.fft.{name}2 only supports 2 axes. Got axes = {axes!r}."
            )
        return _transform(f"{name}2", kind, a, s, axes, norm)

    def several(
        a: Any,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str | None = None,
    ):
        return _transform(f"{name}n", kind, a, s, axes, norm)

    ends = (
        ("", "along `axis`, of length n"),
        ("2", "along two axes, of lengths s"),
        ("n", "along several axes, all if None, of lengths s"),
    )
    for function, (end, where) in zip((one, two, several), ends):
        function.__name__ = function.__qualname__ = name + end
        function.__doc__ = (
            f"{words} {where}.\n\n    Raises ValueError for lengths that are not "
            "positive, repeated axes and an unknown `norm`.\n    "
        )
    return one, two, several


fft, fft2, fftn = _makers("fft", FftType.FFT, "The Fourier transform")
ifft, ifft2, ifftn = _makers("ifft", FftType.IFFT, "The inverse Fourier transform")
rfft, rfft2, rfftn = _makers("rfft", FftType.RFFT, "The transform of real numbers")
irfft, irfft2, irfftn = _makers("irfft", FftType.IRFFT, "The inverse, real,")


def hfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The real transform of a signal of which half is given: a[-j] is conj(a[j])."""
    x = jnp.conj(a)
    if isinstance(axis, (list, tuple)):
        return _along_one("hfft", FftType.IRFFT, x, n, axis, norm)
    length = (checked_size(axis, x.shape) - 1) * 2 if n is None else n
    return _along_one("hfft", FftType.IRFFT, x, n, axis, norm) * length


def ihfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse of `hfft`: half of the transform of real numbers."""
    x = jnp.asarray(a)
    out = _along_one("ihfft", FftType.RFFT, x, n, axis, norm)
    n = checked_size(axis, x.shape) if n is None else n
    if n == 0:
        raise ValueError(f"ihfft needs one number at least, got shape {x.shape}.")
    return jnp.conj(out) * (1 / n)


def _check_numbers(name: str, n: Any, d: Any) -> None:
    for word, value, kind in (("n", n, "an int"), ("d", d, "a single value")):
        if isinstance(value, (list, tuple)):
            raise ValueError(
                f"The {word} argument of jax.numpy.fft.{name} only takes {kind}. Got "
                f"{word} = {list(value)}."
            )


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequency of each place of `fft`'s result, for n samples at a distance d."""
    dtype = dtype or dtypes.default_float_dtype()
    _check_numbers("fftfreq", n, d)
    inner = dtypes.finfo(to_inexact_dtype(dtype)).dtype
    places = jnp.arange(n, dtype=inner, device=device)
    signed = (places + n // 2) % n - n // 2
    span = jnp.array(d * n, dtype=inner, device=device)
    return (signed.astype(inner) / span).astype(dtype)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequency of each place of `rfft`'s result, for n samples at a distance d."""
    dtype = dtype or dtypes.default_float_dtype()
    _check_numbers("rfftfreq", n, d)
    out = jnp.arange(0, n // 2 + 1, dtype=dtype) / jnp.array(d * n, dtype=dtype)
    return out if device is None else out.to_device(device)


def _rolled(name: str, x: Any, axes: Any, sign: int) -> Array:
    x = ensure_arraylike(name, x)
    axes = index_tuple(range(x.ndim) if axes is None else axes)
    shifts = [sign * (checked_size(axis, x.shape) // 2) for axis in axes]
    return jnp.roll(x, shifts, axes)


def fftshift(x: Any, axes: None | int | Sequence[int] = None) -> Array:
    """Frequency zero in the middle of each axis (all by default)."""
    return _rolled("fftshift", x, axes, 1)


def ifftshift(x: Any, axes: None | int | Sequence[int] = None) -> Array:
    """The inverse of `fftshift`."""
    return _rolled("ifftshift", x, axes, -1)
