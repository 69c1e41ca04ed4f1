"""Reads and writes of a kernel's refs on a TPU.

Vectors are read from and written to VMEM, scalars from and to SMEM. A block of a ref
has a start and a size along each axis; a start may be computed, a size may not. What
the kernel does not see of an axis (an integer in the index, a squeezed axis of the
block) has size 1, and the vector is reshaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import hlo, trees
from minijax.core.language import Jaxpr, ShapedArray
from minijax.kernels.kernel_arithmetic import add, compared
from minijax.kernels.kernel_rules import RuleContext, lower_eqns
from minijax.kernels.memory_spaces import TpuMemorySpace
from minijax.kernels.mosaic.kernel_context import (
    Memory,
    constant,
    filled,
    index_constant,
    memory_space,
    memref_type,
    repeated,
    rule,
    stored_dtype,
    value_type,
)
from minijax.kernels.mosaic.shapes import reshaped
from minijax.primitives.index.indexers import NDIndexer, Slice


@dataclass(frozen=True)
class _Span:
    """What is used of an axis: from a start (a number or an i32) every stride-th."""

    start: Any
    size: int
    stride: int = 1


def _spans(ref: Memory, indexers: Sequence[NDIndexer]) -> tuple[list[_Span], list[int]]:
    """What one index after another selects.

    Returns (the block along all axes of the memory, the axes that no integer takes).
    """
    spans = [_Span(0, size) for size in ref.shape]
    seen = [axis for axis in range(len(spans)) if axis not in ref.hidden]
    for indexer in indexers:
        remaining = []
        for axis, entry in zip(seen, indexer.indices, strict=True):
            old = spans[axis]
            if isinstance(entry, Slice):
                start, size, stride = entry.start, entry.size, entry.stride
                remaining.append(axis)
            else:
                start, size, stride = entry, 1, 1
            if not _is_number(start) and start.type != _i32():
                raise NotImplementedError(
                    "an index that is an array; a block has one start along each axis."
                )
            first = _plus(old.start, _times(start, old.stride))
            spans[axis] = _Span(first, size, old.stride * stride)
        seen = remaining
    return spans, seen


def _i32() -> Any:
    return hlo.ir.IntegerType.get_signless(32)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def _plus(a: Any, b: Any) -> Any:
    if _is_number(a) and _is_number(b):
        return int(a + b)
    if isinstance(a, int) and a == 0:
        return b
    return dialect("arith").addi(_as_value(a), _as_value(b))


def _times(a: Any, stride: int) -> Any:
    if _is_number(a):
        return a * stride
    if stride == 1:
        return a
    return dialect("arith").muli(a, _as_value(stride))


def _as_value(x: Any) -> Any:
    return constant(x, np.int32) if _is_number(x) else x


def _places(spans: Sequence[_Span]) -> list[Any]:
    """The starts as MLIR's `index`."""
    arith, kind = dialect("arith"), hlo.ir.IndexType.get()
    return [
        index_constant(int(span.start))
        if _is_number(span.start)
        else arith.index_cast(kind, span.start)
        for span in spans
    ]


def _block(ctx: RuleContext, ref: Memory, indexers: Any) -> tuple[Any, ...]:
    """(starts, strides or None, the block's type with all axes of the memory)."""
    spans = _spans(ref, indexers)[0]
    strides = [span.stride for span in spans]
    strided = strides if any(s != 1 for s in strides) else None
    dtype = stored_dtype(ctx.avals_in[0].dtype)
    aval = ShapedArray(tuple(s.size for s in spans), dtype)
    return _places(spans), strided, aval


def _check_space(ref: Memory, block: Any) -> bool:
    """Whether the memory holds scalars; NotImplementedError where neither can be."""
    if ref.space is TpuMemorySpace.SMEM:
        if block.shape:
            raise NotImplementedError(
                f"a block of shape {block.shape} in SMEM, which holds scalars; read "
                "one element at a time, or put the array in VMEM."
            )
        return True
    if ref.space is not TpuMemorySpace.VMEM:
        raise NotImplementedError(
            f"memory space {ref.space!r} is read and written by asynchronous copies "
            "only; give the block a block shape, or the space pltpu.VMEM."
        )
    if not ref.shape:
        raise NotImplementedError(
            "a ref without axes in VMEM; put a scalar in SMEM: "
            "pl.BlockSpec(memory_space=pltpu.SMEM)."
        )
    return False


