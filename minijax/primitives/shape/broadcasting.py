"""Repeating and filling: broadcast, broadcast_to, full, iota, empty.

In a program, an array of equal entries is a scalar and a `broadcast_in_dim`; it takes
no memory before something reads it.

In JAX: `lax/lax.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend import buffer_copies, hlo_parts
from minijax.core import arithmetic as elementwise
from minijax.core import dtypes, hlo, rules, shaping
from minijax.core.array import Array, put, wrap_as
from minijax.core.avals import shaped_abstractify
from minijax.core.language import (
    Primitive,
    ShapedArray,
    Tracer,
    canonicalize_shape,
    eval_trace,
    get_aval,
    physical_aval,
    register,
    type_extensions,
    type_of_application,
)
from minijax.core.rules import final_sharding
from minijax.core.state import state
from minijax.primitives import families
from minijax.primitives.parallel.device_moves import device_put_p
from minijax.primitives.shape.casting import asarray
from minijax.support import element_types
from minijax.support.devices.shardings import NamedSharding, Sharding
from minijax.values.concrete import concrete_or_error
from minijax.values.ref_avals import ShapeDtypeStruct

# ----------------------------------------------------------------------------------
# Repeating
# ----------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """`operand` repeated along new leading axes: shape `(*sizes, *operand.shape)`."""
    if len(sizes) == 0 and out_sharding is None:
        return asarray(operand)
    shape = shaping.shape_of(operand)
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return shaping.broadcast_in_dim(
        operand, (*sizes, *shape), dims, out_sharding=out_sharding
    )


def broadcast_to(operand: Any, shape: Sequence[int], sharding: Any = None) -> Any:
    """`operand` repeated to `shape` by NumPy's rules: axes are matched from the back.

    Raises:
      ValueError: when the shapes do not fit.
    """
    old, shape = shaping.shape_of(operand), canonicalize_shape(shape)
    if old == shape and sharding in (None, get_aval(operand).cut):
        return asarray(operand)
    if len(shape) < len(old):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={old} "
            f"shape={shape}. Use `reshape` or a reduction to remove dimensions."
        )
    lead = len(shape) - len(old)
    if any(a not in (1, b) for a, b in zip(old, shape[lead:])):
        raise ValueError(
            "Incompatible types for broadcasting: input type="
            f"{get_aval(operand).str_short(True)} and requested shape {shape}. Sizes, "
            "matched from the back, must be equal or 1."
        )
    dims = tuple(range(lead, len(shape)))
    return shaping.broadcast_in_dim(operand, shape, dims, out_sharding=sharding)


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` repeated to the shape of another array, as `broadcast_to` does it."""
    like = get_aval(like_arr)
    return broadcast_to(arr, like.shape, like.cut)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """`x` with leading axes of size 1 up to `rank` axes."""
    ndim = get_aval(x).ndim
    return asarray(x) if ndim == rank else broadcast(x, (1,) * (rank - ndim))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape to which these shapes broadcast, by NumPy's rules.

    Raises:
      TypeError: when a size is negative or no whole number, or no shape is given.
      ValueError: when the shapes do not fit.
    """
    if not shapes:
        raise TypeError("broadcast_shapes: At least one shape is required.")
    return _broadcast_shapes(*map(canonicalize_shape, shapes))


@functools.lru_cache(maxsize=1024)
def _broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    for shape in shapes:
        if any(size < 0 for size in shape):
            raise TypeError(
                "Only non-negative indices are allowed when broadcasting static "
                f"shapes, but got shape {shape}."
            )
    rank = max(len(shape) for shape in shapes)
    result = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes)):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={list(shapes)}. Sizes, "
                "matched from the back, must be equal or 1."
            )
        result.append(others.pop() if others else 1)
    return tuple(result)


# ----------------------------------------------------------------------------------
# Filling arrays
# ----------------------------------------------------------------------------------


def full(
    shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None
) -> Any:
    """An array with every entry `fill_value`.

    Args:
      shape: its shape.
      fill_value: a scalar.
      dtype: its dtype; by default that of the value, weakly typed if the value is.
      sharding: the device on which to make it, as a sharding; while a program is
        traced only one of a mesh with Explicit axes is used.

    Raises:
      TypeError: when `fill_value` is not a scalar, or `sharding` not a sharding.
      ValueError: when `sharding` cannot cut the shape evenly.
    """
    shape = canonicalize_shape(shape)
    if shaping.shape_of(fill_value):
        raise TypeError(
            "full must be called with scalar fill_value, got fill_value.shape "
            f"{shaping.shape_of(fill_value)}. Use `lax.broadcast` to repeat an array."
        )
    if isinstance(dtype, element_types.PRNGKeyDType):
        return dtype.full(shape, fill_value)
    weak = dtype is None and element_types.is_weakly_typed(fill_value)
    if dtype is None:
        dtype = dtypes.dtype(fill_value)
    else:
        dtype = element_types.check_and_canonicalize_user_dtype(dtype, "full")
    value = shaping.convert_element_type_to(fill_value, dtype, weak)
    of_mesh = isinstance(sharding, NamedSharding)
    if sharding is None or (of_mesh and sharding.mesh.empty):
        return broadcast(value, shape)
    if not isinstance(sharding, Sharding) or (of_mesh and not sharding._is_concrete):
        return broadcast(value, shape, out_sharding=final_sharding(sharding, "full"))
    cut = sharding if of_mesh and sharding.mesh.explicit_axes else None
    if isinstance(value, Tracer) or state.trace is not eval_trace:
        return broadcast(value, shape, out_sharding=cut)
    aval = get_aval(value).update(shape=shape, weak_type=False)  # as in JAX
    where = {"devices": (sharding,), "srcs": (None,), "copy_semantics": (None,)}
    [[aval], _] = type_of_application(device_put_p, (aval,), where)
    return _full_on(aval, value, sharding)


def _full_on(aval: ShapedArray, value: Any, sharding: Any) -> Any:
    """An array of equal entries, lying as a sharding says."""
    devices, shape = tuple(sharding.device_set), aval.shape
    entry = value._value if type(value) is Array else np.asarray(value)
    if len(devices) == 1:
        return put(np.broadcast_to(entry, shape), aval, devices[0])
    owned = len(sharding._internal_device_list.addressable_device_list)
    part = np.full(sharding.shard_shape(shape), entry)
    buffer = buffer_copies.put_shards([part] * owned, physical_aval(aval), sharding)
    return wrap_as(buffer, aval, sharding)


def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    sharding: Any = None,
) -> Any:
    """An array like `x` (in shape, dtype and weak type) with every entry `fill_value`.

    `x` is anything with a shape and a dtype; `dtype` and `shape` override its own.
    Where an array `x` is committed to devices, the new one lies on them, too; inside
    `shard_map` it varies over the mesh axes over which `x` does.
    """
    if dtype is shape is sharding is None and isinstance(x, Tracer):
        if type(fill_value) in _fast_fills and not dtypes.is_extended(x.aval.dtype):
            return _varying_like(x, shaping.filled_like(x, fill_value))
    new_shape = _shape_like(x) if shape is None else canonicalize_shape(shape)
    weak = dtype is None and element_types.is_weakly_typed(x)
    dtype = dtypes.dtype(x if dtype is None else dtype)
    if isinstance(dtype, element_types.PRNGKeyDType):
        return dtype.full(new_shape, fill_value)
    value = shaping.convert_element_type_to(fill_value, dtype, weak)
    if sharding is None and shape is None and isinstance(x, Tracer):
        sharding = x.aval.cut
    elif sharding is None and type(x) is Array and not weak and x.committed:
        fits = new_shape == x.shape or x.sharding.is_fully_replicated
        sharding = x.sharding if fits else None
    return _varying_like(x, full(new_shape, value, sharding=sharding))


# Rules fill arrays with these all the time: a literal, and no conversion.
_fast_fills = (int, float, bool)


def _varying_like(x: Any, filled: Any) -> Any:
    """The array, varying over the mesh axes over which a tracer or struct does."""
    if state.auto_pcast and isinstance(x, (Tracer, ShapeDtypeStruct)):
        aval = shaped_abstractify(x)
        for extension in type_extensions.values():
            filled = extension.zeros(aval, filled)
    return filled


def _shape_like(x: Any) -> tuple[int, ...]:
    shape = getattr(x, "shape", None)
    return shaping.shape_of(x) if shape is None else tuple(shape)


# ----------------------------------------------------------------------------------
# iota
# ----------------------------------------------------------------------------------

iota_p = register(Primitive("iota"))


def _iota_meaning(dtype, shape, dimension: int, sharding) -> Any:
    spread = [1] * len(shape)
    spread[dimension] = shape[dimension]
    numbers = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(numbers.reshape(spread), shape)


iota_p.meaning = _iota_meaning


@iota_p.def_abstract_eval
def _iota_type(*, dtype, shape, dimension: int, sharding) -> ShapedArray:
    shaping.check_sizes("iota", shape)
    rules.check_accepted("iota", "", rules.numbers, dtype)
    if not 0 <= dimension < len(shape):
        raise ValueError(
            "iota dimension must be between 0 and len(shape), got "
            f"dimension={dimension} for shape={shape}"
        )
    return ShapedArray(shape, dtype)


families.without_operands(iota_p)


@iota_p.def_lowering
def _iota_lowering(ctx, *, dimension: int, **params) -> Any:
    return hlo.stablehlo.iota(ctx.result_type(), hlo_parts.int_attribute(dimension))


def iota(dtype: Any, size: int) -> Any:
    """The numbers 0, 1, ... below `size`, as a vector of a numeric dtype."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Any:
    """An array in which each entry is its own index along one axis.

    Args:
      dtype: a numeric dtype.
      shape: the shape of the result.
      dimension: the axis along which the entries count from 0.

    Raises:
      TypeError: when the dtype is not numeric or the shape no shape.
      ValueError: when there is no such axis.
    """
    dtype = element_types.check_and_canonicalize_user_dtype(dtype, "broadcasted_iota")
    dimension = concrete_or_error(
        int, dimension, "dimension argument of lax.broadcasted_iota"
    )
    return iota_p.bind(
        dtype=dtype,
        shape=canonicalize_shape(shape),
        dimension=dimension,
        sharding=final_sharding(out_sharding, "iota"),
    )


