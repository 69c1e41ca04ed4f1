"""Pytrees as users handle them: maps over several trees, registration, `Partial`.

Flattening, and paths of leaves, are in `trees`, which the core uses. OrderedDict and
defaultdict become nodes here.

What is *prefix* of a tree, and how two trees differ, is in `tree_prefix`.
In JAX: `jax/_src/tree_util.py`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from minijax.core.runtime import pytree
from minijax.core.signatures import check_functions
from minijax.core.trees import (
    IsLeaf,
    KeyPath,
    PyTreeDef,
    broadcast_prefix_to_treedef,
    checked,
    checked_treedef,
    default_registry,
    none_leaf_registry,
    tree_flatten,
    tree_leaves,
    tree_structure,
)
from minijax.support.tree_prefix import prefix_errors

SequenceKey = pytree.SequenceKey
DictKey = pytree.DictKey
GetAttrKey = pytree.GetAttrKey
FlattenedIndexKey = pytree.FlattenedIndexKey
KeyEntry = Any
KeyLeafPair = tuple[Any, Any]

T = TypeVar("T")
Class = TypeVar("Class", bound=Any)


def tree_map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None
) -> Any:
    """A tree of the same structure, with `f` applied to its leaves.

    Further trees must have `tree` as a prefix; `f` then gets what stands in them at
    the place of each leaf. Raises ValueError, naming the place, when they do not.
    """
    check_functions("tree_map", f=f)
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves]
    for other in rest:
        columns.append(_flatten_up_to(treedef, tree, other, is_leaf, "tree_map tree"))
    return treedef.unflatten([f(*row) for row in zip(*columns)])


def map_with_prefix(function: Callable[[Any, Any], Any], tree: Any, prefix: Any) -> Any:
    """`function` of each leaf and of what a prefix, in which None is a leaf, has there.

    Raises ValueError for what is no prefix of the tree.
    """
    leaves, structure = tree_flatten(tree)
    given = broadcast_prefix_to_treedef(prefix, structure)
    return structure.unflatten(map(function, leaves, given))


def _flatten_up_to(
    treedef: PyTreeDef, tree: Any, other: Any, is_leaf: IsLeaf, name: str
) -> list[Any]:
    try:
        return treedef.flatten_up_to(other)
    except Exception as error:
        explanations = prefix_errors(tree, other, is_leaf)
        if not explanations:
            raise
        failure = error
    raise explanations[0](name) from failure


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of trees inside out: outer of inner becomes inner of outer.

    With None for `inner_treedef` it is found from the first inner tree. Raises
    TypeError when the tree is not one of `inner` trees in an `outer` one.
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        first = checked_treedef(outer_treedef).flatten_up_to(pytree_to_transpose)[0]
        inner_treedef = tree_structure(first)
    inner_size = checked_treedef(inner_treedef).num_leaves
    outer_size = checked_treedef(outer_treedef).num_leaves
    if treedef.num_leaves != inner_size * outer_size:
        expected = outer_treedef.compose(inner_treedef)
        raise TypeError(
            "tree_transpose: the tree has the structure\n"
            f"  {treedef}\nwhich is not inner trees within an outer one:\n  {expected}"
        )
    columns = [leaves[position::inner_size] for position in range(inner_size)]
    return inner_treedef.unflatten([outer_treedef.unflatten(c) for c in columns])


class Unspecified:
    """The type of `unspecified`, for arguments where None has a meaning."""

    def __repr__(self) -> str:
        return "unspecified"


unspecified = Unspecified()


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = unspecified,
    is_leaf: IsLeaf = None,
) -> Any:
    """`functools.reduce` over the leaves.

    Raises TypeError for a tree without leaves when there is no `initializer`.
    """
    leaves = tree_leaves(tree, is_leaf)
    if isinstance(initializer, Unspecified):
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = unspecified,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine the leaves pairwise, as a balanced tree: depth log2 of their number.

    Raises TypeError for a tree without leaves when there is no `identity`.
    """

    def combine(items: list[Any]) -> Any:
        if len(items) == 1:
            return items[0]
        middle = len(items) // 2
        return operation(combine(items[:middle]), combine(items[middle:]))

    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return combine(leaves)
    if isinstance(identity, Unspecified):
        raise TypeError(
            "tree_reduce_associative: the tree has no leaves; pass identity=..., the "
            "result for that case."
        )
    return identity


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true; true for a tree without leaves."""
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether none of the items is a node."""
    iterable = checked(iterable, Iterable, "a list of leaves")
    if is_leaf is None:
        return pytree.all_leaves(default_registry, iterable)
    items = list(iterable)
    leaves = tree_leaves(items, is_leaf)
    return len(leaves) == len(items) and all(map(operator.is_, items, leaves))


def is_tree_node(typ: type) -> bool:
    """Whether instances of a class are nodes: built in, registered or named tuples."""
    return default_registry.is_node(typ)


