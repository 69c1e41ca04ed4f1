"""emit_pipeline: a loop over blocks inside of a kernel, as a grid is one around it.

    def kernel(x_hbm_ref, o_hbm_ref):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[block], out_specs=[block])(
            x_hbm_ref, o_hbm_ref
        )

The body gets views of the blocks, so nothing is copied on a CPU; `program_id` in it is
the place in the pipeline's own grid. A block of the output that stays the same from one
step to the next keeps its content, as an accumulator must.

In JAX: `pallas/mosaic/pipeline.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.primitives.elementwise import rounding
from minijax.primitives.index.indexers import Slice, ds
from minijax.primitives.refs.ref_views import RefView
from minijax.primitives.shape import shaping
from minijax.programs.control_flow.fori_loops import fori_loop
from minijax.programs.pallas.grid_context import inside_pipeline
from minijax.programs.pallas.specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    Squeezed,
    canonical_dim,
)
from minijax.support.errors import api_boundary
from minijax.support.trees import tree_flatten, tree_structure
from minijax.transforms import api_util

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
    api_util.check_callable(body, "emit_pipeline")
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
    specs = [*_leaves(in_specs), *_leaves(out_specs)]

    def pipeline(*refs: Any, scratches: Any = None, allocations: Any = None) -> None:
        if allocations is not None:
            raise NotImplementedError("emit_pipeline with allocations of buffers.")
        leaves = _leaves(refs)
        if len(leaves) != len(specs):
            raise ValueError(
                f"the pipeline has {len(specs)} specs (in_specs, then out_specs), but "
                f"was called with {len(leaves)} refs: give one spec for each ref."
            )

        def step(number: Any, nothing: None) -> None:
            indices = _indices(number, grid)
            views = [
                _block(ref, spec, indices, place)
                for place, (ref, spec) in enumerate(zip(leaves, specs))
            ]
            with inside_pipeline(indices, grid):
                result = body(*views, *(scratches or ()))
            if tree_structure(result).num_leaves:
                raise ValueError(
                    "The emit_pipeline body function must return None; write results "
                    "to the output's ref: o_ref[...] = x."
                )

        total = math.prod(grid) if all(isinstance(n, int) for n in grid) else None
        if total is None:
            total = np.int32(1)
            for size in grid:
                total = elementwise.mul(total, _as_int32(size))
        fori_loop(0, total, step, None)

    return pipeline


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


def _block(ref: Any, spec: Any, indices: Sequence[Any], place: int) -> Any:
    """The view of the block that a step works on."""
    if spec.block_shape is None and spec.index_map is None:
        return ref
    shape = ref.shape if spec.block_shape is None else spec.block_shape
    dims = [canonical_dim(dim) for dim in shape]
    if len(dims) != len(ref.shape):
        raise ValueError(
            f"Block shape of ref {place} of the pipeline (= {tuple(shape)}) must have "
            f"the same number of dimensions as the ref's shape {ref.shape}."
        )
    chosen = (0,) * len(dims) if spec.index_map is None else spec.index_map(*indices)
    chosen = chosen if isinstance(chosen, (tuple, list)) else (chosen,)
    if len(chosen) != len(dims):
        raise ValueError(
            f"The index map of ref {place} of the pipeline must return {len(dims)} "
            f"values to match block_shape={tuple(shape)}. Currently returning "
            f"{len(chosen)} values."
        )
    entries = []
    for dim, index, size in zip(dims, chosen, ref.shape, strict=True):
        if isinstance(dim, Squeezed):
            entries.append(index)
        elif isinstance(dim, BoundedSlice) and isinstance(index, Slice):
            entries.append(index)
        elif isinstance(dim, Blocked) and size % dim.block_size == 0:
            entries.append(ds(index * dim.block_size, dim.block_size))
        elif isinstance(dim, Element) and dim.padding == (0, 0):
            entries.append(ds(index, dim.block_size))
        else:
            raise NotImplementedError(
                f"the block dimension {dim} of ref {place} of the pipeline, along an "
                f"axis of {size}: blocks must divide the array, and have no padding. "
                "Pad the array before the kernel."
            )
    return ref.at[tuple(entries)]