def identity_matrix(size: int, dtype: Any) -> Any:
    """The square matrix with ones on its diagonal, as `minijax.numpy.eye` makes it."""
    dtype = element_types.check_and_canonicalize_user_dtype(dtype, "eye")
    index = dtypes.canonicalize_dtype(np.dtype(int))
    rows = broadcasted_iota(index, (size, size), 0)
    columns = broadcasted_iota(index, (size, size), 1)
    on_diagonal = elementwise.eq(elementwise.add(rows, index.type(0)), columns)
    return shaping.convert_element_type_to(on_diagonal, dtype, False)


# ----------------------------------------------------------------------------------
# empty
# ----------------------------------------------------------------------------------

empty_p = register(Primitive("empty"))
empty_p.meaning = lambda shape, dtype, out_sharding: np.zeros(shape, dtype)
empty_p.def_abstract_eval(
    lambda *, shape, dtype, out_sharding: ShapedArray(shape, dtype)
)
families.without_operands(empty_p)


@empty_p.def_lowering
def _empty_lowering(ctx, **params) -> Any:
    return ctx.full_like(0, physical_aval(ctx.avals_out[0]))


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array whose entries are not set; here they are zeros.

    `shape` is a whole number or a sequence of them.
    """
    sizes = (shape,) if np.ndim(shape) == 0 else shape
    return empty_p.bind(
        shape=canonicalize_shape(sizes),
        dtype=element_types.check_and_canonicalize_user_dtype(dtype, "empty"),
        out_sharding=final_sharding(out_sharding, "empty"),
    )


# ----------------------------------------------------------------------------------
# empty2: the entry of arrays that loops and branches fill
# ----------------------------------------------------------------------------------

empty2_p = register(Primitive("empty2"))
empty2_p.meaning = lambda dtype, memory_space: np.zeros((), dtype)
empty2_p.def_abstract_eval(
    lambda *, dtype, memory_space: ShapedArray((), dtype, memory_space=memory_space)
)
families.without_operands(empty2_p)
empty2_p.def_lowering(_empty_lowering)
empty2_p.pretty = lambda params: {
    **params,
    "memory_space": params["memory_space"] or "MemorySpace.Device",
}


def empty_of(aval: ShapedArray) -> Any:
    """An array of a given type whose entries are not set; here they are zeros."""
    entry = empty2_p.bind(dtype=aval.dtype, memory_space=aval.memory_space)
    if aval.shape:
        entry = broadcast(entry, aval.shape, out_sharding=aval.cut)
    for extension in rules.type_extensions.values():
        entry = extension.zeros(aval, entry)
    return entry
