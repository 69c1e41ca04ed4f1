"""Changing how a value is represented: its dtype, its bits, its place in the program.

`convert_element_type` is the cast that everything else uses. In a program that is being
written down it leaves no trace where there is nothing to do: a conversion to the same
type is the argument itself, and a converted scalar constant is another constant.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from minijax.backend import hlo
from minijax.language import core, rules
from minijax.language.array import Array, from_numpy
from minijax.language.concrete import concrete_or_error
from minijax.language.core import Literal, ShapedArray, get_aval
from minijax.language.rules import Zero, is_linear, zero_tangent_of
from minijax.support import dtypes, element_types

_python_scalars = (bool, int, float, complex)


def _literal_tracer(trace: Any, value: Any, aval: ShapedArray) -> Any:
    """A constant of a program that is being written, of a given (maybe weak) type."""
    tracer = trace.lift(value)
    return type(tracer)(trace, aval, Literal(value, aval))


# ----------------------------------------------------------------------------------
# stage: a constant becomes a value of the current trace
# ----------------------------------------------------------------------------------

stage_p = rules.unary("stage", rules.anything, lambda x: x, lambda ctx, x: x)
rules.def_linear(stage_p, lambda ct, x: [ct])
stage_p.staging = lambda trace, args, params: trace.lift(args[0])


@stage_p.def_impl
def _stage_now(x: Any) -> Any:
    if isinstance(x, Array):
        return x
    aval = get_aval(x)
    return from_numpy(np.asarray(x, aval.dtype), aval.weak_type)


def stage(x: Any, /) -> Any:
    """A constant as a value of the current trace; outside of all traces, an Array."""
    return stage_p.bind(x)


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
# convert_element_type
# ----------------------------------------------------------------------------------


def _convert_meaning(x: Any, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
    if np.iscomplexobj(x) and not np.issubdtype(new_dtype, np.complexfloating):
        x = x.real
    return x.astype(new_dtype)


convert_element_type_p = rules.standard_primitive(
    "convert_element_type",
    lambda x, **_: x.shape,
    lambda x, *, new_dtype, **_: new_dtype,
    weak_type_rule=lambda x, *, weak_type, **_: weak_type,
    sharding_rule=lambda x, *, sharding, **_: x.sharding,
    meaning=_convert_meaning,
)
convert_element_type_p.pretty = lambda params: {
    name: value for name, value in params.items() if name != "sharding"
}
convert_element_type_p.batch = rules.elementwise_batch(convert_element_type_p)


def _convert_jvp(t: Any, out: Any, x: Any, *, new_dtype: Any, **params: Any) -> Any:
    if not dtypes.has_tangents(new_dtype):
        return zero_tangent_of(out)
    return convert_element_type_p.bind(t, new_dtype=new_dtype, **params)


rules.def_jvp_with_output(convert_element_type_p, _convert_jvp)


@convert_element_type_p.def_transpose
def _convert_transpose(ct: Any, x: Any, **params: Any) -> list:
    if type(ct) is Zero or not is_linear(x) or dtypes.is_float0(x.dtype):
        return [None]
    weak = x.aval.weak_type
    return [
        convert_element_type_p.bind(
            ct, new_dtype=x.dtype, weak_type=weak, sharding=None
        )
    ]


@convert_element_type_p.def_lowering
def _convert_lowering(ctx: Any, x: Any, **params: Any) -> Any:
    (aval_in,), (aval_out,) = ctx.avals_in, ctx.avals_out
    source, target = aval_in.dtype, aval_out.dtype
    if dtypes.issubdtype(source, np.complexfloating) and not dtypes.issubdtype(
        target, np.complexfloating
    ):
        x = hlo.stablehlo.real(x)
        source = np.finfo(source).dtype
    if source == target:
        return x
    if target == np.bool_:
        # StableHLO would cut the bits off; true is what is not zero.
        aval = ShapedArray(aval_in.shape, source)
        return compare(x, ctx.full_like(0, aval), "NE", source)
    return hlo.stablehlo.convert(ctx.result_type(), x)


def compare(x: Any, y: Any, direction: str, dtype: Any) -> Any:
    """A StableHLO comparison of two values whose elements are of `dtype`."""
    if dtypes.issubdtype(dtype, np.inexact):
        kind = "FLOAT"
    elif dtypes.issubdtype(dtype, np.signedinteger):
        kind = "SIGNED"
    else:
        kind = "UNSIGNED"
    return hlo.stablehlo.compare(
        x,
        y,
        hlo.stablehlo.ComparisonDirectionAttr.get(direction),
        compare_type=hlo.stablehlo.ComparisonTypeAttr.get(kind),
    )


def _convert_staging(trace: Any, args: Any, params: dict[str, Any]) -> Any:
    """Write nothing for a conversion of a scalar constant or to the same type."""
    x = trace.lift(args[0])
    dtype, weak = params["new_dtype"], params["weak_type"]
    if not isinstance(x.aval, ShapedArray) or dtypes.is_float0(dtype):
        return NotImplemented
    if type(x.atom) is Literal:
        value = np.asarray(x.atom.val, x.aval.dtype)
        if value.dtype != dtype:
            with np.errstate(all="ignore"):
                value = _convert_meaning(value, dtype, weak, None)
        return _literal_tracer(trace, value[()], ShapedArray((), dtype, weak))
    same = x.aval.dtype == dtype and x.aval.weak_type == weak
    if same and params["sharding"] is None:
        return x
    return NotImplemented


convert_element_type_p.staging = _convert_staging


@convert_element_type_p.def_impl
def _convert_now(x: Any, **params: Any) -> Any:
    """Scalars that need only be put on the device do not need a program."""
    new_dtype = params["new_dtype"]
    if not isinstance(x, Array) and get_aval(x).dtype == new_dtype:
        return from_numpy(np.asarray(x, new_dtype), params["weak_type"])
    return core.run_eagerly.run(convert_element_type_p, (x,), params)


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Elementwise cast, as a C++ `static_cast` does it.

    Args:
      operand: an array or scalar.
      new_dtype: the dtype of the result; 64-bit dtypes become 32-bit ones outside x64
        mode. Complex to real keeps the real part, with a warning.

    Returns:
      An array of the operand's shape; the operand itself if it has that dtype and no
      weak type.

    Raises:
      TypeError: if `new_dtype` is no dtype of arrays.
      ValueError: between two extended dtypes, such as those of random keys.
    """
    dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "convert_element_type")
    return convert_element_type_to(operand, dtype, weak_type=False)


