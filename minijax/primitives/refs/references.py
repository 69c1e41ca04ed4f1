"""Reading and writing refs: get, swap, addupdate.

A ref is an array that changes in place; its type is `Ref{f32[3]}`. `get` reads a block,
`swap` writes one and returns what was there, `addupdate` adds to one. All three are
linear in the ref's content and in the value, and their transposes are each other: what
was read gets its cotangent added, what was written gives its cotangent back and leaves
zeros.

The effects of these equations (`Read<a>`) say what they read and write, so that none
is removed or moved before another.

In JAX: `state/primitives.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, rules, shaping, trees
from minijax.core.events import add_methods
from minijax.core.language import JaxprEqn, ShapedArray, get_aval
from minijax.core.rules import Zero, instantiate, is_linear
from minijax.primitives.index.indexers import NDIndexer, batched
from minijax.primitives.refs import ref_blocks
from minijax.primitives.refs.mutable_arrays import Ref, even_unmapped, ref_primitive
from minijax.primitives.refs.mutable_arrays import RefAccumulator as RefAccumulator
from minijax.primitives.refs.ref_effects import AccumEffect, ReadEffect, WriteEffect
from minijax.primitives.refs.ref_views import RefView, base_and_indexers
from minijax.values.print_options import prints_equation
from minijax.values.ref_avals import AbstractRef

# ----------------------------------------------------------------------------------
# The index in an equation
# ----------------------------------------------------------------------------------


def ref_and_indexers(view: Any, index: Any, function: str) -> tuple[Any, tuple]:
    """(the ref, its indexers): those of a view of it, then the index."""
    ref, earlier = base_and_indexers(view)
    aval = get_aval(ref)
    if not isinstance(aval, AbstractRef):
        raise ValueError(
            f"Can only call `{function}` on a `Ref`, got a value of type {aval}. "
            "Arrays are indexed with `x[i]` and updated with `x.at[i].set(y)`."
        )
    if index is None or index is Ellipsis:
        index = ()
    elif not isinstance(index, tuple):
        index = (index,)
    if not index:
        return ref, earlier
    return ref, (*earlier, NDIndexer.from_indices_shape(index, view.shape))


def block_type(ref, tree, leaves: Sequence[Any], name: str) -> ShapedArray:
    """The type of the block of a ref that an index (as its leaves) selects."""
    if not isinstance(ref, AbstractRef):
        raise ValueError(f"`{name}` must be called on `Ref` types: {ref}.")
    aval = ref.inner_aval
    for indexer in trees.tree_unflatten(tree, leaves):
        aval = aval.update(shape=indexer.result_shape())
    return aval


def check_value(name: str, ref: AbstractRef, block: ShapedArray, value: Any) -> None:
    if isinstance(value, AbstractRef):
        raise ValueError(
            "Cannot store a Ref into another Ref. Did you forget to load from it using "
            "`[...]`?"
        )
    if block.shape != value.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: "
            f"{block.shape}. Value shape: {value.shape}. Refs do not broadcast: repeat "
            "the value with `jnp.broadcast_to`."
        )
    if block.dtype != value.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {block.dtype}. Value dtype: "
            f"{value.dtype}. Convert the value with `.astype`."
        )


def place_pieces(tree: Any, ref: Any, leaves: Sequence[Any]) -> tuple:
    """The text `a[i,:2]` in pieces; see `print_options.prints_equation`."""
    indexers = trees.tree_unflatten(tree, leaves)
    if not indexers:
        return (ref, "[...]")
    return (ref, *(piece for indexer in indexers for piece in indexer.pieces()))


def _batched_block(
    axis_data: Any, ref: Any, ref_dim: int | None, leaves: Any, dims: Any, tree: Any
) -> tuple[list[Any], Any, int | None, list[int] | None]:
    """The batched index: (leaves, tree, batch axis of the block, permutation)."""
    indexers = trees.tree_unflatten(tree, leaves)
    if not indexers:
        return list(leaves), tree, ref_dim, None
    if len(indexers) > 1:
        raise NotImplementedError(
            "Batching with multiple indexers not supported: write one index for "
            "`ref.at[i].at[j]`."
        )
    new, dim, order = batched(
        indexers[0], dims, axis_data.size, get_aval(ref).shape, ref_dim
    )
    new_leaves, new_tree = trees.tree_flatten((new,))
    return new_leaves, new_tree, dim, order


def _batched_write(
    name: str, axis_data: Any, args: Any, dims: Any, tree: Any
) -> tuple[list[Any], Any, int | None, list[int] | None]:
    """Operands of a write on a batch, tree, batch axis of the block, permutation."""
    (ref, value, *leaves), (ref_dim, value_dim, *leaf_dims) = args, dims
    if ref_dim is None:
        raise Exception(
            f"performing {name} operation with vmapped value on an unbatched array "
            f"reference of type {get_aval(ref)}. Move the array reference to be an "
            "argument to the vmapped function?"
        )
    leaves, tree, dim, order = _batched_block(
        axis_data, ref, ref_dim, leaves, leaf_dims, tree
    )
    value = rules.match_axis(axis_data, value, value_dim, dim)
    if order is not None:
        value = shaping.transpose(value, order)
    return [ref, value, *leaves], tree, dim, order


def _check_ref_has_tangent(name: str, ref: Any, tangent: Any) -> None:
    if type(tangent) is Zero:
        raise Exception(
            f"performing {name} operation with a differentiated value on a "
            f"non-differentiated array reference of type {get_aval(ref)}. Move the "
            "array reference to be an argument of the differentiated function?"
        )


def _numpy_index(tree: Any, leaves: Sequence[Any]) -> tuple:
    """The index in NumPy's terms; in meanings, a ref is an array that changes."""
    indexers = trees.tree_unflatten(tree, leaves)
    return indexers[0].numpy_index() if indexers else (...,)


