"""A kernel as one XLA program: a loop over the grid, without refs.

The kernel loses its refs (`transforms/discharge.py`): it becomes a function from the
contents of its blocks to their contents afterwards. One program of the grid then is

    block    = dynamic_slice array start      for each block that the kernel reads
    new      = kernel block ...
    array    = dynamic_update_slice array new start   for each that it writes

and the grid is a `while` over all programs in row-major order, the last axis fastest.
Axes along which programs cannot meet need no loop (`side_by_side.py`).
A block of an output that stays the same along the last axes, as an accumulator does, is
cut out before a loop over these and put back after it. Only arrays that are written are
carried from step to step, and XLA updates them in place; what is only read stays
outside of the loop.

An array that its blocks do not divide is padded at the end; what was never written,
padding and scratch memory included, holds NaN, or the smallest integer, or False.

In JAX: `pallas/hlo_interpreter.py`, which is its interpret mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import partial_eval, shaping
from minijax.core.language import ClosedJaxpr, Jaxpr, get_aval
from minijax.kernels.grid_context import Place, dynamic_grid_dim, eval_at
from minijax.kernels.grid_mappings import BlockMapping, GridMapping
from minijax.kernels.scoped_memory import fresh
from minijax.kernels.side_by_side import side_by_side
from minijax.kernels.specs import Element
from minijax.kernels.uninitialized import uninitialized
from minijax.primitives.elementwise import rounding
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.shape import padding, slicing
from minijax.primitives.shape.squeezing import expand_dims, squeeze
from minijax.programs.calls import close_jaxpr
from minijax.programs.control_flow import while_loops
from minijax.transforms import discharge

# An accumulation of so few steps is written out: each program then knows whether it is
# the first or the last one.
_UNROLLED = 4
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
    """The array with its padding, which is not initialised."""
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
    starts = mapping.first_elements(results)
    return [shaping.convert_element_type(start, _int32) for start in starts]


def read_block(x: Any, mapping: BlockMapping, starts: Sequence[Any]) -> Any:
    """The block of an array, as the kernel sees it."""
    if mapping.sizes != get_aval(x).shape:
        x = dynamic_slicing.dynamic_slice(x, starts, mapping.sizes)
    return squeeze(x, mapping.squeezed_axes)


def write_block(
    x: Any, mapping: BlockMapping, starts: Sequence[Any], block: Any
) -> Any:
    """The array with a block replaced."""
    block = expand_dims(block, mapping.squeezed_axes)
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
    compiler_params: Any = None,
    **_: Any,
) -> list[Any]:
    """Compute a `pallas_call`: its outputs, from sizes, scalars and inputs."""
    mapping = grid_mapping
    num_sizes, num_scalars = mapping.num_dynamic_grid_bounds, mapping.num_index_operands
    sizes, operands = iter(args[:num_sizes]), args[num_sizes:]
    scalars, inputs = operands[:num_scalars], operands[num_scalars:]
    grid = [next(sizes) if size is dynamic_grid_dim else size for size in mapping.grid]
    aliased = {out: operands[given] for given, out in input_output_aliases}
    outputs = [
        aliased[i] if i in aliased else fresh(m.array_aval)
        for i, m in enumerate(mapping.output_mappings)
    ]
    arrays = [padded(x, m) for x, m in zip([*inputs, *outputs], mapping.block_mappings)]
    scratch = [fresh(aval.inner_aval) for aval in mapping.scratch_avals]
    with mapping.trace_env():
        kernel = pure_kernel(jaxpr)
    memory = [*scalars, *arrays, *scratch]
    run = _GridRun(mapping, kernel, grid, memory, compiler_params)
    memory = run.run()
    first = num_scalars + len(inputs)
    return [
        unpadded(x, m)
        for x, m in zip(memory[first : first + len(outputs)], mapping.output_mappings)
    ]


@dataclass
class _GridRun:
    """All programs of a grid, as two loops, one in the other.

    The inner loop goes over the last axes of the grid, those along which no block that
    is written moves: such blocks are cut out before it and put back after it, as
    accumulators are.

    Programs of axes along which they cannot meet run side by side (`side_by_side.py`).

    `memory` is what the kernel's refs show parts of: scalars, arrays, scratch memory.
    """

    mapping: GridMapping
    kernel: PureKernel
    grid: Sequence[Any]
    memory: list[Any]
    compiler_params: Any

    def __post_init__(self) -> None:
        # Writes to prefetched scalars are not seen by the next program, as in JAX.
        first = self.mapping.num_index_operands
        writes = self.kernel.writes
        self.carried = [i for i, flag in enumerate(writes) if flag and i >= first]
        blocks = self.mapping.block_mappings
        self.blocks = {first + i: block for i, block in enumerate(blocks)}
        moving = [
            axis
            for position in self.carried
            if position in self.blocks
            for axis in self.blocks[position].arguments_read
            if axis < len(self.grid)
        ]
        self.num_outer = max(moving) + 1 if moving else 0
        self.beside = side_by_side(
            self.mapping,
            self.kernel.closed.jaxpr,
            self.grid,
            self.blocks,
            {
                position: get_aval(self.memory[position]).shape
                for position in self.blocks
            },
            self.carried,
            self.compiler_params,
        )

    def run(self) -> list[Any]:
        """The contents of the memory after all programs."""
        beside = self.beside
        memory = [beside.stacked(i, content) for i, content in enumerate(self.memory)]
        start = [
            memory[i] if i in self.blocks else beside.for_each(memory[i])
            for i in self.carried
        ]
        looped = [axis for axis in range(self.num_outer) if axis not in beside.axes]

        def step(places: Sequence[Any], contents: list[Any]) -> list[Any]:
            # A program side by side with others does not ask for its place there.
            indices: list[Any] = [np.int32(0)] * self.num_outer
            for axis, place in zip(looped, places, strict=True):
                indices[axis] = place
            run = functools.partial(self.outer, indices)
            return beside.mapped(run, len(memory), self.carried)(memory, contents)

        last = _loop([self.grid[axis] for axis in looped], step, start)
        now = self.now(memory, last)
        return [
            beside.unstacked(i, content, get_aval(old).shape)
            for i, (content, old) in enumerate(zip(now, self.memory, strict=True))
        ]

    def now(self, memory: Sequence[Any], contents: Sequence[Any]) -> list[Any]:
        """The memory with the contents of what is carried."""
        memory = list(memory)
        for position, content in zip(self.carried, contents, strict=True):
            memory[position] = content
        return memory

    def outer(
        self, indices: Sequence[Any], memory: Sequence[Any], contents: Sequence[Any]
    ) -> list[Any]:
        """All programs with the same first indices: new contents of what is carried."""
        inner_grid = self.grid[self.num_outer :]
        first = [*indices, *[np.int32(0)] * len(inner_grid)]
        memory = self.now(memory, contents)
        starts = {
            position: self.starts(position, first, memory)
            for position in self.carried
            if position in self.blocks
        }
        # Of a block that each program writes as a whole the old content is not needed.
        once = all(isinstance(size, int) and size > 0 for size in inner_grid)
        held = []
        for position, content in zip(self.carried, contents, strict=True):
            if position in self.blocks:
                block = self.blocks[position]
                if once and not self.kernel.reads[position]:
                    content = fresh(block.block_aval.inner_aval)
                else:
                    content = read_block(content, block, starts[position])
            held.append(content)

        def inner(rest: Sequence[Any], held: Sequence[Any]) -> list[Any]:
            return self.program([*indices, *rest], memory, held)

        held = _loop(inner_grid, inner, held, _UNROLLED)
        return [
            write_block(memory[position], self.blocks[position], starts[position], new)
            if position in self.blocks
            else new
            for position, new in zip(self.carried, held, strict=True)
        ]

    def program(
        self, indices: Sequence[Any], memory: Sequence[Any], held: Sequence[Any]
    ) -> list[Any]:
        """One program: the new contents of blocks and scratch memory that it holds."""
        contents = dict(zip(self.carried, held, strict=True))
        arguments = []
        for position, content in enumerate(memory):
            if not self.kernel.reads[position]:
                continue
            if position in contents:
                content = contents[position]
            elif position in self.blocks:
                starts = self.starts(position, indices, memory)
                content = read_block(content, self.blocks[position], starts)
            arguments.append(content)
        closed = self.kernel.closed
        place = self.mapping.place(indices, self.grid)
        results = eval_at(place, closed.jaxpr, closed.consts, arguments)
        written = [i for i, flag in enumerate(self.kernel.writes) if flag]
        new = dict(zip(written, results, strict=True))
        return [new[position] for position in self.carried]

    def starts(self, position: int, indices: Sequence[Any], memory: Any) -> list[Any]:
        scalars = memory[: self.mapping.num_index_operands]
        place = self.mapping.place(indices, self.grid)
        starts = starts_of(self.blocks[position], place, indices, scalars)
        for dim in self.beside.cuts.get(position, {}).values():
            starts[dim] = np.int32(0)
        return starts


def _loop(
    grid: Sequence[Any], step: Any, contents: list[Any], unrolled: int = 1
) -> list[Any]:
    """Run `step(indices, contents)` for all programs, the last axis fastest.

    At most `unrolled` programs are written out one by one.
    """
    if all(isinstance(size, int) for size in grid):
        count = math.prod(grid)
        if count == 0:
            return contents
        if count <= unrolled:
            for place in np.ndindex(*grid):
                contents = step([np.int32(i) for i in place], contents)
            return contents
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
