"""Dtype and shape: convert_element_type, broadcast_in_dim, reshape, transpose.

These primitives compute little; XLA mostly fuses them into the operations that read the
result. All are linear, and their transposes are similar: convert back, reshape back,
permute back; the transpose of repetition sums the copies.

While a program is traced, a conversion or repetition that changes nothing adds no
equation, and a conversion of a scalar constant gives another constant.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes, hlo, language, rules
from .array import Array, put
from .language import (
    Literal,
    ShapedArray,
    canonicalize_shape,
    get_aval,
    numpy_scalar,
    physical_aval,
)
from .rules import def_linear, is_linear, moveaxis, standard_primitive, zero_tangent_of

Shape = tuple[int, ...]


def shape_of(x) -> Shape:
    """The shape of an operand."""
    return get_aval(x).shape


def check_sizes(name: str, shape: Sequence[int]) -> None:
    """TypeError when a size is negative."""
    if any(size < 0 for size in shape):
        raise TypeError(
            f"{name} shape must have every element be nonnegative, got {tuple(shape)}."
        )


def _same_dtype(x: ShapedArray, **params) -> Any:
    return x.dtype


# ----------------------------------------------------------------------------------
# stage: a constant becomes a value of the current trace
# ----------------------------------------------------------------------------------

stage_p = rules.unary("stage", rules.anything, lambda x: x, lambda ctx, x: x)
def_linear(stage_p, lambda ct, x: [ct])
stage_p.staging = lambda trace, args, params: trace.lift(args[0])


@stage_p.def_impl
def _stage_now(x):
    if isinstance(x, Array):
        return x
    aval = get_aval(x)
    return put(np.asarray(x, aval.dtype), aval)


def stage(x, /) -> Any:
    """A constant as a value of the current trace; outside of all traces, an Array."""
    return stage_p.bind(x)


# ----------------------------------------------------------------------------------
# convert_element_type
# ----------------------------------------------------------------------------------


def _convert_meaning(x, new_dtype, weak_type, sharding):
    if np.iscomplexobj(x) and not np.issubdtype(new_dtype, np.complexfloating):
        x = x.real
    return x.astype(new_dtype)


convert_element_type_p = standard_primitive(
    "convert_element_type",
    lambda x, **_: x.shape,
    lambda x, *, new_dtype, **_: new_dtype,
    weak_type_rule=lambda x, *, weak_type, **_: weak_type,
    meaning=_convert_meaning,
)
convert_element_type_p.pretty = lambda params: {
    name: value for name, value in params.items() if name != "sharding"
}
convert_element_type_p.batch = rules.elementwise_batch(convert_element_type_p)


def _convert_jvp(t, out, x, *, new_dtype, **params):
    if not dtypes.has_tangents(new_dtype):
        return zero_tangent_of(out)
    return convert_element_type_p.bind(t, new_dtype=new_dtype, **params)


rules.def_jvp_with_output(convert_element_type_p, _convert_jvp)


@convert_element_type_p.def_transpose
def _convert_transpose(ct, x, **params):
    if not is_linear(x) or dtypes.is_float0(x.dtype):
        return [None]
    back = dict(new_dtype=x.dtype, weak_type=x.aval.weak_type, sharding=None)
    return [convert_element_type_p.bind(ct, **back)]


@convert_element_type_p.def_lowering
def _convert_lowering(ctx, x, **params):
    (aval_in,), (aval_out,) = ctx.avals_in, ctx.avals_out
    source, target = aval_in.dtype, aval_out.dtype
    to_complex = dtypes.issubdtype(target, np.complexfloating)
    if dtypes.issubdtype(source, np.complexfloating) and not to_complex:
        x = hlo.stablehlo.real(x)
        source = np.finfo(source).dtype
    if source == target:
        return x
    if target == np.bool_:
        # StableHLO's conversion would drop bits; every nonzero value is true.
        zeros = ctx.full_like(0, ShapedArray(aval_in.shape, source))
        return compare(x, zeros, "NE", source)
    return hlo.stablehlo.convert(ctx.result_type(), x)


def compare(x, y, direction: str, dtype, float_kind: str = "FLOAT") -> Any:
    """The StableHLO comparison ("EQ", "LT", ...) of values with elements of `dtype`."""
    kind = "UNSIGNED"
    if dtypes.issubdtype(dtype, np.inexact):
        kind = float_kind
    elif dtypes.issubdtype(dtype, np.signedinteger):
        kind = "SIGNED"
    return hlo.stablehlo.compare(
        x,
        y,
        hlo.stablehlo.ComparisonDirectionAttr.get(direction),
        compare_type=hlo.stablehlo.ComparisonTypeAttr.get(kind),
    )


def _convert_staging(trace, args, params):
    """Add no equation for a conversion of a scalar constant or to the same type."""
    x = trace.lift(args[0])
    dtype, weak = params["new_dtype"], params["weak_type"]
    if not isinstance(x.aval, ShapedArray) or dtypes.is_float0(dtype):
        return NotImplemented
    if type(x.atom) is Literal:
        value = np.asarray(x.atom.val, x.aval.dtype)
        if value.dtype != dtype:
            with np.errstate(all="ignore"):
                value = _convert_meaning(value, dtype, weak, None)
        aval = ShapedArray((), dtype, weak)
        return type(x)(trace, aval, Literal(numpy_scalar(value, dtype, weak), aval))
    same = x.aval.dtype == dtype and x.aval.weak_type == weak
    return x if same and params["sharding"] is None else NotImplemented


convert_element_type_p.staging = _convert_staging


@convert_element_type_p.def_impl
def _convert_now(x, **params):
    """A number that has the dtype already is only copied, without a program."""
    new_dtype = params["new_dtype"]
    if not isinstance(x, Array) and get_aval(x).dtype == new_dtype:
        aval = ShapedArray(np.shape(x), new_dtype, params["weak_type"])
        return put(np.asarray(x, new_dtype), aval)
    return language.run_eagerly.run(convert_element_type_p, (x,), params)


def convert_element_type(operand, new_dtype) -> Any:
    """Elementwise cast, as a C++ `static_cast` does it; not weakly typed."""
    return convert_element_type_to(operand, dtypes.dtype(new_dtype))


def convert_element_type_to(
    operand,
    new_dtype=None,
    weak_type: bool = False,
    sharding=None,
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
    if dtypes.is_extended(new_dtype) or dtypes.is_extended(old_dtype):
        if new_dtype is None or new_dtype == old_dtype:
            return operand
        raise ValueError(
            f"Cannot convert_element_type from {old_dtype.name} to "
            f"{new_dtype.name}. Convert keys with "
            "`minijax.random.key_data` and `minijax.random.wrap_key_data`."
        )
    old_weak = dtypes.is_weak_node(type(operand))
    if not old_weak:
        old_weak = getattr(getattr(operand, "aval", None), "weak_type", False)
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
        operand = numpy_scalar(np.asarray(operand).astype(new_dtype), new_dtype)
    elif isinstance(operand, (bool, int, float, complex, np.generic)):
        if old_dtype == new_dtype and old_weak == weak_type:
            return stage(operand)
        if not weak_type and _numpy_converts(operand, new_dtype):
            try:
                return stage(numpy_scalar(operand, new_dtype))
            except OverflowError:
                pass
    return convert_element_type_p.bind(
        operand, new_dtype=new_dtype, weak_type=weak_type, sharding=sharding
    )


def _numpy_converts(scalar, dtype) -> bool:
    """Whether NumPy can convert a scalar to `dtype`; not inf to an integer."""
    if dtypes.is_float0(dtype):
        return False
    if not dtypes.issubdtype(dtype, np.integer):
        return True
    return not isinstance(scalar, (float, complex, np.inexact)) or np.isfinite(scalar)


# ----------------------------------------------------------------------------------
# broadcast_in_dim
# ----------------------------------------------------------------------------------


def _broadcast_shape(x, *, shape, broadcast_dimensions, sharding):
    check_sizes("broadcast_in_dim", shape)
    dims = broadcast_dimensions
    if x.ndim != len(dims):
        fault = "broadcast_dimensions must have length equal to operand ndim"
    elif len(shape) < x.ndim:
        fault = (
            "target broadcast shape must have equal or higher rank to the operand shape"
        )
    elif not all(0 <= dim < len(shape) for dim in dims):
        fault = "broadcast_dimensions must be a subset of output dimensions"
    elif any(size not in (1, shape[dim]) for size, dim in zip(x.shape, dims)):
        fault = (
            "operand dimension sizes must either be 1, or be equal to their "
            "corresponding dimensions in the target broadcast shape"
        )
    elif len(set(dims)) != len(dims):
        fault = "broadcast_dimensions must not contain duplicates"
    else:
        return shape
    raise TypeError(
        f"broadcast_in_dim {fault}; got operand of shape {x.shape}, target broadcast "
        f"shape {shape}, broadcast_dimensions {dims}."
    )


def _broadcast_meaning(x, shape, broadcast_dimensions, sharding):
    order = np.argsort(broadcast_dimensions)
    spread = [1] * len(shape)
    for axis, dim in enumerate(broadcast_dimensions):
        spread[dim] = x.shape[axis]
    return np.broadcast_to(np.transpose(x, order).reshape(spread), shape)


broadcast_in_dim_p = rules.broadcast_in_dim_p
broadcast_in_dim_p.meaning = _broadcast_meaning
broadcast_in_dim_p.type_rule = rules.standard_type_rule(
    "broadcast_in_dim", _broadcast_shape, _same_dtype
)


def _broadcast_pretty(params):
    """Print only parameters that are not trivial; the result's type has the shape."""
    dims = params["broadcast_dimensions"]
    return {"broadcast_dimensions": dims} if dims else {}


