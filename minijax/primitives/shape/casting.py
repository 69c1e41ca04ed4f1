"""Conversions of values, bits and precision: asarray, bitcast_convert_type,
reduce_precision.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.core import dtypes, hlo, rules
from minijax.core.array import Array
from minijax.core.language import ShapedArray, get_aval
from minijax.core.rules import Shape
from minijax.core.shaping import convert_element_type_to
from minijax.primitives.shape.squeezing import index_of
from minijax.support import element_types


def asarray(x: Any) -> Any:
    """`x` as an Array or tracer, with the type that it has as an operand.

    Raises TypeError for what no primitive takes.
    """
    if isinstance(x, Array):
        return x
    weak = type(x) in (int, float, complex)
    if weak or isinstance(x, (bool, np.ndarray, np.generic)):
        return convert_element_type_to(x, weak_type=weak)
    if hasattr(x, "__jax_array__"):
        return asarray(x.__jax_array__())
    raise TypeError(
        f"expected an array or a number, got {x!r} of type {type(x).__name__}. "
        "Convert lists with `minijax.numpy.array`."
    )


# ----------------------------------------------------------------------------------
# bitcast_convert_type
# ----------------------------------------------------------------------------------


def _bitcast_shape(x: ShapedArray, *, new_dtype) -> Shape:
    old_bits = element_types.itemsize_bits(x.dtype)
    new_bits = element_types.itemsize_bits(new_dtype)
    if old_bits == new_bits:
        return x.shape
    if old_bits > new_bits:
        return (*x.shape, old_bits // new_bits)
    last = x.shape[-1] if x.shape else 1
    if last * old_bits != new_bits:
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype} of size "
            f"{old_bits} bits to {new_dtype} of size {new_bits} bits, but {last} * "
            f"{old_bits} != {new_bits}. The last axis must hold the bits of one entry."
        )
    return x.shape[:-1]


def _bitcast_dtype(x: ShapedArray, *, new_dtype) -> Any:
    for dtype in (x.dtype, new_dtype):
        no_bits = dtype == np.bool_ or dtypes.issubdtype(dtype, np.complexfloating)
        if no_bits and x.dtype != new_dtype:
            raise TypeError(
                "lax.bitcast_convert_type does not support bool or complex values "
                "unless the operand and destination types match. Got operand "
                f"dtype={x.dtype}, new_dtype={new_dtype}. Use `x.view(dtype)` instead."
            )
    return new_dtype


def _bitcast_meaning(x, new_dtype) -> Any:
    aval = ShapedArray(x.shape, x.dtype)
    shape = _bitcast_shape(aval, new_dtype=new_dtype)
    return np.ascontiguousarray(x).view(new_dtype).reshape(shape)


bitcast_convert_type_p = rules.standard_primitive(
    "bitcast_convert_type",
    _bitcast_shape,
    _bitcast_dtype,
    weak_type_rule=lambda x, **_: False,
    meaning=_bitcast_meaning,
)
rules.def_zero_jvp(bitcast_convert_type_p)


@bitcast_convert_type_p.def_batch
def _bitcast_batch(axis_data, args, dims, *, new_dtype) -> Any:
    (x,), (dim,) = args, dims
    aval = get_aval(x)
    wider = element_types.itemsize_bits(new_dtype) > element_types.itemsize_bits(
        aval.dtype
    )
    if wider and dim == aval.ndim - 1:  # the last axis goes: it must be the operand's
        x, dim = rules.moveaxis(x, dim, 0), 0
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), dim


@bitcast_convert_type_p.def_lowering
def _bitcast_lowering(ctx, x, *, new_dtype) -> Any:
    return hlo.stablehlo.bitcast_convert(ctx.result_type(), x)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The operand's bits read as another dtype.

    Args:
      operand: an array of numbers.
      new_dtype: the dtype to read. If its entries are narrower, the result has one more
        axis, over the parts of each entry; if they are wider, the operand's last axis
        holds the parts of each entry and goes.

    Raises:
      TypeError: to or from booleans and complex numbers.
      ValueError: when the last axis does not hold the bits of one entry.
    """
    dtype = element_types.check_and_canonicalize_user_dtype(
        new_dtype, "bitcast_convert_type"
    )
    return bitcast_convert_type_p.bind(operand, new_dtype=dtype)


# ----------------------------------------------------------------------------------
# reduce_precision
# ----------------------------------------------------------------------------------


def _reduce_precision_shape(x: ShapedArray, *, exponent_bits, mantissa_bits) -> Shape:
    if exponent_bits < 1:
        raise ValueError(
            f"reduce_precision: exponent_bits must be positive; got {exponent_bits}"
        )
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    return x.shape


def _reduce_precision_dtype(x: ShapedArray, **_) -> Any:
    rules.check_accepted("reduce_precision", "", rules.floats, x.dtype)
    return x.dtype


def _reduce_precision_meaning(x, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round the mantissa to even, then cut off what the exponent cannot hold."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    steps = 2.0 ** (mantissa_bits + 1)
    rounded = np.ldexp(np.round(mantissa * steps) / steps, exponent)
    bias = 2 ** (exponent_bits - 1) - 1
    largest = (2 - 2.0**-mantissa_bits) * 2.0**bias
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, x), rounded)
    smallest = 2.0 ** (1 - bias)
    rounded = np.where(np.abs(rounded) < smallest, np.copysign(0, x), rounded)
    return rounded.astype(x.dtype)


reduce_precision_p = rules.standard_primitive(
    "reduce_precision",
    _reduce_precision_shape,
    _reduce_precision_dtype,
    meaning=_reduce_precision_meaning,
)
reduce_precision_p.batch = rules.elementwise_batch(reduce_precision_p)
rules.def_linear(
    reduce_precision_p, lambda ct, x, **params: [reduce_precision_p.bind(ct, **params)]
)


@reduce_precision_p.def_lowering
def _reduce_precision_lowering(ctx, x, *, exponent_bits: int, mantissa_bits: int):
    return hlo.stablehlo.reduce_precision(
        x,
        hlo_parts.int_attribute(exponent_bits, 32),
        hlo_parts.int_attribute(mantissa_bits, 32),
    )


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Floats rounded to what a format with fewer bits can hold, in their own dtype.

    Values beyond the largest become infinite, those below the smallest normal zero.

    Raises:
      ValueError: when `exponent_bits` is not positive or `mantissa_bits` negative.
      TypeError: when the operand's entries are no floats.
    """
    return reduce_precision_p.bind(
        operand,
        exponent_bits=index_of(exponent_bits, "exponent_bits"),
        mantissa_bits=index_of(mantissa_bits, "mantissa_bits"),
    )


def convert_element_type(operand, new_dtype) -> Any:
    """Elementwise cast, as a C++ `static_cast` does it.

    Args:
      operand: an array or scalar.
      new_dtype: the dtype of the result; 64-bit dtypes become 32-bit ones outside x64
        mode. Complex to real keeps the real part, with a warning.

    Returns:
      An array of the operand's shape; the operand itself if it has that dtype and no
      weak type.

    Raises:
      TypeError: if `new_dtype` is not a dtype of arrays.
      ValueError: between two extended dtypes, such as those of random keys.
    """
    dtype = element_types.check_and_canonicalize_user_dtype(
        new_dtype, "convert_element_type"
    )
    return convert_element_type_to(operand, dtype, weak_type=False)
