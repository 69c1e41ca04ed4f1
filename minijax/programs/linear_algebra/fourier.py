"""The discrete Fourier transform over the last axes, of complex or real numbers.

    FFT    y_k = sum_j x_j exp(-2πi jk / n)         IFFT   its inverse, with 1 / n
    RFFT   the first n // 2 + 1 of y, of real x     IRFFT  the inverse of that

In JAX: `lax/fft.py`.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.compile.jit_api import jit
from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, shaping
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.rules import def_linear, moveaxis
from minijax.primitives.elementwise import complex_numbers
from minijax.primitives.index.dynamic_slicing import dynamic_update_slice
from minijax.primitives.shape import broadcasting
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.linear_algebra.matrices import complex_dtype, real_dtype
from minijax.support.element_types import to_inexact_dtype


class FftType(enum.IntEnum):
    """Which transform: complex, its inverse, of real numbers, its inverse."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


fft_p = register(Primitive("fft"))


@fft_p.def_abstract_eval
def _fft_type(x, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    name, count = fft_type.name, len(fft_lengths)
    if count > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as "
            f"fft_lengths {fft_lengths}."
        )
    if count > 3:
        raise ValueError(f"{name} takes at most three axes at once, got {fft_lengths}.")
    batch, sizes = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    wanted: tuple[type, type] = (np.float32, np.float64)
    if fft_type is not FftType.RFFT:
        wanted = (np.complex64, np.complex128)
    if x.dtype not in wanted:
        names = " or ".join(np.dtype(kind).name for kind in wanted)
        raise ValueError(f"{name} input must be {names}, got {x.dtype}")
    if fft_type is FftType.IRFFT:
        # XLA aborts the process for lengths that do not fit.
        half = (fft_lengths[-1] // 2 + 1,) if fft_lengths[-1] else (0, 1)
        fits = sizes[:-1] == fft_lengths[:-1] and sizes[-1] in half
    else:
        fits = sizes == fft_lengths
    if not fits:
        raise ValueError(
            f"{name} input shape {x.shape} does not fit fft_lengths {fft_lengths}: the "
            "minor dimensions must be equal to them; the last of IRFFT's input is half "
            "as long, plus 1."
        )
    if fft_type is FftType.RFFT:
        shape = (*batch, *fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
        return x.update(shape=shape, dtype=complex_dtype(x.dtype))
    if fft_type is FftType.IRFFT:
        return x.update(shape=(*batch, *fft_lengths), dtype=real_dtype(x.dtype))
    return x


def _fft_meaning(x, fft_type: FftType, fft_lengths: tuple[int, ...]) -> np.ndarray:
    transform = getattr(np.fft, f"{fft_type.name.lower()}n")
    out = transform(x, fft_lengths, axes=range(-len(fft_lengths), 0))
    if x.dtype in (np.float32, np.complex64):
        return out.astype(np.complex64 if np.iscomplexobj(out) else np.float32)
    return out


fft_p.meaning = _fft_meaning


def _halved(like: Any, size: int, length: int, dtype: Any) -> Any:
    """How often each of `size` frequencies of real numbers stands for two: 1 or 2."""

    def number(value: float, count: int) -> Any:
        return broadcasting.full_like(like, value, dtype=dtype, shape=(count,))

    weights = dynamic_update_slice(number(2.0, size), number(1.0, 1), (0,))
    if length % 2 == 0:
        weights = dynamic_update_slice(weights, number(1.0, 1), (size - 1,))
    return expand_dims(weights, range(like.ndim - 1))


@functools.partial(jit, static_argnums=1)
def _rfft_transpose(ct: Any, fft_lengths: tuple[int, ...]) -> Any:
    weights = _halved(ct, ct.shape[-1], fft_lengths[-1], ct.dtype)
    x = elementwise.div(complex_numbers.conj(ct), weights)
    return math.prod(fft_lengths) * fft(x, FftType.IRFFT, fft_lengths)


def _irfft_transpose(ct: Any, fft_lengths: tuple[int, ...]) -> Any:
    x = fft(ct, FftType.RFFT, fft_lengths)
    weights = _halved(ct, x.shape[-1], fft_lengths[-1], x.dtype)
    return complex_numbers.conj(1 / math.prod(fft_lengths) * weights * x)


def _fft_transpose(ct: Any, x: Any, fft_type: FftType, fft_lengths: tuple) -> list:
    if fft_type is FftType.RFFT:
        return [_rfft_transpose(ct, fft_lengths)]
    if fft_type is FftType.IRFFT:
        return [_irfft_transpose(ct, fft_lengths)]
    return [fft(ct, fft_type, fft_lengths)]  # symmetric matrices


def_linear(fft_p, _fft_transpose)


@fft_p.def_batch
def _fft_batch(axis_data, args, dims, **params) -> tuple:
    return fft(moveaxis(args[0], dims[0], 0), **params), 0


def _write(x: Any, fft_type: FftType, lengths: Sequence[int]) -> Any:
    kind = hlo.stablehlo.FftTypeAttr.get(fft_type.name)
    return hlo.stablehlo.fft(x, kind, hlo.int_array(lengths))


@fft_p.def_lowering
def _fft_lowering(ctx, x, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if 0 in ctx.avals_in[0].shape or 0 in ctx.avals_out[0].shape:
        return ctx.full_like(0, ctx.avals_out[0])
    return _write(x, fft_type, fft_lengths)


def _fft_on_gpu(ctx, x, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """cuFFT's inverse of real numbers has one axis: the others go first, complex."""
    if fft_type is not FftType.IRFFT or len(fft_lengths) == 1:
        return _fft_lowering(ctx, x, fft_type=fft_type, fft_lengths=fft_lengths)
    rank, first = ctx.avals_in[0].ndim, ctx.avals_in[0].ndim - len(fft_lengths)
    outer = [*range(first), rank - 1, *range(first, rank - 1)]
    back = [int(place) for place in np.argsort(outer)]
    x = hlo.stablehlo.transpose(x, hlo.int_array(outer))
    x = _write(x, FftType.IFFT, fft_lengths[:-1])
    x = hlo.stablehlo.transpose(x, hlo.int_array(back))
    return _write(x, FftType.IRFFT, fft_lengths[-1:])


fft_p.def_lowering(_fft_on_gpu, "cuda")


@functools.partial(jit, static_argnums=(1, 2))
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """The Fourier transform of the last axes, of up to three.

    Args:
      x: real for RFFT, else complex; other numbers are converted.
      fft_type: a `FftType` or its name.
      fft_lengths: the sizes of the axes; for IRFFT those of the result.

    Raises ValueError for an unknown name, complex input of RFFT and sizes that do not
    fit, TypeError for a type that is no `FftType`.
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"Unknown FFT type {fft_type!r}: {[*FftType.__members__]}")
        fft_type = FftType[fft_type.upper()]
    if not isinstance(fft_type, FftType):
        raise TypeError(f"Unknown FFT type value '{fft_type}'")
    dtype = get_aval(x).dtype
    if fft_type is FftType.RFFT:
        if dtypes.issubdtype(dtype, np.complexfloating):
            raise ValueError("only real valued inputs supported for rfft")
        x = shaping.convert_element_type(x, to_inexact_dtype(dtype))
    else:
        x = shaping.convert_element_type(x, complex_dtype(to_inexact_dtype(dtype)))
    if len(fft_lengths) == 0:
        return x
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=tuple(fft_lengths))
