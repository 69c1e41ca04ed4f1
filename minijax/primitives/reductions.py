"""Reductions: one value for each line of entries along some axes.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import rules
from minijax.backend import hlo
from minijax.core import ShapedArray
from minijax.primitives import shaping


def _reduced_shape(x: ShapedArray, *, axes: Any, **_: Any) -> tuple[int, ...]:
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= axis < x.ndim for axis in axes):
        raise ValueError(
            f"reduction axes {axes} contains out-of-bounds indices for "
            f"{x.str_short(True)}."
        )
    return tuple(size for axis, size in enumerate(x.shape) if axis not in axes)


def _number_dtype(x: ShapedArray, **_: Any) -> Any:
    rules.check_accepted("reduce_sum", "", {np.number}, x.dtype)
    return x.dtype


reduce_sum_p = rules.standard_primitive(
    "reduce_sum",
    _reduced_shape,
    _number_dtype,
    meaning=lambda x, axes, out_sharding: np.sum(x, axis=axes, dtype=x.dtype),
)
reduce_sum_p.batch = rules.reduction_batch(reduce_sum_p)


def _reduce_sum_transpose(ct: Any, x: Any, *, axes: Any, out_sharding: Any) -> list:
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    return [shaping.broadcast_in_dim(ct, x.shape, kept)]


rules.def_linear(reduce_sum_p, _reduce_sum_transpose)


@reduce_sum_p.def_lowering
def _reduce_sum_lowering(ctx: Any, x: Any, *, axes: Any, out_sharding: Any) -> Any:
    (aval,) = ctx.avals_out
    zero = ctx.constant(np.zeros((), aval.dtype))
    reduce = hlo.stablehlo.ReduceOp(
        [ctx.result_type()], [x], [zero], hlo.int_array(axes)
    )
    scalar = hlo.tensor_type((), aval.dtype)
    body = reduce.regions[0].blocks.append(scalar, scalar)
    with hlo.ir.InsertionPoint(body):
        hlo.stablehlo.return_([hlo.stablehlo.add(*body.arguments)])
    return reduce.result


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The sum of the entries along `axes`, in the operand's dtype.

    Raises:
      ValueError: when an axis is named twice or does not exist.
      TypeError: when the entries are no numbers.
    """
    return reduce_sum_p.bind(operand, axes=tuple(axes), out_sharding=out_sharding)
