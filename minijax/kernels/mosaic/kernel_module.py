"""A kernel for a TPU as a module: its function, and a window on each array.

    func.func @add(%i : i32, %x : memref<128x128xf32, vmem>, ...)
      attributes {iteration_bounds = [4], dimension_semantics = [arbitrary],
                  window_params = [{window_bounds = [128, 128],
                                    transform_indices = @transform_0}, ...]}

The function is one program of the grid, over blocks in the core's own memory. A window
says how large the blocks of an array are and which one a program works on: the index
map becomes a function of its own. From these Mosaic makes the pipeline: while a program
computes, the next one's blocks are copied in, and the last one's out.

In JAX: `pallas/mosaic/lowering.py`, `lower_jaxpr_into_pipelined_module`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from minijax.backend import hlo_parts
from minijax.backend.dialects import dialect
from minijax.core import hlo, lowering
from minijax.core.language import Jaxpr, Literal
from minijax.kernels import kernel_arithmetic, kernel_control_flow
from minijax.kernels.grid_context import Place, dynamic_grid_dim
from minijax.kernels.grid_mappings import BlockMapping, GridMapping
from minijax.kernels.kernel_rules import Kernel, lower_eqns
from minijax.kernels.memory_spaces import MemorySpace, TpuMemorySpace
from minijax.kernels.mosaic import elementwise, memory, pieces, shapes
from minijax.kernels.mosaic.kernel_context import (
    Memory,
    memory_space,
    memref_type,
    stored_dtype,
    tpu,
)
from minijax.kernels.specs import Blocked, Element, RevisitMode, Squeezed
from minijax.kernels.tpu_params import CompilerParams, GridDimensionSemantics
from minijax.programs.control_flow.operands import split_list

# Files with rules, which enter them in the table.
families = (kernel_arithmetic, kernel_control_flow, elementwise, memory, pieces, shapes)

# A TPU's registers have 8 rows (sublanes) of 128 numbers (lanes).
_ROWS, _LANES = 8, 128
_IN_PLACE = (MemorySpace.ANY, TpuMemorySpace.HBM)


def write_kernel(
    jaxpr: Jaxpr, mapping: GridMapping, params: CompilerParams, name: str
) -> Any:
    """Write the kernel and its windows into the current module.

    Raises:
      ValueError: a block that no register's shape divides; the message names it.
      NotImplementedError: what Mosaic, or this lowering, does not have.
    """
    if any(size is dynamic_grid_dim for size in mapping.grid):
        raise NotImplementedError(
            f"the kernel {name!r} cannot be compiled for a TPU: sizes of its grid are "
            "computed. Give the grid integers, and guard with pl.when."
        )
    for block in mapping.block_mappings:
        check_block(block, name)
        if not mapping.grid and not is_whole(block):
            raise NotImplementedError(
                f"the kernel {name!r} cannot be compiled for a TPU: {block.origin} has "
                f"a block of shape {block.sizes} and the kernel no grid. Leave the "
                "block shape out, or give grid=(1,)."
            )
    ir = hlo.ir
    grid = [int(size) for size in mapping.grid]
    i32 = ir.IntegerType.get_signless(32)
    scalars = mapping.num_index_operands
    refs: list[Any] = [v.aval for v in jaxpr.invars]
    blocks = mapping.block_mappings
    # For each ref the shape of its memory, and the axes that the kernel does not see.
    parts: list[Any] = [(ref.shape, ()) for ref in refs]
    parts[scalars : scalars + len(blocks)] = [
        (b.sizes, b.squeezed_axes) for b in blocks
    ]
    types = [
        memref_type(shape, ref.dtype, memory_space(ref))
        for (shape, _), ref in zip(parts, refs, strict=True)
    ]
    function = hlo.func.FuncOp(
        lowering.sanitize_name(name), ir.FunctionType.get([i32] * len(grid) + types, [])
    )
    block = function.add_entry_block()
    indices, operands = split_list(list(block.arguments), len(grid))
    memories = [
        Memory(value, tuple(shape), memory_space(ref), frozenset(hidden))
        for value, (shape, hidden), ref in zip(operands, parts, refs, strict=True)
    ]
    kernel = Kernel(tpu, name, mapping.place(indices, grid))
    with ir.InsertionPoint(block):
        lower_eqns(kernel, jaxpr, memories)
        hlo.func.ReturnOp([])
    attributes = function.attributes
    attributes["tpu.core_type"] = ir.Attribute.parse("#tpu.core_type<tc>")
    attributes["scalar_prefetch"] = hlo_parts.int_attribute(scalars)
    scratch = len(mapping.scratch_avals)
    attributes["scratch_operands"] = hlo_parts.int_attribute(scratch)
    attributes["dimension_semantics"] = _semantics(mapping, params)
    if grid:
        windows = [
            _window(number, block_mapping, mapping, memories[:scalars], name)
            for number, block_mapping in enumerate(blocks)
        ]
        attributes["window_params"] = ir.ArrayAttr.get(windows)
        attributes["iteration_bounds"] = hlo.int_array(grid)
    return function


def _semantics(mapping: GridMapping, params: CompilerParams) -> Any:
    """For each axis of the grid, whether its programs may run in any order."""
    seen = len(mapping.grid) - len(mapping.vmapped_dims)
    given = params.dimension_semantics or ("arbitrary",) * seen
    if len(given) != seen:
        raise ValueError(
            f"dimension_semantics={given} has {len(given)} entries, but the grid has "
            f"{seen} axes: give one of 'parallel' and 'arbitrary' for each."
        )
    words = iter(
        s.value if isinstance(s, GridDimensionSemantics) else str(s) for s in given
    )
    each = [
        "parallel" if axis in mapping.vmapped_dims else next(words)
        for axis in range(len(mapping.grid))
    ]
    allowed = [member.value for member in GridDimensionSemantics]
    for word in each:
        if word not in allowed:
            raise ValueError(
                f"dimension_semantics has {word!r}; each entry is one of {allowed}."
            )
    parse = hlo.ir.Attribute.parse
    return hlo.ir.ArrayAttr.get(
        [parse(f"#tpu.dimension_semantics<{word}>") for word in each]
    )


# ----------------------------------------------------------------------------------
# Windows
# ----------------------------------------------------------------------------------


def is_whole(block: BlockMapping) -> bool:
    """Whether every program works on the whole array."""
    zeros = all(
        type(v) is Literal and not np.asarray(v.val).any()
        for v in block.index_map_jaxpr.jaxpr.outvars
    )
    return zeros and block.sizes == block.array_aval.shape


def check_block(block: BlockMapping, name: str) -> None:
    """ValueError for a block that a TPU's memory cannot be cut into."""
    space = memory_space(block.block_aval)
    if space is TpuMemorySpace.SMEM and is_whole(block):
        return
    sizes, shape = block.sizes, block.array_aval.shape
    what = (
        f"the kernel {name!r} cannot be compiled for a TPU: the block of "
        f"{block.origin} has shape {sizes}, and the array has shape {shape}"
    )
    if not sizes:
        raise ValueError(
            f"{what}. An array without axes goes to SMEM: "
            "pl.BlockSpec(memory_space=pltpu.SMEM)."
        )
    if space in _IN_PLACE and not is_whole(block):
        raise ValueError(
            f"{what}. In memory space {space!r} a block must be the whole array; leave "
            "memory_space out to have blocks copied into VMEM."
        )
    if len(sizes) == 1:
        _check_flat_block(block, what)
        return
    for axis, unit in ((-2, _ROWS), (-1, _LANES)):
        if sizes[axis] != shape[axis] and sizes[axis] % unit:
            raise ValueError(
                f"{what}. The last two axes of a block must be multiples of {_ROWS} "
                f"and {_LANES} (a register's shape), or as long as the array's; "
                f"{sizes[axis]} is neither."
            )


