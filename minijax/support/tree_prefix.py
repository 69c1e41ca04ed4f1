"""Prefixes of trees, and explanations of where two trees do not fit.

A prefix of a tree is the same tree with some subtrees replaced by leaves: `(0, None)`
is a prefix of `((x, y), {'a': z})`. Arguments such as `in_axes` are prefixes.

In JAX: the second half of `jax/_src/tree_util.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from minijax.support.trees import (
    IsLeaf,
    KeyPath,
    PyTreeDef,
    default_registry,
    keystr,
    tree_structure,
    treedef_is_strict_leaf,
)

Explanation = Callable[[str], ValueError]


def _is_leaf(tree: Any, is_leaf: IsLeaf) -> bool:
    return treedef_is_strict_leaf(tree_structure(tree, is_leaf))


def _keys(tree: Any) -> tuple[Any, ...]:
    return tuple(
        key for key, _ in default_registry.flatten_one_level_with_keys(tree)[0]
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


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None
) -> list[Explanation]:
    """Why one tree is not a prefix of another: an explanation for each such place.

    Call an explanation with the name of the prefix, as in
    `raise prefix_errors(in_axes, args)[0]("in_axes")`.
    """
    return list(_prefix_errors((), prefix_tree, full_tree, is_leaf))


def _explain(path: KeyPath, what: str, detail: str) -> Explanation:
    def make(name: str) -> ValueError:
        return ValueError(
            f"pytree structure error: {what} at key path\n    {name}{keystr(path)}\n"
            f"{detail.format(name=name)}"
        )

    return make


def _escaped(value: Any) -> str:
    return str(value).replace("{", "{{").replace("}", "}}")


def _prefix_errors(
    path: KeyPath, prefix: Any, full: Any, is_leaf: IsLeaf
) -> Iterator[Explanation]:
    if _is_leaf(prefix, is_leaf):
        return
    kind = type(prefix)
    if kind is not type(full):
        yield _explain(
            path,
            "different types",
            f"There the prefix {{name}} has a subtree of type\n    {_escaped(kind)}\n"
            f"but the full tree has one of type\n    {_escaped(type(full))}.",
        )
        return
    prefix_items, prefix_meta = default_registry.flatten_one_level(prefix)
    full_items, full_meta = default_registry.flatten_one_level(full)
    prefix_items, full_items = tuple(prefix_items), tuple(full_items)
    prefix_keys, full_keys = _keys(prefix), _keys(full)
    if len(prefix_items) != len(full_items):
        if isinstance(prefix, (list, tuple)):
            yield _explain(
                path,
                f"different lengths of {kind.__name__}",
                f"There the prefix {{name}} has a {kind.__name__} of length "
                f"{len(prefix_items)}, but the full tree one of length "
                f"{len(full_items)}.",
            )
            return
        difference = _key_difference(prefix_keys, full_keys)
        in_one = f"\nOnly one of them has {_escaped(difference)}." if difference else ""
        yield _explain(
            path,
            "different numbers of pytree children",
            f"There the prefix {{name}} has a {_escaped(kind)} with "
            f"{len(prefix_items)} items,\n"
            f"    {_escaped(' '.join(map(_key_text, prefix_keys)))}\n"
            f"but the full tree one with {len(full_items)} items,\n"
            f"    {_escaped(' '.join(map(_key_text, full_keys)))}{in_one}",
        )
        return
    if prefix_meta != full_meta:
        import difflib  # only for this message

        lines = difflib.ndiff(
            str(prefix_meta).splitlines(), str(full_meta).splitlines()
        )
        yield _explain(
            path,
            "different pytree metadata",
            f"There the prefix {{name}} and the full tree both have a "
            f"{_escaped(kind)}, but the metadata differ:\n"
            f"{_escaped(textwrap.indent(chr(10).join(lines), '    '))}",
        )
        return
    for key, prefix_item, full_item in zip(prefix_keys, prefix_items, full_items):
        yield from _prefix_errors((*path, key), prefix_item, full_item, is_leaf)


def equality_errors(
    tree1: Any, tree2: Any, is_leaf: IsLeaf = None
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """How two trees differ in structure: (path, first, second, explanation).

    Each reads as a sentence: "at `keystr(path)` the first is a `first` and the second
    is a `second`, so `explanation`".
    """
    yield from _equality_errors((), tree1, tree2, is_leaf)


class _Leaf:
    def __repr__(self) -> str:
        return "pytree leaf"


def equality_errors_pytreedef(
    tree1: PyTreeDef, tree2: PyTreeDef
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """`equality_errors` of two structures."""
    leaf = _Leaf()
    return equality_errors(
        tree1.unflatten([leaf] * tree1.num_leaves),
        tree2.unflatten([leaf] * tree2.num_leaves),
    )


def _type_text(tree: Any) -> str:
    return "pytree leaf" if isinstance(tree, _Leaf) else str(type(tree))


def _equality_errors(
    path: KeyPath, tree1: Any, tree2: Any, is_leaf: IsLeaf
) -> Iterator[tuple[KeyPath, str, str, str]]:
    if _is_leaf(tree1, is_leaf) and _is_leaf(tree2, is_leaf):
        return
    kind = type(tree1)
    if kind is not type(tree2):
        yield path, _type_text(tree1), _type_text(tree2), "their Python types differ"
        return
    items1, meta1 = default_registry.flatten_one_level(tree1)
    items2, meta2 = default_registry.flatten_one_level(tree2)
    items1, items2 = tuple(items1), tuple(items2)
    keys1, keys2 = _keys(tree1), _keys(tree2)
    if len(items1) != len(items2):
        if isinstance(tree1, (list, tuple)):
            yield (
                path,
                f"{kind.__name__} of length {len(items1)}",
                f"{kind.__name__} of length {len(items2)}",
                "the lengths do not match",
            )
            return
        explanation = "the numbers of children do not match"
        if difference := _key_difference(keys1, keys2):
            explanation += f", since only one has {difference}"
        yield path, _counted(kind, items1), _counted(kind, items2), explanation
        return
    if meta1 != meta2:
        yield (
            path,
            f"{kind} with pytree metadata {meta1}",
            f"{kind} with pytree metadata {meta2}",
            "the pytree node metadata does not match",
        )
        return
    for key, item1, item2 in zip(keys1, items1, items2):
        yield from _equality_errors((*path, key), item1, item2, is_leaf)


def _counted(kind: type, items: tuple[Any, ...]) -> str:
    children = "child" if len(items) == 1 else "children"
    return f"{kind} with {len(items)} {children}"
