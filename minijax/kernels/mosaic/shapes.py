"""Operations of a kernel on a TPU that arrange elements: repeat, reshape, transpose.

A scalar and a vector of one element are different things there: an axis more than none
makes a vector of a scalar, and none makes a scalar of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import hlo
from minijax.core.language import ShapedArray
from minijax.kernels.kernel_rules import RuleContext, kind_of
from minijax.kernels.mosaic.kernel_context import (
    dense,
    repeated,
    rule,
    value_type,
    vector_shaped,
)


def reshaped(value: Any, aval: ShapedArray, shape: Sequence[int]) -> Any:
    """A value of type `aval` with the same elements in another shape."""
    vector = dialect("vector")
    if tuple(shape) == aval.shape:
        return value
    if not shape:
        return vector.extract(value, [], [0] * len(aval.shape))
    if not aval.shape:
        return vector.broadcast(value_type(aval.update(shape=tuple(shape))), value)
    return vector_shaped(value, aval, shape)


@rule("reshape")
def _reshape(ctx: RuleContext, x: Any, *, dimensions: Any, **_: Any) -> Any:
    if dimensions is not None:
        raise NotImplementedError("reshape with `dimensions`; transpose first.")
    return reshaped(x, ctx.avals_in[0], ctx.avals_out[0].shape)


@rule("squeeze")
def _squeeze(ctx: RuleContext, x: Any, **_: Any) -> Any:
    return reshaped(x, ctx.avals_in[0], ctx.avals_out[0].shape)


@rule("broadcast_in_dim")
def _broadcast_in_dim(
    ctx: RuleContext, x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any
) -> Any:
    """First the axes that are new as axes of 1, then all repeated."""
    aval = ctx.avals_in[0]
    if not aval.shape:
        return repeated(x, aval, shape)
    placed = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        placed[place] = aval.shape[axis]
    x = reshaped(x, aval, placed)
    return repeated(x, aval.update(shape=tuple(placed), sharding=None), shape)


@rule("transpose")
def _transpose(ctx: RuleContext, x: Any, *, permutation: Sequence[int]) -> Any:
    target = value_type(ctx.avals_out[0])
    return dialect("tpu").transpose(target, x, list(permutation))


@rule("iota")
def _iota(ctx: RuleContext, *, shape: Any, dimension: int, **_: Any) -> Any:
    (aval,) = ctx.avals_out
    tpu, whole = dialect("tpu"), aval.update(dtype=np.dtype(np.int32))
    if len(shape) > 1:
        numbers = tpu.iota(value_type(whole), dimensions=[dimension])
    else:  # a TPU's registers have two axes
        flat = whole.update(shape=(1, *shape))
        numbers = reshaped(tpu.iota(value_type(flat), dimensions=[1]), flat, shape)
    if aval.dtype == np.int32:
        return numbers
    if kind_of(aval.dtype) != "float" or aval.dtype.itemsize != 4:
        raise NotImplementedError(
            f"iota of {aval.dtype}; a TPU has int32 and float32, convert these."
        )
    return dialect("arith").sitofp(value_type(aval), numbers)


@rule("slice")
def _slice(
    ctx: RuleContext, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any
) -> Any:
    if strides is not None and any(step != 1 for step in strides):
        raise NotImplementedError("a slice with steps; read the ref with a stride.")
    sizes = [end - start for start, end in zip(start_indices, limit_indices)]
    ones = [1] * len(sizes)
    vector, target = dialect("vector"), value_type(ctx.avals_out[0])
    return vector.extract_strided_slice(target, x, list(start_indices), sizes, ones)


@rule("reduce_sum", "reduce_max", "reduce_min")
def _reduce(ctx: RuleContext, x: Any, *, axes: Sequence[int], **_: Any) -> Any:
    """A reduction; of all axes, it goes by a vector of one element."""
    (aval,), (result,) = ctx.avals_in, ctx.avals_out
    is_float = np.dtype(aval.dtype).kind not in "iub"
    if not is_float and aval.dtype != np.int32:
        raise NotImplementedError(f"a reduction of {aval.dtype}; convert to int32.")
    name = ctx.eqn.primitive.name
    kind, start = {
        ("reduce_sum", True): ("add", 0.0),
        ("reduce_max", True): ("maximumf", -math.inf),
        ("reduce_min", True): ("minimumf", math.inf),
        ("reduce_sum", False): ("add", 0),
        ("reduce_max", False): ("maxsi", np.iinfo(np.int32).min),
        ("reduce_min", False): ("minsi", np.iinfo(np.int32).max),
    }[name, is_float]
    if result.shape:
        return _reduction(kind, start, x, result, axes)
    # The result is a scalar: a first axis of 1 remains, whose element is taken.
    x = reshaped(x, aval, (1, *aval.shape))
    one = result.update(shape=(1,))
    reduced = _reduction(kind, start, x, one, [axis + 1 for axis in axes])
    high = (1,) * (len(aval.shape) + 1)
    return reshaped(reshaped(reduced, one, high), one.update(shape=high), ())


def _reduction(kind: str, start: Any, x: Any, result: Any, axes: Any) -> Any:
    vector = dialect("vector")
    attribute = hlo.ir.Attribute.parse(f"#vector.kind<{kind}>")
    return vector.multi_reduction(attribute, x, dense(start, result), list(axes))


@rule("dot_general")
def _dot_general(
    ctx: RuleContext,
    x: Any,
    y: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    **_: Any,
) -> Any:
    """A product on the matrix unit, added to zeros."""
    (result,) = ctx.avals_out
    if any(len(aval.shape) < 2 for aval in ctx.avals_in):
        return _dot_with_vector(ctx, x, y, dimension_numbers, precision)
    for aval in ctx.avals_in:
        if np.dtype(aval.dtype).kind == "u":
            raise NotImplementedError(
                f"a product of {aval.dtype}: convert it to signed numbers."
            )
    numbers = _dot_numbers(dimension_numbers, *(a.ndim for a in ctx.avals_in))
    return dialect("tpu").matmul(
        value_type(result),
        x,
        y,
        dense(0, result),
        dimension_numbers=hlo.ir.Attribute.parse(numbers),
        precision=_dot_precision(precision),
        transpose_lhs_hint=False,
    )


def _dot_with_vector(
    ctx: RuleContext, x: Any, y: Any, dimension_numbers: Any, precision: Any
) -> Any:
    """A product with a vector: a matrix of one row, whose axis is taken away again."""
    (x_contracting, y_contracting), (x_batch, y_batch) = dimension_numbers
    (result,) = ctx.avals_out
    if x_batch or y_batch or not result.shape:
        raise NotImplementedError(
            "a product of two arrays of one axis; write `jnp.sum(x * y)`."
        )
    given, axes = [], []
    for value, aval, contracting in zip(
        (x, y), ctx.avals_in, (x_contracting, y_contracting)
    ):
        one_axis = len(aval.shape) == 1
        shape = (1, *aval.shape) if one_axis else aval.shape
        given.append((reshaped(value, aval, shape), aval.update(shape=shape)))
        axes.append(tuple(axis + one_axis for axis in contracting))
    kept = [
        size
        for (_, aval), contracting in zip(given, axes)
        for axis, size in enumerate(aval.shape)
        if axis not in contracting
    ]
    whole = result.update(shape=tuple(kept), sharding=None)
    wider = replace(ctx, avals_in=[aval for _, aval in given], avals_out=[whole])
    product = _dot_general(
        wider,
        *(value for value, _ in given),
        dimension_numbers=(tuple(axes), ((), ())),
        precision=precision,
    )
    return reshaped(product, whole, result.shape)


def _dot_numbers(dimension_numbers: Any, x_ndim: int, y_ndim: int) -> str:
    """Which axes are multiplied, kept, batched, and where the result has them."""
    (x_contracting, y_contracting), (x_batch, y_batch) = dimension_numbers
    x_kept = [a for a in range(x_ndim) if a not in (*x_contracting, *x_batch)]
    y_kept = [a for a in range(y_ndim) if a not in (*y_contracting, *y_batch)]
    order: list[int] = []
    for operand, axes in ((0, x_batch), (0, x_kept), (1, y_kept)):
        for axis in axes:
            order += [operand, axis]
    groups = (x_contracting, y_contracting, x_kept, y_kept, order, x_batch, y_batch)
    inside = ", ".join(str(list(map(int, group))) for group in groups)
    return f"#tpu.dot_dimension_numbers<{inside}>"


def _dot_precision(precision: Any) -> Any:
    names = {str(p).rsplit(".", 1)[-1].upper() for p in precision or ()}
    if names <= {"DEFAULT", "NONE"}:
        return None
    if names == {"HIGHEST"}:
        return hlo.ir.Attribute.parse("#tpu.contract_precision<fp32>")
    raise NotImplementedError(f"precision={precision}; give DEFAULT or HIGHEST.")
