"""Reads and writes of a kernel's refs on a GPU: pointers to the elements.

An array lies row by row in the GPU's memory. The address of an element is the array's,
plus each index times the distance of two elements along that axis (its stride):

    %p = tt.addptr %x, %start       the first element of what is read
    %q = tt.splat %p                one pointer for each element ...
    %r = tt.addptr %q, %offsets     ... moved by its place in the block
    %v = tt.load %r, %mask

Where a block reaches beyond the end of its array (the last one, if blocks do not divide
it), what is beyond is masked out. A slice that the kernel itself computes is not
checked: there the kernel gives the mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.backend.dialects import dialect
from minijax.core import hlo, trees
from minijax.kernels.kernel_arithmetic import add
from minijax.kernels.kernel_rules import RuleContext, kind_of
from minijax.kernels.masked_access import AtomicOpType
from minijax.kernels.triton.kernel_context import (
    arange,
    element_of,
    element_type,
    expanded,
    i32,
    placed_at,
    rule,
    shape_of,
    splat,
    tensor_type,
    value_type,
)
from minijax.primitives.index.indexers import NDIndexer, Slice

_SMALL = 2**31 - 1


@dataclass(frozen=True)
class Memory:
    """A ref in a kernel: a block of an array.

    Attributes:
      pointer: to the array's first element.
      array_shape: the whole array's.
      sizes: of the block along each axis of the array.
      starts: where the block begins: numbers, or int32 values.
      hidden: the axes that the kernel does not see; the block has one element there.
      checked: the axes along which the block may reach beyond the array.
    """

    pointer: Any
    array_shape: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[Any, ...]
    hidden: frozenset[int] = frozenset()
    checked: frozenset[int] = frozenset()

    @property
    def strides(self) -> tuple[int, ...]:
        """How far two neighbours along each axis lie apart, in elements."""
        shape = self.array_shape
        return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass(frozen=True)
class _Axis:
    """What is used of an axis of the array: places from `start` on, every `stride`-th.

    `inside` is the start within the block; `places` are the indices themselves, if the
    kernel gives a tensor of them.
    """

    inside: Any
    size: int
    stride: int = 1
    places: Any = None


# ----------------------------------------------------------------------------------
# Which elements
# ----------------------------------------------------------------------------------


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def plus(a: Any, b: Any) -> Any:
    """The sum of two places: numbers, or values of int32 or int64."""
    if _is_number(a) and _is_number(b):
        return int(a) + int(b)
    if _is_number(a) and not a:
        return b
    if _is_number(b) and not b:
        return a
    a, b = (i32(int(x)) if _is_number(x) else x for x in (a, b))
    return dialect("arith").addi(*_same_width(a, b))


def times(a: Any, factor: int) -> Any:
    """A place times a number."""
    if _is_number(a):
        return int(a) * factor
    if factor == 1:
        return a
    if factor > _SMALL:
        a = _widened(a)
    bits = element_of(a).width
    return dialect("arith").muli(a, splat(_integer(factor, bits), shape_of(a)))


def _integer(value: int, bits: int) -> Any:
    return dialect("arith").constant(hlo.ir.IntegerType.get_signless(bits), value)


def _widened(a: Any, bits: int = 64) -> Any:
    if element_of(a).width >= bits:
        return a
    element, shape = hlo.ir.IntegerType.get_signless(bits), shape_of(a)
    return dialect("arith").extsi(tensor_type(shape, element) if shape else element, a)


def _same_width(a: Any, b: Any) -> tuple[Any, Any]:
    bits = max(element_of(a).width, element_of(b).width)
    return _widened(a, bits), _widened(b, bits)


def _axes(ref: Memory, indexers: Sequence[NDIndexer]) -> tuple[list[_Axis], list[Any]]:
    """(what is used of each axis of the array, the axes that make the result's).

    The second has an axis for each slice in order, and None for tensors of indices.
    """
    axes = [_Axis(0, size) for size in ref.sizes]
    seen: list[Any] = [axis for axis in range(len(axes)) if axis not in ref.hidden]
    for number, indexer in enumerate(indexers):
        remaining: list[Any] = []
        for axis, entry in zip(seen, indexer.indices, strict=True):
            old = axes[axis]
            if isinstance(entry, Slice):
                first = plus(old.inside, times(entry.start, old.stride))
                axes[axis] = _Axis(first, entry.size, old.stride * entry.stride)
                remaining.append(axis)
            elif not _is_number(entry) and shape_of(entry):
                if number + 1 < len(indexers):
                    raise NotImplementedError(
                        "an index that is an array, with another index after it; "
                        "write one index."
                    )
                axes[axis] = _Axis(old.inside, 1, old.stride, entry)
                remaining.append(None)
            else:
                first = plus(old.inside, times(entry, old.stride))
                axes[axis] = _Axis(first, 1)
        seen = remaining
    return axes, seen


def _order(seen: Sequence[Any], common: int) -> tuple[dict[int, int], int]:
    """({axis of the array: axis of the result}, where the tensors' own axes begin).

    As in NumPy: they begin where the first tensor stands, or in front if something
    stands between tensors.
    """
    tensors = [number for number, axis in enumerate(seen) if axis is None]
    first = 0
    if tensors and tensors[-1] - tensors[0] == len(tensors) - 1:
        first = tensors[0]
    slices = [axis for axis in seen if axis is not None]
    places = {
        axis: number if number < first else number + common
        for number, axis in enumerate(slices)
    }
    return places, first


@dataclass(frozen=True)
class _Elements:
    """Pointers to the elements, and which of them are inside of the array."""

    pointers: Any
    shape: tuple[int, ...]
    inside: Any


def _elements(ref: Memory, indexers: Sequence[NDIndexer], shape: Any) -> _Elements:
    shape = tuple(shape)
    axes, seen = _axes(ref, indexers)
    common = indexers[-1].int_indexer_shape if indexers else ()
    places, first_common = _order(seen, len(common) if None in seen else 0)
    base: Any = 0
    offsets: Any = 0
    inside: Any = None
    for axis, (used, stride) in enumerate(zip(axes, ref.strides)):
        begin = plus(ref.starts[axis], used.inside)
        base = plus(base, times(begin, stride))
        within: Any = 0
        if used.places is not None:
            own = placed_at(used.places, first_common, len(shape))
            within = times(own, used.stride)
        elif used.size > 1:
            steps = times(arange(used.size), used.stride)
            within = placed_at(steps, places[axis], len(shape))
        if axis in ref.checked:
            inside = _both(inside, _bounds(begin, within, ref.array_shape[axis]), shape)
        if _is_number(within):
            continue
        moved = times(within, stride)
        offsets = moved if _is_number(offsets) else _sum(offsets, moved, shape)
    pointers = ref.pointer
    if not _is_number(base) or base:
        tt = dialect("tt")
        if _is_number(base):
            base = _integer(base, 64 if base > _SMALL else 32)
        pointers = tt.addptr(pointers.type, pointers, base)
    if shape:
        pointers = splat(pointers, shape)
        if not _is_number(offsets):
            offsets = expanded(offsets, shape)
            pointers = dialect("tt").addptr(pointers.type, pointers, offsets)
    return _Elements(pointers, shape, inside)


def _sum(a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    return dialect("arith").addi(*_same_width(expanded(a, shape), expanded(b, shape)))


def _bounds(begin: Any, within: Any, length: int) -> Any:
    """Whether 0 <= begin + within < length: a bool, or a tensor of them."""
    arith = dialect("arith")
    place = i32(int(begin)) if _is_number(begin) else begin
    if not _is_number(within):
        place = arith.addi(*_same_width(splat(place, shape_of(within)), within))
    bits = element_of(place).width

    def compared(predicate: Any, limit: int) -> Any:
        bound = splat(_integer(limit, bits), shape_of(place))
        return arith.cmpi(predicate, place, bound)

    predicates = arith.CmpIPredicate
    return arith.andi(compared(predicates.slt, length), compared(predicates.sge, 0))


def _both(a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    b = expanded(b, shape)
    return b if a is None else dialect("arith").andi(a, b)


# ----------------------------------------------------------------------------------
# Reading and writing
# ----------------------------------------------------------------------------------


def memory_element(dtype: Any) -> Any:
    """The type of an element in memory: bools are bytes there."""
    return element_type(np.int8 if np.dtype(dtype) == np.dtype(bool) else dtype)


def _read(
    ref: Memory, indexers: Any, aval: Any, mask: Any = None, other: Any = None
) -> Any:
    elements = _elements(ref, indexers, aval.shape)
    mask = _masked(elements, mask)
    if other is not None:
        other = _in_memory(expanded(other, aval.shape), aval)
    loaded = dialect("tt").load(
        elements.pointers, mask=mask, other=other if mask is not None else None
    )
    if kind_of(aval.dtype) != "bool":
        return loaded
    arith, zero = dialect("arith"), splat(_integer(0, 8), aval.shape)
    return arith.cmpi(arith.CmpIPredicate.ne, loaded, zero)


def _write(ref: Memory, indexers: Any, value: Any, aval: Any, mask: Any) -> None:
    elements = _elements(ref, indexers, aval.shape)
    value = _in_memory(expanded(value, aval.shape), aval)
    dialect("tt").store(elements.pointers, value, mask=_masked(elements, mask))


def _masked(elements: _Elements, mask: Any) -> Any:
    if mask is not None:
        mask = _filled_up(mask, elements.shape)
    if elements.inside is None:
        return mask
    return _both(mask, elements.inside, elements.shape)


def _filled_up(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask of fewer axes gets the first ones of the block."""
    for _ in range(len(shape) - len(shape_of(mask)) if shape_of(mask) else 0):
        mask = dialect("tt").expand_dims(mask, 0)
    return expanded(mask, shape)


def _in_memory(value: Any, aval: Any) -> Any:
    if kind_of(aval.dtype) != "bool":
        return value
    byte = element_type(np.int8)
    target = tensor_type(aval.shape, byte) if aval.shape else byte
    return dialect("arith").extui(target, value)


@rule("get")
def _get(ctx: RuleContext, ref: Memory, *leaves: Any, tree: Any) -> Any:
    return _read(ref, trees.tree_unflatten(tree, leaves), ctx.avals_out[0])


@rule("swap")
def _swap(ctx: RuleContext, ref: Memory, value: Any, *leaves: Any, tree: Any) -> Any:
    """The old content is read only if the result is used."""
    indexers = trees.tree_unflatten(tree, leaves)
    old = _read(ref, indexers, ctx.avals_out[0]) if ctx.is_used else None
    _write(ref, indexers, value, ctx.avals_out[0], None)
    return old


@rule("addupdate")
def _addupdate(
    ctx: RuleContext, ref: Memory, value: Any, *leaves: Any, tree: Any
) -> list[Any]:
    indexers = trees.tree_unflatten(tree, leaves)
    aval = ctx.avals_in[1]
    old = _read(ref, indexers, aval)
    sum_ctx = RuleContext(ctx.kernel, ctx.eqn, [aval, aval], [aval])
    _write(ref, indexers, add(sum_ctx, old, value), aval, None)
    return []


@rule("masked_load")
def _masked_load(ctx: RuleContext, *leaves: Any, args_tree: Any, **_: Any) -> Any:
    ref, indexers, mask, other = trees.tree_unflatten(args_tree, leaves)
    return _read(ref, indexers, ctx.avals_out[0], mask, other)


@rule("masked_swap")
def _masked_swap(ctx: RuleContext, *leaves: Any, args_tree: Any, **_: Any) -> Any:
    ref, indexers, value, mask = trees.tree_unflatten(args_tree, leaves)
    aval = ctx.avals_out[0]
    old = _read(ref, indexers, aval, mask, value) if ctx.is_used else None
    _write(ref, indexers, value, aval, mask)
    return old


# The operation of `tt.atomic_rmw` for floats, and for integers with and without a sign.
_ATOMICS = {
    AtomicOpType.ADD: ("FADD", "ADD", "ADD"),
    AtomicOpType.MAX: ("", "MAX", "UMAX"),
    AtomicOpType.MIN: ("", "MIN", "UMIN"),
    AtomicOpType.AND: ("AND", "AND", "AND"),
    AtomicOpType.OR: ("OR", "OR", "OR"),
    AtomicOpType.XOR: ("XOR", "XOR", "XOR"),
    AtomicOpType.XCHG: ("XCHG", "XCHG", "XCHG"),
}


@rule("atomic_rmw")
def _atomic(
    ctx: RuleContext, *leaves: Any, args_tree: Any, atomic_type: AtomicOpType
) -> Any:
    ref, indexers, value, mask = trees.tree_unflatten(args_tree, leaves)
    aval = ctx.avals_out[0]
    kind = kind_of(aval.dtype)
    name = _ATOMICS[atomic_type][("float", "int", "uint").index(kind)]
    if not name:
        raise NotImplementedError(
            f"atomic {atomic_type.value} of {aval.dtype}; convert to an integer."
        )
    tt = dialect("tt")
    elements = _elements(ref, indexers, aval.shape)
    return tt.atomic_rmw(
        value_type(aval),
        tt.RMWOp[name],
        elements.pointers,
        expanded(value, aval.shape),
        tt.MemSemantic.ACQUIRE_RELEASE,
        tt.MemSyncScope.GPU,
        mask=_masked(elements, mask),
    )
