"""A kernel as one XLA program: a loop over the grid, without refs.

The kernel loses its refs (`transforms/discharge.py`): it becomes a function from the
contents of its blocks to their contents afterwards. One program of the grid then is

    block    = dynamic_slice array start      for each block that the kernel reads
    new      = kernel block ...
    array    = dynamic_update_slice array new start   for each that it writes

and the grid is a `while` over all programs in row-major order, the last axis fastest.
Only arrays that are written are carried from step to step, and XLA updates them in
place; what is read alone stays outside of the loop.

An array that its blocks do not divide is padded at the end; what was never written,
padding and scratch memory included, holds NaN, or the smallest integer, or False.

In JAX: `pallas/hlo_interpreter.py`, which is its interpret mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.language.core import ClosedJaxpr, Jaxpr, get_aval
from minijax.primitives.elementwise import arithmetic as elementwise
from minijax.primitives.elementwise import rounding
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.shape import padding, shaping, slicing
from minijax.primitives.shape.squeezing import squeeze
from minijax.programs.calls import close_jaxpr
from minijax.programs.control_flow import while_loops
from minijax.programs.pallas.grid_context import Place, dynamic_grid_dim, eval_at
from minijax.programs.pallas.grid_mappings import BlockMapping, GridMapping
from minijax.programs.pallas.scoped_memory import fresh
from minijax.programs.pallas.specs import Blocked, Element, Squeezed
from minijax.programs.pallas.uninitialized import uninitialized
from minijax.transforms import discharge, partial_eval

_int32 = np.dtype(np.int32)


# ----------------------------------------------------------------------------------
# Blocks of arrays
# ----------------------------------------------------------------------------------


def padding_of(mapping: BlockMapping) -> list[tuple[int, int]]:
    """How many elements are added before and after each axis of an array.

    What `Element` asks for, and as many as make a whole number of blocks.
    """
    pairs = []
    for dim, length, size in zip(
        mapping.block_shape, mapping.array_aval.shape, mapping.sizes, strict=True
    ):
        low, high = dim.padding if isinstance(dim, Element) else (0, 0)
        pairs.append((low, high + -(low + length + high) % size))
    return pairs


def padded(x: Any, mapping: BlockMapping) -> Any:
    """The array with its padding, which nobody wrote."""
    pairs = padding_of(mapping)
    if not any(map(any, pairs)):
        return x
    filler = uninitialized(get_aval(x).dtype)
    return padding.pad(x, filler, [(low, high, 0) for low, high in pairs])


def unpadded(x: Any, mapping: BlockMapping) -> Any:
    """The array without its padding."""
    shape = mapping.array_aval.shape
    if get_aval(x).shape == shape:
        return x
    starts = [low for low, _ in padding_of(mapping)]
    return slicing.slice(x, starts, [a + n for a, n in zip(starts, shape)])


def starts_of(
    mapping: BlockMapping, place: Place, indices: Sequence[Any], scalars: Sequence[Any]
) -> list[Any]:
    """The first element of a program's block in each axis.

    `indices` are those of the whole grid, axes of vmap included.

    Raises NotImplementedError for dimensions that only a TPU's pipeline knows.
    """
    closed = discharge.discharge_state(mapping.index_map_jaxpr)
    results = eval_at(place, closed.jaxpr, closed.consts, [*indices, *scalars])
    starts = []
    for index, dim in zip(results, mapping.block_shape):
        if isinstance(dim, Blocked):
            index = index * dim.block_size
        elif not isinstance(dim, (Element, Squeezed)):
            raise NotImplementedError(
                f"a block dimension {dim} (of {mapping.origin}) belongs to pipelines "
                "on a TPU; on this machine use pl.Blocked, pl.Element or None."
            )
        starts.append(shaping.convert_element_type(index, _int32))
    return starts


def read_block(x: Any, mapping: BlockMapping, starts: Sequence[Any]) -> Any:
    """The block of an array, as the kernel sees it."""
    if mapping.sizes != get_aval(x).shape:
        x = dynamic_slicing.dynamic_slice(x, starts, mapping.sizes)
    return squeeze(x, mapping.squeezed_axes)


def write_block(
    x: Any, mapping: BlockMapping, starts: Sequence[Any], block: Any
) -> Any:
    """The array with a block replaced."""
    block = shaping.expand_dims(block, mapping.squeezed_axes)
    if mapping.sizes == get_aval(x).shape:
        return block
    return dynamic_slicing.dynamic_update_slice(x, block, starts)


# ----------------------------------------------------------------------------------
# Kernels without refs
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PureKernel:
    """A kernel as a function of contents, and which of them it reads and writes.

    Its results are the new contents of those that it writes.
    """

    closed: ClosedJaxpr
    reads: tuple[bool, ...]
    writes: tuple[bool, ...]


def pure_kernel(jaxpr: Jaxpr) -> PureKernel:
    """The kernel without its refs."""
    closed = discharge.discharge_state(close_jaxpr(jaxpr))
    pure = closed.jaxpr
    writes = tuple(
        new is not old for new, old in zip(pure.outvars, pure.invars, strict=True)
    )
    smaller, reads = partial_eval.dce_jaxpr(pure, writes)
    return PureKernel(ClosedJaxpr(smaller, closed.consts), tuple(reads), writes)


# ----------------------------------------------------------------------------------
# The grid
# ----------------------------------------------------------------------------------


def run_grid(
    *args: Any,
    jaxpr: Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: tuple[tuple[int, int], ...],
    **_: Any,
) -> list[Any]:
    """Compute a `pallas_call`: its outputs, from sizes, scalars and inputs."""
    mapping = grid_mapping
    num_sizes, num_scalars = mapping.num_dynamic_grid_bounds, mapping.num_index_operands
    sizes, operands = list(args[:num_sizes]), args[num_sizes:]
    scalars, inputs = operands[:num_scalars], operands[num_scalars:]
    computed = iter(sizes)
    grid = [next(computed) if s is dynamic_grid_dim else s for s in mapping.grid]
    aliased = {out: operands[given] for given, out in input_output_aliases}
    outputs = [
        aliased[i] if i in aliased else fresh(m.array_aval)
        for i, m in enumerate(mapping.output_mappings)
    ]
    arrays = [padded(x, m) for x, m in zip([*inputs, *outputs], mapping.block_mappings)]
    scratch = [fresh(aval.inner_aval) for aval in mapping.scratch_avals]
    kernel = pure_kernel(jaxpr)
    memory = [*scalars, *arrays, *scratch]
    # Writes to prefetched scalars are not seen by the next program, as in JAX.
    carried = [
        place
        for place, written in enumerate(kernel.writes)
        if written and place >= num_scalars
    ]

    def step(indices: Sequence[Any], contents: Sequence[Any]) -> list[Any]:
        now = list(memory)
        for place, content in zip(carried, contents, strict=True):
            now[place] = content
        return _run_program(mapping, kernel, grid, indices, now, carried)

    last = _loop(grid, step, [memory[place] for place in carried])
    for place, content in zip(carried, last, strict=True):
        memory[place] = content
    first = num_scalars + len(inputs)
    return [
        unpadded(x, m)
        for x, m in zip(memory[first : first + len(outputs)], mapping.output_mappings)
    ]


def _run_program(
    mapping: GridMapping,
    kernel: PureKernel,
    grid: Sequence[Any],
    indices: Sequence[Any],
    memory: Sequence[Any],
    carried: Sequence[int],
) -> list[Any]:
    """One program of the grid: the new contents of what is carried."""
    seen = [axis for axis in range(len(grid)) if axis not in mapping.vmapped_dims]
    place = Place([indices[axis] for axis in seen], [grid[axis] for axis in seen])
    num_scalars = mapping.num_index_operands
    scalars = memory[:num_scalars]
    starts: dict[int, list[Any]] = {}
    arguments = []
    for position, content in enumerate(memory):
        number = position - num_scalars
        is_block = 0 <= number < len(mapping.block_mappings)
        used = kernel.reads[position] or kernel.writes[position]
        if is_block and used:
            block = mapping.block_mappings[number]
            starts[position] = starts_of(block, place, indices, scalars)
            if kernel.reads[position]:
                content = read_block(content, block, starts[position])
        if kernel.reads[position]:
            arguments.append(content)
    closed = kernel.closed
    results = eval_at(place, closed.jaxpr, closed.consts, arguments)
    written = [position for position, flag in enumerate(kernel.writes) if flag]
    new = dict(zip(written, results, strict=True))
    contents = []
    for position in carried:
        content = new[position]
        if position in starts:
            block = mapping.block_mappings[position - num_scalars]
            content = write_block(memory[position], block, starts[position], content)
        contents.append(content)
    return contents


def _loop(grid: Sequence[Any], step: Any, contents: list[Any]) -> list[Any]:
    """Run `step(indices, contents)` for all programs, the last axis fastest."""
    if all(isinstance(size, int) for size in grid):
        count = math.prod(grid)
        if count == 0:
            return contents
        if count == 1:
            return step([np.int32(0)] * len(grid), contents)
    total = np.int32(1)
    for size in grid:
        total = elementwise.mul(total, shaping.convert_element_type(size, _int32))

    def body(carry: tuple) -> tuple:
        number, contents = carry
        new = step(_indices(number, grid), contents)
        return elementwise.add(number, np.int32(1)), new

    start = (np.int32(0), contents)
    return while_loops.while_loop(lambda c: elementwise.lt(c[0], total), body, start)[1]


def _indices(number: Any, grid: Sequence[Any]) -> list[Any]:
    """The place in the grid of the program with that number."""
    indices: list[Any] = []
    for axis, size in reversed(list(enumerate(grid))):
        if isinstance(size, int) and size == 1:
            indices.append(np.int32(0))
            continue
        size = shaping.convert_element_type(size, _int32)
        indices.append(number if axis == 0 else rounding.rem(number, size))
        number = elementwise.div(number, size)
    return indices[::-1]