def convert_element_type_to(
    operand: Any,
    new_dtype: Any = None,
    weak_type: bool = False,
    sharding: Any = None,
    warn_on_complex_to_real_cast: bool = True,
) -> Any:
    """`operand` with a dtype (by default its own) and a weak type (by default none).

    In JAX: `lax/lax.py`, `_convert_element_type`.
    """
    weak_type = bool(weak_type)
    if isinstance(operand, Array):
        aval = operand.aval
        same_dtype = new_dtype is None or new_dtype == aval.dtype
        if same_dtype and aval.weak_type == weak_type and sharding is None:
            return operand
    elif hasattr(operand, "__jax_array__"):
        operand = operand.__jax_array__()
    old_dtype = dtypes.dtype(operand)
    if isinstance(new_dtype, dtypes.ExtendedDType) or isinstance(
        old_dtype, dtypes.ExtendedDType
    ):
        return _convert_extended(operand, old_dtype, new_dtype)
    old_weak = element_types.is_weakly_typed(operand)
    new_dtype = old_dtype if new_dtype is None else np.dtype(new_dtype)
    if (
        warn_on_complex_to_real_cast
        and dtypes.issubdtype(old_dtype, np.complexfloating)
        and not dtypes.issubdtype(new_dtype, np.complexfloating)
    ):
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=3,
        )
    # Python's integers are big: 2 ** 100 fits in a float32 but in no integer dtype.
    if type(operand) is int and not dtypes.is_float0(new_dtype):
        operand = np.asarray(operand).astype(new_dtype)[()]
    elif isinstance(operand, (*_python_scalars, np.generic)):
        if old_dtype == new_dtype and old_weak == weak_type:
            return stage(operand)
        if not weak_type and _numpy_converts(operand, new_dtype):
            try:
                return stage(np.asarray(operand, new_dtype)[()])
            except OverflowError:
                pass
    return convert_element_type_p.bind(
        operand, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding
    )