def build_tree(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """A tree of lists and tuples in the shape of `treedef` (`from_iterable_tree`)."""
    leaves = checked(leaves, Iterable, "a tree of lists and tuples")
    return checked_treedef(treedef).from_iterable_tree(leaves)


# ---- structures ---------------------------------------------------------------------


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose items have the given structures."""
    treedefs = checked(treedefs, Iterable, "a list of structures")
    return pytree.treedef_tuple(default_registry, [*map(checked_treedef, treedefs)])


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the items of the root node."""
    return checked_treedef(treedef).children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is one node: a leaf, or an empty container."""
    return checked_treedef(treedef).num_nodes == 1


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The items of the root node and its metadata. Raises ValueError for a leaf."""
    return _of_node(tree, default_registry.flatten_one_level(tree))


def _of_node(tree: Any, found: Any) -> tuple[Iterable[Any], Hashable]:
    if found is None:
        raise ValueError(f"A value of type {type(tree)} is a leaf: it has no items.")
    return found


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[KeyLeafPair], Hashable]:
    """The (key, item) pairs of the root node and its metadata; as above otherwise."""
    return _of_node(tree, default_registry.flatten_one_level_with_keys(tree))


# ---- paths --------------------------------------------------------------------------


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """The (path, leaf) pairs of a tree, and its structure.

    A path is a tuple of keys such as `DictKey('w')`; `keystr` prints it. With
    `is_leaf_takes_path`, `is_leaf` is called as `is_leaf(path, x)`.
    """
    ask = is_leaf
    if is_leaf is not None:
        checked(is_leaf, Callable, "a function or None as is_leaf")
    if is_leaf is not None and not is_leaf_takes_path:

        def ask(path: KeyPath, x: Any) -> bool:
            return is_leaf(x)

    return default_registry.flatten_with_path(tree, ask)


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: `['w'][0].b`, or `w/0/b` with `simple` and a `separator`."""
    keys = checked(keys, Iterable, "a path, of keys")
    separator = checked(separator, str, "a text as separator")
    return separator.join(map(_simple_key if simple else str, keys))


def _simple_key(key: Any) -> str:
    attribute = _WHAT_A_KEY_HOLDS.get(type(key))
    return str(key if attribute is None else getattr(key, attribute))


_WHAT_A_KEY_HOLDS = {SequenceKey: "idx", DictKey: "key", GetAttrKey: "name"}
_WHAT_A_KEY_HOLDS[FlattenedIndexKey] = "key"


def tree_leaves_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The (path, leaf) pairs of a tree."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """`tree_map` for a function that is called as `f(path, leaf, *others)`."""
    check_functions("tree_map_with_path", f=f)
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [list(column) for column in zip(*pairs)]
    name = "tree_map_with_path tree"
    # An is_leaf that takes paths cannot be called when an error is explained.
    plain_is_leaf = None if is_leaf_takes_path else is_leaf
    for other in rest:
        columns.append(_flatten_up_to(treedef, tree, other, plain_is_leaf, name))
    return treedef.unflatten([f(*row) for row in zip(*columns)])


# ---- registration -------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None,
) -> None:
    """Make instances of a class nodes of trees.

    `flatten_func(x)` returns the items and hashable metadata, from which
    `unflatten_func(metadata, items)` makes the object again. Optionally
    `flatten_with_keys_func(x)` returns (key, item) pairs and the metadata. Raises
    ValueError for a class that is registered already. Subclasses are not nodes.
    """
    for registry in (default_registry, none_leaf_registry):
        registry.register_node(
            nodetype, flatten_func, unflatten_func, flatten_with_keys_func
        )


def register_pytree_node_class(cls: Class) -> Class:
    """Class decorator: register by methods `tree_flatten` and `tree_unflatten`.

    `tree_unflatten(metadata, items)` is a class method.
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[KeyLeafPair], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Register a class whose items have keys, which appear in paths.

    `flatten_with_keys(x)` returns (key, item) pairs and metadata. `flatten_func`,
    which must agree with it, saves time where no paths are asked for.
    """

    def without_keys(x: Any) -> tuple[list[Any], Any]:
        pairs, metadata = flatten_with_keys(x)
        return [item for _, item in pairs], metadata

    register_pytree_node(
        nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys
    )


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Class decorator: register by `tree_flatten_with_keys` and `tree_unflatten`.

    A method `tree_flatten` is used too where there is one.
    """
    plain = operator.methodcaller("tree_flatten")
    register_pytree_with_keys(
        cls,
        operator.methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,
        plain if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a node: its data fields are items, its meta fields metadata.

    Without field lists, fields marked `field(metadata=dict(static=True))` are
    metadata and all others data. `drop_fields` are neither. The class is called with
    all of them by keyword when it is put together. Also works as a decorator.

    Raises TypeError when only one list is given, or none for a class that is no
    dataclass, and ValueError when the lists overlap or do not name exactly the fields
    that the constructor takes.
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: pass both data_fields and meta_fields, or neither; "
            f"got data_fields={data_fields!r} and meta_fields={meta_fields!r}."
        )
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                f"register_dataclass: {nodetype!r} is not a dataclass, so data_fields "
                "and meta_fields must be given."
            )
        every = dataclasses.fields(nodetype)
        meta_fields = [f.name for f in every if f.metadata.get("static", False)]
        data_fields = [f.name for f in every if not f.metadata.get("static", False)]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        _check_dataclass_fields(nodetype, {*data, *meta}, set(drop_fields))
    shared = sorted(set(data) & set(meta))
    if shared:
        raise ValueError(
            f"register_dataclass: the fields {', '.join(shared)} stand in both "
            "data_fields and meta_fields; a field is one or the other."
        )
    for registry in (default_registry, none_leaf_registry):
        registry.register_dataclass_node(nodetype, list(data), list(meta))
    return nodetype


