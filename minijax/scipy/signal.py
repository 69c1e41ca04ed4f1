"""Convolutions, correlations and spectra of signals. In JAX: `scipy/signal.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.promotion import promote_args_inexact, promote_dtypes_inexact
from minijax.primitives.shape.squeezing import canonicalize_axis, index_of


def _ordered(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any, bool]:
    """Both with one dtype, and whether the second is the larger one on each axis."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: mode is 'full', 'same' or 'valid', got {mode!r}.")
    in1, in2 = promote_dtypes_inexact(*ensure_arraylike(name, in1, in2))
    if in1.ndim != in2.ndim:
        raise ValueError(f"{name}: in1 and in2 must have the same number of axes.")
    larger = [m <= n for m, n in zip(in1.shape, in2.shape)]
    smaller = [m >= n for m, n in zip(in1.shape, in2.shape)]
    mixed = name == "fftconvolve" and mode != "valid"
    if not (all(larger) or all(smaller) or mixed):
        raise ValueError(f"{name}: one input must be the smaller one on each axis.")
    return in1, in2, all(larger)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Array:
    """`convolve` by way of the Fourier transforms, along `axes` (by default all).

    Raises ValueError for another mode, and for shapes that do not fit.
    """
    in1, in2, swap = _ordered("fftconvolve", in1, in2, mode)
    axes = [index_of(axes)] if hasattr(axes, "__index__") else axes
    axes = range(in1.ndim) if axes is None else axes
    along = sorted(canonicalize_axis(axis, in1.ndim) for axis in axes)
    if np.delete(in1.shape, along).tolist() != np.delete(in2.shape, along).tolist():
        raise ValueError(
            f"fftconvolve: beside {axes=} the shapes must be the same, "
            f"got {in1.shape} and {in2.shape}."
        )
    if mode == "valid" and swap:
        in1, in2 = in2, in1
    sizes = [(in1.shape[axis], in2.shape[axis]) for axis in along]
    full = [m + n - 1 for m, n in sizes]
    if all(1 in pair for pair in sizes):
        out = in1 * in2
    else:
        real = not jnp.iscomplexobj(in1)
        there = jnp.fft.rfftn if real else jnp.fft.fftn
        back = jnp.fft.irfftn if real else jnp.fft.ifftn
        out = back(there(in1, full, along) * there(in2, full, along), full, along)
    for axis, (m, n) in zip(along, sizes):
        kept = {"full": m + n - 1, "same": m, "valid": m - n + 1}[mode]
        start = (m + n - 1 - kept) // 2
        out = lax.slice_in_dim(out, start, start + kept, axis=axis)
    return out