def _read(ctx: RuleContext, ref: Memory, indexers: Any, result: Any) -> Any:
    starts, strides, block = _block(ctx, ref, indexers)
    if _check_space(ref, result):
        return _as_bools(ctx, dialect("memref").load(ref.value, starts), result)
    target = value_type(block)
    if strides is None:
        loaded = dialect("vector").load(target, ref.value, starts)
    else:
        loaded = dialect("tpu").strided_load(target, ref.value, starts, strides)
    return _as_bools(ctx, reshaped(loaded, block, result.shape), result)


def _as_bools(ctx: RuleContext, value: Any, aval: Any) -> Any:
    """A value read from memory of bools, which holds them as zeros and ones."""
    if aval.dtype != np.dtype(bool):
        return value
    numbers = aval.update(dtype=np.dtype(np.int32))
    context = replace(ctx, avals_out=[aval])
    return compared("ne", numbers.dtype, value, filled(0, numbers), context)


def _write(
    ctx: RuleContext, ref: Memory, indexers: Any, value: Any, aval: Any, mask: Any
) -> None:
    starts, strides, block = _block(ctx, ref, indexers)
    if aval.dtype == np.dtype(bool):
        aval = aval.update(dtype=np.dtype(np.int32))
        value = dialect("arith").extui(value_type(aval), value)
    if _check_space(ref, aval):
        dialect("memref").store(value, ref.value, starts)
        return
    if not aval.shape:
        raise NotImplementedError(
            "a scalar written to VMEM, which holds vectors; write a block of one "
            "element (`o_ref[...] = jnp.full((1, 1), x)`), or put the output in SMEM."
        )
    tpu = dialect("tpu")
    value = reshaped(value, aval, block.shape)
    if strides is not None:
        if mask is not None:
            raise NotImplementedError("a write with mask and stride; leave one out.")
        tpu.strided_store(value, ref.value, starts, strides)
        return
    tpu.vector_store(value, ref.value, starts, strides=[], mask=mask)


@rule("get")
def _get(ctx: RuleContext, ref: Memory, *leaves: Any, tree: Any) -> Any:
    indexers = trees.tree_unflatten(tree, leaves)
    return _read(ctx, ref, indexers, ctx.avals_out[0])


@rule("swap")
def _swap(ctx: RuleContext, ref: Memory, value: Any, *leaves: Any, tree: Any) -> Any:
    """The old content is read before the write, and dropped if unused."""
    indexers = trees.tree_unflatten(tree, leaves)
    aval = ctx.avals_out[0]
    old = _read(ctx, ref, indexers, aval) if aval.shape or _is_smem(ref) else None
    _write(ctx, ref, indexers, value, aval, None)
    return old


def _is_smem(ref: Memory) -> bool:
    return ref.space is TpuMemorySpace.SMEM


@rule("addupdate")
def _addupdate(
    ctx: RuleContext, ref: Memory, value: Any, *leaves: Any, tree: Any
) -> list[Any]:
    indexers = trees.tree_unflatten(tree, leaves)
    aval = ctx.avals_in[1]
    old = _read(ctx, ref, indexers, aval)
    sum_ctx = RuleContext(ctx.kernel, ctx.eqn, [aval, aval], [aval])
    total = add(sum_ctx, old, value)
    _write(ctx, ref, indexers, total, aval, None)
    return []


@rule("masked_load")
def _masked_load(ctx: RuleContext, *leaves: Any, args_tree: Any, **_: Any) -> Any:
    """The whole block is read, and the other value chosen where the mask is False."""
    ref, indexers, mask, other = trees.tree_unflatten(args_tree, leaves)
    result = ctx.avals_out[0]
    spans = _spans(ref, indexers)[0]
    if mask is not None and not all(isinstance(s.start, int) for s in spans):
        raise NotImplementedError(
            "a read with a mask from a computed start, which may reach beyond the "
            "memory; read a block inside of it, and choose with `where`."
        )
    block = _read(ctx, ref, indexers, result)
    if mask is None or other is None:
        return block
    avals = trees.tree_unflatten(args_tree, ctx.avals_in)
    mask = repeated(mask, avals[2], result.shape)
    if avals[3].dtype != result.dtype:
        raise NotImplementedError(f"other={avals[3]}: convert it to {result.dtype}.")
    other = repeated(other, avals[3], result.shape)
    return dialect("arith").select(mask, block, other)


