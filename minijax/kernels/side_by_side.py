"""Axes of a grid whose programs cannot meet, computed all at once.

Along such an axis each program writes blocks of its own, and asks nothing about its
place. Then no loop is needed: arrays that are cut along the axis get a leading axis, an
entry for each program, and the kernel is mapped over it (`vmap`). For a product of
blocks XLA sees one larger product, which it cuts over the cores.

In JAX there is nothing like it: its interpret mode runs one program after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.core import shaping
from minijax.core.api import vmap
from minijax.core.language import Jaxpr, Literal, get_aval, jaxprs_in_params
from minijax.kernels.grid_context import asks_for_place, num_programs_p, program_id_p
from minijax.kernels.grid_mappings import BlockMapping, GridMapping
from minijax.kernels.specs import Blocked, Squeezed
from minijax.primitives.parallel.variation import axis_index_p
from minijax.primitives.shape import broadcasting

# How many bytes the largest value of the kernel may have, for all programs together.
_LIMIT = 1 << 26


@dataclass(frozen=True)
class SideBySide:
    """The axes whose programs are computed at once.

    Attributes:
      axes: their numbers in the grid.
      sizes: how many programs they have.
      cuts: by position in the memory of the grid, along which of the axes its blocks
        move, and which dimension of the array each of these cuts.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    cuts: Mapping[int, Mapping[int, int]]

    def stacked(self, position: int, x: Any) -> Any:
        """The array with a leading axis for each of the axes that cut it."""
        split, order = self._split(position, get_aval(x).shape)
        return shaping.transpose(shaping.reshape(x, split), order) if order else x

    def unstacked(self, position: int, x: Any, shape: Sequence[int]) -> Any:
        """The array of that shape again."""
        split, order = self._split(position, shape)
        if not order:
            return x
        back = [order.index(axis) for axis in range(len(order))]
        return shaping.reshape(shaping.transpose(x, back), shape)

    def for_each(self, x: Any) -> Any:
        """A value of each program's own, at first the same for all."""
        return broadcasting.broadcast(x, self.sizes)

    def mapped(self, run: Callable, count: int, carried: Sequence[int]) -> Callable:
        """`run(memory, contents)` for all programs at once.

        `count` says how many values `memory` has, and `carried` which of them
        `contents` replaces.
        """
        for axis in reversed(self.axes):
            cut = [
                0 if axis in self.cuts.get(position, ()) else None
                for position in range(count)
            ]
            run = vmap(run, (cut, [0] * len(carried)))
        return run

    def _split(self, position: int, shape: Sequence[int]) -> tuple[list, list]:
        """A shape with the cut dimensions split, and the order with those in front."""
        axis_of = {dim: axis for axis, dim in self.cuts.get(position, {}).items()}
        if not axis_of:
            return list(shape), []
        split: list[int] = []
        place = {}
        for dim, length in enumerate(shape):
            if dim in axis_of:
                axis = axis_of[dim]
                place[axis] = len(split)
                size = self.sizes[self.axes.index(axis)]
                split += [size, length // size]
            else:
                split.append(length)
        front = [place[axis] for axis in self.axes if axis in place]
        return split, front + [at for at in range(len(split)) if at not in front]


def side_by_side(
    mapping: GridMapping,
    kernel: Jaxpr,
    grid: Sequence[Any],
    blocks: Mapping[int, BlockMapping],
    shapes: Mapping[int, Sequence[int]],
    carried: Sequence[int],
    compiler_params: Any,
) -> SideBySide:
    """The axes of a grid that need no loop.

    Along each of them every block that is written moves by whole blocks, and every
    other block does or stays. Scratch memory goes from program to program, so a kernel
    that writes it must say that its programs do not wait for it: the axis is
    "parallel" in `dimension_semantics`.
    """
    none = SideBySide((), (), {})
    asked = _axes_asked(kernel, mapping)
    if kernel.effects or asked is None:
        return none  # its programs could be told apart by more than their blocks
    scratch = any(position not in blocks for position in carried)
    parallel = _declared_parallel(mapping, compiler_params)
    room = _LIMIT // max(_largest(kernel), 1)
    axes: list[int] = []
    cuts: dict[int, dict[int, int]] = {}
    for axis, size in enumerate(grid):
        if not isinstance(size, int) or not 1 < size <= room or axis in asked:
            continue
        if scratch and axis not in parallel:
            continue
        found = {p: _cut(block, shapes[p], axis, size) for p, block in blocks.items()}
        if any(dim == _OTHERWISE for dim in found.values()):
            continue
        if any(found.get(p, 0) is None for p in carried):
            continue
        room //= size
        axes.append(axis)
        for position, dim in found.items():
            if dim is not None:
                cuts.setdefault(position, {})[axis] = dim
    return SideBySide(tuple(axes), tuple(grid[axis] for axis in axes), cuts)


_OTHERWISE = -1


def _cut(block: BlockMapping, shape: Sequence[int], axis: int, size: int) -> int | None:
    """The dimension in which program `i` along an axis has the block `i`.

    None where the block does not move along it, `_OTHERWISE` where it moves in another
    way.
    """
    jaxpr = block.index_map_jaxpr.jaxpr
    index = jaxpr.invars[axis]
    moved = any(index in eqn.invars or eqn.effects for eqn in jaxpr.eqns)
    if moved or asks_for_place(jaxpr):
        return _OTHERWISE
    dims = [d for d, out in enumerate(jaxpr.outvars) if out is index]
    if not dims:
        return None
    (dim, *more) = dims
    whole = shape[dim] == size * block.sizes[dim]
    kind = isinstance(block.block_shape[dim], (Blocked, Squeezed))
    return dim if whole and kind and not more else _OTHERWISE


def _axes_asked(kernel: Jaxpr, mapping: GridMapping) -> set[int] | None:
    """The axes whose place the kernel asks for.

    None if it asks by name, or has an operation that cannot be mapped.
    """
    own = mapping.own_axes
    found: set[int] = set()
    for eqn in kernel.eqns:
        if eqn.primitive in (program_id_p, num_programs_p):
            found.add(own[eqn.params["axis"]])
        inners = list(jaxprs_in_params(eqn.params))
        unmapped = eqn.primitive.batch is None and eqn.invars and not inners
        if eqn.primitive is axis_index_p or unmapped:
            return None
        for inner in inners:
            more = _axes_asked(inner, mapping)
            if more is None:
                return None
            found |= more
    return found


def _declared_parallel(mapping: GridMapping, compiler_params: Any) -> set[int]:
    """The axes that the user calls parallel, and those that vmap added."""
    words = getattr(compiler_params, "dimension_semantics", None) or ()
    parallel = {
        axis
        for axis, word in zip(mapping.own_axes, words)
        if getattr(word, "value", word) == "parallel"
    }
    return parallel | set(mapping.vmapped_dims)


def _largest(kernel: Jaxpr) -> int:
    """The bytes of the kernel's largest value."""
    sizes = [0]
    for eqn in kernel.eqns:
        sizes += [_bytes(var) for var in eqn.outvars]
        sizes += [_largest(inner) for inner in jaxprs_in_params(eqn.params)]
    return max(sizes + [_bytes(var) for var in kernel.invars])


def _bytes(var: Any) -> int:
    aval = var.aval
    if isinstance(var, Literal) or not hasattr(aval, "shape"):
        return 0
    return math.prod(aval.shape) * getattr(aval.dtype, "itemsize", 8)
