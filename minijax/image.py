"""Resizing of images: a matrix of weights for each dimension. In JAX: `image`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compile.jit_api import jit
from minijax.core.array import Array
from minijax.numpy.promotion import promote_args_inexact
from minijax.numpy.shapes.creation import canonicalize_shape
from minijax.primitives.shape.squeezing import indices_of
from minijax.typing import ArrayLike


class ResizeMethod(enum.Enum):
    """How a value between pixels is made of those around it."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name; ValueError if there is none."""
        if not isinstance(s, str) or s not in _NAMES:
            known = ", ".join(_NAMES)
            raise ValueError(f"ResizeMethod: {s!r} is unknown. There is: {known}.")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear"), ResizeMethod.LINEAR),
    **dict.fromkeys(("trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        waves = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
        square = jnp.where(x != 0, np.pi**2 * x**2, 1)
        return jnp.where(x > radius, 0, jnp.where(x > 1e-3, waves / square, 1))

    return kernel


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys's kernel; TensorFlow's and Pillow's a is -1/2, OpenCV's -3/4."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


# These functions turn distances into weights. AREA weighs by overlap instead.
_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: lambda x: jnp.maximum(0, 1 - x),
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}


def _weights(
    size: int, out_size: int, scale: Any, shift: Any, method: Any, antialias: bool
) -> Any:
    """Shape (size, out_size): how much each pixel counts for each new one."""
    dtype = jnp.result_type(scale, shift)
    step = 1.0 / scale
    # A larger step covers more pixels: the kernel is stretched over them.
    stretch = jnp.maximum(step, 1.0) if antialias else 1.0
    at = (jnp.arange(out_size, dtype=dtype) + 0.5) * step - shift * step - 0.5
    beyond = 2 * (method is ResizeMethod.CUBIC_PYTORCH)
    pixels = jnp.arange(-beyond, size + beyond, dtype=dtype)
    distance = jnp.abs(at - pixels[:, None])
    if method is ResizeMethod.AREA:  # how much of the new pixel the old one covers
        weights = jnp.clip((step + 1) / 2 - distance, 0, jnp.minimum(step, 1))
    else:
        weights = _KERNELS[method](distance / stretch)
    if beyond:  # pixels beyond the image are like those at its edges
        first, last = weights[:beyond].sum(0), weights[-beyond:].sum(0)
        weights = weights[beyond:-beyond].at[0].add(first).at[-1].add(last)
    total = jnp.sum(weights, axis=0, keepdims=True)
    enough = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = jnp.where(enough, weights / jnp.where(total != 0, total, 1), 0)
    inside = (at >= -0.5) & (at <= size - 0.5)
    return weights if beyond else jnp.where(inside, weights, 0)


def _apply(
    image: Any, shape: Any, dims: Any, scale: Any, shift: Any, *rest: Any
) -> Any:
    method, antialias, precision = rest
    for i, dim in enumerate(dims):
        weights = _weights(
            image.shape[dim], shape[dim], scale[i], shift[i], method, antialias
        )
        weights = weights.astype(image.dtype)
        image = jnp.tensordot(image, weights, axes=(dim, 0), precision=precision)
        image = jnp.moveaxis(image, -1, dim)
    return image


def _method(method: str | ResizeMethod, antialias: bool) -> ResizeMethod:
    if not isinstance(method, ResizeMethod):
        method = ResizeMethod.from_string(method)
    pytorch = method is ResizeMethod.CUBIC_PYTORCH and antialias
    return ResizeMethod.CUBIC if pytorch else method  # as PyTorch does


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """An image stretched and moved; what lies outside of it is 0.

    Args:
      image: an array of any rank; integers become floats.
      shape: the result's.
      spatial_dims: the dimensions that are stretched; the others keep their size.
      scale: shape (len(spatial_dims),): new pixels for an old one.
      translation: of the same shape, in new pixels.
      method: not "nearest".
      antialias: when an image shrinks, each new pixel is made of all old ones below it.
      precision: of the products.

    Raises:
      ValueError: the ranks differ, another dimension would change, or the method is
        "nearest" or unknown.
    """
    [image] = promote_args_inexact("scale_and_translate", jnp.asarray(image))
    shape = canonicalize_shape(shape)
    _check(image, shape)
    dims = indices_of(spatial_dims, "spatial_dims")
    dims = tuple(range(image.ndim)[dim] for dim in dims)
    other = [d for d, n in enumerate(shape) if d not in dims and n != image.shape[d]]
    if other:
        raise ValueError(
            f"scale_and_translate: dimensions {other} change their size and are not "
            f"among spatial_dims {tuple(spatial_dims)}"
        )
    method = _method(method, antialias)
    if method is ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate has no 'nearest': use image.resize")
    scale, translation = promote_args_inexact(
        "scale_and_translate", jnp.asarray(scale), jnp.asarray(translation)
    )
    return _apply(image, shape, dims, scale, translation, method, antialias, precision)


def _check(image: Any, shape: Sequence[int]) -> None:
    if len(shape) != image.ndim:
        raise ValueError(
            "shape must have length equal to the number of dimensions of x; "
            f" {tuple(shape)} vs {image.shape}"
        )


@jit(static_argnums=(1, 2, 3, 4))
def _resize(
    image: Any, shape: Any, method: ResizeMethod, antialias: bool, precision: Any
) -> Any:
    _check(image, shape)
    dims = [d for d in range(image.ndim) if image.shape[d] != shape[d]]
    if method is ResizeMethod.NEAREST:
        for dim in dims:
            size, out_size = image.shape[dim], shape[dim]
            at = (jnp.arange(out_size, dtype=np.float32) + 0.5) * size / out_size
            image = jnp.take(image, jnp.floor(at).astype(np.int32), dim)
        return image
    [image] = promote_args_inexact("resize", image)
    scale = [1.0 if shape[d] == 0 else shape[d] / image.shape[d] for d in dims]
    scales = jnp.asarray(scale, np.float32)
    shifts = jnp.zeros(len(dims), np.float32)
    return _apply(image, shape, dims, scales, shifts, method, antialias, precision)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """An image of another size.

    Args:
      image: an array of any rank; integers become floats, but for "nearest".
      shape: the result's; dimensions of the same size are left alone.
      method: "nearest", "linear", "cubic", "cubic-pytorch" (another kernel without
        `antialias`), "lanczos3", "lanczos5" or "area" (the mean of what a new pixel
        covers), or a ResizeMethod.
      antialias: when an image shrinks, each new pixel is made of all old ones below it.
      precision: of the products.

    Raises:
      ValueError: the ranks differ, or the method is unknown.
    """
    method = _method(method, antialias)
    shape = canonicalize_shape(shape)
    return _resize(jnp.asarray(image), shape, method, antialias, precision)
