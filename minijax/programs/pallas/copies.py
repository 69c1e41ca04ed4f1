"""Copies between the memory spaces of a kernel, and the semaphores that they signal.

    copy = pltpu.make_async_copy(x_hbm_ref.at[pl.ds(0, 8)], buffer_ref, semaphore)
    copy.start()
    ...
    copy.wait()

On a CPU the whole copy happens at `start`, so that what a kernel may read before `wait`
is what it will read after it; a semaphore counts how many copies were started and not
waited for.

In JAX: `pallas/mosaic/primitives.py`, `pallas/mosaic/helpers.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.language.avals import ShapedArray
from minijax.language.ref_avals import AbstractRef
from minijax.primitives.refs.ref_views import RefView
from minijax.programs.pallas.memory_spaces import MemoryRef, TpuMemorySpace
from minijax.support.trees import tree_flatten


class SemaphoreType(enum.Enum):
    """Kinds of semaphores, as scratch memory: `SemaphoreType.DMA`, or `.DMA((2,))`."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        counter = ShapedArray(tuple(shape), np.dtype(np.int32))
        return MemoryRef(counter, TpuMemorySpace.SEMAPHORE)

    def get_array_aval(self) -> ShapedArray:
        """The type of one semaphore: a counter."""
        return self(()).get_array_aval()

    def get_ref_aval(self) -> AbstractRef:
        """The type of a ref to it, as a kernel gets it."""
        return self(()).get_ref_aval()


@dataclass(frozen=True)
class AsyncCopyDescriptor:
    """A copy that is started and waited for later. Made by `make_async_copy`."""

    src_ref: Any
    dst_ref: Any
    sem: Any

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Begin to copy; with `add`, add to what is there."""
        if add:
            self.dst_ref.addupdate(self.src_ref[...])
        else:
            self.dst_ref[...] = self.src_ref[...]
        self.sem[...] += 1

    def wait(self) -> None:
        """Wait until the copy is done, so that its destination may be read."""
        self.sem[...] -= 1

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """A copy from one ref (or view) to another; `start()` begins it.

    Args:
      src_ref, dst_ref: refs or views of one shape and dtype.
      sem: a ref to one semaphore, such as scratch memory `pltpu.SemaphoreType.DMA`.

    Raises ValueError for refs of different shapes or dtypes, and for `sem`.
    """
    if src_ref.shape != dst_ref.shape or src_ref.dtype != dst_ref.dtype:
        raise ValueError(
            f"a copy from {src_ref.dtype}{list(src_ref.shape)} to "
            f"{dst_ref.dtype}{list(dst_ref.shape)}: source and destination must have "
            "the same shape and dtype."
        )
    if sem.shape != ():
        raise ValueError(
            f"a copy signals one semaphore, but got {list(sem.shape)} of them: choose "
            "one with `sem.at[i]`."
        )
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """A copy that is begun at once; see `make_async_copy`."""
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copy a tree of refs to another, and wait for it."""

    def is_view(x: Any) -> bool:
        return isinstance(x, RefView)

    sources, tree = tree_flatten(src_ref, is_leaf=is_view)
    targets, other = tree_flatten(dst_ref, is_leaf=is_view)
    if tree != other:
        raise ValueError(f"sync_copy from a tree {tree} to another, {other}.")
    for source, target in zip(sources, targets):
        if add:
            target.addupdate(source[...])
        else:
            target[...] = source[...]
