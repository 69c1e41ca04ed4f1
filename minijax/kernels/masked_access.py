"""Reads and writes of refs with masks, and atomic ones: how GPU kernels use memory.

    x = load(x_ref.at[pl.ds(start, 128)], mask=index < n, other=0.0)

Where a mask is False nothing is read or written; a read gives `other` there. A slice
may reach beyond the end of the ref: what is read there has no value (NaN, or the
smallest integer), and what is written there is dropped.

In JAX: `pallas/primitives.py` (`masked_load`, `masked_swap`) and
`pallas/triton/primitives.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import arithmetic as elementwise
from minijax.core import shaping, trees
from minijax.core.language import JaxprEqn, Primitive, ShapedArray, get_aval
from minijax.core.rules import instantiate
from minijax.kernels.uninitialized import uninitialized
from minijax.primitives.elementwise import clamping, comparing, extrema
from minijax.primitives.index import dynamic_slicing
from minijax.primitives.index.indexers import NDIndexer, Slice
from minijax.primitives.refs import ref_blocks, references
from minijax.primitives.refs.mutable_arrays import ref_primitive
from minijax.primitives.refs.ref_effects import ReadEffect, WriteEffect
from minijax.primitives.shape import broadcasting, padding
from minijax.primitives.shape.squeezing import expand_dims, squeeze
from minijax.values.print_options import prints_equation

# ----------------------------------------------------------------------------------
# Blocks that reach beyond the end
# ----------------------------------------------------------------------------------


def _fits(indexer: NDIndexer) -> bool:
    """Whether the block is known to lie inside of the ref."""
    return all(
        isinstance(entry, Slice)
        and isinstance(entry.start, int)
        and entry.start + entry.size <= size
        for entry, size in zip(indexer.indices, indexer.shape)
    )


def _grown(x: Any, sizes: Sequence[int]) -> Any:
    """The array, at least as large as a block along each axis."""
    missing = [max(0, s - n) for s, n in zip(sizes, get_aval(x).shape)]
    return _with_junk(x, missing) if any(missing) else x


def _with_junk(x: Any, counts: Sequence[int]) -> Any:
    filler = uninitialized(get_aval(x).dtype)
    return padding.pad(x, filler, [(0, count, 0) for count in counts])


def _inside(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[list, list]:
    """(starts moved so that the block lies inside, how far each was moved)."""
    inside = [
        clamping.clamp(np.int32(0), start, np.int32(n - size))
        for start, size, n in zip(starts, sizes, get_aval(x).shape)
    ]
    return inside, [elementwise.sub(a, b) for a, b in zip(starts, inside)]


def read(x: Any, indexers: Sequence[NDIndexer]) -> Any:
    """The block of an array; beyond its end there are no values."""
    *first, last = indexers or (NDIndexer.from_indices_shape((), get_aval(x).shape),)
    x = ref_blocks.read(x, first)
    spans = ref_blocks.as_dynamic_slice(last)
    if spans is None or _fits(last):
        return ref_blocks.read(x, (last,))
    starts, sizes, integers = spans
    x = _grown(x, sizes)
    inside, moved = _inside(x, starts, sizes)
    block = _with_junk(dynamic_slicing.dynamic_slice(x, inside, sizes), sizes)
    return squeeze(dynamic_slicing.dynamic_slice(block, moved, sizes), integers)


def write(x: Any, indexers: Sequence[NDIndexer], value: Any) -> Any:
    """The array with a block replaced; elements beyond its end are dropped."""
    *first, last = indexers or (NDIndexer.from_indices_shape((), get_aval(x).shape),)
    spans = ref_blocks.as_dynamic_slice(last)
    if spans is None or _fits(last):
        return ref_blocks.swap(x, indexers, value)[0]
    starts, sizes, integers = spans
    whole = ref_blocks.read(x, first)
    shape = get_aval(whole).shape
    new = _grown(whole, sizes)
    inside, moved = _inside(new, starts, sizes)
    block = _with_junk(dynamic_slicing.dynamic_slice(new, inside, sizes), sizes)
    value = expand_dims(value, integers)
    block = dynamic_slicing.dynamic_update_slice(block, value, moved)
    block = dynamic_slicing.dynamic_slice(block, [np.int32(0)] * len(sizes), sizes)
    new = dynamic_slicing.dynamic_update_slice(new, block, inside)
    if get_aval(new).shape != shape:
        new = dynamic_slicing.dynamic_slice(new, [np.int32(0)] * len(shape), shape)
    return ref_blocks.swap(x, first, new)[0]


# ----------------------------------------------------------------------------------
# The primitives
# ----------------------------------------------------------------------------------


def _access_primitive(name: str) -> Primitive:
    primitive = ref_primitive(name)
    primitive.cache_types = False
    primitive.without("meaning", "what is masked out has no value")
    primitive.without("transpose", "give the kernel a derivative by `custom_vjp`")
    primitive.without("batch", "vmap adds an axis to the grid, not to the kernel")
    return primitive


def _block(name: str, ref: Any, indexers: Any, mask: Any) -> ShapedArray:
    leaves, tree = trees.tree_flatten(indexers)
    block = references.block_type(ref, tree, leaves, name)
    if mask is None:
        return block
    if mask.dtype != np.dtype(bool):
        raise ValueError(
            f"the mask of a {name} must be an array of bools, got {mask}; compare, as "
            "in `index < size`."
        )
    try:
        fits = np.broadcast_shapes(block.shape, mask.shape) == block.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"Cannot broadcast mask shape {mask.shape} to {name} shape {block.shape}: "
            "a mask has one bool for each element of the block."
        )
    return block


load_p = _access_primitive("masked_load")


@load_p.def_effectful_abstract_eval
def _load_type(*avals, args_tree, **_) -> tuple:
    ref, indexers, mask, other = trees.tree_unflatten(args_tree, avals)
    block = _block("load", ref, indexers, mask)
    return ShapedArray(block.shape, block.dtype), frozenset({ReadEffect(0)})


@ref_blocks.discharges(load_p)
def _load_discharge(*args, args_tree, **_) -> tuple:
    x, indexers, mask, other = trees.tree_unflatten(args_tree, args)
    out = read(x, indexers)
    if mask is not None and other is not None:
        out = _where(mask, out, other)
    return None, out


def _where(mask: Any, chosen: Any, other: Any) -> Any:
    aval = get_aval(chosen)
    other = shaping.convert_element_type(other, aval.dtype)
    return elementwise.select(
        broadcasting.broadcast_to(mask, aval.shape),
        chosen,
        broadcasting.broadcast_to(other, aval.shape),
    )


@load_p.def_jvp_rule
def _load_jvp(primals, tangents, *, args_tree, **params) -> tuple:
    ref, indexers, mask, other = trees.tree_unflatten(args_tree, primals)
    ref_tangent, _, _, other_tangent = trees.tree_unflatten(args_tree, tangents)
    other_tangent = instantiate(other_tangent)
    leaves = trees.tree_leaves((ref_tangent, indexers, mask, other_tangent))
    out = load_p.bind(*primals, args_tree=args_tree, **params)
    return out, load_p.bind(*leaves, args_tree=args_tree, **params)


@prints_equation(load_p)
def _load_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    ref, indexers, mask, other = _operands(eqn)
    pieces: list[Any] = [eqn.outvars, " <- ", _place(ref, indexers)]
    for name, atom in (("mask", mask), ("other", other)):
        if atom is not None:
            pieces += [f" {name}=", atom]
    return pieces


def _operands(eqn: JaxprEqn) -> Any:
    return trees.tree_unflatten(eqn.params["args_tree"], eqn.invars)


def _place(ref: Any, indexers: Any) -> tuple:
    leaves, tree = trees.tree_flatten(indexers)
    return references.place_pieces(tree, ref, leaves)


swap_p = _access_primitive("masked_swap")


def _swap_type(*avals, args_tree, **_) -> tuple:
    ref, indexers, value, mask = trees.tree_unflatten(args_tree, avals)
    block = _block("store", ref, indexers, mask)
    references.check_value("store", ref, block, value)
    return ShapedArray(block.shape, block.dtype), frozenset({WriteEffect(0)})


swap_p.def_effectful_abstract_eval(_swap_type)


@ref_blocks.discharges(swap_p)
def _swap_discharge(*args, args_tree, **_) -> tuple:
    x, indexers, value, mask = trees.tree_unflatten(args_tree, args)
    old = read(x, indexers)
    new = value if mask is None else _where(mask, value, old)
    out = old if mask is None else _where(mask, old, value)
    return write(x, indexers, new), out


@swap_p.def_jvp_rule
def _swap_jvp(primals, tangents, *, args_tree, **params) -> tuple:
    ref, indexers, value, mask = trees.tree_unflatten(args_tree, primals)
    ref_tangent, _, value_tangent, _ = trees.tree_unflatten(args_tree, tangents)
    leaves = trees.tree_leaves(
        (ref_tangent, indexers, instantiate(value_tangent), mask)
    )
    out = swap_p.bind(*primals, args_tree=args_tree, **params)
    return out, swap_p.bind(*leaves, args_tree=args_tree, **params)


@prints_equation(swap_p)
def _swap_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    ref, indexers, value, mask = _operands(eqn)
    pieces = references.swap_pieces(eqn, names, _place(ref, indexers), value)
    unread = names.get(eqn.outvars[0]) == "_"
    return pieces if unread or mask is None else [*pieces, " mask=", mask]


atomic_rmw_p = _access_primitive("atomic_rmw")
atomic_rmw_p.without("jvp", "atomic updates have no derivative: use `custom_vjp`")


class AtomicOpType(enum.Enum):
    """What an atomic update does with the old and the new value."""

    XCHG = "xchg"
    ADD = "add"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


_NO_ATOMICS = ("bool", "int8", "int16", "bfloat16")


@atomic_rmw_p.def_effectful_abstract_eval
def _atomic_type(*avals, args_tree, atomic_type) -> tuple:
    dtype = avals[0].dtype.name
    if dtype in _NO_ATOMICS or (
        dtype == "float16" and atomic_type is not AtomicOpType.ADD
    ):
        raise ValueError(f"`atomic_{atomic_type.value}` does not support {dtype}.")
    return _swap_type(*avals, args_tree=args_tree)


_UPDATES: dict[AtomicOpType, Callable] = {
    AtomicOpType.ADD: elementwise.add,
    AtomicOpType.MAX: extrema.max,
    AtomicOpType.MIN: extrema.min,
    AtomicOpType.AND: comparing.bitwise_and,
    AtomicOpType.OR: comparing.bitwise_or,
    AtomicOpType.XOR: comparing.bitwise_xor,
    AtomicOpType.XCHG: lambda old, new: new,
}


@ref_blocks.discharges(atomic_rmw_p)
def _atomic_discharge(*args, args_tree, atomic_type) -> tuple:
    x, indexers, value, mask = trees.tree_unflatten(args_tree, args)
    old = read(x, indexers)
    by_arrays = len(indexers) == 1 and not ref_blocks.as_dynamic_slice(*indexers)
    if by_arrays and atomic_type is AtomicOpType.ADD:
        # An element may be named several times: each addition counts.
        if mask is not None:
            value = _where(mask, value, shaping.filled_like(value, 0))
        return ref_blocks.add(x, indexers, value), old
    new = _UPDATES[atomic_type](old, value)
    if mask is not None:
        new = _where(mask, new, old)
    return write(x, indexers, new), old


# ----------------------------------------------------------------------------------
# What kernels call
# ----------------------------------------------------------------------------------


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """Read a ref or a part of one, `x_ref.at[index]`.

    Args:
      ref: a ref, or a view of one.
      mask: bools that broadcast to the block: where to read.
      other: the value where the mask is False; without it there is none.
      cache_modifier, eviction_policy, volatile: for the GPU's compiler.
    """
    ref, indexers = references.ref_and_indexers(ref, None, "load")
    leaves, tree = trees.tree_flatten((ref, indexers, mask, other))
    return load_p.bind(
        *leaves,
        args_tree=tree,
        cache_modifier=cache_modifier,
        eviction_policy=eviction_policy,
        is_volatile=volatile,
    )


def store(
    ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None
) -> None:
    """Write to a ref or a part of one, where a mask is True; see `load`."""
    ref, indexers = references.ref_and_indexers(ref, None, "store")
    leaves, tree = trees.tree_flatten((ref, indexers, val, mask))
    swap_p.bind(*leaves, args_tree=tree, eviction_policy=eviction_policy)


def _atomic_function(name: str, what: str) -> Callable:
    """The function for the `AtomicOpType` of that name."""
    atomic_type = AtomicOpType(name)

    def function(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        ref, indexers = references.ref_and_indexers(x_ref_or_view, idx, "atomic_rmw")
        leaves, tree = trees.tree_flatten((ref, indexers, val, mask))
        return atomic_rmw_p.bind(*leaves, args_tree=tree, atomic_type=atomic_type)

    function.__name__ = function.__qualname__ = f"atomic_{name}"
    function.__doc__ = (
        f"{what} at an index, in one step that no other program can disturb; return "
        "what was there."
    )
    return function


atomic_add = _atomic_function("add", "Add a value to what is")
atomic_max = _atomic_function("max", "Keep the larger of a value and what is")
atomic_min = _atomic_function("min", "Keep the smaller of a value and what is")
atomic_and = _atomic_function("and", "Combine the bits of a value and what is by and")
atomic_or = _atomic_function("or", "Combine the bits of a value and what is by or")
atomic_xor = _atomic_function("xor", "Combine the bits of a value and what is by xor")
atomic_xchg = _atomic_function("xchg", "Put a value in place of what is")
