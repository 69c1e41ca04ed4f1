"""`scaled_dot`: a product of arrays of few bits, with a scale for each block of them.

It is lowered to the composite `xla.scaled_dot`, which compilers for GPUs know. Its
decomposition multiplies the scales in, in bfloat16, and takes the product.

In JAX: `lax/scaled_dot.py`, `scaled_dot_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import arithmetic, dtypes, shaping
from minijax.core.dot import DotDimensionNumbers, dot_general_shape
from minijax.core.language import get_aval
from minijax.core.rules import batch_at_front, standard_primitive
from minijax.primitives.linear.products import dot_general
from minijax.primitives.shape.broadcasting import full
from minijax.primitives.shape.squeezing import expand_dims
from minijax.programs.rare.composites import composite
from minijax.support import element_types


def _shape(lhs, rhs, *scales, dimension_numbers, **_) -> tuple[int, ...]:
    """The shape of the product; a contracted axis has blocks of at least two."""
    shapes = [x.shape for x in (lhs, rhs, *scales)]
    if len({*map(len, shapes)}) > 1:
        raise TypeError(
            "scaled_dot: all input tensors must have the same rank; the shapes of lhs, "
            f"rhs, lhs_scale and rhs_scale are {shapes}."
        )
    product = dot_general_shape(lhs, rhs, dimension_numbers=dimension_numbers)
    contracted = dimension_numbers[0]
    for name, x, scale, axes in zip(("lhs", "rhs"), (lhs, rhs), scales, contracted):
        for axis, (size, parts) in enumerate(zip(x.shape, scale.shape)):
            blocks = axis in axes
            if blocks and (parts == 0 or size % parts or size < 2 * parts):
                raise TypeError(
                    f"scaled_dot: axis {axis} of {name} has {size} entries and {parts} "
                    "scales. It must be divisible by the number of scales, with at "
                    "least two entries for each."
                )
            if not blocks and size != parts:
                raise TypeError(
                    f"scaled_dot: axis {axis} of {name}, which is not contracted, has "
                    f"{size} entries, which does not match the scale's {parts}."
                )
    return product


scaled_dot_p = standard_primitive(
    "scaled_dot",
    _shape,
    lambda *_, preferred_element_type, **__: preferred_element_type,
)
scaled_dot_p.without("jvp", "JAX has none: what has few bits is not differentiated")
scaled_dot_p.without("transpose", "JAX has none: what has few bits is not linear")


@scaled_dot_p.def_batch
def _batch(axis_data, args, dims, *, dimension_numbers, **params) -> Any:
    fronts = [batch_at_front(x, dim, axis_data.size) for x, dim in zip(args, dims)]
    contract, batch = (
        [tuple(axis + 1 for axis in axes) for axes in pair]
        for pair in dimension_numbers
    )
    numbers = (tuple(contract), tuple((0, *axes) for axes in batch))
    return scaled_dot_p.bind(*fronts, dimension_numbers=numbers, **params), 0


def _scaled(x: Any, scale: Any, axes: Sequence[int]) -> Any:
    """`x` times its scales, each repeated over its block, in bfloat16."""
    for axis in axes:
        *before, parts = scale.shape[: axis + 1]
        after, block = scale.shape[axis + 1 :], x.shape[axis] // parts
        if block > 1:
            scale = expand_dims(scale, (axis + 1,))
            repeated = (*before, parts, block, *after)
            scale = shaping.broadcast_in_dim(scale, repeated, range(len(repeated)))
            scale = shaping.reshape(scale, (*before, parts * block, *after))
    narrow = (shaping.convert_element_type(y, dtypes.bfloat16) for y in (x, scale))
    return arithmetic.mul(*narrow)


def _decomposition(lhs, rhs, *scales, dimension_numbers, preferred_element_type) -> Any:
    contracted = dimension_numbers[0]
    factors = map(_scaled, (lhs, rhs), scales, contracted)
    return dot_general(*factors, dimension_numbers, None, preferred_element_type)


@scaled_dot_p.def_lowering
def _lowering(ctx, *operands, **params) -> list[Any]:
    return ctx.lower_fun(
        composite(_decomposition, "xla.scaled_dot"), *operands, **params
    )


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
      TypeError: shapes that do not fit.
      NotImplementedError: when it is differentiated; JAX has no derivative either.
    """
    rank = get_aval(lhs).ndim
    if dimension_numbers is None:
        if rank < 2:
            raise TypeError(
                "scaled_dot does not support operands of rank 0 and 1 without "
                "dimension_numbers."
            )
        axes = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (axes, axes))
    scales = []
    for x, scale, contract in zip(
        (lhs, rhs), (lhs_scale, rhs_scale), dimension_numbers[0]
    ):
        if scale is None:
            shape = get_aval(x).shape
            few = [1 if axis in contract else size for axis, size in enumerate(shape)]
            ones = full(few, 1, dtypes.bfloat16)
            scale = shaping.convert_element_type(ones, element_types.float8_e8m0fnu)
        scales.append(scale)
    if preferred_element_type is None:
        preferred_element_type = dtypes.bfloat16
    return scaled_dot_p.bind(
        lhs,
        rhs,
        *scales,
        dimension_numbers=dimension_numbers,
        preferred_element_type=element_types.check_and_canonicalize_user_dtype(
            preferred_element_type, "scaled_dot"
        ),
    )
