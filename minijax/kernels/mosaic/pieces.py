"""Operations of a kernel on a TPU that put pieces together, and find entries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import arithmetic as elementwise
from minijax.core import hlo, shaping
from minijax.core.language import ShapedArray
from minijax.kernels.kernel_rules import RuleContext
from minijax.kernels.mosaic.kernel_context import repeated, rule, value_type
from minijax.kernels.mosaic.shapes import reshaped
from minijax.primitives.reduce import reductions

_float32 = np.dtype(np.float32)


def _joined(values: Sequence[Any], axis: int) -> Any:
    if len(values) == 1:
        return values[0]
    return dialect("tpu").concatenate(list(values), dimension=axis)


@rule("concatenate")
def _concatenate(ctx: RuleContext, *values: Any, dimension: int) -> Any:
    return _joined(values, dimension)


@rule("stack")
def _stack(ctx: RuleContext, *values: Any, axis: int) -> Any:
    """Pieces with one axis more, of size 1, joined along it."""
    shape = list(ctx.avals_out[0].shape)
    shape[axis] = 1
    rows = [reshaped(x, aval, shape) for x, aval in zip(values, ctx.avals_in)]
    return _joined(rows, axis)


def _piece(x: Any, aval: ShapedArray, axis: int, start: int) -> Any:
    """The part of `x` of a type, from `start` on along an axis."""
    vector, ones = dialect("vector"), [1] * aval.ndim
    starts = [start if other == axis else 0 for other in range(aval.ndim)]
    kind = value_type(aval)
    return vector.extract_strided_slice(kind, x, starts, list(aval.shape), ones)


@rule("split")
def _split(ctx: RuleContext, x: Any, *, sizes: Sequence[int], axis: int) -> list[Any]:
    starts = itertools.accumulate(sizes, initial=0)
    return [_piece(x, aval, axis, at) for aval, at in zip(ctx.avals_out, starts)]


@rule("unstack")
def _unstack(ctx: RuleContext, x: Any, *, axis: int) -> list[Any]:
    (aval,) = ctx.avals_in
    row = list(aval.shape)
    row[axis] = 1
    one = aval.update(shape=tuple(row), sharding=None)
    return [
        reshaped(_piece(x, one, axis, number), one, result.shape)
        for number, result in enumerate(ctx.avals_out)
    ]


@rule("tile")
def _tile(ctx: RuleContext, x: Any, *, reps: Sequence[int]) -> Any:
    """The whole, joined with itself along one axis after another."""
    (aval,) = ctx.avals_in
    added = len(reps) - len(aval.shape)
    x = reshaped(x, aval, (1,) * added + aval.shape)
    for axis, times in enumerate(reps):
        x = _joined([x] * times, axis)
    return x


@rule("pad")
def _pad(ctx: RuleContext, x: Any, filler: Any, *, padding_config: Any) -> Any:
    aval, scalar = ctx.avals_in
    shape = list(aval.shape)
    for axis, (low, high, inside) in enumerate(padding_config):
        if inside or low < 0 or high < 0:
            raise NotImplementedError(
                "padding between entries, or less than none; only both ends grow."
            )
        ends = []
        for size in (low, high):
            part = [*shape[:axis], size, *shape[axis + 1 :]]
            ends.append(repeated(filler, scalar, part) if size else None)
        parts = [end for end in (ends[0], x, ends[1]) if end is not None]
        x = _joined(parts, axis)
        shape[axis] += low + high
    return x


# ----------------------------------------------------------------------------------
# Finding entries
# ----------------------------------------------------------------------------------


@rule("argmax", "argmin")
def _arg_reduce(
    ctx: RuleContext, x: Any, *, axes: Sequence[int], index_dtype: Any
) -> Any:
    aval, result = ctx.avals_in[0], ctx.avals_out[0]
    if aval.dtype != np.float32 or np.dtype(index_dtype) != np.int32:
        raise NotImplementedError(
            f"the place of an entry of {aval.dtype} as {index_dtype}; a TPU finds "
            "those of float32, as int32."
        )
    (axis,) = axes
    kind = "arg_max" if ctx.eqn.primitive.name == "argmax" else "arg_min"
    attribute = hlo.ir.Attribute.parse(f"#tpu.reduction_kind<{kind}>")
    # A TPU's registers have two axes.
    rows = (1,) * max(0, 2 - len(aval.shape))
    x = reshaped(x, aval, rows + aval.shape)
    found = result.update(shape=rows + result.shape, sharding=None)
    places = dialect("tpu").reduce_index(
        value_type(found), x, axis + len(rows), attribute
    )
    return reshaped(places, found, result.shape)


@rule("reduce_or", "reduce_and")
def _reduce_bools(ctx: RuleContext, x: Any, *, axes: Sequence[int], **_: Any) -> Any:
    """Mosaic reduces numbers: the largest of ones and zeros, or the smallest."""
    if ctx.avals_in[0].dtype != np.dtype(bool):
        raise NotImplementedError("a reduction of bits; convert to bools: `x != 0`.")
    is_or = ctx.eqn.primitive.name == "reduce_or"

    def function(x: Any) -> Any:
        numbers = shaping.convert_element_type(x, _float32)
        reduce = reductions.reduce_max if is_or else reductions.reduce_min
        reduced = reduce(numbers, axes)
        return elementwise.gt(reduced, shaping.filled_like(reduced, 0))

    return ctx.lower_fun(function, x)