def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays of any rank.

    Args:
      in1, in2: arrays of the same rank; one is not the larger on any axis.
      mode: "full", "same" (the middle, as large as `in1`), or "valid" (without what
        leans on zeros around the arrays).
      method: "direct", "fft", or "auto", which is direct.
      precision: of the products.

    Raises:
      ValueError: another mode or method, or shapes that do not fit.
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("direct", "auto"):
        raise ValueError(f"method is 'auto', 'fft', or 'direct', got {method!r}.")
    in1, in2, swap = _ordered("convolve", in1, in2, mode)
    if in1.size == 0 or in2.size == 0:
        raise ValueError(f"convolve: an empty input, shapes {in1.shape}, {in2.shape}.")
    kept = in2.shape
    if swap:
        in1, in2 = in2, in1
    same = [
        (s - 1 - (o - 1) // 2, s - o + (o - 1) // 2) for s, o in zip(in2.shape, kept)
    ]
    full = [(size - 1, size - 1) for size in in2.shape]
    pads = {"valid": [(0, 0)] * in1.ndim, "same": same, "full": full}[mode]
    image, kernel = in1[None, None], jnp.flip(in2)[None, None]
    strides = (1,) * in1.ndim
    out = lax.conv_general_dilated(image, kernel, strides, pads, precision=precision)
    return out[0, 0]


def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The correlation of two arrays: `convolve` with `in2` conjugated and reversed."""
    return convolve(in1, jnp.flip(jnp.conj(in2)), mode, method, precision)


# -- spectra ------------------------------------------------------------------------


def _window(window: Any, length: int | None, samples: int, dtype: Any) -> Array:
    if isinstance(window, str | tuple):
        from scipy.signal import get_window  # slow to import; jaxlib brings SciPy along

        length = min(samples if length is None else length, samples)
        window = get_window(window, length)
    values = jnp.asarray(window, dtype=dtype)
    if values.ndim != 1 or not values.size == (length or values.size) <= samples:
        raise ValueError(
            f"window: a vector as long as nperseg={length}, and at most {samples}; "
            f"its shape is {values.shape}."
        )
    return values


def _without_trend(x: Any, how: Any) -> Any:
    """Pieces less what `how` says, along the last axis."""
    if callable(how) or not how:
        return how(x) if how else x
    if how not in ("constant", "linear"):
        raise ValueError(f"detrend is 'constant', 'linear' or a function, got {how!r}.")
    x = x - x.mean(-1, keepdims=True)
    n = np.arange(x.shape[-1]) - (x.shape[-1] - 1) / 2
    n = n * (how == "linear") / max(np.sqrt(np.sum(n * n)), 1)
    return x - (x * n.astype(x.real.dtype)).sum(-1, keepdims=True) * n.astype(x.dtype)


_BOUNDARIES: dict[str, dict[str, Any]] = {
    "zeros": {"mode": "constant"},
    "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"},
}


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool | str | Callable[[Any], Any] = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Fourier transforms of overlapping pieces of a signal.

    Args:
      x: the signal along `axis`, with `fs` samples in a unit of time.
      window: its name in `scipy.signal.get_window`, or `nperseg` weights.
      nperseg, noverlap: length of a piece, and what it shares with the next (half).
      nfft: length of the transform, at least `nperseg`.
      detrend: what is done to each piece before: nothing, its mean taken
        away ("constant"), its line of least squares ("linear"), or a function.
      return_onesided: only frequencies from 0 on, for a real signal.
      boundary: half a piece before and after the signal: "zeros", "even", "odd",
        "constant", or None for nothing.
      padded: whether zeros fill up the last piece.

    Returns:
      Frequencies, times of the pieces' middles, and the transforms, with the
      frequencies along `axis` and the times last.

    Raises:
      ValueError: sizes that do not fit, another boundary, an unknown window.
    """
    [x] = promote_args_inexact("stft", x)
    axis = canonicalize_axis(axis, x.ndim)
    weights = _window(window, nperseg, x.shape[axis], x.dtype)
    size = weights.size
    shared = size // 2 if noverlap is None else index_of(noverlap, "noverlap")
    length = size if nfft is None else index_of(nfft, "nfft")
    if length < size or shared >= size or boundary not in (None, *_BOUNDARIES):
        raise ValueError(
            f"stft: nfft={length} is at least nperseg={size}, noverlap={shared} less, "
            f"boundary={boundary!r} None or one of {[*_BOUNDARIES]}."
        )
    x, step = jnp.moveaxis(x, axis, -1), size - shared
    around = [(0, 0)] * (x.ndim - 1)
    if boundary is not None:
        x = jnp.pad(x, [*around, (size // 2, size // 2)], **_BOUNDARIES[boundary])
    if padded:
        x = jnp.pad(x, [*around, (0, -(x.shape[-1] - size) % step % size)])
    starts = np.arange(0, x.shape[-1] - size + 1, step)
    pieces = _without_trend(x[..., starts[:, None] + np.arange(size)], detrend)
    real = x.real.dtype
    onesided = return_onesided and not jnp.iscomplexobj(x)
    frequencies = jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq
    transform = jnp.fft.rfft if onesided else jnp.fft.fft
    out = transform(weights * pieces, length) / weights.sum()
    times = jnp.asarray(starts + (0 if boundary else size / 2), real) / fs
    return frequencies(length, 1 / fs, dtype=real), times, jnp.moveaxis(out, -1, axis)
