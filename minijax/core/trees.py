"""Pytrees: nested containers of arrays, flattened to a list of leaves and rebuilt.

Tuples, lists, dicts, None (which has no leaves) and named tuples are nodes; other
classes become nodes by registration. Everything else is a leaf. The work is done by
jaxlib's C++ registry; the registry here is this package's own, so that a class
registered here is not registered with JAX, and vice versa.

This file has what the core needs. The rest of `minijax.tree_util` is in `tree_util`.
In JAX: `jax/_src/tree_util.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .runtime import pytree

if TYPE_CHECKING:
    PyTreeDef = Any
else:
    PyTreeDef = pytree.PyTreeDef

Leaf = Any
KeyPath = tuple[Any, ...]
IsLeaf = Callable[..., bool] | None


def _new_registry(name: str, *, none_is_node: bool) -> Any:
    registry = pytree.PyTreeRegistry(
        enable_none=none_is_node,
        enable_tuple=True,
        enable_namedtuple=True,
        enable_list=True,
        enable_dict=True,
    )
    # A PyTreeDef is pickled with its registry, which is found again by these names.
    registry.__module__ = __name__
    registry.__name__ = name
    return registry


default_registry = _new_registry("default_registry", none_is_node=True)
# Where None stands for "no value here", as in `in_axes`, and so is a leaf.
none_leaf_registry = _new_registry("none_leaf_registry", none_is_node=False)


# ---- flatten and unflatten ----------------------------------------------------------


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Leaf], PyTreeDef]:
    """The leaves of a tree, left to right, and its structure.

    If `is_leaf(x)` is true for a node, the node is a leaf. The keys of dicts
    are taken in sorted order. Raises ValueError when they cannot be sorted.
    """
    if is_leaf is not None:
        checked(is_leaf, Callable, "a function or None as is_leaf")
    return default_registry.flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Leaf]) -> Any:
    """The tree of a structure with the given leaves.

    Raises ValueError when their number is not that of the structure.
    """
    leaves = checked(leaves, Iterable, "a list of leaves")
    return checked_treedef(treedef).unflatten(leaves)


def checked_treedef(treedef: Any) -> PyTreeDef:
    """`treedef` itself; TypeError unless it is the structure of a tree."""
    return checked(treedef, pytree.PyTreeDef, "what tree.structure(x) gives")


def checked(value: Any, kind: Any, what: str) -> Any:
    """`value` itself; TypeError unless it is an instance of the class `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"Expected {what}, got {value!r}.")
    return value


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Leaf]:
    """The leaves of a tree, left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree: what remains when its leaves are taken out."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map_leaves(f: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the same structure, with `f` applied to its leaves."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    return treedef.unflatten(map(f, leaves))


def treedef_is_strict_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a leaf, and not an empty container."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


# ---- paths --------------------------------------------------------------------------


def tree_flatten_with_path(tree: Any) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The (path, leaf) pairs of a tree, and its structure.

    A path is a tuple of keys such as `DictKey('w')`; `keystr` prints it.
    """
    return default_registry.flatten_with_path(tree, None)


def keystr(keys: KeyPath) -> str:
    """A path as text: `['w'][0].b`."""
    return "".join(map(str, keys))


# ---- prefixes -----------------------------------------------------------------------


def broadcast_prefix_to_treedef(prefix_tree: Any, treedef: PyTreeDef) -> list[Any]:
    """The leaves of a prefix, in which None is a leaf, repeated for a structure.

    This is how `in_axes=(0, None)` becomes one axis, or None, for each leaf. Raises
    ValueError when it is not a prefix; use `prefix_errors` to say where.
    """
    leaves, prefix_treedef = none_leaf_registry.flatten(prefix_tree)
    repeated: list[Any] = []
    rest = iter(leaves)

    def walk(prefix: PyTreeDef, full: PyTreeDef) -> None:
        if treedef_is_strict_leaf(prefix):
            repeated.extend([next(rest)] * full.num_leaves)
            return
        if treedef_is_strict_leaf(full) or prefix.node_data() != full.node_data():
            raise ValueError(f"{prefix} is not a prefix of {full}.")
        children, full_children = prefix.children(), full.children()
        if len(children) != len(full_children):
            raise ValueError(f"{prefix} is not a prefix of {full}.")
        for child, full_child in zip(children, full_children):
            walk(child, full_child)

    walk(prefix_treedef, treedef)
    return repeated
