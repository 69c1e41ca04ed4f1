"""Copies between the memory spaces of a kernel, and the semaphores that they signal.

    copy = pltpu.make_async_copy(x_hbm_ref.at[pl.ds(0, 8)], buffer_ref, semaphore)
    copy.start()                       dma_start(p0) a[0:8,:] -> b[...] c[...]
    ...
    copy.wait()                        dma_wait b[...] c[...]

On a TPU the memory's own engine copies while the kernel computes. On a CPU the whole
copy happens at `start`, so that what a kernel may read before `wait` is what it will
read after it.

In JAX: `pallas/mosaic/primitives.py`, `pallas/mosaic/helpers.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import trees
from minijax.core.avals import ShapedArray
from minijax.core.events import enter
from minijax.core.language import JaxprEqn
from minijax.core.trees import tree_flatten
from minijax.kernels.memory_spaces import MemoryRef, TpuMemorySpace
from minijax.kernels.scoped_memory import run_scoped
from minijax.primitives.refs import ref_blocks, references
from minijax.primitives.refs.mutable_arrays import ref_primitive
from minijax.primitives.refs.ref_blocks import discharge_rules
from minijax.primitives.refs.ref_effects import ReadEffect, WriteEffect
from minijax.primitives.refs.ref_views import RefView, base_and_indexers
from minijax.values.print_options import prints_equation
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# The primitives: source, destination, semaphore, then the indices of all three
# ----------------------------------------------------------------------------------


def _copy_primitive(name: str) -> Any:
    primitive = ref_primitive(name, multiple_results=True)
    primitive.cache_types = False
    primitive.without("meaning", "it belongs to the memories of a kernel")
    primitive.without("jvp transpose", "give the kernel a derivative by `custom_vjp`")
    primitive.without("batch", "vmap adds an axis to the grid, not to the kernel")
    return primitive


dma_start_p = _copy_primitive("dma_start")
dma_wait_p = _copy_primitive("dma_wait")


@dma_start_p.def_effectful_abstract_eval
def _start_type(*avals, **_) -> tuple:
    return [], frozenset({ReadEffect(0), WriteEffect(1)})


@dma_wait_p.def_effectful_abstract_eval
def _wait_type(*avals, **_) -> tuple:
    """What is copied may be read only after this, so it counts as a write."""
    return [], frozenset({WriteEffect(1)})


def _start_discharge(
    discharged, source, target, semaphore, *leaves, tree, priority, add
) -> tuple[list, Any]:
    source_index, target_index, _ = trees.tree_unflatten(tree, leaves)
    block = ref_blocks.read(source, source_index)
    if add:
        new = ref_blocks.add(target, target_index, block)
    else:
        new, _ = ref_blocks.swap(target, target_index, block)
    return [None, new, *[None] * (1 + len(leaves))], []


enter(discharge_rules, dma_start_p, _start_discharge)
enter(
    discharge_rules, dma_wait_p, lambda discharged, *args, **_: ([None] * len(args), [])
)


def _places(eqn: JaxprEqn) -> list[tuple]:
    """Source, destination and semaphore as text: `a[0:8]`."""
    source, target, semaphore, *leaves = eqn.invars
    indices = trees.tree_unflatten(eqn.params["tree"], leaves)
    places = []
    for ref, indexers in zip((source, target, semaphore), indices):
        flat, tree = tree_flatten(indexers)
        places.append(references.place_pieces(tree, ref, flat))
    return places


@prints_equation(dma_start_p)
def _start_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    source, target, semaphore = _places(eqn)
    add = ", add" if eqn.params["add"] else ""
    start = f"dma_start(p{eqn.params['priority']}{add}) "
    return [start, source, " -> ", target, " ", semaphore]


@prints_equation(dma_wait_p)
def _wait_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    _, target, semaphore = _places(eqn)
    return ["dma_wait ", target, " ", semaphore]


# ----------------------------------------------------------------------------------
# Semaphores
# ----------------------------------------------------------------------------------


class SemaphoreType(enum.Enum):
    """Kinds of semaphores, as scratch memory: `SemaphoreType.DMA`, or `.DMA((2,))`."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        if self is not SemaphoreType.DMA:
            raise NotImplementedError(
                f"SemaphoreType.{self.name} is for programs that wait for each other, "
                "on several cores; a copy takes SemaphoreType.DMA."
            )
        counter = ShapedArray(tuple(shape), np.dtype(np.int32))
        return MemoryRef(counter, TpuMemorySpace.SEMAPHORE)

    def get_array_aval(self) -> ShapedArray:
        """The type of one semaphore: a counter."""
        return self(()).get_array_aval()

    def get_ref_aval(self) -> AbstractRef:
        """The type of a ref to it, as a kernel gets it."""
        return self(()).get_ref_aval()


# ----------------------------------------------------------------------------------
# What kernels call
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AsyncCopyDescriptor:
    """A copy that is started and waited for later. Made by `make_async_copy`."""

    src_ref: Any
    dst_ref: Any
    sem: Any

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Begin to copy; with `add`, add to the values at the destination."""
        refs, leaves, tree = self._operands()
        dma_start_p.bind(*refs, *leaves, tree=tree, priority=priority, add=add)

    def wait(self) -> None:
        """Wait until the copy is done, so that its destination may be read."""
        refs, leaves, tree = self._operands()
        dma_wait_p.bind(*refs, *leaves, tree=tree)

    wait_send = wait_recv = wait

    def _operands(self) -> tuple[list[Any], list[Any], Any]:
        views = (self.src_ref, self.dst_ref, self.sem)
        refs, indices = zip(*map(base_and_indexers, views))
        leaves, tree = tree_flatten(indices)
        return list(refs), leaves, tree


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

    def copy_all(semaphore: Any) -> None:
        copies = [
            make_async_copy(source, target, semaphore)
            for source, target in zip(sources, targets)
        ]
        for copy in copies:
            copy.start(add=add)
        for copy in copies:
            copy.wait()

    if sources:
        run_scoped(copy_all, SemaphoreType.DMA)
