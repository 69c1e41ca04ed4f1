"""`scaled_dot`: a product of arrays of few bits, with a scale for each block of them.

It is lowered to the composite `xla.scaled_dot`, which compilers for GPUs know. Its
decomposition multiplies the scales in, in bfloat16, and takes the product.

In JAX: `lax/scaled_dot.py`, `scaled_dot_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import arithmetic, dtypes, shaping
from minijax.core.dot import DotDimensionNumbers, dot_general_shape, make_room
from minijax.core.language import get_aval
from minijax.core.rules import standard_primitive
from minijax.primitives.families import all_at_front, lower_fun
from minijax.primitives.linear.products import checked_numbers, dot_general
from minijax.primitives.shape.broadcasting import full
from minijax.programs.rare.composites import composite
from minijax.support.element_types import (
    check_and_canonicalize_user_dtype,
    float8_e8m0fnu,
)


def _shape(lhs, rhs, *scales, dimension_numbers, **_) -> tuple[int, ...]:
    """The shape of the product, if each scale is for one entry or for a block."""
    numbers: Any = {"dimension_numbers": dimension_numbers, "name": "scaled_dot"}
    shape = dot_general_shape(lhs, rhs, **numbers)
    for name, x, scale, axes in zip("lr", (lhs, rhs), scales, dimension_numbers[0]):
        fits = x.ndim == scale.ndim == lhs.ndim and all(
            0 < parts < size and size % parts == 0 if axis in axes else size == parts
            for axis, (size, parts) in enumerate(zip(x.shape, scale.shape))
        )
        if not fits:
            raise TypeError(
                f"scaled_dot: {name}hs_scale is {scale.str_short()}, for {name}hs of "
                f"type {x.str_short()}. It must have the rank of lhs, {lhs.ndim}, and "
                f"the sizes of {name}hs, but along the contracted axes {axes}: each "
                f"size there must divide that of {name}hs, by two or more."
            )
    return shape


scaled_dot_p = standard_primitive(
    "scaled_dot",
    _shape,
    lambda *_, preferred_element_type, **__: preferred_element_type,
)
scaled_dot_p.without("jvp transpose", "JAX has none either")


@scaled_dot_p.def_batch
def _batch(axis_data, args, dims, *, dimension_numbers, **params) -> Any:
    fronts = all_at_front(axis_data, args, dims)
    contract, batch = (
        tuple(make_room(axes, 0) for axes in pair) for pair in dimension_numbers
    )
    numbers = (contract, tuple((0, *axes) for axes in batch))
    return scaled_dot_p.bind(*fronts, dimension_numbers=numbers, **params), 0


def _scaled(x: Any, scale: Any, contracted: Sequence[int]) -> Any:
    """`x` times its scales, each repeated over its block, in bfloat16."""
    for axis in contracted:
        before, after = scale.shape[: axis + 1], scale.shape[axis + 1 :]
        blocks = (*before, x.shape[axis] // scale.shape[axis], *after)
        kept = [place for place in range(len(blocks)) if place != axis + 1]
        scale = shaping.broadcast_in_dim(scale, blocks, kept)
        scale = shaping.reshape(scale, (*before[:-1], x.shape[axis], *after))
    narrow = (shaping.convert_element_type(y, dtypes.bfloat16) for y in (x, scale))
    return arithmetic.mul(*narrow)


def _decomposition(lhs, rhs, *scales, dimension_numbers, preferred_element_type) -> Any:
    left, right = map(_scaled, (lhs, rhs), scales, dimension_numbers[0])
    types: Any = {"preferred_element_type": preferred_element_type}
    return dot_general(left, right, dimension_numbers, **types)


scaled_dot_p.def_lowering(lower_fun(composite(_decomposition, "xla.scaled_dot")))


def _ones(x: Any, contracted: Sequence[int]) -> Any:
    """One scale, 1, for all that is contracted."""
    shape = get_aval(x).shape
    few = [1 if axis in contracted else size for axis, size in enumerate(shape)]
    return shaping.convert_element_type(full(few, 1, dtypes.bfloat16), float8_e8m0fnu)


def _checked_dtype(dtype: Any) -> Any:
    try:
        return check_and_canonicalize_user_dtype(dtype, "scaled_dot")
    except TypeError as error:
        raise TypeError(f"scaled_dot: preferred_element_type: {error}") from None


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of `lhs * lhs_scale` and `rhs * rhs_scale`.

    Args:
      lhs, rhs: arrays of one rank, at least 2, often of 8 bits.
      lhs_scale, rhs_scale: of the same rank. A contracted axis may have fewer entries:
        each counts for a block of two or more. By default all scales are 1.
      dimension_numbers: as of `dot_general`; by default a matrix product over the last
        two axes, the others being batch axes.
      preferred_element_type: of the result; bfloat16 by default.

    Raises:
      TypeError: shapes that do not fit, or what is no dtype.
      TypeError or ValueError: dimension_numbers of another form, as in JAX.
      NotImplementedError: when it is differentiated; JAX has no derivative either.
    """
    if dimension_numbers is None:
        rank = get_aval(lhs).ndim
        if rank < 2:
            short = get_aval(lhs).str_short()
            raise TypeError(f"scaled_dot: lhs is {short}: pass dimension_numbers.")
        axes = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (axes, axes))
    dimension_numbers = checked_numbers("scaled_dot", dimension_numbers, tuple)
    left, right = dimension_numbers[0]
    dtype = preferred_element_type or dtypes.bfloat16
    return scaled_dot_p.bind(
        lhs,
        rhs,
        _ones(lhs, left) if lhs_scale is None else lhs_scale,
        _ones(rhs, right) if rhs_scale is None else rhs_scale,
        dimension_numbers=dimension_numbers,
        preferred_element_type=_checked_dtype(dtype),
    )