broadcast_in_dim_p.pretty = _broadcast_pretty


def _broadcast_transpose(ct, x, *, shape, broadcast_dimensions, sharding):
    """Sum over the repeated axes."""
    if not is_linear(x):
        return [None]
    units, repeated = _repeated_axes(x.shape, len(shape), broadcast_dimensions)
    total = rules.sum_over(ct, repeated, None if units else x.aval.cut)
    kept = [axis for axis in range(x.ndim) if axis not in units]
    return [broadcast_in_dim(total, x.shape, kept) if units else total]


@functools.lru_cache(maxsize=1024)
def _repeated_axes(x_shape: Shape, rank: int, dimensions: Shape) -> tuple[list, Shape]:
    """(operand's axes of size 1, result's axes along which it was repeated)."""
    units = [axis for axis, size in enumerate(x_shape) if size == 1]
    kept = [d for axis, d in enumerate(dimensions) if axis not in units]
    return units, tuple(axis for axis in range(rank) if axis not in kept)


def_linear(broadcast_in_dim_p, _broadcast_transpose)


@broadcast_in_dim_p.def_batch
def _broadcast_batch(axis_data, args, dims, *, shape, broadcast_dimensions, sharding):
    x = moveaxis(args[0], dims[0], 0)
    new_dims = (0, *(1 + d for d in broadcast_dimensions))
    cut = sharding and sharding.with_batch_axis(0, axis_data.cut)
    return broadcast_in_dim(x, (axis_data.size, *shape), new_dims, out_sharding=cut), 0


