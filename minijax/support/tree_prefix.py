"""Prefixes of trees, and explanations of where two trees differ.

A prefix of a tree is the same tree with some subtrees replaced by leaves: `(0, None)`
is a prefix of `((x, y), {'a': z})`. Arguments such as `in_axes` are prefixes.

In JAX: the second half of `jax/_src/tree_util.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from minijax.core import trees

Explanation = Callable[[str], ValueError]


def _is_leaf(tree: Any, is_leaf: trees.IsLeaf) -> bool:
    return trees.treedef_is_strict_leaf(trees.tree_structure(tree, is_leaf))


def _keys(tree: Any) -> tuple[Any, ...]:
    return tuple(
        key for key, _ in trees.default_registry.flatten_one_level_with_keys(tree)[0]
    )


def _key_text(key: Any) -> str:
    return repr(getattr(key, "key", key))


def _key_difference(first: tuple[Any, ...], second: tuple[Any, ...]) -> str:
    """The keys that only one of two nodes has; "" if they cannot be compared."""
    try:
        different = set(first) ^ set(second)
    except TypeError:
        return ""
    return ", ".join(sorted(_key_text(key) for key in different))


def _differences(
    path: trees.KeyPath, first: Any, second: Any, is_leaf: trees.IsLeaf, prefix: bool
) -> Iterator[tuple[trees.KeyPath, str, tuple[Any, ...], tuple[Any, ...]]]:
    """Where two trees differ: (path, what differs, the first's facts, the second's).

    What differs is "type", "length", "children" or "metadata". With `prefix`, a leaf of
    the first tree goes with everything.
    """
    if _is_leaf(first, is_leaf) and (prefix or _is_leaf(second, is_leaf)):
        return
    kind = type(first)
    if kind is not type(second):
        yield path, "type", (first,), (second,)
        return
    items, metadata = trees.default_registry.flatten_one_level(first)
    others, other_metadata = trees.default_registry.flatten_one_level(second)
    items, others = tuple(items), tuple(others)
    keys, other_keys = _keys(first), _keys(second)
    if len(items) != len(others):
        what = "length" if isinstance(first, (list, tuple)) else "children"
        yield path, what, (kind, len(items), keys), (kind, len(others), other_keys)
    elif metadata != other_metadata:
        yield path, "metadata", (kind, metadata), (kind, other_metadata)
    else:
        for key, item, other in zip(keys, items, others):
            yield from _differences((*path, key), item, other, is_leaf, prefix)


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: trees.IsLeaf = None
) -> list[Explanation]:
    """Why one tree is not a prefix of another: an explanation for each such place.

    Call an explanation with the name of the prefix, as in
    `raise prefix_errors(in_axes, args)[0]("in_axes")`.
    """
    found = _differences((), prefix_tree, full_tree, is_leaf, prefix=True)
    return [_explain(*difference) for difference in found]


def _explain(
    path: trees.KeyPath, what: str, first: tuple, second: tuple
) -> Explanation:
    title, detail = _PREFIX_TEXTS[what](*first, *second)

    def make(name: str) -> ValueError:
        return ValueError(
            f"pytree structure error: {title} at key path\n    {name}"
            f"{trees.keystr(path)}\nThere the prefix {name} {detail}"
        )

    return make


def _type_differs(prefix: Any, full: Any) -> tuple[str, str]:
    return (
        "different types",
        f"has a subtree of type\n    {type(prefix)}\n"
        f"but the full tree has one of type\n    {type(full)}.",
    )


def _length_differs(
    kind: type, count: int, keys: tuple, _: type, other: int, other_keys: tuple
) -> tuple[str, str]:
    return (
        f"different lengths of {kind.__name__}",
        f"has a {kind.__name__} of length {count}, but the full tree one of length "
        f"{other}.",
    )


def _children_differ(
    kind: type, count: int, keys: tuple, _: type, other: int, other_keys: tuple
) -> tuple[str, str]:
    difference = _key_difference(keys, other_keys)
    in_one = f"\nOnly one of them has {difference}." if difference else ""
    return (
        "different numbers of pytree children",
        f"has a {kind} with {count} items,\n    {' '.join(map(_key_text, keys))}\n"
        f"but the full tree one with {other} items,\n"
        f"    {' '.join(map(_key_text, other_keys))}{in_one}",
    )


def _metadata_differs(kind: type, metadata: Any, _: type, other: Any) -> tuple:
    import difflib  # only for this message

    lines = difflib.ndiff(str(metadata).splitlines(), str(other).splitlines())
    return (
        "different pytree metadata",
        f"and the full tree both have a {kind}, but the metadata differ:\n"
        f"{textwrap.indent(chr(10).join(lines), '    ')}",
    )


_PREFIX_TEXTS: dict[str, Callable[..., tuple[str, str]]] = {
    "type": _type_differs,
    "length": _length_differs,
    "children": _children_differ,
    "metadata": _metadata_differs,
}


def equality_errors(
    tree1: Any, tree2: Any, is_leaf: trees.IsLeaf = None
) -> Iterator[tuple[trees.KeyPath, str, str, str]]:
    """How two trees differ in structure: (path, first, second, explanation).

    Each reads as a sentence: "at `keystr(path)` the first is a `first` and the second
    is a `second`, so `explanation`".
    """
    for path, what, first, second in _differences(
        (), tree1, tree2, is_leaf, prefix=False
    ):
        if what == "type":
            explanation = "their Python types differ"
            texts = [_type_text(*first), _type_text(*second)]
        elif what == "length":
            explanation = "the lengths do not match"
            texts = [f"{kind.__name__} of length {n}" for kind, n, _ in (first, second)]
        elif what == "children":
            explanation = "the numbers of children do not match"
            if difference := _key_difference(first[2], second[2]):
                explanation += f", since only one has {difference}"
            texts = [_counted(*first), _counted(*second)]
        else:
            explanation = "the pytree node metadata does not match"
            texts = [f"{kind} with pytree metadata {m}" for kind, m in (first, second)]
        yield path, texts[0], texts[1], explanation


class _Leaf:
    def __repr__(self) -> str:
        return "pytree leaf"


def equality_errors_pytreedef(
    tree1: trees.PyTreeDef, tree2: trees.PyTreeDef
) -> Iterator[tuple[trees.KeyPath, str, str, str]]:
    """`equality_errors` of two structures."""
    leaf = _Leaf()
    return equality_errors(
        tree1.unflatten([leaf] * tree1.num_leaves),
        tree2.unflatten([leaf] * tree2.num_leaves),
    )


def _type_text(tree: Any) -> str:
    return "pytree leaf" if isinstance(tree, _Leaf) else str(type(tree))


def _counted(kind: type, count: int, keys: tuple) -> str:
    return f"{kind} with {count} {'child' if count == 1 else 'children'}"
