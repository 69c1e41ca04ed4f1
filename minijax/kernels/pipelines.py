"""emit_pipeline: a loop over blocks inside of a kernel, as a grid is one around it.

    def kernel(x_hbm_ref, o_hbm_ref):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[block], out_specs=[block])(
            x_hbm_ref, o_hbm_ref
        )

`program_id` in the body is the place in the pipeline's own grid. Blocks of refs in HBM
(`pl.ANY`) are copied into two buffers in VMEM in turn: while a step computes, the next
one's blocks are on their way. What is in VMEM already needs no copy: the body gets
views of it. A block of the output that stays the same from one step to the next keeps
its content, as an accumulator must.

In JAX: `pallas/mosaic/pipeline.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import shaping, signatures
from minijax.core.errors import api_boundary
from minijax.core.language import get_aval
from minijax.core.trees import tree_flatten, tree_structure
from minijax.kernels.copies import SemaphoreType, async_copy, make_async_copy
from minijax.kernels.grid_context import inside_pipeline
from minijax.kernels.in_kernels import when
from minijax.kernels.memory_spaces import MemorySpace, TpuMemorySpace
from minijax.kernels.scoped_memory import run_scoped
from minijax.kernels.specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    Squeezed,
    block_size,
    canonical_dim,
)
from minijax.primitives.elementwise import rounding
from minijax.primitives.index.indexers import Slice, ds
from minijax.primitives.refs.ref_views import RefView, base_and_indexers
from minijax.programs.control_flow.fori_loops import fori_loop

_int32 = np.dtype(np.int32)


@api_boundary
def emit_pipeline(
    body: Callable[..., Any],
    *,
    grid: Sequence[Any],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
) -> Callable[..., None]:
    """A function of refs that runs `body` on their blocks, one step after another.

    Args:
      body: takes a ref for each block, those of the inputs first, and returns None.
      grid: how many steps there are along each axis; the last one is the fastest.
      in_specs, out_specs: a `BlockSpec` for each ref. Blocks must divide their arrays.
      tiling, core_axis, core_axis_name: must be None; they are for a TPU's cores.
      dimension_semantics, trace_scopes, no_pipelining: for a TPU's compiler; the steps
        run one after another here.

    Returns:
      a function `pipeline(*refs, scratches=())`, to be called inside of a kernel.

    Raises:
      ValueError: the grid is not positive, or specs and refs do not fit each other.
      NotImplementedError: for a block that does not divide its array, and for what only
        a TPU has.
    """
    signatures.check_callable(body, "emit_pipeline")
    if any(isinstance(size, int) and size <= 0 for size in grid):
        raise ValueError(
            f"All elements in the grid must be strictly positive, but got {grid=}"
        )
    for name, value in (
        ("tiling", tiling),
        ("core_axis", core_axis),
        ("core_axis_name", core_axis_name),
    ):
        if value is not None:
            raise NotImplementedError(
                f"emit_pipeline with {name}={value!r} is for the cores of a TPU; leave "
                "it out."
            )
    inputs, outputs = _leaves(in_specs), _leaves(out_specs)
    specs = [*inputs, *outputs]

    def pipeline(*refs: Any, scratches: Any = None, allocations: Any = None) -> None:
        if allocations is not None:
            raise NotImplementedError(
                "emit_pipeline with allocations of buffers; leave them out."
            )
        leaves = _leaves(refs)
        if len(leaves) != len(specs):
            raise ValueError(
                f"the pipeline has {len(specs)} specs (in_specs, then out_specs), but "
                f"was called with {len(leaves)} refs: give one spec for each ref."
            )
        streams = [
            _Stream(ref, spec, place, place < len(inputs))
            for place, (ref, spec) in enumerate(zip(leaves, specs))
        ]
        types = [stream.memory() for stream in streams if stream.is_far]
        run_scoped(
            lambda *buffers: _run(body, grid, streams, buffers, scratches or ()), *types
        )

    return pipeline


def _run(
    body: Callable[..., Any],
    grid: Sequence[Any],
    streams: Sequence[_Stream],
    buffers: Sequence[Any],
    scratches: Sequence[Any],
) -> None:
    """All steps, with a pair (buffer, semaphore) for each ref that is far away."""
    given = iter(buffers)
    pairs = [next(given) if stream.is_far else None for stream in streams]
    known = all(isinstance(size, int) for size in grid)
    total: Any = math.prod(grid) if known else np.int32(1)
    if not known:
        for size in grid:
            total = elementwise.mul(total, _as_int32(size))

    def start(number: Any) -> None:
        for stream, pair in zip(streams, pairs):
            if stream.is_input and pair is not None:
                stream.copy_in(pair, number, _indices(number, grid)).start()

    def step(number: Any, nothing: None) -> None:
        number = _as_int32(number)
        indices = _indices(number, grid)
        following = elementwise.add(number, np.int32(1))
        when(elementwise.lt(following, _as_int32(total)))(lambda: start(following))
        views = []
        for stream, pair in zip(streams, pairs):
            if pair is None:
                views.append(stream.block(indices))
            elif stream.is_input:
                stream.copy_in(pair, number, indices).wait()
                views.append(stream.slot(pair[0], number))
            else:
                views.append(pair[0])
        with inside_pipeline(indices, grid):
            result = body(*views, *scratches)
        if tree_structure(result).num_leaves:
            raise ValueError(
                "The emit_pipeline body function must return None; write results to "
                "the output's ref: o_ref[...] = x."
            )
        for stream, pair in zip(streams, pairs):
            if not stream.is_input and pair is not None:
                copy = async_copy(pair[0], stream.block(indices), pair[1])
                copy.wait()

    start(np.int32(0))
    fori_loop(0, total, step, None)


@dataclass(frozen=True)
class _Stream:
    """A ref of a pipeline, and how it is cut into blocks."""

    ref: Any
    spec: BlockSpec
    place: int
    is_input: bool

    @property
    def is_far(self) -> bool:
        """Whether its blocks must be copied to where a kernel can read them."""
        base, _ = base_and_indexers(self.ref)
        aval: Any = get_aval(base)
        return aval.memory_space in (MemorySpace.ANY, TpuMemorySpace.HBM)

    @property
    def dims(self) -> list[BlockDim]:
        shape = self.spec.block_shape
        return [canonical_dim(d) for d in (self.ref.shape if shape is None else shape)]

    def memory(self) -> tuple[Any, Any]:
        """(two buffers in VMEM, their semaphores); of an output one of each."""
        sizes = [block_size(d) for d in self.dims if not isinstance(d, Squeezed)]
        if not self.is_input:
            return TpuMemorySpace.VMEM(sizes, self.ref.dtype), SemaphoreType.DMA(())
        both = (2, *sizes)
        return TpuMemorySpace.VMEM(both, self.ref.dtype), SemaphoreType.DMA((2,))

    def slot(self, buffers: Any, number: Any) -> Any:
        """The buffer of the step with that number."""
        return buffers.at[rounding.rem(number, np.int32(2))]

    def copy_in(self, pair: Any, number: Any, indices: Sequence[Any]) -> Any:
        """The copy of a step's block into its buffer."""
        buffers, semaphores = (self.slot(x, number) for x in pair)
        return make_async_copy(self.block(indices), buffers, semaphores)

    def block(self, indices: Sequence[Any]) -> Any:
        """The view of the block that a step works on."""
        ref, spec, place = self.ref, self.spec, self.place
        if spec.block_shape is None and spec.index_map is None:
            return ref
        shape = ref.shape if spec.block_shape is None else spec.block_shape
        dims = self.dims
        if len(dims) != len(ref.shape):
            raise ValueError(
                f"Block shape of ref {place} of the pipeline (= {tuple(shape)}) must "
                f"have the same number of dimensions as the ref's shape {ref.shape}."
            )
        index_map = spec.index_map
        chosen = (0,) * len(dims) if index_map is None else index_map(*indices)
        chosen = chosen if isinstance(chosen, (tuple, list)) else (chosen,)
        if len(chosen) != len(dims):
            raise ValueError(
                f"The index map of ref {place} of the pipeline must return {len(dims)} "
                f"values to match block_shape={tuple(shape)}. Currently returning "
                f"{len(chosen)} values."
            )
        entries = []
        for dim, index, size in zip(dims, chosen, ref.shape, strict=True):
            sliced = isinstance(dim, BoundedSlice) and isinstance(index, Slice)
            if sliced or isinstance(dim, Squeezed):
                entries.append(index)
            elif isinstance(dim, Blocked) and size % dim.block_size == 0:
                entries.append(ds(index * dim.block_size, dim.block_size))
            elif isinstance(dim, Element) and dim.padding == (0, 0):
                entries.append(ds(index, dim.block_size))
            else:
                raise NotImplementedError(
                    f"the block dimension {dim} of ref {place} of the pipeline, along "
                    f"an axis of {size}: blocks must divide the array, and have no "
                    "padding. Pad the array before the kernel."
                )
        return ref.at[tuple(entries)]


def _leaves(items: Any) -> list[Any]:
    """Refs, views and specs of a tree."""
    kinds = (RefView, BlockSpec)
    leaves, _ = tree_flatten(items, is_leaf=lambda x: isinstance(x, kinds))
    return leaves


def _as_int32(x: Any) -> Any:
    return shaping.convert_element_type(x, _int32)


def _indices(number: Any, grid: Sequence[Any]) -> tuple[Any, ...]:
    """The place in the grid of the step with that number."""
    number = _as_int32(number)
    indices: list[Any] = []
    for axis in reversed(range(len(grid))):
        size = _as_int32(grid[axis])
        indices.append(number if axis == 0 else rounding.rem(number, size))
        number = elementwise.div(number, size)
    return tuple(reversed(indices))
