"""Discrete cosine transforms of type 2 and their inverses.

In JAX: `scipy/fft.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core.array import Array
from minijax.numpy.arraylike import ensure_arraylike
from minijax.numpy.promotion import promote_dtypes_complex, promote_dtypes_inexact
from minijax.primitives.shape.squeezing import canonicalize_axis, index_of


def _forward(x: Any, norm: str | None) -> Any:
    """Along the last axis: even elements, then odd ones backwards, to `fft`."""
    size = x.shape[-1]
    spectrum = jnp.fft.fft(jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1))
    out = 2 * (spectrum * _turns(size, spectrum.real.dtype)).real
    return _orthonormal(out) if norm == "ortho" else out


def _inverse(x: Any, norm: str | None) -> Any:
    (x,) = promote_dtypes_inexact(x)
    size = x.shape[-1]
    x = _orthonormal(x if norm == "ortho" else _orthonormal(x))
    x = jnp.fft.ifft(2 * size * (x / _turns(size, x.dtype))).real
    half = (size + 1) // 2
    out = jnp.zeros_like(x).at[..., ::2].set(x[..., :half])
    return out.at[..., 1::2].set(x[..., half:][..., ::-1])


def _turns(size: int, dtype: Any) -> Any:
    n, k = promote_dtypes_complex(size, jnp.arange(size, dtype=dtype))
    return jnp.exp(-0.5j * np.pi * k / n)


def _orthonormal(x: Any) -> Any:
    size = x.shape[-1]
    return x / jnp.sqrt(jnp.full(size, 2, x.dtype).at[:1].set(4) * size)


def _along(
    transform: Callable[..., Any],
    name: str,
    x: Any,
    kind: int,
    sizes: Sequence[int | None],
    axes: Sequence[int],
    norm: str | None,
) -> Array:
    """The transform along each axis, cut or filled with zeros to its size."""
    x = ensure_arraylike(name, x)
    if kind != 2:
        raise NotImplementedError(f"{name}: type={kind} is not supported: give 2.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: norm is None, 'backward' or 'ortho', got {norm!r}.")
    if jnp.iscomplexobj(x):
        parts = (x.real, x.imag)
        return lax.complex(
            *(_along(transform, name, y, kind, sizes, axes, norm) for y in parts)
        )
    for axis, size in zip(axes, sizes, strict=True):
        axis = canonicalize_axis(axis, x.ndim)
        if size is not None:
            after = (0, index_of(size, "n or s") - x.shape[axis], 0)
            pads = [after if i == axis else (0, 0, 0) for i in range(x.ndim)]
            x = lax.pad(x, jnp.array(0, x.dtype), pads)
        x = jnp.moveaxis(transform(jnp.moveaxis(x, axis, -1), norm), -1, axis)
    return x


def _all_axes(name: str, x: Any, s: Any, axes: Any) -> tuple[list, list]:
    rank = jnp.ndim(x)
    sizes = [operator.index(s)] if hasattr(s, "__index__") else s
    if sizes is not None and len(sizes) > rank:
        raise ValueError(f"{name}: s has {len(sizes)} sizes for {rank} axes.")
    if axes is None:
        axes = range(0 if sizes is None else rank - len(sizes), rank)
    return list(sizes or [None] * len(axes)), list(axes)


def dct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The cosine transform `y[k] = 2 sum_j x[j] cos(pi k (2 j + 1) / (2 n))`.

    Args:
      x: an array.
      type: 2.
      n: the length to which x is cut, or filled with zeros.
      axis: along which axis.
      norm: "ortho" for an orthogonal transform.

    Raises:
      NotImplementedError: another type.
      ValueError: another norm.
    """
    return _along(_forward, "dct", x, type, [n], [axis], norm)


def idct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse of `dct`."""
    return _along(_inverse, "idct", x, type, [n], [axis], norm)


def dctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """`dct` along several axes, by default all, with lengths `s`."""
    return _along(_forward, "dctn", x, type, *_all_axes("dctn", x, s, axes), norm)


def idctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn`."""
    return _along(_inverse, "idctn", x, type, *_all_axes("idctn", x, s, axes), norm)