# ----------------------------------------------------------------------------------
# get
# ----------------------------------------------------------------------------------

get_p = ref_primitive("get")
get_p.meaning = lambda ref, *leaves, tree: np.copy(ref[_numpy_index(tree, leaves)])


@get_p.def_effectful_abstract_eval
def _get_type(ref, *leaves, tree) -> tuple:
    return block_type(ref, tree, leaves, "get"), frozenset({ReadEffect(0)})


@get_p.def_jvp_rule
def _get_jvp(primals, tangents, *, tree) -> Any:
    ref, *leaves = primals
    out = get_p.bind(ref, *leaves, tree=tree)
    return out, get_p.bind(tangents[0], *leaves, tree=tree)


@get_p.def_transpose
def _get_transpose(ct, ref, *leaves, tree) -> None:
    """Add the cotangent where its value was read."""
    if type(ct) is Zero:
        return
    if trees.tree_unflatten(tree, leaves):
        addupdate_p.bind(ref.inst().ref, ct, *leaves, tree=tree)
    else:
        ref.accum(ct)


@ref_blocks.discharges(get_p)
def _get_discharge(x, *leaves, tree) -> tuple:
    return None, ref_blocks.read(x, trees.tree_unflatten(tree, leaves))


@get_p.def_batch
def _get_batch(axis_data, args, dims, *, tree) -> Any:
    (ref, *leaves), (ref_dim, *leaf_dims) = args, dims
    leaves, tree, dim, order = _batched_block(
        axis_data, ref, ref_dim, leaves, leaf_dims, tree
    )
    out = get_p.bind(ref, *leaves, tree=tree)
    return (out if order is None else shaping.transpose(out, np.argsort(order))), dim


@prints_equation(get_p)
def _get_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    ref, *leaves = eqn.invars
    return [eqn.outvars, " <- ", place_pieces(eqn.params["tree"], ref, leaves)]


# ----------------------------------------------------------------------------------
# swap
# ----------------------------------------------------------------------------------

swap_p = ref_primitive("swap")


def _swap_meaning(ref, value, *leaves, tree) -> Any:
    index = _numpy_index(tree, leaves)
    old = np.copy(ref[index])
    ref[index] = value
    return old


swap_p.meaning = _swap_meaning


@swap_p.def_effectful_abstract_eval
def _swap_type(ref, value, *leaves, tree) -> tuple:
    block = block_type(ref, tree, leaves, "swap")
    check_value("swap", ref, block, value)
    return block, frozenset({WriteEffect(0)})


