"""The values of a kernel on a TPU: types, constants, memory.

A value of rank 0 is a scalar of MLIR, one of higher rank a `vector`; a ref is a
`Memory`. The rules stand in the other files of this room, a family in each.

In JAX: `pallas/mosaic/lowering.py`, `jaxpr_subcomp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import dtypes, hlo
from minijax.core.language import AbstractValue, ShapedArray
from minijax.kernels.kernel_rules import Machine, constant_of, kind_of
from minijax.kernels.memory_spaces import MemorySpace, TpuMemorySpace
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# Types and constants
# ----------------------------------------------------------------------------------


def element_type(dtype: Any) -> Any:
    """The MLIR type of one element; Mosaic's integers have no sign of their own.

    Raises NotImplementedError for dtypes that a TPU's core does not compute with.
    """
    dtype = np.dtype(dtype)
    if dtype.itemsize > 4 or dtype.kind == "c":
        raise NotImplementedError(
            f"a kernel on a TPU cannot compute with {dtype}: numbers have at most 32 "
            "bits there, and none are complex. Convert with `.astype` outside."
        )
    if dtypes.issubdtype(dtype, np.integer):
        return hlo.ir.IntegerType.get_signless(dtypes.iinfo(dtype).bits)
    return hlo.element_type(dtype)


def value_type(aval: Any) -> Any:
    """The MLIR type of a value of that type: a scalar, or a vector."""
    element = element_type(aval.dtype)
    return hlo.ir.VectorType.get(aval.shape, element) if aval.shape else element


def memory_space(aval: AbstractRef) -> TpuMemorySpace | MemorySpace:
    """Where a ref's memory is; VMEM unless the user said something else."""
    space = aval.memory_space
    if space is None or space is MemorySpace.DEFAULT:
        return TpuMemorySpace.VMEM
    return space


_SPACE_NAMES: dict[Any, str] = {
    TpuMemorySpace.VMEM: "vmem",
    TpuMemorySpace.SMEM: "smem",
    TpuMemorySpace.HBM: "hbm",
    TpuMemorySpace.SEMAPHORE: "semaphore_mem",
    MemorySpace.ANY: "any",
}


def stored_dtype(dtype: Any) -> np.dtype:
    """The dtype in memory: bools are stored as int32."""
    dtype = np.dtype(dtype)
    return np.dtype(np.int32) if dtype == np.dtype(bool) else dtype


def memref_type(shape: Sequence[int], dtype: Any, space: Any) -> Any:
    """The MLIR type of memory in a space of the TPU.

    Raises NotImplementedError for spaces and dtypes that no rule here reaches.
    """
    if space not in _SPACE_NAMES:
        raise NotImplementedError(
            f"memory space {space!r} in a kernel for a TPU: give pltpu.VMEM (vectors) "
            "or pltpu.SMEM (scalars)."
        )
    name = hlo.ir.Attribute.parse(f"#tpu.memory_space<{_SPACE_NAMES[space]}>")
    if space is TpuMemorySpace.SEMAPHORE:
        element = hlo.ir.Type.parse("!tpu.dma_semaphore")
    else:
        element = element_type(stored_dtype(dtype))
    return hlo.ir.MemRefType.get(list(shape), element, memory_space=name)


def constant(value: Any, dtype: Any) -> Any:
    """A scalar constant of a dtype."""
    return constant_of(element_type(dtype), value, dtype)


def index_constant(value: int) -> Any:
    """A constant of MLIR's type `index`, for places in memory."""
    return dialect("arith").constant(hlo.ir.IndexType.get(), value)


def filled(value: Any, aval: Any) -> Any:
    """A value of that type with one constant everywhere."""
    scalar = constant(value, aval.dtype)
    if not aval.shape:
        return scalar
    return dialect("vector").broadcast(value_type(aval), scalar)


def dense(value: Any, aval: Any) -> Any:
    """The same as one constant vector, as Mosaic requires of accumulators."""
    element = element_type(aval.dtype)
    kind = hlo.ir.FloatAttr if kind_of(aval.dtype) == "float" else hlo.ir.IntegerAttr
    given = float(value) if kind_of(aval.dtype) == "float" else int(value)
    attribute = hlo.ir.DenseElementsAttr.get_splat(
        value_type(aval), kind.get(element, given)
    )
    return dialect("arith").constant(value_type(aval), attribute)


# ----------------------------------------------------------------------------------
# Values
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory:
    """A ref in a kernel: a `memref`, and the axes of it that the kernel sees."""

    value: Any
    shape: tuple[int, ...]
    space: Any
    hidden: frozenset[int] = frozenset()


def repeated(value: Any, aval: AbstractValue, shape: Sequence[int]) -> Any:
    """A value of type `aval` repeated to `shape`: from a scalar, or along axes of 1."""
    assert isinstance(aval, ShapedArray)
    if aval.shape == tuple(shape):
        return value
    target = value_type(aval.update(shape=tuple(shape), sharding=None))
    return dialect("vector").broadcast(target, value)


def vector_shaped(value: Any, aval: Any, shape: Sequence[int]) -> Any:
    """A vector with the same elements in another shape of at least one axis."""
    target = value_type(aval.update(shape=tuple(shape), sharding=None))
    if value.type == target:
        return value
    return dialect("vector").shape_cast(target, value)


tpu = Machine("a TPU", "Mosaic", value_type, constant, filled, repeated)
rule = tpu.rule
