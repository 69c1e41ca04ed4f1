"""The values of a kernel on a GPU: types, constants, repeating.

A value of rank 0 is a scalar of MLIR, one of higher rank a `tensor` whose elements the
threads of a program share. A ref is a `Memory` (`memory.py`).

In JAX: `pallas/triton/lowering.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import dtypes, hlo
from minijax.kernels.kernel_rules import Machine, constant_of


def element_type(dtype: Any) -> Any:
    """The MLIR type of one element; integers have no sign of their own.

    Raises NotImplementedError for dtypes that Triton does not compute with.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise NotImplementedError(
            f"Triton does not compute with {dtype}. Pass the real and the imaginary "
            "part as two arrays."
        )
    if dtypes.issubdtype(dtype, np.integer):
        bits = dtypes.iinfo(dtype).bits
        if bits < 8:
            raise NotImplementedError(f"Triton does not compute with {dtype}; use int8")
        return hlo.ir.IntegerType.get_signless(bits)
    return hlo.element_type(dtype)


def tensor_type(shape: Sequence[int], element: Any) -> Any:
    """The type of a tensor. NotImplementedError if a size is not a power of two."""
    for size in shape:
        if size & (size - 1) or not size:
            raise NotImplementedError(
                f"an array of shape {tuple(shape)}: in a kernel for a GPU each size "
                "must be a power of two. Take larger blocks, and mask the surplus "
                "(`pltriton.load` and `store` with `mask=`)."
            )
    return hlo.ir.RankedTensorType.get(list(shape), element)


def value_type(aval: Any) -> Any:
    """The MLIR type of a value of that type: a scalar, or a tensor."""
    element = element_type(aval.dtype)
    return tensor_type(aval.shape, element) if aval.shape else element


def constant(value: Any, dtype: Any) -> Any:
    """A scalar constant of a dtype."""
    return constant_of(element_type(dtype), value, dtype)


def i32(value: int) -> Any:
    """A scalar constant for places and sizes."""
    return constant(value, np.int32)


def splat(scalar: Any, shape: Sequence[int]) -> Any:
    """A tensor of a shape with one scalar everywhere; the scalar for no shape."""
    if not shape:
        return scalar
    return dialect("tt").splat(tensor_type(shape, scalar.type), scalar)


def filled(value: Any, aval: Any) -> Any:
    """A value of that type with one constant everywhere."""
    return splat(constant(value, aval.dtype), aval.shape)


def element_of(value: Any) -> Any:
    """The MLIR type of a value's elements."""
    kind = value.type
    ranked = isinstance(kind, hlo.ir.RankedTensorType)
    return kind.element_type if ranked else kind


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a value; () for a scalar."""
    kind = value.type
    return tuple(kind.shape) if isinstance(kind, hlo.ir.RankedTensorType) else ()


def expanded(value: Any, shape: Sequence[int]) -> Any:
    """A value repeated to `shape`, of its own rank or, from a scalar, of any."""
    own = shape_of(value)
    if own == tuple(shape):
        return value
    if not own:
        return splat(value, shape)
    return dialect("tt").broadcast(tensor_type(shape, element_of(value)), value)


def placed_at(value: Any, first: int, rank: int) -> Any:
    """A tensor as one of `rank` axes, of which its own are those from `first` on."""
    own = range(first, first + len(shape_of(value)))
    for axis in range(rank):
        if axis not in own:
            value = dialect("tt").expand_dims(value, axis)
    return value


def arange(size: int) -> Any:
    """0, 1, ... as a tensor of int32."""
    kind = tensor_type((size,), hlo.ir.IntegerType.get_signless(32))
    return dialect("tt").make_range(kind, 0, size)


def _repeated(value: Any, aval: Any, shape: Sequence[int]) -> Any:
    """A value repeated to `shape`: from a scalar, or along axes of 1."""
    return expanded(value, shape)


gpu = Machine("a GPU", "Triton", value_type, constant, filled, _repeated)
rule = gpu.rule