def _check_dataclass_fields(nodetype: Any, given: set[str], dropped: set[str]) -> None:
    expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - dropped
    if given == expected:
        return
    message = (
        "register_dataclass: data_fields and meta_fields together must name each "
        f"field that the constructor of {nodetype.__name__} takes."
    )
    if missing := sorted(expected - given):
        message += (
            f" Missing are {', '.join(missing)}; to leave them out on purpose, put "
            "them in drop_fields."
        )
    if unknown := sorted(given - expected):
        message += f" Not such fields are {', '.join(unknown)}."
    raise ValueError(message)


def register_static(cls: Class) -> Class:
    """Class decorator: instances are nodes without leaves, all metadata.

    They must hash and compare by value: `jit` traces again for each different one.
    """
    register_pytree_with_keys(
        cls, lambda instance: ((), instance), lambda instance, items: instance
    )
    return cls


@register_static
@dataclasses.dataclass(frozen=True, slots=True)
class Static:
    """A hashable value wrapped so that it is part of a tree's structure."""

    val: Any

    def __eq__(self, other: object) -> bool:
        # Types count: 1 == 1.0 == True, but they trace differently.
        return (
            type(other) is Static
            and type(self.val) is type(other.val)
            and self.val == other.val
        )

    def __hash__(self) -> int:
        return hash((type(self.val), self.val))


def _unflatten_ordered_dict(keys: tuple, values: Iterable[Any]) -> Any:
    return collections.OrderedDict(zip(keys, values, strict=True))


def _flatten_default_dict(mapping: Any) -> tuple[Any, Any]:
    keys = tuple(sorted(mapping))
    pairs = tuple((DictKey(key), mapping[key]) for key in keys)
    return pairs, (mapping.default_factory, keys)


def _unflatten_default_dict(metadata: tuple, values: Iterable[Any]) -> Any:
    factory, keys = metadata
    return collections.defaultdict(factory, zip(keys, values, strict=True))


register_pytree_with_keys(
    collections.OrderedDict,
    lambda mapping: (
        tuple((DictKey(key), value) for key, value in mapping.items()),
        tuple(mapping),
    ),
    _unflatten_ordered_dict,
)
register_pytree_with_keys(
    collections.defaultdict, _flatten_default_dict, _unflatten_default_dict
)


# ---- functions as trees -------------------------------------------------------------


class _Boxed:
    """Stands for a `functools.partial`, so that another one does not absorb it."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self.function)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Boxed):
            return self.function == other.function
        return self.function == other

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """`functools.partial` whose bound arguments are leaves and its function metadata.

    It can be passed to transformed functions, which then trace what is bound.
    """

    def __new__(cls, func: Any, *args: Any, **kwargs: Any) -> Partial:
        if not isinstance(func, functools.partial):
            return super().__new__(cls, func, *args, **kwargs)
        # functools would merge two partials into one when it sees `func.func`, and
        # with them what is bound here and what was bound before. The box gets these
        # attributes, which callers look for, only afterwards.
        box: Any = _Boxed(func)
        made = super().__new__(cls, box, *args, **kwargs)
        box.func = func.func
        box.args = func.args
        box.keywords = func.keywords
        return made


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, bound: Partial(func, *bound[0], **bound[1]),
)


# ---- prefixes (explained in tree_prefix) --------------------------------------------


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of `full_tree`'s structure: each leaf of the prefix, repeated below it.

    Raises ValueError, naming the place, when it is not a prefix.
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf=is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None
) -> list[Any]:
    """The leaves of `tree_broadcast`. `is_leaf` is called on nodes of the prefix."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    subtrees = _flatten_up_to(
        treedef, prefix_tree, full_tree, is_leaf, "broadcast_prefix prefix_tree"
    )
    repeated: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees):
        repeated.extend([leaf] * tree_structure(subtree).num_leaves)
    return repeated