@swap_p.def_jvp_rule
def _swap_jvp(primals, tangents, *, tree) -> Any:
    ref, value, *leaves = primals
    ref_tangent, value_tangent, *_ = tangents
    out = swap_p.bind(ref, value, *leaves, tree=tree)
    _check_ref_has_tangent("a set/swap", ref, ref_tangent)
    value_tangent = instantiate(value_tangent)
    return out, swap_p.bind(ref_tangent, value_tangent, *leaves, tree=tree)


@swap_p.def_transpose
def _swap_transpose(ct, ref, value, *leaves, tree) -> None:
    """What was overwritten gets the result's cotangent; the value, that of the ref."""
    gathered = ref.ref is not None
    if not gathered and type(ct) is Zero:
        return
    value_ct = swap_p.bind(ref.inst().ref, instantiate(ct), *leaves, tree=tree)
    if gathered and is_linear(value):
        value.accum(value_ct)


@ref_blocks.discharges(swap_p)
def _swap_discharge(x, value, *leaves, tree) -> tuple:
    return ref_blocks.swap(x, trees.tree_unflatten(tree, leaves), value)


@swap_p.def_batch
@even_unmapped
def _swap_batch(axis_data, args, dims, *, tree) -> Any:
    operands, tree, dim, order = _batched_write(
        "a set/swap", axis_data, args, dims, tree
    )
    out = swap_p.bind(*operands, tree=tree)
    return (out if order is None else shaping.transpose(out, np.argsort(order))), dim


@prints_equation(swap_p)
def _swap_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    ref, value, *leaves = eqn.invars
    return swap_pieces(eqn, names, place_pieces(eqn.params["tree"], ref, leaves), value)


def swap_pieces(eqn: JaxprEqn, names: Any, place: Any, value: Any) -> list[Any]:
    """A write as text; with the old content, unless that is unused."""
    if names.get(eqn.outvars[0]) == "_":
        return [place, " <- ", value]
    return [eqn.outvars, ", ", place, " <- ", place, ", ", value]


# ----------------------------------------------------------------------------------
# addupdate
# ----------------------------------------------------------------------------------

addupdate_p = ref_primitive("addupdate", multiple_results=True)


def _addupdate_meaning(ref, value, *leaves, tree) -> list:
    np.add.at(ref, _numpy_index(tree, leaves), value)
    return []


addupdate_p.meaning = _addupdate_meaning


@addupdate_p.def_effectful_abstract_eval
def _addupdate_type(ref, value, *leaves, tree) -> tuple:
    block = block_type(ref, tree, leaves, "addupdate")
    check_value("addupdate", ref, block, value)
    return [], frozenset({AccumEffect(0)})


@addupdate_p.def_jvp_rule
def _addupdate_jvp(primals, tangents, *, tree) -> Any:
    ref, value, *leaves = primals
    ref_tangent, value_tangent, *_ = tangents
    _check_ref_has_tangent("an addupdate", ref, ref_tangent)
    value_tangent = instantiate(value_tangent)
    addupdate_p.bind(ref, value, *leaves, tree=tree)
    addupdate_p.bind(ref_tangent, value_tangent, *leaves, tree=tree)
    return [], []


@addupdate_p.def_transpose
def _addupdate_transpose(ct, ref, value, *leaves, tree) -> None:
    """The value gets the cotangent of what it was added to."""
    if ref.ref is not None and is_linear(value):
        value.accum(get_p.bind(ref.ref, *leaves, tree=tree))


@ref_blocks.discharges(addupdate_p)
def _addupdate_discharge(x, value, *leaves, tree) -> tuple:
    return ref_blocks.add(x, trees.tree_unflatten(tree, leaves), value), []


@addupdate_p.def_batch
@even_unmapped
def _addupdate_batch(axis_data, args, dims, *, tree) -> Any:
    operands, tree, *_ = _batched_write("an addupdate", axis_data, args, dims, tree)
    addupdate_p.bind(*operands, tree=tree)
    return [], []


