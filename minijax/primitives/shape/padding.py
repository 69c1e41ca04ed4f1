"""pad: a value around and between the entries of an array.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import hlo, rules, sums
from minijax.core.language import Primitive, ShapedArray, get_aval, register
from minijax.core.rules import Shape, def_linear, is_linear, not_mapped, scalar_like
from minijax.core.shaping import broadcast_in_dim
from minijax.primitives.shape.broadcasting import broadcast, full_like

# Its block is in `slicing.py`; padding and slicing are each other's transposes.
slice_p = register(Primitive("slice"))


def _padded_size(size: int, low: int, high: int, interior: int) -> int:
    return low + high + size + max(size - 1, 0) * interior


def _pad_shape(x: ShapedArray, padding_value: ShapedArray, *, padding_config) -> Shape:
    if padding_value.ndim:
        raise ValueError(
            "padding_value must be a scalar; got np.shape(padding_value)="
            f"{padding_value.shape}"
        )
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got "
            f"padding_config {padding_config} for operand shape {x.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            "interior padding in padding_config must be nonnegative, got "
            f"padding_config {padding_config}"
        )
    result = tuple(
        _padded_size(size, *config) for size, config in zip(x.shape, padding_config)
    )
    if any(size < 0 for size in result):
        raise ValueError(
            "Dimension size after padding is not at least 0, got result shape "
            f"{result}, for padding_config {padding_config} and operand shape {x.shape}"
        )
    return result


def _pad_dtype(x: ShapedArray, padding_value: ShapedArray, **_) -> Any:
    if x.dtype != padding_value.dtype:
        names = [aval.dtype.name for aval in (x, padding_value)]
        raise TypeError(
            "pad operand and padding_value must be same dtype: got "
            f"{names[0]} and {names[1]}."
        )
    return x.dtype


def _pad_meaning(x, padding_value, padding_config) -> Any:
    """Spread the entries out, put borders around, cut negative borders off."""
    gaps = [interior for _, _, interior in padding_config]
    spread = tuple(_padded_size(n, 0, 0, gap) for n, gap in zip(x.shape, gaps))
    out = np.full(spread, padding_value, x.dtype)
    out[tuple(slice(None, None, gap + 1) for gap in gaps)] = x
    borders = [(max(low, 0), max(high, 0)) for low, high, _ in padding_config]
    out = np.pad(out, borders, constant_values=padding_value)
    return out[
        tuple(
            slice(max(-low, 0), size - max(-high, 0))
            for size, (low, high, _) in zip(out.shape, padding_config)
        )
    ]


pad_p = rules.standard_primitive("pad", _pad_shape, _pad_dtype, meaning=_pad_meaning)


def _pad_transpose(ct, x, padding_value, *, padding_config) -> list:
    """The operand's part is what stands at its places, the value's is all the rest."""
    unpad = [(-low, -high, 0) for low, high, _ in padding_config]
    inner = pad(ct, scalar_like(get_aval(ct).strip_weak_type(), 0), unpad)
    at_entries = slice_p.bind(
        inner,
        start_indices=(0,) * len(unpad),
        limit_indices=get_aval(inner).shape,
        strides=tuple(interior + 1 for _, _, interior in padding_config),
    )
    if not is_linear(padding_value):
        return [at_entries, None]
    axes = tuple(range(len(padding_config)))
    rest = elementwise.sub(sums.reduce_sum(ct, axes), sums.reduce_sum(at_entries, axes))
    return [at_entries if is_linear(x) else None, rest]


def_linear(pad_p, _pad_transpose)


@pad_p.def_batch
def _pad_batch(axis_data, args, dims, *, padding_config) -> Any:
    (x, padding_value), (dim, value_dim) = args, dims
    if dim is not_mapped:
        dim = 0
        x = broadcast(x, (axis_data.size,))
    config = (*padding_config[:dim], (0, 0, 0), *padding_config[dim:])
    if value_dim is not_mapped:
        return pad(x, padding_value, config), dim
    # A value for each example: pad with anything, and put the values there.
    padded = pad(x, scalar_like(get_aval(x), 0), config)
    is_entry = pad(full_like(x, True, np.bool_), False, config)
    values = broadcast_in_dim(padding_value, get_aval(padded).shape, (dim,))
    return elementwise.select(is_entry, padded, values), dim


@pad_p.def_lowering
def _pad_lowering(ctx, x, padding_value, *, padding_config) -> Any:
    low, high, interior = ([c[k] for c in padding_config] for k in range(3))
    return hlo.stablehlo.pad(
        x,
        padding_value,
        hlo.int_array(low),
        hlo.int_array(high),
        hlo.int_array(interior),
    )


def pad(
    operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]
) -> Any:
    """`operand` with a value before, behind and between its entries.

    Args:
      operand: an array.
      padding_value: a scalar of its dtype.
      padding_config: for each axis `(low, high, interior)`: how many times the value
        comes before the first entry, behind the last, and between neighbours. Negative
        `low` and `high` cut entries off.

    Raises:
      ValueError: when the numbers do not fit the operand.
      TypeError: when the dtypes differ.
    """
    try:
        config = tuple(
            (operator.index(low), operator.index(high), operator.index(interior))
            for low, high, interior in padding_config
        )
    except (TypeError, ValueError) as error:
        raise type(error)(
            "pad: padding_config must have three ints (low, high, interior) for each "
            f"axis of operand, got {padding_config!r}."
        ) from None
    return pad_p.bind(operand, padding_value, padding_config=config)