def _numpy_converts(scalar: Any, dtype: Any) -> bool:
    """Whether NumPy gives the scalar's value in `dtype`: not of inf as an integer."""
    if dtypes.is_float0(dtype):
        return False
    if not dtypes.issubdtype(dtype, np.integer):
        return True
    return not isinstance(scalar, (float, complex, np.inexact)) or np.isfinite(scalar)


def _convert_extended(operand: Any, old_dtype: Any, new_dtype: Any) -> Any:
    """Extended dtypes convert to themselves only."""
    if new_dtype is None or new_dtype == old_dtype:
        return operand
    raise ValueError(
        f"Cannot convert_element_type from {dtypes.dtype_name(old_dtype)} to "
        f"{dtypes.dtype_name(new_dtype)}. Convert keys with `minijax.random.key_data` "
        "and `minijax.random.wrap_key_data`."
    )


# ----------------------------------------------------------------------------------
# bitcast_convert_type
# ----------------------------------------------------------------------------------


def _bitcast_shape(x: ShapedArray, *, new_dtype: Any) -> tuple[int, ...]:
    old_bits = dtypes.itemsize_bits(x.dtype)
    new_bits = dtypes.itemsize_bits(new_dtype)
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


def _bitcast_dtype(x: ShapedArray, *, new_dtype: Any) -> Any:
    for dtype in (x.dtype, new_dtype):
        no_bits = dtype == np.bool_ or dtypes.issubdtype(dtype, np.complexfloating)
        if no_bits and x.dtype != new_dtype:
            raise TypeError(
                "lax.bitcast_convert_type does not support bool or complex values "
                "unless the operand and destination types match. Got operand "
                f"dtype={x.dtype}, new_dtype={new_dtype}. Use `x.view(dtype)` instead."
            )
    return new_dtype


def _bitcast_meaning(x: Any, new_dtype: Any) -> Any:
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
def _bitcast_batch(axis_data: Any, args: Any, dims: Any, *, new_dtype: Any) -> Any:
    (x,), (dim,) = args, dims
    aval = get_aval(x)
    wider = dtypes.itemsize_bits(new_dtype) > dtypes.itemsize_bits(aval.dtype)
    if wider and dim == aval.ndim - 1:  # the last axis goes: it must be the operand's
        x, dim = rules.moveaxis(x, dim, 0), 0
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), dim


@bitcast_convert_type_p.def_lowering
def _bitcast_lowering(ctx: Any, x: Any, *, new_dtype: Any) -> Any:
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
    dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=dtype)


# ----------------------------------------------------------------------------------
# reduce_precision
# ----------------------------------------------------------------------------------


def _reduce_precision_shape(
    x: ShapedArray, *, exponent_bits: int, mantissa_bits: int
) -> tuple[int, ...]:
    if exponent_bits < 1:
        raise ValueError(
            f"reduce_precision: exponent_bits must be positive; got {exponent_bits}"
        )
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    return x.shape


def _reduce_precision_dtype(x: ShapedArray, **_: Any) -> Any:
    rules.check_accepted("reduce_precision", "", rules.floats, x.dtype)
    return x.dtype


def _reduce_precision_meaning(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
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
    sharding_rule=lambda x, **_: x.sharding,
    meaning=_reduce_precision_meaning,
)
reduce_precision_p.batch = rules.elementwise_batch(reduce_precision_p)
rules.def_linear(
    reduce_precision_p, lambda ct, x, **params: [reduce_precision_p.bind(ct, **params)]
)


@reduce_precision_p.def_lowering
def _reduce_precision_lowering(
    ctx: Any, x: Any, *, exponent_bits: int, mantissa_bits: int
) -> Any:
    return hlo.stablehlo.reduce_precision(
        x, hlo.int_attribute(exponent_bits, 32), hlo.int_attribute(mantissa_bits, 32)
    )


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Floats rounded to what a format with fewer bits can hold, in their own dtype.

    Values beyond the largest become infinite, those below the smallest normal zero.

    Raises:
      ValueError: when `exponent_bits` is not positive or `mantissa_bits` negative.
      TypeError: when the operand's entries are no floats.
    """
    exponent_bits = concrete_or_error(
        operator.index, exponent_bits, "exponent_bits argument of lax.reduce_precision"
    )
    mantissa_bits = concrete_or_error(
        operator.index, mantissa_bits, "mantissa_bits argument of lax.reduce_precision"
    )
    return reduce_precision_p.bind(
        operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
    )
