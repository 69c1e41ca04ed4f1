"""Reductions over some axes: the family, and sums.

A reduction starts from the neutral element of its operation, which is therefore the
result over an axis of size 0. The other reductions are in `reductions.py`.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import hlo, rules
from .language import Primitive, ShapedArray
from .shaping import Shape, broadcast_in_dim

# ----------------------------------------------------------------------------------
# The family
# ----------------------------------------------------------------------------------


def zero(dtype) -> np.ndarray:
    """The neutral element of sums, `or` and `xor`."""
    return np.zeros((), dtype)


def _reduced_shape(x: ShapedArray, *, axes: Shape, **params) -> Shape:
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= axis < x.ndim for axis in axes):
        raise ValueError(
            f"reduction axes {axes} contains out-of-bounds indices for "
            f"{x.str_short(True)}."
        )
    return tuple(size for axis, size in enumerate(x.shape) if axis not in axes)


def _lowering(combine: str | Callable, neutral: Callable) -> Callable:
    """A StableHLO reduction whose body is one operation on scalars."""

    def lower(ctx, x, *, axes, **params):
        dtype = ctx.avals_out[0].dtype
        reduce = hlo.stablehlo.ReduceOp(
            [ctx.result_type()],
            [x],
            [ctx.constant(neutral(dtype))],
            hlo.int_array(axes),
        )
        scalar = hlo.tensor_type((), dtype)
        body = reduce.regions[0].blocks.append(scalar, scalar)
        with hlo.ir.InsertionPoint(body):
            if callable(combine):
                hlo.stablehlo.return_([combine(dtype, *body.arguments)])
            else:
                hlo.stablehlo.return_(
                    [getattr(hlo.stablehlo, combine)(*body.arguments)]
                )
        return reduce.result

    return lower


def reduction(
    primitive: Primitive,
    combine: str | Callable,
    neutral: Callable,
    meaning: Callable,
    accepted: set = rules.anything,
    keeps_weak_type: bool = True,
) -> Primitive:
    """Make `primitive` a reduction of one operand over `axes`; returns it.

    `combine` is the name of an operation of StableHLO, or `(dtype, x, y) -> value`, and
    `neutral(dtype)` is its neutral element.

    In JAX: `lax/lax.py`, `_unary_reduce_lower` and the `standard_primitive`s beside it.
    """

    def dtype_rule(x, **params):
        if accepted is not rules.anything:
            rules.check_accepted(primitive.name, "", accepted, x.dtype)
        return x.dtype

    primitive.meaning = meaning
    primitive.type_rule = rules.standard_type_rule(
        primitive.name,
        _reduced_shape,
        dtype_rule,
        weak_type_rule=None if keeps_weak_type else lambda x, **_: False,
    )
    primitive.batch = rules.reduction_batch(primitive)
    primitive.def_lowering(_lowering(combine, neutral))
    return primitive


# ----------------------------------------------------------------------------------
# Sums
# ----------------------------------------------------------------------------------

reduce_sum_p = reduction(
    rules.reduce_sum_p,
    "add",
    zero,
    lambda x, axes, out_sharding: np.sum(x, axis=axes, dtype=x.dtype),
    {np.number},
)


def _reduce_sum_transpose(ct, x, *, axes, out_sharding):
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    return [broadcast_in_dim(ct, x.shape, kept, out_sharding=x.aval.cut)]


rules.def_linear(reduce_sum_p, _reduce_sum_transpose)


def reduce_sum(operand, axes: Sequence[int], *, out_sharding=None) -> Any:
    """The sum of the entries along `axes`, in the operand's dtype.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are not numbers.
    """
    cut = rules.final_sharding(out_sharding, "reduce_sum")
    return reduce_sum_p.bind(operand, axes=tuple(axes), out_sharding=cut)
