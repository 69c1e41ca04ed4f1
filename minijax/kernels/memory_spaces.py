"""Memory spaces of kernels, and types of arrays in one of them.

A space is a part of a ref's type (`Ref<vmem>{f32[8,128]}`) and can be called to
describe scratch memory: `VMEM((8, 128), jnp.float32)`. On a CPU all are ordinary
memory; a compiler for a TPU reads them.

In JAX: `pallas/core.py`, and `pallas/mosaic/core.py` for those of a TPU.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core.avals import ShapedArray
from minijax.values.ref_avals import AbstractRef


@dataclass(frozen=True)
class MemoryRef:
    """The type of an array and the memory space it is to be in.

    In JAX: `pallas/core.py`, `MemoryRef`.
    """

    inner_aval: ShapedArray
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def get_array_aval(self) -> ShapedArray:
        """The type of the array."""
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        """The type of a ref to it, as a kernel gets it."""
        return AbstractRef(self.inner_aval, self.memory_space)


class _Space(enum.Enum):
    def __str__(self) -> str:
        return self.value

    def from_type(self, aval: ShapedArray) -> MemoryRef:
        """Memory of this space for an array of that type."""
        return MemoryRef(aval, self)

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return self.from_type(ShapedArray(tuple(shape), np.dtype(dtype)))


class MemorySpace(_Space):
    """Spaces that every machine has in some form. In JAX: `pl.MemorySpace`."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


class TpuMemorySpace(_Space):
    """Spaces of a TPU's core. In JAX: `pltpu.MemorySpace`."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __repr__(self) -> str:
        return self.name
