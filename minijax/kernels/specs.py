"""Specifications of a kernel's grid and blocks: BlockSpec, GridSpec, CostEstimate.

A `BlockSpec` cuts an array into blocks: `block_shape` says how large they are, and
`index_map` which one a program works on, from the program's place in the grid:

    BlockSpec((128, 128), lambda i, j: (i, j))

`grid_mappings.py` checks these descriptions against the arrays and traces the maps.

In JAX: `pallas/core.py`.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.language import Tracer, valid_jaxtype
from minijax.kernels.memory_spaces import MemorySpace, TpuMemorySpace

# ----------------------------------------------------------------------------------
# Dimensions of a block
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blocked:
    """An axis in blocks of a size; the map gives the number of the block."""

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclass(frozen=True)
class Element:
    """A block of a size from an element on; the map gives the number of the element.

    `padding` adds elements without a value before and after the array, so that blocks
    may begin before 0.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        pads = self.padding
        if not isinstance(pads, Sequence) or len(pads) != 2:
            raise TypeError(
                "the padding of pl.Element must be a pair (before, after) of numbers "
                f"of elements, got {pads!r}."
            )

    def __str__(self) -> str:
        if self.padding == (0, 0):
            return f"Element({self.block_size})"
        return f"Element({self.block_size}, padding={self.padding})"


@dataclass(frozen=True)
class Squeezed:
    """A block of one element, whose axis the kernel does not see."""


@dataclass(frozen=True)
class BoundedSlice:
    """A slice of at most this size; the map gives a `pl.ds`. For pipelines on TPU."""

    block_size: int

    def __repr__(self) -> str:
        return f"BoundedSlice({self.block_size})"


@dataclass(frozen=True)
class Indirect:
    """Elements at indices that the map reads from an array. For pipelines on TPU."""

    block_size: int

    def __repr__(self) -> str:
        return f"Indirect({self.block_size})"


squeezed = Squeezed()
BlockDim = Blocked | Element | Squeezed | BoundedSlice | Indirect


def canonical_dim(dim: Any) -> BlockDim:
    """A dimension as users write it (an int, None, or a class above) as a class.

    Raises ValueError for anything else.
    """
    if dim is None:
        return squeezed
    if isinstance(dim, BlockDim):
        return dim
    try:
        size = operator.index(dim)
    except TypeError:
        raise ValueError(
            f"Unsupported block dimension type: {type(dim)}. A dimension of a block "
            "shape is an int, None (one element, its axis squeezed), `pl.Blocked`, "
            "`pl.Element` or `pl.Squeezed`."
        ) from None
    if size < 1:
        raise ValueError(f"A block needs at least one element in each axis, got {dim}.")
    return Blocked(size)


def block_size(dim: BlockDim | int | None) -> int:
    """How many elements of an axis are in a block. In JAX: `get_block_size`."""
    dim = canonical_dim(dim)
    return 1 if isinstance(dim, Squeezed) else dim.block_size


# ----------------------------------------------------------------------------------
# Blocks
# ----------------------------------------------------------------------------------


@enum.unique
class RevisitMode(enum.Enum):
    """Whether a pipeline may come back to a block of the output later."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """How many buffers a TPU's pipeline keeps for a block. CPU programs have none."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


@dataclass
class BlockSpec:
    """How an array is cut into blocks, and which block a program works on.

    Args:
      block_shape: for each axis of the array an int, None for one element whose axis
        the kernel does not see, or `pl.Element` and the like. None: the whole array.
      index_map: a function of the program's indices in the grid (and of the prefetched
        scalars) that gives the block's index in each axis. None: zeros.
      memory_space: where the block is to be; see `memory_spaces.py`.
      pipeline_mode: how a TPU buffers it.

    The order of arguments of early tutorials, `BlockSpec(index_map, block_shape)`, is
    understood too.

    Raises:
      TypeError: for two functions, two shapes, or an index map that is not a function.
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def __post_init__(self) -> None:
        shape, index_map = self.block_shape, self.index_map
        if callable(shape):
            if index_map is not None and not isinstance(index_map, Sequence):
                raise TypeError(
                    "BlockSpec takes a block shape and an index map, but got two "
                    "functions; write BlockSpec((8, 128), lambda i, j: (i, j))."
                )
            self.block_shape, self.index_map = index_map, shape
        elif index_map is not None and not callable(index_map):
            raise TypeError(
                "the index_map of a BlockSpec must be a function of the program's "
                f"indices, but got {index_map!r} with block_shape={shape!r}; write "
                "BlockSpec((8, 128), lambda i, j: (i, j))."
            )
        shape = self.block_shape
        if shape is not None and not isinstance(shape, Sequence):
            raise TypeError(
                "the block_shape of a BlockSpec must be a tuple with one entry for "
                f"each axis of the array, but got {shape!r}."
            )
        space, mode = self.memory_space, self.pipeline_mode
        if space is not None and not isinstance(space, (MemorySpace, TpuMemorySpace)):
            raise TypeError(
                "the memory_space of a BlockSpec must be a space such as pltpu.VMEM, "
                f"pltpu.SMEM or pl.ANY, but got {space!r}."
            )
        if mode is not None and not isinstance(mode, Buffered):
            raise TypeError(
                "the pipeline_mode of a BlockSpec must be pl.Buffered(count), but got "
                f"{mode!r}."
            )

    replace = dataclasses.replace


class NoBlockSpec:
    """In place of a spec: the whole array is one block."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