@prints_equation(addupdate_p)
def _addupdate_pieces(eqn: JaxprEqn, names: Any) -> list[Any]:
    ref, value, *leaves = eqn.invars
    return [place_pieces(eqn.params["tree"], ref, leaves), " += ", value]


# ----------------------------------------------------------------------------------
# The functions
# ----------------------------------------------------------------------------------


def ref_get(ref: Any, idx: Any = None) -> Any:
    """The content of a ref at an index: `ref[idx]`. In JAX: `jax.ref.get`.

    Args:
      ref: a ref.
      idx: integers, arrays of integers, slices and an ellipsis; None or `...` for all.

    Raises:
      ValueError: when `ref` is not a ref, or the index does not fit it.
    """
    ref, indexers = ref_and_indexers(ref, idx, "ref_get")
    leaves, tree = trees.tree_flatten(indexers)
    return get_p.bind(ref, *leaves, tree=tree)


def ref_swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Write a value at an index and return what was there. In JAX: `jax.ref.swap`.

    Args:
      ref: a ref.
      idx: as for `ref_get`.
      value: an array of the shape of the block; it is not repeated. A Python scalar,
        or an integer, is converted to the ref's dtype.

    Raises:
      ValueError: when `ref` is not a ref, or index, shape or dtype do not fit it.
    """
    ref, indexers = ref_and_indexers(ref, idx, _function_name)
    value = _converted(get_aval(ref).dtype, value)
    leaves, tree = trees.tree_flatten(indexers)
    return swap_p.bind(ref, value, *leaves, tree=tree)


def _converted(dtype: Any, value: Any) -> Any:
    """A weakly typed float, or any integer, as the dtype of a ref of its kind."""
    aval = get_aval(value)
    if not isinstance(aval, ShapedArray):
        return value
    for kind, also_strong in ((np.floating, False), (np.integer, True)):
        if dtypes.issubdtype(dtype, kind) and dtypes.issubdtype(aval.dtype, kind):
            if aval.weak_type or also_strong:
                return shaping.convert_element_type(value, dtype)
    return value


def ref_set(ref: Any, idx: Any, value: Any) -> None:
    """Write a value at an index: `ref[idx] = value`. In JAX: `jax.ref.set`."""
    ref_swap(ref, idx, value, _function_name="ref_set")


def ref_addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add a value to what is at an index. In JAX: `jax.ref.addupdate`.

    The value has the block's shape and the ref's dtype. Unlike `ref[idx] += x`, this
    reads nothing, so several programs may add to one ref.
    """
    ref, indexers = ref_and_indexers(ref, idx, "ref_addupdate")
    leaves, tree = trees.tree_flatten(indexers)
    addupdate_p.bind(ref, x, *leaves, tree=tree)


# ----------------------------------------------------------------------------------
# Methods of classes that are defined below this file
# ----------------------------------------------------------------------------------


def _addupdate(self: Ref, x: Any, idx: Any = ()) -> None:
    """Add `x` to what is at an index; see `ref.addupdate`."""
    ref_addupdate(self, idx, x)


def _get(self: Ref | RefView, idx: Any = ()) -> Any:
    """The content at an index; see `ref.get`."""
    return ref_get(self, idx)


def _set(self: Ref | RefView, value: Any, idx: Any = ()) -> None:
    """Write a value at an index; see `ref.set`."""
    ref_set(self, idx, value)


def _swap(self: Ref | RefView, value: Any, idx: Any = ()) -> Any:
    """Write a value at an index and return what was there; see `ref.swap`."""
    return ref_swap(self, idx, value)


# What refs of a program being written have, too.
REF_METHODS: dict[str, Callable[..., Any]] = {
    "get": _get,
    "set": _set,
    "swap": _swap,
    "addupdate": _addupdate,
}


def _accum_at(self: RefAccumulator, index: Any, cotangent: Any) -> None:
    """Add the cotangent of a part: zeros for the rest are never made."""
    ref_addupdate(self.inst().ref, index, cotangent)


_items = {"__getitem__": ref_get, "__setitem__": ref_set}
add_methods(Ref, REF_METHODS | _items)
add_methods(RefView, REF_METHODS | _items)
add_methods(RefAccumulator, {"accum_at": _accum_at})