def _check_flat_block(block: BlockMapping, what: str) -> None:
    (size,), (length,) = block.sizes, block.array_aval.shape
    smallest = _LANES * (4 // stored_dtype(block.array_aval.dtype).itemsize)
    power = size >= smallest and size & (size - 1) == 0
    if size != length and size % (_ROWS * _LANES) and not power:
        raise ValueError(
            f"{what}. A block with one axis must be as long as the array, a multiple "
            f"of {_ROWS * _LANES}, or a power of two of at least {smallest}; {size} is "
            "none of these."
        )


def _window(
    number: int,
    block: BlockMapping,
    mapping: GridMapping,
    scalars: Sequence[Memory],
    name: str,
) -> Any:
    """The attribute that says how an array is cut, and its function of indices."""
    ir = hlo.ir
    space = memory_space(block.block_aval)
    if space in _IN_PLACE:
        return ir.DictAttr.get({})
    function = f"transform_{number}"
    _write_index_map(function, block, mapping, scalars, name)
    window = {
        "window_bounds": hlo.int_array(block.sizes),
        "transform_indices": ir.FlatSymbolRefAttr.get(function),
    }
    dims = block.block_shape
    for dim in dims:
        if not isinstance(dim, (Blocked, Element, Squeezed)):
            raise NotImplementedError(
                f"the kernel {name!r} cannot be compiled for a TPU: {block.origin} has "
                f"the block dimension {dim}. Give an int, None or pl.Element."
            )
    if any(isinstance(dim, Element) for dim in dims):
        if any(isinstance(dim, Blocked) for dim in dims):
            raise NotImplementedError(
                f"the kernel {name!r} cannot be compiled for a TPU: {block.origin} has "
                "pl.Element in some axes and block numbers in others. Use pl.Element "
                "(or None) in all of them."
            )
        pads = [d.padding if isinstance(d, Element) else (0, 0) for d in dims]
        low, high = ([pair[side] for pair in pads] for side in (0, 1))
        window["window_kind"] = ir.Attribute.parse(f"#tpu.element_window<{low},{high}>")
    window |= _buffering(block, space, name)
    return ir.DictAttr.get(window)


def _buffering(block: BlockMapping, space: Any, name: str) -> dict[str, Any]:
    """One buffer or two; a block that never changes needs one."""
    mode = block.pipeline_mode
    count = mode.buffer_count if mode is not None else None
    if space is TpuMemorySpace.VMEM and is_whole(block):
        count = 1
    what = f"the kernel {name!r} cannot be compiled for a TPU: {block.origin} has"
    if count not in (None, 1, 2) or (mode is not None and mode.use_lookahead):
        raise NotImplementedError(
            f"{what} pipeline_mode={mode}. Mosaic has pl.Buffered(1) and "
            "pl.Buffered(2), without lookahead."
        )
    if count is None:
        return {}
    parse = hlo.ir.Attribute.parse
    word = "synchronous" if count == 1 else "double_buffered"
    found = {"pipeline_mode": parse(f"#tpu.pipeline_mode<{word}>")}
    revisit = mode.revisit if mode is not None else None
    if revisit is not None:
        if revisit is RevisitMode.ANY and count > 1:
            raise NotImplementedError(f"{what} RevisitMode.ANY: use pl.Buffered(1).")
        found["revisit_mode"] = parse(f"#tpu.revisit_mode<{revisit.value}>")
    return found


def _write_index_map(
    function_name: str,
    block: BlockMapping,
    mapping: GridMapping,
    scalars: Sequence[Memory],
    name: str,
) -> None:
    ir = hlo.ir
    i32 = ir.IntegerType.get_signless(32)
    kinds = [scalar.value.type for scalar in scalars]
    rank = len(block.block_shape)
    function = hlo.func.FuncOp(
        function_name,
        ir.FunctionType.get([i32] * len(mapping.grid) + kinds, [i32] * rank),
    )
    entry = function.add_entry_block()
    indices, given = split_list(list(entry.arguments), len(mapping.grid))
    memories = [replace(scalar, value=x) for scalar, x in zip(scalars, given)]
    place = Place(indices, mapping.grid)
    kernel = Kernel(tpu, f"{name} (index map of {block.origin})", place)
    with ir.InsertionPoint(entry):
        jaxpr = block.index_map_jaxpr.jaxpr
        results = lower_eqns(kernel, jaxpr, [*indices, *memories])
        hlo.func.ReturnOp([_narrow(x, i32) for x in results])


def _narrow(value: Any, i32: Any) -> Any:
    return value if value.type == i32 else dialect("arith").trunci(i32, value)