# ----------------------------------------------------------------------------------
# Grids
# ----------------------------------------------------------------------------------


def _is_grid_dim(dim: Any) -> bool:
    if isinstance(dim, Tracer):
        return dim.shape == () and dtypes.issubdtype(dim.dtype, np.integer)
    try:
        operator.index(dim)
    except TypeError:
        return valid_jaxtype(dim) and not isinstance(dim, (float, complex, str))
    return not isinstance(dim, bool)


def _sequence_of_specs(specs: Any) -> Any:
    if isinstance(specs, list):
        return tuple(specs)
    if specs is not no_block_spec and not isinstance(specs, Sequence):
        raise ValueError(
            f"`in_specs` must be a tuple or a list with one BlockSpec for each "
            f"argument. Found: {specs}"
        )
    return specs


class GridSpec:
    """Grid, blocks and scratch memory of a kernel in one object.

    Args:
      grid: how many programs there are along each axis: ints (or integer arrays), or
        pairs (name, int). An int is a grid of one axis.
      in_specs: a tuple of trees of `BlockSpec`, one for each argument.
      out_specs: a tree of `BlockSpec` like `out_shape`.
      scratch_shapes: memory that programs share one after another, such as
        `pltpu.VMEM((8, 128), jnp.float32)`.

    Raises:
      ValueError: the grid is not of integers, or `in_specs` is not a tuple.

    In JAX: `pallas/core.py`, `GridSpec`.
    """

    num_scalar_prefetch = 0
    scratch_shapes: Any = ()

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        self.in_specs = _sequence_of_specs(in_specs)
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes
        if isinstance(scratch_shapes, list):
            self.scratch_shapes = tuple(scratch_shapes)
        names: tuple[Hashable, ...] | None = None
        if not isinstance(grid, (tuple, list)):
            grid = (grid,)
        elif grid and isinstance(grid[0], tuple):
            if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in grid):
                raise ValueError(
                    "Grid must be a tuple of integers, or of pairs (name, integer), "
                    f"got {grid}"
                )
            names, grid = zip(*grid)
        if not all(_is_grid_dim(dim) for dim in grid):
            raise ValueError(f"Grid must be a tuple of integers or arrays, got {grid}")
        self.grid = tuple(_as_int(dim) for dim in grid)
        self.grid_names = names
        for size in self.grid:
            if isinstance(size, int) and size < 0:
                raise ValueError(f"A grid cannot have a negative size, got {grid}.")


def _as_int(dim: Any) -> Any:
    """A size that is known as an int; an array stays one."""
    if isinstance(dim, Tracer) or hasattr(dim, "aval"):
        return dim
    return operator.index(dim)


class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps read integers that are fetched before the kernel starts.

    The first `num_scalar_prefetch` arguments have no blocks: the index maps and the
    kernel get a ref to the whole of each, in SMEM.

    In JAX: `pltpu.PrefetchScalarGridSpec`.
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        if not isinstance(num_scalar_prefetch, int) or num_scalar_prefetch < 0:
            raise ValueError(
                "num_scalar_prefetch must be the number of prefetched arguments, the "
                f"first ones of the kernel, got {num_scalar_prefetch!r}."
            )
        self.num_scalar_prefetch = num_scalar_prefetch
        self.scalar_memory_space = TpuMemorySpace.SMEM


# ----------------------------------------------------------------------------------
# Costs
# ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for the compiler that schedules around it.

    Raises ValueError for a field that is not an int.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    "All fields in CostEstimate must be ints. "
                    f"{name} is not an int: {type(value)}({value})"
                )

    def to_json(self) -> bytes:
        """The costs as an object in JSON, as compilers take them."""
        return json.dumps(dataclasses.asdict(self)).encode("ascii")

    def times(self, count: int) -> CostEstimate:
        """The cost of several such kernels."""
        return CostEstimate(
            flops=self.flops * count,
            transcendentals=self.transcendentals * count,
            bytes_accessed=self.bytes_accessed * count,
        )
