"""The checks with which every sampler begins.

Samplers come in pairs. The public one checks its arguments and settles shape and dtype;
the private one (`_normal`) does the arithmetic under `jit` with shape and dtype static,
so that each sampler is one compiled program. That is needed for speed and for equality
to the last bit: XLA contracts `x * scale + low` into one rounding only when it sees
both operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minijax import lax
from minijax.core import dtypes, language, rules
from minijax.support import element_types
from minijax.typing import ArrayLike, DTypeLike

# What a user may write, and what it is made into: a part of cache keys.
Shape = Sequence[int]
StaticShape = tuple[int, ...]

# `scalar_like(x, 2)` is a literal of x's dtype when printed.
scalar_like = rules.constant_like


def sampler_dtype(default: type, dtype: DTypeLike | None) -> np.dtype:
    """Returns the dtype asked for, or the default one for `default` (float, int)."""
    return element_types.check_and_canonicalize_user_dtype(
        default if dtype is None else dtype
    )


def any_dtype(name: str, dtype: DTypeLike | None) -> np.dtype:
    """As `sampler_dtype`: the default float, or any dtype that is asked for."""
    return sampler_dtype(float, dtype)


def float_dtype(name: str, dtype: DTypeLike | None) -> np.dtype:
    """As `sampler_dtype`, for samplers that give floats.

    Raises:
        ValueError: `dtype` is not a float dtype.
    """
    checked = sampler_dtype(float, dtype)
    if not dtypes.issubdtype(checked, np.floating):
        raise ValueError(
            f"dtype argument to `{name}` must be a float dtype, got {dtype}"
        )
    return checked


def inexact_dtype(name: str, dtype: DTypeLike | None) -> np.dtype:
    """As `float_dtype`, for samplers that draw complex numbers too."""
    checked = sampler_dtype(float, dtype)
    if not dtypes.issubdtype(checked, np.inexact):
        raise ValueError(
            f"dtype argument to `{name}` must be a float or complex dtype, got "
            f"{checked}"
        )
    return checked


def canonical_shape(shape: Shape | int) -> tuple[int, ...]:
    """Returns `shape` as a tuple of Python integers; a number n is (n,).

    Raises:
        TypeError: it has another form, or is traced.
    """
    return language.canonicalize_shape((shape,) if isinstance(shape, int) else shape)


def optional_shape(
    name: str, shape: Shape | None, *parameters: ArrayLike
) -> tuple[int, ...] | None:
    """Returns `shape` as a tuple of Python integers; None stays None."""
    return None if shape is None else canonical_shape(shape)


def shape_as_given(name: str, shape: Shape, *parameters: ArrayLike) -> tuple[int, ...]:
    """Returns `shape` as a tuple of Python integers, whatever the parameters are."""
    return canonical_shape(shape)


def check_shape(name: str, shape: Shape, *parameter_shapes: Shape) -> None:
    """Checks that parameters of these shapes broadcast to exactly `shape`.

    Raises:
        ValueError: they do not.
    """
    if not parameter_shapes:
        return
    result = lax.broadcast_shapes(shape, *parameter_shapes)
    if tuple(shape) != result:
        raise ValueError(
            f"{name} parameter shapes must be broadcast-compatible with shape "
            "argument, and the result of broadcasting the shapes must equal the shape "
            f"argument, but got result {result} for shape argument {shape}."
        )


def broadcast_shape(
    name: str, shape: Shape | None, *parameters: ArrayLike
) -> tuple[int, ...]:
    """Returns the result's shape: as asked, or what the parameters broadcast to."""
    shapes = [np.shape(parameter) for parameter in parameters]
    if shape is None:
        return tuple(lax.broadcast_shapes(*shapes))
    canonical = canonical_shape(shape)
    check_shape(name, canonical, *shapes)
    return canonical


def check_safe_to_cast(name: str, dtype: np.dtype, *parameters: ArrayLike) -> None:
    """Checks that no parameter would lose digits when cast to the sampler's dtype.

    Raises:
        TypePromotionError: one would.
    """
    for parameter in parameters:
        if not element_types.safe_to_cast(parameter, dtype):
            raise dtypes.TypePromotionError(
                f"In arguments to {name}, cannot safely cast argument of type "
                f"{dtypes.dtype(parameter)} to {dtype}; ask for a wider dtype."
            )