@broadcast_in_dim_p.def_lowering
def _broadcast_lowering(ctx, x, *, shape, broadcast_dimensions, sharding):
    return ctx.broadcast_in_dim(x, ctx.avals_in[0], shape, broadcast_dimensions)


def _broadcast_staging(trace, args, params):
    """Add no equation if nothing is repeated or moved."""
    shape = params["shape"]
    if get_aval(args[0]).shape != shape or params["sharding"] is not None:
        return NotImplemented
    in_order = params["broadcast_dimensions"] == tuple(range(len(shape)))
    return trace.lift(args[0]) if in_order else NotImplemented


broadcast_in_dim_p.staging = _broadcast_staging


def broadcast_in_dim(
    operand,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding=None,
) -> Any:
    """`operand` repeated to `shape`, its axis `i` becoming `broadcast_dimensions[i]`.

    Args:
      operand: an array; each axis has size 1 or that of its place in `shape`.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the operand, its place in the result.

    Raises:
      TypeError: when a size differs or `broadcast_dimensions` is not as above.
    """
    rank = get_aval(operand).ndim
    if rank == len(shape) and not len(broadcast_dimensions) and out_sharding is None:
        if isinstance(operand, Array):
            return operand
    return broadcast_in_dim_p.bind(
        operand,
        shape=canonicalize_shape(shape),
        broadcast_dimensions=tuple(operator.index(d) for d in broadcast_dimensions),
        sharding=rules.final_sharding(out_sharding, "broadcast_in_dim"),
    )


def filled_like(x, value: int | float | bool) -> Any:
    """An array of the type of `x`, weak if `x` is, with every entry `value`."""
    aval: Any = get_aval(x)
    scalar = rules.scalar_like(aval, value)
    if aval.shape:
        return broadcast_in_dim_p.bind(
            scalar, shape=aval.shape, broadcast_dimensions=(), sharding=aval.cut
        )
    return convert_element_type_to(scalar, aval.dtype, aval.weak_type)


# ----------------------------------------------------------------------------------
# reshape
# ----------------------------------------------------------------------------------