@rule("masked_swap")
def _masked_swap(ctx: RuleContext, *leaves: Any, args_tree: Any, **_: Any) -> Any:
    ref, indexers, value, mask = trees.tree_unflatten(args_tree, leaves)
    aval = ctx.avals_out[0]
    if mask is not None and (np.dtype(aval.dtype).itemsize != 4 or _is_smem(ref)):
        raise NotImplementedError("masked writes, except 32 bits to VMEM: use where.")
    old = _read(ctx, ref, indexers, aval)
    if mask is not None:
        _, _, block = _block(ctx, ref, indexers)
        bools = aval.update(dtype=np.dtype(bool))
        mask = reshaped(mask, bools, block.shape)
    _write(ctx, ref, indexers, value, aval, mask)
    return old


@rule("run_scoped")
def _run_scoped(
    ctx: RuleContext, *consts: Any, jaxpr: Jaxpr, collective_axes: Any, **_: Any
) -> list[Any]:
    """A region with memory of its own."""
    if collective_axes:
        raise NotImplementedError("run_scoped with collective_axes; leave them out.")
    tpu, memref = dialect("tpu"), dialect("memref")
    region = tpu.RegionOp([value_type(aval) for aval in ctx.avals_out])
    with hlo.ir.InsertionPoint(region.body):
        own = [_allocated(memref, var.aval) for var in jaxpr.invars]
        results = lower_eqns(ctx.kernel, jaxpr, [*consts, *own])
        tpu.yield_(results)
    return list(region.results)


def _allocated(memref: Any, aval: Any) -> Memory:
    space = memory_space(aval)
    kind = memref_type(aval.shape, aval.dtype, space)
    if space is TpuMemorySpace.SEMAPHORE:
        return Memory(dialect("tpu").sem_alloc(kind), aval.shape, space)
    return Memory(memref.alloca(kind, [], []), aval.shape, space)


# ----------------------------------------------------------------------------------
# Copies between memory spaces
# ----------------------------------------------------------------------------------


@rule("dma_start")
def _dma_start(
    ctx: RuleContext, *values: Any, tree: Any, priority: int, add: bool
) -> list[Any]:
    if add:
        raise NotImplementedError("a copy that adds; add in VMEM, and copy the sum.")
    source, target, semaphore = _views(values, tree)
    dialect("tpu").enqueue_dma(
        source, target, target_semaphore=semaphore, priority=priority
    )
    return []


@rule("dma_wait")
def _dma_wait(ctx: RuleContext, *values: Any, tree: Any) -> list[Any]:
    source, target, semaphore = _views(values, tree)
    dialect("tpu").wait_dma2(semaphore, source, target)
    return []


def _views(values: Sequence[Any], tree: Any) -> list[Any]:
    """Source, destination and semaphore as parts of their memories."""
    *refs, leaves = values[0], values[1], values[2], values[3:]
    indices = trees.tree_unflatten(tree, leaves)
    return [_view(ref, indexers) for ref, indexers in zip(refs, indices)]


def _view(ref: Memory, indexers: Sequence[NDIndexer]) -> Any:
    """The part of a memory that an index selects, as a memory of its own."""
    spans, left = _spans(ref, indexers)
    if any(span.stride != 1 for span in spans):
        raise NotImplementedError("a copy with a stride; copy all, and read a part.")
    tpu, ir = dialect("tpu"), hlo.ir
    sizes = [span.size for span in spans]
    value, kind = ref.value, ir.MemRefType(ref.value.type)
    if sizes != list(ref.shape):
        kind = ir.MemRefType.get(
            sizes, kind.element_type, memory_space=kind.memory_space
        )
        starts = [_as_value(span.start) for span in spans]
        value = tpu.memref_slice(kind, value, starts, [])
    if len(left) < len(sizes):
        kind = ir.MemRefType.get(
            [sizes[axis] for axis in left],
            kind.element_type,
            memory_space=kind.memory_space,
        )
        value = tpu.memref_squeeze(kind, value)
    return value