def _reshape_shape(x, *, new_sizes, dimensions, sharding):
    if any(size < 0 for size in new_sizes):
        raise TypeError(
            f"reshape new_sizes must all be positive, got {new_sizes}. Use "
            "`minijax.numpy.reshape` to have a size of -1 computed."
        )
    if math.prod(new_sizes) != x.size:
        raise ValueError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (total "
            f"size {math.prod(new_sizes)}) for shape {x.shape} (total size {x.size})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            "reshape dimensions must be a permutation of operand dimensions, got "
            f"dimensions {dimensions} for shape {x.shape}."
        )
    return new_sizes


reshape_p = standard_primitive(
    "reshape",
    _reshape_shape,
    _same_dtype,
    meaning=lambda x, new_sizes, dimensions, sharding: np.reshape(
        x if dimensions is None else np.transpose(x, dimensions), new_sizes
    ),
)


def _reshape_transpose(ct, x, *, new_sizes, dimensions, sharding):
    if dimensions is None:
        return [reshape(ct, x.shape, out_sharding=x.aval.cut)]
    permuted = reshape(ct, tuple(x.shape[d] for d in dimensions))
    return [transpose(permuted, np.argsort(dimensions))]


def_linear(reshape_p, _reshape_transpose)


@reshape_p.def_batch
def _reshape_batch(axis_data, args, dims, *, new_sizes, dimensions, sharding):
    x = moveaxis(args[0], dims[0], 0)
    if dimensions is not None:
        dimensions = (0, *(1 + d for d in dimensions))
    cut = sharding and sharding.with_batch_axis(0, axis_data.cut)
    return reshape(x, (axis_data.size, *new_sizes), dimensions, out_sharding=cut), 0


@reshape_p.def_lowering
def _reshape_lowering(ctx, x, *, new_sizes, dimensions, sharding):
    if dimensions is not None:
        x = hlo.stablehlo.transpose(x, _with_trailing(ctx.avals_in[0], dimensions))
    return hlo.stablehlo.reshape(ctx.result_type(), x)


def _with_trailing(aval: ShapedArray, permutation: Sequence[int]) -> Any:
    """A permutation as an attribute; the axes of an extended dtype's bits stay last."""
    trailing = range(aval.ndim, physical_aval(aval).ndim)
    return hlo.int_array([*permutation, *trailing])


def reshape(
    operand,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding=None,
) -> Any:
    """The same entries, in row-major order, in an array of another shape.

    Args:
      operand: an array.
      new_sizes: the new shape, of the same total size.
      dimensions: the order in which to read the operand's axes, if not their own.

    Raises:
      TypeError: when a size is negative or `dimensions` is not a permutation.
      ValueError: when the total size differs.
    """
    new_sizes = canonicalize_shape(new_sizes)
    shape = shape_of(operand)
    if dimensions is not None:
        dimensions = tuple(operator.index(d) for d in dimensions)
        if dimensions == tuple(range(len(shape))):
            dimensions = None
    unchanged = shape == new_sizes and dimensions is None and out_sharding is None
    if shape and unchanged and isinstance(operand, Array):
        return operand
    cut = rules.final_sharding(out_sharding, "reshape")
    return reshape_p.bind(
        operand, new_sizes=new_sizes, dimensions=dimensions, sharding=cut
    )


# ----------------------------------------------------------------------------------
# transpose
# ----------------------------------------------------------------------------------


def _transpose_shape(x, *, permutation):
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got "
            f"permutation {permutation} for operand shape {x.shape}."
        )
    return tuple(x.shape[axis] for axis in permutation)


transpose_p = rules.transpose_p
transpose_p.meaning = lambda x, permutation: np.transpose(x, permutation)
transpose_p.type_rule = rules.standard_type_rule(
    "transpose", _transpose_shape, _same_dtype
)
def_linear(
    transpose_p, lambda ct, x, *, permutation: [transpose(ct, np.argsort(permutation))]
)


@transpose_p.def_batch
def _transpose_batch(axis_data, args, dims, *, permutation):
    (x,), (dim,) = args, dims
    return transpose(x, (dim, *(axis + (axis >= dim) for axis in permutation))), 0


@transpose_p.def_lowering
def _transpose_lowering(ctx, x, *, permutation):
    return hlo.stablehlo.transpose(x, _with_trailing(ctx.avals_in[0], permutation))


def transpose(operand, permutation: Sequence[int] | np.ndarray) -> Any:
    """`operand` with its axes in another order: axis `permutation[i]` comes at `i`.

    Raises:
      TypeError: when `permutation` does not name each axis once.
    """
    permutation = tuple(operator.index(axis) for axis in permutation)
    in_order = permutation == tuple(range(get_aval(operand).ndim))
    if in_order and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=permutation)
